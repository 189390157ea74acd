"""Decides whether and when an error is raised if a graph cannot meet its budget. This matters most for a budget in
percent (a share).

A share of 100% is the memory that the largest graph with a backward pass needs without a budget. That graph may be
compiled late, because an evaluation or a small part of the model may come first. So if a graph cannot meet its share,
there are three cases:

- The graph has no backward pass or is tiny. It takes the least budget that works, with a warning.
- The graph ends in its loss and was not compiled in evaluation mode. The error is raised at once.
- Otherwise, the error is raised when the backward pass begins. There is no error if a larger graph was compiled in the
  meantime, so that the share has become large enough.

The budget "min" names no bytes. So a graph cannot miss it, even if it misses its goal in a plan of several graphs.
"""

import torch

from .. import _private
from .._errors import again
from .._report import size_text
from . import solve

TINY = 64 * 1024  # bytes; a graph with at most this peak without a budget may exceed its share


class Share:
    """Handles the share of one graph that has a backward pass."""

    def __init__(self, owner, joint):
        self.owner = owner
        self.evaluates = _private.evaluates()
        self.ends_in_loss = _ends_in_loss(joint)
        # whether an error about an unmet budget is raised only when the backward pass begins
        self.waits = self.evaluates or not self.ends_in_loss
        self.largest = owner.report.baseline if self.evaluates else owner.report.training_baseline
        self.report = None
        self.code = _private.compiled_code()  # Code of the function that contains the graph
        # The InfeasibleError to raise when the backward pass begins. It is not raised if a graph with a larger peak has
        # been planned by then, and the budget, a share of the largest peak, has become large enough.
        self.unmet = None
        # Like ``unmet``, for a tiny graph that may be one of several in a step. Leads only to a warning.
        self.unmet_tiny = None

    def or_least(self, baseline):
        """Returns whether a graph that cannot meet its budget may use the least budget that works, at least until its
        backward pass begins. ``baseline``: the graph's peak in bytes without a budget."""
        return solve.is_share(self.owner.options.budget) and (self.waits or baseline <= TINY)

    def planned(self, report, unmet, among=None):
        """Decides what happens to a graph that has just been planned. ``report``: its GraphReport. ``unmet``: the
        InfeasibleError about its budget; None if the budget is met. ``among``: an Among (_several/watch.py), which
        tells what other graphs of the step hold, or None."""
        self.report = report
        report.trains = not self.evaluates
        if unmet is None:
            return
        if solve.is_min(self.owner.options.budget):  # what is not met is a goal within a plan of several graphs
            report.budget = None
            return
        is_tiny = report.baseline <= TINY and solve.is_share(self.owner.options.budget)
        if is_tiny and among is not None and not among.is_alone:
            self.unmet_tiny = unmet
        elif is_tiny:
            tell_of_least(self.owner, report, "it is tiny")
        else:
            self.unmet = unmet
            if self.evaluates:
                held = among.held if among is not None else 0
                # If other graphs hold memory, the text does not announce an error, because all graphs of the step are
                # then planned together when the step has ended.
                error = "" if held else "; its backward pass would be an error"
                tell_of_least(self.owner, report, f"it is in evaluation mode{error}", held)

    def backward_begins(self):
        self.report.trains = True
        if self.owner.watch.is_several():  # when the step has ended, its graphs are planned together
            return
        if self.unmet_tiny is not None:
            self.unmet_tiny = None
            tell_of_least(self.owner, self.report, "it is tiny")
        if self.unmet is None:
            return
        budget = solve.budget_bytes(self.owner.options.budget, self.owner.report.training_baseline)
        if self.report.promised > budget:
            # A budget in bytes does not grow later, so this graph remains too large. Shorter inputs may have a graph
            # within the budget, but torch might call the present graph for them. So torch is told to compile the
            # function once more.
            if not solve.is_share(self.owner.options.budget) and not self.owner.watch.is_threaded():
                _private.compile_again(self.code)
            raise again(self.unmet)
        self.report.budget, self.unmet = budget, None


def _ends_in_loss(joint):
    """Returns whether one of the differentiated results of the graph is a single number."""
    tangents = (n.meta.get("val") for n in joint.graph.find_nodes(op="placeholder") if _private.is_tangent(n))
    return any(isinstance(t, torch.Tensor) and _private.hint(t.numel()) == 1 for t in tangents)


def tell_of_least(owner, report, why, held=0):
    """Warns that a graph exceeds its share. ``held``: bytes of this share that other graphs hold."""
    of_others = f", of which other graphs hold {size_text(held)}" if held else ""
    owner.tell(f"{report.name}: {str(owner.options.budget).strip()} is {size_text(report.budget)}{of_others}, and the least that is found "
               f"is {size_text(report.promised)}: the graph uses this budget, because {why}")
