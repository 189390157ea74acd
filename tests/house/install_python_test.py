"""scripts/install_python.sh against a stand-in for python3."""

import unittest

from stand_ins import ScriptTest

VERSION = 'if [ "$1" = -c ]; then exit ${OLD:-0}; fi\n'
# `python3 -m venv FOLDER` puts itself there as its python.
VENV = 'if [ "$2" = venv ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; exit ${NO_VENV:-0}; fi\n'
PIP = 'if [ "$2" = pip ]; then echo "$*" >> CALLS; [ -z "${NO_NETWORK:-}" ] || { echo "ERROR: no network" >&2; exit 1; }; fi\n'


class InstallPython(ScriptTest):
    script = "install_python.sh"

    def setUp(self):
        super().setUp()
        self.target = self.root / "an env"
        self.stand_in("python3", VERSION + VENV + PIP)

    def run_script(self, *arguments, **environment):
        return super().run_script(*(arguments or [self.target]), **environment)[0]

    def test_pinned_releases_are_installed_once(self):
        run = self.run_script()
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        call, = self.calls()
        for package in ("nanobind", "scikit-build-core", "numpy", "networkx"):
            self.assertRegex(call, rf" {package}==\d")
        again = self.run_script()
        self.assertEqual((again.returncode, again.stdout, again.stderr), (0, "", ""))
        self.assertEqual(len(self.calls()), 1)

    def test_other_releases_are_replaced(self):
        self.run_script()
        (self.target / "packages").write_text("nanobind==0.1")
        (self.target / "left").write_text("over")
        self.assertEqual(self.run_script().returncode, 0)
        self.assertEqual(len(self.calls()), 2)
        self.assertFalse((self.target / "left").exists())

    def test_what_fails_says_why_in_a_line_and_leaves_nothing(self):
        for words, environment in [("no network", {"NO_NETWORK": "1"}), ("virtual environment", {"NO_VENV": "1"}),
                                   ("3.10 or newer", {"OLD": "1"})]:
            with self.subTest(words=words):
                run = self.run_script(**environment)
                self.check_refusal(run, words)
                self.assertFalse((self.target / "packages").exists())

    def test_bad_usage(self):
        self.assertEqual(self.run_script("--all").returncode, 2)


if __name__ == "__main__":
    unittest.main()
