#!/usr/bin/env python3
"""Prints a Markdown table with the peak, the cost increase and the seconds of every solver on graph files.

usage: solvers_table.py CAIRN [--budgets 80%,50%] [--solvers a,b] [--time-limit 10s] GRAPH...

CAIRN is the built command. Every schedule is also read by `cairn plan`, which rejects invalid schedules.
"""
import argparse
import os
import tempfile

from table_rows import graph_name, print_head, print_row, run


def row(cairn, graph, solver, budget, time_limit, schedule):
    command = [cairn, "solve", graph, "--solver", solver, "--budget", budget, "--time-limit", time_limit]
    code, answer = run(command + ["--json", "-o", schedule])
    baseline = answer["baseline_peak_bytes"]
    if answer["status"] in ("infeasible", "not_found"):
        outcome = "below the bound" if answer["status"] == "infeasible" else "not found"
        least = 100 * answer["least_feasible_bytes"] / baseline
        return f"{outcome}; least known {least:.1f}%", "", "", f"{answer['solve_seconds']:.2f}"
    checked, _ = run([cairn, "plan", graph, schedule, "--json"])
    valid = "yes" if code == 0 and checked == 0 and answer["valid"] else "NO"
    peak = f"{100 * answer['peak_bytes'] / baseline:.1f}%"
    return peak, f"+{answer['cost_increase_pct']:.2f}%", valid, f"{answer['solve_seconds']:.2f}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("cairn")
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--budgets", default="80%,50%")
    parser.add_argument("--solvers", default="auto,tw,greedy,chen,none")
    parser.add_argument("--time-limit", default="10s")
    args = parser.parse_args()
    print_head(["graph", "n", "m", "budget", "solver", "peak / baseline", "cost", "valid", "seconds"])
    with tempfile.TemporaryDirectory() as folder:
        schedule = os.path.join(folder, "s.json")
        for graph in args.graphs:
            _, info = run([args.cairn, "info", graph, "--json", "--time-limit", "1s"])
            for budget in args.budgets.split(","):
                for solver in args.solvers.split(","):
                    cells = row(args.cairn, graph, solver, budget, args.time_limit, schedule)
                    print_row([graph_name(graph), info["nodes"], info["edges"], budget, solver, *cells])


if __name__ == "__main__":
    main()
