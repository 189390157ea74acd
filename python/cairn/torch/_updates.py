"""Optimizers in the plan: a parameter is updated as soon as its gradient is complete, and the gradient is freed then."""

import collections
import copy
import weakref

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils import _pytree as pytree

import cairn

from . import _private

_ROUNDS = 2  # of updates that are compared: the first one makes the optimizer's state


class Update:
    """That of one parameter, as an operation of a compiled graph."""

    def __init__(self, position, parameter, optimizer, group):
        self.position = position  # among the graph's inputs
        self.size = parameter.numel() * parameter.element_size()
        self._made_from = parameter, optimizer, group
        kind = type(optimizer)
        settings = sorted((k, repr(v)) for k, v in _settings(group).items() if k != "lr")
        self.text = (f"update {kind.__module__}.{kind.__qualname__} {settings} {parameter.dtype}{list(parameter.shape)}"
                     f"{list(parameter.stride())}{parameter.device.type}")

    def results(self):
        return []

    def run(self):
        """An update of a parameter like this one, which exists already: (function without arguments)."""
        parameter, optimizer, group = self._made_from
        new = _like(parameter)
        one = _alone(optimizer, group, [new], _states(optimizer, {parameter: new}))

        def call():
            _step(one)

        new.grad = torch.full_like(new, 1e-3)
        call()  # makes the state
        return call


