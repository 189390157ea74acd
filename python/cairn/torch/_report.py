"""Contains the classes of reports. A report says which peak the plan of a graph promises, which peak was measured, and
what is in memory at the peak."""

import dataclasses
import re
from typing import Optional

from . import _private
from ._graph.operators import operator_name

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(size):
    """Returns a number of bytes as text with a unit, such as "1.50 GiB"."""
    if size is None:
        return "unknown"
    value, unit = float(size), 0
    while abs(value) >= 1024 and unit + 1 < len(_UNITS):
        value, unit = value / 1024, unit + 1
    return f"{size} B" if unit == 0 else f"{value:.2f} {_UNITS[unit]}"


def without_sizes(text):
    """Replaces sizes by one word, so that texts that differ only in sizes become equal."""
    return re.sub(rf"-?[0-9.]+ ({'|'.join(_UNITS)})\b", "bytes", text)


NO_BACKWARD = "has run no backward pass"  # the value of GraphReport.not_measured if only forward passes have run


@dataclasses.dataclass
class Item:
    """An operation, and its line in the model's code."""

    name: str
    operation: str
    source: str # its line in the model's code, as "file:line"
    size: int  # bytes of its outputs
    times: int = 1  # number of times that the operation runs again
    note: str = ""  # why no schedule can free the outputs; empty if a schedule can


