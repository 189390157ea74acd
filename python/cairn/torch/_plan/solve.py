"""Finds a schedule within a budget. Takes it from the cache, from another rank, or from a search by the solver."""

import dataclasses
import hashlib
import json
import math
import numbers
import operator
import time
from typing import Optional

import cairn
from cairn import _cairn

from .. import _cache, _private
from .._errors import InfeasibleError
from .least import Least, is_schedule, rows, schedule_of
from .ranks import first_of_ranks

_FORMAT = 2
_WAIT_BEYOND_LIMIT_S = 120
_WAIT_FOR_WORK_S = 1800  # seconds to wait for a search under a work limit; long, because its duration is unknown
# Largest number of searches for one budget. After a search, in_time() reorders the steps of the schedule found, which
# can raise the peak above the budget. Then the next search gets a smaller budget.
_TRIES = 3


@dataclasses.dataclass
class Limits:
    """Limits and other options of a search. With a work limit, the answer is the same on every machine."""

    time_limit: float = 10.0
    work_limit: Optional[int] = None
    seed: int = 0
    solver: str = "auto"
    link: str = ""  # a link as cairn.solve takes it; empty: nothing moves to the host
    host_budget: Optional[int] = None  # bytes

    def __post_init__(self):
        """Converts numbers of other packages, such as numpy's, because files and solvers accept only Python's."""
        self.time_limit = _seconds(self.time_limit)
        if self.work_limit is not None:
            self.work_limit = _count("work_limit", self.work_limit, 1)
        self.seed = _count("seed", self.seed, 0)
        if self.solver not in cairn.solvers():
            raise cairn.InputError(f"solver: there is no {self.solver!r}; cairn.solvers() lists them")

    def arguments(self):
        if self.work_limit is not None:
            return {"work_limit": self.work_limit, "seed": self.seed, "solver": self.solver}
        return {"time_limit": self.time_limit, "seed": self.seed, "solver": self.solver}

    def linked(self, graph):
        """Returns the graph. If there is a link, adds the link and the host's memory to it, so that values may move to
        the host."""
        return graph.with_host_memory(self.link, str(self.host_budget or "")) if self.link else graph

    @property
    def identity(self):
        """Returns the values that distinguish these limits from other limits; they become part of the names of cache
        files."""
        return sorted({**self.arguments(), **({"link": [self.link, self.host_budget]} if self.link else {})}.items())

    def part(self, share):
        """Returns the arguments of a search that gets the fraction ``share`` of the time limit. A work limit is not
        divided, so that searches with equal arguments find the same schedule."""
        return {**self.arguments(), **({"time_limit": share * self.time_limit} if self.work_limit is None else {})}

    @property
    def wait_s(self):
        """Returns the number of seconds for which a rank waits for another rank's schedule."""
        return _WAIT_FOR_WORK_S if self.work_limit is not None else 10 * self.time_limit + _WAIT_BEYOND_LIMIT_S


@dataclasses.dataclass
class Solved:
    steps: list
    peak: int  # bytes of the schedule's peak
    cost: int
    baseline_peak: int
    baseline_cost: int
    lower_bound: Optional[int]
    status: str
    budget: Optional[int]  # None: the least possible
    seconds: float
    source: str  # "solved", "cache" or "another rank"
    key: str
    # if not None, the budget is not met, and the schedule is the one with the lowest known peak
    unmet: Optional[InfeasibleError] = None
    transfers: Optional[list] = None  # [rows of evicts, rows of fetches]; None: nothing moves to the host
    host_peak: int = 0 # largest number of bytes on the host at one time
    waiting: int = 0  # part of the cost: time in which steps wait for copies

    @property
    def cost_increase(self):
        return self.cost / self.baseline_cost - 1 if self.baseline_cost else 0.0


def budget_bytes(budget, baseline_peak):
    """Converts a budget to bytes; None for "min". A text must have a form that the command `cairn` accepts. A
    percentage refers to ``baseline_peak``, and its bytes are rounded up."""
    if isinstance(budget, str):
        return _bytes_of_text(budget, baseline_peak)
    size = _whole(budget)
    if size is None:
        raise cairn.InputError(f"budget: bytes, or text as '8GiB', '60%' or 'min'; not {budget!r}")
    if size < 1:
        raise cairn.InputError("budget: the number of bytes is not above 0")
    if size >= 2**63:
        raise cairn.InputError("budget: the number of bytes is not below 2**63")
    return size


def is_min(budget):
    """Returns whether a budget is "min": the least possible memory, so that there are no bytes to meet."""
    return isinstance(budget, str) and budget.strip() == "min"


