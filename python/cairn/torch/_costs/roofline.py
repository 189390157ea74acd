"""Estimates the time of each operation (ns) by a roofline model, from the number of bytes that the operation reads and
writes and from its number of floating-point operations."""

import torch
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import flop_registry

from .. import _private
from .._graph.operators import schema_name

# Bytes and floating-point operations per ns. Rough values for each type of device suffice to tell which operations are
# cheap to run again.
_BYTES_PER_NS = {"cpu": 20.0, "cuda": 2000.0}
_FLOPS_PER_NS = {"cpu": 200.0, "cuda": 100000.0}
_OVERHEAD_NS = 2000  # fixed time of a kernel call

# These collectives copy their data if gloo, the usual backend of torch.distributed on CPUs, executes them. They cannot
# be measured, because they would wait for other ranks.
_COPIED_BY_GLOO = ("_c10d_functional::all_gather_into_tensor", "_c10d_functional::all_gather_into_tensor_coalesced",
                   "_c10d_functional::reduce_scatter_tensor", "_c10d_functional::reduce_scatter_tensor_coalesced")


def estimate(trace):
    """Sets the cost of each operation to an estimate. Scratch stays 0, except for collectives that copy their data."""
    for op in trace.operations:
        if op.update is not None:
            op.cost = int(_OVERHEAD_NS + 4 * op.update.size / _BYTES_PER_NS.get(trace.device, 500.0))
        if op.node is None:
            continue
        moved = sum(s.size for s in op.outputs) + sum(s.size for s in op.reads)
        flops = _flops(op.node)
        rate = _BYTES_PER_NS.get(trace.device, 500.0), _FLOPS_PER_NS.get(trace.device, 20000.0)
        op.cost = int(_OVERHEAD_NS + max(moved / rate[0], flops / rate[1]))
        if trace.device == "cpu" and schema_name(op.node.target) in _COPIED_BY_GLOO:
            op.scratch = moved


def _flops(node):
    if not isinstance(node.target, torch._ops.OpOverload):
        return 0
    count = flop_registry.get(node.target.overloadpacket)
    if count is None:
        return 0
    try:
        args, kwargs = pytree.tree_map(_as_meta, (_values(node.args), _values(node.kwargs)))
        return int(count(*args, **kwargs, out_val=pytree.tree_map(_as_meta, node.meta.get("val"))))
    except Exception:  # torch has no formula for this form of the operation
        return 0


def _values(arguments):
    return torch.fx.node.map_arg(arguments, lambda n: n.meta.get("val"))


def _as_meta(value):
    if isinstance(value, torch.Tensor):
        return torch.empty([_private.hint(s) for s in value.shape], dtype=value.dtype, device="meta")
    return _private.hint(value) if _private.is_sym(value) else value
