#!/usr/bin/env python3
"""Compares the schedules that two builds of cairn find, for all solvers that need no engine, because a refactoring must
not change them.

usage: same_schedules.py BEFORE AFTER [--graphs N] [--work W] [--data FOLDER] [--jobs J]

BEFORE and AFTER are two `cairn` binaries. They solve N random graphs and every graph file under FOLDER, with the work
limit W instead of a time limit, so that their schedules do not depend on the speed of the machine. J solves run at the
same time. Prints each difference with both peaks and costs, then a summary. The exit code is 1 if any schedule of AFTER
is worse.
"""

import argparse
import concurrent.futures
import json
import pathlib
import random
import subprocess
import sys
import tempfile

SOLVERS = ["auto", "tw", "greedy", "chen", "order", "sp", "pumpkin", "in-tree", "out-tree", "exact", "exact-remat", "rotor",
           "pw", "none"]
BUDGETS = [None, "70%"]


def random_graph(seed):
    """Returns a random graph of 5 to 150 nodes, in which every node reads at most one node if `seed` is a multiple of
    3. Some values are kept, some nodes have scratch, and some sizes are equal."""
    rng = random.Random(seed)
    count = rng.randint(5, 40) if seed % 2 else rng.randint(20, 150)
    tree = seed % 3 == 0
    nodes = []
    for v in range(count):
        first = max(0, v - rng.randint(2, 30))
        most = 1 if tree else 3
        inputs = sorted(rng.sample(range(first, v), min(v - first, rng.randint(1, most)))) if v else []
        nodes.append({"name": f"n{v}", "size": rng.choice([0, 8, 64, rng.randint(1, 1000)]),
                      "cost": rng.randint(0, 50), "scratch": rng.choice([0, 0, rng.randint(0, 200)]),
                      "keep": rng.random() < 0.05, "inputs": inputs})
    return {"format": "cairn.graph", "version": 1, "name": f"random-{seed}", "nodes": nodes}


def solve(binary, graph, solver, budget, work):
    """Runs a solver and returns (status, steps, peak, cost) of its answer. After an error, `steps` is the first line of
    the error message."""
    with tempfile.NamedTemporaryFile(suffix=".json") as schedule:
        command = [binary, "solve", graph, "--solver", solver, "--work-limit", str(work), "--json", "-o", schedule.name]
        if budget:
            command += ["--budget", budget]
        run = subprocess.run(command, capture_output=True, text=True, env={"OMP_NUM_THREADS": "1"})
        try:
            told = json.loads(run.stdout)
        except ValueError:
            return "error", run.stderr.splitlines()[:1], 0, 0
        text = pathlib.Path(schedule.name).read_text() if run.returncode == 0 else ""
        steps = json.loads(text)["steps"] if text else None
        return told.get("status", "error"), steps, told.get("peak_bytes"), told.get("cost")


def worse(budget, before, after):
    """Returns whether the answer `after` is worse than the answer `before`. It is worse if only `after` has no
    schedule, or if it has a higher cost (with a budget) or a higher peak (without a budget)."""
    if (before[1] is None) != (after[1] is None):
        return after[1] is None
    if before[2] is None or after[2] is None:
        return False
    key = (lambda r: (r[3], r[2])) if budget else (lambda r: (r[2], r[3]))
    return key(after) > key(before)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--graphs", type=int, default=500)
    parser.add_argument("--work", type=int, default=300_000)
    parser.add_argument("--data")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        graphs = []
        for seed in range(arguments.graphs):
            path = pathlib.Path(folder) / f"{seed}.json"
            path.write_text(json.dumps(random_graph(seed)))
            graphs.append(str(path))
        if arguments.data:
            found = sorted(p for p in pathlib.Path(arguments.data).rglob("*") if p.suffix in {".json", ".log"})
            graphs += [str(p) for p in found]
        tasks = [(g, s, b) for g in graphs for s in SOLVERS for b in BUDGETS]
        different = lost = 0

        def compare(task):
            graph, solver, budget = task
            return task, *(solve(b, graph, solver, budget, arguments.work) for b in (arguments.before, arguments.after))

        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for (graph, solver, budget), before, after in pool.map(compare, tasks):
                if before[:2] == after[:2]:
                    continue
                different += 1
                lost += worse(budget, before, after)
                print(f"{pathlib.Path(graph).name} {solver} {budget}: {before[0]} {before[2:]} -> {after[0]} {after[2:]}"
                      f"{' WORSE' if worse(budget, before, after) else ''}", flush=True)
        print(f"{len(tasks)} solves of {len(graphs)} graphs: {different} differ, {lost} of them worse")
        return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
