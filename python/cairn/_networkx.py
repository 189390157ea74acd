"""Converts graphs from and to networkx, which is imported only when it is needed."""

from __future__ import annotations

from typing import Any, Hashable, Optional, Sequence

from ._cairn import Graph, GraphBuilder
from ._errors import InputError
from ._types import Output


def from_networkx(graph: Any, *, size: str = "size", cost: str = "cost", scratch: str = "scratch", keep: str = "keep",
                  backward: str = "backward", pinned: str = "pinned", name: Optional[str] = None,
                  order: Optional[Sequence[Hashable]] = None) -> Graph:
    """Makes a Graph from a networkx.DiGraph. An edge u -> v means that v reads the result of u.

    The arguments `size` to `pinned` are the names of node attributes; a missing attribute counts as 0 or False. Nodes
    are numbered in networkx's order. The order of the baseline is the first of these that exists: the argument `order`;
    the graph attribute `order`; networkx's order, if it is topological; the topological order that always takes the
    ready node with the lowest number. The node attributes `name`, `forward`, `inplace` and `outputs`, and the edge
    attribute `reads`, have the form in which to_networkx writes them.
    """
    if not graph.is_directed():
        raise InputError("the networkx graph has no directions; give a DiGraph in which u -> v says that v reads u")
    if graph.is_multigraph():
        raise InputError("a networkx multigraph does not say which of its edges are one; give a DiGraph")
    builder = GraphBuilder(graph.graph.get("name", "") if name is None else name)
    ids = {node: index for index, node in enumerate(graph)}
    for node, data in graph.nodes(data=True):
        reads: list[tuple[int, tuple[int, int]]] = []
        for source, _, edge in graph.in_edges(node, data=True):
            for place, output in edge.get("reads", ((len(reads), 0),)):
                reads.append((place, (ids[source], output)))
        inputs = [ref for _, ref in sorted(reads, key=lambda read: read[0])]
        outputs = data.get("outputs")
        own = {} if outputs is not None else {"size": data.get(size, 0), "keep": bool(data.get(keep, False)),
                                              "inplace": data.get("inplace")}
        builder.add(str(data.get("name", node)), cost=data.get(cost, 0), scratch=data.get(scratch, 0),
                    backward=bool(data.get(backward, False)), pinned=bool(data.get(pinned, False)),
                    forward=data.get("forward"), inputs=inputs,
                    outputs=None if outputs is None else [Output(*output) for output in outputs], **own)
    if order is not None:
        builder.set_order([ids[node] for node in order])
    elif "order" in graph.graph:
        builder.set_order(graph.graph["order"])
    builder.add_resident_bytes(graph.graph.get("resident_bytes", 0))
    if graph.graph.get("cost_unit"):
        builder.set_cost_unit(graph.graph["cost_unit"], graph.graph.get("cost_source", ""))
    return builder.build()


def to_networkx(graph: Graph) -> Any:
    """Makes a networkx.DiGraph with the nodes 0, 1, .... An edge u -> v means that v reads the result of u. Nodes have
    all attributes of the graph's nodes except the op.

    The edge attribute `reads` is a list of pairs (index among v's inputs, index of u's output). A node has the
    attribute `outputs` if it has several outputs, or if its output has a name or may not move to the host (`stays`).
    """
    import networkx

    result = networkx.DiGraph(name=graph.name, resident_bytes=graph.resident_bytes)
    if graph.order_was_given:
        result.graph["order"] = graph.input_order.tolist()
    if graph.cost_unit:
        result.graph.update(cost_unit=graph.cost_unit, cost_source=graph.cost_source)
    for v in range(graph.node_count):
        node = graph.node(v)
        data = {"name": node.name, "size": node.size, "cost": node.cost, "scratch": node.scratch, "keep": node.keep,
                "backward": node.backward, "pinned": node.pinned}
        if node.forward is not None:
            data["forward"] = node.forward
        if len(node.outputs) > 1 or node.outputs[0].stays or node.outputs[0].name:
            data["outputs"] = node.outputs
        elif node.outputs[0].inplace is not None:
            data["inplace"] = node.outputs[0].inplace
        result.add_node(v, **data)
    for v in range(graph.node_count):
        reads: dict = {}
        for place, ref in enumerate(graph.inputs(v)):
            source, output = ref if isinstance(ref, tuple) else (ref, 0)
            reads.setdefault(source, []).append((place, output))
        for source, places in reads.items():
            result.add_edge(source, v, reads=places)
    return result
