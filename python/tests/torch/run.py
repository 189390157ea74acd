"""Runs the tests of this folder, and prints as the last line how many passed.

usage: run.py [NAME...]      names as `python -m unittest` takes them, backend_test.Budgets; absent: all
"""

import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).parent


class Result(unittest.TextTestResult):
    """Counts tests, not the parts that a test consists of."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.failed = set()

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.failed.add(test.id())

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.failed.add(test.id())

    def addError(self, test, error):
        super().addError(test, error)
        self.failed.add(test.id())


def main(names):
    sys.path.insert(0, str(HERE))
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # the profiler's own messages
    import torch
    torch.set_num_threads(min(2, torch.get_num_threads()))
    loader = unittest.defaultTestLoader
    tests = loader.loadTestsFromNames(names) if names else loader.discover(str(HERE), pattern="*_test.py")
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result).run(tests)
    skipped = len({test.id() for test, _ in result.skipped} - result.failed)
    passed = result.testsRun - len(result.failed) - skipped
    for test, reason in result.skipped:
        print(f"skipped: {test.id()}: {reason}")
    print(f"torch {torch.__version__}")
    print(f"{passed} passed, {len(result.failed)} failed, {skipped} skipped", flush=True)
    return 0 if passed > 0 and not result.failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
