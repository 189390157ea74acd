"""Inputs that may be written between forward and backward without torch noticing.

A write that torch knows of raises the version of a tensor, and autograd refuses to go on with what it saved. Memory that an
input shares with numpy, with another process, or with a tensor that has a version of its own is written unseen. What the forward
pass made of it must not be made of it again then.
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


def results_saved(values, split):
    """Addresses of storages that are among both the results of a forward pass, the first ``split`` values, and what it saves."""
    results, saved = ({t.untyped_storage().data_ptr() for t in filter(_private.is_plain, part)}
                      for part in (values[:split], values[split:]))
    return frozenset(results & saved)


def of_storages(values, addresses):
    """The tensors among the values that are in one of these storages."""
    return [t for t in filter(_private.is_plain, values) if t.untyped_storage().data_ptr() in addresses]


def handed_on(values):
    """Whether the memory of one of them is somebody else's, too, by now."""
    return any(not _private.owns_its_memory(t) for t in filter(_private.is_plain, values))
