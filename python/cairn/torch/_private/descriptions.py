"""Reads AOTAutograd's descriptions of a graph's inputs and results, which say for example which results are gradients
and which inputs are written."""

import dataclasses
import sys

import torch
from torch._functorch._aot_autograd.descriptors import (BufferAOTInput, GradAOTOutput, InputMutationAOTOutput, ParamAOTInput,
                                                        PlainAOTInput, SubclassGetAttrAOTInput, SubclassGetAttrAOTOutput,
                                                        TangentAOTInput)

from .joint import is_primal, outputs


def output_descriptions(graph):
    """Returns the description of each output of a joint graph, in order; None for an output without one."""
    output = next(iter(reversed(graph.nodes)))
    count = len(outputs(graph))
    return list(output.meta.get("desc") or [None] * count)


def is_gradient(description):
    return isinstance(description, GradAOTOutput)


def is_mutation(description):
    """Returns whether an output of the forward pass is copied into an input afterwards."""
    return _written_by(description) is not None


def _written_by(description):
    """Returns the description of the input into which an output is copied; None if it is not copied into one. The input
    may be a tensor inside a tensor subclass."""
    if isinstance(description, SubclassGetAttrAOTOutput):
        base = _written_by(description.base)
        return SubclassGetAttrAOTInput(base, description.attr) if base is not None else None
    return description.mutated_input if isinstance(description, InputMutationAOTOutput) else None


def mutated_inputs(graph):
    """Returns the placeholders of a joint graph that are written after the forward pass."""
    written = {_written_by(d) for d in output_descriptions(graph)} - {None}
    return [node for node in graph.find_nodes(op="placeholder") if node.meta.get("desc") in written]


def written_inputs(graph, forward_outputs=None):
    """Returns (index of the result, description of the input) for each result of the forward pass that is copied into
    an input afterwards."""
    return [(i, _written_by(d)) for i, d in enumerate(output_descriptions(graph)[:forward_outputs]) if is_mutation(d)]


def static_inputs(graph, indices):
    """Returns the placeholders of a joint graph that AOTAutograd calls static, such as parameters and tensors of
    modules. ``indices`` are positions of arguments, not of placeholders: one argument may have several placeholders,
    and placeholders of effect tokens may come first."""
    indices, inputs = set(indices or ()), [node for node in graph.find_nodes(op="placeholder") if is_primal(node)]
    if all(node.meta.get("desc") is None for node in inputs):
        return [node for i, node in enumerate(inputs) if i in indices]
    # With torch._dynamo.config.inline_inbuilt_nn_modules = False, tensors of modules are no arguments. They come first.
    of_module = [node for node in inputs if isinstance(_outermost(node.meta.get("desc")), (ParamAOTInput, BufferAOTInput))]
    positions = {node: input_position(node.meta.get("desc")) for node in inputs}
    return [*of_module, *(node for node, i in positions.items() if i is not None and i + len(of_module) in indices)]


def input_position(description):
    """Returns the index of the captured function's argument to which an input's description refers, or that contains
    the described tensor; None if there is no such argument."""
    description = _outermost(description)
    return description.idx if isinstance(description, PlainAOTInput) else None


def _outermost(description):
    while isinstance(description, SubclassGetAttrAOTInput):
        description = description.base
    return description


def argument_of(description, inputs):
    """Returns the argument to which an input's description refers, or that contains the described tensor; None if there
    is no such argument."""
    position = input_position(description)
    return inputs[position] if position is not None and position < len(inputs) else None


def input_of(description, inputs):
    """Returns the described tensor itself: an argument, or a tensor inside an argument of a tensor subclass; None if
    there is none."""
    if isinstance(description, SubclassGetAttrAOTInput):
        return getattr(input_of(description.base, inputs), description.attr, None)
    return argument_of(description, inputs)


def result_of(description, descriptions):
    """Returns the index of the result to which a gradient belongs. ``description``: describes the gradient, an input of
    the backward pass. ``descriptions``: those of all results. Returns None if the result is unknown."""
    output = description.output if isinstance(description, TangentAOTInput) else None
    return next((i for i, other in enumerate(descriptions) if other is not None and other == output), None)


def compiling():
    """Returns (number of the graph that AOTAutograd is cutting into forward and backward, metadata of its inputs and
    results); (None, None) if there is none. Reads both from AOTAutograd's stack frame, because AOTAutograd passes
    neither to the partition function."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        names = frame.f_locals if "fw_metadata" in code.co_varnames + code.co_cellvars else {}
        if "fw_metadata" in names and "aot_config" in names:
            return names["aot_config"].aot_id, names["fw_metadata"]
        frame = frame.f_back
    return None, None


def unseen_writes(metadata, graph, forward_outputs):
    """Returns the indices of the forward pass's results that are copied into inputs without autograd noticing.
    ``metadata`` comes from compiling()."""
    written = written_inputs(graph, forward_outputs)
    positions = metadata.mutated_inp_runtime_indices if metadata is not None else []
    if len(positions) != len(written):
        return []
    have_gradients = {description.grad_of for description, leaf in zip(output_descriptions(graph), outputs(graph))
                      if is_gradient(description) and leaf is not None}
    infos = [metadata.input_info[position] for position in positions]
    return [i for (i, description), info in zip(written, infos)
            # Torch permits writes to a leaf only where autograd does not notice them, such as under no_grad.
            if _is_unseen(info) or (info.is_leaf and description in have_gradients)]


def _is_unseen(info):
    return info.mutates_data and (info.mutations_under_no_grad_or_inference_mode or info.mutations_hidden_from_autograd)


def _metadata_of_compiled():
    context = torch._guards.TracingContext.try_get()
    return context.fw_metadata if context is not None else None


def hide_writes():
    """Hides writes to inputs from autograd in the graph that is being compiled, where the model hides them (under
    no_grad). When AOTAutograd writes inputs after running the graph, it hides such writes only for leaves. So this
    function marks the written inputs as leaves."""
    metadata = _metadata_of_compiled()
    inputs = metadata.input_info if metadata is not None else []
    for i, info in enumerate(inputs):
        if _is_unseen(info):
            inputs[i] = dataclasses.replace(info, is_leaf=True)


def donate_nothing():
    """Tells AOTAutograd that the backward pass of the graph that is being compiled overwrites no saved value.
    Otherwise, AOTAutograd takes saved values for "donated buffers", and then refuses backward(retain_graph=True) if the
    graph has symbolic sizes, or if its first backward pass was without retain_graph. Must be called when the forward
    pass is compiled."""
    donated = getattr(_metadata_of_compiled(), "bw_donated_idxs", None)
    if donated:
        donated.clear()
