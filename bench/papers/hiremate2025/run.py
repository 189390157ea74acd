#!/usr/bin/env python3
"""Reproduces Tables 3 and 4(c) of HiRemate (Gusak et al. 2025) on Cairn's models, with the published numbers beside
Cairn's.

usage: run.py --cairn PATH [--table 3,4] [--time-limit 60s] [--checkmate-limit 120s] [--only gpt2-24,unet]
              [--graphs FILE...]

PATH is the built command, which makes the graphs. Nodes and costs are those of Cairn's models, not of the paper's
models. Budgets are in percent of the baseline's peak; in Table 4, they are the percentages of the paper.

H-ILP is the integer program that HiRemate solves for each group of nodes. Table 4 has four solvers: H-ILP alone
(`hiremate --option others=0`), `hiremate`, `rotor` and `auto`. For each of them, it shows the time of a step in percent
of the baseline's, the seconds until the best schedule was found, and the seconds until the solver ended. The last
column is the highest lower bound on the time that any of them proved.

Table 3 compares H-ILP alone and `hiremate` with `checkmate`, on graphs that are small enough for `checkmate`.
--graphs adds graph files to Table 3.

`cairn plan` reads every schedule and rejects invalid ones.
"""
import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from table_rows import print_head, print_row, run  # noqa: E402

# Table 4(c) of the paper. The entry of a model has options of `cairn model`; the paper's memory and predicted time,
# both in percent of the baseline's; and the minutes that solving took in the paper.
TABLE4 = {
    "gpt2-24": (["gpt2", "--layers", "24"], 36.6, 122.3, 7.9),
    "gpt2-96": (["gpt2", "--layers", "96"], 47.2, 119.6, 15),
    "unet": (["unet"], 51.3, 113.5, 9),
    "mlp-mixer": (["mlp-mixer"], 53.3, 107.3, 1.5),
    "resnet101": (["resnet101"], 42.6, 115.3, 5.5),
    "transformer-6-6": (["transformer", "--layers", "6"], 46.9, 117.6, 20),
    "transformer-36-36": (["transformer", "--layers", "36"], 44.6, 118.4, 147),
}
SOLVERS4 = {"H-ILP": ["hiremate", "--option", "others=0"], "hiremate": ["hiremate"], "rotor": ["rotor"],
            "auto": ["auto"]}
# The models for Table 3. They are so small that the integer program of the whole graph can be solved.
TABLE3 = {
    "ffn": ["ffn"],
    "resnet18": ["resnet18", "--batch", "8", "--image", "64"],
    "gpt2-1": ["gpt2", "--layers", "1"],
    "gpt2-2": ["gpt2", "--layers", "2"],
    "transformer-1": ["transformer", "--layers", "1"],
    "mlp-mixer-2": ["mlp-mixer", "--layers", "2"],
    "unet-2": ["unet", "--depth", "2"],
}
BUDGETS3 = ["90%", "80%", "70%", "60%"]


def solve(args, path, solver, budget, limit, schedule):
    """Runs `cairn solve`, checks the schedule, and returns the command's answer. In the answer, `time` is the
    schedule's cost in percent of the baseline's, or None if no schedule was found."""
    command = [args.cairn, "solve", path, "--budget", budget, "--peak-only", "--time-limit", limit, "--json",
               "-o", schedule, "--solver", *solver]
    code, answer = run(command)
    answer["time"] = None
    if code == 0:
        if run([args.cairn, "plan", path, schedule, "--json"])[0] != 0:
            sys.exit(f"{path}: the schedule of {solver[0]} is not valid")
        answer["time"] = 100 + answer["cost_increase_pct"]
    return answer


def percent(value):
    return "-" if value is None else f"{value:.2f}"


def table4(args, folder):
    columns = ["model", "n", "memory %", "paper: time %", "solving (s)"]
    for name in SOLVERS4:
        columns += [f"{name}: time %", "found, ended (s)"]
    print_head(columns + ["bound: time %"])
    for name, (model, share, published, minutes) in TABLE4.items():
        if args.only and name not in args.only:
            continue
        path = os.path.join(folder, name + ".json")
        run([args.cairn, "model", *model, "-o", path, "--json"])
        cells, bound = [], 100.0
        for solver in SOLVERS4.values():
            answer = solve(args, path, solver, f"{share}%", args.time_limit, os.path.join(folder, "s.json"))
            found = "-" if answer["time"] is None else f"{answer['best_seconds']:.1f}"
            cells += [percent(answer["time"]), f"{found}, {answer['solve_seconds']:.1f}"]
            if answer.get("lower_bound_cost"):
                bound = max(bound, 100 * answer["lower_bound_cost"] / answer["baseline_cost"])
        print_row([name, answer["nodes"], share, published, f"{60 * minutes:.0f}", *cells, f"{bound:.2f}"])


def table3(args, folder):
    print_head(["graph", "n", "budget", "checkmate: time %", "status", "seconds", "H-ILP: time %", "points above",
                "seconds", "hiremate: time %", "points above"])
    paths = [(os.path.basename(path), path) for path in args.graphs]
    for name, model in TABLE3.items():
        path = os.path.join(folder, name + ".json")
        run([args.cairn, "model", *model, "-o", path, "--json"])
        paths.append((name, path))
    for name, path in paths:
        if args.only and name not in args.only:
            continue
        for budget in BUDGETS3:
            schedule = os.path.join(folder, "s.json")
            exact = solve(args, path, ["checkmate"], budget, args.checkmate_limit, schedule)
            ilp = solve(args, path, SOLVERS4["H-ILP"], budget, args.time_limit, schedule)
            best = solve(args, path, ["hiremate"], budget, args.time_limit, schedule)
            above = [percent(answer["time"] - exact["time"]) if answer["time"] and exact["time"] else "-"
                     for answer in (ilp, best)]
            print_row([name, exact["nodes"], budget, percent(exact["time"]), exact["status"],
                       f"{exact['solve_seconds']:.1f}", percent(ilp["time"]), above[0], f"{ilp['solve_seconds']:.1f}",
                       percent(best["time"]), above[1]])


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("--cairn", required=True, metavar="PATH")
    parser.add_argument("--table", default="4,3")
    parser.add_argument("--time-limit", default="60s")
    parser.add_argument("--checkmate-limit", default="120s")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--graphs", nargs="*", default=[])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for table in args.table.split(","):
            if table not in ("3", "4"):
                parser.error(f"there is no table '{table}', only 3 and 4")
            (table3 if table == "3" else table4)(args, folder)
            print()


if __name__ == "__main__":
    main()
