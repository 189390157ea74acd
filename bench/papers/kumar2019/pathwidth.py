#!/usr/bin/env python3
"""Compares the schedules of PWRemat and TWRemat on long chains: lengths, peaks, and how fast the lengths grow.

usage: pathwidth.py --program PATH [--folds 2,3,4,5] [--nodes 100,...,100000] [--percent 60] [--from FILE] [--save FILE]

PATH is the built cairn_pathwidth, which makes the graphs. --save stores the lines of JSON that it prints. --from reads
such a file instead of running the program.

A graph is a chain that runs back and forth over a row of columns. One pass over the columns is a fold. Each node reads
the node before it. It also reads the node of its column in every earlier fold, with the probability --percent. So the
pathwidth is the number of folds. In the chain's own order, half of the values are in memory at the same time. Sizes and
costs are 1, so the cost of a schedule is its length, and its peak is a number of values.

Columns:
  k = 1       the schedule of the complete recursion, with all of its steps
  M           the larger of PWRemat's peak and TWRemat's peak with k = 1
  within M    the shortest schedule with a peak of at most M, among those for k = 1, 4, 8, 16, ...; for TWRemat, also
              among those of a recursion in which a call runs all of its nodes at once if they fit into the free memory
  cleaned up  the schedule "within M" after values were kept in memory, instead of computed again, wherever M allows it
  literally   Algorithm 3 of the paper as it is printed, with the repairs that make its schedules valid; only for small
              graphs, because it is slow

The second table fits length / n ~ (log n)^a and length / n ~ n^b by least squares, over graphs with about 1000 nodes or
more.
"""
import argparse
import json
import math
import subprocess
import sys


def measure(args):
    if args.input:
        with open(args.input, encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines)
        return
    for nodes in args.nodes:
        for folds in args.folds:
            command = [args.program, str(folds), str(nodes), str(args.percent)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
            yield json.loads(done.stdout)


def slope(points):
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


def exponents(rows, key):
    """Returns the exponents (a, b) of the fits length / n ~ (log n)^a and length / n ~ n^b. Returns None if there are
    fewer than three graphs with about 1000 or more nodes n."""
    points = [(row["nodes"], row[key][0] / row["nodes"]) for row in rows if row["nodes"] >= 990 and row[key]]
    if len(points) < 3:
        return None
    return (slope([(math.log(math.log(n)), math.log(y)) for n, y in points]),
            slope([(math.log(n), math.log(y)) for n, y in points]))


def cell(row, key):
    return "" if row[key] is None else f"{row[key][0] / row['nodes']:.2f}"


def table(titles, rows):
    print("| " + " | ".join(titles) + " |")
    print("| " + " | ".join("---" for _ in titles) + " |")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    whole_numbers = lambda text: [int(number) for number in text.split(",")]  # noqa: E731
    parser.add_argument("--program")
    parser.add_argument("--folds", type=whole_numbers, default=[2, 3, 4, 5])
    parser.add_argument("--nodes", type=whole_numbers, default=[100, 300, 1000, 3000, 10000, 30000, 100000])
    parser.add_argument("--percent", type=int, default=60)
    parser.add_argument("--from", dest="input", metavar="FILE")
    parser.add_argument("--save", metavar="FILE")
    args = parser.parse_args()
    if not args.program and not args.input:
        parser.error("--program or --from is needed")

    rows = []
    for row in measure(args):
        rows.append(row)
        if args.save:
            with open(args.save, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    rows.sort(key=lambda row: (row["folds"], row["nodes"]))

    cells = []
    for row in rows:
        shorter = min(("pw", "tw"), key=lambda name: row[f"{name}_equal"][0])
        cells.append([
            str(row["folds"]), str(row["pathwidth"]), f"{row['nodes']:,}", f"{row['baseline_peak']:,}",
            f"{cell(row, 'pw')}, {row['pw'][1]}", f"{cell(row, 'tw')}, {row['tw'][1]}", cell(row, "literal"),
            f"{row['peak']}", cell(row, "pw_equal"), cell(row, "tw_equal"), cell(row, "pw_clean"),
            cell(row, "tw_clean"), shorter, f"{row['pw_seconds']:.2f}, {row['tw_seconds']:.2f}"])
    table(["folds", "pathwidth", "n", "NoRemat's peak", "PWRemat k = 1: length / n, peak", "TWRemat k = 1",
           "Algorithm 3, literally", "M", "within M: PWRemat", "TWRemat", "cleaned up: PWRemat", "TWRemat", "shorter in M",
           "s for k = 1"], cells)

    fits = []
    for folds in sorted({row["folds"] for row in rows}):
        mine = [row for row in rows if row["folds"] == folds]
        for name, key in (("PWRemat", "pw"), ("TWRemat", "tw"), ("PWRemat within M", "pw_equal"),
                          ("TWRemat within M", "tw_equal")):
            found = exponents(mine, key)
            if found:
                fits.append([str(folds), name, f"{found[0]:.2f}", f"{found[1]:.3f}"])
    table(["folds", "schedule", "a: (log n)^a", "b: n^b"], fits)


if __name__ == "__main__":
    main()
