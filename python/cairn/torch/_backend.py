"""The front door: a backend of torch.compile that keeps a budget of memory."""

import functools
import warnings
import weakref

import torch

import cairn

from . import _inputs, _private, _report, _solve
from ._errors import CairnWarning, WrittenError, handed_on
from ._fallback import run_guarded
from ._memory import MemoryTrace, bytes_of
from ._partition import Options, partition, prepare_within, schedule
from ._rewrite import rewrite_module
from ._share import Share, tell_of_least
from ._tangents import Tangents
from ._together import Alive

_last = None


def last_report():
    """The Report of the backend or step that compiled last; None before the first."""
    return _last


def remember(report):
    global _last
    _last = report


def backend(budget="min", *, compiler="eager", random="keep", inputs="checked", differentiated="loss", accumulate=False,
            calibrate=True, measure=True, fallback=True, time_limit=10.0, work_limit=None, seed=0, solver="auto"):
    """A backend for ``torch.compile(model, backend=cairn.torch.backend(budget="8GiB"))``.

    The budget is the peak, in bytes, of everything that is not resident: activations, gradients of activations, scratch of
    kernels. Parameters, their gradients, optimizer state and inputs are counted apart. Loss, gradients and buffers are bit
    for bit those of the graph without a budget.

    budget: bytes, or text: "8GiB", "8 GB", "60%" (of what the graph, or a larger one that trains before it, needs without a
        budget), "min". Of each compiled graph. A share is no error for a graph without a backward pass, nor for a tiny one:
        those take their least.
    compiler: "eager", whose peak is exact, or "inductor" below it, whose fusions make the peak approximate.
    random: "keep" what random operations draw (masks of dropout, noise) until it was last read, as they run once; or "replay"
        them as well, from a saved state of their generator, with the same numbers. For compiler="eager".
    inputs: "checked": what reads an input that shares memory with numpy, another process or an unrelated tensor runs once, in
        the forward pass, as that memory may be written before the backward pass. Whatever else is read again then, inputs,
        buffers and results, is compared with what it was, and a WrittenError tells of a change that torch did not notice.
        "changing": what reads any input, parameters apart, runs once; "stable": nobody writes them, and nothing is compared.
    differentiated: "loss": where a graph returns a single number, the larger results that this is computed from (logits beside
        a loss) are not differentiated by the caller for themselves. One that is gets its gradient all the same, with a
        CairnWarning, as the promise does not count it; with "all" it does, and zeros where there is none. For compiler="eager".
    accumulate: gradients are added to those of earlier steps: the new ones, which torch makes beside them, count in the budget.
    calibrate: measure each distinct operation once on this device (kept in a cache) rather than estimate its cost and
        scratch. Without, scratch counts as nothing and promises may be broken by it.
    measure: compare the first step's peak with the promise; a broken promise is a CairnWarning.
    fallback: run a graph that cannot be scheduled, or whose schedule fails when its forward pass is first called, as it is,
        with a CairnWarning, rather than raise.
    time_limit, work_limit, seed, solver: of the search, as cairn.solve's.

    A budget that cannot be met raises InfeasibleError before the first step, with ``least_budget``; a share of a graph that
    was compiled in evaluation mode, or that does not end in its loss, when its backward pass begins.
    """
    if compiler not in ("eager", "inductor"):
        raise cairn.InputError(f"compiler: 'eager' or 'inductor', not {compiler!r}")
    if random not in ("keep", "replay"):
        raise cairn.InputError(f"random: 'keep' or 'replay', not {random!r}")
    if inputs not in ("checked", "changing", "stable"):
        raise cairn.InputError(f"inputs: 'checked', 'changing' or 'stable', not {inputs!r}")
    if random == "replay" and compiler == "inductor":
        raise cairn.InputError("random: 'replay' is for compiler='eager'; Inductor draws from seeds of its own")
    if differentiated not in ("loss", "all"):
        raise cairn.InputError(f"differentiated: 'loss' or 'all', not {differentiated!r}")
    _solve.budget_bytes(budget, 1)  # bad text is told here
    if solver not in cairn.solvers():
        raise cairn.InputError(f"solver: there is no {solver!r}; cairn.solvers() lists them")
    limits = _solve.Limits(time_limit, work_limit, seed, solver)
    options = Options(budget, calibrate and compiler == "eager", measure, limits, approximate=compiler == "inductor",
                      accumulate=accumulate, replay=random == "replay", inputs=inputs,
                      all_differentiated=differentiated == "all")
    if compiler == "inductor":
        from ._inductor import InductorBackend
        return InductorBackend(options, fallback)
    return Backend(options, fallback)


