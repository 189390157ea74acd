"""Reads snapshots of PyTorch's allocator on a GPU, as torch.cuda.memory._dump_snapshot() writes them.

A snapshot lists all allocations that the allocator has recorded. From these, this file computes how many bytes were in
use and reserved, how many bytes a static plan of the same allocations would need, and how many bytes the simulated
allocator (caching.py) reserves for them.
"""

import dataclasses
import io
import pathlib
import pickle

import numpy

import cairn

from .._report import size_text
from .caching import CachingAllocator

_GROWS, _SHRINKS = ("segment_alloc", "segment_map"), ("segment_free", "segment_unmap")
_MOST_BYTES = 1 << 48  # larger sizes in a file are errors


class _Unpickler(pickle._Unpickler):
    """Reads only lists, dictionaries, texts and numbers. A pickle of anything else could run code. The base class is
    pickle's implementation in Python, because damaged files can crash its implementation in C."""

    dispatch = {code: load for code, load in pickle._Unpickler.dispatch.items()
                # BYTEARRAY8 allocates as many bytes as its length field says, which may be damaged
                if code != pickle.BYTEARRAY8[0]}

    def find_class(self, module, name):
        raise cairn.InputError(f"snapshot: contains {module}.{name}, which no snapshot of an allocator contains")


def read_snapshot(source, device=0):
    """Reads a snapshot: the path of a file of ``torch.cuda.memory._dump_snapshot(path)``, or the dictionary that
    ``torch.cuda.memory._snapshot()`` returns. ``torch.cuda.memory._record_memory_history()`` must have been called
    before. ``device``: the number of the GPU. Returns a Snapshot. Raises InputError if ``source`` is no such snapshot.
    Code in a pickle is never run."""
    if not isinstance(source, dict):
        try:
            source = _Unpickler(io.BytesIO(pathlib.Path(source).read_bytes())).load()
        except cairn.InputError:
            raise
        except OSError as error:
            raise cairn.InputError(f"snapshot: {source}: {error.strerror}") from None
        except Exception as error:  # a damaged pickle can raise anything
            raise cairn.InputError(f"snapshot: {source}: no pickle of torch.cuda.memory._dump_snapshot: {type(error).__name__}"
                                   ) from None
    try:
        traces, segments = source["device_traces"], source["segments"]
        if not 0 <= device < len(traces):
            raise cairn.InputError(f"snapshot: is of {len(traces)} devices, and not of device {device}")
        return _read(traces[device], [s for s in segments if s.get("device", 0) == device])
    except cairn.InputError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise cairn.InputError(f"snapshot: not as torch.cuda.memory._snapshot() returns it: {type(error).__name__} "
                               f"{str(error)[:80]}") from None


def _size(entry, name="size"):
    size = entry[name]
    if not isinstance(size, int) or not 0 <= size < _MOST_BYTES:
        raise ValueError(f"{name} {size!r}"[:60])
    return size


def _read(trace, segments):
    begins, lower, upper, sizes = {}, [], [], []  # begins: address -> index of the buffer that is there
    grown, time = [], 1  # buffers that were allocated before the recording begin at time 0
    for entry in trace:
        action = entry["action"]
        if action == "alloc":
            begins[entry["addr"]] = len(sizes)
            lower.append(time)
            upper.append(-1)
            sizes.append(_size(entry))
        elif action == "free_completed":
            index = begins.pop(entry["addr"], None)
            if index is None:  # the buffer was allocated before the recording
                index = len(sizes)
                lower.append(0)
                upper.append(-1)
                sizes.append(_size(entry))
            upper[index] = time
        elif action in _GROWS or action in _SHRINKS:
            grown.append(_size(entry) if action in _GROWS else -_size(entry))
            continue
        else:
            continue
        time += 1
    blocks = [b for s in segments for b in s["blocks"] if b["state"] != "inactive"]
    at_end = sum(_size(b, "requested_size") if "requested_size" in b else _size(b) for b in blocks)
    upper = [time if end < 0 else end for end in upper]
    alive = sum(size for size, end in zip(sizes, upper) if end == time)
    reserved = sum(_size(s, "total_size") for s in segments) - sum(grown)
    peak = reserved
    for change in grown:
        reserved += change
        peak = max(peak, reserved)
    # Lifetimes are half-open: a buffer that ends at time t is in memory until the event at t, and a buffer that begins
    # at t does not overlap it.
    if sum(sizes) >= _MOST_BYTES:
        raise ValueError("more bytes than there can be")
    buffers = numpy.array([lower, upper, sizes], dtype=numpy.int64).T.reshape(-1, 3)
    return Snapshot(buffers, max(0, at_end - alive), peak)


