"""Contains functions for tests that need a joint graph of AOTAutograd, i.e. a graph of the forward and the backward
pass."""

import harness
import torch
from cairn.torch import _private


def joint_graph(function, inputs):
    """Returns a dict with the joint graph of a function and the two modules that ``extract`` cuts from it."""
    found = {}

    def partition(joint, _, *, num_fwd_outputs, static_lifetime_input_indices=None, **__):
        found["joint"], found["outputs"] = joint, num_fwd_outputs
        return torch._functorch.partitioners.default_partition(
            joint, _, num_fwd_outputs=num_fwd_outputs, static_lifetime_input_indices=static_lifetime_input_indices)

    found["result"] = _private.trace_functional(function, inputs, on_joint=partition)(*inputs)
    return found


def cut_after(look, bw_compiler=None, **options):
    """Returns a backend of torch.compile that calls ``look(joint, num_fwd_outputs=..., ...)`` before it cuts a joint
    graph."""
    def partition(joint, inputs, **given):
        look(joint, **given)
        return torch._functorch.partitioners.default_partition(joint, inputs, **given)

    def compiler(module, _):
        return _private.boxed(module)

    return _private.aot_autograd(fw_compiler=compiler, bw_compiler=bw_compiler or compiler, partition_fn=partition,
                                 **options)


class OfJointGraph(harness.Fresh):
    """A base class of tests, which traces the joint graph of a small function for each test."""

    def setUp(self):
        super().setUp()
        x = torch.randn(4, 4, requires_grad=True)
        self.found = joint_graph(lambda x: [(x.sin() * x).sum()], [x])
        self.graph = self.found["joint"].graph