class Backend:
    """Called by torch.compile for every graph it makes."""

    def __init__(self, options, fallback):
        self.options = options
        self.fallback = fallback
        self.report = _report.Report()
        self.told = set()
        self.ran = set()  # differentiated graphs that have run, by number; whoever wants to know empties it
        self.differentiated_only = False  # other graphs run as they are
        self.frames = set()  # numbers of the functions that were compiled
        self.__name__ = "cairn"
        _private.tell_of_limits(self)

    def reset(self):
        """Called by torch._dynamo.reset."""
        self.frames.clear()

    def gave_up(self, frame, limit, value, function):
        """Called when torch.compile makes no more variants of a function."""
        if frame in self.frames:
            self.tell(f"{function} runs without a budget where it is called in another way than before, as torch.compile has "
                      f"made {value} variants of it: torch._dynamo.config.{limit} = {2 * value} allows more, dynamic=True "
                      "needs fewer (TORCH_LOGS=recompiles says what differs)")

    def __call__(self, module, example_inputs, **given):
        remember(self.report)
        self.frames.add(_private.compiled_frame())
        known = len(self.report.graphs)
        try:
            self.take(**given)
            if self.differentiated_only and not self.is_differentiated(module):
                return module.forward
            unbounded = _private.bound_sizes(module)
            run = self.compile(module, example_inputs)
            run = self.watched(run, unbounded) if unbounded else run
            added = self.report.graphs[known:]
            return run_guarded(run, module, functools.partial(self.first_run_failed, added)) if self.fallback else run
        except _private.RESTARTS:
            raise
        except cairn.Error as error:
            if not _private.suppresses_errors():
                raise handed_on(error) from None
            reason = error
        except Exception as error:
            if not self.fallback:
                raise
            reason = error
        return self.without_budget(module, reason, known)

    def take(self, mode=None, options=None, name=None, **others):
        """What torch.compile was given beside the backend; ``name`` is for torch's own logs."""
        if mode not in (None, "default"):
            raise cairn.InputError(f"mode: {mode!r} chooses kernels of Inductor, which compiler='eager' does not have; leave "
                                   "it out (backend(..., compiler='inductor') takes those without CUDA graphs)")
        if options:
            raise cairn.InputError(f"options: {', '.join(map(repr, options))} would be of Inductor, which compiler='eager' "
                                   "does not have; those of Cairn are arguments of cairn.torch.backend()")
        if others:
            raise cairn.InputError(f"torch.compile: Cairn does not know what {', '.join(others)} asks of a backend")

    def is_differentiated(self, module):
        """Whether torch.compile will make a backward pass of it."""
        largest = _private.largest_differentiated(module)
        if largest > 1:
            self.tell(f"the loss of this step is computed outside of the graph, which ends in {largest:,} elements: what that "
                      "takes is not in the budget (TORCH_LOGS=graph_breaks names what cannot be compiled)")
        return largest > 0

    def watched(self, run, unbounded):
        """``run``, with a warning when the first of these sizes is larger than it was planned for."""
        def call(*args):
            for position, dimension, planned in list(unbounded):
                size = args[position] if dimension is None else args[position].shape[dimension]
                if size > planned:
                    unbounded.clear()
                    self.tell(f"a size that is marked dynamic is {size} now, and the plan is for up to {planned}: more than "
                              "promised may be taken; torch._dynamo.mark_dynamic(..., max=) has it planned for the largest")
            return run(*args)

        return call

    def without_budget(self, module, reason, known):
        """The module as it is, with a warning. ``known``: how many graphs the report had before."""
        del self.report.graphs[known:]
        text = " ".join(str(reason).split("\n", 1)[0].split())
        self.report.unplanned.append(f"{type(reason).__name__}: {text}")
        self.tell(f"this graph runs without a budget, as it cannot be scheduled: {self.report.unplanned[-1]}")
        return module.forward

    def first_run_failed(self, graphs, reason):
        """Called when the schedules of these graphs could not be run, although their module could."""
        self.report.graphs[:] = [graph for graph in self.report.graphs if all(graph is not failed for failed in graphs)]
        self.ran.difference_update(graph.name for graph in graphs)
        names = ", ".join(graph.name for graph in graphs)
        self.report.unplanned.append(reason)
        self.tell(f"{names} runs without a budget, as its schedule could not be run: {reason}")

    def compile(self, module, example_inputs):
        compiling = Compiling(self, example_inputs)
        try:
            compiled = _private.aot_autograd(
                fw_compiler=compiling.forward, bw_compiler=compiling.backward, inference_compiler=compiling.inference,
                partition_fn=compiling.partition, keep_inference_input_mutations=False)(module, example_inputs)
        finally:
            compiling.inputs = ()
        return compiling.called(compiled)

    def tell(self, text):
        """A warning, once however many graphs have the same reason for it."""
        if text not in self.told:
            self.told.add(text)
            warnings.warn(text, CairnWarning, stacklevel=3)


