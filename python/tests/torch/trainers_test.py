"""Tests the backend when it is given by its name, "cairn", and when trainers of other packages use it. If a package is
not installed, its test is skipped; ``scripts/test_torch.sh --trainers`` installs the packages."""

import copy
import importlib.util
import os
import tempfile
import unittest
import unittest.mock

import cairn
import cairn.torch
import harness
import torch

LIMITS = {"work_limit": 2_000, "fallback": False}


def needs(package):
    return unittest.skipUnless(importlib.util.find_spec(package), f"{package} is not installed")


class Block(torch.nn.Module):
    """A module that is no Sequential, because compile() of a Sequential has no effect in torch 2.9."""

    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)

    def forward(self, x):
        return self.down(torch.nn.functional.gelu(self.up(x)))


def layers(count=6):
    return torch.nn.Sequential(*[Block() for _ in range(count)])


class Named(harness.Fresh):
    """Tests torch.compile(model, backend="cairn")."""

    def setUp(self):
        super().setUp()
        self.model, self.x = layers(), torch.randn(32, 64)

    def train(self, model):
        model(self.x).square().mean().backward()
        return cairn.torch.last_report().graphs[-1]

    def test_options(self):
        self.assertIn("cairn", torch._dynamo.list_backends())
        graph = self.train(torch.compile(self.model, backend="cairn", options={"budget": "60%", **LIMITS}))
        self.assertEqual(graph.budget, -(-60 * graph.baseline // 100))
        self.assertLessEqual(graph.measured, graph.budget)

    def test_the_variable(self):
        with unittest.mock.patch.dict(os.environ, CAIRN_BUDGET="70%"):
            graph = self.train(torch.compile(self.model, backend="cairn", options=LIMITS))
            self.assertEqual(graph.budget, -(-70 * graph.baseline // 100))
            torch._dynamo.reset()
            other = self.train(torch.compile(self.model, backend="cairn", options={"budget": "60%", **LIMITS}))
            self.assertLess(other.budget, graph.budget)
        with unittest.mock.patch.dict(os.environ, CAIRN_BUDGET="many"), self.assertRaisesRegex(
                cairn.InputError, "^CAIRN_BUDGET: budget: 'many' is neither bytes"):
            torch._dynamo.reset()
            self.train(torch.compile(self.model, backend="cairn", options={**LIMITS, "seed": 7}))

    def test_bad_options(self):
        for options, message in (({"bugdet": "60%"}, "backend 'cairn' has no 'bugdet'; it has budget, compiler, "),
                                 ({"budget": "-3"}, "budget: '-3' is neither bytes"),
                                 ({"budget": "60%", "random": "no"}, "random: 'keep' or 'replay'")):
            torch._dynamo.reset()
            with self.assertRaisesRegex(cairn.InputError, message):
                self.train(torch.compile(self.model, backend="cairn", options=options))

    def test_blocks_share_one_budget(self):
        """Tests that blocks that are compiled separately, with the same backend name and options, are planned
        together."""
        for block in self.model:
            block.compile(backend="cairn", options={"budget": "70%", **LIMITS})
        with harness.cairn_warnings("ignore"):
            for _ in range(3):
                self.train(self.model)
                self.model.zero_grad()
        report = cairn.torch.last_report()
        self.assertLessEqual(report.promised, report.step.budget)
        self.assertTrue(report.kept)


    def test_stances(self):
        """Tests torch.compiler.set_stance(). Under a stance that forbids compiling, the model runs uncompiled, with the
        same gradients. Afterwards it is planned again."""
        run = torch.compile(self.model, backend="cairn", options={"budget": "60%", **LIMITS, "seed": 3})
        self.train(run)
        expected = [p.grad.clone() for p in self.model.parameters()]
        for stance in ("force_eager", "eager_on_recompile", "fail_on_recompile", "default"):
            self.model.zero_grad()
            with self.subTest(stance), torch.compiler.set_stance(stance):
                graph = self.train(run)
                self.assertTrue(all(torch.equal(p.grad, g) for p, g in zip(self.model.parameters(), expected)))
                self.assertEqual(len(cairn.torch.last_report().graphs), 1)
                self.assertTrue(graph.kept)
        self.x = torch.randn(48, 64)
        with torch.compiler.set_stance("fail_on_recompile"), self.assertRaisesRegex(RuntimeError, "fail_on_recompile"):
            self.train(run)
        with torch.compiler.set_stance("eager_on_recompile"):
            self.train(run)
        self.assertEqual(len(cairn.torch.last_report().graphs), 1)
        self.train(run)
        self.assertEqual(len(cairn.torch.last_report().graphs), 2)


class Trainers(harness.Fresh):
    def assert_trained(self, expected, found):
        for one, other in zip(expected, found, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
        report = cairn.torch.last_report()
        self.assertTrue(report.kept)
        self.assertLess(report.promised, report.baseline)

    @needs("transformers")
    def test_hugging_face(self):
        import transformers
        config = transformers.Qwen2Config(vocab_size=500, hidden_size=64, intermediate_size=256, num_hidden_layers=3,
                                          num_attention_heads=4, num_key_value_heads=2)
        torch.manual_seed(0)
        model = transformers.Qwen2ForCausalLM(config)
        tokens = torch.randint(0, 500, (16, 32))
        data = [{"input_ids": row, "labels": row} for row in tokens]

        def train(model, callbacks):
            with tempfile.TemporaryDirectory() as folder:
                arguments = transformers.TrainingArguments(
                    output_dir=folder, per_device_train_batch_size=8, max_steps=2, report_to=[], logging_strategy="no",
                    save_strategy="no", use_cpu=True, disable_tqdm=True)
                transformers.Trainer(model, arguments, train_dataset=data, callbacks=callbacks).train()
            return list(model.parameters())

        expected = train(copy.deepcopy(model), [])
        callback = cairn.torch.trainer_callback("60%", **LIMITS)
        self.assert_trained(expected, train(copy.deepcopy(model), [callback]))
        self.assertIs(callback.report, cairn.torch.last_report())
        torch._dynamo.reset()
        model.compile(backend="cairn", options={"budget": "60%", **LIMITS})
        self.assert_trained(expected, train(model, []))

    @needs("lightning")
    def test_lightning(self):
        import lightning

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.layers = layers()

            def training_step(self, batch, index):
                return torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1])

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 0.1)

        data = torch.utils.data.TensorDataset(torch.randn(96, 64), torch.randn(96, 64))
        model = Module()

        def train(module, run):
            with tempfile.TemporaryDirectory() as folder:
                trainer = lightning.Trainer(
                    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                    enable_model_summary=False, default_root_dir=folder)
                trainer.fit(run(module), torch.utils.data.DataLoader(data, batch_size=32))
            return list(module.parameters())

        expected = train(copy.deepcopy(model), lambda module: module)
        found = train(model, lambda module: torch.compile(module, backend="cairn", options={"budget": "60%", **LIMITS}))
        self.assert_trained(expected, found)

    @needs("accelerate")
    def test_accelerate(self):
        import accelerate
        model, x = layers(), torch.randn(3, 32, 64)

        def train(model):
            accelerator, optimizer = accelerate.Accelerator(cpu=True), torch.optim.SGD(model.parameters(), 0.1)
            prepared, optimizer = accelerator.prepare(model, optimizer)
            for batch in x:
                accelerator.backward(prepared(batch).square().mean())
                optimizer.step()
                optimizer.zero_grad()
            return list(model.parameters())

        expected, compiled = train(copy.deepcopy(model)), copy.deepcopy(model)
        compiled.compile(backend="cairn", options={"budget": "60%", **LIMITS})
        self.assert_trained(expected, train(compiled))
