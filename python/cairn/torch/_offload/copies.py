"""Copies values between the device and the host while a compiled step runs.

A value leaves in two steps, evict() and evicted(), and comes back in two steps, fetch() and fetched(). A copy runs
between the first step and the second. The graph that calls these functions holds the source of a copy until the second
step.

On a GPU, copies in the two directions run on two streams, to and from pinned memory. The functions order streams by
events, so that the host never waits. torch's own operations for this (``torch.ops.ao.offload``) have one stream for both
directions, and copy tensors with unusual strides through further memory of the device, which no plan contains. So they
are not used.

On the CPU, the copies go to buffers outside of torch's allocator, so that they do not count as memory of the device.
Training on a CPU does not become better by this. It shows on any machine what a step on a GPU computes.
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
    """How the CPU copies, for tests. ``late``: a function that says for each copy whether it runs in the second step
    instead of the first. ``poison``: whether memory is overwritten as soon as its bytes count as free."""

    late: object = None
    poison: bool = False


trial = Trial()
_POISON = 0xFF  # bytes of this value are NaNs as floating-point numbers


@torch.compiler.allow_in_graph
def evict(value):
    """Begins to copy a value to the host. Returns the copy, which has the value's strides."""
    if _private.fake_mode_of([value]) is not None:
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cpu")
    if _private.is_batched(value):  # has no storage of its own: it stays
        return value
    copies = _copies_of(value.device)
    host = _like(value, copies.host_memory(value.untyped_storage().nbytes()))
    copies.begin(host, value, out=True)
    if _private.saves_by_hooks():  # hooks may read the copy before the second step
        copies.finish_now(host, value)
    return host


@torch.compiler.allow_in_graph
def evicted(host, value):
    """Ends what evict() has begun. The caller frees ``value`` afterwards. Returns ``host``."""
    if _private.fake_mode_of([value]) is None and not _private.is_batched(value):
        _copies_of(value.device).end(host, value, host, out=True)
    return host


@torch.compiler.allow_in_graph
def fetch(host, device):
    """Begins to copy a value back. Returns memory of the device, whose contents are undefined until fetched()."""
    if _private.fake_mode_of([host]) is not None:
        return torch.empty_strided(host.shape, host.stride(), dtype=host.dtype, device=device)
    if _private.is_batched(host):
        return host
    copies = _copies_of(device)
    value = _like(host, torch.empty(host.untyped_storage().nbytes(), dtype=torch.uint8, device=device))
    copies.begin(host, value, out=False)
    return value


@torch.compiler.allow_in_graph
def fetched(value, host, last):
    """Ends what fetch() has begun. Returns ``value``. ``last``: whether nothing reads ``host`` afterwards."""
    if _private.fake_mode_of([value]) is None and not _private.is_batched(value):
        _copies_of(value.device).end(host, value, value, out=False, last=last)
    return value


def _like(tensor, memory):
    """Returns a tensor in ``memory`` with type, strides and offset of ``tensor``."""
    new = torch.empty(0, dtype=tensor.dtype, device=memory.device)
    return new.set_(memory.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())


def bytes_of(tensor):
    """Returns the whole storage of a tensor as bytes, a view."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def host_memory(device, size):
    """Returns bytes of the host, to and from which a device copies best."""
    return _copies_of(device).host_memory(size)


_known = {}  # device -> its copies


def _copies_of(device):
    device = torch.device(device)
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    if device not in _known:
        _known[device] = StreamCopies(device) if device.type == "cuda" else BufferCopies()
    return _known[device]


class StreamCopies:
    """Copies on two streams of a GPU. A copy is ordered behind all that the current stream does before the first step.
    The current stream waits for it in the second step."""

    def __init__(self, device):
        self.out, self.back = torch.cuda.Stream(device), torch.cuda.Stream(device)
        # Address of the copy on the host, or of the fetched value -> event behind the copy. An entry is missing if hooks
        # on saved tensors have moved the copy, or if a graph runs backward twice. Then the whole stream is waited for.
        self.events = {}

    @staticmethod
    def host_memory(size):
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)

    def begin(self, host, value, out):
        stream = self.out if out else self.back
        source, target = (value, host) if out else (host, value)
        if not out and host.data_ptr() in self.events:
            stream.wait_event(self.events[host.data_ptr()])
        elif not out:
            stream.wait_stream(self.out)
        # Also orders the copy behind earlier uses of the memory of `value`, which may have been freed just before.
        stream.wait_stream(torch.cuda.current_stream(value.device))
        with torch.cuda.stream(stream):
            bytes_of(target).copy_(bytes_of(source), non_blocking=True)
            event = torch.cuda.Event()
            event.record(stream)
        self.events[target.data_ptr()] = event

    def end(self, host, value, target, out, last=False):
        current = torch.cuda.current_stream(value.device)
        # A fetch still has to wait for the event of an evict, so the entry stays until the copy on the host is freed.
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
    """A copy that has not run. It does not keep its source in memory."""

    def __init__(self, source, target):
        self.source, self.target = _private.weak_storage(source.untyped_storage()), _private.weak_storage(
            target.untyped_storage())

    def run(self, source, target):
        if self.source.expired() or self.source.cdata != source.untyped_storage()._cdata:
            raise DefectError("a value was freed before its copy had ended; please report this")
        bytes_of(target).copy_(bytes_of(source))


class BufferCopies:
    """Copies to buffers of Python, which torch's allocator does not know. ``trial`` can run a copy in the second
    step."""

    def __init__(self):
        self.late = {}  # address of the target -> _Late

    @staticmethod
    def host_memory(size):
        if size == 0:  # a size that depends on data; frombuffer() refuses it
            return torch.empty(0, dtype=torch.uint8)
        return torch.frombuffer(bytearray(size), dtype=torch.uint8)

    def begin(self, host, value, out):
        source, target = (value, host) if out else (host, value)
        self.late.pop(target.data_ptr(), None)  # of memory that was freed before its copy ended
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
        again = _private.graph_task() >= 0 and _private.keeps_graph()  # a further backward pass may read the source
        if trial.poison and (out or last) and not again:
            bytes_of(source).fill_(_POISON)

    def finish_now(self, host, value):
        self.end(host, value, host, out=True)
