"""Tests steps in which several graphs hold memory at the same time. Promised and measured peaks must count the sum of
this memory, and the report must say so."""

import itertools
import threading
import unittest

import cairn.torch
import harness
import torch
from step_models import Halves, Layer, Loss, Quarters, Shared, Skips, Writes, measured

WORK = 20_000


def backend(budget="70%", **options):
    """Returns a backend that plans each graph alone."""
    return cairn.torch.backend(budget, **{"fallback": False, "work_limit": WORK, "together": False, **options})


class Together(harness.Fresh):
    def setUp(self):
        super().setUp()
        self.x = torch.randn(64, 64)

    def run_steps(self, step, model):
        """Runs three steps. Returns (report, texts of warnings, the measured bytes of the third step)."""
        model.zero_grad()
        with harness.told() as told:
            for _ in range(2):
                step()
                model.zero_grad()
            really = measured(step, model.parameters())
        return cairn.torch.last_report(), told, really

    def assert_promised(self, report, really):
        """Checks that the promised peak is at least the measured one, and at most a tenth above it."""
        self.assertGreaterEqual(report.promised, really)
        self.assertLessEqual(report.promised, 1.1 * really)
        self.assertGreaterEqual(report.promised, max(g.promised for g in report.graphs))
        self.assertEqual(report.kept, True)
        self.assertLessEqual(report.measured, report.promised)

    def test_a_graph_that_gives_a_shared_parameter_no_gradient(self):
        """Tests a graph that reads a parameter only under detach(). It adds nothing to the gradient that another graph
        of the step has given the parameter, so no warning may say so."""
        features, head, probe = torch.nn.Linear(64, 64), torch.nn.Linear(64, 1), torch.nn.Linear(64, 1)
        chosen = backend("min")
        one = torch.compile(lambda x: head(features(x).relu()).square().mean(), backend=chosen)
        two = torch.compile(lambda x: probe(features(x).detach().relu()).square().mean(), backend=chosen)
        with harness.cairn_warnings("error"):
            for _ in range(3):
                for parameter in (*features.parameters(), *head.parameters(), *probe.parameters()):
                    parameter.grad = None
                one(self.x).backward()
                two(self.x).backward()
        self.assertEqual((chosen.report.kept, len(chosen.report.graphs)), (True, 2))

    def test_gradients_that_the_forward_pass_computes(self):
        """Tests a layer whose gradient is zero, because a random operation cuts it off. The forward pass computes this
        gradient, which is resident like all gradients of parameters, so it may not count in the measured peak."""
        class Cut(harness.Layers):
            def forward(self, x):
                x = torch.normal(self.layers[1](self.layers[0](x).tanh()), 0.1)
                return self.layers[2](x).tanh().square().mean()

        model = Cut(count=3, width=256)
        reference = harness.train(model, (torch.randn(16, 256),), harness.unscheduled())
        for budget in ("100%", "70%", "min"):
            with self.subTest(budget=budget), harness.cairn_warnings("error"):
                step = harness.train(model, (torch.randn(16, 256),), backend(budget))
                (graph,) = cairn.torch.last_report().graphs
                self.assertEqual((graph.kept, graph.measured), (True, graph.promised))
                self.assertEqual(step.gradients.keys(), reference.gradients.keys())

    def test_twelve_blocks_compiled_each_for_itself(self):
        model = torch.nn.Sequential(*[Layer(dropout=0.1) for _ in range(12)], Loss())
        chosen = backend("min")
        for block in model:
            block.compile(backend=chosen)
        report, told, really = self.run_steps(lambda: model(self.x).backward(), model)
        self.assert_promised(report, really)
        self.assertGreater(report.promised, 2 * max(g.promised for g in report.graphs))
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0], "^graph 1 runs while graph 0 holds .* compile the whole model rather than its blocks")
        self.assertIn("alive at once", str(report))

    def test_twelve_backends(self):
        model = torch.nn.Sequential(*[Layer() for _ in range(11)], torch.nn.Sequential(Layer(), Loss()))
        with torch._dynamo.config.patch(recompile_limit=40):
            for block in model:
                block.compile(backend=backend("95%"))
            report, told, really = self.run_steps(lambda: model(self.x).backward(), model)
        self.assert_promised(report, really)
        self.assertEqual(len(told), 2)
        self.assertRegex(told[0], "graph 0 of another backend")
        self.assertRegex(told[1], "add up to .* above the budget of")

    def test_backends_that_were_alive_at_once_say_the_same(self):
        parts = [Layer(), torch.nn.Sequential(Layer(), Loss())]
        chosen = [backend("min"), backend("min")]
        for part, own in zip(parts, chosen):
            part.compile(backend=own)
        model = torch.nn.Sequential(*parts)
        self.run_steps(lambda: model(self.x).backward(), model)
        one, other = (own.report for own in chosen)
        self.assertEqual((one.promised, one.measured, one.kept), (other.promised, other.measured, True))
        self.assertGreater(one.promised, max(g.promised for r in (one, other) for g in r.graphs))

    def test_graph_breaks(self):
        for model, graphs in ((Halves(), 2), (Quarters(), 4)):
            for budget in ("min", "95%"):
                with self.subTest(graphs=graphs, budget=budget):
                    torch._dynamo.reset()
                    compiled = torch.compile(model, backend=backend(budget))
                    report, told, really = self.run_steps(lambda: compiled(self.x).backward(), model)
                    self.assertEqual(len(report.graphs), graphs)
                    self.assert_promised(report, really)
                    self.assertEqual(len(told), 1 if budget == "min" else 2)
                    self.assertIn("TORCH_LOGS=graph_breaks", told[0])

    def test_code_outside_of_graphs_is_said_and_measured(self):
        parts = [Layer(), torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh()) for _ in range(30)]),
                 torch.nn.Sequential(Layer(), Loss())]
        model, chosen = torch.nn.Sequential(*parts), backend("min")
        parts[0].compile(backend=chosen)
        parts[2].compile(backend=chosen)
        with self.assertRaisesRegex(cairn.InputError, "measure_step: the step has compiled graphs"):
            model(self.x).backward()
            model.zero_grad()
            torch._dynamo.reset()
            cairn.torch.measure_step(lambda: model(self.x).backward())
        report, _, really = self.run_steps(lambda: model(self.x).backward(), model)
        self.assertGreater(really, 2 * report.promised)
        self.assertIn("differentiable code runs outside of graphs, and what it takes is in no promise: ", str(report))
        model.zero_grad()
        result = cairn.torch.measure_step(lambda: model(self.x).backward() or 7)
        self.assertEqual(result, 7)
        gradients = sum(p.numel() * 4 for p in model.parameters())
        self.assertTrue(really <= report.whole_step <= really + gradients, (really, report.whole_step, gradients))
        self.assertIn("the whole step, with new gradients", str(report))
        with torch.profiler.profile(), self.assertRaisesRegex(cairn.InputError, "measure_step: a profiler"):
            cairn.torch.measure_step(lambda: self.fail("the step has run"))

    def test_a_function_whose_forward_pass_is_a_graph_is_outside(self):
        """Tests a torch.autograd.Function whose forward pass becomes a graph. This graph has no backward pass. What the
        function saves, and its backward pass, belong to no graph, and the report must say so."""
        class Function(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                torch._dynamo.graph_break()
                ctx.save_for_backward(x.sin())
                return x.cos()

            @staticmethod
            def backward(ctx, gradient):
                return -gradient * ctx.saved_tensors[0]

        layers = torch.nn.ModuleList([Layer(), Layer()])
        compiled = torch.compile(lambda x: layers[1](Function.apply(layers[0](x))).square().mean(), backend=backend("min"))
        report, _, _ = self.run_steps(lambda: compiled(self.x).backward(), layers)
        self.assertTrue(report.outside)
        self.assertIn("outside of graphs", str(report))

    def test_graphs_that_follow_each_other_have_nothing_outside(self):
        model = Halves()
        compiled = torch.compile(model, backend=backend("min"))
        report = self.run_steps(lambda: compiled(self.x).backward(), model)[0]
        self.assertFalse(report.outside)
        self.assertNotIn("outside of graphs", str(report))

    def test_convolutions_and_batch_norm(self):
        def layer():
            return torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU())

        self.x = torch.randn(4, 8, 16, 16)
        model = Halves(layer=layer)
        compiled = torch.compile(model, backend=backend("min"))
        self.assert_promised(*self.run_steps(lambda: compiled(self.x).backward(), model)[::2])

    def test_several_forwards_before_a_backward(self):
        model = torch.nn.Sequential(*[Layer() for _ in range(3)], Loss())
        compiled = torch.compile(model, backend=backend("90%", accumulate=True))

        def step():
            for loss in [compiled(self.x) for _ in range(4)]:
                loss.backward()

        report, told, really = self.run_steps(step, model)
        self.assertEqual(len(report.graphs), 1)
        self.assertGreaterEqual(report.promised, really)
        self.assertRegex(told[0], "^graph 0 runs again while ")

    def test_results_of_graphs_without_a_backward_pass(self):
        """Tests a graph whose backward pass reads a result of an earlier graph that has no backward pass. The result is
        an input of the later graph, and a plan of the later graph alone does not count inputs. The promised peak of the
        step must include the result."""
        weight = torch.nn.Parameter(torch.randn(256))
        x = torch.randn(256, 256)

        def loss_of(x):
            given = x * 2 + 1
            torch._dynamo.graph_break()
            return (((given * weight).sin() * weight).tanh() * weight).mean()

        for budget in harness.afresh(("100%", "min")):
            compiled = torch.compile(loss_of, backend=backend(budget))
            report, _, really = self.run_steps(lambda: compiled(x).backward(), torch.nn.ParameterList([weight]))
            self.assertEqual((report.promised, report.measured, report.kept), (really, really, True))
        torch._dynamo.reset()
        # Within this limit, a plan of the later graph alone keeps one more value of the size of ``x``. Together with
        # the result of the earlier graph, this plan exceeds the limit.
        limit = report.promised + x.nbytes // 2
        for together in harness.afresh((False, True)):
            compiled = torch.compile(loss_of, backend=backend(limit, together=together))
            report, told, really = self.run_steps(lambda: compiled(x).backward(), torch.nn.ParameterList([weight]))
            self.assertGreater(really, limit)
            self.assertEqual((report.promised, report.measured), (really, really))
            self.assertEqual(len(told), 1)
            self.assertRegex(told[0], "^budgets hold for each graph, and .* above the budget of [0-9.]+ MiB$")

    def test_results_that_only_the_caller_holds_in_the_step(self):
        """Tests a result of a graph without a backward pass that no other graph reads. The caller holds it, so it counts
        until the step has ended. The result of an evaluation is resident, and must not count in the next step."""
        weight = torch.nn.Parameter(torch.randn(256))
        x = torch.randn(256, 256)

        def loss_and_part(x):
            part, given = x.sin(), x * 2 + 1
            torch._dynamo.graph_break()
            return ((given * weight).sin() * weight).tanh().mean(), part

        compiled = torch.compile(loss_and_part, backend=backend("min"))
        kept = []

        def step():
            loss, part = compiled(x)
            loss.backward()
            kept.append(part)

        report, _, really = self.run_steps(step, torch.nn.ParameterList([weight]))
        self.assertEqual((report.promised, report.measured, report.kept), (really, really, True))
        with torch.no_grad():
            kept.append(compiled(x))
        again, _, really = self.run_steps(step, torch.nn.ParameterList([weight]))
        self.assertEqual((again.promised, really), (report.promised, really))

    def test_a_saved_result_that_the_caller_still_holds(self):
        """Tests a graph that returns a result, which it also saves. After the graph's backward pass, the result is in
        memory only if the caller holds it. It must then count in the backward pass that follows."""
        model = torch.nn.ModuleList([torch.nn.Linear(64, 1024), torch.nn.Linear(64, 256)])

        def loss_and_result(x):
            y = model[1](x).tanh()
            return y.square().mean(), y

        promised = []
        for holds in (True, False):
            torch._dynamo.reset()
            chosen = backend("100%")
            loss = torch.compile(lambda x: model[0](x).sin().cos().square().mean(), backend=chosen)
            other = torch.compile(loss_and_result, backend=chosen)

            def step():
                first = loss(self.x)
                second, y = other(self.x)
                if not holds:
                    del y
                torch.autograd.backward((first, second))

            report, _, really = self.run_steps(step, model)
            self.assertEqual((report.promised, report.measured, report.kept), (really, really, True))
            self.assertEqual(report.together.at, "the backward pass of graph 0")
            promised.append(report.promised)
        self.assertEqual(promised[0] - promised[1], 64 * 256 * 4)

    def test_a_backward_pass_that_a_hook_runs(self):
        """Tests a hook of a result that trains another model. The gradient of the result, which one graph has computed
        and another will read, is in memory while the graphs of the other model run. It can be a sum of gradients."""
        first, second, other = (torch.nn.Parameter(torch.randn(64)) for _ in range(3))
        x = torch.ones(256, 64)

        def trained(reads):
            chosen = backend("100%")
            features, loss, beside = (torch.compile(f, backend=chosen) for f in (
                lambda x: (x * first).sin(), lambda x: (x.view(-1, 2, 64) * second).sin().sum(),
                lambda x: ((x * other).sin().exp().sin() * x).sin().sum()))

            def train(_):
                with torch.enable_grad():
                    beside(x).backward()

            def step():
                result = features(x)
                result.register_hook(train)
                losses = [loss(result) for _ in range(reads)]
                del result
                torch.autograd.backward(losses)

            return self.run_steps(step, torch.nn.ParameterList([first, second, other]))

        for reads in (1, 2):
            torch._dynamo.reset()
            report, _, really = trained(reads)
            self.assertEqual((report.promised, report.measured, report.kept), (really, really, True))

    def test_results_that_pile_up_do_not_count(self):
        """Tests a graph without a backward pass that runs again and again with gradients enabled, while the caller keeps
        all results. They are resident, and count neither for the next run nor for a training that follows."""
        weight = torch.nn.Parameter(torch.randn(256))
        x, kept = torch.randn(256, 256), []
        frozen = torch.compile(lambda x: (x * 2).sin(), backend=backend("min"))
        promised = []
        for _ in range(4):
            kept.append(frozen(x))
            promised.append(cairn.torch.last_report().promised)
        self.assertEqual(len(set(promised)), 1, promised)
        compiled = torch.compile(lambda x: (x * weight).sin().mean(), backend=backend("min"))
        report, _, really = self.run_steps(lambda: compiled(x).backward(), torch.nn.ParameterList([weight]))
        # of all kept results, only the last one counts, in the first step
        self.assertLessEqual(report.promised, really + x.nbytes)

    def test_a_frozen_graph_that_runs_several_times_in_each_step(self):
        weight = torch.nn.Parameter(torch.randn(64, 64))
        inputs = [torch.randn(256, 64) for _ in range(4)]
        chosen = backend("100%")
        frozen = torch.compile(lambda x: x.sin() * 2, backend=chosen)
        head = torch.compile(lambda x: (x @ weight).exp().sum(), backend=chosen)

        def step():
            held = [frozen(x) for x in inputs]
            head(inputs[0]).backward()
            return len(held)

        report, _, really = self.run_steps(step, torch.nn.ParameterList([weight]))
        self.assertEqual((report.promised, report.measured, report.kept), (really, really, True))

    def test_a_result_of_a_graph_that_another_graph_writes_is_not_outside(self):
        weight = torch.nn.Parameter(torch.randn(64))

        def loss_of(x):
            buffer = x * 0 + 1
            torch._dynamo.graph_break()
            buffer.mul_((weight * 2).sin())
            torch._dynamo.graph_break()
            return ((buffer * weight).sin() * weight).mean()

        for budget in harness.afresh(("100%", "min")):
            compiled = torch.compile(loss_of, backend=backend(budget))
            report, _, _ = self.run_steps(lambda: compiled(self.x).backward(), torch.nn.ParameterList([weight]))
            self.assertFalse(report.outside)

    def test_graphs_that_together_take_more_than_promised(self):
        """Tests a forward pass that takes more than was promised for it, but less than the peak of its graph. If the
        graphs together then exceed their promised peak, a warning and the report must say so."""
        model = torch.nn.Sequential(*[Layer() for _ in range(2)], Loss())
        chosen = backend("min", together=False)
        for block in model:
            block.compile(backend=chosen)
        model(self.x).backward()
        report = cairn.torch.last_report()
        self.assertEqual((report.kept, report.broken_by), (True, []))
        report.together.measured = 0
        report.together.promised = promised = report.promised - 28
        for graph in report.graphs:
            graph.measured_forward, graph.measured_backward = graph.promised_forward, graph.promised_backward
            graph.promised_forward -= 28
            graph.promised_backward -= 28
        model.zero_grad()
        with harness.told() as told:
            model(self.x).backward()
        self.assertEqual(report.kept, False)
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0], r"^graphs that are alive at once: promised .* \(28 bytes more\)")
        self.assertRegex(report.broken_by[0], "^the (forward|backward) pass of graph")
        self.assertIn("broken by   the", str(report))
        self.assertEqual(report.promised, promised)

    def test_several_forwards_before_the_first_backward_is_measured(self):
        """Tests several forward passes before the first backward pass. Inputs of the earlier runs must be recognised as
        such, although inputs of the last run have other addresses."""
        layers = [layer for _ in range(3) for layer in (torch.nn.Linear(64, 64), torch.nn.GELU())]
        compiled = torch.compile(torch.nn.Sequential(*layers), backend=backend("min"))
        results = [compiled(torch.randn(32, 64)) for _ in range(3)]
        results[0].sum().backward()
        report = cairn.torch.last_report()
        self.assertEqual(report.kept, True)
        self.assertEqual(report.graphs[0].broken_by, "")
        self.assertEqual(report.graphs[0].measured, report.graphs[0].promised)

    def test_gradients_of_several_forwards_that_are_added_up(self):
        """Tests a backward pass that adds up gradients of several forward passes. Autograd then keeps gradients of
        earlier runs, in addition to the new gradients of the same size, which are resident. The promised peak must
        include the kept gradients."""
        model = torch.nn.Sequential(*[Layer(dropout=0.1) for _ in range(4)], Loss())
        compiled = torch.compile(model, backend=backend("min"))

        def step():
            sum(compiled(x) for x in self.x.chunk(2)).backward()

        report, _, _ = self.run_steps(step, model)
        gradients = sum(p.numel() * p.element_size() for p in model.parameters())
        really = measured(step)
        self.assertGreater(really, report.graphs[0].promised + 1.5 * gradients)
        self.assertGreaterEqual(report.promised + gradients, really)
        self.assertLessEqual(report.promised + gradients, 1.1 * really)
        self.assertEqual(report.kept, True)

    def test_sums_of_gradients_of_several_graphs(self):
        """Tests that the promised peak includes sums of gradients of a parameter or a result. Autograd computes such
        sums out of place between graphs."""
        for kind, together, old in harness.afresh(itertools.product((Shared, Skips), (False, True), (False, True))):
            with self.subTest(kind=kind.__name__, together=together, old=old):
                model, x = kind(), torch.randn(16, 256) if kind is Shared else torch.randn(512, 64)
                compiled = torch.compile(model, backend=backend("min", together=together, accumulate=old))

                def step():
                    compiled(x).backward()

                report, _, _ = self.run_steps(step, model)
                if not old:
                    model.zero_grad()
                really = measured(step)
                gradients = 0 if old else sum(p.numel() * p.element_size() for p in model.parameters())
                self.assertGreater(len(report.graphs), 1)
                self.assertLessEqual(really, report.promised + gradients)
                self.assertLessEqual(report.promised + gradients, 1.03 * really)
                self.assertEqual(report.kept, True)
                if kind is Shared:
                    self.assertRegex(str(report), "at most, in autograd's sum of gradients after the backward pass of graph")

    def test_zeros_for_results_that_another_graph_writes(self):
        for together in harness.afresh((False, True)):
            with self.subTest(together=together):
                model, self.x = Writes(), torch.randn(512, 64)
                compiled = torch.compile(model, backend=backend("min", together=together))
                report, _, really = self.run_steps(lambda: compiled(self.x).backward(), model)
                self.assertLessEqual(really, report.promised)
                self.assertLessEqual(report.promised, 1.05 * really)
                self.assertEqual(report.kept, True)

    def test_gradients_that_hooks_or_their_type_replace(self):
        """Tests parameters whose gradients autograd replaces by new tensors, because a hook returns another gradient, or
        because the parameter's ``grad_dtype`` differs from the dtype of the graph's gradient. The replaced gradients
        stay in memory in addition to the new ones. The promised peak must include both with accumulate=True; without
        it, a warning must recommend accumulate=True."""
        def with_hooks(model):
            for p in model.parameters():
                p.register_hook(lambda gradient: 0.5 * gradient)

        def of_64_bits(model):
            for p in model.parameters():
                p.grad_dtype = torch.float64

        replace = [with_hooks, *([of_64_bits] if hasattr(torch.Tensor, "grad_dtype") else [])]
        for change in harness.afresh(replace):
            with self.subTest(change.__name__):
                model = Halves(broken=False)
                change(model)
                for counted in (False, True):
                    torch._dynamo.reset()
                    compiled = torch.compile(model, backend=backend("min", accumulate=counted))
                    report, told, peak = self.run_steps(lambda: compiled(self.x).backward(), model)
                    self.assertEqual(["accumulate=True" in text for text in told], [] if counted else [True])
                    self.assertIs(report.promised >= peak, counted)

    def test_gradients_that_are_returned_are_not_added_up(self):
        model, chosen = Layer(), backend("min")
        compiled = torch.compile(model, backend=chosen)
        with harness.cairn_warnings("error"):
            compiled(self.x).sum().backward()
            torch.autograd.grad(compiled(self.x).sum(), list(model.parameters()))
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "gradients are added to those of earlier steps"):
            compiled(self.x).sum().backward()

    def test_a_block_that_is_called_four_times(self):
        """Tests that the promise is kept if a block is called four times, and one backward pass adds up the gradients
        of all calls."""
        block = Layer(dropout=0.1)
        compiled = torch.compile(block, backend=backend("min"))

        def step():
            x = self.x
            for _ in range(4):
                x = compiled(x)
            x.square().mean().backward()

        report, _, _ = self.run_steps(step, block)
        gradients = sum(p.numel() * p.element_size() for p in block.parameters())
        self.assertGreaterEqual(report.promised + gradients, measured(step))
        self.assertEqual(report.kept, True)

    def test_forwards_whose_backward_never_comes(self):
        """Tests forward passes whose backward pass never comes, such as those of evaluations with gradients enabled and
        of losses that were dropped. They must not be counted for ever."""
        model = torch.nn.Sequential(*[Layer() for _ in range(3)], Loss())
        compiled = torch.compile(model, backend=backend("90%"))
        with harness.cairn_warnings("error"):
            for _ in range(3):
                compiled(self.x)
            kept = [compiled(self.x).detach() for _ in range(3)]
            loss = compiled(self.x)
            loss.backward()
            model.zero_grad()
            other = compiled(self.x)
            del other
            compiled(self.x).backward()
        report = cairn.torch.last_report()
        self.assertEqual((report.promised, report.together), (report.graphs[0].promised, None))
        self.assertEqual(len(kept), 3)
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "runs again while"):
            losses = [compiled(self.x) for _ in range(2)]
        self.assertGreater(report.promised, 1.5 * report.graphs[0].promised)
        self.assertEqual(len(losses), 2)

    def test_a_graph_that_is_retained_is_still_alive(self):
        model = torch.nn.Sequential(*[Layer() for _ in range(3)], Loss())
        compiled = torch.compile(model, backend=backend("100%", measure=False))
        loss = compiled(self.x)
        with harness.cairn_warnings("ignore"):
            loss.backward(retain_graph=True)
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "runs again while"):
            compiled(self.x)
        self.assertGreater(cairn.torch.last_report().promised, cairn.torch.last_report().graphs[0].saved)

    def test_results_that_autograd_has_behind_views_or_in_an_input_alone(self):
        """Tests graphs whose results reach autograd only through views, or only through an input that they write. Cairn
        must notice nevertheless that such a graph runs again while its first run still waits for its backward pass."""
        model = torch.nn.Sequential(*[Layer() for _ in range(3)])

        def views(x):
            y = model(x).view(8, 8, 64).transpose(0, 1).unsqueeze(0).transpose(2, 3).squeeze(0).permute(2, 0, 1)
            return y, y.transpose(0, 1)

        def written(x, out):
            out.copy_(model(x))

        def run(function, chosen):
            compiled = torch.compile(function, backend=chosen)
            if function is views:
                one, other = compiled(self.x)
                return one.square().mean() + other.sum()
            compiled(self.x, out := torch.zeros(64, 64))
            return out.square().mean()

        for function in (views, written):
            with self.subTest(function=function.__name__):
                found = []
                for chosen in ("aot_eager", backend("100%")):
                    torch._dynamo.reset()
                    model.zero_grad()
                    run(function, chosen).backward()
                    found.append([p.grad for p in model.parameters()])
                self.assertTrue(all(map(torch.equal, *found)))
                with self.assertWarnsRegex(cairn.torch.CairnWarning, "runs again while"):
                    losses = [run(function, chosen) for _ in range(2)]
                self.assertEqual(len(losses), 2)
                del losses

    def test_autograd_that_is_compiled(self):
        """Tests torch's compiled autograd, under which the running node is unknown. The model writes buffers. Results
        must be the same, and the report must say that such steps are not measured."""
        from torch._dynamo import compiled_autograd

        found = []
        for chosen in harness.afresh(("aot_eager", backend("100%"))):
            model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.GELU(), torch.nn.BatchNorm2d(8), Loss())
            compiled, x = torch.compile(model, backend=chosen), torch.randn(8, 3, 16, 16)
            with compiled_autograd._enable(torch.compile(backend="eager")):
                for _ in range(2):
                    model.zero_grad()
                    compiled(x).backward()
            found.append([*model.buffers(), *(p.grad for p in model.parameters())])
        self.assertTrue(all(map(torch.equal, *found)))
        report = cairn.torch.last_report()
        self.assertEqual((report.measured, report.kept), (None, None))
        self.assertIn("but those of compiled autograd, which are not measured", report.unknown[0])

    def test_what_a_function_keeps_in_its_context_is_freed(self):
        """Tests a function that keeps a value in its context. The value must be freed as soon as it has been read, not
        only when the loss is freed."""
        class Model(harness.Layers):
            def forward(self, x):
                for layer in self.layers:
                    x = harness.Square.apply(layer(x)).sin()
                return x.mean()

        model, x, chosen = Model(), torch.randn(512, 64), backend("50%")
        compiled = torch.compile(model, backend=chosen)
        gradients = sum(p.numel() * 4 for p in model.parameters())

        def steps():
            for _ in range(3):
                loss = compiled(x)
                loss.backward()
                model.zero_grad()
            return loss

        steps()
        self.assertTrue(chosen.report.kept)
        _, peak, left = cairn.torch.measure_peak(steps)
        self.assertLessEqual(peak, chosen.report.promised + gradients)
        self.assertLess(left, 512)

    def test_passes_of_two_threads_at_the_same_time(self):
        barrier = threading.Barrier(1)

        class Meet(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, gradient):
                return meet(gradient)

        @torch.library.custom_op("cairn_test::meet", mutates_args=())
        def meet(x: torch.Tensor) -> torch.Tensor:
            barrier.wait(60)
            return x.clone()

        meet.register_fake(torch.empty_like)
        models = [torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)]
        chosen = backend("100%")
        compiled = [torch.compile(lambda x, m=m: Meet.apply(m(x).tanh()).square().mean(), backend=chosen) for m in models]
        for one in compiled * 2:
            one(self.x).backward()
        self.assertTrue(chosen.report.kept)
        barrier = threading.Barrier(2)
        with harness.told() as told:
            threads = [threading.Thread(target=lambda one=one: one(self.x).backward()) for one in compiled]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertRegex(" ".join(told), "runs while another thread runs")
        self.assertIsNone(chosen.report.kept)

    def test_without_gradients(self):
        """Tests a model without gradients. The result that one part passes to the next part is in memory while the next
        part runs, so the promised peak must include it."""
        model = Halves(layers=4).eval()
        compiled = torch.compile(model, backend=backend("min"))
        with torch.no_grad():
            report, told, really = self.run_steps(lambda: compiled(self.x), model)
        self.assert_promised(report, really)
        self.assertEqual(told, [])

    def test_checkpointed_blocks(self):
        """Tests checkpointed blocks. Only values that autograd holds must count, so that the promised peak is at most a
        fifth too high."""
        model = torch.nn.Sequential(*[Layer() for _ in range(6)], Loss())
        for block in model:
            block.compile(backend=(chosen := backend("100%")) if block is model[0] else chosen)

        def step():
            x = self.x
            for block in model[:-1]:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
            model[-1](x).backward()

        report, told, really = self.run_steps(step, model)
        self.assertGreaterEqual(report.promised, really)
        self.assertLessEqual(report.promised, 1.2 * really)

    def test_what_is_not_kept_is_not_said_to_be(self):
        """Tests that a broken promise is reported. Without calibration, scratch counts as 0, so the measured peak is
        above the promised one."""
        def layer():
            return torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.ReLU())

        self.x = torch.randn(4, 8, 32, 32)
        model = Halves(layers=4, layer=layer)
        compiled = torch.compile(model, backend=backend("min", calibrate=False))
        report, told, really = self.run_steps(lambda: compiled(self.x).backward(), model)
        self.assertGreater(really, report.promised)
        self.assertGreater(report.measured, report.promised)
        self.assertEqual(report.kept, False)


class WithCompiledAutograd(unittest.TestCase):
    """Tests compiled autograd. unittest sorts classes by name, so these tests run last. They must, because torch
    keeps the graph that compiled autograd has run."""

    def test_autograd_that_is_compiled_of_what_lies_beside_a_loss(self):
        from torch._dynamo import compiled_autograd

        found, weight, x = [], torch.randn(16, 16, requires_grad=True), torch.randn(64, 16)

        def pair(x):
            logits = (x @ weight).tanh()
            return logits.square().sum(), logits

        for chosen in harness.afresh(("aot_eager", backend("100%"))):
            weight.grad = None
            with compiled_autograd._enable(torch.compile(backend="eager")):
                torch.compile(pair, backend=chosen)(x)[1].sum().backward()
            found.append(weight.grad)
        self.assertTrue(torch.equal(*found))
