"""Schedules a joint graph and cuts it into a forward and a backward pass. AOTAutograd calls partition(), the main
function of this file, for every joint graph."""

import dataclasses
import functools
import time
from typing import Optional

import torch

import cairn

from .. import _private, _report
from .._costs.calibrate import calibrate
from .._costs.calls import description
from .._costs.roofline import estimate
from .._errors import InfeasibleError
from .._fuse.fuse import fuse, is_fused
from .._graph import policies, regions
from .._graph.operators import is_random, is_region, move_results, simplify
from .._graph.read import trace_graph
from .._inputs import sharing
from .._memory.together import saved_by_runs
from .._offload.link import Offload
from .._rewrite import dropout, random, scheduled_module
from .._rewrite.tangents import drop_zeros, expect_missing
from .._several.choose import Sizes
from .._several.points import key_of, sizes_of
from .._step.updates import Updates
from . import solve


@dataclasses.dataclass
class Options:
    budget: object
    calibrate: bool = True
    measure: bool = True
    limits: solve.Limits = dataclasses.field(default_factory=solve.Limits)
    inductor: Optional[dict] = None  # Inductor's settings, if it compiles fused kernels; None: torch's kernels alone
    accumulate: bool = False  # whether new gradients of parameters are part of the budget
    replay: bool = False  # whether random operations may run again
    inputs: str = "checked"  # the argument inputs= of backend()
    never_recompute: tuple = ()  # patterns of operations that run once
    all_differentiated: bool = False  # whether gradients of results other than the loss are part of the budget
    updates: Optional[Updates] = None  # the optimizer's updates, if the plan contains them
    offload: Optional[Offload] = None  # the link over which values may move to the host; None: nothing moves
    together: bool = True  # whether a budget limits the graphs of a step together
    latest: dict = dataclasses.field(default_factory=dict)  # key of a graph -> its latest [steps, transfers]

    @property
    def named_offload(self):
        """Returns offload= and host_budget= as the caller gave them, for a name that all ranks must share: unlike a
        measured link, these arguments are equal on all ranks."""
        return [] if self.offload is None else [self.offload.link, self.offload.host_budget]


def prepare(graph, options, *, device=None, **reading):
    """Converts an FX graph to a Cairn graph, with costs. Returns (Trace, cairn.Graph, seconds of each part of this
    work). ``device``: the device for which costs are estimated; None: the device of the graph. ``reading``: arguments
    of trace_graph()."""
    begin = time.monotonic()
    _tidy(graph, reading.get("forward_outputs"))
    trace = trace_graph(graph, accumulate=options.accumulate, **reading)
    _private.pin_sizes(trace.sizes, graph)
    trace.device = device or trace.device
    estimate(trace)
    # Under the shared name, one rank gives its schedule to all ranks. The name must be equal on all ranks, so it is
    # made before costs are measured: measured costs differ from rank to rank.
    if _private.collective_store() is not None:
        trace.shared_name = [trace.build().fingerprint, str(options.budget), *options.named_offload]
    seconds = {"read": time.monotonic() - begin}
    if options.calibrate:
        begin = time.monotonic()
        calibrate(trace)
        seconds["calibrate"] = time.monotonic() - begin
    trace.count_copied()
    begin = time.monotonic()
    built = trace.build(options.offload is not None)
    seconds["build"] = time.monotonic() - begin
    return trace, built, seconds


def _tidy(graph, forward_outputs):
    """Changes a traced graph in place into the form that the rest of the package expects: simplified batch norms,
    results of the forward pass before the backward pass, and nodes marked by pass."""
    simplify(graph)
    regions.prepare(graph)
    results = _private.outputs(graph)[:forward_outputs or 0]
    move_results(graph, results)
    _private.tell_sides(graph, results)


@dataclasses.dataclass
class Prepared:
    """A graph that is ready to be scheduled, with its budget and its baseline."""

    trace: object
    graph: cairn.Graph
    seconds: dict  # part of the work -> its duration
    goal: Optional[int]  # the budget in bytes; None: the least possible
    baseline: object  # Evaluation of the given graph without a budget
    baseline_sizes: Sizes  # memory and time of the graph without a budget
    # texts that say which kernels could not be compiled, and why
    not_fused: list = dataclasses.field(default_factory=list)
    # whether random numbers are drawn in the order of layouts that kernels choose under the present settings
    draws_by_layout: bool = False

    @functools.cached_property
    def key(self):
        return key_of(self.trace)


