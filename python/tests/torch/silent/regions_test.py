"""Tests that recomputation within regions (torch.compiler.nested_compile_region), and recomputation that a policy of a
checkpoint demands, starts from the same values and computes the same bits as the forward pass did."""

import functools
import unittest

import cairn
import cairn.torch
import harness
import torch
from same_step import backend
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts


def block(h, x, first, second):
    """A block that computes a large value from a small input ``x``, so that a plan computes this value again."""
    return torch.sin((h * torch.exp(torch.tanh(torch.sin(x @ first)) * 0.5)) @ second)


def policy(context, operator, *arguments, **options):
    return CheckpointPolicy.MUST_RECOMPUTE


CONTEXTS = functools.partial(create_selective_checkpoint_contexts, policy)


def with_policy(*inputs):
    return checkpoint(block, *inputs, use_reentrant=False, context_fn=CONTEXTS)


class Blocks(torch.nn.Module):
    def __init__(self, call):
        super().__init__()
        self.call = call
        self.begin = torch.nn.Parameter(torch.randn(64, 32))
        self.first = torch.nn.Parameter(torch.randn(4, 32))
        self.second = torch.nn.ParameterList(torch.randn(32, 32) * 0.2 for _ in range(4))

    def forward(self, x):
        h = self.begin
        for second in self.second:
            h = self.call(h, x, self.first, second)
        return h.square().sum()


class Written(harness.Fresh):
    def trained(self, call, chosen, between=lambda x: None, made=torch.randn, around=lambda: torch.autocast("cpu", enabled=False)):
        """Returns the loss and the gradients of a step. ``between`` gets the input between the passes, and ``around``
        returns a context for the backward pass."""
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, x = Blocks(call), made(64, 4)
        loss = (torch.compile(model, backend=chosen) if chosen is not None else model)(x)
        between(x)
        with around():
            loss.backward()
        return [loss.detach(), *(p.grad for p in model.parameters())]

    def calls(self):
        """Yields (the function that calls a block, a budget under which the plan computes values again)."""
        yield torch.compiler.nested_compile_region(block), "min"
        yield with_policy, "100%"

    def test_memory_that_torch_does_not_see(self):
        """Tests an input that shares its memory with an array of numpy. Nothing may be computed from it again."""
        for call, budget in self.calls():
            with self.subTest(budget):
                chosen = backend(budget)
                found = [self.trained(of, one, lambda x: x.numpy().fill(3), lambda *size: torch.from_numpy(torch.randn(size).numpy()))
                         for of, one in ((block, None), (call, chosen))]
                self.assertTrue(all(map(torch.equal, *found)))
                self.assertEqual(len(chosen.report.graphs[0].shared_inputs), 1)

    def test_writes_that_torch_does_not_see_are_told(self):
        for call, budget in self.calls():
            with self.subTest(budget), self.assertRaisesRegex(cairn.torch.WrittenError, "an input was written"):
                self.trained(call, backend(budget), lambda x: x.data.add_(1))

    def test_a_backward_pass_under_autocast(self):
        """Tests that recomputation is not rounded to 16 bits. The gradients must be those of a step that computes
        nothing again."""
        def around():
            return torch.autocast("cpu", torch.bfloat16)

        with harness.cairn_warnings("ignore"):  # autocast copies values, which no plan contains
            for call, budget in self.calls():
                with self.subTest(budget):
                    plain = self.trained(torch.compiler.nested_compile_region(block), "aot_eager", around=around)
                    self.assertTrue(all(map(torch.equal, plain, self.trained(call, backend(budget), around=around))))

    def test_hooks_that_round_are_told(self):
        for call, budget in self.calls():
            with self.subTest(budget), torch.autograd.graph.saved_tensors_hooks(lambda t: t.bfloat16(), lambda t: t.float()):
                with self.assertWarnsRegex(cairn.torch.CairnWarning, "hooks on saved values"):
                    self.trained(call, backend(budget))


if __name__ == "__main__":
    unittest.main()