def _bytes_of_text(budget, baseline_peak):
    text = budget.strip()
    if is_min(text):
        return None
    try:
        size = _cairn.parse_budget(text, baseline_peak)
    except cairn.InputError:
        raise cairn.InputError(f"budget: {budget!r} is neither bytes as '8GiB' or '8 GB', a share of what the model "
                               "needs as '60%', nor 'min'") from None
    # Bytes are rounded up, so a share of many bytes shows the smallest excess over 0% and over 100%.
    largest = _cairn.parse_budget(text, _MANY)
    if largest == 0:
        raise cairn.InputError(f"budget: {budget!r} is not above 0")
    if is_share(text) and largest > _MANY:
        raise cairn.InputError(f"budget: {budget!r} is more than the model needs without one; a share is at most '100%'")
    if _is_fraction(text):
        raise cairn.InputError(f"budget: {budget!r} is not a whole number of bytes; shares are written as '60%'")
    return size


_MANY = 10**9


def _is_fraction(text):
    try:
        return not float(text).is_integer()
    except ValueError:  # the text has a unit
        return False


def _whole(value):
    """Converts a whole number, such as 2**30, 8e9 or a number of numpy, to an int. Returns None for anything else."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return int(value) if isinstance(value, numbers.Real) and float(value).is_integer() else None


def _count(name, value, least):
    number = _whole(value)
    if number is None or not least <= number < 2**63:
        raise cairn.InputError(f"{name}: a whole number that is at least {least}, not {value!r}")
    return number


def _seconds(limit):
    if isinstance(limit, str):
        limit = _cairn.parse_seconds(limit, "time_limit")
    if isinstance(limit, numbers.Real) and not isinstance(limit, bool) and 0 < limit < math.inf:
        return float(limit)
    raise cairn.InputError(f"time_limit: seconds, above 0, not {limit!r}")


def is_share(budget):
    """Returns whether a budget is a share: a percentage of what a graph needs without a budget."""
    return isinstance(budget, str) and budget.strip().endswith("%")


def solve(graph, goal, limits, baseline, description="", shared_name=None, in_time=list, or_least=False,
          advice=""):
    """Finds the cheapest schedule within ``goal`` bytes, or the schedule of least peak if ``goal`` is None. If no
    schedule within ``goal`` is found, raises InfeasibleError with the least budget known. If ``or_least`` is True,
    returns the schedule of that least budget instead, with the error as ``unmet``.

    ``baseline``     the Evaluation of the step without a budget
    ``description``  digest of the operations, which distinguishes graphs that differ only in what their nodes compute
    ``shared_name``  a name of the step that is equal on all ranks although measured costs differ from rank to rank;
                     None: there is only one process
    ``in_time``      a function that reorders the steps of a schedule, so that each update of a parameter comes after
                     all readers of the parameter. The graph does not express this constraint
    ``advice``       a text that is appended to the message of InfeasibleError
    """
    identity = [graph.fingerprint, _private.kernel_settings(), description]
    key = digest(goal, limits.identity, *identity)
    begin = time.monotonic()
    if goal is not None and goal >= graph.baseline.peak:
        return _solved(graph, in_time(list(map(int, graph.input_order))), goal, begin, "solved", key, "optimal", None, baseline)
    # For each solver except auto, the least budget is stored separately.
    own = [] if limits.solver == "auto" else [limits.solver]
    least = Least(graph, digest(*identity, *own), in_time)
    if limits.link:
        alone, graph = least, limits.linked(graph)
        least = Least(graph, digest(*identity, *own, limits.link, limits.host_budget), in_time, moves=True)
        least.offer(alone.steps)  # a schedule without transfers is allowed, too
    store = _private.collective_store() if shared_name is not None else None
    if store is None:
        entry, source = _find(graph, goal, limits, key, least)
    else:
        # The name contains no measured link, because each rank measures a slightly different one; shared_name contains
        # the link as the caller gave it.
        shared = digest(shared_name, sorted(limits.arguments().items()))
        entry, source = _agree(store, f"cairn/{shared}", graph, goal, limits, key, least)
    unmet = InfeasibleError(entry["unmet"][0] + advice, *entry["unmet"][1:]) if "unmet" in entry else None
    if unmet is not None and not or_least:
        raise unmet
    solved = _solved(graph, entry["steps"], goal, begin, source, key, entry["status"], entry.get("lower_bound"),
                     baseline, entry.get("transfers"))
    solved.unmet = unmet
    return solved


def given(graph, schedule, goal, baseline, source="planned with the step's other graphs"):
    """Returns a Solved of a schedule, [steps, transfers], that was found by another search, for example for all graphs
    of a step."""
    return _solved(graph, schedule[0], goal, time.monotonic(), source, "", "feasible", None, baseline, schedule[1])


def digest(*identity):
    """Returns a short text that is different for different ``identity`` (a hash of it)."""
    return hashlib.sha256(json.dumps([_FORMAT, *identity]).encode()).hexdigest()[:24]


def _find(graph, goal, limits, key, least):
    name = f"schedule-{key}.json"
    entry = _valid(graph, goal, _cache.load(name), least.in_time)
    if entry is not None and not (goal is None and least.peak < cairn.evaluate(graph, schedule_of(entry)).peak):
        return entry, "cache"
    if entry is None:
        entry, source = _search(graph, goal, limits, least), "solved"
    else:  # an earlier search for another budget has found a schedule that meets the goal
        entry, source = _entry_of(least), "cache"
    least.save()
    if "unmet" not in entry:
        _cache.store(name, entry)
    return entry, source


def _solved(graph, steps, goal, begin, source, key, status, lower_bound, baseline, transfers=None):
    evaluation = cairn.evaluate(graph, cairn.Schedule(steps, transfers))
    return Solved(steps, evaluation.peak, evaluation.cost, baseline.peak, baseline.cost, lower_bound, status, goal,
                  time.monotonic() - begin, source, key, transfers=transfers, host_peak=evaluation.host_peak,
                  waiting=evaluation.waiting)


def _valid(graph, goal, entry, in_time):
    """Returns the stored schedule if it is valid for this graph and budget; else None."""
    def is_size(value):
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0

    if not isinstance(entry, dict) or not isinstance(entry.get("status"), str) or not is_schedule(
            graph, entry.get("steps"), entry.get("transfers")):
        return None
    if entry.get("lower_bound") is not None and not is_size(entry["lower_bound"]):
        return None
    met = goal is None or cairn.evaluate(graph, schedule_of(entry)).peak <= goal
    return entry if met and in_time(entry["steps"]) == entry["steps"] else None


def _agree(store, name, graph, goal, limits, key, least):
    """Lets one rank search for all ranks that have the same step. ``store``: torch's store, which all ranks share.
    ``name``: the key of the schedule in it."""
    source = "another rank"

    def find():
        nonlocal source
        entry, source = _find(graph, goal, limits, key, least)
        return entry

    entry, of_other = first_of_ranks(store, name, limits.wait_s, find)
    if not of_other:
        return entry, source
    entry = dict(entry)
    if "unmet" in entry:
        message, *numbers = entry["unmet"]
        if goal is None or goal >= numbers[-1]:  # the other rank failed because it had a lower budget
            return _find(graph, goal, limits, key, least)
        entry["unmet"] = [f"on the rank that solves: {message}", *numbers]
    # If the other rank's schedule exceeds the budget with the sizes of this rank, for example because operations need
    # more scratch here, this rank searches for itself.
    if _valid(graph, None if "unmet" in entry else goal, entry, least.in_time) is None:
        return _find(graph, goal, limits, key, least)
    return entry, source


def _search(graph, goal, limits, least):
    """Searches for a schedule whose peak is within the goal after in_time() has reordered it. If none is found, returns
    the schedule of lowest known peak, with the reason as "unmet"."""
    if goal is None:
        least.search(limits)
        return _entry_of(least)
    within = goal
    for _ in range(_TRIES):
        try:
            answer = cairn.solve(graph, within, peak_only=True, **limits.arguments())
            transfers = rows(answer.schedule.transfers)
        except (cairn.InfeasibleError, cairn.NotFoundError) as error:
            least.offer_error(error, limits.solver)
            break
        steps, peak = least.offer(answer.schedule.steps, transfers=transfers)
        if peak <= goal:
            return {"steps": steps, "transfers": transfers, "status": str(answer.status),
                    "lower_bound": least.bound(answer.lower_bound, limits.solver)}
        within = max(1, within - (peak - goal))
    if least.peak > goal:
        least.search(limits)
    if least.peak <= goal:
        return _entry_of(least)
    return {**_entry_of(least), "unmet": _unmet(graph, goal, least.lower_bound, least.peak,
                                                _more_on_host(graph, goal, limits))}


def _entry_of(least):
    return {"steps": least.steps, "transfers": least.transfers, "status": "optimal" if least.proved else "feasible", "lower_bound": least.lower_bound}


def _more_on_host(graph, goal, limits):
    """Returns a sentence for the error about an unmet budget: the host budget with which the goal can be met, if a
    larger host budget helps; else an empty text."""
    if not limits.link or limits.host_budget is None:
        return ""
    from .._report import size_text
    try:
        answer = cairn.solve(graph.with_host_memory(limits.link), goal, peak_only=True, **limits.part(1 / 4))
    except (cairn.InfeasibleError, cairn.NotFoundError):
        return ""
    return (f" host_budget={size_text(limits.host_budget)} is too small for it: it can be met with {size_text(answer.host_peak)} "
            f"({answer.host_peak} bytes) on the host.")


def unmet_within(graph, goal, solved, advice=""):
    """Returns the InfeasibleError about the budget ``goal`` for a graph whose least known schedule is ``solved``."""
    message, *numbers = _unmet(graph, goal, solved.lower_bound, solved.peak)
    return InfeasibleError(message + advice, *numbers)


def _unmet(graph, goal, lower_bound, least, more=""):
    from .._report import size_text
    proved = f"; proved: no less than {size_text(lower_bound)}" if lower_bound else ""
    return [
        f"{graph.name}: budget {size_text(goal)} ({goal} bytes) of activations and scratch cannot be met: the least that "
        f"can is {size_text(least)} ({least} bytes){proved}; without a budget the step needs {size_text(graph.baseline.peak)}. "
        f"Parameters, their gradients and inputs ({size_text(graph.resident_bytes)}) are not part of it. A smaller batch "
        f"needs less.{more}", lower_bound, least]
