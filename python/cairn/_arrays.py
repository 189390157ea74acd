"""Converts arrays of other libraries that are passed as arguments. Arrays in memory of the host become numpy arrays;
arrays in memory of a GPU become DeviceArrays."""

from __future__ import annotations

from typing import Any, Union

import numpy

from ._cairn import DeviceArray
from ._errors import InputError

Array = Union[numpy.ndarray, DeviceArray]

_HOST = (1, 3)  # DLPack's kinds of devices whose memory the host can read: the host itself, and page-locked memory
_CUDA = (2, 13)  # DLPack's kinds for memory of a GPU, and for managed memory, which CUDA moves between host and GPU
_DEFAULT_STREAM = 1  # number of CUDA's legacy default stream, both in DLPack and in CUDA's runtime


def _from_dlpack(array: Any) -> DeviceArray:
    # The default stream is made to wait for the work of the array's library. Cairn's copies wait for the default
    # stream, and thus read the finished array.
    try:
        capsule = array.__dlpack__(stream=_DEFAULT_STREAM, max_version=(1, 0))
    except TypeError:  # the library is older than version 1.0 of DLPack
        capsule = array.__dlpack__(stream=_DEFAULT_STREAM)
    return DeviceArray.from_dlpack(capsule, _DEFAULT_STREAM)


def _from_interface(interface: dict) -> DeviceArray:
    address, fixed = interface["data"]
    dtype = numpy.dtype(interface["typestr"])
    return DeviceArray.from_interface(address, dtype.name if dtype.isnative else dtype.str, dtype.itemsize,
                                      interface["shape"], interface.get("strides"), not fixed,
                                      interface.get("stream") or 0)


def as_array(array: Any, what: str, of_host: bool = False) -> Array:
    """Returns an array that shares its memory with `array`, which is an array or a tensor of another library.

    Raises InputError for anything else, and for memory of a GPU if `of_host` is True. The message calls the array
    `what`."""
    if hasattr(array, "detach"):  # a tensor of PyTorch, which refuses to share its memory if it requires gradients
        array = array.detach()
    device = getattr(array, "__dlpack_device__", None)
    kind = None if device is None else device()[0]
    interface = None if kind in _HOST else getattr(array, "__cuda_array_interface__", None)
    on_device = interface is not None or kind not in (None, *_HOST)
    if on_device and of_host:
        raise InputError(f"{what}: the array is in memory of a GPU; give a copy in memory of the host, as array.cpu()")
    if on_device and interface is None and kind not in _CUDA:
        raise InputError(f"{what}: the array is neither in memory of the host nor in that of a CUDA device")
    try:
        if not on_device:
            # Most libraries give numpy access to their memory through __array__ or the buffer protocol. All other
            # libraries do so by DLPack.
            return numpy.asarray(array) if kind is None or hasattr(array, "__array__") else numpy.from_dlpack(array)
        return _from_interface(interface) if interface is not None and kind not in _CUDA else _from_dlpack(array)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise InputError(f"{what}: not an array: {(str(error) or repr(error)).splitlines()[0]}") from None


def require_room(array: Array, what: str) -> None:
    """Raises InputError unless `array` is contiguous and writeable. `what`: its name in the message."""
    if isinstance(array, DeviceArray):
        has_room = array.contiguous and array.writeable
    else:
        has_room = array.flags.c_contiguous and array.flags.writeable
    if not has_room:
        raise InputError(f"{what} must be contiguous and writeable")


def as_arena(arena: Any) -> Array:
    """Returns the caller's memory for the arena of an Executor (the memory for all buffers of a step), as an array of
    bytes."""
    array = as_array(arena, "arena=")
    if str(array.dtype) != "uint8":
        raise InputError(f"arena= must be an array of uint8, not of {array.dtype}")
    require_room(array, "arena=")
    return array
