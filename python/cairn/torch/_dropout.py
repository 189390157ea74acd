"""Dropout as two operations: one that draws which values stay, and must run once, and one that can run again.

``native_dropout`` makes both its output and the mask. Its output is as large as its input, the mask a quarter to a half of
that; so with a budget the mask is what is kept.
"""

import operator

import torch

from . import _private
from ._graph import _argument


def masked_scale(x, mask, scale):
    """What ``native_dropout`` makes of its input and its mask, bit for bit."""
    return x.mul(mask).mul_(scale)


masked_scale.runs_again = True  # a pure function of its arguments

_checked = {}


def split(graph):
    """Splits the dropouts of an FX graph in place. Returns how many."""
    count = 0
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.native_dropout.default):
        if _argument(node, "train") is not True or not isinstance(_argument(node, "p"), float):
            continue
        out = [part for part in node.users if part.target is operator.getitem and part.args[1] == 0]
        x, p = node.args[0], _argument(node, "p")
        if len(out) != 1 or not _agrees(x.meta["val"], p):
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
    """Whether the two agree on this device for such an input; tried once for each kind."""
    if value.device.type not in ("cpu", "cuda") or not value.is_contiguous():
        return False
    key = value.device.type, value.dtype, p
    if key not in _checked:
        with _private.no_modes():
            x = torch.randn(4096, device=value.device, dtype=value.dtype)
            out, mask = torch.ops.aten.native_dropout.default(x, p, True)
            _checked[key] = torch.equal(masked_scale(x, mask, _scale(p)), out)
    return _checked[key]
