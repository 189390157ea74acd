"""Tests that a step of torch.compile under a budget has results with the same bits as without Cairn and stays within
the promised peak, and that errors and warnings say what went wrong."""

import contextlib
import copy
import functools
import json
import os
import random
import unittest
import unittest.mock
import warnings

import cairn
import cairn.torch
import harness
import numpy as np
import torch
from cairn.torch._step.one_parameter import is_kept_as_gradient

WORK = 1_000_000
PARTITION = "cairn.torch._backend.compiling.partition"
backend = functools.partial(cairn.torch.backend, fallback=False, work_limit=WORK)


class Budgets(harness.Fresh):
    """Tests that every budget is kept, and that no result changes."""

    def check(self, model, inputs, budgets, parts=1, **options):
        reference = harness.train(model, inputs, harness.unscheduled(), **options)
        for budget in budgets:
            with self.subTest(budget=budget):
                with harness.cairn_warnings("error"):
                    if parts > 1:
                        warnings.filterwarnings("ignore", harness.OF_PARTS, cairn.torch.CairnWarning)
                    step = harness.train(model, inputs, backend(budget), **options)
                report = cairn.torch.last_report()
                self.assertEqual((len(report.graphs), report.kept), (parts, True))
                self.assertEqual(harness.same(reference, step), "")
                for graph in report.graphs:
                    if graph.budget is not None:
                        self.assertLessEqual(graph.promised, graph.budget)
                    self.assertLessEqual(graph.measured, graph.promised)
                    self.assertEqual(graph.kept, True)
                if not options.get("loss_of"):  # with loss_of, the measurement includes memory outside of the graphs
                    self.assertLessEqual(step.peak, report.promised)
                    self.assertGreaterEqual(step.peak, (0.97 if parts == 1 else 0.9) * report.promised)
        return reference

    def test_transformer_with_dropout_and_a_shared_weight(self):
        reference = self.check(*harness.gpt(), ["60%", "min"])
        self.assertGreaterEqual(reference.peak, cairn.torch.last_report().graphs[0].promised)

    def test_batch_norm_and_its_buffers(self):
        self.check(*harness.cnn(), ["60%", "min"])

    def test_a_result_that_the_tracer_has_behind_the_backward_pass(self):
        """Tests a model with a view of a tensor that is written in place. The tracer computes such a view only after
        the backward pass, although it is a result of the forward pass. The step must have the same results
        nevertheless."""
        class Normal(harness.Layers):
            def forward(self, x):
                for layer in self.layers:
                    x = torch.nn.functional.feature_alpha_dropout(torch.selu(layer(x))[None], 0.3, self.training)[0]
                return x.square().mean(), x.detach()

        self.check(Normal(width=16), (torch.randn(64, 16),), ["60%", "min"], loss_of=lambda out: out[0])

    def test_graph_break_in_the_middle(self):
        class Broken(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = torch.nn.Sequential(*self.layers(3), *self.layers(12))
                self.second = torch.nn.Sequential(*self.layers(12), *self.layers(12))

            @staticmethod
            def layers(channels):
                return torch.nn.Conv2d(channels, 12, 3, padding=1), torch.nn.BatchNorm2d(12), torch.nn.ReLU()

            def forward(self, x):
                x = self.first(x)
                torch._dynamo.graph_break()
                return self.second(x).square().mean()

        self.check(Broken(), (torch.randn(2, 3, 16, 16),), [1_000_000, "min"], parts=2)

    def test_a_view_of_a_buffer_that_is_written(self):
        """Tests a view of a buffer that the model writes. Operations that read the view must run in the forward pass,
        and must not run again after the write."""

        class Centered(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(4))
                self.register_buffer("mean", torch.zeros(2, 64))

            def forward(self, x):
                for lin in self.lin:
                    x = torch.tanh(lin(x) * self.mean[0].cos())
                self.mean.mul_(0.5).add_(x.detach().mean(0) + 1)
                return x.square().mean()

        self.check(Centered(), (torch.randn(100, 64),), ["70%", "min"])

    def test_loss_outside_of_the_model(self):
        model = torch.nn.Sequential(*[m for _ in range(5) for m in (torch.nn.Linear(64, 64), torch.nn.GELU())])
        self.check(model, (torch.randn(100, 64),), ["100%", "80%"], loss_of=lambda out: out.square().mean())

    def test_autocast(self):
        self.check(harness.Amp(harness.gpt()[0]), harness.gpt()[1], ["70%", "min"])

    def test_norms_of_16_bits(self):
        """Tests norms (batch norm, layer norm, ...) of 16-bit values. Their forward kernels save statistics with 16 or
        32 bits, depending on the types of input and weights. Calibration must be able to measure each backward kernel
        with such statistics, so that the promised peak contains its scratch."""
        kinds = [torch.nn.BatchNorm2d(16), torch.nn.BatchNorm2d(16, track_running_stats=False), torch.nn.GroupNorm(4, 16),
                 torch.nn.InstanceNorm2d(16, affine=True), torch.nn.LayerNorm(14)]
        for norm in kinds:
            for of_weights in (torch.float32, torch.bfloat16):
                with self.subTest(norm=norm, of_weights=of_weights):
                    torch._dynamo.reset()
                    torch.manual_seed(0)
                    first, last = (torch.nn.Conv2d(*c, 3, dtype=torch.bfloat16) for c in ((3, 16), (16, 3)))
                    norm = copy.deepcopy(norm).to(of_weights)
                    chosen = cairn.torch.backend("min", work_limit=WORK)

                    def loss(x):
                        return last(norm(first(x)).bfloat16()).float().square().mean()

                    torch.compile(loss, backend=chosen)(torch.randn(4, 3, 16, 16, dtype=torch.bfloat16)).backward()
                    (graph,) = chosen.report.graphs
                    self.assertEqual((graph.estimated, graph.broken_by), ([], ""))
                    self.assertEqual(graph.measured, graph.promised)

    def test_dynamic_shapes(self):
        model, inputs = harness.gpt()
        self.check(model, inputs, ["70%", "min"], dynamic=True)

    def test_checkpoint_inside(self):
        class Inner(harness.Gpt):
            def forward(self, tokens, targets):
                x = self.tokens(tokens)
                for block in self.blocks:
                    x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
                return torch.nn.functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())

        self.check(Inner(dropout=0.0), harness.gpt()[1], ["70%", "min"])

    def test_another_shape_is_another_graph(self):
        model, inputs = harness.gpt()
        compiled = torch.compile(model, backend=backend("70%"), dynamic=False)
        compiled(*inputs).backward()
        compiled(*(i[:2] for i in inputs)).backward()
        self.assertEqual(len(cairn.torch.last_report().graphs), 2)

    def test_without_gradients(self):
        model, inputs = harness.cnn()
        model.eval()
        with torch.no_grad():
            expected = model(*inputs)
            found = torch.compile(model, backend=backend("min"))(*inputs)
        self.assertTrue(torch.equal(expected, found))
        graph = cairn.torch.last_report().graphs[0]
        self.assertLessEqual(graph.measured, graph.promised)

    def test_gradients_are_accumulated(self):
        def thrice(compiled, inputs):
            for _ in range(3):
                compiled(*inputs).backward()

        model, inputs = harness.cnn()
        expected = harness.gradients_after(model, inputs, harness.unscheduled(), thrice)
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "accumulate=True"):
            found = harness.gradients_after(model, inputs, backend("50%"), thrice)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(expected, found)))

    def test_gradients_that_are_parts_of_one_tensor(self):
        """Tests weights that the model joins, so that their gradients are parts of one tensor. Torch keeps parts that are
        laid out as the parameters, and copies the others."""
        def join_rows(x, weights):
            return x @ torch.cat(weights, 1)

        def stack(x, weights):
            return torch.matmul(x, torch.stack(weights))

        for join, is_kept in harness.afresh(((stack, True), (join_rows, False))):
            weights, x = [torch.nn.Parameter(torch.rand(32, 16)) for _ in range(8)], torch.rand(64, 32)
            torch.compile(lambda x: join(x, weights).tanh().sum(), backend=backend("100%"))(x).backward()
            self.assertEqual(len({p.grad.untyped_storage().data_ptr() for p in weights}), 1 if is_kept else 8)
            graph = cairn.torch.last_report().graphs[0]
            self.assertEqual(graph.resident["gradient"], sum(p.nbytes for p in weights))
            self.assertTrue(graph.kept)

    def test_gradients_without_memory(self):
        """Tests parameters on the device "meta", of which torch copies the gradients. None of them counts."""
        weight, joined = torch.nn.Parameter(torch.rand(64)), [
            torch.nn.Parameter(torch.rand(32, 16, device="meta")) for _ in range(8)]

        def function(x, y):
            return (x * weight).tanh().sum(), (y @ torch.cat(joined, 1)).tanh().sum()

        results = torch.compile(function, backend=backend("100%", fallback=False))(
            torch.rand(1000, 64), torch.rand(4, 32, device="meta"))
        torch.autograd.backward(results)
        self.assertEqual(cairn.torch.last_report().graphs[0].resident["gradient"], weight.nbytes)

    def test_accumulated_gradients_count(self):
        model = torch.nn.Sequential(*[m for _ in range(4) for m in (torch.nn.Linear(128, 128), torch.nn.GELU())])
        x = torch.randn(32, 128)
        with harness.cairn_warnings("error"):
            compiled = torch.compile(model, backend=backend("min", accumulate=True))
            compiled(x).sum().backward()
            with cairn.torch.MemoryTrace() as trace:
                compiled(x).sum().backward()
        graph = cairn.torch.last_report().graphs[0]
        size = sum(p.untyped_storage().nbytes() for p in model.parameters())
        self.assertEqual(graph.resident["gradient"], size)
        self.assertGreater(graph.promised, size)
        # the test itself needs 64 bytes for the sum of the model's results
        self.assertLessEqual(trace.peak, graph.promised + 64)

    def test_batch_norm_under_autocast(self):
        self.check(harness.Amp(harness.cnn()[0]), harness.cnn()[1], ["70%", "min"])

    def test_gradients_that_are_laid_out_otherwise_are_copied(self):
        """Tests convolutions whose input is channels-last. After the backward pass, torch copies their gradients to
        another layout, and the promised peak must include these copies."""
        class Patches(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = torch.nn.LayerNorm(80)
                self.convs = torch.nn.ModuleList([torch.nn.Conv2d(3, 80, 2, 2), torch.nn.Conv2d(80, 160, 2, 2)])

            def forward(self, x):
                x = self.norm(self.convs[0](x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
                return self.convs[1](x).square().mean()

        model = Patches()
        self.check(model, (torch.randn(2, 3, 16, 16),), ["100%", "min"])
        self.assertGreaterEqual(cairn.torch.last_report().promised, 160 * 80 * 2 * 2 * 4)

    def test_what_torch_keeps_as_a_gradient(self):
        class Laid(torch.autograd.Function):
            @staticmethod
            def forward(ctx, parameter, gradient):
                ctx.gradient = [gradient]
                return parameter.sum()

            @staticmethod
            def backward(ctx, _):
                return ctx.gradient.pop(), None

        drawn = random.Random(0)
        for _ in range(300):
            shape = [drawn.choice((1, 2, 3)) for _ in range(drawn.randint(1, 4))]
            order = drawn.sample(range(len(shape)), len(shape))
            gap = drawn.choice((1, 1, 2))

            def laid_out(order):
                wide = torch.randn([shape[i] for i in order] + [gap])
                return wide[..., 0].permute([order.index(i) for i in range(len(shape))])

            parameter = laid_out(order).requires_grad_()
            gradient = laid_out(drawn.choice((order, drawn.sample(order, len(order)), sorted(order)))).clone(
                memory_format=drawn.choice((torch.preserve_format, torch.contiguous_format)))
            expected = is_kept_as_gradient(gradient, parameter)
            address = gradient.data_ptr()
            loss = Laid.apply(parameter, gradient)
            del gradient
            loss.backward()
            self.assertEqual(parameter.grad.data_ptr() == address, expected, (shape, order, gap))

    def test_a_plan_for_any_size_holds_up_to_its_own(self):
        model, _ = harness.gpt()
        compiled = torch.compile(model, backend=backend("70%"), dynamic=True)
        for batch, graphs in ((4, 1), (3, 1), (6, 2), (5, 2)):
            tokens = torch.randint(0, 200, (batch, 32))
            compiled(tokens, tokens).backward()
            model.zero_grad()
            self.assertEqual(len(cairn.torch.last_report().graphs), graphs)
        smaller, larger = cairn.torch.last_report().graphs
        self.assertLess(smaller.promised, larger.promised)


class Reports(harness.Fresh):
    def test_says_what_was_recomputed_and_where(self):
        model, inputs = harness.gpt()
        harness.train(model, inputs, backend("50%"))
        graph = cairn.torch.last_report().graphs[0]
        self.assertGreater(len(graph.recomputed), 0)
        self.assertTrue(any(item.source.startswith("harness.py:") for item in graph.recomputed))
        weights = sum(p.numel() * 4 for p in model.parameters())
        self.assertEqual(graph.resident["parameter"], weights)
        self.assertEqual(graph.resident["gradient"], weights)
        self.assertEqual(sum(item.size for item in graph.at_peak) <= graph.promised, True)
        text = str(cairn.torch.last_report())
        for word in ("promised", "measured", "resident", "recomputed"):
            self.assertIn(word, text)
        self.assertRegex(text, r"the process: \S+ [GM]iB in memory now")
        self.assertGreater(cairn.torch.last_report().process_memory, weights)
        with unittest.mock.patch("pathlib.Path.read_text", side_effect=OSError):  # simulates a system that is not Linux
            self.assertNotIn("the process", str(cairn.torch.last_report()))

    def test_a_schedule_comes_from_the_cache_the_second_time(self):
        model, inputs = harness.gpt(batch=3)
        with harness.new_cache():
            first = harness.train(model, inputs, backend("60%"))
            self.assertEqual(cairn.torch.last_report().graphs[0].source, "solved")
            promised = cairn.torch.last_report().promised
            second = harness.train(model, inputs, backend("60%"))
            self.assertEqual(cairn.torch.last_report().graphs[0].source, "cache")
            self.assertEqual(cairn.torch.last_report().promised, promised)
            self.assertEqual(harness.same(first, second), "")

    def test_a_solver_that_is_named_takes_no_schedule_of_others(self):
        model = torch.nn.Sequential(*[m for _ in range(4) for m in (torch.nn.Linear(48, 48), torch.nn.GELU())])
        for solver, recomputes in harness.afresh((("auto", True), ("order", False))):
            model.zero_grad()
            compiled = torch.compile(lambda x: model(x).square().mean(), backend=backend("min", solver=solver))
            compiled(torch.randn(300, 48)).backward()
            self.assertEqual(bool(cairn.torch.last_report().graphs[0].recomputed), recomputes)

    def test_masks_of_later_steps_choose_more(self):
        """Tests a step whose first mask is false everywhere, and whose next mask is true everywhere. The second mask
        needs more scratch, but must stay within the promised peak. So Cairn must measure operations with masks that are
        true everywhere, if the operations accept such masks."""
        scale = torch.nn.Parameter(torch.ones(64))

        def loss_of(x, mask):
            return (x * scale).masked_scatter(mask, x * scale.exp()).sum()

        x = torch.randn(512, 64)
        for budget in harness.afresh(("100%", "min")):
            compiled = torch.compile(loss_of, backend=backend(budget))
            compiled(x, torch.zeros(512, 64, dtype=torch.bool)).backward()
            promised = cairn.torch.last_report().promised
            full = torch.ones(512, 64, dtype=torch.bool)
            scale.grad = None
            _, peak, _ = cairn.torch.measure_peak(lambda: compiled(x, full).backward())
            self.assertLessEqual(peak, promised + scale.nbytes)

    def test_scratch_of_bags_is_measured(self):
        for mode in harness.afresh(("max", "mean")):
            bags = torch.nn.EmbeddingBag(100, 64, mode=mode)
            compiled = torch.compile(lambda indices: bags(indices).sin().sum(), backend=backend("100%"))
            compiled(torch.randint(0, 100, (64, 8))).backward()
            self.assertEqual(cairn.torch.last_report().kept, True)

    def test_damaged_caches_cost_only_time(self):
        def once():
            harness.gradients_after(model, inputs, backend("90%", work_limit=1000), lambda compiled, x: compiled(*x).backward())

        model, inputs = harness.cnn(layers=2)
        with harness.new_cache():
            once()
            schedule, = cairn.torch._cache.folder().glob("schedule-*.json")
            operations, = cairn.torch._cache.folder().glob("operations-*.json")
            for text in ("[]", "{", '{"steps": "no", "status": "optimal"}', '{"steps": [1.5, null], "status": "optimal"}'):
                schedule.write_text(text)
                once()
            measured = json.loads(operations.read_text())
            operations.write_text(json.dumps({name: ["x", -1] for name in measured}))
            once()
            operations.write_text(json.dumps({name: [10**40, *rest] for name, (_, *rest) in measured.items()}))
            once()
            for file in (schedule, operations):
                file.write_text("[" * 200_000)
                once()

    def test_a_cache_that_cannot_be_written_leaves_nothing_behind(self):
        with harness.new_cache():
            (cairn.torch._cache.folder() / "taken").mkdir(parents=True)
            cairn.torch._cache.store("taken", {})  # cannot be stored, because there is a folder with this name
            self.assertEqual([path.name for path in cairn.torch._cache.folder().iterdir()], ["taken"])

    def test_without_a_home_what_is_stored_lasts_as_long_as_the_process(self):
        """Tests that measurements and schedules are stored in the process if there is no folder for files. Otherwise
        operations would be measured again, which is impossible in a step that is profiled."""
        with unittest.mock.patch.dict(os.environ, CAIRN_CACHE="", XDG_CACHE_HOME="relative"):
            with unittest.mock.patch("os.path.expanduser", side_effect=lambda path: path):
                self.assertIsNone(cairn.torch._cache.folder())
                self.assertIsNone(cairn.torch._cache.load("name"))
                cairn.torch._cache.store("name", {"a": 1})
                self.assertEqual(cairn.torch._cache.load("name"), {"a": 1})
                self.assertFalse(os.path.exists("name"))
                model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh())
                for profiled in (False, True):
                    torch._dynamo.reset()
                    with torch.profiler.profile() if profiled else contextlib.nullcontext():
                        torch.compile(model, backend=backend("min"))(torch.ones(5, 8)).sum().backward()
                    self.assertEqual(cairn.torch.last_report().graphs[0].estimated, [])
        with unittest.mock.patch.dict(os.environ, CAIRN_CACHE="relative"):
            self.assertIsNone(cairn.torch._cache.folder())

    def test_a_broken_promise_names_the_operation(self):
        """Tests that the warning about a broken promise names the operation that needed too much. Without calibration,
        the scratch of convolutions is unknown, so the measured peak is above the promised one."""
        model, inputs = harness.cnn(batch=2)
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "promised a peak of .* measured .* at aten::convolution"):
            torch.compile(model, backend=backend("40%", calibrate=False, seed=5))(*inputs).backward()
        graph = cairn.torch.last_report().graphs[0]
        self.assertFalse(graph.kept)
        self.assertIn("convolution", graph.broken_by)


class BadInput(harness.Fresh):
    def test_a_budget_that_cannot_be_met_says_which_can(self):
        model, inputs = harness.gpt()
        with self.assertRaises(cairn.torch.InfeasibleError) as caught:
            torch.compile(model, backend=backend(1000))(*inputs)
        self.assertIsInstance(caught.exception, cairn.InfeasibleError)
        self.assertRegex(str(caught.exception), "^graph 0: budget 1000 B ")
        least = caught.exception.least_budget
        self.assertGreater(least, caught.exception.lower_bound - 1)
        self.assertIn(str(least), str(caught.exception))
        harness.train(model, inputs, backend(least))
        self.assertLessEqual(cairn.torch.last_report().measured, least)

    def test_a_share_is_of_the_largest_graph_so_far(self):
        """Tests that a budget in percent refers to the largest graph so far. A small graph after a graph break could
        not meet a share of its own peak."""

        class WithLoss(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.Sequential(*[m for _ in range(6) for m in (torch.nn.Linear(64, 64), torch.nn.Tanh())])

            def forward(self, x):
                x = self.layers(x)
                torch._dynamo.graph_break()
                return x.exp().mean()

        harness.train(WithLoss(), (torch.randn(50, 64),), backend("75%"))
        large, small = cairn.torch.last_report().graphs
        self.assertEqual(small.budget, large.budget)
        self.assertLess(small.baseline, large.baseline)

    def test_no_gpu(self):
        """Tests that Cairn does not use CUDA if there is no GPU, but can still trace a graph for a GPU."""
        if torch.cuda.is_available():
            self.skipTest("there is a GPU")
        model, inputs = harness.cnn()
        graph = cairn.torch.graph(model, inputs, device="cuda")
        self.assertGreater(graph.baseline.peak, 0)
        with self.assertRaises((RuntimeError, AssertionError)) as caught:  # the message is torch's own
            torch.compile(model.to("cuda"), backend=backend("60%"))(*inputs)
        self.assertRegex(str(caught.exception), "CUDA|NVIDIA")

    def test_a_graph_of_what_cannot_be_traced_says_where(self):
        class Model(torch.nn.Module):
            def __init__(self, part):
                super().__init__()
                self.part, self.linear = part, torch.nn.Linear(4, 4)

            def forward(self, x):
                return self.part(self.linear(x)).sum()

        def scaled(x):
            return x * 2 if x.sum().item() > 0 else x

        def jagged(x):
            return torch.nested.nested_tensor_from_jagged(x, torch.tensor([0, 1, 3])).values()

        for part in (scaled, lambda x: torch.from_numpy(x.detach().numpy()) * x, lambda x: x @ x, jagged):
            with self.subTest(part), self.assertRaises(cairn.InputError) as caught:
                cairn.torch.graph(Model(part), (torch.randn(3, 4),))
            self.assertRegex(str(caught.exception), r"^graph: .* at backend_test.py:\d+: \S")
            self.assertEqual(len(str(caught.exception).splitlines()), 1)
        with self.assertRaisesRegex(AssertionError, "^of the model$"):
            cairn.torch.graph(Model(unittest.mock.Mock(side_effect=AssertionError("of the model"))), torch.randn(3, 4))

    def test_a_graph_of_inputs_that_are_not_strided(self):
        class Model(torch.nn.Module):
            def forward(self, x):
                return x.values().sum()

        jagged = torch.nested.nested_tensor([torch.ones(1, 4), torch.ones(2, 4)], layout=torch.jagged)
        for x, kind in ((jagged, "nested"), (torch.eye(4).to_sparse(), "torch.sparse_coo")):
            with self.assertRaisesRegex(cairn.InputError, f"^graph: input 0 is a {kind} tensor, .* can be traced$"):
                cairn.torch.graph(Model(), (x,))

    def test_one_warning_for_one_reason(self):
        """Tests that a model with many graphs that cannot be scheduled for the same reason causes only one warning."""
        class Broken(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = torch.nn.Linear(4, 4)

            def forward(self, x):
                x = self.lin(x).sin()
                torch._dynamo.graph_break()
                x = self.lin(x).cos()
                torch._dynamo.graph_break()
                return self.lin(x).sum()

        chosen = cairn.torch.backend("60%")
        with unittest.mock.patch(PARTITION, side_effect=NotImplementedError("an operation that cannot be")):
            with harness.told() as told:
                torch.compile(Broken(), backend=chosen)(torch.randn(2, 4)).backward()
        self.assertEqual(len(told), 1)

    def test_budgets_are_read_before_anything_runs(self):
        for wrong in ("60 percent", "-1GiB", "nan%", None, True, -1, 0, 1.5, "min%", "0%", "0GiB", ""):
            with self.subTest(wrong), self.assertRaises(cairn.InputError):
                cairn.torch.backend(wrong)
        with self.assertRaises(cairn.InputError):
            cairn.torch.backend("60%", compiler="gcc")
        with self.assertRaisesRegex(cairn.InputError, "no 'best'"):
            cairn.torch.backend("60%", solver="best")
        with self.assertRaisesRegex(cairn.InputError, "not 3"):
            cairn.torch.step(3, "60%")
        with self.assertRaisesRegex(cairn.InputError, "the model is a function; it must be a torch.nn.Module"):
            cairn.torch.graph(lambda x: x.sum(), torch.randn(3))

    def test_options_of_wrong_types_are_told_before_anything_runs(self):
        for options in ({"time_limit": "ten"}, {"time_limit": None}, {"time_limit": 0}, {"time_limit": float("nan")},
                        {"time_limit": True}, {"work_limit": 1.5}, {"work_limit": 0}, {"work_limit": "many"}, {"seed": None},
                        {"seed": -1}, {"seed": 2**64}, {"seed": 0.5}, {"accumulate": "no"}, {"calibrate": "no"},
                        {"measure": "off"}, {"fallback": None}):
            with self.subTest(options), self.assertRaisesRegex(cairn.InputError, f"^{next(iter(options))}: "):
                cairn.torch.backend("60%", **options)
        with self.assertRaisesRegex(cairn.InputError, "^budget: "):
            cairn.torch.backend("9" * 5000 + "%")

    def test_numbers_of_numpy_and_torch_are_numbers(self):
        model, inputs = harness.gpt(layers=1)
        for options in ({"time_limit": np.float32(1)}, {"time_limit": "500ms"}, {"time_limit": np.int64(1)}, {"work_limit": np.int64(1000)},
                        {"work_limit": 1e3}, {"work_limit": 1000, "seed": np.int64(3)}, {"measure": np.True_},
                        {"budget": torch.tensor(10**8)}, {"budget": np.int64(10**8)}, {"budget": np.float32(1e8)}):
            with self.subTest(options):
                torch._dynamo.reset()
                model.zero_grad()
                chosen = cairn.torch.backend(**{"budget": "95%", "work_limit": 1000, "fallback": False, **options})
                torch.compile(model, backend=chosen)(*inputs).backward()
                self.assertTrue(chosen.report.kept)

    def test_budgets_are_read_as_the_command_reads_them(self):
        for text, size in (("8G", 8 * 10**9), ("8g", 8 * 10**9), ("8gib", 8 * 2**30), ("8 GB", 8 * 10**9), (8e9, 8 * 10**9),
                           ("1e3MiB", 1000 * 2**20), ("1.5 KiB", 1536), ("60%", 60), ("60 %", 60), ("0.5%", 1), ("100%", 100),
                           ("min", None)):
            with self.subTest(text):
                self.assertEqual(cairn.torch._plan.solve.budget_bytes(text, 100), size)

    def test_a_share_above_all_of_it_is_refused(self):
        with self.assertRaisesRegex(cairn.InputError, "^budget: '150%' is more than .* at most '100%'$"):
            cairn.torch.backend("150%")
        for text in ("0.6", " .5", "1.25"):
            with self.assertRaisesRegex(cairn.InputError, "is not a whole number of bytes; shares are written as '60%'"):
                cairn.torch.backend(text)
        for text in ("0", "0.0", "0%"):
            with self.assertRaisesRegex(cairn.InputError, "is not above 0"):
                cairn.torch.backend(text)
        for size, error in ((0, "not above 0"), (-3, "not above 0"), (2**63, "not below 2\\*\\*63"), (10**400, "not below 2")):
            with self.assertRaisesRegex(cairn.InputError, error):
                cairn.torch.backend(size)

    def test_a_graph_that_cannot_be_scheduled_runs_and_says_so(self):
        model, inputs = harness.gpt()
        chosen = cairn.torch.backend("60%", work_limit=WORK)
        with unittest.mock.patch(PARTITION, side_effect=RuntimeError("no such operation")):
            with self.assertWarnsRegex(cairn.torch.CairnWarning, "without a budget.*no such operation"):
                torch.compile(model, backend=chosen)(*inputs).backward()
        self.assertIsNotNone(model.tokens.weight.grad)

    def test_double_backward_is_refused(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())
        x = torch.randn(3, 4, requires_grad=True)
        out = torch.compile(model, backend=backend("100%"))(x)
        with harness.told() as told:
            (grad,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        self.assertEqual([text.split(", leaves")[1][:29] for text in told], [" what was saved between forwa"])
        with self.assertRaisesRegex(RuntimeError, "double backward"):
            grad.sum().backward()

    def test_anomaly_mode(self):
        model, inputs = harness.cnn()
        chosen = backend("100%", work_limit=100)
        compiled = torch.compile(model, backend=chosen)
        compiled(*inputs).backward()
        self.assertTrue(chosen.report.kept)
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "looks for NaN"), torch.autograd.set_detect_anomaly(True):
            compiled(*inputs).backward()
        self.assertIsNone(chosen.report.kept)
        self.assertIn("looked for NaN", chosen.report.unknown[0])

    def test_backward_twice_over_one_graph(self):
        def twice(compiled, inputs):
            loss = compiled(*inputs)
            loss.backward(retain_graph=True)
            loss.backward()

        model, inputs = harness.cnn()
        expected = harness.gradients_after(model, inputs, harness.unscheduled(), twice)
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "is not measured"):
            found = harness.gradients_after(model, inputs, backend("50%"), twice)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(expected, found)))

    def test_backward_twice_only_in_later_steps(self):
        """Tests retain_graph=True after a step without it, and with symbolic sizes. In both cases, aot_eager raises an
        error about donated buffers."""
        layer = torch.nn.Linear(8, 8)
        for dynamic in (False, True):
            with self.subTest(dynamic=dynamic):
                torch._dynamo.reset()
                compiled = torch.compile(lambda x: layer(x).sin().exp().sum() * x.shape[0], backend=backend("min"), dynamic=dynamic)
                x = torch.randn(16, 8)
                once, = torch.autograd.grad(compiled(x), [layer.weight])
                loss = compiled(x)
                with self.assertWarnsRegex(cairn.torch.CairnWarning, "is not measured"):
                    again = [torch.autograd.grad(loss, [layer.weight], retain_graph=retain)[0] for retain in (True, False)]
                self.assertTrue(all(torch.equal(gradient, once) for gradient in again))
