"""Optimizers in the plan: each parameter is updated as soon as its gradient is complete, which is then freed."""

import collections
import copy
import sys
import warnings

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils import _pytree as pytree

import cairn

from .. import _private
from .._errors import CairnWarning
from .._graph.layouts import is_dense
from .._memory.events import bytes_of

_SCALES = (10.0, 1e4, 1e-3, 1.0) * 3  # gradient scales of the rounds in which updates are compared
_OWN = ("param_groups", "state", "step", "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")  # of each optimizer
_SETTINGS = ("optimizer: its settings (the learning rate, say) or its state were changed between backward() and its step, when "
             "parameters had been updated already; change them before or after, or plan this step without optimizer=")


class Update:
    """The update of one parameter, as an operation of a compiled graph."""

    placeholder = None  # the parameter's, in the traced graph
    copies = False  # whether the gradient has another layout than the parameter, as far as the tracer knows

    def __init__(self, parameter, owner):
        kind = type(owner.optimizer)
        self.size = parameter.numel() * parameter.element_size()
        self.lasts = kind.__module__.startswith("torch.")  # its measured values hold in another process
        settings = sorted((k, repr(v)) for k, v in _settings(owner.group).items() if k != "lr")
        rate = owner.group.get("lr")  # a tensor takes more memory than a number
        settings.append(("lr", f"{rate.dtype}{rate.device}" if isinstance(rate, torch.Tensor) else ""))
        self.text = (f"update {kind.__module__}.{kind.__qualname__} {settings} {parameter.dtype}{list(parameter.shape)}"
                     f"{list(parameter.stride())}{parameter.device.type}")
        self._made_from = parameter, owner

    def let_go(self):
        """Drops the references to the parameter, which may be replaced one day, and to its optimizer."""
        self._made_from = None

    def run(self):
        """Makes a parameter like this one, with a gradient. Returns a function without arguments that updates it."""
        parameter, owner = self._made_from
        new = torch.nn.Parameter(_laid_out_as(parameter))
        with torch.no_grad():
            new.fill_(0.5)
        base = _copy(owner.optimizer, [(owner.group, {parameter: new})])
        one = _alone(base, Owner(base, base.param_groups[0], 0), new)

        def call():
            _step(one)

        new.grad = torch.full_like(new, 1e-3)
        call()  # makes the state
        return call


class Mark(torch.Tensor):
    """Stands for the gradient of a parameter that was updated already. Its elements are NaN. Python code that asks for
    more than its kind of tensor gets an error; C++ code does not."""

    _KIND = frozenset(
        "shape size dim ndim ndimension numel nelement stride element_size itemsize nbytes dtype device get_device layout is_cpu "
        "is_cuda is_sparse is_sparse_csr is_quantized is_meta is_nested is_mkldnn is_floating_point is_complex is_contiguous is_leaf "
        "requires_grad grad_fn names _version __len__ __hash__".split())

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name == "__get__":
            name = getattr(function.__self__, "__name__", "")
        # Tracers look at every tensor in reach; code that is being traced must still get the error.
        if name not in cls._KIND and (torch.compiler.is_dynamo_compiling() or not _private.asked_by_tracer(sys._getframe(1))):
            raise cairn.InputError(
                f"optimizer: the gradient of a parameter was read or written ({name}) between backward() and the optimizer's step, "
                "when the parameter had been updated already (clipping, a norm, a scaler, zeroing); plan this step without optimizer=")
        with _private.as_plain_tensors():
            return function(*args, **(kwargs or {}))


class Owner:
    """The optimizer of a parameter, its group, and the parameter's index in that."""

    def __init__(self, optimizer, group, index):
        self.optimizer, self.group, self.index = optimizer, group, index

    def is_current(self, parameter):
        """Whether the parameter is still at that place: loading a state replaces the groups."""
        return (any(group is self.group for group in self.optimizer.param_groups) and
                self.index < len(self.group["params"]) and self.group["params"][self.index] is parameter)


