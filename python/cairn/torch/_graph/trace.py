"""Defines a trace: the operations of an FX graph and the storages that they make and read. The Cairn graph is built
from a trace.

The end of the forward pass is an operation as well, called the *border*. A *part* is a getitem node, which takes one
value from an operation's results.
"""

import dataclasses
from typing import Optional

import torch
from torch.utils import _pytree as pytree

import cairn

from .. import _private
from .._offload.places import base_nodes
from .._step.one_parameter import Update
from . import policies, regions
from .layouts import Layouts


@dataclasses.dataclass(eq=False)
class Storage:
    """Bytes that are allocated and freed together. A storage without a producer is resident."""

    size: int  # bytes in the plan; 0 if the caller owns the storage, for example a parameter's gradient
    producer: Optional["Operation"] = None
    output: int = 0  # index of this storage among the producer's outputs
    keep: bool = False
    device: str = "cpu"
    allocated: int = 0  # bytes that are really allocated for the storage, even if the caller owns it
    as_traced: bool = True  # whether the layout that the kernel chooses is the one that the tracer assumed


@dataclasses.dataclass(eq=False)
class Operation:
    """One node of the Cairn graph."""

    index: int
    node: Optional[torch.fx.Node]  # None: no code runs, for example for the border
    label: str = ""  # for an operation without a node
    # an ordered set (as dict keys) of the Storages that the operation reads
    reads: dict = dataclasses.field(default_factory=dict)
    # an ordered set of the Operations that must run before this one (control edges)
    after: dict = dataclasses.field(default_factory=dict)
    outputs: list = dataclasses.field(default_factory=list)  # the Storages that the operation makes
    pinned: bool = False
    backward: bool = False
    # Whether the operation may draw random numbers or have side effects. If so, it runs once, at its place in the
    # traced order.
    effect: bool = False
    statistics: Optional["Operation"] = None  # only for a batch norm: the Operation that holds its new statistics
    # only for a random operation that may run again: the Operation that saves the generator's state
    state: Optional["Operation"] = None
    update: Optional[Update] = None  # if not None, the operation is this update of a parameter, and has no node
    cost: int = 0
    scratch: int = 0

    @property
    def name(self):
        return self.label if self.node is None else self.node.name


