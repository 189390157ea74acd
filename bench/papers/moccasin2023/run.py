#!/usr/bin/env python3
"""Reproduces Tables 2 and 3 of MOCCASIN (Bartan et al. 2023) for the graphs that are published, with the published
numbers beside Cairn's.

usage: run.py --cairn PATH --data DIR [--time-limit 120s] [--threads 2] [--c 2] [--only G1,G2,CM1]

PATH is the built command. DIR holds the graphs that were published with the paper: random_layered_n100..json (G1), n250
(G2) and fcn_8 train (CM1). The solver `moccasin` keeps the order of the file (--order input) and runs each node at most
C times (--c). Budgets are 90 and 80% of the baseline's peak. Columns:
  TDI       increase of the total duration over the baseline's, in percent
  time      seconds until the best schedule was found; those of the paper were measured on 16 cores

`cairn plan` reads every schedule and rejects invalid ones.
"""
import argparse
import glob
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from table_rows import print_head, print_row, run  # noqa: E402

GRAPHS = {
    "G1": ("RL G1", "random_layered_n100_*.json"),
    "G2": ("RL G2", "random_layered_n250_*.json"),
    "CM1": ("CM 1", "fcn_8_*_train*.json"),
}
# Rows of the paper's Table 3, for each graph. A row has the budget; MOCCASIN's TDI (increase of the total duration) in
# percent, its peak and its seconds; and the TDI and seconds of Checkmate's integer program, solved by Gurobi.
PUBLISHED = {
    "G1": [("90%", "0.8", "40,820", "9.3", "0.8", "18.5"), ("80%", "2.3", "36,810", "9.5", "2.3", "22.7")],
    "G2": [("90%", "0.9", "131,831", "55.0", "0.9", "685.1"), ("80%", "4.9", "117,400", "639.5", "-", "-")],
    "CM1": [("90%", "0.0", "11.1 GB", "3.1", "0.0", "6.3"), ("80%", "0.1", "9.9 GB", "3.1", "0.1", "5.6")],
}
COLUMNS = ["graph", "n, m", "budget", "paper: TDI %", "peak", "time (s)", "Checkmate: TDI %", "time (s)", "ours: TDI %",
           "peak", "time (s)", "solve (s)", "status", "duration proved (%)"]


def peak_text(peak):
    return f"{peak / 1e9:.1f} GB" if peak >= 10**9 else f"{peak:,}"


def row(args, name, path, published, schedule):
    budget, tdi, peak, seconds, checkmate_tdi, checkmate_seconds = published
    command = [args.cairn, "solve", path, "--solver", "moccasin", "--order", "input", "--budget", budget, "--peak-only",
               "--option", f"c={args.c}", "--option", f"threads={args.threads}", "--time-limit", args.time_limit,
               "--json", "-o", schedule]
    code, answer = run(command)
    cells = [name, f"{answer['nodes']}, {answer['edges']}", f"{budget}: {peak_text(answer['budget_bytes'])}", tdi, peak,
             seconds, checkmate_tdi, checkmate_seconds]
    if code != 0:
        return cells + ["-", "-", "-", f"{answer['solve_seconds']:.1f}", answer["status"], "-"]
    if run([args.cairn, "plan", path, schedule, "--json"])[0] != 0:
        sys.exit(f"{path}: the schedule is not valid")
    base = answer["baseline_cost"]
    proved = 100 * (answer["lower_bound_cost"] - base) / base
    return cells + [f"{answer['cost_increase_pct']:.2f}", peak_text(answer["peak_bytes"]),
                    f"{answer['best_seconds']:.2f}", f"{answer['solve_seconds']:.1f}", answer["status"],
                    f">= {proved:.2f}"]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("--cairn", required=True, metavar="PATH")
    parser.add_argument("--data", required=True, metavar="DIR")
    parser.add_argument("--time-limit", default="120s")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--c", type=int, default=2)
    parser.add_argument("--only", default=",".join(GRAPHS))
    args = parser.parse_args()
    print_head(COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        for key in args.only.split(","):
            if key not in GRAPHS:
                parser.error(f"there is no graph '{key}', only {', '.join(GRAPHS)}")
            name, pattern = GRAPHS[key]
            paths = glob.glob(os.path.join(args.data, pattern))
            if not paths:
                sys.exit(f"{args.data}: no file {pattern}")
            for published in PUBLISHED[key]:
                print_row(row(args, name, paths[0], published, os.path.join(folder, "s.json")))


if __name__ == "__main__":
    main()
