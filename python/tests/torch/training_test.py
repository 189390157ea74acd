"""Tests that models trained by Cairn have the same losses as in PyTorch, with the same weights and data."""

import unittest

import cairn
import numpy as np
import torch
import torch.nn.functional as F

STEPS = 20


def conv(w, name, x, stride, pad):
    return F.conv2d(x, w[name + ".weight"].permute(0, 3, 1, 2), stride=stride, padding=pad)


def batch_norm(w, name, x):
    gamma, beta = w[name + ".params"]
    return F.batch_norm(x, None, None, gamma, beta, training=True, eps=1e-5)


def layer_norm(w, name, x):
    gamma, beta = w[name + ".params"]
    return F.layer_norm(x, x.shape[-1:], gamma, beta, eps=1e-5)


def linear(w, name, x):
    return x @ w[name + ".weight"] + w[name + ".bias"]


def resnet18(w, images, labels):
    x = images.permute(0, 3, 1, 2)
    x = F.max_pool2d(F.relu(batch_norm(w, "stem.bn1", conv(w, "stem.conv1", x, 2, 3))), 3, 2, 1)
    for stage in range(4):
        for i in range(2):
            name, stride = f"layer{stage + 1}.{i}", 2 if stage > 0 and i == 0 else 1
            y = F.relu(batch_norm(w, name + ".bn1", conv(w, name + ".conv1", x, stride, 1)))
            y = batch_norm(w, name + ".bn2", conv(w, name + ".conv2", y, 1, 1))
            if stride != 1:
                x = batch_norm(w, name + ".downsample.bn", conv(w, name + ".downsample.conv", x, stride, 0))
            x = F.relu(x + y)
    return F.cross_entropy(linear(w, "fc", x.mean((2, 3))), labels)


def gpt2(w, tokens, labels, layers=2, heads=4):
    x = w["wte.weight"][tokens] + w["wpe.weight"]
    batch, seq, width = x.shape

    def split(x):
        return x.view(batch, seq, heads, width // heads).transpose(1, 2)

    for i in range(layers):
        name = f"block{i}"
        y = layer_norm(w, name + ".norm1", x)
        q, k, v = (split(linear(w, f"{name}.attention.{part}", y)) for part in ("query", "key", "value"))
        scores = q @ k.transpose(2, 3) / (width // heads)**0.5
        hidden = torch.ones(seq, seq, dtype=torch.bool).triu(1)
        y = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v
        x = x + linear(w, name + ".attention.output", y.transpose(1, 2).reshape(batch, seq, width))
        y = linear(w, name + ".mlp.linear1", layer_norm(w, name + ".norm2", x))
        x = x + linear(w, name + ".mlp.linear2", F.gelu(y, approximate="tanh"))
    logits = layer_norm(w, "norm", x) @ w["wte.weight"].T
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten().long())


def digits(step, batch=128):
    data = cairn.load_dataset("digits")
    chosen = np.random.default_rng(step).choice(data.training, batch, replace=False)
    images = data.images[chosen].repeat(4, 1).repeat(4, 2)[..., None].repeat(3, 3)
    return {"images": images, "labels": data.labels[chosen]}


def shakespeare(step, batch=8, seq=32):
    text = cairn.load_dataset("shakespeare").labels
    begin = np.random.default_rng(step).integers(0, 100_000, (batch, 1)) + np.arange(seq)
    return {"tokens": text[begin], "labels": text[begin + 1]}


def first_weights(executor, dtype=torch.float32):
    return {name: torch.from_numpy(executor.get(name)).to(dtype).requires_grad_()
            for name, tensor in executor.residents.items() if tensor.kind == "weight"}


def losses_of_torch(loss_of, weights, make, clip, batches):
    """Trains in PyTorch and returns the losses. `weights` have Cairn's layouts; `loss_of` converts them to
    PyTorch's."""
    dtype = next(iter(weights.values())).dtype
    optimizer, losses = make(weights.values()), []
    for batch in batches:
        given = {name: torch.from_numpy(values) for name, values in batch.items()}
        given = {name: x.to(dtype) if x.is_floating_point() else x.long() for name, x in given.items()}
        optimizer.zero_grad()
        loss = loss_of(weights, **given)
        loss.backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(weights.values(), clip)
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)


def optimizer_of_torch(name, rate):
    if name == "sgd":
        return lambda weights: torch.optim.SGD(weights, rate, momentum=0.8)
    return lambda weights: torch.optim.AdamW(weights, rate, weight_decay=0.1)


def losses_of_cairn(executor, batches):
    losses = []
    for step, batch in enumerate(batches, 1):
        executor.stage(batch)
        if "step" in executor.residents:
            executor.stage("step", step)
        executor.step()
        losses.append(executor.output("loss")[0])
    return np.array(losses, np.float64)


