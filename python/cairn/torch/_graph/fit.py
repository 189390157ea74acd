"""Says whether a model's training step fits into a GPU's memory, including the memory that PyTorch's caching allocator
reserves beyond what is in use."""

import dataclasses
from typing import Optional

import cairn

from .. import _report
from .._memory.caching import MIN_LARGE_ALLOC, CachingAllocator, OutOfMemory
from .._plan import solve
from .of_model import traced_step

# Bytes of a process on a GPU that PyTorch's allocator does not count: CUDA's context and the kernels of torch, cuBLAS
# and cuDNN. They depend on the driver and the GPU; 450 to 650 MiB were seen on an H100.
_CONTEXT = 600 << 20
# cuBLAS allocates a workspace for each thread that uses it: the caller's, and autograd's. 32 MiB is the size on H100.
_WORKSPACES = 2 * (32 << 20)
# Name of an optimizer -> (bytes of its state, bytes of temporary tensors while all parameters are updated at once).
# Both are per byte of the parameters, for torch's default on GPUs (foreach=True).
_OPTIMIZERS = {None: (0, 0), "sgd": (0, 0), "momentum": (1, 0), "adam": (2, 1), "adamw": (2, 1)}
_STEPS = 3  # number of replayed steps; after two steps, the allocator has reserved all memory that later steps need
_TRIES = 8  # number of lower budgets that are tried while the reserved bytes exceed the device's memory


@dataclasses.dataclass
class Need:
    """The memory that a training needs, in bytes: the most that the allocator reserves at any time (``reserved``), and
    the most that is in use at any time (``in_use``)."""

    reserved: int
    in_use: int
    at: str  # name of the operation at which the allocator reserves most


@dataclasses.dataclass
class Fit:
    """The answer of will_it_fit(). Sizes are in bytes."""

    fits: bool
    device: int
    resident: dict  # kind -> bytes
    without: Need  # what the training needs without a budget
    # what the training needs with the best schedule found; if no schedule fits, with the schedule of least peak
    needs: Need
    # the budget of this schedule, for cairn.torch.backend(budget=); None: the training fits without a budget
    budget: Optional[int]
    # additional time of this schedule by estimated costs, as a fraction of the time without a budget
    cost_increase: float

    def __str__(self):
        text = _report.size_text
        lines = [f"device      {text(self.device)}",
                 f"resident    {', '.join(f'{kind} {text(size)}' for kind, size in self.resident.items() if size)}",
                 f"unscheduled {text(self.without.reserved)} reserved, {text(self.without.in_use)} in use, at {self.without.at}"]
        if self.budget is not None:
            lines.append(f"scheduled   {text(self.needs.reserved)} reserved, {text(self.needs.in_use)} in use, at {self.needs.at}")
            lines.append(f"budget      {text(self.budget)} ({self.budget} bytes), {self.cost_increase:.1%} more time as estimated")
        reserved = self.needs.reserved + self.resident["others"]  # reserved if memory is unlimited
        if not self.fits:
            lines.append(f"does not fit: a device needs {text(reserved)} under the least budget found")
        elif reserved > self.device:
            lines.append(f"fits: with unlimited memory, {text(reserved)} would be reserved; on this device, the allocator gives "
                         "back segments that are free")
        else:
            lines.append("fits")
        return "\n".join(lines)


def will_it_fit(model, inputs, device="24GiB", *, optimizer="adamw", expandable_segments=False, others=_CONTEXT + _WORKSPACES,
                time_limit=10.0, work_limit=None, seed=0):
    """Says whether the training of ``model(*inputs)`` fits into a GPU with ``device`` bytes of memory. If it fits only
    under a budget, also finds that budget. Returns a Fit.

    Nothing is computed or allocated, as in cairn.torch.graph(): the model and its inputs may be on the "meta" device.
    Three training steps are replayed in a simulation of PyTorch's caching allocator, because the allocator reserves
    more memory than is in use. Parameters, gradients, the optimizer's state and inputs count. Scratch of kernels does
    not count, because it cannot be measured without running them.

    optimizer: "adamw", "adam", "momentum", "sgd", or None. Its state and temporary tensors are those of torch's default
        implementation on a GPU.
    expandable_segments: whether PYTORCH_ALLOC_CONF=expandable_segments:True is set.
    others: bytes of the device that are used beside the replayed training, such as CUDA's context and workspaces of
    cuBLAS.
    time_limit, work_limit, seed: options of the search for schedules, as in cairn.solve.
    """
    if optimizer not in _OPTIMIZERS:
        raise cairn.InputError(f"optimizer: {', '.join(repr(o) for o in _OPTIMIZERS)}, not {optimizer!r}")
    total, beside = _bytes(device, "device"), 0 if others == 0 else _bytes(others, "others")
    trace, graph = traced_step(model, inputs, device="cuda")
    replay = _Replay(trace, model, optimizer, expandable_segments)
    capacity = total - beside
    without = replay.need(trace.order(), None)
    resident = {**{f"{kind}s": size for kind, size in trace.resident.items()},
                "optimizer": replay.state_bytes, "others": beside}
    found = Fit(replay.fits(trace.order(), without, capacity), total, resident, without, without, None, 0.0)
    if found.fits:
        return found
    return _within_budget(found, graph, replay, capacity, {
        "work_limit": work_limit, "seed": seed, "time_limit": None if work_limit is not None else time_limit / _TRIES})


