"""Wraps what measurements need of torch: the settings that change kernels, the profiler, and the allocator."""

import contextlib
import ctypes
import functools
import os
import pathlib
import sys

import torch

from .running import SharedContext, no_modes

_TINY = sys.float_info.min
_OF_GLOO = "gloo:"  # names of profiler events for collectives on Gloo's threads begin with this text
_KERNEL_ENVIRONMENT = (
    "CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    # ``prefix``: the new and the old prefix of oneDNN's variables
    "DISABLE_ADDMM_CUDA_LT", *(f"{prefix}_{name}" for prefix in ("ONEDNN", "DNNL") for name in (
        "MAX_CPU_ISA", "CPU_ISA_HINTS", "DEFAULT_FPMATH_MODE")),
    "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "TORCH_MKLDNN_MATMUL_MIN_DIM", "TORCH_CUDNN_V8_API_DISABLED",
    "CUDNN_CONV_WSCAP_DBG")


def _switch(owner, name):
    """Returns the value of a setting: an attribute or a function without arguments. Returns None if there is no such
    setting, or if torch raises an error, for example because a newer setting that replaces it has been set."""
    try:
        value = getattr(owner, name, None)
        return value() if callable(value) else value
    except RuntimeError:
        return None


def kernel_settings():
    """Returns a text of everything that decides which kernel runs, apart from an operation's arguments: versions, and
    the user's settings."""
    backends = torch.backends
    switches = [torch.__version__, torch.get_num_threads(), backends.cpu.get_cpu_capability(), torch.get_default_dtype()]
    switches += [_TINY * 0.5 == 0]  # whether this thread flushes denormals to 0 (torch.set_flush_denormal)
    switches += [_switch(torch, name) for name in ("are_deterministic_algorithms_enabled", "get_float32_matmul_precision")]
    switches += [_switch(torch._C, name) for name in (
        "_get_nnpack_enabled", "_get_cpu_allow_fp16_reduced_precision_reduction")]
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


def process_memory():
    """Returns the bytes of this process that are in memory (its resident set); None if the system is not Linux."""
    try:
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def is_out_of_memory(error):
    """Returns whether a kernel ran out of memory. For the CPU, torch has no exception class for this, so the message
    decides."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "allocate memory" in str(error)


class _Prepared:
    """Notes whether a profiler of torch is prepared, i.e. warms up, or records. Torch cannot be asked: in the warm-up
    phase of a schedule, a profiler is not active yet, but a second one that starts and ends would take its trace, and
    torch would crash when it exports this trace."""

    def __init__(self):
        self.now = False
        profiler = torch.autograd.profiler
        profiler._prepare_profiler = self._noting(profiler._prepare_profiler, True)
        profiler._disable_profiler = self._noting(profiler._disable_profiler, False)

    def _noting(self, function, prepared):
        @functools.wraps(function)
        def noted(*args, **kwargs):
            before, self.now = self.now, prepared
            try:
                return function(*args, **kwargs)
            except BaseException:
                self.now = before
                raise

        return noted


_prepared = _Prepared()


def profiler_runs():
    """Returns whether a profiler of torch is active or prepared in any thread. If so, a second one must not start."""
    return _prepared.now or torch.autograd.profiler._is_profiler_enabled or torch._C._autograd._profiler_enabled()


@contextlib.contextmanager
def quiet_profiler():
    """Returns a context in which a starting profiler prints nothing about itself or about a missing GPU."""
    given = os.environ.get("KINETO_LOG_LEVEL")
    os.environ["KINETO_LOG_LEVEL"] = given or "6"
    try:
        yield
    finally:
        if given is None:
            del os.environ["KINETO_LOG_LEVEL"]


class _QuietAllocator(SharedContext):
    """A context in which torch's allocator gives no warnings."""

    def begin(self):
        log = _log_level()
        if log is not None:
            self.level, log.value = log.value, max(log.value, _LOG_ERRORS)

    def end(self):
        if _log_level() is not None:
            _log_level().value = self.level


# In this context, torch gives no warning when it frees memory that was allocated before the profiler started.
quiet_allocator = _QuietAllocator()
_LOG_ERRORS = 2  # this level of torch's C++ log leaves out warnings


@functools.cache
def _log_level():
    """Returns the variable of the log level in torch's C++ library; None if the library has no such variable."""
    for path in (pathlib.Path(torch.__file__).parent / "lib").glob("*c10.*"):
        try:
            return ctypes.c_int.in_dll(ctypes.CDLL(str(path)), "FLAGS_caffe2_log_level")
        except (OSError, ValueError):
            pass
    return None


def make_workspaces():
    """Makes cuBLAS allocate the workspaces of this thread and stream, for products with and without a bias. Must also
    be called in the thread of a backward pass, because each thread has its own workspaces."""
    with no_modes():
        ones = torch.ones(16, 16, device="cuda")
        torch.addmm(ones[0], ones, torch.mm(ones, ones))


class AllocatorHistory:
    """Records what CUDA's caching allocator does within a ``with`` block. The profiler of torch 2.11 does not suffice:
    on a GPU, it reports no freeing, and the size of the block instead of the requested size.

    After the block, ``events`` is a list of pairs (address, requested bytes): all events of the first device in their
    order, then those of the next device. The number of bytes is negative if they are freed.
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
    """Returns whether AllocatorHistory can record. Recording needs torch's own allocator, and only one recording is
    possible at a time."""
    if not torch.cuda.is_initialized():
        return True
    if torch.cuda.get_allocator_backend() != "native":
        return False
    enabled = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    return enabled is None or not enabled()


def requested_bytes(device):
    """Returns the bytes that this process has requested from CUDA's caching allocator on a device: (those in memory now,
    the largest number that ever was). Returns None for other kinds of devices, and for other allocators. Takes some
    microseconds."""
    if device.type != "cuda" or not torch.cuda.is_initialized() or torch.cuda.get_allocator_backend() != "native":
        return None
    found = torch.cuda.memory_stats_as_nested_dict(device)["requested_bytes"]["all"]
    return found["current"], found["peak"]


def memory_profiler():
    """Returns a profiler that records allocations. ``acc_events`` avoids a warning of torch 2.11."""
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, acc_events=True)


def allocations(profiler):
    """Returns the events of a finished profiler in the order of time, as (ns, bytes, address, device, name).

    ``bytes`` is positive if memory was allocated and negative if it was freed. An event with ``bytes`` 0 is the
    beginning of an outermost operation, or of a record_function block named "cairn:...". Allocations by Gloo's own
    threads are left out, because Gloo's collectives run at times that depend on other ranks, while any operation may be
    running.
    """
    found = []
    pending = [(event, True) for event in profiler.profiler.kineto_results.experimental_event_tree()]
    while pending:
        event, outermost = pending.pop()
        if event.name.startswith(_OF_GLOO):
            continue
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
