"""Tests the memory of DistributedDataParallel: gradients in buckets, and graphs that are split at the buckets."""

import unittest

import cairn.torch
import harness
import ranks
import torch
from step_models import Halves, Layer, measured
from together_test import backend


def with_views_of_buckets(*_):
    """Trains a DistributedDataParallel whose gradients are views of its buckets, and another one whose gradients are
    not views. Returns, for each, (promised peak, measured peak, bytes of all parameters)."""
    torch._dynamo.config.optimize_ddp = False
    found = {}
    for view in harness.afresh((False, True)):
        model = torch.nn.parallel.DistributedDataParallel(
            Halves(layers=4, layer=lambda: Layer(128), broken=False), gradient_as_bucket_view=view)
        x, compiled = torch.randn(64, 128), torch.compile(model, backend=backend("min"))
        for _ in range(3):
            compiled(x).backward()
            model.zero_grad()
        really = measured(lambda: compiled(x).backward(), () if view else model.parameters())
        found[view] = cairn.torch.last_report().promised, really, sum(p.nbytes for p in model.parameters())
    return found


def split_by_ddp(*_):
    """Trains a DistributedDataParallel twice: with graphs split at its buckets, which is the default, and without
    splitting. Returns, for each, what the report says and what was measured."""
    found = {}
    for split in harness.afresh((True, False)):
        torch._dynamo.config.optimize_ddp = split
        model = torch.nn.parallel.DistributedDataParallel(
            Halves(layers=8, layer=lambda: Layer(128), broken=False), bucket_cap_mb=1)
        compiled = torch.compile(model, backend=backend("100%"))
        x = torch.randn(256, 128)
        with harness.told() as told:
            for _ in range(2):
                compiled(x).backward()
                model.zero_grad()
        report = cairn.torch.last_report()
        really = measured(lambda: compiled(x).backward(), model.parameters())
        found[split] = {
            "graphs": [g.promised for g in report.graphs], "promised": report.promised, "measured": report.measured,
            "kept": report.kept, "really": really, "told": told}
    return found


@unittest.skipUnless(ranks.available, "this torch has no gloo")
class Ddp(unittest.TestCase):
    def test_gradients_that_are_copied_into_buckets(self):
        (found,) = ranks.on_ranks(with_views_of_buckets, 1)
        for promised, really, _ in found.values():
            self.assertGreaterEqual(promised, really)
            self.assertLessEqual(promised, 1.15 * really)
        self.assertEqual(found[True][0] - found[False][0], found[True][2])

    def test_splits_the_graph_and_the_report_says_so(self):
        for one in ranks.on_ranks(split_by_ddp, 2):
            split, whole = one[True], one[False]
            self.assertGreater(len(split["graphs"]), 2)
            self.assertGreater(split["promised"], 1.5 * max(split["graphs"]))
            self.assertIn("torch._dynamo.config.optimize_ddp = False", split["told"][0])
            self.assertEqual(len(whole["graphs"]), 1)
            self.assertEqual(whole["told"], [])
            for step in (split, whole):
                self.assertEqual(step["kept"], True)
                self.assertGreaterEqual(step["promised"], step["really"])
                self.assertLessEqual(step["promised"], 1.1 * step["really"])
