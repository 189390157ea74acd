"""Finds schedules of one part that hold more or less memory between its forward and its backward pass."""

import dataclasses
from typing import Optional

import cairn

from .. import _report
from .._costs.calls import description
from .._plan.least import is_schedule, rows
from .._plan.solve import digest
from .choose import Sizes


@dataclasses.dataclass
class Point:
    """A schedule of a part, and the memory and time that it takes. ``transfers``: [rows of evicts, rows of fetches];
    None: nothing moves to the host."""

    steps: list
    transfers: Optional[list]
    sizes: Sizes


def sizes_of(trace, cost, steps, transfers=None):
    """Returns the Sizes of a schedule. Between the passes, the graph holds everything that is in memory at the end of
    the forward pass, except the gradients of results: the plan counts these gradients from the end of the forward pass
    on, but the caller gives them only when the backward pass begins."""
    steps = list(steps)
    _, _, _, at_border, (forward, backward) = _report.live_at_peak(trace, steps, transfers)
    saved = trace.saved(steps)
    results, known = [], set(saved)
    # a storage that several results share counts only for the first of them
    for storage in trace.kept_results().values():
        results.append(0 if storage in known else storage.size)
        known.add(storage)
    saves = frozenset(i for i, node in enumerate(trace.primals()) if saved.intersection(trace.storages(node)))
    return Sizes(forward, backward, at_border - given_bytes(trace), cost, tuple(results), saves)


def given_bytes(trace):
    """Returns the bytes of the gradients that the caller gives to the backward pass."""
    return sum(storage.size for storage in trace.border.outputs) if trace.border is not None else 0


def key_of(trace):
    """Returns a name for the graph. The name stays the same when the graph is compiled again, although measured costs
    may differ."""
    edges = [[sorted((s.producer.index, s.output) for s in op.reads), sorted(before.index for before in op.after),
              [[s.size, s.keep] for s in op.outputs], op.pinned] for op in trace.operations]
    results = [[i, s.producer.index, s.output] for i, s in trace.kept_results().items()]
    return digest(description(trace), edges, results)


class Part:
    """A compiled graph, as a part of a step. ``prepared``: a Prepared. ``limits``: the limits of searches. ``offload``:
    whether values may move to the host."""

    def __init__(self, prepared, report, limits, offload):
        self.trace, self.baseline, self.report, self.limits, self.offload = (
            prepared.trace, prepared.baseline_sizes, report, limits, offload)
        self.key = prepared.key
        self.points = []
        self.graph = self._graph(0)
        self.unplanned = self.add(self.trace.order())
        self.runs = self.unplanned  # the Point of the schedule that runs

    @property
    def has_backward(self):
        return self.trace.border is not None

    def add(self, steps, transfers=None):
        """Returns the Point of a schedule, and adds it to ``points`` unless a point with equal Sizes is there. Returns
        None if the steps are no valid schedule of this part."""
        if not is_schedule(self.graph, steps, transfers):
            return None
        cost = cairn.evaluate(self.graph, cairn.Schedule(steps, transfers)).cost
        point = Point(steps, transfers, sizes_of(self.trace, cost, steps, transfers))
        known = next((p for p in self.points if p.sizes == point.sizes), None)
        if known is None:
            self.points.append(point)
        return known or point

    def find(self, most, held, arguments):
        """Searches for the cheapest schedule whose peak is at most ``most``, and which holds at most ``held`` bytes
        between the passes. Adds the Point of the schedule that is found, even if it needs more. If ``most`` is None,
        searches instead for the schedule that holds least or, if ``held`` is None as well, for the schedule of least
        peak."""
        if most is None:
            beside = 0 if held is None else 2 * self.graph.baseline.peak
        else:
            beside = max(0, most - held - given_bytes(self.trace))
        graph = self._graph(beside)
        graph = graph if most is None else self.limits.linked(graph)  # a search for transfers needs a budget
        try:
            schedule = cairn.solve(graph, "min" if most is None else max(1, most), peak_only=True, **arguments).schedule
        except (cairn.InfeasibleError, cairn.NotFoundError) as error:
            if error.least is None:
                return None
            schedule = error.least.schedule
        transfers = rows(schedule.transfers)
        steps = [int(v) for v in schedule.steps]
        return self.add(steps if transfers else self.trace.in_time(steps), transfers)

    def _graph(self, beside):
        """Builds the Cairn graph of the part. In a step, later parts run between the part's forward and backward pass,
        i.e. at its border. ``beside``: the bytes that they take. These bytes become scratch of the border, so that a
        budget limits them together with the bytes that this part holds."""
        border = self.trace.border
        if border is None:  # the graph has no backward pass, so nothing runs between its passes
            return self.trace.build(self.offload)
        border.scratch = beside
        graph = self.trace.build(self.offload)
        border.scratch = 0
        return graph
