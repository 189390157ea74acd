#!/usr/bin/env python3
"""Compares certificates of `cairn solve --certificate` with the true optimum of small random graphs.

usage: certificate_test.py CAIRN [--count N] [--seed S]
"""
import argparse
import heapq
import itertools
import json
import os
import random
import subprocess
import tempfile

import check_certificate


def random_graph(rng):
    """Returns a random graph of up to 7 nodes."""
    nodes = []
    for v in range(rng.randint(2, 7)):
        inputs = sorted(rng.sample(range(v), min(v, rng.choice([0, 1, 1, 2, 2, 3]))))
        inputs = [[u, rng.randrange(len(nodes[u]["outputs"]))] for u in inputs]
        outputs = [{"size": rng.choice([0, *range(1, 10)]), "keep": rng.random() < 0.15} for _ in range(rng.choice([1, 1, 1, 2]))]
        nodes.append({"cost": rng.choice([0, *range(1, 10)]), "scratch": rng.choice([0, 0, 0, 3]), "inputs": inputs,
                      "pin": rng.random() < 0.1, "outputs": outputs})
    return nodes


def training_graph(rng):
    """Returns the training graph of a chain of up to 5 layers."""
    layers = rng.randint(2, 5)
    nodes = [{"cost": rng.randint(1, 9), "scratch": 0, "inputs": [[v - 1, 0]] if v else [], "pin": rng.random() < 0.1,
              "outputs": [{"size": rng.randint(1, 9), "keep": False}]} for v in range(layers)]
    for v in reversed(range(layers)):
        inputs = [[len(nodes) - 1, 0]] + [[u, 0] for u in {v, v - 1} if 0 <= u < layers - 1 and rng.random() < 0.8]
        nodes.append({"cost": rng.randint(1, 9), "scratch": 0, "inputs": inputs, "pin": False,
                      "outputs": [{"size": rng.randint(1, 9), "keep": rng.random() < 0.2}]})
    return nodes


def memory(nodes, there):
    return sum(nodes[v]["outputs"][i]["size"] for v, i in there)


def baseline_peak(nodes):
    there, peak = set(), 0
    for v, node in enumerate(nodes):
        there |= {(v, i) for i in range(len(node["outputs"]))}
        peak = max(peak, memory(nodes, there) + node["scratch"])
        later = {tuple(x) for node in nodes[v + 1:] for x in node["inputs"]}
        there = {x for x in there if x in later or nodes[x[0]]["outputs"][x[1]]["keep"]}
    return peak


def least_cost(nodes, budget, in_order):
    """Returns the least cost of a schedule within the budget, or None if no schedule fits. It is the length of a
    shortest path. A state is the set of nodes that have run and the set of values in memory. An edge runs a node or
    drops a value."""
    kept = {(v, i) for v, node in enumerate(nodes) for i, output in enumerate(node["outputs"]) if output["keep"]}
    queue, done, number = [(0, 0, frozenset(), frozenset())], set(), itertools.count(1)
    while queue:
        cost, _, ran, there = heapq.heappop(queue)
        if (ran, there) in done:
            continue
        done.add((ran, there))
        if len(ran) == len(nodes) and kept <= there:
            return cost
        found = [(cost, ran, there - {x}) for x in there]
        for v, node in enumerate(nodes):
            if (v in ran and node["pin"]) or (in_order and v not in ran and len(ran) < v):
                continue
            after = there | {(v, i) for i in range(len(node["outputs"]))}
            if all(tuple(x) in there for x in node["inputs"]) and memory(nodes, after) + node["scratch"] <= budget:
                found.append((cost + node["cost"], ran | {v}, after))
        for more, ran_then, there_then in found:
            if (ran_then, there_then) not in done:
                heapq.heappush(queue, (more, next(number), ran_then, there_then))
    return None


def refused(certificate, **changes):
    try:
        check_certificate.check({**certificate, **changes})
    except check_certificate.Refused:
        return True
    return False


