#!/usr/bin/env python3
"""Checks that the tests of the interpreter of PTX (docs/ptx.md) compare every opcode that Cairn's kernels use.

  scripts/check_opcodes.py ARCHIVE PROGRAM

ARCHIVE is libcairn_cuda.a of a build with tests. PROGRAM is test_ptx of this build. The script runs the tests with the
tag [opcodes]. These tests write a file with the opcodes whose results they have compared with expected values. Opcodes
with different modifiers count as different opcodes, for example ld.global.u32 and ld.global.v2.u32. The script fails if
the archive has an opcode that is neither in the file nor in OTHERS. An entry of OTHERS that is not needed is an error,
too.
"""

import os
import re
import subprocess
import sys
import tempfile

from check_kernels import ptx_texts, target_of

ARCHITECTURE = 90  # only PTX for this architecture is checked; PTX for another one can have other opcodes
# Opcodes that compute no value, so there is nothing to compare. tests/ptx/faults_test.cpp tests them: barriers and
# fences, jumps and exits.
OTHERS = {"bar.sync", "bar.warp.sync", "bra", "bra.uni", "exit", "membar.cta", "nanosleep.u32", "ret"}
# Matches a statement of PTX: at the beginning of a line, or after another statement or a brace. A guard, such as @%p1,
# can come before the opcode.
STATEMENT = re.compile(r"(?:^|[;{}])\s*(?:@!?[%\w]+\s+)?([a-z]\w*(?:(?:\.|::)\w+)*)(?=\s|;)", re.M)


def opcodes(ptx):
    """Returns the set of opcodes, with modifiers, in a PTX text."""
    return set(STATEMENT.findall(re.sub(r"//.*", "", ptx)))


def compared(program):
    """Runs the tests, and returns the set of opcodes that they compare."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "opcodes")
        run = subprocess.run([program, "[opcodes]"], env={**os.environ, "CAIRN_PTX_OPCODES": path}, capture_output=True,
                             text=True)
        if run.returncode != 0:
            raise SystemExit(f"{program} fails:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
        with open(path, encoding="utf-8") as file:
            return set(file.read().split())


def errors_of(used, tested):
    """Returns a list of errors, given the opcodes that kernels use and the opcodes that the tests compare."""
    errors = [f"no test compares {opcode}" for opcode in sorted(used - tested - OTHERS)]
    return errors + [f"OTHERS: {opcode} is not needed" for opcode in sorted(OTHERS - (used - tested))]


def main():
    if len(sys.argv) != 3:
        raise SystemExit("usage: scripts/check_opcodes.py ARCHIVE PROGRAM")
    with open(sys.argv[1], "rb") as file:
        texts = [text for text in ptx_texts(file.read()) if target_of(text) == ARCHITECTURE]
    if not texts:
        raise SystemExit(f"{sys.argv[1]} has no PTX for sm_{ARCHITECTURE} that is not compressed")
    used = set().union(*map(opcodes, texts))
    errors = errors_of(used, compared(sys.argv[2]))
    print("\n".join(errors) if errors else f"The tests compare {len(used - OTHERS)} opcodes of the kernels.")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
