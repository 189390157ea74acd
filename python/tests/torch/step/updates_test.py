"""Optimizers in the plan: the parameters that a step leaves without Cairn, gradients within the budget, and what is refused."""

import copy
import os
import random
import tempfile
import unittest
import unittest.mock
import warnings

import cairn
import cairn.torch
import harness
import random_models
import torch
from cairn.torch import _private
from cairn.torch._graph.trace import Operation, Trace
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

WORK = 200_000
MODELS = int(os.environ.get("CAIRN_TORCH_MODELS", "24")) // 3


class Net(torch.nn.Module):
    """Two branches that are multiplied, a weight that is used twice, two parameters with one gradient, and one parameter that
    nothing reads."""

    def __init__(self, width=32):
        super().__init__()
        self.query, self.key = torch.nn.Linear(width, width), torch.nn.Linear(width, width, bias=False)
        self.twice = torch.nn.Linear(width, width)
        self.scale = torch.nn.Parameter(torch.ones(()))
        self.left, self.right = torch.nn.Parameter(torch.ones(64, width)), torch.nn.Parameter(torch.ones(64, width))
        self.unused = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        x = torch.relu(self.twice(x) + (self.left + self.right))
        return self.twice(self.query(x).tanh() * self.key(x).sigmoid() * self.scale)


def net(optimizer):
    model = Net()
    x, y = torch.randn(64, 32), torch.randn(64, 32)

    def loss_of(x, y):
        return (model(x) - y).square().mean()

    return model, optimizer(model), loss_of, (x, y)


def plain(model, optimizer, loss_of, inputs):
    optimizer.zero_grad()
    loss = loss_of(*inputs)
    loss.backward()
    optimizer.step()
    return loss.detach()


def adam(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-2)


def momentum(model):
    return torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)


