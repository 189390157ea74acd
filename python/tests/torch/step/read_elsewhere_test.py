"""Tests plans with the optimizer whose parameters other parts of the step read, too: under another name, or again."""

import unittest

import cairn
import cairn.torch
import harness
import torch
from small_net import WORK
from step_models import Halves
from torch.utils.checkpoint import checkpoint


class TwoGraphs(torch.nn.Module):
    """Two graphs. The first reads another tensor, which may have the memory of a parameter of the second."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32)
        self.frozen = torch.nn.Parameter(self.second.weight.data, requires_grad=False)

    def forward(self, x, weight, reads_frozen=False):
        x = self.first(x).tanh()
        if weight is not None:
            x = torch.nn.functional.linear(x, weight)
        if reads_frozen:
            x = torch.nn.functional.linear(x, self.frozen)
        torch._dynamo.graph_break()
        return self.second(x).tanh().square().mean()


@torch.compiler.disable(recursive=False)
def repeated(function, x):
    return checkpoint(function, x, use_reentrant=True)


class Repeated(torch.nn.Module):
    """A checkpoint around a compiled graph that reads a parameter of a later graph."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32)

    def block(self, x):
        return torch.nn.functional.linear(self.first(x).tanh(), self.second.weight.detach()).sin()

    def forward(self, x):
        return self.second(repeated(self.block, x)).square().mean()


class ReadElsewhere(unittest.TestCase):
    def trained(self, model_of, arguments_of, planned, steps=5):
        """Returns (losses and the final parameters, the Report)."""
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = model_of()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
        x = torch.randn(64, 32, requires_grad=True)

        def body(*arguments):
            optimizer.zero_grad()
            loss = model(x, *arguments)
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = cairn.torch.step(body, "100%", optimizer=optimizer, work_limit=WORK) if planned else body
        losses = [run(*arguments_of(model, number)) for number in range(steps)]
        return [*losses, *model.parameters()], run.report if planned else None

    def check(self, arguments_of):
        with harness.told() as told:
            found, report = self.trained(TwoGraphs, arguments_of, True)
        expected, _ = self.trained(TwoGraphs, arguments_of, False)
        self.assertTrue(all(map(torch.equal, found, expected)))
        self.assertTrue(any(graph.updated for graph in report.graphs))
        return told

    def test_an_argument_that_begins_to_have_a_parameter_s_memory(self):
        other = torch.randn(32, 32)
        told = self.check(lambda model, number: (other if number < 2 else model.second.weight.data,))
        self.assertTrue(any("memory that another input shares" in text for text in told))

    def test_a_graph_that_is_compiled_later(self):
        self.check(lambda model, number: (None, number >= 2))

    def test_parameters_that_several_graphs_read_are_updated(self):
        _, report = self.trained(TwoGraphs, lambda model, number: (model.first.weight,), True)
        self.assertEqual(sum(graph.updated for graph in report.graphs), 4)

    def test_a_parameter_of_which_two_graphs_give_gradients(self):
        class Twice(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.twice = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32)

            def forward(self, x):
                x = self.twice(self.first(x)).tanh()
                torch._dynamo.graph_break()
                return self.twice(x).square().mean()

        with harness.told() as told:
            found, report = self.trained(Twice, lambda model, number: (), True)
        self.assertTrue(all(map(torch.equal, found, self.trained(Twice, lambda model, number: (), False)[0])))
        self.assertTrue(any("was left to the optimizer's step" in text for text in told))
        self.assertGreater(sum(graph.updated for graph in report.graphs), 0)

    def test_graphs_of_a_step_are_planned_together(self):
        def trained(budget):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model = Halves()
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

            def body(x):
                optimizer.zero_grad()
                loss = model(x)
                loss.backward()
                optimizer.step()
                return loss.detach()

            run = cairn.torch.step(body, budget, optimizer=optimizer, work_limit=WORK) if budget else body
            losses = []
            for _ in range(2):
                losses += [run(torch.ones(32, 64) * number) for number in range(4)]
                if budget:
                    self.assertEqual((run.report.step is not None, run.report.kept), (True, True))
                    self.assertGreater(sum(graph.updated for graph in run.report.graphs), 30)
                    self.assertLessEqual(run.report.promised, run.report.step.budget)
                torch._dynamo.reset()  # afterwards, the graphs are planned together again
            return [*losses, *model.parameters()]

        expected = trained(None)
        for budget in ("90%", "70%"):
            with self.subTest(budget):
                self.assertTrue(all(map(torch.equal, trained(budget), expected)))

    def test_a_forward_pass_that_is_repeated_after_the_update(self):
        with self.assertRaisesRegex(cairn.InputError, "runs its forward pass within the backward pass"):
            self.trained(Repeated, lambda model, number: (), True)


if __name__ == "__main__":
    unittest.main()
