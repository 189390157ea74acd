"""Copies values between the device and the host while a compiled step runs.

A value leaves in two steps, evict() and evicted(), and comes back in two steps, fetch() and fetched(). The first step
starts the copy, and the second step waits for its end. The graph that calls these functions keeps the source of a copy
in memory until the second step.

On a GPU, copies in the two directions run on two streams, to and from pinned memory. The functions order the streams by
events, so that the host never waits. torch's own operations for copies (``torch.ops.ao.offload``) are not used, for two
reasons: they use one stream for both directions, and they copy tensors with unusual strides through additional memory
of the device, which no plan contains.

On the CPU, the copies go to buffers outside of torch's allocator, so that they do not count as memory of the device.
This brings no advantage to training on a CPU. It lets tests compute on any machine what a step on a GPU computes.
"""

import dataclasses

import torch

from cairn import DefectError

from .. import _private

HOST = "cairn_host"  # names of nodes whose values are copies on the host begin with this text


def is_on_host(node):
    """Returns whether a node of a graph is a copy on the host."""
    return getattr(node, "name", "").startswith(HOST)


@dataclasses.dataclass
class Trial:
    """Settings for tests of copies on the CPU. ``late``: a function that is called for each copy, and returns whether
    the copy runs only in the second step (evicted, fetched). ``poison``: whether memory is overwritten as soon as its
    bytes count as free."""

    late: object = None
    poison: bool = False


trial = Trial()
_POISON = 0xFF  # bytes of this value are NaNs as floating-point numbers


@torch.compiler.allow_in_graph
def evict(value):
    """Begins to copy a value to the host. Returns the copy, which has the value's strides."""
    if _private.fake_mode_of([value]) is not None:
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cpu")
    if _private.lacks_memory(value):  # there is nothing to copy
        return value
    copies = _copies_of(value.device)
    host = _like(value, copies.host_memory(value.untyped_storage().nbytes()))
    copies.begin(host, value, out=True)
    if _private.saves_by_hooks():  # saved-tensor hooks may read the copy before evicted() is called
        copies.finish_now(host, value)
    return host


@torch.compiler.allow_in_graph
def evicted(host, value):
    """Ends the copy that evict() has begun. The caller frees ``value`` afterwards. Returns ``host``."""
    if _private.fake_mode_of([value]) is None and not _private.lacks_memory(value):
        _copies_of(value.device).end(host, value, host, out=True)
    return host


@torch.compiler.allow_in_graph
def fetch(host, device):
    """Begins to copy a value back to the device. Returns the tensor on the device, whose contents are undefined until
    fetched()."""
    if _private.fake_mode_of([host]) is not None:
        return torch.empty_strided(host.shape, host.stride(), dtype=host.dtype, device=device)
    if _private.lacks_memory(host):
        return host
    copies = _copies_of(device)
    value = _like(host, torch.empty(host.untyped_storage().nbytes(), dtype=torch.uint8, device=device))
    copies.begin(host, value, out=False)
    return value


@torch.compiler.allow_in_graph
def fetched(value, host, last):
    """Ends the copy that fetch() has begun. Returns ``value``. ``last``: whether nothing reads ``host`` afterwards."""
    if _private.fake_mode_of([value]) is None and not _private.lacks_memory(value):
        _copies_of(value.device).end(host, value, value, out=False, last=last)
    return value


def _like(tensor, memory):
    """Returns a tensor in ``memory`` with type, strides and offset of ``tensor``."""
    new = torch.empty(0, dtype=tensor.dtype, device=memory.device)
    return new.set_(memory.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())


def bytes_of(tensor):
    """Returns a view of the whole storage of a tensor, as a tensor of bytes."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def host_memory(device, size):
    """Returns memory of the host as a tensor of bytes. For a GPU the memory is pinned, so that copies are fast."""
    return _copies_of(device).host_memory(size)


def uncounted_memory(size):
    """Returns memory of the host outside of torch's allocator, as a tensor of bytes. Its alignment is that of torch's
    tensors, so that the alignment of a copy depends only on its offset."""
    if size == 0:  # happens if a size depends on data; frombuffer() refuses 0 bytes
        return torch.empty(0, dtype=torch.uint8, device="cpu")
    memory = bytearray(size + _private.ALIGNMENT)
    start = -torch.frombuffer(memory, dtype=torch.uint8).data_ptr() % _private.ALIGNMENT
    return torch.frombuffer(memory, dtype=torch.uint8, offset=start, count=size)


def empty_on_host(shape, strides, alignment, *, dtype):
    """Does the same as _private.empty_aligned() outside of torch's allocator."""
    memory = uncounted_memory(alignment + dtype.itemsize * _private.extent(shape, strides))
    return torch.as_strided(memory[alignment:].view(dtype), shape, strides)