class Updates:
    """Of the optimizers of a step. Within ``with``, ``update`` updates; the optimizer's own step finds nothing left to do.

    In between, the gradient of an updated parameter is a mark that is not a number and cannot be written, so that whoever
    looks at gradients, clips or scales them is found out."""

    def __init__(self, optimizers):
        self.optimizers = list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]
        for optimizer in self.optimizers:
            if not isinstance(optimizer, torch.optim.Optimizer):
                raise cairn.InputError(f"optimizer: a torch.optim.Optimizer, or a list of them, not {optimizer!r}")
            _refuse_coupled(optimizer)
        self._active = False
        self._owners = {}  # id(parameter) -> (optimizer, group); of a parameter of two optimizers: None
        self._updated = {}  # id(parameter) -> (parameter, mark, the parameter's version)
        self._settings = {}  # id(group) -> (group, its settings when the first of its parameters was updated)
        self._marks = {}  # (dtype, device) -> (a scalar that is not a number, its version)

    # --- While a graph is compiled

    def of_inputs(self, inputs):
        """Position -> Update, of those of a graph's inputs that may be updated as soon as there is a gradient."""
        self._find_owners()
        return {i: Update(i, p, *self._owners[id(p)]) for i, p in enumerate(inputs) if self._may_update(p)}

    def _find_owners(self):
        self._owners = {}
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for p in group["params"]:
                    self._owners[id(p)] = None if id(p) in self._owners else (optimizer, group)

    def _may_update(self, p):
        return (isinstance(p, torch.Tensor) and type(p) in (torch.Tensor, torch.nn.Parameter) and p.is_leaf and p.requires_grad
                and p.layout is torch.strided and self._owners.get(id(p)) is not None and not p._backward_hooks
                and not p._post_accumulate_grad_hooks)

    # --- While a step runs

    def __enter__(self):
        if _private.collective_store() is not None:
            raise cairn.InputError("optimizer: with several ranks gradients are exchanged before the optimizer's step; plan the step "
                                   "without optimizer=")
        self._active = True
        self._find_owners()
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if (p.dtype, p.device) not in self._marks:
                        scalar = torch.full((), torch.nan, dtype=p.dtype, device=p.device)
                        self._marks[p.dtype, p.device] = scalar, scalar._version
        # Those of the optimizers come after whatever else is called before they step.
        self._hooks = [register_optimizer_step_pre_hook(self._before_any_step),
                       *(optimizer.register_step_pre_hook(self._before_step) for optimizer in self.optimizers)]
        return self

    def __exit__(self, kind, error, where):
        self._active = False
        for hook in self._hooks:
            hook.remove()
        left = len(self._updated)
        for parameter, *_ in self._updated.values():
            parameter.grad = None
        self._updated.clear()
        self._settings.clear()
        if left and kind is None:
            raise cairn.InputError(
                f"optimizer: step() of the optimizer was not called in this step, though {left} parameters are updated as soon as "
                "their gradients are there (a scaler that skipped it? micro batches?); plan this step without optimizer=")

    def update(self, parameter, gradient):
        """Updates the parameter, and returns None; where that must be left to the optimizer's own step, the gradient."""
        if id(parameter) in self._updated:
            raise cairn.InputError(
                f"optimizer: a parameter of shape {list(parameter.shape)} gets a second gradient after it was updated, as with "
                "several backward passes in a step; plan this step without optimizer=")
        if not self._active or parameter.grad is not None or not self._may_update(parameter):
            return gradient
        optimizer, group = self._owners[id(parameter)]
        self._settings.setdefault(id(group), (group, _settings(group)))
        parameter.grad = gradient
        del gradient
        _step(_alone(optimizer, group, [parameter], optimizer.state))
        parameter.grad = mark = self._marks[parameter.dtype, parameter.device][0].expand_as(parameter)
        self._updated[id(parameter)] = parameter, mark, parameter._version
        return None

    def _before_any_step(self, optimizer, args, kwargs):
        own = isinstance(optimizer.param_groups, _OneGroup) or any(optimizer is own for own in self.optimizers)
        if not own and any(id(p) in self._updated for group in optimizer.param_groups for p in group["params"]):
            raise cairn.InputError(f"optimizer: {type(optimizer).__name__} has parameters of an optimizer that is in the plan")

    def _before_step(self, optimizer, args, kwargs):
        """Whether gradients were left alone since; then the optimizer finds none of those parameters to update."""
        if any(a is not None for a in (*args[1:], *kwargs.values())):  # the first is the optimizer
            raise cairn.InputError("optimizer: one that is called with a closure cannot be in the plan; plan the closure")
        mine = [p for group in optimizer.param_groups for p in group["params"] if id(p) in self._updated]
        for p in mine:
            _, mark, updated = self._updated[id(p)]
            scalar, version = self._marks[p.dtype, p.device]
            if p.grad is not mark or scalar._version != version or p._version != updated:
                what = "value" if p._version != updated else "gradient"
                raise cairn.InputError(
                    f"optimizer: the {what} of a parameter of shape {list(p.shape)} was changed between backward() and the "
                    "optimizer's step (clipping, a scaler, another backward pass), when it had been updated already; plan this "
                    "step without optimizer=")
        for group in optimizer.param_groups:
            _, before = self._settings.pop(id(group), (None, None))
            if before is not None and not _same(before, _settings(group)):
                raise cairn.InputError(
                    "optimizer: its settings (the learning rate, say) were changed between backward() and its step, when parameters "
                    "had been updated already; change them before or after, or plan this step without optimizer=")
        for p in mine:
            p.grad = None
            del self._updated[id(p)]


class Early:
    """The updates of one compiled graph, as its backward pass calls them."""

    def __init__(self, updates):
        self.updates = updates
        self.leaves = {}  # position -> weak reference to the parameter that the last forward pass was given

    def take(self, inputs, positions):
        self.leaves = {i: weakref.ref(inputs[i]) for i in positions}

    def function(self):
        """Of a position and its gradient: None, or the gradient."""
        def update_parameter(position, gradient):
            parameter = self.leaves[position]()
            return gradient if parameter is None else self.updates.update(parameter, gradient)

        return update_parameter


class OptimizersThatStep:
    """Those that did, anywhere, while it was entered."""

    def __enter__(self):
        self.optimizers = []
        self._hook = register_optimizer_step_post_hook(self._after_step)
        return self

    def __exit__(self, *error):
        self._hook.remove()

    def _after_step(self, optimizer, args, kwargs):
        if not isinstance(optimizer.param_groups, _OneGroup) and all(o is not optimizer for o in self.optimizers):
            self.optimizers.append(optimizer)

    def state_bytes(self):
        """Of the distinct tensors in their states."""
        sizes = {}
        for optimizer in self.optimizers:
            for state in optimizer.state.values():
                for leaf in pytree.tree_leaves(state):
                    if isinstance(leaf, torch.Tensor):
                        sizes[leaf.untyped_storage()._cdata] = leaf.untyped_storage().nbytes()
        return sum(sizes.values())


