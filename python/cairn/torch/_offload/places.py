"""Inserts calls of the copies of a schedule (evicts and fetches) into an FX graph, between the nodes of the schedule's
steps."""

import torch

from .. import _private
from . import copies


def base_nodes(trace, op):
    """Returns, for each output of an operation, the only node whose value is the whole output; None if the output
    cannot leave the device. An output cannot leave if several nodes return it, if its tensor does not begin at the
    start of its storage, or if the operation runs no code."""
    found = [[] for _ in op.outputs]
    for node in [op.node, *trace.parts.get(op, ())] if op.node is not None else ():
        storage = trace.structure.get(node)
        if storage in op.outputs and storage.producer is op:
            found[storage.output].append(node)
    return [nodes[0] if len(nodes) == 1 and _is_whole(nodes[0].meta.get("val")) else None for nodes in found]


def _is_whole(value):
    return (isinstance(value, torch.Tensor) and _private.fake_mode_of([value]) is not None and
            value.layout is torch.strided and _private.hint(value.storage_offset()) == 0 and
            not value.is_conj() and not value.is_neg() and not _private.is_zero_tensor(value))


class Places:
    """Inserts the copies of one schedule while a Rewriter (_rewrite/scheduled_module.py) writes the schedule's graph.
    ``transfers``: (evicts, fetches), each a list of rows with the numbers of a cairn.Evict or a cairn.Fetch."""

    def __init__(self, rewriter, steps, transfers):
        self.rewriter = rewriter
        self.evicts, self.fetches = transfers
        self.sources = {}  # (value, step) -> node of an occurrence of the value that will leave the device
        self.leaving = {}  # step -> values that the step makes and that will leave the device
        self.operations = {}  # value -> operation that makes it
        for value, made, _, _ in self.evicts:
            self.leaving.setdefault(made, []).append(value)
            self.operations[value] = rewriter.trace.operations[steps[made]]
        self.hosts = {}  # evict -> node of the copy on the host
        self.arriving = {}  # fetch -> node of the device memory into which the value is copied
        self.arrived = set()  # fetches for which fetched() has been inserted
        last = {}
        for j, (evict, _, finish) in enumerate(self.fetches):
            last[evict] = max(last.get(evict, (-1, -1)), (finish, j))
        # numbers of fetches: for each evict, the fetch that ends last, after which nothing reads the copy on the host
        self.last = {j for _, j in last.values()}
        self.started = {}  # step -> transfers that start directly after the step
        self.finished = {}  # step -> transfers that must end before the step
        for kind, rows in (("evict", self.evicts), ("fetch", self.fetches)):
            for i, row in enumerate(rows):
                self.started.setdefault(row[-2], []).append((kind, i))
                self.finished.setdefault(row[-1], []).append((kind, i))

    def before(self, step):
        """Inserts the nodes of the copies that begin or end between step ``step - 1`` and step ``step``."""
        started, finished = self.started.get(step - 1, ()), self.finished.get(step, ())
        ending = {i for kind, i in finished if kind == "evict"}
        for kind, i in started:
            if kind == "evict":
                self._evict(i)
        later = []
        for kind, i in started:
            if kind == "fetch":
                later.append(i) if self.fetches[i][0] in ending else self._fetch(i)
        for kind, i in finished:
            if kind == "evict":
                self._evicted(i)
        for i in later:
            self._fetch(i)
        for kind, i in finished:
            if kind == "fetch":
                self._fetched(i)
                self._replace(i)

    def ran(self, step):
        """Notes the nodes of the values that a step has made and that will leave the device."""
        for value in self.leaving.get(step, ()):
            self.sources[value, step] = self.rewriter.newest[self._base(value)]

    def border(self):
        """Ends the fetches that run at the border between the forward and the backward pass, because the memory of a
        fetched value could be freed between the passes while the copy still writes it. Evicts that run at the border
        are not ended there, because the source and the target of an evict stay in memory until the evict has ended."""
        for i in list(self.arriving):
            self._fetched(i)

    def _base(self, value):
        op, trace = self.operations[value], self.rewriter.trace
        return base_nodes(trace, op)[value - trace.value_begin[op.index]]

    def _evict(self, i):
        value, made = self.evicts[i][:2]
        source = self.sources[value, made]
        self.hosts[i] = self._node(copies.evict, (source,), source, copies.HOST)

    def _evicted(self, i):
        source = self.sources.pop(tuple(self.evicts[i][:2]))
        self.hosts[i] = self._node(copies.evicted, (self.hosts[i], source), source, copies.HOST)

    def _fetch(self, i):
        base = self._base(self.evicts[self.fetches[i][0]][0])
        device = base.meta["val"].device
        self.arriving[i] = self._node(copies.fetch, (self.hosts[self.fetches[i][0]], device), base, "cairn_fetch")

    def _fetched(self, i):
        if i in self.arrived:
            return
        base = self._base(self.evicts[self.fetches[i][0]][0])
        host = self.hosts[self.fetches[i][0]]
        self.arriving[i] = self._node(copies.fetched, (self.arriving[i], host, i in self.last), base, "cairn_fetched")
        self.arrived.add(i)

    def _replace(self, i):
        """Makes later nodes read the fetched value instead of the original one, and makes views of the value be
        computed anew from it."""
        trace, value = self.rewriter.trace, self.evicts[self.fetches[i][0]][0]
        op, base = self.operations[value], self._base(value)
        for node in trace.dependents[op]:
            if node is not base and trace.is_view(node) and node not in trace.parts.get(op, ()):
                self.rewriter.newest.pop(node, None)
        self.rewriter.newest[base] = self.arriving.pop(i)

    def _node(self, function, arguments, like, name):
        rewriter = self.rewriter
        new = rewriter.graph.create_node("call_function", function, arguments, name=name)
        new.meta = {key: value for key, value in like.meta.items() if key != "tensor_meta"}
        if name == copies.HOST:
            value = like.meta["val"]
            with _private.fake_mode_of([value]):
                new.meta["val"] = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cpu")
        if rewriter.trace.border is not None:
            _private.set_side(new, rewriter.after_border)
        return new
