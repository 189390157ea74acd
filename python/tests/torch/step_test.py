"""A whole step as one graph, and a graph without a step."""

import copy
import unittest
import warnings

import cairn
import cairn.torch
from cairn.torch._step import step as step_within
import harness
import torch

WORK = 1_000_000


class Steps(unittest.TestCase):
    def run_steps(self, model, inputs, budget, make_optimizer, count=3, micro=1):
        model = copy.deepcopy(model)
        optimizer = make_optimizer(model.parameters())

        def train_step(*inputs):
            optimizer.zero_grad()
            loss = model(*inputs)
            loss.backward()
            optimizer.step()
            return loss.detach()

        if budget is not None:
            train_step = step_within(train_step, budget, fallback=False, work_limit=WORK)
        torch.manual_seed(3)
        losses = [train_step(*inputs) for _ in range(count)]
        return losses, [t.detach() for t in model.state_dict().values()]

    def check(self, model, inputs, budgets, make_optimizer):
        losses, state = self.run_steps(model, inputs, "100%", make_optimizer)
        for budget in budgets:
            with self.subTest(budget=budget), warnings.catch_warnings():
                warnings.simplefilter("error", cairn.torch.CairnWarning)
                again, other = self.run_steps(model, inputs, budget, make_optimizer)
                self.assertTrue(all(torch.equal(a, b) for a, b in zip(losses, again)))
                self.assertTrue(all(torch.equal(a, b) for a, b in zip(state, other)))
                graph = cairn.torch.last_report().graphs[0]
                self.assertLessEqual(graph.measured, graph.promised)
        return losses, state

    def test_transformer_and_adam(self):
        torch.manual_seed(0)
        model, inputs = harness.gpt()
        losses, state = self.check(model, inputs, ["60%", "min"], lambda p: torch.optim.AdamW(p, lr=1e-3))
        eager, other = self.run_steps(model, inputs, None, lambda p: torch.optim.AdamW(p, lr=1e-3))
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(losses, eager)))
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(state, other)))

    def test_batch_norm_and_momentum(self):
        torch.manual_seed(0)
        self.check(*harness.cnn(), ["60%", "min"], lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9))

    def test_a_budget_that_cannot_be_met(self):
        torch.manual_seed(0)
        model, inputs = harness.gpt()
        with self.assertRaises(cairn.InfeasibleError):
            self.run_steps(model, inputs, 1000, lambda p: torch.optim.SGD(p, lr=0.1))

    def test_what_cannot_be_traced_runs_and_says_so(self):
        model = torch.nn.Linear(3, 3)

        def train_step(x):
            loss = model(x).square().mean()
            if float(loss) > -1:  # its value is needed while tracing
                loss.backward()
            return loss.detach()

        step = step_within(train_step, "60%", work_limit=WORK)
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "without a budget"):
            step(torch.randn(2, 3))
        self.assertIsNotNone(model.weight.grad)

    def test_no_module_is_an_error(self):
        with self.assertRaises(cairn.InputError):
            step_within(lambda x: x, "60%")


class Graphs(unittest.TestCase):
    def test_is_what_training_needs(self):
        torch.manual_seed(0)
        model, inputs = harness.gpt()
        graph = cairn.torch.graph(model, inputs)
        step = harness.train(model, inputs, harness.unscheduled())
        self.assertLessEqual(graph.baseline.peak, step.peak)  # scratch is not known
        self.assertGreater(graph.baseline.peak, 0.9 * step.peak)
        self.assertGreater(graph.resident_bytes, 2 * sum(p.numel() * 4 for p in model.parameters()))

    def test_a_model_larger_than_the_machine(self):
        with torch.device("meta"):
            model = harness.Gpt(layers=3, width=8192, heads=64, vocabulary=50000, length=2048, dropout=0.0)
        tokens = torch.empty((64, 2048), dtype=torch.int64, device="meta")
        graph = cairn.torch.graph(model, (tokens, tokens))
        self.assertGreater(graph.baseline.peak, 100 * 2**30)
        answer = cairn.solve(graph, graph.baseline.peak * 7 // 10, peak_only=True, work_limit=WORK)
        self.assertLessEqual(answer.peak, graph.baseline.peak * 7 // 10)

    def test_forward_alone(self):
        model, inputs = harness.cnn()
        both, forward = cairn.torch.graph(model, inputs), cairn.torch.graph(model, inputs, backward=False)
        self.assertLess(forward.node_count, both.node_count)
        self.assertLess(forward.baseline.peak, both.baseline.peak)

    def test_the_model_is_as_it_was(self):
        model, inputs = harness.cnn()
        before = {n: t.clone() for n, t in model.state_dict().items()}
        cairn.torch.graph(model, inputs)
        self.assertTrue(all(torch.equal(t, before[n]) for n, t in model.state_dict().items()))
        self.assertTrue(all(p.grad is None for p in model.parameters()))


if __name__ == "__main__":
    unittest.main()
