"""What could make a result silently different: operators that draw or act without saying so, layouts that the tracer has wrong,
inputs that are written behind torch's back."""

import contextlib
import copy
import ctypes
import threading
import unittest
import warnings

import cairn
import cairn.torch
import harness
import numpy as np
import torch
import torch.nn.functional as F
from cairn.torch._graph import operators
from cairn.torch._inputs import read_again
from torch.testing._internal.two_tensor import TwoTensor

WORK = 300_000
log = []


def backend(budget, **options):
    return cairn.torch.backend(budget, **{"fallback": False, "work_limit": WORK, **options})


# --- Operators of others


@torch.library.custom_op("cairn_tests::noisy", mutates_args=())
def noisy(x: torch.Tensor) -> torch.Tensor:
    return x + torch.randn_like(x)


noisy.register_fake(lambda x: torch.empty_like(x))
noisy.register_autograd(lambda ctx, gradient: gradient)


@torch.library.custom_op("cairn_tests::logged", mutates_args=())
def logged(x: torch.Tensor, number: int) -> torch.Tensor:
    log.append(number)
    return x * 2


logged.register_fake(lambda x, number: torch.empty_like(x))
logged.register_autograd(lambda ctx, gradient: (logged(gradient, ctx.number + 100), None),
                         setup_context=lambda ctx, inputs, output: setattr(ctx, "number", inputs[1]))


def linears(count, width=64):
    return torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(count))


class Branches(torch.nn.Module):
    """Custom operations that draw in four branches, dropout in four others."""

    def __init__(self):
        super().__init__()
        self.layers = linears(8)

    def forward(self, x):
        found = [noisy(torch.tanh(layer(x))) for layer in self.layers[:4]]
        found += [F.dropout(torch.tanh(layer(x)), 0.3) for layer in self.layers[4:]]
        return sum(part.square().mean() * (i + 1) for i, part in enumerate(found))


class Logs(torch.nn.Module):
    """What is made first is logged last, though each order of the logging operations would do as far as data go."""

    def __init__(self):
        super().__init__()
        self.wide = torch.nn.ModuleList(torch.nn.Linear(64, 256) for _ in range(8))
        self.narrow = torch.nn.ModuleList(torch.nn.Linear(256, 16) for _ in range(8))

    def forward(self, x):
        found = [torch.tanh(layer(x)) for layer in self.wide]
        found = [torch.tanh(logged(layer(found[i]), i)) for i, layer in reversed(list(enumerate(self.narrow)))]
        return sum(part.square().mean() * (i + 1) for i, part in enumerate(found))


class Conditional(torch.nn.Module):
    """Dropout inside of torch.cond in four branches, outside of it in four others."""

    def __init__(self):
        super().__init__()
        self.layers = linears(8)

    def forward(self, x):
        found = [F.dropout(torch.tanh(layer(x)), 0.2) for layer in self.layers[4:]]
        for layer in self.layers[:4]:
            found.append(torch.cond(x.sum() > 0, lambda x: F.dropout(x, 0.3), lambda x: torch.sin(F.dropout(x, 0.1)),
                                    (torch.tanh(layer(x)),)))
        return sum(part.square().mean() * (i + 1) for i, part in enumerate(found))


class Same(unittest.TestCase):
    """Loss, gradients, buffers and the generators of a step, bit for bit."""

    def check(self, model, inputs, budgets, reference=None, **options):
        reference = harness.train(model, inputs, reference or harness.unscheduled())
        state, logged_then = torch.get_rng_state(), list(log)
        log.clear()
        for budget in budgets:
            with self.subTest(budget=budget, **options):
                with warnings.catch_warnings():
                    warnings.simplefilter("error", cairn.torch.CairnWarning)
                    step = self.within(model, inputs, budget, **options)
                self.assertEqual(harness.same(reference, step), "")
                self.assertTrue(torch.equal(torch.get_rng_state(), state))
                self.assertEqual(log, logged_then)
                log.clear()

    def within(self, model, inputs, budget, **options):
        try:
            return harness.train(model, inputs, backend(budget, **options))
        except cairn.InfeasibleError as error:
            log.clear()
            return harness.train(model, inputs, backend(error.least_budget, **options))


