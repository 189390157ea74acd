#!/usr/bin/env python3
"""Prints a Markdown table of makespans: recomputation alone, transfers alone, and both.

usage: offload_table.py CAIRN [--least] [--budgets 80%,60%,40%,30%] [--links 12GB/s,25GB/s,50GB/s,450GB/s]
                        [--time-limit 10s] GRAPH...

CAIRN is the built command. A GRAPH is a file or the name of a model with its options, such as "gpt2 --batch 8". Every
number is the increase of the makespan over the input order's cost, in percent. "-" means that no schedule was found. The
last column is the proved lower bound of the column "both".

With --least, the table has the least budgets that were found instead: with recomputation alone, and with transfers
over each link. A cell has the budget in percent of the baseline and, in parentheses, the increase of the makespan in
percent.
"""
import argparse
import os
import shlex

from table_rows import print_head, print_row, run


def increase(cairn, graph, options):
    """Returns the increase of the makespan over the input order's cost, and the proved lower bound of this increase,
    both in percent. Returns None if no schedule was found."""
    code, answer = run([cairn, "solve", *shlex.split(graph), *options, "--json"])
    if code != 0:
        return None
    baseline = answer["baseline_cost"]
    percent = lambda cost: 100 * (cost - baseline) / baseline
    return percent(answer["cost"]), percent(answer["lower_bound_cost"])


def least(cairn, graph, options):
    code, answer = run([cairn, "solve", *shlex.split(graph), "--budget", "min", *options, "--json"])
    if code != 0:
        return None
    share = 100 * answer["planned_bytes"] / answer["hundred_percent_bytes"]
    return f"{share:.1f}% ({100 * answer['cost'] / answer['baseline_cost'] - 100:+.1f})"


def print_least(args):
    links = args.links.split(",")
    print_head(["graph", "recompute", *links])
    for graph in args.graphs:
        limit = ["--time-limit", args.time_limit]
        print_row([os.path.basename(graph), least(args.cairn, graph, limit),
                   *(least(args.cairn, graph, [*limit, "--link", link]) for link in links)])


def text(result, part=0):
    return "-" if result is None else f"{result[part]:+.2f}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("cairn")
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--budgets", default="80%,60%,40%,30%")
    parser.add_argument("--links", default="12GB/s,25GB/s,50GB/s,450GB/s")
    parser.add_argument("--time-limit", default="10s")
    parser.add_argument("--least", action="store_true")
    args = parser.parse_args()
    if args.least:
        print_least(args)
        return
    print_head(["graph", "budget", "recompute", "link", "offload", "both", "bound"])
    for graph in args.graphs:
        name = os.path.basename(graph)
        for budget in args.budgets.split(","):
            limit = ["--budget", budget, "--time-limit", args.time_limit]
            alone = increase(args.cairn, graph, limit)
            for link in args.links.split(","):
                linked = limit + ["--link", link]
                moved = increase(args.cairn, graph, linked + ["--max-occurrences", "1"])
                both = increase(args.cairn, graph, linked)
                print_row([name, budget, text(alone), link, text(moved), text(both), text(both, 1)])


if __name__ == "__main__":
    main()
