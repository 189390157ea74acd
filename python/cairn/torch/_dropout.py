"""Dropout as two operations: one that draws which values stay, and one that can run again without drawing.

``native_dropout`` makes both its output and the mask. Its output is as large as its input, the mask a quarter to a half of
that; so with a budget the mask is what is kept.
"""

import operator

import torch

from . import _private
from ._graph import _argument


def masked_scale(x, mask, scale):
    """What ``native_dropout`` makes of its input and its mask, bit for bit."""
    out = x.mul(mask)
    # On the CPU the scale is rounded to the type of the tensor, as a Scalar is, and a number in Python is not.
    return torch.ops.aten.mul_.Scalar(out, scale) if x.device.type == "cpu" else out.mul_(scale)


masked_scale.runs_again = True  # a pure function of its arguments


def dropout_mask(shape, p):
    """The mask that ``native_dropout`` draws on the CPU, bit for bit."""
    return torch.empty(shape, dtype=torch.bool).bernoulli_(1 - p)


dropout_mask.runs_again = dropout_mask.draws = True

_checked = {}


def split(graph):
    """Splits the dropouts of an FX graph in place. Returns how many. The mask is drawn without the input where that can be:
    it need not be there when the mask is drawn again, and nothing is made of it twice."""
    count = 0
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.native_dropout.default):
        if _argument(node, "train") is not True or not isinstance(_argument(node, "p"), float):
            continue
        out = [part for part in node.users if part.target is operator.getitem and part.args[1] == 0]
        x, p = node.args[0], _argument(node, "p")
        value = x.meta["val"]
        agrees, mask_agrees = _agrees(value, p)
        if len(out) != 1 or not agrees:
            continue
        out = out[0]
        mask = next((part for part in node.users if part.target is operator.getitem and part.args[1] == 1), None)
        with graph.inserting_after(node):
            if mask is None:
                mask = graph.call_function(operator.getitem, (node, 1))
                mask.meta = {k: v for k, v in node.meta.items() if k != "tensor_meta"}
                mask.meta["val"] = node.meta["val"][1]
        last = mask if _before(node, out, mask) else out
        with graph.inserting_after(last):
            new = graph.call_function(masked_scale, (x, mask, _scale(p)))
        new.meta = dict(out.meta)
        out.replace_all_uses_with(new)
        graph.erase_node(out)
        if mask_agrees and all(isinstance(size, int) for size in value.shape):
            with graph.inserting_before(node):
                drawn = graph.call_function(dropout_mask, (list(value.shape), p))
            drawn.meta = dict(mask.meta)
            mask.replace_all_uses_with(drawn)
            graph.erase_node(mask)
            graph.erase_node(node)
        count += 1
    return count


def _before(node, one, other):
    """Whether `one` comes before `other`, both after `node`."""
    while node is not one and node is not other:
        node = node.next
    return node is one


def _scale(p):
    return 0.0 if p == 1.0 else 1.0 / (1.0 - p)


def _agrees(value, p):
    """Whether the parts agree with the whole on this device for such an input, and whether a mask drawn alone does; tried
    once for each kind."""
    if value.device.type not in ("cpu", "cuda") or not value.is_contiguous():
        return False, False
    key = value.device.type, value.dtype, p
    if key not in _checked:
        with _private.no_modes():
            x = torch.randn(4096, device=value.device, dtype=value.dtype)
            state = torch.get_rng_state()
            out, mask = torch.ops.aten.native_dropout.default(x, p, True)
            after = torch.get_rng_state()
            torch.set_rng_state(state)
            alone = value.device.type == "cpu" and torch.equal(dropout_mask(x.shape, p), mask) and torch.equal(
                torch.get_rng_state(), after)
            _checked[key] = torch.equal(masked_scale(x, mask, _scale(p)), out), alone
    return _checked[key]
