"""Lets fused kernels of the backward pass recompute values of the forward pass that they would otherwise read from
memory, if the kernels then read fewer bytes.

Memory bandwidth limits such kernels, so recomputation inside a kernel takes no extra time: recomputed elementwise
values stay in registers. What is then saved for the backward pass forms a cut, which separates the values that cannot
be copied into a kernel from the values that backward kernels need. The cheapest cut, by saved bytes, is a minimum cut
of a flow network, as in torch's own partitioner (min_cut_rematerialization_partition).
"""

import torch

from .. import _private
from .operators import base, producer, readers, size_of

_SOURCE, _SINK = "source", "sink"
_EQUAL = (torch.ops.aten.eq.Tensor, torch.ops.aten.ne.Tensor)


def recompute_in_readers(graph, kinds, is_backward, not_again):
    """Copies elementwise operations of the forward pass into the backward pass, in front of the operations that need
    their results and can be part of fused kernels. An operation is not copied if it reads a placeholder in
    ``not_again``, if its result has 16 bits, or if the backward pass compares its result with other values. Returns the
    number of copies."""

    def is_copied(node):
        return (kinds.of(node) == "pointwise" and not is_backward(node) and not kinds.reads(node, not_again) and
                not _is_rounded(node) and not is_compared(node))

    def is_compared(node):
        """Returns whether the backward pass tests the node's result for equality, for example to find the elements that
        are equal to the maximum. Another kernel may round an element differently, and the test would then find no equal
        element."""
        return any(user.target in _EQUAL and is_backward(user) for user in readers(node, kinds))

    needed = {}  # an ordered set (as dict keys): values of the forward pass that backward kernels read
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
    """Returns whether a node's result has 16 bits. A fused kernel that recomputes the result keeps it unrounded in
    registers. It would then not fit other values that the forward pass has saved, such as the maximum of the rounded
    result."""
    value = node.meta["val"]
    return value.is_floating_point() and value.dtype.itemsize < 4


def _computed_again(needed, kinds, is_backward, is_copied):
    """Returns the values that the backward pass recomputes: those on the sink's side of the minimum cut. ``needed``:
    forward values that backward kernels read. ``is_copied(value)``: whether the operation that computes a value may be
    copied."""
    import networkx  # imported here, because the import takes 0.1 s and only compiler="inductor" needs it

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
    """Returns the number of bytes that saving a value for the backward pass adds; 0 if the value is in memory in the
    backward pass anyway."""
    if value.op != "call_function" or kinds.of(producer(value)) == "maker":
        return 0
    reads = [user for user in readers(value, kinds) if user.op == "output" or is_backward(user)]
    anyway = any(not kinds.computes(user) for user in reads)
    return 0 if anyway else size_of(value)


class _Copier:
    """Copies, for one operation of the backward pass, the forward operations that it needs: those between the saved
    values and the operation's arguments."""

    def __init__(self, graph, node, computed, kinds):
        self.graph, self.node, self.computed, self.kinds = graph, node, computed, kinds
        self.copies = {}

    def copy(self):
        """Makes the copies. Returns the number of operations that were copied."""
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
