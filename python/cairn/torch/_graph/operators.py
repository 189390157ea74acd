"""Finds out whether the operator of an FX node draws random numbers, has side effects ("acts"), or shares storage with
its arguments.

Only an operator that is known to be a pure function of its arguments may run again or be moved. All other operators are
assumed to draw or act. Each of them runs once, and they keep the order that they have in the traced graph.
"""

import operator

import torch
from torch.utils import _pytree as pytree

from .. import _private

# Views, although their schemas do not say so.
_ALIASES = ("aten::_unsafe_view", "aten::_reshape_alias", "aten::lift_fresh")
_DRAW_SEEDS = ("prims::inductor_seed", "prims::inductor_seeds")
# Deterministic functions of a seed, although their tags call them random.
_DRAW_FROM_SEEDS = ("prims::inductor_random", "prims::inductor_randint", "prims::inductor_lookup_seed")
_DESCRIBED = ("aten", "prims")  # namespaces whose schemas and tags are complete
# Prefixes of operators with side effects whose schemas do not say so.
_ACT = ("aten::sym_constrain", "aten::_local_scalar_dense")
_OF_NUMBERS = ("_operator", "math")  # modules whose functions compute sizes
# Operators that draw from a state of their own instead of the device's generator.
_OWN_STATE = ("aten::_cudnn_rnn", "aten::_cudnn_init_dropout_state", "aten::miopen_rnn")


def is_described(target):
    """Returns whether the schema and the tags of an operator say everything that it does. Operators of other packages,
    higher-order operators and functions can draw random numbers, write or print although their schemas do not say
    so."""
    if isinstance(target, torch._ops.OpOverload):
        return target.namespace in _DESCRIBED
    if isinstance(target, torch._ops.HigherOrderOperator):
        return False
    module, name = getattr(target, "__module__", None), getattr(target, "__name__", "")
    computes_sizes = module in _OF_NUMBERS or (module == "torch" and name.lstrip("_").startswith("sym_"))
    return computes_sizes or getattr(target, "runs_again", False)


def acts(node):
    """Returns whether a node has side effects, or whether it is not known to have none."""
    target = node.target
    if not is_described(target):
        return True
    if not isinstance(target, torch._ops.OpOverload):
        return False
    schema = target._schema
    return schema.is_mutable or not schema.returns or schema.name.startswith(_ACT)


