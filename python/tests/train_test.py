"""Tests cairn.train, the data sets, and checkpoints."""

import json
import os
import pathlib
import signal
import tempfile
import threading
import unittest

import cairn
import numpy as np
from support import COMMAND, command

MODEL = {"batch": 32, "layers": 2, "width": 32, "inputs": 64, "outputs": 10}


def ffn(**options):
    return cairn.models.build("ffn", **{"optimizer": "adamw", "learning_rate": 0.01, **MODEL, **options})


def train(graph=None, data="digits", **options):
    return cairn.train(graph or ffn(), data, **{"backend": "host", "steps": 20, **options})


class Data(unittest.TestCase):
    def test_digits(self):
        data = cairn.load_dataset("digits")
        self.assertEqual((data.name, data.kind, data.classes, data.alphabet), ("digits", "images", 10, None))
        self.assertEqual((data.images.shape, data.images.dtype), ((len(data), 8, 8), np.float32))
        self.assertEqual((data.labels.shape, data.labels.dtype), ((len(data),), np.int32))
        self.assertEqual(set(data.labels.tolist()), set(range(10)))
        self.assertLess(data.training, len(data))
        training = data.images[:data.training]
        np.testing.assert_allclose([training.mean(), training.std()], [0, 1], atol=1e-3)
        images = data.images
        del data, training
        self.assertTrue(np.isfinite(images).all())  # the array keeps the data set's memory alive

    def test_text(self):
        data = cairn.load_dataset("shakespeare")
        self.assertEqual((data.kind, data.images, data.classes), ("text", None, len(data.alphabet)))
        self.assertIn("the", "".join(data.alphabet[c] for c in data.labels[:2000]))

    def test_names(self):
        self.assertEqual([info.name for info in cairn.datasets()], ["digits", "shakespeare"])
        self.assertTrue(all(info.summary for info in cairn.datasets()))
        with self.assertRaisesRegex(cairn.InputError, "did you mean digits|digits"):
            cairn.load_dataset("digit")