def _settings(group):
    return {k: v for k, v in group.items() if k != "params"}


def _same(before, after):
    def equal(a, b):
        return a is b or (not isinstance(a, torch.Tensor) and not isinstance(b, torch.Tensor) and bool(a == b))

    return before.keys() == after.keys() and all(equal(before[k], after[k]) for k in before)


class _OneGroup(list):
    """By which an optimizer that is not the caller's is known."""


def _alone(optimizer, group, parameters, state):
    """The optimizer as if it had these parameters of one group and no others."""
    one = object.__new__(type(optimizer))
    one.__dict__.update(optimizer.__dict__)
    one.__dict__.pop("step", None)  # a schedule's, which counts
    one.param_groups = _OneGroup([{**group, "params": parameters}])
    one.state = state
    one._optimizer_step_pre_hooks = collections.OrderedDict()
    one._optimizer_step_post_hooks = collections.OrderedDict()
    return one


def _step(one):
    type(one).step(one)


def _like(parameter, values=None):
    new = torch.empty_strided(parameter.shape, parameter.stride(), dtype=parameter.dtype, device=parameter.device)
    with torch.no_grad():
        new.fill_(0.5) if values is None else new.copy_(values)
    return torch.nn.Parameter(new)


def _states(optimizer, replaced):
    """What the optimizer keeps of parameters, copied for others that replace them."""
    state = collections.defaultdict(dict)
    for old, new in replaced.items():
        if old in optimizer.state:
            state[new] = copy.deepcopy(optimizer.state[old])
    return state


def _refuse_coupled(optimizer):
    """Updates copies of small parameters of each group together, and one by one before a step without gradients: only if that
    is the same, bit for bit, may each be updated when its gradient is there."""
    generator = torch.Generator().manual_seed(0)
    kind = type(optimizer).__name__
    for group in optimizer.param_groups:
        chosen = sorted((p for p in group["params"] if p.requires_grad and p.numel()), key=torch.Tensor.numel)[:2]
        if any(p.layout is not torch.strided for p in chosen):
            raise cairn.InputError(f"optimizer: {kind} has a sparse parameter, which cannot be in the plan")
        copies = [[_like(p, p.detach()) for p in chosen] for _ in range(2)]
        states = [_states(optimizer, dict(zip(chosen, new))) for new in copies]
        settings = [_settings(group), _settings(group)]  # a step may change them, if only as one that finds no gradients does
        try:
            for _ in range(_ROUNDS if chosen else 0):
                for together, apart in zip(*copies):
                    gradient = torch.randn(together.shape, generator=generator).mul_(10).to(together)
                    together.grad, apart.grad = gradient.clone(), gradient.clone()
                one = _alone(optimizer, settings[0], copies[0], states[0])
                _step(one)
                for parameter in copies[1]:
                    _step(_alone(optimizer, settings[1], [parameter], states[1]))
                    parameter.grad = None
                last = _alone(optimizer, settings[1], copies[1], states[1])
                _step(last)
                settings = [_settings(stepped.param_groups[0]) for stepped in (one, last)]
                if not _same(*settings) or not all(torch.equal(a, b) for a, b in zip(*copies)):
                    raise cairn.InputError(
                        f"optimizer: {kind} does not update each parameter for itself (a common norm, a step of its own kind?), "
                        "so that it cannot be in the plan; its step runs as ever without optimizer=")
        except cairn.Error:
            raise
        except Exception as error:  # a closure that is missing, for one
            raise cairn.InputError(f"optimizer: {kind} cannot update one parameter at a time: {type(error).__name__}: "
                                   f"{' '.join(str(error).split())}") from error
