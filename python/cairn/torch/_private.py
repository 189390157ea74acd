"""All uses of torch's private names, so that a new version of torch can break only this file.

``python/tests/torch/private_test.py`` has a test for each function.
"""

import contextlib
import ctypes
import dataclasses
import functools
import inspect
import logging
import os
import pathlib
import re
import sys
import threading
import weakref

import sympy
import torch
import torch.multiprocessing.reductions
from torch._dynamo import compiled_autograd, symbolic_convert, trace_rules
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import ShortenTraceback, SkipFrame, TensorifyScalarRestartAnalysis
from torch._functorch import partitioners
from torch._functorch._aot_autograd.descriptors import (GradAOTOutput, InputMutationAOTOutput,
                                                       PlainAOTInput, SubclassGetAttrAOTInput, TangentAOTInput)
from torch.fx.experimental import proxy_tensor, symbolic_shapes
from torch.optim import optimizer
from torch.utils._ordered_set import OrderedSet
from torch.utils._python_dispatch import _disable_current_modes, is_traceable_wrapper_subclass

RESTARTS = (SkipFrame, TensorifyScalarRestartAnalysis)  # exceptions by which torch.compile talks to itself
_FORWARD, _BACKWARD = "is_forward", "is_backward"


# --- torch.compile's front end

class _LeftToPython:
    """May be entered by any number of threads at once; its changes are undone when the last thread has left."""

    def __init__(self):
        self.lock = threading.Lock()
        self.entered = 0
        self.files = frozenset()
        self.steps = {}  # steps of third-party optimizers, whose files may contain code to compile

    def __enter__(self):
        with self.lock:
            self.entered += 1
            if self.entered == 1:
                self.files = _python_files() - trace_rules.FORCE_SKIP_FILES
                trace_rules.FORCE_SKIP_FILES.update(self.files)
                self.steps = {kind: kind.step for kind in _subclasses(torch.optim.Optimizer)
                              if not kind.__module__.startswith("torch.") and "step" in vars(kind)}
                for kind, step in self.steps.items():
                    kind.step = _disabled(step)

    def __exit__(self, *error):
        with self.lock:
            self.entered -= 1
            if self.entered == 0:
                trace_rules.FORCE_SKIP_FILES.difference_update(self.files)
                for kind, step in self.steps.items():
                    kind.step = step


left_to_python = _LeftToPython()  # within, torch.compile compiles no optimizer, clipping or gradient scaler: they run as they are
_disabled = functools.cache(torch.compiler.disable)  # guards look at its identity


def _subclasses(kind):
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


@functools.cache
def _python_files():
    root = pathlib.Path(torch.__file__).parent
    files = [*(root / "optim").rglob("*.py"), root / "nn" / "utils" / "clip_grad.py", root / "amp" / "grad_scaler.py"]
    return frozenset(file.as_posix() for file in files)


def suppresses_errors():
    """Whether the user of torch.compile asked that its errors be reported and the function run as it is."""
    return bool(torch._dynamo.config.suppress_errors)


def shows_frames():
    """Whether errors should show the frames of torch.compile."""
    return bool(torch._dynamo.config.verbose)


class _LimitFilter(logging.Filter):
    """Sees the log message of torch.compile when it gives up a function."""

    def __init__(self):
        super().__init__()
        self.listeners = weakref.WeakSet()

    def filter(self, record):
        if str(record.msg).startswith("torch._dynamo hit config.") and len(record.args) > 2:
            limit, value, function = record.args[:3]
            for listener in list(self.listeners):
                listener.gave_up(compiled_frame(), limit, value, function)
        return True


_limits = _LimitFilter()


def tell_of_limits(listener):
    """Calls ``listener.gave_up(frame, limit, value, function)`` when torch.compile has compiled so many variants of a
    function that it runs further ones as they are. ``limit``: the limit's name in torch._dynamo.config; ``value``: its
    value; ``function``: the function as text."""
    logging.getLogger("torch._dynamo.convert_frame").addFilter(_limits)
    _limits.listeners.add(listener)


def compiled_frame():
    """The number of the function that torch.compile compiles now: the same for all its variants until
    torch._dynamo.reset(). None where none is compiled."""
    compile_id = torch._guards.CompileContext.current_compile_id()
    return None if compile_id is None else compile_id.frame_id


def largest_differentiated(module):
    """Number of elements of the largest result of a captured module for which AOTAutograd will make a backward pass; 0:
    there is none."""
    output = next(iter(reversed(module.graph.nodes)))
    values = [leaf.meta.get("example_value") for leaf in torch.utils._pytree.arg_tree_leaves(*output.args)
              if isinstance(leaf, torch.fx.Node)]
    return max((max(1, hint(v.numel())) for v in values if isinstance(v, torch.Tensor) and v.requires_grad), default=0)


