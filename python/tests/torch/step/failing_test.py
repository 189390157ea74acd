"""Tests plans that contain the optimizer, in steps in which a pass ends with an error."""

import unittest

import cairn
import cairn.torch
import harness
import torch
from small_net import WORK, adam, momentum, net, plain


class Failing(unittest.TestCase):
    def test_a_first_step_that_fails_before_its_backward_pass(self):
        self.enterContext(harness.new_cache())
        torch._dynamo.reset()
        table, layer = torch.nn.Embedding(20, 64), torch.nn.Linear(64, 64)
        optimizer = torch.optim.Adam([*table.parameters(), *layer.parameters()])

        def body(model, optimizer, loss_of, inputs):
            return plain(model, optimizer, lambda i: layer(table(i)).tanh().square().mean(), inputs)

        step = cairn.torch.step(lambda i: body(None, optimizer, None, (i,)), "min", optimizer=optimizer, work_limit=WORK)
        with self.assertRaises(IndexError):
            step(torch.full((32,), 20))
        for _ in range(4):
            step(torch.randint(0, 20, (32,)))
        self.assertIs(step.report.kept, True)

    def test_a_first_backward_pass_that_fails(self):
        def fail(gradient):
            if len(failed) == 0:
                failed.append(True)
                raise ArithmeticError
            return gradient

        torch._dynamo.reset()
        torch.manual_seed(0)
        failed, (model, optimizer, loss_of, inputs) = [], net(adam)
        next(iter(model.parameters())).register_hook(fail)

        step = cairn.torch.step(lambda *given: plain(model, optimizer, loss_of, given), "100%", optimizer=optimizer,
                                fallback=False, work_limit=WORK)
        with harness.cairn_warnings("ignore"):
            with self.assertRaises(ArithmeticError):
                step(*inputs)
            for _ in range(4):
                step(*inputs)
        self.assertTrue(step.report.kept, step.report)
        self.assertIsNotNone(step.report.optimizer_state)

    def test_a_backward_pass_whose_error_the_step_catches(self):
        def body(model, optimizer, loss_of, inputs):
            optimizer.zero_grad()
            loss = loss_of(*inputs)
            try:
                loss.backward()
            except ArithmeticError:
                pass
            optimizer.step()
            return loss.detach()

        def fail(gradient):
            if failing:
                raise ArithmeticError
            return gradient

        torch._dynamo.reset()
        torch.manual_seed(0)
        failing, (model, optimizer, loss_of, inputs) = [], net(momentum)
        first = next(iter(model.parameters()))
        first.register_hook(fail)
        step = cairn.torch.step(lambda *given: body(model, optimizer, loss_of, given), "100%", optimizer=optimizer,
                                fallback=False, work_limit=WORK)
        with harness.cairn_warnings("ignore"):
            step(*inputs)
            failing.append(True)
            with self.assertRaisesRegex(cairn.InputError, "a backward pass of this step failed when"):
                step(*inputs)
            failing.clear()
            step(*inputs)

    def test_a_step_of_the_optimizer_within_the_backward_pass(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, optimizer, loss_of, inputs = net(momentum)

        def body(x, y):
            optimizer.zero_grad()
            x.register_hook(lambda gradient: optimizer.step())
            loss_of(x, y).backward()

        step = cairn.torch.step(body, "100%", optimizer=optimizer, fallback=False, work_limit=WORK)
        with harness.cairn_warnings("ignore"):
            for _ in range(3):
                step(inputs[0].clone().requires_grad_(), inputs[1])
        self.assertGreater(step.report.graphs[0].updated, 0)


if __name__ == "__main__":
    unittest.main()
