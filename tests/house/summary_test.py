"""The count that scripts/test.sh ends with."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "summary.py"
PASSED = '<testcase name="good" status="run"><system-out>fine</system-out></testcase>'
FAILED = '<testcase name="bad" status="fail"><failure message=""/><system-out>1 != 2</system-out></testcase>'
SKIPPED = '<testcase name="gpu" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>'
MISSING = '<testcase name="gone" status="notrun"><skipped message="Unable to find executable"/></testcase>'


def summary(text):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "tests.xml"
        if text is not None:
            file.write_text(text)
        run = subprocess.run([sys.executable, SCRIPT, file], capture_output=True, text=True)
        return run.returncode, run.stdout.splitlines()


class Summary(unittest.TestCase):
    def test_counts(self):
        code, lines = summary(f"<testsuite>{PASSED}{PASSED}{SKIPPED}</testsuite>")
        self.assertEqual((code, lines), (0, ["skipped: gpu", "2 passed, 0 failed, 1 skipped"]))

    def test_a_failure_shows_its_output(self):
        code, lines = summary(f"<testsuite>{PASSED}{FAILED}</testsuite>")
        self.assertEqual((code, lines), (1, ["FAILED: bad (fail)", "  1 != 2", "1 passed, 1 failed, 0 skipped"]))

    def test_a_program_that_was_not_built_is_a_failure(self):
        code, lines = summary(f"<testsuite>{PASSED}{MISSING}</testsuite>")
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))

    def test_no_tests_is_a_failure(self):
        self.assertEqual(summary("<testsuite/>"), (1, ["0 passed, 0 failed, 0 skipped"]))
        for broken in [None, "", "<testsuite>"]:
            code, lines = summary(broken)
            self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed, 0 skipped"))


if __name__ == "__main__":
    unittest.main()
