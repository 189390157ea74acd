"""Writes a schedule as FX modules, whose nodes are in the schedule's order. A node of the traced graph that runs
several times becomes several nodes. The *border* is the step that marks the end of the forward pass."""

import collections
import contextlib
import copy
import operator

import torch

from .. import _private
from .._graph import policies, regions
from .._graph.operators import generator_device, is_view, of_gradients, schema_name
from .._offload.places import Places
from . import random


# Operator that waits for a collective -> function that also waits until the collective's memory can be freed.
_WAITS = {"_c10d_functional::wait_tensor": _private.wait_tensor, "_c10d_functional::wait_tensors": _private.wait_tensors}
_OF_FORWARD = "cairn_of_forward"  # key in a node's meta: whether the node belongs to the forward pass
# key in a node's meta: whether the node's value is a parameter's gradient, which counts as resident
_OF_GRADIENT = "cairn_of_gradient"


class Rewriter:
    """Writes a new graph in the order of a schedule, one operation after the other. If an operation runs again, it gets
    a new copy, which later nodes read."""

    def __init__(self, trace, source):
        self.trace = trace
        self.source = source  # the traced FX graph
        self.graph = torch.fx.Graph()
        self.newest = {}  # node of the source -> its latest copy
        self.runs = {}  # Operation -> number of its copies
        self.repeated = set()  # operations that run more than once
        self.states = {}  # random Operation that runs again -> the generator's state before the first run
        # a function that updates a parameter, given the parameter and its gradient; None: there are no updates
        self.update_function = None
        self.updates = {}  # Operation that updates a parameter -> its node
        self.positions = {update: position for position, update in trace.updated.items()}
        self.kept = []  # new nodes that must run even if nothing reads their results
        self.after_border = False
        self.first_side = None  # the new nodes before the border
        of_backward = of_gradients(source)
        for node in source.nodes:
            node.meta[_OF_FORWARD] = policies.is_copy(node) or (not _private.is_backward(node) and node not in of_backward)
            node.meta[_OF_GRADIENT] = trace.is_gradient(node)
            if node.op in ("placeholder", "get_attr"):
                self.newest[node] = self._copy(node)

    def write(self, steps, forward_outputs=None, transfers=None):
        """Writes the new graph and returns it. If there is a border, stores the nodes before it in ``first_side``.
        ``transfers``: the copies between device and host, as (evicts, fetches); None: there are none."""
        places = Places(self, steps, transfers or ((), ()))
        output = next(iter(reversed(self.source.nodes)))
        self.leaves = leaves = torch.utils._pytree.arg_tree_leaves(*output.args)
        self.split = split = forward_outputs or 0
        results = [None] * len(leaves)
        self.repeated = {self.trace.operations[step] for step, times in collections.Counter(steps).items() if times > 1}
        for position, step in enumerate(steps):
            op = self.trace.operations[step]
            places.before(position)
            if op is self.trace.border:
                places.border()
                for i in range(split):
                    results[i] = self._value(leaves[i])
                self.first_side = [n for n in self.graph.nodes if n.op != "placeholder"]
                self.after_border = True
                self._forget_views()
            elif op.update is not None:
                self._update(op)
            elif op.node is not None:
                self._run(op)
            places.ran(position)
        places.before(len(steps))
        if self.trace.border is None and forward_outputs is not None:
            self.first_side = []
            for i in range(split):
                results[i] = self._value(leaves[i])
        for i in range(split, len(leaves)):
            update = self.trace.updated.get(i)
            results[i] = self._value(leaves[i]) if update is None else self.updates[update]
        new = self.graph.output(tuple(results))
        new.meta = copy.copy(output.meta)
        return self.graph

    def _value(self, node):
        """Returns the newest copy of a node. Makes a copy if the node is a view that has none."""
        if not isinstance(node, torch.fx.Node):
            return node
        pending = [node]
        while pending:
            last = pending[-1]
            missing = [argument for argument in last.all_input_nodes if argument not in self.newest]
            if last not in self.newest and not missing:
                assert self.trace.is_view(last), f"{last} is used before it is made"
                self.newest[last] = self._copy(last)
            if last in self.newest:
                pending.pop()
            else:
                pending += missing
        return self.newest[node]

    def _run(self, op):
        for argument in op.node.all_input_nodes:
            self._value(argument)
        again = self.runs.get(op, 0)
        self.runs[op] = again + 1
        statistics_only_once = again and op.statistics is not None
        parts = self.trace.parts.get(op, ())
        if statistics_only_once:
            parts = [part for part in parts if part.args[1] <= 2]
        for dependent in self.trace.dependents[op]:
            if dependent in parts or not _is_part(self.trace, dependent):
                self.newest.pop(dependent, None)
        if statistics_only_once:
            new = self._batch_norm_again(op.node)
        elif again and op.state is not None:
            new = self._drawn_again(op)
        elif op.state is not None and op in self.repeated:
            self._save_state(op)
            new = self._copy(op.node)
            new.target = random.first(op.node.target)
        else:
            new = self._copy(op.node)
            new.target = _WAITS.get(schema_name(new.target), new.target)
        self.newest[op.node] = new
        if op.effect or (op.state is not None and not again):
            self._keep(new)
        # The parts are the nodes (getitem) that take single outputs of the operation. They are written directly behind
        # the operation, so that an output that no node reads is freed at once.
        for part in parts:
            self.newest[part] = self._copy(part)

    def _batch_norm_again(self, node):
        """Writes a batch norm that runs again. It gets no running statistics, because the buffers have been written
        since the first run."""
        names = [a.name for a in node.target._schema.arguments]
        given = dict(zip(names, node.args))
        given.update(node.kwargs)
        new = self.graph.call_function(torch.ops.aten._native_batch_norm_legit.no_stats, tuple(
            self._value(given[name]) for name in ("input", "weight", "bias", "training", "momentum", "eps")))
        new.meta = copy.copy(node.meta)
        new.meta["val"] = tuple(node.meta["val"][:3])
        new.meta.pop("tensor_meta", None)
        _private.set_side(new, self.after_border)
        return new

    def _save_state(self, op):
        """Saves the generator's state right before the first run of a random operation. In the schedule, saving the
        state is a step of its own, which may come earlier. The state is the same nevertheless, because no random
        operation runs between that step and the first run."""
        device = generator_device(op.node)
        new = self.graph.call_function(random.save_state, (device,))
        new.meta = {k: v for k, v in op.node.meta.items() if k != "tensor_meta"}
        with _private.fake_mode_of(torch.utils._pytree.tree_leaves(op.node.meta["val"])):
            new.meta["val"] = torch.empty(random.state_bytes(device), dtype=torch.uint8, device="cpu")
        self._keep(new)
        self.states[op] = new

    def _drawn_again(self, op):
        node = op.node
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: self.newest[n])
        new = self.graph.call_function(random.replayed(node.target, generator_device(node)), (self.states[op], *args), kwargs)
        new.meta = copy.copy(node.meta)
        if self.trace.border is not None:
            _private.set_side(new, self.after_border)
        return new

    def _update(self, op):
        leaf = self.leaves[self.positions[op]]
        new = self.graph.call_function(self.update_function, (self._value(op.update.placeholder), self._value(leaf)))
        new.meta = copy.copy(leaf.meta)
        _private.set_side(new, True)
        self.updates[op] = new

    def _keep(self, new):
        _private.set_side(new, self.after_border, only_there=self.trace.border is not None)
        self.kept.append(new)

    def _copy(self, node):
        new = self.graph.node_copy(node, lambda n: self.newest[n])
        new.meta = copy.copy(node.meta)
        if node.op == "call_function" and self.trace.border is not None:
            _private.set_side(new, self.after_border)
        return new

    def _forget_views(self):
        """Forgets all copies of views at the border. After the border, views are made again when they are needed, so
        they need not be saved for the backward pass."""
        for node in list(self.newest):
            if self.trace.is_view(node) and not _is_part(self.trace, node):
                del self.newest[node]

    def saved(self):
        """Returns the values that nodes before the border pass to nodes after it, as (tensors, numbers, opaque
        objects), each a list of nodes."""
        before = set(self.first_side)
        tensors, numbers, opaque = {}, {}, {}
        for node in self.graph.nodes:
            if node in before or node.op in ("placeholder", "get_attr"):
                continue
            arguments = node.all_input_nodes
            if node.op == "output":
                leaves = torch.utils._pytree.arg_tree_leaves(*node.args)
                arguments = [n for n in leaves[self.split:] if isinstance(n, torch.fx.Node)]
            for argument in arguments:
                if argument.op == "get_attr":
                    continue
                if argument in before or (argument.op == "placeholder" and _private.is_primal(argument)):
                    value = argument.meta.get("val")
                    if _private.is_sym(value) or isinstance(value, (int, float, bool)):
                        numbers[argument] = None
                    elif isinstance(value, torch.Tensor):
                        tensors[argument] = None
                    else:
                        opaque[argument] = None
        for node in tensors:
            # A saved tensor must be unchanged if an operation of the forward pass reads it when it runs again, so torch
            # must check it for writes. For tensors that only backward nodes read, torch's own rules decide.
            if _is_read_again(node, before):
                _private.check_version(node)
        return list(tensors), list(numbers), list(opaque)


