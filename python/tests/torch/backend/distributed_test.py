"""Tests that two processes keep the order of their collectives, and that both run the schedule that one of them has
found."""

import unittest
import unittest.mock
import warnings

import cairn.torch
import harness
import ranks
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from cairn.torch._plan import solve
from cairn.torch._plan.ranks import first_of_ranks

RANKS = 2


class Sum(torch.autograd.Function):
    """Sums values, and in the backward pass gradients, over all ranks. Written here, because not every version of torch
    can differentiate all_reduce."""

    @staticmethod
    def forward(context, x):
        return collectives.all_reduce(x, "sum", dist.group.WORLD)

    @staticmethod
    def backward(context, gradient):
        return collectives.all_reduce(gradient, "sum", dist.group.WORLD)


class Gather(torch.autograd.Function):
    """Concatenates the values of all ranks."""

    @staticmethod
    def forward(context, x):
        return collectives.all_gather_tensor(x, 0, dist.group.WORLD)

    @staticmethod
    def backward(context, gradient):
        return gradient[:gradient.shape[0] // RANKS].clone()


class Gathered(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)

    def forward(self, x):
        return Gather.apply(self.layer(x)).square().mean()


class Summed(harness.Layers):
    """Layers whose outputs are summed over all ranks."""

    def forward(self, x):
        for layer in self.layers:
            x = Sum.apply(torch.nn.functional.gelu(layer(x)))
        return x.square().mean()


def work(rank, _):
    warnings.simplefilter("error", cairn.torch.CairnWarning)
    torch.manual_seed(0)
    model = Summed()
    torch.manual_seed(rank)
    x = torch.randn(128, 64)
    found = {}
    for budget in ("100%", "70%", 1000):
        torch._dynamo.reset()
        model.zero_grad()
        try:
            backend = cairn.torch.backend(budget, fallback=False, work_limit=1_000_000)
            torch.compile(model, backend=backend)(x).backward()
            report = cairn.torch.last_report().graphs[0]
            found[budget] = {"gradients": [p.grad.clone() for p in model.parameters()], "promised": report.promised,
                             "measured": report.measured, "source": report.source,
                             "recomputed": sorted(i.name for i in report.recomputed)}
        except cairn.InfeasibleError as error:
            found[budget] = error.least_budget
    torch._dynamo.reset()
    with warnings.catch_warnings():
        # gloo may free its copies late, so that a measured peak may be above the promised one
        warnings.simplefilter("ignore", cairn.torch.CairnWarning)
        torch.compile(Gathered(), backend=cairn.torch.backend("100%", work_limit=1_000))(x).backward()
    found["gathered"] = cairn.torch.last_report().graphs[0].promised_forward
    found["steps"] = steps(rank)
    return found


def steps(rank):
    """Trains whole steps of a model whose gradients are averaged over the ranks. Returns the parameters without and
    with Cairn."""
    # torch.compile does not compile this forward pass of DistributedDataParallel; the warning that says so is expected.
    warnings.filterwarnings("ignore", "a part of the model before the graph", cairn.torch.CairnWarning)
    results = []
    for planned in (False, True):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(32, 128), torch.nn.GELU(), torch.nn.Linear(128, 32))
        averaged = torch.nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.AdamW(averaged.parameters())
        torch.manual_seed(rank)
        x = torch.randn(64, 32)

        def train_step(x):
            optimizer.zero_grad()
            loss = averaged(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        if planned:
            train_step = cairn.torch.step(train_step, "min", fallback=False, work_limit=1_000_000)
        for _ in range(3):
            train_step(x)
        results.append([p.detach().clone() for p in model.parameters()])
    return results


class OtherRanks(unittest.TestCase):
    def test_a_budget_of_another_rank_that_was_not_met(self):
        """Tests that another rank's failure to meet a budget says nothing about a higher budget of this rank, or about
        the least budget."""
        unmet = {"unmet": ["cannot be met", 5, 20]}
        for goal, own in ((10, False), (19, False), (20, True), (None, True)):
            with unittest.mock.patch.object(solve, "first_of_ranks", return_value=(unmet, True)), \
                    unittest.mock.patch.object(solve, "_find", return_value=({}, "solved")), \
                    unittest.mock.patch.object(solve, "_valid", return_value=unmet):
                entry, source = solve._agree(None, "", None, goal, unittest.mock.Mock(), "", unittest.mock.Mock())
            self.assertEqual(source, "solved" if own else "another rank", goal)
            self.assertEqual("unmet" in entry, not own)

    def test_a_search_that_failed_is_repeated(self):
        store = torch.distributed.HashStore()

        def interrupted():
            raise TimeoutError("of a signal handler")

        with self.assertRaises(TimeoutError):
            first_of_ranks(store, "name", 10, interrupted)
        self.assertEqual(first_of_ranks(store, "name", 10, lambda: 7), (7, False))


@unittest.skipUnless(ranks.available, "this torch has no gloo")
class Ranks(unittest.TestCase):
    def test_ranks_run_one_schedule(self):
        found = ranks.on_ranks(work, RANKS)
        for one in found:
            whole, less = one["100%"], one["70%"]
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(whole["gradients"], less["gradients"])))
            self.assertLess(less["promised"], whole["promised"])
            self.assertLessEqual(less["measured"], less["promised"])
            self.assertGreater(len(less["recomputed"]), 0)
            self.assertFalse(any("all_reduce" in name or "wait" in name for name in less["recomputed"]))
        self.assertEqual(found[0]["70%"]["recomputed"], found[1]["70%"]["recomputed"])
        self.assertEqual({one["70%"]["source"] for one in found}, {"solved", "another rank"})
        self.assertEqual(found[0][1000], found[1][1000])
        given = 128 * 64 * 4  # bytes that a rank gives to the all-gather; gloo copies these bytes and the result
        self.assertGreaterEqual(found[0]["gathered"], 2 * (given + RANKS * given))
        for one in found:
            plain, planned = one["steps"]
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(plain, planned)))
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(found[0]["steps"][1], found[1]["steps"][1])))
