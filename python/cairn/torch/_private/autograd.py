"""Autograd's own graph has nodes: the node that runs now, the leaves behind it, and what is saved for it."""

import torch
from torch._dynamo import compiled_autograd


def accumulates(leaf):
    """Within a backward pass: whether it adds to the gradient of this leaf."""
    try:
        return torch._C._will_engine_execute_node(torch.autograd.graph.get_gradient_edge(leaf).node)
    except RuntimeError:  # the gradient is handed to a caller
        return False


def metadata_of_node():
    """Within a backward pass: the ``metadata`` of the node that runs now; empty where there is none."""
    node = torch._C._current_autograd_node()
    return {} if node is None else node.metadata


def free_unchecked():
    """Within a backward pass that AOTAutograd compiled, once it has its arguments: frees the saved tensors that are not
    checked for writes. AOTAutograd would keep those until autograd's graph is dropped."""
    node = torch._C._current_autograd_node()
    if getattr(node, "_tensors_no_vc_check", None):
        node._tensors_no_vc_check = []


def leaves_of_node():
    """Within a backward pass: (leaf, bytes of its gradient) for each leaf that the running node hands a gradient to."""
    return [(variable, variable.numel() * variable.element_size()) for node, _ in torch._C._current_autograd_node().next_functions
            if (variable := getattr(node, "variable", None)) is not None]


def nodes_made():
    """A number that grows with each node that this thread adds to autograd's graph."""
    return torch.autograd._get_sequence_nr()


def backward_node(tensors, made_before, graph=None):
    """The node in autograd's graph of the backward pass of a graph that AOTAutograd compiled, searched from the graph's
    results and written inputs (``tensors``). Only nodes made since ``nodes_made()`` was ``made_before`` count; None
    where there is none. Views of results, and written inputs, have nodes of their own before it. ``graph``: its number,
    as compiling() gives it; other threads number their nodes apart."""
    seen, pending = set(), [_function_of(t) for t in tensors if isinstance(t, torch.Tensor)]
    while pending:
        found = []
        for node in pending:
            if node is None or node in seen or node._sequence_nr() < made_before:
                continue
            seen.add(node)
            number = getattr(getattr(type(node), "_forward_cls", None), "_aot_id", None)
            if number is not None and graph in (None, number) and "cairn" not in node.metadata:
                return node
            found += [before for before, _ in node.next_functions]
        pending = found
    return None


def _function_of(tensor):
    try:
        return tensor.grad_fn
    except RuntimeError:  # a view that was made under no_grad and written since
        return None


def graph_task():
    """The number of the backward pass that runs in this thread; -1: none does."""
    return torch._C._current_graph_task_id()


def saves_by_hooks():
    """Whether tensors saved now for a backward pass go through hooks (torch.autograd.graph.saved_tensors_hooks)."""
    return torch._C._autograd._top_saved_tensors_default_hooks(True) is not None


def keeps_graph():
    """Whether the running backward pass was asked to keep what is saved for it (retain_graph, create_graph)."""
    return torch._C._autograd._get_current_graph_task_keep_graph()


def autograd_is_compiled():
    """Whether backward passes are compiled now (compiled autograd)."""
    return torch._dynamo.config.compiled_autograd or compiled_autograd.compiled_autograd_enabled
