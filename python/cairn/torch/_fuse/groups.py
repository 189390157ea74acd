"""Groups operations of a joint graph whose results a fused kernel can keep in registers.

Each group runs at a *time*, a position in the traced order. Every merge of two groups must keep two invariants: what a
group reads from outside is computed before the group's time, and operations outside that read a group's results run
after the group's time. With these invariants, the groups can run in the order of their times.
"""

import bisect

import torch
from torch.utils import _pytree as pytree

from .._graph.operators import is_view
from .operators import base, elements, producer, readers, size_of

# largest number of operations in one kernel; larger kernels take long to compile and spill registers
_MOST_OPERATIONS = 64
_LARGE = 8  # a result is large if it has at least 1/8 of the bytes of the kernel's largest result
# a merge may make results earlier if they have at most 1/16 of the bytes of the results that are made at the earlier
# time anyway
_NEGLIGIBLE = 16


class Group:
    def __init__(self, node, position, backward):
        self.members = [node]
        self.results = []  # values that nodes outside of the group read
        self.time = position
        self.elements = elements(node)
        self.backward = backward
        self.device = next(leaf.device for leaf in pytree.tree_leaves(node.meta["val"]) if leaf is not None)

    def __contains__(self, node):
        return node in self.members


def _makes_tensors(node):
    return any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(node.meta.get("val")))


def groups_of(graph, kinds, is_backward):
    """Returns the groups of an FX graph. Each operation that a kernel can compute is in one group. Takes O(E + sum of
    s^2) time, for E edges of the graph and groups of s operations each."""
    return _Grouping(graph, kinds, is_backward).run()


class _Grouping:
    def __init__(self, graph, kinds, is_backward):
        self.kinds, self.is_backward = kinds, is_backward
        self.nodes = list(graph.nodes)
        self.position = {node: i for i, node in enumerate(self.nodes)}
        # Positions of operations that make tensors and that no fused kernel can contain. Between two neighbouring
        # positions of this list, nothing large is allocated. So a group may move between them, however many bytes are
        # then held for longer.
        self.others = [i for i, node in enumerate(self.nodes)
                       if node.op == "call_function" and kinds.of(node) is None and not is_view(node) and _makes_tensors(node)]
        self.group_of = {}
        self._readers = {}

    def run(self):
        for node in self.nodes:
            if not self.kinds.computes(node):
                continue
            self.group_of[node] = Group(node, self.position[node], self.is_backward(node))
            read = {producer(base(a, self.kinds)): size_of(base(a, self.kinds)) for a in node.all_input_nodes}
            for made_by in sorted(read, key=lambda made_by: -read[made_by]):
                before, group = self.group_of.get(made_by), self.group_of[node]
                if before is not None and before is not group:
                    self._merge(before, group)
        found = list(dict.fromkeys(self.group_of.values()))
        for group in found:
            group.members.sort(key=self.position.get)
            group.results = [v for v in self._results(group) if any(reader not in group for reader in self.readers(v))]
        return found

    def _merge(self, before, group):
        """Merges ``group`` into ``before``, a group from which it reads, if the two belong to the same pass and device
        and the merged kernel would not take more time or memory."""
        if (before.backward, before.device) != (group.backward, group.device):
            return
        if len(before.members) + len(group.members) > _MOST_OPERATIONS:
            return
        alone = all(reader in group for value in self._results(before) for reader in self.readers(value))
        if group.elements > before.elements and not alone:
            return
        if not before.backward and not self._keeps_results_apart(before, group):
            return
        if self._may_run_early(before, group):
            time = before.time
        elif alone and self._may_run_late(before, group):
            time = group.time
        else:
            return
        before.members += group.members
        before.time = time
        before.elements = max(before.elements, group.elements)
        for node in group.members:
            self.group_of[node] = before

    def _may_run_early(self, before, group):
        """Returns whether ``group`` can run at the time of ``before``, i.e. earlier, without holding many more bytes
        between these two times."""
        inside = {*before.members, *group.members}
        if any(self._made_at(a, inside) > before.time for n in group.members for a in n.all_input_nodes):
            return False
        if not self._others_between(before.time, group.time):
            return True
        kept = sum(size_of(v) for v in self._results(before) if all(r in inside for r in self.readers(v)))
        made = sum(size_of(v) for v in self._results(group) if any(r not in inside for r in self.readers(v)))
        return made <= kept + sum(map(size_of, self._results(before))) // _NEGLIGIBLE

    def _may_run_late(self, before, group):
        """Returns whether ``before``, whose results only ``group`` reads, can run at the time of ``group``, i.e. later.
        It may not if too many bytes of its arguments would have to be held until then."""
        if not self._others_between(before.time, group.time):
            return True
        dying = 0
        for value in {base(a, self.kinds) for n in before.members for a in n.all_input_nodes}:
            if value.op == "call_function" and producer(value) not in before:
                last = max((self._runs_at(reader) for reader in self.readers(value)), default=0)
                dying += size_of(value) if last < group.time else 0
        return dying <= sum(map(size_of, self._results(before)))

    def _keeps_results_apart(self, before, group):
        """Returns whether the merged kernel has at most one large result, or at least not more large results than one
        of the two groups has. If a kernel has several large results, none of them can be computed again without the
        others."""
        merged = before.members + group.members
        return self._large_results(merged) <= max(
            1, self._large_results(before.members), self._large_results(group.members))

    def _large_results(self, members):
        """Counts large results that must be written to memory. These are the results with a reader outside of
        ``members`` that is in the other pass (forward or backward) or cannot be part of any fused kernel."""
        inside = set(members)
        sizes = [size_of(v) for n in members for v in self.values(n)
                 if any(r not in inside and (not self.kinds.computes(r) or self.is_backward(r) != self.is_backward(n))
                        for r in self.readers(v))]
        return sum(size * _LARGE > max(sizes) for size in sizes)

    # --- Values and their readers

    def values(self, node):
        return [u for u in node.users if self.kinds.of(u) == "part"] if isinstance(node.meta["val"], (tuple, list)) else [node]

    def _results(self, group):
        return [value for node in group.members for value in self.values(node)]

    def readers(self, value):
        """Returns the nodes that read a value, or views of it."""
        if value not in self._readers:
            self._readers[value] = dict.fromkeys(readers(value, self.kinds))
        return self._readers[value]

    def _made_at(self, argument, inside):
        """Returns the time at which an argument is available if the nodes ``inside`` are one kernel; -1 if it is an
        input or is computed by these nodes. A kernel contains copies of the views and of the makers (operations that
        fill a new tensor with numbers) that it needs. So for a view or a maker, the times of its own arguments
        count."""
        if argument.op != "call_function":
            return -1
        if self.kinds.of(argument) in ("view", "maker"):
            return max((self._made_at(a, inside) for a in argument.all_input_nodes), default=-1)
        node = producer(argument)
        return -1 if node in inside else self._runs_at(node)

    def _runs_at(self, node):
        return self.group_of[node].time if node in self.group_of else self.position[node]

    def _others_between(self, begin, end):
        return bisect.bisect_left(self.others, end) > bisect.bisect_right(self.others, begin)
