"""Says which operations can be part of a fused kernel, and as what: elementwise operation, reduction, view or maker."""

import operator

import torch
from torch.utils import _pytree as pytree

from .. import _private
from .._graph import policies
from .._graph.nondeterministic import repeats_bitwise
from .._graph.operators import acts, argument, is_described, is_random, is_view, schema_name, viewed
from .._rewrite.dropout import masked_scale

# Operations that compute each element of the result from few elements of the arguments, but do not carry torch's tag
# "pointwise". Inductor inlines them into the kernels of their readers.
_POINTWISE = frozenset(f"aten::{name}" for name in (
    "_to_copy", "where", "constant_pad_nd", "slice_backward", "select_backward", "tril", "triu", "flip", "repeat",
    "hardswish_backward", "hardsigmoid_backward", "leaky_relu_backward", "elu_backward", "softplus_backward",
    "log_sigmoid_backward", "hardtanh_backward", "mish_backward", "glu", "glu_backward"))
# Operations that raise an error for a divisor 0 if they compute with integers, while a compiled kernel would end the
# process.
_DIVISIONS = frozenset(f"aten::{name}" for name in ("div", "floor_divide", "remainder", "fmod"))
# On a CPU, these operations compute all elements of a vector in another way if one of them is large. Kernels that
# compute a part of a row (_MASKED) can have numbers in the other elements that lie behind the tensor: in torch 2.15,
# Inductor loads whole vectors then. So the operations are not fused in a graph with both.
_BY_VECTOR = frozenset(f"aten::{name}" for name in ("sin", "cos", "tan"))
_MASKED = frozenset(f"aten::{name}" for name in ("constant_pad_nd", "slice_backward", "select_backward"))
# "Makers": operations that fill a new tensor with numbers and read no other tensor.
_MAKERS = frozenset(f"aten::{name}" for name in ("full", "zeros", "ones", "arange", "scalar_tensor"))
# Operations that fill a new tensor with one number, and have a tensor as an argument only for its shape. The dict's
# value is the number, or the name or position of the argument that contains the number.
_LIKE = {torch.ops.aten.zeros_like.default: 0, torch.ops.aten.ones_like.default: 1, torch.ops.aten.new_zeros.default: 0,
         torch.ops.aten.new_ones.default: 1, torch.ops.aten.full_like.default: "fill_value",
         torch.ops.aten.new_full.default: "fill_value"}
# Operations that reduce dimensions, or whose results depend on reductions of their arguments.
_REDUCTIONS = frozenset(f"aten::{name}" for name in (
    "sum", "mean", "amax", "amin", "var", "var_mean", "prod", "any", "all",
    "_softmax", "_softmax_backward_data", "_log_softmax", "_log_softmax_backward_data",
    "native_layer_norm", "native_layer_norm_backward", "native_group_norm", "native_group_norm_backward",
    "native_batch_norm_backward", "mse_loss", "mse_loss_backward", "smooth_l1_loss", "smooth_l1_loss_backward"))
# Norms whose saved statistics can have another type than the tracer assumes: on a CPU, torch saves them with 32 bits,
# and the tracer assumes the 16 bits of the input.
_NORMS = frozenset(f"aten::{name}" for name in (
    "native_layer_norm", "native_layer_norm_backward", "native_group_norm", "native_group_norm_backward",
    "native_batch_norm_backward", "_native_batch_norm_legit_functional"))
_VIEWS = frozenset(f"aten::{name}" for name in (
    "view", "_unsafe_view", "_reshape_alias", "permute", "transpose", "t", "expand", "unsqueeze", "squeeze", "slice",
    "select", "alias", "detach", "unfold"))
_DTYPES = frozenset((torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.bool, torch.uint8, torch.int8,
                     torch.int16, torch.int32, torch.int64))


