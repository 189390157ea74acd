#!/usr/bin/env python3
"""Checks that the tests of the interpreter of PTX (docs/ptx.md) compare every opcode that Cairn's kernels use.

  scripts/check_opcodes.py ARCHIVE PROGRAM

ARCHIVE is libcairn_cuda.a of a build with tests. PROGRAM is test_ptx of this build. The script runs the tests with the
tag [opcodes], which write the opcodes that they have compared to a file. An opcode with other modifiers counts as
another opcode: ld.global.u32 and ld.global.v2.u32 are two. The script fails if an opcode of the archive is not in the
file, unless OTHERS says where it is tested. An entry of OTHERS that is not needed is an error, too.
"""

import os
import re
import subprocess
import sys
import tempfile

from check_kernels import ptx_texts, target_of

ARCHITECTURE = 90  # PTX for other architectures can have other opcodes
# Opcodes that compute no value. tests/ptx/faults_test.cpp shows what they order, and where they jump to.
OTHERS = {"bar.sync", "bar.warp.sync", "bra", "bra.uni", "exit", "membar.cta", "nanosleep.u32", "ret"}
# A statement begins a line, or follows another statement or a bracket. Its guard, such as @%p1, comes first.
STATEMENT = re.compile(r"(?:^|[;{}])\s*(?:@!?[%\w]+\s+)?([a-z]\w*(?:(?:\.|::)\w+)*)(?=\s|;)", re.M)


def opcodes(ptx):
    """Returns the opcodes, with modifiers, of a text of PTX."""
    return set(STATEMENT.findall(re.sub(r"//.*", "", ptx)))


def compared(program):
    """Runs the tests, and returns the opcodes that they compare."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "opcodes")
        run = subprocess.run([program, "[opcodes]"], env={**os.environ, "CAIRN_PTX_OPCODES": path}, capture_output=True,
                             text=True)
        if run.returncode != 0:
            raise SystemExit(f"{program} fails:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
        with open(path, encoding="utf-8") as file:
            return set(file.read().split())


def errors_of(used, tested):
    """Returns what is wrong, given the opcodes of the kernels and those of the tests."""
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
