"""Describes a call of an operation by everything that its cost depends on, and repeats the call with new arguments."""

import functools
import hashlib

import torch
from torch.utils import _pytree as pytree

from .. import _private
from .._graph import regions
from .._graph.layouts import Layouts
from .._graph.operators import is_described, is_random, operator_name, schema_name
from .._rewrite.tangents import plus_given


class Call:
    """A call of an operation. Its ``text`` contains everything that the cost depends on: the operation, and shapes,
    strides, dtypes and numbers of the arguments. ``layouts`` has the real layouts of the arguments; without it, the
    layouts of the tracer are used."""

    def __init__(self, node, layouts=None):
        self.node = node
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), (layouts or Layouts()).value)
        args = _with_saved_statistics(node.target, args)
        self.function, name = node.target, operator_name(node)
        region = regions.module_of(node)
        if region is not None:
            self.function, args = regions.function_of(region), args[regions.BEFORE_ARGUMENTS:]
            name += hashlib.sha256(regions.text_of(region).encode()).hexdigest()[:16]
        self.text = f"{name}{pytree.tree_map(_describe, (args, kwargs))}"
        self.arguments = args, kwargs

    def _takes_too_few(self):
        """Returns whether the call is a masked_scatter whose source has too few elements for a mask that is true
        everywhere. On a GPU, such a call would read beyond the source, and leave the device in an error state."""
        if schema_name(self.node.target) not in ("aten::masked_scatter", "aten::masked_scatter_"):
            return False
        whole, _, source = self.arguments[0]
        return _private.hint(source.numel()) < _private.hint(whole.numel())

    def run(self):
        """Returns a function that makes the call with newly allocated arguments. Masks are made true everywhere,
        because operations then need most scratch. If the call fails with such masks, masks are made false
        everywhere."""
        leaves = pytree.tree_leaves(self.arguments)
        has_masks = any(isinstance(leaf, torch.Tensor) and leaf.dtype == torch.bool for leaf in leaves)
        for chosen in (True, False) if has_masks and not self._takes_too_few() else (False,):
            args, kwargs = pytree.tree_map(functools.partial(made_like, chosen=chosen), self.arguments)
            for i in _LENGTHS.get(schema_name(self.node.target), ()):
                args[i].fill_(1)
            try:
                if chosen:
                    self.function(*args, **kwargs)
                break
            except Exception as error:
                if _private.is_out_of_memory(error):
                    raise
        return lambda: self.function(*args, **kwargs)


# Bytes. A made argument lies in a storage of the size of the traced one, which some kernels copy as a whole, unless this
# storage is larger than this limit and most of it is not the argument's own.
_MOST_BESIDE = 2**28

# Positions of the arguments that contain the lengths of bags. They are filled with ones: with zeros, all bags would be
# empty, and kernels would need no scratch.
_LENGTHS = {"aten::_embedding_bag_backward": (4,), "aten::_embedding_bag_dense_backward": (3,)}

# Positions of arguments of each norm's backward kernel: (positions of the saved mean and deviation, positions of
# weight, bias and running statistics). The input is at position 1.
_NORMS = {
    torch.ops.aten.native_batch_norm_backward.default: ((5, 6), (2, 3, 4)),
    torch.ops.aten.native_layer_norm_backward.default: ((3, 4), (5, 6)),
    torch.ops.aten.native_group_norm_backward.default: ((2, 3), (4,)),
}


def _with_saved_statistics(target, args):
    """Gives saved statistics the dtype that the forward kernel of a norm gives them. If the input has 16 bits, the
    saved statistics have 32 bits; but on a CPU, only if the weight or the running statistics have 32 bits. The tracer
    assumes that they have the input's dtype."""
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
        lazily = f"{'conj' if value.is_conj() else ''}{'neg' if value.is_neg() else ''}"
        return f"{value.dtype}{shape}{stride}{where}{value.device.type}{lazily}"
    return str(_private.hint(value)) if _private.is_sym(value) else repr(value)


