"""Checks that recomputation in the backward pass starts from the same values as the forward pass did.

Torch itself notices most writes to a tensor between the passes, by the tensor's version counter. Tensors that are known
to share memory with something else are never read again (``sharing.py``). This file finds all other writes, by
comparing checksums of the values.
"""

import ctypes
import zlib

import torch

from .. import _private
from .._errors import WrittenError
from .._offload.copies import HOST, empty_on_host
from .._report import size_text
from .._rewrite.scheduled_module import input_names
from .sharing import shared


class ReadAgain:
    """Checks, when a graph's backward pass begins, that the inputs, buffers and results that it will read again are
    unchanged. ``owner``: the Backend, which gives warnings.
    ``report``: the GraphReport, which says what is read again. ``alive``: a together.Alive, which knows the runs of the
    graph whose backward passes are still to come. ``split``: number of results of the forward pass. ``module``: the
    forward module before AOTAutograd adds saved-tensor hooks to it. ``kernels``: a function that returns the kernel
    settings of the last forward pass."""

    def __init__(self, owner, report, alive, split, kernels, module):
        self.owner, self.report, self.alive, self.split = owner, report, alive, split
        self.saved = [getattr(node, "name", None) for node in _private.outputs(module.graph)[split:]]
        self.kernels = kernels  # a function that returns, as text, the kernel settings when the last forward pass began

    def forward(self, run, module):
        names = input_names(module)
        returned = [getattr(node, "name", None) for node in _private.outputs(module.graph)]
        of_callers = [names.index(name) for name in self.report.read_again if name in names]
        inputs = of_callers + [names.index(name) for name in self.report.buffers_read_again if name in names]
        results = range(self.split) if self.report.results_read_again else self._views_of_saved(module)
        reads_again = bool(self.report.recomputes or inputs or results)

        def call(args):
            if not (reads_again or _private.saves_by_hooks()):
                return run(args)
            self._copy_shared(args, of_callers)
            unchanged = Unchanged({names[i]: args[i] for i in inputs}, self.kernels(), _private.saves_by_hooks())
            result = run(args)
            made = self.alive.latest()
            if made is not None:
                if results:
                    unchanged.note(self._saved_of(result, returned, results))
                saved = list(zip(returned, result))[self.split:]
                unchanged.layouts = {name: _layout(t) for name, t in saved if _private.is_plain(t)}
                if unchanged.hooks:
                    unchanged.versions = {
                        name: (_private.weak_storage(t.untyped_storage()), t.data_ptr(), t._version)
                        for name, t in saved if _private.is_plain(t)}
                made.unchanged = unchanged
            return result

        return call

    def backward(self, run, module):
        names = input_names(module)
        if self.report.recomputes and _private.saved_by_compiled_hooks(names, self.saved):
            self._tell_of_hooks("may return")

        def call(args):
            made = self.alive.beginning()
            if made is not None and made.unchanged is not None:
                self._check(made.unchanged, dict(zip(names, args)))
                self._lay_out(args, names, made.unchanged.layouts)
            return run(args)

        return call

    def _views_of_saved(self, module):
        """Returns the positions of results that share their storage with another tensor that is saved for the backward
        pass. Both have version counters of their own, so torch does not notice that the caller writes such a result."""
        outputs = _private.outputs(module.graph)
        saved = {}
        for node in outputs[self.split:]:
            if getattr(node, "op", "placeholder") != "placeholder":
                saved.setdefault(_storage_of(node), []).append(node)
        return [i for i, node in enumerate(outputs[:self.split])
                if _storage_of(node) is not None and any(other is not node for other in saved.get(_storage_of(node), ()))]

    def _saved_of(self, values, names, positions):
        """Returns {name: value} for the values that are saved for the backward pass and share their storage with one of
        the results at these positions."""
        results = {t.untyped_storage().data_ptr() for t in (values[i] for i in positions) if _private.is_plain(t)}
        return {name: t for name, t in list(zip(names, values))[self.split:]
                if _private.is_plain(t) and t.untyped_storage().data_ptr() in results}

    def _copy_shared(self, args, positions):
        """Replaces arguments by copies if they share memory with something else now, but did not when the plan was
        made."""
        size = 0
        for k in shared([args[i] for i in positions], running=True):
            args[positions[k]] = new = _private.copy_of_input(args[positions[k]])
            size += new.untyped_storage().nbytes()
        if size:
            self.owner.tell(
                f"{self.report.name}: an input now shares memory with something else, which it did not when the plan was made; a "
                f"copy ({size_text(size)}, not counted in what is promised) is kept until its last read; inputs='stable' if "
                "nobody writes it before the backward pass has ended")

    def _lay_out(self, args, names, layouts):
        """Restores the layout and the alignment of arguments that saved-tensor hooks have changed, by copying the
        arguments. This is needed because recomputation would otherwise round differently and draw random numbers in
        another order."""
        for k, name in enumerate(names):
            if _private.is_plain(args[k]) and _layout(args[k]) != layouts.get(name, _layout(args[k])):
                args[k] = _laid_out(args[k], *layouts[name], is_on_host=name.startswith(HOST))

    def _tell_of_hooks(self, give):
        self.owner.tell(
            f"{self.report.name}: hooks on saved values {give} other values than they got; recomputation starts from these")

    def _check(self, before, given):
        if self.report.recomputes and before.written_behind_hooks(given):
            self.owner.tell(
                f"{self.report.name}: hooks on saved values hide from torch that one of them, for example a parameter, was written "
                "in place before the backward pass; recomputation reads the new value, and all else the old one")
        name = before.changed(given)
        if name is not None and before.hooks and not before.is_uncopied(name, given[name]):
            self._tell_of_hooks("return")
        elif name is not None:
            known = {name: "an input" for name in self.report.read_again} | {
                name: "a buffer" for name in self.report.buffers_read_again}
            what = known.get(name, "a result of the forward pass")
            raise WrittenError(
                f"{self.report.name}: {what} was written between forward and backward, where torch did not notice (by numpy, "
                "DLPack, .data, a returned view, or a kernel that tells nobody), and the backward pass reads it: hand on a copy, or "
                "write it after the backward pass; backend(..., inputs='changing') computes what is made of inputs once")
        if not self.report.recomputes:
            return
        if before.kernels != _private.kernel_settings():
            self.owner.tell(
                f"{self.report.name}: kernel settings (threads, default dtype, mkldnn, precision, determinism) differ between forward and "
                "backward pass: what is computed again may differ from what it was by rounding")
        if before.modes != _private.modes_of_user():
            self.owner.tell(
                f"{self.report.name}: other modes that see operations ({', '.join(before.modes + _private.modes_of_user())}) are in "
                "force in the backward pass than in the forward pass: what is computed again is computed under those of the backward "
                "pass")


