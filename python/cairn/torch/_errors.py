"""Defines the errors and warnings of cairn.torch."""

import functools

import cairn

from . import _private


class _HandedOn(_private.ShortenTraceback):
    """An error that torch.compile passes on without adding frames or text of its own."""

    def __init__(self, message):
        _private.ShortenTraceback.__init__(self, message, first_useful_frame=None)
        self.message = message

    def __str__(self):
        return self.message

    def remove_dynamo_frames(self):
        """Removes torch's frames from the traceback, unless TORCHDYNAMO_VERBOSE=1. torch.compile calls this when it has
        finished with the error."""
        _private.forget_tracing(self)
        return self if _private.shows_frames() else self.with_traceback(None)


class InfeasibleError(cairn.InfeasibleError, _HandedOn):
    """Raised if a budget cannot be met. ``least_budget`` is the least budget known to work, and ``lower_bound`` is a
    number of bytes that every schedule needs. Both are in bytes."""


def handed_on(error):
    """Returns a copy of one of Cairn's errors. The copy belongs to a subclass that torch.compile passes on
    unchanged."""
    if isinstance(error, _private.ShortenTraceback):
        return error
    return again(error, _kind(type(error)))


def again(error, kind=None):
    """Returns a copy of the error without its traceback, because the frames of a traceback keep objects alive. The copy
    is of class ``kind`` if that is given."""
    kind = kind or type(error)
    new = kind.__new__(kind)
    _HandedOn.__init__(new, str(error))
    new.__dict__.update(error.__dict__)
    return new


@functools.cache
def _kind(kind):
    def reduce(error):
        """Makes pickle store an error of class ``kind``: it cannot find the new class by its name."""
        numbers = {name: value for name, value in vars(error).items() if isinstance(value, (int, type(None)))}
        return _rebuilt, (kind, error.message, numbers)

    return type(kind.__name__, (kind, _HandedOn), {"__module__": kind.__module__, "__doc__": kind.__doc__, "__reduce__": reduce})


def _rebuilt(kind, message, attributes):
    error = kind(message)
    vars(error).update(attributes)
    return error


InfeasibleError.__module__ = "cairn.torch"  # the module that messages show


class CairnWarning(UserWarning):
    """A warning that training continues, but not entirely as the caller has asked for. For example, a model cannot be
    traced, or a measured peak exceeded the promised one."""


class WrittenError(RuntimeError):
    """Raised if a tensor was written after the forward pass without torch noticing, although recomputation in the
    backward pass needs its old value."""


WrittenError.__module__ = "cairn.torch"
