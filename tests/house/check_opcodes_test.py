#!/usr/bin/env python3
"""Tests that scripts/check_opcodes.py finds the opcodes in a PTX text, and the opcodes that no test compares."""

import sys
import unittest

from stand_ins import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import check_opcodes  # noqa: E402

PTX = """.version 8.0
.target sm_90
.global .align 4 .b8 table[2] = {1, 2};
.visible .entry f(.param .u64 in) .maxntid 256, 1, 1
{
  .reg .b32 %r<9>;
  ld.global.v2.u32 {%r1, %r2}, [%rd1]; // st.global.u32
  @!%p1 bra $L__BB0_2;
$L__BB0_2:
  { .reg .b16 low, high; mov.b32 {low, high}, %r1; @p fence.acq_rel.gpu; }
  st.shared::cta.u32 [%r3], 1;
  ret;
}
"""


class CheckOpcodes(unittest.TestCase):
    def test_statements_are_found(self):
        self.assertEqual(check_opcodes.opcodes(PTX), {"ld.global.v2.u32", "bra", "mov.b32", "fence.acq_rel.gpu",
                                                      "st.shared::cta.u32", "ret"})

    def test_each_opcode_needs_a_test_or_an_entry(self):
        others = check_opcodes.OTHERS
        self.assertEqual(check_opcodes.errors_of({"add.s32", *others}, {"add.s32", "sub.s32"}), [])
        self.assertEqual(check_opcodes.errors_of({"add.s32", *others}, {"add.s64"}), ["no test compares add.s32"])
        self.assertEqual(check_opcodes.errors_of({*others}, {"bra"}), ["OTHERS: bra is not needed"])
        self.assertEqual(check_opcodes.errors_of(others - {"ret"}, set()), ["OTHERS: ret is not needed"])


if __name__ == "__main__":
    unittest.main()
