"""Tests that results are not silently different if the forward pass writes weights, or if the model or other code
writes buffers."""

import unittest
import warnings

import cairn
import cairn.torch
import harness
import numpy as np
import torch
import torch.nn.functional as F
from same_step import backend, linears
from torch.testing._internal.two_tensor import TwoTensor
from written_images import Images, OfImages


class WeightsThatAreWritten(unittest.TestCase):
    """Tests forward passes that write weights under no_grad, for example averages of other weights."""

    def test_they_have_no_gradient(self):
        class Momentum(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.own, self.average = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

            def forward(self, x):
                y = F.gelu(self.own(x)).exp()
                with torch.no_grad():
                    for own, average in zip(self.own.parameters(), self.average.parameters()):
                        average.mul_(0.9).add_(own, alpha=0.1)
                    target = F.gelu(self.average(x))
                return (F.gelu(y) * target).square().mean()

        found = []
        for chosen in harness.afresh(("aot_eager", backend("min"), backend("100%"))):
            model = Momentum()
            compiled, optimizer = torch.compile(model, backend=chosen), torch.optim.AdamW(model.parameters(), 0.01)
            for _ in range(2):
                optimizer.zero_grad()
                compiled(torch.randn(32, 64)).backward()
                self.assertIsNone(model.average.weight.grad)
                optimizer.step()
            found.append(list(model.parameters()))
        for other in found[1:]:
            self.assertTrue(all(map(torch.equal, found[0], other)))

    def test_what_autograd_has_of_an_input_stays(self):
        """Tests an input that the model writes. AOTAutograd writes inputs after running the graph, where autograd
        notices the write. If the input is not a leaf, it must keep its gradient function."""
        def step(compiled, layer, how):
            leaf = torch.randn(16, requires_grad=True)
            kept = leaf if how == "leaf" else leaf.clone()
            if how == "kept":
                kept.retain_grad()
            loss = compiled(torch.randn(8, 16), kept)
            if how == "asked":
                return [loss, kept, *torch.autograd.grad(loss, [kept, leaf])]
            if how == "apart":
                loss.backward()
            if how in ("apart", "dropped"):
                loss = 0
            (loss + kept.square().sum()).backward()
            return [kept, leaf.grad, kept.grad if how == "kept" else None, *(p.grad for p in layer.parameters())]

        hows, found = ("kept", "asked", "apart", "dropped", "leaf"), {}
        for chosen in harness.afresh(("aot_eager", backend("min", measure=False), backend("100%", measure=False))):
            layer = torch.nn.Linear(16, 16)

            def loss_of(x, kept):
                hidden = layer(x).exp()
                with torch.no_grad():
                    kept.mul_(0.9).add_(hidden.detach().mean(0), alpha=0.1)
                return (layer(hidden) * kept).tanh().sum()

            compiled = torch.compile(loss_of, backend=chosen)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for how in hows:
                    layer.zero_grad()
                    now = step(compiled, layer, how)
                    for i, (value, expected) in enumerate(zip(now, found.setdefault(how, now), strict=True)):
                        same = value is expected or (value is not None and torch.equal(value, expected))
                        self.assertTrue(same, (how, i, value, expected))

    def test_no_zeros_are_added_to_a_gradient(self):
        """Tests weights that the forward pass clips. Nothing must be added to their gradients: if zeros were added, -0.
        would become 0., and None would become zeros."""
        def step(chosen, uses):
            torch._dynamo.reset()
            torch.manual_seed(0)
            weight, other = torch.nn.Parameter(torch.randn(64, 64) * 2), torch.nn.Parameter(torch.randn(64))

            def loss_of(x, average):
                with torch.no_grad():
                    weight.clamp_(-1, 1)
                    average.mul_(0.5)
                return (weight * x).sum() + (average.sum() if uses else 0)

            average = other * 1
            loss = torch.compile(loss_of, backend=chosen)(torch.randn(64, 64).relu().neg(), average)
            strides = torch.autograd.grad(loss, average, allow_unused=True, retain_graph=True)[0]
            loss.backward()
            return weight.grad, other.grad, None if strides is None else strides.stride()

        with torch._functorch.config.patch(donated_buffer=False):
            for uses in (False, True):
                weight, other, strides = step("aot_eager", uses)
                self.assertGreater(torch.signbit(weight[weight == 0]).sum(), 1000)
                for budget in ("100%", "min"):
                    with harness.cairn_warnings("ignore"):
                        now = step(backend(budget, measure=False), uses)
                    self.assertTrue(torch.equal(torch.signbit(now[0]), torch.signbit(weight)))
                    self.assertEqual(now[1] is None, other is None)
                    self.assertEqual(now[2], strides)

    def test_a_view_of_a_parameter_is_written_once(self):
        """Tests a view of a parameter that is written. Afterwards, torch raises an error if the gradient function of
        the view is read. This must not count as a failure of the schedule."""
        for write in harness.afresh((lambda view: view.data.mul_(0.5), lambda view: view.mul_(0.5))):
            parameter = torch.nn.Parameter(torch.ones(4, 16))
            with torch.no_grad():
                view = parameter[1:3]

            def loss_of(x, view):
                with torch.no_grad():
                    write(view)
                return (x @ parameter.T).tanh().square().sum()

            torch.compile(loss_of, backend=backend("min", fallback=True, measure=False))(torch.randn(8, 16), view)
            self.assertEqual(parameter.detach()[1, 0].item(), 0.5)


class BuffersThatAreWritten(OfImages):
    def test_a_buffer_that_a_kernel_writes_unseen(self):
        """Tests a buffer that a kernel writes without increasing its version, as a batch norm in eager mode does with
        its statistics. An error must be raised."""
        class Shifted(Images):
            def __init__(self):
                super().__init__()
                self.norm = torch.nn.BatchNorm1d(64)

            def forward(self, x):
                return super().forward(x + self.norm.running_mean)

        model, x = Shifted(), torch.rand(64, 64)
        loss = torch.compile(model, backend=backend("min", measure=False))(x)
        version = model.norm.running_mean._version
        model.norm(x)
        self.assertEqual(model.norm.running_mean._version, version)
        with self.assertRaisesRegex(cairn.torch.WrittenError, "a buffer was written"):
            loss.backward()

    def test_a_tensor_of_a_module_that_autograd_cannot_save(self):
        class Table(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.randn(64, 64))
                with torch.inference_mode():
                    self.table = torch.randn(16, 64, 64)

            def forward(self, x):
                return (self.weight * self.table.sum(0)).sin().cos().exp().sin().sum()

        for inputs in ("checked", "stable"):
            torch._dynamo.reset()
            model = Table()
            torch.compile(model, backend="aot_eager")(torch.ones(3)).backward()
            expected, model.weight.grad = model.weight.grad, None
            torch._dynamo.reset()
            backend = cairn.torch.backend("min", inputs=inputs, fallback=False, work_limit=10_000)
            torch.compile(model, backend=backend)(torch.ones(3)).backward()
            self.assertTrue(torch.equal(model.weight.grad, expected))
            self.assertIs(cairn.torch.last_report().kept, True)

    def test_a_tensor_of_a_module_over_numpy(self):
        """Tests a module's tensor on memory of numpy. Operations that read it run once, so a write between the passes
        must not change gradients."""
        def gradients(write):
            torch.manual_seed(0)
            model = Images()
            ring = self.ring().astype(np.float32)
            model.seen = torch.from_numpy(ring)
            model.forward = lambda x: Images.forward(model, x + model.seen)
            torch._dynamo.reset()
            loss = torch.compile(model, backend=backend("min", measure=False))(torch.rand(64, 64))
            if write:
                ring.fill(3)
            loss.backward()
            return [p.grad for p in model.parameters()]

        self.assertTrue(all(map(torch.equal, gradients(False), gradients(True))))
        self.assertEqual(len(cairn.torch.last_report().graphs[0].shared_inputs), 1)

    def test_a_parameter_that_a_function_keeps_in_its_context_and_torch_writes(self):
        """Tests a function that keeps a parameter in its context without save_for_backward. If torch writes the
        parameter, eager mode does not raise an error, and the gradients are those of the old value. Cairn must do the
        same, or raise an error if it would recompute from the new value."""
        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, weight):
                ctx.weight = weight
                ctx.save_for_backward(x)
                return x @ weight.t()

            @staticmethod
            def backward(ctx, gradient):
                return gradient @ ctx.weight, gradient.t() @ ctx.saved_tensors[0]

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.randn(64, 16) * 0.3)
                self.scale = torch.nn.Parameter(torch.ones(64))

            def forward(self, x):
                return torch.sin(Product.apply(x, self.weight).exp() * self.scale).square().mean()

        def gradients(backend):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model = Model()
            loss = torch.compile(model, backend=backend)(torch.randn(128, 16))
            with torch.no_grad():
                model.weight.mul_(1.5)
            loss.backward()
            return [model.weight.grad, model.scale.grad]

        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            gradients(backend("min", measure=False))
        if torch.__version__ >= "2.10":  # torch 2.9 always rejects the write
            self.assertTrue(all(map(torch.equal, gradients("aot_eager"), gradients(backend("100%", measure=False)))))

    def test_a_buffer_that_a_functions_own_backward_pass_reads_and_writes(self):
        """Tests a function whose backward pass reads and writes a buffer: a moving average of the largest gradients.
        Each backward call reads the value that the previous call has written, so the order of the calls must stay the
        same."""
        class Largest(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, seen):
                ctx.seen = seen
                return x * 1.0

            @staticmethod
            def backward(ctx, gradient):
                ctx.seen.mul_(0.9).add_(gradient.detach().abs().amax())
                return gradient, None

        class Model(torch.nn.Module):
            def __init__(self, last):
                super().__init__()
                self.layer, self.last = torch.nn.Linear(16, 64), last
                self.register_buffer("seen", torch.tensor(0.1))

            def forward(self, x):
                y = self.layer(x).sin()
                return Largest.apply(y.exp().mean(), self.seen) if self.last else Largest.apply(y, self.seen).exp().mean()

        def found(backend, last, apart):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model, x = Model(last), torch.randn(96, 16)
            compiled = torch.compile(model, backend=backend)
            losses = [compiled(x), compiled(x * 2)]
            for loss in losses if apart else [sum(losses)]:
                loss.backward()
            return [model.seen, *(p.grad for p in model.parameters())]

        if torch.__version__ < "2.10":
            self.skipTest("torch 2.9 refuses it")
        for last, apart in ((False, False), (False, True), (True, False), (True, True)):
            expected = found("aot_eager", last, apart)
            for budget in ("100%", "min"):
                with harness.cairn_warnings("ignore"):
                    now = found(backend(budget, measure=False), last, apart)
                self.assertTrue(all(map(torch.equal, now, expected)), (last, apart, budget))


