"""What a backward pass computes from again has to be what the forward pass read.

The version of a tensor tells of most writes, and what shares memory with others is not read again as far as that can be seen
(``_inputs``). Others are found by comparing.
"""

import ctypes
import zlib

import torch

from . import _private
from ._errors import WrittenError
from ._inputs import shared
from ._report import size_text


class ReadAgain:
    """Of one graph: looks at its inputs, buffers and results as it runs. ``split``: how many results the forward pass has."""

    def __init__(self, owner, report, alive, split):
        self.owner, self.report, self.alive, self.split = owner, report, alive, split

    def forward(self, run, module):
        of_callers = _positions(module, self.report.read_again)
        inputs = of_callers + _positions(module, self.report.buffers_read_again)
        if not (self.report.recomputed or inputs or self.report.results_read_again):
            return run

        def call(args):
            self._copy_shared(args, of_callers)
            unchanged = Unchanged()
            unchanged.note(args[i] for i in inputs)
            result = run(args)
            made = self.alive.latest()
            if made is not None:
                if self.report.results_read_again:
                    unchanged.note_results(result, self.split)
                made.unchanged = unchanged
            return result

        return call

    def backward(self, run, module):
        names = [node.name for node in module.graph.find_nodes(op="placeholder")]

        def call(args):
            made = self.alive.beginning()
            if made is not None and made.unchanged is not None:
                self._check(made.unchanged, args, names)
            return run(args)

        return call

    def _copy_shared(self, args, positions):
        """Replaces those of the arguments that share memory, as they did not when the plan was made, by copies of their own."""
        size = 0
        for k in shared([args[i] for i in positions], running=True):
            args[positions[k]] = new = _private.copy_of_input(args[positions[k]])
            size += new.untyped_storage().nbytes()
        if size:
            self.owner.tell(
                f"{self.report.name}: an input shares memory with something else now, which it did not when the plan was made: a "
                f"copy is kept until it was last read, {size_text(size)} beside what is promised; inputs='stable' if nobody "
                "writes it before the backward pass has ended")

    def _check(self, before, args, names):
        position = before.changed(args)
        if position is not None:
            known = {name: "an input" for name in self.report.read_again} | {
                name: "a buffer" for name in self.report.buffers_read_again}
            what = known.get(names[position], "a result of the forward pass")
            raise WrittenError(
                f"{self.report.name}: {what} was written between forward and backward, where torch did not notice (by numpy, DLPack, "
                ".data, or a kernel that tells nobody), and the backward pass computes from it again: hand on a copy, or write it "
                "after the backward pass; backend(..., inputs='changing') computes what is made of inputs once")
        if before.kernels != _private.kernel_settings():
            self.owner.tell(
                f"{self.report.name}: switches of kernels (threads, mkldnn, precision, determinism) are others in the backward pass "
                "than they were in the forward pass: what is computed again may differ from what it was by rounding")


def _positions(module, names):
    """Which arguments of a module the placeholders of these names are."""
    placeholders = [node.name for node in module.graph.find_nodes(op="placeholder")]
    return [placeholders.index(name) for name in names if name in placeholders]


class Unchanged:
    """What one run of a forward pass read, to be compared. Memory of GPUs is left out, as comparing would wait for the device."""

    def __init__(self):
        self.kernels = _private.kernel_settings()
        self.sums = {}  # where a tensor is and how it is laid out -> checksum

    def note(self, tensors):
        for tensor in filter(_has_a_checksum, tensors):
            key = _place(tensor)
            if key not in self.sums:
                self.sums[key] = _checksum(tensor)

    def note_results(self, values, split):
        """Of the values that a forward pass returns, those that are saved and in a storage of one of the first ``split``."""
        results = {t.untyped_storage().data_ptr() for t in filter(_private.is_plain, values[:split])}
        self.note(t for t in filter(_private.is_plain, values[split:]) if t.untyped_storage().data_ptr() in results)

    def changed(self, tensors):
        """Position of the first of the tensors that is not as it was noted; None: there is none."""
        for i, tensor in enumerate(tensors):
            if _has_a_checksum(tensor) and self.sums.get(_place(tensor), _UNKNOWN) not in (_UNKNOWN, _checksum(tensor)):
                return i
        return None


_UNKNOWN = -1  # no checksum
_PIECE = 1024 * 1024  # bytes that are copied at a time of a tensor with holes


def _has_a_checksum(value):
    return _private.is_plain(value) and value.device.type == "cpu" and value.numel() > 0


def _place(tensor):
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tuple(tensor.stride())


def _checksum(tensor):
    """CRC-32 of the memory of a tensor. It takes none of torch's, so that no peak is higher for it."""
    tensor = tensor.detach()
    tensor = tensor[tuple(0 if step == 0 else slice(None) for step in tensor.stride())]  # what is expanded is there once
    if _is_dense(tensor):
        return zlib.crc32((ctypes.c_char * tensor.nbytes).from_address(tensor.data_ptr()))
    if tensor.nbytes > _PIECE and tensor.dim() > 1:
        largest = max(range(tensor.dim()), key=tensor.shape.__getitem__)
        pieces = tensor.chunk(-(-tensor.nbytes // _PIECE), largest)
        return zlib.crc32(repr([_checksum(piece) for piece in pieces]).encode())
    copied = bytearray(tensor.nbytes)
    torch.frombuffer(copied, dtype=tensor.dtype).view(tensor.shape).copy_(tensor)
    return zlib.crc32(copied)


def _is_dense(tensor):
    """Whether it has neither holes nor elements that are in the same place."""
    order = sorted(range(tensor.dim()), key=lambda i: (-tensor.stride(i), tensor.shape[i] == 1))
    return tensor.permute(order).is_contiguous()
