"""Tracing and compiling by AOTAutograd and Inductor, and fake tensors, which have no memory."""

import contextlib

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._python_dispatch import _disable_current_modes

from .running import boxed
from .sizes import shape_env_of


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


def fake_like(tensors, device=None, shape_env=None):
    """Returns (a fake mode, fake tensors like ``tensors``), which have shapes but no memory, on ``device`` or, if that
    is None, on the devices of ``tensors``. With a ``shape_env``, the mode can have symbolic sizes."""
    mode = torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True, shape_env=shape_env)
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


def trace_fake(function, values, decomposed=None):
    """Traces a function of fake tensors. Calls of the operator ``decomposed`` are written as Inductor does. Returns a
    module whose nodes carry fake values of the same mode in ``meta["val"]``."""
    table = {}
    if decomposed is not None:
        from torch._inductor.decomposition import select_decomp_table

        table[decomposed] = select_decomp_table()[decomposed]
    with _disable_current_modes(), torch.no_grad(), fake_mode_of(values):
        return make_fx(function, decomposition_table=table)(*values)


def compile_kernel(module, values, config):
    """Compiles a module of operations without side effects by Inductor. ``values``: fake tensors and sizes like its
    arguments. ``config``: settings of Inductor. Returns a function of a list of arguments, which it
    empties, that returns a list of results."""
    from torch._inductor import config as settings
    from torch._inductor.compile_fx import compile_fx_inner
    from torch._inductor.decomposition import select_decomp_table

    # Values of 16 bits are rounded also where a kernel keeps them in registers. Otherwise, what a kernel of the backward
    # pass computes again from a saved value would differ from what the forward pass computed from the same value.
    config = {**config, "emulate_precision_casts": True}
    with _disable_current_modes(), torch.no_grad():
        if shape_env_of(values) is None:
            mode, fakes = fake_like(values, shape_env=ShapeEnv())  # without one, Inductor does not use its cache
        else:
            mode, fakes = fake_mode_of(values), values
            # A cached graph has guards of the whole model, which do not hold for the arguments of a kernel. Compiled code
            # is found in a cache all the same, by its text.
            config = {**config, "fx_graph_cache": False}
        with torch._guards.tracing(torch._guards.TracingContext(mode)), settings.patch(config):
            with mode:
                traced = make_fx(module, decomposition_table=select_decomp_table())(*fakes)
            compiled = compile_fx_inner(traced, fakes, is_inference=True)
    return getattr(compiled, "current_callable", None) or compiled  # the former without Inductor's own bookkeeping
