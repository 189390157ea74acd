"""Tests that policies of selective activation checkpointing are obeyed: MUST_SAVE operations run once, and results of
MUST_RECOMPUTE operations are not kept."""

import functools
import unittest

import cairn
import cairn.torch
import harness
import torch
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

aten = torch.ops.aten
RULES = {}  # operator -> policy, for the model that is being compiled


def policy(context, operator, *arguments, **options):
    return RULES.get(operator, CheckpointPolicy.PREFER_RECOMPUTE)


CONTEXTS = functools.partial(create_selective_checkpoint_contexts, policy)


class Blocks(torch.nn.Module):
    """A model of blocks that run in checkpoints with policies (``checkpoints`` True), in checkpoints without policies
    (False), or without checkpoints (None)."""

    def __init__(self, checkpoints, dropout=0.0):
        super().__init__()
        torch.manual_seed(0)
        self.linears = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(5))
        self.checkpoints, self.dropout = checkpoints, dropout
        self.register_buffer("scale", torch.ones(64))

    def block(self, linear, x):
        x = torch.tanh(linear(x))
        if self.dropout:
            x = torch.nn.functional.dropout(x, self.dropout)
        return torch.sigmoid(x.view(-1, 8, 8).sin().flatten(1) * self.scale.cos())

    def forward(self, x):
        for linear in self.linears:
            if self.checkpoints is None:
                x = self.block(linear, x)
            elif self.checkpoints:
                x = checkpoint(self.block, linear, x, use_reentrant=False, context_fn=CONTEXTS)
            else:
                x = checkpoint(self.block, linear, x, use_reentrant=False)
        self.scale.mul_(0.5)
        return x.square().mean()


class Policies(unittest.TestCase):
    def train(self, model, budget, rules=(), **options):
        """Trains the model. Returns (harness.Step, names of the operations that ran again, GraphReport)."""
        RULES.clear()
        RULES.update(rules)
        chosen = cairn.torch.backend(budget, fallback=False, work_limit=100_000, **options)
        step = harness.train(model, (self.inputs(),), chosen)
        (graph,) = chosen.report.graphs
        self.assertLessEqual(graph.measured, graph.promised)
        recomputed = {item.operation.split(".")[1] for item in graph.recomputed}
        return step, recomputed, graph

    def runs(self, name, model, budget):
        """Returns the number of calls of an operator in a step."""
        torch._dynamo.reset()
        compiled = torch.compile(model, backend=cairn.torch.backend(budget, fallback=False, work_limit=100_000))
        compiled(self.inputs()).backward()
        model.zero_grad()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            compiled(self.inputs()).backward()
        return sum(event.count for event in profiler.key_averages() if event.key == name)

    def reference(self, **options):
        return harness.train(Blocks(None, **options), (self.inputs(),), harness.unscheduled())

    def inputs(self):
        torch.manual_seed(1)
        return torch.randn(50, 64)

    def test_what_must_be_saved_runs_once(self):
        reference = self.reference()
        _, free, _ = self.train(Blocks(True), "min")
        self.assertLessEqual({"tanh", "addmm"}, free)
        for operator, name in ((aten.tanh.default, "tanh"), (aten.addmm.default, "addmm")):
            step, recomputed, _ = self.train(Blocks(True), "min", {operator: CheckpointPolicy.MUST_SAVE})
            self.assertEqual(harness.same(reference, step), "")
            self.assertNotIn(name, recomputed)
            self.assertGreater(len(recomputed), 0)

    def test_what_must_be_recomputed_is_not_kept(self):
        """Tests that results of MUST_RECOMPUTE operations are not kept for the backward pass, even if the budget has
        room for them."""
        reference = self.reference()
        _, _, free = self.train(Blocks(True), "100%")
        size = 50 * 64 * 4
        for rules, kept in (({aten.tanh.default: CheckpointPolicy.MUST_RECOMPUTE}, free.saved),
                            ({operator: CheckpointPolicy.MUST_RECOMPUTE for operator in (
                                aten.addmm.default, aten.tanh.default, aten.sin.default, aten.mul.Tensor,
                                aten.sigmoid.default)}, size)):
            for budget in ("100%", "min"):
                with self.subTest(budget=budget, rules=len(rules)):
                    step, _, graph = self.train(Blocks(True), budget, rules)
                    self.assertEqual(harness.same(reference, step), "")
                    self.assertGreaterEqual(self.runs("aten::tanh", Blocks(True), budget), 2 * 5)
                    # instead of the results, the inputs of their recomputation may be kept
                    self.assertLessEqual(graph.saved, kept)

    def test_plain_checkpoints_are_planned_freely(self):
        _, _, without = self.train(Blocks(None), "100%")
        _, recomputed, plain = self.train(Blocks(False), "100%")
        self.assertEqual(recomputed, set())
        self.assertEqual((plain.baseline, plain.promised), (without.baseline, without.promised))

    def test_hints_are_left_to_the_solver(self):
        for hint in (CheckpointPolicy.PREFER_SAVE, CheckpointPolicy.PREFER_RECOMPUTE):
            _, recomputed, _ = self.train(Blocks(True), "100%", {aten.tanh.default: hint})
            self.assertEqual(recomputed, set())
            _, recomputed, _ = self.train(Blocks(True), "min", {aten.tanh.default: hint})
            self.assertIn("tanh", recomputed)

    def test_masks_of_dropout_are_kept_all_the_same(self):
        reference = self.reference(dropout=0.3)
        rules = {operator: CheckpointPolicy.MUST_RECOMPUTE for operator in (aten.native_dropout.default, aten.tanh.default)}
        for options in ({}, {"random": "replay"}):
            for budget in ("100%", "min"):
                step, _, _ = self.train(Blocks(True, dropout=0.3), budget, rules, **options)
                self.assertEqual(harness.same(reference, step), "")

    def test_what_reads_a_buffer_that_is_written_is_kept(self):
        """Tests a MUST_RECOMPUTE operation that reads a buffer which the model writes. It must not run again in the
        backward pass, because it would read the new value of the buffer."""
        reference = self.reference()
        step, _, _ = self.train(Blocks(True), "100%", {aten.cos.default: CheckpointPolicy.MUST_RECOMPUTE})
        self.assertEqual(harness.same(reference, step), "")