@dataclasses.dataclass
class GraphReport:
    """The report of one compiled graph. A model without graph breaks has one graph for each set of input shapes. Sizes
    are in bytes."""

    name: str
    device: str
    operations: int
    budget: Optional[int]  # None: the least possible
    baseline: int  # the peak of the unscheduled step
    promised: int
    lower_bound: Optional[int]
    cost_increase: float  # additional time by the cost model, as a fraction of the time without a budget
    resident: dict  # kind -> bytes; not part of the budget
    recomputed: list
    at_peak: list  # Items whose outputs are in memory at the promised peak, the largest first
    peak_operation: str
    calibrated: bool
    source: str  # source of the schedule: solved, cache, another rank
    seconds: dict
    fused: int = 0  # number of operations that are kernels compiled by Inductor
    unnamed: list = dataclasses.field(default_factory=list)  # patterns of never_recompute= that name nothing in the graph
    # texts that say which kernels Inductor could not compile, and why
    not_fused: list = dataclasses.field(default_factory=list)
    # Whether the graph belongs to a step of several graphs, and this step either has one plan for all its graphs
    # (Report.step) or meets the budget without such a plan.
    of_step: bool = False
    # names of operations for which data decide which code they run
    branching: list = dataclasses.field(default_factory=list)
    estimated: list = dataclasses.field(default_factory=list)  # names of operations that could not be measured
    # Names of operations whose results have an unbounded size that depends on data.
    sized_by_data: list = dataclasses.field(default_factory=list)
    # device other than that of the budget -> bytes on this device, which are not part of the budget
    elsewhere: dict = dataclasses.field(default_factory=dict)
    saved: int = 0  # bytes that the forward pass saves for the backward pass
    replaced: bool = False  # whether the graph has been compiled again for a plan of its step
    trains: bool = False  # whether there is a backward pass and the graph was not compiled for an evaluation
    updated: int = 0  # number of parameters updated in the backward pass; their gradients are in the budget
    measured: Optional[int] = None
    not_measured: str = "has not run"  # why ``measured`` is None
    measured_forward: Optional[int] = None
    # Whether an earlier run of the graph was freed without having had a backward pass, for example because no gradient
    # of its results was needed. If so, the promised peak is compared with the measured peak of the forward pass, as
    # long as no backward pass has run.
    only_forward: bool = False
    measured_backward: Optional[int] = None
    promised_forward: int = 0  # the peak of the forward pass alone
    promised_backward: int = 0  # the peak of the backward pass, with the values that the forward pass saved
    broken_by: str = ""  # the operation at which a measured peak was above the promised one
    # whether a backward pass kept values (retain_graph), although the promised peak assumes that these values are freed
    retained: bool = False
    checked_for_nan: bool = False  # whether autograd looked for NaN in gradients of a backward pass
    # Inputs that code outside of the graph may write, or to which as_strided() is applied. Operations that read them run
    # once.
    shared_inputs: list = dataclasses.field(default_factory=list)
    read_again: list = dataclasses.field(default_factory=list)  # inputs that are read again after the forward pass
    buffers_read_again: list = dataclasses.field(default_factory=list)  # like read_again, for tensors of modules
    # whether operations run again that ``recomputed`` does not contain: those within regions, and those that a policy
    # (MUST_RECOMPUTE) names
    recomputes_more: bool = False
    results_read_again: bool = False  # whether recomputation reads results of the forward pass
    link: str = ""  # link to the host's memory that the plan assumes; empty: nothing moves to the host
    offloaded: list = dataclasses.field(default_factory=list)  # Items whose outputs move to the host and come back
    host_peak: int = 0  # largest number of bytes on the host at one time
    waiting: float = 0.0  # time in which operations wait for copies, as a fraction of the time without a budget

    @property
    def recomputes(self):
        """Returns whether an operation of the forward pass runs again in the backward pass."""
        return bool(self.recomputed or self.recomputes_more)

    @property
    def met(self):
        """Returns whether the promised peak is within the budget. A tiny graph, or a graph of an evaluation, may exceed
        a budget in percent (_plan/share.py). A graph that is part of a planned step counts as within the budget."""
        return self.budget is None or self.of_step or self.promised <= self.budget

    @property
    def kept(self):
        """Returns False if a measured peak was above the promised one. Returns None if ``unknown`` is not empty.
        Otherwise returns True."""
        measured = self._measured_so_far
        if measured is not None and (self.broken_by or measured > self.promised):
            return False
        return None if self.unknown else True

    @property
    def unknown(self):
        """Returns a list of reasons, as texts, why it is not known whether the promised peak holds. Either the graph
        was not measured, or the promise cannot cover all cases: sizes or branches that depend on data may need more, a
        backward pass has kept the saved values, or autograd has looked for NaN in gradients."""
        compiled = self.not_measured == NO_BACKWARD and _private.autograd_was_compiled()
        not_measured = self.not_measured + (" but those of compiled autograd, which are not measured" if compiled else "")
        return [text for text, holds in ((not_measured, self._measured_so_far is None),
                                         ("has sizes that depend on data", self.sized_by_data),
                                         ("runs code that depends on data", self.branching),
                                         ("had a backward pass that kept what was saved for it", self.retained),
                                         ("had a backward pass in which autograd looked for NaN", self.checked_for_nan)) if holds]

    @property
    def _measured_so_far(self):
        of_forward = self.measured is None and self.only_forward and not _private.autograd_was_compiled()
        return self.measured_forward if of_forward else self.measured

    def __str__(self):
        percent = f" ({100 * self.promised / self.baseline:.0f}% of {size_text(self.baseline)})" if self.baseline else ""
        fused = f", of which {self.fused} are fused kernels" if self.fused else ""
        lines = [f"{self.name}: {self.operations} operations on {self.device}{fused}",
                 f"  budget      {'min' if self.budget is None else size_text(self.budget)}, of what is not resident"
                 f"{'' if self.met else ', which is not met'}",
                 f"  promised    {size_text(self.promised)}{percent}",
                 f"  measured    {'not yet' if self.measured is None else size_text(self.measured)}"]
        if self.broken_by:
            lines.append(f"  broken by   {self.broken_by}")
        resident = ", ".join(f"{kind}s {size_text(size)}" for kind, size in self.resident.items() if size)
        lines.append(f"  resident    {resident or 'nothing'}")
        if self.elsewhere:
            elsewhere = ", ".join(f"{size_text(size)} on {device}" for device, size in self.elsewhere.items())
            lines.append(f"  elsewhere   {elsewhere}, which is not in the budget")
        if self.updated:
            lines.append(f"  updated     {self.updated} parameters, each as soon as its gradient is there, which is freed then")
        if self.shared_inputs:
            lines.append(f"  inputs      {len(self.shared_inputs)} may be written, as they share memory with something else or are "
                         "said to change (inputs='stable' if not), or are read by as_strided(): what reads them runs once")
        lines.append(f"  schedule    {self.source}, {self.seconds.get('solve', 0):.1f} s")
        if self.estimated:
            lines.append(f"  estimated   {len(self.estimated)} operations that could not be measured, scratch as nothing: "
                         f"{', '.join(self.estimated[:3])}{', ...' if len(self.estimated) > 3 else ''}")
        if self.not_fused:
            lines.append(f"  not fused   {len(self.not_fused)} kernels, which Inductor could not compile: {self.not_fused[0]}")
        if self.sized_by_data:
            lines.append(f"  from data   {len(self.sized_by_data)} sizes that may exceed the plan, of {', '.join(self.sized_by_data[:3])}"
                         f"{', ...' if len(self.sized_by_data) > 3 else ''}; without a bound, the plan is for {_private.DATA_SIZE}")
        if self.branching:
            lines.append(f"  branches    data decide which code {', '.join(self.branching[:3])}{', ...' if len(self.branching) > 3 else ''} "
                         "runs: other code than was measured may take more")
        again = sum(item.times for item in self.recomputed)
        lines.append(f"  recomputed  {again} operations, {100 * self.cost_increase:.1f}% more time as "
                     f"{'measured' if self.calibrated else 'estimated'} per operation")
        if self.link:
            lines.append(f"  offloaded   {sum(item.times for item in self.offloaded)} values, {size_text(self.host_peak)} on the "
                         f"host at most, over {self.link}; waits take {100 * self.waiting:.1f}% of the time")
        for item in sorted(self.recomputed, key=lambda i: -i.size * i.times)[:8]:
            lines.append(f"    {size_text(item.size):>11}  {item.times}x {item.operation:28} {item.source}")
        lines.append(f"  the peak is at {self.peak_operation}, with")
        for item in self.at_peak[:6]:
            lines.append(f"    {size_text(item.size):>11}  {item.operation or item.name:31} {item.source}"
                         f"{', ' if item.note and item.source else ''}{item.note}".rstrip())
        return "\n".join(lines)