@dataclasses.dataclass
class Snapshot:
    """The allocations that an allocator has recorded. ``buffers``: a row for each allocation: number of the event at
    which it begins, number of the event at which it ends, and bytes. ``held``: bytes of allocations that were in memory
    all the time.
    ``reserved``: the largest number of bytes that were reserved."""

    buffers: numpy.ndarray
    held: int
    reserved: int

    @property
    def in_use(self) -> int:
        """Returns the largest number of bytes that were in use at one time."""
        return self.held + max(self._load(), default=0)

    def _load(self):
        change = numpy.zeros(int(self.buffers[:, 1].max(initial=0)) + 2, dtype=numpy.int64)
        numpy.add.at(change, self.buffers[:, 0], self.buffers[:, 2])
        numpy.subtract.at(change, self.buffers[:, 1], self.buffers[:, 2])
        return [int(load) for load in numpy.cumsum(change)]

    def graph(self, name="snapshot"):
        """Returns a cairn.Graph in which each buffer is an output of a node, made when the buffer begins and last read
        when it ends. So ``cairn.plan(graph, range(graph.node_count))`` places the buffers."""
        builder = cairn.GraphBuilder(name)
        made = {}
        reads = {}
        for index, (begin, end, _) in enumerate(self.buffers.tolist()):
            made.setdefault(begin, []).append(index)
            reads.setdefault(max(begin, end - 1), []).append(index)
        where = {}
        for event in range(int(self.buffers[:, 1].max(initial=0)) + 1):
            own = made.get(event, [])
            outputs = [cairn.Output(int(self.buffers[i, 2])) for i in own] or [cairn.Output(0)]
            inputs = [where[i] for i in reads.get(event, ()) if i in where]
            node = builder.add(f"event {event}", cost=1, inputs=inputs, outputs=outputs)
            where.update((i, (node, k)) for k, i in enumerate(own))
        if self.held:
            builder.add_resident("held", self.held)
        return builder.build()

    def static_plan(self, time_limit=None) -> int:
        """Returns the number of bytes that a static plan of the same allocations needs, according to cairn.plan."""
        graph = self.graph()
        options = {} if time_limit is None else {"time_limit": time_limit}
        return self.held + cairn.plan(graph, range(graph.node_count), **options).bytes

    def modelled(self, expandable_segments=False) -> int:
        """Returns the largest number of bytes that the simulated allocator reserves for these allocations."""
        allocator = CachingAllocator(expandable_segments=expandable_segments)
        allocator.allocate(self.held)
        events = [(end, 0, index) for index, (_, end, _) in enumerate(self.buffers.tolist())]
        events += [(begin, 1, index) for index, (begin, _, _) in enumerate(self.buffers.tolist())]
        blocks = {}
        for _, begins, index in sorted(events):
            if begins:
                blocks[index] = allocator.allocate(int(self.buffers[index, 2]))
            else:
                allocator.free(blocks.pop(index, None))
        return allocator.peak_reserved

    def write_buffers(self, path):
        """Writes the buffers as CSV. ``cairn plan --buffers FILE --report PAGE`` places the buffers and draws where
        they lie."""
        rows = (f"{index},{begin},{max(end, begin + 1)},{size}" for index, (begin, end, size) in enumerate(self.buffers.tolist()))
        pathlib.Path(path).write_text("\n".join(["id,lower,upper,size", *rows]) + "\n")

    def __str__(self):
        return (f"{len(self.buffers)} allocations: {size_text(self.reserved)} reserved, {size_text(self.in_use)} in use, of which "
                f"{size_text(self.held)} all the time; a static plan needs {size_text(self.static_plan())}")
