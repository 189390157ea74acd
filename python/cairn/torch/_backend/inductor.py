"""Compiles a schedule with Inductor. The peak is approximate, because Inductor fuses and reorders operations and reuses
buffers."""

import cairn

from .. import _private
from .backend import Backend
from .compiling import Compiling


class InductorBackend(Backend):
    """A Backend whose schedules are compiled by Inductor."""

    def __init__(self, options, fallback):
        super().__init__(options, fallback)
        self.config = {}  # Inductor's settings, from torch.compile's mode= and options=

    def take(self, mode=None, options=None, name=None, **others):
        super().take(**others)
        config = _inductor_config(mode, options)
        if config.get("triton.cudagraphs"):
            what = "options: 'triton.cudagraphs'" if options and "triton.cudagraphs" in options else f"mode: {mode!r}"
            raise cairn.InputError(f"{what} records CUDA graphs, which keep all memory of a step, so that no budget can hold; "
                                   "mode='max-autotune-no-cudagraphs' tunes kernels without")
        if "custom_partitioner_fn" in config:
            raise cairn.InputError("options: 'custom_partitioner_fn' is how Cairn hands schedules to Inductor; leave it out")
        self.config = config

    def compile(self, module, example_inputs):
        compiling = _InductorCompiling(self)
        compiled = _private.compile_with_inductor(module, example_inputs, compiling.partition, compiling.measured_by,
                                                  self.config)
        return compiling.called(compiled), compiling


class _InductorCompiling(Compiling):
    def measured_by(self, run, module, is_backward, is_inference):
        """Wraps the compiled function so that its first run is measured. A graph without a backward pass is not
        planned, so its function is returned as it is."""
        if self.report is None or is_inference:
            self.owner.runs_without_budget(
                "Inductor compiles a graph without a backward pass as it is: no budget holds for it")
            return run
        return self.run_backward(run, module) if is_backward else self.run_forward(run, module)


def _inductor_config(mode, options):
    try:
        return _private.inductor_config(mode, options)
    except RuntimeError as error:
        raise cairn.InputError(f"mode, options: {str(error).split(', known options')[0]}") from None
