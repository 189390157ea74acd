"""The front door: a backend of torch.compile that keeps a budget of memory."""

import functools
import warnings

import cairn

from . import _private, _report, _solve
from ._compiling import Compiling
from ._errors import CairnWarning, handed_on
from ._fallback import run_guarded
from ._partition import Options

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
    for name, value in {"accumulate": accumulate, "calibrate": calibrate, "measure": measure, "fallback": fallback}.items():
        if type(value).__name__ not in ("bool", "bool_"):  # numpy's, too
            raise cairn.InputError(f"{name}: True or False, not {value!r}")
    size = _solve.budget_bytes(budget, 1)  # bad text is told here
    budget = budget if isinstance(budget, str) else size
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
            run, compiling = self.compile(module, example_inputs)
            run = self.watched(run, unbounded) if unbounded else run
            if not self.fallback:
                return run
            failed = functools.partial(self.first_run_failed, self.report.graphs[known:])
            return run_guarded(run, module, failed, compiling.written_among)
        except _private.RESTARTS:
            raise
        except KeyboardInterrupt:  # of a graph that is compiled anew another time
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
        return compiling.called(compiled), compiling

    def tell(self, text):
        """A warning, once however many graphs have the same reason for it, and however many bytes it is of each time."""
        reason = _report.without_sizes(text)
        if reason not in self.told:
            self.told.add(reason)
            warnings.warn(text, CairnWarning, stacklevel=3)
