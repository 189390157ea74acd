"""Tests that results are not silently different if kernels choose other layouts than the tracer assumes, if they round
differently, or if they have races."""

import contextlib
import itertools
import unittest

import cairn
import cairn.torch
import harness
import torch
import torch.nn.functional as F
from same_step import Same, backend, linears


class ChannelsLast(torch.nn.Module):
    """A model with an operation whose result is contiguous according to the tracer, although the kernel returns it
    channels-last."""

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


class Ramps(torch.nn.Module):
    """A model whose tensors without a given type get the default dtype."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(6))
        self.register_buffer("low", torch.tensor(0.1))

    def forward(self, x):
        for layer in self.layers:
            between = torch.linspace(self.low, self.low + 1, 64).to(x.dtype)  # reads tensors that have a type
            x = (layer(x) * between + torch.linspace(0, 1, 64).to(x.dtype) + torch.arange(64) / 64).tanh()
        return x.square().mean()


class Types(unittest.TestCase):
    def test_a_default_dtype_that_differs_in_the_backward_pass(self):
        def gradients(chosen):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model = Ramps()
            loss = torch.compile(model, backend=chosen)(torch.randn(256, 64))
            torch.set_default_dtype(torch.float64)
            try:
                loss.backward()
            finally:
                torch.set_default_dtype(torch.float32)
            return [p.grad for p in model.parameters()]

        with harness.cairn_warnings("ignore"):
            found = gradients(backend("min"))
        self.assertGreater(len(cairn.torch.last_report().graphs[0].recomputed), 0)
        self.assertTrue(all(map(torch.equal, found, gradients("aot_eager"))))


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

    def test_storages_that_are_larger_than_traced(self):
        """Tests jacfwd, whose operation _new_zeros_with_same_feature_meta makes a larger storage than the tracer assumes.
        A later operation copies all of it, so the promise must include the real size."""
        class Jacobian(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(32, 32)

            def forward(self, x):
                jacobian = torch.func.jacfwd(lambda a: a.tanh().sum((0, 1)))(x[:2, :2, :4])
                return self.linear(jacobian.sum() + x).square().mean()

        self.check(Jacobian(), (torch.randn(8, 12, 32),), ["100%", "min"])

    def test_layouts_that_are_not_measured(self):
        with harness.cairn_warnings("ignore"):
            for kind in ("channel_shuffle", "copysign"):
                self.check_channels_last(kind, True, calibrate=False, measure=False)


class Heads(torch.nn.Module):
    """A model with 16-bit batch norms without weights but with 32-bit statistics, as in heads of self-supervised
    models."""

    def __init__(self):
        super().__init__()
        self.layers = linears(6)
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm1d(64, affine=False) for _ in range(6))

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for layer, norm in zip(self.layers, self.norms):
                x = torch.relu(norm(layer(x)))
        return x.float().square().mean()


class LayoutsThatChange(harness.Fresh):
    """Tests layouts that kernels choose otherwise after the graph was planned. Random numbers are drawn in the order of
    memory."""

    def trained(self, chosen, change):
        torch._dynamo.reset()
        torch.manual_seed(0)
        layers = torch.nn.ModuleList(torch.nn.Conv2d(8, 8, 3, padding=1) for _ in range(3))

        def loss(x):
            for layer in layers:
                x = torch.tanh(F.dropout(layer(x), 0.3)) + torch.rand_like(layer(x))
            return x.square().mean()

        compiled, losses = torch.compile(loss, backend=chosen), []
        for step in range(2):
            with change(layers) if step else contextlib.nullcontext(), harness.cairn_warnings("ignore"):
                losses.append(compiled(torch.randn(4, 8, 9, 9)))
                losses[-1].backward()
        return [*losses, *(p.grad for p in layers.parameters())]

    @staticmethod
    def settings(layers):
        layers.to(memory_format=torch.channels_last)
        return torch.backends.mkldnn.flags(enabled=False)

    @staticmethod
    def weights(layers):
        layers.to(memory_format=torch.channels_last)
        return contextlib.nullcontext()

    def test_masks_of_dropout(self):
        for change in (self.settings, self.weights):
            with self.subTest(change.__name__):
                self.assertTrue(all(map(torch.equal, self.trained("aot_eager", change), self.trained(backend("min"), change))))

    def test_numbers_that_are_drawn_again(self):
        def turned(layers):
            return torch.backends.mkldnn.flags(enabled=False)

        with self.assertRaisesRegex(cairn.InputError, "random='replay' would draw other numbers"):
            self.trained(backend("min", random="replay"), turned)


    def test_numbers_of_an_evaluation_that_are_drawn_again(self):
        layers = torch.nn.ModuleList(torch.nn.Conv3d(8, 8, 3, padding=1) for _ in range(3))

        def drawn(x):
            first = x.sin()
            for layer in layers:
                x = torch.tanh(F.dropout(layer(x), 0.3)) + first
            return x

        compiled = torch.compile(drawn, backend=backend("min", random="replay"))
        x = torch.randn(2, 8, 5, 6, 6).to(memory_format=torch.channels_last_3d)
        with torch.no_grad():
            compiled(x)
            with torch.backends.mkldnn.flags(enabled=False), self.assertRaisesRegex(
                    cairn.InputError, "random='replay' would draw other numbers"):
                compiled(x)

    def test_numbers_that_the_backward_pass_draws(self):
        def gradients(chosen):
            torch._dynamo.reset()
            torch.manual_seed(1)
            x = torch.randn(2, 8, 5, 6, 6).to(memory_format=torch.channels_last_3d)
            weight, p = torch.randn(8, 8, 3, 3, 3), torch.randn_like(x).requires_grad_()
            compiled = torch.compile(lambda x: (Masked.apply(Masked.apply((x * p).sin().exp(), weight), weight) * x.exp()).sin().sum(),
                                     backend=chosen)
            found = []
            for number in range(3):
                p.grad = None
                loss = compiled(x)
                with torch.backends.mkldnn.flags(enabled=number != 1), harness.cairn_warnings("ignore"):
                    loss.backward()
                found += [loss.detach(), p.grad.contiguous()]
            return [*found, torch.get_rng_state()]

        self.assertTrue(all(map(torch.equal, gradients(backend("min", random="replay")), gradients("aot_eager"))))


class Masked(torch.autograd.Function):
    """A sine whose backward pass draws a mask for the result of a convolution."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x.sin()

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return F.dropout(F.conv3d(gradient, weight, padding=1), 0.4, True) * x.cos(), None