def evaluates():
    """Whether torch.compile captures a function now whose local modules, at least one, are all in evaluation mode."""
    try:
        values = symbolic_convert.InstructionTranslator.current_tx().f_locals.values()
    except AttributeError:  # nothing is captured
        return False
    modules = [v for v in values if isinstance(v, torch.nn.Module)]
    return bool(modules) and not any(m.training for m in modules)


def bound_sizes(module):
    """Adds guards on the symbolic sizes of a captured module's inputs, so that larger sizes compile it anew. Where
    torch._dynamo.mark_dynamic forbids that, plans are made for the max= of a size (``hint``). Returns the sizes without
    max=, which may grow: (position of the input, its dimension or None for a number, size now)."""
    unbounded = []
    for position, node in enumerate(module.graph.find_nodes(op="placeholder")):
        value = node.meta.get("example_value")
        for dimension, size in _symbolic_sizes(value):
            marked = _marked_ranges(size.node.shape_env)
            if not size.node.expr.free_symbols & marked.keys():
                bool(size <= hint(size))
            elif size.node.expr in marked:
                largest = marked[size.node.expr].upper
                if largest.is_Integer:
                    _plan_for(size, largest)
                else:
                    unbounded.append((position, dimension, hint(size)))
        for size in _sizes_within(value):
            if size.node.expr.free_symbols & _marked_ranges(size.node.shape_env).keys():
                continue
            if hint(size) == _LEAST_SYMBOLIC and size.node.expr.is_symbol:  # torch refuses guards for one value
                _plan_for(size, _LEAST_SYMBOLIC + 1)
            bool(size <= hint(size))
    return unbounded


_LEAST_SYMBOLIC = 2  # sizes of 0 and 1 are never symbolic


def _plan_for(size, largest):
    _planned.setdefault(size.node.shape_env, {})[size.node.expr] = sympy.Integer(largest)


def _symbolic_sizes(value):
    """(dimension, size) of each symbolic size of a value that torch.compile captured."""
    return [(dimension, size) for dimension, size in (
        enumerate(value.shape) if isinstance(value, torch.Tensor) else [(None, value)]) if isinstance(size, torch.SymInt)
        and not symbolic_shapes.is_nested_int(size) and not _from_data(size)]


def _sizes_within(value):
    """The symbolic sizes of the tensors inside a tensor subclass: a tensor of ragged rows has values and row
    lengths."""
    if is_traceable_wrapper_subclass(value):
        for name in value.__tensor_flatten__()[0]:
            part = getattr(value, name)
            yield from (size for _, size in _symbolic_sizes(part))
            yield from _sizes_within(part)


_planned = weakref.WeakKeyDictionary()  # ShapeEnv -> {symbol: the size that plans are made for}


def _marked_ranges(shape_env):
    """symbol -> range of each size that was marked with a range, which no guard may narrow."""
    ranges = {}
    for tracked in shape_env.tracked_fakes or ():
        constraints = getattr(tracked.symbolic_context, "constraint_sizes", ())
        if isinstance(tracked.fake, torch.Tensor):
            for size, constraint in zip(tracked.fake.shape, constraints):
                if isinstance(size, torch.SymInt) and isinstance(constraint, symbolic_shapes.StrictMinMaxConstraint):
                    if size.node.expr.is_symbol:
                        ranges[size.node.expr] = constraint.vr
    return ranges


