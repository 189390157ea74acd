"""What goes wrong, as the command's exit codes say it."""


class Error(Exception):
    """What Cairn reports on purpose: what, where, and how to mend it, in one line; where there is no schedule, in a line that
    says so and lines of why and of what helps."""

    exit_code = 1


class DefectError(Error):
    """Cairn failed one of its own checks: a defect of Cairn, not of its input."""


class InputError(Error, ValueError):
    """A graph, schedule, file or argument is not acceptable."""

    exit_code = 2


class NoScheduleError(Error):
    """Nothing that was asked for is known.

    Attributes, None where they are not known: ``lower_bound`` (bytes that no schedule is below), ``least_budget`` (the
    least budget known to be met, in bytes), ``least`` (the LeastBudget that meets it), ``scope`` (of which schedules
    it is proved, in words), ``answer`` (the best that was found all the same).
    """

    def __init__(self, message="", lower_bound=None, least_budget=None, least=None, scope="", answer=None):
        super().__init__(message)
        self.lower_bound = lower_bound
        self.least_budget = least_budget
        self.least = least
        self.scope = scope
        self.answer = answer


class InfeasibleError(NoScheduleError):
    """No schedule of those in ``scope`` is what was asked for: that is proved."""

    exit_code = 3


class NotFoundError(NoScheduleError):
    """Nothing was found within the limits, and nothing is excluded."""

    exit_code = 4


class DeviceError(Error):
    """A device is missing, or out of memory."""

    exit_code = 5


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended the search. ``best`` is the Answer of the best schedule until then, or None."""

    exit_code = 130

    def __init__(self, message="interrupted", best=None):
        super().__init__(message)
        self.best = best
