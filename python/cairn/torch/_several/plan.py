"""Plans the parts of a step together.

A *Part* (points.py) is one graph of the step. A *Point* is one of its schedules, with the memory and the time that the
schedule takes. Each part has a pool of such schedules, which take different amounts of memory. choose.py picks one
schedule for each part. Then the solver searches for a new schedule of each part, within exactly the memory that the
schedules of the other parts leave to it, and adds the schedule to the part's pool. Then schedules are picked again,
and so on, as long as there is time.
"""

import dataclasses
import time

from .. import _cache, _private
from .._errors import InfeasibleError
from .._plan.ranks import first_of_ranks
from .._plan.share import TINY
from .._plan.solve import digest
from .._report import StepReport, size_text
from .choose import Choice, peak, peak_of

# Fractions of the time limit. "pools": time at which the first filling of the pools ends. "search": time at which the
# search for schedules within the budget, or within lower budgets, ends. The rest of the time serves to make the step
# cheaper. "one search": a single search gets at least a quarter of this time.
_SHARES = {"pools": 2 / 5, "search": 7 / 10, "one search": 1 / 50}
# the first schedules of a pool are searched for at these levels; 0 is the least peak of a part, 1 its peak without a
# budget
_LEVELS = (3 / 4, 1 / 2, 1 / 4)
_ROUNDS = 6  # largest number of tries to make a step fit into one budget
_PASSES = 2  # with a work limit: number of times that each part is searched again to make the step cheaper
# Each next budget is lower than the lowest peak found by a fraction of this peak. The fraction is the first value at
# first. It is halved whenever a budget is not met, down to the second value.
_FIRST_DESCENT, _LAST_DESCENT = 1 / 16, 1 / 512
_SMALL = 1 / 200  # a part whose peak is at most this fraction of the step's peak is not planned


@dataclasses.dataclass
class Plan:
    """Schedules for the parts of a step: ``schedules[key]`` is [steps, transfers] of the Part with this key."""

    schedules: dict
    report: StepReport


