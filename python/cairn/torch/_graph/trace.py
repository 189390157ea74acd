"""A trace holds the operations of an FX graph and the storages that they make and read; a Cairn graph is built from it."""

import dataclasses
from typing import Optional

import torch
from torch.utils import _pytree as pytree

import cairn

from .._step.one_parameter import Update
from .layouts import Layouts


@dataclasses.dataclass(eq=False)
class Storage:
    """Bytes that are allocated and freed together. A storage without a producer is resident."""

    size: int  # as the graph counts it: 0 where the caller owns it, such as a parameter's gradient
    producer: Optional["Operation"] = None
    output: int = 0  # index of the producer's output
    keep: bool = False
    device: str = "cpu"
    allocated: int = 0  # bytes that making it takes
    as_traced: bool = True  # whether the kernel's layout is the tracer's


@dataclasses.dataclass(eq=False)
class Operation:
    """One node of the Cairn graph."""

    index: int
    node: Optional[torch.fx.Node]  # None: nothing runs, as at the border between forward and backward
    label: str = ""  # for an operation without a node
    reads: dict = dataclasses.field(default_factory=dict)  # Storage -> None, in order
    after: dict = dataclasses.field(default_factory=dict)  # Operation -> None: control edges
    outputs: list = dataclasses.field(default_factory=list)  # Storage
    pinned: bool = False
    backward: bool = False
    effect: bool = False  # it draws or acts, or may: it runs once, in its place
    statistics: Optional["Operation"] = None  # of a batch norm: stands for its last outputs, which live longer
    state: Optional["Operation"] = None  # of a random one that may run again: saves its generator's first state
    update: Optional[Update] = None  # runs instead of a node: an optimizer's update of one parameter
    cost: int = 0
    scratch: int = 0

    @property
    def name(self):
        return self.label if self.node is None else self.node.name


class Trace:
    """The operations of an FX graph, in its order."""

    def __init__(self, name):
        self.name = name
        self.operations = []
        self.operation_of = {}  # fx node -> its Operation, where it has one
        self.structure = {}  # fx node -> its value, a Storage in place of each tensor
        self.controls = {}  # fx node -> operations that must have run before it is used
        self.roots = {}  # view or part -> the operations whose copies it is made from
        self.dependents = {}  # Operation -> views and parts, in order
        self.parts = {}  # Operation -> getitems of it
        self.border = None
        self.tangents = {}  # Storage of a gradient that the caller gives -> its result, None if unknown
        self.resident = {}  # kind -> bytes
        self.gradients = {}  # Storage -> bytes, for gradients that the caller will own
        self.readers = {}  # Operation that updates a parameter -> those that read the parameter
        self.updated = {}  # index of a gradient's output that is not returned -> Operation that updates by it
        self.device = "cpu"  # the device that holds most bytes; the budget is for it
        self.elsewhere = {}  # other device -> bytes there, which are not in the budget
        self.sizes = []  # sizes of its storages, as the tracer has them: may be symbolic
        self.estimated = []  # operations whose cost or scratch is not measured
        self.layouts = Layouts()  # the kernels' layouts; unknown before they are measured
        self.shared_name = None  # name among ranks; None: there is one process

    def is_view(self, node):
        return node in self.roots

    def read_again(self, steps):
        """What operations of the forward pass read when that has ended and the caller may have written it: (names of
        inputs, whether results of the forward pass are among it)."""
        if self.border is None:
            return [], False
        late = {self.operations[step] for step in steps[steps.index(self.border.index):]}
        read = {leaf for op in late if op.index < self.border.index and op.node is not None
                for argument in op.node.all_input_nodes for leaf in pytree.tree_leaves(self.structure.get(argument))
                if isinstance(leaf, Storage)}
        inputs = {storage for storage in read if storage.producer is None}
        return [node.name for node, value in self.structure.items() if node.op == "placeholder"
                and inputs.intersection(pytree.tree_leaves(value))], any(storage.keep for storage in read - inputs)

    def order(self):
        """The order of the graph, with each parameter updated as soon as that may be."""
        ready = {}  # operation -> updates that may follow it
        for update in self.readers:
            before = [s.producer for s in update.reads] + list(update.after)
            ready.setdefault(max(op.index for op in before), []).append(update.index)
        order = []
        for op in self.operations:
            if op not in self.readers:
                order += [op.index, *ready.get(op.index, ())]
        return order

    def in_time(self, steps):
        """The steps, with each parameter updated only after the last run of its readers."""
        last = {step: position for position, step in enumerate(steps)}
        late = {}  # position -> updates to come after it
        for update, readers in self.readers.items():
            until = max((last[op.index] for op in readers), default=-1)
            if until > last[update.index]:
                late.setdefault(until, []).append(update.index)
        moved = {index for updates in late.values() for index in updates}
        return [s for position, step in enumerate(steps)
                for s in ([] if step in moved else [step]) + late.get(position, [])]

    def count_copied(self):
        """Counts the gradients that torch copies because their layout differs from their parameters'."""
        for storage in [s for s in self.gradients if not s.as_traced]:
            storage.size = storage.allocated
            del self.gradients[storage]
        for op in self.readers:
            if op.update.copies or not all(s.as_traced for s in op.reads):
                op.scratch += op.update.size

    def build(self):
        """Builds the Cairn graph. Node i is operation i."""
        builder = cairn.GraphBuilder(self.name)
        for op in self.operations:
            outputs = [cairn.Output(s.size, keep=s.keep) for s in op.outputs] or [cairn.Output(0)]
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
        return builder.build()
