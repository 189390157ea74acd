"""Some inputs may be written between forward and backward without torch noticing.

A write that torch sees raises the version of a tensor, and autograd then refuses to use what it saved. Torch does not
see writes to memory that an input shares with numpy, with another process, or with a tensor that has a version of its
own, nor writes by some kernels beside their results. What the forward pass made of such memory must not be made again
from it: inputs that are known to share memory are not read again, and all others must be unchanged (``read_again``).
"""

from .. import _private


def shared(tensors, running=False):
    """Indices of tensors that share memory with something unknown, which may write it unseen. Views of the same tensor
    among ``tensors`` share its version. ``running``: within a compiled function, which holds its arguments more than
    once, so that another library's reference by DLPack is not noticed."""
    groups = {}  # storage -> positions
    for i, tensor in enumerate(tensors):
        if _private.is_plain(tensor):
            groups.setdefault(tensor.untyped_storage()._cdata, []).append(i)
    return [i for members in groups.values() if _written_unseen([tensors[i] for i in members], running) for i in members]


def _written_unseen(tensors, running):
    """Whether unseen writes are possible; ``tensors``: all known tensors of one storage."""
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
