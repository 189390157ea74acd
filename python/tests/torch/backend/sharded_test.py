"""Tests models whose parameters are divided among 2 and 4 processes: by FSDP2 (fully_shard) and by tensor
parallelism."""

import unittest
import warnings

import cairn.torch
import harness
import ranks
import torch
from torch import nn

BATCH, WIDTH, BLOCKS, STEPS = 256, 64, 4, 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + torch.nn.functional.dropout(self.down(torch.nn.functional.gelu(self.up(self.norm(x)))), .1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, WIDTH), nn.Linear(WIDTH, 8)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.last(x)


def by_fsdp(model, count):
    """Divides the parameters by FSDP2, whose hooks break the graph at each block."""
    from torch.distributed.fsdp import fully_shard

    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)


def by_tensors(model, count):
    """Divides the parameters by tensor parallelism, whose collectives are operations of the graph."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (count,))
    for block in model.blocks:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})


DIVIDED = {"FSDP": by_fsdp, "tensors": by_tensors}


def train(divide, rank, count, backend):
    """Trains some steps of a model whose parameters ``divide`` divides among the ranks. Returns the losses and this
    rank's parts of the parameters."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Model()
    divide(model, count)
    compiled = torch.compile(model, backend=backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
    losses = []
    for step in range(STEPS):
        torch.manual_seed(100 + step + (rank if divide is by_fsdp else 0))  # under FSDP, each rank has other data
        loss = compiled(torch.randn(BATCH, 16)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return losses + [getattr(p, "_local_tensor", p).detach().clone() for p in model.parameters()]


def work(rank, count):
    # This warning is expected, because the step consists of several graphs.
    warnings.filterwarnings("ignore", "graph .* runs while", cairn.torch.CairnWarning)
    warnings.filterwarnings("error", "graph .*: promised", cairn.torch.CairnWarning)
    found = {}
    for name, divide in DIVIDED.items():
        expected = train(divide, rank, count, "aot_eager")
        for budget in ("60%", "min"):
            given = train(divide, rank, count, cairn.torch.backend(budget, fallback=False, work_limit=200_000))
            report = cairn.torch.last_report()
            found[name, budget] = {
                "same": all(map(torch.equal, expected, given)), "promised": report.promised, "kept": report.kept,
                "measured": report.measured, "recomputed": sorted(i.name for g in report.graphs for i in g.recomputed)}
    return found


@unittest.skipUnless(ranks.available, "this torch has no gloo")
class Sharded(harness.Fresh):
    def test_bits_promises_and_one_plan(self):
        for count in (2, 4):
            found = ranks.on_ranks(work, count)
            for key in found[0]:
                with self.subTest(ranks=count, key=key):
                    for one in found:
                        self.assertTrue(one[key]["same"])
                        self.assertLessEqual(one[key]["measured"], one[key]["promised"])
                        self.assertTrue(one[key]["kept"])
                        self.assertGreaterEqual(one[key]["measured"], 0.97 * one[key]["promised"])
                        self.assertEqual(one[key]["recomputed"], found[0][key]["recomputed"])
                        self.assertEqual(one[key]["promised"], found[0][key]["promised"])
            for name in DIVIDED:
                self.assertLess(found[0][name, "min"]["promised"], found[0][name, "60%"]["promised"])


if __name__ == "__main__":
    unittest.main()
