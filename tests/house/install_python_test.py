"""scripts/install_python.sh against a stand-in for python3."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "install_python.sh"
VERSION = 'if [ "$1" = -c ]; then exit ${OLD:-0}; fi\n'
# `python3 -m venv FOLDER` puts itself there as its python.
VENV = 'if [ "$2" = venv ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; exit ${NO_VENV:-0}; fi\n'
PIP = 'if [ "$2" = pip ]; then echo "$*" >> "$CALLS"; [ -z "${NO_NETWORK:-}" ] || { echo "ERROR: no network" >&2; exit 1; }; fi\n'


class InstallPython(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.target, self.calls = self.root / "an env", self.root / "calls"
        python = self.root / "python3"
        python.write_text("#!/bin/sh\n" + VERSION + VENV + PIP)
        python.chmod(0o755)

    def run_script(self, *arguments, **environment):
        return subprocess.run(["/bin/sh", SCRIPT, *(arguments or [self.target])],
                              env={"PATH": f"{self.root}:{os.environ['PATH']}", "CALLS": str(self.calls), **environment},
                              capture_output=True, text=True)

    def pip_calls(self):
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def test_pinned_releases_are_installed_once(self):
        run = self.run_script()
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        call, = self.pip_calls()
        for package in ("nanobind", "scikit-build-core", "numpy", "networkx"):
            self.assertRegex(call, rf" {package}==\d")
        again = self.run_script()
        self.assertEqual((again.returncode, again.stdout, again.stderr), (0, "", ""))
        self.assertEqual(len(self.pip_calls()), 1)

    def test_other_releases_are_replaced(self):
        self.run_script()
        (self.target / "packages").write_text("nanobind==0.1")
        (self.target / "left").write_text("over")
        self.assertEqual(self.run_script().returncode, 0)
        self.assertEqual(len(self.pip_calls()), 2)
        self.assertFalse((self.target / "left").exists())

    def test_what_fails_says_why_in_a_line_and_leaves_nothing(self):
        for words, environment in [("no network", {"NO_NETWORK": "1"}), ("virtual environment", {"NO_VENV": "1"}),
                                   ("3.10 or newer", {"OLD": "1"})]:
            with self.subTest(words=words):
                run = self.run_script(**environment)
                self.assertEqual(run.returncode, 1)
                self.assertIn(words, run.stderr)
                self.assertEqual(len(run.stderr.splitlines()), 1)
                self.assertFalse((self.target / "packages").exists())

    def test_bad_usage(self):
        self.assertEqual(self.run_script("--all").returncode, 2)


if __name__ == "__main__":
    unittest.main()