class Updates:
    """The updates by the optimizers of a step. Within ``with``, ``update`` updates a parameter, and the optimizer's own
    step finds nothing left to do. In between, the gradient of an updated parameter is a mark (NaN) that cannot be
    written, so that code that looks at gradients, clips or scales them is detected."""

    def __init__(self, optimizers):
        self.optimizers = list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]
        for optimizer in self.optimizers:
            if not isinstance(optimizer, torch.optim.Optimizer) or not hasattr(optimizer, "_optimizer_step_pre_hooks"):
                raise cairn.InputError(f"optimizer: a torch.optim.Optimizer, or a list of them, not {type(optimizer).__name__}")
            _refuse_coupled(optimizer)
        self.tell = lambda text: warnings.warn(text, CairnWarning, stacklevel=2)
        self._active = False
        self._owners = {}  # id(parameter) -> Owner; None for a parameter of two optimizers
        self._updated = {}  # id(parameter) -> (parameter, mark, the parameter's version, its state with versions)
        self._settings = {}  # id(group) -> (Owner, the group's settings when the first of its parameters was updated)
        self._marks = {}  # (dtype, device) -> (a scalar NaN, its version)
        self._hooks = {}  # id(optimizer) -> handle

    # --- While a graph is compiled

    def of_inputs(self, inputs):
        """Index -> Update, for the inputs of a graph that may be updated as soon as there is a gradient."""
        self._find_owners()
        with _private.no_modes():
            return {i: Update(p, self._owners[id(p)]) for i, p in enumerate(inputs) if self._may_update(p)}

    def function(self):
        """The function that a compiled graph calls."""
        def update_parameter(parameter, gradient):
            return self.update(parameter, gradient)

        return update_parameter

    def _find_owners(self):
        self._owners = {}
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for i, p in enumerate(group["params"]):
                    self._owners[id(p)] = None if id(p) in self._owners else Owner(optimizer, group, i)

    def _may_update(self, p):
        return (isinstance(p, torch.Tensor) and type(p) in (torch.Tensor, torch.nn.Parameter) and p.is_leaf and p.requires_grad
                and p.layout is torch.strided and self._owners.get(id(p)) is not None and not p._backward_hooks
                and not p._post_accumulate_grad_hooks)

    # --- While a step runs

    def __enter__(self):
        if _private.collective_store() is not None:
            raise cairn.InputError("optimizer: with several ranks gradients are exchanged before the optimizer's step; plan the step "
                                   "without optimizer=")
        self._find_owners()
        self._marks = {}
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.requires_grad and (p.dtype, p.device) not in self._marks:
                        scalar = torch.full((), torch.nan, dtype=p.dtype, device=p.device)
                        self._marks[p.dtype, p.device] = scalar, scalar._version
        self._hooks = {id(o): o.register_step_pre_hook(_private.left_alone(self._before_step)) for o in self.optimizers}
        self._hooks[None] = register_optimizer_step_pre_hook(_private.left_alone(self._before_any_step))
        self._active = True
        return self

    def __exit__(self, kind, error, where):
        self._active = False
        for hook in self._hooks.values():
            hook.remove()
        left = len(self._updated)
        for parameter, *_ in self._updated.values():
            parameter.grad = None
        self._updated.clear()
        self._settings.clear()
        if not left:
            return
        if kind is None:
            raise cairn.InputError(
                f"optimizer: step() of the optimizer was not called in this step, though {left} parameters are updated as soon as "
                "their gradients are there (a scaler that skipped it? micro batches?); plan this step without optimizer=")
        if issubclass(kind, RuntimeError) and "single memory location" in str(error):  # autograd added to a mark
            raise cairn.InputError(
                f"optimizer: a second backward pass added to gradients when {left} parameters had been updated already; plan this "
                "step without optimizer=") from error
        if issubclass(kind, RuntimeError) and "modified by an inplace operation" in str(error):
            raise cairn.InputError(
                "optimizer: a parameter was updated when its gradient from one graph of this step was there, while another part of "
                "the step still reads it; plan this step without optimizer=") from error
        if not issubclass(kind, cairn.Error):
            self.tell(f"this step ended with {kind.__name__} when {left} parameters had been updated already, as the optimizer is in "
                      "the plan")

    def update(self, parameter, gradient):
        """Updates the parameter and returns None. Returns the gradient where the optimizer's own step must update."""
        if id(parameter) in self._updated:
            raise cairn.InputError(
                f"optimizer: a parameter of shape {list(parameter.shape)} gets a second gradient after it was updated, as with "
                "several backward passes in a step; plan this step without optimizer=")
        if not self._active:
            return gradient
        owner = self._owners.get(id(parameter))
        if owner is not None and not owner.is_current(parameter):
            self._find_owners()
            owner = self._owners.get(id(parameter))
        if not _private.accumulates(parameter):  # other gradients are asked for
            return gradient
        if parameter.grad is not None or not self._may_update(parameter):
            self.tell("a parameter that is to be updated as soon as its gradient is there was left to the optimizer's step, as it has a "
                      "hook or a gradient now, or another optimizer: that gradient is not within what is promised")
            return gradient
        if id(owner.group) not in self._settings:
            self._settings[id(owner.group)] = owner, _settings(owner.group, as_numbers=True)
        if not is_kept_as_gradient(gradient, parameter):
            gradient = _laid_out_as(parameter).copy_(gradient)
        parameter.grad = gradient
        del gradient
        with _private.no_autocast():
            _step(_alone(owner.optimizer, owner, parameter))
        torch.autograd.graph.increment_version(parameter)  # whoever has saved the parameter must not read it now
        mark = self._marks[parameter.dtype, parameter.device][0].expand_as(parameter).as_subclass(Mark)
        parameter.grad = mark
        self._updated[id(parameter)] = parameter, mark, parameter._version, _with_versions(owner.optimizer, parameter)
        return None

    def _before_any_step(self, optimizer, args, kwargs):
        if any(optimizer is own for own in self.optimizers):
            return
        if any(id(p) in self._updated for group in optimizer.param_groups for p in group["params"]):
            raise cairn.InputError(f"optimizer: {type(optimizer).__name__} has parameters of an optimizer that is in the plan")

    def _before_step(self, optimizer, args, kwargs):
        """Checks that nothing was changed since the updates; then removes the marks, so that the optimizer skips those
        parameters."""
        name = type(optimizer).__name__
        if any(a is not None for a in (*args[1:], *kwargs.values())):  # the first is the optimizer
            raise cairn.InputError("optimizer: one that is called with a closure cannot be in the plan; plan the closure")
        if next(reversed(optimizer._optimizer_step_pre_hooks)) != self._hooks[id(optimizer)].id:
            raise cairn.InputError(f"optimizer: {name} got a hook within the step; register it before, or plan this step without "
                                   "optimizer=")
        mine = [p for p, *_ in self._updated.values() if (owner := self._owners.get(id(p))) and owner.optimizer is optimizer]
        for p in mine:
            _, mark, updated, state = self._updated[id(p)]
            scalar, version = self._marks[p.dtype, p.device]
            if p.grad is not mark or scalar._version != version or p._version != updated:
                what = "value" if p._version != updated else "gradient"
                raise cairn.InputError(
                    f"optimizer: the {what} of a parameter of shape {list(p.shape)} was changed between backward() and the "
                    "optimizer's step (clipping, a scaler, another backward pass), when it had been updated already; plan this "
                    "step without optimizer=")
            now = _with_versions(optimizer, p)
            if len(now) != len(state) or not all(a is b and v == w for (a, v), (b, w) in zip(state, now)):
                raise cairn.InputError(_SETTINGS)
        for owner, before in [known for known in self._settings.values() if known[0].optimizer is optimizer]:
            if not any(group is owner.group for group in optimizer.param_groups) or not _same(
                    before, _settings(owner.group, as_numbers=True)):
                raise cairn.InputError(_SETTINGS)
            del self._settings[id(owner.group)]
        if mine and not type(optimizer).__module__.startswith("torch.") and any(
                torch.is_autocast_enabled(kind) for kind in {p.device.type for p in mine}):
            raise cairn.InputError(f"optimizer: {name} steps under autocast, and its parameters have been updated without; call step() "
                                   "outside of autocast, or plan this step without optimizer=")
        for p in mine:
            p.grad = None
            del self._updated[id(p)]


