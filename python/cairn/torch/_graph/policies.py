"""Makes the plan obey the policies of selective activation checkpointing (torch.utils.checkpoint.CheckpointPolicy).

A MUST_SAVE operation runs once. A MUST_RECOMPUTE operation is split into two operations: one for the forward pass, and
a copy of it for the backward pass, which runs after the border (the end of the forward pass). PREFER_SAVE,
PREFER_RECOMPUTE and plain checkpoints put no constraint on the schedule.
"""

import fnmatch

import torch

from .. import _private
from . import operators
from .nondeterministic import repeats_bitwise

EARLY, LATE = "before the border", "behind the border"  # the two runs of a split operation
_KEY = "cairn_run"  # key in a node's meta for EARLY or LATE
_COPY = "cairn_copy"  # True in the meta of a copy for the backward pass, or of a view of one
_ONCE = "cairn_once"  # True in the meta of a node that never_recompute= names


def must_save(node):
    """Returns whether a node runs once because a policy or the option never_recompute= says so."""
    return _private.checkpoint_policy(node) == "MUST_SAVE" or node.meta.get(_ONCE, False)


def never_recompute(graph, patterns):
    """Marks the nodes that a pattern names, so that each of them runs only once. A pattern, which may have wildcards as
    in fnmatch, names an operator ("mm", "aten.mm", "aten.mm.default"), a module by its path ("blocks.3",
    "blocks.*.attention") with all modules inside of it, or all modules of a class ("LayerNorm"). Returns the patterns
    that name nothing."""
    found = set()
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        name = operators.operator_name(node)
        modules = [] if _private.is_backward(node) else _private.modules_of(node)
        names = {name, name.rsplit(".", 1)[0], name.split(".")[1] if name.count(".") else name,
                 *(text for module in modules for text in module if text)}
        hits = [pattern for pattern in patterns if any(fnmatch.fnmatchcase(text, pattern) for text in names)]
        if hits:
            node.meta[_ONCE] = True
            found.update(hits)
    return [pattern for pattern in patterns if pattern not in found]


def run_of(node):
    """Returns EARLY or LATE for a node of a split operation, else None."""
    return node.meta.get(_KEY)


def is_copy(node):
    """Returns whether a node of the backward pass is a copy of one of the forward pass."""
    return node.meta.get(_COPY, False)


def split_recomputed(graph, forward_outputs, shared=()):
    """Splits the MUST_RECOMPUTE operations of a joint graph in place, and returns the number of copies. An operation is
    not split if it must run once, for example because it is random, if it reads inputs that may be written between the
    passes (``shared``, and those that the graph writes), or if the forward pass returns its result, because the caller
    then holds the result anyway."""
    again = _run_again(graph, set(_private.outputs(graph)[:forward_outputs]), {*shared, *_private.mutated_inputs(graph)})
    if not any(_private.checkpoint_policy(node) == "MUST_RECOMPUTE" for node in again):
        return 0
    copies = {}
    for node in list(graph.nodes):
        if node.op == "output" or (node.op == "call_function" and _private.is_backward(node)):
            with graph.inserting_before(node):
                for source in sorted(_needed_for(node, again, copies), key=again.get):
                    copies[source] = new = graph.node_copy(source, lambda n: copies.get(n, n))
                    new.meta = {**source.meta, _COPY: True}
                    _private.set_side(new, True)
                    if not operators.is_view(source):
                        source.meta[_KEY], new.meta[_KEY] = EARLY, LATE
            node.args, node.kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: copies.get(n, n))
    return len(copies)


def _run_again(graph, results, written):
    """Returns {node: position in the graph} for the nodes of the forward pass that get a copy in the backward pass,
    including views and parts (getitems) of such nodes."""
    again, written = {}, set(written)  # views of written nodes will be added
    for position, node in enumerate(graph.nodes):
        if node.op != "call_function" or _private.is_backward(node):
            continue
        if operators.is_view(node) and any(a in written for a in node.all_input_nodes):
            written.add(node)
        elif node not in results and (any(a in again for a in node.all_input_nodes) if operators.is_view(node) else
                                      _may_be_split(node) and not written.intersection(node.all_input_nodes)):
            again[node] = position
    return again


def _needed_for(node, again, copies):
    """Returns the nodes in ``again`` that ``node`` reads, directly or indirectly, and that ``copies`` does not contain
    yet."""
    found, pending = set(), list(node.all_input_nodes)
    while pending:
        source = pending.pop()
        if source in again and source not in copies and source not in found:
            found.add(source)
            pending.extend(source.all_input_nodes)
    return found


def _may_be_split(node):
    return (_private.checkpoint_policy(node) == "MUST_RECOMPUTE" and not must_save(node) and not operators.has_a_place(node)
            and not operators.is_batch_norm(node) and repeats_bitwise(node))

