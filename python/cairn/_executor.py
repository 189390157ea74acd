"""Defines the class Executor, which runs training steps with arrays of numpy and other libraries as inputs and
outputs."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

import numpy

from . import _cairn
from ._api import Bytes, Planned, Progress, Seconds, _request, _search, _streams, _threads
from ._arrays import Array, as_arena, as_array, require_room
from ._cairn import DeviceArray, Graph
from ._errors import InputError
from ._types import Tensor


def _handle(stream: Any) -> int:
    """Returns the handle of a CUDA stream, or 0 for None."""
    if stream is None:
        return 0
    handle = getattr(stream, "cuda_stream", stream)
    if isinstance(handle, bool) or not isinstance(handle, int) or not 0 <= handle < 1 << 64:
        raise InputError("stream= must be the handle of a CUDA stream, as torch.cuda.Stream().cuda_stream is, "
                         f"not {stream!r}")
    if handle == 0:
        raise InputError("stream=0 is CUDA's default stream, which cannot be captured; give another one, as "
                         "torch.cuda.Stream()")
    return handle


def _other_shape(name: str, wanted: Sequence[int], given: Sequence[int]) -> str:
    return f"'{name}' has the shape {list(wanted)}, but the array has {list(given)}"


class Executor(_cairn.Loaded):
    """Executes the training step of a graph within a memory budget, as often as you like, with your own data.

        executor = cairn.Executor(graph, "50%")
        executor.set("images", images)
        executor.step()
        loss = executor.output("loss")

    Resident tensors (inputs, labels, weights, optimizer state) keep their values from one step to the next. They begin
    with values that `seed` determines. `residents` lists them.

    budget     bytes for the plan, as in solve; None: the graph's own order is executed, without recomputation
    schedule   the schedule to execute, such as an Answer; None: searches for one if there is a budget
    backend    "host", "cuda" or "auto"; "cuda:1" is the second of several devices
    precision  "fp32", "tf32" or "bf16"; None: the precision in which the graph is stored
    poison     whether to overwrite every buffer when its lifetime ends, so that a read of freed memory is noticed
    arena      memory for the plan, which the executor fills and then uses in every step: a writeable array of uint8, or
               another buffer such as a bytearray; on a GPU, an array in the GPU's memory. None: the executor allocates
               the memory. Executors whose steps do not overlap in time may share an arena. planned_bytes + 255 bytes
               are enough.
    stream     a CUDA stream on which steps and copies run: its handle, or an object with an attribute cuda_stream, such
               as a torch.cuda.Stream, which must outlive the executor. None: the executor creates one
    streams    number of streams of a step, as in run; `overlap_steps` is also as in run

    Other arguments are those of solve. To use arguments of solve that Executor does not have, call solve and pass its
    answer as `schedule`. Several threads may use an executor; they take turns. During a step, other Python threads can
    run.
    """

    def __init__(self, graph: Graph, budget: Optional[Bytes] = None, *, schedule: Optional[Planned] = None,
                 backend: str = "auto", precision: Optional[str] = None, solver: str = "auto",
                 time_limit: Optional[Seconds] = None, work_limit: Optional[int] = None, seed: int = 0,
                 max_cost: Union[int, str, None] = None, alignment: Optional[int] = None,
                 options: Optional[Mapping[str, int]] = None, device_memory: Optional[Bytes] = None,
                 context_memory: Optional[Bytes] = None, poison: bool = False, arena: Any = None, stream: Any = None,
                 streams: int = 1, overlap_steps: int = 0, threads: Optional[int] = None, progress: Optional[Progress] = None) -> None:
        request = _request(budget, max_cost, False, alignment, solver, device_memory, context_memory,
                           overlap_steps)
        search = _search(solver, time_limit, work_limit, seed, None, "free", None, options)
        memory = None if arena is None else as_arena(arena)
        with _threads(threads):
            super().__init__(graph, request, search, schedule, backend, precision, poison, memory, _handle(stream),
                             _streams(streams), progress)
        self._stream = stream  # keeps the object alive as long as its stream is used
        self._tensors = {name: Tensor(shape, numpy.dtype(dtype), kind)
                         for name, shape, dtype, kind in self._residents()}

    @property
    def residents(self) -> Dict[str, Tensor]:
        """Returns the resident tensors that the step uses, by name: shape, dtype of their numpy arrays, and kind."""
        return dict(self._tensors)

    def set(self, name: Union[str, Mapping[str, Any]], values: Any = None) -> None:
        """Copies values into a resident tensor, or into several: set({"images": x, "labels": y}).

        Values are an array of the tensor's shape, or anything that numpy.asarray turns into such an array, for example
        a tensor of PyTorch on the CPU. A contiguous array of the tensor's dtype is copied once. Other arrays are
        converted first: float64 and float16 to float32, whole numbers to float32 or int32. For a tensor of one element,
        a number is enough. InputError names the tensor if the shape or the type is wrong, or if an element is NaN or
        out of range.

        On a GPU, values may be an array in its memory that has a method __dlpack__ or a __cuda_array_interface__, such
        as a tensor of PyTorch. The array is copied within the GPU's memory, after the work that its library has
        enqueued. It must be contiguous and have the tensor's dtype; its elements are not checked. An array of bfloat16
        is accepted if the step stores the tensor as bf16.
        """
        self._give_all(name, values, False)

    def stage(self, name: Union[str, Mapping[str, Any]], values: Any = None) -> None:
        """Sets values for the next step: they are copied into the resident tensor when that step begins. On a GPU, they
        are copied to the GPU's memory while earlier steps run. The caller may change the arrays as soon as the call
        returns."""
        self._give_all(name, values, True)

    def get(self, name: str, *, out: Any = None) -> Any:
        """Returns the elements of a resident tensor as a new numpy array, or copies them to `out` and returns it.

        `out` is a contiguous array of the tensor's shape and dtype, such as a tensor of PyTorch, in memory of the host
        or of the executor's GPU. Only this tensor is copied."""
        tensor = self._tensor(name)
        array, out = self._room(f"'{name}'", tensor.shape, tensor.dtype, out)
        self._get(name, array)
        return out

    def output(self, node: str, output: int = 0, *, out: Any = None) -> Any:
        """Returns a kept output of the node named `node`, such as "loss", after the last step. `out` is as for get.
        Graph.with_kept makes more nodes keep their outputs."""
        shape, dtype = self._kept_output(node, output)
        array, out = self._room(f"output {output} of node '{node}'", shape, numpy.dtype(dtype), out)
        self._get_output(node, array, output)
        return out

    def _tensor(self, name: str) -> Tensor:
        if not isinstance(name, str):
            raise InputError(f"the name of a tensor is text, not {name!r}")
        if name not in self._tensors:
            # raises InputError, whose message suggests a similar name
            self._give(name, numpy.empty(0, numpy.float32), False)
        return self._tensors[name]

    def _give_all(self, name: Any, values: Any, staged: bool) -> None:
        if not isinstance(name, Mapping):
            self._give(name, self._converted(name, values), staged)
            return
        if values is not None:
            raise InputError("give either a name and values, or one mapping from names to values")
        converted = {key: self._converted(key, value) for key, value in name.items()}
        for key, value in converted.items():
            self._check(key, value)  # so that an error leaves all tensors as they are
        for key, value in converted.items():
            self._give(key, value, staged)

    def _array(self, values: Any, what: str) -> Array:
        return as_array(values, what, of_host=self.backend == "host")

    def _converted(self, name: str, values: Any) -> Array:
        tensor = self._tensor(name)
        array = self._array(values, f"'{name}'")
        wanted = tensor.dtype
        if isinstance(array, DeviceArray):
            if array.dtype not in (wanted.name, "bfloat16"):
                raise InputError(f"'{name}' has elements of type {wanted}; an array of {array.dtype} in memory of a GPU "
                                 "is not converted")
            if array.shape != tensor.shape:
                raise InputError(_other_shape(name, tensor.shape, array.shape))
            if not array.contiguous:
                raise InputError(f"'{name}': an array in memory of a GPU must be contiguous, as array.contiguous()")
            return array
        if array.dtype.kind not in ("iub" if wanted.kind == "i" else "iubf") or array.dtype.itemsize > 8:
            raise InputError(f"'{name}' has elements of type {wanted}, which {array.dtype} is not converted to")
        if array.shape != tensor.shape and not (array.shape == () and tensor.shape == (1,)):
            raise InputError(_other_shape(name, tensor.shape, array.shape))
        if wanted.kind == "i" and array.dtype.itemsize >= 4 and array.dtype != wanted and array.size:
            limits = numpy.iinfo(wanted)
            for extreme in (int(array.min()), int(array.max())):
                if not limits.min <= extreme <= limits.max:
                    raise InputError(f"'{name}' has elements of type {wanted}, but {extreme} is too large for it")
        with numpy.errstate(over="ignore"):
            converted = numpy.ascontiguousarray(array, wanted).reshape(tensor.shape)  # numpy makes () to (1,)
        if array.dtype.kind == "f" and array.dtype.itemsize > wanted.itemsize:
            too_large = numpy.isinf(converted) & numpy.isfinite(array.reshape(tensor.shape))
            if too_large.any():
                extreme = array.reshape(tensor.shape)[too_large][0]
                raise InputError(f"'{name}' has elements of type {wanted}, but {extreme} is too large for it")
        return converted

    def _room(self, what: str, shape: Tuple[int, ...], dtype: numpy.dtype, out: Any) -> Tuple[Array, Any]:
        """Returns the array into which elements are copied, and the object that the caller gets: `out`, or a new array.
        `what`: the tensor's name in messages."""
        if out is None:
            new = numpy.empty(shape, dtype)
            return new, new
        array = self._array(out, what)
        if array.shape != shape or str(array.dtype) != dtype.name:
            raise InputError(f"{what} is an array of {dtype} with shape {list(shape)}, but out= is one of "
                             f"{array.dtype} with shape {list(array.shape)}")
        if not isinstance(array, DeviceArray) and array is not out and not numpy.shares_memory(array, self._array(out, what)):
            raise InputError(f"{what}: out= must be an array; {type(out).__name__} gives only copies of its elements")
        require_room(array, f"{what}: out=")
        return array, out