class OtherTensors(harness.Fresh):
    def test_a_buffer_of_two_tensors_that_the_model_writes(self):
        """Tests a buffer that is a tensor subclass. What reads it before it is written runs once. The reference is
        eager execution, because AOTAutograd reads the new values in the backward pass."""
        class Writes(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = linears(4)
                self.register_buffer("scale", TwoTensor(torch.randn(32, 64), torch.randn(32, 64)))

            def forward(self, x):
                for layer in self.layers:
                    x = torch.sin(torch.tanh(layer(x)) * torch.sin(torch.exp(torch.tanh(self.scale) * 0.5)))
                with torch.no_grad():
                    self.scale.mul_(0.5)
                return x.square().sum()

        found = []
        for chosen in harness.afresh((None, backend("min"))):
            torch.manual_seed(0)
            model = Writes()
            run = model if chosen is None else torch.compile(model, backend=chosen)
            for _ in range(2):
                run(torch.ones(32, 64)).backward()
            found.append([*(p.grad.a for p in model.parameters()), model.scale.a, model.scale.b])
        self.assertTrue(all(map(torch.equal, *found)))

    def test_tensors_without_memory(self):
        """Tests large tensors on the device "meta", which have no memory, beside smaller ones on the CPU."""
        layers, chosen = linears(4), backend("min")

        def loss(x, given):
            for layer in layers:
                x = torch.tanh(layer(x))
            return x.square().sum(), (given @ given).relu()

        for _ in range(2):
            torch.compile(loss, backend=chosen)(torch.randn(32, 64), torch.empty(1000, 1000, device="meta"))[0].backward()
        (graph,) = chosen.report.graphs
        self.assertEqual((graph.device, graph.kept), ("cpu", True))
        self.assertLess(graph.promised, 8 * 32 * 64 * 4)
