#!/usr/bin/env python3
"""Finds schedules whose plan needs more bytes than max-live, which is the largest number of bytes that are live at the
same time.

usage: plan_table.py CAIRN [--data DIR] [--time-limit 2s] [--models a,b] [--plan-time-limit 5s] [--all]

The solvers `none`, `tw` and `auto` solve every model and every graph file below DIR, with budgets of 100, 70, 50 and
35% of the baseline's peak. They also solve random layered graphs of 100 and 250 nodes with 80 and 60%. Each schedule is
planned with alignment 1, and schedules of models also with alignment 256.

Prints a Markdown row for each plan that needs more than max-live, and for each plan with alignment 1 that exceeds the
budget. With --all, prints a row for every plan. The last line counts the plans.
"""
import argparse
import json
import os
import random
import sys
import tempfile
import time

from table_rows import graph_name, need, print_head, print_row, run

SOLVERS = ["none", "tw", "auto"]
BUDGETS = ["100%", "70%", "50%", "35%"]
LAYERED_BUDGETS = ["80%", "60%"]
COLUMNS = ["graph", "solver", "budget", "alignment", "steps", "max-live", "planned", "gap", "bound", "within budget",
           "seconds"]


def random_layered(path, nodes, width, seed):
    """Writes a random graph with layers of `width` nodes. A node reads one to four nodes of earlier layers, mostly of
    the previous layer."""
    rng = random.Random(seed)
    made = []
    for v in range(nodes):
        layer = v // width
        inputs = set()
        for _ in range(rng.randint(1, 4) if layer else 0):
            source = layer - 1 if rng.random() < 0.75 else rng.randrange(layer)
            inputs.add(source * width + rng.randrange(width))
        made.append({"name": str(v), "size": rng.randint(1, 1 << 20), "cost": rng.randint(1, 1000),
                     "inputs": sorted(inputs)})
    with open(path, "w") as out:
        json.dump({"format": "cairn.graph", "version": 1, "name": f"layered_n{nodes}_{seed}", "nodes": made}, out)


class Table:
    def __init__(self, args, scratch):
        self.args = args
        self.schedule = os.path.join(scratch, "s.json")
        self.plans = self.at_max_live = self.proved = self.over_budget = self.unsolved = 0
        self.worst = 0.0
        self.seconds = 0.0
        print_head(COLUMNS)

    def add(self, graph, budgets, alignments):
        for solver in SOLVERS:
            for budget in budgets:
                command = [self.args.cairn, "solve", graph, "--solver", solver, "--budget", budget, "--json"]
                code, solved = run(command + ["--time-limit", self.args.time_limit, "-o", self.schedule])
                if code != 0:
                    if code not in (3, 4):
                        sys.exit(f"{' '.join(command)}: {solved['error']}")
                    self.unsolved += 1
                    continue
                for alignment in alignments:
                    self.plan(graph, solver, budget, solved, alignment)

    def plan(self, graph, solver, budget, solved, alignment):
        command = [self.args.cairn, "plan", graph, self.schedule, "--alignment", str(alignment), "--json"]
        if self.args.plan_time_limit:
            command += ["--time-limit", self.args.plan_time_limit]
        start = time.monotonic()
        plan = need(command)
        seconds = time.monotonic() - start
        planned = plan["planned_bytes"]
        bound = plan["proved_bytes"]
        max_live = plan["lower_bound_bytes"]
        gap = 100 * (planned - max_live) / max(1, max_live)
        fits = planned <= solved["budget_bytes"]
        self.plans += 1
        self.at_max_live += planned == max_live
        self.proved += planned == bound != max_live
        # Only plans with alignment 1 are counted, because with a larger alignment the rounding of sizes alone can bring
        # a plan above the budget.
        self.over_budget += alignment == 1 and not fits
        self.worst = max(self.worst, gap)
        self.seconds = max(self.seconds, seconds)
        if planned != max_live or (alignment == 1 and not fits) or self.args.all:
            proof = "reached: least" if planned == bound else f"{100 * (bound - max_live) / max(1, max_live):.3f}%"
            print_row([graph_name(graph), solver, budget, alignment, solved["steps"], max_live, planned, f"{gap:.3f}%",
                       proof, "yes" if fits else "NO", f"{seconds:.2f}"])

    def summary(self):
        above = self.plans - self.at_max_live
        print(f"\n{self.plans} plans: {self.at_max_live} at max-live, {above} above it, {self.proved} of these proved "
              f"least; {self.over_budget} over the budget at alignment 1; the worst gap is {self.worst:.3f}%, the "
              f"slowest plan took {self.seconds:.2f} s; {self.unsolved} times no schedule within the budget")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("cairn")
    parser.add_argument("--data", metavar="DIR", help="graph files, at any depth")
    parser.add_argument("--models", help="those instead of all, comma between; '' for none")
    parser.add_argument("--time-limit", default="2s", help="of each solver")
    parser.add_argument("--plan-time-limit", help="of each plan")
    parser.add_argument("--all", action="store_true", help="a row for every plan")
    args = parser.parse_args()
    models = [m["name"] for m in need([args.cairn, "models", "--json"])["models"]]
    if args.models is not None:
        models = [m for m in args.models.split(",") if m]
    with tempfile.TemporaryDirectory() as scratch:
        table = Table(args, scratch)
        for model in models:
            table.add(model, BUDGETS, [1, 256])
        for folder, folders, files in os.walk(args.data) if args.data else []:
            folders.sort()
            for name in sorted(files):
                path = os.path.join(folder, name)
                if not name.endswith((".json", ".log")):
                    continue
                table.add(path, LAYERED_BUDGETS if name.startswith("random_layered") else BUDGETS, [1])
        for nodes, width in ((100, 10), (250, 20)):
            for seed in range(3):
                path = os.path.join(scratch, f"layered_n{nodes}_{seed}.json")
                random_layered(path, nodes, width, seed)
                table.add(path, LAYERED_BUDGETS, [1])
        table.summary()


if __name__ == "__main__":
    main()
