"""Measures operations by calling each several times: the time of the fastest call (ns), and the bytes in memory during
a call."""

import bisect
import contextlib
import time

import torch
from torch.utils import _pytree as pytree

import cairn

from .. import _private
from .._memory.events import MemoryTrace

# Each operation is called until _MEASURE_NS nanoseconds have passed, but at least _CALLS_AT_LEAST and at most _CALLS
# times. The fastest call counts, because only other work on the machine makes calls slower.
_MEASURE_NS = 10_000_000
_CALLS_AT_LEAST, _CALLS = 3, 20
_refused = set()  # texts of operations that failed in this process


class Measurements:
    """Measured values of operations. The key of an entry is the text of an operation (Call.text). An entry is [ns of
    the fastest call, peaks (the most bytes in memory for each set of outputs, see _peaks()), bytes of each returned
    storage, strides of each returned tensor, device of each returned tensor, bytes of the storage of each returned
    tensor]. Peaks are missing if another profiler was active during the measurement. Within a ``with`` block, entry()
    measures operations that have no entry yet; their peaks are known when the block has ended."""

    def __init__(self, device, known):
        self.device, self.known = device, known
        self.new = {}  # text of an operation -> label of the record_function block around its call
        self._outputs = {}  # label -> addresses of the storages that the call returned
        self._tries = 0
        self._trace = None
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        MemoryTrace.end_optional()
        self.can_record = MemoryTrace.available()
        return self

    def __exit__(self, *error):
        self._stack.__exit__(*error)
        if self._tries and self.device == "cuda":
            # Otherwise, blocks that the allocator has cached for these calls would fragment the memory of the model.
            torch.cuda.empty_cache()
        if error[0] is None and self._trace is not None:
            peaks = _peaks(self._trace, self._outputs)
            for text, label in self.new.items():
                self.known[text][1:3] = peaks.get(label, ([], []))

    def entry(self, spec):
        """Returns the entry of this operation; None if the operation cannot be called."""
        entry = self.known.get(spec.text)
        if entry is not None and (entry[1] is not None or spec.text in self.new or not self.can_record):
            return entry
        if spec.text in _refused:
            return entry
        if not self._tries:
            self._stack.enter_context(_private.no_modes())
            self._stack.enter_context(_private.compiling_flag(False))
            if self.can_record:
                try:
                    self._trace = self._stack.enter_context(MemoryTrace(self.device, waits=False))
                except cairn.InputError:
                    self.can_record = False
        self._tries += 1
        label = f"cairn:{self._tries}"
        try:
            ns, self._outputs[label], *of_tensors = _time(spec, label, self.device)
        except Exception as error:  # a kernel can raise any error; the estimate stays
            if not _private.is_out_of_memory(error):  # a later call may succeed with more free memory
                _refused.add(spec.text)
            return entry
        self.new[spec.text] = label
        self.known[spec.text] = [ns, None, [], *of_tensors]
        return self.known[spec.text]


def _time(spec, label, device):
    """Returns (ns of the fastest call, addresses of the storages that the labelled call returned, strides, devices and
    bytes of storages of the returned tensors)."""
    call = spec.run()
    start = time.perf_counter_ns()
    call()  # this call does not count, because it includes setup
    _wait(device)
    begin = time.perf_counter_ns()
    with torch.profiler.record_function(label):
        result = call()
    with torch.profiler.record_function("cairn:end"):
        _wait(device)
    best = time.perf_counter_ns() - begin
    tensors = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    addresses = list(dict.fromkeys(
        0 if _private.is_zero_tensor(t) else t.untyped_storage().data_ptr() for t in tensors))  # 0: no memory
    strides = [list(t.stride()) if t.layout is torch.strided else None for t in tensors]
    devices = [t.device.type for t in tensors]
    sizes = [t.untyped_storage().nbytes() if _private.is_plain(t) else None for t in tensors]
    del result, tensors
    for total in range(2, _CALLS + 1):
        begin = time.perf_counter_ns()
        call()
        _wait(device)
        now = time.perf_counter_ns()
        best = min(best, now - begin)
        if total >= _CALLS_AT_LEAST and now - start > _MEASURE_NS:
            break
    return best, addresses, strides, devices, sizes


def _wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def _peaks(trace, outputs):
    """Evaluates the allocator's events during each labelled call. For each set of outputs that were in memory at the
    same time, finds the largest number of bytes in memory that belong to none of these outputs. Also finds the bytes of
    each output, or None if the call did not allocate this output."""
    found = {}
    marks = [(t, n) for t, n in trace.blocks if n.startswith("cairn:")]
    marks.append((float("inf"), "cairn:end"))
    for (begin, label), (end, _) in zip(marks, marks[1:]):
        if label not in outputs:
            continue
        first, last = bisect.bisect_left(trace.times, begin), bisect.bisect_left(trace.times, end)
        made = {}  # address of an output -> index of the event that allocated it
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
