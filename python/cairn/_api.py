"""Contains the functions of the package. Their arguments have the names and defaults of the options of the command
`cairn`."""

from __future__ import annotations

import contextlib
import math
import operator
import os
import threading
import warnings
from typing import Callable, Iterable, List, Mapping, Optional, Sequence, Union

import numpy

from . import _cairn
from ._cairn import (Answer, Curve, CurvePoint, FoundPlan, Graph, Info, LargestBatch, LeastBudget, Plan, RunResult,
                     Schedule, Sweep, TrainResult)
from ._errors import InputError
from ._types import DatasetInfo

Steps = Union[Schedule, Sequence[int], numpy.ndarray]
# Types that are accepted as a schedule. An Answer, a LeastBudget or a CurvePoint contributes its schedule and its plan.
Planned = Union[Steps, Answer, LeastBudget, CurvePoint]
Bytes = Union[int, str]
Seconds = Union[float, str]
Progress = Callable[[int, int, float], Optional[bool]]


def _budget_text(budget: Optional[Bytes]) -> str:
    if budget is None:
        return ""
    if isinstance(budget, str):
        if not budget:
            raise InputError("the budget is empty; give bytes, as 1.5GiB or 12345, or 80% of the baseline peak")
        return budget
    return str(_whole(budget, "budget"))