class Updated(unittest.TestCase):
    def trained(self, make, budget, body=plain, steps=4, planned=True, between=lambda optimizer, number: None):
        """(losses, the model's state, what the optimizer keeps, report), after a few steps."""
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, optimizer, loss_of, inputs = make()

        def run(*inputs):
            return body(model, optimizer, loss_of, inputs)

        if budget is not None:
            run = cairn.torch.step(run, budget, optimizer=optimizer if planned else None, fallback=False, work_limit=WORK)
        torch.manual_seed(3)
        losses = []
        for number in range(steps):
            between(optimizer, number)
            losses.append(run(*inputs))
        kept = [v for _, state in sorted(optimizer.state_dict()["state"].items()) for _, v in sorted(state.items())]
        return losses, list(model.state_dict().values()), kept, cairn.torch.last_report()

    def check(self, make, budgets=("min",), **options):
        """The same as without Cairn, bit for bit, and as much memory as promised. Returns the last report."""
        reference = self.trained(make, None, **options)
        for budget in budgets:
            with self.subTest(budget=budget), warnings.catch_warnings():
                warnings.simplefilter("error", cairn.torch.CairnWarning)
                *found, report = self.trained(make, budget, **options)
                for what, one, other in zip(("losses", "state", "optimizer"), reference, found):
                    self.assertEqual(len(one), len(other), what)
                    self.assertTrue(all(torch.equal(torch.as_tensor(a), torch.as_tensor(b)) for a, b in zip(one, other)), what)
                self.assertGreater(report.graphs[0].updated, 0)
                measured = [g for g in report.graphs if g.measured is not None]
                self.assertGreater(len(measured), 0)
                for graph in measured:
                    self.assertLessEqual(graph.measured, graph.promised)
                    self.assertGreaterEqual(graph.measured, 0.97 * graph.promised)
        return report

    def test_optimizers_of_torch(self):
        kinds = [adam, momentum, lambda m: torch.optim.RMSprop(m.parameters(), centered=True),
                 lambda m: torch.optim.Adagrad(m.parameters()), lambda m: torch.optim.Adam(m.parameters(), amsgrad=True),
                 lambda m: torch.optim.NAdam(m.parameters()), lambda m: torch.optim.Adafactor(m.parameters()),
                 lambda m: torch.optim.AdamW(m.parameters(), foreach=True),
                 lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.5, nesterov=True, maximize=True, weight_decay=0.1)]
        for kind in kinds:
            with self.subTest(type(kind(Net())).__name__):
                report = self.check(lambda: net(kind))
                self.assertEqual(report.graphs[0].updated, 6)

    def test_a_transformer(self):
        def make():
            model, inputs = harness.gpt()
            return model, adam(model), model, inputs

        without = self.trained(make, "min", planned=False)[3].graphs[0]
        graph = self.check(make, ("70%", "min")).graphs[0]
        self.assertEqual(graph.resident["gradient"], 0)
        self.assertEqual(without.updated, 0)
        self.assertLess(graph.promised, without.promised + without.resident["gradient"] // 2)
        self.assertIn("as soon as its gradient is there", str(graph))

    def test_batch_norm(self):
        def make():
            model, inputs = harness.cnn()
            return model, momentum(model), model, inputs

        self.check(make)

    def test_the_whole_step_is_what_is_promised(self):
        report = self.trained(lambda: net(adam), "min")[3]
        self.assertEqual(report.graphs[0].resident["gradient"], 2 * 64 * 32 * 4)
        self.assertLessEqual(report.whole_step, report.promised + 2 * 64 * 32 * 4)
        state = sum(2 * p.numel() * 4 + 4 for p in Net().parameters() if p.numel() != 3)
        self.assertEqual(report.optimizer_state, state)

    def test_groups_schedules_and_two_optimizers(self):
        def make():
            model, _, loss_of, inputs = net(momentum)
            weights = [p for p in model.parameters() if p.ndim > 1]
            optimizers = [torch.optim.AdamW([{"params": weights[:2]}, {"params": weights[2:], "weight_decay": 0.0}], lr=1e-2),
                          torch.optim.SGD([p for p in model.parameters() if p.ndim < 2], lr=1e-2, momentum=0.9)]
            schedules = [torch.optim.lr_scheduler.StepLR(o, 1, 0.7) for o in optimizers]
            optimizers[0].register_step_pre_hook(lambda *_: called.append(1))
            return model, Several(optimizers, schedules), loss_of, inputs

        class Several(list):
            def __init__(self, optimizers, schedules):
                super().__init__(optimizers)
                self.schedules = schedules

            def state_dict(self):
                return {"state": {(i, k): v for i, o in enumerate(self) for k, v in o.state_dict()["state"].items()}}

        def body(model, optimizers, loss_of, inputs):
            model.zero_grad()
            loss = loss_of(*inputs)
            loss.backward()
            for optimizer, schedule in zip(optimizers, optimizers.schedules):
                optimizer.step()
                schedule.step()
            return loss.detach()

        called = []
        self.check(make, body=body)
        self.assertEqual(len(called), 2 * 4)  # once a step, without Cairn and with

    def test_what_is_left_to_the_optimizer(self):
        """Parameters with hooks, and those with a gradient already."""
        def halve(parameter):
            parameter.grad.mul_(0.5)

        def make():
            model, optimizer, loss_of, inputs = net(adam)
            model.query.weight.register_post_accumulate_grad_hook(halve)
            model.key.weight.register_hook(lambda g: g * 2)
            return model, optimizer, loss_of, inputs

        self.assertEqual(self.check(make).graphs[0].updated, 4)

        def left(optimizer, number):
            if number == 2:
                optimizer.param_groups[0]["params"][0].grad = torch.ones(())  # the scale's

        def body(model, optimizer, loss_of, inputs):
            loss = loss_of(*inputs)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cairn.torch.CairnWarning)  # the gradients accumulate
            one = self.trained(lambda: net(adam), None, body, between=left)
            other = self.trained(lambda: net(adam), "min", body, between=left)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(one[1], other[1])))

    def test_the_learning_rate_may_change_between_steps(self):
        def change(optimizer, number):
            optimizer.param_groups[0]["lr"] = 0.1 / (number + 1)

        self.check(lambda: net(adam), between=change)

    def test_gradients_that_are_laid_out_otherwise(self):
        """Kernels that read memory in a line, and norms that add in another order, see what they do without a plan."""
        class Laid(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.turned = torch.nn.Parameter(torch.randn(4, 24, 16))
                self.summed = torch.nn.Parameter(torch.randn(16, 24))
                self.conv = torch.nn.Conv2d(80, 160, 2, 2)

            def forward(self, x, image):
                return (torch.bmm(x, self.turned.transpose(1, 2)).square().mean() + self.summed.sum() +
                        self.conv(image.permute(0, 3, 1, 2)).square().mean())

        for kind in (lambda m: torch.optim.AdamW(m.parameters(), fused=True), lambda m: torch.optim.Adafactor(m.parameters()),
                     lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9, fused=True)):
            def make():
                model = Laid()
                return model, kind(model), model, (torch.randn(4, 8, 16), torch.randn(2, 8, 8, 80))

            with self.subTest(type(kind(Laid())).__name__):
                self.check(make)

    def test_gradients_that_nobody_accumulates(self):
        def body(model, optimizer, loss_of, inputs):
            loss = loss_of(*inputs)
            loss.backward(inputs=[model.key.weight])
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach()

        one, other = self.trained(lambda: net(momentum), None, body), self.trained(lambda: net(momentum), "min", body)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(one[1], other[1])))

    def test_one_graph_of_two_models(self):
        """torch.compile may run one graph for both: each backward pass updates what its own forward pass was given."""
        def make():
            models = torch.nn.ModuleList([torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)])
            return models, momentum(models), None, (torch.randn(4, 8),)

        def body(models, optimizer, _, inputs):
            losses = []
            for model in models:
                torch._dynamo.graph_break()
                losses.append(model(*inputs).square().mean())
            torch._dynamo.graph_break()
            losses[0].backward()
            optimizer.step()
            optimizer.zero_grad()
            return losses[1].detach()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cairn.torch.CairnWarning)
            one, other = self.trained(make, None, body), self.trained(make, "min", body)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(one[1], other[1])))

    def test_hooks_of_all_optimizers_are_called_once_a_step(self):
        called = []
        hooks = [register_optimizer_step_pre_hook(lambda *_: called.append("before")),
                 register_optimizer_step_post_hook(lambda *_: called.append("after"))]
        try:
            self.trained(lambda: net(adam), "min")
        finally:
            for hook in hooks:
                hook.remove()
        self.assertEqual(called, 4 * ["before", "after"])

    def test_a_state_that_is_loaded_before_the_backward_pass(self):
        def body(model, optimizer, loss_of, inputs):
            state = optimizer.state_dict()
            state["param_groups"][0]["lr"] *= 0.5
            optimizer.load_state_dict(state)
            return plain(model, optimizer, loss_of, inputs)

        self.check(lambda: net(adam), body=body)

    def test_a_hook_that_comes_later_is_told(self):
        def add(optimizer, number):
            if number == 2:
                optimizer.param_groups[0]["params"][4].register_post_accumulate_grad_hook(lambda p: None)

        with self.assertWarnsRegex(cairn.torch.CairnWarning, "was left to the optimizer's step"):
            found = self.trained(lambda: net(adam), "min", between=add)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(self.trained(lambda: net(adam), None)[1], found[1])))

    def test_an_optimizer_that_has_state_already(self):
        def make():
            model, optimizer, loss_of, inputs = net(adam)
            plain(model, optimizer, loss_of, inputs)
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
            return model, optimizer, loss_of, inputs

        self.check(make)

    def test_a_learning_rate_that_is_a_tensor(self):
        """What is kept to see whether it changes takes no memory; its updates may take other bytes than those by a number."""
        class Words(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.norm = torch.nn.Embedding(50, 32), torch.nn.LayerNorm(32)
                self.up, self.down = torch.nn.Linear(32, 96), torch.nn.Linear(96, 32)

            def forward(self, words):
                x = self.words(words)
                return (x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))) @ self.words.weight.T

        def train(rate):
            torch._dynamo.reset()
            model, words = Words(), torch.randint(0, 50, (8, 32))
            optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)

            def step(words):
                for one in [optimizer]:  # outside of the graph, as the loss is then
                    one.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten())
                loss.backward()
                optimizer.step()
                return loss.detach()

            planned = cairn.torch.step(step, "min", optimizer=optimizer, fallback=False, work_limit=1000)
            for _ in range(4):
                planned(words)
            return planned.report

        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, CAIRN_CACHE=folder):
            for rate in (0.01, torch.tensor(0.01)):
                report = train(rate)
                self.assertTrue(report.kept, report)
                self.assertFalse(report.graphs[0].measured_before)

    def test_an_optimizer_that_counts(self):
        class Counting(torch.optim.SGD):
            count = 0

            def step(self, closure=None):
                self.count += 1
                self.param_groups[0]["lr"] *= 0.5 ** self.count
                super().step(closure)

        self.check(lambda: net(lambda model: Counting(model.parameters(), lr=0.5)))

    def test_random_modules(self):
        tried = 0
        for seed in range(10 * MODELS):
            model = random_models.RandomModel(seed)
            if tried == MODELS or any("Break" in type(p).__name__ for p in model.parts) or not list(model.parameters()):
                continue

            def make():
                model = random_models.RandomModel(seed)
                return (model, (adam, momentum)[seed % 2](model), lambda *i: random_models.loss_of(model(*i)),
                        model.inputs())

            with self.subTest(seed=seed), warnings.catch_warnings():
                warnings.simplefilter("ignore", cairn.torch.CairnWarning)
                try:
                    reference = self.trained(make, "100%", planned=False, steps=2)
                except RuntimeError:  # what torch itself cannot
                    continue
                found = self.trained(make, "min", steps=2)
                if len(found[3].graphs) > 1:
                    continue
                self.assertEqual([torch.equal(a, b) for a, b in zip(reference[1], found[1])], [True] * len(found[1]))
                tried += 1
        self.assertEqual(tried, MODELS)


