"""Tests that cairn.torch._private recognises in the installed torch whether there are several processes, and whether a
model runs under DistributedDataParallel, even in one process."""

import tempfile
import unittest
import unittest.mock

import torch
from cairn.torch import _private


class Processes(unittest.TestCase):
    def test_one_process_has_no_store(self):
        self.assertIsNone(_private.collective_store())

    def test_a_collective_is_waited_for_until_only_the_caller_has_its_result(self):
        with tempfile.TemporaryDirectory() as folder:
            torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=0, world_size=1)
            self.addCleanup(torch.distributed.destroy_process_group)
            operators = torch.ops._c10d_functional
            group = torch.distributed.group.WORLD.group_name
            for _ in range(100):
                begun = operators.all_reduce(torch.ones(1000), "sum", group)
                result = _private.wait_tensor(begun)
                self.assertIs(result, begun)
                self.assertEqual(_private.holders(result), 1)
                self.assertTrue(torch.equal(result, torch.ones(1000)))
            if not hasattr(operators, "wait_tensors"):  # wait_tensors is newer than torch 2.9
                return
            begun = operators.all_reduce_coalesced([torch.ones(2), torch.ones(3)], "sum", group)
            self.assertEqual([_private.holders(tensor) for tensor in _private.wait_tensors(begun)], [1, 1])


class Parallel(unittest.TestCase):
    def test_gradients_are_copied(self):
        """Tests that within the forward pass of a DistributedDataParallel, it is recognised whether gradients are
        copied into buckets. One rank suffices for this test."""
        found = [_private.gradients_are_copied()]

        class Seen(torch.nn.Linear):
            def forward(self, x):
                found.append(_private.gradients_are_copied())
                return super().forward(x)

        with tempfile.TemporaryDirectory() as folder:
            torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=0, world_size=1)
            self.addCleanup(torch.distributed.destroy_process_group)
            for view in (False, True):
                torch.nn.parallel.DistributedDataParallel(Seen(2, 2), gradient_as_bucket_view=view)(torch.ones(1, 2))
        self.assertEqual(found, [False, False, True])

    def test_splits_for_ddp(self):
        self.assertFalse(_private.splits_for_ddp())
        parallel = torch.nn.parallel.DistributedDataParallel
        with unittest.mock.patch.object(parallel, "_active_ddp_module", object()):
            self.assertTrue(_private.splits_for_ddp())
            with torch._dynamo.config.patch(optimize_ddp=False):
                self.assertFalse(_private.splits_for_ddp())