def prepare_within(graph, options, *, largest=0, always_rewrite=False, not_again=(), **reading):
    """Like prepare(), but returns a Prepared, with the budget in bytes and the baseline of the given graph. If the
    budget is below the baseline's peak, or if ``always_rewrite`` is True, rewrites dropouts and random operations, so
    that a schedule can save more memory, and prepares the rewritten graph. If Inductor compiles kernels, fuses
    operations before all this. ``largest``: the largest peak of earlier graphs; 100% of a budget in percent is at least
    this peak. ``not_again``: placeholders whose readers must not be copied into the backward pass (fuse())."""
    failed, compiling, draws_by_layout = [], 0.0, False
    if options.inductor is not None:
        begin = time.monotonic()
        failed = _fuse(graph, options, not_again, reading)
        compiling = time.monotonic() - begin
    trace, built, seconds = prepare(graph, options, **reading)
    # The baseline is the traced order, in which all updates of parameters come last, as in a step without Cairn.
    baseline = cairn.evaluate(built, range(built.node_count))
    sizes = sizes_of(trace, baseline.cost, range(built.node_count))
    goal = solve.budget_bytes(options.budget, max(baseline.peak, largest))
    if always_rewrite or goal is None or goal < baseline.peak:
        replay = options.replay and any(is_random(node) for node in graph.nodes)
        split = dropout.split(graph, trace.layouts, alone=replay)
        freed = replay and random.free_of_inputs(graph, trace.layouts)
        draws_by_layout = replay and bool(split or freed)
        if split or replay:
            trace, built, more = prepare(graph, options, replay=replay, **reading)
            seconds = {part: seconds[part] + more[part] for part in more}
    if options.inductor is not None:
        seconds["compile kernels"] = compiling
    return Prepared(trace, built, seconds, goal, baseline, sizes, failed, draws_by_layout)


def _fuse(graph, options, not_again, reading):
    """Fuses operations. Splits dropouts before, even if the budget does not require it, so that the same kernels
    compute the same results under all budgets. Returns the result of fuse()."""
    _tidy(graph, reading.get("forward_outputs"))
    if dropout.present(graph):
        dropout.split(graph, prepare(graph, options, **reading)[0].layouts, alone=options.replay)
    return fuse(graph, options.inductor, changing=reading.get("shared", ()), not_again=not_again)


