"""Finds out whether a module that torch.compile has captured draws random numbers, or writes its inputs."""

import contextlib
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

from .tracing import fake_mode_of

# Names of functions and methods. Torch replaces numpy's functions by its own, whose names begin with _OF_NUMPY.
_SETS_GENERATOR = frozenset("manual_seed seed seed_all set_rng_state set_state default_rng".split())
_DRAWS_WITHIN_KERNEL = frozenset("lstm gru rnn_tanh rnn_relu".split())  # these do not declare that they draw
_DRAWS_OF_NUMPY = frozenset("rand randn randint permutation shuffle normal uniform random random_sample sample choice".split())
_OF_NUMPY = "wrapped_"


class _Effects(TorchDispatchMode):
    """Notes whether an operator runs that draws random numbers, and whether one writes into a storage of ``watched``. An
    operator of another package may draw without declaring it; if it declares that it writes an argument, it is taken for
    an update of weights."""

    draws = writes = False
    watched = ()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        schema = function._schema
        is_known = getattr(function, "namespace", "") in ("aten", "prims", "prim") or schema.is_mutable
        self.draws = self.draws or not is_known or torch.Tag.nondeterministic_seeded in function.tags
        if schema.is_mutable:
            given = [*zip(schema.arguments, args), *((a, kwargs[a.name]) for a in schema.arguments if a.name in kwargs)]
            written = tree_leaves([value for a, value in given if a.alias_info is not None and a.alias_info.is_write])
            self.writes = self.writes or any(isinstance(t, torch.Tensor) and _storage(t) in self.watched for t in written)
        return function(*args, **kwargs)


def only_writes(module):
    """Returns whether the captured module writes its inputs in place, but neither draws random numbers nor sets a
    generator. Each operation is called once with fake tensors. If this fails, the operation may draw."""
    nodes = [node for node in module.graph.nodes if node.op in ("call_function", "call_method", "call_module")]
    calls = [node for node in nodes if _takes_tensors(node)]
    mode = fake_mode_of(leaf for node in module.graph.nodes for leaf in tree_leaves(node.meta.get("example_value")))
    if mode is None or any(map(_may_draw_by_name, nodes)) or any(node.op == "call_module" for node in calls):
        return False
    inputs = {_storage(leaf) for node in module.graph.nodes if node.op in ("placeholder", "get_attr")
              for leaf in tree_leaves(node.meta.get("example_value")) if _has_storage(leaf)}
    effects = _Effects()
    with _disable_current_modes(), torch.no_grad(), _without_traces(mode), mode, effects:
        for node in calls:
            copies = {}  # storage of a copy -> (the copy, storage of the value)

            def copied(value):
                if not isinstance(value, torch.Tensor):
                    return value
                copy = torch.empty_like(value)
                if _has_storage(value) and _has_storage(copy):
                    copies[_storage(copy)] = copy, _storage(value)
                return copy

            try:
                args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: tree_map(copied, n.meta["example_value"]))
                function = node.target if callable(node.target) else getattr(type(args[0]), node.target)
                effects.watched = {key for key, (_, original) in copies.items() if original in inputs}
                function(*args, **kwargs)
            except Exception:
                return False
            if effects.draws:
                return False
    return effects.writes


@contextlib.contextmanager
def _without_traces(mode):
    """Returns a context in which calls with fake tensors leave nothing behind: no warnings, and neither symbols nor
    guards of symbolic sizes."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        if mode.shape_env is not None:
            stack.enter_context(mode.shape_env.suppress_guards())
            stack.enter_context(mode.shape_env.ignore_fresh_unbacked_symbols())
        yield


def _may_draw_by_name(node):
    """Returns whether the node's name says that it may draw or set a generator. Under autocast, operations need types
    that the calls with fake tensors would not have, so a node that begins autocast counts, too."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    plain = name.removeprefix(_OF_NUMPY)
    return (plain in _SETS_GENERATOR or plain in _DRAWS_WITHIN_KERNEL or name == "_enter_autocast"
            or plain != name and plain in _DRAWS_OF_NUMPY)


def _takes_tensors(node):
    """Returns whether the node reads or makes tensors. Other nodes change settings of torch, or compute sizes."""
    values = [node.meta.get("example_value"), *(argument.meta.get("example_value") for argument in node.all_input_nodes)]
    return any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(values))


def _has_storage(value):
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


def _storage(tensor):
    return tensor.untyped_storage()._cdata if _has_storage(tensor) else None
