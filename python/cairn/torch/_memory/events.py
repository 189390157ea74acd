"""The bytes that are really alive follow from the allocation events of torch's profiler and, on a GPU, of its allocator.

These see every allocation; a dispatch mode would miss what kernels allocate for themselves.
"""

import bisect
import contextlib

from .. import _private

_BLOCK = 512  # bytes: CUDA's caching allocator hands out multiples of it


class MemoryTrace:
    """Records every allocation on one kind of device while it is entered. Profilers do not nest: see ``available``.

    Afterwards ``peak`` is the most bytes that were alive beyond those before, and ``end`` what was left of them.
    """

    def __init__(self, device="cpu"):
        self.device = device
        self.times, self.sizes, self.addresses = [], [], []
        self.blocks = []  # (begin, name) of operations and of blocks under record_function

    @staticmethod
    def available():
        return not _private.profiler_runs() and _private.history_can_be_recorded()

    def __enter__(self):
        self._history = None
        if self.device == "cuda":
            _private.make_workspaces()
        with contextlib.ExitStack() as stack:
            stack.enter_context(_private.quiet_allocator)
            self._profiler = _private.memory_profiler()
            with _private.quiet_profiler():
                stack.enter_context(self._profiler)
            if self.device == "cuda":
                self._history = stack.enter_context(_private.AllocatorHistory())
            self._entered = stack.pop_all()
        return self

    def __exit__(self, *error):
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
        """Bytes alive after each event, beyond those before the first. ``without``: addresses of storages alive at the
        end that are not counted; ``held``: addresses of earlier storages that count to the end, whether or not they are
        freed."""
        ignored = {next((i for i, address in enumerate(self.addresses) if address == wanted), -1) for wanted in held}
        ignored = {i for i in ignored if i >= 0 and self.sizes[i] < 0}  # without addresses that were used again
        left = set(without)
        for i in range(len(self.sizes) - 1, -1, -1):  # the last allocation at an address is the one alive
            if self.addresses[i] in left:
                left.discard(self.addresses[i])
                if self.sizes[i] > 0:
                    ignored.add(i)
        total, result = 0, []
        known = {}
        for i, size in enumerate(self.sizes):
            if i not in ignored:
                total += size
            result.append(total)
            known[self.addresses[i]] = size
        return result

    @property
    def peak(self):
        return max(self.live(), default=0) if self.sizes else 0

    @property
    def end(self):
        return sum(self.sizes)

    def at_peak(self, without=(), held=()):
        """(bytes, name of the operation that ran then)."""
        live = self.live(without, held)
        if not live:
            return 0, ""
        peak = max(range(len(live)), key=live.__getitem__)
        begin = bisect.bisect_right(self.blocks, (self.times[peak], "\x7f")) - 1
        return max(live[peak], 0), self.blocks[begin][1] if begin >= 0 else ""


def timed(history, found):
    """Converts events of a GPU's allocator, (address, bytes), to (ns, bytes that they take, address). ``found``: the
    profiler's events, whose allocations are in the same order; an event that the profiler did not see gets the time of
    the one before."""
    allocated = [(time, address) for time, size, address in found if size > 0]
    events, k, now = [], 0, allocated[0][0] if allocated else 0
    for address, size in history:
        if size > 0 and k < len(allocated) and allocated[k][1] == address:
            now = allocated[k][0]
            k += 1
        events.append((now, (size > 0 or -1) * (-(-abs(size) // _BLOCK) * _BLOCK), address))
    return events


def measure_peak(function, device="cpu"):
    """Calls ``function`` and returns (what it returned, the most bytes alive meanwhile beyond those before, bytes left)."""
    with MemoryTrace(device) as trace:
        result = function()
    return result, max(trace.peak, 0), trace.end


def bytes_of(tensors):
    """Bytes of the distinct storages of the tensors among the values."""
    sizes = {}
    for tensor in tensors:
        if _private.is_plain(tensor):
            storage = tensor.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())


def bytes_beyond(tensors):
    """Bytes of the storages of the tensors among the values, beyond what these tensors need."""
    needed = {}
    for tensor in filter(_private.is_plain, tensors):
        storage = tensor.untyped_storage()
        size, of_tensors = needed.get(storage.data_ptr(), (storage.nbytes(), 0))
        needed[storage.data_ptr()] = size, of_tensors + tensor.nbytes
    return sum(max(0, size - of_tensors) for size, of_tensors in needed.values())