class KernelsAsTheyWereChosen(Same):
    def test_batch_norm_of_16_bits_with_statistics_of_32(self):
        self.check(Heads(), [torch.randn(128, 64)], ("50%", "min"))

    def test_batch_norm_with_statistics_that_are_no_buffers(self):
        """Tests batch norms whose running statistics are made by the forward pass, and perhaps read by it. Such a batch
        norm runs again with its statistics, as nothing has written them since."""
        class Local(torch.nn.Module):
            def __init__(self, kind, are_read):
                super().__init__()
                self.kind, self.are_read, self.layers = kind, are_read, linears(4)

            def forward(self, x):
                for layer in self.layers:
                    mean, variance = torch.zeros(64), torch.ones(64)
                    y = torch.exp(torch.tanh(layer(x))).to(self.kind)
                    y = F.batch_norm(y, mean, variance, training=True)
                    x = torch.sin(y.float()) + (torch.cos(mean) * variance if self.are_read else 0)
                return x.square().mean()

        for kind, are_read in itertools.product((torch.float32, torch.bfloat16), (False, True)):
            with self.subTest(kind, are_read=are_read):
                self.check(Local(kind, are_read), [torch.randn(128, 64)], ["60%", "min"])

    def test_batch_norm_of_what_the_forward_pass_writes_then(self):
        """Tests a batch norm whose input (a buffer or the batch) or weights are written by the forward pass after they
        were used. Recomputation must not read the new values."""
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
        layers = linears(6)

        def function(x):
            for layer in layers:
                x = F.dropout(torch.tanh(layer(x)), 0.2)
            return x.square().mean()

        found = []
        for chosen in harness.afresh(("aot_eager", backend("min", fallback=False))):
            layers.zero_grad()
            torch.manual_seed(1)
            with torch.device("meta"):
                torch.compile(function, backend=chosen)(torch.ones(32, 64, device="cpu")).backward()
            found.append([p.grad for p in layers.parameters()])
        self.assertTrue(all(map(torch.equal, *found)))


class KernelsThatRace(unittest.TestCase):
    """Tests that kernels in which several threads of a CPU write the same elements in any order are not run again,
    unless torch makes them deterministic."""

    def recomputed(self):
        class Gathered(harness.Layers):
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
