"""Stores, for each graph, the schedule with the lowest peak that any search of any process has found."""

import time

import cairn

from .. import _cache

# Fractions of the time limit: for the first search, for all searches under lower budgets ("tries") together, and for a
# single try. In the rest of the time, a search looks for a cheaper schedule with the lowest peak found.
_SHARES = {"search": 1 / 2, "tries": 3 / 8, "one try": 1 / 20}
_FIRST_STEP = 1 / 64  # after a budget was met, the next budget is lower by at least this fraction of the peak
# if a met and an unmet budget differ by at most this fraction of the peak, the next try has a budget that is one byte
# below the met budget
_CLOSE = 1 / 400
_LAST_TRIES = 16  # largest number of tries whose budget is one byte below the met budget
# fractions by which the last budgets to be tried are lower than the lowest peak found
_FAR_BELOW = (1 / 16, 1 / 8, 1 / 4)


class Least:
    """The schedule of lowest known peak of a graph. ``digest``: a text that differs for different graphs. ``in_time``:
    a function that reorders a schedule's steps, so that each update of a parameter comes after all readers of the
    parameter (Trace.in_time). ``moves``: whether values may move to the host; if so, lower bounds that were proved for
    recomputation alone do not hold."""

    def __init__(self, graph, digest, in_time=list, moves=False):
        self.graph, self.in_time, self.moves = graph, in_time, moves
        self.name = f"least-{digest}.json"
        self.steps, self.transfers = None, None
        self.peak = graph.baseline.peak
        self.lower_bound = 0
        self._searched = None
        self.offer(graph.input_order)
        stored = _cache.load(self.name)
        if isinstance(stored, dict) and is_schedule(graph, stored.get("steps"), stored.get("transfers")):
            self.offer(stored["steps"], transfers=stored.get("transfers"))
            self._searched = stored.get("searched")  # limits of the search that found the stored schedule
        self._stored = (self.peak, self._searched)

    def offer(self, steps, lower_bound=None, transfers=None):
        """Stores a schedule if its peak is the lowest so far. Returns (its steps as reordered by in_time(), their
        peak). A schedule with ``transfers`` keeps its order, because transfers refer to steps by number."""
        self.lower_bound = max(self.lower_bound, lower_bound or 0)
        steps = [int(v) for v in steps]
        steps = steps if transfers else self.in_time(steps)
        evaluation = cairn.evaluate(self.graph, cairn.Schedule(steps, transfers))
        if evaluation.valid and (self.steps is None or (evaluation.peak, evaluation.cost) < (self.peak, self._cost)):
            self.steps, self.transfers, self.peak, self._cost = steps, transfers, evaluation.peak, evaluation.cost
        return steps, evaluation.peak

    @property
    def proved(self):
        return self.peak <= self.lower_bound

    def save(self):
        now = (self.peak, self._searched)
        if now != self._stored:
            _cache.store(self.name, {"steps": self.steps, "transfers": self.transfers, "searched": self._searched})
            self._stored = now

    def search(self, limits):
        """Searches for the least peak: first with the goal "min", then under lower and lower budgets until a budget is
        not met, because a search under a budget can reach lower peaks than "min". Does nothing if the stored schedule
        was found under the same limits. This search is used both for budget="min" and after a budget was not met, so
        the least budget that the error names is the budget that "min" reaches."""
        given = [limits.time_limit, limits.work_limit]
        if self._searched == given:
            return
        begin = time.monotonic()
        until = begin + (_SHARES["search"] + _SHARES["tries"]) * limits.time_limit
        self.offer_answer("min", limits.part(_SHARES["search"]))

        def met(goal):
            return self.offer_answer(goal, limits.part(_SHARES["one try"])) <= goal

        def more():
            return not self.proved and (limits.work_limit is not None or time.monotonic() < until)

        self._descend(met, more)
        # tries far lower budgets as well: a search can meet a budget although it did not meet a larger one
        for share in _FAR_BELOW:
            goal = int((1 - share) * self.peak)
            if more() and goal >= max(1, self.lower_bound) and met(goal):
                self._descend(met, more)
        rest = 1 - (time.monotonic() - begin) / limits.time_limit
        if limits.work_limit is None and rest > 0 and not self.is_baseline:
            try:
                self.offer_answer(self.peak, limits.part(rest), start=cairn.Schedule(self.steps, self.transfers))
            except cairn.InputError:
                pass  # some solvers can start only from schedules of their own kind
        self._searched = given
        self.save()

    def _descend(self, met, more):
        """Tries budgets below the lowest peak found, in growing steps, until a budget is not met. Then tries budgets
        between the largest unmet budget and the lowest peak found."""
        unmet, step, last = 0, 1, 0  # unmet: the largest budget that was not met
        while more() and last < _LAST_TRIES:
            between = self.peak - max(unmet, self.lower_bound - 1)
            if between <= 1:
                break
            if unmet and between <= _CLOSE * self.peak:
                step, last = 1, last + 1
            goal = self.peak - min(step, between // 2)
            if met(goal):
                step = max(2 * step, int(_FIRST_STEP * self.peak))
            elif step == 1:
                break
            else:
                unmet = max(unmet, goal)

    @property
    def is_baseline(self):
        return not self.transfers and self.steps == self.in_time(list(map(int, self.graph.input_order)))

    def offer_answer(self, goal, arguments, **more):
        """Searches within the budget ``goal``, and passes the schedule found to offer(). Returns the schedule's peak;
        infinity if no schedule was found."""
        try:
            # A search for transfers needs a budget, so the goal "min" is searched without them.
            graph = self.graph.with_host_memory("") if goal == "min" else self.graph
            answer = cairn.solve(graph, goal, peak_only=True, **arguments, **more)
        except (cairn.InfeasibleError, cairn.NotFoundError) as error:
            self.offer_error(error, arguments["solver"])
            return float("inf")
        bound = self.bound(answer.lower_bound, arguments["solver"]) if goal == "min" else None
        return self.offer(answer.schedule.steps, bound, rows(answer.schedule.transfers))[1]

    def bound(self, bound, solver, scope=""):
        """Returns a lower bound on the peak of every schedule. This is ``bound``, which the solver proved, unless the
        proof may be only about a part of all schedules, such as those without recomputation."""
        of_all = not self.moves and (solver == "auto" or scope == "any schedule")
        return bound if of_all else self.graph.peak_lower_bound

    def offer_error(self, error, solver):
        """Takes the lower bound and the schedule of least peak from ``error``, the error of a search that did not meet
        its budget."""
        self.lower_bound = max(self.lower_bound, self.bound(error.lower_bound or 0, solver, error.scope))
        if error.least is not None:
            self.offer(error.least.schedule.steps, transfers=rows(error.least.schedule.transfers))


def rows(transfers):
    """Returns transfers as lists of numbers, for files; None if there are none."""
    if not transfers.evicts:
        return None
    return [[list(row) for row in transfers.evicts], [list(row) for row in transfers.fetches]]


def schedule_of(entry):
    """Returns the schedule that an entry of a cache file contains."""
    return cairn.Schedule(entry["steps"], entry.get("transfers"))


def is_schedule(graph, steps, transfers=None):
    """Returns whether the graph can run ``steps`` and ``transfers``, which come from a file and may be damaged."""
    def is_node(value):
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < graph.node_count

    if not isinstance(steps, list) or not all(map(is_node, steps)):
        return False
    try:
        return cairn.evaluate(graph, cairn.Schedule(steps, transfers)).valid
    except (cairn.InputError, TypeError, LookupError):
        return False
