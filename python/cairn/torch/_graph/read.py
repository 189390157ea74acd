"""Converts a traced FX graph to the parts of a Cairn graph: operations, and the storages that they make and read.

Memory is counted in storages, not tensors. Every *operation* that makes storages is a node of the Cairn graph, with one
output per storage. Views and ``getitem`` are not nodes: they cost nothing, share the storage of the tensor that they
view, and are made again whenever this tensor is computed again. Storages that the caller owns (parameters, buffers,
inputs, constants) are resident. The *border*, i.e. the end of the forward pass, is a node as well.
"""

import operator

import torch
from torch.utils import _pytree as pytree

from .. import _private
from .._rewrite.random import state_bytes
from .._rewrite.tangents import is_missing
from .._step.one_parameter import is_kept_as_gradient
from . import operators, policies, regions
from .nondeterministic import repeats_bitwise
from .trace import Operation, Storage, Trace

# operators that wait for a collective, and return their arguments
_WAITS = ("_c10d_functional::wait_tensor", "_c10d_functional::wait_tensors")


def trace_graph(graph, *, name="step", forward_outputs=None, parameters=(), accumulate=False, replay=False, updates=None,
                shared=()):
    """Reads an FX graph of aten operations whose nodes carry fake values in ``meta["val"]``.

    ``forward_outputs``: number of outputs that belong to the forward pass. If it is given, the graph is a joint graph
    of forward and backward pass, and some placeholders are tangents (gradients that the caller gives). ``parameters``:
    placeholders whose gradients the caller owns. ``accumulate``: whether the caller already has gradients, to which the
    new gradients are added. ``replay``: whether random operations may run again, from a saved state of their generator.
    ``updates``: placeholder -> Update, for parameters that are updated as soon as their gradient is complete.
    ``shared``: placeholders whose memory code outside of the graph may write after the forward pass.
    """
    return _Reader(graph, name, forward_outputs, set(parameters), accumulate, replay, updates or {},
                   shared).read()