def is_random(node):
    """Returns whether a node is known to draw random numbers from a generator."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return getattr(target, "draws", False)
    if schema_name(target) in _DRAW_SEEDS:
        return True
    if torch.Tag.nondeterministic_seeded not in target.tags or schema_name(target) in _DRAW_FROM_SEEDS:
        return False
    if not is_described(target):
        return True
    dropout = argument(node, "dropout_p")
    if dropout is None and "dropout_p" in _argument_names(target):
        dropout = 0.0
    if dropout is not None and isinstance(dropout, (int, float)) and dropout == 0:
        return False
    if target is torch.ops.aten.native_dropout.default and argument(node, "train") is False:
        return False
    return True


def has_a_place(node):
    """Returns whether a node draws or acts. Such nodes keep their order among each other, and run even if nothing reads
    their results."""
    return acts(node) or is_random(node)


def generator_device(node):
    """Returns the device of the generator that a random operation draws from. Returns None if the operation may depend
    on more than that generator and its arguments; it must then run once."""
    target = node.target
    if acts(node) or may_alias(target) or schema_name(target) in (*_OWN_STATE, *_DRAW_SEEDS):
        return None
    if isinstance(target, torch._ops.OpOverload) and argument(node, "generator") is not None:
        return None
    devices = {t.device for t in pytree.tree_leaves(node.meta.get("val")) if isinstance(t, torch.Tensor)}
    devices = {d for d in devices if d.type != "cpu"} or devices
    device = devices.pop() if len(devices) == 1 else None
    return device if device is not None and device.type in ("cpu", "cuda") else None


def needed(graph):
    """Returns the nodes that must run: the nodes that draw or act, and all nodes on which they or the outputs depend,
    directly or through other nodes."""
    found = set()
    for node in reversed(graph.nodes):
        if node.op == "output" or node in found or (node.op == "call_function" and has_a_place(node)):
            found.add(node)
            found.update(node.all_input_nodes)
    return found


# --- Batch norm

def is_batch_norm(node):
    """Returns whether a node is a batch norm in training mode. Its output does not depend on the running statistics."""
    return node.target is torch.ops.aten._native_batch_norm_legit_functional.default and bool(argument(node, "training"))


def may_run_again(node, live):
    """Returns whether a node may run again although it reads buffers that are written after the forward pass. This
    holds for a batch norm whose new running statistics are only written to the buffers and are read by no node in
    ``live``."""
    return is_batch_norm(node) and not _statistics_choose_kernel(node) and not any(
        part.args[1] > 2 and any(user.op != "output" and user in live for user in part.users)
        for part in node.users if part.target is operator.getitem)


def normalized_from(node):
    """Returns the arguments that a batch norm gets when it runs again: all except for its running statistics."""
    return [a for name in ("input", "weight", "bias") if isinstance(a := argument(node, name), torch.fx.Node)]


def _statistics_choose_kernel(node):
    """Returns whether a batch norm would use a different kernel without its running statistics, which it does not get
    when it runs again. This is so if the input has 16 bits and only the statistics have 32, because the kernel computes
    in 32 bits if any of these arguments has 32."""
    types = {name: value.meta["val"].dtype for name in ("input", "weight", "running_mean", "running_var")
             if isinstance(value := argument(node, name), torch.fx.Node)}
    read_again = {types["input"], types.get("weight", types["input"])}
    return not {types[name] for name in types if name.startswith("running")} <= read_again


def simplify(graph):
    """Removes the running statistics from the arguments of each derivative of a batch norm in training mode, which does
    not use them. Otherwise they would be kept in memory until the derivative is computed."""
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.native_batch_norm_backward.default):
        if argument(node, "train") is True and not node.kwargs:
            node.args = (*node.args[:3], None, None, *node.args[5:])


def of_gradients(graph):
    """Returns the nodes of a joint graph that depend on the inputs of the backward pass, in their order."""
    found = dict.fromkeys(n for n in graph.find_nodes(op="placeholder") if _private.is_tangent(n))
    for node in graph.nodes:
        if node.op == "call_function" and any(argument in found for argument in node.all_input_nodes):
            found[node] = None
    return found


def move_results(graph, results):
    """Moves results of the forward pass, and the nodes from which they are computed, before all nodes of the backward
    pass. The tracer puts some results after nodes of the backward pass: views of tensors that are written in place. If
    one of the nodes to move draws or acts, no node is moved."""
    of_backward = of_gradients(graph)
    first = next((n for n in of_backward if n.op == "call_function"), None)
    if first is None:
        return
    late, node = set(), first
    while node.op != "output":
        if node.op == "call_function" and node not in of_backward:
            late.add(node)
        node = node.next
    wanted = {n for n in results if n in late}
    for node in reversed(graph.nodes):
        if node in wanted:
            if has_a_place(node):
                return
            wanted.update(n for n in node.all_input_nodes if n in late)
    for node in [n for n in graph.nodes if n in wanted]:
        first.prepend(node)


# --- Schemas

def operator_name(node):
    return str(node.target) if isinstance(node.target, torch._ops.OpOverload) else getattr(
        node.target, "__name__", str(node.target))


def schema_name(target):
    return target._schema.name if isinstance(target, torch._ops.OpOverload) else None


def _argument_names(target):
    return [a.name for a in target._schema.arguments]


def argument(node, name):
    """Returns what the node gets for the argument with that name; None if there is no such argument."""
    names = _argument_names(node.target)
    if name in node.kwargs:
        return node.kwargs[name]
    if name in names and names.index(name) < len(node.args):
        return node.args[names.index(name)]
    return None


def may_alias(target):
    """Returns whether the results of the operator may share storage with its arguments."""
    if not isinstance(target, torch._ops.OpOverload):
        return False
    if target._schema.name in _ALIASES:
        return True
    return any(r.alias_info is not None for r in target._schema.returns)


def is_view(node):
    """Returns whether a node only makes a part or a view of another node's value, which costs nothing."""
    return node.target is operator.getitem or (may_alias(node.target) and not acts(node))


def viewed(node):
    """Returns the argument whose storage the results of a view share, according to the schema; None if there is
    none."""
    results = {name for r in node.target._schema.returns if r.alias_info is not None for name in r.alias_info.before_set}
    for position, given in enumerate(node.target._schema.arguments):
        if given.alias_info is not None and results & set(given.alias_info.before_set):
            value = node.args[position] if position < len(node.args) else node.kwargs.get(given.name)
            return value if isinstance(value, torch.fx.Node) else None
    return None


def written_arguments(node):
    """Yields the argument nodes whose storage the node writes."""
    for position, given in enumerate(node.target._schema.arguments):
        if given.alias_info is not None and given.alias_info.is_write:
            value = node.kwargs.get(given.name, node.args[position] if position < len(node.args) else None)
            for leaf in pytree.tree_leaves(value):
                if isinstance(leaf, torch.fx.Node):
                    yield leaf
