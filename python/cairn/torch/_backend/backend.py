"""The entry point is a backend of torch.compile that keeps a memory budget."""

import functools
import warnings

import cairn

from .. import _private, _report
from .._errors import CairnWarning, handed_on
from .._plan import solve
from .._plan.partition import Options
from .compiling import Compiling
from .fallback import run_guarded

_last = None


def last_report():
    """The Report of the backend or step that compiled last; None before the first."""
    return _last


def remember(report):
    global _last
    _last = report


def backend(budget="min", *, compiler="eager", random="keep", inputs="checked", differentiated="loss", accumulate=False,
            calibrate=True, measure=True, fallback=True, time_limit=10.0, work_limit=None, seed=0, solver="auto"):
    """Makes a backend for ``torch.compile(model, backend=cairn.torch.backend(budget="8GiB"))``.

    The budget is the peak, in bytes, of everything that is not resident: activations, gradients of activations, scratch of
    kernels. Parameters, their gradients, optimizer state and inputs are counted apart. Loss, gradients and buffers are bit
    for bit those of the graph without a budget.

    budget: for each compiled graph. Bytes, or text: "8GiB", "8 GB", "60%" (of what the graph, or a larger one that
        trains before it, needs without a budget), "min". A graph without a backward pass, or a tiny one, that cannot
        meet a share takes its least budget; that is not an error.
    compiler: "eager", whose peak is exact, or "inductor", whose fusions make the peak approximate.
    random: "keep": random operations run once, and what they draw (masks of dropout, noise) is kept until its last
        read. "replay": they may run again, from a saved state of their generator, with the same numbers. For
        compiler="eager".
    inputs: whether inputs may change before the backward pass. "checked": readers of an input that shares memory with
        numpy, another process or an unrelated tensor run only once, in the forward pass, as that memory may be written.
        All other inputs, buffers and results that are read again are compared with their values in the forward pass; a
        change that torch did not notice raises WrittenError. "changing": readers of any input but parameters run only
        once. "stable": nobody writes inputs, and nothing is compared.
    differentiated: "loss": where a graph returns a single number, the caller is expected not to give gradients of the
        larger results that it is computed from (logits beside a loss). If one is given, it is used, with a
        CairnWarning, as the promise does not count it. "all": such gradients count, and missing ones are zeros. For
        compiler="eager".
    accumulate: gradients are added to those of earlier steps; the new ones, which torch makes beside them, count in the
        budget.
    calibrate: measure each distinct operation once on this device (kept in a cache) rather than estimate its cost and
        scratch. Without it scratch counts as 0, which may break promises.
    measure: compare the first step's peak with the promise; a broken promise is a CairnWarning.
    fallback: if a graph cannot be scheduled, or its schedule fails when its forward pass is first called, run it as it
        is, with a CairnWarning, rather than raise.
    time_limit, work_limit, seed, solver: options of the search, as in cairn.solve.

    A budget that cannot be met raises InfeasibleError, with ``least_budget``, before the first step. For a share, and a
    graph that was compiled in evaluation mode or does not end in its loss, it is raised when the graph's backward pass
    begins.
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
    for name, value in {"accumulate": accumulate, "calibrate": calibrate, "measure": measure, "fallback": fallback}.items():
        if type(value).__name__ not in ("bool", "bool_"):  # also numpy's
            raise cairn.InputError(f"{name}: True or False, not {value!r}")
    size = solve.budget_bytes(budget, 1)  # raises on bad text
    budget = budget if isinstance(budget, str) else size
    limits = solve.Limits(time_limit, work_limit, seed, solver)
    options = Options(budget, calibrate and compiler == "eager", measure, limits, approximate=compiler == "inductor",
                      accumulate=accumulate, replay=random == "replay", inputs=inputs,
                      all_differentiated=differentiated == "all")
    if compiler == "inductor":
        from .inductor import InductorBackend
        return InductorBackend(options, fallback)
    return Backend(options, fallback)


class Backend:
    """The backend that torch.compile calls for every graph it makes."""

    def __init__(self, options, fallback):
        self.options = options
        self.fallback = fallback
        self.report = _report.Report()
        self.told = set()
        self.ran = set()  # numbers of differentiated graphs that have run; readers empty it
        self.differentiated_only = False  # whether other graphs run unplanned
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
            run, compiling = self.compile(module, example_inputs)
            run = self.watched(run, unbounded) if unbounded else run
            if not self.fallback:
                return run
            failed = functools.partial(self.first_run_failed, self.report.graphs[known:])
            return run_guarded(run, module, failed, compiling.written_among)
        except _private.RESTARTS:
            raise
        except KeyboardInterrupt:  # the graph may be compiled anew another time
            del self.report.graphs[known:]
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
        """Takes what torch.compile was given beside the backend; ``name`` is for torch's own logs."""
        if mode not in (None, "default"):
            raise cairn.InputError(f"mode: {mode!r} chooses kernels of Inductor, which compiler='eager' does not have; leave "
                                   "it out (backend(..., compiler='inductor') takes those without CUDA graphs)")
        if options:
            raise cairn.InputError(f"options: {', '.join(map(repr, options))} would be of Inductor, which compiler='eager' "
                                   "does not have; those of Cairn are arguments of cairn.torch.backend()")
        if others:
            raise cairn.InputError(f"torch.compile: Cairn does not know what {', '.join(others)} asks of a backend")

    def is_differentiated(self, module):
        """Whether torch.compile will make a backward pass of the module."""
        largest = _private.largest_differentiated(module)
        if largest > 1:
            self.tell(f"the loss of this step is computed outside of the graph, which ends in {largest:,} elements: what that "
                      "takes is not in the budget (TORCH_LOGS=graph_breaks names what cannot be compiled)")
        return largest > 0

    def watched(self, run, unbounded):
        """``run``, with a warning the first time that one of these sizes is larger than planned for."""
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
        """Returns the unchanged module, with a warning. ``known``: number of graphs that the report had before."""
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
        return compiling.called(compiled), compiling

    def tell(self, text):
        """Warns once for each reason, however many graphs have it and whatever the number of bytes is."""
        reason = _report.without_sizes(text)
        if reason not in self.told:
            self.told.add(reason)
            warnings.warn(text, CairnWarning, stacklevel=3)
