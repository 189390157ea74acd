"""Decomposes operations that no fused kernel can contain as a whole. A fused kernel can contain some of the resulting
smaller operations."""

import torch

from .._graph.inline import inline
from .._graph.operators import is_batch_norm
from .operators import has_other_statistics


def decompose(graph, is_backward):
    """Replaces each batch norm in training mode by its reductions, its elementwise operations and the updates of its
    running statistics. The updates need not be in one kernel with the reductions and elementwise operations. Changes
    the graph in place."""
    for node in list(graph.nodes):
        if node.op == "call_function" and is_batch_norm(node) and not has_other_statistics(node):
            _inline(graph, node, is_backward(node))


def _inline(graph, node, backward):
    leaves, structure = torch.utils._pytree.tree_flatten((node.args, node.kwargs))
    given = [leaf for leaf in leaves if isinstance(leaf, torch.fx.Node)]

    def call(*values):
        left = iter(values)
        args, kwargs = torch.utils._pytree.tree_unflatten(
            [next(left) if isinstance(leaf, torch.fx.Node) else leaf for leaf in leaves], structure)
        return node.target(*args, **kwargs)

    meta = {k: v for k, v in node.meta.items() if k != "tensor_meta"}
    results = inline(graph, node, call, given, meta, node.target)
    for part in list(node.users):
        part.replace_all_uses_with(results[part.args[1]])
        graph.erase_node(part)
    graph.erase_node(node)
