"""A joint graph of forward and backward, scheduled: what stands behind the partition function of AOTAutograd."""

import dataclasses
import time

import torch

from . import _costs, _private, _report, _rewrite, _solve
from ._graph import simplify, trace_graph


@dataclasses.dataclass
class Options:
    budget: object
    calibrate: bool = True
    measure: bool = True
    limits: _solve.Limits = dataclasses.field(default_factory=_solve.Limits)


def prepare(graph, options, **reading):
    """(Trace, cairn.Graph, seconds by part) of an FX graph."""
    begin = time.monotonic()
    simplify(graph)
    trace = trace_graph(graph, **reading)
    _costs.estimate(trace)
    seconds = {"read": time.monotonic() - begin}
    if options.calibrate:
        begin = time.monotonic()
        _costs.calibrate(trace)
        seconds["calibrate"] = time.monotonic() - begin
    begin = time.monotonic()
    built = trace.build()
    seconds["build"] = time.monotonic() - begin
    return trace, built, seconds


def schedule(trace, graph, options, seconds):
    """(Solved, GraphReport)."""
    solved = _solve.solve(graph, options.budget, options.limits)
    seconds["solve"] = solved.seconds
    step, _, items, at_border = _report.live_at_peak(trace, solved.steps)
    report = _report.GraphReport(
        name=trace.name, device=trace.device, operations=len(trace.operations), budget=solved.budget,
        baseline=solved.baseline_peak, promised=solved.peak, lower_bound=solved.lower_bound,
        cost_increase=solved.cost_increase, resident=dict(trace.resident),
        recomputed=_report.recomputed_items(trace, solved.steps),
        at_peak=[_report.item_of(s.producer, size=n) for s, n in items],
        peak_operation=trace.operations[solved.steps[step]].name, calibrated=options.calibrate, source=solved.source,
        seconds=seconds, saved=at_border)
    return solved, report


def partition(joint, options, *, name, num_fwd_outputs, static_indices):
    """(forward module, backward module, Trace, Solved, GraphReport)."""
    primals = [n for n in joint.graph.nodes if n.op == "placeholder" and _private.is_primal(n)]
    static = set(static_indices or ())
    parameters = [n for i, n in enumerate(primals) if i in static or isinstance(n.meta.get("val"), torch.nn.Parameter)]
    trace, graph, seconds = prepare(joint.graph, options, name=name, forward_outputs=num_fwd_outputs, parameters=parameters)
    solved, report = schedule(trace, graph, options, seconds)
    begin = time.monotonic()
    forward, backward = _rewrite.rewrite_joint(joint, trace, solved.steps, num_fwd_outputs=num_fwd_outputs,
                                               static_indices=static_indices)
    seconds["rewrite"] = time.monotonic() - begin
    return forward, backward, trace, solved, report
