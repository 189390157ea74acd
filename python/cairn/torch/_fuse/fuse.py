"""Replaces groups of operations in a joint graph by calls of fused kernels."""

import operator


from .. import _private
from .._graph.operators import is_view, of_gradients
from .decompose import decompose
from .groups import groups_of
from .kernels import Source, kernel_of
from .operators import Kinds, elements, replace_like
from .recompute import recompute_in_readers

_LEAST_ELEMENTS = 1024  # a kernel of fewer elements is not worth compiling


def is_fused(node):
    """Returns whether a node calls a fused kernel."""
    return node is not None and getattr(node.target, "is_fused", False)


def fuse(graph, config, *, changing=(), not_again=()):
    """Fuses operations of an FX graph in place. Returns texts that say which groups could not be compiled, and why.

    ``config``: settings of Inductor. ``changing``: placeholders that may be written after the forward pass.
    ``not_again``: placeholders whose readers must not be copied from the forward into the backward pass.
    """
    of_backward = of_gradients(graph)

    def is_backward(node):
        return node in of_backward or _private.is_backward(node)

    decompose(graph, is_backward)
    replace_like(graph)
    kinds = Kinds(graph, changing)
    if of_backward:
        recompute_in_readers(graph, kinds, is_backward, set(not_again))
    times = {node: (i, i) for i, node in enumerate(graph.nodes)}
    failed = []
    for group in groups_of(graph, kinds, is_backward):
        for node in group.members:
            times[node] = (group.time, times[node][1])
        if max(map(elements, group.members)) < _LEAST_ELEMENTS:
            continue
        source = Source(group.members, group.results, kinds)
        kernel = kernel_of(source, config) if source.operations > 1 and source.results else None
        if isinstance(kernel, str):
            failed.append(kernel)
        elif kernel is not None:
            new = _insert(graph, kernel, source, group.members, bool(of_backward) and group.backward)
            times[new] = times[group.members[0]]
    for node in reversed(graph.nodes):
        if kinds.of(node) is not None and not node.users:
            graph.erase_node(node)
    _sort(graph, times, kinds)
    return failed


def _insert(graph, kernel, source, members, backward):
    """Inserts a call of a fused kernel into the graph. The call's results replace those of ``members``, the operations
    that the kernel contains. ``source``: the kernel's Source. Returns the node of the call."""
    inside = set(members)
    with graph.inserting_before(members[0]):
        new = graph.call_function(kernel, tuple(source.arguments))
        new.meta = {k: v for k, v in members[-1].meta.items() if k != "tensor_meta"}
        values = tuple(node.meta["val"] for node in source.results)
        new.meta["val"] = values if len(values) > 1 else values[0]
        if "partitioner_tag" in new.meta or backward:
            _private.set_side(new, backward)
        parts = [new] if len(values) == 1 else [graph.call_function(operator.getitem, (new, i)) for i in range(len(values))]
    for node, part in zip(source.results, parts):
        if part is not new:
            part.meta = {**new.meta, "val": node.meta["val"]}
        node.replace_all_uses_with(part, lambda user: user not in inside and user is not part)
    return new


def _sort(graph, times, kinds):
    """Orders the nodes by ``times``: node -> (time of its group, original position). The time of a group is the
    position in the traced order at which it runs (groups.py). Views come right before their first reader. Parts, i.e.
    nodes that take one of an operation's several results, come right after their operation. A maker, i.e. an operation
    that fills a new tensor with numbers, usually runs at its own time, but always before its readers: a reader can have
    an earlier time than the maker if the group of the reader was moved ahead and then could not be compiled."""
    placed = set()
    last = None

    def place(node):
        nonlocal last
        if node in placed:
            return
        for argument in node.all_input_nodes:
            if argument.op == "call_function" and argument not in placed:
                assert is_view(argument) or kinds.of(argument) == "maker", f"{argument} comes after {node}, which reads it"
                place(argument)
        placed.add(node)
        if last is not None:
            last.append(node)
        last = node
        for part in list(node.users):
            if part.target is operator.getitem:
                place(part)

    inputs = [node for node in graph.nodes if node.op in ("placeholder", "get_attr")]
    calls = [node for node in graph.nodes if node.op == "call_function" and node in times and not is_view(node)]
    for node in [*inputs, *sorted(calls, key=times.get)]:
        place(node)
    place(next(iter(reversed(graph.nodes))))
