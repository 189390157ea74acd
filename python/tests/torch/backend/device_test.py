"""Tests that a step of torch.compile under a budget on a GPU has results with the same bits as without Cairn and stays
within the promised peak. Skipped if there is no GPU."""

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

    def check(self, model, inputs, budgets=("70%", "50%", "min"), compiler="eager"):
        reference = harness.train(model, inputs, harness.unscheduled() if compiler == "eager" else cairn.torch.backend(
            "100%", compiler=compiler, fallback=False))
        self.assertGreater(reference.peak, 0)
        for budget in budgets:
            with self.subTest(budget=budget):
                with harness.cairn_warnings("error"):
                    backend = cairn.torch.backend(budget, compiler=compiler, fallback=False, work_limit=1_000_000)
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

    def test_fused_kernels(self):
        for dropout in (0.0, 0.1):
            with self.subTest(dropout=dropout):
                self.check(*on_gpu(*harness.gpt(layers=4, width=256, batch=8, length=128, dropout=dropout)), compiler="inductor")
                self.assertGreater(cairn.torch.last_report().graphs[0].fused, 0)


@unittest.skipUnless(torch.cuda.is_available(), "no CUDA device")
class Allocator(unittest.TestCase):
    """Compares Cairn's simulation of PyTorch's allocator with the allocator itself."""

    def test_what_is_reserved_for_a_training(self):
        model, inputs = on_gpu(*harness.gpt(layers=4, width=256, batch=8, length=128))
        optimizer = torch.optim.AdamW(model.parameters())

        def step():
            optimizer.zero_grad()
            model(*inputs).backward()
            optimizer.step()

        torch.cuda.empty_cache()
        torch.cuda.memory._record_memory_history(stacks="python")
        try:
            for _ in range(3):
                step()
            torch.cuda.synchronize()
            snapshot = cairn.torch.read_snapshot(torch.cuda.memory._snapshot())
        finally:
            torch.cuda.memory._record_memory_history(None)
        print(f"{snapshot}; the model reserves {snapshot.modelled()}", flush=True)
        self.assertEqual(snapshot.reserved, torch.cuda.max_memory_reserved())
        self.assertLessEqual(abs(snapshot.modelled() - snapshot.reserved), 0.1 * snapshot.reserved)
        fit = cairn.torch.will_it_fit(model, inputs, "80GiB", others=1)
        print(fit, flush=True)
        self.assertLessEqual(abs(fit.without.reserved - snapshot.reserved), 0.25 * snapshot.reserved)