def schedule(prepared, options, or_least=False, among=None):
    """Finds a schedule for a prepared graph. Returns (Solved, GraphReport). ``or_least``: whether to use the schedule
    of lowest known peak if no schedule meets the budget. ``among``: an Among (_several/watch.py), if the graph may be
    one of several in a step."""
    trace, graph, seconds, goal = prepared.trace, prepared.graph, prepared.seconds, prepared.goal
    limits = limits_of(options, trace)
    given, repeated, held = None, None, 0
    if among is not None:
        given, held = among.planned(prepared), among.held
        goal, or_least = (goal, or_least) if among.goal is None else (among.goal, True)
    if given is None and _private.graph_task() != -1:
        # A graph that is compiled within a backward pass is the forward pass of a checkpoint that runs again. It must
        # save the same values as the first run, so it takes the schedule of that run, without a search. The checkpoint
        # runs the first graph itself again if it can (_backend/repeated.py).
        repeated = options.latest.get(prepared.key)
    if given is not None:
        solved = solve.given(graph, given, goal, prepared.baseline)
    elif repeated is not None:
        solved = solve.given(graph, repeated, goal, prepared.baseline, "planned as in the forward pass that runs again")
    else:
        def search(within, or_least):
            # The caller gives the same budget on all ranks. But if the budget is a share (a percentage), its bytes can
            # differ from rank to rank. So the shared name does not contain the bytes of the caller's budget.
            shared = trace.shared_name and [*trace.shared_name, "as given" if within == prepared.goal else within]
            return solve.solve(graph, within, limits, prepared.baseline, description(trace), shared, trace.in_time,
                               or_least, _advice(trace))

        def search_whole():
            """Searches within the whole budget. Finds the schedule of lowest peak instead if the graph may be one of
            several in a step and exceeds the budget only because its results count as held: when the whole step runs,
            these results may be freed early."""
            try:
                return search(goal, or_least)
            except InfeasibleError as error:
                # If the graph is being planned for larger inputs than the present ones, the error is raised here, and
                # the graph is planned again for the present inputs.
                may_be_freed = among is not None and not among.is_alone and not among.for_larger
                if not may_be_freed or solve.is_share(options.budget) or error.least_budget - _bytes_of_results(trace) > goal:
                    raise
                return search(goal, True)

        within = goal if goal is None else max(1, goal - held)
        solved = search_whole() if within == goal else search(within, True)
        if within != goal and solved.unmet is not None and solved.peak > goal:  # the error is to name the budget, not what others leave of it
            solved.unmet = solve.unmet_within(graph, goal, solved, _advice(trace))
        exceeds = within != goal and not or_least and solved.peak > goal
        # A share refers to the memory of the whole step, which is known only after a step. Until then, a graph may
        # exceed its share.
        if exceeds and not solve.is_share(options.budget):
            solved = search_whole()
        solved.budget = goal
    options.latest[prepared.key] = [solved.steps, solved.transfers]
    seconds["solve"] = solved.seconds
    step, _, items, at_border, parts = _report.live_at_peak(trace, solved.steps, solved.transfers)
    report = _report.GraphReport(
        name=trace.name, device=trace.device, elsewhere=trace.elsewhere, operations=len(trace.operations),
        budget=solved.budget, baseline=solved.baseline_peak, promised=solved.peak, lower_bound=solved.lower_bound,
        cost_increase=solved.cost_increase, resident=dict(trace.resident),
        recomputed=_report.recomputed_items(trace, solved.steps),
        at_peak=[_report.item_at_peak(trace, s, n) for s, n in items],
        peak_operation=trace.operations[solved.steps[step]].name if solved.steps else "", calibrated=options.calibrate,
        fused=sum(is_fused(op.node) for op in trace.operations), not_fused=prepared.not_fused,
        estimated=[op.name for op in trace.estimated],
        of_step=given is not None, sized_by_data=trace.sized_by_data, branching=trace.branching, source=solved.source,
        seconds=seconds, saved=at_border, updated=len(trace.updated), promised_forward=parts[0], promised_backward=parts[1],
        link=limits.link, offloaded=_report.offloaded_items(trace, solved.steps, solved.transfers), host_peak=solved.host_peak,
        waiting=solved.waiting / solved.baseline_cost if solved.baseline_cost else 0.0)
    return solved, report


def limits_of(options, trace):
    """Returns the limits of a search, with the link to the host's memory if values may move there."""
    if options.offload is None:
        return options.limits
    return dataclasses.replace(options.limits, link=options.offload.given_link(trace.device),
                               host_budget=options.offload.host_budget)


def _bytes_of_results(trace):
    """Returns the bytes of the forward pass's results that count as held by the caller; 0 if there is no backward
    pass."""
    if trace.border is None:
        return 0
    return sum(s.size for s in {s for op in trace.operations[:trace.border.index] for s in op.outputs if s.keep})


def _advice(trace):
    """Returns a sentence for the error about an unmet budget. It tells that a bound holds only for regions as they are
    planned, or how many bytes are taken by results other than the loss, and by their gradients."""
    if any(op.node is not None and is_region(op.node) for op in trace.operations):
        return " The bound is for its regions (nested_compile_region) as they are planned."
    gradients = sum(storage.size for storage in trace.tangents)
    results = _bytes_of_results(trace)
    if gradients < 4096:  # so small that all results must be losses
        return f" The caller holds {_report.size_text(results)} of results." if results >= 4096 else ""
    return (f" {_report.size_text(gradients)} of gradients of results, which the caller gives or autograd fills in with zeros, "
            f"and {_report.size_text(results)} of results are held throughout: return the loss alone, or what is not "
            "differentiated detached.")


