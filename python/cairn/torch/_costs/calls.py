"""Describes a call of an operation by what its cost depends on, and repeats the call with new arguments."""

import hashlib

import torch
from torch.utils import _pytree as pytree

from .. import _private
from .._graph.layouts import Layouts
from .._graph.operators import is_described, is_random, operator_name, schema_name


class Call:
    """A call of an operation. Its text names all that its cost depends on: the operation, and shapes, strides, dtypes
    and numbers of its arguments. ``layouts`` has the real layouts of the arguments; without it, the tracer's layouts
    are used."""

    def __init__(self, node, layouts=None):
        self.node = node
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), (layouts or Layouts()).value)
        args = _with_saved_statistics(node.target, args)
        self.text = f"{operator_name(node)}{pytree.tree_map(_describe, (args, kwargs))}"
        self.arguments = args, kwargs

    def run(self):
        """Returns a function without parameters that makes the call with newly allocated arguments."""
        args, kwargs = pytree.tree_map(_real, self.arguments)
        return lambda: self.node.target(*args, **kwargs)


# Backward kernels of norms -> (positions of the saved mean and deviation, positions of weight, bias and running
# statistics). Argument 1 is the input.
_NORMS = {
    torch.ops.aten.native_batch_norm_backward.default: ((5, 6), (2, 3, 4)),
    torch.ops.aten.native_layer_norm_backward.default: ((3, 4), (5, 6)),
    torch.ops.aten.native_group_norm_backward.default: ((2, 3), (4,)),
}


def _with_saved_statistics(target, args):
    """Returns the arguments with saved statistics as the forward kernel of a norm makes them: with 32 bits for an input of
    16 bits, although the tracer assumes the type of the input. On a GPU this is always so, on the CPU if the weight or
    the running statistics have 32 bits."""
    if target not in _NORMS:
        return args
    saved, parameters = _NORMS[target]
    given = [args[i] for i in parameters if i < len(args) and isinstance(args[i], torch.Tensor)]
    if args[1].device.type == "cpu" and all(t.dtype.itemsize < 4 for t in given):
        return args
    return tuple(a.float() if i in saved and isinstance(a, torch.Tensor) and a.dtype.itemsize < 4 else a
                 for i, a in enumerate(args))


def _describe(value):
    if isinstance(value, torch.Tensor):
        shape = [_private.hint(s) for s in value.shape]
        stride = [_private.hint(s) for s in value.stride()] if value.layout is torch.strided else []
        where = [_private.hint(value.storage_offset()), _private.hint(value.untyped_storage().nbytes())]
        return f"{value.dtype}{shape}{stride}{where}{value.device.type}"
    return str(_private.hint(value)) if _private.is_sym(value) else repr(value)


def _real(value):
    """Makes a real tensor like a traced one. Its storage has the same size, because some kernels copy the whole
    storage. Replaces symbolic numbers by the numbers that they are planned for, and returns other values unchanged."""
    if not isinstance(value, torch.Tensor):
        return _private.hint(value) if _private.is_sym(value) else value
    shape, stride = [_private.hint(s) for s in value.shape], [_private.hint(s) for s in value.stride()]
    count = -(-_private.hint(value.untyped_storage().nbytes()) // value.element_size())
    storage = torch.empty(count, dtype=value.dtype, device=value.device)
    if storage.is_floating_point():
        storage.uniform_(0.25, 0.75)
    else:
        storage.zero_()  # because zeros are valid indices for every operation
    return storage.as_strided(shape, stride, _private.hint(value.storage_offset()))


# Not called for measuring: they use pointers that the forward kernel stored.
_OPAQUE = ("aten::mkldnn_rnn_layer_backward",)


def measurable(op):
    node = op.node
    return op.update is not None or (node is not None and is_described(node.target) and bool(op.outputs) and
                                     (not op.effect or is_random(node)) and schema_name(node.target) not in _OPAQUE)


def wrapped_numbers(node):
    """Returns the bytes of the tensors in which torch wraps numbers, if an operation gets numbers instead of tensors,
    or together with complex tensors. When AOTAutograd calls the operation, torch wraps these numbers once more than
    when the operation is measured."""
    if node is None or not isinstance(node.target, torch._ops.OpOverload):
        return 0
    is_complex = any(isinstance(leaf, torch.Tensor) and leaf.is_complex() for leaf in pytree.tree_leaves(node.meta.get("val")))
    kinds = (torch.TensorType, torch.NumberType) if is_complex else torch.TensorType
    return sum(16 if is_complex else 8 for value, given in zip(node.args, node.target._schema.arguments)
               if isinstance(value, (int, float, complex)) and isinstance(given.type, kinds))


def description(trace):
    """Returns a digest of the operations, and of the shapes and numbers with which they are called."""
    digest = hashlib.sha256()
    for op in trace.operations:
        digest.update((op.update or Call(op.node)).text.encode() if op.update or op.node else op.label.encode())
    return digest.hexdigest()[:16]
