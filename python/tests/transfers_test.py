"""Tests schedules with transfers (copies between device and host) in Python: the result of a search with a link, the
relations between its numbers, and how such schedules are written, read and rejected."""

import pathlib
import pickle
import tempfile
import unittest

import cairn
from support import chain

WORK = 500_000
LINK = "1000GB/s"


def example():
    """Returns a graph whose first value is not read for some steps, and a schedule that moves this value to the host
    meanwhile."""
    builder = cairn.GraphBuilder("example")
    a = builder.add("a", size=10, cost=5)
    b = builder.add("b", size=4, cost=5, inputs=[a])
    c = builder.add("c", size=4, cost=5, inputs=[b])
    builder.add("d", size=1, cost=5, inputs=[a, c], keep=True)
    return builder.build(), cairn.Schedule(range(4), ([(0, 0, 1, 2)], [(0, 2, 3)]))


def passes(layers):
    """Returns a chain of forward nodes with large values, and backward nodes with small values that read the large
    ones."""
    builder = cairn.GraphBuilder("passes")
    for k in range(layers):
        builder.add(f"f{k}", size=1000, cost=1000, inputs=[k - 1] if k else [])
    for k in reversed(range(layers)):
        builder.add(f"b{k}", size=10, cost=1000, backward=True, forward=k, keep=k == 0,
                    inputs=[k, *([2 * layers - 2 - k] if k + 1 < layers else [])])
    return builder.build()


