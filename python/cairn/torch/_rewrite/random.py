"""Lets random operations run again. Each further run draws from the state that the generator had before the first run,
so that the numbers are the same."""

import functools

import torch

from .. import _private
from .._graph.operators import of_gradients


def save_state(device):
    """Returns the state of a device's generator, as bytes on the CPU."""
    return torch.get_rng_state() if device.type == "cpu" else torch.cuda.get_rng_state(device)


def _set_state(state, device):
    if device.type == "cpu":
        torch.set_rng_state(state)
    else:
        torch.cuda.set_rng_state(state, device)


@functools.cache
def state_bytes(device):
    with _private.no_modes():
        return save_state(device).nbytes


@functools.cache
def first(target):
    """Wraps a random operation so that torch does not remove its first run as dead code if only later runs are read."""
    def run(*args, **kwargs):
        return target(*args, **kwargs)

    run.__name__ = run.__qualname__ = f"{target.__name__.replace('.', '_')}_first"
    return torch.fx.has_side_effect(run)


@functools.cache
def replayed(target, device):
    """Returns a function that runs a random operation again. Its first argument is the generator's state from which to
    draw; its other arguments are those of the operation. Afterwards the generator has the state that it had before the
    call."""
    def run(state, *args, **kwargs):
        now = save_state(device)
        _set_state(state, device)
        try:
            with _private.unbatched():
                return target(*args, **kwargs)
        finally:
            _set_state(now, device)

    run.__name__ = run.__qualname__ = f"{target.__name__.replace('.', '_')}_again"
    return run


# Operator that reads only shape, type and device of a tensor -> operator that takes shape, type and device instead, and
# gives the same bits.
_OF_SHAPE = {
    torch.ops.aten.rand_like.default: torch.ops.aten.rand.default,
    torch.ops.aten.randn_like.default: torch.ops.aten.randn.default,
    torch.ops.aten.full_like.default: torch.ops.aten.full.default,
    torch.ops.aten.empty_like.default: torch.ops.aten.empty.memory_format,
}


def free_of_inputs(graph, layouts):
    """Changes an FX graph in place, so that operators such as rand_like get a shape instead of a tensor. The tensor
    then need not be in memory when the operation runs again. Changes only operations of the forward pass, because those
    of the backward pass run once, and only operations whose result ``layouts`` knows to be contiguous, because numbers
    are drawn in the order of memory. Returns the number of changed operations."""
    of_backward, count = of_gradients(graph), 0
    for like, target in _OF_SHAPE.items():
        for node in graph.find_nodes(op="call_function", target=like):
            value = node.meta["val"]
            if node not in of_backward and value.layout is torch.strided and all(isinstance(size, int) for size in value.shape) and (
                    layouts.strides(node) == list(torch.empty(value.shape, device="meta").stride())):
                node.target = target
                node.args = (list(value.shape), *node.args[1:])
                node.kwargs = {"dtype": value.dtype, "device": value.device}
                count += 1
    return count
