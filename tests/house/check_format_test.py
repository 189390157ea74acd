"""Tests scripts/check_format.sh on a small source tree that the test writes."""

import shutil
import unittest

from stand_ins import ROOT, ScriptTest


class CheckFormat(ScriptTest):
    def test_a_fault_is_found_and_mended_and_a_broken_configuration_fails(self):
        self.script = f"{self.root}/scripts/check_format.sh"
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        shutil.copy(ROOT / ".clang-format", self.root)
        (self.root / "core").mkdir()
        for name, text, option, code, output in [
                ("good.h", "int f(int x);\n", [], 0, "^$"), ("bad.h", "int  g( );\n", [], 1, r"\d core/bad.h$"),
                ("bad.h", "int  g( );\n", ["--fix"], 0, "^$"), ("good.h", "int f();\n", [], 0, "^$"),
                ("good.h", "int f();\n", ["--wrong"], 2, "^$"), ("../.clang-format", "a: b\n", [], 1, ".")]:
            (self.root / "core" / name).write_text(text)
            run = self.run_script(*option)
            if run.stdout.startswith("skipped: "):
                print(run.stdout)
                self.skipTest(run.stdout)
            self.assertEqual(run.returncode, code, run.stdout + run.stderr)
            self.assertRegex(run.stdout, output)


if __name__ == "__main__":
    unittest.main()
