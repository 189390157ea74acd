"""Inductor below a schedule: it fuses, reorders and reuses buffers, so that the peak is approximate."""

from . import _private
from ._backend import Backend, Compiling


class InductorBackend(Backend):
    """Called by torch.compile for every graph it makes."""

    def compile(self, module, example_inputs):
        compiling = _InductorCompiling(self)
        return compiling.called(
            _private.compile_with_inductor(module, example_inputs, compiling.partition, compiling.measured_by))


class _InductorCompiling(Compiling):
    def measured_by(self, run, module, is_backward, is_inference):
        """The compiled function, measured when it first runs. A graph without backward is Inductor's alone."""
        if self.report is None or is_inference:
            return run
        return self.run_backward(run, module) if is_backward else self.run_forward(run)