class Refused(unittest.TestCase):
    def refused(self, words, body=plain, make=lambda: net(adam)):
        torch._dynamo.reset()
        model, optimizer, loss_of, inputs = make()
        step = cairn.torch.step(lambda *i: body(model, optimizer, loss_of, i), "min", optimizer=optimizer, work_limit=WORK)
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
        """As none of them is a number, whatever is made of them would be silently wrong."""
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
        torch._dynamo.reset()
        model, optimizer, loss_of, inputs = net(adam)
        seen = []

        def ask(model, optimizer):
            seen.extend((p.grad.shape == p.shape, p.grad.dtype == p.dtype, p.grad.device == p.device, not p.grad.is_sparse,
                         p.grad.numel() == p.numel()) for p in model.parameters() if p.grad is not None)

        body = self.body(ask)
        step = cairn.torch.step(lambda *i: body(model, optimizer, loss_of, i), "min", optimizer=optimizer, work_limit=WORK)
        step(*inputs)
        self.assertTrue(seen and all(map(all, seen)))

    def test_a_backward_pass_of_something_else(self):
        def decay(model, optimizer):
            with torch.enable_grad():
                (model.key.weight * 2).sum().backward()

        self.refused("second backward pass|second gradient|was changed", self.body(torch.compiler.disable(decay)))

    def test_a_state_that_is_looked_at(self):
        torch._dynamo.reset()
        model, optimizer, loss_of, inputs = net(lambda model: torch.optim.SGD(model.parameters(), lr=1e-2))
        body = self.body(lambda model, optimizer: [optimizer.state[p] for p in model.parameters()])
        step = cairn.torch.step(lambda *i: body(model, optimizer, loss_of, i), "min", optimizer=optimizer, work_limit=WORK)
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
        """Of the optimizer, of all optimizers, and one that comes within the step."""
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

        torch._dynamo.reset()
        model, optimizer, loss_of, inputs = net(adam)
        step = cairn.torch.step(lambda *i: self.body(skip)(model, optimizer, loss_of, i), "min", optimizer=optimizer,
                                work_limit=WORK)
        with self.assertRaises(KeyError), self.assertWarnsRegex(cairn.torch.CairnWarning, "KeyError when 6 parameters"):
            step(*inputs)

    def test_parts_that_share_a_parameter(self):
        def body(model, optimizer, loss_of, inputs):
            hidden = model(inputs[0])
            torch._dynamo.graph_break()
            loss = model(hidden).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cairn.torch.CairnWarning)
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

    def test_after_a_refusal_correct_steps_go_on(self):
        clip = []

        def between(model, optimizer):
            if clip:
                torch.nn.utils.clip_grad_norm_([model.scale], 1.0)

        torch._dynamo.reset()
        model, optimizer, loss_of, inputs = net(adam)
        step = cairn.torch.step(lambda *i: self.body(between)(model, optimizer, loss_of, i), "min", optimizer=optimizer,
                                work_limit=WORK)
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
            """Draws from a generator of its own, in the order of its parameters."""

            def step(self, closure=None):
                super().step(closure)
                with torch.no_grad():
                    for p in (p for group in self.param_groups for p in group["params"] if p.grad is not None):
                        p.add_(torch.randn(p.shape, generator=self.drawn), alpha=0.01)

        def groups(model):
            return [{"params": [p]} for p in model.parameters()]

        for kind in (CommonNorm, LargeNorm, OfWhatItSaw, Finite, OneCounter, TensorCounter, EachThird, Noisy):
            for parameters in (Net().parameters(), groups(Net())):
                optimizer = kind(parameters, lr=0.1)
                if kind is TensorCounter:
                    optimizer.param_groups[0]["count"] = torch.zeros(())
                if kind is Noisy:
                    optimizer.drawn = torch.Generator().manual_seed(0)
                with self.assertRaisesRegex(cairn.InputError, f"{kind.__name__} does not update each parameter for itself"):
                    cairn.torch.step(plain, optimizer=optimizer)
                if kind is TensorCounter:  # it is as it was
                    self.assertEqual(optimizer.param_groups[0]["count"], 0)
        with self.assertRaisesRegex(cairn.InputError, "FirstGroup does not update each parameter for itself"):
            cairn.torch.step(plain, optimizer=FirstGroup(groups(Net()), lr=0.1))

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
                               ({"optimizer": optimizer, "compiler": "inductor"}, "eager"),
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


