"""Lets kernels of the backward pass compute what they read from the forward pass by themselves, from fewer bytes.

A kernel that reads its arguments from memory has time to compute them from other values: the copies of elementwise
operations stay in registers. What must be saved for the backward pass is then a cut between what only other operations
make and what backward kernels need. The least cut, by the bytes that are saved, is a minimum cut of a flow network, as
in torch's own partitioner (min_cut_rematerialization_partition).
"""

import torch

from .. import _private
from .operators import base, producer, readers, size_of

_SOURCE, _SINK = "source", "sink"
_EQUAL = (torch.ops.aten.eq.Tensor, torch.ops.aten.ne.Tensor)


def recompute_in_readers(graph, kinds, is_backward, not_again):
    """Copies elementwise operations of the forward pass into the backward pass, in front of the operations of fused
    kernels that need them. Operations that read placeholders in ``not_again`` are not copied, and neither are those
    with results of 16 bits or with results that the backward pass compares. Returns the number of copies."""

    def is_copied(node):
        return (kinds.of(node) == "pointwise" and not is_backward(node) and not kinds.reads(node, not_again) and
                not _is_rounded(node) and not is_compared(node))

    def is_compared(node):
        """Returns whether the backward pass looks for equal values, such as those that are the maximum. Another kernel
        may compute an element with another rounding, and then finds none."""
        return any(user.target in _EQUAL and is_backward(user) for user in readers(node, kinds))

    needed = {}  # value of the forward pass -> None, if an operation of a backward kernel reads it
    for node in graph.nodes:
        if kinds.computes(node) and is_backward(node):
            read = (base(a, kinds) for a in node.all_input_nodes)
            needed.update(dict.fromkeys(v for v in read if v.op == "call_function" and not is_backward(v)))
    if not any(map(is_copied, needed)):
        return 0
    computed = _computed_again(needed, kinds, is_backward, is_copied)
    copies = 0
    for node in [n for n in graph.nodes if kinds.computes(n) and is_backward(n)]:
        copies += _Copier(graph, node, computed, kinds).copy()
    return copies


def _is_rounded(node):
    """Returns whether a result has 16 bits. A kernel that computes it again does not round it, so that it would differ
    from the saved results of the forward pass, such as its maximum."""
    value = node.meta["val"]
    return value.is_floating_point() and value.dtype.itemsize < 4


def _computed_again(needed, kinds, is_backward, is_copied):
    """Returns the values that the backward pass computes again: those on the sink's side of the least cut."""
    import networkx  # imported here, because it takes a tenth of a second and only this option needs it

    network = networkx.DiGraph()
    pending, seen = list(needed), set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        network.add_edge((value, 0), (value, 1), capacity=_price(value, kinds, is_backward))
        if value in needed:
            network.add_edge((value, 1), _SINK)  # no capacity means an infinite one
        if not is_copied(value):
            network.add_edge(_SOURCE, (value, 0))
            continue
        sources = {base(a, kinds) for a in value.all_input_nodes}
        if not sources:
            network.add_edge(_SOURCE, (value, 0))
        for source in sources:
            network.add_edge((source, 1), (value, 0))
            pending.append(source)
    _, (saved_side, _) = networkx.minimum_cut(network, _SOURCE, _SINK)
    return {value for value in seen if (value, 0) not in saved_side}


def _price(value, kinds, is_backward):
    """Returns the bytes of saving a value; 0 if it is in memory in the backward pass anyway."""
    if value.op != "call_function" or kinds.of(producer(value)) == "maker":
        return 0
    reads = [user for user in readers(value, kinds) if user.op == "output" or is_backward(user)]
    anyway = any(not kinds.computes(user) for user in reads)
    return 0 if anyway else size_of(value)


class _Copier:
    """Copies what one operation of the backward pass reads, back to values that are saved."""

    def __init__(self, graph, node, computed, kinds):
        self.graph, self.node, self.computed, self.kinds = graph, node, computed, kinds
        self.copies = {}

    def copy(self):
        """Returns the number of operations that were copied."""
        self.node.args, self.node.kwargs = torch.fx.node.map_arg((self.node.args, self.node.kwargs), self._value)
        return sum(self.kinds.computes(node) for node in self.copies)

    def _value(self, node):
        if node not in self.copies and base(node, self.kinds) in self.computed:
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self._value)
            with self.graph.inserting_before(self.node):
                new = self.graph.call_function(node.target, args, kwargs)
            new.meta = dict(node.meta)
            _private.set_side(new, True)
            self.copies[node] = new
            self.kinds.like(new, node)
        return self.copies.get(node, node)
