"""What the policies of selective activation checkpointing demand (torch.utils.checkpoint.CheckpointPolicy).

What MUST_SAVE names runs once. What MUST_RECOMPUTE names is split: the forward pass reads one run of it, the backward pass
another, which comes after the border. Hints (PREFER_SAVE, PREFER_RECOMPUTE, and plain checkpoints) leave the choice to the
solver.
"""

import torch

from . import _operators, _private
from ._nondeterministic import repeats_bitwise

EARLY, LATE = "before the border", "behind the border"  # which run of an operation a node is
_KEY = "cairn_run"  # in a node's meta, where passes over the graph hand it on


def must_save(node):
    return _private.checkpoint_policy(node) == "MUST_SAVE"


def run_of(node):
    """EARLY or LATE of an operation that was split; None of others."""
    return node.meta.get(_KEY)


def split_recomputed(graph, forward_outputs, shared=()):
    """Splits what must be computed again in the backward pass, in a joint graph, in place. Returns how many copies it made.
    Random operations, others that must run once, what reads inputs that may be written in between (``shared``, and those that
    the graph writes), and results of the forward pass, which the caller holds, stay as they are."""
    again = _run_again(graph, set(_private.outputs(graph)[:forward_outputs]), {*shared, *_private.mutated_inputs(graph)})
    if not any(_private.checkpoint_policy(node) == "MUST_RECOMPUTE" for node in again):
        return 0
    copies = {}
    for node in list(graph.nodes):
        if node.op == "output" or (node.op == "call_function" and _private.is_backward(node)):
            with graph.inserting_before(node):
                for source in sorted(_needed_for(node, again, copies), key=again.get):
                    copies[source] = new = graph.node_copy(source, lambda n: copies.get(n, n))
                    new.meta = dict(source.meta)
                    _private.set_side(new, True)
                    if not _operators.is_view(source):
                        source.meta[_KEY], new.meta[_KEY] = EARLY, LATE
            node.args, node.kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: copies.get(n, n))
    return len(copies)


def _run_again(graph, results, written):
    """Nodes of the forward pass that have a copy in the backward pass, with the views and parts of them -> their positions."""
    again, written = {}, set(written)  # written: with views of it
    for position, node in enumerate(graph.nodes):
        if node.op != "call_function" or _private.is_backward(node):
            continue
        if _operators.is_view(node) and any(a in written for a in node.all_input_nodes):
            written.add(node)
        elif node not in results and (any(a in again for a in node.all_input_nodes) if _operators.is_view(node) else
                                      _may_be_split(node) and not written.intersection(node.all_input_nodes)):
            again[node] = position
    return again


def _needed_for(node, again, copies):
    """The nodes that this one reads, directly or through others, and that have no copy yet though they are to have one."""
    found, pending = set(), list(node.all_input_nodes)
    while pending:
        source = pending.pop()
        if source in again and source not in copies and source not in found:
            found.add(source)
            pending.extend(source.all_input_nodes)
    return found


def _may_be_split(node):
    return (_private.checkpoint_policy(node) == "MUST_RECOMPUTE" and not _operators.has_a_place(node)
            and not _operators.is_batch_norm(node) and repeats_bitwise(node))

