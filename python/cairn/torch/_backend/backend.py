"""Contains the entry point, backend(), which makes a backend of torch.compile that keeps to a memory budget."""

import functools
import warnings

import torch

import cairn

from .. import _private, _report
from .._errors import CairnWarning, handed_on
from .._graph.operators import is_region
from .._inputs.lengths import Lengths
from .._memory.together import step_ended
from .._offload.link import offload_of
from .._plan import solve
from .._plan.partition import Options
from .._several.watch import Watch
from .._step.updates import Mark
from .compiling import Compiling, OtherRegions, RegionPlans
from .fallback import run_guarded
from .repeated import same_graph_again

_last = None


def last_report():
    """Returns the Report of the backend or Step that compiled a graph most recently; None before the first graph is
    compiled."""
    return _last


def remember(report):
    global _last
    _last = report


def backend(budget="min", *, compiler="eager", random="keep", inputs="checked", differentiated="loss", accumulate=False,
            never_recompute=(), offload=None, host_budget=None, together=True, calibrate=True, measure=True, fallback=True,
            time_limit=10.0, work_limit=None, seed=0, solver="auto"):
    """Makes a backend for ``torch.compile(model, backend=cairn.torch.backend(budget="8GiB"))``.

    The budget limits the peak, in bytes, of everything that is not resident: activations, gradients of activations, and
    scratch of kernels. Parameters, their gradients, optimizer state and inputs are resident and not part of the budget.
    Loss, gradients and buffers have the same bits as without a budget.

    budget: the budget of each compiled graph. It is a number of bytes, or a text: "8GiB", "8 GB", "min", or a share
        such as "60%". 100% is what the graph needs without a budget, or what an earlier graph with a backward pass
        needs, if the earlier graph needs more. If a graph cannot meet a share, and it is tiny or has no backward pass,
        it takes the least budget that works, without an error.
    compiler: what makes the kernels. "eager": torch. "inductor": Inductor fuses elementwise operations and reductions
        to kernels; torch's own kernels run all other operations.
    random: "keep": random operations run once, and the numbers that they draw (masks of dropout, noise) are kept until
        their last read. "replay": random operations may run again, and draw the same numbers from a saved state of
        their generator.
    inputs: whether inputs may change before the backward pass. "checked": if an input shares memory with numpy, another
        process or an unrelated tensor, torch may not notice that it is written. So operations that read such an input
        run only once, in the forward pass. When the backward pass reads other inputs, buffers or results again, they
        are compared with their values in the forward pass. A change that torch did not notice raises WrittenError.
        "changing": operations that read an input other than a parameter run only once. "stable": nobody writes inputs,
        and nothing is compared.
    differentiated: which results of a graph the caller differentiates. "loss": if the graph returns a single number,
        the caller gives no gradients for the larger results from which this number is computed, such as logits beside a
        loss. If the caller gives such a gradient nevertheless, the gradient is used, with a CairnWarning, because the
        promised peak does not include it. "all": the promised peak includes such gradients, and zeros take the place of
        missing gradients.
    accumulate: whether gradients are added to those of earlier steps. Torch then makes the new gradients in addition to
        the old ones, so the new gradients are part of the budget.
    never_recompute: names of operations that run once, as a list or one text: operators ("mm", "aten.mm.default"), or
        modules with everything inside of them, by path ("blocks.3", "blocks.*.attention") or by class ("LayerNorm").
    offload: the link between device and host, if values may move to the host's memory and come back: "pcie3", "pcie4",
        "pcie5", "c2c", a bandwidth as "25GB/s" or, with latency and half duplex, "25GB/s,10us,half", a number of bytes
        per second, or "measure". None: nothing moves. The search decides for each value whether it is kept, recomputed
        or moved to the host. Results of operations that run only once stay on the device. On the CPU, the copies go to
        other buffers of the same memory, which do not count in the budget.
    together: whether the budget is for the whole step if torch.compile splits the step into several graphs. If True,
        the graphs are planned together and compiled once more after the first step. If False, each graph has the whole
        budget for itself.
    host_budget: the number of bytes that values moved to the host may take there at one time; unlimited by default.
    calibrate: whether to measure the cost and the scratch of each distinct operation once on this device. The
        measurements are cached. If False, costs are estimated and scratch counts as 0, so the real peak can exceed the
        promised one.
    measure: whether to measure the first step's peak. If the peak exceeds the promised one, a CairnWarning says so.
    fallback: what to do if a graph cannot be scheduled, or if its schedule fails when its forward pass is first called.
        True: runs the graph without a schedule, with a CairnWarning. False: raises an error.
    time_limit, work_limit, seed, solver: options of the search, as in cairn.solve.

    If a budget cannot be met, raises InfeasibleError, with ``least_budget``, before the first step. There is one
    exception: for a share, if the graph was compiled in evaluation mode or does not end in its loss, the error is
    raised when the graph's backward pass begins.
    """
    if compiler not in ("eager", "inductor"):
        raise cairn.InputError(f"compiler: 'eager' or 'inductor', not {compiler!r}")
    if random not in ("keep", "replay"):
        raise cairn.InputError(f"random: 'keep' or 'replay', not {random!r}")
    if inputs not in ("checked", "changing", "stable"):
        raise cairn.InputError(f"inputs: 'checked', 'changing' or 'stable', not {inputs!r}")
    if differentiated not in ("loss", "all"):
        raise cairn.InputError(f"differentiated: 'loss' or 'all', not {differentiated!r}")
    moving = offload_of(offload, host_budget)
    for name, value in {"accumulate": accumulate, "together": together, "calibrate": calibrate, "measure": measure,
                        "fallback": fallback}.items():
        if type(value).__name__ not in ("bool", "bool_"):  # Python's or numpy's bool
            raise cairn.InputError(f"{name}: True or False, not {value!r}")
    size = solve.budget_bytes(budget, 1)  # raises an error if the text is no budget
    budget = budget if isinstance(budget, str) else size
    limits = solve.Limits(time_limit, work_limit, seed, solver)
    options = Options(budget, calibrate, measure, limits, inductor={} if compiler == "inductor" else None,
                      accumulate=accumulate, replay=random == "replay", inputs=inputs, never_recompute=_names(never_recompute),
                      all_differentiated=differentiated == "all", offload=moving, together=together)
    return Backend(options, fallback)


