"""Inputs that may be written between forward and backward without torch noticing.

A write that torch knows of raises the version of a tensor, and autograd refuses to go on with what it saved. Memory that an
input shares with numpy, with another process, or with a tensor that has a version of its own is written unseen, and so is what
some kernels write beside their results. What the forward pass made of it must not be made of it again then: what is known to
share its memory is not read again, and whatever is has to be as it was.
"""

import torch

from . import _private


def shared(tensors, running=False):
    """Positions of those that share memory with something unknown, which may write it unseen. Others among ``tensors`` that are
    views of the same tensor share its version with them. ``running``: within a compiled function, which holds its arguments more
    than once, so that another library that does by way of DLPack is not noticed."""
    groups = {}  # storage -> positions
    for i, tensor in enumerate(tensors):
        if _private.is_plain(tensor):
            groups.setdefault(tensor.untyped_storage()._cdata, []).append(i)
    return [i for members in groups.values() if _written_unseen([tensors[i] for i in members], running) for i in members]


def _written_unseen(tensors, running):
    """Of all known tensors of one storage."""
    roots = {id(t if t._base is None else t._base): t if t._base is None else t._base for t in tensors}
    if len(roots) > 1 or any(t.is_inference() for t in tensors) or not _private.owns_its_memory(tensors[0]):
        return True
    (root,) = roots.values()
    if root.grad_fn is not None:  # autograd saves what it has computed in tensors of its own
        return False
    known = len({id(t) for t in (root, *tensors)})
    there, given = _private.tensors_of_storage(root), any(t is root for t in tensors)
    if there > known:  # unless they are views of the root, each of which holds it
        return given or there != _private.holders(root)
    return given and not running and not root.requires_grad and _private.holders(root) > there


def positions(module, names):
    """Which arguments of a module the placeholders of these names are."""
    placeholders = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    return [placeholders.index(name) for name in names if name in placeholders]


def copy_shared(args, positions):
    """Replaces those of the arguments that share memory by copies of their own. Returns the bytes of the copies."""
    found = shared([args[i] for i in positions], running=True)
    size = 0
    for k in found:
        args[positions[k]] = new = _private.copy_of_input(args[positions[k]])
        size += new.untyped_storage().nbytes()
    return size


class Unchanged:
    """What a backward pass computes from again, as the forward pass read it. Memory of GPUs is left out, as comparing would
    wait for the device."""

    def __init__(self, kernels):
        self.kernels = kernels  # the switches that decide which kernel runs, as text
        self.digests = {}  # where a tensor is and how it is laid out -> digest

    def note(self, tensors):
        for tensor in filter(_has_a_digest, tensors):
            key = _place(tensor)
            if key not in self.digests:
                self.digests[key] = _digest(tensor)

    def note_results(self, values, split):
        """Of the values that a forward pass returns, those that are saved and in a storage of one of the first ``split``."""
        results = {t.untyped_storage().data_ptr() for t in filter(_private.is_plain, values[:split])}
        self.note(t for t in filter(_private.is_plain, values[split:]) if t.untyped_storage().data_ptr() in results)

    def changed(self, tensors):
        """Position of the first of the tensors that is not as it was noted; None: there is none."""
        for i, tensor in enumerate(tensors):
            if _has_a_digest(tensor):
                before = self.digests.get(_place(tensor))
                if before is not None and not all(map(torch.equal, before, _digest(tensor))):
                    return i
        return None


def _has_a_digest(value):
    return _private.is_plain(value) and value.device.type == "cpu" and value.numel() > 0


def _place(tensor):
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tuple(tensor.stride())


_EXACT = 64 * 1024  # bytes: of a tensor that has no more, the digest is a copy
_PIECE = 1024 * 1024  # bytes: what is copied at a time of a tensor that is not dense


def _digest(tensor):
    """Tensors that are other ones when any bit of the tensor has changed, but for changes that add up to nothing in each row and
    in each column of its memory. They take about the square root of its bytes, and the time that reading it twice takes."""
    with torch.no_grad():
        tensor = torch.view_as_real(tensor.detach().resolve_conj()) if tensor.is_complex() else tensor.detach().resolve_neg()
        tensor = tensor[tuple(0 if step == 0 else slice(None) for step in tensor.stride())]  # what is expanded is there once
        dense = _dense(tensor)
        if dense is None and tensor.numel() * tensor.element_size() > _PIECE and tensor.dim() > 1:
            largest = max(range(tensor.dim()), key=tensor.shape.__getitem__)
            pieces = -(-tensor.numel() * tensor.element_size() // _PIECE)
            return [part for piece in tensor.chunk(pieces, largest) for part in _digest(piece)]
        dense = tensor.contiguous().flatten() if dense is None else dense
        data = dense.view(torch.uint8)
        if data.numel() <= _EXACT:
            return [data.clone()]
        skipped = -data.storage_offset() % 8
        words = data[skipped:skipped + (data.numel() - skipped) // 8 * 8].view(torch.int64)
        columns = int(words.numel()**0.5)
        table = words[:words.numel() // columns * columns].view(-1, columns)
        rest = data[skipped + table.numel() * 8:].clone()
        return [data[:skipped].clone(), table.sum(0), table.sum(1), rest]


def _dense(tensor):
    """A dense tensor as one of one dimension, in the order of its memory; None where it has holes or overlaps itself."""
    order = sorted(range(tensor.dim()), key=lambda i: (-tensor.stride(i), tensor.shape[i] == 1))
    flat = tensor.permute(order)
    return flat.view(-1) if flat.is_contiguous() else None
