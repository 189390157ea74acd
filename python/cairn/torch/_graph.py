"""A traced FX graph as a Cairn graph: which operations there are, and which storages they make and read.

Memory is storages, not tensors. Every *operation* of the FX graph that makes storages is a node of the Cairn graph, with
one output a storage. Views and ``getitem`` are no nodes: they cost nothing, hold the storage of their base, and are made
again with every copy of it. What the caller owns (parameters, buffers, inputs, constants) is resident.
"""

import dataclasses
import operator
from typing import Optional

import torch
from torch.utils import _pytree as pytree

import cairn

from . import _private, _random
from ._tangents import is_missing
from ._updates import Update, is_kept_as_gradient

_ALIASES = ("aten::_unsafe_view", "aten::_reshape_alias", "aten::lift_fresh")  # although their schemas do not say so
_WAITS = ("_c10d_functional::wait_tensor", "_c10d_functional::wait_tensors")  # return what they are given
_DRAW_SEEDS = ("prims::inductor_seed", "prims::inductor_seeds")
_DRAW_FROM_SEEDS = ("prims::inductor_random", "prims::inductor_randint", "prims::inductor_lookup_seed")  # the same each time
_PURE = ("aten", "prims")  # namespaces whose schemas and tags say what an operator does
_IN_ORDER = ("_c10d_functional", "c10d_functional", "c10d", "_dtensor", "profiler", "symm_mem")  # namespaces
_OWN_STATE = ("aten::_cudnn_rnn", "aten::_cudnn_init_dropout_state", "aten::miopen_rnn")  # not that of the device's generator


@dataclasses.dataclass(eq=False)
class Storage:
    """Bytes that are allocated and freed together. Without a producer it is resident."""

    size: int  # as the graph counts it: 0 where the caller owns it, as a parameter's gradient
    producer: Optional["Operation"] = None
    output: int = 0  # which of the producer's outputs
    keep: bool = False
    device: str = "cpu"
    allocated: int = 0  # what making it takes
    as_traced: bool = True  # whether the kernel lays it out as the tracer thought


@dataclasses.dataclass(eq=False)
class Operation:
    """One node of the Cairn graph."""

    index: int
    node: Optional[torch.fx.Node]  # None: nothing runs, as at the border between forward and backward
    label: str = ""  # of one without a node
    reads: dict = dataclasses.field(default_factory=dict)  # Storage -> None, in order
    after: dict = dataclasses.field(default_factory=dict)  # Operation -> None: control edges
    outputs: list = dataclasses.field(default_factory=list)  # Storage
    pinned: bool = False
    backward: bool = False
    effect: bool = False  # it does something beside its outputs
    statistics: Optional["Operation"] = None  # of a batch norm: stands for its last outputs, which live longer
    state: Optional["Operation"] = None  # of a random one that may run again: saves the state that its generator has at first
    update: Optional[Update] = None  # what runs instead of a node: an optimizer's update of one parameter
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
        self.operation_of = {}  # fx node -> Operation, of those that are operations
        self.structure = {}  # fx node -> its value, a Storage in place of each tensor
        self.controls = {}  # fx node -> operations that must have run before it is used
        self.roots = {}  # view or part -> the operations whose copies it is made from
        self.dependents = {}  # Operation -> views and parts, in order
        self.parts = {}  # Operation -> getitems of it
        self.border = None
        self.tangents = {}  # Storage of a gradient that the caller gives -> the result that it is of, None where not known
        self.resident = {}  # kind -> bytes
        self.gradients = {}  # Storage -> bytes, of gradients that the caller will own
        self.readers = {}  # Operation that updates a parameter -> those that read the parameter
        self.updated = {}  # position among the outputs of a gradient that is not returned -> Operation that updates by it
        self.device = "cpu"  # the device that holds most bytes
        self.sizes = []  # of its storages, as the tracer has them: symbolic where sizes are
        self.estimated = []  # operations of which cost or scratch is not measured
        self.shared_name = None  # among ranks; None: there is one process

    def is_view(self, node):
        return node in self.roots

    def order(self):
        """Of the graph, with each parameter updated as soon as that may be."""
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
        """The steps, with no parameter updated before all that read it have run for the last time."""
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
        """Counts the gradients that are copied, as they are laid out in another way than their parameters."""
        for storage in [s for s in self.gradients if not s.as_traced]:
            storage.size = storage.allocated
            del self.gradients[storage]
        for op in self.readers:
            if op.update.copies or not all(s.as_traced for s in op.reads):
                op.scratch += op.update.size

    def build(self):
        """The Cairn graph. Node i is operation i."""
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


