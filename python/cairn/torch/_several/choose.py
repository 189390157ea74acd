"""Chooses one schedule for each part of a step, so that the step stays within its budget at the least cost.

The step is a list of *windows*. A window is one pass of one part, during which other parts hold memory. This is a
multiple-choice knapsack with one capacity for each window. Branch and bound solves it exactly for steps of a few parts.
For larger ones it stops after _MOST_NODES nodes, and exchanges improve what was found.
"""

import collections
import dataclasses
import itertools

import numpy as np

_MOST_NODES = 4_000  # nodes of a search; about 0.1 s
_MOST_EXCHANGES = 200  # improvements by exchanges
_MOST_HALVINGS = 16  # searches for the least budget, each of which halves what is unknown of it


@dataclasses.dataclass(frozen=True)
class Freed:
    """A result of a part that nobody holds any more. It is in memory only if a schedule saves it: the schedule of the part
    itself, or of a reader. ``result``: its index. ``readers``: (part, index of its input) of the latter."""

    part: int
    result: int
    readers: tuple = ()


@dataclasses.dataclass(frozen=True)
class Window:
    """One pass of a part. ``others`` has (part, number of its runs that are held) for all runs beside the one that this
    pass belongs to. ``beside``: bytes of anything else that is in memory. ``freed``: a Freed for each freed result of the
    parts, which their sizes count, with the number of runs in which it is freed. ``at_end``: the pass takes at least these
    bytes, whatever its schedule, because autograd adds up gradients when it ends."""

    part: int
    backward: bool
    others: tuple = ()
    beside: int = 0
    freed: tuple = ()
    at_end: int = 0

    def count(self, part):
        """Returns how many other runs of a part are held."""
        return dict(self.others).get(part, 0)

    def joined(self, other):
        """Returns the Window that counts what is in memory in either of two windows of one pass with the same others."""
        freed = collections.Counter(dict(self.freed)) & collections.Counter(dict(other.freed))
        return dataclasses.replace(self, beside=max(self.beside, other.beside), freed=tuple(freed.items()),
                                   at_end=max(self.at_end, other.at_end))


@dataclasses.dataclass(frozen=True)
class Sizes:
    """What a schedule of a part takes, in bytes: in its forward pass, in its backward pass, and between them. Results
    count to the end of the backward pass. ``cost``: the time of both passes. ``results``: the bytes of each result that
    the schedule does not save for the backward pass, and 0 for the others. ``saves``: the indices of inputs that it
    saves."""

    forward: int
    backward: int
    held: int
    cost: int
    results: tuple = ()
    saves: frozenset = frozenset()

    def of(self, window):
        return max(window.at_end, self.backward if window.backward else self.forward)


def peak_of(window, sizes):
    """Returns the bytes in memory at the peak of a window. ``sizes``: of the chosen schedule of each part."""
    return sizes[window.part].of(window) + window.beside + held_by_parts(window.others, window.freed, sizes)


def held_by_parts(others, freed, sizes):
    """Returns the bytes that other runs hold, less those of freed results. ``others``, ``freed``: of a Window."""
    return sum(count * sizes[part].held for part, count in others) - sum(
        count * sizes[one.part].results[one.result] for one, count in freed if not any(i in sizes[part].saves for part, i in one.readers))


def peak(windows, sizes):
    return max((peak_of(window, sizes) for window in windows), default=0)


class Choice:
    """The choice among ``pools[part]``, lists of Sizes. ``times[part]``: how often a step runs the part.

    Each schedule has bytes of its own in each window. So a result that several chosen schedules save is counted several
    times. A choice never takes more than it is said to take."""

    def __init__(self, pools, windows, times):
        self.pools, self.windows = pools, list(windows)
        self.costs = [np.array([times[g] * s.cost for s in pool], dtype=float) for g, pool in enumerate(pools)]
        # For each part and schedule: the bytes that it adds to each window.
        self.above = [np.zeros((len(pool), len(self.windows)), dtype=np.int64) for pool in pools]
        for w, window in enumerate(self.windows):
            self._add(w, window)
        # If all parts added their least, the windows would take these bytes. The schedules add the rest.
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
        """Returns the index of a schedule for each part, so that no window exceeds ``budget``, at the least cost that is
        found; None if there is no such choice, or none is found."""
        capacity = budget - self.floor
        if (capacity < 0).any():
            return None
        found = self._search(capacity)
        return None if found is None else self._exchanged(found, capacity)

    def _search(self, capacity):
        by_cost = [np.argsort(costs, kind="stable") for costs in self.costs]
        rest = [0.0] * (len(self.order) + 1)  # the least cost of all parts from a depth on
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
            for i in reversed(by_cost[part]):  # the cheapest is on top of the stack
                if fits[i]:
                    stack.append((depth + 1, cost + self.costs[part][i], left - self.above[part][i], (*taken, int(i))))
        if best is None:
            return None
        chosen = [0] * len(self.order)
        for part, i in zip(self.order, best):
            chosen[part] = i
        return chosen

    def _exchanged(self, chosen, capacity):
        """Exchanges schedules of one or two parts as long as the cost falls."""
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
        """Returns (the lowest peak of a step that is found, the index of a schedule for each part)."""
        low, step = int(self.floor.max(initial=0)), 1
        best = self.within(low)
        while best is None:  # budgets above the floor, in growing steps
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