_known = {}  # device -> its StreamCopies or BufferCopies


def _copies_of(device):
    device = torch.device(device)
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    if device not in _known:
        _known[device] = StreamCopies(device) if device.type == "cuda" else BufferCopies()
    return _known[device]


class StreamCopies:
    """Copies on two streams of a GPU. A copy begins after all work that the current stream had received before begin().
    The current stream waits for the copy in end()."""

    def __init__(self, device):
        self.out, self.back = torch.cuda.Stream(device), torch.cuda.Stream(device)
        # Address of the copy on the host, or of the fetched value -> event that follows the copy on its stream. An
        # entry is missing if saved-tensor hooks have moved the copy on the host, or if a graph runs backward twice.
        # Then end() waits for all work on the copy's stream.
        self.events = {}

    @staticmethod
    def host_memory(size):
        return torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=True)

    def begin(self, host, value, out):
        stream = self.out if out else self.back
        source, target = (value, host) if out else (host, value)
        if not out and host.data_ptr() in self.events:
            stream.wait_event(self.events[host.data_ptr()])
        elif not out:
            stream.wait_stream(self.out)
        # The copy waits until its source is computed. It also waits for earlier uses of the memory of `value`, which
        # another tensor may have freed just before.
        stream.wait_stream(torch.cuda.current_stream(value.device))
        with torch.cuda.stream(stream):
            bytes_of(target).copy_(bytes_of(source), non_blocking=True)
            event = torch.cuda.Event()
            event.record(stream)
        self.events[target.data_ptr()] = event

    def end(self, host, value, target, out, last=False):
        current = torch.cuda.current_stream(value.device)
        # A fetch must wait for the event of its evict. So the entry of an evict stays until its last fetch has ended,
        # whereas the entry of a fetch is removed here.
        event = self.events.get(target.data_ptr()) if out else self.events.pop(target.data_ptr(), None)
        if event is not None:
            current.wait_event(event)
        else:
            current.wait_stream(self.out if out else self.back)
        if last:
            self.events.pop(host.data_ptr(), None)

    def finish_now(self, host, value):
        self.out.synchronize()


class _Late:
    """A copy that begin() has postponed to end(). Holds only weak references, so that it does not keep its source in
    memory."""

    def __init__(self, source, target):
        self.source, self.target = _private.weak_storage(source.untyped_storage()), _private.weak_storage(
            target.untyped_storage())

    def run(self, source, target):
        if self.source.expired() or self.source.cdata != source.untyped_storage()._cdata:
            raise DefectError("a value was freed before its copy had ended; please report this")
        bytes_of(target).copy_(bytes_of(source))


class BufferCopies:
    """Copies on the CPU, to buffers that Python allocates, so that torch's allocator does not count them. A copy runs
    in begin() or, if ``trial.late`` says so, in end()."""

    def __init__(self):
        self.late = {}  # address of the target -> _Late

    host_memory = staticmethod(uncounted_memory)

    def begin(self, host, value, out):
        source, target = (value, host) if out else (host, value)
        self.late.pop(target.data_ptr(), None)  # drops a postponed copy whose target was freed before the copy ran
        if trial.late is not None and trial.late():
            bytes_of(target).fill_(_POISON)
            self.late[target.data_ptr()] = _Late(source, target)
        else:
            bytes_of(target).copy_(bytes_of(source))

    def end(self, host, value, target, out, last=False):
        source = value if out else host
        late = self.late.pop(target.data_ptr(), None)
        if late is not None and not late.target.expired():
            late.run(source, target)
        # If a further backward pass may read the source, the source must not be overwritten.
        again = _private.graph_task() >= 0 and _private.keeps_graph()
        if trial.poison and (out or last) and not again:
            bytes_of(source).fill_(_POISON)

    def finish_now(self, host, value):
        self.end(host, value, host, out=True)
