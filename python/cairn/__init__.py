"""Schedules computation graphs within a memory budget. A schedule says in which order operations run and which of them
run again; a plan says at which address every tensor lives.

    import cairn
    graph = cairn.read_graph("graph.json")
    answer = cairn.solve(graph, "60%")
    print(answer.planned, answer.cost_increase, answer.schedule.steps)

Numbers of bytes are ints. Arguments of functions have the names and defaults of the options of the command `cairn`.
"""

from ._api import (datasets, info, largest_batch, least_budget, pareto, plan, read_graph, read_plan, read_schedule, run,
                   simulate, solve, train, write_plan, write_schedule)
from ._cairn import (Answer, Curve, CurvePoint, Dataset, DeviceShare, Evaluation, Executed, FoundPlan, Graph,
                     GraphBuilder, Info, LargestBatch, LeastBudget, Plan, RunResult, Schedule, StepReport, Sweep,
                     Symbol, TestResult, TrainResult, __version__, baseline_schedule, check_plan, evaluate,
                     format_bytes, lifetimes, load_dataset, parse_graph, parse_plan, parse_schedule, profile,
                     set_thread_count, solvers, thread_count)
from ._errors import (DefectError, DeviceError, Error, InfeasibleError, InputError, Interrupted, NoScheduleError,
                      NotFoundError)
from ._executor import Executor
from ._networkx import from_networkx, to_networkx
from ._types import DatasetInfo, Evict, Fetch, Node, Output, Resident, Tensor, Transfers
from . import _blas, models

_blas.offer()

__all__ = ["__version__", "Answer", "Curve", "CurvePoint", "Dataset", "DatasetInfo", "DefectError", "DeviceError",
           "DeviceShare", "Error", "Evaluation", "Evict", "Executed", "Executor", "Fetch", "FoundPlan", "Graph",
           "GraphBuilder", "InfeasibleError", "Info", "InputError", "Interrupted", "LargestBatch", "LeastBudget",
           "NoScheduleError", "Node", "NotFoundError", "Output", "Plan", "Resident", "RunResult", "Schedule",
           "StepReport", "Sweep", "Symbol", "Tensor", "TestResult", "TrainResult", "Transfers", "baseline_schedule",
           "check_plan", "datasets", "evaluate", "format_bytes", "from_networkx", "info", "largest_batch",
           "least_budget", "lifetimes", "load_dataset", "models", "pareto", "parse_graph", "parse_plan",
           "parse_schedule", "plan", "profile", "read_graph", "read_plan", "read_schedule", "run", "set_thread_count",
           "simulate", "solve", "solvers", "thread_count", "to_networkx", "train", "write_plan", "write_schedule"]
