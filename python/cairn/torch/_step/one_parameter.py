"""Runs an optimizer's step for a single parameter, as an operation of a graph. Also records the settings and the state
on which the step depends, so that later changes of them are noticed."""

import collections
import copy
import functools
import types

import torch
from torch.utils import _pytree as pytree

from .. import _private
from .._graph.layouts import is_dense

FIRST_STEPS = 12  # number of steps that tests of optimizers and measurements of an update's memory run

# Attributes of an optimizer that a copy does not take over, but gets anew.
_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks", "_optimizer_state_dict_pre_hooks",
          "_optimizer_state_dict_post_hooks", "_optimizer_load_state_dict_pre_hooks", "_optimizer_load_state_dict_post_hooks")
_OWN = ("param_groups", "state", "step", *_HOOKS)


class Update:
    """The update of one parameter, as an operation of a compiled graph."""

    placeholder = None  # the placeholder of the parameter in the traced graph
    copies = False  # whether torch copies the gradient because its traced layout differs from that of the parameter

    def __init__(self, parameter, owner):
        kind = type(owner.optimizer)
        self.size = parameter.numel() * parameter.element_size()
        # whether its measurements are also valid in other processes: the code of other packages may differ there
        self.lasts = kind.__module__.startswith("torch.")
        settings = sorted((k, repr(v)) for k, v in settings_of(owner.group).items() if k != "lr")
        # ``text`` is the key of the update's measurement. It contains the kind of the learning rate, because a tensor
        # takes more memory than a number, but not its value.
        rate = owner.group.get("lr")
        settings.append(("lr", f"{rate.dtype}{rate.device}" if isinstance(rate, torch.Tensor) else ""))
        number = "" if self.lasts else f" {id(owner.optimizer)}"  # attributes may differ between objects of a class
        self.text = (f"update {kind.__module__}.{kind.__qualname__}{number} {settings} {parameter.dtype}{list(parameter.shape)}"
                     f"{list(parameter.stride())}{parameter.device.type}")
        self._made_from = parameter, owner

    def let_go(self):
        """Drops the references to the parameter and its optimizer, so that they can be freed when the caller replaces
        them."""
        self._made_from = None

    def run(self):
        """Makes a copy of the parameter, with a gradient, and updates it once. Returns a function without arguments
        that updates the copy again. Only the second call of this function is measured. It makes FIRST_STEPS steps,
        because some optimizers (RAdam) need more memory from a later step on."""
        parameter, owner = self._made_from
        new = torch.nn.Parameter(laid_out_as(parameter))
        with torch.no_grad():
            new.fill_(0.5)
        base = copied_with(owner.optimizer, [(owner.group, {parameter: new})])
        one = alone(base, Owner(base, base.param_groups[0], 0), new)

        new.grad = torch.full_like(new, 1e-3)
        step_alone(one)  # allocates the optimizer's state
        steps = iter((1, FIRST_STEPS))

        def call():
            for _ in range(next(steps, 1)):
                step_alone(one)

        return call


class Owner:
    """The optimizer of a parameter, the parameter's group, and its index in that group."""

    def __init__(self, optimizer, group, index):
        self.optimizer, self.group, self.index = optimizer, group, index

    def is_current(self, parameter):
        """Returns whether the parameter is still at this index of this group. This can change, because an optimizer
        that loads a state replaces its groups."""
        return (any(group is self.group for group in self.optimizer.param_groups) and
                self.index < len(self.group["params"]) and self.group["params"][self.index] is parameter)


def is_kept_as_gradient(gradient, parameter):
    """Returns whether torch stores a gradient in the parameter without copying it. Torch does so if the gradient has
    the layout of the parameter or, if the parameter's layout has gaps, if the gradient is contiguous."""
    known = _strides(parameter)
    return gradient.is_contiguous() if known is None else known == [
        (_private.hint(stride), size) for stride, (_, size) in zip(
            (s for s, n in zip(gradient.stride(), gradient.shape) if _private.hint(n) != 1), known)]


def _strides(tensor):
    """Returns (stride, size) of each dimension with several elements; None if the tensor has gaps or overlaps."""
    known = [(_private.hint(stride), _private.hint(size)) for stride, size in zip(tensor.stride(), tensor.shape)
             if _private.hint(size) != 1]
    return known if is_dense([size for _, size in known], [stride for stride, _ in known]) else None


