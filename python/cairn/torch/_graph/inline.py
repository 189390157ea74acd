"""Copies the nodes of a traced function into another graph."""

from .. import _private


def inline(graph, before, function, given, meta, decomposed=None):
    """Traces a function of tensors, and copies its operations into ``graph``, before the node ``before``. ``given``:
    the nodes of ``graph`` that are the function's arguments. ``meta``: entries of ``meta`` that the new nodes get
    besides their values. ``decomposed``: an operator that is to be decomposed as Inductor does it. Returns the nodes of
    its results, in order."""
    traced = _private.trace_fake(function, [node.meta["val"] for node in given], decomposed)
    copies = dict(zip(traced.graph.find_nodes(op="placeholder"), given))
    for inner in traced.graph.nodes:
        if inner.op == "call_function":
            with graph.inserting_before(before):
                copies[inner] = new = graph.node_copy(inner, copies.get)
            new.meta = {**meta, "val": inner.meta["val"]}
    return [copies.get(leaf) for leaf in _private.outputs(traced.graph)]
