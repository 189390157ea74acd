"""A whole training step, forward, loss and backward, as one graph under one budget."""

import contextlib
import warnings

import torch
from torch.utils import _pytree as pytree

import cairn

from . import _private, _report, _solve
from ._backend import Measured, remember
from ._errors import CairnWarning
from ._partition import Options, prepare_within, schedule
from ._rewrite import rewrite_module


def step(train_step, budget="min", *, modules=None, optimizers=None, calibrate=True, measure=True, fallback=True,
         time_limit=10.0, work_limit=None, seed=0, solver="auto"):
    """``train_step`` with everything from its first operation to the last gradient planned as one graph.

        def train_step(x, y):
            optimizer.zero_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        train_step = cairn.torch._step.step(train_step, budget="8GiB")

    Unlike torch.compile's backend, which makes forward and backward two functions, there is no border between them, and the
    loss is part of the plan wherever it is computed. The step must be traceable as it stands, without graph breaks: tensors
    in, tensors out. Optimizers run as they are when the planned graph has ended; their state is counted apart, as are
    parameters and gradients.

    modules, optimizers: those that the step uses; absent: those that it refers to (its closure, globals and ``self``).
    The other options are those of ``backend``.
    """
    _solve.budget_bytes(budget, 1)
    options = Options(budget, calibrate, measure, _solve.Limits(time_limit, work_limit, seed, solver))
    found_modules, found_optimizers = _referred(train_step)
    modules = list(modules) if modules is not None else found_modules
    optimizers = list(optimizers) if optimizers is not None else found_optimizers
    if not modules:
        raise cairn.InputError("step: no module is found in what the step refers to; name them: step(..., modules=[model])")
    return Step(train_step, modules, optimizers, options, fallback)


class Step:
    """A planned step: called as the function that it was made from."""

    def __init__(self, function, modules, optimizers, options, fallback):
        self.function = function
        self.modules = modules
        self.optimizers = optimizers
        self.options = options
        self.fallback = fallback
        self.report = _report.Report()
        self._compiled = {}

    def __call__(self, *args, **kwargs):
        remember(self.report)
        leaves, structure = pytree.tree_flatten((args, kwargs))
        key = structure, tuple(_signature(leaf) for leaf in leaves), tuple(m.training for m in self.modules)
        if key not in self._compiled:
            try:
                self._compiled[key] = _Planned(self, leaves, structure)
                return self._compiled[key](leaves)
            except cairn.Error:
                raise
            except Exception as error:
                if not self.fallback:
                    raise
                text = str(error).splitlines()[0] if str(error) else ""
                warnings.warn(f"this step runs without a budget, as it cannot be traced: {type(error).__name__}: {text}",
                              CairnWarning, stacklevel=2)
                self._compiled[key] = None
        if self._compiled[key] is None:
            return self.function(*args, **kwargs)
        return self._compiled[key](leaves)


