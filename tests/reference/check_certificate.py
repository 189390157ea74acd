#!/usr/bin/env python3
"""Checks a certificate of `cairn solve --certificate`, without any code of Cairn. docs/remat/certificate.md has the proof.

usage: check_certificate.py CERTIFICATE.json
"""
import itertools
import json
import sys

# A price is a cost per byte (see any_below). Prices are rounded down to multiples of 1/UNIT, so that all sums are whole
# numbers.
UNIT = 2**60


class Refused(Exception):
    """Raised if the certificate proves nothing."""


def need(holds, text):
    if not holds:
        raise Refused(text)


def whole(value, least=0):
    """Returns `value`, but refuses the certificate unless it is a whole number of at least `least`."""
    need(type(value) is int and value >= least, f"{value!r} is not a whole number of at least {least}")
    return value


class Graph:
    def __init__(self, graph):
        nodes = graph["nodes"]
        outputs = [n.get("outputs") or [{"size": n.get("size", 0), "keep": n.get("keep", False)}] for n in nodes]
        values = {(v, i): x for x, (v, i) in enumerate((v, i) for v in range(len(nodes)) for i in range(len(outputs[v])))}
        self.producer = [v for v, _ in values]
        self.size = [outputs[v][i].get("size", 0) for v, i in values]
        self.kept = [outputs[v][i].get("keep", False) for v, i in values]
        self.outputs = [[values[v, i] for i in range(len(outputs[v]))] for v in range(len(nodes))]
        self.inputs = [sorted({values[u, 0] if isinstance(u, int) else values[tuple(u)] for u in n["inputs"]}) for n in nodes]
        self.cost = [n["cost"] for n in nodes]
        self.pinned = [n.get("pin", False) for n in nodes]
        self.scratch = [n.get("scratch", 0) for n in nodes]
        for number in (*self.size, *self.cost):
            whole(number)
        for number in self.scratch:
            whole(number, -2**62)
        self.order = graph.get("order") or list(range(len(nodes)))
        need(sorted(self.order) == list(range(len(nodes))), "the order does not have each node once")
        self.rank = {v: i for i, v in enumerate(self.order)}
        self.readers = [[] for _ in self.size]
        for v, x in ((v, x) for v in self.order for x in self.inputs[v]):
            need(self.rank[self.producer[x]] < self.rank[v], "the order is not topological")
            self.readers[x].append(v)


def measure(graph, steps):
    """Returns the peak and the cost of a schedule. Fails if the schedule is not valid."""
    need(all(type(v) is int and 0 <= v < len(graph.cost) for v in steps), "a step is no node")
    needed, unused = {x for x, kept in enumerate(graph.kept) if kept}, []
    for v in reversed(steps):
        unused.append([x for x in graph.inputs[v] + graph.outputs[v] if x not in needed])
        needed = needed.difference(graph.outputs[v]).union(graph.inputs[v])
    need(not needed, "a value is read that was not made")
    need(all(steps.count(v) == 1 if pinned else v in steps for v, pinned in enumerate(graph.pinned)), "a node is missing or pinned")
    there, peak = set(), 0
    for v, freed in zip(steps, reversed(unused)):
        there.update(graph.outputs[v])
        peak = max(peak, sum(graph.size[x] for x in there) + graph.scratch[v])
        there.difference_update(freed)
    return peak, sum(graph.cost[v] for v in steps)