class Transfers(unittest.TestCase):
    def test_what_a_search_finds(self):
        graph = chain(12)
        alone = cairn.solve(graph, "60%", work_limit=WORK)
        self.assertEqual((alone.schedule.transfers, alone.host_peak, alone.waiting), (cairn.Transfers([], []), 0, 0))
        self.assertEqual(alone.makespan, alone.cost)
        for options in ({}, {"peak_only": True}):
            with self.subTest(**options):
                answer = cairn.solve(graph, "60%", work_limit=WORK, link=LINK, **options)
                self.assertTrue(answer.schedule.transfers.evicts)
                found = cairn.evaluate(graph.with_host_memory(LINK), answer.schedule)
                self.assertTrue(found.valid)
                self.assertEqual((found.peak, found.cost, found.waiting, found.host_peak),
                                 (answer.peak, answer.makespan, answer.waiting, answer.host_peak))
                self.assertLessEqual(answer.peak, answer.budget)
                self.assertLessEqual(answer.makespan, alone.cost)
                self.assertGreater(answer.host_peak, 0)
                # If the graph has no link, copies take no time, so the cost is the makespan without waiting.
                self.assertEqual(cairn.evaluate(graph, answer.schedule).cost, answer.makespan - answer.waiting)
                limited = cairn.solve(graph, "60%", work_limit=WORK, link=LINK, host_budget=answer.host_peak, **options)
                self.assertLessEqual(limited.host_peak, answer.host_peak)

    def test_a_curve(self):
        graph = chain(8)
        curve = cairn.pareto(graph, points=3, link=LINK, work_limit=WORK)
        alone = cairn.pareto(graph, budgets=[point.budget for point in curve.points], work_limit=WORK)
        for moved, stays in zip(curve.points, alone.points):
            self.assertLessEqual(moved.cost, stays.cost)

    def test_the_least_budget_and_a_verdict(self):
        graph = passes(12)
        alone = cairn.least_budget(graph, work_limit=WORK)
        moved = cairn.least_budget(graph, link=LINK, work_limit=WORK)
        self.assertLess(moved.bytes, alone.bytes)
        self.assertFalse(cairn.info(graph, moved.bytes, work_limit=WORK, max_occurrences=1).fits)
        info = cairn.info(graph, moved.bytes, link=LINK, work_limit=WORK)
        self.assertTrue(info.fits)
        self.assertEqual(info.means, "transfers")
        batch = lambda **options: cairn.largest_batch(
            lambda n: cairn.models.build("ffn", layers=6, width=64, batch=n), 100_000, max_occurrences=1,
            work_limit=WORK, **options).batch
        self.assertGreater(batch(link="450GB/s"), batch())

    def test_the_least_peak_within_a_makespan(self):
        graph = chain(12)
        alone = cairn.solve(graph, max_cost="5%", work_limit=WORK)
        moved = cairn.solve(graph, max_cost="5%", work_limit=WORK, link=LINK)
        self.assertLess(moved.peak, alone.peak)
        self.assertLessEqual(moved.makespan * 100, alone.baseline.cost * 105)

    def test_a_run(self):
        graph = cairn.models.build("mlp-mixer", batch=1, image=32, layers=2)
        run = cairn.run(graph, "60%", link="450GB/s", work_limit=WORK, repeats=1, poison=True)
        self.assertTrue(run.identical)
        self.assertTrue(run.scheduled.schedule.transfers.evicts)
        self.assertEqual(run.scheduled.measured, run.scheduled.planned)

    def test_a_sweep(self):
        graph = chain(8)
        linked = graph.with_host_memory(LINK)
        sweep = cairn.simulate(graph, random=200, link=LINK, transfers=3)
        self.assertTrue(sweep.best.transfers.evicts or cairn.evaluate(linked, sweep.best).host_peak == 0)
        self.assertEqual(sweep.cost, cairn.evaluate(linked, sweep.best).cost)
        schedules = [cairn.solve(graph, "60%", work_limit=WORK, link=LINK).schedule, cairn.Schedule(graph.input_order)]
        peaks = [cairn.evaluate(linked, schedule).host_peak for schedule in schedules]
        self.assertGreater(peaks[0], peaks[1])
        self.assertEqual(cairn.simulate(graph, schedules, link=LINK, host_budget=peaks[0] - 1).within_budget, 1)
        with self.assertRaisesRegex(cairn.InputError, "transfers=-1"):
            cairn.simulate(graph, random=10, link=LINK, transfers=-1)

    def test_numbers_of_a_schedule(self):
        graph, schedule = example()
        self.assertEqual(schedule.transfers.evicts, [cairn.Evict(value=0, made=0, start=1, finish=2)])
        self.assertEqual(schedule.transfers.fetches, [cairn.Fetch(evict=0, start=2, finish=3)])
        self.assertEqual(cairn.evaluate(graph, schedule.steps).peak, 18)
        found = cairn.evaluate(graph.with_host_memory("1GB/s"), schedule)
        # Peak: while d runs, `a`, `c` and `d` are in memory (15 bytes). Between steps 1 and 2, only `a` and `b` are.
        self.assertEqual((found.peak, found.host_peak), (15, 10))
        self.assertEqual((found.cost, found.waiting), (40, 20))
        self.assertEqual(cairn.evaluate(graph.with_host_memory("1GB/s,5ns"), schedule).waiting, 30)

    def test_round_trips(self):
        graph, schedule = example()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "s.json"
            cairn.write_schedule(path, graph, schedule)
            read = cairn.read_schedule(path, graph)
        for other in (read, pickle.loads(pickle.dumps(schedule)), cairn.Schedule(schedule),
                      cairn.Schedule(schedule.steps, schedule.transfers)):
            self.assertEqual(other, schedule)
            self.assertEqual(other.transfers, schedule.transfers)
        self.assertNotEqual(cairn.Schedule(schedule.steps), schedule)

    def test_bad_transfers(self):
        graph, _ = example()
        for transfers in (([(0, 0, 1, 1)], [(0, 2, 3)]), ([(0, 0, 1, 2)], [(0, 0, 3)]), ([(0, 0, 1, 2)], []),
                          ([(9, 0, 1, 2)], [(0, 2, 3)])):
            with self.subTest(transfers=transfers):
                found = cairn.evaluate(graph, cairn.Schedule(range(4), transfers))
                self.assertFalse(found.valid)
                self.assertTrue(found.defect)
        for transfers in (([(0, 0, 1)], []), ([(0, 0, 1, 2)], [(0, 2)]), ([(-1, 0, 1, 2)], []), ([(2**40, 0, 1, 2)], [])):
            with self.subTest(transfers=transfers), self.assertRaises(cairn.InputError):
                cairn.Schedule(range(4), transfers)

    def test_starts_that_may_not_be_answers(self):
        graph = passes(6)
        budget = graph.peak_lower_bound + 500
        found = cairn.solve(graph, budget, peak_only=True, work_limit=WORK, link=LINK)
        self.assertGreater(found.host_peak, 1)
        for options in ({"peak_only": True}, {}):
            curve = cairn.pareto(graph, budgets=[2 * budget], link=LINK, host_budget=found.host_peak - 1, start=found.schedule,
                                 work_limit=WORK, **options)
            host = cairn.evaluate(graph.with_host_memory(LINK), curve.points[0].schedule).host_peak
            self.assertLess(host, found.host_peak)
        for call in (cairn.solve, cairn.least_budget, cairn.pareto):
            with self.assertRaisesRegex(cairn.InputError, "^start= moves values to the host; give the link= "):
                call(graph, **({"budget": budget} if call is cairn.solve else {}), start=found.schedule, work_limit=WORK)

    def test_bad_links(self):
        graph = chain(4)
        for words, options in {"bandwidth": dict(link="0GB/s"), "above 0 bytes/s": dict(link=0), "negative": dict(link="1GB/s,-1us"),
                               "accepted are": dict(link="fast"), "is empty": dict(link=""), "host_budget=.*link=": dict(
                                   host_budget="1GiB"), "above 0": dict(link=LINK, host_budget=0)}.items():
            with self.subTest(words=words), self.assertRaisesRegex(cairn.InputError, words):
                cairn.solve(graph, "60%", **options)


if __name__ == "__main__":
    unittest.main()
