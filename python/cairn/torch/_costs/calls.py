"""A call of an operation is described by what its cost depends on, and made again with arguments of its own."""

import hashlib

import torch
from torch.utils import _pytree as pytree

from .. import _private
from .._graph.layouts import Layouts
from .._graph.operators import is_described, is_random, operator_name, schema_name


class Call:
    """What a call depends on, as text: the operation, and shapes, strides, dtypes and numbers of its arguments.
    ``layouts``: the arguments' real layouts; without, the tracer's."""

    def __init__(self, node, layouts=None):
        self.node = node
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), (layouts or Layouts()).value)
        if node.target is torch.ops.aten.native_batch_norm_backward.default:  # the tracer gives them the input's type
            args = tuple(a.float() if i in (5, 6) and isinstance(a, torch.Tensor) and a.dtype.itemsize < 4 else a
                         for i, a in enumerate(args))
        self.text = f"{operator_name(node)}{pytree.tree_map(_describe, (args, kwargs))}"
        self.arguments = args, kwargs

    def run(self):
        """A function without arguments that makes the call, with arguments of its own."""
        args, kwargs = pytree.tree_map(_real, self.arguments)
        return lambda: self.node.target(*args, **kwargs)


def _describe(value):
    if isinstance(value, torch.Tensor):
        shape = [_private.hint(s) for s in value.shape]
        stride = [_private.hint(s) for s in value.stride()] if value.layout is torch.strided else []
        where = [_private.hint(value.storage_offset()), _private.hint(value.untyped_storage().nbytes())]
        return f"{value.dtype}{shape}{stride}{where}{value.device.type}"
    return str(_private.hint(value)) if _private.is_sym(value) else repr(value)


def _real(value):
    """A tensor like the traced one, in a storage of the same size: some kernels copy all of it."""
    if not isinstance(value, torch.Tensor):
        return _private.hint(value) if _private.is_sym(value) else value
    shape, stride = [_private.hint(s) for s in value.shape], [_private.hint(s) for s in value.stride()]
    count = -(-_private.hint(value.untyped_storage().nbytes()) // value.element_size())
    storage = torch.empty(count, dtype=value.dtype, device=value.device)
    if storage.is_floating_point():
        storage.uniform_(0.25, 0.75)
    else:
        storage.zero_()  # zeros are valid indices for any range
    return storage.as_strided(shape, stride, _private.hint(value.storage_offset()))


_OPAQUE = ("aten::mkldnn_rnn_layer_backward",)  # they follow pointers that a forward kernel left


def measurable(op):
    node = op.node
    return op.update is not None or (node is not None and is_described(node.target) and bool(op.outputs) and
                                     (not op.effect or is_random(node)) and schema_name(node.target) not in _OPAQUE)


def wrapped_numbers(node):
    """Bytes of the tensors that wrap numbers, where an operation gets numbers in place of tensors or beside complex
    ones. When AOTAutograd calls it, torch wraps them once more than when it is measured."""
    if node is None or not isinstance(node.target, torch._ops.OpOverload):
        return 0
    is_complex = any(isinstance(leaf, torch.Tensor) and leaf.is_complex() for leaf in pytree.tree_leaves(node.meta.get("val")))
    kinds = (torch.TensorType, torch.NumberType) if is_complex else torch.TensorType
    return sum(16 if is_complex else 8 for value, given in zip(node.args, node.target._schema.arguments)
               if isinstance(value, (int, float, complex)) and isinstance(given.type, kinds))


def description(trace):
    """A digest of the operations, with the shapes and numbers that they are called with."""
    digest = hashlib.sha256()
    for op in trace.operations:
        digest.update((op.update or Call(op.node)).text.encode() if op.update or op.node else op.label.encode())
    return digest.hexdigest()[:16]
