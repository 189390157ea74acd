"""Finds inputs that may be written between the forward and the backward pass without torch noticing.

Usually a write increases a tensor's version counter, and autograd raises an error if it needs the old value. Torch does
not notice writes through numpy, another process or a tensor with a separate version that shares the memory, nor writes
by some kernels to tensors that are not their results. Operations that read such memory must not run again. So inputs
that are known to share memory are not read again, and all other inputs are checked for changes (``read_again.py``).
"""

import torch

from .. import _private
from .._graph import operators


def shared(tensors, running=False, saved=lambda tensor: 0):
    """Returns the indices of the tensors that share memory with something outside of ``tensors`` that may write it
    without torch noticing. Views of one tensor share its version, so torch notices writes through them. ``running``:
    whether a compiled function runs. If so, references that other libraries hold through DLPack are not looked for,
    because the function itself holds several references to its arguments. ``saved(tensor)``: number of references to a
    tensor that are known to be those of backward passes, which write nothing."""
    groups = {}  # storage -> positions
    for i, tensor in enumerate(tensors):
        if _private.is_plain(tensor):
            groups.setdefault(tensor.untyped_storage()._cdata, []).append(i)
    return [i for members in groups.values() if _written_unseen([tensors[i] for i in members], running, saved) for i in members]


# These operations address the storage of their first argument by an offset from the storage's beginning.
_AS_STRIDED = (torch.ops.aten.as_strided.default, torch.ops.aten.as_strided_copy.default,
               torch.ops.aten.as_strided_scatter.default)


def read_by_as_strided(graph, placeholders):
    """Returns those of the placeholders to which, or to views of which, a graph applies as_strided(). This operation
    reads the storage at places that do not depend on the tensor: also outside of the tensor, where other tensors may
    write unseen, and elsewhere in a copy of the tensor, which has another offset. So these inputs can neither be
    compared nor copied."""
    roots, found = {node: node for node in placeholders}, {}
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        if node.target in _AS_STRIDED and node.args[0] in roots:
            found[roots[node.args[0]]] = None
        # The schema of an operation with several results, such as split(), does not name the argument of which they are
        # views.
        given = [roots[argument] for argument in node.all_input_nodes if argument in roots]
        if given and operators.is_view(node):
            roots[node] = given[0]
    return list(found)


def is_buffer_of_others(value):
    """Returns whether a module's tensor is a buffer whose memory torch has not allocated, such as a numpy array's."""
    is_buffer = _private.is_plain(value) and not isinstance(value, torch.nn.Parameter) and not value.requires_grad
    return is_buffer and not _private.owns_its_memory(value)


def _written_unseen(tensors, running, saved):
    """Returns whether the memory of ``tensors`` may be written without torch noticing. ``tensors`` are all known
    tensors of one storage. ``running``, ``saved``: as in shared()."""
    roots = {id(t if t._base is None else t._base): t if t._base is None else t._base for t in tensors}
    if len(roots) > 1 or any(t.is_inference() for t in tensors) or not _private.owns_its_memory(tensors[0]):
        return True
    (root,) = roots.values()
    # Autograd may hold a second tensor object for the storage of a computed tensor. This is no sign of sharing.
    if root.grad_fn is not None:
        return False
    known = len({id(t) for t in (root, *tensors)})
    there, given = _private.tensors_of_storage(root), any(t is root for t in tensors)
    # The root is the tensor of which the other tensors are views. Tensors of the storage that are not in ``tensors``
    # are harmless only if all of them are views of the root. Each view holds a reference to the root. So if all of them
    # are views, the number of references to the root equals the number of tensors of the storage.
    if there > known:
        return given or there != _private.holders(root)
    return given and not running and not root.requires_grad and _private.holders(root) - saved(root) > there