def _whole(value, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        raise InputError(f"{name} must be a whole number or text, not {value!r}") from None


def _within(value, name: str, least: int, most: int) -> int:
    number = _whole(value, name)
    if number < least:
        raise InputError(f"{name}={number} must be at least {least}")
    if number > most:
        raise InputError(f"{name}={number} must be at most {most}")
    return number


def _number(value: float, name: str) -> float:
    """Returns a number of at least 0 as a float. Raises InputError for anything else; the message contains the
    argument's name."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, not {value!r}") from None
    if not 0 <= found < math.inf:
        raise InputError(f"{name}={value!r} must be at least 0 and finite")
    return found


def _bytes(value: Bytes, name: str) -> int:
    if isinstance(value, str):
        return _cairn.parse_bytes(value, name)
    return _whole(value, name)


def _cost_text(cost) -> str:
    if cost is None:
        return ""
    return cost if isinstance(cost, str) else str(_whole(cost, "max_cost"))


def _seconds(limit: Optional[Seconds]) -> Optional[float]:
    if limit is None:
        return None
    return _cairn.parse_seconds(limit, "time_limit") if isinstance(limit, str) else float(limit)


@contextlib.contextmanager
def _threads(threads: Optional[int]):
    """Sets the number of threads of the whole process during a `with` block. None: changes nothing."""
    if threads is None:
        yield
        return
    count = _within(threads, "threads", 1, 4096)
    call = _CallWithThreads()
    with _calls_lock:
        call.before = _cairn.thread_count()
        _calls.append(call)
        _cairn.set_thread_count(count)
    try:
        yield
    finally:
        with _calls_lock:
            at = _calls.index(call)
            _calls.remove(call)
            if at == len(_calls):
                _cairn.set_thread_count(call.before)
            else:  # a later call still runs with its own number, and ends with the number before this call
                _calls[at].before = call.before


class _CallWithThreads:
    before: int  # number of threads before the call


_calls: List[_CallWithThreads] = []  # the running calls with threads=, in the order of their beginnings
_calls_lock = threading.Lock()


def _search(solver, time_limit, work_limit, seed, memory, order, max_occurrences, options):
    most = 0 if max_occurrences is None else _within(max_occurrences, "max_occurrences", 1, (1 << 31) - 1)
    work = None if work_limit is None else _within(work_limit, "work_limit", 1, (1 << 63) - 1)
    return _cairn.SearchArguments(solver=solver, time_limit=_seconds(time_limit), work_limit=work,
                                  seed=_within(seed, "seed", 0, (1 << 64) - 1),
                                  memory=0 if memory is None else _within(_bytes(memory, "memory"), "memory", 1, 1 << 62),
                                  order=order,
                                  max_occurrences=most, options=dict(options or {}))


def _request(budget, max_cost, peak_only, alignment, solver, device_memory, context_memory, overlap_steps=0,
             link=None, host_budget=None):
    if context_memory is not None and device_memory is None:
        raise InputError("context_memory= is a part of device_memory=; give that too")
    if device_memory is not None and budget is not None:
        raise InputError("budget= and device_memory= both say what the arena may have; drop one of them")
    if _whole(overlap_steps, "overlap_steps") < 0:
        raise InputError(f"overlap_steps={overlap_steps} must be at least 0")
    host = _host(link, host_budget)
    return _cairn.Request(
        budget=_budget_text(budget), max_cost=_cost_text(max_cost), peak_only=peak_only,
        alignment=_alignment(alignment), solver=solver,
        device_memory=None if device_memory is None else _size(device_memory, "device_memory"),
        context_memory=None if context_memory is None
        else 0 if context_memory in (0, "0") else _size(context_memory, "context_memory"),
        overlap_steps=_whole(overlap_steps, "overlap_steps"), link=host[0], host_budget=host[1])


def _host(link, host_budget):
    """Returns (link, host budget) as the texts that Request takes; an empty text stands for None."""
    return ("" if link is None else _link_text(link),
            "" if host_budget is None else str(_size(host_budget, "host_budget")))


def _count(value, name: str) -> int:
    count = _whole(value, name)
    if not 0 <= count <= 100_000:
        raise InputError(f"{name}={value} must be 0 to 100000")
    return count


def _linked(graph: Graph, link, host_budget) -> Graph:
    """Returns the graph with the link to the host's memory and the host budget added, if one of them is given."""
    if link is None and host_budget is None:
        return graph
    return graph.with_host_memory(*_host(link, host_budget))


def _link_text(link) -> str:
    """Returns a link as text: the name of a preset, a bandwidth as text, or a number of bytes/s."""
    if isinstance(link, str):
        if not link:
            raise InputError("link: the text is empty; give pcie4, or a bandwidth as 25GB/s")
        return link
    rate = _whole(link, "link")
    if rate < 1:
        raise InputError(f"link={link} must be above 0 bytes/s")
    return f"{rate}B/s"


def _streams(streams) -> int:
    count = _whole(streams, "streams")
    if not 1 <= count < 1 << 31:
        raise InputError(f"streams={streams} must be at least 1")
    return count


def _size(value: Bytes, name: str) -> int:
    size = _bytes(value, name)
    if size < 1:
        raise InputError(f"{name} {size} must be above 0; give bytes (2000000) or a size (8GiB, 500MB)")
    return size


def solve(graph: Graph, budget: Optional[Bytes] = None, *, solver: str = "auto",
          time_limit: Optional[Seconds] = None, work_limit: Optional[int] = None, seed: int = 0,
          max_cost: Union[int, str, None] = None, peak_only: bool = False, alignment: Optional[int] = None,
          order: str = "free", max_occurrences: Optional[int] = None, start: Optional[Planned] = None,
          options: Optional[Mapping[str, int]] = None, memory: Optional[Bytes] = None,
          device_memory: Optional[Bytes] = None, context_memory: Optional[Bytes] = None,
          link: Union[int, str, None] = None, host_budget: Optional[Bytes] = None,
          threads: Optional[int] = None, progress: Optional[Progress] = None) -> Answer:
    """Searches for a schedule of the graph under a memory budget, with its plan.

    budget          bytes into which the plan must fit: an int, "1.5GiB", "60%" of the baseline's peak, or "min", the
                    least budget that the search can reach. None: with the solver "auto", the answer is the knee of the
                    curve of cost over memory, a good compromise; with another solver, it is the schedule of least peak.
    time_limit      seconds, or a text such as "500ms". The default is 10, or no limit if work_limit is given.
    work_limit      limit on the work of the search. With a work limit, unlike a time limit, the answer is the same on
                    every machine.
    max_cost        instead of a budget: finds the least peak for at most this cost, such as "10%" above the baseline's
                    cost, or "1.1x".
    peak_only       whether the budget limits the peak of the schedule instead of the height of its plan.
    alignment       sizes and offsets of the plan are multiples of this many bytes. The default is 256 if nodes have ops
                    (executable operations), else 1.
    order           "free", or "fixed": nodes run for the first time in the graph's input order.
    max_occurrences largest number of times that a node may run; 1: no recomputation.
    start           a schedule from which the search starts. If it fits into the budget, the answer is at least as good.
                    If an Answer, a LeastBudget or a CurvePoint is given, its plan is used as well.
    options         options of the chosen solver that other solvers do not have, such as {"k": 12}; `cairn solvers`
                    lists them.
    memory          limit on the memory for tables and states of exact solvers; "2GiB" by default.
    device_memory   instead of a budget: all memory of a device, such as "24GiB". The budget is this size minus the
                    bytes of resident tensors, libraries and the CUDA context.
    context_memory  the bytes of device_memory that the CUDA context and its code take; "512MiB" by default.
    link            the connection to the host's memory: "pcie3", "pcie4", "pcie5", "c2c", or a bandwidth, such as
                    "25GB/s" or, with latency and half duplex, "25GB/s,10us,half". Values may then leave the device and
                    come back (answer.schedule.transfers), and the cost of a schedule is its makespan. None: no
                    transfers.
    host_budget     the bytes that values moved to the host may take there; unlimited by default.
    threads         number of CPU threads during the call, for the whole process.
    progress        a function that is called as progress(peak, cost, seconds) with the best schedule so far. If the
                    function returns False, the search ends. If it raises an exception, the search ends and solve raises
                    the exception.

    If there is no answer, raises InfeasibleError or NotFoundError, both with lower_bound and least_budget. On Ctrl-C,
    raises Interrupted with the best schedule found so far.
    """
    request = _request(budget, max_cost, peak_only, alignment, solver, device_memory, context_memory,
                       link=link, host_budget=host_budget)
    search = _search(solver, time_limit, work_limit, seed, memory, order, max_occurrences, options)
    with _threads(threads):
        return _cairn.solve(graph, request, search, start, progress)


def _alignment(alignment: Optional[int]) -> int:
    if alignment is None:
        return 0
    return _within(alignment, "alignment", 1, 1 << 62)


def plan(graph: Graph, schedule: Steps, *, alignment: Optional[int] = 1, time_limit: Optional[Seconds] = None,
         work_limit: Optional[int] = None, capacity: Optional[Bytes] = None) -> FoundPlan:
    """Finds an address for every tensor of a schedule.

    alignment   sizes and offsets are multiples of this many bytes; None: 256 if nodes have ops, else 1.
    capacity    bytes; the search ends as soon as the plan fits into them. None: looks for the lowest plan.
    """
    most = None if capacity is None else _bytes(capacity, "capacity")
    return _cairn.plan(graph, schedule, _alignment(alignment), _seconds(time_limit), work_limit, most)


def pareto(graph: Graph, *, points: int = 12, budgets: Optional[Sequence[Bytes]] = None, solver: str = "auto",
           time_limit: Optional[Seconds] = None, work_limit: Optional[int] = None, seed: int = 0,
           peak_only: bool = False, alignment: Optional[int] = None, order: str = "free",
           max_occurrences: Optional[int] = None, start: Optional[Planned] = None,
           options: Optional[Mapping[str, int]] = None, memory: Optional[Bytes] = None,
           link: Union[int, str, None] = None, host_budget: Optional[Bytes] = None,
           threads: Optional[int] = None, progress: Optional[Progress] = None) -> Curve:
    """Finds the curve of cost over memory: the cost of the best schedule found for each budget, and the knee of the
    curve (a good compromise).

    points    number of budgets, evenly spaced from the least budget that the search reaches to the least budget at
              which the cost is not above the baseline's
    budgets   budgets to use instead of evenly spaced ones: bytes, "1.5GiB", or "80%" of the baseline's peak
    link, host_budget  as in solve: the cost of each point is then the makespan of a schedule with transfers
    progress  a function that is called as progress(known points, points, seconds)

    Other arguments are those of solve, except that the default of time_limit is 30 s.
    """
    if time_limit is None and work_limit is None:
        time_limit = 30.0
    search = _search(solver, time_limit, work_limit, seed, memory, order, max_occurrences, options)
    texts = [] if budgets is None else [_budget_text(budget) for budget in budgets]
    with _threads(threads):
        return _cairn.pareto(_linked(graph, link, host_budget), points, texts, peak_only, _alignment(alignment), search, start, progress)


def least_budget(graph: Graph, *, solver: str = "auto", time_limit: Optional[Seconds] = None,
                 work_limit: Optional[int] = None, seed: int = 0, peak_only: bool = False,
                 alignment: Optional[int] = None, order: str = "free", max_occurrences: Optional[int] = None,
                 start: Optional[Planned] = None, options: Optional[Mapping[str, int]] = None,
                 memory: Optional[Bytes] = None, link: Union[int, str, None] = None,
                 host_budget: Optional[Bytes] = None, threads: Optional[int] = None,
                 progress: Optional[Progress] = None) -> LeastBudget:
    """Searches for the least budget that a schedule can meet. Returns the least budget found, with its schedule and the
    schedule's plan.

    Arguments are those of solve. cairn.solve(graph, "min") also searches for the cheapest schedule within that budget.
    """
    search = _search(solver, time_limit, work_limit, seed, memory, order, max_occurrences, options)
    with _threads(threads):
        return _cairn.least_budget(_linked(graph, link, host_budget), peak_only, _alignment(alignment), search, start, progress)


def info(graph: Graph, budget: Optional[Bytes] = None, *, solver: str = "auto", time_limit: Optional[Seconds] = None,
         work_limit: Optional[int] = None, seed: int = 0, alignment: Optional[int] = None, order: str = "free",
         max_occurrences: Optional[int] = None, options: Optional[Mapping[str, int]] = None,
         memory: Optional[Bytes] = None, device_memory: Optional[Bytes] = None,
         context_memory: Optional[Bytes] = None, link: Union[int, str, None] = None,
         host_budget: Optional[Bytes] = None, build: Optional[Callable[[int], Graph]] = None,
         threads: Optional[int] = None, progress: Optional[Progress] = None) -> Info:
    """Finds the least budget that some schedule of the graph is known to meet. If a budget is given, also finds
    whether, how and at what cost this budget can be met.

    device_memory  instead of a budget: all memory of a device, such as "24GiB"; see Info.device
    build          a function that takes a batch size and returns a graph, such as
                   lambda batch: cairn.models.build("gpt2", batch=batch). If the graph does not fit into the device,
                   Info.largest_batch is the largest batch that fits.

    Other arguments are those of solve. A budget that cannot be met is not an error here; Info.fits and Info.verdict
    say whether it can be met. If the resident tensors alone fill the device, raises InfeasibleError.
    """
    request = _request(budget, None, False, alignment, solver, device_memory, context_memory, link=link,
                       host_budget=host_budget)
    search = _search(solver, time_limit, work_limit, seed, memory, order, max_occurrences, options)
    with _threads(threads):
        return _cairn.info(graph, request, search, build, progress)


def largest_batch(build: Callable[[int], Graph], budget: Optional[Bytes] = None, *,
                  device_memory: Optional[Bytes] = None, context_memory: Optional[Bytes] = None, solver: str = "auto",
                  time_limit: Optional[Seconds] = None, work_limit: Optional[int] = None, seed: int = 0,
                  alignment: Optional[int] = None, order: str = "free", max_occurrences: Optional[int] = None,
                  options: Optional[Mapping[str, int]] = None, memory: Optional[Bytes] = None,
                  link: Union[int, str, None] = None, host_budget: Optional[Bytes] = None,
                  threads: Optional[int] = None) -> LargestBatch:
    """Finds the largest batch whose graph fits into a device, or into a budget in bytes.

    build  a function that takes a batch size and returns a graph, such as
           lambda batch: cairn.models.build("gpt2", batch=batch)

    Other arguments are those of solve. Raises InfeasibleError or NotFoundError if not even a batch of 1 fits.
    """
    if budget is None and device_memory is None:
        raise InputError("largest_batch needs device_memory=, or a budget= in bytes, as '8GiB'")
    if budget is not None:
        budget = _size(budget, "budget")
    request = _request(budget, None, False, alignment, solver, device_memory, context_memory, link=link,
                       host_budget=host_budget)
    search = _search(solver, time_limit, work_limit, seed, memory, order, max_occurrences, options)
    with _threads(threads):
        return _cairn.largest_batch(build, request, search)


def simulate(graph: Graph, schedules: Optional[Iterable[Steps]] = None, *, random: Optional[int] = None,
             recompute: int = 0, seed: int = 0, top: int = 10, budget: Optional[Bytes] = None, backend: str = "auto",
             undominated: bool = False, time_limit: Optional[Seconds] = None,
             link: Union[int, str, None] = None, host_budget: Optional[Bytes] = None, transfers: int = 20,
             threads: Optional[int] = None, progress: Optional[Progress] = None) -> Sweep:
    """Evaluates many schedules at once. They are `schedules`, a list of schedules or an array with one schedule per
    row, or else `random` random schedules.

    random       number of random schedules. With the same seed, the i-th random schedule is the same on every machine.
    recompute    largest number of recomputed steps of a random schedule
    top          number of best schedules to keep
    budget       the result counts the schedules whose peak is within this budget
    undominated  whether to find the schedules that no other schedule dominates (Sweep.undominated). A schedule
                 dominates another one if, when both run side by side with suitable pauses, it never holds more bytes
    link         as in solve. Costs are then makespans, and random schedules move values to the host
    host_budget  the result counts only schedules that take at most this many bytes on the host
    transfers    with a link: the largest number of values that a random schedule moves
    progress     a function that is called as progress(done, total, seconds)
    """
    count = None if random is None else _whole(random, "random")
    with _threads(threads):
        return _cairn.simulate(_linked(graph, link, host_budget), schedules, count, recompute, seed, top, _budget_text(budget), backend,
                               undominated, _seconds(time_limit), _count(transfers, "transfers"), progress)


def run(graph: Graph, budget: Optional[Bytes] = None, *, schedule: Optional[Planned] = None, backend: str = "auto",
        precision: Optional[str] = None, solver: str = "auto", time_limit: Optional[Seconds] = None,
        work_limit: Optional[int] = None, seed: int = 0, max_cost: Union[int, str, None] = None,
        peak_only: bool = False, alignment: Optional[int] = None, order: str = "free",
        max_occurrences: Optional[int] = None, options: Optional[Mapping[str, int]] = None,
        memory: Optional[Bytes] = None, device_memory: Optional[Bytes] = None,
        context_memory: Optional[Bytes] = None, repeats: Optional[int] = None, poison: bool = False, sentinels: bool = False,
        check: bool = False, streams: int = 1, overlap_steps: int = 0, link: Union[int, str, None] = None,
        host_budget: Optional[Bytes] = None, threads: Optional[int] = None,
        progress: Optional[Progress] = None) -> RunResult:
    """Executes a schedule of a graph within a memory budget, in one block of memory. Also executes the baseline (the
    graph's own order), and compares the results of both bit by bit.

    schedule   the schedule to execute; None: searches for one
    backend    "host", "cuda" or "auto"; "cuda:1" is the second of several devices
    precision  "fp32", "tf32" or "bf16"; None: the precision in which the graph is stored
    repeats    number of timed executions; None: as many as fit into a second, but at least 3 and at most 15
    poison     whether to overwrite every buffer when its lifetime ends, so that a read of freed memory is noticed
    sentinels  whether to check after each step that no op has written into the guard bytes behind a buffer
    check      whether to compare every kept output with the output that the host computes in fp32
    streams    number of streams of a step on a GPU, on which independent ops can run at the same time
    overlap_steps  with several streams: the number of steps for which the addresses of a buffer stay unused after its
               last use, so that fewer ops wait for each other. The plan then needs more bytes, which count in the
               budget

    Other arguments are those of solve. Nodes without an op run a synthetic kernel, which uses the node's memory but
    computes no real result.
    """
    request = _request(budget, max_cost, peak_only, alignment, solver, device_memory, context_memory,
                       overlap_steps, link, host_budget)
    search = _search(solver, time_limit, work_limit, seed, memory, order, max_occurrences, options)
    if repeats is not None and repeats < 1:
        raise InputError(f"repeats must be at least 1, not {repeats}")
    with _threads(threads):
        return _cairn.run(graph, request, search, schedule, backend, precision, repeats or 0, poison, sentinels, check,
                          _streams(streams), progress)


def datasets() -> List[DatasetInfo]:
    """Returns the data sets that are part of the package. load_dataset returns one of them as numpy arrays."""
    return [DatasetInfo(name, summary) for name, summary in _cairn.datasets()]


def train(graph: Graph, data: str, budget: Optional[Bytes] = None, *, steps: int = 500,
          learning_rate: Optional[float] = None, lr_schedule: str = "constant", warmup: int = 0, shift: int = 1,
          test_every: Optional[int] = None, checkpoint: Union[str, os.PathLike, None] = None,
          checkpoint_every: int = 100, resume: bool = False, schedule: Optional[Planned] = None,
          backend: str = "auto", precision: Optional[str] = None, solver: str = "auto",
          time_limit: Optional[Seconds] = None, work_limit: Optional[int] = None, seed: int = 0,
          max_cost: Union[int, str, None] = None, alignment: Optional[int] = None,
          options: Optional[Mapping[str, int]] = None, device_memory: Optional[Bytes] = None,
          context_memory: Optional[Bytes] = None, poison: bool = False, streams: int = 1, overlap_steps: int = 0,
          link: Union[int, str, None] = None, host_budget: Optional[Bytes] = None,
          threads: Optional[int] = None, progress: Optional[Progress] = None) -> TrainResult:
    """Trains a model on a data set of the package, within a memory budget, and tests it.

    graph             a graph that updates its weights: cairn.models.build(..., optimizer="adamw")
    data              "digits" or "shakespeare"; datasets() says what they are
    budget            bytes for the plan, as in solve; None: the graph's own order is executed, without recomputation
    steps             number of training steps in all
    learning_rate     None: the rate with which the graph was built
    lr_schedule       "constant", or "cosine": the rate falls to 0 at the last step
    warmup            number of first steps, in which the rate rises to learning_rate
    shift             largest number of pixels by which images are moved at random
    test_every        steps between tests; None: tests only after the last step
    checkpoint        a file that stores everything that is needed to continue the training; it is also written after an
                      interruption
    checkpoint_every  steps between two writes of the checkpoint
    resume            whether to continue from the checkpoint, if the file exists
    schedule          the schedule to execute, such as an Answer or an Executor; None: searches for one if there is a
                      budget
    progress          a function that is called as progress(steps done, steps, loss of the last step), not for every
                      step. If it returns False, the training ends after the current step.

    Other arguments are those of run. With the same seed, data and backend, losses and weights have the same bits within
    every budget, even if a training was interrupted and continued. After Ctrl-C, raises Interrupted with the result so
    far in .best.
    """
    if lr_schedule not in ("constant", "cosine"):
        raise InputError(f"lr_schedule='{lr_schedule}' must be 'constant' or 'cosine'")
    if resume and checkpoint is None:
        raise InputError("resume= continues from a file; name it with checkpoint=")
    for name, value, least in (("steps", steps, 1), ("warmup", warmup, 0), ("shift", shift, 0),
                               ("test_every", 1 if test_every is None else test_every, 1),
                               ("checkpoint_every", checkpoint_every, 1)):
        if _whole(value, name) < least:
            raise InputError(f"{name}={value} must be at least {least}")
    if shift > 8:
        raise InputError(f"shift={shift} must be at most 8")
    request = _request(budget, max_cost, False, alignment, solver, device_memory, context_memory,
                       overlap_steps, link, host_budget)
    search = _search(solver, time_limit, work_limit, seed, None, "free", None, options)
    course = _cairn.TrainOptions(steps=steps, warmup=warmup, cosine=lr_schedule == "cosine", shift=shift,
                                 test_every=test_every or 0, checkpoint="" if checkpoint is None else
                                 os.fspath(checkpoint), checkpoint_every=checkpoint_every, resume=resume,
                                 streams=_streams(streams), poison=poison)
    rate = None if learning_rate is None else _number(learning_rate, "learning_rate")
    with _threads(threads):
        trained = _cairn.train(graph, data, request, search, schedule, backend, precision, rate, course, progress)
    if trained.unwritten:
        warnings.warn(trained.unwritten, stacklevel=2)
    return trained


def read_graph(path: Union[str, os.PathLike]) -> Graph:
    """Reads a graph file in any format that the command reads. The format is recognised by the content."""
    return _cairn.read_graph(os.fspath(path))


def read_schedule(path: Union[str, os.PathLike], graph: Graph) -> Schedule:
    """Reads a schedule file. Raises InputError if the schedule is invalid or was made for another graph."""
    return _cairn.read_schedule(os.fspath(path), graph)


def read_plan(path: Union[str, os.PathLike], graph: Graph) -> Plan:
    """Reads a plan file. Raises InputError if the plan was made for another graph. check_plan checks the plan
    itself."""
    return _cairn.read_plan(os.fspath(path), graph)


def write_schedule(path: Union[str, os.PathLike], graph: Graph, schedule: Planned, solver: str = "") -> None:
    """Writes a schedule file for the option `--start`, `cairn plan` and `cairn run --schedule`. If `schedule` is an
    Answer, a LeastBudget or a CurvePoint, the file also contains its plan."""
    _cairn.write_file(os.fspath(path), _cairn.schedule_to_json(graph, schedule, solver))


def write_plan(path: Union[str, os.PathLike], graph: Graph, plan: Plan) -> None:
    """Writes a plan file."""
    _cairn.write_file(os.fspath(path), _cairn.plan_to_json(graph, plan))
