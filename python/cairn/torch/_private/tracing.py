"""Wraps tracing and compiling by AOTAutograd and Inductor, and fake tensors, which have shapes but no memory."""

import contextlib

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._python_dispatch import _disable_current_modes

from .running import boxed
from .sizes import shape_env_of


def trace_functional(function, inputs, *, on_joint=None, on_module=None):
    """Compiles ``function``, whose inputs are a flat list of tensors, with AOTAutograd, without torch.compile's front
    end (Dynamo). Returns the compiled function.

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
    """Returns a context in which the module has the parameters and buffers ``tensors``, a dict by name, instead of its
    own. Tied parameters stay tied. Afterwards the module has its own tensors again, even if a submodule is registered
    twice, because stack_weights=True undoes the replacements in reverse order."""
    with torch.nn.utils.stateless._reparametrize_module(module, tensors, tie_weights=True, stack_weights=True):
        yield


def fake_like(tensors, device=None, shape_env=None):
    """Returns (a fake mode, fake tensors like ``tensors``). Fake tensors have shapes but no memory. They are on
    ``device`` or, if that is None, on the devices of ``tensors``. If a ``shape_env`` is given, the mode can have
    symbolic sizes."""
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
    """Returns the fake mode of the first fake tensor among the values; None if there is none."""
    for value in values:
        if isinstance(value, torch._subclasses.FakeTensor):
            return value.fake_mode
    return None


def inductor_config(mode, options):
    """Returns Inductor's settings that result from torch.compile's ``mode`` and ``options``. Raises RuntimeError if a
    mode or an option is unknown."""
    return dict(torch._TorchCompileInductorWrapper(mode, options, None).config)


def trace_fake(function, values, decomposed=None):
    """Traces a function of fake tensors. Calls of the operator ``decomposed`` are decomposed as Inductor does it.
    Returns a module whose nodes carry fake values of the same mode in ``meta["val"]``."""
    table = {}
    if decomposed is not None:
        from torch._inductor.decomposition import select_decomp_table

        table[decomposed] = select_decomp_table()[decomposed]
    with _disable_current_modes(), torch.no_grad(), fake_mode_of(values):
        return make_fx(function, decomposition_table=table)(*values)


def compile_kernel(module, values, config):
    """Compiles a module of operations without side effects by Inductor. ``values``: fake tensors and sizes like its
    arguments. ``config``: settings of Inductor. Returns a function that takes a list of arguments, empties this list,
    and returns a list of results."""
    from torch._inductor import config as settings
    from torch._inductor.compile_fx import compile_fx_inner
    from torch._inductor.decomposition import select_decomp_table

    # With this setting, kernels also round 16-bit values that they keep in registers. Without it, a backward kernel
    # that recomputes a value in registers would get other bits than the forward pass, which rounded the value when it
    # stored it.
    config = {**config, "emulate_precision_casts": True}
    with _disable_current_modes(), torch.no_grad():
        if shape_env_of(values) is None:
            mode, fakes = fake_like(values, shape_env=ShapeEnv())  # without a ShapeEnv, Inductor does not use its cache
        else:
            mode, fakes = fake_mode_of(values), values
            # Inductor's cache of graphs is off, because a cached graph has guards of the whole model, which do not hold
            # for the arguments of a kernel. Another cache still finds compiled code by its text.
            config = {**config, "fx_graph_cache": False}
        with torch._guards.tracing(torch._guards.TracingContext(mode)), settings.patch(config):
            with mode:
                traced = make_fx(module, decomposition_table=select_decomp_table())(*fakes)
            compiled = compile_fx_inner(traced, fakes, is_inference=True)
    # ``current_callable`` is the function without Inductor's own bookkeeping
    return getattr(compiled, "current_callable", None) or compiled
