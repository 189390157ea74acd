"""The cost (ns) and scratch (bytes) of each operation: estimated by a roofline, or measured once on this device."""

import bisect
import contextlib
import hashlib
import operator
import re
import time

import torch
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import flop_registry

from .. import _cache, _private
from .._graph.layouts import Layouts, laid_out
from .._graph.operators import is_described, is_random, operator_name, schema_name
from .._memory.events import MemoryTrace

# Bytes and operations per ns, by kind of device. Only their ratio matters: it says which operations are cheap to run
# again.
_BYTES_PER_NS = {"cpu": 20.0, "cuda": 2000.0}
_FLOPS_PER_NS = {"cpu": 200.0, "cuda": 100000.0}
_OVERHEAD_NS = 2000  # of one kernel call
_CACHE_VERSION = 8
# An operation is timed for at least this long. The fastest call counts: others are slower only through other work.
_MEASURE_NS = 10_000_000
_CALLS_AT_LEAST, _CALLS = 3, 20
_TOO_LARGE = 2**50  # ns, bytes: no measurement is as large


def estimate(trace):
    """Sets the cost of every operation by what it reads, writes and computes. Scratch stays 0."""
    for op in trace.operations:
        if op.update is not None:
            op.cost = int(_OVERHEAD_NS + 4 * op.update.size / _BYTES_PER_NS.get(trace.device, 500.0))
        if op.node is None:
            continue
        moved = sum(s.size for s in op.outputs) + sum(s.size for s in op.reads)
        flops = _flops(op.node)
        rate = _BYTES_PER_NS.get(trace.device, 500.0), _FLOPS_PER_NS.get(trace.device, 20000.0)
        op.cost = int(_OVERHEAD_NS + max(moved / rate[0], flops / rate[1]))


def _flops(node):
    if not isinstance(node.target, torch._ops.OpOverload):
        return 0
    count = flop_registry.get(node.target.overloadpacket)
    if count is None:
        return 0
    try:
        args, kwargs = pytree.tree_map(_as_meta, (_values(node.args), _values(node.kwargs)))
        return int(count(*args, **kwargs, out_val=pytree.tree_map(_as_meta, node.meta.get("val"))))
    except Exception:  # the formula does not know this form of the operation
        return 0


def _values(arguments):
    return torch.fx.node.map_arg(arguments, lambda n: n.meta.get("val"))


def _as_meta(value):
    if isinstance(value, torch.Tensor):
        return torch.empty([_private.hint(s) for s in value.shape], dtype=value.dtype, device="meta")
    return _private.hint(value) if _private.is_sym(value) else value


# --- Measuring

class _Spec:
    """What a call depends on, as text: the operation, and shapes, strides, dtypes and numbers of its arguments.
    ``layouts``: the arguments' real layouts; without, the tracer's."""

    def __init__(self, node, layouts=None):
        self.node = node
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), (layouts or Layouts()).value)
        if node.target is torch.ops.aten.native_batch_norm_backward.default:  # the tracer gives them the input's type
            args = tuple(a.float() if i in (5, 6) and isinstance(a, torch.Tensor) and a.dtype.itemsize < 4 else a
                         for i, a in enumerate(args))
        self.text = f"{operator_name(node)}{pytree.tree_map(_describe, (args, kwargs))}"
        self.arguments = args, kwargs

    def run(self):
        """A function without arguments that makes the call, with arguments of its own."""
        args, kwargs = pytree.tree_map(_real, self.arguments)
        return lambda: self.node.target(*args, **kwargs)


def _describe(value):
    if isinstance(value, torch.Tensor):
        shape = [_private.hint(s) for s in value.shape]
        stride = [_private.hint(s) for s in value.stride()] if value.layout is torch.strided else []
        where = [_private.hint(value.storage_offset()), _private.hint(value.untyped_storage().nbytes())]
        return f"{value.dtype}{shape}{stride}{where}{value.device.type}"
    return str(_private.hint(value)) if _private.is_sym(value) else repr(value)


