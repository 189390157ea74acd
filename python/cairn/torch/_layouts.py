"""The layouts that tensors of a traced graph really have.

A kernel may lay out its result otherwise than the tracer thought. What draws random numbers into a tensor, or is drawn `like`
one, fills memory in the order of its strides, so a layout that is only believed would give other numbers.
"""

import torch
from torch.utils import _pytree as pytree

from . import _private

UNKNOWN = object()


class Layouts:
    """Values like those in ``meta["val"]``, with the strides that kernels gave. Nodes come in the order of their graph."""

    def __init__(self):
        self._values = {}  # node -> its value; UNKNOWN: nobody knows its strides

    def value(self, node):
        """The node's value as it is really laid out; as the tracer has it where that is unknown."""
        value = self._values.get(node, UNKNOWN)
        return node.meta.get("val") if value is UNKNOWN else value

    def known(self, node):
        return self._values.get(node, UNKNOWN) is not UNKNOWN

    def strides(self, node):
        """Of a node that stands for one tensor; None: unknown."""
        value = self._values.get(node, UNKNOWN)
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            return None
        return [_private.hint(s) for s in value.stride()]

    def as_traced(self, node):
        return self._values.get(node) is node.meta.get("val")

    def arguments_known(self, node):
        return all(map(self.known, node.all_input_nodes))

    def given(self, node):
        """The node of an input or a constant: torch.compile guards the strides of inputs."""
        self._values[node] = node.meta.get("val")

    def unknown(self, node):
        self._values[node] = UNKNOWN

    def part(self, node):
        """Of a getitem."""
        parent, position = node.args[:2]
        value = self._values.get(parent, UNKNOWN)
        if value is not UNKNOWN:
            value = node.meta.get("val") if self.as_traced(parent) else value[position]
        self._values[node] = value

    def view(self, node):
        """Of an operation that only looks at the storage of an argument in another way."""
        if not self.arguments_known(node):
            return self.unknown(node)
        if all(map(self.as_traced, node.all_input_nodes)):
            return self.given(node)
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self.value)
        args, kwargs = pytree.tree_map(lambda v: _private.hint(v) if _private.is_sym(v) else v, (args, kwargs))
        try:
            with _private.fake_mode_of(pytree.tree_leaves((args, kwargs))):
                self._values[node] = node.target(*args, **kwargs)
        except Exception:  # a view that this layout does not have
            self.unknown(node)

    def measured(self, node, strides):
        """``strides``: of each tensor that a call returned."""
        leaves, structure = pytree.tree_flatten(node.meta.get("val"))
        tensors = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        if not self.arguments_known(node) or len(strides) != len(tensors) or None in strides:
            return self.unknown(node)
        changed = False
        for i, stride in zip(tensors, strides):
            if not laid_out(leaves[i], stride):
                sizes = [_private.hint(s) for s in leaves[i].shape]
                with _private.fake_mode_of([leaves[i]]):
                    leaves[i] = torch.empty_strided(sizes, stride, dtype=leaves[i].dtype, device=leaves[i].device)
                changed = True
        self._values[node] = pytree.tree_unflatten(leaves, structure) if changed else node.meta.get("val")


def laid_out(traced, stride, alike=False):
    """Whether the strides are those that the tracer thought; ``alike``: but for those of dimensions of one element."""
    return traced.layout is torch.strided and len(stride) == traced.dim() and all(
        (alike and _private.hint(size) == 1) or now == _private.hint(then)
        for size, now, then in zip(traced.shape, stride, traced.stride()))


def is_dense(sizes, strides):
    """Whether a tensor fills its memory, each element once."""
    expected = 1
    for stride, size in sorted((t, n) for n, t in zip(sizes, strides) if n != 1):
        if stride != expected:
            return False
        expected *= size
    return True
