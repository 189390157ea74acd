"""Trains PyTorch models under a memory budget: ``torch.compile(model, backend=cairn.torch.backend(budget="8GiB"))``.

Cairn changes the order of a step's operations and computes results again, so that the step's peak memory stays within
the budget. Loss, gradients and buffers have the same bits as without Cairn. docs/pytorch.md says what Cairn promises,
and what to do if a model does not fit into memory.
"""

from . import _private
from ._backend.backend import backend, last_report
from ._backend.named import named
from ._errors import CairnWarning, InfeasibleError, WrittenError
from ._graph.fit import Fit, will_it_fit
from ._graph.of_model import graph
from ._graph.operators import declare_pure
from ._memory.events import MemoryTrace, measure_peak
from ._memory.snapshot import Snapshot, read_snapshot
from ._report import GraphReport, Report
from ._step.step import Step, measure_step, step
from ._trainers import trainer_callback

_private.register_backend("cairn", named)

__all__ = ["CairnWarning", "Fit", "GraphReport", "InfeasibleError", "MemoryTrace", "Report", "Snapshot", "Step",
           "WrittenError", "backend", "declare_pure", "graph", "last_report", "measure_peak", "measure_step",
           "read_snapshot", "step", "trainer_callback", "will_it_fit"]
