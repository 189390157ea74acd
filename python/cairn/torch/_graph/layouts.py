"""Stores the real layouts and devices of a traced graph's tensors, which can differ from those that the tracer assumed.

A kernel may choose its own layout. The layout matters for random numbers, which a kernel draws in the order of elements
in memory: with a wrong layout, elements would get other numbers. The device can be wrong as well: for example, the
tracer assumes that the seed of an attention's dropout is on the GPU, but the kernel returns the seed in the host's
memory, and the backward pass reads the seed from there.
"""

import torch
from torch.utils import _pytree as pytree

from .. import _private


class Layouts:
    """Stores the value of each node, like ``meta["val"]``, but with the strides that the node's kernel really produced.
    Nodes must be added in the order of the graph."""

    def __init__(self):
        self._values = {}  # node -> its value, if its real layout is known

    def value(self, node):
        """Returns the node's value, with the tracer's layout if the real one is unknown."""
        return self._values.get(node, node.meta.get("val"))

    def known(self, node):
        return node in self._values

    def strides(self, node):
        """Returns the strides of a node's single tensor; None if they are unknown."""
        value = self._values.get(node)
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            return None
        return [_private.hint(s) for s in value.stride()]

    def as_traced(self, node):
        return node in self._values and self._values[node] is node.meta.get("val")

    def arguments_known(self, node):
        return all(map(self.known, node.all_input_nodes))

    def given(self, node):
        """Adds an input or a constant with the tracer's layout. This layout is right, because torch.compile compiles
        again if an input's strides change."""
        self._values[node] = node.meta.get("val")

    def part(self, node):
        """Adds a getitem node, which takes one value from the results of another node."""
        parent, position = node.args[:2]
        if self.as_traced(parent):
            self.given(node)
        elif self.known(parent):
            self._values[node] = self._values[parent][position]

    def view(self, node):
        """Adds an operation that only returns views of its arguments."""
        if all(map(self.as_traced, node.all_input_nodes)):
            return self.given(node)
        if not self.arguments_known(node):
            return
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self.value)
        args, kwargs = pytree.tree_map(lambda v: _private.hint(v) if _private.is_sym(v) else v, (args, kwargs))
        try:
            with _private.fake_mode_of(pytree.tree_leaves((args, kwargs))):
                self._values[node] = node.target(*args, **kwargs)
        except Exception:  # the real argument has no such view; the layout stays unknown
            pass

    def measured(self, node, strides, devices, storages):
        """Adds an operation whose call has returned tensors with these ``strides`` and ``devices``, in storages of these
        numbers of bytes (``storages``)."""
        leaves, structure = pytree.tree_flatten(node.meta.get("val"))
        tensors = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        if not self.arguments_known(node) or len(strides) != len(tensors) or None in strides:
            return
        changed = False
        for i, stride, device, storage in zip(tensors, strides, devices, storages):
            where = leaves[i].device if leaves[i].device.type == device else torch.device(device)
            # a storage can be larger than its tensor, and later operations may copy all of it
            is_larger = storage is not None and storage > _private.hint(leaves[i].untyped_storage().nbytes())
            if not laid_out(leaves[i], stride) or where != leaves[i].device or is_larger:
                sizes = [_private.hint(s) for s in leaves[i].shape]
                with _private.fake_mode_of([leaves[i]]):
                    if is_larger:
                        whole = torch.empty(storage // leaves[i].element_size(), dtype=leaves[i].dtype, device=where)
                        leaves[i] = whole.as_strided(sizes, stride)
                    else:
                        leaves[i] = torch.empty_strided(sizes, stride, dtype=leaves[i].dtype, device=where)
                changed = True
        self._values[node] = pytree.tree_unflatten(leaves, structure) if changed else node.meta.get("val")


def laid_out(traced, stride, alike=False):
    """Returns whether the real strides ``stride`` are those that the tracer assumed. If ``alike`` is True, strides of
    dimensions with one element may differ."""
    return traced.layout is torch.strided and len(stride) == traced.dim() and all(
        (alike and _private.hint(size) == 1) or now == _private.hint(then)
        for size, now, then in zip(traced.shape, stride, traced.stride()))


def is_dense(sizes, strides):
    """Returns whether a tensor with these sizes and strides fills its memory without gaps and overlaps."""
    expected = 1
    for stride, size in sorted((t, n) for n, t in zip(sizes, strides) if n != 1):
        if stride != expected:
            return False
        expected *= size
    return True
