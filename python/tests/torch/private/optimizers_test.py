"""Tests that steps of optimizers are noticed, even if torch.compile captures them, and that steps can be run without
hooks."""

import functools
import unittest

import torch
from cairn.torch import _private
from torch.optim.optimizer import register_optimizer_step_post_hook


class Steps(unittest.TestCase):
    def setUp(self):
        self.parameter = torch.nn.Parameter(torch.ones(2))
        self.parameter.grad = torch.ones(2)
        self.optimizer = torch.optim.SGD([self.parameter], lr=1.0)
        self.seen = []

    def test_without_hooks(self):
        self.optimizer.register_step_pre_hook(lambda *_: self.seen.append("its own"))
        self.addCleanup(register_optimizer_step_post_hook(lambda *_: self.seen.append("of all")).remove)
        step = torch.optim.SGD.step
        for one in (step, torch.compiler.disable(step)):
            _private.without_hooks(one)(self.optimizer)
        self.assertEqual((self.seen, self.parameter.tolist()), ([], [-1, -1]))

        @functools.wraps(step)
        def wrapped(optimizer):
            self.seen.append("wrapped")

        _private.without_hooks(wrapped)(self.optimizer)
        self.assertEqual(self.seen, ["wrapped"])

    def test_before_and_after_any_step(self):
        called = [_private.before_any_step(lambda optimizer, *_: self.seen.append(("before", optimizer))),
                  _private.after_any_step(lambda optimizer, *_: self.seen.append(("after", optimizer)))]
        self.optimizer.step()
        for one in called:
            one.remove()
        self.optimizer.step()
        self.assertEqual(self.seen, [("before", self.optimizer), ("after", self.optimizer)])

    def test_a_captured_step_is_one_graph_and_noticed(self):
        graphs = []

        def backend(module, inputs):
            graphs.append(module)
            return module.forward

        torch._dynamo.reset()
        compiled = torch.compile(self.optimizer.step, backend=backend)
        compiled()
        self.assertEqual(len(graphs), 1)
        called = _private.after_any_step(lambda *_: self.seen.append("after"))
        compiled()
        called.remove()
        compiled()
        self.assertEqual((self.seen, self.parameter.tolist()), (["after"], [-2, -2]))