class _Planned:
    """One step for one set of shapes."""

    def __init__(self, owner, leaves, structure):
        self.owner = owner
        self.structure = structure
        self.places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.others = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.names = []  # (module's place, name), each tensor once
        seen = {}
        for place, module in enumerate(owner.modules):
            for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
                if tensor not in seen:
                    seen[tensor] = None
                    self.names.append((place, name))
        self.tensors = list(seen)
        self.calls = []  # of optimizers, in order, as the trace saw them: ("zero" | "step", optimizer, arguments)
        self.out_structure = None
        self.gradient_of = []  # places of the tensors whose gradients come after the results
        self.compiled = _private.trace_functional(self._function, None, on_module=self._compile)

    def __call__(self, leaves):
        tensors = [t.detach() for t in self.tensors] + [leaves[i] for i in self.places]
        with torch.no_grad():
            results = list(self.compiled(*tensors))
        count = len(self.gradient_of)
        gradients = results[len(results) - count:] if count else []
        del results[len(results) - count:]
        before = True
        for what, optimizer, arguments in self.calls:
            if what == "backward":
                for place, gradient in zip(self.gradient_of, gradients):
                    parameter = self.tensors[place]
                    parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
                gradients, before = [], False
            else:
                getattr(optimizer, what)(*arguments[0], **arguments[1])
        assert not before, "the step has no backward pass"
        return pytree.tree_unflatten(results, self.out_structure)

    def _function(self, *given):
        """The user's step on other tensors: returns its results, then gradients."""
        split = len(self.names)
        inner = [g.detach().requires_grad_(t.requires_grad) for g, t in zip(given, self.tensors)]
        leaves = list(self.others)
        for i, tensor in zip(self.places, given[split:]):
            leaves[i] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.structure)
        self.calls = []
        with contextlib.ExitStack() as stack:
            for place, module in enumerate(self.owner.modules):
                tensors = {n: inner[i] for i, (p, n) in enumerate(self.names) if p == place}
                stack.enter_context(_private.replaced_tensors(module, tensors))
            for optimizer in self.owner.optimizers:
                stack.enter_context(_recorded(optimizer, self.calls))
            stack.enter_context(_recorded_backward(self.calls))
            stack.enter_context(torch.enable_grad())
            out = self.owner.function(*args, **kwargs)
        results, self.out_structure = pytree.tree_flatten(out)
        if not all(isinstance(r, torch.Tensor) for r in results):
            raise TypeError("the step returns something that is not a tensor")
        if sum(what == "backward" for what, *_ in self.calls) != 1:
            raise TypeError("the step must call backward() once")
        self.gradient_of = [i for i, tensor in enumerate(inner) if tensor.grad is not None]
        return [r.detach() for r in results] + [inner[i].grad for i in self.gradient_of]

    def _compile(self, module, _):
        options, report = self.owner.options, self.owner.report
        split = len(self.names)
        primals = [n for n in module.graph.nodes if n.op == "placeholder"]
        output = next(iter(reversed(module.graph.nodes)))
        leaves = pytree.arg_tree_leaves(*output.args)
        count = len(self.gradient_of)
        gradients = leaves[len(leaves) - count:] if count else []
        trace, graph, seconds, goal, baseline = prepare_within(
            module.graph, options, name=f"step {len(report.graphs)}", parameters=primals[:split],
            gradients=[g for g in gradients if isinstance(g, torch.fx.Node)])
        solved, made = schedule(trace, graph, options, seconds, goal, baseline)
        report.graphs.append(made)
        run = _private.boxed(rewrite_module(module, trace, solved.steps))
        return Measured(trace, solved, made, 0, module).alone(run) if options.measure else run


@contextlib.contextmanager
def _recorded(optimizer, calls):
    """The optimizer with calls written down instead of done."""
    def record(what):
        return lambda *args, **kwargs: calls.append((what, optimizer, (args, kwargs)))

    names = ("step", "zero_grad")
    for name in names:
        setattr(optimizer, name, record(name))
    try:
        yield
    finally:
        for name in names:
            delattr(optimizer, name)


@contextlib.contextmanager
def _recorded_backward(calls):
    original = torch.autograd.backward

    def backward(*args, **kwargs):
        calls.append(("backward", None, None))
        return original(*args, **kwargs)

    torch.autograd.backward = backward
    try:
        yield
    finally:
        torch.autograd.backward = original


def _signature(leaf):
    if isinstance(leaf, torch.Tensor):
        return tuple(leaf.shape), tuple(leaf.stride()), leaf.dtype, leaf.device
    return leaf if isinstance(leaf, (int, float, bool, str, type(None))) else id(leaf)


def _referred(function):
    """Modules and optimizers that a function refers to."""
    values = []
    bound = getattr(function, "__self__", None)
    if bound is not None:
        values += [bound, *vars(bound).values()]
        function = function.__func__
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # not assigned yet
            values.append(cell.cell_contents)
    code = getattr(function, "__code__", None)
    if code is not None:
        values += [function.__globals__[n] for n in code.co_names if n in function.__globals__]
    modules = [v for v in values if isinstance(v, torch.nn.Module)]
    optimizers = [v for v in values if isinstance(v, torch.optim.Optimizer)]
    return list(dict.fromkeys(modules)), list(dict.fromkeys(optimizers))
