"""Torch.compile's front end captures functions: what it leaves to Python, what it says of itself, and when it gives up."""

import functools
import logging
import os
import pathlib
import threading
import weakref

import torch
from torch._dynamo import symbolic_convert, trace_rules
from torch._dynamo.exc import SkipFrame, TensorifyScalarRestartAnalysis

from .sizes import hint

RESTARTS = (SkipFrame, TensorifyScalarRestartAnalysis)  # exceptions by which torch.compile talks to itself


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
