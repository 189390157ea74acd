"""Splits a dropout into two operations: one draws the mask, and the other computes the output from the mask and can run
again.

torch's ``native_dropout`` computes mask and output in one operation. The mask is only a quarter to a half as large as
the output, so under a budget it is better to keep the mask and to compute the output again.
"""

import operator

import torch

from .. import _private
from .._graph.layouts import is_dense
from .._graph.operators import argument, of_gradients
from .._graph.policies import must_save


def masked_scale(x, mask, scale):
    """Computes the output of ``native_dropout`` from input and mask, with the same bits."""
    out = x.mul(mask)
    # On the CPU, native_dropout rounds the scale to the tensor's type. mul_.Scalar does so, too; mul_ with a Python
    # number does not.
    return torch.ops.aten.mul_.Scalar(out, scale) if x.device.type == "cpu" else out.mul_(scale)


masked_scale.runs_again = True  # pure function of its arguments


def dropout_mask(shape, strides, p):
    """Draws the mask that ``native_dropout`` draws on the CPU for an input with these strides, with the same bits."""
    return torch.empty_strided(shape, strides, dtype=torch.bool, device="cpu").bernoulli_(1 - p)


def mask_like(x, p):
    """Draws the mask that ``native_dropout`` draws on the CPU for the input ``x``, with the same bits and layout."""
    return torch.empty_like(x, dtype=torch.bool).bernoulli_(1 - p)


for _draws in (dropout_mask, mask_like):
    _draws.runs_again = _draws.draws = True

_checked = {}
_SIZES = (7, 8, 9, 10, 3, 2, 3, 2)  # of the tensors with which _agrees() compares: different, but few elements


def present(graph):
    """Returns whether there are dropouts that split() may split."""
    return any(map(_is_drawn, graph.find_nodes(op="call_function", target=torch.ops.aten.native_dropout.default)))


def _is_drawn(node):
    return argument(node, "train") is True and isinstance(argument(node, "p"), float) and not must_save(node)


def split(graph, layouts, alone=False):
    """Splits the dropouts of an FX graph in place, and returns their number. ``alone``: whether masks are drawn without
    the input if possible; the input then need not be in memory when a mask is drawn again. This is possible only if
    ``layouts`` knows the layout of the input, because the mask has the same layout and is filled in the order of its
    memory. If kernels later choose another layout, for example because settings changed, such a mask is wrong. Masks of
    the backward pass are drawn with their inputs, because operations of the backward pass run once."""
    count, of_backward = 0, of_gradients(graph)
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.native_dropout.default):
        if not _is_drawn(node):
            continue
        out = [part for part in node.users if part.target is operator.getitem and part.args[1] == 0]
        x, p = node.args[0], argument(node, "p")
        value = x.meta["val"]
        on_cpu = value.device.type == "cpu"
        needs_strides = not on_cpu or (alone and node not in of_backward)
        strides = layouts.strides(x) if needs_strides and all(isinstance(size, int) for size in value.shape) else None
        if strides is not None and not is_dense(value.shape, strides):
            strides = None
        if len(out) != 1 or not _agrees(value, p, strides):
            continue
        mask = _split_one(graph, node, out[0], p)
        if on_cpu:
            with graph.inserting_before(node):
                drawn = graph.call_function(*(mask_like, (x, p)) if strides is None else (
                    dropout_mask, (list(value.shape), strides, p)))
            drawn.meta = dict(mask.meta)
            if node in of_backward:  # marks it, because the new node has no inputs that tell its pass
                _private.set_side(drawn, True)
            mask.replace_all_uses_with(drawn)
            graph.erase_node(mask)
            graph.erase_node(node)
        count += 1
    return count


def _split_one(graph, node, out, p):
    """Replaces the output of one dropout by an operation that computes it from the mask. Returns the mask's node."""
    mask = next((part for part in node.users if part.target is operator.getitem and part.args[1] == 1), None)
    with graph.inserting_after(node):
        if mask is None:
            mask = graph.call_function(operator.getitem, (node, 1))
            mask.meta = {k: v for k, v in node.meta.items() if k != "tensor_meta"}
            mask.meta["val"] = node.meta["val"][1]
    last = mask if _before(node, out, mask) else out
    with graph.inserting_after(last):
        new = graph.call_function(masked_scale, (node.args[0], mask, _scale(p)))
    new.meta = dict(out.meta)
    out.replace_all_uses_with(new)
    graph.erase_node(out)
    return mask


def _before(node, one, other):
    """Returns whether `one` comes before `other`. Both must come after `node`."""
    while node is not one and node is not other:
        node = node.next
    return node is one


def _scale(p):
    return 0.0 if p == 1.0 else 1.0 / (1.0 - p)


def _agrees(value, p, strides):
    """Returns whether a split dropout gives the same bits as a whole one, for inputs with this type, device and order
    of dimensions. Finds out by running both, once for each kind of input. On the CPU, also tests a mask that is drawn
    without the input. If ``strides`` is None (unknown), returns False on a GPU. On a CPU, strides are not needed, because
    torch computes a whole dropout by the same operations as a split one."""
    if value.device.type not in ("cpu", "cuda") or (strides is None and value.device.type != "cpu"):
        return False
    order = () if strides is None else tuple(sorted(range(len(strides)), key=lambda i: (-strides[i], i)))
    if len(order) > len(_SIZES):
        return False
    key = value.device.type, value.dtype, p, order
    if key not in _checked:
        with _private.no_modes():
            sizes, places = [_SIZES[i] for i in order] or [4096], [order.index(i) for i in range(len(order))] or [0]
            x = torch.randn(sizes, device=value.device).to(value.dtype).permute(places)
            state = torch.get_rng_state()
            out, mask = torch.ops.aten.native_dropout.default(x, p, True)
            after = torch.get_rng_state()
            torch.set_rng_state(state)
            alone = value.device.type != "cpu" or torch.equal(dropout_mask(x.shape, x.stride(), p), mask) and torch.equal(
                torch.get_rng_state(), after)
            _checked[key] = alone and torch.equal(masked_scale(x, mask, _scale(p)), out)
    return _checked[key]
