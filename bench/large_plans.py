#!/usr/bin/env python3
"""Plans the buffers of large training steps: GPT-2 with many layers, as elementary operations with an optimizer.

usage: large_plans.py CAIRN [--layers 20,48,192] [--time-limits 2s,10s] [--solve-limit 10s]

For each number of layers, three steps are planned:
  input order      the graph's own order
  several layers   an order in which operations of several layers alternate, as in a step with several streams
  50%              a schedule of `auto` with recomputation, within half of the memory
Prints a Markdown row for each step: the number of buffers, and for each time limit the seconds of planning and by how
many percent the plan is larger than max-live, the largest number of bytes that are live at the same time.
"""
import argparse
import csv
import heapq
import json
import os
import random
import tempfile

from table_rows import need, print_head, print_row

AHEAD = 500  # number of operations by which an operation may run earlier or later if several layers alternate


def buffers_of(graph, order):
    """Returns (first step, step after the last, bytes) of the buffer of every value, for an order that runs every node
    once."""
    at = {v: step for step, v in enumerate(order)}
    last = dict(at)
    for v, node in enumerate(graph["nodes"]):
        for u in node["inputs"]:
            last[u] = max(last[u], at[v])
    return [(at[v], last[v] + 1, node["size"]) for v, node in enumerate(graph["nodes"]) if node["size"]]


def alternating(graph, rng):
    """Returns a random valid order in which an operation runs at most about AHEAD steps earlier or later than in the
    graph's own order."""
    nodes = graph["nodes"]
    users, missing = [[] for _ in nodes], [len(set(node["inputs"])) for node in nodes]
    for v, node in enumerate(nodes):
        for u in set(node["inputs"]):
            users[u].append(v)
    key = [v + AHEAD * rng.random() for v in range(len(nodes))]
    ready, order = [(key[v], v) for v in range(len(nodes)) if not missing[v]], []
    heapq.heapify(ready)
    while ready:
        _, v = heapq.heappop(ready)
        order.append(v)
        for w in users[v]:
            missing[w] -= 1
            if not missing[w]:
                heapq.heappush(ready, (key[w], w))
    return order


def write(path, rows):
    with open(path, "w") as out:
        out.write("id,lower,upper,size\n")
        out.writelines(f"{i},{first},{end},{size}\n" for i, (first, end, size) in enumerate(rows))


def within_half(cairn, graph, folder, limit):
    """Returns the buffers of a schedule with recomputation that `cairn solve` finds for half of the memory."""
    schedule, planned = os.path.join(folder, "schedule.json"), os.path.join(folder, "planned.csv")
    need([cairn, "solve", graph, "--budget", "50%", "--time-limit", limit, "--json", "-o", schedule])
    need([cairn, "plan", graph, schedule, "--json", "--csv", planned])
    with open(planned) as rows:
        return [(row["lower"], row["upper"], row["size"]) for row in csv.DictReader(rows)]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("cairn")
    parser.add_argument("--layers", default="20,48,192")
    parser.add_argument("--time-limits", default="2s,10s")
    parser.add_argument("--solve-limit", default="10s")
    args = parser.parse_args()
    limits = args.time_limits.split(",")
    print_head(["layers", "step", "buffers", *[text for limit in limits for text in (f"above max-live, {limit}", "seconds")]])
    with tempfile.TemporaryDirectory() as folder:
        path, table = os.path.join(folder, "graph.json"), os.path.join(folder, "buffers.csv")
        for layers in args.layers.split(","):
            need([args.cairn, "model", "gpt2", "--layers", layers, "--granularity", "op", "--json", "-o", path])
            with open(path) as text:
                graph = json.load(text)
            steps = {
                "input order": lambda: buffers_of(graph, range(len(graph["nodes"]))),
                "several layers": lambda: buffers_of(graph, alternating(graph, random.Random(1))),
                "50%": lambda: within_half(args.cairn, path, folder, args.solve_limit),
            }
            for name, make in steps.items():
                write(table, make())
                plans = [need([args.cairn, "plan", "--buffers", table, "--time-limit", limit, "--json"]) for limit in limits]
                cells = [text for plan in plans for text in (f"{plan['gap_pct']:.4f}%", f"{plan['seconds']:.2f}")]
                print_row([layers, name, plans[0]["buffers"], *cells])


if __name__ == "__main__":
    main()