def _bytes(size, name):
    try:
        found = None if solve.is_share(size) else solve.budget_bytes(size, 1)
    except cairn.InputError:
        found = None
    if found is None:
        raise cairn.InputError(f"{name}: bytes, such as '24GiB', not {size!r}")
    return found


def _within_budget(found, graph, replay, capacity, options):
    """Looks for the largest budget under which the training fits. The first budget is ``capacity`` minus the resident
    bytes. As long as more than ``capacity`` bytes are reserved, the budget is lowered by the excess. If no budget fits,
    stores in ``found`` what the training needs with the least budget."""
    baseline = cairn.evaluate(graph, range(graph.node_count))
    budget = min(capacity - replay.resident_bytes, baseline.peak)
    for _ in range(_TRIES):
        try:
            solved = cairn.solve(graph, max(budget, 1), peak_only=True, **options)
        except (cairn.InfeasibleError, cairn.NotFoundError):
            break
        if _take(found, solved, replay, capacity, baseline):
            return found
        budget = min(budget, solved.peak) - max(found.needs.reserved - capacity, MIN_LARGE_ALLOC)
    _take(found, cairn.solve(graph, "min", peak_only=True, **options), replay, capacity, baseline)
    return found


def _take(found, solved, replay, capacity, baseline):
    """Stores in ``found`` what the training needs with the schedule of ``solved``, and returns whether it fits into
    ``capacity`` bytes."""
    steps = list(solved.schedule)
    found.needs, found.budget = replay.need(steps, None), solved.peak
    found.cost_increase = solved.cost / baseline.cost - 1
    found.fits = replay.fits(steps, found.needs, capacity)
    return found.fits


class _Replay:
    """Replays training steps in a simulation of PyTorch's allocator."""

    def __init__(self, trace, model, optimizer, expandable_segments):
        self.trace, self.expandable = trace, expandable_segments
        self.states, self.temporary = _OPTIMIZERS[optimizer]
        self.resident = [storage.allocated for storage in trace.residents()]
        self.parameters = [p.numel() * p.element_size() for p in model.parameters() if p.requires_grad]
        self.state_bytes = self.states * sum(self.parameters)
        self.resident_bytes = sum(self.resident) + self.state_bytes + trace.resident.get("gradient", 0)

    def fits(self, steps, need, capacity):
        """Returns whether the training fits. ``need``: what the training needs if memory is unlimited. Even if that
        exceeds ``capacity``, the training may fit, because the allocator gives back free segments when it runs out of
        memory."""
        if need.reserved <= capacity:
            return True
        try:
            self.need(steps, capacity)
        except OutOfMemory:
            return False
        return True

    def need(self, steps, capacity):
        allocator = CachingAllocator(capacity, self.expandable)
        self.most, self.at = 0, "the parameters"
        for size in self.resident:
            allocator.allocate(size)
        ends = {}
        for key, (_, last) in _report.lives(self.trace, steps).items():
            ends.setdefault(last // 2, []).append(key)
        gradients, states = [], []
        for _ in range(_STEPS):
            for block in gradients:
                allocator.free(block)
            gradients = self._step(allocator, steps, ends)
            if not states:
                states = [allocator.allocate(size) for _ in range(self.states) for size in self.parameters]
            temporary = [allocator.allocate(size) for _ in range(self.temporary) for size in self.parameters]
            self._note(allocator, "the optimizer")
            for block in temporary:
                allocator.free(block)
        return Need(allocator.peak_reserved, allocator.peak_in_use, self.at)

    def _note(self, allocator, name):
        if allocator.reserved > self.most:
            self.most, self.at = allocator.reserved, name

    def _step(self, allocator, steps, ends):
        """Replays one forward and backward pass. Returns the blocks of the gradients that the caller keeps. ``ends``:
        step -> list of what is freed after the step, as pairs (number of an occurrence, storage)."""
        blocks, gradients = {}, []
        for t, step in enumerate(steps):
            op = self.trace.operations[step]
            for storage in op.outputs:
                blocks[t, storage] = allocator.allocate(storage.allocated)
            scratch = allocator.allocate(op.scratch)
            self._note(allocator, op.name)
            allocator.free(scratch)
            for key in ends.get(t, ()):
                allocator.free(blocks.pop(key))
        for (_, storage), block in blocks.items():
            gradients += map(allocator.allocate, self.trace.copied.get(storage, ()))
            self._note(allocator, "the gradients")
            if storage in self.trace.gradients:
                gradients.append(block)
            else:  # a result, which the caller frees
                allocator.free(block)
        return gradients
