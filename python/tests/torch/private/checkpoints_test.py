"""Tests that in the installed torch, code within torch.utils.checkpoint can find the checkpoint's frame."""

import unittest

import torch
from cairn.torch import _private
from torch.utils.checkpoint import checkpoint


class Frames(unittest.TestCase):
    def test_saving_frame(self):
        found = []

        def function(x):
            found.append(_private.saving_frame())
            return x.sin().exp()

        x = torch.ones(2, requires_grad=True)
        self.assertEqual(_private.saving_frame(), (None, None))
        with torch.autograd.graph.save_on_cpu():
            self.assertEqual(_private.saving_frame(), (None, None))
        losses = [checkpoint(function, x, use_reentrant=False).sum() for _ in range(2)]
        losses[0].backward(retain_graph=True)
        losses[0].backward()
        (first, none), (second, _), again, once_more = found
        self.assertIsNone(none)
        self.assertIsNot(first, second)
        self.assertIs(again[0], first)
        self.assertIs(once_more[0], first)
        self.assertEqual(len({None, again[1], once_more[1]}), 3)

    def test_a_checkpoint_that_differentiates_while_it_runs_again(self):
        found = []
        x = torch.ones(2, requires_grad=True)
        checkpoint(lambda x: (found.append(_private.saving_frame()), x.sin())[1], x, use_reentrant=True).sum().backward()
        self.assertEqual(found, [(None, None)] * 2)


if __name__ == "__main__":
    unittest.main()
