"""Trains a model on images whose memory is written between the forward and the backward pass."""

import copy

import harness
import numpy as np
import torch
from same_step import backend


class Images(harness.Layers):
    """A model whose first results need much memory and are cheap to compute again from the input."""

    def forward(self, x):
        x = (x.float() - 128) / 64
        y = torch.tanh(x)
        for layer in self.layers:
            y = torch.tanh(layer(y)) * x.sin() + x.cos()
        return y.square().mean()


class OfImages(harness.Fresh):
    """A base class of tests that compare gradients of a model whose inputs are written without torch noticing."""

    def gradients(self, model, batches, backend, write):
        """Trains one step for each batch. ``write`` changes the batch's memory between forward and backward pass.
        Returns the gradients."""
        torch._dynamo.reset()
        model = copy.deepcopy(model)
        compiled = torch.compile(model, backend=backend) if backend is not None else model
        for batch in batches:
            x, loss = batch, compiled(batch)
            write(x)
            loss.backward()
        return [p.grad for p in model.parameters()]

    def check(self, batches, write, budgets=("50%", "min"), inputs="checked", told=None, model=Images):
        """Checks that the gradients under each budget equal those without a budget. If ``inputs`` is "stable", they
        must differ, unless ``told`` is False. ``batches``: a function that returns a new list of batches. ``write``: as
        in gradients(). ``told``: if true, there must be a warning about shared memory, else there must be none."""
        torch.manual_seed(0)
        model = model()
        expected = self.gradients(model, batches(), None, lambda x: None)
        for budget in budgets:
            with self.subTest(budget=budget):
                chosen = backend(budget, inputs=inputs, measure=False)
                found, words = harness.told_by(self.gradients, model, batches(), chosen, write)
                same = all(torch.equal(a, b) for a, b in zip(expected, found))
                self.assertEqual(same, inputs != "stable" or told is False)
                self.assertEqual(any("shares memory" in text for text in words), bool(told))

    @staticmethod
    def ring():
        return np.random.RandomState(0).randint(0, 255, (64, 64), dtype=np.uint8)
