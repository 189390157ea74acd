"""Tests searching and planning: answers equal those of the command `cairn`, failures raise exceptions, and calls can
be interrupted."""

import json
import os
import pathlib
import signal
import tempfile
import threading
import unittest

import cairn
from support import COMMAND, chain, command, random_graph, ticks_during
from in_python import in_python

LONG = 3600  # seconds; so long that a test fails if its search ends only at this limit


def hard_graph():
    """Returns a graph that is so large that a search would take longer than any test."""
    return cairn.models.build("gpt2", layers=4, width=64, heads=2, seq=64, vocab=100, batch=2, granularity="op")


class Answers(unittest.TestCase):
    def test_an_answer_is_what_it_says(self):
        graph = chain(12)
        answer = cairn.solve(graph, "60%", work_limit=2_000_000)
        found = cairn.evaluate(graph, answer.schedule)
        self.assertTrue(found.valid)
        self.assertEqual((found.peak, found.cost, found.recomputed), (answer.peak, answer.cost, answer.recomputed))
        self.assertEqual(answer.budget, -(-graph.baseline.peak * 60 // 100))
        self.assertEqual(answer.planned, answer.plan.bytes)
        self.assertLessEqual(answer.planned, answer.budget)
        self.assertEqual(cairn.check_plan(graph, answer.schedule, answer.plan), "")
        self.assertAlmostEqual(answer.cost_increase, answer.cost / graph.baseline.cost - 1)
        self.assertGreaterEqual(answer.gap, 0)
        self.assertEqual(answer.graph.fingerprint, graph.fingerprint)
        self.assertIn(answer.status, ("optimal", "feasible"))
        for words in ("chain", "budget", "planned"):
            self.assertIn(words, str(answer))

    def test_budgets_in_every_spelling(self):
        graph = chain(6)
        peak = graph.baseline.peak
        for budget in (peak, str(peak), "100%", float(peak)):
            self.assertEqual(cairn.solve(graph, budget, work_limit=1000).budget, peak)
        for bad in ("", "lots", "-1", -1, 1.5, []):
            with self.subTest(budget=bad), self.assertRaises(cairn.InputError):
                cairn.solve(graph, bad)

    def test_other_objectives(self):
        graph = chain(10)
        knee = cairn.solve(graph, work_limit=1_000_000)
        self.assertIsNone(knee.budget)
        self.assertEqual(knee.objective, "knee")
        least = cairn.solve(graph, "min", work_limit=1_000_000)
        self.assertLessEqual(least.planned, knee.planned)
        cheap = cairn.solve(graph, max_cost="10%", work_limit=1_000_000)
        self.assertLessEqual(cheap.cost, 1.1 * graph.baseline.cost)
        peak = cairn.solve(graph, "70%", peak_only=True, work_limit=1_000_000)
        self.assertLessEqual(peak.peak, peak.budget)
        once = cairn.solve(graph, solver="order", time_limit="2s")
        self.assertEqual(once.recomputed, 0)
        with self.assertRaisesRegex(cairn.InfeasibleError, "running every node once costs"):
            cairn.solve(graph, max_cost=1)

    def test_arguments_that_contradict_each_other_are_refused_in_python_s_words(self):
        graph = chain(4)
        for words, arguments in {
                "budget= and max_cost= both": dict(budget="50%", max_cost="5%"),
                "peak_only= is about a budget=": dict(peak_only=True),
                "no solver": dict(budget="50%", solver="best"),
                "order='best'": dict(budget="50%", order="best"),
                "time_limit": dict(budget="50%", time_limit="soon"),
                "above 0": dict(budget="50%", time_limit=0),
                "at least 1": dict(budget="50%", work_limit=0),
                "alignment": dict(budget="50%", alignment=0),
                "threads": dict(budget="50%", threads=0),
                "max_occurrences=0 must be at least 1": dict(budget="50%", max_occurrences=0),
                "seed=-1 must be at least 0": dict(budget="50%", seed=-1),
                "memory=0 must be at least 1": dict(budget="50%", memory=0),
                "whole number": dict(budget="50%", seed=1.5),
                "start= is not a valid schedule": dict(budget="50%", start=[3]),
                "no option": dict(budget="50%", solver="tw", options={"q": 1}),
                "not a size": dict(budget="50%", memory="80%"),
        }.items():
            with self.subTest(words=words), self.assertRaises(cairn.InputError) as caught:
                cairn.solve(graph, **arguments)
            self.assertIn(words, str(caught.exception))
            self.assertNotIn("--", str(caught.exception))

    def test_a_start_is_not_lost(self):
        graph = chain(16)
        first = cairn.solve(graph, "50%", work_limit=3_000_000)
        again = cairn.solve(graph, first.planned, start=first.schedule, work_limit=1000)
        self.assertLessEqual(again.cost, first.cost)
        self.assertLessEqual(again.planned, first.planned)

    def test_threads_are_given_back(self):
        before = cairn.thread_count()
        cairn.solve(chain(4), "90%", threads=1, work_limit=1000)
        self.assertEqual(cairn.thread_count(), before)


class Failures(unittest.TestCase):
    def test_threads_of_calls_that_overlap_are_given_back(self):
        before = cairn.thread_count()
        started, ended = threading.Event(), threading.Event()
        graph = cairn.models.build("unet", batch=1, image=32, depth=3, width=4)

        def second():
            def progress(*_):
                started.set()
                ended.wait(10)

            cairn.solve(graph, "min", time_limit=2, threads=3, progress=progress)

        thread = threading.Thread(target=second)

        def first(*_):
            if not started.is_set():
                thread.start()
                started.wait(10)

        cairn.solve(graph, "min", time_limit=2, threads=1, progress=first)
        ended.set()
        thread.join()
        self.assertEqual(cairn.thread_count(), before)

    def test_what_is_proved_impossible(self):
        graph = chain(8)
        bound = graph.peak_lower_bound
        with self.assertRaises(cairn.InfeasibleError) as caught:
            cairn.solve(graph, bound - 1, work_limit=100_000)
        error = caught.exception
        self.assertEqual((error.exit_code, error.lower_bound), (3, bound))
        self.assertGreaterEqual(error.least_budget, bound)
        self.assertEqual(error.least.bytes, error.least_budget)
        found = cairn.evaluate(graph, error.least.schedule)
        self.assertTrue(found.valid)
        self.assertLessEqual(found.peak, error.least_budget)
        answer = cairn.solve(graph, error.least_budget, start=error.least.schedule, work_limit=1000)
        self.assertIn(answer.status, ("optimal", "feasible"))
        self.assertEqual(error.scope, "any schedule")
        self.assertIsInstance(error, cairn.Error)

    def test_what_was_not_found(self):
        graph = chain(30)
        with self.assertRaises(cairn.NotFoundError) as caught:
            cairn.solve(graph, "25%", solver="chen", work_limit=1000)
        error = caught.exception
        self.assertEqual(error.exit_code, 4)
        # The least budget is proved to be optimal, so it does not depend on the results of the solver "chen".
        self.assertEqual((error.least_budget, error.least.solver), (300, "auto"))
        self.assertNotIn("--", str(error))


@unittest.skipUnless(COMMAND, "the command was not built")
class BesideTheCommand(unittest.TestCase):
    """Tests that under the same work limit, answers and failures are the same as those of the command `cairn`."""

    SAME = ("fingerprint", "budget_bytes", "baseline_peak_bytes", "status", "stopped", "objective", "peak_bytes", "cost",
            "cost_increase_pct", "recomputed", "steps", "planned_bytes", "plan_fits", "alignment", "valid", "gap_pct", "gap_of",
            "lower_bound_peak_bytes", "lower_bound_reason", "least_feasible_bytes", "least_feasible_solver", "scope",
            "lower_bound_cost", "peak", "recomputation")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def both(self, graph, budget, *options, **arguments):
        graph.write(self.folder / "g.json")
        given = [] if budget is None else ["--budget", budget]
        code, theirs = command("solve", self.folder / "g.json", *given, "--work-limit", 200_000, "-o",
                               self.folder / "s.json", *options)
        try:
            return code, theirs, cairn.solve(graph, budget, work_limit=200_000, **arguments)
        except cairn.NoScheduleError as error:
            return code, theirs, error

    def test_answers(self):
        for seed in range(6):
            graph = random_graph(seed, nodes=30)
            for budget in ("90%", "75%", None):
                with self.subTest(seed=seed, budget=budget):
                    code, theirs, ours = self.both(graph, budget)
                    if code != 0:
                        self.assertEqual(ours.exit_code, code)
                        self.assertEqual(ours.lower_bound, theirs["lower_bound_peak_bytes"])
                        self.assertEqual(ours.least_budget, theirs["least_feasible_bytes"])
                        self.assertEqual(str(ours), in_python(theirs["error"]))
                        continue
                    said = json.loads(ours.to_json())
                    self.assertEqual({key: said.get(key) for key in self.SAME}, {key: theirs.get(key) for key in self.SAME})
                    self.assertEqual(set(theirs) - set(said), {"warnings"})
                    self.assertEqual(cairn.read_schedule(self.folder / "s.json", graph), ours.schedule)

    def test_options(self):
        graph = chain(20)
        for options, arguments in [(["--solver", "tw", "--option", "k=3"], dict(solver="tw", options={"k": 3})),
                                   (["--order", "fixed"], dict(order="fixed")),
                                   (["--max-occurrences", 2, "--seed", 7], dict(max_occurrences=2, seed=7)),
                                   (["--peak-only"], dict(peak_only=True)),
                                   (["--alignment", 64], dict(alignment=64))]:
            with self.subTest(options=options):
                code, theirs, ours = self.both(graph, "70%", *options, **arguments)
                self.assertEqual(code, getattr(ours, "exit_code", 0))
                if code == 0:
                    self.assertEqual(ours.schedule.steps.tolist(),
                                     json.loads((self.folder / "s.json").read_text())["steps"])

    def test_failures(self):
        graph = chain(10)
        for budget in (graph.peak_lower_bound - 1, graph.peak_lower_bound, "5%"):
            with self.subTest(budget=budget):
                code, theirs, ours = self.both(graph, budget)
                self.assertEqual(code, getattr(ours, "exit_code", 0))
                if code != 0:
                    self.assertEqual((ours.lower_bound, ours.least_budget),
                                     (theirs["lower_bound_peak_bytes"], theirs["least_feasible_bytes"]))


class Meanwhile(unittest.TestCase):
    def test_other_threads_run(self):
        ticks = ticks_during(lambda: cairn.solve(hard_graph(), "60%", time_limit=1))
        # If the search held the GIL (Python's interpreter lock), other threads could hardly run during the search.
        self.assertGreater(ticks, 50)

    def test_two_searches_at_once(self):
        graph = chain(14)
        alone = cairn.solve(graph, "55%", work_limit=500_000)
        answers = [None] * 3

        def search(i):
            answers[i] = cairn.solve(graph, "55%", work_limit=500_000)

        threads = [threading.Thread(target=search, args=(i,)) for i in range(len(answers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for answer in answers:
            self.assertEqual(answer.schedule, alone.schedule)

    def test_progress_is_told_in_this_thread_and_may_stop_the_search(self):
        told = []

        def progress(peak, cost, seconds):
            told.append((threading.get_ident(), peak, cost, seconds))
            return False

        answer = cairn.solve(hard_graph(), "60%", time_limit=LONG, progress=progress)
        self.assertEqual(len(told), 1)
        self.assertEqual(told[0][0], threading.get_ident())
        self.assertTrue(all(isinstance(value, int) for value in told[0][1:3]))
        self.assertTrue(answer.interrupted)
        self.assertTrue(cairn.evaluate(answer.graph, answer.schedule).valid)

    def test_what_progress_raises_comes_out(self):
        class Mine(Exception):
            pass

        def progress(*_):
            raise Mine("enough")

        with self.assertRaisesRegex(Mine, "enough"):
            cairn.solve(hard_graph(), "60%", time_limit=LONG, progress=progress)
        with self.assertRaises(TypeError):
            cairn.solve(hard_graph(), "60%", time_limit=LONG, progress=lambda: None)

    def interrupt_soon(self):
        timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        self.addCleanup(timer.join)

    def test_ctrl_c_leaves_the_best(self):
        graph = hard_graph()
        self.interrupt_soon()
        with self.assertRaises(cairn.Interrupted) as caught:
            cairn.solve(graph, "60%", time_limit=LONG)
        error = caught.exception
        self.assertIsInstance(error, KeyboardInterrupt)
        self.assertEqual(error.exit_code, 130)
        self.assertTrue(cairn.evaluate(graph, error.best.schedule).valid)
        self.assertTrue(error.best.interrupted)

    def test_another_handler_s_exception_comes_out(self):
        class Alarm(Exception):
            pass

        def handler(*_):
            raise Alarm

        before = signal.signal(signal.SIGINT, handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        self.interrupt_soon()
        with self.assertRaises(Alarm):
            cairn.solve(hard_graph(), "60%", time_limit=LONG)

    def test_a_handler_that_raises_nothing_ends_nothing(self):
        called = []
        before = signal.signal(signal.SIGINT, lambda *_: called.append(True))
        self.addCleanup(signal.signal, signal.SIGINT, before)
        self.interrupt_soon()
        answer = cairn.solve(hard_graph(), "60%", time_limit=2)
        self.assertTrue(called)
        self.assertFalse(answer.interrupted)


if __name__ == "__main__":
    unittest.main()
