#!/usr/bin/env python3
"""Removes barriers and fences from compiled kernels, one at a time, and counts how often the tests notice.

usage: ptx_mutants.py [--build DIR] [--count N] [--seed N]

Each of N runs executes one small device test in the interpreter of PTX (docs/ptx.md). It removes one randomly chosen
barrier, warp synchronisation or fence from a kernel that the test launches. Prints the removed instructions that a
thread reached although the test still passed. Such an instruction is superfluous, or the test does not need it, or the
interpreter misses an error. Exit codes: 0; 1 if a test fails without any removal; 2 for bad usage.
"""

import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
LONGEST = 180  # seconds per run; without a barrier, a kernel may wait for ever
CASES = ("*merged chains and dominance*", "[sanitize]key orders*", "[sanitize]an op of every*", "[sanitize]pumpkin*",
         "*and draws its candidates*", "[sanitize]synthetic nodes*")


def run(program, case, variables):
    """Returns whether the case passes, and its output."""
    try:
        done = subprocess.run([program, case], capture_output=True, text=True, timeout=LONGEST,
                              env={**os.environ, "CAIRN_REQUIRE_DEVICE": "1", **variables})
        return done.returncode == 0, done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        return False, (error.stderr or b"").decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build" / "default"), metavar="DIR")
    parser.add_argument("--count", type=int, default=60, metavar="N", help="number of removals; default 60")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    given = parser.parse_args()
    program = pathlib.Path(given.build).resolve() / "tests" / "test_ptx_cuda"
    if not program.is_file():
        print(f"skipped: '{program}' is not there; build the target test_ptx_cuda with CUDA")
        return 0
    places = []
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            passes, output = run(program, case, {"CAIRN_PTX_KERNELS": folder + "/kernels"})
            found = re.search(r"(\d+) barriers and fences", output)
            if not passes or not found:
                print(f"'{case}' fails as it is", file=sys.stderr)
                return 1
            places += [(case, number) for number in range(int(found.group(1)))]
    start = time.monotonic()
    chosen = random.Random(given.seed).sample(places, min(given.count, len(places)))
    missed, unreached = [], 0
    for case, number in chosen:
        passes, output = run(program, case, {"CAIRN_PTX_DROP": str(number)})
        if passes and "the dropped instruction was reached" not in output:
            unreached += 1
        elif passes:
            missed.append(next((line for line in output.splitlines() if line.startswith("dropped: ")), case))
    for line in sorted(missed):
        print(line[:200])
    print(f"{len(chosen)} of {len(places)} barriers and fences removed: {unreached} were never reached, "
          f"{len(chosen) - unreached - len(missed)} noticed, {len(missed)} not noticed; "
          f"{time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
