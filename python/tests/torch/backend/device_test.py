"""Tests that a step of torch.compile under a budget on a GPU has the same results bit for bit and stays within the
promised bytes. Skipped without a GPU."""

import pathlib
import sys
import unittest

import cairn.torch
import harness
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[4] / "bench" / "torch"))
import models  # noqa: E402

OF_BENCH = ("gpt-6", "vit", "resnet50")  # models of bench/torch that are tested if they can be built


def on_gpu(model, inputs):
    return model.cuda(), tuple(value.cuda() for value in inputs)


@unittest.skipUnless(torch.cuda.is_available(), "no CUDA device")
class Budgets(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.enterContext(torch.backends.cudnn.flags(enabled=True, deterministic=True, benchmark=False))

    def check(self, model, inputs, budgets=("70%", "50%", "min")):
        reference = harness.train(model, inputs, harness.unscheduled())
        self.assertGreater(reference.peak, 0)
        for budget in budgets:
            with self.subTest(budget=budget):
                with harness.cairn_warnings("error"):
                    backend = cairn.torch.backend(budget, fallback=False, work_limit=1_000_000)
                    step = harness.train(model, inputs, backend)
                report = cairn.torch.last_report()
                graph, = report.graphs
                print(f"{self.id().split('.')[-1]} {budget}: reference {reference.peak}, promised {graph.promised}, measured "
                      f"{graph.measured}, step {step.peak} at {step.peak_operation}", flush=True)
                self.assertEqual(harness.same(reference, step), "")
                self.assertEqual(graph.device, "cuda")
                self.assertEqual(graph.kept, True)
                self.assertLessEqual(step.peak, graph.promised)
                self.assertGreaterEqual(step.peak, 0.95 * graph.promised)

    def test_transformer(self):
        self.check(*on_gpu(*harness.gpt(layers=4, width=256, batch=8, length=128)))

    def test_transformer_under_autocast(self):
        model, inputs = harness.gpt(layers=4, width=256, batch=8, length=128)
        self.check(*on_gpu(harness.Amp(model), inputs))

    def test_convolutions_and_batch_norm(self):
        self.check(*on_gpu(*harness.cnn(channels=64, image=64, batch=16)))

    def test_models_of_the_bench(self):
        for name in OF_BENCH:
            with self.subTest(model=name):
                case = models.build(name)
                self.check(*on_gpu(case.model, case.inputs), budgets=("60%", "min"))