class Kinds:
    """Sorts the nodes of a graph by what a fused kernel can do with them. Nodes that read memory which may be written
    after the forward pass have no kind, because such a node, and any kernel that contained it, may run only once."""

    def __init__(self, graph, changing=()):
        self.changing = {*changing, *_private.mutated_inputs(graph)}
        names = (schema_name(node.target) for node in graph.nodes if node.op == "call_function")
        self._has_masks = not _MASKED.isdisjoint(names)
        self._viewed = {}  # node -> inputs of which it is, or may be, a view
        for node in graph.nodes:
            if node.op == "placeholder":
                self._viewed[node] = {node}
            elif node.op == "call_function" and is_view(node):
                self._viewed[node] = set().union(*(self._viewed.get(a, ()) for a in node.all_input_nodes))
        self._kinds = {node: self._kind(node) for node in graph.nodes if node.op == "call_function"}

    def of(self, node):
        """Returns "pointwise", "reduction", "maker", "view", "part" (a getitem of a reduction's results), or None."""
        return self._kinds.get(node)

    def like(self, new, node):
        """Gives ``new``, a copy of ``node``, the same kind as ``node``."""
        self._kinds[new] = self._kinds[node]
        self._viewed[new] = self._viewed.get(node, ())

    def reads(self, node, inputs):
        """Returns whether a node reads one of the given inputs, or a view of one of them."""
        return any(not inputs.isdisjoint(self._viewed.get(a, ())) for a in node.all_input_nodes)

    def computes(self, node):
        """Returns whether a node can be computed within a fused kernel. This is False for makers and views, which are
        only copied into the kernels that read them."""
        return self.of(node) in ("pointwise", "reduction")

    def _kind(self, node):
        if node.target is operator.getitem:
            parent = node.args[0]
            return "part" if parent.op == "call_function" and self._kind(parent) == "reduction" else None
        name = "masked_scale" if node.target is masked_scale else schema_name(node.target)
        if name is None or not is_described(node.target) or not _is_simple(node):
            return None
        if is_view(node):
            return "view" if name in _VIEWS else None
        if acts(node) or is_random(node) or not repeats_bitwise(node) or self.reads(node, self.changing):
            return None
        if policies.must_save(node) or policies.run_of(node) is not None:
            return None
        if has_other_statistics(node):
            return None
        if name in _MAKERS:
            return "maker"
        if name in _REDUCTIONS:
            return "reduction"
        if name in _BY_VECTOR and self._has_masks and node.meta["val"].device.type == "cpu":
            return None
        if name in _DIVISIONS and not _is_of_fractions(node.meta["val"]):
            return None
        is_pointwise = node.target is masked_scale or torch.Tag.pointwise in node.target.tags or name in _POINTWISE
        return "pointwise" if is_pointwise else None


def _is_of_fractions(value):
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def has_other_statistics(node):
    """Returns whether a node is a norm whose saved statistics have another type than the tracer assumes."""
    if schema_name(node.target) not in _NORMS:
        return False
    tensors = [n.meta["val"] for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor)]
    return any(t.device.type == "cpu" and t.dtype.itemsize < 4 and t.is_floating_point() for t in tensors)


def replace_like(graph):
    """Replaces operations such as zeros_like, which take a tensor only for its shape, by operations without this
    argument. The tensor then need not be in memory for them. Changes the graph in place."""
    for node in list(graph.nodes):
        value = node.meta.get("val")
        if node.op != "call_function" or node.target not in _LIKE or not isinstance(value, torch.Tensor) or value.layout is not torch.strided or (
                any(_private.is_sym(size) for size in value.shape) or not value.is_contiguous()):
            continue
        number = _LIKE[node.target]
        number = argument(node, number) if isinstance(number, str) else number
        if not isinstance(number, (int, float, bool)) or argument(node, "pin_memory"):
            continue
        with graph.inserting_before(node):
            new = graph.call_function(torch.ops.aten.full.default, (list(value.shape), number), {
                "dtype": value.dtype, "layout": torch.strided, "device": value.device, "pin_memory": False})
        new.meta = dict(node.meta)
        node.replace_all_uses_with(new)
        graph.erase_node(node)


def _is_simple(node):
    """Returns whether all arguments and results of a node are sizes, or dense tensors of numbers on one device."""
    leaves = pytree.tree_leaves([node.meta.get("val"), *(n.meta.get("val") for n in node.all_input_nodes)])
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    if not all(isinstance(leaf, (torch.Tensor, torch.SymInt, int, type(None))) for leaf in leaves):
        return False
    return len({t.device for t in tensors}) == 1 and all(
        t.layout is torch.strided and t.dtype in _DTYPES and not t.is_conj() and not t.is_neg() and type(t) is type(tensors[0])
        and not any(_private.is_sized_by_data(size) for size in t.shape) for t in tensors)


def base(node, kinds):
    """Returns the node whose memory ``node`` views; ``node`` itself if it is not a view."""
    while kinds.of(node) == "view":
        node = viewed(node) or node.args[0]
    return node


def readers(value, kinds):
    """Yields the nodes that read a value, or views of it."""
    for user in value.users:
        yield from readers(user, kinds) if kinds.of(user) == "view" else [user]


def producer(node):
    """Returns the operation that computes a value. If the value is one of several results, this is the operation with
    these results."""
    return node.args[0] if node.target is operator.getitem else node


def size_of(node):
    """Returns the bytes of a node's single tensor; 0 if it has none."""
    value = node.meta.get("val")
    return _private.hint(value.numel()) * value.element_size() if isinstance(value, torch.Tensor) else 0


def elements(node):
    """Returns the number of elements over which a node's kernel runs: those of its largest argument or result."""
    leaves = pytree.tree_leaves([node.meta.get("val"), *(n.meta.get("val") for n in node.all_input_nodes)])
    return max((_private.hint(leaf.numel()) for leaf in leaves if isinstance(leaf, torch.Tensor)), default=0)
