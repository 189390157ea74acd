"""Kernels and allocations are measured with the settings, the profiler and the allocator of torch."""

import contextlib
import ctypes
import functools
import os
import pathlib
import sys
import threading

import torch

from .running import no_modes

_TINY = sys.float_info.min
_KERNEL_ENVIRONMENT = (
    "CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "DISABLE_ADDMM_CUDA_LT", *(f"{prefix}_{name}" for prefix in ("ONEDNN", "DNNL") for name in (  # a new name and the old one
        "MAX_CPU_ISA", "CPU_ISA_HINTS", "DEFAULT_FPMATH_MODE")),
    "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "TORCH_MKLDNN_MATMUL_MIN_DIM", "TORCH_CUDNN_V8_API_DISABLED",
    "CUDNN_CONV_WSCAP_DBG")


def _switch(owner, name):
    """The value of a setting, whether it is a value or a function that returns it. None where there is none, or where
    torch raises, as it does for an old setting when a newer one that covers it has been set."""
    try:
        value = getattr(owner, name, None)
        return value() if callable(value) else value
    except RuntimeError:
        return None


def kernel_settings():
    """What decides, beside an operation's arguments, which kernel runs: versions, and switches that users may turn."""
    backends = torch.backends
    switches = [torch.__version__, torch.get_num_threads(), backends.cpu.get_cpu_capability(), torch.get_default_dtype()]
    switches += [_TINY * 0.5 == 0]  # torch.set_flush_denormal, of this thread
    switches += [_switch(torch, name) for name in ("are_deterministic_algorithms_enabled", "get_float32_matmul_precision")]
    switches += [_switch(backends.cuda, name) for name in (
        "flash_sdp_enabled", "mem_efficient_sdp_enabled", "math_sdp_enabled", "cudnn_sdp_enabled",
        "fp16_bf16_reduction_math_sdp_allowed", "preferred_linalg_library", "preferred_blas_library")]
    switches += [_switch(backends.cuda.matmul, name) for name in (
        "allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction",
        "allow_fp16_accumulation")]
    switches += [_switch(backends.cudnn, name) for name in ("enabled", "benchmark", "deterministic", "allow_tf32")]
    switches += [_switch(backends.mkldnn, name) for name in ("enabled", "deterministic")]
    switches += [_switch(part, "fp32_precision") for backend in (backends, backends.cuda, backends.cudnn, backends.mkldnn)
                 for part in (backend, *(getattr(backend, name, None) for name in ("matmul", "conv", "rnn")))]
    switches += [os.environ.get(name) for name in _KERNEL_ENVIRONMENT]
    if torch.cuda.is_available():
        switches += [torch.version.cuda, backends.cudnn.version()]
    return " ".join(map(str, switches))


def is_out_of_memory(error):
    """Whether a kernel failed for lack of memory; the CPU's allocator has no error class of its own."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "allocate memory" in str(error)


def profiler_runs():
    """Whether a profiler is active: a second one cannot run beside it."""
    return torch._C._autograd._profiler_enabled()


@contextlib.contextmanager
def quiet_profiler():
    """Within: a profiler that starts prints nothing about itself, nor that there is no GPU."""
    given = os.environ.get("KINETO_LOG_LEVEL")
    os.environ["KINETO_LOG_LEVEL"] = given or "6"
    try:
        yield
    finally:
        if given is None:
            del os.environ["KINETO_LOG_LEVEL"]


class _QuietAllocator:
    """May be entered by any number of threads at once."""

    def __init__(self):
        self.lock = threading.Lock()
        self.entered = 0
        self.level = None  # the level before

    def __enter__(self):
        with self.lock:
            self.entered += 1
            log = _log_level()
            if self.entered == 1 and log is not None:
                self.level, log.value = log.value, max(log.value, _LOG_ERRORS)

    def __exit__(self, *error):
        with self.lock:
            self.entered -= 1
            if self.entered == 0 and self.level is not None:
                _log_level().value = self.level


quiet_allocator = _QuietAllocator()  # within, no memory block that is freed and was there before is told to the terminal
_LOG_ERRORS = 2  # the level of torch's C++ log that leaves out warnings


@functools.cache
def _log_level():
    """The log level of torch's C++ library, as a variable of it; None where it has another log."""
    for path in (pathlib.Path(torch.__file__).parent / "lib").glob("*c10.*"):
        try:
            return ctypes.c_int.in_dll(ctypes.CDLL(str(path)), "FLAGS_caffe2_log_level")
        except (OSError, ValueError):
            pass
    return None


def make_workspaces():
    """Makes cuBLAS allocate, for this thread and stream, the workspaces that it keeps from then on: for a product, and
    for one with a bias. A backward pass has a thread, and so workspaces, of its own."""
    with no_modes():
        ones = torch.ones(16, 16, device="cuda")
        torch.addmm(ones[0], ones, torch.mm(ones, ones))


class AllocatorHistory:
    """Records what CUDA's caching allocator does while it is entered. The profiler of torch 2.11 reports no frees
    there, and for allocations the size of the block rather than the requested size.

    Afterwards ``events`` has, in order on each device: (address, requested bytes; negative where they are freed).
    """

    def __enter__(self):
        torch.cuda.memory._record_memory_history("all", context=None, stacks="python")
        return self

    def __exit__(self, *error):
        try:
            traces = torch.cuda.memory._snapshot()["device_traces"]
        finally:
            torch.cuda.memory._record_memory_history(None)
        sign = {"alloc": 1, "free_requested": -1}
        self.events = [(entry["addr"], sign[entry["action"]] * entry["size"])
                       for trace in traces for entry in trace if entry["action"] in sign]


def history_can_be_recorded():
    """Whether a recording is possible: there can be only one at a time, and other allocators have none."""
    if not torch.cuda.is_initialized():
        return True
    if torch.cuda.get_allocator_backend() != "native":
        return False
    enabled = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    return enabled is None or not enabled()


def memory_profiler():
    """A profiler that records allocations. ``acc_events`` stops torch 2.11 from warning of the end of a cycle."""
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, acc_events=True)


def allocations(profiler):
    """The events of a finished profiler, in the order of time: (ns, bytes, address, device, name).

    ``bytes`` is positive where memory was allocated and negative where it was freed. ``bytes`` 0 is the begin of an
    operation that no other one called, or of a block under record_function named "cairn:...".
    """
    found = []
    pending = [(event, True) for event in profiler.profiler.kineto_results.experimental_event_tree()]
    while pending:
        event, outermost = pending.pop()
        pending.extend((child, False) for child in event.children)
        fields = event.extra_fields
        size = getattr(fields, "alloc_size", None)
        if size is None:
            if outermost or event.name.startswith("cairn:"):
                found.append((event.start_time_ns, 0, 0, None, event.name))
        elif size != 0:
            found.append((event.start_time_ns, size, fields.ptr, fields.device.type, event.name))
    found.sort(key=lambda entry: entry[0])
    return found
