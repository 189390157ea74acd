"""Finds out whether an operator draws random numbers, has side effects ("acts"), or shares storage with its arguments.

Only operators that are known to be pure functions may run again or be moved. Each operator that is not known is assumed
to draw random numbers or to act, so it runs once, and at its place in the traced order. declare_pure() makes further
operators known.
"""

import operator

import cairn
import torch
from torch.utils import _pytree as pytree

from .. import _private

# Operators that return views of their first argument, although their schemas do not say so.
_ALIASES = ("aten::_unsafe_view", "aten::_reshape_alias", "aten::lift_fresh", "aten::lift", "aten::_lazy_clone",
            "aten::unsafe_split", "aten::unsafe_split_with_sizes", "aten::unsafe_chunk")
# Operators that write the running statistics of a batch norm, if they get any, although their schemas do not say so.
_WRITE_STATISTICS = ("aten::batch_norm_update_stats", "aten::batch_norm_gather_stats",
                     "aten::batch_norm_gather_stats_with_counts", "aten::native_batch_norm", "aten::cudnn_batch_norm",
                     "aten::miopen_batch_norm")
_STATISTICS = ("running_mean", "running_var")
_DRAW_SEEDS = ("prims::inductor_seed", "prims::inductor_seeds")
# Operators that compute everything from a given seed, so that they draw from no generator, although their tags call
# them random.
_DRAW_FROM_SEEDS = ("prims::inductor_random", "prims::inductor_randint", "prims::inductor_lookup_seed")
_DESCRIBED = ("aten", "prims")  # namespaces whose schemas and tags are complete
# Operators of other packages that are pure functions. The two here are pure according to their source code;
# declare_pure() adds more.
_pure = {"transformers::grouped_mm_fallback", "transformers::grouped_mm_fallback_backward"}
# Prefixes of names of operators with side effects that schemas do not show.
_ACT = ("aten::sym_constrain", "aten::_local_scalar_dense")
_OF_NUMBERS = ("_operator", "math")  # modules whose functions compute with numbers, such as sizes
# higher-order operators for which data decide which code runs, or how often
_BRANCHING = ("cond", "while_loop", "while_loop_stack_output", "switch")
# Operators that draw random numbers from a state of their own, not from the device's generator.
_OWN_STATE = ("aten::_cudnn_rnn", "aten::_cudnn_init_dropout_state", "aten::miopen_rnn")


def is_described(target):
    """Returns whether the schema and the tags of an operator tell everything that it does. Operators of other packages,
    higher-order operators and Python functions can draw random numbers, write or print without saying so."""
    if isinstance(target, torch._ops.OpOverload):
        return target.namespace in _DESCRIBED
    if isinstance(target, torch._ops.HigherOrderOperator):
        return False
    module, name = getattr(target, "__module__", None), getattr(target, "__name__", "")
    computes_sizes = module in _OF_NUMBERS or (module == "torch" and name.lstrip("_").startswith("sym_"))
    return computes_sizes or getattr(target, "runs_again", False)


def declare_pure(*operators):
    """Says that operators of other packages are pure functions, so that Cairn may run them again and in another order.
    ``operators``: what ``torch.library.custom_op`` returns, operators such as ``torch.ops.package.name``, or names such
    as "package::name". Called with the same arguments, an operator must return the same bits. It must neither draw
    random numbers nor write nor print. Cairn cannot check this. The declaration holds for graphs that are compiled
    afterwards. Raises InputError if an operator does not exist, or if its schema or tags contradict the declaration."""
    names = [_private.qualified_name(given) for given in operators]
    for name in names:
        found = _private.overloads(name)
        if not found:
            raise cairn.InputError(f"declare_pure: there is no operator {name!r}; names are 'package::name', and the package must "
                                   "be imported before")
        for overload in found:
            schema = overload._schema
            if schema.is_mutable or not schema.returns or may_alias(overload) or torch.Tag.nondeterministic_seeded in overload.tags:
                raise cairn.InputError(f"declare_pure: {name!r} writes, draws random numbers, or returns nothing or a view")
    _pure.update(names)


def branches_on_data(node):
    """Returns whether the data decide which code a node runs, or how often, as for torch.cond and while_loop."""
    target = node.target
    return isinstance(target, torch._ops.HigherOrderOperator) and target.name() in _BRANCHING


def is_region(node):
    """Returns whether a node calls a region of torch.compiler.nested_compile_region."""
    return isinstance(node.target, torch._ops.HigherOrderOperator) and node.target.name() == "invoke_subgraph"


def acts(node):
    """Returns whether a node has, or may have, side effects."""
    target = node.target
    if not is_described(target):
        return schema_name(target) not in _pure
    if not isinstance(target, torch._ops.OpOverload):
        return False
    schema = target._schema
    return schema.is_mutable or not schema.returns or schema.name.startswith(_ACT) or bool(_written_statistics(node))


