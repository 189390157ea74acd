"""Tests which captured modules write their inputs, but draw no random numbers."""

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


@torch.library.custom_op("drawing_test::doubled", mutates_args=("x",))
def doubled(x: torch.Tensor) -> None:
    x.mul_(2)


# All of these functions also write their input, so that only what they draw counts.
DRAWS = {
    "in place": lambda x: torch.empty(4).normal_(),
    "uniform_": lambda x: x.new_empty(4).uniform_(0, 1),
    "read by what nobody reads": lambda x: torch.rand(4) * 2,
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.5),
    "native": lambda x: torch.native_dropout(x, 0.5, True)[0],
    "initialised": lambda x: torch.nn.init.normal_(torch.empty(4)),
    "seeded by numpy": lambda x: numpy.random.seed(5),
    "drawn by numpy": lambda x: torch.as_tensor(numpy.random.rand(4)),
    "not declared": lambda x: noisy(x),
}
WRITES = {
    "in place": lambda x: x.mul_(2),
    "into a part": lambda x: x[0].fill_(0),
    "by an index": lambda x: x.__setitem__(0, 1),
    "several": lambda x: torch._foreach_add_([x, x * 2], 1),
    "by another package": lambda x: doubled(x),
}
NOTHING = {
    "no dropout": lambda x: F.dropout(x, 0.5, training=False),
    "by numpy": lambda x: torch.as_tensor(numpy.sin(x.numpy())),
    "several results": lambda x: x.max(0)[0] + x.sort().values[0],
    "a temporary": lambda x: F.interpolate(x[None, None], size=(7, 11), mode="bilinear").mul_(2),
    "within an operator": lambda x: F.cosine_similarity(x, x * 2),
}


class Drawing(unittest.TestCase):
    def test_only_writes(self):
        def backend(module, inputs):
            state = torch.get_rng_state()
            found.append(_private.only_writes(module))
            self.assertTrue(torch.equal(torch.get_rng_state(), state))
            return module.forward

        def writing(draw):
            def function(x):
                x.mul_(2)
                return draw(x)

            return function

        cases = [(name, writing(function), False) for name, function in DRAWS.items()]
        cases += [(name, function, True) for name, function in WRITES.items()]
        cases += [(name, function, False) for name, function in NOTHING.items()]
        for name, function, expected in cases:
            found = []
            torch._dynamo.reset()
            with self.subTest(name):
                torch.compile(function, backend=backend)(torch.ones(4, 4))
                self.assertEqual(set(found), {expected})

    def test_sizes_that_depend_on_data_stay_as_they_are(self):
        def backend(module, inputs):
            found.append(_private.only_writes(module))
            return _private.aot_eager(module, inputs)

        found, x = [], torch.tensor([-1.0, 2, 3])
        torch._dynamo.reset()
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True), torch.no_grad():
            self.assertEqual(torch.compile(lambda x: x[x > 0].sum(), backend=backend)(x), 5)
        self.assertEqual(found, [False])