class Test:
    def __init__(self, cairn, folder):
        self.cairn, self.graph, self.file = cairn, os.path.join(folder, "g.json"), os.path.join(folder, "c.json")
        self.counts = dict.fromkeys(("infeasible", "optimal", "above the sum", "below the optimum", "limits of cost"), 0)

    def solve(self, *options):
        """Runs `cairn solve` with these options, and returns its output and the certificate."""
        command = [self.cairn, "solve", self.graph, *map(str, options), "--json", "--time-limit", "2s", "--certificate", self.file]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "CAIRN_CACHE": "/dev/null"})
        assert done.returncode in (0, 3, 4), done.stderr
        with open(self.file, encoding="utf-8") as file:
            return json.loads(done.stdout), json.load(file)

    def one(self, rng):
        nodes = rng.choice([random_graph, training_graph])(rng)
        with open(self.graph, "w", encoding="utf-8") as file:
            json.dump({"format": "cairn.graph", "version": 2, "nodes": nodes}, file)
        peak, in_order, total = baseline_peak(nodes), rng.random() < 0.3, sum(node["cost"] for node in nodes)
        if peak == 0:
            return
        budget = rng.randint(max(1, peak * rng.choice([5, 8, 9]) // 10), peak)
        options = ["--budget", budget, "--alignment", 1, "--order", "input" if in_order else "free"]
        answer, certificate = self.solve(*options, *rng.choice([[], ["--peak-only"]]))
        best, proved = least_cost(nodes, budget, in_order), certificate["least_cost"]
        check_certificate.check(certificate)
        assert certificate["budget_bytes"] == budget
        if proved is None:
            assert best is None
            assert refused(certificate, budget_bytes=peak)
            self.counts["infeasible"] += 1
            return
        assert best is None or proved <= best
        self.counts["optimal"] += proved == best
        self.counts["above the sum"] += proved > total
        self.counts["below the optimum"] += best is not None and proved < best
        if proved > total:
            assert refused(certificate, budget_bytes=peak), "within the baseline's peak, the sum of all costs suffices"
            if proved == best:
                for price in (*certificate["prices"], 0.0, 1e9, -1.0, -1e-9, float("nan"), float("inf")):
                    prices = [price] * len(certificate["prices"])
                    assert refused(certificate, least_cost=proved + 1, prices=prices)
                assert refused(certificate, least_cost=proved + 0.5)
                assert refused(certificate, least_cost=proved + 1, reach=[0, 0])
                assert refused(certificate, least_cost=proved + 1)
        graph = certificate["graph"]
        assert refused(certificate, graph={**graph, "order": [0, *range(len(nodes))]})
        assert refused(certificate, graph={**graph, "order": [-1, *range(len(nodes) - 1)]})
        assert refused(certificate, graph={**graph, "nodes": [{**node, "cost": -1} for node in graph["nodes"]]})
        if certificate["steps"]:
            assert refused(certificate, steps=[*certificate["steps"], -1])
            assert refused(certificate, steps=[v for v in certificate["steps"] if v != certificate["steps"][0]])
            assert answer["certificate"]["least_cost"] == proved
        if best is not None and not in_order:
            self.limit_of_cost(nodes, rng.randint(total, best + 1))

    def limit_of_cost(self, nodes, most):
        """Checks a certificate that bounds the least peak of the schedules that cost at most `most`."""
        answer, certificate = self.solve("--max-cost", most, "--alignment", 1)
        check_certificate.check(certificate)
        best = least_cost(nodes, certificate["budget_bytes"], False)
        if answer["certificate"]["proves_bound"]:
            assert best is None or best > most
            assert certificate["least_cost"] is None or certificate["least_cost"] > most
            self.counts["limits of cost"] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cairn")
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        test = Test(os.path.abspath(arguments.cairn), folder)
        for k in range(arguments.count):
            try:
                test.one(random.Random(arguments.seed + k))
            except (AssertionError, check_certificate.Refused):
                print(f"seed {arguments.seed + k}")
                raise
    print(arguments.count, "graphs;", ", ".join(f"{name}: {count}" for name, count in test.counts.items()))
    assert all(count > arguments.count // 40 for name, count in test.counts.items() if name != "below the optimum")


if __name__ == "__main__":
    main()
