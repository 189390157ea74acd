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