def _names(given):
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, (list, tuple, set)) else None
    if names is None or not all(isinstance(name, str) and name for name in names):
        raise cairn.InputError(f"never_recompute: names of operators or modules, not {given!r}")
    return names


def _settings(mode, options):
    """Returns Inductor's settings that result from torch.compile's mode= and options=."""
    try:
        settings = _private.inductor_config(mode, options)
    except RuntimeError as error:
        raise cairn.InputError(f"mode, options: {str(error).split(', known options')[0]}") from None
    if settings.get("triton.cudagraphs"):
        what = "options: 'triton.cudagraphs'" if options and "triton.cudagraphs" in options else f"mode: {mode!r}"
        raise cairn.InputError(f"{what} records CUDA graphs, which keep all memory of a step, so that no budget can hold; "
                               "mode='max-autotune-no-cudagraphs' tunes kernels without")
    if "custom_partitioner_fn" in settings:
        raise cairn.InputError("options: 'custom_partitioner_fn' chooses what is saved for the backward pass, which Cairn does; "
                               "leave it out")
    return settings


class Backend:
    """The backend object that backend() returns. torch.compile calls it with every graph that it captures."""

    def __init__(self, options, fallback):
        self.options = options
        self.fallback = fallback
        self.report = _report.Report()
        self.told = set()
        # Names of the graphs with a backward pass that have run in the present step. Step (_step/step.py) empties the
        # set.
        self.ran = set()
        self.differentiated = {}  # name of a graph of a Step -> sizes, in elements, of its results that are differentiated
        # Whether a graph has read results of differentiable code that runs outside of the compiled graphs. Step resets
        # this flag.
        self.continues = False
        self.given = set()  # storages of the arguments of the Step that is running
        self.differentiated_only = False  # whether only graphs with a backward pass are planned
        self.names = 0  # number of graph names that were given so far
        self.frames = set()  # numbers of the compiled functions
        self.lengths = Lengths()  # sizes of the inputs of the compiled functions
        self.watch = self._new_watch()
        self.__name__ = "cairn"
        _private.tell_of_limits(self)

    def reset(self):
        """Forgets the compiled functions. torch._dynamo.reset() calls this."""
        self.frames.clear()
        self.lengths = Lengths()
        self.watch.enabled = False
        self.watch = self._new_watch()

    def next_name(self):
        """Returns the name of the next graph. Names are not used again, because warnings are given once for each
        name."""
        self.names += 1
        return f"graph {self.names - 1}"

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "watch"}

    def __setstate__(self, state):
        vars(self).update(state)
        self.watch = self._new_watch()
        _private.tell_of_limits(self)

    def _new_watch(self):
        """Returns a Watch, which plans the graphs of a step together if the option together= is True."""
        self.report.waits = False
        return Watch(self, self.options.together)

    def gave_up(self, backend, frame, limit, value, function):
        """Warns that a function runs without a budget from now on, because torch.compile has reached its limit on
        variants of a function."""
        if backend is self or frame in self.frames:
            self.runs_without_budget(
                f"{function} runs without a budget where it is called in another way than before, as torch.compile has "
                f"made {value} variants of it: torch._dynamo.config.{limit} = {2 * value} allows more; "
                "dynamic=True, if it is not set, needs fewer (TORCH_LOGS=recompiles says what differs)")

    def __call__(self, module, example_inputs, **given):
        return same_graph_again(self._compiled(module, example_inputs, given), module)

    def _compiled(self, module, example_inputs, given):
        """Returns a function that computes the module within the budget, or without a budget if that is impossible."""
        remember(self.report)
        self.frames.add(_private.compiled_frame())
        known = len(self.report.graphs)
        try:
            self.take(**given)
            self.watch.plan_now()
            known = len(self.report.graphs)
            sizes = _private.sizes_differentiated(module) if self.differentiated_only else ()
            if self.differentiated_only and not sizes:
                return _compiled_without_plan(module, example_inputs)
            unbounded = self._bound_sizes(module)
            try:
                run, compiling = self._compiled_with_regions(module, example_inputs)
            except (cairn.InfeasibleError, _private.OnlyPresentSizes):
                if not self._plans_exactly(module):
                    raise
                run, compiling = self._compiled_with_regions(module, example_inputs)
            self.watch.made(self.report.graphs[known:])
            self.differentiated.update((graph.name, sizes) for graph in self.report.graphs[known:])
            run = self.watched(run, unbounded) if unbounded else run
            run = self.with_gradients(run, module, example_inputs)
            if not self.fallback:
                return run
            failed = functools.partial(self.first_run_failed, self.report.graphs[known:])
            return run_guarded(run, module, failed, compiling.written_among)
        except _private.RESTARTS:
            raise
        except (KeyboardInterrupt, CairnWarning):  # a CairnWarning is raised if the caller turns warnings into errors
            del self.report.graphs[known:]  # because the graph may be compiled again later
            raise
        except cairn.Error as error:
            if not _private.suppresses_errors():
                step_ended()
                raise handed_on(error) from None
            reason = error
        except Exception as error:
            if not self.fallback:
                raise
            reason = error
        return self.without_budget(module, example_inputs, reason, known)

    def _bound_sizes(self, module):
        """Chooses the sizes for which the module is planned, where sizes are dynamic. Returns the dynamic sizes that
        may become larger than planned."""
        frame = _private.compiled_frame()
        for name, dimension, size in _private.input_sizes(module):
            if isinstance(size, int):
                self.lengths.saw((frame, name, dimension), size)
        return _private.bound_sizes(module, lambda name, dimension, size: self.lengths.planned((frame, name, dimension), size))

    def _plans_exactly(self, module):
        """Plans the module for its present sizes, because it cannot meet the budget with the larger sizes that were
        chosen before. Returns False if the module was planned for its present sizes already."""
        frame, found = _private.compiled_frame(), _private.plan_exactly(module)
        for name, dimension, size in _private.input_sizes(module):
            if _private.is_sized_by_data(size):  # such as the lengths of a jagged tensor, for which nothing is planned
                continue
            self.lengths.forget((frame, name, dimension), _private.hint(size))
        return found

    def take(self, mode=None, options=None, name=None, **others):
        """Receives torch.compile's arguments mode= and options=. ``name`` is only for torch's logs. Raises InputError
        for any other argument."""
        if others:
            raise cairn.InputError(f"torch.compile: Cairn does not know what {', '.join(others)} asks of a backend")
        if self.options.inductor is not None:
            self.options.inductor = _settings(mode, options)
            return
        if mode not in (None, "default"):
            raise cairn.InputError(f"mode: {mode!r} chooses kernels of Inductor, which compiler='eager' does not have; leave "
                                   "it out (backend(..., compiler='inductor') takes those without CUDA graphs)")
        if options:
            raise cairn.InputError(f"options: {', '.join(map(repr, options))} would be of Inductor, which compiler='eager' "
                                   "does not have; those of Cairn are arguments of cairn.torch.backend()")

    def tell_of_loss(self):
        """Warns if no graph that has run in a step (``ran``) ends in its loss, a single number."""
        sizes = [size for name in self.ran for size in self.differentiated.get(name, ())]
        if sizes and 1 not in sizes:
            self.runs_without_budget(
                f"the loss of this step is computed outside of the graph, which ends in {max(sizes):,} elements: what that takes is "
                "not in the budget (TORCH_LOGS=graph_breaks names what cannot be compiled)")

    def watched(self, run, unbounded):
        """Wraps ``run`` in a function that warns once if a dynamic size is larger than planned. ``unbounded``: the
        dynamic sizes for which that can happen, from _private.bound_sizes."""
        def call(*args):
            for position, dimension, planned in list(unbounded):
                size = args[position] if dimension is None else args[position].shape[dimension]
                if size > planned:
                    unbounded.clear()
                    self.tell(f"a size that is marked dynamic is {size} now, and the plan is for up to {planned}: more than "
                              "promised may be taken; torch._dynamo.mark_dynamic(..., max=) has it planned for the largest")
            return run(*args)

        return call

    def with_gradients(self, run, module, inputs):
        """Wraps ``run`` in a function that gives gradients to inputs which needed none when the module was compiled.
        Torch 2.9 does not notice that a frozen parameter trains again, and calls the graph that was compiled without its
        gradient. After all variants are removed, torch compiles the function again."""
        frozen = [i for i, value in enumerate(inputs) if isinstance(value, torch.Tensor) and not value.requires_grad]
        code = _private.compiled_code()
        # Torch 2.9 cannot run regions (nested_compile_region) of a module that is not compiled.
        compiled_only = any(is_region(node) for node in module.graph.nodes)

        def call(*args):
            if torch.is_grad_enabled() and any(args[i].requires_grad for i in frozen):
                _private.compile_again(code)
                self.runs_without_budget(
                    "a parameter that was frozen trains again, and torch called the graph of before: this step "
                    f"{'gives it no gradient' if compiled_only else 'runs without a budget'}, and the next one is compiled anew")
                return (run if compiled_only else module.forward)(*args)
            return run(*args)

        return call if frozen else run

    def without_budget(self, module, inputs, reason, known):
        """Returns the module as a function that computes it without a schedule, and warns. ``known``: number of graphs
        in the report before this one."""
        del self.report.graphs[known:]
        text = " ".join(str(reason).split("\n", 1)[0].split())
        self.report.unplanned.append(f"{type(reason).__name__}: {text}")
        self.tell(f"this graph runs without a budget, as it cannot be scheduled: {self.report.unplanned[-1]}")
        # If DistributedDataParallel splits a graph into parts, torch asks for what AOTAutograd has stored about each
        # part. So AOTAutograd must compile the part.
        return _private.aot_eager(module, inputs) if _private.splits_for_ddp() else module.forward

    def runs_without_budget(self, reason):
        if reason not in self.report.unplanned:
            self.report.unplanned.append(reason)
            self.tell(reason)

    def first_run_failed(self, graphs, reason):
        """Removes from the report the graphs whose schedules failed although the unscheduled module ran."""
        self.report.graphs[:] = [graph for graph in self.report.graphs if all(graph is not failed for failed in graphs)]
        self.ran.difference_update(graph.name for graph in graphs)
        names = ", ".join(graph.name for graph in graphs)
        self.report.unplanned.append(reason)
        self.tell(f"{names} runs without a budget, as its schedule could not be run: {reason}")

    def _compiled_with_regions(self, module, example_inputs):
        """Compiles the module, several times if its regions must be planned in another way."""
        plans = RegionPlans()
        while True:
            try:
                return self.compile(module, example_inputs, plans)
            except OtherRegions as error:
                plans = error.plans

    def compile(self, module, example_inputs, region_plans=RegionPlans()):
        compiling = Compiling(self, example_inputs, region_plans)
        try:
            compiled = _private.aot_autograd(
                fw_compiler=compiling.forward, bw_compiler=compiling.backward, inference_compiler=compiling.inference,
                partition_fn=compiling.partition, keep_inference_input_mutations=False)(module, example_inputs)
        finally:
            compiling.inputs = ()
        return compiling.called(compiled), compiling

    def tell(self, text):
        """Gives a CairnWarning, unless an earlier warning had the same text apart from numbers of bytes."""
        reason = _report.without_sizes(text)
        if reason not in self.told:
            self.told.add(reason)
            warnings.warn(text, CairnWarning, stacklevel=3)


def _compiled_without_plan(module, inputs):
    """Returns a function that computes a module that is not planned. ``aot_eager`` computes it, so that its bits are
    those of ``aot_eager``: AOTAutograd decomposes some operators, and leaves out draws that nothing reads, and seeds of
    generators. A module that writes its inputs and draws nothing, such as an optimizer's step, runs as it was captured:
    AOTAutograd computes all written values before it writes them, which takes memory. An argument that is a Mark needs
    the captured operations, too, because AOTAutograd's would not notice that they read a Mark."""
    if _private.only_writes(module):
        return module.forward
    try:
        run = _private.aot_eager(module, inputs)
    except _private.RESTARTS:
        raise
    except Exception:
        return module.forward
    return lambda *args: (module.forward if any(isinstance(arg, Mark) for arg in args) else run)(*args)
