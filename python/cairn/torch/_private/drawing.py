"""Finds out whether a module that torch.compile has captured draws random numbers, or writes tensors in place."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_map

from .tracing import fake_mode_of

# Names of functions and methods that set a generator, or draw random numbers in numpy or within a kernel that does not
# declare it. Torch replaces numpy's functions by its own, whose names begin with _OF_NUMPY.
_SEEDS = frozenset("manual_seed seed set_rng_state set_state default_rng lstm gru rnn_tanh rnn_relu".split())
_DRAWS_OF_NUMPY = frozenset("rand randn randint permutation shuffle normal uniform random random_sample sample choice".split())
_OF_NUMPY = "wrapped_"


class _Effects(TorchDispatchMode):
    """Notes whether an operator runs that draws random numbers, and whether one writes an argument. An operator of
    another package may draw without declaring it."""

    draws = writes = False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        is_known = getattr(function, "namespace", "") in ("aten", "prims", "prim")
        self.draws = self.draws or not is_known or torch.Tag.nondeterministic_seeded in function.tags
        self.writes = self.writes or function._schema.is_mutable
        return function(*args, **(kwargs or {}))


def only_writes(module):
    """Returns whether the captured module writes tensors in place, but neither draws random numbers nor sets a
    generator. Each operation is called once with fake tensors. If this fails, the operation may draw."""
    nodes = [node for node in module.graph.nodes if node.op in ("call_function", "call_method", "call_module")]
    values = (leaf for node in module.graph.nodes for leaf in torch.utils._pytree.tree_leaves(node.meta.get("example_value")))
    mode = fake_mode_of(values)
    calls = [node for node in nodes if _takes_tensors(node)]
    if mode is None or any(map(_is_named, nodes)) or any(node.op == "call_module" for node in calls):
        return False
    effects = _Effects()
    with _disable_current_modes(), torch.no_grad(), mode, effects:
        for node in calls:
            try:
                args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: tree_map(_copy, n.meta["example_value"]))
                function = node.target if callable(node.target) else getattr(type(args[0]), node.target)
                function(*args, **kwargs)
            except Exception:
                return False
            if effects.draws:
                return False
    return effects.writes


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
