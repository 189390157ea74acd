"""Tests cairn.torch._private.operators."""

import unittest

import torch
from cairn.torch import _private


class Operators(unittest.TestCase):
    def test_names_and_overloads(self):
        @torch.library.custom_op("cairn_private::doubled", mutates_args=())
        def doubled(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        packet = torch.ops.cairn_private.doubled
        for given in (doubled, packet, packet.default, "cairn_private::doubled"):
            self.assertEqual(_private.qualified_name(given), "cairn_private::doubled")
        self.assertEqual(_private.overloads("cairn_private::doubled"), [packet.default])
        self.assertIn(torch.ops.aten.add.Tensor, _private.overloads("aten::add"))
        for name in ("cairn_private::nothing", "cairn_nowhere::doubled", "doubled", "", "a::b::c", "a b::c"):
            self.assertEqual(_private.overloads(name), [])
