"""Bytes that are really alive, from the allocation events of torch's profiler.

A dispatch mode would miss what kernels allocate for themselves; the profiler sees every allocation, on any device.
"""

import bisect

import torch

from . import _private


_UNSPLIT = 2**20  # of CUDA's caching allocator: of blocks above it a rest up to it is not split off


class MemoryTrace:
    """Records every allocation on one kind of device while it is entered. Profilers do not nest: see ``available``.

    After it: ``peak``, the most bytes that were alive beyond what was before, and ``end``, what was left of them.
    """

    def __init__(self, device="cpu"):
        self.device = device
        self.times, self.sizes, self.addresses = [], [], []
        self.blocks = []  # (begin, name) of operations and of blocks under record_function

    @staticmethod
    def available():
        return not _private.profiler_runs()

    def __enter__(self):
        activities = [torch.profiler.ProfilerActivity.CPU]
        self._profiler = torch.profiler.profile(activities=activities, profile_memory=True)
        if self.device == "cuda":
            _private.make_workspaces()
        with _private.quiet_profiler():
            self._profiler.__enter__()
        _private.quiet_allocator.__enter__()
        return self

    def __exit__(self, *error):
        try:
            self._profiler.__exit__(*error)
        finally:
            _private.quiet_allocator.__exit__()
        if error[0] is None:
            for time, size, address, device, name in _private.allocations(self._profiler):
                if size == 0:
                    self.blocks.append((time, name))
                elif device == self.device:
                    self.times.append(time)
                    self.sizes.append(size)
                    self.addresses.append(address)
        del self._profiler

    def live(self, without=(), held=()):
        """Bytes alive after each event, beyond those before the first. ``without``: addresses of storages alive at the end
        that are not counted; ``held``: of storages from before that count to the end, whether or not they are freed."""
        ignored = {next((i for i, address in enumerate(self.addresses) if address == wanted), -1) for wanted in held}
        ignored = {i for i in ignored if i >= 0 and self.sizes[i] < 0}  # not an address that was used again
        left = set(without)
        for i in range(len(self.sizes) - 1, -1, -1):  # the last allocation at an address is the one that is alive
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
    def unsplit(self):
        """The most bytes that the allocator may have left in blocks at a time, although nobody asked for them."""
        if self.device != "cuda" or _private.splits_all_blocks():
            return 0
        most = now = 0
        for size in self.sizes:
            now += (size > 0) - (size < 0) if abs(size) > _UNSPLIT else 0
            most = max(most, now)
        return most * _UNSPLIT

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


def is_unsplit(size, wanted, device):
    """Whether a block of ``size`` bytes is what the allocator of a GPU gives for ``wanted``: above 1 MiB it leaves up to 1 MiB
    in the block."""
    return device == "cuda" and _UNSPLIT < wanted < size <= wanted + _UNSPLIT


def measure_peak(function, device="cpu"):
    """Calls ``function`` and returns (what it returned, the most bytes alive meanwhile beyond those before, bytes left)."""
    with MemoryTrace(device) as trace:
        result = function()
    return result, max(trace.peak, 0), trace.end


def bytes_of(tensors):
    """Of the distinct storages of those that are tensors."""
    sizes = {}
    for tensor in tensors:
        if _private.is_plain(tensor):
            storage = tensor.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())


def bytes_beyond(tensors):
    """Of the storages of those that are tensors, beyond what these tensors need."""
    needed = {}
    for tensor in filter(_private.is_plain, tensors):
        storage = tensor.untyped_storage()
        size, of_tensors = needed.get(storage.data_ptr(), (storage.nbytes(), 0))
        needed[storage.data_ptr()] = size, of_tensors + tensor.nbytes
    return sum(max(0, size - of_tensors) for size, of_tensors in needed.values())
