"""A budget that is a share is an error only for graphs that train and do not meet it.

A share refers to the largest graph that trains, which is known late: an evaluation, or a small part of a model, may
come first. So a graph that cannot meet its share takes its least budget, with a warning, where it has no backward pass
or is tiny. A graph that ends in its loss and is not in evaluation mode raises at once. Any other raises when its
backward pass begins, unless a larger graph that trains has come by then, so that the share has become large enough.
"""

import torch

from .. import _private
from .._errors import again
from .._report import size_text
from . import solve

TINY = 64 * 1024  # bytes without a budget: shares do not matter for graphs that take no more


class Share:
    """The share of one graph with a backward pass; does nothing for other budgets."""

    def __init__(self, owner, joint):
        self.owner = owner
        self.evaluates = _private.evaluates()
        self.waits = self.evaluates or not _ends_in_loss(joint)
        self.largest = owner.report.baseline if self.evaluates else owner.report.training_baseline
        self.report = None
        self.unmet = None  # an InfeasibleError, until it is raised or withdrawn

    def or_least(self, baseline):
        """Whether a graph with that peak without a budget may take its least, at least for now."""
        return solve.is_share(self.owner.options.budget) and (self.waits or baseline <= TINY)

    def planned(self, report, unmet):
        self.report = report
        report.trains = not self.evaluates
        if unmet is None:
            return
        if report.baseline <= TINY:
            tell_of_least(self.owner, report, "it is tiny")
        else:
            self.unmet = unmet
            if self.evaluates:
                tell_of_least(self.owner, report, "it is in evaluation mode; its backward pass would be an error")

    def backward_begins(self):
        self.report.trains = True
        if self.unmet is None:
            return
        budget = solve.budget_bytes(self.owner.options.budget, self.owner.report.training_baseline)
        if self.report.promised > budget:
            raise again(self.unmet)
        self.report.budget, self.unmet = budget, None


def _ends_in_loss(joint):
    """Whether one of the results that are differentiated is a single number."""
    tangents = (n.meta.get("val") for n in joint.graph.find_nodes(op="placeholder") if _private.is_tangent(n))
    return any(isinstance(t, torch.Tensor) and _private.hint(t.numel()) == 1 for t in tangents)


def tell_of_least(owner, report, why):
    owner.tell(f"{report.name}: {owner.options.budget.strip()} is {size_text(report.budget)}, and the least that is found is "
               f"{size_text(report.promised)}: the graph takes that, as {why}")