def pin_sizes(sizes, graph):
    """Guards input sizes as they are where a smaller input would make one of these sizes larger (as with padding to a
    length)."""
    known = {}  # symbol -> SymInt
    for node in graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        for size in (value.shape if isinstance(value, torch.Tensor) else [value]):
            if isinstance(size, torch.SymInt) and not _from_data(size) and size.node.expr.is_symbol:
                known[size.node.expr] = size
    for expression in {size.node.expr for size in sizes if isinstance(size, torch.SymInt)}:
        if not expression.free_symbols <= known.keys():
            continue
        now = {symbol: hint(known[symbol]) for symbol in expression.free_symbols}
        for symbol, size in now.items():
            if any(expression.subs({**now, symbol: less}) > expression.subs(now) for less in {2, size // 2} if less < size):
                if symbol in _marked_ranges(known[symbol].node.shape_env):
                    raise NotImplementedError("a size that was marked dynamic makes something larger when it is smaller")
                bool(known[symbol] == size)


def _from_data(size):
    return bool(symbolic_shapes.free_unbacked_symbols(size))


# --- Graphs

def is_sym(value):
    """Whether the value is a number known only when the graph runs: a SymInt, SymFloat or SymBool."""
    return isinstance(value, proxy_tensor.py_sym_types)


def hint(value, fallback=4096):
    """The integer that a symbolic size had when the graph was traced, or its largest value where it was marked with
    one; ``fallback`` where it depends on data. Other symbolic numbers are computed from such sizes. Adds no guards."""
    if isinstance(value, int):
        return value
    if isinstance(value, (torch.SymFloat, torch.SymBool)):
        return _number_of(value, fallback)
    if not isinstance(value, torch.SymInt):
        return int(value)
    environment = value.node.shape_env
    planned = _planned.get(environment) if environment is not None else None
    if planned:
        expression = value.node.expr.xreplace({environment.replace(symbol): size for symbol, size in planned.items()})
        return _hint_of(environment, expression, fallback)
    if hasattr(symbolic_shapes, "optimization_hint"):
        return int(symbolic_shapes.optimization_hint(value, fallback=fallback))
    return _hint_of(environment, value.node.expr, fallback) if environment is not None else fallback


def _number_of(value, fallback):
    kind, expression = (float if isinstance(value, torch.SymFloat) else bool), value.node.expr
    sizes = {symbol: _hint_of(value.node.shape_env, symbol, fallback) for symbol in expression.free_symbols}
    try:
        return kind(expression.xreplace(sizes))
    except TypeError:  # depends on data
        return kind(1)


def _hint_of(environment, expression, fallback):
    if hasattr(environment, "optimization_hint"):
        return int(environment.optimization_hint(expression, fallback=fallback))
    return int(environment.size_hint(expression, allow_none=True) or fallback)


def is_tangent(node):
    return partitioners._is_tangent(node)


def is_primal(node):
    return partitioners._is_primal(node) and not partitioners._is_backward_state(node)


def static_inputs(graph, indices):
    """The placeholders of a joint graph that AOTAutograd calls static, such as parameters and tensors of modules.
    ``indices`` number the arguments: an argument may be several placeholders, and tokens may stand before them."""
    indices, inputs = set(indices or ()), [node for node in graph.find_nodes(op="placeholder") if is_primal(node)]
    if all(node.meta.get("desc") is None for node in inputs):
        return [node for i, node in enumerate(inputs) if i in indices]
    return [node for node in inputs if input_position(node.meta.get("desc")) in indices]


def is_backward_state(node):
    return partitioners._is_backward_state(node)


def is_backward(node):
    """Whether the tracer says that the backward pass made this node."""
    return node.meta.get("partitioner_tag") in (_BACKWARD, "must_be_in_backward")


def tell_sides(graph, results):
    """Marks the unmarked nodes of an autograd.Function's own backward pass as backward. The tracer marks the nodes of
    the forward pass but may leave those unmarked, as well as views of written tensors among the forward pass's
    results."""
    nodes = [node for node in graph.nodes if node.op == "call_function"]
    if not any(node.meta.get("partitioner_tag") == _FORWARD for node in nodes):  # torch 2.9 marks no forward pass
        return
    needed = {n for n in results if isinstance(n, torch.fx.Node)}
    for node in reversed(nodes):
        if node in needed:
            needed.update(node.all_input_nodes)
    for node in nodes:
        if "partitioner_tag" not in node.meta:
            set_side(node, node not in needed)


def set_side(node, backward, only_there=False):
    """Tells the partitioner which pass a node belongs to; ``only_there``: even where the other could compute it."""
    if only_there:
        node.meta["partitioner_tag"] = "must_be_in_backward" if backward else "must_be_in_forward"
    else:
        node.meta["partitioner_tag"] = _BACKWARD if backward else _FORWARD


def check_version(node):
    """Makes AOTAutograd check a saved node for writes. It leaves that check out for tensors that an autograd.Function
    keeps in its context without save_for_backward."""
    node.meta.pop("saved_tensor_with_no_vc_check", None)


def checkpoint_policy(node):
    """The name of a node's policy of selective checkpointing, such as "MUST_SAVE"; None where it has none."""
    return getattr(node.meta.get("recompute"), "name", None)


def outputs(graph):
    """What a graph returns, in order: nodes and other values."""
    return torch.utils._pytree.arg_tree_leaves(*next(iter(reversed(graph.nodes))).args)


def output_descriptions(graph):
    """The description of each output of a joint graph, in order; None for an output without one."""
    output = next(iter(reversed(graph.nodes)))
    count = len(outputs(graph))
    return list(output.meta.get("desc") or [None] * count)


def mutated_inputs(graph):
    """Placeholders of a joint graph that are written when the forward pass has ended."""
    written = {d.mutated_input for d in output_descriptions(graph) if is_mutation(d)}
    return [node for node in graph.find_nodes(op="placeholder") if node.meta.get("desc") in written]


def is_gradient(description):
    return isinstance(description, GradAOTOutput)


def input_position(description):
    """Index of the argument of the captured function that the description names or is a part of; None where it is
    neither."""
    while isinstance(description, SubclassGetAttrAOTInput):
        description = description.base
    return description.idx if isinstance(description, PlainAOTInput) else None


def argument_of(description, inputs):
    """The argument that the description names or is a part of; None where it is neither."""
    position = input_position(description)
    return inputs[position] if position is not None and position < len(inputs) else None


def input_of(description, inputs):
    """The argument, or tensor inside an argument, that the description names; None where it names neither."""
    if isinstance(description, SubclassGetAttrAOTInput):
        return getattr(input_of(description.base, inputs), description.attr, None)
    return argument_of(description, inputs)


def result_of(description, descriptions):
    """Index of the result whose gradient this input of the backward pass is; None: not known."""
    output = description.output if isinstance(description, TangentAOTInput) else None
    return next((i for i, other in enumerate(descriptions) if other is not None and other == output), None)


def written_inputs(graph, forward_outputs=None):
    """(index among the forward pass's results, description of the input that it is copied into when the pass has
    ended)."""
    return [(i, d.mutated_input) for i, d in enumerate(output_descriptions(graph)[:forward_outputs]) if is_mutation(d)]


def compiling():
    """(number of the graph that AOTAutograd is about to cut into forward and backward, its metadata of inputs and
    results), read from its stack frame as it hands on neither. (None, None) where it does not cut."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        names = frame.f_locals if "fw_metadata" in code.co_varnames + code.co_cellvars else {}
        if "fw_metadata" in names and "aot_config" in names:
            return names["aot_config"].aot_id, names["fw_metadata"]
        frame = frame.f_back
    return None, None


def unseen_writes(metadata, graph, forward_outputs):
    """Indices of the forward pass's results that are copied into inputs without autograd's knowledge. ``metadata``: as
    compiling() gives it."""
    written = written_inputs(graph, forward_outputs)
    positions = metadata.mutated_inp_runtime_indices if metadata is not None else []
    if len(positions) != len(written):
        return []
    have_gradients = {description.grad_of for description, leaf in zip(output_descriptions(graph), outputs(graph))
                      if is_gradient(description) and leaf is not None}
    infos = [metadata.input_info[position] for position in positions]
    return [i for (i, description), info in zip(written, infos)
            if _is_unseen(info) or (info.is_leaf and description in have_gradients)]  # a leaf can be written so alone


def _is_unseen(info):
    return info.mutates_data and (info.mutations_under_no_grad_or_inference_mode or info.mutations_hidden_from_autograd)


def hide_writes():
    """Makes AOTAutograd hide from autograd the writes to inputs that the model hides, in the graph that is being
    compiled. When it writes inputs after the graph, it would do so only for leaves."""
    context = torch._guards.TracingContext.try_get()
    inputs = context.fw_metadata.input_info if context is not None and context.fw_metadata is not None else []
    for i, info in enumerate(inputs):
        if _is_unseen(info):
            inputs[i] = dataclasses.replace(info, is_leaf=True)


def is_mutation(description):
    """Whether an output of the forward pass is copied into an input when the pass has ended."""
    return isinstance(description, InputMutationAOTOutput)


def extract(joint, saved, saved_sym, saved_opaque, *, num_fwd_outputs, static_nodes):
    """Cuts a joint module, in the order of its nodes, into the forward module and the backward module."""
    function = partitioners._extract_fwd_bwd_modules
    extra = {}
    if "saved_opaque_nodes" in inspect.signature(function).parameters:
        extra["saved_opaque_nodes"] = saved_opaque
    elif saved_opaque:
        raise NotImplementedError("opaque objects kept for the backward pass")
    for node in (*saved, *saved_sym):  # torch 2.9 does not save a node that is only in the forward pass
        if node.meta.get("partitioner_tag") == "must_be_in_forward":
            node.meta["partitioner_tag"] = _FORWARD
    return function(joint, saved, saved_sym_nodes=saved_sym, num_fwd_outputs=num_fwd_outputs,
                    static_lifetime_input_nodes=OrderedSet(static_nodes), **extra)


def inductor_config(mode, options):
    """The settings of Inductor, by name, that torch.compile's ``mode`` and ``options`` stand for. Raises RuntimeError
    for unknown ones."""
    return dict(torch._TorchCompileInductorWrapper(mode, options, None).config)


def compile_with_inductor(module, inputs, partition, finish, config=None):
    """The module compiled by Inductor; ``partition(joint, inputs, num_fwd_outputs=..., ...)`` cuts its joint graphs.

    ``finish(run, module, is_backward, is_inference)`` gets each compiled part and returns the function to run in its
    place.
    settings of Inductor.
    """
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner
    from torch._inductor.custom_graph_pass import CustomPartitionerFn

    class Partitioner(CustomPartitionerFn):
        def __call__(self, joint, joint_inputs, **options):
            return partition(joint, joint_inputs, **options)

        def uuid(self):
            return None  # the result depends on more than the graph: this keeps Inductor's own cache out

    def compile_part(part, part_inputs, **options):
        run = compile_fx_inner(part, part_inputs, **options)
        return finish(run, part, bool(options.get("is_backward")), bool(options.get("is_inference")))

    with torch._functorch.config.patch(enable_autograd_cache=False):
        return compile_fx(module, inputs, inner_compile=compile_part,
                          config_patches={**(config or {}), "custom_partitioner_fn": Partitioner(), "fx_graph_cache": False})


# --- Execution

class _BoxedCodeGen(torch.fx.graph.CodeGen):
    """Generates code that takes its arguments out of a list and empties it, so that each is freed after its last
    use."""

    def gen_fn_def(self, free_vars, maybe_return_annotation, **options):
        names = [v.split(":")[0].split("=")[0].strip() for v in free_vars if v != "self"]
        lines = [f"def {getattr(self, '_func_name', 'forward')}(self, args_list){maybe_return_annotation}:"]
        if names:
            lines += ["    args_iter = iter(args_list)", *(f"    {name} = next(args_iter)" for name in names),
                      "    del args_iter", "    args_list.clear()"]
        return "\n".join(lines)


def boxed(module):
    """The module as a function of one list of arguments, which it empties."""
    module.graph.set_codegen(_BoxedCodeGen())
    module.recompile()

    def run(args):
        return module.forward(args)

    run._boxed_call = True
    return run


@contextlib.contextmanager
def no_modes():
    """Within: real tensors and kernels, whatever is being traced around. Restores random state and autocast
    afterwards."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() and torch.cuda.is_initialized() else []
    with _disable_current_modes(), torch._C._DisableAutocast(), torch.no_grad():
        with torch.random.fork_rng(devices=list(devices)):
            yield


def asked_by_tracer(frame):
    """Whether the frame belongs to Dynamo, or to the code that makes fake tensors for it: both look at every tensor in
    reach."""
    tracers, between = _tracers()
    while frame is not None and frame.f_code.co_filename in between:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(tracers)


@functools.cache
def _tracers():
    """(folders of tracers, files whose functions ask on behalf of others)."""
    root = pathlib.Path(torch.__file__).parent
    return (tuple(f"{root / part}{os.sep}" for part in ("_dynamo", "_subclasses")),
            tuple(str(root / part) for part in ("_tensor.py", "overrides.py", "functional.py")))


def as_plain_tensors():
    """Within: functions of torch treat subclasses of tensors as plain tensors."""
    return torch._C.DisableTorchFunctionSubclass()


def no_autocast():
    return torch._C._DisableAutocast()


def autocasts():
    """Whether autocast is on now for some device."""
    return torch._C._is_any_autocast_enabled()


@contextlib.contextmanager
def no_optimizer_hooks():
    """Within: the hooks called when any optimizer steps are removed."""
    kept = [(hooks, list(hooks.items())) for hooks in (optimizer._global_optimizer_pre_hooks,
                                                       optimizer._global_optimizer_post_hooks)]
    for hooks, _ in kept:
        hooks.clear()
    try:
        yield
    finally:
        for hooks, items in kept:
            hooks.update(items)


def called_boxed(function):
    """Marks the function of one list of arguments as one that may empty the list, and hides it from torch.compile."""
    function._boxed_call = True
    return torch._dynamo.disable(function)


def left_alone(function):
    """The function, of which torch.compile compiles nothing."""
    return torch._dynamo.disable(function)


def generator_states():
    """States of the default generators: of the CPU, and of the GPUs that are in use."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states.update(enumerate(torch.cuda.get_rng_state_all()))
    return states


def set_generator_states(states):
    for device, state in states.items():
        if device == "cpu":
            torch.set_rng_state(state)
        else:
            torch.cuda.set_rng_state(state, device)


def fake_mode_of(values):
    """The mode that made these fake tensors; None where none of the values is one."""
    for value in values:
        if isinstance(value, torch._subclasses.FakeTensor):
            return value.fake_mode
    return None


def accumulates(leaf):
    """Within a backward pass: whether it adds to the gradient of this leaf."""
    try:
        return torch._C._will_engine_execute_node(torch.autograd.graph.get_gradient_edge(leaf).node)
    except RuntimeError:  # the gradient is handed to a caller
        return False


def metadata_of_node():
    """Within a backward pass: the ``metadata`` of the node that runs now; empty where there is none."""
    node = torch._C._current_autograd_node()
    return {} if node is None else node.metadata


def free_unchecked():
    """Within a backward pass that AOTAutograd compiled, once it has its arguments: frees the saved tensors that are not
    checked for writes. AOTAutograd would keep those until autograd's graph is dropped."""
    node = torch._C._current_autograd_node()
    if getattr(node, "_tensors_no_vc_check", None):
        node._tensors_no_vc_check = []


def leaves_of_node():
    """Within a backward pass: (leaf, bytes of its gradient) for each leaf that the running node hands a gradient to."""
    return [(variable, variable.numel() * variable.element_size()) for node, _ in torch._C._current_autograd_node().next_functions
            if (variable := getattr(node, "variable", None)) is not None]


def nodes_made():
    """A number that grows with each node that this thread adds to autograd's graph."""
    return torch.autograd._get_sequence_nr()


def backward_node(tensors, made_before, graph=None):
    """The node in autograd's graph of the backward pass of a graph that AOTAutograd compiled, searched from the graph's
    results and written inputs (``tensors``). Only nodes made since ``nodes_made()`` was ``made_before`` count; None
    where there is none. Views of results, and written inputs, have nodes of their own before it. ``graph``: its number,
    as compiling() gives it; other threads number their nodes apart."""
    seen, pending = set(), [_function_of(t) for t in tensors if isinstance(t, torch.Tensor)]
    while pending:
        found = []
        for node in pending:
            if node is None or node in seen or node._sequence_nr() < made_before:
                continue
            seen.add(node)
            number = getattr(getattr(type(node), "_forward_cls", None), "_aot_id", None)
            if number is not None and graph in (None, number) and "cairn" not in node.metadata:
                return node
            found += [before for before, _ in node.next_functions]
        pending = found
    return None


def _function_of(tensor):
    try:
        return tensor.grad_fn
    except RuntimeError:  # a view that was made under no_grad and written since
        return None


def graph_task():
    """The number of the backward pass that runs in this thread; -1: none does."""
    return torch._C._current_graph_task_id()


def weak_storage(storage):
    """A weak reference to a storage: ``expired()`` says whether its memory has been freed."""
    return torch.multiprocessing.reductions.StorageWeakRef(storage)


def splits_for_ddp():
    """Whether torch.compile, in its present capture, splits the graph at the buckets of DistributedDataParallel."""
    parallel = torch.nn.parallel.DistributedDataParallel
    return bool(torch._dynamo.config.optimize_ddp in (True, "ddp_optimizer") and parallel._get_active_ddp_module() is not None)


def gradients_are_copied():
    """Whether the running forward pass is that of a DistributedDataParallel whose gradients lie in its buckets, so that
    new gradients are copied there."""
    module = torch.nn.parallel.DistributedDataParallel._get_active_ddp_module()
    return module is not None and module.gradient_as_bucket_view


def saved_by_compiled_hooks(names, saved=()):
    """The arguments of a backward module, by name, that AOTAutograd gets from saved-tensor hooks compiled into its
    graphs. ``saved``: names that the forward module hands on without those hooks."""
    return [name for name in names if re.search(r"_hook_\d+$", name) and name not in saved]


def modes_of_user():
    """Names of the active modes that see the operations of a graph (TorchDispatchMode, TorchFunctionMode) and may
    change their results. Torch's own modes do not."""
    modes = [*torch.utils._python_dispatch._get_current_dispatch_mode_stack(), *torch.overrides._get_current_function_mode_stack()]
    return [type(mode).__qualname__ for mode in modes if type(mode).__module__.split(".")[0] != "torch"]


def saves_by_hooks():
    """Whether tensors saved now for a backward pass go through hooks (torch.autograd.graph.saved_tensors_hooks)."""
    return torch._C._autograd._top_saved_tensors_default_hooks(True) is not None


def keeps_graph():
    """Whether the running backward pass was asked to keep what is saved for it (retain_graph, create_graph)."""
    return torch._C._autograd._get_current_graph_task_keep_graph()


# --- Memory of inputs

def is_plain(value):
    """Whether the value is a strided tensor with a storage of its own: no subclass or functorch wrapper around other
    tensors, and no tensor of zeros without memory."""
    return (isinstance(value, torch.Tensor) and value.layout is torch.strided and
            type(value).__torch_dispatch__ is torch.Tensor.__torch_dispatch__ and not is_batched(value) and
            not value._is_zerotensor())


def is_batched(value):
    """Whether the value stands for many tensors, as within vmap and autograd.grad(is_grads_batched=True)."""
    functorch = torch._C._functorch
    return isinstance(value, torch.Tensor) and (functorch.is_functorch_wrapped_tensor(value) or
                                                functorch.is_legacy_batchedtensor(value))


def is_there(tensor):
    """Whether the storage of a plain tensor has all of its elements: it may have been resized."""
    last = tensor.storage_offset() + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
    return (last + 1) * tensor.element_size() <= tensor.untyped_storage().nbytes()


def owns_its_memory(tensor):
    """Whether torch allocated the storage for itself. Storage shared with numpy, a file or another process cannot be
    resized."""
    storage = tensor.untyped_storage()
    return storage.resizable() and not (tensor.device.type == "cpu" and storage.is_shared())


def tensors_of_storage(tensor):
    """Number of tensors in the storage of this one."""
    storage = tensor.untyped_storage()
    return torch._C._storage_Use_Count(storage._cdata) - 1  # without the storage's own object in Python


def holders(tensor):
    """Number of references to the tensor itself: its object in Python, its views, and other libraries by way of
    DLPack."""
    return tensor._use_count()


_ALIGNMENT = 64  # bytes: vectorized kernels begin at multiples of it, and round accordingly


def alignment_of(tensor):
    """Offset of a tensor from the last address at which a kernel may begin, in bytes."""
    return tensor.data_ptr() % _ALIGNMENT


def empty_aligned(shape, strides, alignment, *, dtype, device):
    """Memory for a tensor of that shape and strides; ``alignment``: the alignment_of another tensor."""
    width, size = dtype.itemsize, extent(shape, strides)
    memory = torch.empty(size + _ALIGNMENT // width, dtype=dtype, device=device)
    return torch.as_strided(memory, shape, strides, (alignment - memory.data_ptr()) % _ALIGNMENT // width)


def extent(shape, strides):
    """Number of elements from the first to the last of a tensor, gaps included."""
    return 0 if 0 in shape else 1 + sum((n - 1) * step for n, step in zip(shape, strides))


def copy_of_input(tensor):
    """A copy with the same strides and alignment, in a storage of its own."""
    new = empty_aligned(tensor.shape, tensor.stride(), alignment_of(tensor), dtype=tensor.dtype, device=tensor.device)
    target, source = (torch.as_strided(t, (extent(t.shape, t.stride()),), (1,)) for t in (new, tensor.detach()))
    target.copy_(source)
    return new.requires_grad_(tensor.requires_grad)


def autograd_is_compiled():
    """Whether backward passes are compiled now (compiled autograd)."""
    return torch._dynamo.config.compiled_autograd or compiled_autograd.compiled_autograd_enabled


# --- Measuring

_TINY = sys.float_info.min
_KERNEL_ENVIRONMENT = (
    "CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "DISABLE_ADDMM_CUDA_LT", *(f"{prefix}_{name}" for prefix in ("ONEDNN", "DNNL") for name in (  # a new name and the old one
        "MAX_CPU_ISA", "CPU_ISA_HINTS", "DEFAULT_FPMATH_MODE")),
    "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "TORCH_MKLDNN_MATMUL_MIN_DIM", "TORCH_CUDNN_V8_API_DISABLED",
    "CUDNN_CONV_WSCAP_DBG")


def _switch(owner, name):
    """The value of a setting, whether it is a value or a function that returns it. None where there is none, or where
    torch raises, as it does for an old setting when a newer one that covers it has been set."""
    try:
        value = getattr(owner, name, None)
        return value() if callable(value) else value
    except RuntimeError:
        return None


def kernel_settings():
    """What decides, beside an operation's arguments, which kernel runs: versions, and switches that users may turn."""
    backends = torch.backends
    switches = [torch.__version__, torch.get_num_threads(), backends.cpu.get_cpu_capability(), torch.get_default_dtype()]
    switches += [_TINY * 0.5 == 0]  # torch.set_flush_denormal, of this thread
    switches += [_switch(torch, name) for name in ("are_deterministic_algorithms_enabled", "get_float32_matmul_precision")]
    switches += [_switch(backends.cuda, name) for name in (
        "flash_sdp_enabled", "mem_efficient_sdp_enabled", "math_sdp_enabled", "cudnn_sdp_enabled",
        "fp16_bf16_reduction_math_sdp_allowed", "preferred_linalg_library", "preferred_blas_library")]
    switches += [_switch(backends.cuda.matmul, name) for name in (
        "allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction",
        "allow_fp16_accumulation")]
    switches += [_switch(backends.cudnn, name) for name in ("enabled", "benchmark", "deterministic", "allow_tf32")]
    switches += [_switch(backends.mkldnn, name) for name in ("enabled", "deterministic")]
    switches += [_switch(part, "fp32_precision") for backend in (backends, backends.cuda, backends.cudnn, backends.mkldnn)
                 for part in (backend, *(getattr(backend, name, None) for name in ("matmul", "conv", "rnn")))]
    switches += [os.environ.get(name) for name in _KERNEL_ENVIRONMENT]
    if torch.cuda.is_available():
        switches += [torch.version.cuda, backends.cudnn.version()]
    return " ".join(map(str, switches))


def is_out_of_memory(error):
    """Whether a kernel failed for lack of memory; the CPU's allocator has no error class of its own."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "allocate memory" in str(error)


def profiler_runs():
    """Whether a profiler is active: a second one cannot run beside it."""
    return torch._C._autograd._profiler_enabled()


@contextlib.contextmanager
def quiet_profiler():
    """Within: a profiler that starts prints nothing about itself, nor that there is no GPU."""
    given = os.environ.get("KINETO_LOG_LEVEL")
    os.environ["KINETO_LOG_LEVEL"] = given or "6"
    try:
        yield
    finally:
        if given is None:
            del os.environ["KINETO_LOG_LEVEL"]


class _QuietAllocator:
    """May be entered by any number of threads at once."""

    def __init__(self):
        self.lock = threading.Lock()
        self.entered = 0
        self.level = None  # the level before

    def __enter__(self):
        with self.lock:
            self.entered += 1
            log = _log_level()
            if self.entered == 1 and log is not None:
                self.level, log.value = log.value, max(log.value, _LOG_ERRORS)

    def __exit__(self, *error):
        with self.lock:
            self.entered -= 1
            if self.entered == 0 and self.level is not None:
                _log_level().value = self.level


quiet_allocator = _QuietAllocator()  # within, no memory block that is freed and was there before is told to the terminal
_LOG_ERRORS = 2  # the level of torch's C++ log that leaves out warnings


@functools.cache
def _log_level():
    """The log level of torch's C++ library, as a variable of it; None where it has another log."""
    for path in (pathlib.Path(torch.__file__).parent / "lib").glob("*c10.*"):
        try:
            return ctypes.c_int.in_dll(ctypes.CDLL(str(path)), "FLAGS_caffe2_log_level")
        except (OSError, ValueError):
            pass
    return None


def make_workspaces():
    """Makes cuBLAS allocate, for this thread and stream, the workspaces that it keeps from then on: for a product, and
    for one with a bias. A backward pass has a thread, and so workspaces, of its own."""
    with no_modes():
        ones = torch.ones(16, 16, device="cuda")
        torch.addmm(ones[0], ones, torch.mm(ones, ones))


class AllocatorHistory:
    """Records what CUDA's caching allocator does while it is entered. The profiler of torch 2.11 reports no frees
    there, and for allocations the size of the block rather than the requested size.

    Afterwards ``events`` has, in order on each device: (address, requested bytes; negative where they are freed).
    """

    def __enter__(self):
        torch.cuda.memory._record_memory_history("all", context=None, stacks="python")
        return self

    def __exit__(self, *error):
        try:
            traces = torch.cuda.memory._snapshot()["device_traces"]
        finally:
            torch.cuda.memory._record_memory_history(None)
        sign = {"alloc": 1, "free_requested": -1}
        self.events = [(entry["addr"], sign[entry["action"]] * entry["size"])
                       for trace in traces for entry in trace if entry["action"] in sign]


def history_can_be_recorded():
    """Whether a recording is possible: there can be only one at a time, and other allocators have none."""
    if not torch.cuda.is_initialized():
        return True
    if torch.cuda.get_allocator_backend() != "native":
        return False
    enabled = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    return enabled is None or not enabled()


def memory_profiler():
    """A profiler that records allocations. ``acc_events`` stops torch 2.11 from warning of the end of a cycle."""
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, acc_events=True)


def allocations(profiler):
    """The events of a finished profiler, in the order of time: (ns, bytes, address, device, name).

    ``bytes`` is positive where memory was allocated and negative where it was freed. ``bytes`` 0 is the begin of an
    operation that no other one called, or of a block under record_function named "cairn:...".
    """
    found = []
    pending = [(event, True) for event in profiler.profiler.kineto_results.experimental_event_tree()]
    while pending:
        event, outermost = pending.pop()
        pending.extend((child, False) for child in event.children)
        fields = event.extra_fields
        size = getattr(fields, "alloc_size", None)
        if size is None:
            if outermost or event.name.startswith("cairn:"):
                found.append((event.start_time_ns, 0, 0, None, event.name))
        elif size != 0:
            found.append((event.start_time_ns, size, fields.ptr, fields.device.type, event.name))
    found.sort(key=lambda entry: entry[0])
    return found


# --- Distributed

def collective_store():
    """The key-value store that all ranks share; None where there is one process."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return None
    if torch.distributed.get_world_size() < 2:
        return None
    return torch.distributed.distributed_c10d._get_default_store()


# --- Tracing

def trace_functional(function, inputs, *, on_joint=None, on_module=None):
    """Traces ``function`` of a flat list of tensors with AOTAutograd, without torch.compile's front end, and returns the
    compiled function.

    ``on_joint(joint, inputs, num_fwd_outputs=..., ...)`` gets a joint graph, where inputs require gradients, and returns the
    forward and the backward module; ``on_module(module, inputs)`` gets a graph without backward and returns what runs it.
    """
    from functorch.compile import aot_function

    def compiler(module, _):
        return boxed(module)

    return aot_function(function, fw_compiler=compiler, bw_compiler=compiler, inference_compiler=on_module or compiler,
                        partition_fn=on_joint, keep_inference_input_mutations=False)


@contextlib.contextmanager
def replaced_tensors(module, tensors):
    """Within: the module has other parameters and buffers, by name; ties stay ties."""
    with torch.nn.utils.stateless._reparametrize_module(module, tensors, tie_weights=True):
        yield


def fake_like(tensors, device=None):
    """(fake mode, tensors of the same shapes that hold no memory, on ``device`` or their own)."""
    mode = torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True)
    made = {}

    def fake(tensor):
        if tensor not in made:
            with mode:
                new = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device or tensor.device)
            made[tensor] = new.requires_grad_(tensor.requires_grad) if tensor.requires_grad else new
        return made[tensor]

    return mode, [fake(t) for t in tensors]
