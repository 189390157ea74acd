"""Tests optimizers in the plan of a step that DistributedDataParallel trains on several ranks. Gradients must be averaged
before the updates, with the same bits as without Cairn."""

import unittest
import warnings

import cairn
import cairn.torch
import ranks
import torch
from torch import nn

BATCH, STEPS, WORK = 64, 5, 200_000


class Net(nn.Module):
    """A model with buffers that differ from rank to rank, a weight that is used twice, and two parameters that share a
    gradient."""

    def __init__(self, width=64):
        super().__init__()
        self.first, self.twice, self.last = nn.Linear(32, width), nn.Linear(width, width), nn.Linear(width, 32)
        self.norm = nn.BatchNorm1d(width)
        self.left, self.right = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        x = nn.functional.gelu(self.norm(self.first(x))) + (self.left + self.right)
        return self.last(nn.functional.gelu(self.twice(nn.functional.gelu(self.twice(x)))))


class Unused(Net):
    def __init__(self):
        super().__init__()
        self.never = nn.Parameter(torch.ones(3))


class Broken(Net):
    """Like Net, but with a graph break."""

    def forward(self, x):
        x = self.first(x)
        torch._dynamo.graph_break()
        return self.last(self.twice(self.norm(x)) + self.left + self.right)


def trained(rank, budget, model=Net, body=None, prepare=None, evaluate=True, **options):
    """Trains a few steps, with a different batch on each rank. Returns (losses and state, report). Unless ``options``
    say otherwise, the buckets are small, and are the same in all steps."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = model()
    parallel = nn.parallel.DistributedDataParallel(
        model, **{"find_unused_parameters": True, "bucket_cap_mb": 0.02, **options})
    optimizer = torch.optim.AdamW(parallel.parameters(), lr=1e-2)
    if prepare is not None:
        prepare(parallel)

    def step(x):
        optimizer.zero_grad()
        loss = parallel(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = body(parallel, optimizer, step) if body is not None else step
    run = step if budget is None else cairn.torch.step(step, budget, optimizer=optimizer, work_limit=WORK)
    torch.manual_seed(rank)
    found = []
    for number in range(STEPS):
        # DistributedDataParallel does not exchange buffers in the step after an evaluation
        if evaluate and number in (2, 4):
            with torch.no_grad():
                found.append(parallel.eval()(torch.ones(2, 32)))
            parallel.train()
        found.append(run(torch.randn(BATCH, 32)))
    return found + [value.clone() for value in parallel.state_dict().values()], getattr(run, "report", None)


def error_of(*arguments, **options):
    try:
        trained(*arguments, **options)
    except cairn.InputError as error:
        return str(error)
    return None


def without_exchange(parallel, optimizer, step):
    def accumulating(x):
        with parallel.no_sync():
            return step(x)

    return accumulating


def with_hook(parallel):
    parallel.module.last.bias.register_hook(lambda gradient: gradient)


def with_communication_hook(parallel):
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    parallel.register_comm_hook(None, allreduce_hook)


def after_another(parallel, optimizer, step):
    """Makes a step that creates a DistributedDataParallel in its first call. This is too late for a plan, which needs
    to know the module before the first step."""
    made = []

    def later(x):
        if not made:
            made.append(nn.parallel.DistributedDataParallel(parallel.module))
        optimizer.zero_grad()
        made[0](x).square().mean().backward()
        optimizer.step()

    return later


REFUSED = {  # description of what the step does -> (options of trained(), words of the error)
    "accumulating": ({"body": without_exchange}, "no_sync"),
    "a parameter without a gradient": ({"model": Unused}, "1 of 11 parameters of DistributedDataParallel get no gradient"),
    "a graph break": ({"model": Broken}, "several graphs"),
    "a hook": ({"prepare": with_hook}, "has a hook"),
    "a module made in a step": ({"body": after_another}, "made after the first step"),
    "a communication hook": ({"prepare": with_communication_hook}, "with a communication hook"),
}


def work(rank, count):
    warnings.simplefilter("error", cairn.torch.CairnWarning)
    warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
    found = {}
    for name, options, budgets in (("buffers", {}, ("70%", "min")),
                                   ("buckets of one parameter", {"broadcast_buffers": False, "evaluate": False,
                                                                 "bucket_cap_mb": 1e-4}, ("min",))):
        expected, _ = trained(rank, None, **options)
        for budget in budgets:
            given, report = trained(rank, budget, **options)
            found[name, budget] = {
                "same": all(map(torch.equal, expected, given)), "updated": [g.updated for g in report.graphs],
                "promised": report.promised, "measured": report.measured, "kept": report.kept}
    warnings.simplefilter("ignore", cairn.torch.CairnWarning)
    found["errors"] = {name: error_of(rank, "min", **options) for name, (options, _) in REFUSED.items()}
    return found


@unittest.skipUnless(ranks.available, "this torch has no gloo")
class OnRanks(unittest.TestCase):
    def test_averages(self):
        for count in (1, 3):
            for one in ranks.on_ranks(work, count):
                for name in REFUSED:
                    with self.subTest(count=count, name=name):
                        self.assertIn(REFUSED[name][1], one["errors"][name] or "no error")
                for key, result in one.items():
                    if isinstance(key, tuple):
                        with self.subTest(count=count, key=key):
                            self.assertTrue(result["same"])
                            self.assertEqual(set(result["updated"]), {10})
                            self.assertLessEqual(result["measured"], result["promised"])
                            self.assertTrue(result["kept"])
                            self.assertGreaterEqual(result["measured"], 0.97 * result["promised"])


if __name__ == "__main__":
    unittest.main()
