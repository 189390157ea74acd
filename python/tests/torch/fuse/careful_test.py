"""Tests models for which careless fusion would give wrong results without an error. Each of these models was found
by a review of the code."""

import unittest.mock

import cairn.torch
import harness
import numpy
import torch
import torch.nn.functional as F
from cairn.torch import _private
from cairn.torch._fuse import fuse, kernels, recompute


def backend(budget="100%", **options):
    return cairn.torch.backend(budget, compiler="inductor", fallback=False, work_limit=5_000, **options)


class Careful(harness.Fresh):
    def setUp(self):
        super().setUp()
        patch = unittest.mock.patch.object(fuse, "_LEAST_ELEMENTS", 1)
        patch.start()
        self.addCleanup(patch.stop)

    def gradients(self, function, inputs, weights, chosen):
        """Compiles the function with the backend ``chosen``. Returns the loss and the gradients of the weights."""
        torch._dynamo.reset()
        torch.manual_seed(3)
        for weight in weights:
            weight.grad = None
        loss = torch.compile(function, backend=chosen)(*inputs)
        loss.backward()
        return [loss.detach(), *(weight.grad for weight in weights)]

    def check(self, function, inputs, weights, tolerance=1e-4, budgets=("100%", "min")):
        expected = self.gradients(function, inputs, weights, "aot_eager")
        for budget in budgets:
            for value, other in zip(self.gradients(function, inputs, weights, backend(budget)), expected):
                self.assertLess((value.double() - other.double()).abs().max(), tolerance * (1 + other.double().abs().max()))

    def test_statistics_of_norms_of_16_bits(self):
        """Tests norms of 16-bit values. On a CPU, torch's kernels return the statistics of norms with 32 bits, although
        the tracer assumes 16. Fused code must read the statistics as 32-bit values."""
        x = torch.randn(64, 64).bfloat16()
        w = [torch.randn(64, 64).bfloat16().requires_grad_() for _ in range(2)]
        scale, shift = torch.ones(64, requires_grad=True), torch.zeros(64, requires_grad=True)

        def layer_norm(x):
            return (F.layer_norm(torch.tanh(x @ w[0]), (64,), scale, shift) @ w[1]).float().square().mean()

        def group_norm(x):
            return (F.group_norm(torch.tanh(x @ w[0]), 4, scale, shift) @ w[1]).float().square().mean()

        for function in (layer_norm, group_norm):
            with self.subTest(function.__name__):
                self.check(function, (x,), [*w, scale, shift], tolerance=3e-2)

    def test_batch_norm_of_16_bits(self):
        conv = [torch.nn.Conv2d(8, 8, 3).bfloat16() for _ in range(2)]
        statistics = torch.zeros(8), torch.ones(8)
        scale, shift = torch.ones(8, requires_grad=True), torch.zeros(8, requires_grad=True)

        def model(x):
            return conv[1](F.batch_norm(conv[0](x), *statistics, scale, shift, True)).float().square().mean()

        self.check(model, (torch.randn(2, 8, 16, 16).bfloat16(),), [conv[0].weight, scale], tolerance=3e-2)

    def test_views_of_inputs_that_others_write(self):
        """Tests inputs whose memory code outside of the graph writes. Operations that read a view of such an input must
        not be computed again."""
        for view in (torch.t, lambda x: x[:, :32], lambda x: x.chunk(2, 1)[0], lambda x: x.t().unsqueeze(0).select(0, 0)):
            for inputs in ("checked", "changing"):
                found = []
                for compiler in ("eager", "inductor"):
                    torch._dynamo.reset()
                    array = numpy.linspace(0, 1, 4096, dtype=numpy.float32).reshape(64, 64)
                    x, w = torch.from_numpy(array), torch.ones(64, 64, requires_grad=True)

                    def model(x):
                        v = view(x)
                        return (torch.sin(v) * w[:v.shape[0], :v.shape[1]]).square().sum()

                    loss = torch.compile(model, backend=cairn.torch.backend("100%", compiler=compiler, inputs=inputs, fallback=False))(x)
                    array[:] = 3
                    loss.backward()
                    found.append(w.grad)
                self.assertTrue(torch.allclose(*found))

    def test_a_view_of_a_buffer_that_the_model_writes(self):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("state", torch.linspace(0, 1, 32))
                self.weight = torch.nn.Parameter(torch.ones(64, 32))

            def forward(self):
                h = torch.sin(self.state.view(1, -1).expand(64, 32) * 1.5) * self.weight
                self.state.mul_(0.3)
                return h.square().sum()

        expected = Model()
        expected().backward()
        for inputs in ("checked", "changing", "stable"):
            torch._dynamo.reset()
            model = Model()
            torch.compile(model, backend=backend(inputs=inputs))().backward()
            self.assertTrue(torch.allclose(model.weight.grad, expected.weight.grad))
            self.assertTrue(torch.equal(model.state, expected.state))

    def test_the_order_of_random_operations(self):
        """Tests that fusion keeps the order of random operations. ones_like() needs only the shape of its argument, so
        it must not make fusion move its argument, a random tensor, to an earlier place."""
        weight = torch.randn(16, 16, requires_grad=True)

        def model(x):
            first, second = torch.rand_like(x), torch.rand_like(x)
            return (((x * 2 + torch.ones_like(second)) @ weight) * first).sum() + (second @ weight).sum()

        self.check(model, (torch.ones(16, 16),), [weight])

    def test_a_shape_that_depends_on_the_group(self):
        weights = [torch.randn(16, 16, requires_grad=True) for _ in range(2)]

        def model(x):
            q = x - x.mean(-1, True)
            y = x.mean(-1, True) @ weights[0][:1]
            return ((q + torch.ones_like(y)) @ weights[1]).square().mean() + y.mean()

        self.check(model, (torch.randn(16, 16),), weights)

    def test_numbers_that_16_bits_cannot_represent(self):
        """Tests numbers that 16 bits cannot represent. Torch's products and quotients of 16-bit tensors use such
        numbers unrounded, but sums on a CPU round them to 16 bits first. Fused kernels must do the same."""
        for dtype in (torch.bfloat16, torch.float16):
            with self.subTest(dtype):
                x, weight = torch.randn(64, 64).to(dtype), torch.randn(64, 64).to(dtype).requires_grad_()

                def function(x):
                    y = x + weight
                    return (((0.3 - y * 1.1) / 1.3 + 0.7) * 0.9 - 0.1).float().sum()

                results = self.gradients(function, (x,), [weight], "aot_eager"), self.gradients(function, (x,), [weight], backend())
                self.assertGreater(cairn.torch.last_report().graphs[0].fused, 0)
                self.assertTrue(torch.equal(results[0][1], results[1][1]))

                def values(x):
                    return (((0.3 - x * 1.1) / 1.3 + 0.7) * 0.9 - 0.1), (x * weight).sum()

                torch._dynamo.reset()
                expected = torch.compile(values, backend="aot_eager")(x)[0]
                torch._dynamo.reset()
                self.assertTrue(torch.equal(torch.compile(values, backend=backend())(x)[0], expected))

    def test_the_maximum_of_values_of_16_bits(self):
        """Tests the maximum of 16-bit values. The backward pass compares the maximum with the values, so it must not
        recompute the values without rounding them."""
        p, q = torch.randn(64, 64).bfloat16().requires_grad_(), torch.randn(64, 64).bfloat16()

        def model():
            x = torch.sin(p @ q) * 1.7 + 0.3
            most = x.amax(-1, True)
            return (torch.exp(x - most).sum(-1).log() + most.squeeze(-1)).float().mean()

        self.check(model, (), [p], tolerance=3e-2)

    def test_what_is_computed_again_from_values_of_16_bits(self):
        """Tests that forward kernels compute with rounded 16-bit values, as the backward pass does when it reads saved
        values. Otherwise, the saved maximum would not be among the recomputed elements, and the gradient would be
        0/0."""
        layers = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(3))
        norm, x = torch.nn.LayerNorm(32), torch.randn(4, 16, 32)

        def gated(x):
            x = norm(layers[0](x).float())
            return x * torch.sigmoid(layers[1](x)) + layers[2](x)

        def largest(x):
            return gated(x).amax(1).logsumexp(-1).sum()

        def normalized(x):
            return F.normalize(gated(x), p=float("inf"), dim=-1).logsumexp(-1).sum()

        for function in (largest, normalized):
            with self.subTest(function.__name__), torch.autocast("cpu", torch.bfloat16):
                self.check(function, (x,), [*layers.parameters(), *norm.parameters()], tolerance=3e-2)

    def test_what_the_backward_pass_compares(self):
        """Tests that a value that a backward kernel compares with others is saved, and not recomputed by that
        kernel."""
        w, x, computed = torch.randn(64, 64, requires_grad=True), torch.randn(64, 64), []
        again = recompute._computed_again

        def noted(*arguments):
            computed.extend(again(*arguments))
            return set(computed)

        def model(x):
            y = torch.exp(torch.sin(x @ w))
            return (y.amax(1) + torch.tanh(y).sum(1)).square().sum()

        with unittest.mock.patch.object(recompute, "_computed_again", noted):
            self.check(model, (x,), [w], budgets=("100%",))
        self.assertNotIn(torch.ops.aten.exp.default, [node.target for node in computed])
        self.assertIn(torch.ops.aten.tanh.default, [node.target for node in computed])

    def test_makers_that_are_read_by_groups_that_are_not_compiled(self):
        """Tests a group of operations that cannot be compiled and reads constants. The group may run before the
        original places of the constants, so the constants must be moved before it."""
        layer, x = torch.nn.Linear(16, 48), torch.randn(2, 16, 16)

        def attention(x):
            q, k, v = (part.unflatten(-1, (4, 4)).transpose(1, 2) for part in layer(x).chunk(3, -1))
            return F.scaled_dot_product_attention(q, k, v, dropout_p=.1, is_causal=True).square().mean()

        def similarity(x):
            return F.cosine_embedding_loss(layer(x).flatten(0, 1), layer(x * 2).flatten(0, 1), torch.ones(32))

        for function in (attention, similarity):
            with self.subTest(function.__name__), unittest.mock.patch.object(fuse, "_LEAST_ELEMENTS", 1 << 30):
                self.check(function, (x,), [*layer.parameters()], budgets=("100%",))

    def test_what_kernels_leave_in_memory(self):
        """Tests that a kernel keeps no reference to the sizes and tensors with which it was traced, and that a kernel
        that could not be compiled for lack of memory is compiled again."""
        model, x = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Sigmoid()), torch.randn(64, 8)
        for _ in range(2):
            torch._dynamo.reset()
            torch.compile(model, backend=backend(), dynamic=True)(x).sum().backward()
        held = [node for kernel in kernels._kernels.values() if callable(kernel) for cell in kernel.__closure__
                if callable(cell.cell_contents) for inner in cell.cell_contents.__closure__ or ()
                if isinstance(inner.cell_contents, torch.fx.GraphModule) for node in inner.cell_contents.graph.nodes if node.meta]
        self.assertEqual(held, [])
        torch._dynamo.reset()
        kernels._kernels.clear()
        with unittest.mock.patch.object(_private, "compile_kernel", side_effect=MemoryError("full")), harness.cairn_warnings("ignore"):
            torch.compile(model, backend=backend())(x).sum().backward()
        self.assertEqual(kernels._kernels, {})
