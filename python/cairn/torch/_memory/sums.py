"""Counts the gradients that autograd keeps within a backward pass because it has to add more gradients of the same
tensor to them.

Autograd adds up all gradients of a tensor before it passes them on. Until then, it keeps the sum so far. When the next
gradient comes, autograd adds it in place if nothing else refers to the memory of the sum. Otherwise, the old sum, the
gradient and the new sum are in memory together for a moment. Most gradients that compiled graphs return are views,
which autograd does not add in place. An Edge (_private/autograd.py) is an edge of autograd's graph, along which a
gradient is passed. Its ``target`` identifies the place where the gradients of one tensor are added up.
"""

from .. import _private


class Sums:
    """The gradients of one backward pass to which further gradients are still to be added. Sizes are in bytes."""

    def __init__(self):
        self._waiting = {}  # Edge.target -> whether autograd will add the next gradient to the present sum in place
        # Edge.target -> (name of the node that reads the sum, size of the sum), only for sums of gradients of tensors
        # that are results of a graph
        self._sums = {}

    def begin(self, node, edges, zeros=()):
        """Notes that the node of autograd's graph with this name begins to run. ``edges``: Edges along which the node
        will pass on gradients. ``zeros``: Edges along which autograd has passed on zeros, because the node's graph has
        written into results of other graphs. Returns (the sizes of all sums of gradients of results, the edges to which
        gradients have been passed before)."""
        for edge in zeros:
            self._waiting[edge.target] = True
            if edge.reader is not None:
                self._sums[edge.target] = edge.reader, edge.size
        self._sums = {target: (reader, size) for target, (reader, size) in self._sums.items() if reader != node}
        return self.size, [edge for edge in edges if edge.target in self._waiting]

    @property
    def size(self):
        """Returns the size of all sums of gradients of results that are still to be read."""
        return sum(size for _, size in self._sums.values())

    def end(self, edges, gradients):
        """Notes that a node has run, and that it passes ``gradients`` on along ``edges``. A gradient is None if it is
        unknown. Returns the size of the largest sum that autograd now computes out of place; 0 if there is none."""
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
