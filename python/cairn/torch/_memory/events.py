"""Computes the bytes in memory from the events of torch's profiler or, on a GPU, of torch's allocator. These events
contain every allocation, also those that kernels make for themselves, which a TorchDispatchMode would not see.
"""

import bisect
import contextlib
import gc
import threading

import cairn

from .. import _private

_recording = threading.Lock()  # held while a MemoryTrace records: torch's profiler works in one thread at a time
_BLOCK = 512  # bytes; CUDA's caching allocator hands out multiples of this size


class MemoryTrace:
    """Records every allocation on one kind of device within a ``with`` block. ``available`` is False if another
    profiler is active, because there can be only one.

    After the block, ``peak`` is the largest number of bytes that were in memory, and ``end`` the number at the end of
    the block. Both numbers are relative to the bytes in memory at the beginning of the block. Python's garbage collector
    is off within the block: else it could free older garbage there, and the peak would be too low.

    ``optional``: whether end_optional() may end the trace before the end of the block. If it does, the trace has no
    events, and ``ended`` is True.
    ``waits``: whether the block waits if another thread has begun to record since ``available`` was called; if not, it
    raises InputError. Code that holds a lock of torch.compile must not wait, because the other thread may need it.

    Raises InputError within the block of another MemoryTrace of the same thread.
    """

    _optional = None  # (the optional trace that is recording, its thread)
    _thread = None  # the thread that is recording

    def __init__(self, device="cpu", optional=False, waits=True):
        self.device = device
        self.optional, self.ended, self.waits = optional, False, waits
        self.times, self.sizes, self.addresses = [], [], []
        self.blocks = []  # (beginning in ns, name) of operations and of record_function blocks

    @staticmethod
    def available():
        return not _recording.locked() and not _private.profiler_runs() and _private.history_can_be_recorded()

    def __enter__(self):
        self._history = None
        if self.device == "cuda":
            _private.make_workspaces()
        with contextlib.ExitStack() as stack:
            if MemoryTrace._thread == threading.get_ident() or not _recording.acquire(blocking=self.waits):
                raise cairn.InputError("MemoryTrace: another one is recording already, and two cannot record at once; end it before")
            stack.callback(self._end_recording)
            MemoryTrace._thread = threading.get_ident()
            if gc.isenabled():
                gc.disable()
                stack.callback(gc.enable)
            stack.enter_context(_private.quiet_allocator)
            self._profiler = _private.memory_profiler()
            with _private.quiet_profiler():
                stack.enter_context(self._profiler)
            if self.device == "cuda":
                self._history = stack.enter_context(_private.AllocatorHistory())
            self._entered = stack.pop_all()
        if self.optional:
            MemoryTrace._optional = self, threading.get_ident()
        return self

    @staticmethod
    def _end_recording():
        MemoryTrace._thread = None
        _recording.release()

    @staticmethod
    def end_optional():
        """Ends the optional trace that this thread is recording, if there is one, so that another trace can record."""
        trace, thread = MemoryTrace._optional or (None, None)
        if thread == threading.get_ident():
            MemoryTrace._optional = None
            trace.ended = True
            trace._entered.close()

    def __exit__(self, *error):
        if self.ended:
            return
        if self.optional:
            MemoryTrace._optional = None
        self._entered.__exit__(*error)
        if error[0] is None:
            found = []
            for time, size, address, device, name in _private.allocations(self._profiler):
                if size == 0:
                    self.blocks.append((time, name))
                elif device == self.device:
                    found.append((time, size, address))
            if self._history is not None:
                found = timed(self._history.events, found)
            self.times, self.sizes, self.addresses = ([event[i] for event in found] for i in range(3))
        del self._profiler, self._history, self._entered

    def live(self, without=(), held=()):
        """Returns the bytes in memory after each event, minus those before the first event. ``without``: addresses of
        storages that are in memory at the end but do not count. ``held``: addresses of storages that were in memory
        before the first event. They count until the end, even if they are freed."""
        first = {}  # address -> its first event
        for i, address in enumerate(self.addresses):
            first.setdefault(address, i)
        # A held storage is freed by the first event at its address, and this event is ignored. If the first event at
        # the address is an allocation, the held storage had been freed before, and the event belongs to another
        # storage.
        ignored = {first[address] for address in held if address in first and self.sizes[first[address]] < 0}
        left = set(without)
        # Going backwards, the first event at an address belongs to the storage that is at this address at the end. If
        # it is an allocation, it is ignored, so that the storage does not count.
        for i in range(len(self.sizes) - 1, -1, -1):
            if self.addresses[i] in left:
                left.discard(self.addresses[i])
                if self.sizes[i] > 0:
                    ignored.add(i)
        total, result = 0, []
        for i, size in enumerate(self.sizes):
            if i not in ignored:
                total += size
            result.append(total)
        return result

    @property
    def peak(self):
        return max(self.live(), default=0) if self.sizes else 0

    @property
    def end(self):
        return sum(self.sizes)

    def at_peak(self, without=(), held=()):
        """Returns (bytes of the peak, name of the operation that ran at the peak). Arguments are those of live()."""
        live = self.live(without, held)
        if not live:
            return 0, ""
        peak = max(range(len(live)), key=live.__getitem__)
        begin = bisect.bisect_right(self.blocks, (self.times[peak], "\x7f")) - 1
        return max(live[peak], 0), self.blocks[begin][1] if begin >= 0 else ""


def timed(history, found):
    """Converts events (address, bytes) of a GPU's allocator to (ns, bytes rounded up to blocks, address). The
    allocator's events have no times, so times are taken from the profiler's events ``found``, whose allocations have
    the same order. An event that the profiler did not record gets the time of the previous event."""
    allocated = [(time, address) for time, size, address in found if size > 0]
    events, k, now = [], 0, allocated[0][0] if allocated else 0
    for address, size in history:
        if size > 0 and k < len(allocated) and allocated[k][1] == address:
            now = allocated[k][0]
            k += 1
        events.append((now, (size > 0 or -1) * (-(-abs(size) // _BLOCK) * _BLOCK), address))
    return events


def measure_peak(function, device="cpu"):
    """Calls ``function``. Returns (its result, MemoryTrace.peak, MemoryTrace.end). Raises InputError if a profiler of
    torch is running, because two profilers cannot record at once."""
    if not MemoryTrace.available():
        raise cairn.InputError("measure_peak: a profiler of torch is running already, and two cannot record at once; end it before")
    with MemoryTrace(device) as trace:
        result = function()
    return result, max(trace.peak, 0), trace.end


def bytes_of(tensors):
    """Returns the bytes of the distinct storages of the given tensors."""
    sizes = {}
    for tensor in tensors:
        if _private.is_plain(tensor):
            storage = tensor.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())


def bytes_beyond(tensors):
    """Returns the number of bytes that the storages of the given tensors have beyond the bytes of the tensors
    themselves."""
    needed = {}
    for tensor in filter(_private.is_plain, tensors):
        storage = tensor.untyped_storage()
        size, of_tensors = needed.get(storage.data_ptr(), (storage.nbytes(), 0))
        needed[storage.data_ptr()] = size, of_tensors + tensor.nbytes
    return sum(max(0, size - of_tensors) for size, of_tensors in needed.values())
