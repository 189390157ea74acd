"""Inputs that may be written between forward and backward without torch noticing.

A write that torch knows of raises the version of a tensor, and autograd refuses to go on with what it saved. Memory that an
input shares with numpy, with another process, or with a tensor that has a version of its own is written unseen, and so is what
some kernels write beside their results. What the forward pass made of it must not be made of it again then: what is known to
share its memory is not read again, and whatever is has to be as it was (``_read_again``).
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
