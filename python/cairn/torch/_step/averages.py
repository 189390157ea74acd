"""Inserts operations into a graph that average gradients over the ranks of DistributedDataParallel before parameters
are updated."""

import contextlib

import cairn

from .. import _private
from .._graph.inline import inline


class Averages:
    """The DistributedDataParallel modules of a step's optimizers. Within a ``with`` block, the modules do not average
    gradients themselves, because the compiled graphs do."""

    def __init__(self):
        self._modules = None  # list of _private.DataParallel; None: not searched yet
        self._averaged = set()  # ids of the parameters whose gradients are averaged
        self._inside = contextlib.ExitStack()

    def enter(self, parameters):
        """Begins a step of optimizers with these parameters. The first call searches for the modules."""
        if self._modules is None:
            known = {id(p): i for i, p in enumerate(parameters)}
            found = [([known[id(p)] for p in one.parameters() if id(p) in known], one) for one in _private.DataParallel.all()]
            # Sorted by the optimizers' parameters, because all ranks must exchange gradients in the same order.
            self._modules = [one for at, one in sorted(((at, one) for at, one in found if at), key=lambda entry: min(entry[0]))]
        if not self._modules and _private.collective_store() is not None:
            raise cairn.InputError("optimizer: with several ranks gradients are exchanged before the optimizer's step, and no "
                                   "DistributedDataParallel has parameters of this optimizer; plan the step without optimizer=")
        for one in self._modules:
            feature = one.unknown_feature()
            if feature is not None:
                raise cairn.InputError(f"optimizer: DistributedDataParallel with {feature}; plan the step without optimizer=")
        self._averaged = {id(p) for one in self._modules for p in one.parameters()}
        for one in self._modules:
            self._inside.enter_context(one)

    def leave(self):
        self._inside.close()

    def has(self, parameter):
        return id(parameter) in self._averaged

    def insert(self, graph, placeholders, inputs):
        """Replaces, in place, the gradients that a joint graph returns by their averages. ``placeholders``, ``inputs``:
        the graph's placeholders, and the tensor of each. Raises InputError if a parameter of a module has no gradient
        in this graph, because all ranks must exchange the gradients of the same parameters."""
        if _private.DataParallel.runs():
            raise cairn.InputError("optimizer: a DistributedDataParallel that has no parameters of this optimizer, or that was made "
                                   "after the first step; plan the step without optimizer=")
        if not self._modules:
            return
        descriptions, leaves = _private.output_descriptions(graph), _private.outputs(graph)
        of = {d.grad_of: i for i, d in enumerate(descriptions) if _private.is_gradient(d) and leaves[i] is not None}
        returned = {id(p): of[node.meta.get("desc")] for node, p in zip(placeholders, inputs) if node.meta.get("desc") in of}
        output, known = next(iter(reversed(graph.nodes))), set(graph.nodes)
        for one in self._modules:
            parameters = one.parameters()
            missing = [p for p in parameters if id(p) not in returned]
            if len(missing) == len(parameters):
                continue
            if missing:
                raise cairn.InputError(
                    f"optimizer: {len(missing)} of {len(parameters)} parameters of DistributedDataParallel get no gradient in this "
                    f"graph, the first of shape {list(missing[0].shape)}: the step does not use them or is several graphs "
                    "(TORCH_LOGS=graph_breaks), and all ranks must exchange the same; plan the step without optimizer=")
            hooked = next((p for p in parameters if p._backward_hooks or p._post_accumulate_grad_hooks), None)
            if hooked is not None:
                raise cairn.InputError(
                    f"optimizer: a parameter of DistributedDataParallel, of shape {list(hooked.shape)}, has a hook, which would get "
                    "the average of its gradient instead of the gradient; plan the step without optimizer=")
            for bucket in one.buckets(parameters):
                positions = [returned[id(parameters[i])] for i in bucket]
                averages = inline(graph, output, lambda *gradients, one=one: _private.average(gradients, one.ranks, one.group),
                                  [leaves[i] for i in positions], {})
                for position, average in zip(positions, averages):
                    leaves[position] = average
        for node in graph.nodes:
            if node not in known:
                _private.set_side(node, True)
        output.args = (tuple(leaves),)
