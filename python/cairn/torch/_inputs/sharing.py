"""Finds inputs that may be written between the forward and the backward pass without torch noticing.

A write that torch notices increases the version of a tensor; autograd then raises an error if it needs the old value.
Torch does not notice two kinds of writes: those to memory that an input shares with numpy, with another process or with
a tensor that has a separate version, and those by some kernels to other tensors than their results. Values that were
computed from such memory must not be computed again from it. So inputs that are known to share memory are not read
again, and all other inputs must be unchanged (``read_again``).
"""

import torch

from .. import _private


def shared(tensors, running=False):
    """Returns the indices of the tensors that share memory with something that is not in ``tensors`` and may write it
    without torch noticing. Views of one tensor share its version, so torch notices writes through them. ``running``:
    whether a compiled function runs. Such a function holds several references to its arguments. These cannot be
    distinguished from references that other libraries hold through DLPack, so the latter are ignored."""
    groups = {}  # storage -> positions
    for i, tensor in enumerate(tensors):
        if _private.is_plain(tensor):
            groups.setdefault(tensor.untyped_storage()._cdata, []).append(i)
    return [i for members in groups.values() if _written_unseen([tensors[i] for i in members], running) for i in members]


def is_buffer_of_others(value):
    """Returns whether a tensor of a module is a buffer in memory that torch has not allocated, such as that of a numpy
    array."""
    is_buffer = _private.is_plain(value) and not isinstance(value, torch.nn.Parameter) and not value.requires_grad
    return is_buffer and not _private.owns_its_memory(value)


def _written_unseen(tensors, running):
    """Returns whether the memory of ``tensors``, which are all known tensors of one storage, may be written without
    torch noticing."""
    roots = {id(t if t._base is None else t._base): t if t._base is None else t._base for t in tensors}
    if len(roots) > 1 or any(t.is_inference() for t in tensors) or not _private.owns_its_memory(tensors[0]):
        return True
    (root,) = roots.values()
    # Autograd may hold a computed tensor as another tensor of the same storage, which is no sign of sharing.
    if root.grad_fn is not None:
        return False
    known = len({id(t) for t in (root, *tensors)})
    there, given = _private.tensors_of_storage(root), any(t is root for t in tensors)
    # If further tensors use the storage, they are harmless only if all of them are views of the root. Each view holds a
    # reference to the root, so the root then has as many holders as the storage has tensors.
    if there > known:
        return given or there != _private.holders(root)
    return given and not running and not root.requires_grad and _private.holders(root) > there
