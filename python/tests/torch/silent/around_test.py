"""Tests that results are not silently different if modes, hooks, autocast or settings of kernels differ between the
forward and the backward pass."""

import contextlib

import cairn
import cairn.torch
import harness
import torch
from cairn.torch import _private
from cairn.torch._inputs import read_again
from same_step import backend, linears
from written_images import Images, OfImages


class WhatIsAround(OfImages):
    def test_modes_that_change_what_operations_give(self):
        """Tests modes that are active in only one of the two passes, and so change recomputed values. A warning must
        say so."""
        class LowDispatch(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))

        class LowFunction(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))

        for about_forward, mode in harness.afresh(((True, LowFunction), (False, LowDispatch))):
            chosen = backend("min", measure=False)
            compiled, x = torch.compile(Images(), backend=chosen), torch.rand(64, 64)
            compiled(x).backward()  # compiled without a mode
            with harness.told() as told:
                with mode() if about_forward else contextlib.nullcontext():
                    loss = compiled(x)
                with contextlib.nullcontext() if about_forward else mode():
                    loss.backward()
            self.assertRegex(" ".join(told), f"other modes that see operations .*{mode.__name__}")

    def test_what_hooks_keep_elsewhere_is_the_same(self):
        """Tests saved-tensor hooks. If they return the same values, the gradients must be the same, even if the hooks
        change the layout. If they return other values, there must be a warning, or an error if they write an input."""
        # a new cache, because a schedule that another test has cached might recompute nothing from saved values
        self.enterContext(harness.new_cache())
        model, x = Images(), torch.rand(64, 64).T
        expected = self.gradients(model, [x], None, lambda x: None)

        def step(pack):
            torch._dynamo.reset()
            model.zero_grad()
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
                torch.compile(model, backend=backend("min", measure=False, calibrate=False))(x).backward()

        step(lambda saved: saved.clone(memory_format=torch.contiguous_format))
        self.assertTrue(all(torch.equal(p.grad, e) for p, e in zip(model.parameters(), expected)))
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "hooks on saved values return other values than they got"):
            step(lambda saved: saved.to(torch.bfloat16).float())
        with self.assertRaisesRegex(cairn.torch.WrittenError, "an input was written"):  # the hook writes it in place
            step(lambda saved: saved.data.add_(1) if saved.data_ptr() == x.data_ptr() else saved)

    def test_hooks_that_change_layouts_where_nothing_runs_again(self):
        """Tests hooks that change layouts in a step without recomputation. Operations of the backward pass rely on the
        layouts that saved values had in the forward pass. Nevertheless, gradients must be the same as without hooks."""
        model = torch.nn.Sequential(torch.nn.LayerNorm(32), torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32))
        x, found = torch.randn(4, 10, 32), []
        for budget in harness.afresh((None, "100%", "min")):
            model.zero_grad()
            run = model if budget is None else torch.compile(model, backend=backend(budget, measure=False))
            turned = lambda saved: saved.mT.contiguous().mT if saved.dim() > 1 and budget is not None else saved
            with torch.autograd.graph.saved_tensors_hooks(turned, lambda packed: packed):
                loss = run(x).square().mean()
            loss.backward()
            found.append([p.grad for p in model.parameters()])
        self.assertTrue(all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other)))

    def test_hooks_that_hide_a_write_from_torch(self):
        """Tests saved-tensor hooks that hide from torch that a saved parameter was written. Without hooks, torch raises
        an error; with hooks, it does not check. Cairn must warn."""
        model = torch.nn.Sequential(*[m for _ in range(4) for m in (torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32))])
        x = torch.randn(40, 32)
        for pack, told in harness.afresh(((lambda saved: saved, 1), (torch.clone, 0))):
            compiled = torch.compile(model, backend=backend("min", measure=False))
            with harness.told() as found:
                with torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
                    loss = compiled(x).square().mean()
                with torch.no_grad():
                    model[0].weight.mul_(1.1)
                loss.backward()
            self.assertEqual(sum("hide from torch that one of them" in text for text in found), told)

    def test_a_tensor_of_hooks_at_the_address_of_a_freed_value(self):
        """Tests that a tensor that hooks return does not count as a written value if it only lies where a saved value
        was before it was freed."""
        written, unchanged = torch.zeros(4), read_again.Unchanged({}, hooks=True)
        kept, freed = (_private.weak_storage(t.untyped_storage()) for t in (written, torch.zeros(4)))
        version = written._version
        written.add_(1)
        for storage, expected in ((kept, True), (freed, False)):
            unchanged.versions = {"value": (storage, written.data_ptr(), version)}
            self.assertEqual(unchanged.written_behind_hooks({"value": written}), expected)
            self.assertEqual(unchanged.is_uncopied("value", written), expected)

    def test_an_input_at_an_odd_address(self):
        """Tests an input at an address with unusual alignment. Rounding in vectorized kernels depends on the alignment
        of their arguments. So copies by hooks, and copies of shared inputs, must have the alignment of the original."""
        weights = [torch.nn.Parameter(torch.randn(32) * 0.1) for _ in range(12)]

        def loss_of(x):
            return sum((x @ weight).exp().sin().exp().sin() for weight in weights).exp().sin().mean()

        def step(chosen, hooks, shared):
            torch._dynamo.reset()
            torch.manual_seed(0)
            compiled, flat = torch.compile(loss_of, backend=chosen), torch.randn(512 * 32 + 1)
            found = []
            for number in range(2):
                x = torch.from_numpy(flat.numpy().copy()) if shared and number else flat
                with torch.autograd.graph.saved_tensors_hooks(
                        torch.clone, lambda t: t) if hooks else contextlib.nullcontext():
                    loss = compiled(x[1:].view(512, 32))
                found += [loss.detach(), *torch.autograd.grad(loss, weights)]
            return found

        for hooks, shared in ((True, False), (False, True)):
            with harness.cairn_warnings("ignore"):
                found = [step(chosen, hooks, shared) for chosen in ("aot_eager", backend("min", measure=False))]
            self.assertTrue(all(map(torch.equal, *found)), (hooks, shared))

    def test_noise_like_what_hooks_give_back_laid_out_in_another_way(self):
        """Tests hooks that return saved values in another layout, as save_on_cpu(pin_memory=True) does, in steps whose
        backward pass draws noise like a saved value. Also tests expanded tensors, and steps without noise. Gradients
        must be the same as without hooks."""
        class Noisy(torch.nn.Module):
            def __init__(self, noise):
                super().__init__()
                self.layers, self.noise = linears(5), noise

            def forward(self, x, row):
                y = torch.softmax(x, 0) * x.exp() + x.cumsum(1) + x.logsumexp(1, keepdim=True)
                for layer in self.layers:
                    y = torch.tanh(layer(y + (x * torch.rand_like(x) if self.noise else x.sin()) + torch.tanh(row)))
                return y.square().mean()

        def pack(saved):
            return torch.empty(saved.size(), dtype=saved.dtype).copy_(saved)

        for noise, random in ((True, "keep"), (True, "replay"), (False, "keep")):
            torch.manual_seed(0)
            model, x, row = Noisy(noise), torch.randn(64, 128).T, torch.randn(64).expand(128, 64)
            found = []
            for chosen, hooks in (("aot_eager", False), (backend("min", random=random, measure=False), True)):
                torch._dynamo.reset()
                model.zero_grad()
                torch.manual_seed(1)
                with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t) if hooks else contextlib.nullcontext():
                    loss = torch.compile(model, backend=chosen)(x, row)
                loss.backward()
                found.append([p.grad for p in model.parameters()])
            with self.subTest(noise=noise, random=random):
                self.assertTrue(all(map(torch.equal, *found)))

    def test_hooks_that_are_compiled_into_the_graphs_are_told(self):
        pack, unpack = torch.fx.symbolic_trace(lambda x: x.to(torch.bfloat16)), torch.fx.symbolic_trace(lambda x: x.to(torch.float32))
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "hooks on saved values"):
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                loss = torch.compile(Images(), backend=backend("min", measure=False))(torch.rand(64, 64))
            loss.backward()

    def test_a_backward_pass_under_autocast_is_measured_again(self):
        """Tests a backward pass under autocast. Its casts take memory that no plan contains and that a measurement
        without autocast does not include, so it must be measured again."""
        model, x = harness.Layers(count=3, width=128), torch.rand(64, 128)
        compiled = torch.compile(lambda x: model.layers[2](torch.tanh(model.layers[1](model.layers[0](x)))).square().mean(),
                                 backend=backend("min"))
        with harness.told() as told:
            for under_autocast in (False, True, True):
                loss = compiled(x)
                with torch.autocast("cpu", torch.bfloat16, enabled=under_autocast):
                    loss.backward()
                model.zero_grad()
                if not under_autocast:
                    self.assertIs(cairn.torch.last_report().kept, True)
        report = cairn.torch.last_report()
        self.assertGreater(report.measured, report.promised)
        self.assertIs(report.kept, False)
        self.assertIn("promised a peak of", told[0])

    def test_a_backward_pass_under_autocast(self):
        """Tests a backward pass under autocast after a forward pass without it. Recomputation must run without
        autocast. The rest of the backward pass must behave as with AOTAutograd, even for a function that has its own
        backward pass."""
        class Mixed(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_backward(y)
                return x.clone()

            @staticmethod
            def backward(ctx, gradient):
                return (gradient @ ctx.saved_tensors[0]).float(), None

        class Model(Images):
            def forward(self, x):
                return super().forward(Mixed.apply(torch.tanh(self.layers[0](x)), x))

        model, x = Model(), torch.rand(64, 64)
        found = []
        for chosen in harness.afresh(("aot_eager", backend("min", measure=False))):
            model.zero_grad()
            loss = torch.compile(model, backend=chosen)(x)
            with torch.autocast("cpu", torch.bfloat16):
                loss.backward()
            found.append([p.grad.clone() for p in model.parameters()])
        self.assertNotEqual(cairn.torch.last_report().graphs[0].recomputed, [])
        self.assertTrue(all(map(torch.equal, *found)))
        model.zero_grad()
        model(x).backward()
        self.assertFalse(all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), found[0])))

    def test_switches_of_kernels_that_are_turned_after_the_forward_pass_are_told(self):
        @contextlib.contextmanager
        def default_dtype():
            torch.set_default_dtype(torch.float64)
            yield
            torch.set_default_dtype(torch.float32)

        @contextlib.contextmanager
        def flushed_denormals():
            torch.set_flush_denormal(True)
            yield
            torch.set_flush_denormal(False)

        mkldnn = torch.backends.mkldnn.flags(enabled=False)
        for turned in harness.afresh((mkldnn, default_dtype(), flushed_denormals())):
            loss = torch.compile(Images(), backend=backend("min", measure=False))(torch.rand(64, 64))
            with self.assertWarnsRegex(cairn.torch.CairnWarning, "kernel settings .* differ between forward and backward pass"), turned:
                loss.backward()
