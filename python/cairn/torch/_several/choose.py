"""Chooses one schedule for each part of a step, so that the step stays within its budget at the least cost.

The step is a list of *windows*. A window is one pass (forward or backward) of one part (graph), during which other
parts hold memory. The choice is a multiple-choice knapsack problem with one capacity for each window. Branch and bound
solves it exactly for steps of a few parts. For larger steps, it stops after _MOST_NODES nodes of the search tree, and
exchanges of schedules improve the best choice found.
"""

import collections
import dataclasses
import itertools

import numpy as np

_MOST_NODES = 4_000  # largest number of nodes of a search tree; the search of so many nodes takes about 0.1 s
_MOST_EXCHANGES = 200  # largest number of exchanges of schedules
_MOST_HALVINGS = 16  # largest number of steps of the binary search for the least budget


@dataclasses.dataclass(frozen=True)
class Freed:
    """A result to which nobody outside of the parts holds a reference any more. It is in memory only if a schedule
    saves it: the schedule of its own part, or of a part that reads it. ``part``: the part that has computed the result.
    ``result``: the index of the result. ``readers``: (part, index of the part's input) for the parts that read it."""

    part: int
    result: int
    readers: tuple = ()


@dataclasses.dataclass(frozen=True)
class Window:
    """One pass of a part. ``others``: pairs (part, number of its runs that hold memory), not counting the run to which
    this pass belongs. ``beside``: bytes of anything else that is in memory. ``freed``: pairs (Freed, number of runs in
    which this result is freed); the Sizes of its part still count it. ``at_end``: bytes that the pass takes at least,
    with any schedule, because autograd adds up gradients at the end of the pass."""

    part: int
    backward: bool
    others: tuple = ()
    beside: int = 0
    freed: tuple = ()
    at_end: int = 0

    def count(self, part):
        """Returns the number of runs of a part that hold memory, not counting the run to which this pass belongs."""
        return dict(self.others).get(part, 0)

    def joined(self, other):
        """Returns a Window that covers two windows of the same pass with the same ``others``: it counts everything that
        is in memory in at least one of them."""
        freed = collections.Counter(dict(self.freed)) & collections.Counter(dict(other.freed))
        return dataclasses.replace(self, beside=max(self.beside, other.beside), freed=tuple(freed.items()),
                                   at_end=max(self.at_end, other.at_end))


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The memory that a schedule of a part needs, in bytes: the peak of its forward pass, the peak of its backward
    pass, and ``held`` between the two passes. Results of the part count until the end of the backward pass. ``cost``:
    the time of both passes. ``results``: for each result, its bytes if the schedule does not save it for the backward
    pass, else 0. ``saves``: the indices of inputs that the schedule saves."""

    forward: int
    backward: int
    held: int
    cost: int
    results: tuple = ()
    saves: frozenset = frozenset()

    def of(self, window):
        return max(window.at_end, self.backward if window.backward else self.forward)


def peak_of(window, sizes):
    """Returns the bytes in memory at the peak of a window. ``sizes``: the Sizes of the chosen schedule of each part."""
    return sizes[window.part].of(window) + window.beside + held_by_parts(window.others, window.freed, sizes)


def held_by_parts(others, freed, sizes):
    """Returns the bytes that other runs hold, minus the bytes of results that are freed and that no chosen schedule
    saves. ``others``, ``freed``: as in Window. ``sizes``: the Sizes of the chosen schedule of each part."""
    return sum(count * sizes[part].held for part, count in others) - sum(
        count * sizes[one.part].results[one.result] for one, count in freed if not any(i in sizes[part].saves for part, i in one.readers))


def peak(windows, sizes):
    return max((peak_of(window, sizes) for window in windows), default=0)


class Choice:
    """Chooses one entry of ``pools[part]``, a list of the Sizes of schedules, for each part. ``times[part]``: number of
    times that a step runs the part.

    For each window, the bytes of the chosen schedules are simply added up. So a result that several chosen schedules
    save is counted several times. The computed peak of a choice may therefore be too high, but never too low."""

    def __init__(self, pools, windows, times):
        self.pools, self.windows = pools, list(windows)
        self.costs = [np.array([times[g] * s.cost for s in pool], dtype=float) for g, pool in enumerate(pools)]
        # For each part, an array with a row for each schedule and a column for each window: the bytes that the schedule
        # adds to the window.
        self.above = [np.zeros((len(pool), len(self.windows)), dtype=np.int64) for pool in pools]
        for w, window in enumerate(self.windows):
            self._add(w, window)
        # Lower bounds on the bytes of each window: for each part, the schedule that adds the fewest bytes counts. After
        # the loop, ``above`` contains only what each schedule adds beyond these bytes.
        self.floor = np.array([window.beside for window in self.windows], dtype=np.int64)
        for rows in self.above:
            self.floor += rows.min(axis=0)
            rows -= rows.min(axis=0)
        self.order = sorted(range(len(pools)), key=lambda g: -self.above[g].max(initial=0))

    def _add(self, w, window):
        def add(part, of):
            self.above[part][:, w] += [of(sizes) for sizes in self.pools[part]]

        add(window.part, lambda sizes: sizes.of(window))
        for part, count in window.others:
            add(part, lambda sizes: count * sizes.held)
        for one, count in window.freed:
            saving = [(part, i) for part, i in one.readers if any(i in sizes.saves for sizes in self.pools[part])]
            if any(all(i in sizes.saves for sizes in self.pools[part]) for part, i in saving):
                continue
            add(one.part, lambda sizes: -count * sizes.results[one.result])
            size = count * max(sizes.results[one.result] for sizes in self.pools[one.part])
            for part, i in saving:
                add(part, lambda sizes: size if i in sizes.saves else 0)

    def within(self, budget):
        """Returns the index of a schedule for each part, so that no window exceeds ``budget`` bytes, at the lowest cost
        that the search finds; None if the search finds no such choice."""
        capacity = budget - self.floor
        if (capacity < 0).any():
            return None
        found = self._search(capacity)
        return None if found is None else self._exchanged(found, capacity)

    def _search(self, capacity):
        by_cost = [np.argsort(costs, kind="stable") for costs in self.costs]
        rest = [0.0] * (len(self.order) + 1)  # rest[d]: lower bound on the cost of all parts at depth d or deeper
        for depth in reversed(range(len(self.order))):
            rest[depth] = rest[depth + 1] + self.costs[self.order[depth]].min()
        best, best_cost, nodes = None, float("inf"), 0
        stack = [(0, 0.0, capacity, ())]
        while stack and nodes < _MOST_NODES:
            depth, cost, left, taken = stack.pop()
            nodes += 1
            if cost + rest[depth] >= best_cost:
                continue
            if depth == len(self.order):
                best, best_cost = taken, cost
                continue
            part = self.order[depth]
            fits = (self.above[part] <= left).all(axis=1)
            for i in reversed(by_cost[part]):  # reversed, so that the cheapest schedule is on top of the stack
                if fits[i]:
                    stack.append((depth + 1, cost + self.costs[part][i], left - self.above[part][i], (*taken, int(i))))
        if best is None:
            return None
        chosen = [0] * len(self.order)
        for part, i in zip(self.order, best):
            chosen[part] = i
        return chosen

    def _exchanged(self, chosen, capacity):
        """Replaces the schedules of one or two parts by others as long as the cost falls and all windows keep their
        capacity."""
        left = capacity - sum(self.above[g][i] for g, i in enumerate(chosen))
        for _ in range(_MOST_EXCHANGES):
            better = self._one_better(chosen, left) or self._two_better(chosen, left)
            if better is None:
                return chosen
            for g, i in better:
                left = left + self.above[g][chosen[g]] - self.above[g][i]
                chosen[g] = i
        return chosen

    def _one_better(self, chosen, left):
        best, gain = None, 0.0
        for g, now in enumerate(chosen):
            fits = (self.above[g] - self.above[g][now] <= left).all(axis=1)
            gains = np.where(fits, self.costs[g][now] - self.costs[g], -np.inf)
            if gains.max() > gain:
                best, gain = [(g, int(gains.argmax()))], gains.max()
        return best

    def _two_better(self, chosen, left):
        for g, h in itertools.permutations(range(len(chosen)), 2):
            for i in np.flatnonzero(self.costs[g] < self.costs[g][chosen[g]]):
                free = left + self.above[g][chosen[g]] - self.above[g][i]
                fits = (self.above[h] - self.above[h][chosen[h]] <= free).all(axis=1)
                gains = np.where(fits, self.costs[g][chosen[g]] - self.costs[g][i] + self.costs[h][chosen[h]] - self.costs[h], 0)
                if gains.max() > 0:
                    return [(g, int(i)), (h, int(gains.argmax()))]
        return None

    def least(self):
        """Returns (the lowest peak of the step that is found, the index of a schedule for each part), by a binary
        search over budgets."""
        low, step = int(self.floor.max(initial=0)), 1
        best = self.within(low)
        while best is None:  # tries budgets above the floor, in growing steps
            low, step = low + step, 2 * step
            best = self.within(low)
            low = low - step // 2 + 1 if best is not None else low
        high = self.peak(best)
        for _ in range(_MOST_HALVINGS):
            if low >= high:
                break
            middle = (low + high - 1) // 2
            found = self.within(middle)
            if found is None:
                low = middle + 1
            else:
                best, high = found, self.peak(found)
        return high, best

    def peak(self, chosen):
        """Returns the peak of a step with these schedules."""
        return int((self.floor + sum(self.above[g][i] for g, i in enumerate(chosen))).max(initial=0))