class OptimizersThatStep:
    """Collects all optimizers that step while it is entered."""

    def __enter__(self):
        self.optimizers = []
        self._hook = register_optimizer_step_post_hook(self._after_step)
        return self

    def __exit__(self, *error):
        self._hook.remove()

    def _after_step(self, optimizer, args, kwargs):
        if all(o is not optimizer for o in self.optimizers):
            self.optimizers.append(optimizer)

    def state_bytes(self):
        """Bytes of the distinct tensors in their states."""
        return bytes_of(leaf for optimizer in self.optimizers for state in optimizer.state.values()
                        for leaf in pytree.tree_leaves(state))


def is_kept_as_gradient(gradient, parameter):
    """Whether torch takes the gradient that a backward pass returns as the parameter's, without a copy: its layout must
    be that of the parameter, or contiguous where that has gaps."""
    known = _strides(parameter)
    return gradient.is_contiguous() if known is None else known == [
        (_private.hint(stride), size) for stride, (_, size) in zip(
            (s for s, n in zip(gradient.stride(), gradient.shape) if _private.hint(n) != 1), known)]


def _strides(tensor):
    """(stride, size) of each dimension that has several elements; None where there are gaps or overlaps."""
    known = [(_private.hint(stride), _private.hint(size)) for stride, size in zip(tensor.stride(), tensor.shape)
             if _private.hint(size) != 1]
    return known if is_dense([size for _, size in known], [stride for stride, _ in known]) else None