def partition(joint, options, *, name, num_fwd_outputs, static_indices, largest=0, inputs=(), or_least=lambda baseline: False,
              among=None, all_shared=False):
    """Schedules a joint module and cuts it. Returns (forward module, backward module, Prepared, Solved, GraphReport).
    ``all_shared``: whether operations that read any input run once, as if all inputs could be written at any time.
    ``inputs``: present inputs of the captured function, among them parameters that may be updated in the backward pass.
    ``or_least(peak without a budget)``: a function that returns whether to use the least budget known if the budget is
    not met.
    ``among``: an Among (_several/watch.py), if the graph may be one of several in a step."""
    drop_zeros(joint.graph, num_fwd_outputs, _private.compiling()[1])
    if not options.all_differentiated:
        expect_missing(joint.graph)
    primals = [n for n in joint.graph.nodes if n.op == "placeholder" and _private.is_primal(n)]
    static = set(_private.static_inputs(joint.graph, static_indices))
    parameters = [n for n in primals if n in static or isinstance(n.meta.get("val"), torch.nn.Parameter)]
    given = [_private.input_of(n.meta.get("desc"), inputs) for n in primals]
    updates = {}
    if options.updates is not None:
        options.updates.averages.insert(joint.graph, primals, given)
        updates = {primals[i]: update for i, update in options.updates.of_inputs(given).items()}
    of_module = set(parameters)
    others, frozen = _others_and_frozen(primals, inputs, of_module)
    if options.inputs == "checked":
        shared = [n for n in (primals[i] for i in sorted(sharing.shared(given, saved=saved_by_runs))) if n in others and n not in of_module]
        shared += [n for n, value in zip(primals, given) if n in of_module and sharing.is_buffer_of_others(value)]
    else:
        shared = [*others, *frozen] if options.inputs == "changing" else []
    # Autograd cannot save such a tensor for the backward pass.
    shared += [n for n, value in zip(primals, given) if n not in shared and _private.is_plain(value) and value.is_inference()]
    shared += [n for n in (primals if all_shared else sharing.read_by_as_strided(joint.graph, primals)) if n not in shared]
    unnamed = policies.never_recompute(joint.graph, options.never_recompute)
    policies.split_recomputed(joint.graph, num_fwd_outputs, shared)
    prepared = prepare_within(
        joint.graph, options, name=name, forward_outputs=num_fwd_outputs, parameters=parameters, largest=largest, updates=updates,
        shared=shared, always_rewrite=among is not None and not among.is_alone,
        not_again=() if options.inputs == "stable" else others)
    trace = prepared.trace
    for update in updates.values():
        update.let_go()
    least_is_enough = or_least(prepared.baseline.peak)
    solved, report = schedule(prepared, options, least_is_enough, among)
    begin = time.monotonic()
    forward, backward = scheduled_module.rewrite_joint(joint, trace, solved.steps, num_fwd_outputs=num_fwd_outputs,
                                               static_indices=static_indices,
                                               update_function=options.updates.function() if trace.updated else None,
                                               transfers=solved.transfers)
    prepared.seconds["rewrite"] = time.monotonic() - begin
    nodes = [op.node for op in trace.operations if op.node is not None]
    report.recomputes_more = any(policies.run_of(node) is policies.LATE or regions.recomputes(node) for node in nodes)
    report.shared_inputs, report.unnamed = [n.name for n in shared], unnamed
    if options.inputs != "stable":
        read_again, report.results_read_again = trace.read_again(solved.steps)
        report.read_again = [n.name for n in others if n.name in read_again and n not in of_module]
        report.buffers_read_again = [n.name for n in others if n.name in read_again and n in of_module]
    return forward, backward, prepared, solved, report


def _others_and_frozen(primals, inputs, parameters):
    """Returns two lists of placeholders: tensors that are not parameters (the caller's inputs, and buffers and other
    tensors of modules), and parameters that do not train. Programs write the latter between the passes, for example as
    averages of the parameters of another model."""
    others, frozen = [], []
    for node in primals:
        whole = _private.argument_of(node.meta.get("desc"), inputs)
        if isinstance(whole, torch.nn.Parameter):
            if not whole.requires_grad:
                frozen.append(node)
        elif isinstance(node.meta.get("val"), torch.Tensor) and not (whole is None and node in parameters):
            others.append(node)
    return others, frozen