def laid_out_as(parameter):
    """Returns a new tensor with the layout that torch gives to the copy of a gradient."""
    strides = parameter.stride() if _strides(parameter) is not None else torch.empty(parameter.shape, device="meta").stride()
    return torch.empty_strided(parameter.shape, strides, dtype=parameter.dtype, device=parameter.device)


def settings_of(group, as_numbers=False):
    """Returns the present settings of a group. ``as_numbers``: whether to convert tensors on the CPU to numbers, so
    that settings that are stored for a later comparison take no memory from torch's allocator, which no plan would
    include."""
    def own(value):
        if as_numbers and isinstance(value, torch.Generator):  # its state is a tensor, too
            return value
        if not isinstance(value, torch.Tensor):
            return copy.deepcopy(value)
        return value.tolist() if as_numbers and value.device.type == "cpu" else value.detach().clone()

    return {k: pytree.tree_map(own, v) for k, v in group.items() if k not in ("params", "param_names")}


def state_with_versions(optimizer, parameter):
    """Returns the optimizer's state of a parameter as pairs (value, its version counter). A changed counter shows that
    the value was written."""
    return [(leaf, leaf._version if isinstance(leaf, torch.Tensor) else None)
            for leaf in pytree.tree_leaves(optimizer.state.get(parameter) or {})]


def are_same(before, after):
    """Returns whether two settings, or collections of settings, are equal. A copy of an object without a comparison of
    its own is equal to the object if their attributes are."""
    (leaves, structure), (others, other_structure) = map(pytree.tree_flatten, (before, after))
    return structure == other_structure and all(map(_are_equal, leaves, others))


def _are_equal(a, b):
    if a is b:
        return True
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and torch.equal(a, b)
    if type(a) is type(b):
        if isinstance(a, torch.Generator):
            return torch.equal(a.get_state(), b.get_state())
        if isinstance(a, functools.partial):
            return are_same((a.func, a.args, a.keywords), (b.func, b.args, b.keywords))
        if isinstance(a, types.MethodType):
            return a.__func__ is b.__func__ and _are_equal(a.__self__, b.__self__)
        if type(a).__eq__ is object.__eq__ and hasattr(a, "__dict__") and not isinstance(a, types.FunctionType):
            return are_same(vars(a), vars(b))
    same = a == b
    return bool(same.all()) if hasattr(same, "all") else bool(same) or (a != a and b != b)  # not a number


def _new(optimizer, attributes, groups, state):
    one = object.__new__(type(optimizer))
    one.__dict__.update(attributes)
    # removes the wrapper that a learning-rate schedule puts around step(), because it would count the call as a step
    one.__dict__.pop("step", None)
    one.param_groups, one.state = groups, state
    one.__dict__.update((name, collections.OrderedDict()) for name in _HOOKS)
    return one


def alone(optimizer, owner, parameter):
    """Returns a copy of the optimizer that has only this parameter. The copy shares the parameter's state with the
    original."""
    group = {**owner.group, "params": [parameter]}
    if "param_names" in group:
        group["param_names"] = [group["param_names"][owner.index]]
    return _new(optimizer, optimizer.__dict__, [group], optimizer.state)


def copied_with(optimizer, chosen):
    """Returns a copy of the optimizer with copies of the chosen parameters. ``chosen``: for each group, (the group, a
    dict {parameter: its copy}). The new optimizer shares nothing with the original. If one of its attributes, such as
    another optimizer, refers to a parameter, the attribute of the new optimizer refers to the copy, or to a tensor
    without elements in memory if there is no copy."""
    memo = {id(p): torch.nn.Parameter(torch.empty_like(p, device="meta"), p.requires_grad)
            for group in optimizer.param_groups for p in group["params"] if not torch.nn.parameter.is_lazy(p)}
    memo.update((id(p), new) for _, copies in chosen for p, new in copies.items())
    attributes = {}
    for name, value in optimizer.__dict__.items():
        if name not in _OWN:
            try:
                attributes[name] = copy.deepcopy(value, memo)
            except Exception as error:
                raise TypeError(f"its attribute {name!r} cannot be copied: {error}") from error
    groups, state = [], collections.defaultdict(dict)
    for group, copies in chosen:
        groups.append({**settings_of(group), "params": list(copies.values())})
        if "param_names" in group:
            groups[-1]["param_names"] = [n for n, p in zip(group["param_names"], group["params"])
                                         if any(p is old for old in copies)]
        for old, new in copies.items():
            if old in optimizer.state:
                state[new] = copy.deepcopy(optimizer.state[old], dict(memo))
    return _new(optimizer, attributes, groups, state)


def step_alone(one):
    _private.without_hooks(type(one).step)(one)