class Trainings(unittest.TestCase):
    def test_what_is_returned(self):
        told = []
        result = train(ffn(width=64), steps=160, test_every=75, progress=lambda *now: told.append(now))
        self.assertEqual((result.steps, result.first_step, result.interrupted), (160, 0, False))
        self.assertEqual((result.losses.shape, result.losses.dtype), ((160,), np.float32))
        self.assertEqual([test.step for test in result.tests], [75, 150, 160])
        self.assertEqual((result.loss, result.accuracy), (result.losses[-1], result.tests[-1].accuracy))
        self.assertLess(result.losses[-5:].mean(), result.losses[:5].mean() / 4)
        self.assertGreater(result.accuracy, 0.6)
        self.assertLessEqual(result.measured_peak_bytes, result.planned_bytes)
        self.assertRegex(result.digest, "^[0-9a-f]{16}$")
        self.assertEqual(told[-1], (160, 160, result.loss))
        report = json.loads(result.to_json())
        self.assertEqual((report["weights"], report["loss"]), (result.digest, result.loss))
        self.assertIn("test after 160", str(result))

    def test_a_budget_and_a_given_schedule_change_no_bit(self):
        graph = cairn.models.build("mlp-mixer", batch=16, image=8, patch=2, layers=2, width=16, token_mlp=16,
                                   channel_mlp=32, classes=10, optimizer="sgd")
        free = train(graph, steps=4)
        bound = train(graph, steps=4, budget="70%", work_limit=100_000, poison=True)
        given = train(graph, steps=4, schedule=cairn.solve(graph, "80%", work_limit=100_000))
        self.assertLess(bound.planned_bytes, free.planned_bytes)
        self.assertEqual((bound.digest, given.digest), (free.digest, free.digest))
        np.testing.assert_array_equal(bound.losses, free.losses)
        self.assertNotEqual(train(graph, steps=4, seed=1).digest, free.digest)

    def test_rates(self):
        usual = train()
        # The graph was built with the rate 0.01, so giving this rate again changes nothing.
        self.assertEqual(train(learning_rate=0.01).digest, usual.digest)
        for other in ({"learning_rate": 0.02}, {"lr_schedule": "cosine"}, {"warmup": 5}, {"shift": 0}):
            with self.subTest(**other):
                self.assertNotEqual(train(**other).digest, usual.digest)

    def test_a_callback_may_end_it(self):
        result = train(steps=10**6, progress=lambda *now: False)
        self.assertTrue(result.interrupted)
        self.assertEqual(len(result.losses), result.steps)

        def fail(*now):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            train(steps=10**6, progress=fail)

    def test_ctrl_c_leaves_a_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "training.safetensors"
            killer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
            killer.start()
            with self.assertRaisesRegex(cairn.Interrupted, "interrupted after .* of 1000000 steps") as caught:
                train(steps=10**6, checkpoint=path)
            killer.join()
            stopped = caught.exception.best
            self.assertTrue(stopped.interrupted)
            again = train(steps=stopped.steps + 5, checkpoint=path, resume=True)
            self.assertEqual(again.first_step, stopped.steps)
            self.assertEqual(again.digest, train(steps=stopped.steps + 5).digest)

    def test_the_weights_begin_as_in_an_executor(self):
        graph = ffn(optimizer="sgd", learning_rate=0.0)
        for seed in (0, 1):
            made = cairn.Executor(graph, backend="host", seed=seed)
            result = train(graph, steps=1, shift=0, seed=seed)
            data = cairn.load_dataset("digits")
            prediction = cairn.Executor(graph.forward_part().with_kept(["layer1"]), backend="host", seed=seed)
            right = 0
            for begin in range(data.training, len(data), 32):
                images, labels = data.images[begin:begin + 32], data.labels[begin:begin + 32]
                prediction.set("inputs", np.resize(images, (32, 64)))
                prediction.step()
                right += (prediction.output("layer1")[:len(labels)].argmax(1) == labels).sum()
            self.assertAlmostEqual(result.accuracy, right / (len(data) - data.training))
            np.testing.assert_array_equal(made.get("layer0.weight"), prediction.get("layer0.weight"))

    def test_labels_may_be_declared_first(self):
        def graph(order):
            b = cairn.models.Builder("m", optimizer="adamw", learning_rate=0.01)
            tensors = {name: b.data(name, (30, 64)) for name in order}
            y = b.linear("y", tensors["x"], b.weight("w", (64, 64), scale=0.1))
            return b.training_step(b.mse("loss", y, tensors["target"]))

        straight, swapped = (cairn.train(graph(order), "digits", steps=40, backend="host")
                             for order in (("x", "target"), ("target", "x")))
        self.assertGreater(straight.accuracy, 0.3)
        self.assertGreater(swapped.accuracy, 0.3)

    def test_the_loss_of_a_test_does_not_depend_on_the_batch(self):
        def loss(batch):
            graph = cairn.models.build("ffn", batch=batch, layers=2, width=32, inputs=64, outputs=10, optimizer="sgd",
                                       learning_rate=0.0)
            return cairn.train(graph, "digits", steps=1, backend="host").tests[-1].loss

        expected = loss(60)  # all batches of the 360 images are full
        for batch in (350, 359):  # the last batch has ten images, or one
            self.assertAlmostEqual(loss(batch), expected, delta=1e-5 * expected)

    def test_predictions_of_any_shape(self):
        def accuracy(shape):
            b = cairn.models.Builder("m", optimizer="sgd")
            y = b.linear("y", b.data("x", (40, 64)), b.weight("w", (64, 10), scale=0.1), shape=shape)
            return cairn.train(b.training_step(b.mse("loss", y, b.data("target", (40, 10)))), "digits", steps=30,
                               backend="host").accuracy

        self.assertEqual(len({accuracy(shape) for shape in ((40, 10), (20, 20), (400, 1), (400,))}), 1)

    def test_bad_arguments(self):
        for options, words in (({"steps": 0}, "steps=0 must be at least 1"), ({"resume": True}, "checkpoint="),
                               ({"lr_schedule": "linear"}, "'constant' or 'cosine'"),
                               ({"shift": 9}, "shift"), ({"test_every": 0}, "test_every=0"),
                               ({"learning_rate": -1}, "learning_rate=-1"), ({"data": "digit"}, "digits"),
                               ({"graph": cairn.models.build("ffn", **MODEL)}, "does not update its weights"),
                               ({"data": "shakespeare"}, "shakespeare"), ({"budget": "5%"}, "budget|5%")):
            with self.subTest(words=words), self.assertRaisesRegex(cairn.Error, words):
                train(**options)

    def test_a_loss_that_is_not_finite(self):
        with self.assertRaisesRegex(cairn.Error, "the loss of the training step .* is .*lower the learning rate") as caught:
            train(ffn(optimizer="sgd", learning_rate=1e20))
        self.assertNotIn("\n", str(caught.exception))


