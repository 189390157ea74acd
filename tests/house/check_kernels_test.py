#!/usr/bin/env python3
"""Tests that each rule of scripts/check_kernels.py finds the kernel that breaks it, and only that kernel."""

import contextlib
import io
import struct
import sys
import tempfile
import unittest
from unittest import mock

from stand_ins import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import check_kernels  # noqa: E402

HEADER = """.version 8.0
.target sm_90
.address_size 64
"""

# The PTX of a kernel without instructions. Each test inserts declarations, and instructions that copy a number from
# `in` to `out`.
KERNEL = """
.visible .entry %s(.param .u64 in, .param .u64 out) .maxntid %d, 1, 1
{
  .reg .b64 %%rd<9>;
  .reg .b32 %%r<9>;
  .reg .f32 %%f<9>;
  %s
  ld.param.u64 %%rd1, [in];
  ld.param.u64 %%rd2, [out];
  %s
  ret;
}
"""
GLOBAL = "cvta.to.global.u64 %rd3, %rd1; cvta.to.global.u64 %rd4, %rd2; "
GOOD = GLOBAL + "ld.global.u32 %r1, [%rd3]; st.global.u32 [%rd4], %r1;"
WIDE = GLOBAL + "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd3]; st.global.v4.f32 [%rd4], {%f1, %f2, %f3, %f4};"
GENERIC = "ld.u32 %r1, [%rd1]; st.u32 [%rd2], %r1;"
INDEXED = GLOBAL + ("ld.global.u32 %r1, [%rd3]; cvt.u64.u32 %rd5, %r1; mov.u64 %rd6, room; add.u64 %rd6, %rd6, %rd5; "
                    "st.{0}.u32 [%rd6], %r1; {1} ld.{0}.u32 %r2, [room+8]; st.global.u32 [%rd4], %r2;")


def kernel(name, body, declared="", threads=256):
    return KERNEL % (name, threads, declared, body)


def fat_binary(ptx):
    text = ptx.encode() + b"\0"
    entry = struct.pack("<HHIQ", 1, 0x101, 64, len(text)).ljust(64, b"\0") + text
    return b"rubbish" + struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry)) + entry


@unittest.skipIf(None in check_kernels.find_tools().values(), "ptxas or nvdisasm is missing")
class CheckKernels(unittest.TestCase):
    def run_script(self, kernels, exceptions=(), promises=(), architectures="90"):
        """Returns whether the script accepts the kernels, and the lines that it prints."""
        printed = io.StringIO()
        with tempfile.NamedTemporaryFile() as archive:
            archive.write(fat_binary(HEADER + "".join(kernels)))
            archive.flush()
            arguments = ["check_kernels.py", "--architectures", architectures, archive.name]
            with mock.patch.object(check_kernels, "EXCEPTIONS", exceptions), \
                 mock.patch.object(check_kernels, "PROMISES", promises), \
                 mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(printed), \
                 self.assertRaises(SystemExit) as end:
                check_kernels.main()
        return end.exception.code == 0, printed.getvalue()

    def test_each_rule(self):
        good = kernel("good", GOOD)
        self.assertTrue(self.run_script([good])[0])
        local = kernel("local", INDEXED.format("local", ""), ".local .align 4 .b8 room[64];")
        shared = kernel("shared", INDEXED.format("shared", "bar.sync 0;"), ".shared .align 4 .b8 room[8192];")
        for rule, words, bad in [("generic", "2 generic accesses", kernel("generic", GENERIC)),
                                 ("local", "stack frame of", local), ("shared", "8192 bytes of static", shared)]:
            accepted, printed = self.run_script([good, bad])
            self.assertEqual((accepted, printed.count("sm_90: "), words in printed), (False, 2, True), printed)
            amount = {"generic": 2, "local": 64, "shared": 8192}[rule]
            excepted = [(f"^{rule}$", {rule: amount}, "90", "for this test")]
            self.assertTrue(self.run_script([good, bad], exceptions=excepted)[0])
            excepted[0][1][rule] -= 1
            accepted, printed = self.run_script([good, bad], exceptions=excepted)
            self.assertEqual((accepted, printed.count("sm_90: "), f"exception is {amount - 1}" in printed),
                             (False, 2, True), printed)

    def test_exceptions_and_promises_are_needed(self):
        good, wide = kernel("good", GOOD), kernel("wide", WIDE)
        accepted, printed = self.run_script([good], exceptions=[("good", {"generic": 1}, "80 90", "none")],
                                            promises=[("bad", 1, 1)])
        self.assertEqual((accepted, printed.count("no kernel")), (False, 2), printed)
        self.assertTrue(self.run_script([good, wide], promises=[("wide", 1, 1)])[0])
        for promise in [("wide", 2, 0), ("wide", 0, 2), ("good", 1, 0)]:
            accepted, printed = self.run_script([good, wide], promises=[promise])
            self.assertEqual((accepted, "promised" in printed), (False, True), printed)

    def test_architectures(self):
        accepted, printed = self.run_script([kernel("good", GOOD)], architectures="80,90,77777")
        self.assertEqual((accepted, printed.count("1 kernels"), "sm_80: the build has no" in printed), (True, 1, True))
        self.assertFalse(self.run_script([kernel("good", GOOD)], architectures="80")[0])
        if "120" not in check_kernels.known_architectures(check_kernels.find_tools()["ptxas"]):
            return
        accepted, printed = self.run_script([kernel("good", GOOD)], architectures="120")
        self.assertEqual((accepted, "sm_120: 1 kernels" in printed), (True, True), printed)
        with mock.patch.object(sys.modules[__name__], "HEADER", HEADER.replace("8.0", "8.7").replace("90", "120")):
            self.assertFalse(self.run_script([kernel("good", GOOD)], architectures="120")[0])

    def test_registers_and_spills(self):
        kernels = {"k": check_kernels.Kernel(1024)}
        check_kernels.read_report("""ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 65 registers, used 1 barriers, 512 bytes smem, 544 bytes cmem[0]
""", kernels)
        check_kernels.read_listing("\t.section\t.text.k,\"ax\"\n        /*0000*/ @!P0 LDL.64 R2, [R1] ;\n", kernels)
        broken = check_kernels.broken_rules("k", kernels["k"])
        self.assertEqual(sorted(broken), ["local", "registers", "spills"])
        self.assertEqual((broken["spills"][0], broken["local"][0]), (20, 16))
        self.assertIn("20 bytes", broken["spills"][1])
        # A thread's 65 registers are rounded up to 72, and 896 threads then need fewer than the 65,536 registers that
        # there are.
        kernels["k"].threads = 896
        self.assertNotIn("registers", check_kernels.broken_rules("k", kernels["k"]))


if __name__ == "__main__":
    if None in check_kernels.find_tools().values():
        print("skipped: ptxas or nvdisasm is missing")
    unittest.main()
