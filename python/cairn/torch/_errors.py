"""Errors and warnings of cairn.torch are defined here."""

import functools

import cairn

from . import _private


class _HandedOn(_private.ShortenTraceback):
    """An error that torch.compile passes on unchanged, without torch's frames and additions to the message."""

    def _tell(self, message):
        _private.ShortenTraceback.__init__(self, message, first_useful_frame=None)
        self.message = message

    def __str__(self):
        return self.message

    def remove_dynamo_frames(self):
        """Called by torch.compile. TORCHDYNAMO_VERBOSE=1 keeps the frames."""
        return self if _private.shows_frames() else self.with_traceback(None)


class InfeasibleError(cairn.InfeasibleError, _HandedOn):
    """The budget cannot be met. ``least_budget``: the least one, in bytes, that can; ``lower_bound``: what is proved."""

    def __init__(self, message, lower_bound=None, least_budget=None):
        self._tell(message)
        self.lower_bound = lower_bound
        self.least_budget = least_budget
        self.least = None
        self.scope = ""
        self.answer = None


def handed_on(error):
    """A copy of one of Cairn's errors that torch.compile passes on unchanged; of a subclass of its class."""
    if isinstance(error, _private.ShortenTraceback):
        return error
    return again(error, _kind(type(error)))


def again(error, kind=None):
    """A copy of the error, as one of class ``kind``, without a traceback, whose frames would keep objects alive."""
    kind = kind or type(error)
    new = kind.__new__(kind)
    new._tell(str(error))
    new.__dict__.update(error.__dict__)
    return new


@functools.cache
def _kind(kind):
    return type(kind.__name__, (kind, _HandedOn), {"__module__": kind.__module__, "__doc__": kind.__doc__})


InfeasibleError.__module__ = "cairn.torch"  # the module that messages show


class CairnWarning(UserWarning):
    """Something differs from what was asked for, and training goes on: a model does not trace, a promise was broken."""


class WrittenError(RuntimeError):
    """A tensor that a backward pass computes from again was written after the forward pass, and torch did not
    notice."""


WrittenError.__module__ = "cairn.torch"