class WhatDrawsOrActs(Same):
    def test_custom_operations_that_draw_beside_dropout(self):
        torch.manual_seed(0)
        for random in ("keep", "replay"):
            self.check(Branches(), (torch.randn(64, 64),), ["90%", "60%", "min"], random=random)

    def test_custom_operations_that_log(self):
        torch.manual_seed(0)
        log.clear()
        self.check(Logs(), (torch.randn(64, 64),), ["90%", "60%", "min"])

    def test_dropout_inside_of_cond(self):
        torch.manual_seed(0)
        for random in ("keep", "replay"):
            # What happens inside of a branch cannot be measured alone, so that the promise may be broken, with a warning.
            self.check(Conditional(), (torch.randn(64, 64),), ["90%", "60%", "40%", "min"], random=random, measure=False)

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
        """Otherwise one of them that draws would be taken for pure."""
        known = {"aten::quantized_lstm", "aten::quantized_gru", "aten::poisson_nll_loss", "aten::_dirichlet_grad",
                 "aten::_philox_randint"}  # dropout in quantized models is of no effect; a function of its seed
        words = ("rand", "dropout", "bernoulli", "multinomial", "poisson", "noise", "dirichlet", "binomial")
        seen = set()
        for schema in torch._C._jit_get_all_schemas():
            space, name = schema.name.split("::")
            draws = any(a.name == "generator" or "dropout" in a.name for a in schema.arguments) or any(w in name for w in words)
            if space != "aten" or not draws or "backward" in name or schema.name in known:
                continue
            try:
                operator = getattr(getattr(torch.ops.aten, name), schema.overload_name or "default")
            except AttributeError:  # of TorchScript alone
                continue
            seen.add(schema.name)
            with self.subTest(str(operator)):
                self.assertTrue(torch.Tag.nondeterministic_seeded in operator.tags or schema.is_mutable)
        self.assertGreater(len(seen), 20)


# --- Layouts


class ChannelsLast(torch.nn.Module):
    """The tracer has the result of one of its operations contiguous where the kernel keeps the channels last."""

    def __init__(self, kind, dropout):
        super().__init__()
        self.kind, self.dropout = kind, dropout
        self.register_buffer("sign", torch.randn(12))
        self.convs = torch.nn.ModuleList(torch.nn.Conv2d(16, 16, 3, padding=1) for _ in range(4))

    def forward(self, x):
        for conv in self.convs:
            x = F.gelu(conv(x))
            x = F.channel_shuffle(x, 4) if self.kind == "channel_shuffle" else torch.copysign(x, self.sign)
            x = F.dropout(x, 0.3) if self.dropout else x * torch.rand_like(x) + torch.bernoulli(torch.full_like(x, 0.5))
        return x.square().mean()


class LayoutsOfKernels(Same):
    def check_channels_last(self, kind, dropout, **options):
        torch.manual_seed(0)
        model = ChannelsLast(kind, dropout).to(memory_format=torch.channels_last)
        x = torch.randn(4, 16, 12, 12).to(memory_format=torch.channels_last)
        self.check(model, (x,), ["60%", "min"], **options)

    def test_masks_of_dropout_after_a_channel_shuffle(self):
        self.check_channels_last("channel_shuffle", True)
        self.check_channels_last("channel_shuffle", True, random="replay")

    def test_masks_of_dropout_after_copysign(self):
        self.check_channels_last("copysign", True)
        self.check_channels_last("copysign", True, random="replay")

    def test_noise_like_what_is_laid_out_otherwise(self):
        self.check_channels_last("channel_shuffle", False, random="replay")
        self.check_channels_last("copysign", False, random="replay")

    def test_layouts_that_are_not_measured(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cairn.torch.CairnWarning)
            for kind in ("channel_shuffle", "copysign"):
                self.check_channels_last(kind, True, calibrate=False, measure=False)


