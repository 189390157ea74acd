"""Counts the gradients that autograd keeps within a backward pass because more gradients of the same tensor will come.

Autograd adds up all gradients of a tensor before it passes them on. Until then, it keeps the sum so far. When the next
gradient comes, autograd adds it in place if nothing else refers to the memory of the sum. Otherwise, both and the new sum
are in memory for a moment. Most gradients that compiled graphs return are views, for which autograd does the latter.
"""

from .. import _private


class Sums:
    """The gradients of one backward pass that wait for further ones. Sizes are in bytes."""

    def __init__(self):
        self._waiting = {}  # Edge.target -> whether autograd adds the next gradient in place
        self._sums = {}  # the same, of results of graphs -> (name of the node that reads the sum, its size)

    def begin(self, node, edges, zeros=()):
        """Receives the name of the node that begins, and Edges along which it will pass on gradients. ``zeros``: Edges along
        which autograd has passed on zeros, because the node's graph has written into results of other graphs. Returns (the
        sizes of all sums of gradients of results, the edges to which gradients have been passed before)."""
        for edge in zeros:
            self._waiting[edge.target] = True
            if edge.reader is not None:
                self._sums[edge.target] = edge.reader, edge.size
        self._sums = {target: (reader, size) for target, (reader, size) in self._sums.items() if reader != node}
        return sum(size for _, size in self._sums.values()), [edge for edge in edges if edge.target in self._waiting]

    def end(self, edges, gradients):
        """Receives the Edges along which a node passes on gradients, and these, which are None if unknown. Returns the size
        of the largest sum that autograd now computes out of place, 0 if there is none."""
        largest = 0
        for edge, gradient in zip(edges, gradients):
            is_in_place = self._waiting.get(edge.target)
            self._waiting[edge.target] = is_in_place is not None or (
                gradient is not None and _private.adds_in_place(gradient, storage_was_read=edge.leaf is None))
            if is_in_place is False:
                largest = max(largest, edge.size)
                if edge.reader is not None:
                    self._sums[edge.target] = edge.reader, edge.size
        return largest