class Losses(unittest.TestCase):
    """Compares the losses of 20 steps with those of PyTorch in float64.

    Each loss may differ by 1e-5 of its value. In a residual network with batch norm, however, rounding errors grow by a
    factor of two or so in every step, because tiny differences decide which inputs a rectifier or a pooling passes on.
    PyTorch in float32 then differs from PyTorch in float64 by more than 1e-5. So in step t, the bound is the larger of
    two numbers: 1e-5, and twice the largest difference between PyTorch in float32 and in float64 up to step t. The
    learning rates of the residual network are low, because with usual rates the rounding errors reach the size of the
    loss within 20 steps, and a comparison would show nothing.

    The same training within a budget of about half of the memory must have losses with the same bits. With clipping,
    all gradients of weights are in memory at the same time, so that the residual network needs a larger budget.
    """

    @classmethod
    def setUpClass(cls):
        # One thread, because several threads of PyTorch wait for each other most of the time on a busy machine.
        cls.addClassCleanup(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(1)

    def check(self, model, loss_of, data, rates, budget_with_clip, **options):
        batches = [data(step) for step in range(STEPS)]
        for optimizer, rate in rates.items():
            for clip in (None, 0.5):
                with self.subTest(model, optimizer=optimizer, clip=clip):
                    more = {"beta1": 0.8} if optimizer == "sgd" else {"weight_decay": 0.1}
                    graph = cairn.models.build(model, optimizer=optimizer, learning_rate=rate, clip=clip, **more,
                                               **options)
                    self.compare(graph, loss_of, optimizer_of_torch(optimizer, rate), clip, batches,
                                 budget_with_clip if clip else "50%")

    def compare(self, graph, loss_of, make, clip, batches, budget):
        executor = cairn.Executor(graph, backend="host", seed=5)
        single, double = first_weights(executor), first_weights(executor, torch.float64)
        losses = losses_of_cairn(executor, batches)
        exact = losses_of_torch(loss_of, double, make, clip, batches)
        rounded = losses_of_torch(loss_of, single, make, clip, batches)
        growth = np.maximum.accumulate(np.abs(rounded / exact - 1))
        differences = np.abs(losses / exact - 1)
        self.assertLess((differences / np.maximum(1e-5, 2 * growth)).max(), 1, (differences, growth))
        self.assertLess(growth[-1], 0.02)  # if rounding errors were larger, the comparison would show nothing
        bound = cairn.Executor(graph, budget, backend="host", seed=5, work_limit=200_000)
        self.assertLess(bound.planned_bytes, 0.65 * executor.planned_bytes)
        np.testing.assert_array_equal(losses_of_cairn(bound, batches), losses)

    def test_resnet18(self):
        self.check("resnet18", resnet18, digits, {"sgd": 1e-4, "adamw": 2e-5}, "60%", batch=128, image=32,
                   classes=10, width=16)

    def test_gpt2(self):
        self.check("gpt2", gpt2, shakespeare, {"sgd": 0.05, "adamw": 1e-3}, "50%", batch=8, seq=32, layers=2, heads=4,
                   width=32, vocab=cairn.load_dataset("shakespeare").classes)


class Tensors(unittest.TestCase):
    def test_tensors_go_in_and_out(self):
        made = cairn.Executor(cairn.models.build("ffn", batch=2, layers=1, inputs=3, outputs=4), backend="host")
        weight = torch.nn.Parameter(torch.randn(3, 4))
        made.set({"layer0.weight": weight, "layer0.bias": torch.ones(4),
                  "inputs": torch.ones(2, 3, dtype=torch.float64)})
        room = torch.empty(3, 4)
        self.assertIs(made.get("layer0.weight", out=room), room)
        self.assertTrue(torch.equal(room, weight))
        made.set("layer0.weight", torch.randn(4, 3).T)
        made.step()
        y = torch.ones(2, 3) @ torch.from_numpy(made.get("layer0.weight")) + 1
        loss = F.mse_loss(y, torch.from_numpy(made.get("targets")))
        torch.testing.assert_close(torch.from_numpy(made.output("loss"))[0], loss)

    def test_tensors_that_are_refused(self):
        made = cairn.Executor(cairn.models.build("ffn", batch=2, layers=1, inputs=3, outputs=4), backend="host")
        for tensor, words in ((torch.zeros(3, 4, dtype=torch.bfloat16), "'layer0.weight': not an array: .*BFloat16"),
                              (torch.zeros(4, 3), r"but the array has \[4, 3\]"),
                              (torch.full((3, 4), float("nan")), "NaN")):
            with self.subTest(words=words), self.assertRaisesRegex(cairn.InputError, words) as caught:
                made.set("layer0.weight", tensor)
            self.assertNotIn("\n", str(caught.exception))
        with self.assertRaisesRegex(cairn.InputError, "out= is one of float64"):
            made.get("layer0.weight", out=torch.zeros(3, 4, dtype=torch.float64))
        with self.assertRaisesRegex(cairn.InputError, "must be contiguous"):
            made.get("layer0.weight", out=torch.zeros(4, 3).T)


if __name__ == "__main__":
    unittest.main()
