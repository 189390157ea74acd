"""What goes wrong on purpose."""

import functools

import cairn

from . import _private


class _HandedOn(_private.ShortenTraceback):
    """An error that torch.compile hands on as it is, without torch's frames and what torch adds to the message."""

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
    """One of Cairn's errors as torch.compile hands it on; an error of the same class."""
    if isinstance(error, _private.ShortenTraceback):
        return error
    return again(error, _kind(type(error)))


def again(error, kind=None):
    """The same error, as one of ``kind``, without the frames of where it was made, which hold what they had."""
    kind = kind or type(error)
    new = kind.__new__(kind)
    new._tell(str(error))
    new.__dict__.update(error.__dict__)
    return new


@functools.cache
def _kind(kind):
    return type(kind.__name__, (kind, _HandedOn), {"__module__": kind.__module__, "__doc__": kind.__doc__})


InfeasibleError.__module__ = "cairn.torch"  # as it is shown


class CairnWarning(UserWarning):
    """Something is not as asked for, and training goes on: a model that does not trace, a promise that was broken."""


class WrittenError(RuntimeError):
    """What a backward pass computes from again was written after the forward pass, and torch did not notice."""


WrittenError.__module__ = "cairn.torch"
