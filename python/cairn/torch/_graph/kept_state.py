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
        self._kept = []  # (base class, container, its contents)
        seen, waiting = set(), [(model, 0)]  # (value, number of objects that are no modules on the way to it)
        while waiting:
            value, depth = waiting.pop()
            if id(value) in seen or type(value) in weakref.ProxyTypes:  # what a proxy stands for may be gone
                continue
            seen.add(id(value))
            base = next((kind for kind in _CONTAINERS if issubclass(type(value), kind)), None)
            if base is not None:
                contents = _contents(base, value)
                self._kept.append((base, value, contents))
                waiting += [(entry[-1], depth) for entry in contents]
            elif issubclass(type(value), tuple):
                waiting += [(v, depth) for v in tuple(value)]
            elif issubclass(type(value), torch.nn.Module):
                waiting.append((vars(value), 0))
            elif depth < _DEPTH and _may_be_state(type(value)):
                waiting.append((object.__getattribute__(value, "__dict__"), depth + 1))

    def restore(self):
        for base, container, contents in self._kept:
            now = _contents(base, container)
            if len(now) != len(contents) or any(a is not b for x, y in zip(now, contents) for a, b in zip(x, y)):
                base.clear(container)
                if issubclass(base, dict):
                    base.update(container, contents)
                else:
                    (base.update if base is set else base.extend)(container, [value for value, in contents])


def _contents(base, container):
    """Returns a list of (key, value) of a dict, or of (value,) of another container. Only methods of the base class are
    called: a class that is derived from it may have others of the same name, and a constructor with other arguments."""
    return list(base.items(container)) if issubclass(base, dict) else [(value,) for value in list(base.__iter__(container))]


def _may_be_state(kind):
    """Returns whether to look into objects of a class that is no module."""
    package = kind.__module__.split(".")[0]
    return bool(kind.__dictoffset__) and package != "torch" and package not in sys.stdlib_module_names
