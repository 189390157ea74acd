"""Makes a forward pass that torch.utils.checkpoint repeats run the graph that ran the first time.

A checkpoint runs its function twice. The backward pass of the first run gets the values that the second run saves, in
the order in which they are saved. Two graphs of one function, for example one for a single size and one for all sizes,
save different values in different order. So the second run must use the graph of the first run, although torch.compile
may choose another graph by then.
"""

import weakref

import torch
from torch.utils.checkpoint import CheckpointError

from .. import _private


class _Calls:
    """The calls of compiled graphs within one call of checkpoint()."""

    def __init__(self):
        self.first = []  # a _Call for each call in the first run, in order
        self.again = {}  # number of a later run -> number of calls that this run has made so far


_calls = weakref.WeakKeyDictionary()  # frame of a checkpoint -> its _Calls


class _Call:
    def __init__(self, run, names, results, args):
        self.run, self.names, self.results = run, names, results
        given = dict(zip(names, args))
        self.kinds = {name: _kind(value) for name, value in given.items() if _is_made_again(value)}
        self.numbers = {name: _copy(value) for name, value in given.items() if name not in self.kinds}

    def repeat(self, given, results):
        """Runs the graph of this call again. ``given``: the arguments by name, from a call of another graph of the same
        function. ``results``: the results that the caller expects from that other graph, as _results() describes
        them."""
        if results != self.results or any(_kind(given.get(name)) != kind for name, kind in self.kinds.items()):
            raise CheckpointError(
                "torch.utils.checkpoint: torch.compile chose another graph for the recomputation than for the forward pass, "
                "which has other inputs or results, so that values saved by one do not fit the other's backward pass: compiled "
                "code may not depend on what changes between both (TORCH_LOGS=recompiles says what differs); "
                "torch._dynamo.mark_dynamic() has one graph for all sizes from the beginning, torch.compile(dynamic=False) has none, "
                "or compile a function that calls checkpoint()")
        numbers = {name: _now(known, given.get(name)) for name, known in self.numbers.items()}
        return self.run(*(numbers[name] if name in numbers else given[name] for name in self.names))


def _kind(value):
    """Returns the properties of a tensor that must be equal if another tensor is to replace it."""
    return (value.shape, value.dtype, value.device, value.requires_grad) if isinstance(value, torch.Tensor) else None


def _is_made_again(value):
    """Returns whether a value is a tensor that a repeated run must receive anew. A tensor without dimensions and
    without a gradient may be a number that torch.compile has turned into a tensor, so it counts as a number."""
    return isinstance(value, torch.Tensor) and (value.dim() > 0 or value.requires_grad)


def _copy(value):
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _now(known, value):
    """Returns what a repeated call is given where the first call was given ``known``. If both are tensors, such as a
    buffer that the graph may write, this is the present tensor ``value``, else ``known``."""
    return value if isinstance(known, torch.Tensor) and isinstance(value, torch.Tensor) else known


def _results(module):
    """Returns the results of a captured function, as pairs (name, whether the result is a tensor)."""
    return [(node.name, isinstance(node.meta.get("example_value"), torch.Tensor)) if isinstance(node, torch.fx.Node) else node
            for node in _private.outputs(module.graph)]


def same_graph_again(run, module):
    """Wraps a compiled graph in a function that, if a checkpoint runs its forward pass again, runs the graph that ran
    the first time. ``module``: the module that torch.compile captured. The names of its inputs say where the inputs
    come from."""
    names, results = [node.target for node in module.graph.find_nodes(op="placeholder")], _results(module)

    def call(*args):
        frame, number = _private.saving_frame()
        if frame is None:
            return run(*args)
        calls = _calls.setdefault(frame, _Calls())
        if number is None:
            calls.first.append(_Call(run, names, results, args))
            return run(*args)
        k = calls.again.get(number, 0)
        calls.again[number] = k + 1
        if k >= len(calls.first) or calls.first[k].run is run:
            return run(*args)
        return calls.first[k].repeat(dict(zip(names, args)), results)

    return call
