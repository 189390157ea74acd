"""Finds out whether a module that torch.compile has captured draws random numbers."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_map

from .tracing import fake_mode_of

# Names of functions and methods that set a generator, or draw random numbers in numpy or within a kernel that does not
# declare it. Torch replaces numpy's functions by its own, whose names begin with _OF_NUMPY.
_SEEDS = frozenset("manual_seed seed set_rng_state set_state default_rng lstm gru rnn_tanh rnn_relu".split())
_DRAWS_OF_NUMPY = frozenset("rand randn randint permutation shuffle normal uniform random random_sample sample choice".split())
_OF_NUMPY = "wrapped_"


class _Draws(TorchDispatchMode):
    """Notes whether an operator runs that draws random numbers, or an operator of another package, which may do so
    without declaring it."""

    found = False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        is_known = getattr(function, "namespace", "") in ("aten", "prims", "prim")
        self.found = self.found or not is_known or torch.Tag.nondeterministic_seeded in function.tags
        return function(*args, **(kwargs or {}))


def may_draw(module):
    """Returns whether an operation of the captured module may draw random numbers or set a generator. Each operation is
    called once with fake tensors; if this fails, the operation may draw."""
    nodes = [node for node in module.graph.nodes if node.op in ("call_function", "call_method", "call_module")]
    values = (leaf for node in module.graph.nodes for leaf in torch.utils._pytree.tree_leaves(node.meta.get("example_value")))
    mode = fake_mode_of(values)
    if any(_is_named(node) for node in nodes):
        return True
    calls = [node for node in nodes if _takes_tensors(node)]
    if mode is None or any(node.op == "call_module" for node in calls):
        return bool(calls)
    draws = _Draws()
    with _disable_current_modes(), torch.no_grad(), mode, draws:
        for node in calls:
            try:
                args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: tree_map(_copy, n.meta["example_value"]))
                function = node.target if callable(node.target) else getattr(type(args[0]), node.target)
                function(*args, **kwargs)
            except Exception:
                return True
            if draws.found:
                return True
    return False


def _is_named(node):
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    plain = name.removeprefix(_OF_NUMPY)
    return plain in _SEEDS or plain != name and plain in _DRAWS_OF_NUMPY


def _takes_tensors(node):
    """Returns whether the node reads or makes tensors. Other nodes change settings of torch, or compute sizes."""
    values = [node.meta.get("example_value"), *(argument.meta.get("example_value") for argument in node.all_input_nodes)]
    return any(isinstance(leaf, torch.Tensor) for leaf in torch.utils._pytree.tree_leaves(values))


def _copy(value):
    """Returns a tensor that the call may write without any effect on the captured module's own fake tensors."""
    return torch.empty_like(value) if isinstance(value, torch.Tensor) else value
