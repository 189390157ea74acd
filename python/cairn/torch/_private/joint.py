"""Reads and cuts AOTAutograd's joint graphs, which contain forward and backward pass: placeholders, results, the pass
of each node, and the cut into two modules."""

import inspect
import re

import torch
from torch._functorch import partitioners
from torch.utils._ordered_set import OrderedSet

_FORWARD, _BACKWARD = "is_forward", "is_backward"


def is_tangent(node):
    return partitioners._is_tangent(node)


def is_primal(node):
    return partitioners._is_primal(node) and not partitioners._is_backward_state(node)


def is_backward(node):
    """Returns whether the tracer has marked the node as backward."""
    return node.meta.get("partitioner_tag") in (_BACKWARD, "must_be_in_backward")


def tell_sides(graph, results):
    """Marks backward nodes that the tracer may leave unmarked, such as those of an autograd.Function. The tracer marks
    all forward nodes with one exception: some views of written tensors, on which results depend. So an unmarked node
    is backward unless ``results`` depend on it."""
    nodes = [node for node in graph.nodes if node.op == "call_function"]
    # Torch 2.9 marks no forward nodes, so a missing mark says nothing.
    if not any(node.meta.get("partitioner_tag") == _FORWARD for node in nodes):
        return
    needed = {n for n in results if isinstance(n, torch.fx.Node)}
    for node in reversed(nodes):
        if node in needed:
            needed.update(node.all_input_nodes)
    for node in nodes:
        if "partitioner_tag" not in node.meta:
            set_side(node, node not in needed)


def set_side(node, backward, only_there=False):
    """Tells the partitioner to which pass a node belongs. ``only_there``: whether the node must run in this pass even
    if the other pass could compute it."""
    if only_there:
        node.meta["partitioner_tag"] = "must_be_in_backward" if backward else "must_be_in_forward"
    else:
        node.meta["partitioner_tag"] = _BACKWARD if backward else _FORWARD


def check_version(node):
    """Makes AOTAutograd check a saved tensor for writes, even if an autograd.Function stored it without
    save_for_backward."""
    node.meta.pop("saved_tensor_with_no_vc_check", None)


def checkpoint_policy(node):
    """Returns the name of a node's policy of selective checkpointing, such as "MUST_SAVE"; None if it has none."""
    return getattr(node.meta.get("recompute"), "name", None)


def modules_of(node):
    """Returns (path, name of the class) of the modules in whose forward pass a node was traced, the outermost first. A
    path has the form of named_modules()."""
    found = []
    for path, kind in (node.meta.get("nn_module_stack") or {}).values():
        path = re.sub(r"\._modules\['([^']*)'\]", r".\1", path)
        name = kind if isinstance(kind, str) else kind.__name__
        found.append((re.sub(r"^L\[[^\]]*\]\.?", "", path), name.rsplit(".", 1)[-1]))
    return found


def outputs(graph):
    return torch.utils._pytree.arg_tree_leaves(*next(iter(reversed(graph.nodes))).args)


def saved_by_compiled_hooks(names, saved=()):
    """Returns the names of a backward module's arguments that come from saved-tensor hooks compiled into the graphs.
    ``saved``: names of values that the forward module passes on without such hooks."""
    return [name for name in names if re.search(r"_hook_\d+$", name) and name not in saved]


def extract(joint, saved, saved_sym, saved_opaque, *, num_fwd_outputs, static_nodes):
    """Cuts a joint module into a forward and a backward module. Both keep the order of the nodes. ``saved``,
    ``saved_sym`` and ``saved_opaque``: nodes of tensors, numbers and opaque objects that the forward module saves for
    the backward module."""
    function = partitioners._extract_fwd_bwd_modules
    extra = {}
    if "saved_opaque_nodes" in inspect.signature(function).parameters:
        extra["saved_opaque_nodes"] = saved_opaque
    elif saved_opaque:
        raise NotImplementedError("opaque objects kept for the backward pass")
    for node in (*saved, *saved_sym):  # torch 2.9 does not save a node that is only in the forward pass
        if node.meta.get("partitioner_tag") == "must_be_in_forward":
            node.meta["partitioner_tag"] = _FORWARD
    return function(joint, saved, saved_sym_nodes=saved_sym, num_fwd_outputs=num_fwd_outputs,
                    static_lifetime_input_nodes=OrderedSet(static_nodes), **extra)