def _written_statistics(node):
    """Returns the running statistics that a batch norm's kernel writes without a word in its schema."""
    if schema_name(node.target) not in _WRITE_STATISTICS or argument(node, "training") is False:
        return []
    return [given for name in _STATISTICS if isinstance(given := argument(node, name), torch.fx.Node)]


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
    """Returns whether a node draws random numbers, or may have side effects. Nodes with one of these properties keep
    their order, and run even if nothing reads their results."""
    return acts(node) or is_random(node)


def generator_device(node):
    """Returns the device of the generator from which a random operation draws. Returns None if the result may depend on
    anything except this generator and the arguments; the operation must then run only once."""
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
    """Returns the nodes that must run: those that draw random numbers or may have side effects, and all nodes on which
    such nodes or the graph's outputs depend, even indirectly."""
    found = set()
    for node in reversed(graph.nodes):
        if node.op == "output" or node in found or (node.op == "call_function" and has_a_place(node)):
            found.add(node)
            found.update(node.all_input_nodes)
    return found


# --- Batch norm

def is_batch_norm(node):
    """Returns whether a node is a batch norm in training mode, whose output does not depend on the running
    statistics."""
    return node.target is torch.ops.aten._native_batch_norm_legit_functional.default and bool(argument(node, "training"))


def may_run_again(node, live):
    """Returns whether a node may run again although it reads buffers that are written after the forward pass. This is
    the case for a batch norm whose new running statistics are only copied into the buffers, and read by no node in
    ``live``."""
    return is_batch_norm(node) and not _statistics_choose_kernel(node) and not any(
        part.args[1] > 2 and any(user.op != "output" and user in live for user in part.users)
        for part in node.users if part.target is operator.getitem)


def normalized_from(node):
    """Returns a batch norm's arguments without the running statistics. These are its arguments when it runs again."""
    return [a for name in ("input", "weight", "bias") if isinstance(a := argument(node, name), torch.fx.Node)]


def _statistics_choose_kernel(node):
    """Returns whether a batch norm would use another kernel if it got no running statistics, as when it runs again. Its
    kernel computes in 32 bits if at least one argument has 32 bits. So the kernel changes if the input has 16 bits and
    only the running statistics have 32."""
    types = {name: value.meta["val"].dtype for name in ("input", "weight", "running_mean", "running_var")
             if isinstance(value := argument(node, name), torch.fx.Node)}
    read_again = {types["input"], types.get("weight", types["input"])}
    return not {types[name] for name in types if name.startswith("running")} <= read_again


def simplify(graph):
    """Removes the running statistics from the arguments of the backward kernels of batch norms in training mode,
    because these kernels do not use them. Otherwise the statistics would stay in memory until the backward pass."""
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.native_batch_norm_backward.default):
        if argument(node, "train") is True and not node.kwargs:
            node.args = (*node.args[:3], None, None, *node.args[5:])


def of_gradients(graph):
    """Returns the nodes of a joint graph that depend on tangents (gradients that the caller gives to the backward
    pass), in order."""
    found = dict.fromkeys(n for n in graph.find_nodes(op="placeholder") if _private.is_tangent(n))
    for node in graph.nodes:
        if node.op == "call_function" and any(argument in found for argument in node.all_input_nodes):
            found[node] = None
    return found


def move_results(graph, results):
    """Moves results of the forward pass that are computed too late, and the nodes that they depend on, to a place
    before the backward pass. The tracer computes some results late: views of tensors that are written in place. Moves
    nothing if one of the nodes draws random numbers or may have side effects."""
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
    """Returns the value that the node passes for the operator's argument ``name``; None if there is no such
    argument."""
    names = _argument_names(node.target)
    if name in node.kwargs:
        return node.kwargs[name]
    if name in names and names.index(name) < len(node.args):
        return node.args[names.index(name)]
    return None


def may_alias(target):
    """Returns whether the operator's results may share storage with its arguments."""
    if not isinstance(target, torch._ops.OpOverload):
        return False
    if target._schema.name in _ALIASES:
        return True
    return any(r.alias_info is not None for r in target._schema.returns)


def is_view(node):
    """Returns whether a node only takes a part or a view of another node's value, which costs nothing."""
    return node.target is operator.getitem or (may_alias(node.target) and not acts(node))


def viewed(node):
    """Returns the argument of which a node returns a view, according to the operator's schema; None if the node returns
    no view."""
    if node.target._schema.name in _ALIASES:
        return node.args[0] if node.args and isinstance(node.args[0], torch.fx.Node) else None
    results = {name for r in node.target._schema.returns if r.alias_info is not None for name in r.alias_info.before_set}
    for position, given in enumerate(node.target._schema.arguments):
        if given.alias_info is not None and results & set(given.alias_info.before_set):
            value = node.args[position] if position < len(node.args) else node.kwargs.get(given.name)
            return value if isinstance(value, torch.fx.Node) else None
    return None


def written_arguments(node):
    yield from _written_statistics(node)
    for position, given in enumerate(node.target._schema.arguments):
        if given.alias_info is not None and given.alias_info.is_write:
            value = node.kwargs.get(given.name, node.args[position] if position < len(node.args) else None)
            for leaf in pytree.tree_leaves(value):
                if isinstance(leaf, torch.fx.Node):
                    yield leaf
