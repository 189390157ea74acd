"""Measures each distinct operation of a traced graph once ("calibration"): its time (ns), scratch (bytes) and the
layouts of its results."""

import hashlib
import operator
import re

import torch
from torch.utils import _pytree as pytree

from .. import _cache, _private
from .._graph.layouts import Layouts, laid_out
from .calls import Call, expanded_zeros, measurable, wrapped_numbers
from .measure import Measurements

_CACHE_VERSION = 12
_TOO_LARGE = 2**50  # ns or bytes; larger numbers in a cache file are errors


def calibrate(trace):
    """Sets cost and scratch of every operation, and ``trace.layouts``, by measurements. Operations that cannot be
    measured keep their estimates and are listed in ``trace.estimated``."""
    running = [op for op in trace.operations if op.node is not None or op.update is not None]
    if trace.device not in ("cpu", "cuda") or (trace.device == "cuda" and not torch.cuda.is_available()):
        trace.estimated = running
        return
    name = _file_name(trace.device)
    stored = _cache.load(name)
    known = {text: entry for text, entry in stored.items() if _is_entry(entry)} if isinstance(stored, dict) else {}
    measured = Measurements(trace.device, known)
    texts = {}
    with measured:
        trace.layouts = _read_layouts(trace, measured, texts)
        for op in trace.readers:
            texts[op] = op.update.text
            measured.entry(op.update)
    if measured.new:
        passing = {op.update.text for op in trace.readers if not op.update.lasts}
        _cache.store(name, {text: entry for text, entry in known.items() if text not in passing})
    trace.estimated = [op for op in running if (op.outputs or op.update) and not _take(op, known.get(texts.get(op)))]
    for op in running:
        op.scratch += wrapped_numbers(op.node) + expanded_zeros(op)
    _note_layouts(trace)


def _read_layouts(trace, measured, texts):
    """Finds the layouts of all values by measuring each operation with the real layouts of its arguments. ``texts``
    receives, for each operation, the key under which its measurement is stored."""
    layouts = Layouts()
    for node in trace.structure:
        op = trace.operation_of.get(node)
        if node.op != "call_function" or not _is_tensor_among(node.meta.get("val")):
            layouts.given(node)
        elif node.target is operator.getitem:
            layouts.part(node)
        elif op is None:
            layouts.view(node)
        elif measurable(op):
            spec = Call(node, layouts)
            texts[op] = spec.text
            entry = measured.entry(spec)
            layouts.measured(node, *(entry[3:] if entry is not None else ((), (), ())))
    return layouts


def _is_tensor_among(value):
    return any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(value))


def _note_layouts(trace):
    """Marks storages for which the kernel chose another layout than the tracer assumed."""
    for op in trace.operations:
        if op.node is None or not trace.layouts.known(op.node):
            continue
        now, then, storages = (pytree.tree_leaves(v) for v in (
            trace.layouts.value(op.node), op.node.meta.get("val"), trace.structure[op.node]))
        for real, traced, storage in zip(now, then, storages):
            if isinstance(real, torch.Tensor) and storage is not None and storage.producer is op:
                strides = [_private.hint(t) for t in real.stride()] if traced.layout is torch.strided else None
                if strides is not None and not laid_out(traced, strides, alike=True):
                    storage.as_traced = False


def _is_entry(entry):
    """Returns whether an entry of a cache file, which may be damaged, has the form of an entry of Measurements."""
    def is_size(value):
        return isinstance(value, int) and 0 <= value < _TOO_LARGE

    def is_stride(value):
        return value is None or isinstance(value, list) and all(map(is_size, value))

    return (isinstance(entry, list) and len(entry) == 6 and is_size(entry[0]) and isinstance(entry[4], list) and
            isinstance(entry[5], list) and all(size is None or is_size(size) for size in entry[5]) and
            all(device in ("cpu", "cuda") for device in entry[4]) and isinstance(entry[2], list) and
            all(size is None or is_size(size) for size in entry[2]) and isinstance(entry[3], list) and
            all(map(is_stride, entry[3])) and
            (entry[1] is None or isinstance(entry[1], list) and
             all(isinstance(peak, list) and len(peak) == 2 and is_size(peak[0]) and isinstance(peak[1], int) and
                 peak[1] < _TOO_LARGE for peak in entry[1])))


def _take(op, entry):
    """Sets an operation's cost and scratch to the measured values of ``entry``. Returns whether both were measured."""
    if entry is None:
        return False
    op.cost = max(1, entry[0])
    if entry[1] is None:
        return False
    _take_sizes(op, entry[2])
    op.scratch = _scratch(op, entry[1])
    return True


def _take_sizes(op, sizes):
    """Sets the sizes of an operation's outputs to the measured ones. A kernel may choose another layout than the tracer
    assumed, and then an output may have another size."""
    outputs = op.outputs + (op.statistics.outputs if op.statistics is not None else [])
    if len(sizes) == len(outputs):
        for storage, size in zip(outputs, sizes):
            if size is not None and storage.allocated:
                storage.allocated = size
                storage.size = size if storage.size else 0


def _scratch(op, peaks):
    """Computes an operation's scratch: the largest number of bytes that are in memory during the call beyond the
    operation's outputs. For a random operation that may run again, scratch includes a copy of the generator's state.
    ``peaks`` has entries [set of outputs that were in memory at one time, as a bit mask; largest number of other bytes
    that were in memory together with exactly these outputs]."""
    counted = [s.size for s in op.outputs]
    beside = [other + sum(size for k, size in enumerate(counted) if present >> k & 1) for present, other in peaks]
    state = op.state.outputs[0].size if op.state is not None else 0
    return max(0, max(beside, default=0) - sum(counted)) + state


def _file_name(device):
    hardware = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    text = f"operations-{_CACHE_VERSION}-{torch.__version__}-{hardware}"
    key = hashlib.sha256(f"{text} {_private.kernel_settings()}".encode()).hexdigest()[:8]
    return re.sub(r"[^\w.+-]", "_", text)[:100] + f"-{key}.json"
