"""Tests that the models of bench/torch are the same in every run, and that its comparisons notice differences."""

import pathlib
import sys
import unittest

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench" / "torch"))
import models  # noqa: E402
import rows  # noqa: E402
import table  # noqa: E402

OWN = [name for name in models.MODELS if "/" not in name]


def step(case):
    torch.manual_seed(7)
    loss = case.model(*case.inputs)
    loss.backward()
    gradients = {n: p.grad for n, p in case.model.named_parameters()}
    return {"loss": {"loss": loss.detach()}, "gradients": gradients, "buffers": dict(case.model.named_buffers())}


class Models(unittest.TestCase):
    def test_the_same_whenever_it_is_built(self):
        for name in OWN:
            with self.subTest(name):
                torch.manual_seed(99)
                one, other = models.build(name), models.build(name)
                self.assertTrue(all(torch.equal(a, b) for a, b in zip(one.model.parameters(), other.model.parameters())))
                self.assertTrue(all(torch.equal(a, b) for a, b in zip(one.inputs, other.inputs)))
                self.assertTrue(all(one.model.get_submodule(block) for block in one.blocks))

    def test_a_package_that_is_absent_is_said(self):
        with self.assertRaisesRegex(models.Absent, "no_such_package is not installed"):
            models.need("no_such_package")

    def test_tokens_that_find_no_room_are_zero(self):
        experts = models.Experts(8, 2, best=1, room=0.5)
        with torch.no_grad():
            experts.router.weight.zero_()  # all four tokens prefer the first expert, which has room for one of them
            out = experts(torch.randn(1, 4, 8))
        self.assertEqual([bool(row.any()) for row in out[0]], [True, False, False, False])


class Comparisons(unittest.TestCase):
    def test_checkpointing_by_block_changes_no_gradient(self):
        one, other = step(models.build("gpt-2")), models.build("gpt-2")
        table.checkpoint_blocks(other.model, other.blocks)
        self.assertTrue(table.compare(step(other), one)["identical"])

    def test_one_element_that_differs_is_found(self):
        reference, changed = step(models.build("gpt-2")), step(models.build("gpt-2"))
        gradient = changed["gradients"]["blocks.0.norm1.bias"]
        gradient[3] += gradient.abs().max()
        found = table.compare(changed, reference)
        self.assertFalse(found["identical"])
        self.assertEqual(found["of"], "gradients: blocks.0.norm1.bias")
        self.assertTrue(rows.is_wrong(found))

    def test_what_is_not_a_number_is_wrong(self):
        reference, changed = step(models.build("gpt-2")), step(models.build("gpt-2"))
        changed["loss"]["loss"] = torch.tensor(float("nan"))
        self.assertTrue(rows.is_wrong(table.compare(changed, reference)))


if __name__ == "__main__":
    unittest.main()
