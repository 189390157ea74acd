"""Tests what happens if a graph cannot be scheduled, or its schedule fails in the first run."""

import contextlib
import operator
import unittest
import unittest.mock

import cairn
import cairn.torch
import harness
import torch
from cairn.torch import _private
from compile_test import backend, two_layers


class Fallback(harness.Fresh):
    """Tests that with fallback=True, the model runs without a schedule if anything fails before its first run has
    ended."""

    def test_nested_tensors_that_are_jagged(self):
        linear = torch.nn.Linear(8, 8)

        def loss_of(x):
            return torch.tanh(torch.tanh(linear(x))).values().square().sum()

        chosen = backend(fallback=False)
        compiled = torch.compile(loss_of, backend=chosen)
        # `graphs`: number of graphs planned so far; a larger size makes another plan necessary
        for lengths, graphs in (((3, 5), 1), ((2, 4), 1), ((7, 9), 2), ((3, 3), 2)):
            x = torch.nested.nested_tensor([torch.randn(n, 8) for n in lengths], layout=torch.jagged)
            loss_of(x).backward()
            expected, linear.weight.grad, linear.bias.grad = linear.weight.grad, None, None
            compiled(x).backward()
            self.assertTrue(torch.equal(linear.weight.grad, expected))
            linear.zero_grad()
            self.assertEqual(len(chosen.report.graphs), graphs)
            self.assertTrue(chosen.report.kept)

    def test_a_budget_that_jagged_tensors_cannot_meet(self):
        """Tests that the error names the least budget, although the number of rows depends on data."""
        linear = torch.nn.Linear(64, 64)
        x = torch.nested.nested_tensor([torch.randn(n, 64) for n in (300, 500)], layout=torch.jagged)
        for budget in harness.afresh(("10%", 10_000)):
            compiled = torch.compile(lambda x: torch.tanh(linear(x)).values().square().sum(), backend=backend(budget))
            with self.assertRaisesRegex(cairn.torch.InfeasibleError, "the least that can is"):
                compiled(x).backward()

    def test_switches_of_kernels_that_are_turned_between_steps(self):
        """Tests changes of kernel settings between steps. torch.compile compiles again only after some of these
        changes. After all others, the plan must stay, and the next step must be measured and compared with the promised
        peak again."""
        model = torch.nn.Sequential(*[torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.SiLU()] * 2)
        for training in (True, False):
            chosen = backend("min", fallback=False)
            compiled, x = torch.compile(model, backend=chosen), torch.randn(4, 8, 24, 24)

            def step():
                with torch.set_grad_enabled(training):
                    out = compiled(x)
                if training:
                    out.sum().backward()
                    model.zero_grad()

            step()
            self.assertTrue(chosen.report.kept)
            with torch.backends.mkldnn.flags(enabled=False):
                _, told = harness.told_by(step)
            self.assertEqual(len(chosen.report.graphs), 1)
            self.assertIn("kernel settings", told[0])
            self.assertGreater(chosen.report.measured, chosen.report.promised)
            self.assertFalse(chosen.report.kept)

    def test_switches_of_kernels_that_are_turned_for_the_backward_pass_alone(self):
        """Tests changes of kernel settings between forward and backward pass. A warning must come at once. From the
        next step on, the peak must be measured and compared with the promised one again."""
        model = torch.nn.Sequential(*[torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.SiLU()] * 2)
        for budget in harness.afresh(("100%", "min")):
            chosen = backend(budget, fallback=False)
            compiled, x = torch.compile(model, backend=chosen), torch.randn(4, 8, 24, 24)

            def step(mkldnn):
                out = compiled(x).sum()
                with torch.backends.mkldnn.flags(enabled=mkldnn):
                    out.backward()
                model.zero_grad()

            step(True)
            self.assertTrue(chosen.report.kept)
            _, told = harness.told_by(lambda: step(False))
            self.assertRegex(" ".join(told), "kernel settings .* differ from those when this was planned")
            self.assertIsNone(chosen.report.kept)
            with harness.cairn_warnings("ignore"):
                step(False)
            self.assertGreater(chosen.report.measured, chosen.report.promised)
            self.assertFalse(chosen.report.kept)

    def test_hooks_that_copy_what_is_saved(self):
        """Tests saved-tensor hooks that copy values, and so need more memory than promised. This must be noticed even
        if an earlier step was measured without hooks."""
        with harness.new_cache():
            model, x = two_layers(), torch.randn(400, 64)
            for steps, kept in harness.afresh((((False,), True), ((True,), False), ((False, True), False))):
                chosen = backend("100%", fallback=False)
                compiled = torch.compile(model, backend=chosen)
                with harness.cairn_warnings("ignore"):
                    for hooks in steps:
                        with torch.autograd.graph.saved_tensors_hooks(
                                torch.clone, lambda t: t) if hooks else contextlib.nullcontext():
                            compiled(x).sum().backward()
                        model.zero_grad()
                self.assertEqual(chosen.report.kept, kept)

    def test_a_region_that_is_compiled_once(self):
        """Tests a nested compile region, i.e. a subgraph that is compiled once. Cairn must treat it as a part of the
        graph that calls it, and measure both together."""
        layer = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64), torch.nn.GELU())

        @torch.compiler.nested_compile_region
        def region(x):
            return layer(x)

        found = []
        for chosen in harness.afresh(("aot_eager", backend("min", fallback=False))):
            layer.zero_grad()
            torch.compile(lambda x: region(region(region(x))).square().mean(), backend=chosen)(torch.randn(64, 64)).backward()
            found.append([p.grad for p in layer.parameters()])
        self.assertTrue(all(map(torch.equal, *found)))
        self.assertEqual(len(chosen.report.graphs), 1)
        self.assertIsNotNone(chosen.report.kept)

    def test_a_budget_that_only_other_plans_of_regions_meet(self):
        """Tests that the promise of "min" is a budget in bytes that can be met. Regions whose plans are only within the
        graph's budget would not leave enough memory."""
        layers = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(3))

        @torch.compiler.nested_compile_region
        def region(layer, x):
            return torch.nn.functional.dropout(torch.nn.functional.gelu(layer(x)), 0.2) + x

        def loss(x):
            for layer in layers:
                x = region(layer, x)
            return x.square().mean()

        found, promised, x = [], "min", torch.randn(64, 32)
        for budget in ("min", None, "too low"):
            torch._dynamo.reset()
            chosen = backend(promised if budget is None else 1000 if budget == "too low" else budget, fallback=False)
            layers.zero_grad()
            torch.manual_seed(0)
            compiled = torch.compile(loss, backend=chosen)
            if budget == "too low":
                with self.assertRaisesRegex(cairn.InfeasibleError, "The bound is for its regions"):
                    compiled(x)
                continue
            compiled(x).backward()
            found.append([p.grad.clone() for p in layers.parameters()])
            promised = chosen.report.graphs[0].promised + 100
        self.assertTrue(all(map(torch.equal, *found)))

    def test_the_memory_of_regions_is_the_memory_of_their_operations(self):
        """Tests that a region takes as much memory as its operations without a region. The region's forward pass
        returns its weight and its input, which the backward pass reads; these results take no memory of their own."""
        layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(4))

        def layer(x, weight, bias):
            return torch.nn.functional.gelu(torch.nn.functional.linear(x, weight, bias))

        promised = []
        for function in harness.afresh((layer, torch.compiler.nested_compile_region(layer))):
            def loss(x):
                for one in layers:
                    x = function(x, one.weight, one.bias)
                return x.square().mean()

            chosen = backend("100%", fallback=False)
            for _ in range(2):
                layers.zero_grad()
                torch.compile(loss, backend=chosen)(torch.randn(32, 64)).backward()
            (graph,) = chosen.report.graphs
            self.assertEqual((graph.estimated, graph.measured), ([], graph.promised))
            promised.append(graph.promised)
        self.assertEqual(*promised)

    def test_regions_that_may_act_are_not_called_to_measure_them(self):
        calls = []

        @torch.library.custom_op("cairn_fallback_test::noted", mutates_args=())
        def noted(x: torch.Tensor) -> torch.Tensor:
            calls.append(1)
            return x + 1

        noted.register_fake(torch.empty_like)
        noted.register_autograd(lambda _, gradient: gradient)
        region = torch.compiler.nested_compile_region(lambda x: noted(x.exp()).sin())
        chosen = backend("100%", fallback=False)
        compiled = torch.compile(lambda x: region(region(x)).sum(), backend=chosen)
        with harness.cairn_warnings("ignore"):  # the scratch of such regions is unknown
            compiled(torch.randn(64, requires_grad=True)).backward()
        self.assertEqual(len(calls), 2)
        self.assertTrue(any("invoke_subgraph" in name for name in chosen.report.graphs[0].estimated))

    def test_numbers_in_a_graph_without_a_backward_pass(self):
        for function in harness.afresh((lambda x: x * 2, lambda x: (x + 1) / 0.7, lambda x: x - x.sum() * 2)):
            chosen, x = backend("min", fallback=False), torch.ones(3)
            found, told = harness.told_by(lambda: torch.compile(function, backend=chosen)(x))
            self.assertEqual((told, chosen.report.kept), ([], True))
            # Torch 2.9 wraps each number in a tensor only once, so it needs up to 16 bytes less than promised.
            self.assertLessEqual(chosen.report.promised, chosen.report.measured + 16)
            self.assertTrue(torch.equal(found, function(x)))

    def test_gradients_of_many_at_once(self):
        """Tests a backward pass for several gradients at once, as in
        torch.autograd.functional.jacobian(vectorize=True). The gradients must be right, although such a step is not
        measured."""
        model, x = two_layers(), torch.randn(4, 64, requires_grad=True)
        found = []
        for chosen in harness.afresh(("aot_eager", backend("min", fallback=False))):
            out = torch.compile(model, backend=chosen)(x)
            found.append(torch.autograd.grad(out.flatten()[:3], x, torch.eye(3), is_grads_batched=True)[0])
        self.assertTrue(torch.equal(*found))
        self.assertIsNone(cairn.torch.last_report().kept)

    def test_a_kernel_that_follows_pointers_is_not_tried(self):
        """Tests that oneDNN's backward kernel of an LSTM is not measured. It follows pointers that its forward kernel
        has stored, so it would crash if it were called with other bytes in their place."""
        lstm, x, chosen = torch.nn.LSTM(32, 32, batch_first=True), torch.randn(4, 16, 32), backend()
        expected = lstm(x)[0].square().mean()
        with torch._dynamo.config.patch(allow_rnn=True):
            compiled = torch.compile(lambda x: lstm(x)[0].square().mean(), backend=chosen)
            found, told = harness.told_by(compiled, x)
        self.assertTrue(torch.equal(found, expected))
        self.assertTrue(all("mkldnn_rnn_layer_backward" in name for graph in chosen.report.graphs for name in graph.estimated))
        self.assertGreater(len(told), 0)  # torch without Cairn cannot run this graph either

    def test_jagged_ones_of_two_rows_at_least(self):
        """Tests jagged tensors of at least two rows. In the second call, the number of rows becomes symbolic. The graph
        must also be right for two rows, the smallest number that torch permits for a symbolic size."""
        linear = torch.nn.Linear(8, 8)
        compiled = torch.compile(lambda x: torch.tanh(torch.tanh(linear(x))).values().square().sum(),
                                 backend=backend(fallback=False))
        for lengths in ((3, 5, 7), (2, 9, 4, 6), (2, 3, 4), (1, 1), (8, 8, 8, 8)):
            x = torch.nested.nested_tensor([torch.randn(n, 8) for n in lengths], layout=torch.jagged)
            expected = torch.tanh(torch.tanh(linear(x))).values().square().sum()
            self.assertTrue(torch.equal(compiled(x), expected))
            self.assertEqual(cairn.torch.last_report().graphs[-1].met, True)

    def test_a_promise_beside_a_graph_that_has_none(self):
        """Tests a backend with one planned graph and one graph that could not be planned. The report does not say that
        the promise was kept, because the memory of the second graph is unknown."""
        chosen, (first, second) = backend(), (two_layers(), two_layers())
        torch.compile(first, backend=chosen)(torch.randn(4, 64)).sum().backward()
        self.assertEqual((chosen.report.kept, chosen.report.unplanned), (True, []))
        with unittest.mock.patch("cairn.torch._backend.compiling.partition", side_effect=LookupError("no such thing")):
            harness.told_by(lambda: torch.compile(second, backend=chosen)(torch.randn(8, 64)).sum().backward())
        self.assertEqual((chosen.report.kept, chosen.report.unplanned), (None, ["LookupError: no such thing"]))
        self.assertIn("a graph runs without a budget: LookupError: no such thing", str(chosen.report))

    def test_a_promise_beside_one_that_was_not_measured(self):
        """Tests a backend with one measured graph and one that could not be measured, because another profiler was
        active. The report must say that it is unknown whether all promises are kept."""
        chosen, (first, second) = backend(), (two_layers(), two_layers())
        torch.compile(first, backend=chosen)(torch.randn(4, 64)).sum().backward()
        self.assertTrue(chosen.report.kept)
        with _private.quiet_profiler(), torch.profiler.profile(profile_memory=True):
            torch.compile(second, backend=chosen)(torch.randn(12, 64)).sum().backward()
        self.assertEqual([graph.kept for graph in chosen.report.graphs], [True, None])
        self.assertIsNone(chosen.report.kept)
        self.assertEqual(chosen.report.unknown, ["graph 1 ran while something else recorded memory: a profiler, or Cairn for the whole step"])
        self.assertIn(f"whether all promises are kept is unknown: {chosen.report.unknown[0]}\n", str(chosen.report))

    def test_a_hook_that_calls_another_compiled_function(self):
        """Tests that a graph is checked although a hook on its saved values calls another graph."""
        scale, weight = torch.nn.Parameter(torch.ones(())), torch.nn.Parameter(torch.randn(64, 64))

        def values(x):
            y = x.sin()
            for _ in range(4):
                y = (y.exp().cos() + x).tanh()
            return (y @ weight).sum()

        compiled = torch.compile(values, backend=backend("min"))
        largest = torch.compile(lambda t: (t * scale).abs().max(), backend=backend("100%"))
        inside = []

        def pack(value):
            if not inside:
                inside.append(1)
                with torch.enable_grad():
                    largest(value.detach())
                inside.clear()
            return value.detach()  # without its function, which would hold the value for ever

        x = torch.randn(128, 64, requires_grad=True)
        with harness.cairn_warnings("ignore"):
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
                loss = compiled(x)
            x.data.mul_(1.5)
            with self.assertRaises(cairn.torch.WrittenError):
                loss.backward()

    def test_settings_that_change_while_a_run_waits(self):
        """Tests that a new measurement does not take the inputs of an earlier run for copies."""
        self.enterContext(harness.new_cache())
        weight, chosen = torch.nn.Parameter(torch.randn(64, 64)), backend("100%")
        compiled = torch.compile(lambda x: (x @ weight).exp().sum(), backend=chosen)
        inputs = [torch.randn(512, 64) for _ in range(2)]
        compiled(inputs[0]).backward()
        with harness.cairn_warnings("ignore"):
            for _ in range(3):
                first = compiled(inputs[0])
                with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                    second = compiled(inputs[1])
                first.backward()
                second.backward()
                self.assertIsNot(chosen.report.kept, False)
            compiled(inputs[0]).backward()
        self.assertTrue(all(graph.kept for graph in chosen.report.graphs))

    def test_warnings_that_are_raised_as_errors(self):
        """Tests that a warning is no failure of a schedule, even if the caller turns warnings into errors."""
        layers, chosen = torch.nn.ModuleList(two_layers() for _ in range(2)), backend("100%", fallback=True)

        def halves(x):
            x = layers[0](x)
            torch._dynamo.graph_break()
            return layers[1](x).square().sum()

        compiled, told = torch.compile(halves, backend=chosen), []
        for _ in range(3):
            try:
                with harness.cairn_warnings("error"):
                    compiled(torch.randn(256, 64)).backward()
            except cairn.torch.CairnWarning as warning:
                told.append(str(warning))
        self.assertTrue(told and not any("could not be run" in text for text in told), told)
        self.assertEqual(chosen.report.unplanned, [])

    def test_backward_passes_that_are_never_measured(self):
        """Tests that measured forward passes alone are no reason to call a promise kept, if each backward pass runs
        under another profiler."""
        chosen, model = backend(), two_layers()
        compiled, kept = torch.compile(model, backend=chosen), []
        for _ in range(3):
            loss = compiled(torch.randn(4, 64)).sum()
            with _private.quiet_profiler(), torch.profiler.profile(profile_memory=True):
                loss.backward()
            kept.append(chosen.report.kept)
        self.assertEqual(kept, [None, None, None])
        self.assertIn("something else recorded memory", chosen.report.unknown[0])

    def test_a_result_whose_gradient_nobody_asks_for(self):
        """Tests runs that are freed without a backward pass. After such a run, the report compares the forward pass
        with the promised peak, until a backward pass has run."""
        chosen, model, x = backend("min"), two_layers(), torch.randn(4, 64)
        compiled = torch.compile(model, backend=chosen)
        found = []
        for step in (lambda: compiled(x), lambda: compiled(x), lambda: compiled(x).sum().backward()):
            result = step()
            found.append((chosen.report.kept, chosen.report.unknown))
            del result
        self.assertEqual(found, [(None, ["graph 0 has run no backward pass"]), (True, []), (True, [])])
        graph = chosen.report.graphs[0]
        self.assertLessEqual(graph.measured_forward, graph.promised_forward)
        self.assertLessEqual(graph.measured, graph.promised)

    def test_whatever_the_backend_does(self):
        """Tests that whichever part of the backend raises an error, the model runs without a budget, with one
        warning."""
        model, x = two_layers(), torch.randn(4, 64)
        expected = model(x)
        for part in (f"{_private.__name__}.bound_sizes", "cairn.torch._backend.compiling.partition",
                     "cairn.torch._backend.compiling.Measured", f"{_private.__name__}.boxed",
                     f"{_private.__name__}.called_boxed", f"{_private.__name__}.aot_autograd"):
            with self.subTest(part), unittest.mock.patch(part, side_effect=LookupError("no such\nthing")):
                torch._dynamo.reset()
                chosen = backend()
                found, told = harness.told_by(lambda: torch.compile(model, backend=chosen)(x))
                self.assertTrue(torch.equal(found, expected))
                self.assertEqual(told, ["this graph runs without a budget, as it cannot be scheduled: LookupError: no such"])
                self.assertEqual(chosen.report.graphs, [])

    def test_a_schedule_that_does_not_run(self):
        """Tests a schedule whose first run fails. The call falls back to the unscheduled model, which draws the same
        random numbers as without Cairn."""
        original = cairn.torch._backend.compiling.partition

        def broken(*arguments, **options):
            forward, *rest = original(*arguments, **options)
            forward.graph.find_nodes(op="call_function", target=torch.ops.aten.gelu.default)[-1].target = operator.concat
            forward.recompile()
            return forward, *rest

        model, inputs = harness.gpt(layers=1)
        torch.manual_seed(3)
        expected = model(*inputs)
        with unittest.mock.patch("cairn.torch._backend.compiling.partition", broken):
            chosen = backend()
            compiled = torch.compile(model, backend=chosen)
            torch.manual_seed(3)
            found, told = harness.told_by(lambda: compiled(*inputs))
            self.assertTrue(torch.equal(found, expected))
            self.assertEqual(told, ["graph 0 runs without a budget, as its schedule could not be run: TypeError: concat "
                                    "expected 2 arguments, got 1"])
            self.assertEqual(chosen.report.graphs, [])
            self.assertEqual(harness.told_by(lambda: compiled(*inputs).backward())[1], [])
            torch._dynamo.reset()
            with self.assertRaisesRegex(TypeError, "concat expected 2 arguments"):
                torch.compile(model, backend=backend(fallback=False))(*inputs)

    def test_an_error_of_the_model_itself(self):
        """Tests an error that the model itself raises. It is passed on unchanged, and the next call tries the schedule
        again."""
        model, (tokens, targets) = harness.gpt(layers=1)
        chosen = backend()
        compiled = torch.compile(model, backend=chosen)
        with self.assertRaises(IndexError):
            compiled(tokens + 1000, targets)
        compiled(tokens, targets).backward()
        self.assertTrue(chosen.report.graphs[0].kept)

    def test_an_error_of_the_model_itself_leaves_its_buffers_alone(self):
        """Tests that a call that fails because of the model writes no buffers, as with AOTAutograd, and that the next
        call writes them."""
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.norm = torch.nn.Embedding(10, 64), torch.nn.BatchNorm1d(64)
                self.register_buffer("seen", torch.zeros(()))

            def forward(self, x, words):
                self.seen += 1
                return (torch.tanh(self.norm(x)) * self.words(words)).square().mean()

        x, words = torch.randn(64, 64), torch.arange(64) % 10
        for training in (True, False):
            found = []
            for chosen in ("aot_eager", backend("100%"), backend("min")):
                torch._dynamo.reset()
                torch.manual_seed(0)
                model = Model()
                compiled = torch.compile(model, backend=chosen)
                with torch.set_grad_enabled(training):
                    with self.assertRaises(IndexError):
                        compiled(x, words + 1)
                    self.assertEqual((model.seen.item(), model.norm.num_batches_tracked.item()), (0, 0))
                    compiled(x, words)
                found.append(list(model.buffers()))
            for other in found[1:]:
                self.assertTrue(all(map(torch.equal, found[0], other)))

    def test_an_error_that_comes_once(self):
        """Tests that an error in the user's code is passed on, and does not count as a failure of the schedule."""
        calls = []

        @torch.library.custom_op("cairn_tests::once", mutates_args=())
        def once(x: torch.Tensor) -> torch.Tensor:
            calls.append(1)
            if len(calls) == 1:
                raise TimeoutError("told to stop")
            return x.clone()

        once.register_fake(torch.empty_like)
        once.register_autograd(lambda ctx, gradient: gradient)
        model, chosen = two_layers(), backend()
        compiled = torch.compile(lambda x: model(once(x)).square().mean(), backend=chosen)
        with self.assertRaisesRegex(TimeoutError, "told to stop"):
            compiled(torch.randn(8, 64))
        self.assertEqual(len(calls), 1)
        compiled(torch.randn(8, 64)).backward()
        self.assertEqual(chosen.report.unplanned, [])

    def test_operators_of_other_packages_that_are_pure(self):
        """Tests that custom operators run again only if declare_pure() has been called for them."""
        calls, x = [], torch.randn(64, 64)

        @torch.library.custom_op("cairn_tests::pure", mutates_args=())
        def pure(x: torch.Tensor) -> torch.Tensor:
            calls.append(1)
            return x.sin()

        pure.register_fake(torch.empty_like)
        pure.register_autograd(lambda ctx, gradient: gradient * ctx.saved_tensors[0].cos(),
                               setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
        layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(6))

        def loss():
            y = x
            for layer in layers:
                y = pure(layer(y)).exp().tanh()
            return y.square().mean()

        found = []
        for declares in harness.afresh((False, True)):
            if declares:
                cairn.torch.declare_pure(pure)
            chosen = backend("min", fallback=False)
            compiled = torch.compile(loss, backend=chosen)
            for _ in range(2):
                calls.clear()
                layers.zero_grad()
                compiled().backward()
            found.append([p.grad for p in layers.parameters()])
            self.assertEqual(len(calls) > 6, declares)
            self.assertEqual(chosen.report.kept, True)
        self.assertTrue(all(map(torch.equal, *found)))

    def test_operators_that_are_not_pure(self):
        @torch.library.custom_op("cairn_tests::writes", mutates_args=("x",))
        def writes(x: torch.Tensor) -> torch.Tensor:
            return x.mul_(2).clone()

        @torch.library.custom_op("cairn_tests::draws", mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,))
        def draws(x: torch.Tensor) -> torch.Tensor:
            return torch.rand_like(x)

        for given in (writes, draws, torch.ops.aten.relu_, "aten::view"):
            with self.assertRaisesRegex(cairn.InputError, "writes, draws random numbers, or returns nothing or a view"):
                cairn.torch.declare_pure(given)
        for given in ("cairn_tests::nothing", "nothing", "", 3):
            with self.assertRaisesRegex(cairn.InputError, "there is no operator"):
                cairn.torch.declare_pure(given)

    def test_a_checkpoint_about_it_that_stops_early(self):
        """Tests a checkpoint around a compiled graph. The checkpoint runs the graph again, so the graph's buffers are
        written a second time. This must also hold if torch compiles the graph anew for the second run. The exception by
        which the checkpoint ends the recomputation early must not count as an error of the graph."""
        class Model(torch.nn.Module):
            def __init__(self, again):
                super().__init__()
                self.layers, self.norm, self.again, self.calls = two_layers(), torch.nn.BatchNorm1d(64), again, 0

            def forward(self, x):
                # Compiled code depends on this number, so torch compiles again whenever the number changes.
                self.calls += self.again
                return self.norm(self.layers(x)).square().mean() * (2.0 if self.calls > 100 else 1.0)

        for again in (0, 1):
            found = []
            for chosen in (None, backend("100%"), backend("min")):
                torch._dynamo.reset()
                model = Model(again)
                compiled = model if chosen is None else torch.compile(model, backend=chosen)
                for k in range(3):
                    torch.manual_seed(k)
                    x = torch.randn(64, 64, requires_grad=True)
                    torch.utils.checkpoint.checkpoint(compiled, x, use_reentrant=False).backward()
                found.append([x.grad, *model.buffers(), *(p.grad for p in model.parameters())])
                self.assertEqual(model.norm.num_batches_tracked, 6)
            for other in found[1:]:
                self.assertTrue(all(map(torch.equal, found[0], other)))

    def test_checkpoints_about_it_of_several_sizes(self):
        """Tests a checkpoint around a function that is called with several sizes. The first size has a graph for this
        size alone, and all later sizes share one graph for all sizes. When a checkpoint repeats a forward pass of the
        first size, it must run the graph of the first size again, although torch.compile would choose the shared graph
        by then."""
        def layers():
            torch.manual_seed(0)
            return torch.nn.Sequential(*[f() for _ in range(6) for f in (lambda: torch.nn.Linear(64, 64), torch.nn.GELU, torch.nn.Tanh)])

        def step(model, sizes, early_stop):
            losses = []
            for size in sizes:
                x = torch.randn(size, 64, requires_grad=True)
                with torch.utils.checkpoint.set_checkpoint_early_stop(early_stop):
                    losses.append(torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).square().mean())
            sum(losses).backward()

        for early_stop in (True, False):
            found = []
            for budget in (None, "100%", "70%", "50%", "min"):
                torch._dynamo.reset()
                torch.manual_seed(1)
                model = layers()
                compiled = model if budget is None else torch.compile(model, backend=backend(budget))
                for sizes in ((8, 64), (64, 8), (32, 8, 64)):
                    step(compiled, sizes, early_stop)
                found.append([p.grad for p in model.parameters()])
            for other in found[1:]:
                self.assertTrue(all(map(torch.equal, found[0], other)))

    def test_a_checkpoint_about_it_that_would_return_something_else(self):
        """Tests a checkpoint around a function whose graph for all sizes returns one result more, a size, than its
        graph for one size. If the second run uses another graph than the first run, an error must be raised."""
        w = torch.nn.Parameter(torch.randn(64, 64) / 8)

        def function(x):
            n = x.shape[0] * 2
            h = (x @ w).tanh()
            k = h.sin()
            torch._dynamo.graph_break()
            return ((h @ w).sin() * (1 / n) + k).tanh()

        compiled = torch.compile(function, backend=backend())
        inputs = [torch.randn(size, 64, requires_grad=True) for size in (8, 64)]
        losses = [torch.utils.checkpoint.checkpoint(compiled, x, use_reentrant=False).sum() for x in inputs]
        with self.assertRaisesRegex(torch.utils.checkpoint.CheckpointError, "other inputs or results"):
            sum(losses).backward()

    def test_a_checkpoint_about_it_that_would_run_another_function(self):
        """Tests that an error is raised if the function that a checkpoint runs again has other inputs than the first
        time."""
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second, self.calls = two_layers(), two_layers(), 0

            def forward(self, x):
                self.calls += 1
                return (self.first if self.calls % 2 else self.second)(x).tanh().square().mean()

        x = torch.randn(8, 64, requires_grad=True)
        loss = torch.utils.checkpoint.checkpoint(torch.compile(Model(), backend=backend()), x, use_reentrant=False)
        with self.assertRaisesRegex(torch.utils.checkpoint.CheckpointError, "chose another graph for the recomputation"):
            loss.backward()

    def test_a_budget_that_cannot_be_met_is_an_error_all_the_same(self):
        with self.assertRaises(cairn.torch.InfeasibleError):
            torch.compile(two_layers(), backend=backend(1000))(torch.randn(8, 64))

    def test_suppressed_errors(self):
        """Tests that with torch._dynamo.config.suppress_errors, no error is raised, but a warning contains the error's
        text."""
        model, x = two_layers(), torch.randn(8, 64)
        for options, given, reason in (({"budget": 1000}, {}, "InfeasibleError: .* cannot be met"),
                                       ({"budget": 1000, "fallback": False}, {}, "InfeasibleError: .* cannot be met"),
                                       ({}, {"mode": "max-autotune"}, "InputError: mode: ")):
            with self.subTest(reason), torch._dynamo.config.patch(suppress_errors=True):
                torch._dynamo.reset()
                found, told = harness.told_by(lambda: torch.compile(model, backend=backend(**options), **given)(x))
                self.assertTrue(torch.equal(found, model(x)))
                self.assertRegex(told[0], f"without a budget.* {reason}")
                self.assertEqual(len(told), 1)
