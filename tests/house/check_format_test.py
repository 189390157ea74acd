"""scripts/check_format.sh on a small tree of its own."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class CheckFormat(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "scripts").mkdir()
        (self.root / "core").mkdir()
        shutil.copy(ROOT / "scripts" / "check_format.sh", self.root / "scripts")
        shutil.copy(ROOT / ".clang-format", self.root)
        (self.root / "core" / "good.h").write_text("int f(int x);\n")

    def run_script(self, *arguments):
        run = subprocess.run([self.root / "scripts" / "check_format.sh", *arguments], capture_output=True, text=True)
        if run.stdout.startswith("skipped: "):
            print(run.stdout)
            self.skipTest(run.stdout)
        return run

    def test_a_fault_is_found_and_mended(self):
        self.assertEqual(self.run_script().returncode, 0)
        bad = self.root / "core" / "bad.cpp"
        bad.write_text("int  f( int x ){return x;}\n")
        run = self.run_script()
        self.assertEqual(run.returncode, 1)
        self.assertIn("core/bad.cpp", run.stdout)
        self.assertNotIn("good.h", run.stdout)
        self.assertEqual(self.run_script("--fix").returncode, 0)
        self.assertEqual(bad.read_text(), "int f(int x) { return x; }\n")
        self.assertEqual(self.run_script().returncode, 0)

    def test_a_broken_configuration_is_a_failure(self):
        (self.root / ".clang-format").write_text("ColumnLimit: many\n")
        self.assertEqual(self.run_script().returncode, 1)

    def test_an_unknown_option_is_refused(self):
        run = self.run_script("--wrong")
        self.assertEqual(run.returncode, 2)
        self.assertIn("usage", run.stderr)


if __name__ == "__main__":
    unittest.main()