class Moments:
    """Facts that hold in every schedule that the order rule permits. A moment is the time at which one of `nodes` runs
    for the first time. Moments count from 0. Stage t is the part of a schedule between the moments t - 1 and t. See
    docs/remat/certificate.md."""

    def __init__(self, graph, nodes, rule, budget):
        self.count, self.room = len(nodes), [
            budget - graph.scratch[p] - sum(graph.size[x] for x in graph.outputs[p] + graph.inputs[p]) for p in nodes]
        sides = [self.sides(graph, p, rule) for p in nodes]
        need(all(p in before for p, (before, _) in zip(nodes, sides[1:])), "the moments are in no fixed order")
        everything = range(len(graph.cost))
        self.latest = [min([t for t, p in enumerate(nodes) if v == p or v in sides[t][0]], default=self.count) for v in everything]
        self.earliest = [max([t + 1 for t, p in enumerate(nodes) if v != p and v in sides[t][1]], default=0) for v in everything]
        self.free = [{t for t, p in enumerate(nodes) if not graph.size[x] or p in graph.readers[x] or graph.producer[x] == p}
                     for x in range(len(graph.size))]
        self.certain = [{self.earliest[w] for w in graph.readers[x] if self.earliest[w] == self.latest[w]} - {0} |
                        ({self.count} if graph.kept[x] else set()) for x in range(len(graph.size))]

    @staticmethod
    def sides(graph, p, rule):
        """Returns two sets: the nodes whose first run is before that of p in every schedule, and the nodes that never
        run before p."""
        if rule != "free":
            return set(graph.order[:graph.rank[p]]), set(graph.order[graph.rank[p]:])
        before, after = set(), {p}
        for v in graph.order:
            if any(graph.producer[x] in after for x in graph.inputs[v]):
                after.add(v)
        for v in reversed(graph.order):
            if v != p and any(w == p or w in before for x in graph.outputs[v] for w in graph.readers[x]):
                before.add(v)
        return before, after

    def held(self, x, runs, read):
        """Returns the moments at which the value x must be in memory, if its node runs in the stages `runs` and other
        nodes read x in the stages `read`. Leaves out the moments at which `room` already counts x. Returns None if some
        reader runs before x is made."""
        at = set()
        for t in read - runs:
            while t > 0 and t - 1 not in self.free[x]:
                t -= 1
                at.add(t)
                if t in runs:
                    break
            else:
                if t == 0:
                    return None
        return at


def drop_worse(labels, compared=64):
    """Removes labels. A label (cost, bytes...) holds the cost of a choice and its bytes at each moment. It is removed
    if another label is at most as large in all numbers. Compares each label only with the last `compared` kept labels.
    Returns the kept labels."""
    kept = []
    for label in sorted(labels, key=lambda label: (label[1:], label[0])):
        if not any(all(a <= b for a, b in zip(other, label)) for other in kept[-compared:]):
            kept.append(label)
    return kept


