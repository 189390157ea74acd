"""Wraps torch.compile's front end, which captures functions. Controls which code torch.compile leaves to Python, and
notices when it stops compiling a function."""

import copy
import functools
import importlib.metadata
import logging
import os
import pathlib
import sys
import threading
import weakref

import torch
from torch._C._dynamo import eval_frame
from torch._dynamo import convert_frame, pgo, symbolic_convert, trace_rules
from torch._dynamo.exc import SkipFrame, TensorifyScalarRestartAnalysis
from torch._dynamo.types import FrameAction, FrameExecStrategy
from torch.optim.swa_utils import AveragedModel

from . import optimizers
from .running import SharedContext
from .sizes import hint

# Exceptions by which torch.compile restarts or skips its own work. It catches them itself, so they are not errors.
RESTARTS = (SkipFrame, TensorifyScalarRestartAnalysis)


class _LeftToPython(SharedContext):
    """A context in which torch.compile does not compile optimizers, so that they run as ordinary Python."""

    def begin(self):
        self.files = _python_files() - trace_rules.FORCE_SKIP_FILES
        trace_rules.FORCE_SKIP_FILES.update(self.files)
        # Class of an optimizer that is not torch's own -> its original step method.
        self.steps = {kind: kind.step for kind in _subclasses(torch.optim.Optimizer)
                      if not kind.__module__.startswith("torch.") and "step" in vars(kind)}
        # A learning rate schedule replaces the method of one optimizer by a function that calls the original one, so
        # that the code of the original method must be left to Python, too.
        self.codes = [code for step in self.steps.values() for code in _codes_of(step)]  # equal code may be in two files
        self._set_strategy(FrameAction.SKIP)
        for kind, step in self.steps.items():
            kind.step = _disabled(step)
        self.update = AveragedModel.update_parameters
        AveragedModel.update_parameters = _disabled(self.update)

    def _set_strategy(self, action):
        for code in self.codes:
            eval_frame.set_code_exec_strategy(code, FrameExecStrategy(action, action))

    def end(self):
        self._set_strategy(FrameAction.DEFAULT)
        trace_rules.FORCE_SKIP_FILES.difference_update(self.files)
        AveragedModel.update_parameters = self.update
        for kind, step in self.steps.items():
            # Torch wraps the method when the first optimizer of a class is made, so that it calls hooks.
            if getattr(kind.step, "hooked", False) and not getattr(step, "hooked", False):
                step = torch.optim.Optimizer.profile_hook_step(step)
                step.hooked = True
            kind.step = step


# In this context, optimizers, gradient clipping and gradient scalers run as ordinary Python, uncompiled.
left_to_python = _LeftToPython()
# The results are cached, because torch.compile's guards compare the identity of the returned functions.
_disabled = functools.cache(torch.compiler.disable)


def _codes_of(function):
    """Returns the code objects of a method and of the functions that its decorators wrap, without those of torch."""
    root, found = f"{pathlib.Path(torch.__file__).parent}{os.sep}", []
    while function is not None:
        code = getattr(function, "__code__", None)
        if code is not None and not code.co_filename.startswith(root):
            found.append(code)
        function = getattr(function, "__wrapped__", None)
    return found


def _subclasses(kind):
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


@functools.cache
def _python_files():
    root = pathlib.Path(torch.__file__).parent
    # AveragedModel runs a model's forward pass, which is compiled.
    optimizing = [file for file in (root / "optim").rglob("*.py") if file.name != "swa_utils.py"]
    files = [*optimizing, root / "nn" / "utils" / "clip_grad.py", root / "amp" / "grad_scaler.py"]
    # The last file contains functions of Cairn that optimizers call at each step.
    return frozenset([*(file.as_posix() for file in files), optimizers.before_any_step.__code__.co_filename])


def suppresses_errors():
    """Returns whether torch.compile should report its errors and run the function uncompiled."""
    return bool(torch._dynamo.config.suppress_errors)


def runs_uncompiled():
    """Returns whether torch.compiler.set_stance() makes torch run functions uncompiled that it would have to compile."""
    return torch._dynamo.eval_frame._stance.stance in ("eager_on_recompile", "force_eager")


def shows_frames():
    """Returns whether errors should show the stack frames of torch.compile."""
    return bool(torch._dynamo.config.verbose)


def forget_tracing(error):
    """Removes what torch.compile has stored in an error about the code that it compiled: inputs of the code and what
    they refer to, which would stay in memory as long as the error."""
    if hasattr(error, "_torch_dynamo_tracer_output"):
        error._torch_dynamo_tracer_output = None


class _LimitFilter(logging.Filter):
    """Notices the log message by which torch.compile says that it compiles no further variants of a function."""

    def __init__(self):
        super().__init__()
        self.listeners = weakref.WeakSet()

    def filter(self, record):
        if str(record.msg).startswith("torch._dynamo hit config.") and len(record.args) > 2:
            limit, value, function = record.args[:3]
            backend = _backend_on_stack()
            for listener in list(self.listeners):
                listener.gave_up(backend, compiled_frame(), limit, value, function)
        return True


