"""Wraps what a running compiled graph needs of torch: the calling convention, and the active modes, hooks and
generators."""

import contextlib
import threading

import torch
from torch.utils._python_dispatch import _disable_current_modes


class _BoxedCodeGen(torch.fx.graph.CodeGen):
    """Generates code that takes its arguments from a list and empties the list, so that each argument can be freed
    after its last use."""

    def gen_fn_def(self, free_vars, maybe_return_annotation, **options):
        names = [v.split(":")[0].split("=")[0].strip() for v in free_vars if v != "self"]
        lines = [f"def {getattr(self, '_func_name', 'forward')}(self, args_list){maybe_return_annotation}:"]
        if names:
            lines += ["    args_iter = iter(args_list)", *(f"    {name} = next(args_iter)" for name in names),
                      "    del args_iter", "    args_list.clear()"]
        return "\n".join(lines)


def boxed(module):
    """Returns the module as a function that takes a list of arguments and empties the list."""
    module.graph.set_codegen(_BoxedCodeGen())
    module.recompile()

    def run(args):
        return module.forward(args)

    run._boxed_call = True
    return run


def called_boxed(function):
    """Marks a function that takes a list of arguments as one that may empty the list, and hides the function from
    torch.compile."""
    function._boxed_call = True
    return torch._dynamo.disable(function)


class SharedContext:
    """A context that several threads may enter at once. begin() runs when the first thread enters the context, and
    end() when the last thread leaves it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.entered = 0

    def __enter__(self):
        with self.lock:
            if self.entered == 0:
                self.begin()
            self.entered += 1

    def __exit__(self, *error):
        with self.lock:
            self.entered -= 1
            if self.entered == 0:
                self.end()


def left_alone(function):
    return torch._dynamo.disable(function)


@contextlib.contextmanager
def no_modes():
    """Returns a context for code that needs real tensors and kernels, even if it is called during tracing. Autocast and
    gradients are off. At the end, the states of random generators are restored."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() and torch.cuda.is_initialized() else []
    with _disable_current_modes(), torch._C._DisableAutocast(), torch.no_grad():
        with torch.random.fork_rng(devices=list(devices)):
            yield


@contextlib.contextmanager
def unbatched():
    """Returns a context for code that gets no batched tensors, although it may be called within the vmap of
    autograd.grad(is_grads_batched=True), which refuses random operations."""
    levels = torch._C._vmapmode_increment_nesting()
    for _ in range(levels):
        torch._C._vmapmode_decrement_nesting()
    try:
        yield
    finally:
        for _ in range(levels - 1):
            torch._C._vmapmode_increment_nesting()


def compile_lock():
    """Returns the lock that a thread holds while torch.compile compiles a function in it."""
    return torch._dynamo.convert_frame.compile_lock


@contextlib.contextmanager
def compiling_flag(value):
    """Within this context, torch.compiler.is_compiling() returns ``value``. If the flag is True, optimizers choose
    other implementations, and models avoid what cannot be traced, such as decisions that depend on data. All threads
    share the flag, and each compilation sets it and restores it at its end. So only code that runs within a compilation
    or within compile_lock() may use this context."""
    before, torch.compiler._is_compiling_flag = torch.compiler._is_compiling_flag, value
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = before


def modes_of_user():
    """Returns the names of the active modes (TorchDispatchMode, TorchFunctionMode) that can change results of
    operations. Torch's own modes do not change results and are left out."""
    modes = [*torch.utils._python_dispatch._get_current_dispatch_mode_stack(), *torch.overrides._get_current_function_mode_stack()]
    return [type(mode).__qualname__ for mode in modes if type(mode).__module__.split(".")[0] != "torch"]


def as_plain_tensors():
    """Returns a context in which torch treats subclasses of tensors as plain tensors."""
    return torch._C.DisableTorchFunctionSubclass()


def no_autocast():
    return torch._C._DisableAutocast()


def autocasts():
    """Returns whether autocast is active now for any device."""
    return torch._C._is_any_autocast_enabled()


def generator_states():
    """Returns the states of the default random number generators of the CPU and of the GPUs in use."""
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
