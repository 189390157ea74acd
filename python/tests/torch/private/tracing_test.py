"""Tests that fake tensors, replaced parameters and the settings of Inductor work in the installed torch as Cairn needs
them."""

import unittest

import torch
from cairn.torch import _private


class Inductor(unittest.TestCase):
    def test_inductor_config(self):
        self.assertEqual(_private.inductor_config(None, None), {})
        self.assertEqual(_private.inductor_config("default", {"max-fusion-size": 4}), {"max_fusion_size": 4})
        self.assertTrue(_private.inductor_config("reduce-overhead", None)["triton.cudagraphs"])
        for mode, options in (("fastest", None), (None, {"no_such": 1}), (None, {"max_fusion_size": "4"})):
            with self.assertRaises(RuntimeError):
                _private.inductor_config(mode, options)


class Tracing(unittest.TestCase):
    def test_fake_like(self):
        parameter = torch.nn.Parameter(torch.randn(4, 6).t())
        mode, (fake, again) = _private.fake_like([parameter, parameter])
        self.assertIs(fake, again)
        self.assertEqual((fake.shape, fake.stride(), fake.requires_grad), (parameter.shape, parameter.stride(), True))

    def test_replaced_tensors(self):
        model = torch.nn.Linear(2, 2)
        before = model.weight
        with _private.replaced_tensors(model, {"weight": torch.zeros(2, 2), "bias": torch.ones(2)}):
            self.assertTrue(torch.equal(model(torch.randn(1, 2)), torch.ones(1, 2)))
        self.assertIs(model.weight, before)

    def test_replaced_tensors_of_a_module_that_is_registered_twice(self):
        layer = torch.nn.Linear(2, 2)
        model, before = torch.nn.Sequential(layer, layer), layer.weight
        with _private.replaced_tensors(model, {"0.weight": torch.zeros(2, 2), "0.bias": torch.ones(2)}):
            self.assertTrue(torch.equal(model(torch.randn(1, 2)), torch.ones(1, 2)))
        self.assertIs(layer.weight, before)
        self.assertEqual(len(dict(layer.named_parameters())), 2)