def _is_part(trace, node):
    return node.target is operator.getitem and node.args[0] in trace.operation_of


def _is_read_again(node, early=()):
    """Returns whether an operation of the forward pass that is not in ``early``, i.e. that runs again, reads the node
    or a view of it."""
    pending = [node]
    while pending:
        node = pending.pop()
        for user in node.users:
            is_again = user.meta.get(_OF_FORWARD) and user not in early
            if node in regions.read_again(user) or (is_again and not is_view(user)):
                return True
            if is_again:
                pending.append(user)
    return False


def is_gradient(node):
    """Returns whether a node of a module that rewrite_joint() made has the value of a parameter's gradient."""
    return getattr(node, "meta", {}).get(_OF_GRADIENT, False)


def input_names(module):
    """Returns the names of a module's placeholders in order."""
    return [node.name for node in module.graph.find_nodes(op="placeholder")]


def rewrite_joint(joint, trace, steps, *, num_fwd_outputs, static_indices=(), update_function=None, transfers=None):
    """Returns (forward module, backward module), which together run ``steps`` and ``transfers`` (as in
    Rewriter.write())."""
    rewriter = Rewriter(trace, joint.graph)
    rewriter.update_function = update_function
    graph = rewriter.write(steps, num_fwd_outputs, transfers)
    tensors, numbers, opaque = rewriter.saved()
    module = torch.fx.GraphModule(joint, graph)
    static = _private.static_inputs(graph, static_indices)
    forward, backward = _private.extract(module, tensors, numbers, opaque, num_fwd_outputs=num_fwd_outputs,
                                         static_nodes=static)
    for part, after in ((forward, False), (backward, True)):
        names = _effect_names(rewriter, after)
        part.graph.eliminate_dead_code(
            is_impure_node=lambda n: n.op in ("placeholder", "output") or n.name in names)
        part.recompile()
    return forward, backward