class _Reader:
    def __init__(self, graph, name, forward_outputs, parameters, accumulate, replay, updates, shared):
        self.graph = graph
        self.updates = updates
        self.accumulate = accumulate
        self.replay = replay
        self.trace = Trace(name)
        self.trace.sized_by_data = [operators.operator_name(node) for node in _private.sized_by_data(graph)]
        self.trace.branching = [node.name for node in graph.nodes if operators.branches_on_data(node)]
        self.forward_outputs = forward_outputs
        self.parameters = parameters
        self.of_input = {}  # storage address -> resident Storage
        self.kinds = {}  # resident Storage -> "parameter" or "input"
        # The last operation so far that draws random numbers or may have side effects. Each such operation must run
        # after the previous one.
        self.last_placed = None
        self.bytes_on = {}  # device -> bytes of all storages on it
        self.outputs = _private.outputs(graph)
        self.descriptions = _private.output_descriptions(graph)
        self.live = operators.needed(graph)
        self.tangents = [n for n in graph.nodes if n.op == "placeholder" and _private.is_tangent(n)]
        self.trace.forward_leaves = self.outputs[:forward_outputs] if forward_outputs is not None else []
        # Placeholders of inputs that are written after the forward pass, and, once _add_input() has added them, the
        # storages of these inputs.
        self.mutated = set(_private.mutated_inputs(graph))
        self.shared = set(shared)  # inputs that code outside of the graph may write, and their storages
        self.read_before_writes = []  # operations that read memory that may be written after the forward pass

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
        self._choose_device()
        updated = self._updated_outputs()
        self._keep_outputs(updated)
        self._order_writes()
        if trace.border is not None:
            self._order_effects_about_border()
            self._order_recomputed()
            self._add_updates(updated)
        return trace

    def _choose_device(self):
        """Chooses the device of the budget. Storages on other devices count as 0 bytes."""
        trace = self.trace
        # Tensors on torch's device "meta" have no memory.
        devices = sorted(device for device in self.bytes_on if device != "meta") or sorted(self.bytes_on)
        others = [device for device in devices if device not in ("cpu", "meta")]
        if len(others) > 1:
            raise NotImplementedError(f"a graph has tensors on {' and '.join(others)}, and a budget is of one")
        if not devices:
            return
        trace.device = max(devices, key=self.bytes_on.get).split(":")[0]
        trace.elsewhere = {d: size for d, size in self.bytes_on.items()
                           if size and d.split(":")[0] not in (trace.device, "meta")}
        trace.resident = {}
        for storage, kind in self.kinds.items():
            if storage.device == trace.device:
                trace.resident[kind] = trace.resident.get(kind, 0) + storage.size
        for op in trace.operations:
            for storage in op.outputs:
                if storage.device != trace.device:
                    storage.size = storage.allocated = 0

    # --- Inputs

    def _add_input(self, node):
        value = node.meta.get("val")
        if node.op == "placeholder" and _private.is_tangent(node):
            return  # the gradient is not an input of the Cairn graph, but an output of its border
        self.trace.controls[node] = {}

        def resident(leaf):
            if not isinstance(leaf, torch.Tensor):
                return None
            key = _address(leaf)
            if key not in self.of_input:
                self.of_input[key] = storage = self._storage(leaf)
                self.kinds[storage] = "parameter" if node in self.parameters else "input"
            return self.of_input[key]

        self.trace.structure[node] = pytree.tree_map(resident, value)
        for marked in (self.mutated, self.shared):
            if node in marked:
                marked.update(self.trace.storages(node))

    def _storage(self, tensor):
        self.trace.sizes.append(tensor.untyped_storage().nbytes())
        device = tensor.device.type
        size = _allocated(self.trace.sizes[-1], device)
        self.bytes_on[str(tensor.device)] = self.bytes_on.get(str(tensor.device), 0) + size
        return Storage(size, device=device, allocated=size)

    # --- The border

    def _border_position(self):
        """Returns the node before which the border stands: the first node after the forward pass in the tracer's
        order."""
        if not self.tangents:
            return None
        wanted = {n for n in self.trace.forward_leaves if isinstance(n, torch.fx.Node)}
        last = None
        for node in self.graph.nodes:
            if node.op == "output":
                return last or node
            if node in wanted:
                last = None
            elif node.op == "call_function" and last is None:
                if _private.is_backward(node) or any(a in self.tangents for a in node.all_input_nodes):
                    last = node
        return None

    def _add_border(self):
        trace = self.trace
        border = self._operation(None, "forward | backward")
        border.pinned = border.backward = True
        for leaf in self.trace.forward_leaves:
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
                    storage.keep = True  # autograd holds the gradient until the backward pass has ended
                    trace.tangents[storage] = self.trace.forward_leaves[position] if position is not None else None
                return made[_address(leaf)]

            trace.structure[tangent] = pytree.tree_map(new, tangent.meta.get("val"))
            trace.controls[tangent] = {border: None}
        trace.border = border

    # --- Calls

    def _add_call(self, node):
        trace, value = self.trace, node.meta.get("val")
        if node.target is operator.getitem:
            self._add_part(node)
            return
        leaves = pytree.tree_leaves(value)
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        known = {}
        for argument in node.all_input_nodes:
            for leaf, storage in _pairs(argument.meta.get("val"), trace.structure.get(argument)):
                known.setdefault(_address(leaf), storage)
        aliases = operators.may_alias(node.target)
        effect = operators.acts(node)
        random = operators.is_random(node)
        if aliases and not effect:  # the node is a view, even if the tracer gave its result a separate storage
            storages = trace.storages(operators.viewed(node))
            if len(storages) == 1:
                for leaf in tensors:
                    known.setdefault(_address(leaf), storages[0])
        if tensors and aliases and not effect and not random and all(_address(t) in known for t in tensors):
            trace.structure[node] = pytree.tree_map(
                lambda leaf: known[_address(leaf)] if isinstance(leaf, torch.Tensor) else None, value)
            self._add_view(node, self._roots(node))
            return
        again = operators.may_run_again(node, self.live) and not any(map(self._is_mutated, operators.normalized_from(node)))
        statistics = self._running_statistics(node) if again else None
        state = self._saved_state(node, tensors) if random and self.replay else None
        op = self._operation(node)
        if statistics is not None:
            op.after[statistics] = None
            op.statistics = statistics
        if state is not None:
            op.state = state
            op.reads[state.outputs[0]] = None
            # While the operation runs again with the saved state, a copy of the generator's present state is kept to
            # restore it.
            op.scratch = state.outputs[0].size
        op.effect = effect or (random and state is None)
        op.backward = _private.is_backward(node) or (trace.border is not None)
        made = {}
        waits = operators.schema_name(node.target) in _WAITS
        if waits:  # a wait returns its arguments, although the tracer made new tensors for its results
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
        if waits:  # the collective may read its own arguments until this wait, so the wait counts as their reader
            for storage in list(op.reads):
                op.reads.update(storage.producer.reads)
        op.pinned = op.effect or not tensors or not repeats_bitwise(node) or policies.must_save(node)
        if any(self._is_mutated(a) for a in node.all_input_nodes):
            # If the operation ran again after the forward pass, it would read values that have been overwritten.
            op.pinned = op.pinned or statistics is None
            self.read_before_writes.append(op)
        if any(self._is_mutated(a) or self._stands_in(a, self.shared) for a in regions.read_again(node)):
            trace.has_unsafe_regions = True
        if self.tangents and trace.border is None and any(self._stands_in(a, self.shared) for a in node.all_input_nodes):
            op.pinned = True
            self.read_before_writes.append(op)
        if random or effect:
            if self.last_placed is not None:
                (state or op).after[self.last_placed] = None
            self.last_placed = op

    def _roots(self, view):
        """Returns the operations whose results a view shows, as a dict without values."""
        trace, roots = self.trace, {}
        for argument in view.all_input_nodes:
            if argument in trace.operation_of:
                roots[trace.operation_of[argument]] = None
            roots.update(trace.roots.get(argument, {}))
        return roots

    def _add_part(self, node):
        trace, parent = self.trace, node.args[0]
        structure = trace.structure[parent]
        trace.structure[node] = structure[node.args[1]] if isinstance(structure, (tuple, list)) else structure
        owner = trace.operation_of.get(parent)
        self._add_view(node, {owner: None} if owner is not None else trace.roots[parent])
        if owner is not None:
            trace.parts.setdefault(owner, []).append(node)
            trace.controls[node] = {owner: None}

    def _operation(self, node, label=""):
        op = Operation(len(self.trace.operations), node, label)
        self.trace.operations.append(op)
        if node is not None:
            self.trace.operation_of[node] = op
        self.trace.dependents[op] = []
        return op

    def _running_statistics(self, node):
        """Adds an operation that holds a batch norm's new running statistics until the buffers are written. The batch
        norm itself may run again."""
        op = self._operation(None, f"{node.name} buffers")
        op.pinned = True
        return op

    def _saved_state(self, node, tensors):
        """Adds an operation that saves the generator's state, so that the random operation ``node`` may run again. Adds
        nothing if ``node`` must run once, or if its results are no larger than the state: keeping them is then
        cheaper."""
        device = operators.generator_device(node)
        size = state_bytes(device) if device is not None else 0
        made = {_address(t): _private.hint(t.untyped_storage().nbytes()) for t in tensors}
        if device is None or sum(made.values()) <= size:
            return None
        op = self._operation(None, f"{node.name} state")
        op.pinned = op.effect = True
        op.backward = _private.is_backward(node) or (self.trace.border is not None)
        op.outputs.append(Storage(size, op, allocated=size))  # the state is in the CPU's memory, whatever the device
        return op

    def _output(self, op, tensor):
        storage = self._storage(tensor)
        if _private.may_exceed_plan(self.trace.sizes[-1]) and op.node is not None:
            self.trace.sized_by_data.append(operators.operator_name(op.node))
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
        for storage in self.trace.storages(node):
            if storage.producer is not None and storage.producer is not op:
                op.reads[storage] = None
        made_by = {s.producer for s in op.reads}
        for before in self.trace.controls.get(node, {}):
            if before is not op and before not in made_by:
                op.after[before] = None

    # --- Outputs

    def _stands_in(self, node, marked):
        return node in marked or any(storage in marked for storage in self.trace.storages(node))

    def _is_mutated(self, node):
        return self._stands_in(node, self.mutated)

    def _updated_outputs(self):
        """Finds the outputs that are gradients and are needed only to update one parameter. Returns {index of the
        output: placeholder of the parameter}."""
        trace, found, uses = self.trace, {}, {}
        by_description = {node.meta.get("desc"): node for node in self.updates}
        for position, leaf in enumerate(self.outputs):
            if not isinstance(leaf, torch.fx.Node):
                continue
            storages = trace.storages(leaf)
            for storage in storages:
                uses[storage] = uses.get(storage, 0) + 1
            description = self.descriptions[position] if position < len(self.descriptions) else None
            if self.forward_outputs is None or position < self.forward_outputs or not _private.is_gradient(description):
                continue
            node = by_description.get(description.grad_of)
            if node is not None and len(storages) == 1 and isinstance(storages[0].producer, Operation):
                found[position] = node
        holders = {}  # resident Storage -> number of inputs that share this storage
        for node in self.graph.find_nodes(op="placeholder"):
            for storage in trace.storages(node):
                holders[storage] = holders.get(storage, 0) + 1

        read = {storage for op in trace.operations for storage in op.reads}

        def may(position, node):
            (storage,) = trace.storages(self.outputs[position])
            own = trace.structure[node]
            return (uses[storage] == 1 and storage not in read and storage.producer is not trace.border and
                    isinstance(own, Storage) and
                    holders[own] == 1 and own not in uses and not self._is_mutated(node))

        return {position: node for position, node in found.items() if may(position, node)}

    def _add_updates(self, updated):
        """Adds the updates of parameters. An update must run after all operations that read the parameter. It must also
        run after the operations that read the results of these readers: otherwise, such a result could be computed
        again from the updated parameter. These control edges order only first runs of operations; Trace.in_time also
        orders later runs."""
        trace = self.trace
        readers, consumers = {}, {}
        for op in trace.operations:
            for node in op.node.all_input_nodes if op.node is not None else ():
                for storage in trace.storages(node):
                    if storage.producer is None:
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
        seen = set()
        for position, leaf in enumerate(self.outputs):
            if not isinstance(leaf, torch.fx.Node) or position in updated:
                continue
            description = self.descriptions[position] if position < len(self.descriptions) else None
            forward = self.forward_outputs is not None and position < self.forward_outputs
            if forward and _private.is_mutation(description):
                continue  # AOTAutograd copies this result into the input at the border
            for storage in trace.storages(leaf):
                if storage.producer is None:
                    continue
                storage.keep = True
                if storage.producer.node is not None:
                    storage.producer.pinned = True
                parameter = self._parameter(description.grad_of) if _private.is_gradient(description) else None
                if parameter is not None and not forward and storage.producer is not trace.border:
                    value = parameter.meta["val"]
                    # Torch keeps a gradient that is laid out as the parameter. It keeps parts of one tensor together, and
                    # copies a gradient for each further parameter that has the same one.
                    is_kept = is_kept_as_gradient(leaf.meta["val"], value)
                    if storage.device == trace.device and (not is_kept or leaf in seen):
                        size = _allocated(value.numel() * value.element_size(), storage.device)
                        trace.copied.setdefault(storage, []).append(size)
                    if is_kept:
                        trace.gradients.setdefault(storage, storage.size)
                        seen.add(leaf)
        trace.resident["gradient"] = sum(trace.gradients.values()) + sum(map(sum, trace.copied.values()))
        if self.accumulate:
            trace.gradients, trace.copied = {}, {}
        for storage in trace.gradients:
            storage.size = 0

    def _parameter(self, description):
        return next((n for n in self.parameters if n.meta.get("desc") == description), None)

    # --- Order

    def _order_writes(self):
        """Makes all operations that access a written storage run once, in the tracer's order."""
        trace = self.trace
        written = {}
        for op in trace.operations:
            if op.node is not None and isinstance(op.node.target, torch._ops.OpOverload):
                for argument in operators.written_arguments(op.node):
                    written.update(dict.fromkeys(trace.storages(argument)))
        if not written:
            return
        last = {}
        for op in trace.operations:
            given = {s for a in op.node.all_input_nodes for s in trace.storages(a)} if op.node is not None else ()
            touched = [s for s in written if s in op.reads or s.producer is op or s in given]
            for storage in touched:
                op.pinned = True
                if storage in last and last[storage] is not op:
                    op.after[last[storage]] = None
                last[storage] = op

    def _order_recomputed(self):
        """Orders the early and the late run of each split operation (policies.py). The late run comes after the border.
        Operations that read the early run's result are pinned, so that none of them runs again in the backward pass and
        needs this result there."""
        for op in self.trace.operations:
            run = policies.run_of(op.node) if op.node is not None else None
            if run is policies.LATE and op.index > self.trace.border.index:
                op.after[self.trace.border] = None
            elif run is None and any(s.producer.node is not None and policies.run_of(s.producer.node) is policies.EARLY
                                     for s in op.reads):
                op.pinned = True
                if op.index < self.trace.border.index:
                    self.trace.border.after[op] = None

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


def _allocated(size, device):
    """Returns the bytes that the allocator of a device hands out for ``size`` bytes."""
    size = _private.hint(size)
    return -(-size // 512) * 512 if device == "cuda" else size  # CUDA's allocator hands out multiples of 512 bytes


def _address(tensor):
    return tensor.untyped_storage()._cdata


def _pairs(value, structure):
    """Yields (tensor, storage) for each tensor of ``value``. ``structure``: the value's structure, with a Storage in
    place of each tensor."""
    if isinstance(value, torch.Tensor):
        if isinstance(structure, Storage):
            yield value, structure
    elif isinstance(value, (tuple, list)) and isinstance(structure, (tuple, list)):
        for v, s in zip(value, structure):
            yield from _pairs(v, s)
    elif isinstance(value, dict) and isinstance(structure, dict):
        for key in value:
            yield from _pairs(value[key], structure[key])
