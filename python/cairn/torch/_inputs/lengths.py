"""Decides for which sizes of inputs a graph with symbolic sizes is planned, so that few plans serve many lengths.

A plan is valid for all sizes up to the one for which it was made. If each plan were made for the present size, each new
longest input would need another plan, and torch.compile gives up compiling a function after a few variants.
"""

# Least ratios of the size of a new plan to the largest size before it. The first ratio is for the first new plan of a
# function that a larger size makes necessary, the second for the second, ..., and the last also for all later plans.
# The first ratios are small, so that a function whose inputs vary little is not planned for sizes that never come. The
# last ratios are large, so that the eight variants of a function that torch permits suffice if the longest input is 180
# times as long as the shortest.
_GROWTH = (1.25, 1.5, 2.0, 3.0, 4.0)


class Lengths:
    """The sizes of the inputs of compiled functions. A key is (number of the function, name of the input,
    dimension)."""

    def __init__(self):
        self._largest = {}  # key -> the largest size that was seen or planned for
        # Key -> number of plans that were made because a size was larger than all earlier plans. A key is added with 0
        # at its first plan.
        self._plans = {}

    def saw(self, key, size):
        """Notes a size of an input. The graph that is compiled treats this size as a constant."""
        self._largest[key] = max(size, self._largest.get(key, 0))

    def planned(self, key, size):
        """Returns the size for which a graph is to be planned if the input of this ``key`` now has this ``size``. The
        result is at least as large as ``size`` and as every size seen before."""
        largest = self._largest.get(key, 0)
        if key in self._plans and size > largest:
            self._plans[key] += 1
            size = max(size, int(largest * _GROWTH[min(self._plans[key], len(_GROWTH)) - 1]))
        self._plans.setdefault(key, 0)
        self._largest[key] = max(size, largest)
        return self._largest[key]

    def forget(self, key, size):
        """Notes that no plan for a size larger than ``size`` could meet the budget."""
        self._largest[key] = size
