#!/usr/bin/env python3
"""Removes barriers and fences from compiled kernels, one at a time, and checks that a test notices.

usage: ptx_mutants.py [--build DIR] [--count N] [--seed N]

The tests are a few small device tests, which run in the interpreter of PTX (docs/ptx.md). For each barrier, warp
synchronisation and fence of the kernels that they launch, runs the tests without this instruction. Prints the
instructions that a thread reached although all tests passed. Such an instruction is superfluous, or the tests do not
need it, or the interpreter misses an error. KNOWN lists such instructions of Cairn's kernels that have been examined,
each with the reason why its removal changes nothing. Such instructions of CUB's kernels are only counted, because Cairn
does not maintain these kernels.

Exit codes: 0; 1 if a removal is not noticed and not in KNOWN, or if a test fails without any removal; 2 for bad usage.
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
FOLDERS = ("cuda", "runtime", "sim", "solvers")  # folders with the source files of kernels
LONGEST = 60  # seconds per run; without a barrier, a kernel may wait for ever
CASES = ("[sanitize]pumpkin*", "[sanitize]synthetic nodes*", "*merged chains and dominance*", "[sanitize]key orders*",
         "*and draws its candidates*", "[sanitize]an op of every*")

# Removals that are known to change nothing, with the reason. An entry has a part of the kernel's name, a file, and the
# end of a text of four source lines; the last of these lines is the barrier, or a call of the function with the
# barrier.
KNOWN = (
    ("", "machine.cuh", "__syncthreads();  // all threads must have read the result before the storage is used again",
     "Whoever writes to this storage next comes to another barrier first, or alone reads what it overwrites."),
    ("", "lanes.h", "T combine_below(T value, T none, const Op& op, T* of_row, T& all) const { team_.sync();",
     "A thread overwrites only what it alone has read since the last barrier."),
    ("Filter", "machine.cuh",
     "__syncwarp();  // shuffles synchronise registers only, so writes to memory need this call",
     "The lanes exchange nothing in memory."),
    ("CheckGuards", "machine.cuh",
     "__syncwarp();  // shuffles synchronise registers only, so writes to memory need this call",
     "The lanes exchange nothing in memory."),
    ("SmallSynthetic", "synthetic.h",
     "team.sync();  // waits for all reads, because an output may take over an input's storage",
     "The reduction before it has barriers behind all reads."),
    ("JoinChunks", "reductions.h", "slots[W * S * kSlots] = count; } team.sync();",
     "The tensors of these tests have one chunk, so nothing is joined."),
    ("EvaluateOrders", "simulator_kernels.h", "outcomes.put(c, outcome); team.sync();",
     "The launch has more lanes than there are candidates, so the loop makes one pass."),
    ("EvaluateKeys", "simulator_kernels.h", "all_done = all_done && done; team.sync();",
     "Each lane evaluates one candidate, so the loop makes one pass."),
    ("EvaluateKeys", "bucket_lanes.h", "team().sync();  // the next round writes what other threads may still read",
     "The rounds of these tests end here."),
    ("DrawSchedules", "simulator_kernels.h", "length[c] = drawn; } team.sync();",
     "The launch has more teams than there are candidates, so the loop makes one pass."),
    ("DrawSchedules", "random_order.h", "order[j] = v; } } team.sync();",
     "The moves come to a barrier before they read the order."),
    ("DrawSchedules", "random_order.h", "fetch_or(&space.chosen[edge / 32], 1U << edge % 32); } } team.sync();",
     "The chosen edges are read behind the next barrier."),
    ("DrawSchedules", "random_order.h", "graph.predecessors[e]; }); team.sync();",
     "The barrier at the end of the pass follows."),
)


def run(program, case, variables):
    """Runs a test case with additional environment variables. Returns whether the case passes, and whether a thread
    reached the removed instruction."""
    try:
        done = subprocess.run([program, case], capture_output=True, text=True, timeout=LONGEST,
                              env={**os.environ, "CAIRN_REQUIRE_DEVICE": "1", **variables})
        return done.returncode == 0, "the dropped instruction was reached" in done.stderr
    except subprocess.TimeoutExpired:
        return False, True


def instructions_of_cases(program):
    """Returns {instruction: test cases} for all barriers and fences: the cases whose kernels contain the instruction.
    Exits if a case fails without any removal, or has no such instruction."""
    cases = {}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "waits"
        for case in CASES:
            passes, _ = run(program, case, {"CAIRN_PTX_WAITS": str(path)})
            found = path.read_text().splitlines() if path.exists() else []
            if not passes or not found:
                print(f"'{case}' fails as it is, or launches no kernel with a barrier", file=sys.stderr)
                sys.exit(1)
            for instruction in found:
                cases.setdefault(instruction, []).append(case)
            path.unlink()
    return cases


def source_texts(instruction):
    """Returns (file, text) for each source line that the description of an instruction names. The text consists of this
    line and the three lines before it."""
    texts = []
    for name, number in re.findall(r"(\S+):(\d+)", instruction.rpartition(" of ")[0]):
        for folder in FOLDERS:
            for path in (ROOT / folder).rglob(name):
                lines = path.read_text().splitlines()[max(0, int(number) - 4):int(number)]
                texts.append((name, " ".join(line.strip() for line in lines)))
    return texts


def is_known(instruction):
    kernel = instruction.rpartition(" of ")[2]
    texts = source_texts(instruction)
    return any(part in kernel and any(name == file and text.endswith(words) for name, text in texts)
               for part, file, words, _ in KNOWN)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build" / "default"), metavar="DIR")
    parser.add_argument("--count", type=int, metavar="N", help="removes N instructions, chosen at random; default all")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="chooses the N instructions; default 1")
    given = parser.parse_args()
    program = pathlib.Path(given.build).resolve() / "tests" / "test_ptx_cuda"
    if not program.is_file():
        print(f"skipped: '{program}' is not there; build the target test_ptx_cuda with CUDA")
        return 0
    start = time.monotonic()
    cases = instructions_of_cases(program)
    chosen = sorted(cases)
    if given.count is not None:
        chosen = random.Random(given.seed).sample(chosen, min(given.count, len(chosen)))
    unreached, noticed, of_cub, known, missed = [], [], [], [], []
    for instruction in chosen:
        results = []
        for case in cases[instruction]:
            results.append(run(program, case, {"CAIRN_PTX_DROP": instruction}))
            if not results[-1][0]:
                break
        if not results[-1][0]:
            noticed.append(instruction)
        elif not any(reached for _, reached in results):
            unreached.append(instruction)
        elif "3cub" in instruction:
            of_cub.append(instruction)
        else:
            (known if is_known(instruction) else missed).append(instruction)
    for instruction in missed:
        print(f"not noticed: {instruction[:300]}")
    print(f"{len(chosen)} of {len(cases)} barriers and fences removed: {len(unreached)} were never reached, "
          f"{len(noticed)} noticed, {len(of_cub)} not noticed in CUB's kernels, {len(known)} known to change nothing, "
          f"{len(missed)} not noticed; {time.monotonic() - start:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
