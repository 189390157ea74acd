"""Measures the peak of a graph and compares it with the promised peak."""

import warnings

import torch

from .. import _private, _report
from .._errors import CairnWarning
from .._offload.copies import is_on_host
from .._rewrite.scheduled_module import input_names, is_gradient
from .events import MemoryTrace, bytes_beyond, bytes_of


_MOST_SIZES = 8  # largest number of different symbolic sizes that are measured
_MOST_ALARMS = 8  # largest number of measurements of a graph that are requested because the allocator saw more bytes
_AGAIN = 10  # a graph is measured again in its run number 10, 100, 1000, ..., because its memory may depend on the data


class Measured:

    def __init__(self, trace, report, num_fwd_outputs, joint, is_free=lambda: True):
        self.is_free = is_free  # returns whether every forward pass of the graph so far has had its backward pass
        self.trace, self.report = trace, report
        self.done = False
        # The values of symbolic sizes in the measured runs, as tuples. Smaller sizes can need more scratch, so the
        # first _MOST_SIZES different sizes are measured.
        self.sizes = set()
        self.present_sizes = ()  # symbolic sizes of the latest measured run
        self.has_sizes = any(_private.is_sym(n.meta.get("val")) for n in joint.graph.find_nodes(op="placeholder"))
        # Number of coming runs that are not to be measured. If parameters are updated within the graph, the first run
        # is not measured, because the optimizer allocates its state during this run.
        self.passed_over = 1 if trace.updated else 0
        self.wanted = False  # whether a measurement is to begin, see _begin_if_free()
        self.runs = 0  # forward passes so far
        self.has_backward = False  # whether a backward pass has begun, measured or not
        self.next_again = _AGAIN
        # Whether a pass begins a run -> the largest number of bytes that such passes have added to the memory, with
        # everything that the peak leaves out, such as gradients of parameters.
        self.added = {}
        self.alarms = 0  # number of measurements requested because the allocator saw more bytes
        self.forward_peak = None
        self.forward_operation = ""
        leaves = _private.outputs(joint.graph)
        split = num_fwd_outputs or 0
        self.gradient_positions = [
            i for i, leaf in enumerate(leaves[split:])
            if isinstance(leaf, torch.fx.Node) and trace.is_gradient(leaf)]
        # Positions of gradients among the results of the forward pass. It computes gradients that depend on no tangent,
        # such as zeros, and saves them for the backward pass.
        self.early_gradients = []
        self.split = split
        self.kept_positions = list(trace.kept_results(leaves[:split]))
        # The next three attributes accumulate over all forward passes since the last measurement, because several
        # forward passes can run before a backward pass.
        self.inputs = {}  # storages of inputs: address of the object -> weak reference
        self.outputs_held = 0  # largest number of bytes of kept results that a backward pass does not get as arguments
        self.outputs = set()  # addresses of kept results, which count even if the caller has freed them

    def measure_again(self, passing_over=0, why="settings or hooks have changed"):
        """Requests a new measurement, after ``passing_over`` runs that are not measured."""
        self.passed_over = max(self.passed_over, passing_over)
        self.sizes = set()
        self.report.measured = None
        self.report.not_measured = f"is to be measured again, as {why}"
        self.wanted = True
        self._begin_if_free()

    def _begin_if_free(self):
        """Begins a measurement that is wanted, unless a run of the graph still waits for its backward pass: the
        measurement knows nothing of that run's inputs and results."""
        if self.wanted and self.is_free():
            self.wanted, self.done, self.forward_peak = False, False, None
            self.inputs, self.outputs_held, self.outputs = {}, 0, set()

    def forward(self, run, module):
        results = _private.outputs(module.graph)
        self.early_gradients = [i for i, node in enumerate(results) if i >= self.split and is_gradient(node)]
        return self._boxed(run, self._forward)

    def alone(self, run):
        return self._boxed(run, self._alone)

    def backward(self, run, module):
        placeholders = module.graph.find_nodes(op="placeholder")
        not_held = {i for i, node in enumerate(placeholders) if is_on_host(node) or is_gradient(node)}
        names = input_names(module)
        tangents = [i for i, n in enumerate(module.graph.find_nodes(op="placeholder")) if _private.is_tangent(n)]
        return self._boxed(run, lambda call, args: self._backward(call, args, names, tangents, not_held), begins=False)

    def _boxed(self, run, measured, begins=True):
        def call(args):
            # DistributedDataParallel runs the parts of a split graph with fake tensors first. Such a run takes no
            # memory, so it is not measured.
            if not self.done and _private.fake_mode_of(args) is not None:
                return run(args)
            self.has_backward = self.has_backward or not begins
            finds_sizes = begins and self.has_sizes
            if begins:
                self._count()
            if self.passed_over and not self.done:
                self.report.not_measured = "is measured in a later run, as the optimizer may make its state in the first"
                result = run(args)
                # A run without a backward pass, or with one that an error ends, does not make the whole state.
                if not begins:
                    self.passed_over = max(0, self.passed_over - 1)
                return result
            if self.done and not finds_sizes:
                return self._checked(run, args, begins)
            if not MemoryTrace.available():
                self.report.not_measured = "ran while something else recorded memory: a profiler, or Cairn for the whole step"
                return run(args)
            if finds_sizes:
                self._note_sizes(args)
            if self.done:
                return self._checked(run, args, begins)
            return measured(run, args)

        return _private.called_boxed(call)

    def _checked(self, run, args, begins):
        """Runs a pass that is not measured. On a GPU, asks for a new measurement if the allocator's largest number of
        bytes shows that this pass has taken more than each measured one. Something else may have taken the memory at
        the same time, so the next run is measured before anything is told."""
        device = next((a.device for a in args if isinstance(a, torch.Tensor) and a.device.type == self.trace.device), None)
        is_checked = begins in self.added and device is not None and self.alarms < _MOST_ALARMS
        before = _private.requested_bytes(device) if is_checked else None
        result = run(args)
        if before is not None:
            (present, highest), (_, highest_now) = before, _private.requested_bytes(device)
            if highest_now > highest and highest_now - present > self.added[begins]:
                self.alarms += 1
                self.wanted = True
        return result

    def _note_added(self, trace, begins):
        self.added[begins] = max(self.added.get(begins, 0), trace.at_peak()[0])

    def _count(self):
        """Counts a forward pass, and requests a new measurement in the runs 10, 100, 1000, ... The earlier measurement
        stays in the report until then."""
        self.runs += 1
        if self.runs >= self.next_again and self.done and self.is_free():
            while self.runs >= self.next_again:
                self.next_again *= _AGAIN
            self.wanted = True
        self._begin_if_free()

    def _note_sizes(self, args):
        """Requests a measurement of this run if its symbolic sizes have not been measured before."""
        self.present_sizes = sizes = tuple(arg for arg in args if type(arg) is int)
        if sizes in self.sizes or len(self.sizes) == _MOST_SIZES:
            return
        if self.done:
            self.wanted = True
            self._begin_if_free()

    def _forward(self, run, args):
        inputs = [t.untyped_storage() for t in filter(_private.is_plain, args)]
        with MemoryTrace(self.trace.device) as trace:
            result = run(args)
        self._note_added(trace, begins=True)
        peak, operation = trace.at_peak(_addresses(result, self.early_gradients))
        self.report.only_forward = self.forward_peak is not None and self.is_free() and not self.has_backward
        if self.forward_peak is None or peak > self.forward_peak:
            self.forward_peak, self.forward_operation = peak, operation
        # If this run has allocated memory at an address, the value that an earlier run had there has been freed. So
        # this address is removed from ``outputs`` below.
        allocated = {address for address, size in zip(trace.addresses, trace.sizes) if size > 0}
        self.inputs = {key: storage for key, storage in self.inputs.items() if not storage.expired()}
        self.inputs.update((storage._cdata, _private.weak_storage(storage)) for storage in inputs)
        self.outputs -= allocated
        self.report.measured_forward = self.forward_peak
        if not self.has_backward:
            self.report.not_measured = _report.NO_BACKWARD
        results, saved = list(result)[:self.split], list(result)[self.split:]
        kept = [results[i] for i in self.kept_positions]
        self.outputs_held = max(self.outputs_held, bytes_of([*saved, *kept]) - bytes_of(saved))
        self.outputs |= {t.untyped_storage().data_ptr() for t in kept if isinstance(t, torch.Tensor)}
        return result

    def _alone(self, run, args):
        with MemoryTrace(self.trace.device) as trace:
            result = run(args)
        self._note_added(trace, begins=True)
        self._compare(*trace.at_peak(_addresses(result, self.gradient_positions)))
        return result

    def _backward(self, run, args, names, tangents, not_held):
        if self.forward_peak is None or _private.keeps_graph() or any(map(_private.is_batched, args)):
            if _private.keeps_graph():
                self.report.not_measured = "ran a backward pass that keeps what was saved for it"
            elif self.forward_peak is not None:
                self.report.not_measured = "ran a backward pass for several gradients at once"
            return run(args)
        held = bytes_of(a for i, (a, n) in enumerate(zip(args, names))
                        if i not in not_held and (not n.startswith("primals") or self._is_copied(a)))
        # If a given gradient is part of a larger tensor, together.py counts the rest of that tensor, so the rest does
        # not count here.
        held += self.outputs_held - bytes_beyond(args[i] for i in tangents)
        with MemoryTrace(self.trace.device) as trace:
            result = run(args)
        self._note_added(trace, begins=False)
        peak, operation = trace.at_peak(_addresses(result, self.gradient_positions), self.outputs)
        peak += held
        self.report.measured_backward = peak
        if self.forward_peak >= peak:
            peak, operation = self.forward_peak, self.forward_operation
        self._compare(peak, operation)
        return result

    def _is_copied(self, value):
        """Returns whether saved-tensor hooks have replaced an input by a copy. Storage objects are compared, not
        addresses: FSDP frees the memory of a parameter's storage and allocates it again at another address, but the
        storage object stays the same."""
        if not _private.is_plain(value):
            return False
        storage = self.inputs.get(value.untyped_storage()._cdata)
        return storage is None or storage.expired()

    def _compare(self, peak, operation):
        self.done = True
        if self.has_sizes:
            self.sizes.add(self.present_sizes)
        self.report.measured = peak = max(peak, self.report.measured or 0)
        if peak > self.report.promised:
            self.report.broken_by = operation
            advice = "" if self.report.calibrated else "; calibrate=True counts the scratch of kernels"
            if self.report.estimated:
                advice = f"; {len(self.report.estimated)} operations could not be measured, {self.report.estimated[0]} for one"
            warnings.warn(
                f"{self.report.name}: promised a peak of {_report.size_text(self.report.promised)}, measured "
                f"{_report.size_text(peak)} at {operation} ({peak - self.report.promised} bytes more){advice}",
                CairnWarning, stacklevel=2)


def _addresses(values, positions):
    """Returns the addresses of the storages of the tensors at these positions."""
    values = list(values)
    return {values[i].untyped_storage().data_ptr() for i in positions if isinstance(values[i], torch.Tensor)}
