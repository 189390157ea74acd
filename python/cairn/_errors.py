"""Defines the exceptions of the package. There is one class for each exit code with which the command `cairn` fails."""


class Error(Exception):
    """The base class of the package's exceptions. The first line of the message says what is wrong, where, and how to
    correct it. If no schedule was found, more lines say why, and what can be done."""

    exit_code = 1


class DefectError(Error):
    """Cairn failed one of its own checks: a defect of Cairn, not of the input."""


class InputError(Error, ValueError):
    """A graph, schedule, file or argument is not acceptable."""

    exit_code = 2


class NoScheduleError(Error):
    """No schedule that meets the request is known.

    Attributes, each of which is None if it is not known:

    ``lower_bound``   bytes that every schedule needs
    ``least_budget``  the least budget known to work, in bytes
    ``least``         the LeastBudget with the schedule and the plan that meet that budget
    ``scope``         a description of the set of schedules for which it is proved that none meets the request
    ``answer``        the best schedule that was found, although it does not meet the request
    """

    def __init__(self, message="", lower_bound=None, least_budget=None, least=None, scope="", answer=None):
        super().__init__(message)
        self.lower_bound = lower_bound
        self.least_budget = least_budget
        self.least = least
        self.scope = scope
        self.answer = answer


class InfeasibleError(NoScheduleError):
    """It is proved that no schedule in ``scope`` meets the request."""

    exit_code = 3


class NotFoundError(NoScheduleError):
    """No schedule that meets the request was found within the limits, but it is not proved that there is none."""

    exit_code = 4


class DeviceError(Error):
    """A device is missing, or its memory does not suffice."""

    exit_code = 5


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended the search. ``best`` is the Answer with the best schedule found before that, or None."""

    exit_code = 130

    def __init__(self, message="interrupted", best=None):
        super().__init__(message)
        self.best = best
