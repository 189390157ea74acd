"""Reads autograd's graph: the node that runs now, the leaves to which gradients are passed, and saved values."""

import dataclasses
import math

import torch
from torch._dynamo import compiled_autograd


_VIEWS = 4  # largest number of nodes of views that are followed to find the write into a tensor


def accumulates(leaf):
    """Returns whether the running backward pass adds to this leaf's gradient."""
    return _will_run(leaf) is True


def is_returned(leaf):
    """Returns whether the running backward pass returns this leaf's gradient to the caller (torch.autograd.grad)."""
    return _will_run(leaf) is None


def _will_run(leaf):
    """Returns whether the node that adds to the leaf's gradient will run. None: the gradient is returned instead."""
    try:
        return torch._C._will_engine_execute_node(torch.autograd.graph.get_gradient_edge(leaf).node)
    except RuntimeError:
        return None


def metadata_of_node():
    """Returns ``metadata`` of the node of autograd's graph that runs now; empty if none runs."""
    node = torch._C._current_autograd_node()
    return {} if node is None else node.metadata


def free_unchecked():
    """Frees those saved tensors that autograd does not check for writes. AOTAutograd would keep them until autograd's
    graph is freed. Must be called in a backward pass that AOTAutograd compiled, after it has received its arguments."""
    node = torch._C._current_autograd_node()
    if getattr(node, "_tensors_no_vc_check", None):
        node._tensors_no_vc_check = []


@dataclasses.dataclass(frozen=True)
class Edge:
    """An edge of autograd's graph, along which a node passes a gradient to the next node. ``target``: identifies the
    input of the next node within one backward pass. ``leaf``: the leaf to which the gradient belongs; None if it
    belongs to a computed tensor. ``reader``: identifies the compiled graph that reads the gradient, possibly through
    views; None if no such graph is known. ``size``: bytes of the gradient. ``index``: the gradient belongs to the
    tensor at this position among the tensors that are inputs of the node's forward function."""

    target: tuple
    leaf: object
    reader: object
    size: int
    index: int


def edges_of_node():
    """Returns an Edge for each gradient that the running node passes on."""
    found = enumerate(torch._C._current_autograd_node().next_functions)
    return [_edge(index, node, i) for index, (node, i) in found if node is not None]


def _leaf_of(node):
    """Returns the leaf to whose gradient a node adds; None if the node does something else."""
    return node.variable if type(node).__name__ == "AccumulateGrad" else None


def _edge(index, node, i):
    leaf = _leaf_of(node)
    if leaf is not None:
        return Edge((id(leaf), 0), leaf, None, leaf.numel() * leaf.element_size(), index)
    given, target, reader = node._input_metadata[i], (name_of_node(node), i), node
    while "cairn" not in reader.metadata and len(reader.next_functions) == 1 and reader.next_functions[0][0] is not None:
        reader = reader.next_functions[0][0]
    size = 0 if given.is_nested_tensor else math.prod(given.shape) * given.dtype.itemsize
    return Edge(target, None, name_of_node(reader) if "cairn" in reader.metadata else None, size, index)


def edges_of_writes(tensors):
    """Returns an Edge for each of these tensors that had a gradient function before it was written in place. When a
    gradient of the tensor comes, autograd passes zeros, or a copy of the gradient, to this earlier function. ``size``
    of the Edge is the number of bytes of these zeros or this copy."""
    found = {}
    for tensor in tensors:
        node = _function_of(tensor) if isinstance(tensor, torch.Tensor) else None
        for _ in range(_VIEWS):
            if node is None or _is_write(node) or len(node.next_functions) != 1:
                break
            node = node.next_functions[0][0]
        before = node.next_functions[0] if node is not None and _is_write(node) else (None, 0)
        if before[0] is not None and _leaf_of(before[0]) is None:
            edge = _edge(0, *before)
            found[edge.target] = edge
    return list(found.values())


def _is_write(node):
    # CopyBackwards: a write into a whole tensor; CopySlices: a write into a view
    return _name(node).rpartition("::")[2] in ("CopyBackwards", "CopySlices")


def name_of_node(node=None):
    """Returns an identifier of a node, by default the running one, that is unique within its graph of autograd. Node
    objects cannot be compared, because torch makes new Python objects for the same node."""
    node = node if node is not None else torch._C._current_autograd_node()
    return _sequence_number(node), _name(node)


# The node of an autograd.Function is the ``ctx`` of the user, who may give it attributes that hide methods. So methods
# of nodes are called as functions of the class.

def _name(node):
    return type(node).name(node)


def _sequence_number(node):
    return type(node)._sequence_nr(node)


def may_be_replaced(leaf):
    """Returns whether autograd may give a leaf another gradient than the one that a graph computes: the result of a
    hook, or a copy of another type (``grad_dtype``)."""
    return bool(leaf._backward_hooks) or getattr(leaf, "grad_dtype", leaf.dtype) not in (None, leaf.dtype)


def nodes_made():
    """Returns a counter that grows with each node that this thread adds to autograd's graph."""
    return torch.autograd._get_sequence_nr()


def backward_node(tensors, made_before, graph=None):
    """Finds the node of autograd's graph that runs the backward pass of a graph compiled by AOTAutograd; None if there
    is none. The search starts at ``tensors``, which are the compiled graph's results and written inputs, and goes
    through nodes such as those of views. Only nodes made after ``nodes_made()`` returned ``made_before`` count.
    ``graph``: the graph's number from compiling(), needed because each thread has its own counter of nodes_made()."""
    seen, pending = set(), [_function_of(t) for t in tensors if isinstance(t, torch.Tensor)]
    while pending:
        found = []
        for node in pending:
            if node is None or node in seen or _sequence_number(node) < made_before:
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
    except RuntimeError:  # raised for a view that was made under no_grad and then written
        return None


def when_backward_ends(call):
    """Registers ``call``, which torch calls when this thread's running backward pass ends, unless an error ends it."""
    torch.autograd.Variable._execution_engine.queue_callback(call)


def graph_task():
    """Returns the number of this thread's running backward pass, or -1."""
    return torch._C._current_graph_task_id()


def saves_by_hooks():
    """Returns whether saved-tensor hooks (torch.autograd.graph.saved_tensors_hooks) are active now, and thus receive
    values that are saved for a backward pass."""
    return torch._C._autograd._top_saved_tensors_default_hooks(True) is not None


def keeps_graph():
    """Returns whether the running backward pass keeps its saved values (retain_graph, create_graph)."""
    return torch._C._autograd._get_current_graph_task_keep_graph()


def autograd_was_compiled():
    """Returns whether this process has compiled backward passes (compiled autograd), which do not call the backward
    passes of compiled graphs."""
    return torch._dynamo.utils.counters["compiled_autograd"]["captures"] > 0


def autograd_is_compiled():
    """Returns whether backward passes are compiled now, or a compiled one runs (compiled autograd)."""
    return (torch._dynamo.config.compiled_autograd or compiled_autograd.compiled_autograd_enabled
            or compiled_autograd.in_compiled_autograd_region)