def _laid_out_as(parameter):
    """A new tensor with the layout that torch gives to the copy of a gradient."""
    strides = parameter.stride() if _strides(parameter) is not None else torch.empty(parameter.shape, device="meta").stride()
    return torch.empty_strided(parameter.shape, strides, dtype=parameter.dtype, device=parameter.device)


# --- Optimizers of one parameter

def _settings(group, as_numbers=False):
    """The settings of a group, as they are now. ``as_numbers``: for comparison only; a tensor on the CPU then takes no
    memory of torch's, which no plan would count."""
    def own(value):
        if not isinstance(value, torch.Tensor):
            return copy.deepcopy(value)
        return value.tolist() if as_numbers and value.device.type == "cpu" else value.detach().clone()

    return {k: own(v) for k, v in group.items() if k not in ("params", "param_names")}


def _with_versions(optimizer, parameter):
    """The optimizer's state of a parameter, each value with its version, which shows later writes."""
    return [(leaf, leaf._version if isinstance(leaf, torch.Tensor) else None)
            for leaf in pytree.tree_leaves(optimizer.state.get(parameter) or {})]


def _same(before, after):
    def equal(a, b):
        if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
            return isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and torch.equal(a, b)
        return bool(a == b)

    return before.keys() == after.keys() and all(equal(before[k], after[k]) for k in before)


def _new(optimizer, attributes, groups, state):
    one = object.__new__(type(optimizer))
    one.__dict__.update(attributes)
    one.__dict__.pop("step", None)  # a learning-rate schedule's, which counts
    one.param_groups, one.state = groups, state
    one._optimizer_step_pre_hooks = collections.OrderedDict()
    one._optimizer_step_post_hooks = collections.OrderedDict()
    return one


