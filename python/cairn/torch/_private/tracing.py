"""Tracing and compiling by AOTAutograd and Inductor, and fake tensors, which have no memory."""

import contextlib

import torch

from .running import boxed


def trace_functional(function, inputs, *, on_joint=None, on_module=None):
    """Compiles ``function``, whose inputs are a flat list of tensors, with AOTAutograd, without torch.compile's front
    end. Returns the compiled function.

    If inputs require gradients, ``on_joint(joint, inputs, num_fwd_outputs=..., ...)`` gets the joint graph and returns
    the forward and the backward module. Otherwise, ``on_module(module, inputs)`` gets the graph, which has no backward
    pass, and returns the function that runs it.
    """
    from functorch.compile import aot_function

    def compiler(module, _):
        return boxed(module)

    return aot_function(function, fw_compiler=compiler, bw_compiler=compiler, inference_compiler=on_module or compiler,
                        partition_fn=on_joint, keep_inference_input_mutations=False)


@contextlib.contextmanager
def replaced_tensors(module, tensors):
    """Returns a context in which the module has other parameters and buffers, given by name. Tied parameters stay
    tied. A module that is registered twice gets its own tensors back, because replacements are undone in reverse
    order (stack_weights)."""
    with torch.nn.utils.stateless._reparametrize_module(module, tensors, tie_weights=True, stack_weights=True):
        yield


def fake_like(tensors, device=None):
    """Returns (a fake mode, fake tensors like ``tensors``), which have shapes but no memory, on ``device`` or, if that
    is None, on the devices of ``tensors``."""
    mode = torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True)
    made = {}

    def fake(tensor):
        if tensor not in made:
            with mode:
                new = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device or tensor.device)
            made[tensor] = new.requires_grad_(tensor.requires_grad) if tensor.requires_grad else new
        return made[tensor]

    return mode, [fake(t) for t in tensors]


def fake_mode_of(values):
    """Returns the mode of these fake tensors; None if none is a fake tensor."""
    for value in values:
        if isinstance(value, torch._subclasses.FakeTensor):
            return value.fake_mode
    return None


def inductor_config(mode, options):
    """Returns Inductor's settings that result from torch.compile's ``mode`` and ``options``. Raises RuntimeError if one
    is unknown."""
    return dict(torch._TorchCompileInductorWrapper(mode, options, None).config)


def compile_with_inductor(module, inputs, partition, finish, config=None):
    """Compiles the module with Inductor. ``partition(joint, inputs, num_fwd_outputs=..., ...)`` cuts its joint graphs.

    ``finish(run, module, is_backward, is_inference)`` gets each compiled part and returns the function that runs
    instead of it. ``config``: settings of Inductor.
    """
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner
    from torch._inductor.custom_graph_pass import CustomPartitionerFn

    class Partitioner(CustomPartitionerFn):
        def __call__(self, joint, joint_inputs, **options):
            return partition(joint, joint_inputs, **options)

        def uuid(self):
            return None  # turns off Inductor's cache, because the result depends on more than the graph

    def compile_part(part, part_inputs, **options):
        run = compile_fx_inner(part, part_inputs, **options)
        return finish(run, part, bool(options.get("is_backward")), bool(options.get("is_inference")))

    with torch._functorch.config.patch(enable_autograd_cache=False):
        return compile_fx(module, inputs, inner_compile=compile_part,
                          config_patches={**(config or {}), "custom_partitioner_fn": Partitioner(), "fx_graph_cache": False})
