"""Tests shares (budgets in percent), for graphs that are tiny, have no gradients, or are compiled before the largest
graph. Also tests the budget "min"."""

import functools
import gc
import json
import random
import unittest
import unittest.mock

import cairn
import cairn.torch
import harness
import torch
from cairn.torch._memory import together
from cairn.torch._plan.least import Least
from cairn.torch._plan.share import TINY
from cairn.torch._plan.solve import Limits, solve

WORK = 100_000
backend = functools.partial(cairn.torch.backend, fallback=False, work_limit=WORK)


class Mlp(torch.nn.Module):
    """Layers and, unless the loss is computed outside, a loss. The model has dropout, so that training and evaluation
    have different graphs."""

    def __init__(self, loss=True, layers=6, width=64):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(layers))
        self.drop, self.loss = torch.nn.Dropout(0.1), loss

    def forward(self, x):
        for layer in self.layers:
            x = self.drop(torch.tanh(layer(x)))
        return x.square().mean() if self.loss else x


class Evaluations(harness.Fresh):
    """Tests that an evaluation before training (Lightning's sanity check, ``eval_on_start``) takes the least budget
    that works if it cannot meet its share."""

    def test_an_evaluation_first_then_training(self):
        model = Mlp()
        compiled = torch.compile(model, backend=backend("50%"), dynamic=False)
        model.eval()
        with torch.no_grad():
            _, told = harness.told_by(compiled, torch.randn(2, 64))  # this graph cannot meet 50%
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0], "^graph 0: 50% is .* the least that is found is .* because it has no backward pass$")
        # This graph is larger than the later graph for training, but must not count for the share of that graph.
        _, told = harness.told_by(compiled, torch.randn(400, 64))
        model.train()
        harness.told_by(compiled(torch.randn(100, 64)).backward)
        first, second, training = cairn.torch.last_report().graphs
        self.assertFalse(first.met)
        self.assertIn("which is not met", str(first))
        self.assertGreater(second.baseline, training.baseline)
        self.assertEqual((first.trains, second.trains, training.trains), (False, False, True))
        self.assertEqual(training.budget, -(-training.baseline // 2))
        self.assertLessEqual(training.measured, training.budget)

    def test_an_evaluation_with_gradients(self):
        """Tests an evaluation with gradients enabled that cannot meet its share. At first, only a warning is given. If
        the backward pass of the evaluation runs after all, the graph counts as a graph for training, and an error is
        raised."""
        model = Mlp()
        compiled = torch.compile(model, backend=backend("5%"))
        loss, told = harness.told_by(compiled.eval(), torch.randn(100, 64))
        self.assertEqual(len(told), 1)
        self.assertIn("evaluation mode", told[0])
        with self.assertRaisesRegex(cairn.torch.InfeasibleError, "^graph 0: budget "):
            loss.backward()

    def test_the_least_of_an_evaluation_between_steps_of_several_runs(self):
        """Tests a saliency map in evaluation mode before a training step of two runs of one model, with "min". The
        first plan of the saliency map is for the batches of both runs. Its least is above the goal of the step's plan,
        but "min" is never exceeded and never an error."""
        model = Mlp()
        compiled = torch.compile(model, backend=backend("min"), dynamic=False)

        def step():
            model.eval()
            x = torch.randn(256, 64, requires_grad=True)
            torch.autograd.grad(compiled(x).sum(), x)
            model.train()
            (compiled(torch.randn(64, 64)).sum() + compiled(torch.randn(64, 64)).sum()).backward()

        said = [text for _ in range(4) for text in harness.told_by(step)[1]]
        self.assertNotIn("evaluation mode", " ".join(said))
        graphs = cairn.torch.last_report().graphs
        self.assertTrue(all(graph.met for graph in graphs))
        self.assertTrue(all(graph.promised <= graph.budget for graph in graphs if graph.budget is not None))
        self.assertIsNone(graphs[0].budget)

    def test_training_still_raises(self):
        with self.assertRaises(cairn.torch.InfeasibleError):
            torch.compile(Mlp(), backend=backend("5%"))(torch.randn(100, 64))
        out = torch.compile(Mlp(loss=False), backend=backend("5%"))(torch.randn(100, 64))
        with self.assertRaises(cairn.torch.InfeasibleError) as caught:
            out.sum().backward()
        self.assertGreater(caught.exception.least_budget, 0)

    def test_bytes_are_bytes_for_an_evaluation_too(self):
        with torch.no_grad(), self.assertRaisesRegex(cairn.torch.InfeasibleError, "budget 12 B"):
            torch.compile(Mlp().eval(), backend=backend(12))(torch.randn(2, 64))

    def test_a_tiny_graph_takes_its_least(self):
        weight = torch.nn.Parameter(torch.randn(3))
        compiled = torch.compile(lambda: (weight * weight).sum(), backend=backend("10%"))
        loss, told = harness.told_by(compiled)
        loss.backward()
        graph, = cairn.torch.last_report().graphs
        self.assertLess(graph.baseline, TINY)
        self.assertFalse(graph.met)
        self.assertEqual(len(told), 1)
        self.assertIn("it is tiny", told[0])

    def test_a_small_part_before_the_large_ones(self):
        class Parts(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.rest = torch.nn.Linear(64, 300), Mlp(layers=12, width=300)

            def forward(self, x):
                x = self.first(x).sin()
                torch._dynamo.graph_break()
                return self.rest(x)

        for at_once in (False, True):
            torch._dynamo.reset()
            run, x = torch.compile(Parts(), backend=backend("40%", together=at_once)), torch.randn(100, 64)
            for _ in range(2):
                loss, _ = harness.told_by(run, x)
                harness.told_by(loss.backward)
            small, large = cairn.torch.last_report().graphs
            self.assertGreater(small.baseline, TINY)
            self.assertGreater(small.promised, 0.4 * small.baseline)
            self.assertEqual(small.budget, large.budget)
            self.assertTrue(small.met)

    def test_an_error_of_the_backward_pass_holds_nothing_of_the_forward_pass(self):
        """Tests that after an error of the backward pass has been handled, no values of the forward pass stay in
        memory."""
        compiled = torch.compile(Mlp(layers=8, width=300).eval(), backend=backend("10%"))
        loss, _ = harness.told_by(compiled, torch.randn(100, 300))
        saved = [reference for reference, _ in next(iter(together._open)).storages.values()]
        self.assertFalse(any(reference.expired() for reference in saved))
        try:  # not assertRaises, which would clear the frames that could hold values
            loss.backward()
            self.fail("no error")
        except cairn.torch.InfeasibleError:
            pass
        del loss
        gc.collect()
        self.assertTrue(all(reference.expired() for reference in saved))

    def test_an_error_that_is_kept_holds_nothing_of_earlier_graphs(self):
        """Tests an error that the program keeps, raised while an earlier graph held values for its backward pass."""
        chosen = backend(200 * 1024)
        small, large = (torch.compile(Mlp(loss=False, layers=layers), backend=chosen) for layers in (2, 40))

        def failed():
            hidden = small(torch.randn(100, 64))
            saved.extend(reference for run in together._open for reference, _ in run.storages.values())
            try:
                large(hidden)
            except cairn.torch.InfeasibleError as error:
                return error.with_traceback(None)

        saved = []
        error, _ = harness.told_by(failed)
        gc.collect()
        self.assertIsInstance(error, cairn.torch.InfeasibleError)
        self.assertTrue(saved)
        self.assertTrue(all(reference.expired() for reference in saved))


class LeastPeaks(unittest.TestCase):
    """Tests that the budget "min" is never above a budget that was met, and that an error names the least budget that
    any search has found."""

    def setUp(self):
        self.enterContext(harness.new_cache())

    def solve(self, graph, goal, work=2_000):
        baseline = cairn.evaluate(graph, range(graph.node_count))
        return solve(graph, goal, Limits(work_limit=work), baseline)

    def test_the_least_is_at_most_any_budget_that_was_met(self):
        """Tests that "min" finds a peak that is at most that of any budget met before. Searches random graphs for
        several budgets and for the least one, always with the same limits."""
        for seed in range(4):
            graph, met = random_graph(seed), []
            for share in random.Random(seed).sample([0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], 4):
                try:
                    met.append(self.solve(graph, int(share * graph.baseline.peak)).peak)
                except cairn.torch.InfeasibleError as error:
                    met.append(error.least_budget)
            self.assertLessEqual(self.solve(graph, None).peak, min(met))

    def test_budgets_below_the_least_are_not_met(self):
        """Tests that budgets below the one that "min" finds are hardly ever met. Tries lower budgets by searches that
        do not share results; a few of them may succeed by luck."""
        met, met_of_one_search, budgets = 0, 0, 0
        for seed in range(8):
            graph = random_graph(seed)
            found = (self.solve(graph, None).peak, cairn.solve(graph, "min", peak_only=True, work_limit=2_000).peak)
            self.assertLessEqual(*found)
            for share in (0.999, 0.99, 0.97, 0.93, 0.87, 0.8):
                budgets += 1
                met += self.is_met(graph, int(share * found[0]))
                met_of_one_search += self.is_met(graph, int(share * found[1]))
        # Cairn's search for the least budget tries lower budgets as well, so fewer lower budgets are met than after a
        # single search.
        self.assertLess(met_of_one_search, budgets / 4)
        self.assertLess(met, budgets / 12)

    @staticmethod
    def is_met(graph, budget):
        try:
            return cairn.solve(graph, budget, peak_only=True, work_limit=2_000).peak <= budget
        except (cairn.InfeasibleError, cairn.NotFoundError):
            return False

    def test_an_irregular_model(self):
        """Tests a model for which a single search for the least peak ends far above that peak. The budget "min" must
        find a lower peak than a single search."""
        class Scaled(torch.nn.Module):
            """Convolutions with squeeze and excitation, as in RegNetY."""

            def __init__(self, channels=16, layers=4):
                super().__init__()
                self.stem = torch.nn.Conv2d(3, channels, 3, padding=1)
                self.parts = torch.nn.ModuleList(torch.nn.ModuleDict({
                    "norm": torch.nn.BatchNorm2d(channels), "conv": torch.nn.Conv2d(channels, channels, 3, padding=1, groups=2),
                    "down": torch.nn.Conv2d(channels, 4, 1), "up": torch.nn.Conv2d(4, channels, 1)}) for _ in range(layers))

            def forward(self, x):
                x = self.stem(x)
                for part in self.parts:
                    y = torch.relu(part["norm"](part["conv"](x)))
                    x = x + y * torch.sigmoid(part["up"](torch.relu(part["down"](y.mean((2, 3), keepdim=True)))))
                return x.square().mean()

        torch.manual_seed(0)
        graph = cairn.torch.graph(Scaled(), (torch.randn(4, 3, 16, 16),))
        least = self.solve(graph, None, work=20_000).peak
        self.assertLess(least, cairn.solve(graph, "min", peak_only=True, work_limit=20_000).peak)
        with self.assertRaises(cairn.torch.InfeasibleError) as caught:
            self.solve(graph, least // 2, work=20_000)
        self.assertEqual(caught.exception.least_budget, least)

    def test_a_schedule_that_was_met_for_a_budget_is_a_candidate(self):
        """Tests that "min" uses the schedule of an earlier search under a budget, even if the search for the least peak
        finds nothing."""
        graph = random_graph(1)
        least = self.solve(graph, None).peak
        nothing = unittest.mock.patch.object(Least, "search", lambda self, limits: None)  # a search that finds nothing
        with harness.new_cache(), nothing:
            self.assertEqual(self.solve(graph, None).peak, graph.baseline.peak)
            met = self.solve(graph, (least + graph.baseline.peak) // 2).peak
            self.assertLess(met, graph.baseline.peak)
            found = self.solve(graph, None)
            self.assertEqual((found.peak, found.source), (met, "cache"))
            with self.assertRaises(cairn.torch.InfeasibleError) as caught:
                self.solve(graph, 1)
            self.assertLessEqual(caught.exception.least_budget, met)
            self.assertLessEqual(self.solve(graph, met).peak, met)

    def test_what_is_known_without_a_link_is_known_with_one(self):
        """Tests that "min" with offload= is never above what "min" without it has reached, even if the search with
        transfers finds nothing."""
        graph = random_graph(1)
        least = self.solve(graph, None).peak
        self.assertLess(least, graph.baseline.peak)
        limits = Limits(work_limit=2_000, link="25GB/s,1us")
        with unittest.mock.patch.object(Least, "search", lambda self, limits: None):
            found = solve(graph, None, limits, cairn.evaluate(graph, range(graph.node_count)))
        self.assertEqual(found.peak, least)

    def test_a_proof_without_recomputation_is_not_about_every_schedule(self):
        x = torch.randn(64, 64, requires_grad=True)

        def deep(x):
            for _ in range(8):
                x = x.tanh().sin()
            return x.square().mean()

        found = {}
        for solver in ("auto", "exact"):
            torch._dynamo.reset()
            chosen = cairn.torch.backend("min", fallback=False, work_limit=WORK, solver=solver)
            torch.compile(deep, backend=chosen)(x).backward()
            found[solver] = chosen.report.graphs[0]
        self.assertLess(found["auto"].promised, found["exact"].promised)
        self.assertLessEqual(found["exact"].lower_bound, found["auto"].promised)

    def test_a_solver_that_cannot_begin_with_the_least_peak(self):
        graph = random_graph(1)
        least = Least(graph, "of another solver")
        least.offer(cairn.solve(graph, "min", peak_only=True, work_limit=2_000).schedule.steps)
        known = least.peak
        self.assertLess(known, graph.baseline.peak)
        least.search(Limits(solver="order"))  # finds only schedules without recomputation
        self.assertEqual(least.peak, known)

    def test_the_error_names_what_min_reaches(self):
        graph = random_graph(2)
        with self.assertRaises(cairn.torch.InfeasibleError) as caught:
            self.solve(graph, 1)
        self.assertEqual(caught.exception.least_budget, self.solve(graph, None).peak)

    def test_the_same_work_finds_the_same(self):
        graph = random_graph(3)
        steps = []
        for _ in range(2):
            with harness.new_cache():
                steps.append(self.solve(graph, None).steps)
        self.assertEqual(*steps)

    def test_damaged_files_of_what_is_known(self):
        graph = random_graph(4)
        least = self.solve(graph, None)
        file, = cairn.torch._cache.folder().glob("least-*.json")
        self.assertEqual(json.loads(file.read_text()), {"steps": least.steps, "transfers": None, "searched": [10.0, 2_000]})
        for text in ("[]", "{", '{"steps": [1.5]}', '{"steps": [0, 0]}', '{"steps": [99999999]}', '{"steps": null}',
                     json.dumps({"steps": least.steps, "searched": {"time": []}})):
            file.write_text(text)
            self.assertEqual(self.solve(graph, None).peak, least.peak)


def random_graph(seed, layers=24):
    """Returns a random training graph. Its layers read some earlier layers, have very different sizes, and need
    scratch."""
    draw = random.Random(seed)
    builder = cairn.GraphBuilder(f"random {seed}")
    made = []
    for i in range(layers):
        read = sorted({i - 1, draw.randrange(i), *([draw.randrange(i)] if draw.random() < 0.3 else [])}) if i else []
        made.append(builder.add(f"f{i}", cost=draw.randint(1, 100), scratch=draw.choice([0, 0, draw.randint(0, 400)]),
                                inputs=[(made[j], 0) for j in read], outputs=[cairn.Output(draw.randint(8, 1000))]))
    gradient = None
    for i in reversed(range(layers)):
        inputs = [(made[i], 0), (made[draw.randrange(i + 1)], 0)] + ([(gradient, 0)] if gradient is not None else [])
        gradient = builder.add(f"b{i}", cost=draw.randint(1, 100), scratch=draw.choice([0, 0, draw.randint(0, 400)]),
                               inputs=list(dict.fromkeys(inputs)), backward=True,
                               outputs=[cairn.Output(draw.randint(8, 1000), keep=i == 0)])
    return builder.build()