class Compiling:
    """One graph on its way through AOTAutograd."""

    def __init__(self, owner, inputs=()):
        self.owner = owner
        self.inputs = inputs  # as they are while it is compiled
        self.split = None  # how many results the forward pass has
        self.leaves = []  # weak references to those that had a gradient when the forward pass last ran
        self.report = None
        self.measured = None
        self.share = None  # a _share.Share, of a graph that has a backward pass
        self.alive = None  # a _together.Alive

    def partition(self, joint, inputs, *, num_fwd_outputs, static_lifetime_input_indices=None, **_):
        options, self.split = self.owner.options, num_fwd_outputs
        self.share = Share(self.owner, joint)
        forward, backward, trace, solved, self.report = partition(
            joint, options, name=f"graph {len(self.owner.report.graphs)}", num_fwd_outputs=num_fwd_outputs,
            static_indices=static_lifetime_input_indices, largest=self.share.largest, inputs=self.inputs,
            or_least=self.share.or_least)
        self.share.planned(self.report, solved.unmet)
        results = _private.outputs(joint.graph)[:num_fwd_outputs]
        self.alive = Alive(self.owner, self.report, num_fwd_outputs, kept_results(trace, results),
                           Tangents(joint, num_fwd_outputs, self.owner, self.report))
        self.owner.report.graphs.append(self.report)
        if options.measure:
            self.measured = Measured(trace, solved, self.report, num_fwd_outputs, joint)
        return forward, backward

    def forward(self, module, inputs):
        return self.run_forward(_private.boxed(module), module)

    def backward(self, module, inputs):
        return self.run_backward(_private.boxed(module), module)

    def called(self, compiled):
        return compiled if self.alive is None else self.alive.called(compiled)

    def run_forward(self, run, module):
        run = self.alive.forward(self.measured.forward(run) if self.measured is not None else run)
        of_callers = _inputs.positions(module, self.report.read_again)
        read_again = of_callers + _inputs.positions(module, self.report.buffers_read_again)

        def call(args):
            self.owner.ran.add(self.report.name)
            copied = _inputs.copy_shared(args, of_callers) if of_callers else 0
            if copied:
                self.owner.tell(
                    f"{self.report.name}: an input shares memory with something else now, which it did not when the plan was "
                    f"made: a copy is kept until it was last read, {_report.size_text(copied)} beside what is promised; "
                    "inputs='stable' if nobody writes it before the backward pass has ended")
            if not self.owner.options.accumulate:
                self.leaves = [weakref.ref(t) for t in args if isinstance(t, torch.Tensor) and t.is_leaf and t.grad is not None]
            unchanged = _inputs.Unchanged(_private.kernel_settings()) if self.report.recomputed else None
            if unchanged is not None:
                unchanged.note(args[i] for i in read_again)
            result = run(args)
            made = self.alive.latest()
            if unchanged is not None and made is not None:
                if self.report.results_read_again:
                    unchanged.note_results(result, self.split)
                made.unchanged = unchanged
            return result

        return _private.called_boxed(call)

    def run_backward(self, run, module):
        run = self.alive.backward(self.measured.backward(run, module) if self.measured is not None else run, module)
        names = [node.name for node in module.graph.find_nodes(op="placeholder")]

        def call(args):
            self.share.backward_begins()
            made = self.alive.beginning()
            if made is not None and made.unchanged is not None:
                self._check(made.unchanged, args, names)
            self._note_accumulated()
            if _private.keeps_graph():
                self.owner.tell(
                    f"{self.report.name}: backward(retain_graph=True), or create_graph=True, leaves what was saved between forward "
                    "and backward, which the promise takes to be freed as it is read: this step's peak is not measured")
            return run(args)

        return _private.called_boxed(call)

    def _check(self, before, args, names):
        """Raises if what the backward pass computes from again is not what the forward pass read."""
        position = before.changed(args)
        if position is not None:
            known = {name: "an input" for name in self.report.read_again} | {
                name: "a buffer" for name in self.report.buffers_read_again}
            what = known.get(names[position], "a result of the forward pass")
            raise WrittenError(
                f"{self.report.name}: {what} was written between forward and backward, where torch did not notice (by numpy, DLPack, "
                ".data, or a kernel that tells nobody), and the backward pass computes from it again: hand on a copy, or write it "
                "after the backward pass; backend(..., inputs='changing') computes what is made of inputs once")
        if before.kernels != _private.kernel_settings():
            self.owner.tell(
                f"{self.report.name}: switches of kernels (threads, mkldnn, precision, determinism) are others in the backward pass "
                "than they were in the forward pass: what is computed again may differ from what it was by rounding")

    def _note_accumulated(self):
        """Gradients that are there already stay, and torch makes the new ones beside them."""
        leaves = [leaf() for leaf in self.leaves]
        size = sum(t.untyped_storage().nbytes() for t in leaves if t is not None and t.grad is not None)
        if size:
            self.owner.tell(
                f"{self.report.name}: gradients are added to those of earlier steps, and torch makes up to "
                f"{_report.size_text(size)} of new ones beside them, which {_report.size_text(self.report.promised)} as promised "
                "does not count; backend(..., accumulate=True) does")

    def inference(self, module, inputs):
        name = f"graph {len(self.owner.report.graphs)}"
        options = self.owner.options
        trace, graph, seconds, goal, baseline = prepare_within(module.graph, options, name=name,
                                                               largest=self.owner.report.baseline)
        solved, report = schedule(trace, graph, options, seconds, goal, baseline, or_least=_solve.is_share(options.budget))
        if solved.unmet is not None:
            tell_of_least(self.owner, report, "it has no backward pass")
        self.owner.report.graphs.append(report)
        run = _private.boxed(rewrite_module(module, trace, solved.steps))
        if self.owner.options.measure:
            run = Measured(trace, solved, report, None, module).alone(run)
        return _private.called_boxed(Alive(self.owner, report).alone(run))