def _backend_on_stack():
    """Returns the backend for which torch.compile compiles a function now; None if it is unknown. The function itself
    may have no graph, so that torch.compile does not call the backend."""
    frame = sys._getframe()
    while frame is not None and not (frame.f_code.co_name == "_compile" and "compiler_fn" in frame.f_locals):
        frame = frame.f_back
    found = frame.f_locals["compiler_fn"] if frame is not None else None
    # DistributedDataParallel compiles by a method of its own, whose object holds the backend
    found = getattr(getattr(found, "__self__", None), "backend_compile_fn", found)
    while hasattr(found, "_torchdynamo_orig_backend"):
        found = found._torchdynamo_orig_backend
    given = getattr(found, "kwargs", None)
    found = getattr(found, "compiler_fn", found)
    if not hasattr(found, "backend_of"):
        return found
    return found.backend_of(given.get("options") if isinstance(given, dict) else None)


_limits = _LimitFilter()


def tell_of_limits(listener):
    """Calls ``listener.gave_up(backend, frame, limit, value, function)`` when torch.compile compiles no further variants
    of a function. ``backend``: the backend for which it was to be compiled, or None. ``limit`` is the name of the limit
    in torch._dynamo.config, and ``function`` describes the function."""
    logging.getLogger("torch._dynamo.convert_frame").addFilter(_limits)
    _limits.listeners.add(listener)


def compiled_frame():
    """Returns the number of the function that torch.compile compiles now, or None. All variants of a function have the
    same number until torch._dynamo.reset()."""
    compile_id = torch._guards.CompileContext.current_compile_id()
    return None if compile_id is None else compile_id.frame_id


def register_backend(name, function):
    """Makes torch.compile know a backend by name. Does nothing if an installed package declares a backend of this name
    as an entry point, because torch then loads the backend by this entry point."""
    if not importlib.metadata.entry_points(group="torch_dynamo_backends", name=name):
        torch._dynamo.register_backend(compiler_fn=function, name=name)


class Code:
    """The code object of a function, as a key of dicts. Two are equal only if they are the same object, to which torch
    attaches what it has compiled. Code objects themselves are equal if their contents are, and have no hash if one of
    their constants has none, as in code that torch makes."""

    def __init__(self, code):
        self.code = code

    def __eq__(self, other):
        return isinstance(other, Code) and self.code is other.code

    def __hash__(self):
        return id(self.code)


def compiled_code():
    """Returns the Code of the function that torch.compile is compiling now; None if it compiles none."""
    try:
        return Code(symbolic_convert.InstructionTranslator.current_tx().output.root_tx.f_code)
    except AttributeError:
        return None


def others_compile():
    """Returns whether another thread compiles a function, or waits until it may. Such a thread has a pointer to the
    compiled variants of its function, which must not be removed meanwhile."""
    mine = threading.get_ident()
    return any(_is_compiling(frame) for thread, frame in sys._current_frames().items() if thread != mine)


def _is_compiling(frame):
    """Returns whether a thread whose innermost frame this is compiles a function, or waits until it may."""
    while frame is not None and frame.f_code.co_filename != convert_frame.__file__:
        frame = frame.f_back
    return frame is not None


def sizes_seen(code):
    """Returns what torch.compile has noted of the input sizes of a function (``code``: its Code). torch.compile makes
    the sizes symbolic that differ from those seen before."""
    states = pgo.get_code_state()
    name = code.code.co_filename, code.code.co_firstlineno, code.code.co_name
    return copy.deepcopy({key: state for key, state in states.items() if (key.filename, key.firstlineno, key.name) == name})


def compile_again(code, seen=None):
    """Removes all compiled variants of a function (``code``: its Code), so that torch.compile compiles it again at its
    next call. Returns whether it did: not while another thread compiles. ``seen``: a result of sizes_seen(). If it is
    not None, torch.compile forgets the sizes that it has seen since then."""
    if code is None or others_compile():
        return False
    torch._dynamo.eval_frame.remove_from_cache(code.code)
    if seen is not None:
        pgo.get_code_state().update(copy.deepcopy(seen))
    return True


def sizes_differentiated(module):
    """Returns the sizes, in elements, of the captured module's results that AOTAutograd will differentiate."""
    output = next(iter(reversed(module.graph.nodes)))
    values = [leaf.meta.get("example_value") for leaf in torch.utils._pytree.arg_tree_leaves(*output.args)
              if isinstance(leaf, torch.fx.Node)]
    return [max(1, hint(v.numel())) for v in values if isinstance(v, torch.Tensor) and v.requires_grad]


def evaluates():
    """Returns whether the function that torch.compile captures now has modules among its local variables, and all of
    them are in evaluation mode."""
    try:
        values = symbolic_convert.InstructionTranslator.current_tx().f_locals.values()
    except AttributeError:  # nothing is captured
        return False
    modules = [v for v in values if isinstance(v, torch.nn.Module)]
    return bool(modules) and not any(m.training for m in modules)


def asked_by_tracer(frame):
    """Returns whether the frame belongs to Dynamo or to code that makes fake tensors for it. Both call methods of
    tensors that the user's code does not call."""
    tracers, between = _tracers()
    while frame is not None and frame.f_code.co_filename in between:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(tracers)


@functools.cache
def _tracers():
    """Returns (folders of tracers, files whose functions only pass calls on, so that their own caller counts as the
    caller)."""
    root = pathlib.Path(torch.__file__).parent
    return (tuple(f"{root / part}{os.sep}" for part in ("_dynamo", "_subclasses")),
            tuple(str(root / part) for part in ("_tensor.py", "overrides.py", "functional.py")))
