"""Restores what a model's Python objects contain after the model was traced."""

import collections
import types
import weakref

import torch

# Contents of these types can change, and are restored.
_CONTAINERS = (dict, collections.OrderedDict, collections.defaultdict, list, set, collections.deque)

# Objects of these types are not looked into: what a forward pass changes there is not a state of the model.
_OTHERS = (torch.Tensor, torch.Generator, type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)

# Objects within objects that are looked into, counted from a module. A cache of keys and values has two levels. More would
# lead from a module that knows its trainer to whole data sets.
_DEPTH = 3


class KeptState:
    """The attributes of a model and of its modules, and what lies in their containers, at the time when this object is
    made. A forward pass with tensors that have no values may change them: a model caches a mask, counts its calls, or
    notes that it has initialized itself. restore() undoes that, so that the model does not keep such tensors."""

    def __init__(self, model):
        self._kept = []  # (container, a copy of it)
        seen, waiting = set(), [(model, 0)]  # (value, number of objects that are no modules on the way to it)
        while waiting:
            value, depth = waiting.pop()
            if id(value) in seen or type(value) in weakref.ProxyTypes:  # what a proxy stands for may be gone
                continue
            seen.add(id(value))
            if type(value) in _CONTAINERS:
                self._kept.append((value, value.copy()))
                waiting += ((v, depth) for v in (value.values() if isinstance(value, dict) else value))
            elif isinstance(value, tuple):
                waiting += ((v, depth) for v in value)
            elif isinstance(value, torch.nn.Module):
                waiting.append((vars(value), 0))
            elif depth < _DEPTH and _may_be_state(value):
                waiting.append((vars(value), depth + 1))

    def restore(self):
        for container, copy in self._kept:
            if not _same(container, copy):
                container.clear()
                (container.extend if isinstance(container, (list, collections.deque)) else container.update)(copy)


def _may_be_state(value):
    """Returns whether to look into an object that is no module."""
    return hasattr(value, "__dict__") and not isinstance(value, _OTHERS) and type(value).__module__.split(".")[0] != "torch"


def _same(container, copy):
    if len(container) != len(copy):
        return False
    if isinstance(container, set):
        return container == copy
    if isinstance(container, dict):
        return all(a is b and container[a] is copy[b] for a, b in zip(container, copy))
    return all(a is b for a, b in zip(container, copy))
