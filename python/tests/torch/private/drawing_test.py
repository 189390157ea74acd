"""Tests which captured modules write tensors, but draw no random numbers."""

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
WRITES = {
    "in place": lambda x: x.mul_(2),
    "into a part": lambda x: x[0].fill_(0),
    "by an index": lambda x: x.__setitem__(0, 1),
    "several": lambda x: torch._foreach_add_([x, x * 2], 1),
}
NOTHING = {
    "no dropout": lambda x: F.dropout(x, 0.5, training=False),
    "by numpy": lambda x: torch.as_tensor(numpy.sin(x.numpy())),
    "several results": lambda x: x.max(0)[0] + x.sort().values[0],
}


class Drawing(unittest.TestCase):
    def test_only_writes(self):
        def backend(module, inputs):
            state = torch.get_rng_state()
            found.append(_private.only_writes(module))
            self.assertTrue(torch.equal(torch.get_rng_state(), state))
            return module.forward

        for functions, expected in ((DRAWS, False), (WRITES, True), (NOTHING, False)):
            for name, function in functions.items():
                found = []
                torch._dynamo.reset()
                with self.subTest(name):
                    torch.compile(function, backend=backend)(torch.ones(4, 4))
                    self.assertEqual(set(found), {expected})