class Unchanged:
    """Records the values that a forward pass has read, to compare them later. Tensors on a GPU are not recorded,
    because the host would have to wait for the device."""

    def __init__(self, tensors, kernels="", hooks=False):
        """Records the values of ``tensors``, a dict by name. ``hooks``: whether saved-tensor hooks receive the values
        that are saved for the backward pass. ``kernels``: the kernel settings of the forward pass, as text."""
        self.kernels, self.hooks, self.modes = kernels, hooks, _private.modes_of_user()
        self.known = {}  # name -> (shape, strides, checksum)
        self.layouts = {}  # name -> _layout(), for all values saved for the backward pass
        # name -> (weak reference to the storage, address, torch's version counter), for the same values; empty if there
        # are no hooks
        self.versions = {}
        self.note(tensors)

    def note(self, tensors):
        for name, tensor in tensors.items():
            if _has_a_checksum(tensor):
                self.known[name] = tensor.shape, tensor.stride(), _checksum(tensor, tensor.stride())

    def changed(self, tensors):
        """Returns the name of the first tensor whose values have changed, or None. A tensor may have another address
        and layout than before, because saved-tensor hooks may copy it."""
        for name, tensor in tensors.items():
            if name in self.known and _private.is_plain(tensor):
                shape, strides, checksum = self.known[name]
                if tensor.shape != shape or not _has_a_checksum(tensor) or _checksum(tensor, strides) != checksum:
                    return name
        return None

    def written_behind_hooks(self, tensors):
        """Returns whether a saved tensor that saved-tensor hooks have returned uncopied was written after the forward
        pass. Torch itself checks this only if there are no hooks."""
        return any(version != tensors[name]._version for name, (_, _, version) in self.versions.items()
                   if name in tensors and _private.is_plain(tensors[name]) and self.is_uncopied(name, tensors[name]))

    def is_uncopied(self, name, tensor):
        """Returns whether a tensor that saved-tensor hooks have returned has the memory of the saved one."""
        storage, address, _ = self.versions[name]
        # If the storage has been freed, the tensor that hooks return can be at the same address by chance.
        return tensor.data_ptr() == address and not storage.expired()


def _storage_of(node):
    """Returns a key of the storage of a traced node's tensor; None if there is none."""
    value = getattr(node, "meta", {}).get("val")
    is_strided = isinstance(value, torch.Tensor) and value.layout is torch.strided
    return value.untyped_storage()._cdata if is_strided else None


def _layout(tensor):
    return tensor.stride(), _private.alignment_of(tensor) if _private.is_there(tensor) else 0


def _laid_out(tensor, strides, alignment, is_on_host):
    """Returns a copy with these strides and this alignment. Of an expanded dimension (stride 0), only one element is
    copied. ``is_on_host``: whether the tensor is a copy on the host of a value of the device."""
    tensor, shape = tensor.detach(), tensor.shape
    tensor = tensor[tuple(slice(0, 1) if step == 0 else slice(None) for step in strides)]
    if is_on_host:
        new = empty_on_host(tensor.shape, strides, alignment, dtype=tensor.dtype)
    else:
        new = _private.empty_aligned(tensor.shape, strides, alignment, dtype=tensor.dtype, device=tensor.device)
    return new.copy_(tensor).expand(shape)


_PIECE = 1024 * 1024  # bytes to copy at a time if a tensor has gaps


def _has_a_checksum(value):
    return _private.is_plain(value) and value.device.type == "cpu" and value.numel() > 0 and _private.is_there(value)


def _checksum(tensor, strides):
    """Returns the CRC-32 of a tensor's elements in the order in which they would lie in memory with these strides.
    Allocates nothing through torch, so that a peak that is being measured does not rise."""
    # Takes one element of each expanded dimension (stride 0).
    tensor = tensor.detach()[tuple(0 if step == 0 else slice(None) for step in strides)]
    steps = [step for step in strides if step != 0]
    tensor = tensor.permute(sorted(range(len(steps)), key=lambda i: (-steps[i], tensor.shape[i] == 1)))
    if tensor.is_contiguous():
        return zlib.crc32((ctypes.c_char * tensor.nbytes).from_address(tensor.data_ptr()))
    checksum = 0
    for piece in tensor.split(max(1, tensor.shape[0] * _PIECE // tensor.nbytes)):
        copied = bytearray(piece.nbytes)
        torch.frombuffer(copied, dtype=piece.dtype).view(piece.shape).copy_(piece)
        checksum = zlib.crc32(copied, checksum)
    return checksum