def made_like(value, chosen=False):
    """Makes a real tensor like a traced one, with a storage of the same size, because some kernels copy the whole
    storage. If ``value`` is a symbolic number, returns the number for which the graph is planned. Returns all other
    values unchanged. ``chosen``: the value of all elements of boolean tensors."""
    if not isinstance(value, torch.Tensor):
        return _private.hint(value) if _private.is_sym(value) else value
    shape, stride = [_private.hint(s) for s in value.shape], [_private.hint(s) for s in value.stride()]
    count = -(-_private.hint(value.untyped_storage().nbytes()) // value.element_size())
    offset = _private.hint(value.storage_offset())
    own = _private.extent(shape, stride)
    if count * value.element_size() > _MOST_BESIDE and count > 2 * own:  # a part of a data set, for example
        count, offset = own, 0
    storage = torch.empty(count, dtype=value.dtype, device=value.device)
    if storage.is_floating_point():
        storage.uniform_(0.25, 0.75)
    elif storage.dtype == torch.bool:
        storage.fill_(chosen)
    else:
        storage.zero_()  # zeros are valid indices for every operation
    real = storage.as_strided(shape, stride, offset)
    # Torch marks a tensor as conjugated or negated without changing its elements. Operations that read such a tensor
    # copy it first, so the real tensor gets the same mark.
    real = real.conj() if value.is_conj() else real
    return _private.negated_when_read(real) if value.is_neg() else real


# These operators are not measured, because they use pointers that the forward kernel stored.
_OPAQUE = ("aten::mkldnn_rnn_layer_backward",)


def measurable(op):
    node = op.node
    region = regions.module_of(node) if node is not None else None
    if region is not None:
        return bool(op.outputs) and regions.is_pure(region)
    return op.update is not None or (node is not None and is_described(node.target) and bool(op.outputs) and
                                     (not op.effect or is_random(node)) and schema_name(node.target) not in _OPAQUE)


def wrapped_numbers(node):
    """Returns the bytes of tensors that a call by AOTAutograd makes and a measured call does not. Torch wraps a number
    in a tensor if an operation gets it in place of a tensor, or together with complex tensors. For each number, a call
    by AOTAutograd makes one such tensor more than a measured call."""
    if node is not None and node.target is plus_given:
        # for a missing gradient, 0 is made twice: as an integer, and in the result's type
        return 8 + node.meta["val"].element_size()
    if node is None or not isinstance(node.target, torch._ops.OpOverload):
        return 0
    is_complex = any(isinstance(leaf, torch.Tensor) and leaf.is_complex() for leaf in pytree.tree_leaves(node.meta.get("val")))
    kinds = (torch.TensorType, torch.NumberType) if is_complex else torch.TensorType
    return sum(16 if is_complex else 8 for value, given in zip(node.args, node.target._schema.arguments)
               if _is_number(value) and isinstance(given.type, kinds))


def expanded_zeros(op):
    """Returns the bytes of the single zeros that torch makes while an operation reads zero tensors, i.e. tensors whose
    elements are all 0 and take no memory. For each such tensor, torch makes one zero and expands it to the tensor's
    shape. A kernel that cannot read expanded tensors copies the result. The trace counts memory for the whole zero
    tensor, which covers this copy, but not the one zero."""
    values = [s.producer.node.meta.get("val") for s in op.reads if s.producer is not None and s.producer.node is not None]
    # CUDA's allocator hands out multiples of 512 bytes
    return sum(512 if zero.device.type == "cuda" else zero.element_size() for zero in values
               if _private.is_zero_tensor(zero))


def _is_number(value):
    return isinstance(value, (int, float, complex)) or (
        isinstance(value, torch.fx.Node) and _private.is_sym(value.meta.get("val")))


def description(trace):
    """Returns a digest of the operations and of the shapes and numbers of their arguments."""
    digest = hashlib.sha256()
    for op in trace.operations:
        digest.update((op.update or Call(op.node)).text.encode() if op.update or op.node else op.label.encode())
    return digest.hexdigest()[:16]
