#!/usr/bin/env python3
"""Measures the time that Cairn adds to training in PyTorch.

usage: overhead.py [--model MODEL] [--starts N] [--rounds N] [--json FILE] [--markdown FILE]

Three cases are measured. The model is a GPT of 24 layers unless --model names another one.
  first start    The cache is empty. The seconds of each part are those that cairn.torch.last_report() gives.
  second start   A new process finds the schedule and the measured operations of the first start in the cache. Such
                 starts alternate with starts of torch.compile(backend="aot_eager"). The time of a start is that from
                 torch.compile to the end of the first step.
  equal peak     A step whose budget is the peak that the model has with torch.utils.checkpoint around every block. Such
                 steps alternate with steps of torch.utils.checkpoint.
Starts are given in seconds of wall time and of CPU time, because other programs disturb CPU time less.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import models
import rows
import table

AS_GRAPH, CACHED = "aot_eager", "cairn"


def start(model, backend, budget, time_limit, threads, answer):
    """Measures one start, i.e. the time from torch.compile to the end of the first step, and writes the result to the
    file `answer`. Must run in a process of its own."""
    torch = table.set_up(threads)
    if backend == CACHED:
        import cairn.torch
    case = models.build(model)
    torch.manual_seed(7)
    wall, cpu = time.perf_counter(), time.process_time()
    chosen = cairn.torch.backend(budget, time_limit=time_limit, fallback=False) if backend == CACHED else backend
    compiled = torch.compile(case.model, backend=chosen)
    loss = compiled(*case.inputs)
    loss.backward()
    result = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu, "loss": loss.item()}
    if backend == CACHED:
        result["cairn"] = table.described(cairn.torch.last_report())
        wall = time.perf_counter()
        # The profiler recorded the first step. It records this later step, too, so that the times of the two steps are
        # comparable.
        cairn.torch.measure_peak(lambda: compiled(*case.inputs).backward())
        result["recorded_step_s"] = time.perf_counter() - wall
    rows.write(pathlib.Path(answer), result)


def ask(folder, **job):
    answer = folder / "start.json"
    answer.unlink(missing_ok=True)
    job["answer"] = str(answer)
    environment = {**os.environ, "CAIRN_CACHE": str(folder / "cache")}
    done = subprocess.run([sys.executable, __file__, "--child", json.dumps(job)], env=environment, capture_output=True,
                          text=True, timeout=600)
    if not answer.exists():
        raise SystemExit(f"{job['backend']}: {(done.stderr.strip().splitlines() or ['no output'])[-1]}")
    return json.loads(answer.read_text())


def measure(given, tell):
    data = {"machine": table.machine(given.threads), "model": given.model, "budget": given.budget}
    job = {"model": given.model, "budget": given.budget, "time_limit": given.time_limit, "threads": given.threads}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data["plain"] = ask(folder, **job, backend=AS_GRAPH)
        tell(f"aot_eager: {data['plain']['wall_s']:.1f} s")
        data["first"] = ask(folder, **job, backend=CACHED)
        tell(f"first: {data['first']['wall_s']:.1f} s, {data['first']['cairn']['graphs'][0]['seconds']}")
        starts = {AS_GRAPH: [], CACHED: []}
        for i in range(given.starts):
            for backend in (AS_GRAPH, CACHED) if i % 2 else (CACHED, AS_GRAPH):
                starts[backend].append(ask(folder, **job, backend=backend))
                tell(f"{backend}: {starts[backend][-1]['wall_s']:.2f} s, {starts[backend][-1]['cpu_s']:.2f} s of CPU")
        data["starts"] = starts
        if given.rounds:
            options = argparse.Namespace(inductor=False, modes=["checkpoint", rows.AS_CHECKPOINT], rounds=given.rounds,
                                         seconds=given.seconds, timeout=600, time_limit=given.time_limit,
                                         threads=given.threads, device="cpu")
            data["equal_peak"] = table.measure_model(given.model, options, folder / "cache", tell)
    return data


def ratio(data, what):
    """Returns the median of a ratio over all pairs of starts. The ratio is the figure `what` of a start with a cache,
    divided by the same figure of the aot_eager start that was measured directly before or after it."""
    return statistics.median(c[what] / p[what] for c, p in zip(data["starts"][CACHED], data["starts"][AS_GRAPH]))


def markdown(data):
    first, graph = data["first"], data["first"]["cairn"]["graphs"][0]
    parts = graph["seconds"]
    tracing = first["wall_s"] - sum(parts.values())
    lines = [f"{data['model']}, {graph['operations']:,} operations, {data['budget']} of the peak; torch "
             f"{data['machine']['torch']}, {rows.threads(data['machine'])}, {data['machine']['cpu']}.", "",
             "| first start | wall s | CPU s |", "| --- | ---: | ---: |"]
    lines += [f"| {part} | {seconds:.2f} | |" for part, seconds in parts.items()]
    step = first["recorded_step_s"]
    lines += [f"| torch's tracing | {tracing - step:.2f} | |",
              f"| tracing, solving and rewriting | {first['wall_s'] - step:.2f} | |",
              f"| a step, recorded as the first is | {step:.2f} | |",
              f"| all | {first['wall_s']:.2f} | {first['cpu_s']:.2f} |",
              f"| aot_eager, for comparison | {data['plain']['wall_s']:.2f} | {data['plain']['cpu_s']:.2f} |", ""]
    if data["starts"][CACHED]:
        median = {b: {w: statistics.median(s[w] for s in starts) for w in ("wall_s", "cpu_s")}
                  for b, starts in data["starts"].items()}
        lines += ["| second start | wall s | CPU s |", "| --- | ---: | ---: |",
                  *(f"| {b} | {m['wall_s']:.2f} | {m['cpu_s']:.2f} |" for b, m in median.items()),
                  f"| ratio, median of {len(data['starts'][CACHED])} turns | {ratio(data, 'wall_s'):.2f} | "
                  f"{ratio(data, 'cpu_s'):.2f} |", ""]
    steps = data.get("equal_peak", {})
    if steps:
        lines += ["| step | peak MiB | step over eager | over checkpoint | right |", "| --- | ---: | ---: | ---: | --- |"]
        base = steps["checkpoint"].get("step_over_eager")
        for mode, row in steps.items():
            if "failed" in row:
                lines.append(f"| {rows.title(mode)} | | | | {row['failed']} |")
                continue
            over = row.get("step_over_eager")
            lines.append(f"| {rows.title(mode)} | {rows.mib(row['peak_bytes'])} | {'' if over is None else f'{over:.2f}'} | "
                         f"{'' if over is None or base is None else f'{over / base:.2f}'} | "
                         f"{rows.right(row, mode)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="overhead.py", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="gpt-24", choices=list(models.MODELS), metavar="MODEL", help="default gpt-24")
    parser.add_argument("--budget", default="50%", help="default 50%%")
    parser.add_argument("--starts", type=int, default=5, metavar="N", help="second starts of each; default 5")
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="timed steps at equal peak; 0: none; default 15")
    parser.add_argument("--seconds", type=float, default=90, metavar="S", help="no new round after this many; default 90")
    parser.add_argument("--time-limit", type=float, default=10, metavar="S", help="of each of Cairn's searches; default 10")
    parser.add_argument("--threads", type=int, metavar="N", help="of torch; default: torch's")
    rows.add_files(parser)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return start(**json.loads(given.child))
    data = measure(given, lambda text: print(text, file=sys.stderr, flush=True))
    rows.write_files(given, data, markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