class Names(harness.Fresh):
    """Tests never_recompute=, which names operations that run once."""

    def recomputed(self, names, **options):
        """Trains under the least budget. Returns the recomputed operations as texts "operator of node"."""
        torch._dynamo.reset()
        backend = cairn.torch.backend("min", never_recompute=names, fallback=False, work_limit=20_000, **options)
        self.step = harness.train(self.model, self.inputs, backend)
        self.assertIs(backend.report.kept, True)
        return [f"{item.operation} of {item.name}" for item in backend.report.graphs[0].recomputed]

    def setUp(self):
        super().setUp()
        self.model, self.inputs = harness.gpt(layers=3, dropout=0.1)
        self.reference = harness.train(self.model, self.inputs, harness.unscheduled())

    def test_operators(self):
        self.assertTrue(any("gelu" in text for text in self.recomputed(())))
        for name in ("gelu", "aten.gelu", "aten.gelu.default", "*gel?*", ["mm", "gelu"]):
            with self.subTest(name), harness.cairn_warnings("error"):
                found = self.recomputed(name)
                self.assertFalse(any("gelu" in text for text in found), found)
                self.assertTrue(any("native_layer_norm" in text for text in found), found)
                self.assertEqual(harness.same(self.reference, self.step), "")

    def test_modules(self):
        """Tests that no operation of the modules that never_recompute= names runs again."""
        with harness.cairn_warnings("error"):
            found = self.recomputed("blocks.*")
        self.assertFalse(any("gelu" in text or "addmm" in text for text in found), found)
        with harness.cairn_warnings("error"):
            some = self.recomputed(["blocks.0", "blocks.2"])
        self.assertTrue(any("gelu" in text for text in some), some)
        self.assertFalse(any("layer_norm" in text for text in self.recomputed("LayerNorm")))

    def test_of_evaluations(self):
        inner = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)).eval()

        def evaluate(x):
            first = x.sin()
            second = first.exp()
            third = inner(inner(second))
            return (inner(third * first + second) * first).sum()

        def recomputed(names):
            torch._dynamo.reset()
            backend = cairn.torch.backend("min", never_recompute=names, work_limit=20_000)
            with torch.no_grad():
                torch.compile(evaluate, backend=backend)(torch.randn(128, 64))
            return {item.operation for item in backend.report.graphs[0].recomputed}

        self.assertIn("aten.sin.default", recomputed(()))
        self.assertNotIn("aten.sin.default", recomputed("sin"))

    def test_together_with_policies_and_fused_kernels(self):
        self.assertFalse(any("gelu" in text for text in self.recomputed("gelu", compiler="inductor")))

    def test_names_of_nothing(self):
        _, told = harness.told_by(lambda: self.recomputed(["gelu", "blocks.9"]))
        self.assertEqual(told, ["graph 0: never_recompute='blocks.9' names no operator and no module of it"])
        for bad in (3, [3], [""], None):
            with self.subTest(bad), self.assertRaisesRegex(cairn.InputError, "^never_recompute: names "):
                cairn.torch.backend(never_recompute=bad)