class Program:
    """All ways to choose, for each node, the stages in which it runs. Nodes are handled in the reverse of the graph's
    order, readers first. A state is a set of pairs (value, stage): a node that was already handled reads the value in
    the stage."""

    def __init__(self, graph, moments, reach):
        self.graph, self.moments, self.reach = graph, moments, reach
        self.layers, states = [], {frozenset()}
        for v in reversed(graph.order):
            self.layers.append({state: self.choices(v, state) for state in states})
            states = {after for choices in self.layers[-1].values() for _, after in choices}
        need(states <= {frozenset()}, "a value has no node")

    def choices(self, v, state):
        """Returns, for a state, all ways to choose the stages in which v runs: the label (cost, bytes...) of each way,
        with the state after it."""
        graph, moments, by_state = self.graph, self.moments, {}
        mine = {(x, t) for x, t in state if graph.producer[x] == v}
        reach = self.reach[moments.earliest[v] > 0]
        inputs = [x for x in graph.inputs[v] if graph.size[x] and graph.rank[v] - graph.rank[graph.producer[x]] <= reach]
        for n, runs in self.runs(v):
            held = [(x, moments.held(x, runs, moments.certain[x] | {t for y, t in mine if y == x})) for x in graph.outputs[v]]
            if any(at is None for _, at in held):
                continue
            label = ((n - 1) * graph.cost[v], *(sum(graph.size[x] for x, at in held if t in at) for t in range(moments.count)))
            after = state - mine | {(x, t) for x in inputs for t in runs - moments.certain[x] - {0}}
            by_state.setdefault(after, []).append(label)
        found = [(label, after) for after, labels in by_state.items() for label in drop_worse(labels)]
        return [(label, after) for label, after in found if not any(
            other != label and less < after and all(a <= b for a, b in zip(other, label)) for other, less in found)]

    def runs(self, v):
        first, last = self.moments.earliest[v], self.moments.latest[v]
        for n in range(1, 2 if self.graph.pinned[v] else self.moments.count - first + 2):
            for runs in itertools.combinations(range(first, self.moments.count + 1), n):
                if runs[0] <= last:
                    yield n, set(runs)

    def any_below(self, extra, prices):
        """Returns whether some choice fits into memory and costs less than `extra`. If `extra` is None, the cost does
        not matter. `prices` has one number for each moment: the price of a byte at this moment. A partial choice is
        discarded if its cost plus the prices of its bytes must exceed the largest permitted cost plus the price of all
        memory (`room`). No choice that fits exceeds this sum, so wrong prices only make the search slower."""
        room, cost = self.moments.room, 0 if extra is None else UNIT
        need(len(prices) == len(room) and all(type(price) in (int, float) and 0 <= price < 1e300 for price in prices),
             "a price is wrong")
        prices = [int(price * cost) for price in prices]
        most = float("inf") if extra is None else extra - 1
        priced = lambda label: cost * label[0] + sum(p * b for p, b in zip(prices, label[1:]))
        rest, rests, least = {frozenset(): 0}, [], [{frozenset(): (0,) * len(room)}]
        for layer in reversed(self.layers):  # least cost and least bytes of the choices that remain
            rests.append(rest)
            rest = {s: min((priced(c) + rest[a] for c, a in choices), default=float("inf")) for s, choices in layer.items()}
            least.append({s: tuple(min((c[1 + t] + least[-1][a][t] for c, a in choices), default=float("inf"))
                                   for t in range(len(room))) for s, choices in layer.items()})
        labels, limit = {frozenset(): [(0, *(0 for _ in room))]}, priced((most, *room)) if cost else 0
        for layer, rest, lows in zip(self.layers, reversed(rests), reversed(least[:-1])):
            new = {}
            for state, choices in layer.items():
                for (choice, after), label in itertools.product(choices, labels.get(state, ())):
                    more = tuple(map(sum, zip(choice, label)))
                    if more[0] <= most and priced(more) + rest[after] <= limit and all(
                            b + n <= r for b, n, r in zip(more[1:], lows[after], room)):
                        new.setdefault(after, []).append(more)
            labels = {state: drop_worse(found) for state, found in new.items()}
        return any(labels.values())


def check(certificate):
    """Returns a text that says what the certificate proves. Fails if it proves nothing."""
    graph, budget, cost = Graph(certificate["graph"]), certificate["budget_bytes"], certificate["least_cost"]
    rule, moments, steps = certificate["order"], certificate["moments"], certificate["steps"]
    whole(budget, -1)
    need(cost is None or whole(cost) is not None, "")
    need(rule in ("free", "input"), "the order rule is unknown")
    need(all(whole(v) < len(graph.cost) for v in moments) and all(whole(n) >= 0 for n in certificate["reach"]), "a node is unknown")
    extra = None if cost is None else cost - sum(graph.cost)
    kept = sum(size for size, kept in zip(graph.size, graph.kept) if kept)
    if extra is not None and extra > 0 or extra is None and kept <= budget:
        program = Program(graph, Moments(graph, moments, rule, budget), certificate["reach"])
        need(not program.any_below(extra, certificate["prices"]), "the bound is not proved")
    kept_order = "" if rule == "free" else " that keeps the input order"
    text = f"proved: no schedule{kept_order} within {budget} bytes" + ("" if cost is None else f" costs less than {cost}")
    if steps:
        peak, found = measure(graph, steps)
        need(rule == "free" or list(dict.fromkeys(steps)) == graph.order, "the schedule does not keep the input order")
        need(peak > budget or cost is not None and found >= cost, "the schedule contradicts the bound")
        best = ", so that it is optimal" if peak <= budget and found == cost else ""
        text += f"; the schedule costs {found} and needs {peak} bytes{best}"
    return text


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            print(check(json.load(file)))
    except (Refused, ValueError, TypeError, KeyError, LookupError) as error:
        sys.exit(f"not proved: {error}")
