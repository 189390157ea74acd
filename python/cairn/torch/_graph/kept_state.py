"""Restores what a model's Python objects contain after the model was traced."""

import collections
import sys
import weakref

import torch

# Contents of these types, and of classes that are derived from them, can change, and are restored.
_CONTAINERS = (collections.OrderedDict, dict, list, set, collections.deque)

# Objects within objects that are looked into, counted from a module. A cache of keys and values has two levels. More would
# lead from a module that knows its trainer to whole data sets.
_DEPTH = 3


class KeptState:
    """The attributes of a model and of its modules, and what lies in their containers and in objects of other packages,
    at the time when this object is made. A forward pass with tensors that have no values may change them: a model caches
    a mask, counts its calls, or notes that it has initialized itself. restore() undoes that, so that the model does not
    keep such tensors. Attributes in ``__slots__``, and objects of torch and of Python's own library (locks, queues,
    loggers), are left as they are."""

    def __init__(self, model):
        self._kept = []  # (base class, container, a copy of it)
        seen, waiting = set(), [(model, 0)]  # (value, number of objects that are no modules on the way to it)
        while waiting:
            value, depth = waiting.pop()
            if id(value) in seen or type(value) in weakref.ProxyTypes:  # what a proxy stands for may be gone
                continue
            seen.add(id(value))
            base = next((kind for kind in _CONTAINERS if issubclass(type(value), kind)), None)
            if base is not None:
                copy = base.copy(value)
                self._kept.append((base, value, copy))
                waiting += [(v, depth) for v in (copy.values() if issubclass(base, dict) else copy)]
            elif issubclass(type(value), tuple):
                waiting += [(v, depth) for v in tuple(value)]
            elif issubclass(type(value), torch.nn.Module):
                waiting.append((vars(value), 0))
            elif depth < _DEPTH and _may_be_state(type(value)):
                waiting.append((object.__getattribute__(value, "__dict__"), depth + 1))

    def restore(self):
        for base, container, copy in self._kept:
            if not _are_same(base.copy(container), copy):
                base.clear(container)
                (base.extend if hasattr(base, "extend") else base.update)(container, copy)


def _may_be_state(kind):
    """Returns whether to look into objects of a class that is no module."""
    package = kind.__module__.split(".")[0]
    return bool(kind.__dictoffset__) and package != "torch" and package not in sys.stdlib_module_names


def _are_same(one, other):
    """Returns whether two containers of a type have the same objects, in the same order."""
    if len(one) != len(other):
        return False
    if isinstance(one, set):
        return one == other
    if isinstance(one, dict):
        return all(a is b and one[a] is other[b] for a, b in zip(one, other))
    return all(a is b for a, b in zip(one, other))
