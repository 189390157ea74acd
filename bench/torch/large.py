#!/usr/bin/env python3
"""Computes which budgets suffice for a model that is larger than this machine, and what they cost. Uses fake tensors,
which have no memory, and needs no GPU.

usage: large.py [--json FILE] [--markdown FILE] [options]

  large.py                                            8 billion parameters at 8,192 tokens, as Llama 3
  large.py --layers 4 --width 512 --heads 8 --key-heads 2 --hidden 1408 --vocabulary 1000 --tokens 256

cairn.torch.graph traces the training step of one sequence in bfloat16: forward and backward pass, without an optimizer.
Costs are estimates for the device: the larger of the times for arithmetic and for memory accesses (a roofline). The
scratch of kernels is not known and not included.
"""

import argparse
import sys
import time

import models
from rows import add_files, write_files
from table import machine


def timed(function):
    begin = time.perf_counter()
    return function(), time.perf_counter() - begin


def measure(given):
    import cairn
    import cairn.torch
    import torch
    with torch.device("meta"):
        model, build_s = timed(lambda: models.Llama(given.layers, given.width, given.heads, given.key_heads, given.hidden,
                                                    given.vocabulary).to(torch.bfloat16))
        tokens = torch.empty(given.batch, given.tokens, dtype=torch.int64)
    cpu = time.process_time()
    graph, trace_s = timed(lambda: cairn.torch.graph(model, (tokens, tokens), device=given.device))
    trace_cpu_s = time.process_time() - cpu
    baseline = graph.baseline
    data = {
        "machine": machine(), "device": given.device,
        "model": {n: getattr(given, n) for n in ("layers", "width", "heads", "key_heads", "hidden", "vocabulary", "batch",
                                                 "tokens")},
        "parameters": sum(p.numel() for p in model.parameters()), "build_s": build_s, "trace_s": trace_s,
        "trace_cpu_s": trace_cpu_s,
        "nodes": graph.node_count, "values": graph.value_count, "edges": graph.edge_count,
        "resident_bytes": graph.resident_bytes, "residents": [[r.name, r.bytes, str(r.kind)] for r in graph.residents],
        "peak_bytes": baseline.peak, "cost_ns": baseline.cost, "rows": []}
    for budget in given.budgets.split(","):
        data["rows"].append(solved(graph, budget, given))
        print(line(data["rows"][-1]), file=sys.stderr, flush=True)
    if given.points:
        curve, curve_s = timed(lambda: cairn.pareto(graph, points=given.points, peak_only=True, time_limit=given.curve_limit))
        data["curve"] = {"seconds": curve_s, "lower_bound_bytes": curve.lower_bound, "least_bytes": curve.least_memory,
                         "stop": str(curve.stop), "points": [
                             {"budget_bytes": p.budget, "known": p.known, "peak_bytes": p.peak if p.known else None,
                              "cost_increase": p.cost_increase if p.known else None, "gap": p.gap if p.known else None,
                              "knee": p.knee} for p in curve.points]}
    return data


def solved(graph, budget, given):
    import cairn
    row = {"budget": budget}
    try:
        answer, row["solve_s"] = timed(lambda: cairn.solve(graph, budget, peak_only=True, time_limit=given.time_limit))
    except cairn.Error as error:
        row["failed"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return row
    row.update(peak_bytes=answer.peak, cost_increase=answer.cost_increase, recomputed=answer.recomputed, gap=answer.gap,
               status=str(answer.status), lower_bound_bytes=answer.lower_bound)
    plan, row["plan_s"] = timed(lambda: cairn.plan(graph, answer.schedule, alignment=512, time_limit=given.time_limit))
    row.update(planned_bytes=plan.bytes)
    return row


def gib(count):
    return f"{count / 2**30:.2f}"


def line(row):
    if "failed" in row:
        return f"| {row['budget']} | | | | | | {row['failed']} |"
    return (f"| {row['budget']} | {gib(row['peak_bytes'])} | {gib(row['planned_bytes'])} | "
            f"{100 * row['cost_increase']:+.1f}% | {row['recomputed']} | {row['solve_s']:.1f} | {row['plan_s']:.1f} |")


def markdown(data):
    m = data["model"]
    lines = [
        f"{data['parameters'] / 1e9:.2f} billion parameters: {m['layers']} layers of width {m['width']}, {m['heads']} heads "
        f"({m['key_heads']} of keys and values), feed-forward width {m['hidden']}, vocabulary {m['vocabulary']:,}; "
        f"{m['batch']} x {m['tokens']:,} tokens, bfloat16.",
        f"Traced in {data['trace_s']:.1f} s ({data['trace_cpu_s']:.1f} s of CPU): {data['nodes']:,} nodes, "
        f"{data['values']:,} values, {data['edges']:,} edges. Resident {gib(data['resident_bytes'])} GiB; activations, "
        f"unscheduled, {gib(data['peak_bytes'])} GiB.", "",
        "| budget | peak GiB | planned GiB | time, estimated | recomputed | solve s | plan s |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |", *map(line, data["rows"]), ""]
    curve = data.get("curve")
    if curve:
        lines += [f"The curve, in {curve['seconds']:.0f} s; no schedule is proved to need less than "
                  f"{gib(curve['lower_bound_bytes'])} GiB:", "", "| budget GiB | peak GiB | time, estimated | at most above "
                  "the least |", "| ---: | ---: | ---: | ---: |"]
        for p in curve["points"]:
            if not p["known"]:
                lines.append(f"| {gib(p['budget_bytes'])} | none found | | |")
                continue
            gap = "" if p["gap"] is None else f"{100 * p['gap']:.1f}%"
            lines.append(f"| {gib(p['budget_bytes'])}{' (knee)' if p['knee'] else ''} | {gib(p['peak_bytes'])} | "
                         f"{100 * p['cost_increase']:+.1f}% | {gap} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="large.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    sizes = {"layers": 32, "width": 4096, "heads": 32, "key-heads": 8, "hidden": 14336, "vocabulary": 128256, "batch": 1,
             "tokens": 8192}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=f"default {default}")
    parser.add_argument("--device", default="cuda", help="for which costs are estimated; default cuda")
    parser.add_argument("--budgets", default="90%,70%,50%,40%,30%,20%,min", metavar="LIST", help="default 90%%,...,20%%,min")
    parser.add_argument("--points", type=int, default=12, metavar="N", help="of the curve; 0: no curve; default 12")
    parser.add_argument("--time-limit", type=float, default=30, metavar="S", help="of each search and plan; default 30")
    parser.add_argument("--curve-limit", type=float, default=120, metavar="S", help="of the curve; default 120")
    add_files(parser)
    given = parser.parse_args()
    data = measure(given)
    write_files(given, data, markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
