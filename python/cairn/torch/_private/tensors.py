"""Inspects the memory of tensors: whether it is shared, resized or batched, and how its address is aligned."""

import functools

import torch
import torch.multiprocessing.reductions

# Bytes. Vectorized kernels work on blocks whose addresses are multiples of this number. So a tensor's address modulo
# this number can change the order of additions, and thus rounding.
ALIGNMENT = 64


def is_plain(value):
    """Returns whether the value is a strided tensor with a storage. Tensor subclasses, functorch's wrappers and torch's
    zero tensors without memory have no storage."""
    return (isinstance(value, torch.Tensor) and value.layout is torch.strided and
            type(value).__torch_dispatch__ is torch.Tensor.__torch_dispatch__ and not lacks_memory(value))


def is_batched(value):
    """Returns whether the value stands for many tensors, for example within vmap or
    autograd.grad(is_grads_batched=True)."""
    functorch = torch._C._functorch
    return isinstance(value, torch.Tensor) and (functorch.is_functorch_wrapped_tensor(value) or
                                                functorch.is_legacy_batchedtensor(value))


def is_zero_tensor(value):
    """Returns whether the value is a tensor of zeros that torch makes without memory, for example the tangent of a
    constant in forward-mode differentiation. Its storage has a size, but no address. A traced tensor counts with this
    size, because most kernels make such a tensor into a real one while they run."""
    return isinstance(value, torch.Tensor) and value._is_zerotensor()


def lacks_memory(value):
    """Returns whether the value is a tensor without memory of its own: a batched tensor, a zero tensor, or one on torch's
    device "meta"."""
    return is_batched(value) or is_zero_tensor(value) or value.is_meta


def is_there(tensor):
    """Returns whether a plain tensor's storage is large enough for all its elements. A storage that was resized may be
    too small."""
    last = tensor.storage_offset() + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
    return (last + 1) * tensor.element_size() <= tensor.untyped_storage().nbytes()


def owns_its_memory(tensor):
    """Returns whether torch allocated the tensor's storage. Otherwise it is shared with numpy, a file or another
    process, and cannot be resized."""
    storage = tensor.untyped_storage()
    return storage.resizable() and not (tensor.device.type == "cpu" and storage.is_shared())


def tensors_of_storage(tensor):
    """Returns the number of tensors that use this tensor's storage."""
    storage = tensor.untyped_storage()
    return torch._C._storage_Use_Count(storage._cdata) - 1  # the storage's own Python object is not counted


def adds_in_place(gradient, storage_was_read):
    """Returns whether autograd will add another gradient to this one in place, because nothing else refers to its
    memory. ``storage_was_read``: whether untyped_storage() has been called. In new versions of torch, the Python object
    that it returns lives as long as the storage and counts as a further reference."""
    shape, strides = gradient.shape, gradient.stride()
    is_dense = extent(shape, strides) == gradient.numel() and all(step for n, step in zip(shape, strides) if n > 1)
    return is_dense and not gradient._is_view() and not (storage_was_read and _objects_of_storages_stay())


@functools.cache
def _objects_of_storages_stay():
    tensor = torch.empty(1)
    key = tensor.untyped_storage()._cdata
    return torch._C._storage_Use_Count(key) > 1


def weak_storage(storage):
    """Returns a weak reference to a storage. Its ``expired()`` says whether the memory has been freed."""
    return torch.multiprocessing.reductions.StorageWeakRef(storage)


def holders(tensor):
    """Returns the number of references to the tensor. Its Python object, each of its views, and each other library that
    holds it through DLPack count as one."""
    return tensor._use_count()


def alignment_of(tensor):
    """Returns a tensor's address modulo ALIGNMENT."""
    return tensor.data_ptr() % ALIGNMENT


def empty_aligned(shape, strides, alignment, *, dtype, device):
    """Allocates a tensor with this shape, strides and alignment (see alignment_of())."""
    width, size = dtype.itemsize, extent(shape, strides)
    memory = torch.empty(size + ALIGNMENT // width, dtype=dtype, device=device)
    return torch.as_strided(memory, shape, strides, (alignment - memory.data_ptr()) % ALIGNMENT // width)


def extent(shape, strides):
    """Returns the number of elements from a tensor's first to its last, including gaps between them."""
    return 0 if 0 in shape else 1 + sum((n - 1) * step for n, step in zip(shape, strides))


def copy_of_input(tensor):
    """Returns a copy of the tensor with the same strides and the same alignment, in a new storage."""
    new = empty_aligned(tensor.shape, tensor.stride(), alignment_of(tensor), dtype=tensor.dtype, device=tensor.device)
    target, source = (torch.as_strided(t, (extent(t.shape, t.stride()),), (1,)) for t in (new, tensor.detach()))
    target.copy_(source)
    return new.requires_grad_(tensor.requires_grad)


def negated_when_read(tensor):
    """Returns a view of the tensor that operations negate when they read it."""
    return torch._neg_view(tensor)
