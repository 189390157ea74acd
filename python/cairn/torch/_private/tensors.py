"""A tensor's memory may be shared, resized, batched or at an odd address."""

import torch
import torch.multiprocessing.reductions

_ALIGNMENT = 64  # bytes: vectorized kernels begin at multiples of it, and round accordingly


def is_plain(value):
    """Whether the value is a strided tensor with a storage of its own: no subclass or functorch wrapper around other
    tensors, and no tensor of zeros without memory."""
    return (isinstance(value, torch.Tensor) and value.layout is torch.strided and
            type(value).__torch_dispatch__ is torch.Tensor.__torch_dispatch__ and not is_batched(value) and
            not value._is_zerotensor())


def is_batched(value):
    """Whether the value stands for many tensors, as within vmap and autograd.grad(is_grads_batched=True)."""
    functorch = torch._C._functorch
    return isinstance(value, torch.Tensor) and (functorch.is_functorch_wrapped_tensor(value) or
                                                functorch.is_legacy_batchedtensor(value))


def is_there(tensor):
    """Whether the storage of a plain tensor has all of its elements: it may have been resized."""
    last = tensor.storage_offset() + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
    return (last + 1) * tensor.element_size() <= tensor.untyped_storage().nbytes()


def owns_its_memory(tensor):
    """Whether torch allocated the storage for itself. Storage shared with numpy, a file or another process cannot be
    resized."""
    storage = tensor.untyped_storage()
    return storage.resizable() and not (tensor.device.type == "cpu" and storage.is_shared())


def tensors_of_storage(tensor):
    """Number of tensors in the storage of this one."""
    storage = tensor.untyped_storage()
    return torch._C._storage_Use_Count(storage._cdata) - 1  # without the storage's own object in Python


def weak_storage(storage):
    """A weak reference to a storage: ``expired()`` says whether its memory has been freed."""
    return torch.multiprocessing.reductions.StorageWeakRef(storage)


def holders(tensor):
    """Number of references to the tensor itself: its object in Python, its views, and other libraries by way of
    DLPack."""
    return tensor._use_count()


def alignment_of(tensor):
    """Offset of a tensor from the last address at which a kernel may begin, in bytes."""
    return tensor.data_ptr() % _ALIGNMENT


def empty_aligned(shape, strides, alignment, *, dtype, device):
    """Memory for a tensor of that shape and strides; ``alignment``: the alignment_of another tensor."""
    width, size = dtype.itemsize, extent(shape, strides)
    memory = torch.empty(size + _ALIGNMENT // width, dtype=dtype, device=device)
    return torch.as_strided(memory, shape, strides, (alignment - memory.data_ptr()) % _ALIGNMENT // width)


def extent(shape, strides):
    """Number of elements from the first to the last of a tensor, gaps included."""
    return 0 if 0 in shape else 1 + sum((n - 1) * step for n, step in zip(shape, strides))


def copy_of_input(tensor):
    """A copy with the same strides and alignment, in a storage of its own."""
    new = empty_aligned(tensor.shape, tensor.stride(), alignment_of(tensor), dtype=tensor.dtype, device=tensor.device)
    target, source = (torch.as_strided(t, (extent(t.shape, t.stride()),), (1,)) for t in (new, tensor.detach()))
    target.copy_(source)
    return new.requires_grad_(tensor.requires_grad)
