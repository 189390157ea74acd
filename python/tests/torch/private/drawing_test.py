"""Tests which captured modules draw random numbers or set a generator."""

import unittest

import numpy
import torch
import torch.nn.functional as F
from cairn.torch import _private


@torch.library.custom_op("drawing_test::noisy", mutates_args=())
def noisy(x: torch.Tensor) -> torch.Tensor:
    return x + torch.randn_like(x)  # not declared


@noisy.register_fake
def _(x):
    return torch.empty_like(x)


def seeded_by_numpy(x):
    numpy.random.seed(5)
    return x.sin()


DRAWS = {
    "in place": lambda x: (torch.empty(4).normal_(), x.sin())[1],
    "uniform_": lambda x: (x.new_empty(4).uniform_(0, 1), x.sin())[1],
    "read by what nobody reads": lambda x: (torch.rand(4) * 2, x.sin())[1],
    "read": lambda x: x + torch.rand(4),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.5),
    "native": lambda x: torch.native_dropout(x, 0.5, True)[0],
    "initialised": lambda x: (torch.nn.init.normal_(torch.empty(4)), x.sin())[1],
    "seeded by numpy": seeded_by_numpy,
    "drawn by numpy": lambda x: x + torch.as_tensor(numpy.random.rand(4)),
    "not declared": lambda x: noisy(x),
}
DRAWS_NOT = {
    "written": lambda x: x.mul_(2),
    "reshaped": lambda x: x.unsqueeze_(0).sin(),
    "no dropout": lambda x: F.dropout(x, 0.5, training=False),
    "by numpy": lambda x: torch.as_tensor(numpy.sin(x.numpy())),
    "several results": lambda x: x.max(0)[0] + x.sort().values[0],
}


class Drawing(unittest.TestCase):
    def test_may_draw(self):
        def backend(module, inputs):
            found.append(_private.may_draw(module))
            return module.forward

        for functions, expected in ((DRAWS, True), (DRAWS_NOT, False)):
            for name, function in functions.items():
                found, x = [], torch.ones(4, 4)
                torch._dynamo.reset()
                state = torch.get_rng_state()
                with self.subTest(name):
                    torch.compile(function, backend=lambda module, inputs: (backend(module, inputs), lambda *_: (x,))[1])(x)
                    self.assertEqual(set(found), {expected})
                    self.assertTrue(torch.equal(torch.get_rng_state(), state))  # nothing was drawn to find out
