"""Implements the backend "cairn", which torch.compile knows by name, for configurations that can only name a
backend."""

import inspect
import os

import cairn

from .._errors import handed_on
from .backend import backend

_VARIABLE = "CAIRN_BUDGET"
_backends = {}  # options as text -> Backend


def named(module, inputs, *, options=None, **others):
    """Compiles a graph for ``torch.compile(model, backend="cairn", options={"budget": "60%"})``. The options are the
    arguments of cairn.torch.backend. If the options have no budget, the environment variable CAIRN_BUDGET gives it; if
    the variable is not set, the budget is "min". Models and blocks that are compiled with equal options share one
    backend, and thus one budget."""
    try:
        chosen = _backend_of(options)
    except cairn.Error as error:
        raise handed_on(error) from None
    return chosen(module, inputs, **others)


def _backend_of(options):
    given, of_variable = _with_variable(options)
    unknown = [name for name in given if name not in inspect.signature(backend).parameters]
    if unknown:
        raise cairn.InputError(f"options: backend 'cairn' has no {unknown[0]!r}; it has "
                               f"{', '.join(inspect.signature(backend).parameters)}")
    key = _key(given)
    if key not in _backends:
        try:
            _backends[key] = backend(**given)
        except cairn.InputError as error:
            raise cairn.InputError(f"{_VARIABLE}: {error}" if of_variable else str(error)) from None
    return _backends[key]


def _with_variable(options):
    """Returns (the options as a new dict, with the environment variable's budget if they have none; whether the budget
    is that of the variable)."""
    given = dict(options or {})
    of_variable = "budget" not in given and _VARIABLE in os.environ
    if of_variable:
        given["budget"] = os.environ[_VARIABLE]
    return given, of_variable


def _key(given):
    return repr(sorted(given.items(), key=lambda item: item[0]))


def _known(options):
    """Returns the backend that was made for these options; None if there is none."""
    return _backends.get(_key(_with_variable(options)[0]))


def _reset():
    for made in _backends.values():
        made.reset()


named.reset = _reset  # called by torch._dynamo.reset()
named.backend_of = _known  # called by _private.tell_of_limits()
