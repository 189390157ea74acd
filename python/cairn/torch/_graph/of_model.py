"""The graph of a model's training step is traced without running it."""

import pathlib
import traceback

import torch
from torch.utils import _pytree as pytree

import cairn

from .. import _private
from .._plan.partition import Options, prepare
from .._rewrite.tangents import expect_missing


class _Traced(Exception):
    """Carries a graph out of the tracer."""

    def __init__(self, joint, forward_outputs):
        super().__init__()
        self.joint, self.forward_outputs = joint, forward_outputs


def graph(model, inputs, *, device=None, backward=True, name=None):
    """The training step of ``model(*inputs)`` as a cairn.Graph: forward and, unless ``backward`` is False, backward.

    Nothing is computed and nothing is allocated: the trace is made with fake tensors, so that a model larger than this
    machine can be asked for its memory. Build it under ``torch.device("meta")``; its inputs may be meta tensors, too.

    device: the device that tensors are assumed to be on, such as "cuda"; None: where they are, or "cpu" for meta
    tensors. Costs are estimated for it. Without a GPU here the operations are still those of the CPU.

    ``graph.baseline.peak`` is what the step needs beside the resident tensors, ``cairn.solve(graph, budget,
    peak_only=True)`` shows what a budget costs, ``cairn.least_budget(graph)`` finds the least. A model that reads a
    tensor's values, for instance by ``.item()``, raises InputError.
    """
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    names, tensors = _state(model)
    flat, structure = pytree.tree_flatten(inputs)
    positions = [i for i, leaf in enumerate(flat) if isinstance(leaf, torch.Tensor)]
    given = tensors + [flat[i] for i in positions]
    device = device or next((t.device.type for t in given if t.device.type != "meta"), "cpu")
    here = "cpu" if device.startswith("cuda") and not torch.cuda.is_available() else device
    mode, fakes = _private.fake_like(given, here)
    split = len(names)

    def function(*given):
        leaves = list(flat)
        for i, tensor in zip(positions, given[split:]):
            leaves[i] = tensor
        with _private.replaced_tensors(model, dict(zip(names, given[:split]))):
            out = model(*pytree.tree_unflatten(leaves, structure))
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
        with mode, torch.set_grad_enabled(backward):
            _private.trace_functional(function, fakes, on_joint=joint, on_module=alone)(*fakes)
    except _Traced as traced:
        primals = [n for n in traced.joint.graph.nodes if n.op == "placeholder" and _private.is_primal(n)]
        parameters = primals[:split]
        expect_missing(traced.joint.graph)
        _, built, _ = prepare(traced.joint.graph, Options(None, calibrate=False), name=name or type(model).__name__,
                              forward_outputs=traced.forward_outputs, parameters=parameters, device=device.split(":")[0])
        return built
    except RuntimeError as error:  # from fake tensors, or from a model that is wrong
        why = " ".join(str(error).split()) or type(error).__name__
        raise cairn.InputError(f"graph: the model cannot be traced with tensors that have no values{_place_of(error)}: "
                               f"{why}") from error
    raise cairn.Error("graph: the model was not traced")


def _place_of(error):
    """', at model.py:12' for the innermost line that is neither torch's nor Cairn's; empty where there is none."""
    packages = [pathlib.PurePath(package.__file__).parent for package in (torch, cairn)]
    own = [f for f in traceback.extract_tb(error.__traceback__)
           if not any(folder in pathlib.PurePath(f.filename).parents for folder in packages)]
    return f", at {pathlib.PurePath(own[-1].filename).name}:{own[-1].lineno}" if own else ""


def _state(model):
    """Names and tensors of parameters and buffers, each tensor once."""
    found = {}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        found.setdefault(name, tensor)
    return list(found), list(found.values())