class Heads(torch.nn.Module):
    """As those of self-supervised models: batch norm without weights, of 16 bits, with statistics of 32."""

    def __init__(self):
        super().__init__()
        self.layers = linears(6)
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm1d(64, affine=False) for _ in range(6))

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for layer, norm in zip(self.layers, self.norms):
                x = torch.relu(norm(layer(x)))
        return x.float().square().mean()


class KernelsAsTheyWereChosen(Same):
    def test_batch_norm_of_16_bits_with_statistics_of_32(self):
        torch.manual_seed(0)
        self.check(Heads(), [torch.randn(128, 64)], ("50%", "min"))

    def test_batch_norm_of_what_the_forward_pass_writes_then(self):
        """Its input, a buffer or the batch, and its weights."""
        class Written(torch.nn.Module):
            def __init__(self, what):
                super().__init__()
                self.what, self.layers = what, linears(5)
                self.norm = torch.nn.BatchNorm1d(64).requires_grad_(False)
                self.register_buffer("queue", torch.randn(128, 64))

            def forward(self, x):
                x = x + 0 if self.what == "weight" else x
                normed = self.norm(self.queue if self.what == "queue" else x)
                y = torch.tanh(normed + x)
                for layer in self.layers:
                    y = torch.tanh(layer(y) * normed)
                with torch.no_grad():
                    {"queue": self.queue, "input": x, "weight": self.norm.weight}[self.what].mul_(0.5).add_(0.1)
                return y.square().mean()

        for what in ("queue", "input", "weight"):
            found = []
            for chosen in ("aot_eager", backend("50%"), backend("min")):
                torch._dynamo.reset()
                torch.manual_seed(0)
                model = Written(what)
                torch.compile(model, backend=chosen)(torch.randn(128, 64)).backward()
                found.append([*(p.grad for p in model.layers.parameters()), *model.buffers()])
            with self.subTest(what):
                self.assertTrue(all(map(torch.equal, found[0], found[1])))
                self.assertTrue(all(map(torch.equal, found[0], found[2])))

    def test_dropout_under_another_default_device(self):
        torch.manual_seed(0)
        layers = linears(6)

        def function(x):
            for layer in layers:
                x = F.dropout(torch.tanh(layer(x)), 0.2)
            return x.square().mean()

        found = []
        for chosen in ("aot_eager", backend("min", fallback=False)):
            torch._dynamo.reset()
            layers.zero_grad()
            torch.manual_seed(1)
            with torch.device("meta"):
                torch.compile(function, backend=chosen)(torch.ones(32, 64, device="cpu")).backward()
            found.append([p.grad for p in layers.parameters()])
        self.assertTrue(all(map(torch.equal, *found)))


