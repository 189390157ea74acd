"""What goes wrong on purpose."""

import cairn

from . import _private


class InfeasibleError(cairn.InfeasibleError, _private.ShortenTraceback):
    """The budget cannot be met. ``least_budget``: the least one, in bytes, that can; ``lower_bound``: what is proved."""

    def __init__(self, message, lower_bound=None, least_budget=None):
        Exception.__init__(self, message)
        self.lower_bound = lower_bound
        self.least_budget = least_budget
        self.least = None
        self.scope = ""
        self.answer = None
        self.first_useful_frame = None  # torch.compile hands such an error on as it is


class CairnWarning(UserWarning):
    """Something is not as asked for, and training goes on: a model that does not trace, a promise that was broken."""