@dataclasses.dataclass
class Together:
    """The largest memory that several graphs needed at the same time so far, because one graph ran while other graphs
    held memory."""

    promised: int = 0
    measured: Optional[int] = None  # in bytes; None: not measured
    at: str = ""  # the pass of a graph (forward or backward) with the largest promise
    measured_at: str = ""  # the pass of a graph with the largest measured peak
    host_peak: int = 0  # bytes of copies on the host; 0: two graphs never had copies on the host at the same time
    told: set = dataclasses.field(default_factory=set)  # reasons of earlier warnings
    _into: Optional["Together"] = None  # a larger Together into which this one was merged

    @staticmethod
    def of(reports):
        """Merges the Togethers of these reports into one, which the reports share from now on. Returns the merged
        one."""
        roots = list({id(root): root for r in reports if r.joined is not None for root in [r.joined.root()]}.values())
        whole = roots[0] if roots else Together()
        for other in roots[1:]:
            whole.add(other.promised, None, other.at)
            whole.add(0, other.measured, other.measured_at)
            whole.told |= other.told
            whole.host_peak = max(whole.host_peak, other.host_peak)
            other._into = whole
        for report in reports:
            report.joined = whole
        return whole

    def root(self):
        return self if self._into is None else self._into.root()

    def add(self, promised, measured, at):
        if promised > self.promised:
            self.promised, self.at = promised, at
        if measured is not None and measured > (self.measured or -1):
            self.measured, self.measured_at = measured, at

    @property
    def broken(self):
        """Returns whether the measured peak is above the promised one."""
        return self.measured is not None and self.measured > self.promised


