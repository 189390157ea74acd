"""Tests curves of memory and cost, least budgets, sweeps over many schedules, and executions."""

import json
import pathlib
import tempfile
import unittest

import cairn
import numpy as np
from support import chain, random_graph

WORK = 300_000


class Curves(unittest.TestCase):
    def test_points_are_what_they_say(self):
        graph = chain(10)
        curve = cairn.pareto(graph, points=5, work_limit=WORK)
        self.assertEqual(len(curve), len(curve.points))
        known = [point for point in curve.points if point.known]
        for point in known:
            found = cairn.evaluate(graph, point.schedule)
            self.assertEqual((found.peak, found.cost), (point.peak, point.cost))
            self.assertEqual(point.plan.bytes, point.memory)
            self.assertLessEqual(point.memory, point.budget)
            self.assertLessEqual(point.lower_bound_cost, point.cost)
        self.assertEqual(sorted((point.cost for point in known)), [point.cost for point in known])
        self.assertEqual([point.budget for point in known if point.knee], [curve.knee.budget])
        self.assertTrue(curve.to_svg().startswith("<svg"))
        self.assertEqual(curve._repr_html_(), curve.to_svg())
        self.assertEqual(len(curve.to_csv().splitlines()), 1 + len(curve))
        self.assertIn("knee", str(curve))

    def test_budgets(self):
        graph = chain(10)
        curve = cairn.pareto(graph, budgets=["90%", "1KiB", 800], peak_only=True, work_limit=WORK)
        self.assertEqual([point.budget for point in curve.points], sorted([1024, 800, -(-graph.baseline.peak * 9 // 10)])[::-1])
        self.assertTrue(all(point.plan is None for point in curve.points))
        with self.assertRaises(cairn.InfeasibleError) as caught:
            cairn.pareto(graph, budgets=[1], work_limit=WORK)
        self.assertEqual(caught.exception.lower_bound, graph.peak_lower_bound)
        with self.assertRaises(cairn.InputError):
            cairn.pareto(graph, points=1)

    def test_the_least_budget(self):
        for seed in range(4):
            graph = random_graph(seed)
            least = cairn.least_budget(graph, work_limit=WORK)
            self.assertEqual(cairn.check_plan(graph, least.schedule, least.plan), "")
            self.assertEqual(least.plan.bytes, least.bytes)
            self.assertLessEqual(least.lower_bound, least.bytes)
            self.assertEqual(least.proved, least.bytes <= least.lower_bound)
            self.assertLessEqual(cairn.solve(graph, "min", work_limit=WORK).planned, graph.baseline.peak + 4096)


class Infos(unittest.TestCase):
    def test_verdicts(self):
        graph = chain(10)
        bare = cairn.info(graph, work_limit=WORK)
        self.assertIsNone(bare.fits)
        self.assertGreaterEqual(bare.least_budget.bytes, bare.lower_bound)
        self.assertIn("least budget known", str(bare))
        as_it_is = cairn.info(graph, "100%", work_limit=WORK)
        self.assertEqual((as_it_is.fits, as_it_is.means), (True, "baseline"))
        tight = cairn.info(graph, bare.least_budget.bytes, work_limit=WORK)
        self.assertEqual((tight.fits, tight.means), (True, "recomputation"))
        self.assertLessEqual(tight.within.plan.bytes, tight.budget)
        self.assertLessEqual(tight.lower_bound_cost, tight.within.cost)
        never = cairn.info(graph, 1, work_limit=WORK)
        self.assertEqual((never.fits, never.proved, never.within), (False, True, None))
        with self.assertRaises(cairn.InputError):
            cairn.info(graph, "min")


class Sweeps(unittest.TestCase):
    def test_random_schedules(self):
        graph = random_graph(1, nodes=40)
        sweep = cairn.simulate(graph, random=2000, seed=3, recompute=4, budget="100%")
        self.assertEqual((sweep.candidates, sweep.valid, sweep.invalid), (2000, 2000, 0))
        found = cairn.evaluate(graph, sweep.best)
        self.assertEqual((found.peak, found.cost), (sweep.peak, sweep.cost))
        self.assertEqual(sweep.quantiles[0], sweep.peak)
        counts, edges = sweep.histogram
        self.assertEqual((counts.sum(), len(edges)), (2000, len(counts) + 1))
        again = cairn.simulate(graph, random=2000, seed=3, recompute=4, threads=1)
        self.assertEqual(again.best, sweep.best)
        self.assertEqual(again.pareto, sweep.pareto)
        self.assertIsNone(again.within_budget)
        self.assertGreater(sweep.within_budget, 0)

    def test_given_schedules(self):
        graph = random_graph(2, nodes=20)
        order = graph.input_order
        rows = np.stack([order, order[::-1], order])
        sweep = cairn.simulate(graph, rows)
        self.assertEqual((sweep.candidates, sweep.valid), (3, 2))
        self.assertEqual(sweep.peaks.tolist()[::2], [graph.baseline.peak] * 2)
        self.assertEqual(sweep.best.steps.tolist(), order.tolist())
        self.assertEqual(cairn.simulate(graph, [order.tolist()]).peak, graph.baseline.peak)
        self.assertIsNone(sweep.undominated)
        # Schedules 0 and 2 have equal profiles, so only the first of them counts as undominated.
        self.assertEqual(cairn.simulate(graph, rows, undominated=True).undominated.tolist(), [0])
        nothing = cairn.simulate(graph, [[0]])
        self.assertEqual((nothing.valid, nothing.best, nothing.peak, nothing.quantiles), (0, None, None, {}))

    def test_progress_may_stop_it(self):
        told = []

        def progress(done, total, seconds):
            told.append((done, total))
            return False

        sweep = cairn.simulate(random_graph(1, nodes=200), random=10**12, progress=progress)
        self.assertTrue(sweep.interrupted)
        self.assertEqual(told[0][1], 10**12)
        self.assertLess(sweep.candidates, 10**12)

    def test_what_it_needs(self):
        graph = chain(3)
        for arguments in ({}, {"random": 5, "schedules": []}, {"random": 0}, {"random": 5, "recompute": -1},
                          {"random": 5, "backend": "abacus"}, {"random": 1.5}):
            with self.subTest(**arguments), self.assertRaises(cairn.InputError):
                cairn.simulate(graph, **arguments)


class Executions(unittest.TestCase):
    def test_a_model_under_a_budget(self):
        graph = cairn.models.build("resnet18", batch=1, image=32)
        result = cairn.run(graph, "70%", backend="host", work_limit=WORK, repeats=1, poison=True)
        self.assertTrue(result.identical)
        self.assertLessEqual(result.scheduled.planned, result.budget)
        self.assertLessEqual(result.scheduled.measured, result.scheduled.planned)
        self.assertLess(result.scheduled.measured, result.baseline.measured)
        self.assertEqual(len(result.scheduled.timings), 1)
        again = cairn.run(graph, schedule=result.scheduled.schedule, backend="host", repeats=1)
        self.assertEqual(again.loss, result.loss)
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "run.html"
            result.report(page)
            self.assertIn("<html", page.read_text()[:300])
            result.trace(page)
            json.loads(page.read_text())

    def test_what_it_needs(self):
        graph = chain(4)
        for arguments in ({}, {"budget": "50%", "backend": "abacus"}, {"budget": "50%", "precision": "fp13"},
                          {"budget": "50%", "repeats": 0}):
            with self.subTest(**arguments), self.assertRaises(cairn.InputError):
                cairn.run(graph, **arguments)
        with self.assertRaises(cairn.InfeasibleError):
            cairn.run(graph, 1, work_limit=WORK, backend="host")
        with self.assertRaises(cairn.NotFoundError):
            cairn.run(graph, graph.baseline.peak - 1, schedule=graph.input_order, backend="host")


class Models(unittest.TestCase):
    def test_models_are_listed_and_built(self):
        model = next(model for model in cairn.models.list() if model.name == "gpt2")
        self.assertIn("batch", [option.name for option in model.options])
        small = cairn.models.build("gpt2", layers=1, width=32, heads=2, seq=16, vocab=50, batch=1)
        self.assertGreater(small.node_count, 10)
        self.assertGreater(cairn.models.build("gpt2", layers=2, width=32, heads=2, seq=16, vocab=50, batch=1).node_count,
                           small.node_count)
        self.assertIsNotNone(small.node(0).op)
        self.assertEqual(set(cairn.models.build("unet", batch=1, image=32, unit_cost=True).costs.tolist()), {1})
        for words, call in {"did you mean 'gpt2'": lambda: cairn.models.build("gpt3"),
                            "batch": lambda: cairn.models.build("gpt2", bach=3),
                            "weight_grads": lambda: cairn.models.build("gpt2", weight_grads="there")}.items():
            with self.subTest(words=words), self.assertRaisesRegex(cairn.InputError, words):
                call()

    def test_pages_of_answers(self):
        graph = cairn.models.build("unet", batch=1, image=32)
        answer = cairn.solve(graph, "60%", work_limit=WORK)
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.html"
            answer.report(page)
            self.assertIn("<html", page.read_text()[:300])
            answer.trace(str(page))
            json.loads(page.read_text())
        for shown in (graph, answer):
            text = shown._repr_html_()
            self.assertIn("<svg", text)
            self.assertNotIn("<script", text)
        self.assertIn("activations", answer.explain())


if __name__ == "__main__":
    unittest.main()