class Planner:
    """Plans the parts of one step. ``parts``: the Parts. ``windows``: the Windows of the step, whose parts are indices
    of ``parts``. ``times``: for each part, the number of times that a step runs it. ``goal``: the budget in bytes;
    None: the least possible. ``is_share``: whether the budget is a share; if so, a tiny step may take the least
    possible budget instead. ``most_beside``: the windows, if all graphs outside of the step are planned without a
    budget. A larger budget lets these graphs hold more, so the least budget of an error must leave room for it."""

    def __init__(self, parts, windows, times, goal, limits, is_share=False, most_beside=None):
        self.parts, self.times, self.goal, self.limits = parts, times, goal, limits
        self.or_least = is_share
        self.asked = set()  # (part, peak, held bytes) of earlier searches
        self.windows = undominated(windows)
        self.most_beside = undominated(windows if most_beside is None else most_beside)
        self.begin = time.monotonic()
        self.baseline = peak(self.most_beside, [part.baseline for part in parts])

    def plan(self):
        """Returns a Plan. Raises InfeasibleError if no schedules within the budget are found."""
        unplanned = [part.unplanned for part in self.parts]
        if self.goal is not None and self._peak(unplanned) <= self.goal:
            return self._plan(unplanned)
        store = _private.collective_store()
        names = [part.trace.shared_name for part in self.parts]
        if store is None or None in names:
            return self._plan(self._find())
        shape = [[w.part, w.backward, w.others] for w in self.windows]
        name = digest(names, sorted(map(str, shape)), self.times, sorted(self.limits.arguments().items()))
        found, of_other = first_of_ranks(store, f"cairn/step/{name}", self.limits.wait_s, self._find_for_ranks)
        if "unmet" in found and not of_other:
            message, *numbers = found["unmet"]
            raise InfeasibleError(message, *numbers)
        chosen = self._of_schedules(found["schedules"]) if "schedules" in found else None
        # ``chosen`` is None if the other rank's plan exceeds the budget on this rank, where operations may need more
        # scratch, or if the other rank, perhaps in an earlier step that needed more, has found no plan. This rank then
        # searches for itself.
        if chosen is None and of_other:
            chosen = self._find()
        return self._plan(chosen)

    def _find_for_ranks(self):
        try:
            return {"schedules": self._schedules(self._find())}
        except InfeasibleError as error:
            return {"unmet": [str(error), error.lower_bound, error.least_budget]}

    def _find(self):
        """Returns a Point for each part, from the cache or from a search. If the budget is the least possible, also
        sets ``goal`` to the bytes that were found."""
        name = f"step-{self._digest(self.goal, self.limits.identity)}.json"
        chosen = self._of_schedules(_cache.load(name))
        if chosen is not None:
            return chosen
        self._fill_pools()
        chosen = self._within(self.goal) if self.goal is not None else None
        # a search under lower budgets can find schedules that the search within the budget does not find
        if chosen is None:
            chosen = self._lowest_known(self._descended())
            if self.goal is None or (self.or_least and self.baseline <= TINY):
                self.goal = max(self.goal or 0, self._peak(chosen))
            if self._peak(chosen) > self.goal:
                raise self._unmet(chosen)
        chosen = self._cheaper(chosen)
        _cache.store(name, self._schedules(chosen))
        return chosen

    def _lowest_known(self, points):
        """Returns ``points``, or the schedules of an earlier search if their peak is lower. Stores the lower ones. The
        least budget that an InfeasibleError has named must work, even if the search does not find its schedules again."""
        name = f"step-least-{self._digest(self.limits.link, self.limits.host_budget)}.json"
        known = self._points_of(_cache.load(name))
        if known is not None and self._peak(known) <= self._peak(points):
            return known
        _cache.store(name, self._schedules(points))
        return points

    # --- Time

    def _spent(self):
        return (time.monotonic() - self.begin) / self.limits.time_limit

    def _is_time(self, name):
        """Returns whether the named share of the time limit is not used up. If there is a work limit, there is no time
        limit."""
        return self.limits.work_limit is not None or self._spent() < _SHARES[name]

    def _arguments(self, share):
        return self.limits.part(max(share, _SHARES["one search"] / 4))

    # --- Searches

    def _fill_pools(self):
        """Finds the first schedules of each part: schedules that hold the least memory, the cheapest ones, and some
        between these extremes."""
        large = [part for part in self.parts if self._is_large(part)]
        share = _SHARES["pools"] / max(1, len(large) * (2 + 2 * len(_LEVELS)))
        for part in large:
            part.find(None, None, self._arguments(share))
            part.find(None, 0, self._arguments(share))
        for level in _LEVELS:
            for part in large:
                if not self._is_time("pools"):
                    return
                most, held = _between(part, level)
                part.find(max(_peak(part.unplanned), most), held, self._arguments(share))
                part.find(most, held, self._arguments(share))

    def _is_large(self, part):
        return _peak(part.unplanned) > _SMALL * self.baseline

    def _choice(self):
        return Choice([[point.sizes for point in part.points] for part in self.parts], self.windows, self.times)

    def _points(self, chosen):
        return [part.points[i] for part, i in zip(self.parts, chosen)]

    def _within(self, goal):
        """Returns a Point for each part, so that the step stays within ``goal`` bytes; None if no such points are
        found. If the pools contain no such points, takes the parts that hold memory at the step's peak, and searches
        for schedules of these parts that take less memory."""
        for attempt in range(_ROUNDS):
            choice = self._choice()
            chosen = choice.within(goal)
            if chosen is not None:
                return self._points(chosen)
            if not self._is_time("search"):
                return None
            points = self._points(choice.least()[1])
            known = sum(len(part.points) for part in self.parts)
            asked = [(i, self._limits(i, points, goal, 1 if attempt % 2 == 0 else 1 / 2)) for i, part in enumerate(self.parts)
                     if self._is_large(part)]
            asked = [(i, pairs) for i, pairs in asked
                     if any(most < _peak(points[i]) or held < points[i].sizes.held for most, held in pairs)]
            for i, pairs in asked:
                self._ask(i, pairs, (_SHARES["search"] - self._spent()) / max(1, 2 * len(asked)))
            if sum(len(part.points) for part in self.parts) == known:
                return None
        return None

    def _limits(self, i, points, goal, share=1.0):
        """Returns pairs (peak, held bytes) that part ``i`` may have so that the step stays within ``goal``, if the
        other parts keep their points. ``share``: the fraction of the excess over ``goal`` that this part must give up.
        There are several pairs if other runs of the same part hold memory while it runs: the more bytes each run holds,
        the lower the peak must be."""
        sizes, own = [point.sizes for point in points], points[i]
        # shared: (bytes for a pass together with other runs of the same part, number of these runs)
        most, held, shared = goal, own.sizes.held + goal, []
        for window in self.windows:
            left = goal - peak_of(window, sizes)
            left = int(left * share) if left < 0 else left
            count = window.count(i)
            if window.part == i and count:
                shared.append((own.sizes.of(window) + count * own.sizes.held + left, count))
            elif window.part == i and own.sizes.of(window) > window.at_end:
                most = min(most, own.sizes.of(window) + left)
            elif count:
                held = min(held, own.sizes.held + left // count)
        if not shared:
            return [(max(1, most), max(0, held))]
        now, full = _peak(own), _peak(self.parts[i].unplanned)
        peaks = {min(map(_peak, self.parts[i].points)), now, (now + full) // 2, full}
        pairs = [(min(most, peak), min(held, min((bytes_ - peak) // count for bytes_, count in shared))) for peak in sorted(peaks)]
        return [(max(1, peak), held) for peak, held in pairs if held >= 0] or [(max(1, min(most, now)), 0)]

    def _ask(self, i, pairs, share):
        """Searches for a schedule of part ``i`` within each of the ``pairs`` (peak, held bytes) that has not been
        searched before. ``share``: the fraction of the time limit for all these searches."""
        new = [pair for pair in pairs if (i, *pair) not in self.asked]
        self.asked.update((i, *pair) for pair in new)
        for most, held in new:
            self.parts[i].find(most, held, self._arguments(share / len(new)))

    def _descended(self):
        """Returns a Point for each part, with the lowest peak of the step that is found by trying lower and lower
        budgets."""
        points, step = self._least_of_pools(), _FIRST_DESCENT
        while step >= _LAST_DESCENT and self._is_time("search"):
            least = self._peak(points)
            lower = self._within(least - max(1, int(step * least)))
            if lower is None:
                step /= 2
            else:
                points = lower
        if self.goal is None:
            return points
        # the last searches may have found schedules for a budget in between, which the error then names
        return min(points, self._least_of_pools(), key=self._peak)

    def _least_of_pools(self):
        return self._points(self._choice().least()[1])

    def _cheaper(self, points):
        """Searches each part again, within the memory that the other parts leave to it, as long as the step gets
        cheaper."""
        passes, changed = 0, True
        while changed and (passes < _PASSES if self.limits.work_limit is not None else self._spent() < 1):
            changed, passes = False, passes + 1
            for i in sorted(range(len(points)), key=lambda i: -self._added(i, points)):
                rest = 1 - self._spent()
                costly = sum(self._added(j, points) > 0 for j in range(len(points)))
                if self._added(i, points) <= 0 or (self.limits.work_limit is None and rest <= 0):
                    continue
                self._ask(i, self._limits(i, points, self.goal), rest / (2 * costly))
                better = self._choice().within(self.goal)
                if better is not None and self._cost(self._points(better)) < self._cost(points):
                    points, changed = self._points(better), True
        return points

    def _added(self, i, points):
        return self.times[i] * (points[i].sizes.cost - self.parts[i].unplanned.sizes.cost)

    def _cost(self, points):
        return sum(times * point.sizes.cost for times, point in zip(self.times, points))

    def _peak(self, points):
        return peak(self.windows, [point.sizes for point in points])

    # --- Results

    def _digest(self, *limits):
        """Returns a name for a search. ``limits``: the limits of the search, as far as they matter for the name."""
        windows = [[w.part, w.backward, w.others, w.beside, w.at_end, [[dataclasses.astuple(one), count] for one, count in w.freed]]
                   for w in self.windows]
        return digest([part.graph.fingerprint for part in self.parts], [part.key for part in self.parts], windows, self.times,
                      limits, _private.kernel_settings())

    def _schedules(self, points):
        return {part.key: [point.steps, point.transfers] for part, point in zip(self.parts, points)}

    def _of_schedules(self, schedules):
        """Returns the Points of schedules from the cache or from another rank; None if the schedules are damaged or
        exceed the budget. If the budget is the least possible, sets ``goal`` to their peak."""
        points = self._points_of(schedules)
        if points is None or (self.goal is not None and self._peak(points) > self.goal):
            return None
        self.goal = self._peak(points) if self.goal is None else self.goal
        return points

    def _points_of(self, schedules):
        """Adds schedules to the pools. Returns their Points; None if the schedules are damaged."""
        if not isinstance(schedules, dict):
            return None
        points = []
        for part in self.parts:
            entry = schedules.get(part.key)
            is_entry = isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], list)
            points.append(part.add(*entry) if is_entry else None)
        return None if None in points else points

    def _plan(self, points):
        window, most = self._largest(points)
        cost = sum(times * part.baseline.cost for times, part in zip(self.times, self.parts))
        report = StepReport(parts=len(self.parts), budget=self.goal, baseline=self.baseline, promised=most,
                            cost_increase=self._cost(points) / cost - 1 if cost else 0.0,
                            at=self._name(window), seconds=time.monotonic() - self.begin)
        return Plan(self._schedules(points), report)

    def _largest(self, points, windows=None):
        sizes = [point.sizes for point in points]
        return max(((window, peak_of(window, sizes)) for window in windows or self.windows), key=lambda found: found[1])

    def _name(self, window):
        return f"the {'backward' if window.backward else 'forward'} pass of {self.parts[window.part].report.name}"

    def _unmet(self, points):
        window, least = self._largest(points, self.windows + self.most_beside)
        # results of the graph itself that are freed before its backward pass can make ``least`` the smaller one
        own = min(points[window.part].sizes.of(window), least)
        return InfeasibleError(
            f"a step of {len(self.parts)} graph{'' if len(self.parts) == 1 else 's'}: budget {size_text(self.goal)} ({self.goal} bytes) of activations and scratch cannot be "
            f"met: the least that is found is {size_text(least)} ({least} bytes), in {self._name(window)}, which takes {size_text(own)} "
            f"while others hold {size_text(least - own)}; without a budget the step needs {size_text(self.baseline)}. Fewer graph "
            "breaks, or a smaller batch, need less.",
            max(part.graph.peak_lower_bound for part in self.parts), least)


def undominated(windows):
    """Returns the windows that are not redundant. A window is redundant if another window of the same pass of the same
    part counts at least as much memory in every respect."""
    kept, counts = [], {}  # counts: Freed -> number of runs, for each window that is kept
    for window in sorted(set(windows), key=lambda w: (-w.beside, -w.at_end, -sum(count for _, count in w.others), len(w.freed))):
        freed = dict(window.freed)
        if not any(other.part == window.part and other.backward == window.backward and other.beside >= window.beside
                   and other.at_end >= window.at_end and all(other.count(part) >= count for part, count in window.others)
                   and all(count <= freed.get(one, 0) for one, count in counts[other].items()) for other in kept):
            kept.append(window)
            counts[window] = freed
    return kept


def _peak(point):
    return max(point.sizes.forward, point.sizes.backward)


def _between(part, level):
    """Returns (peak, held bytes) between the least values among a part's points (``level`` 0) and the values without a
    budget (``level`` 1)."""
    least = min(map(_peak, part.points)), min(point.sizes.held for point in part.points)
    most = _peak(part.unplanned), part.unplanned.sizes.held
    return tuple(int(low + level * (high - low)) for low, high in zip(least, most))
