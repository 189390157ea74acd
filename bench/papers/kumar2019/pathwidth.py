#!/usr/bin/env python3
"""PWRemat against TWRemat on long chains with skips: lengths, peaks, and the exponents of their growth.

usage: pathwidth.py --program PATH [--folds 2,3,4,5] [--nodes 100,...,100000] [--percent 60] [--from FILE] [--save FILE]

PATH is the built cairn_pathwidth. Its graphs are chains that run there and back over their columns, so many folds in all;
each node reads the one before it and, with that chance, its column in every earlier fold: the pathwidth is the number of
folds, while in the chain's own order half of the values are in memory at once. Sizes and costs are 1, so that a length is
a cost and a peak a number of values.

"k = 1" is the recursion to its end, with all its steps. "Equal memory" is M, the larger of the two peaks with k = 1: of
each, the shortest schedule within M over k = 1, 4, 8, 16, ..., of TWRemat also the recursion by bytes; then that
schedule with values kept wherever they fit below M. Algorithm 3 literally (with the repairs that make it valid) is
slow, and shown for small graphs. Exponents are least squares over n >= 1000: length / n ~ (log n)^a, and ~ n^b.
--save keeps the program's lines of JSON, --from reads them instead of running it.
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
    """Returns the slope of the least-squares line through the points."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


def exponents(rows, key):
    """Returns (a, b) for length / n ~ (log n)^a and length / n ~ n^b; None for fewer than three graphs."""
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