class KernelsThatRace(unittest.TestCase):
    """Threads of a CPU that write the same elements, in whatever order they arrive."""

    def recomputed(self):
        class Gathered(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = linears(6)

            def forward(self, x, index):
                for layer in self.layers:
                    x = torch.tanh(layer(x))
                    x = x + torch.zeros(16, 64).index_put((index,), x.sin(), accumulate=True)[index]
                return x.square().mean()

        torch.manual_seed(0)
        torch._dynamo.reset()
        compiled = torch.compile(Gathered(), backend=backend("min", measure=False))
        compiled(torch.rand(64, 64), torch.randint(0, 16, (64,))).backward()
        return {item.operation for item in cairn.torch.last_report().graphs[0].recomputed}

    def test_sums_at_indices_run_once(self):
        self.assertNotEqual(self.recomputed(), set())
        self.assertNotIn("aten.index_put.default", self.recomputed())

    def test_they_run_again_where_torch_makes_them_deterministic(self):
        torch.use_deterministic_algorithms(True)
        self.addCleanup(torch.use_deterministic_algorithms, False)
        self.assertIn("aten.index_put.default", self.recomputed())


class DrawnOfGradients(unittest.TestCase):
    """By the first operations of a backward pass, which are drawn without the gradient they are for."""

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
        for chosen in ("aot_eager", backend("min", random=random)):
            torch._dynamo.reset()
            layers.zero_grad()
            torch.manual_seed(1)
            out = torch.compile(function, backend=chosen)(torch.ones(32, 64))
            torch.rand(7)  # between the two
            out.square().sum().backward()
            found.append([p.grad for p in layers.parameters()] + [torch.get_rng_state()])
        self.assertTrue(all(map(torch.equal, *found)))

    def test_a_dropout(self):
        for random in ("keep", "replay"):
            self.check(lambda gradient: F.dropout(gradient, 0.2, True), random)

    def test_noise(self):
        for random in ("keep", "replay"):
            self.check(lambda gradient: gradient * torch.rand_like(gradient), random)


class WeightsThatAreWritten(unittest.TestCase):
    """By the forward pass, under no_grad, as averages of others are."""

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
        for chosen in ("aot_eager", backend("min"), backend("100%")):
            torch.manual_seed(0)
            torch._dynamo.reset()
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
        """AOTAutograd writes inputs behind the graph, where autograd sees it. One that is no leaf keeps its derivative."""
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
        for chosen in ("aot_eager", backend("min", measure=False), backend("100%", measure=False)):
            torch._dynamo.reset()
            torch.manual_seed(0)
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
        """Where weights are clipped in the forward pass: -0. would become 0., and None zeros."""
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
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", cairn.torch.CairnWarning)
                        now = step(backend(budget, measure=False), uses)
                    self.assertTrue(torch.equal(torch.signbit(now[0]), torch.signbit(weight)))
                    self.assertEqual(now[1] is None, other is None)
                    self.assertEqual(now[2], strides)

    def test_a_view_of_a_parameter_is_written_once(self):
        """Torch refuses to say what made it then, which is no failure of the schedule."""
        for write in (lambda view: view.data.mul_(0.5), lambda view: view.mul_(0.5)):
            torch._dynamo.reset()
            parameter = torch.nn.Parameter(torch.ones(4, 16))
            with torch.no_grad():
                view = parameter[1:3]

            def loss_of(x, view):
                with torch.no_grad():
                    write(view)
                return (x @ parameter.T).tanh().square().sum()

            torch.compile(loss_of, backend=backend("min", fallback=True, measure=False))(torch.randn(8, 16), view)
            self.assertEqual(parameter.detach()[1, 0].item(), 0.5)


# --- Inputs


class Images(torch.nn.Module):
    """What it makes of its input is worth making again."""

    def __init__(self):
        super().__init__()
        self.layers = linears(6)

    def forward(self, x):
        x = (x.float() - 128) / 64
        y = torch.tanh(x)
        for layer in self.layers:
            y = torch.tanh(layer(y)) * x.sin() + x.cos()
        return y.square().mean()


class Returned(Images):
    """Its derivative is computed from a result that is there whatever the plan is."""

    def forward(self, x):
        y = self.layers[0](x.float())
        z = y
        for layer in self.layers[1:]:
            z = layer(torch.tanh(y).sin() + z)
        return z.square().mean(), y


def by_storage(x):
    torch.empty(0).set_(x.untyped_storage())[:9].fill_(3)


UNSEEN = {"numpy": lambda x: x.detach().numpy().fill(3), "data": lambda x: x.data.fill_(3),
          "DLPack": lambda x: torch.from_dlpack(x.detach()).fill_(3), "its storage": by_storage,
          "its address": lambda x: ctypes.memset(x.data_ptr(), 1, 16)}


class InputsThatAreWritten(unittest.TestCase):
    def gradients(self, model, batches, backend, write):
        """Of a step for each batch, whose memory ``write`` changes between forward and backward."""
        torch._dynamo.reset()
        model = copy.deepcopy(model)
        compiled = torch.compile(model, backend=backend) if backend is not None else model
        for batch in batches:
            x, loss = batch, compiled(batch)
            write(x)
            loss.backward()
        return [p.grad for p in model.parameters()]

    def check(self, batches, write, budgets=("50%", "min"), inputs="checked", told=None, model=Images):
        """``batches``: makes a list of them."""
        torch.manual_seed(0)
        model = model()
        expected = self.gradients(model, batches(), None, lambda x: None)
        for budget in budgets:
            with self.subTest(budget=budget), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                given = batches()
                found = self.gradients(model, given, backend(budget, inputs=inputs, measure=False), write)
                same = all(torch.equal(a, b) for a, b in zip(expected, found))
                self.assertEqual(same, inputs != "stable" or told is False)
                words = [str(w.message) for w in caught if w.category is cairn.torch.CairnWarning]
                self.assertEqual(any("shares memory" in text for text in words), bool(told))

    @staticmethod
    def ring():
        return np.random.RandomState(0).randint(0, 255, (64, 64), dtype=np.uint8)

    def test_a_ring_of_numpy(self):
        self.check(lambda: [torch.from_numpy(self.ring())], lambda x: x.numpy().fill(7))
        self.assertEqual(len(cairn.torch.last_report().graphs[0].shared_inputs), 1)
        self.assertIn("share memory with something else", str(cairn.torch.last_report()))

    def test_a_ring_of_numpy_that_is_said_to_be_stable(self):
        """Else the plan would not read it again, and nothing above would show anything."""
        self.check(lambda: [torch.from_numpy(self.ring())], lambda x: x.numpy().fill(7), budgets=["min"], inputs="stable")
        self.assertEqual(cairn.torch.last_report().graphs[0].shared_inputs, [])

    def test_an_array_of_a_tensor(self):
        def batches():
            x = torch.from_numpy(self.ring()).clone()
            x.array = x.numpy()
            return [x]

        self.check(batches, lambda x: x.array.fill(7))

    def test_data_of_a_tensor(self):
        def batches():
            x = torch.from_numpy(self.ring()).clone()
            x.other = x.data
            return [x]

        self.check(batches, lambda x: x.other.fill_(7))

    def test_memory_of_another_library(self):
        def batches():
            x = torch.from_numpy(self.ring()).clone()
            x.array = np.from_dlpack(x)
            return [x]

        def write(x):
            ctypes.memset(x.array.ctypes.data, 7, x.array.nbytes)

        self.check(batches, write)

    def test_memory_of_several_processes(self):
        self.check(lambda: [torch.from_numpy(self.ring()).clone().share_memory_()], lambda x: x.data.fill_(7))

    def test_an_input_that_shares_memory_when_the_plan_is_made_already(self):
        """A batch of one's own comes first, then one of numpy for the same plan."""
        self.check(lambda: [torch.from_numpy(self.ring()).clone(), torch.from_numpy(self.ring())],
                   lambda x: x.numpy().fill(7) if not x.untyped_storage().resizable() else None, budgets=["min"], told=True)

    def test_parts_of_one_tensor_are_as_good_as_their_own(self):
        def batches():
            data = torch.from_numpy(self.ring()).clone()
            return [data[:32], data[32:]]

        self.check(batches, lambda x: None, told=False)
        self.assertEqual(cairn.torch.last_report().graphs[0].shared_inputs, [])
        self.assertNotEqual(cairn.torch.last_report().graphs[0].read_again, [])

    def test_a_result_that_is_written_is_an_error(self):
        """By routes that raise no version, of which none can be seen beforehand."""
        torch.manual_seed(0)
        model, x = Returned(), torch.rand(64, 64)
        for name, write in {"nothing": lambda y: None, "read": lambda y: y.numpy().sum(), **UNSEEN}.items():
            with self.subTest(name):
                torch._dynamo.reset()
                loss, y = torch.compile(model, backend=backend("min", measure=False))(x)
                self.assertTrue(cairn.torch.last_report().graphs[0].results_read_again)
                write(y.detach())
                if name in UNSEEN:
                    with self.assertRaisesRegex(cairn.torch.WrittenError, "a result of the forward pass was written"):
                        loss.backward()
                else:
                    loss.backward()

    def test_an_input_that_is_written_after_the_forward_pass_is_an_error(self):
        def refill(x):
            x.untyped_storage().resize_(0)
            x.untyped_storage().resize_(x.nbytes)

        for name, write in {**UNSEEN, "other memory": lambda x: setattr(x, "data", torch.zeros_like(x)), "refilled": refill,
                            "freed": lambda x: x.untyped_storage().resize_(0)}.items():
            with self.subTest(name):
                torch.manual_seed(0)
                with self.assertRaisesRegex(cairn.torch.WrittenError, "an input was written"):
                    self.gradients(Images(), [torch.rand(64, 64)], backend("min", measure=False), write)

    def test_inputs_that_are_said_to_change(self):
        for write in UNSEEN.values():
            self.check(lambda: [torch.from_numpy(self.ring()).clone().float()], write, inputs="changing", budgets=["min"])
        self.assertEqual(len(cairn.torch.last_report().graphs[0].shared_inputs), 1)

    def test_one_number_of_many(self):
        """In tensors that are dense, permuted, cut out of others and expanded, as none is compared alike."""
        data = torch.arange(2.0**18).view(512, 512)
        for tensor in (data, data.T, data[:, 1:300], data[3:, ::2], data[0].expand(700, 512), data.to(torch.complex64),
                       data.double().view(2, 8, 128, 128).to(memory_format=torch.channels_last), data.to(torch.uint8)[1:],
                       data.bfloat16(), data[:2, :2], torch.tensor(3.0), torch.empty(0), data[5, 3:]):
            before = read_again.Unchanged({"x": tensor})
            self.assertIsNone(before.changed({"x": tensor, "y": data}))
            self.assertIsNone(before.changed({"x": tensor.clone(memory_format=torch.contiguous_format)}))
            if not tensor.numel():
                continue
            last = tuple(n - 1 for n in tensor.shape)
            for position in ((0,) * tensor.dim(), last):
                kept = tensor[position].clone()
                tensor.data[position] = kept + 1 if tensor.dtype != torch.bfloat16 else 7
                self.assertEqual(before.changed({"x": tensor}), "x", (tensor.shape, tensor.stride()))
                tensor.data[position] = kept
                self.assertIsNone(before.changed({"x": tensor}))

    def test_numbers_that_only_move(self):
        data = torch.randn(512, 512)
        before = read_again.Unchanged({"x": data})
        for moved in (data.roll(1, 0), data.roll(1, 1), data.flip(0), data.flip(1), data[torch.randperm(512)]):
            kept = data.clone()
            data.data.copy_(moved)
            self.assertEqual(before.changed({"x": data}), "x")
            data.data.copy_(kept)
        self.assertIsNone(before.changed({"x": data}))

    def test_an_input_of_a_graph_that_ran_in_another_thread(self):
        """Its node of autograd's graph is not taken for that of the graph that reads what it made, and it is still compared."""
        one, two = (torch.randn(16, 16, requires_grad=True) for _ in range(2))
        chosen = backend("min", measure=False)
        make = torch.compile(lambda x: (x.exp() @ one).exp().sin() * x.exp().sin(), backend=chosen)
        views = torch.compile(lambda h: torch.chunk((h @ two).sin(), 2), backend=chosen)
        x, made = torch.randn(8, 16), []

        def elsewhere():
            for _ in range(20_000):  # more nodes than this thread has made
                one * 1
            made.append(make(x))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        first, second = views(made[0])
        x.data.mul_(0.5)
        with self.assertRaisesRegex(cairn.torch.WrittenError, "an input was written"):
            (first.sum() + second.square().sum()).backward()

    def test_modes_that_change_what_operations_give(self):
        """In force about one of the two passes alone, they reach what is computed again, which is told."""
        class LowDispatch(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))

        class LowFunction(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))

        for about_forward, mode in ((True, LowFunction), (False, LowDispatch)):
            torch._dynamo.reset()
            chosen = backend("min", measure=False)
            compiled, x = torch.compile(Images(), backend=chosen), torch.rand(64, 64)
            compiled(x).backward()  # compiled without
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always", cairn.torch.CairnWarning)
                with mode() if about_forward else contextlib.nullcontext():
                    loss = compiled(x)
                with contextlib.nullcontext() if about_forward else mode():
                    loss.backward()
            self.assertRegex(" ".join(str(w.message) for w in told), f"other modes that see operations .*{mode.__name__}")

    def test_a_buffer_that_a_kernel_writes_unseen(self):
        """Batch norm in eager mode raises no version of its statistics."""
        class Shifted(Images):
            def __init__(self):
                super().__init__()
                self.norm = torch.nn.BatchNorm1d(64)

            def forward(self, x):
                return super().forward(x + self.norm.running_mean)

        torch.manual_seed(0)
        torch._dynamo.reset()
        model, x = Shifted(), torch.rand(64, 64)
        loss = torch.compile(model, backend=backend("min", measure=False))(x)
        version = model.norm.running_mean._version
        model.norm(x)
        self.assertEqual(model.norm.running_mean._version, version)
        with self.assertRaisesRegex(cairn.torch.WrittenError, "a buffer was written"):
            loss.backward()

    def test_a_tensor_of_a_module_over_numpy(self):
        model = Images()
        ring = self.ring().astype(np.float32)
        model.seen = torch.from_numpy(ring)
        model.forward = lambda x: Images.forward(model, x + model.seen)
        torch._dynamo.reset()
        loss = torch.compile(model, backend=backend("min", measure=False))(torch.rand(64, 64))
        ring.fill(3)
        with self.assertRaisesRegex(cairn.torch.WrittenError, "a buffer was written"):
            loss.backward()

    def test_an_input_of_several_tensors(self):
        """Each is an input of its own."""
        def two():
            torch.manual_seed(0)
            return TwoTensor(torch.rand(64, 64), torch.rand(64, 64))

        self.gradients(Images(), [two()], backend("min", inputs="changing", measure=False), lambda x: None)
        self.assertEqual(len(cairn.torch.last_report().graphs[0].shared_inputs), 2)
        with self.assertRaisesRegex(cairn.torch.WrittenError, "an input was written"):
            self.gradients(Images(), [two()], backend("min", measure=False), lambda x: x.b.data.fill_(3))

    def test_memory_that_is_shared_later_is_told_once_for_all_sizes(self):
        torch.manual_seed(0)
        model = Images()
        compiled = torch.compile(model, backend=backend("min", measure=False), dynamic=True)
        compiled(torch.rand(48, 64)).backward()
        told = []
        for size in (30, 35, 40):
            model.zero_grad()
            with warnings.catch_warnings(record=True) as now:
                warnings.simplefilter("always", cairn.torch.CairnWarning)
                compiled(torch.from_numpy(np.ones((size, 64), np.float32))).backward()
            told += [str(w.message) for w in now if "shares memory" in str(w.message)]
        self.assertEqual(len(told), 1)

    def test_what_hooks_keep_elsewhere_is_the_same(self):
        """Also where it is laid out in another way."""
        torch.manual_seed(0)
        model, x = Images(), torch.rand(64, 64).T
        expected = self.gradients(model, [x], None, lambda x: None)

        def step(pack):
            torch._dynamo.reset()
            model.zero_grad()
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
                torch.compile(model, backend=backend("min", measure=False))(x).backward()

        step(lambda saved: saved.clone(memory_format=torch.contiguous_format))
        self.assertTrue(all(torch.equal(p.grad, e) for p, e in zip(model.parameters(), expected)))
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "hooks on what is saved .* give other values back"):
            step(lambda saved: saved.to(torch.bfloat16).float())
        with self.assertRaisesRegex(cairn.torch.WrittenError, "an input was written"):  # where it is
            step(lambda saved: saved.data.add_(1) if saved.data_ptr() == x.data_ptr() else saved)

    def test_an_input_at_an_odd_address(self):
        """Kernels of vectors round by where their arguments begin: copies, by hooks or of what is shared, begin there too."""
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
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cairn.torch.CairnWarning)
                found = [step(chosen, hooks, shared) for chosen in ("aot_eager", backend("min", measure=False))]
            self.assertTrue(all(map(torch.equal, *found)), (hooks, shared))

    def test_noise_like_what_hooks_give_back_laid_out_in_another_way(self):
        """As save_on_cpu(pin_memory=True) does; also of what is expanded, and of steps without any noise."""
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
        torch.manual_seed(0)
        torch._dynamo.reset()
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "hooks on what is saved"):
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                loss = torch.compile(Images(), backend=backend("min", measure=False))(torch.rand(64, 64))
            loss.backward()

    def test_a_backward_pass_under_autocast(self):
        """What is computed again is as the forward pass was, which was not under it; the rest is as AOTAutograd's, also of a
        function that has its own backward pass."""
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

        torch.manual_seed(0)
        model, x = Model(), torch.rand(64, 64)
        found = []
        for chosen in ("aot_eager", backend("min", measure=False)):
            torch._dynamo.reset()
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

        for turned in (torch.backends.mkldnn.flags(enabled=False), default_dtype(), flushed_denormals()):
            torch.manual_seed(0)
            torch._dynamo.reset()
            loss = torch.compile(Images(), backend=backend("min", measure=False))(torch.rand(64, 64))
            with self.assertWarnsRegex(cairn.torch.CairnWarning, "switches of kernels"), turned:
                loss.backward()

    def test_a_ring_of_numpy_beside_what_may_fail(self):
        """A solver of linear equations checks what it was given; the token of that stands before the other inputs."""
        class Solved(Images):
            def forward(self, x):
                weight = self.layers[0].weight.detach()
                return super().forward(x) + torch.linalg.solve(weight + 9 * torch.eye(64), weight).sum()

        self.check(lambda: [torch.from_numpy(self.ring())], lambda x: x.numpy().fill(7), model=Solved)
        self.assertEqual(len(cairn.torch.last_report().graphs[0].shared_inputs), 1)

    def test_a_ring_of_numpy_as_a_subclass(self):
        class Frames(torch.Tensor):
            pass

        ring = self.ring()
        self.check(lambda: [torch.from_numpy(ring.copy()).as_subclass(Frames)],
                   lambda x: x.as_subclass(torch.Tensor).numpy().fill(7), budgets=["min"])

    def test_gradients_beside_earlier_ones_are_told_where_a_result_is_read_again(self):
        torch.manual_seed(0)
        torch._dynamo.reset()
        compiled, x = torch.compile(Returned(), backend=backend("min", measure=False)), torch.rand(64, 64)
        compiled(x)[0].backward()
        self.assertTrue(cairn.torch.last_report().graphs[0].results_read_again)
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "accumulate=True"):
            compiled(x)[0].backward()

    def test_what_a_part_before_a_graph_break_has_saved_is_its_own(self):
        class Parts(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = linears(6)

            def forward(self, x):
                for layer in self.layers[:3]:
                    x = torch.tanh(layer(x))
                torch._dynamo.graph_break()
                y = x.sin()
                for layer in self.layers[3:]:
                    y = torch.tanh(layer(y)) * x
                return y.square().mean()

        torch.manual_seed(0)
        torch._dynamo.reset()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", cairn.torch.CairnWarning)
            compiled = torch.compile(Parts(), backend=backend("min", measure=False))
            for _ in range(2):
                compiled(torch.randn(64, 64)).backward()
        self.assertEqual([g.shared_inputs for g in cairn.torch.last_report().graphs], [[], []])
        self.assertFalse(any("shares memory" in str(w.message) for w in caught))

    def test_a_write_that_torch_knows_of_is_an_error(self):
        torch.manual_seed(0)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            self.gradients(Images(), [torch.from_numpy(self.ring()).clone()], backend("min"), lambda x: x.fill_(7))

    def test_a_parameter_that_a_function_keeps_in_its_context_and_torch_writes(self):
        """Without save_for_backward nobody refuses the write, in eager mode, and the gradients are of what was computed."""
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
        if torch.__version__ >= "2.10":  # 2.9 refuses it everywhere
            self.assertTrue(all(map(torch.equal, gradients("aot_eager"), gradients(backend("100%", measure=False)))))

    def test_a_buffer_that_a_functions_own_backward_pass_reads_and_writes(self):
        """As histories of the largest gradient are: it has been written by one when the next reads it."""
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
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", cairn.torch.CairnWarning)
                    now = found(backend(budget, measure=False), last, apart)
                self.assertTrue(all(map(torch.equal, now, expected)), (last, apart, budget))