def _real(value):
    """A tensor like the traced one, in a storage of the same size: some kernels copy all of it."""
    if not isinstance(value, torch.Tensor):
        return _private.hint(value) if _private.is_sym(value) else value
    shape, stride = [_private.hint(s) for s in value.shape], [_private.hint(s) for s in value.stride()]
    count = -(-_private.hint(value.untyped_storage().nbytes()) // value.element_size())
    storage = torch.empty(count, dtype=value.dtype, device=value.device)
    if storage.is_floating_point():
        storage.uniform_(0.25, 0.75)
    else:
        storage.zero_()  # zeros are valid indices for any range
    return storage.as_strided(shape, stride, _private.hint(value.storage_offset()))


_OPAQUE = ("aten::mkldnn_rnn_layer_backward",)  # they follow pointers that a forward kernel left


def measurable(op):
    node = op.node
    return op.update is not None or (node is not None and is_described(node.target) and bool(op.outputs) and
                                     (not op.effect or is_random(node)) and schema_name(node.target) not in _OPAQUE)


def _wrapped_numbers(node):
    """Bytes of the tensors that wrap numbers, where an operation gets numbers in place of tensors or beside complex
    ones. When AOTAutograd calls it, torch wraps them once more than when it is measured."""
    if node is None or not isinstance(node.target, torch._ops.OpOverload):
        return 0
    is_complex = any(isinstance(leaf, torch.Tensor) and leaf.is_complex() for leaf in pytree.tree_leaves(node.meta.get("val")))
    kinds = (torch.TensorType, torch.NumberType) if is_complex else torch.TensorType
    return sum(16 if is_complex else 8 for value, given in zip(node.args, node.target._schema.arguments)
               if isinstance(value, (int, float, complex)) and isinstance(given.type, kinds))


def calibrate(trace):
    """Sets cost and scratch of every operation, and ``trace.layouts``, by measuring each distinct operation once.
    Operations that could not be measured keep their estimate and are listed in ``trace.estimated``."""
    running = [op for op in trace.operations if op.node is not None or op.update is not None]
    if trace.device not in ("cpu", "cuda") or (trace.device == "cuda" and not torch.cuda.is_available()):
        trace.estimated = running
        return
    name = _file_name(trace.device)
    stored = _cache.load(name)
    known = {text: entry for text, entry in stored.items() if _is_entry(entry)} if isinstance(stored, dict) else {}
    measured = _Measured(trace.device, known)
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
        op.scratch += _wrapped_numbers(op.node)
    _note_layouts(trace)


def _read_layouts(trace, measured, texts):
    """Finds the layouts of all values of the trace, measuring each operation with the real layouts of its arguments.
    ``texts`` gets the text that each was measured by."""
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
            spec = _Spec(node, layouts)
            texts[op] = spec.text
            entry = measured.entry(spec)
            layouts.measured(node, *(entry[3:5] if entry is not None else ((), ())))
    return layouts


def _is_tensor_among(value):
    return any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(value))


def _note_layouts(trace):
    """Marks storages whose layout differs from the tracer's."""
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


_refused = set()  # texts of operations that failed in this process; another process tries again


def _is_entry(entry):
    """Whether an entry of a file that anyone may have written has the form of _Measured's entries."""
    def is_size(value):
        return isinstance(value, int) and 0 <= value < _TOO_LARGE

    def is_stride(value):
        return value is None or isinstance(value, list) and all(map(is_size, value))

    return (isinstance(entry, list) and len(entry) == 5 and is_size(entry[0]) and isinstance(entry[4], list) and
            all(device in ("cpu", "cuda") for device in entry[4]) and isinstance(entry[2], list) and
            all(size is None or is_size(size) for size in entry[2]) and isinstance(entry[3], list) and
            all(map(is_stride, entry[3])) and
            (entry[1] is None or isinstance(entry[1], list) and
             all(isinstance(peak, list) and len(peak) == 2 and is_size(peak[0]) and isinstance(peak[1], int) and
                 peak[1] < _TOO_LARGE for peak in entry[1])))


def description(trace):
    """A digest of the operations, with the shapes and numbers that they are called with."""
    digest = hashlib.sha256()
    for op in trace.operations:
        digest.update((op.update or _Spec(op.node)).text.encode() if op.update or op.node else op.label.encode())
    return digest.hexdigest()[:16]


def _take(op, entry):
    """Takes an operation's measured values. Returns whether they are complete."""
    if entry is None:
        return False
    op.cost = max(1, entry[0])
    if entry[1] is None:
        return False
    _take_sizes(op, entry[2])
    op.scratch = _scratch(op, entry[1])
    return True


def _take_sizes(op, sizes):
    """Sets the real sizes of outputs: a kernel's layout may differ from the tracer's."""
    outputs = op.outputs + (op.statistics.outputs if op.statistics is not None else [])
    if len(sizes) == len(outputs):
        for storage, size in zip(outputs, sizes):
            if size is not None and storage.allocated:
                storage.allocated = size
                storage.size = size if storage.size else 0


def _scratch(op, peaks):
    """Bytes beyond those of the outputs that count, and beyond the state that a random operation continues with after
    it has run again. ``peaks``: [which outputs were there, most other bytes meanwhile]."""
    counted = [s.size for s in op.outputs]
    beside = [other + sum(size for k, size in enumerate(counted) if present >> k & 1) for present, other in peaks]
    state = op.state.outputs[0].size if op.state is not None else 0
    return max(0, max(beside, default=0) - sum(counted)) + state