def _effect_names(rewriter, backward):
    before = set(rewriter.first_side)
    return {node.name for node in rewriter.kept if (node not in before) == backward}


class _AsInForward(torch.fx.Interpreter):
    def __init__(self, module, default_dtype):
        super().__init__(module)
        self.default_dtype = default_dtype

    def call_function(self, target, args, kwargs):
        if target is torch.ops.higher_order.invoke_subgraph:
            return _AsInForward(args[0], self.default_dtype).run(*args[regions.BEFORE_ARGUMENTS:])
        return super().call_function(target, args, kwargs)

    def run_node(self, node):
        if not node.meta.get(_OF_FORWARD):
            return super().run_node(node)
        # All threads share the default dtype, so it is left alone where that makes no difference.
        is_needed = torch.get_default_dtype() != self.default_dtype and _may_use_default(node)
        with _private.no_autocast(), _with_default(self.default_dtype) if is_needed else contextlib.nullcontext():
            return super().run_node(node)


@contextlib.contextmanager
def _with_default(dtype):
    present = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(present)


def _may_use_default(node):
    """Returns whether the result of a node may depend on torch's default dtype. That of torch's own operators does not
    if all tensors that they read are of floating point, because these decide the type of the result, unless the operator
    has an argument dtype= that is left out."""
    if not isinstance(node.target, torch._ops.OpOverload) or node.target.namespace not in ("aten", "prims"):
        return True
    if node.kwargs.get("dtype") is None and any(argument.name == "dtype" for argument in node.target._schema.arguments):
        return True
    values = [value for n in node.all_input_nodes if isinstance(value := n.meta.get("val"), torch.Tensor)]
    return not values or not all(value.is_floating_point() or value.is_complex() for value in values)


def recomputing_as_in_forward(module, run, default_dtype):
    """Wraps ``run`` of a backward module so that recomputation gives values of the same types as the forward pass:
    without autocast even if the backward pass is called under autocast, because the graph already contains the casts of
    the forward pass, and with the default dtype of the forward pass. For forward passes, AOTAutograd itself turns
    autocast off, and torch.compile compiles again if the default dtype has changed."""
    def call(args):
        if _private.autocasts() or torch.get_default_dtype() != default_dtype:
            return _AsInForward(module, default_dtype).boxed_run(args)
        return run(args)

    return call


def rewrite_module(module, trace, steps, transfers=None):
    """Returns a module that runs ``steps`` and ``transfers`` (as in Rewriter.write()) of a graph without a backward
    pass."""
    graph = Rewriter(trace, module.graph).write(steps, transfers=transfers)
    new = torch.fx.GraphModule(module, graph)
    new.meta = dict(module.meta)
    return new
