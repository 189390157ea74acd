"""Tests which rounds count when the graphs of a step are planned together: those of models that stop running, and those
in which earlier runs are left over."""

import functools
import re
import signal
import unittest
import warnings

import cairn
import cairn.torch
import torch
from cairn.torch._memory import together
from torch.utils.checkpoint import checkpoint

WORK = 2_000


class Wide(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.inner, self.function = torch.nn.Linear(64, 64), function

    def forward(self, x):
        return torch.tanh(self.function(self.inner(x)).exp().cos())


def sine(x):
    return x.sin()


class Other(Wide):
    """Has a function of its own to compile, although it computes the same as Wide."""

    def forward(self, x):
        return torch.tanh(self.function(self.inner(x)).exp().cos())


class Rounds(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter("ignore", cairn.torch.CairnWarning)

    def train(self, kind, backend, steps, skipped=()):
        """Trains some steps; those in ``skipped`` have no backward pass. Returns the Report."""
        blocks = [torch.compile(kind(sine), backend=backend, dynamic=False) for _ in range(4)]
        for number in range(steps):
            x = torch.randn(512, 64)
            for block in blocks:
                x = block(x)
            loss = x.square().mean()  # the loss of the step before is still alive while this one is computed
            if number not in skipped:
                loss.backward()
        return cairn.torch.last_report()

    def test_a_model_that_runs_once_does_not_block_the_next(self):
        alone = self.train(Other, cairn.torch.backend("50%", work_limit=WORK), 4)
        torch._dynamo.reset()
        backend = cairn.torch.backend("50%", work_limit=WORK)
        self.assertIsNone(self.train(Wide, backend, 1).step)
        behind = self.train(Other, backend, 4)
        self.assertEqual((behind.step.budget, behind.kept), (alone.step.budget, True))
        self.assertLessEqual(behind.promised, behind.step.budget)

    def test_a_run_without_a_backward_pass_raises_no_budget(self):
        usual = self.train(Wide, cairn.torch.backend("70%", work_limit=WORK), 7)
        torch._dynamo.reset()
        with_metric = self.train(Wide, cairn.torch.backend("70%", work_limit=WORK), 7, skipped=(3,))
        self.assertEqual(with_metric.step.budget, usual.step.budget)
        torch._dynamo.reset()
        begun_late = self.train(Wide, cairn.torch.backend("70%", work_limit=WORK), 7, skipped=(0,))
        self.assertEqual(begun_late.step.budget, usual.step.budget)

    def test_runs_that_are_left_over_in_every_second_round_count(self):
        """Tests a GAN: the step of the discriminator leaves a run of the generator behind, which is freed in the step
        of the generator."""
        def perceptron(inputs, outputs):
            sizes = (inputs, 128, 128, 128, outputs)
            return torch.nn.Sequential(*[part for a, b in zip(sizes, sizes[1:]) for part in (torch.nn.Linear(a, b), torch.nn.Tanh())])

        backend = cairn.torch.backend("1200KiB", work_limit=WORK)
        generator, discriminator = perceptron(16, 64), perceptron(64, 1)
        generate, judge = (torch.compile(model, backend=backend) for model in (generator, discriminator))
        for _ in range(5):
            noise, real = torch.randn(256, 16), torch.randn(256, 64)
            made = generate(noise)
            (judge(made.detach()).mean() - judge(real).mean()).backward()
            made = generate(noise + 1)  # the former result lives until here
            (-judge(made).mean()).backward()
            generator.zero_grad()
            discriminator.zero_grad()
        self.assertLessEqual(backend.report.promised, 1200 << 10)

    def test_a_stance_that_keeps_torch_from_compiling_the_plan(self):
        backend = cairn.torch.backend("50%", work_limit=WORK)
        self.assertIs(self.train(Wide, backend, 1).kept, True)
        with torch.compiler.set_stance("eager_on_recompile"):
            report = cairn.torch.last_report()
            self.assertIsNone(report.kept)
            self.assertIn("set_stance()", report.unknown[0])

    def test_a_step_whose_error_is_caught_leaves_the_report(self):
        backend = cairn.torch.backend("1%", work_limit=WORK)
        blocks = [torch.compile(Wide(sine), backend=backend, dynamic=False) for _ in range(2)]
        errors = 0
        for _ in range(4):
            try:
                blocks[1](blocks[0](torch.randn(512, 64))).square().mean().backward()
            except cairn.InfeasibleError:
                errors += 1
            self.assertLessEqual(len(cairn.torch.last_report().graphs), 2)
        self.assertEqual(errors, 2)

    def test_results_of_evaluations_that_are_freed_are_forgotten(self):
        compiled = torch.compile(lambda x: x.sin(), backend=cairn.torch.backend("100%", work_limit=WORK))
        kept = []
        with torch.no_grad():
            for number in range(400):
                result = compiled(torch.ones(8))
                if number < 100:
                    kept.append(result)
        self.assertLess(len(together._loose), 2 * len(kept) + 2 * together._FEW_LOOSE)
        self.assertGreaterEqual(len(together._loose), len(kept))

    def test_a_signal_handler_may_run_a_graph(self):
        layer = torch.nn.Linear(8, 8)
        backend = cairn.torch.backend("100%", work_limit=WORK)
        train = torch.compile(lambda x: layer(x).square().mean(), backend=backend)
        evaluate = torch.compile(lambda x: layer(x).sin(), backend=backend)
        x, calls, running = torch.randn(4, 8), [], []

        @torch.compiler.disable  # torch compiles a handler that interrupts its own code before the graph runs
        def handle(*_):
            if running:  # signals may come faster than a busy machine handles them
                return
            running.append(1)
            try:
                with torch.no_grad():
                    calls.append(evaluate(x))
            finally:
                running.clear()

        handle()
        train(x).backward()
        calls.clear()
        before = signal.signal(signal.SIGALRM, handle)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
            while len(calls) < 50:
                train(x).backward()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def test_signal_handlers_are_no_parts_of_a_step(self):
        """Tests handlers that run a graph, with and without gradients, between the forward and the backward pass of a
        step, and keep its result. Neither an object that can be called nor a functools.partial has code of its own."""
        def look(evaluate, enabled, *_):
            with torch.set_grad_enabled(enabled):
                held[:] = [evaluate(torch.randn(64, 32))]

        class Handler:
            def __init__(self, *given):
                self.given = given

            def __call__(self, *_):
                look(*self.given)

        held = []
        for kind, enabled in ((functools.partial, False), (functools.partial, True), (Handler, True)):
            with self.subTest(kind=kind, enabled=enabled):
                torch._dynamo.reset()
                chosen = cairn.torch.backend("97%", work_limit=WORK)
                model, other = (torch.nn.Sequential(torch.nn.Linear(32, width), torch.nn.GELU(), torch.nn.Linear(width, 32))
                                for width in (64, 96))
                run, judge = torch.compile(model, backend=chosen), torch.compile(lambda y: y.square().mean(), backend=chosen)
                evaluate = torch.compile(lambda x, other=other: other(x), backend=chosen)
                given = (look, evaluate, enabled) if kind is functools.partial else (evaluate, enabled)
                before = signal.signal(signal.SIGUSR1, kind(*given))
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        for _ in range(4):
                            model.zero_grad()
                            loss = judge(run(torch.randn(64, 32)))
                            signal.raise_signal(signal.SIGUSR1)
                            loss.backward()
                finally:
                    signal.signal(signal.SIGUSR1, before)
                self.assertEqual(cairn.torch.last_report().step.parts, 2)

    def test_what_checkpoints_hold_of_repeated_runs(self):
        """Tests a checkpoint around separately compiled blocks. The backward pass of the last block repeats all runs,
        and what they save stays in memory until their own backward passes, although autograd has freed the runs."""
        for budget in ("100%", "min"):
            with self.subTest(budget=budget):
                torch._dynamo.reset()
                chosen = cairn.torch.backend(budget, work_limit=WORK)
                blocks = [torch.nn.Sequential(torch.nn.Linear(16, 128), torch.nn.ReLU(), torch.nn.Linear(128, 16)) for _ in range(3)]
                first, second, third = (torch.compile(block, backend=chosen) for block in blocks)
                x = torch.randn(1024, 16)

                def step():
                    checkpoint(lambda x: third(second(first(x))), x, use_reentrant=False).square().mean().backward()

                for _ in range(4):
                    step()
                _, peak, _ = cairn.torch.measure_peak(step)
                gradients = sum(4 * p.numel() for block in blocks for p in block.parameters())
                self.assertLessEqual(peak, cairn.torch.last_report().promised + gradients)

    def test_what_checkpoints_hold_of_the_run_that_they_end_early(self):
        """Tests a checkpoint that ends with a graph. Its repeated run ends early, by an error, and autograd makes no
        graph of it. Here, the backward pass of an earlier graph comes first."""
        first, second = (torch.nn.Sequential(torch.nn.Linear(16, 128), torch.nn.ReLU(), torch.nn.Linear(128, 16)) for _ in range(2))
        chosen = cairn.torch.backend("100%", work_limit=WORK)
        left, right = torch.compile(first, backend=chosen), torch.compile(second, backend=chosen)
        x = torch.randn(1024, 16)

        def step():
            a, b = checkpoint(lambda x: (left(x), right(x)), x, use_reentrant=False)
            a.sum().backward()
            b.sum().backward()

        for _ in range(4):
            step()
        _, peak, _ = cairn.torch.measure_peak(step)
        gradients = sum(4 * p.numel() for p in (*first.parameters(), *second.parameters()))
        self.assertLessEqual(peak, cairn.torch.last_report().promised + gradients)

    def test_callers_whose_code_has_no_hash(self):
        """Tests a graph that is called by code with a dict among its constants, as torch 2.9 makes such code."""
        model = torch.compile(Wide(sine), backend=cairn.torch.backend("min", work_limit=WORK, fallback=False))

        def step():
            model(torch.randn(512, 64)).square().mean().backward()

        step.__code__ = step.__code__.replace(co_consts=(*step.__code__.co_consts, {}))
        self.assertRaises(TypeError, hash, step.__code__)
        step()
        self.assertTrue(cairn.torch.last_report().kept)

    def test_results_of_runs_whose_graph_of_autograd_is_freed_at_once(self):
        """Tests a result that goes on by detach(), as that of a generator to a discriminator. Autograd frees the run
        without a backward pass, before or after another graph has read the result, which stays in memory."""
        def before(make, judge, x):
            made = make(x).detach()
            return judge(made)

        def after(make, judge, x):
            made = make(x)
            return judge(made.detach())

        def never(make, judge, x):
            with torch.no_grad():
                made = make(x)
            return judge(made)

        for run in (before, after, never):
            with self.subTest(freed=run.__name__):
                torch._dynamo.reset()
                chosen = cairn.torch.backend("100%", work_limit=WORK)
                first, second = torch.nn.Linear(16, 512), torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU())
                make, judge = (torch.compile(f, backend=chosen) for f in (first, lambda x: second(x).square().mean()))
                for _ in range(3):
                    second.zero_grad()
                    run(make, judge, torch.randn(256, 16)).backward()
                report = cairn.torch.last_report()
                judged = next(graph for graph in report.graphs if graph.measured_backward)
                self.assertGreaterEqual(report.promised, judged.promised + 256 * 512 * 4)

    def test_an_actor_whose_first_run_has_no_backward_pass(self):
        """Tests a step of an actor and a critic. The critic reads an action without its graph, so the actor's first run
        never has a backward pass, but holds memory until the next step. The actor's own pass follows. The least budget
        must be that of the whole step."""
        def train(budget):
            torch._dynamo.reset()
            torch.manual_seed(0)

            def layers(width, out):
                return torch.nn.Sequential(torch.nn.Linear(32, width), torch.nn.GELU(), torch.nn.Linear(width, 32), torch.nn.LayerNorm(32),
                                           torch.nn.GELU(), torch.nn.Linear(32, out))

            chosen = cairn.torch.backend(budget, work_limit=WORK)
            actor, critic = layers(64, 32), layers(120, 1)
            act, value, judge = (torch.compile(f, backend=chosen) for f in (actor, critic, lambda y: y.square().mean()))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for _ in range(6):
                    torch.nn.ModuleList([actor, critic]).zero_grad()
                    x = torch.randn(64, 32)
                    action = act(x)
                    judge(value(action.detach())).backward()
                    judge(value(act(x))).backward()
            self.assertTrue(action.requires_grad)
            return cairn.torch.last_report()

        least = train("min")
        self.assertEqual(least.promised, least.step.promised)
        self.assertLess(least.promised, 0.6 * least.step.baseline)
        report = train(least.promised)
        self.assertLessEqual(report.promised, least.promised)
        with self.assertRaisesRegex(cairn.InfeasibleError, "a step of ") as caught:
            train(int(0.95 * least.promised))
        self.assertLessEqual(train(caught.exception.least_budget).promised, caught.exception.least_budget)

    def test_a_layer_that_trains_again_after_the_plan_was_made_without_it(self):
        def trained(chosen):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32))
            compiled, gradients = torch.compile(model, backend=chosen), []
            for number in range(7):
                model[2].requires_grad_(number not in (2, 3))
                model.zero_grad()
                loss = compiled(torch.randn(24, 32)).square().mean()
                if number == 1:  # two passes in a round, so that a plan follows, while the layer is frozen
                    loss = loss + compiled(torch.randn(24, 32)).square().mean()
                loss.backward()
                gradients += [None if p.grad is None else p.grad for p in model.parameters()]
            return gradients

        for one, other in zip(trained("aot_eager"), trained(cairn.torch.backend("100%", work_limit=WORK))):
            self.assertTrue((one is None and other is None) or torch.equal(one, other))

    def test_checkpoints_that_train_again(self):
        model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Linear(32, 32))

        def run(x):
            return checkpoint(lambda x: model(x).tanh(), x, use_reentrant=False).square().sum()

        step, found = torch.compile(run, backend=cairn.torch.backend("100%", work_limit=WORK)), []
        for number in range(4):
            model[1].requires_grad_(number > 1)
            model.zero_grad()
            step(torch.ones(8, 32)).backward()
            found.append(model[1].weight.grad is not None)
        self.assertEqual(found, [False, False, True, True])

    def test_regions_that_train_again(self):
        class Regions(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32)

            @torch.compiler.nested_compile_region
            def region(self, x):
                return torch.tanh(self.second(x))

            def forward(self, x):
                return self.region(self.first(x)).square().sum()

        model = Regions()
        compiled = torch.compile(model, backend=cairn.torch.backend("100%", work_limit=WORK))
        for number in range(5):
            model.second.requires_grad_(number > 1)
            model.zero_grad()
            compiled(torch.ones(8, 32)).backward()
        self.assertIsNotNone(model.second.weight.grad)

    def test_sums_of_gradients_stay_while_many_passes_run_within(self):
        shared = torch.nn.Parameter(torch.randn(256, 256) * 0.05)
        small = torch.nn.Parameter(torch.randn(256) * 0.05)

        def promised(count):
            torch._dynamo.reset()
            backend = cairn.torch.backend("100%", work_limit=WORK, together=False)
            first, last, between = (torch.compile(f, backend=backend) for f in (
                lambda x: torch.tanh(x @ shared), lambda x: torch.sin(x @ shared), lambda x: torch.tanh(x * small)))
            for _ in range(2):
                x = first(torch.ones(8, 256))
                for _ in range(count):
                    x = checkpoint(between, x, use_reentrant=True)
                last(x).sum().backward()
                shared.grad = small.grad = None
            return cairn.torch.last_report().promised

        few = promised(4)
        self.assertGreaterEqual(few, 256 * 256 * 4)
        self.assertGreaterEqual(promised(24), few)

    def train_gan(self, budget):
        """Trains a generator and a discriminator for five steps. The discriminator's own update is a round during
        which a run of the generator holds memory. Returns the backend's report."""
        def layers(width):
            return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.BatchNorm1d(64), torch.nn.GELU(), torch.nn.Linear(64, 32),
                                       torch.nn.GELU(), torch.nn.Linear(32, width))

        torch._dynamo.reset()
        torch.manual_seed(0)
        chosen = cairn.torch.backend(budget=budget, work_limit=WORK)
        models = layers(32), layers(8)
        make, judge = (torch.compile(model, backend=chosen) for model in models)
        for _ in range(5):
            for parameter in (p for model in models for p in model.parameters()):
                parameter.grad = None
            made = make(torch.randn(64, 32))
            (judge(torch.randn(64, 32)).square().mean() + judge(made.detach()).mean()).backward()
            judge(made).mean().backward()
        return cairn.torch.last_report()

    def test_the_least_budget_leaves_room_for_runs_of_other_rounds(self):
        """Tests the least budget that an error about a round names. A larger budget lets a run of another round hold
        more, too."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.assertRaisesRegex(cairn.InfeasibleError, "a step of 3 graphs: ") as caught:
                self.train_gan(82432)
            least = caught.exception.least_budget
            report = self.train_gan(least)
        self.assertLessEqual(report.measured, report.promised)
        self.assertLessEqual(report.promised, least)

    def distil(self, budget, widths=(64,), steps=4):
        """Trains a student of one or more compiled blocks, whose teacher runs between the forward and the backward
        pass. Returns (the report, the texts of all CairnWarnings, the gradients of the last step)."""
        def layers(width):
            return torch.nn.Sequential(torch.nn.Linear(32, width), torch.nn.GELU(), torch.nn.Linear(width, width), torch.nn.SiLU(),
                                       torch.nn.Linear(width, 32))

        torch._dynamo.reset()
        torch.manual_seed(0)
        chosen = cairn.torch.backend(budget=budget, work_limit=WORK) if budget else "aot_eager"
        blocks, teacher = torch.nn.ModuleList(map(layers, widths)), layers(256)
        compiled, teach = [torch.compile(block, backend=chosen) for block in blocks], torch.compile(teacher, backend=chosen)

        x = torch.randn(64, 32)

        def step():
            blocks.zero_grad()
            learned = x
            for block in compiled:
                learned = block(learned)
            with torch.no_grad():
                taught = teach(x)
            (learned - taught).square().mean().backward()

        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", cairn.torch.CairnWarning)
            for _ in range(steps - 1):
                step()
            if budget:
                cairn.torch.measure_step(step)
            else:
                step()
        texts = [str(warning.message) for warning in told if issubclass(warning.category, cairn.torch.CairnWarning)]
        report = cairn.torch.last_report() if budget else None
        return report, texts, [p.grad for p in blocks.parameters()]

    def test_a_graph_without_a_backward_pass_is_planned_with_the_step(self):
        """Tests a teacher that runs between the forward and the backward pass of its student. Both are planned
        together, so that the step keeps its budget."""
        for widths in ((64,), (64, 96)):
            with self.subTest(widths=widths):
                _, _, gradients = self.distil(None, widths)
                free = self.distil("100%", widths)[0]
                budget = int(0.85 * free.step.baseline)
                report, texts, found = self.distil(budget, widths)
                self.assertEqual([text for text in texts if "together within one budget" not in text
                                  and "in this first step" not in text], [])
                self.assertEqual(report.step.parts, len(widths) + 1)
                self.assertEqual(free.step.baseline, free.whole_step)
                self.assertEqual(report.step.baseline, free.step.baseline)
                self.assertLessEqual(report.step.promised, budget)
                self.assertEqual(report.promised, report.step.promised)
                self.assertEqual(report.whole_step, report.promised)
                for one, other in zip(found, gradients):
                    self.assertTrue(torch.equal(one, other))

    def test_the_least_budget_of_a_step_with_a_teacher(self):
        with self.assertRaisesRegex(cairn.InfeasibleError, "a step of 3 graphs: ") as caught:
            self.distil(140_000, (64, 96))
        least = caught.exception.least_budget
        report, _, _ = self.distil(least, (64, 96))
        self.assertEqual(report.measured, report.promised)
        self.assertLessEqual(report.promised, least)

    def test_runs_whose_results_are_discarded_within_a_step(self):
        """Tests forward passes without a backward pass, with gradients enabled, between the forward and the backward
        pass of a step: each is freed at once, but needs memory while the step's graphs hold theirs. There are so many
        of them that the round forgets some."""
        for discarded in (1, 200):
            with self.subTest(discarded=discarded):
                torch._dynamo.reset()
                chosen = cairn.torch.backend(130_000, work_limit=WORK)
                model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 64), torch.nn.SiLU(),
                                            torch.nn.Linear(64, 32))
                run, judge = torch.compile(model, backend=chosen), torch.compile(lambda y: y.square().mean(), backend=chosen)
                x = torch.randn(64, 32)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    for _ in range(4):
                        model.zero_grad()
                        loss = judge(run(x))
                        for _ in range(discarded):
                            run(x)
                        loss.backward()
                report = cairn.torch.last_report()
                self.assertGreater(report.step.baseline, 130_000)
                self.assertLessEqual(report.promised, 130_000)
                self.assertIs(report.kept, True)

    def test_the_least_budget_of_a_step_that_adds_up_gradients(self):
        """Tests a block that runs twice in a step, whose first result is freed before its backward pass, at the end of
        which autograd adds two gradients of each parameter."""
        def train(budget):
            torch._dynamo.reset()
            chosen = cairn.torch.backend(budget, accumulate=True, work_limit=WORK)
            block = torch.nn.Sequential(torch.nn.Linear(32, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.SiLU(),
                                        torch.nn.Linear(128, 32))
            run, judge = torch.compile(block, backend=chosen), torch.compile(lambda y: y.square().mean(), backend=chosen)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for _ in range(4):
                    block.zero_grad()
                    judge(run(run(torch.randn(64, 32)))).backward()
            return cairn.torch.last_report()

        with self.assertRaisesRegex(cairn.InfeasibleError, "a step of ") as caught:
            train(190_000)
        report = train(caught.exception.least_budget)
        self.assertEqual(report.promised, report.step.promised)
        self.assertLessEqual(report.promised, caught.exception.least_budget)

    def test_a_share_of_a_step_with_an_earlier_backward_pass(self):
        """Tests a small backward pass while separately compiled blocks hold memory. Torch frees nothing of the blocks
        then, so the share of each block alone must not count."""
        chosen = cairn.torch.backend("60%", work_limit=WORK)
        blocks = [torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32), torch.nn.LayerNorm(32))
                  for _ in range(3)]
        compiled = [torch.compile(block, backend=chosen) for block in blocks]
        judge, penalty = (torch.compile(lambda y: y.square().mean(), backend=chosen) for _ in range(2))
        scale = torch.nn.Parameter(torch.ones(32))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(5):
                scale.grad = None
                torch.nn.ModuleList(blocks).zero_grad()
                x = torch.randn(64, 32)
                for block in compiled:
                    x = block(x)
                penalty(scale).backward()
                judge(x).backward()
        report = cairn.torch.last_report()
        self.assertLess(report.step.promised, 0.61 * report.step.baseline)
        self.assertEqual(report.promised, report.step.promised)
        self.assertIs(report.kept, True)

    def test_evaluations_between_steps_are_no_parts_of_a_step(self):
        """Tests evaluations of a model of two compiled blocks. They run while no graph of a step holds memory, and so
        are planned alone, even if the last step's loss still exists."""
        torch._dynamo.reset()
        chosen = cairn.torch.backend(budget="70%", work_limit=WORK)
        blocks = [torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32)) for _ in range(2)]
        compiled = [torch.compile(block, backend=chosen) for block in blocks]
        for _ in range(4):
            loss = compiled[1](compiled[0](torch.randn(64, 32))).square().mean()
            loss.backward()
            with torch.no_grad():
                compiled[1](compiled[0](torch.randn(64, 32)))
        self.assertEqual(cairn.torch.last_report().step.parts, 2)

    def test_an_error_names_the_budget_and_not_what_others_leave_of_it(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.assertRaises(cairn.InfeasibleError) as caught:
                self.train_gan("20%")
        named = int(re.search(r"\((\d+) bytes\)", str(caught.exception)).group(1))
        self.assertGreater(named, 0.1 * caught.exception.least_budget)


if __name__ == "__main__":
    unittest.main()
