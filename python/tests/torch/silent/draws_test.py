"""Tests that results are not silently different if operators draw random numbers or have side effects without declaring
it, even inside of other operators or in backward passes."""

import unittest

import cairn.torch
import harness
import numpy
import torch
import torch.nn.functional as F
from cairn.torch._graph import operators
from same_step import Same, backend, linears, log, logged, noisy


class Branches(harness.Layers):
    """A model in which four branches have custom operations that draw random numbers, and four others have dropout."""

    def forward(self, x):
        found = [noisy(torch.tanh(layer(x))) for layer in self.layers[:4]]
        found += [F.dropout(torch.tanh(layer(x)), 0.3) for layer in self.layers[4:]]
        return sum(part.square().mean() * (i + 1) for i, part in enumerate(found))


class Logs(torch.nn.Module):
    """A model that computes values in one order and logs them in the reverse order. The logging operations do not read
    each other's results, so only their side effects fix their order."""

    def __init__(self):
        super().__init__()
        self.wide = torch.nn.ModuleList(torch.nn.Linear(64, 256) for _ in range(8))
        self.narrow = torch.nn.ModuleList(torch.nn.Linear(256, 16) for _ in range(8))

    def forward(self, x):
        found = [torch.tanh(layer(x)) for layer in self.wide]
        found = [torch.tanh(logged(layer(found[i]), i)) for i, layer in reversed(list(enumerate(self.narrow)))]
        return sum(part.square().mean() * (i + 1) for i, part in enumerate(found))


class Conditional(harness.Layers):
    """A model with dropout inside of torch.cond in four branches, and outside of torch.cond in four others."""

    def forward(self, x):
        found = [F.dropout(torch.tanh(layer(x)), 0.2) for layer in self.layers[4:]]
        for layer in self.layers[:4]:
            found.append(torch.cond(x.sum() > 0, lambda x: F.dropout(x, 0.3), lambda x: torch.sin(F.dropout(x, 0.1)),
                                    (torch.tanh(layer(x)),)))
        return sum(part.square().mean() * (i + 1) for i, part in enumerate(found))


class WhatDrawsOrActs(Same):
    def test_custom_operations_that_draw_beside_dropout(self):
        for random in ("keep", "replay"):
            self.check(Branches(8), (torch.randn(64, 64),), ["90%", "60%", "min"], random=random)

    def test_custom_operations_that_log(self):
        log.clear()
        self.check(Logs(), (torch.randn(64, 64),), ["90%", "60%", "min"])

    def test_dropout_inside_of_cond(self):
        for random in ("keep", "replay"):
            # The branches of torch.cond cannot be measured separately, so the peak can exceed the promised one, with a
            # warning.
            budgets = ["90%", "60%", "40%", "min"]
            self.check(Conditional(8), (torch.randn(64, 64),), budgets, random=random, measure=False)

    def test_seeds_of_numpy(self):
        """Tests a step that seeds numpy in a graph without a backward pass. Torch captures a seed of its own generator,
        which AOTAutograd leaves out."""
        layer = torch.nn.Linear(64, 64)

        def step(x):
            numpy.random.seed(5)
            x = x + 0
            torch._dynamo.graph_break()
            loss = torch.nn.functional.dropout(layer(x).relu(), 0.5, True).square().mean()
            loss.backward()
            return loss.detach()

        def losses(compiled):
            torch._dynamo.reset()
            torch.manual_seed(0)
            return [float(compiled(torch.ones(16, 64))) for _ in range(4)]

        with harness.cairn_warnings("ignore"):
            self.assertEqual(losses(cairn.torch.step(step, "100%", work_limit=20_000)),
                             losses(torch.compile(step, backend="aot_eager")))

    def test_what_is_not_known_to_be_pure_has_a_place(self):
        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        for target, expected in ((torch.ops.aten.sin.default, False), (torch.ops.aten.add_.Tensor, True),
                                 (torch.ops.aten.rand_like.default, True), (torch.ops.cairn_tests.noisy.default, True),
                                 (torch.ops.higher_order.cond, True), (torch.ops.aten._print.default, True),
                                 (torch.ops.aten._assert_async.default, True), (torch.sym_max, False), (print, True),
                                 (torch.mul, True), (torch.ops._c10d_functional.all_reduce.default, True)):
            with self.subTest(target):
                self.assertEqual(operators.has_a_place(graph.call_function(target, (x,))), expected)

    def test_aten_says_of_all_its_operators_whether_they_draw(self):
        """Tests that the tags or schema of each operator of aten that draws random numbers say so. Otherwise, it could
        be taken for a pure function."""
        known = {"aten::quantized_lstm", "aten::quantized_gru", "aten::poisson_nll_loss", "aten::_dirichlet_grad",
                 # All operators of this set draw nothing, although their names or arguments look like it: dropout in
                 # quantized models has no effect, and _philox_randint is a function of its seed.
                 "aten::_philox_randint"}
        words = ("rand", "dropout", "bernoulli", "multinomial", "poisson", "noise", "dirichlet", "binomial")
        seen = set()
        for schema in torch._C._jit_get_all_schemas():
            space, name = schema.name.split("::")
            draws = any(a.name == "generator" or "dropout" in a.name for a in schema.arguments) or any(w in name for w in words)
            if space != "aten" or not draws or "backward" in name or schema.name in known:
                continue
            try:
                operator = getattr(getattr(torch.ops.aten, name), schema.overload_name or "default")
            except AttributeError:  # the operator exists only for TorchScript
                continue
            seen.add(schema.name)
            with self.subTest(str(operator)):
                self.assertTrue(torch.Tag.nondeterministic_seeded in operator.tags or schema.is_mutable)
        self.assertGreater(len(seen), 20)


class DrawnOfGradients(unittest.TestCase):
    """Tests backward passes that begin with an operation that draws random numbers but reads no gradients. Gradients
    and random states must be the same under a budget as under aot_eager."""

    def check(self, draw, random):
        class Noisy(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, gradient):
                return draw(gradient)

        layers = linears(4)

        def function(x):
            for layer in layers:
                x = F.dropout(torch.tanh(layer(x)), 0.2)
            return Noisy.apply(x)

        found = []
        for chosen in harness.afresh(("aot_eager", backend("min", random=random))):
            layers.zero_grad()
            torch.manual_seed(1)
            out = torch.compile(function, backend=chosen)(torch.ones(32, 64))
            torch.rand(7)  # other code draws numbers between the two passes
            out.square().sum().backward()
            found.append([p.grad for p in layers.parameters()] + [torch.get_rng_state()])
        self.assertTrue(all(map(torch.equal, *found)))

    def test_a_dropout(self):
        for random in ("keep", "replay"):
            self.check(lambda gradient: F.dropout(gradient, 0.2, True), random)

    def test_noise(self):
        for random in ("keep", "replay"):
            self.check(lambda gradient: gradient * torch.rand_like(gradient), random)