def _alone(optimizer, owner, parameter):
    """The optimizer as if it had this parameter and no others."""
    group = {**owner.group, "params": [parameter]}
    if "param_names" in group:
        group["param_names"] = [group["param_names"][owner.index]]
    return _new(optimizer, optimizer.__dict__, [group], optimizer.state)


def _copy(optimizer, chosen):
    """The optimizer with copies of the chosen parameters: for each group {parameter: its copy}. It shares nothing with
    the original."""
    memo = {id(p): p for group in optimizer.param_groups for p in group["params"]}
    attributes = copy.deepcopy({k: v for k, v in optimizer.__dict__.items() if k not in _OWN}, memo)
    groups, state = [], collections.defaultdict(dict)
    for group, copies in chosen:
        groups.append({**_settings(group), "params": list(copies.values())})
        if "param_names" in group:
            groups[-1]["param_names"] = [n for n, p in zip(group["param_names"], group["params"])
                                         if any(p is old for old in copies)]
        for old, new in copies.items():
            if old in optimizer.state:
                state[new] = copy.deepcopy(optimizer.state[old], dict(memo))
    return _new(optimizer, attributes, groups, state)


def _step(one):
    with _private.no_optimizer_hooks():
        type(one).step(one)


def _refuse_coupled(optimizer):
    """Updates copies of two small parameters of each group together, and one by one before a step without gradients.
    Only where the results have the same bits may each be updated when its gradient is there. In the last round a
    gradient is infinite."""
    name = type(optimizer).__name__
    generator = torch.Generator().manual_seed(0)
    chosen = [(group, sorted((p for p in group["params"] if p.requires_grad and p.numel()), key=torch.Tensor.numel)[:2])
              for group in optimizer.param_groups]
    if any(p.layout is not torch.strided for _, parameters in chosen for p in parameters):
        raise cairn.InputError(f"optimizer: {name} has a sparse parameter, which cannot be in the plan")

    def copied():
        return _copy(optimizer, [(group, {p: torch.nn.Parameter(_laid_out_as(p).copy_(p.detach())) for p in parameters})
                                 for group, parameters in chosen])

    def parameters(one):
        return [p for group in one.param_groups for p in group["params"]]

    try:
        together, apart = copied(), copied()
        for number, scale in enumerate(_SCALES if parameters(together) else ()):
            gradients = []
            for p in parameters(together):
                p.grad = _laid_out_as(p).copy_(torch.randn(p.shape, generator=generator).mul_(scale))
                if not gradients and number + 1 == len(_SCALES):
                    p.grad[(0,) * p.ndim] = torch.inf
                gradients.append(p.grad.clone())
            _step(together)
            for group in reversed(apart.param_groups):  # shows whether the order matters
                for i, q in reversed(list(enumerate(group["params"]))):
                    q.grad = gradients.pop()
                    _step(_alone(apart, Owner(apart, group, i), q))
                    q.grad = None
            _step(apart)
            same = all(torch.equal(p.isnan(), q.isnan()) and torch.equal(p.nan_to_num(), q.nan_to_num())
                       for p, q in zip(parameters(together), parameters(apart)))
            settings = [[_settings(group) for group in one.param_groups] for one in (together, apart)]
            if not same or not all(map(_same, *settings)) or not all(isinstance(k, torch.Tensor) for k in apart.state):
                raise cairn.InputError(
                    f"optimizer: {name} does not update each parameter for itself (a common norm, a counter of its own?), so that it "
                    "cannot be in the plan; its step runs as ever without optimizer=")
    except cairn.Error:
        raise
    except Exception as error:  # a missing closure, for example
        raise cairn.InputError(f"optimizer: {name} cannot update one parameter at a time: {type(error).__name__}: "
                               f"{' '.join(str(error).split())}") from error
