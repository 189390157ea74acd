"""Tensors of a traced graph have layouts, and devices that hold them, which are not always the tracer's.

A kernel may lay out its result differently from what the tracer assumed. An operation that draws random numbers into a
tensor, or `like` one, fills memory in the order of its strides, so a wrong layout would give other numbers. For the
seed of an attention's dropout the tracer assumes the GPU, but the kernel returns it in the host's memory, where the
backward pass reads it.
"""

import torch
from torch.utils import _pytree as pytree

from .. import _private


class Layouts:
    """Values like those in ``meta["val"]``, with the strides that kernels gave. Nodes are added in the order of their
    graph."""

    def __init__(self):
        self._values = {}  # node -> its value; for other nodes the strides are unknown

    def value(self, node):
        """The node's value with its real layout; with the tracer's where that is unknown."""
        return self._values.get(node, node.meta.get("val"))

    def known(self, node):
        return node in self._values

    def strides(self, node):
        """The strides of a node that stands for one tensor; None: unknown."""
        value = self._values.get(node)
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            return None
        return [_private.hint(s) for s in value.stride()]

    def as_traced(self, node):
        return node in self._values and self._values[node] is node.meta.get("val")

    def arguments_known(self, node):
        return all(map(self.known, node.all_input_nodes))

    def given(self, node):
        """Adds an input or a constant, as traced: torch.compile guards the strides of inputs."""
        self._values[node] = node.meta.get("val")

    def part(self, node):
        """Adds a getitem."""
        parent, position = node.args[:2]
        if self.as_traced(parent):
            self.given(node)
        elif self.known(parent):
            self._values[node] = self._values[parent][position]

    def view(self, node):
        """Adds an operation that only views the storage of an argument."""
        if all(map(self.as_traced, node.all_input_nodes)):
            return self.given(node)
        if not self.arguments_known(node):
            return
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self.value)
        args, kwargs = pytree.tree_map(lambda v: _private.hint(v) if _private.is_sym(v) else v, (args, kwargs))
        try:
            with _private.fake_mode_of(pytree.tree_leaves((args, kwargs))):
                self._values[node] = node.target(*args, **kwargs)
        except Exception:  # a view that this layout does not have
            pass

    def measured(self, node, strides, devices):
        """Adds an operation with the ``strides`` and ``devices`` of each tensor that a call returned."""
        leaves, structure = pytree.tree_flatten(node.meta.get("val"))
        tensors = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        if not self.arguments_known(node) or len(strides) != len(tensors) or None in strides:
            return
        changed = False
        for i, stride, device in zip(tensors, strides, devices):
            where = leaves[i].device if leaves[i].device.type == device else torch.device(device)
            if not laid_out(leaves[i], stride) or where != leaves[i].device:
                sizes = [_private.hint(s) for s in leaves[i].shape]
                with _private.fake_mode_of([leaves[i]]):
                    leaves[i] = torch.empty_strided(sizes, stride, dtype=leaves[i].dtype, device=where)
                changed = True
        self._values[node] = pytree.tree_unflatten(leaves, structure) if changed else node.meta.get("val")


def laid_out(traced, stride, alike=False):
    """Whether the strides are the tracer's; ``alike``: except for dimensions of one element."""
    return traced.layout is torch.strided and len(stride) == traced.dim() and all(
        (alike and _private.hint(size) == 1) or now == _private.hint(then)
        for size, now, then in zip(traced.shape, stride, traced.stride()))


def is_dense(sizes, strides):
    """Whether a tensor fills its memory, with each element once."""
    expected = 1
    for stride, size in sorted((t, n) for n, t in zip(sizes, strides) if n != 1):
        if stride != expected:
            return False
        expected *= size
    return True