class InTime(unittest.TestCase):
    def test_no_update_before_the_last_that_reads_its_parameter(self):
        """On random steps, from the definition."""
        drawn = random.Random(0)
        for _ in range(2000):
            trace = Trace("random")
            readers = [Operation(i, None) for i in range(drawn.randint(1, 6))]
            updates = [Operation(len(readers) + i, None) for i in range(drawn.randint(1, 3))]
            trace.readers = {u: drawn.sample(readers, drawn.randint(0, len(readers))) for u in updates}
            steps = [r.index for r in readers] + [drawn.choice(readers).index for _ in range(drawn.randint(0, 8))]
            for update in updates:
                steps.insert(drawn.randint(0, len(steps)), update.index)
            found = trace.in_time(steps)
            self.assertEqual(sorted(found), sorted(steps))
            kept = {r.index for r in readers}
            self.assertEqual([s for s in found if s in kept], [s for s in steps if s in kept])
            for update, read in trace.readers.items():
                last = max((i for i, s in enumerate(found) if s in {r.index for r in read}), default=-1)
                self.assertGreater(found.index(update.index), last)
                before = steps[:steps.index(update.index)]
                if all(steps.count(r.index) == before.count(r.index) for r in read):  # it was in time
                    self.assertEqual([s for s in found[:found.index(update.index)] if s in kept], [s for s in before if s in kept])