def _file_name(device):
    hardware = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    text = f"operations-{_CACHE_VERSION}-{torch.__version__}-{hardware}"
    key = hashlib.sha256(f"{text} {_private.kernel_settings()}".encode()).hexdigest()[:8]
    return re.sub(r"[^\w.+-]", "_", text)[:100] + f"-{key}.json"


class _Measured:
    """Measured values of operations by their text: [ns of the fastest call, peaks as _scratch takes them, bytes of each
    returned storage, strides of each tensor, device of each]. There are no peaks where an active profiler hides them.
    Within ``with`` unknown operations are measured; their peaks are there afterwards."""

    def __init__(self, device, known):
        self.device, self.known = device, known
        self.new = {}  # text -> label of its block in the record
        self._outputs = {}  # label -> addresses of the storages that the labelled call returned
        self._tries = 0
        self._trace = None
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        self.can_record = MemoryTrace.available()
        return self

    def __exit__(self, *error):
        self._stack.__exit__(*error)
        if self._tries and self.device == "cuda":
            torch.cuda.empty_cache()  # blocks of these sizes would fragment the memory that the model allocates from
        if error[0] is None and self._trace is not None:
            peaks = _peaks(self._trace, self._outputs)
            for text, label in self.new.items():
                self.known[text][1:3] = peaks.get(label, ([], []))

    def entry(self, spec):
        """The entry of this operation; None where it cannot be called."""
        entry = self.known.get(spec.text)
        if entry is not None and (entry[1] is not None or spec.text in self.new or not self.can_record):
            return entry
        if spec.text in _refused:
            return entry
        if not self._tries:
            self._stack.enter_context(_private.no_modes())
            if self.can_record:
                self._trace = self._stack.enter_context(MemoryTrace(self.device))
        self._tries += 1
        label = f"cairn:{self._tries}"
        try:
            ns, self._outputs[label], strides, devices = _time(spec, label, self.device)
        except Exception as error:  # a kernel may refuse in any way: the estimate stays
            if not _private.is_out_of_memory(error):  # another time there may be more
                _refused.add(spec.text)
            return entry
        self.new[spec.text] = label
        self.known[spec.text] = [ns, None, [], strides, devices]
        return self.known[spec.text]


def _time(spec, label, device):
    """(ns of the fastest call, addresses of the storages that the labelled call returned, strides of each tensor,
    device of each)."""
    call = spec.run()
    start = time.perf_counter_ns()
    call()  # the first call includes setup
    _wait(device)
    begin = time.perf_counter_ns()
    with torch.profiler.record_function(label):
        result = call()
    with torch.profiler.record_function("cairn:end"):
        _wait(device)
    best = time.perf_counter_ns() - begin
    tensors = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    addresses = list(dict.fromkeys(t.untyped_storage().data_ptr() for t in tensors))
    strides = [list(t.stride()) if t.layout is torch.strided else None for t in tensors]
    devices = [t.device.type for t in tensors]
    del result, tensors
    for total in range(2, _CALLS + 1):
        begin = time.perf_counter_ns()
        call()
        _wait(device)
        now = time.perf_counter_ns()
        best = min(best, now - begin)
        if total >= _CALLS_AT_LEAST and now - start > _MEASURE_NS:
            break
    return best, addresses, strides, devices


def _wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def _peaks(trace, outputs):
    """For each block: for each set of its outputs, the most other bytes alive while those outputs were; and the bytes
    of each output, None where the block did not allocate it."""
    found = {}
    marks = [(t, n) for t, n in trace.blocks if n.startswith("cairn:")]
    marks.append((float("inf"), "cairn:end"))
    for (begin, label), (end, _) in zip(marks, marks[1:]):
        if label not in outputs:
            continue
        first, last = bisect.bisect_left(trace.times, begin), bisect.bisect_left(trace.times, end)
        made = {}  # event that allocated an output -> index of the output
        for i in range(first, last):
            if trace.sizes[i] > 0 and trace.addresses[i] in outputs[label]:
                made[trace.addresses[i]] = i
        which = {i: outputs[label].index(address) for address, i in made.items()}
        present, other, most = 0, 0, {}
        for i in range(first, last):
            if i in which:
                present |= 1 << which[i]
            else:
                other += trace.sizes[i]
            most[present] = max(most.get(present, 0), other)
        sizes = [trace.sizes[made[address]] if address in made else None for address in outputs[label]]
        found[label] = sorted(most.items()), sizes
    return found
