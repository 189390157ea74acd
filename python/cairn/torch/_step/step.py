"""Plans a whole training step within one budget."""

import contextlib
import functools
import weakref

import torch
from torch.utils import _pytree as pytree

import cairn

from .. import _private, _report
from .._backend.backend import backend, last_report, remember
from .._memory.events import MemoryTrace
from .._memory.together import storages_of
from .updates import OptimizersThatStep, Updates

_LATEST = 10  # from this step on, the whole step is measured even if some graphs have not been measured


def step(train_step, budget="min", *, optimizer=None, compiler="eager", random="keep", inputs="checked", differentiated="loss",
         accumulate=False, never_recompute=(), offload=None, host_budget=None, calibrate=True, measure=True, fallback=True, time_limit=10.0,
         work_limit=None, seed=0, solver="auto"):
    """Plans ``train_step``. Forward pass, loss and backward pass become one graph, even if the loss is computed outside
    of the model.

        def train_step(x, y):
            optimizer.zero_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        train_step = cairn.torch.step(train_step, budget="8GiB")

    The graph contains all operations before ``backward()`` on which the loss depends, and their derivatives. The rest
    of the step (clipping, optimizers, learning rates, averages of weights, hooks, exchange between ranks) runs as it
    does without Cairn. torch.compile compiles the step. So if modes, shapes, frozen parameters, or numbers that the
    step uses change, the step is compiled and planned again.

    optimizer: an optimizer, or a list of optimizers, to include in the plan. Each parameter is updated in the backward
        pass, as soon as its gradient is complete and no later operation reads the parameter. The gradient is then
        freed. Gradients are then part of the budget instead of resident, but few are in memory at a time. The step is
        written as usual, with ``optimizer.step()``, and computes parameters with the same bits. But no other code may
        use gradients, because the backward pass has already updated the parameters when it ends. So clipping gradients,
        scaling the loss, adding up several backward passes, or changing a learning rate between ``backward()`` and
        ``step()`` raises InputError. Optimizers that do not update each parameter independently raise InputError at
        once.

    The other options are those of ``backend``. Gives a CairnWarning if torch.compile captures several graphs, because
    something in the forward pass cannot be compiled, or no graph at all.
    """
    if not callable(train_step):
        raise cairn.InputError(f"step: a function that does a training step, not {train_step!r}")
    made = backend(budget, compiler=compiler, random=random, inputs=inputs, differentiated=differentiated, accumulate=accumulate,
                   never_recompute=never_recompute, offload=offload, host_budget=host_budget, calibrate=calibrate, measure=measure, fallback=fallback,
                   time_limit=time_limit, work_limit=work_limit, seed=seed, solver=solver)
    made.differentiated_only = True
    if optimizer is not None:
        if accumulate:
            raise cairn.InputError("optimizer: in the plan gradients are freed, and cannot be accumulated")
        if offload is not None:
            raise cairn.InputError("optimizer: in the plan, nothing moves to the host; drop optimizer= or offload=")
        made.options.updates = Updates(optimizer)
        made.options.updates.tell = made.tell
    return Step(train_step, made)


