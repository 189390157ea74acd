"""Tests that a schedule compiled by Inductor gives the same gradients except for rounding, and that the report calls
its peak approximate."""

import unittest

import cairn.torch
import harness
import torch


class Inductor(unittest.TestCase):
    def test_a_smaller_peak_with_the_same_gradients(self):
        """The model has dropout, whose recomputation must give the same random numbers."""
        torch.manual_seed(0)
        model, inputs = harness.gpt(layers=2, dropout=0.1)
        steps = []
        for budget in ("100%", "50%"):
            with harness.cairn_warnings("ignore"):  # peaks are approximate
                backend = cairn.torch.backend(budget, compiler="inductor", fallback=False, work_limit=300_000)
                steps.append(harness.train(model, inputs, backend))
            graph = cairn.torch.last_report().graphs[0]
            self.assertTrue(graph.approximate)
            self.assertIn("approximate", str(graph))
            self.assertIsNotNone(graph.measured)
            self.assertIsNot(graph.kept, True)  # nothing is promised
        whole, less = steps
        self.assertLess(less.peak, 0.8 * whole.peak)
        self.assertTrue(torch.allclose(whole.loss, less.loss, rtol=1e-5))
        for name, gradient in whole.gradients.items():
            error = (gradient - less.gradients[name]).norm() / gradient.norm()
            self.assertLess(error.item(), 1e-4, name)

    def test_a_graph_without_a_backward_pass_has_no_budget(self):
        torch._dynamo.reset()
        model, x = torch.nn.Linear(8, 8), torch.randn(4, 8)
        backend = cairn.torch.backend(1, compiler="inductor", fallback=False)
        compiled = torch.compile(model, backend=backend, dynamic=False)
        with torch.no_grad(), harness.told() as told:
            for inputs in (x, x[:2]):
                self.assertTrue(torch.allclose(compiled(inputs), model(inputs)))
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0], "no budget holds for it")
        self.assertIn(f"a graph runs without a budget: {told[0]}", str(backend.report))
        self.assertIsNone(backend.report.kept)