@dataclasses.dataclass
class StepReport:
    """The report of a step whose several graphs are planned together."""

    parts: int  # number of different graphs
    budget: int  # bytes
    baseline: int  # peak of the step without a budget, in bytes
    promised: int  # peak of the step, in bytes
    cost_increase: float  # additional time of operations, as a fraction of the time without a budget
    at: str  # name of the graph and the pass in which the step has its peak
    seconds: float  # duration of the search

    def __str__(self):
        percent = f" ({100 * self.promised / self.baseline:.0f}% of {size_text(self.baseline)})" if self.baseline else ""
        return (f"the step: {self.parts} graph{'' if self.parts == 1 else 's'}, planned together in {self.seconds:.1f} s\n"
                f"  budget      {size_text(self.budget)}, of what is not resident\n"
                f"  promised    {size_text(self.promised)}{percent}, in {self.at}\n"
                f"  recomputed  {100 * self.cost_increase:.1f}% more time")


@dataclasses.dataclass
class Report:
    """The reports of all graphs that a backend has compiled, without graphs that a new plan has replaced. ``promised``,
    ``measured`` and ``kept`` also count the memory that other graphs, even of other backends, held while a graph ran.
    If several graphs of a step are planned together, ``step`` is about all of them, and ``first_step`` is about the
    earlier step in which each graph was planned alone."""

    graphs: list = dataclasses.field(default_factory=list)
    unplanned: list = dataclasses.field(default_factory=list)  # why graphs run without a budget
    joined: Optional[Together] = None  # None: no two graphs held memory at the same time
    step: Optional[StepReport] = None  # None: graphs were not planned together
    first_step: Optional[Together] = None
    broken_before: int = 0  # number of graphs whose promises were broken before a new plan replaced them
    # whether graphs ran in several threads at the same time; promised peaks do not include the sum of their memory
    overlapping: bool = False
    # whether the graphs of a step were not planned together because another thread has run graphs, too
    threaded: bool = False
    waits: bool = False  # whether graphs are to be planned together when torch.compile compiles them again
    optimizer_state: Optional[int] = None  # only for cairn.torch.step: bytes of the optimizers' state
    outside: bool = False  # whether differentiable code outside of the compiled graphs has computed inputs of graphs
    # Peak of a whole step, gradients included, as cairn.torch.step or measure_step has measured it. The first steps are
    # not measured, because compiling takes memory, too.
    whole_step: Optional[int] = None
    whole_step_at: str = ""  # the operation at that peak

    @property
    def process_memory(self):
        """Returns the bytes of this process that are in memory now, as the operating system counts them; None if it
        does not tell. These bytes include torch's code, the parameters, and freed memory that the C library's allocator
        keeps for later allocations."""
        return _private.process_memory()

    @property
    def baseline(self):
        return max((g.baseline for g in self.graphs), default=0)

    @property
    def training_baseline(self):
        """Returns the largest baseline peak of the graphs that have a backward pass and were not compiled for an
        evaluation. For budgets in percent, this is 100%. Graphs of evaluations do not count, because their batch may be
        larger."""
        return max((g.baseline for g in self.graphs if g.trains), default=0)

    @property
    def together(self):
        return None if self.joined is None else self.joined.root()

    @property
    def promised(self):
        """Returns the largest promised peak, in bytes, of a single graph or of graphs that hold memory at the same
        time. The peak of several graphs is known only after they have run, unless they were planned together."""
        whole = [self.together.promised] if self.together else [self.step.promised] if self.step else []
        return max([g.promised for g in self.graphs if not g.of_step] + whole, default=0)

    @property
    def host_peak(self):
        """Returns the largest number of bytes on the host, for a single graph or for graphs that held copies there at
        the same time."""
        return max([g.host_peak for g in self.graphs] + ([self.together.host_peak] if self.together else []), default=0)

    @property
    def measured(self):
        known = [g.measured for g in self.graphs if g.measured is not None and not g.of_step]
        known += [self.together.measured] if self.together and self.together.measured is not None else []
        return max(known) if known else None

    @property
    def kept(self):
        """Returns False if a measured peak was above the promised one, None if that is not known for all graphs
        (``unknown`` is not empty), and otherwise True. If graphs ran in several threads at the same time, returns None,
        because what was measured may include the memory of several passes."""
        broken = any(g.kept is False for g in self.graphs) or (self.together and self.together.broken)
        return False if broken and not self.overlapping else None if self.unknown else True

    @property
    def broken_by(self):
        """Returns texts that say where a measured peak was above the promised one: for a single graph, the operation;
        for several graphs together, the pass of a graph. Empty if ``kept`` is not False."""
        if self.overlapping:
            return []
        found = [f"{g.name}: {g.broken_by or 'an operation'}" for g in self.graphs if g.kept is False]
        return found + ([self.together.measured_at] if self.together and self.together.broken else [])

    @property
    def unknown(self):
        """Returns a list of reasons, as texts, why it is not known whether all promised peaks hold. The list is empty
        if everything was measured, no graph runs without a budget, and graphs did not run in several threads at the
        same time."""
        found = [f"{g.name} {reason}" for g in self.graphs for reason in g.unknown]
        if self.together and self.together.measured is None and not found:
            found.append("graphs that are alive at once were not measured")
        found += ["a graph runs without a budget"] if self.unplanned else []
        found += ["graphs ran in several threads at the same time"] if self.overlapping else []
        found += ["the graphs of a step are not planned together, as another thread has run graphs, too"] if self.threaded else []
        found += ["the graphs of a step are not planned together, as torch.compiler.set_stance() keeps torch from compiling them"
                  ] if self.waits and _private.runs_uncompiled() else []
        return found or ([] if self.graphs else ["nothing was compiled"])

    def __str__(self):
        lines = [str(g) for g in self.graphs]
        lines += [f"a graph runs without a budget: {reason}" for reason in self.unplanned]
        lines = lines or ["nothing was compiled"]
        lines += [str(self.step)] if self.step else []
        if self.together:
            lines.append(f"graphs that are alive at once: promised {size_text(self.promised)}, measured "
                         f"{'not yet' if self.measured is None else size_text(self.measured)} at most, in {self.together.at}"
                         f"{'' if self.step or all(g.of_step for g in self.graphs) else '; each keeps the budget for itself'}")
            if self.together.broken:
                lines.append(f"  broken by   {self.together.measured_at}")
            if self.together.host_peak:
                lines.append(f"graphs that are alive at once: {size_text(self.together.host_peak)} on the host at most; each keeps "
                             "host_budget for itself")
        if self.first_step:
            lines.append(f"the first step, whose graphs were planned one by one: {size_text(self.first_step.promised)}")
        if self.broken_before:
            lines.append(f"before the present plan, {self.broken_before} promises were broken")
        if self.kept is None and self.graphs:
            lines.append(f"whether all promises are kept is unknown: {'; '.join(self.unknown[:4])}{'; ...' if len(self.unknown) > 4 else ''}")
        if self.outside:
            lines.append("differentiable code runs outside of graphs, and what it takes is in no promise" +
                         ("" if self.whole_step is not None else ": cairn.torch.measure_step measures it"))
        process = self.process_memory if any(g.device == "cpu" for g in self.graphs) else None
        if process is not None:
            lines.append(f"the process: {size_text(process)} in memory now, with all that the C library keeps for later")
        if self.optimizer_state is not None:
            lines.append(f"optimizers keep {size_text(self.optimizer_state)} beside all that")
        if self.whole_step is not None:
            lines.append(f"the whole step, with new gradients and what optimizers take: {size_text(self.whole_step)} at most, at "
                         f"{self.whole_step_at}")
        return "\n".join(lines)