def trace_graph(graph, *, name="step", forward_outputs=None, parameters=(), accumulate=False, replay=False, updates=None):
    """Reads an FX graph of aten operations whose nodes carry fake values in ``meta["val"]``.

    ``forward_outputs``: how many of its outputs are the forward pass's; then it is a joint graph of forward and backward,
    with tangents among its placeholders. ``parameters``: placeholders whose gradients the caller owns; ``accumulate``: it
    has gradients already, and adds the new ones to them. ``replay``: random operations may run again, from a saved state
    of their generator. ``updates``: placeholder -> Update, of those that are updated once their gradient is there.
    """
    return _Reader(graph, name, forward_outputs, set(parameters), accumulate, replay, updates or {}).read()


class _Reader:
    def __init__(self, graph, name, forward_outputs, parameters, accumulate, replay, updates):
        self.graph = graph
        self.updates = updates
        self.accumulate = accumulate
        self.replay = replay
        self.trace = Trace(name)
        self.forward_outputs = forward_outputs
        self.parameters = parameters
        self.of_input = {}  # storage address -> resident Storage
        self.last_random = None
        self.last_ordered = None
        self.bytes_on = {}
        output = next(iter(reversed(graph.nodes)))
        self.outputs = pytree.arg_tree_leaves(*output.args)
        self.descriptions = _private.output_descriptions(graph)
        self.live = _needed(graph)
        self.tangents = [n for n in graph.nodes if n.op == "placeholder" and _private.is_tangent(n)]
        self.forward_leaves = self.outputs[:forward_outputs] if forward_outputs is not None else []
        self.mutated = self._mutated_inputs()
        self.read_before_writes = []  # operations that read what is written when the forward pass has ended

    def read(self):
        trace = self.trace
        border_before = self._border_position()
        for node in self.graph.nodes:
            if node is border_before:
                self._add_border()
            if node.op in ("placeholder", "get_attr"):
                self._add_input(node)
            elif node.op == "call_function" and node in self.live:
                self._add_call(node)
        if self.bytes_on:
            trace.device = max(self.bytes_on, key=self.bytes_on.get)
        updated = self._updated_outputs()
        self._keep_outputs(updated)
        self._order_writes()
        if trace.border is not None:
            self._order_effects_about_border()
            self._add_updates(updated)
        return trace

    # --- Inputs

    def _add_input(self, node):
        value = node.meta.get("val")
        if node.op == "placeholder" and _private.is_tangent(node):
            return  # an output of the border
        self.trace.controls[node] = {}

        def resident(leaf):
            if not isinstance(leaf, torch.Tensor):
                return None
            key = _address(leaf)
            if key not in self.of_input:
                self.of_input[key] = storage = self._storage(leaf)
                kind = "parameter" if node in self.parameters else "input"
                self.trace.resident[kind] = self.trace.resident.get(kind, 0) + storage.size
            return self.of_input[key]

        self.trace.structure[node] = pytree.tree_map(resident, value)
        if node in self.mutated:
            self.mutated.update(s for s in pytree.tree_leaves(self.trace.structure[node]) if s is not None)

    def _storage(self, tensor):
        self.trace.sizes.append(tensor.untyped_storage().nbytes())
        size = _private.hint(self.trace.sizes[-1])
        device = tensor.device.type
        if device == "cuda":  # its allocator hands out multiples
            size = -(-size // 512) * 512
        self.bytes_on[device] = self.bytes_on.get(device, 0) + size
        return Storage(size, device=device, allocated=size)

    # --- The border

    def _border_position(self):
        """The node before which the forward pass has ended, as the tracer ordered them."""
        if not self.tangents:
            return None
        wanted = {n for n in self.forward_leaves if isinstance(n, torch.fx.Node)}
        last, seen = None, False
        for node in self.graph.nodes:
            if node.op == "output":
                return last or node
            if node in wanted:
                last, seen = None, True
            elif node.op == "call_function" and last is None:
                if _private.is_backward(node) or any(a in self.tangents for a in node.all_input_nodes):
                    last = node
        return None

    def _add_border(self):
        trace = self.trace
        border = self._operation(None, "forward | backward")
        border.pinned = border.backward = True
        for leaf in self.forward_leaves:
            if isinstance(leaf, torch.fx.Node):
                self._read(border, leaf)
        for tangent in self.tangents:
            made = {}
            missing = is_missing(tangent)
            position = _private.result_of(tangent.meta.get("desc"), self.descriptions[:self.forward_outputs])

            def new(leaf):
                if not isinstance(leaf, torch.Tensor) or missing:
                    return None
                if _address(leaf) not in made:
                    made[_address(leaf)] = storage = self._output(border, leaf)
                    storage.keep = True  # autograd holds it until the backward pass has ended
                    trace.tangents[storage] = self.forward_leaves[position] if position is not None else None
                return made[_address(leaf)]

            trace.structure[tangent] = pytree.tree_map(new, tangent.meta.get("val"))
            trace.controls[tangent] = {border: None}
        trace.border = border

    # --- Calls

    def _add_call(self, node):
        trace, value = self.trace, node.meta.get("val")
        if node.target is operator.getitem:
            parent = node.args[0]
            structure = trace.structure[parent]
            trace.structure[node] = structure[node.args[1]] if isinstance(structure, (tuple, list)) else structure
            owner = trace.operation_of.get(parent)
            self._add_view(node, {owner: None} if owner is not None else trace.roots[parent])
            if owner is not None:
                trace.parts.setdefault(owner, []).append(node)
                trace.controls[node] = {owner: None}
            return
        leaves = pytree.tree_leaves(value)
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        known = {}
        for argument in node.all_input_nodes:
            for leaf, storage in _pairs(argument.meta.get("val"), trace.structure.get(argument)):
                known.setdefault(_address(leaf), storage)
        aliases = _may_alias(node.target)
        effect = _has_effect(node)
        random = is_random(node)
        if aliases and not effect:  # a view, also where the tracer gave it a storage of its own
            base = _viewed(node)
            storages = [s for s in pytree.tree_leaves(trace.structure.get(base)) if isinstance(s, Storage)]
            if len(storages) == 1:
                for leaf in tensors:
                    known.setdefault(_address(leaf), storages[0])
        if tensors and aliases and not effect and not random and all(_address(t) in known for t in tensors):
            trace.structure[node] = pytree.tree_map(
                lambda leaf: known[_address(leaf)] if isinstance(leaf, torch.Tensor) else None, value)
            roots = {}
            for argument in node.all_input_nodes:
                if argument in trace.operation_of:
                    roots[trace.operation_of[argument]] = None
                roots.update(trace.roots.get(argument, {}))
            self._add_view(node, roots)
            return
        statistics = self._running_statistics(node) if may_run_again(node, self.live) else None
        state = self._saved_state(node, tensors) if random and self.replay else None
        op = self._operation(node)
        if statistics is not None:
            op.after[statistics] = None
            op.statistics = statistics
        if state is not None:
            op.state = state
            op.reads[state.outputs[0]] = None
            op.scratch = state.outputs[0].size  # the state to go on with, while it runs again
        op.effect = effect or (random and state is None)
        op.backward = _private.is_backward(node) or (trace.border is not None)
        made = {}
        waits = _schema_name(node.target) in _WAITS
        if waits:  # the tracer makes new tensors
            known.update((_address(leaf), storage) for leaf, storage in _pairs(
                value, torch.fx.map_arg(node.args[0], trace.structure.get)))
            aliases = True

        def output(leaf):
            if not isinstance(leaf, torch.Tensor):
                return None
            key = _address(leaf)
            if aliases and key in known:
                return known[key]
            if key not in made:
                later = statistics is not None and any(leaf is new for new in value[3:])
                made[key] = self._output(statistics if later else op, leaf)
            return made[key]

        trace.structure[node] = pytree.tree_map(output, value)
        trace.controls[node] = {op: None}
        for argument in node.all_input_nodes:
            self._read(op, argument)
        if waits:  # until then a collective may read what it was given
            for storage in list(op.reads):
                op.reads.update(storage.producer.reads)
        op.pinned = op.effect or not tensors or not is_pure(node.target)
        if any(self._is_mutated(a) for a in node.all_input_nodes):
            # When the forward pass has ended it would read what is written then.
            op.pinned = op.pinned or statistics is None
            self.read_before_writes.append(op)
        if random:
            if self.last_random is not None:
                (state or op).after[self.last_random] = None
            self.last_random = op
        if effect:
            if self.last_ordered is not None:
                op.after[self.last_ordered] = None
            self.last_ordered = op

    def _operation(self, node, label=""):
        op = Operation(len(self.trace.operations), node, label)
        self.trace.operations.append(op)
        if node is not None:
            self.trace.operation_of[node] = op
        self.trace.dependents[op] = []
        return op

    def _running_statistics(self, node):
        """The new running statistics of a batch norm stay until buffers are written, while its output may be made again."""
        op = self._operation(None, f"{node.name} buffers")
        op.pinned = True
        return op

    def _saved_state(self, node, tensors):
        """Saves the state of a random operation's generator, unless it must run once or makes no more than such a state."""
        device = generator_device(node)
        size = _random.state_bytes(device) if device is not None else 0
        made = {_address(t): _private.hint(t.untyped_storage().nbytes()) for t in tensors}
        if device is None or sum(made.values()) <= size:
            return None
        op = self._operation(None, f"{node.name} state")
        op.pinned = op.effect = True
        op.backward = _private.is_backward(node) or (self.trace.border is not None)
        op.outputs.append(Storage(size, op, allocated=size))  # on the CPU, whichever the device
        return op

    def _output(self, op, tensor):
        storage = self._storage(tensor)
        storage.producer, storage.output = op, len(op.outputs)
        op.outputs.append(storage)
        return storage

    def _add_view(self, node, roots):
        trace = self.trace
        trace.roots[node] = dict(roots)
        trace.structure.setdefault(node, None)
        controls = {}
        for argument in node.all_input_nodes:
            for op in trace.controls.get(argument, {}):
                controls[op] = None
        trace.controls[node] = controls
        for op in roots:
            trace.dependents[op].append(node)

    def _read(self, op, node):
        """`op` reads what `node` stands for."""
        for leaf in pytree.tree_leaves(self.trace.structure.get(node)):
            if isinstance(leaf, Storage) and leaf.producer is not None and leaf.producer is not op:
                op.reads[leaf] = None
        made_by = {s.producer for s in op.reads}
        for before in self.trace.controls.get(node, {}):
            if before is not op and before not in made_by:
                op.after[before] = None

    # --- Outputs

    def _is_mutated(self, node):
        return node in self.mutated or any(isinstance(leaf, Storage) and leaf in self.mutated
                                           for leaf in pytree.tree_leaves(self.trace.structure.get(node)))

    def _mutated_inputs(self):
        """Placeholders that are written; their storages come to them as they are read."""
        by_description = {}
        for node in self.graph.nodes:
            if node.op == "placeholder" and node.meta.get("desc") is not None:
                by_description[node.meta["desc"]] = node
        mutated = set()
        for description in self.descriptions:
            if _private.is_mutation(description):
                node = by_description.get(description.mutated_input)
                if node is not None:
                    mutated.add(node)
        return mutated

    def _updated_outputs(self):
        """Position among the outputs -> placeholder of the parameter whose gradient it is, of the gradients that are nothing
        else and that are read by the parameter's update alone."""
        trace, found, uses = self.trace, {}, {}
        by_description = {node.meta.get("desc"): node for node in self.updates}
        for position, leaf in enumerate(self.outputs):
            if not isinstance(leaf, torch.fx.Node):
                continue
            storages = [s for s in pytree.tree_leaves(trace.structure.get(leaf)) if isinstance(s, Storage)]
            for storage in storages:
                uses[storage] = uses.get(storage, 0) + 1
            description = self.descriptions[position] if position < len(self.descriptions) else None
            if self.forward_outputs is None or position < self.forward_outputs or not _private.is_gradient(description):
                continue
            node = by_description.get(description.grad_of)
            if node is not None and len(storages) == 1 and isinstance(storages[0].producer, Operation):
                found[position] = node
        holders = {}  # of resident storages, several parameters may share one
        for node in self.graph.find_nodes(op="placeholder"):
            for storage in pytree.tree_leaves(trace.structure.get(node)):
                holders[storage] = holders.get(storage, 0) + 1

        read = {storage for op in trace.operations for storage in op.reads}

        def may(position, node):
            storage = next(iter(pytree.tree_leaves(trace.structure[self.outputs[position]])))
            own = trace.structure[node]
            return (uses[storage] == 1 and storage not in read and storage.producer is not trace.border and
                    isinstance(own, Storage) and
                    holders[own] == 1 and own not in uses and not self._is_mutated(node))

        return {position: node for position, node in found.items() if may(position, node)}

    def _add_updates(self, updated):
        """An update comes after all that reads its parameter, and after what reads what that makes, which might be made
        again from the parameter otherwise. The others: see Trace.in_time."""
        trace = self.trace
        readers, consumers = {}, {}
        for op in trace.operations:
            for node in op.node.all_input_nodes if op.node is not None else ():
                for storage in pytree.tree_leaves(trace.structure.get(node)):
                    if isinstance(storage, Storage) and storage.producer is None:
                        readers.setdefault(storage, {})[op] = None
            for storage in op.reads:
                consumers.setdefault(storage.producer, {})[op] = None
        for position, node in updated.items():
            update = self._operation(None, f"update {node.name}")
            update.update = self.updates[node]
            update.update.placeholder = node
            update.update.copies = not is_kept_as_gradient(self.outputs[position].meta["val"], node.meta["val"])
            update.pinned = update.backward = True
            self._read(update, self.outputs[position])
            update.after[trace.border] = None
            trace.readers[update] = readers.get(trace.structure[node], {})
            for op in trace.readers[update]:
                update.after.update({later: None for later in (op, *consumers.get(op, ())) if later.node is not None})
            trace.updated[position] = update

    def _keep_outputs(self, updated):
        trace = self.trace
        resident = 0
        for position, leaf in enumerate(self.outputs):
            if not isinstance(leaf, torch.fx.Node) or position in updated:
                continue
            description = self.descriptions[position] if position < len(self.descriptions) else None
            forward = self.forward_outputs is not None and position < self.forward_outputs
            if forward and _private.is_mutation(description):
                continue  # read by the border, copied into the input then, and freed
            for storage in pytree.tree_leaves(trace.structure.get(leaf)):
                if not isinstance(storage, Storage) or storage.producer is None:
                    continue
                storage.keep = True
                if storage.producer.node is not None:
                    storage.producer.pinned = True
                parameter = self._parameter(description.grad_of) if _private.is_gradient(description) else None
                if parameter is not None and not forward and storage.producer is not trace.border:
                    resident += storage.size  # torch copies what several parameters share
                    if is_kept_as_gradient(leaf.meta["val"], parameter.meta["val"]):
                        trace.gradients.setdefault(storage, storage.size)
        trace.resident["gradient"] = resident
        if self.accumulate:
            trace.gradients = {}
        for storage in trace.gradients:
            storage.size = 0

    def _parameter(self, description):
        return next((n for n in self.parameters if n.meta.get("desc") == description), None)

    # --- Order

    def _order_writes(self):
        """Operations that touch a storage which one of them writes keep their order, and run once."""
        trace = self.trace
        written = {}
        for op in trace.operations:
            if op.node is not None and isinstance(op.node.target, torch._ops.OpOverload):
                for argument in _written_arguments(op.node):
                    for storage in pytree.tree_leaves(trace.structure.get(argument)):
                        if isinstance(storage, Storage):
                            written[storage] = None
        if not written:
            return
        last = {}
        for op in trace.operations:
            touched = [s for s in written if s in op.reads or s.producer is op or self._touches(op, s)]
            for storage in touched:
                op.pinned = True
                if storage in last and last[storage] is not op:
                    op.after[last[storage]] = None
                last[storage] = op

    def _touches(self, op, storage):
        if op.node is None:
            return False
        return any(storage is leaf for a in op.node.all_input_nodes
                   for leaf in pytree.tree_leaves(self.trace.structure.get(a)))

    def _order_effects_about_border(self):
        border = self.trace.border
        for op in self.trace.operations:
            if op is border or not (op.effect or op.state):
                continue
            if op.index > border.index:
                op.after[border] = None
            else:
                border.after[op] = None
        for op in self.read_before_writes:
            if op.index < border.index:
                border.after[op] = None


# --- What an operation is

def is_pure(target):
    """Whether it may run again, as far as its kind goes. Operators of others may draw random numbers or write somewhere
    without saying so."""
    if isinstance(target, torch._ops.OpOverload):
        return target.namespace in _PURE
    return getattr(target, "runs_again", False)


def operation_name(node):
    return str(node.target) if isinstance(node.target, torch._ops.OpOverload) else getattr(
        node.target, "__name__", str(node.target))


def is_random(node):
    """Whether it draws from a generator, so that its first run has its place among those that do."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return getattr(target, "draws", False)
    if _schema_name(target) in _DRAW_SEEDS:
        return True
    if torch.Tag.nondeterministic_seeded not in target.tags or _schema_name(target) in _DRAW_FROM_SEEDS:
        return False
    dropout = _argument(node, "dropout_p")
    if dropout is None and "dropout_p" in _argument_names(target):
        dropout = 0.0
    if dropout is not None and isinstance(dropout, (int, float)) and dropout == 0:
        return False
    if target is torch.ops.aten.native_dropout.default and _argument(node, "train") is False:
        return False
    return True


def generator_device(node):
    """The device from whose generator a random operation draws all that it draws, and does nothing else; None: that is not
    known, and it must run once."""
    target = node.target
    if not is_pure(target) or _has_effect(node) or _may_alias(target) or _schema_name(target) in (*_OWN_STATE, *_DRAW_SEEDS):
        return None
    if isinstance(target, torch._ops.OpOverload) and _argument(node, "generator") is not None:
        return None
    devices = {t.device for t in pytree.tree_leaves(node.meta.get("val")) if isinstance(t, torch.Tensor)}
    devices = {d for d in devices if d.type != "cpu"} or devices
    device = devices.pop() if len(devices) == 1 else None
    return device if device is not None and device.type in ("cpu", "cuda") else None


def may_run_again(node, live):
    """Whether it may, although it reads buffers that are written after the forward pass: a batch norm whose new running
    statistics nobody among ``live`` reads but the buffers."""
    return is_batch_norm(node) and not any(
        part.args[1] > 2 and any(user.op != "output" and user in live for user in part.users)
        for part in node.users if part.target is operator.getitem)


def simplify(graph):
    """Drops arguments that an operation does not look at: the derivative of a training step of batch norm is given the
    running statistics, which would otherwise be kept for it."""
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.native_batch_norm_backward.default):
        if _argument(node, "train") is True and not node.kwargs:
            node.args = (*node.args[:3], None, None, *node.args[5:])


def is_batch_norm(node):
    """Whether it is a training step of batch norm, whose output does not depend on the running statistics."""
    return node.target is torch.ops.aten._native_batch_norm_legit_functional.default and bool(_argument(node, "training"))


def _argument_names(target):
    return [a.name for a in target._schema.arguments]


def _argument(node, name):
    names = _argument_names(node.target)
    if name in node.kwargs:
        return node.kwargs[name]
    if name in names and names.index(name) < len(node.args):
        return node.args[names.index(name)]
    return None


def _schema_name(target):
    return target._schema.name if isinstance(target, torch._ops.OpOverload) else None


def _may_alias(target):
    if not isinstance(target, torch._ops.OpOverload):
        return False
    if target._schema.name in _ALIASES:
        return True
    return any(r.alias_info is not None for r in target._schema.returns)


def _viewed(node):
    """The argument that the results of a view share their storage with, as its schema says; None where it does not."""
    results = {name for r in node.target._schema.returns if r.alias_info is not None for name in r.alias_info.before_set}
    for position, argument in enumerate(node.target._schema.arguments):
        if argument.alias_info is not None and results & set(argument.alias_info.before_set):
            value = node.args[position] if position < len(node.args) else node.kwargs.get(argument.name)
            return value if isinstance(value, torch.fx.Node) else None
    return None


def _has_effect(node):
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        if target._schema.is_mutable or target.namespace in _IN_ORDER:
            return True
        return target.namespace == "aten" and target._schema.name.startswith(("aten::_assert", "aten::sym_constrain",
                                                                              "aten::_local_scalar_dense"))
    if isinstance(target, torch._ops.HigherOrderOperator):
        return True
    return False


def _written_arguments(node):
    schema = node.target._schema
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = node.kwargs.get(argument.name, node.args[position] if position < len(node.args) else None)
            for leaf in pytree.tree_leaves(value):
                if isinstance(leaf, torch.fx.Node):
                    yield leaf


def _needed(graph):
    """The nodes that outputs or effects depend on."""
    needed = set()
    for node in reversed(graph.nodes):
        if node.op == "output" or node in needed or (
                node.op == "call_function" and (_has_effect(node) or is_random(node))):
            needed.add(node)
            needed.update(node.all_input_nodes)
    return needed


def _address(tensor):
    return tensor.untyped_storage()._cdata


def _pairs(value, structure):
    """(tensor, its storage) of a value and its structure."""
    if isinstance(value, torch.Tensor):
        if isinstance(structure, Storage):
            yield value, structure
    elif isinstance(value, (tuple, list)) and isinstance(structure, (tuple, list)):
        for v, s in zip(value, structure):
            yield from _pairs(v, s)
    elif isinstance(value, dict) and isinstance(structure, dict):
        for key in value:
            yield from _pairs(value[key], structure[key])
