"""Tests plans that contain an optimizer. An error must be raised if a step would give parameters other values than they
have without Cairn."""

import unittest
import unittest.mock

import cairn
import cairn.torch
import harness
import torch
from cairn.torch import _private
from small_net import WORK, Net, adam, net, plain
from torch.optim.optimizer import register_optimizer_step_pre_hook


class Refused(unittest.TestCase):
    def planned(self, body, make=lambda: net(adam)):
        """Makes a training step, ``body``, whose plan contains the optimizer. Returns (model, the step, inputs)."""
        torch._dynamo.reset()
        model, optimizer, loss_of, inputs = make()
        step = cairn.torch.step(lambda *i: body(model, optimizer, loss_of, i), "min", optimizer=optimizer, work_limit=WORK)
        return model, step, inputs

    def refused(self, words, body=plain, make=lambda: net(adam)):
        model, step, inputs = self.planned(body, make)
        with self.assertRaisesRegex(cairn.InputError, words):
            step(*inputs)
        self.assertTrue(all(p.grad is None or p.grad.untyped_storage().nbytes() >= p.numel() * 4 for p in model.parameters()))
        return model

    def body(self, between):
        def body(model, optimizer, loss_of, inputs):
            loss = loss_of(*inputs)
            loss.backward()
            between(model, optimizer)
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach()

        return body

    def test_compiled_autograd(self):
        with torch._dynamo.config.patch(compiled_autograd=True):
            self.refused("compiled autograd replaces the backward passes")

    def test_clipping(self):
        for clip in (lambda m, _: torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0),
                     lambda m, _: torch.nn.utils.clip_grad_value_(m.parameters(), 1.0)):
            model = self.refused("was read or written", self.body(clip))
            self.assertTrue(all(p.isfinite().all() for p in model.parameters()))

    def test_gradients_that_are_replaced(self):
        def halve(model, optimizer):
            model.key.weight.grad = model.key.weight.grad * 0.5

        def replace(model, optimizer):
            model.key.weight.grad = torch.ones_like(model.key.weight)

        self.refused("was read or written", self.body(halve))
        self.refused("was changed between", self.body(replace))

    def test_gradients_that_are_looked_at(self):
        """Tests code that reads gradients before the optimizer's step. They are NaN by then, so everything computed
        from them would be silently wrong. An error must be raised."""
        looks = {
            "norm": lambda model: torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm(),
            "total norm": lambda model: torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None]),
            "finite": lambda model: all(p.grad.isfinite().all() for p in model.parameters()),
            "data": lambda model: [p.grad.data.clone() for p in model.parameters()],
            "detach": lambda model: [p.grad.detach() for p in model.parameters()],
            "item": lambda model: model.query.bias.grad[0].item(),
            "numpy": lambda model: model.query.bias.grad.numpy(),
            "foreach": lambda model: torch._foreach_norm([p.grad for p in model.parameters() if p.grad is not None]),
            "list": lambda model: model.query.bias.grad.tolist(),
            "printed": lambda model: repr(model.query.bias.grad),
        }
        for name, look in looks.items():
            with self.subTest(name):
                self.refused("was read or written", self.body(lambda model, optimizer, look=look: look(model)))

    def test_what_kind_of_gradient_there_is_may_be_asked(self):
        seen = []

        def ask(model, optimizer):
            seen.extend((p.grad.shape == p.shape, p.grad.dtype == p.dtype, p.grad.device == p.device, not p.grad.is_sparse,
                         p.grad.numel() == p.numel()) for p in model.parameters() if p.grad is not None)

        _, step, inputs = self.planned(self.body(ask))
        step(*inputs)
        self.assertTrue(seen and all(map(all, seen)))

    def test_a_backward_pass_of_something_else(self):
        def decay(model, optimizer):
            with torch.enable_grad():
                (model.key.weight * 2).sum().backward()

        self.refused("second backward pass|second gradient|was changed", self.body(torch.compiler.disable(decay)))

    def test_a_state_that_is_looked_at(self):
        body = self.body(lambda model, optimizer: [optimizer.state[p] for p in model.parameters()])
        _, step, inputs = self.planned(body, lambda: net(lambda model: torch.optim.SGD(model.parameters(), lr=1e-2)))
        self.assertTrue(step(*inputs).isfinite())

    def test_a_state_that_is_written_in_between(self):
        def forget(model, optimizer):
            optimizer.state[model.key.weight]["exp_avg"].zero_()

        def replace(model, optimizer):
            state = optimizer.state[model.key.weight]
            state["exp_avg"] = state["exp_avg"].clone()

        for change in (forget, replace):
            self.refused("its state were changed", self.body(change))

    def test_clipping_in_hooks(self):
        """Tests clipping in hooks of one optimizer, in hooks of all optimizers, and in a hook that is added within the
        step. Each must raise an error."""
        def clip(optimizer, *_):
            torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 1.0)

        def make():
            model, optimizer, loss_of, inputs = net(adam)
            optimizer.register_step_pre_hook(clip)
            return model, optimizer, loss_of, inputs

        self.refused("was read or written", make=make)
        hook = register_optimizer_step_pre_hook(clip)
        try:
            self.refused("was read or written")
        finally:
            hook.remove()
        self.refused("hook within the step", self.body(lambda _, optimizer: optimizer.register_step_pre_hook(clip)))

    def test_parameters_that_are_written_in_between(self):
        def decay(model, optimizer):
            with torch.no_grad():
                model.key.weight.mul_(0.9)

        self.refused("the value of a parameter", self.body(decay))

    def test_a_scaler(self):
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)

        def body(model, optimizer, loss_of, inputs):
            loss = loss_of(*inputs)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss.detach()

        self.refused("was read or written|was changed|not called in this step", body)

    def test_micro_batches(self):
        def body(model, optimizer, loss_of, inputs):
            loss = loss_of(*inputs)
            loss.backward()
            return loss.detach()

        self.refused("was not called in this step", body)

    def test_a_learning_rate_that_changes_in_between(self):
        def change(model, optimizer):
            optimizer.param_groups[0]["lr"] *= 0.5

        self.refused("settings", self.body(change))

        def warm_up(model, optimizer):
            optimizer.param_groups[0]["lr"].fill_(0.5)

        self.refused("settings", self.body(warm_up), lambda: net(
            lambda model: torch.optim.AdamW(model.parameters(), lr=torch.tensor(0.1))))

    def test_a_state_that_is_loaded_in_between(self):
        def load(model, optimizer):
            optimizer.load_state_dict(optimizer.state_dict())

        self.refused("settings", self.body(load))

    def test_an_error_in_between_is_told(self):
        def skip(model, optimizer):
            raise KeyError("this batch is skipped")

        _, step, inputs = self.planned(self.body(skip))
        with self.assertRaises(KeyError), self.assertWarnsRegex(cairn.torch.CairnWarning, "KeyError when 6 parameters"):
            step(*inputs)

    def test_parts_that_share_a_parameter(self):
        def body(model, optimizer, loss_of, inputs):
            hidden = torch.compiler.disable(model)(inputs[0])
            loss = model(hidden).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        with harness.cairn_warnings("ignore"):
            self.refused("another part of the step still reads it", body)

    def test_a_step_under_autocast_of_an_optimizer_of_others(self):
        class Own(torch.optim.SGD):
            pass

        def body(model, optimizer, loss_of, inputs):
            with torch.autocast("cpu", torch.bfloat16):
                loss = loss_of(*inputs)
                loss.backward()
                optimizer.step()
            return loss.detach()

        self.refused("autocast", body, lambda: net(lambda model: Own(model.parameters(), lr=0.1)))
        # The only optimizer of all versions of torch that multiplies matrices, which autocast rounds.
        self.refused("autocast", body, lambda: net(lambda model: torch.optim.Adafactor(model.parameters(), lr=0.1)))

    def test_after_a_refusal_correct_steps_go_on(self):
        clip = []

        def between(model, optimizer):
            if clip:
                torch.nn.utils.clip_grad_norm_([model.scale], 1.0)

        _, step, inputs = self.planned(self.body(between))
        step(*inputs)
        clip.append(1)
        with self.assertRaisesRegex(cairn.InputError, "was read or written"):
            step(*inputs)
        clip.clear()
        self.assertTrue(step(*inputs).isfinite())

    def test_closures(self):
        def body(model, optimizer, loss_of, inputs):
            def closure():
                loss = loss_of(*inputs)
                loss.backward()
                return loss

            return optimizer.step(closure).detach()

        self.refused("closure", body)
        with self.assertRaisesRegex(cairn.InputError, "LBFGS cannot update one parameter at a time"):
            cairn.torch.step(plain, optimizer=torch.optim.LBFGS(Net().parameters()))

    def test_two_backward_passes(self):
        def body(model, optimizer, loss_of, inputs):
            loss_of(*inputs).backward()
            loss = loss_of(inputs[0] * 2, inputs[1])
            loss.backward()
            optimizer.step()
            return loss.detach()

        self.refused("second gradient", body)

    def test_a_second_step_of_the_optimizer(self):
        def body(model, optimizer, loss_of, inputs):
            loss_of(*inputs).backward()
            optimizer.step()
            optimizer.step()

        self.refused("was called twice in a step", body)

    def test_gradients_of_zeros(self):
        """Tests zero_grad() that leaves gradients of zeros. With such a gradient, momentum and weight decay change a
        parameter that a step does not use, so a plan must raise an error if a parameter is unused."""
        def trained(unused, planned, set_to_none=False):
            torch._dynamo.reset()
            torch.manual_seed(0)
            layers = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(3))
            optimizer = torch.optim.SGD(layers.parameters(), 0.1, momentum=0.9, weight_decay=0.1)

            def body(x, every):
                optimizer.zero_grad(set_to_none=set_to_none)
                for layer in layers if every else layers[:2]:
                    x = layer(x).tanh()
                loss = x.square().mean()
                loss.backward()
                optimizer.step()
                return loss.detach()

            step = cairn.torch.step(body, "min", optimizer=optimizer, work_limit=WORK) if planned else body
            for i in range(4):
                step(torch.full((64, 32), 0.1 * i + 0.1), not unused or i % 2 == 0)
            self.assertNotIn("zero_grad", vars(optimizer))
            return list(layers.parameters())

        for unused, set_to_none in ((False, False), (True, True)):
            with harness.cairn_warnings("ignore"):
                expected, found = (trained(unused, planned, set_to_none) for planned in (False, True))
            self.assertTrue(all(map(torch.equal, expected, found)))
        with harness.cairn_warnings("ignore"), self.assertRaisesRegex(cairn.InputError, "leaves gradients of zeros"):
            trained(True, True)

    def test_other_functions_that_zero_gradients(self):
        """Tests that other forms of zero_grad() still work: an optimizer of another package may take no argument, and
        the caller may have replaced the function."""
        class Own(torch.optim.SGD):
            def zero_grad(self):
                super().zero_grad()

        called = []

        def body(model, optimizer, loss_of, inputs):
            optimizer.zero_grad()
            return plain(model, optimizer, loss_of, inputs)

        def make():
            model, optimizer, loss_of, inputs = net(lambda model: Own(model.parameters(), 0.1))
            before = optimizer.zero_grad
            optimizer.zero_grad = lambda: called.append(None) or before()
            made.append((optimizer, optimizer.zero_grad))
            return model, optimizer, loss_of, inputs

        made = []
        _, step, inputs = self.planned(body, make)
        with harness.cairn_warnings("ignore"):
            step(*inputs)
        self.assertGreaterEqual(len(called), 1)
        (optimizer, own), = made
        self.assertIs(optimizer.zero_grad, own)

    def test_another_optimizer_of_the_same_parameters(self):
        other = []

        def body(model, optimizer, loss_of, inputs):
            other[:] = other or [torch.optim.SGD(model.parameters(), lr=0.1)]
            loss = loss_of(*inputs)
            loss.backward()
            other[0].step()
            optimizer.step()
            return loss.detach()

        self.refused("SGD has parameters of an optimizer that is in the plan", body)

    def test_a_mode_around_the_optimizer_alone(self):
        class Rounds(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))

        def body(model, optimizer, loss_of, inputs):
            loss_of(*inputs).backward()
            step_within(Rounds(), optimizer)

        @torch.compiler.disable
        def step_within(mode, optimizer):
            with mode:
                optimizer.step()

        self.refused("other modes that see operations", body)

    def test_other_memory_for_a_parameter(self):
        def swap(model, optimizer):
            model.key.weight.data = model.key.weight.data.clone()

        self.refused("the value of a parameter", self.body(swap))

    def test_a_second_optimizer_of_a_parameter_that_is_not_in_the_plan(self):
        others = []

        def body(model, optimizer, loss_of, inputs):
            loss = plain(model, optimizer, loss_of, inputs)
            if not others:
                others.append(torch.optim.SGD([model.key.weight], lr=0.1))
            others[0].step()
            return loss

        self.refused("SGD has parameters of an optimizer that is in the plan", body)

    def test_hooks_after_the_step_that_read_gradients(self):
        def make(hook):
            model, optimizer, loss_of, inputs = net(adam)
            optimizer.register_step_post_hook(lambda *_: hook(model))
            return model, optimizer, loss_of, inputs

        model = self.refused("was read or written", make=lambda: make(lambda m: [p.grad.norm() for p in m.parameters()]))
        self.assertTrue(all(p.grad is None or p.grad.isfinite().all() for p in model.parameters()))
        seen = []
        model, step, inputs = self.planned(plain, lambda: make(lambda m: seen.append(m.key.weight.grad.shape)))
        step(*inputs)
        self.assertEqual(seen, [(32, 32)])
        self.assertTrue(all(p.grad is None or p.grad.isfinite().all() for p in model.parameters()))

    def test_a_bound_on_the_norm_of_all_gradients(self):
        class Guarded(torch.optim.SGD):
            """Skips steps whose gradients are large together."""

            def step(self, closure=None):
                gradients = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
                if sum(float(g.square().sum()) for g in gradients) < self.bound ** 2:
                    super().step()

        for bound in (1e-2, 0.05, 0.3, 1.0, 7.0, 100.0):
            optimizer = Guarded(Net().parameters(), lr=0.1)
            optimizer.bound = bound
            with self.subTest(bound), self.assertRaisesRegex(cairn.InputError, "does not update each parameter for itself"):
                cairn.torch.step(plain, optimizer=optimizer)

    def test_parameters_of_one_shape_that_are_updated_together(self):
        class Stacked(torch.optim.SGD):
            def step(self, closure=None):
                same = {}
                for p in (p for group in self.param_groups for p in group["params"] if p.grad is not None):
                    same.setdefault(p.shape, []).append(p.grad)
                for gradients in same.values():
                    mean = torch.stack(gradients).mean(0)
                    for g in gradients:
                        g.sub_(0.5 * mean)
                super().step()

        model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Linear(16, 16), torch.nn.Linear(16, 16), torch.nn.Linear(16, 8))
        weights = [layer.weight for layer in model]
        with self.assertRaisesRegex(cairn.InputError, "does not update each parameter for itself"):
            cairn.torch.step(plain, optimizer=Stacked(weights, lr=0.1))

    def test_parameters_that_train_later(self):
        """Tests an optimizer that couples its parameters. All but one of them are frozen when the step is made, or it
        gets them afterwards."""
        class CommonNorm(torch.optim.SGD):
            def step(self, closure=None):
                torch.nn.utils.clip_grad_norm_([p for g in self.param_groups for p in g["params"]], 1.0)
                super().step(closure)

        model = Net()
        model.requires_grad_(False)
        model.scale.requires_grad_(True)
        step = cairn.torch.step(lambda: 0, optimizer=CommonNorm(model.parameters(), lr=0.1))
        model.requires_grad_(True)
        with self.assertRaisesRegex(cairn.InputError, "CommonNorm does not update each parameter for itself"):
            step()

        def one(model):
            return CommonNorm([model.scale], lr=0.1)

        with harness.cairn_warnings("ignore"):
            model, optimizer, loss_of, inputs = net(one)
            step = cairn.torch.step(lambda *i: plain(model, optimizer, loss_of, i), "min", optimizer=optimizer, work_limit=WORK)
            step(*inputs)
            optimizer.add_param_group({"params": [model.query.weight, model.key.weight]})
            with self.assertRaisesRegex(cairn.InputError, "CommonNorm does not update each parameter for itself"):
                step(*inputs)

    def test_an_optimizer_that_steps_through_another(self):
        """Tests that the parameters do not change when an optimizer with another one inside of it is refused."""
        class Around(torch.optim.SGD):
            def step(self, closure=None):
                self.inner.step()

        model = Net()
        for p in model.parameters():
            p.grad = torch.ones_like(p)
        optimizer = Around(model.parameters(), lr=0.1)
        optimizer.inner = torch.optim.SGD(model.parameters(), lr=0.1)
        before = [p.detach().clone() for p in model.parameters()]
        try:
            with harness.cairn_warnings("ignore"):
                cairn.torch.step(plain, optimizer=optimizer)
        except cairn.InputError:
            pass
        self.assertTrue(all(map(torch.equal, before, model.parameters())))

    def test_coupled_optimizers(self):
        class CommonNorm(torch.optim.SGD):
            most = 1.0

            def step(self, closure=None):
                parameters = [p for g in self.param_groups for p in g["params"] if p.grad is not None]
                if parameters:
                    torch.nn.utils.clip_grads_with_norm_(parameters, self.most, torch.nn.utils.get_total_norm(
                        [p.grad for p in parameters]))
                super().step(closure)

        class LargeNorm(CommonNorm):
            most = 100.0

        class OfWhatItSaw(torch.optim.SGD):
            def step(self, closure=None):
                super().step(closure)
                group = self.param_groups[0]
                group["lr"] *= 0.5 ** sum(p.grad is not None for p in group["params"])

        class Finite(torch.optim.SGD):
            def step(self, closure=None):
                if all(p.grad.isfinite().all() for g in self.param_groups for p in g["params"] if p.grad is not None):
                    super().step(closure)

        class OneCounter(torch.optim.SGD):
            def step(self, closure=None):
                self.state["all"]["count"] = self.state["all"].get("count", 0) + 1
                super().step(closure)

        class Matrices(torch.optim.SGD):
            """An optimizer that divides the gradients of matrices by their common norm."""

            def step(self, closure=None):
                matrices = [p.grad for g in self.param_groups for p in g["params"] if p.grad is not None and p.ndim > 1]
                if matrices:
                    norm = torch.nn.utils.get_total_norm(matrices)
                    for gradient in matrices:
                        gradient.div_(norm)
                super().step(closure)

        class FirstGroup(torch.optim.SGD):
            def step(self, closure=None):
                first = self.param_groups[0]
                first["count"] = first.get("count", 0) + 1
                for group in self.param_groups:
                    group["lr"] = 0.1 / first["count"]
                super().step(closure)

        class TensorCounter(torch.optim.SGD):
            def step(self, closure=None):
                self.param_groups[0].setdefault("count", torch.zeros(())).add_(1)
                super().step(closure)

        class EachThird(torch.optim.SGD):
            count = 0

            def step(self, closure=None):
                super().step(closure)
                self.count += 1
                if self.count % 3 == 0:
                    with torch.no_grad():
                        for group in self.param_groups:
                            for p in group["params"]:
                                p.mul_(0.9)

        class Noisy(torch.optim.SGD):
            """An optimizer that draws random numbers from its own generator, in the order of its parameters."""

            def step(self, closure=None):
                super().step(closure)
                with torch.no_grad():
                    for p in (p for group in self.param_groups for p in group["params"] if p.grad is not None):
                        p.add_(torch.randn(p.shape, generator=self.drawn), alpha=0.01)

        def groups(model):
            return [{"params": [p]} for p in model.parameters()]

        for kind in (CommonNorm, LargeNorm, OfWhatItSaw, Finite, Matrices, OneCounter, TensorCounter, EachThird, Noisy):
            for parameters in (Net().parameters(), groups(Net())):
                optimizer = kind(parameters, lr=0.1)
                if kind is TensorCounter:
                    optimizer.param_groups[0]["count"] = torch.zeros(())
                if kind is Noisy:
                    optimizer.drawn = torch.Generator().manual_seed(0)
                with self.assertRaisesRegex(cairn.InputError, f"{kind.__name__} does not update each parameter for itself"):
                    cairn.torch.step(plain, optimizer=optimizer)
                # Cairn has tried the optimizer on a copy, so the original must be unchanged.
                if kind is TensorCounter:
                    self.assertEqual(optimizer.param_groups[0]["count"], 0)
        with self.assertRaisesRegex(cairn.InputError, "FirstGroup does not update each parameter for itself"):
            cairn.torch.step(plain, optimizer=FirstGroup(groups(Net()), lr=0.1))

    def test_optimizers_that_take_the_type_of_the_first_parameter_for_all(self):
        def optimizer(*kinds, **options):
            return torch.optim.Adafactor([torch.nn.Parameter(torch.ones(8, 8, dtype=kind)) for kind in kinds], **options)

        with self.assertRaisesRegex(cairn.InputError, "Adafactor does not update each parameter for itself"):
            cairn.torch.step(plain, optimizer=optimizer(torch.float32, torch.float32, torch.bfloat16))
        cairn.torch.step(plain, optimizer=optimizer(torch.float32, torch.bfloat16, eps=(1e-7, 1e-3)))
        cairn.torch.step(plain, optimizer=optimizer(torch.bfloat16, torch.bfloat16))

    def test_other_optimizers_than_those_of_torch_are_told(self):
        """Tests the warning about optimizers that are not torch's own. Cairn tries only a few steps of such an
        optimizer, which does not prove that a plan may contain it."""
        class Own(torch.optim.SGD):
            def step(self, closure=None):
                super().step(closure)

        for kind, expected in ((torch.optim.SGD, []), (torch.optim.AdamW, []), (Own, ["Own is not one of torch.optim"])):
            with harness.told() as said:
                cairn.torch.step(plain, optimizer=kind(Net().parameters(), lr=0.1))
            self.assertEqual(len(said), len(expected), said)
            for text, part in zip(said, expected):
                self.assertIn(part, text)

    def test_other_defaults_of_torch(self):
        optimizer, sizes = adam(Net()), torch.get_default_dtype()
        try:
            torch.set_default_dtype(torch.float64)
            # In torch 2.9, Adam itself cannot step under another default device.
            with torch.device("cpu" if torch.__version__.startswith("2.9.") else "meta"):
                cairn.torch.step(plain, optimizer=optimizer)
        finally:
            torch.set_default_dtype(sizes)

    def test_what_is_no_whole_optimizer(self):
        class Around(torch.optim.Optimizer):
            def __init__(self, inner):
                self.inner, self.param_groups, self.state = inner, inner.param_groups, inner.state

        with self.assertRaisesRegex(cairn.InputError, "a torch.optim.Optimizer"):
            cairn.torch.step(plain, optimizer=Around(adam(Net())))

    def test_several_ranks(self):
        with unittest.mock.patch.object(_private, "collective_store", return_value=object()):
            self.refused("several ranks")

    def test_arguments(self):
        optimizer = adam(Net())
        for options, words in (({"optimizer": 3}, "torch.optim.Optimizer"), ({"optimizer": [3]}, "torch.optim.Optimizer"),
                               ({"optimizer": optimizer, "accumulate": True}, "accumulated")):
            with self.assertRaisesRegex(cairn.InputError, words):
                cairn.torch.step(plain, **options)

    def test_a_check_draws_no_random_numbers_and_changes_nothing(self):
        torch.manual_seed(0)
        model = Net()
        optimizer = adam(model)
        before = [p.detach().clone() for p in model.parameters()], torch.get_rng_state()
        cairn.torch.step(plain, optimizer=optimizer)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(before[0], model.parameters())))
        self.assertTrue(torch.equal(before[1], torch.get_rng_state()))
        self.assertEqual(len(optimizer.state), 0)