class Checkpoints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "training.safetensors"

    def test_a_training_continues(self):
        whole = train(steps=20)
        train(steps=12, checkpoint=self.path)
        rest = train(steps=20, checkpoint=self.path, resume=True)
        self.assertEqual((rest.first_step, rest.digest), (12, whole.digest))
        np.testing.assert_array_equal(rest.losses, whole.losses)

    def test_nothing_left_to_do_is_measured_as_nothing(self):
        self.assertGreater(train(steps=2, checkpoint=self.path).measured_peak_bytes, 0)
        self.assertIsNone(train(steps=2, checkpoint=self.path, resume=True).measured_peak_bytes)

    def test_checkpoints_of_others(self):
        train(steps=2, checkpoint=self.path)
        for graph, words in ((ffn(learning_rate=0.5), "learning rate"), (ffn(optimizer="sgd"), "optimizer"),
                             (ffn(width=16), "shape|tensor"),
                             (cairn.models.build("resnet18", batch=32, image=16, classes=10, width=4,
                                                 optimizer="adamw", learning_rate=0.01),
                              "model ffn, but this one has resnet18")):
            with self.subTest(words=words), self.assertRaisesRegex(cairn.InputError, words) as caught:
                train(graph, checkpoint=self.path, resume=True)
            self.assertNotIn("\n", str(caught.exception))
        with self.assertRaisesRegex(cairn.InputError, "has done 2 steps already"):
            train(steps=1, checkpoint=self.path, resume=True)

    def test_damaged_checkpoints(self):
        train(steps=2, checkpoint=self.path)
        whole = self.path.read_bytes()
        changed = bytearray(whole)
        changed[-100] ^= 1
        for damaged in (b"", whole[:5], whole[:200], whole[:-1], bytes(changed), b"\xff" * 100, whole + b"x"):
            self.path.write_bytes(damaged)
            with self.subTest(bytes=len(damaged)), self.assertRaises(cairn.InputError) as caught:
                train(checkpoint=self.path, resume=True)
            self.assertIn(self.path.name, str(caught.exception))
            self.assertNotIn("\n", str(caught.exception))

    def test_files_that_cannot_be_written(self):
        with self.assertRaises(cairn.Error) as caught:
            train(checkpoint=self.path.parent / "none" / "x")
        self.assertNotIn("\n", str(caught.exception))


@unittest.skipUnless(COMMAND, "the command was not built")
class BesideTheCommand(unittest.TestCase):
    def test_the_same_training(self):
        words = [word for name, value in MODEL.items() for word in (f"--{name}", value)]
        code, theirs = command("train", "ffn", *words, "--data", "digits", "--steps", 8, "--backend", "host",
                               "--weight-decay", 0.1, "--clip", 1, "--lr", 0.01, "--seed", 7)
        self.assertEqual(code, 0, theirs)
        ours = json.loads(train(ffn(weight_decay=0.1, clip=1), steps=8, seed=7).to_json())
        self.assertEqual(set(ours), set(theirs) - {"warnings"})
        for key in ("weights", "losses", "tests", "planned_bytes", "measured_peak_bytes"):
            self.assertEqual(ours[key], theirs[key], key)


if __name__ == "__main__":
    unittest.main()
