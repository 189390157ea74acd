"""PyTorch under a memory budget: ``torch.compile(model, backend=cairn.torch.backend(budget="8GiB"))``.

The peak of a step stays within the budget by ordering and recomputation; loss, gradients and buffers keep the same
bits. docs/pytorch.md says what is promised, and what to do when a model does not fit.
"""

from ._backend.backend import backend, last_report
from ._errors import CairnWarning, InfeasibleError, WrittenError
from ._graph.of_model import graph
from ._memory.events import MemoryTrace, measure_peak
from ._report import GraphReport, Report
from ._step.step import Step, step

__all__ = ["CairnWarning", "GraphReport", "InfeasibleError", "MemoryTrace", "Report", "Step", "WrittenError",
           "backend", "graph", "last_report", "measure_peak", "step"]