class Trace:

    def __init__(self, name):
        self.name = name
        self.operations = []
        self.operation_of = {}  # fx node -> its Operation, if it has one
        self.structure = {}  # fx node -> its value, with a Storage instead of each tensor
        self.controls = {}  # fx node -> operations that must run before the node's value is used
        self.roots = {}  # view or part -> operations that make the storages that it views
        self.dependents = {}  # Operation -> views and parts of its results, in order
        self.parts = {}  # Operation -> getitem nodes of its results
        self.border = None  # the Operation that stands for the end of the forward pass; None: there is no backward pass
        # For each gradient that the caller gives to the backward pass: its storage -> the node to whose result
        # the gradient belongs, or None if this node is unknown.
        self.tangents = {}
        self.resident = {}  # kind -> bytes
        self.gradients = {}  # Storage -> bytes, for gradients that the caller will own
        self.copied = {}  # Storage -> bytes of each copy that torch makes of gradients in it, for the caller
        self.readers = {}  # Operation that updates a parameter -> operations that read the parameter
        # index of a gradient among the graph's outputs -> Operation that updates a parameter with it, so that the
        # gradient is not returned
        self.updated = {}
        self.forward_leaves = []  # results of the forward pass: fx nodes, or constants such as None
        self.device = "cpu"  # the device of the budget: the one with the most bytes
        self.elsewhere = {}  # device other than ``device`` -> bytes on it, which are not in the budget
        self.sizes = []  # the tracer's sizes of storages; they may be symbolic
        self.sized_by_data = []  # names of operations whose results have an unbounded size that depends on data
        # whether a region's backward pass computes again from inputs that may be written between the passes
        self.has_unsafe_regions = False
        self.branching = []  # names of operations for which data decide which code they run, such as torch.cond
        self.estimated = []  # operations whose cost or scratch could not be measured
        self.layouts = Layouts()  # the layouts that kernels really choose, once they are measured
        self.value_begin = ()  # for each operation, the number of its first output in the Cairn graph; set by build()
        self.shared_name = None  # a name that is equal on all ranks; None: there is one process

    def is_view(self, node):
        return node in self.roots

    def storages(self, node):
        """Returns the storages of a node's value; none for a node without a value."""
        return [leaf for leaf in pytree.tree_leaves(self.structure.get(node)) if isinstance(leaf, Storage)]

    def is_gradient(self, node):
        """Returns whether a node's value is a gradient that the caller will own."""
        return any(storage in self.gradients for storage in self.storages(node))

    def residents(self):
        """Returns the storages that are in memory before the step begins: parameters, buffers and inputs."""
        found = (storage for node in self.structure if node.op in ("placeholder", "get_attr") for storage in self.storages(node))
        return [storage for storage in dict.fromkeys(found) if storage.producer is None]

    def primals(self):
        """Returns the placeholders of the graph's inputs, in order."""
        return [node for node in self.structure if node.op == "placeholder" and _private.is_primal(node)]

    def kept_results(self, leaves=None):
        """Returns {index of a result of the forward pass: its storage} for the results that count as held by the
        caller, i.e. all results except those that are written into inputs. ``leaves``: the nodes of the results, if
        they have changed."""
        found = {}
        for i, leaf in enumerate(self.forward_leaves if leaves is None else leaves):
            if isinstance(leaf, torch.fx.Node):
                kept = [s for s in self.storages(leaf) if s.keep and s.producer is not None]
                found.update({i: kept[0]} if kept else {})
        return found

    def saved(self, steps):
        """Returns the storages that a schedule saves for the backward pass. These are the inputs, and the results of
        operations that ran before the border, if a step after the border reads them."""
        if self.border is None:
            return set()
        found, newer = set(), set(self.border.outputs)  # newer: storages that were made after the border
        for step in steps[steps.index(self.border.index) + 1:]:
            op = self.operations[step]
            read = {storage: None for node in (op.node.all_input_nodes if op.node is not None else ())
                    for storage in self.storages(node) if storage.producer is None}
            found.update(storage for storage in (*op.reads, *read) if storage not in newer)
            newer.update(op.outputs)
        return found

    def read_again(self, steps):
        """Finds out which values the caller may have written before operations of the forward pass read them again
        after the border. Returns (names of the inputs that are read again, whether results of the forward pass are read
        again)."""
        if self.border is None:
            return [], False
        late = [op for step in steps[steps.index(self.border.index):] if (op := self.operations[step]).node is not None]
        again = [argument for op in late for argument in (
            op.node.all_input_nodes if op.index < self.border.index or policies.run_of(op.node) is policies.LATE
            else regions.read_again(op.node))]
        read = {leaf for argument in again for leaf in self.storages(argument)}
        inputs = {storage for storage in read if storage.producer is None}
        return [node.name for node in self.structure if node.op == "placeholder"
                and inputs.intersection(self.storages(node))], any(storage.keep for storage in read - inputs)

    def order(self):
        """Returns the order of the baseline as indices of operations. It is the order of the FX graph, except that each
        update of a parameter runs as early as possible."""
        ready = {}  # operation -> updates that can run right after it
        for update in self.readers:
            before = [s.producer for s in update.reads] + list(update.after)
            ready.setdefault(max(op.index for op in before), []).append(update.index)
        order = []
        for op in self.operations:
            if op not in self.readers:
                order += [op.index, *ready.get(op.index, ())]
        return order

    def in_time(self, steps):
        """Moves the steps of a schedule so that each update of a parameter comes after the last run of the parameter's
        readers."""
        last = {step: position for position, step in enumerate(steps)}
        late = {}  # position -> updates that must come after this position
        for update, readers in self.readers.items():
            until = max((last[op.index] for op in readers), default=-1)
            if until > last[update.index]:
                late.setdefault(until, []).append(update.index)
        moved = {index for updates in late.values() for index in updates}
        return [s for position, step in enumerate(steps)
                for s in ([] if step in moved else [step]) + late.get(position, [])]

    def count_copied(self):
        """Counts a gradient in the budget if its layout differs from that of its parameter, because torch copies such a
        gradient. All other gradients belong to the caller, so they keep a size of 0 bytes. If the graph contains the
        update of the parameter, the copy is scratch of the update."""
        for storage in [s for s in self.gradients if not s.as_traced]:
            storage.size = storage.allocated
            del self.gradients[storage]
        for op in self.readers:
            if op.update.copies or not all(s.as_traced for s in op.reads):
                op.scratch += op.update.size

    def build(self, offload=False):
        """Builds the Cairn graph. Node i is operation i. ``offload``: whether values may move to the host."""
        builder = cairn.GraphBuilder(self.name)
        for op in self.operations:
            bases = base_nodes(self, op) if offload else [op] * len(op.outputs)
            outputs = [cairn.Output(s.size, keep=s.keep, stays=node is None)
                       for s, node in zip(op.outputs, bases)] or [cairn.Output(0)]
            inputs = [(s.producer.index, s.output) for s in op.reads]
            builder.add(op.name, cost=op.cost, scratch=op.scratch, backward=op.backward, pinned=op.pinned,
                        inputs=inputs, outputs=outputs)
        for op in self.operations:
            for before in op.after:
                builder.add_control_input(op.index, before.index)
        for kind, size in self.resident.items():
            if size:
                builder.add_resident(kind, size)
        builder.set_order(self.order())
        graph = builder.build()
        self.value_begin = graph.value_begin
        return graph
