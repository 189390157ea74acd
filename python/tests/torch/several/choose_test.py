"""Tests the choice of one schedule for each part of a step. Compares the result with the best of all possible
choices."""

import itertools
import random
import unittest

from cairn.torch._several.choose import Choice, Freed, Sizes, Window, peak
from cairn.torch._several.plan import undominated


def problem(draw, parts, schedules, windows, results=0, shared=False):
    """Returns random (pools, windows, times). A pool lists the schedules to choose from for one part. A window is one
    pass of a part, with the other parts that hold memory meanwhile. ``times`` says how often each part runs in the
    step. ``results``: number of results of each part, which can be freed in some windows. Unless ``shared`` is True,
    each result is saved by schedules of one part at most: the part that computes the result, or a part that reads
    it."""
    sizes = [[draw.randint(1, 9) for _ in range(results)] for _ in range(parts)]
    is_own = [[draw.random() < 0.3 for _ in range(results)] for _ in range(parts)]

    def schedule(part):
        own = tuple(0 if draw.random() < 0.5 and (shared or mine) else size for size, mine in zip(sizes[part], is_own[part]))
        least = sum(sizes[part])
        return Sizes(least + draw.randint(0, 30), least + draw.randint(0, 30), least + draw.randint(0, 20), draw.randint(1, 30), own,
                     frozenset(i for i in range(results) if draw.random() < 0.5))

    def readers(part, result):
        found = [(other, draw.randrange(results)) for other in range(parts) if draw.random() < 0.5]
        return tuple(found if shared else () if is_own[part][result] else found[:1])

    pools = [[schedule(part) for _ in range(draw.randint(1, schedules))] for part in range(parts)]
    def window():
        part, others = draw.randrange(parts), [(part, draw.randint(1, 3)) for part in range(parts) if draw.random() < 0.6]
        freed = [(Freed(one, result, readers(one, result)), 1) for one in {part, *dict(others)} for result in range(results)
                 if draw.random() < 0.3]
        return Window(part, draw.random() < 0.5, tuple(others), draw.randint(0, 5), tuple(freed), draw.choice((0, 30, 60)))

    return pools, [window() for _ in range(windows)], [draw.randint(1, 3) for _ in range(parts)]


def cost_of(pools, times, chosen):
    return sum(count * pool[i].cost for count, pool, i in zip(times, pools, chosen))


def peak_of(pools, windows, chosen):
    return peak(windows, [pool[i] for pool, i in zip(pools, chosen)])


class Choices(unittest.TestCase):
    def test_the_best_of_all_choices(self):
        draw = random.Random(1)
        for _ in range(2_000):
            pools, windows, times = problem(draw, draw.randint(1, 4), 4, draw.randint(1, 6), draw.randint(0, 2))
            every = [(peak_of(pools, windows, chosen), cost_of(pools, times, chosen))
                     for chosen in itertools.product(*(range(len(pool)) for pool in pools))]
            choice = Choice(pools, windows, times)
            least, chosen = choice.least()
            self.assertEqual(least, min(every)[0])
            self.assertEqual(least, peak_of(pools, windows, chosen))
            budget = draw.randint(0, 150)
            best = min((cost for most, cost in every if most <= budget), default=None)
            chosen = choice.within(budget)
            self.assertEqual(best, None if chosen is None else cost_of(pools, times, chosen))
            if chosen is not None:
                self.assertLessEqual(peak_of(pools, windows, chosen), budget)

    def test_results_that_several_schedules_save(self):
        """Tests results that several schedules save. They may be counted several times, so the computed peak of a
        choice may be too high, but must not be too low."""
        draw, more = random.Random(4), 0
        for _ in range(2_000):
            pools, windows, times = problem(draw, draw.randint(1, 4), 4, draw.randint(1, 6), 2, shared=True)
            choice = Choice(pools, windows, times)
            for chosen in itertools.product(*(range(len(pool)) for pool in pools)):
                self.assertLessEqual(peak_of(pools, windows, chosen), choice.peak(chosen))
                more += choice.peak(chosen) - peak_of(pools, windows, chosen)
        self.assertGreater(more, 0)

    def test_windows_that_others_make_redundant(self):
        """Tests that leaving out redundant windows changes the peak of no choice."""
        draw, dropped = random.Random(2), 0
        for _ in range(1_000):
            pools, windows, _ = problem(draw, 3, 3, 8, draw.randint(0, 1))
            kept = undominated(windows)
            dropped += len(windows) - len(kept)
            for chosen in itertools.product(*(range(len(pool)) for pool in pools)):
                self.assertEqual(peak_of(pools, windows, chosen), peak_of(pools, kept, chosen))
        self.assertGreater(dropped, 500)

    def test_steps_of_many_parts(self):
        """Tests that for many parts, where the search stops early, it still finds a choice within the budget, and no
        exchange of one schedule makes this choice cheaper."""
        draw = random.Random(3)
        for _ in range(5):
            pools = [[Sizes(draw.randint(50, 300), draw.randint(50, 300), draw.randint(0, 200), draw.randint(1, 300))
                      for _ in range(12)] for _ in range(24)]
            windows = [Window(part, backward, tuple((other, 1) for other in range(part)))
                       for part in range(24) for backward in (False, True)]
            choice = Choice(pools, windows, [1] * 24)
            budget = 2 * choice.least()[0]
            chosen = choice.within(budget)
            self.assertLessEqual(peak_of(pools, windows, chosen), budget)
            cost = cost_of(pools, [1] * 24, chosen)
            for part, i in itertools.product(range(24), range(12)):
                other = [*chosen[:part], i, *chosen[part + 1:]]
                if cost_of(pools, [1] * 24, other) < cost:
                    self.assertGreater(peak_of(pools, windows, other), budget)
