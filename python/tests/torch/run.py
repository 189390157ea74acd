"""Runs the tests of this folder, and prints as the last line how many passed.

usage: run.py [NAME...]      names as `python -m unittest` takes them, backend_test.Budgets; absent: all

Whole files, when there are several, are a process each, one for each core at a time, on one thread.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).parent
LONGEST = ["backend_test", "updates_test", "silent_test", "step_test", "random_test"]  # which begin first
COUNT = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped\n")


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


def run_here(names):
    """(passed, failed, skipped) of these tests, in this process."""
    sys.path.insert(0, str(HERE))
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # the profiler's own messages
    import torch
    torch.set_num_threads(min(2, torch.get_num_threads()))
    tests = unittest.defaultTestLoader.loadTestsFromNames(names)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result).run(tests)
    skipped = len({test.id() for test, _ in result.skipped} - result.failed)
    for test, reason in result.skipped:
        print(f"skipped: {test.id()}: {reason}")
    print(f"torch {torch.__version__}")
    return result.testsRun - len(result.failed) - skipped, len(result.failed), skipped


def run_file(name):
    """The same of a file, in a process whose output is printed when it ends."""
    done = subprocess.run([sys.executable, __file__, name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    count = COUNT.search(done.stdout[-200:])
    print(done.stdout[:count and done.stdout.rindex(count[0])], end="", flush=True)
    return tuple(map(int, count.groups())) if count else (0, 1, 0)  # it ended before it had counted


def run_files(names):
    names = sorted(names, key=lambda name: (LONGEST.index(name) if name in LONGEST else len(LONGEST), name))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return tuple(map(sum, zip(*pool.map(run_file, names))))


if __name__ == "__main__":
    files = {file.stem for file in HERE.glob("*_test.py")}
    given = sys.argv[1:] or files
    passed, failed, skipped = run_files(given) if len(given) > 1 and files.issuperset(given) else run_here(given)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    sys.exit(0 if passed > 0 and not failed else 1)