def kept_results(trace, leaves):
    """Positions of those among the forward pass's results that count as held by the caller: not what it writes into inputs."""
    return [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.fx.Node) and any(
        s is not None and s.keep and s.producer is not None
        for s in torch.utils._pytree.tree_leaves(trace.structure.get(leaf)))]


class Measured:
    """Measures the first run of a graph's forward and backward, and compares it with the promise."""

    def __init__(self, trace, solved, report, num_fwd_outputs, joint):
        self.trace, self.solved, self.report = trace, solved, report
        self.done = solved.measured is not None
        self.passed_over = 1 if trace.updated else 0  # first runs: an optimizer makes its state then
        if self.done:
            report.measured, report.measured_before = solved.measured, True
        self.forward_peak = None
        self.forward_operation = ""
        self.unsplit = 0  # bytes that the allocator may have left in blocks meanwhile
        leaves = _private.outputs(joint.graph)
        split = num_fwd_outputs or 0
        self.gradient_positions = [
            i for i, leaf in enumerate(leaves[split:])
            if isinstance(leaf, torch.fx.Node) and any(
                s in trace.gradients for s in torch.utils._pytree.tree_leaves(trace.structure.get(leaf)))]
        self.split = split
        self.kept_positions = kept_results(trace, leaves[:split])
        self.outputs_held = 0  # bytes of the forward pass's results that the backward pass is not given
        self.outputs = set()  # addresses of its results, which count as held by the caller, who may have let go of them

    def forward(self, run):
        return self._boxed(run, self._forward)

    def alone(self, run):
        return self._boxed(run, self._alone)

    def backward(self, run, module):
        names = [n.name for n in module.graph.nodes if n.op == "placeholder"]
        return self._boxed(run, lambda call, args: self._backward(call, args, names))

    def _boxed(self, run, measured):
        def call(args):
            if self.done or not MemoryTrace.available():
                return run(args)
            return measured(run, args)

        return _private.called_boxed(call)

    def _forward(self, run, args):
        if self.passed_over:
            self.passed_over -= 1
            return run(args)
        with MemoryTrace(self.trace.device) as trace:
            result = run(args)
        self.forward_peak, self.forward_operation = trace.at_peak()
        self.unsplit = trace.unsplit
        self.report.measured_forward = self.forward_peak
        results, saved = list(result)[:self.split], list(result)[self.split:]
        kept = [results[i] for i in self.kept_positions]
        self.outputs_held = bytes_of([*saved, *kept]) - bytes_of(saved)
        self.outputs = {t.untyped_storage().data_ptr() for t in kept if isinstance(t, torch.Tensor)}
        return result

    def _alone(self, run, args):
        with MemoryTrace(self.trace.device) as trace:
            result = run(args)
        self.unsplit = trace.unsplit
        self._compare(*trace.at_peak(self._gradients(result)))
        return result

    def _gradients(self, result):
        leaves = list(result)
        gradients = (leaves[i] for i in self.gradient_positions)
        return {g.untyped_storage().data_ptr() for g in gradients if isinstance(g, torch.Tensor)}

    def _backward(self, run, args, names):
        if self.forward_peak is None or _private.keeps_graph():
            return run(args)
        held = bytes_of(a for a, n in zip(args, names) if not n.startswith("primals"))
        held += self.outputs_held
        with MemoryTrace(self.trace.device) as trace:
            result = run(args)
        self.unsplit = max(self.unsplit, trace.unsplit)
        peak, operation = trace.at_peak(self._gradients(result), self.outputs)
        peak += held
        self.report.measured_backward = peak
        if self.forward_peak >= peak:
            peak, operation = self.forward_peak, self.forward_operation
        self._compare(peak, operation)
        return result

    def _compare(self, peak, operation):
        self.done = True
        if peak > self.report.promised:  # bytes that nobody asked for, and the allocator left in a block, are not promised
            peak = max(self.report.promised, peak - self.unsplit)
        self.report.measured = peak
        _solve.remember_measured(self.solved, peak)
        if peak > self.report.promised:
            self.report.broken_by = operation
            advice = "" if self.report.calibrated else "; calibrate=True counts the scratch of kernels"
            if self.report.estimated:
                advice = f"; {len(self.report.estimated)} operations could not be measured, {self.report.estimated[0]} for one"
            if self.report.approximate:
                advice = "; below Inductor, which fuses and reorders, a peak is approximate"
            warnings.warn(
                f"{self.report.name}: promised a peak of {_report.size_text(self.report.promised)}, measured "
                f"{_report.size_text(peak)} at {operation} ({peak - self.report.promised} bytes more){advice}",
                CairnWarning, stacklevel=2)