class Step:
    """A planned step. It is called like the original function. ``report`` is the Report of all its graphs."""

    def __init__(self, function, made):
        functools.update_wrapper(self, function, updated=())
        self._backend = made
        if made.options.updates is not None:
            weakref.finalize(self, _forget, weakref.ref(made.options.updates)).atexit = False
        self._run = torch.compile(function, backend=made)
        self._done = 0  # number of calls that ended without an error

    @property
    def report(self) -> _report.Report:
        return self._backend.report

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args, **kwargs):
        remember(self.report)
        self._backend.ran.clear()
        self._backend.continues = False
        self._backend.given = storages_of(pytree.tree_leaves((args, kwargs)))
        updates = self._backend.options.updates
        # The first step compiles the graphs and allocates the optimizers' state. Graphs are measured in the first or
        # the second step, so the whole step is measured in the step after that. Two measurements cannot run at the same
        # time, so the measurement of the whole step waits as long as some graph, for example one for other shapes, has
        # not been measured.
        waits = self._done + 1 < _LATEST and any(graph.measured is None for graph in self.report.graphs)
        measured = (self._done >= (1 if updates is None else 2) and self.report.whole_step is None
                    and self._backend.options.measure and not waits)
        run = self._measured if measured and self.report.graphs and MemoryTrace.available() else self._run
        with _private.left_to_python, updates or contextlib.nullcontext():
            result = self._counted(*args, **kwargs) if self._done == 0 else run(*args, **kwargs)
        self._done += 1
        ran = len(self._backend.ran)
        if ran == 0 and not self.report.unplanned:
            self._backend.runs_without_budget(
                "this step ran without a budget: torch.compile made no graph of it that has a backward pass. It gives up after 8 "
                "variants of a function (torch._dynamo.config.recompile_limit), and where it meets what it cannot compile "
                "(TORCH_LOGS=graph_breaks,recompiles names it)")
        elif ran > 1:
            whose = ("which are planned together after the first step" if self._backend.watch.enabled else
                     "each with the budget for itself")
            self._backend.tell(
                f"this step ran {ran} graphs, {whose}: it has several losses or shapes, or something in it cannot be compiled "
                "(TORCH_LOGS=graph_breaks names that)")
        self._backend.tell_of_loss()
        if ran and updates is not None:
            updates.tell_of_outside()
            if self._done == 1:
                updates.tell_of_unused()
        if ran and self._backend.continues:
            self._backend.runs_without_budget(
                "a part of the model before the graph of this step runs without a budget, because torch.compile cannot compile it "
                "(TORCH_LOGS=graph_breaks names what), or because all it does is to write its inputs")
        return result

    def _counted(self, *args, **kwargs):
        """Runs the first step, and counts the bytes of the optimizers' state after it."""
        with OptimizersThatStep() as ran:
            result = self._run(*args, **kwargs)
        self.report.optimizer_state = ran.state_bytes() if ran.optimizers else None
        return result

    def _measured(self, *args, **kwargs):
        return _measured_into(self.report, lambda: self._run(*args, **kwargs))


def _forget(updates):
    """Frees the optimizers of a Step that is gone. ``updates``: a weak reference, because an optimizer may refer to the
    Step."""
    if updates() is not None:
        updates().forget()


def measure_step(step, report=None):
    """Calls ``step``, a function without arguments that does a whole training step, and returns its result. Sets
    ``whole_step`` of the report to the step's peak: the largest number of bytes that the step has allocated and that
    were in use at one time. The peak includes new gradients, the optimizer, and code outside of graphs, which promised
    peaks do not include. ``whole_step_at`` is the operation at this peak.

    ``report``: the Report of the backend; by default last_report(). Raises InputError without running the step if
    nothing has been compiled, or if a profiler of torch is running. Raises InputError after the step if the step has
    compiled graphs, because compiling takes memory as well.
    """
    report = report or last_report()
    if report is None or not report.graphs:
        raise cairn.InputError("measure_step: nothing has been compiled by cairn.torch; run two steps before")
    if not MemoryTrace.available():
        raise cairn.InputError("measure_step: a profiler of torch is running already, and two cannot record at once; end it before")
    report.whole_step = None
    result = _measured_into(report, step)
    if report.whole_step is None:
        raise cairn.InputError("measure_step: the step has compiled graphs, which takes memory, too; measure a later step")
    return result


def _measured_into(report, step):
    """Calls ``step``. Stores its peak in the report. Stores nothing if the step compiles something: compiling measures
    operations, which ends this measurement."""
    known = list(map(id, report.graphs))
    with MemoryTrace(report.graphs[0].device, optional=True) as trace:
        result = step()
    if list(map(id, report.graphs)) == known and not trace.ended:
        # Gradients of the previous step that this step frees count until its end. Otherwise, the result would depend on
        # whether the previous step left gradients.
        report.whole_step, report.whole_step_at = trace.at_peak(held=set(trace.addresses))
    return result
