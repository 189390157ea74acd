"""Decides for which sizes of inputs a graph with symbolic sizes is planned, so that few plans serve many lengths.

A plan is valid for all sizes up to its own. Without foresight, each new longest input would need another plan, and
torch.compile gives up a function after a few variants.
"""

# How much larger than the plan before a new plan is at least: for the first, the second, ... and all later plans of a
# function for a larger size. A function whose inputs do not vary much is not planned for sizes that never come, and the
# eight variants that torch permits suffice for inputs of which the longest is 180 times as long as the shortest.
_GROWTH = (1.25, 1.5, 2.0, 3.0, 4.0)


class Lengths:
    """The sizes of the inputs of compiled functions. A key is (number of the function, name of the input,
    dimension)."""

    def __init__(self):
        self._largest = {}  # key -> the largest size that was seen or planned for
        # Key -> number of plans that a larger size made necessary, for sizes that have a plan for smaller ones, too.
        self._plans = {}

    def saw(self, key, size):
        """Receives a size that is the same number in every call of its graph."""
        self._largest[key] = max(size, self._largest.get(key, 0))

    def planned(self, key, size):
        """Returns the size for which a graph is planned whose first input has this ``size``: at least the largest size
        that was seen before."""
        largest = self._largest.get(key, 0)
        if key in self._plans and size > largest:
            self._plans[key] += 1
            size = max(size, int(largest * _GROWTH[min(self._plans[key], len(_GROWTH)) - 1]))
        self._plans.setdefault(key, 0)
        self._largest[key] = max(size, largest)
        return self._largest[key]

    def forget(self, key, size):
        """Receives that a plan for more than ``size`` was impossible."""
        self._largest[key] = size