_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')


def source_of(node):
    """Returns a node's line in the model's code, "file:line": the innermost line of its traceback that is outside of
    torch."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [f for f in frames if "/torch/" not in f[0].replace("\\", "/")] or frames
    return f"{own[-1][0].rsplit('/', 1)[-1]}:{own[-1][1]}" if own else ""


def item_of(op, times=1, size=None):
    if op.node is None:
        return Item(op.name, "", "", sum(s.size for s in op.outputs), times)
    operation = operator_name(op.node)
    return Item(op.name, operation, source_of(op.node), sum(s.size for s in op.outputs) if size is None else size, times)


def item_at_peak(trace, storage, size):
    if storage in trace.tangents:
        result = trace.tangents[storage]
        return Item("gradient of a result", "", source_of(result) if result is not None else "", size,
                    note="which the caller gives, else zeros")
    item = item_of(storage.producer, size=size)
    if storage.keep and trace.border is not None and storage.producer.index < trace.border.index:
        item.note = "returned, and held by the caller"
    return item


def recomputed_items(trace, steps):
    runs = {}
    for step in steps:
        runs[step] = runs.get(step, 0) + 1
    return [item_of(trace.operations[v], n - 1) for v, n in runs.items() if n > 1]


def offloaded_items(trace, steps, transfers):
    found = {}
    for value, made, _, _ in transfers[0] if transfers else ():
        op = trace.operations[steps[made]]
        found.setdefault(value, [op, op.outputs[value - trace.value_begin[op.index]].size, 0])[2] += 1
    return [item_of(op, times, size) for op, size, times in found.values()]


def live_at_peak(trace, steps, transfers=None):
    """Finds what is in memory at the peak of a schedule. Returns (step of the peak, bytes at the peak, [(storage,
    bytes)] in descending order of bytes, bytes in memory at the end of the forward pass, peak of the forward pass, peak
    of the backward pass)."""
    alive_during = lives(trace, steps, transfers)
    begins, ends = {}, {}
    for key, (first, last) in alive_during.items():
        begins.setdefault(first, []).append(key)
        ends.setdefault(last, []).append(key)
    alive = {}
    peak, best, at_border, parts, side = -1, (0, []), 0, [0, 0], 0
    # Moment 2i is step i, and moment 2i + 1 is between step i and step i + 1. Without transfers, memory changes only at
    # steps, so the loop visits only even moments.
    for moment in range(0, 2 * len(steps), 1 if transfers else 2):
        t = moment // 2
        op = trace.operations[steps[t]]
        alive.update((key, key[1].size) for key in begins.get(moment, ()))
        total = sum(alive.values()) + (op.scratch if moment % 2 == 0 else 0)
        side = 1 if op is trace.border else side
        parts[side] = max(parts[side], total)
        if total > peak:
            peak, best = total, (t, list(alive.items()))
        for key in ends.get(moment, ()):
            alive.pop(key, None)
        if op is trace.border and moment % 2 == 0:
            at_border = sum(alive.values())
    t, items = best
    items = sorted(((s, n) for (_, s), n in items if n), key=lambda i: -i[1])
    return t, peak, items, at_border, parts


def lives(trace, steps, transfers=None):
    """Returns a dict from (number of an occurrence, storage) to the first and the last moment at which this occurrence
    of the storage is in memory. Moment 2i is step i, and moment 2i + 1 is between step i and step i + 1."""
    evicts, fetches = transfers or ((), ())
    leaving = {(value, made): finish for value, made, _, finish in evicts}
    arriving = {}  # step -> indices of the fetches that must end before the step
    for i, (_, _, finish) in enumerate(fetches):
        arriving.setdefault(finish, []).append(i)
    found, newest = {}, {}

    def arrive(step):
        for i in arriving.get(step, ()):
            made = evicts[fetches[i][0]][1]
            op = trace.operations[steps[made]]
            storage = op.outputs[evicts[fetches[i][0]][0] - trace.value_begin[op.index]]
            newest[storage] = key = (("fetch", i), storage)
            found[key] = [2 * fetches[i][1] + 1, 2 * fetches[i][1] + 1]

    for t, v in enumerate(steps):
        arrive(t)
        op = trace.operations[v]
        for storage in op.reads:
            found[newest[storage]][1] = max(2 * t, found[newest[storage]][1])
        for output, storage in enumerate(op.outputs):
            newest[storage] = key = (t, storage)
            finish = leaving.get((trace.value_begin[op.index] + output, t)) if leaving else None
            found[key] = [2 * t, 2 * t if finish is None else 2 * finish - 1]
    arrive(len(steps))
    for storage, key in newest.items():
        if storage.keep:
            found[key][1] = 2 * len(steps)
    return found
