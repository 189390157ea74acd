"""Traces the graph of a model's training step without running the model."""

import pathlib
import traceback

import torch
from torch.utils import _pytree as pytree

import cairn

from .. import _private
from .._plan.partition import Options, prepare
from .._rewrite.tangents import expect_missing
from .kept_state import KeptState


class _Traced(Exception):
    """Raised to leave the tracer as soon as the graph is traced. Carries the graph."""

    def __init__(self, joint, forward_outputs):
        super().__init__()
        self.joint, self.forward_outputs = joint, forward_outputs


def graph(model, inputs, *, device=None, backward=True, name=None):
    """Returns the training step of ``model(*inputs)`` as a cairn.Graph. The graph has the forward pass and, unless
    ``backward`` is False, the backward pass.

    Nothing is computed or allocated, because the model is traced with fake tensors. What the model keeps in attributes,
    such as a mask that it caches, is as before afterwards. The model can be larger than the memory of this machine:
    build it under ``torch.device("meta")``. Its inputs may be meta tensors, too.

    device: the device on which tensors are assumed to be, such as "cuda". None: the device on which they are, or "cpu"
    for meta tensors. Costs are estimated for this device. If this machine has no GPU, torch traces the operations that
    it would use on a CPU, also for device="cuda".

    ``graph.baseline.peak`` is the number of bytes that the step needs in addition to the resident tensors.
    ``cairn.solve(graph, budget, peak_only=True)`` finds a schedule whose peak is within a budget, and says how much more
    time it takes than a step without a budget.
    ``cairn.least_budget(graph)`` finds the least budget. Raises InputError if the model reads a tensor's values, for
    instance by ``.item()``.
    """
    return traced_step(model, inputs, device=device, backward=backward, name=name)[1]


def traced_step(model, inputs, *, device=None, backward=True, name=None):
    """Returns (the Trace of a training step, its cairn.Graph); see graph()."""
    if not isinstance(model, torch.nn.Module):
        raise cairn.InputError(f"graph: the model is a {type(model).__name__}; it must be a torch.nn.Module")
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    state = dict([*model.named_parameters(), *model.named_buffers()])
    flat, structure = pytree.tree_flatten(inputs)
    positions = [i for i, leaf in enumerate(flat) if isinstance(leaf, torch.Tensor)]
    given = [*state.values(), *(flat[i] for i in positions)]
    _refuse_other_layouts([*state, *(f"input {i}" for i in positions)], given)
    device = str(device or next((t.device.type for t in given if t.device.type != "meta"), "cpu"))
    if device.split(":")[0] not in ("cpu", "cuda"):
        raise cairn.InputError(f"graph: device: 'cpu' or 'cuda', not {device!r}")
    here = "cpu" if device.startswith("cuda") and not torch.cuda.is_available() else device
    with torch.inference_mode(False):
        mode, fakes = _private.fake_like(given, here)
    split = len(state)
    kept = KeptState((model, inputs))

    def function(*given):
        leaves = list(flat)
        for i, tensor in zip(positions, given[split:]):
            leaves[i] = tensor
        try:
            with _private.replaced_tensors(model, dict(zip(state, given))):
                out = model(*pytree.tree_unflatten(leaves, structure))
        finally:
            kept.restore()
        tensors = [leaf for leaf in pytree.tree_leaves(out) if isinstance(leaf, torch.Tensor)]
        if not tensors:
            raise cairn.InputError("graph: the model returns no tensor")
        return tensors

    def joint(module, _, *, num_fwd_outputs, **__):
        raise _Traced(module, num_fwd_outputs)

    def alone(module, _):
        raise _Traced(module, None)

    if not backward:
        fakes = [f.detach() for f in fakes]
    try:
        with (_private.compile_lock(), mode, torch.inference_mode(False), torch.set_grad_enabled(backward),
              _private.compiling_flag(True)):
            _private.trace_functional(function, fakes, on_joint=joint, on_module=alone)(*fakes)
    except _Traced as traced:
        primals = [n for n in traced.joint.graph.nodes if n.op == "placeholder" and _private.is_primal(n)]
        parameters = primals[:split]
        expect_missing(traced.joint.graph)
        trace, built, _ = prepare(traced.joint.graph, Options(None, calibrate=False), name=name or type(model).__name__,
                              forward_outputs=traced.forward_outputs, parameters=parameters, device=device.split(":")[0])
        return trace, built
    except Exception as error:  # raised by fake tensors, or by the model itself
        if _in_package(error, torch.nested):
            why = "a nested (jagged) tensor has sizes that depend on values"
        elif isinstance(error, RuntimeError):
            why = " ".join(str(error).split()) or type(error).__name__
        else:
            raise
        raise cairn.InputError(f"graph: the model cannot be traced with tensors that have no values{_place_of(error)}: "
                               f"{why}") from error
    raise cairn.Error("graph: the model was not traced")


def _refuse_other_layouts(names, tensors):
    """Raises an error for a sparse, nested or quantized tensor, which shape and strides do not describe."""
    for name, tensor in zip(names, tensors):
        if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
            kind = "nested" if tensor.is_nested else "quantized" if tensor.is_quantized else tensor.layout
            raise cairn.InputError(f"graph: {name} is a {kind} tensor, and only plain strided tensors can be traced")


def _in_package(error, package):
    folder = pathlib.PurePath(package.__file__).parent
    return any(folder in pathlib.PurePath(f.filename).parents for f in traceback.extract_tb(error.__traceback__))


def _place_of(error):
    """Returns a text such as ', at model.py:12' for the innermost line of the traceback outside of torch and Cairn;
    empty if there is none."""
    packages = [pathlib.PurePath(package.__file__).parent for package in (torch, cairn)]
    own = [f for f in traceback.extract_tb(error.__traceback__)
           if not any(folder in pathlib.PurePath(f.filename).parents for folder in packages)]
    return f", at {pathlib.PurePath(own[-1].filename).name}:{own[-1].lineno}" if own else ""
