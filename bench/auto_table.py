#!/usr/bin/env python3
"""Prints Markdown tables about the solver `auto`: its costs on graphs, and whether it keeps time limits.

usage: auto_table.py compare BUILD... [options]   compares builds; one row for each graph and budget
       auto_table.py rivals BUILD [options]       compares `auto` with the best of all other solvers, with equal time
       auto_table.py limits BUILD [options]       shows by how much solves exceed their time limits
       auto_table.py repeats BUILD [options]      checks that runs with one seed and work limit return one schedule

A BUILD is a `cairn` command, or a file that an earlier run wrote with --save. For a file, the table shows the saved
measurements. A graph is a file, or a model with its options ("gpt2 --layers 2 --granularity op"). --budgets and
--time-limit apply to all graphs. GRAPH@80%,60% gives a graph its own budgets, and GRAPH@80%,60%@20s also its own time
limit.

Columns:
  cost      increase over the baseline's cost in percent, as the median over the seeds; the number after +- is the
            difference between the largest and the smallest cost
  gap       cost above the proved lower bound on the cost, in percent
  best s    seconds until the returned schedule was found, as the command reports them
  solve s   seconds of the whole search, as the command reports them

Every schedule is also read by `cairn plan`, which rejects invalid schedules.
"""
import argparse
import hashlib
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

from table_rows import graph_name, print_head, print_row

RIVALS = ["tw", "pw", "greedy", "chen", "exact-remat", "moccasin", "rotor", "hiremate", "checkmate", "checkmate-lp",
          "order"]
ZOO = ["ffn", "resnet50", "unet", "mlp-mixer", "transformer", "gpt2"]


def split_case(text, budgets, limit):
    """Returns (graph, budgets, time limit) for a text of the form GRAPH, GRAPH@BUDGETS or GRAPH@BUDGETS@LIMIT.
    `budgets` and `limit` are the defaults if the text does not contain them."""
    graph, *own = text.split("@")
    return graph, (own[0] if own else budgets).split(","), own[1] if len(own) > 1 else limit


def seconds_of(limit):
    for unit, factor in (("ms", 1e-3), ("s", 1), ("m", 60)):
        if limit.endswith(unit):
            return float(limit.removesuffix(unit)) * factor
    return float(limit)


class Build:
    """A `cairn` command, or a file with measurements that an earlier run of this script has saved."""

    def __init__(self, path, save=None):
        self.path, self.known, self.save = path, {}, save
        self.measured_before = not os.access(path, os.X_OK)
        if self.measured_before:
            for line in pathlib.Path(path).read_text().splitlines():
                entry = json.loads(line)
                self.known[tuple(entry["case"])] = entry["answer"]
        else:
            self.path = os.path.abspath(path)

    def solve(self, graph, solver, budget, limit, seed, order, extra):
        case = (graph_name(graph), solver, budget, limit, seed, order, extra)
        if case not in self.known:
            self.known[case] = None if self.measured_before else self.run(graph, *case[1:])
            if self.save and self.known[case]:
                with open(self.save, "a") as file:
                    file.write(json.dumps({"case": case, "answer": self.known[case]}) + "\n")
        return self.known[case]

    def run(self, graph, solver, budget, limit, seed, order, extra):
        with tempfile.TemporaryDirectory() as folder:
            schedule = os.path.join(folder, "s.json")
            command = [self.path, "solve", *shlex.split(graph), "--solver", solver, "--time-limit", limit, "--seed",
                       str(seed), "--json", "-o", schedule, *shlex.split(extra)]
            command += ["--budget", budget] if budget != "none" else []
            command += ["--order", "input"] if order == "fixed" else []  # the name of "fixed" in older builds
            begin = time.monotonic()
            answer, error = self.json_of(command)
            wall = time.monotonic() - begin
            if answer is None or "status" not in answer:
                return {"status": "refused", "error": error or answer["error"]}
            keys = ["nodes", "edges", "status", "cost", "baseline_cost", "lower_bound_cost", "peak_bytes",
                    "baseline_peak_bytes", "planned_bytes", "best_seconds", "solve_seconds", "steps"]
            short = {key: answer.get(key) for key in keys} | {"wall_seconds": wall}
            if answer.get("steps") and os.path.exists(schedule):
                checked, error = self.json_of([self.path, "plan", *shlex.split(graph), schedule, "--json",
                                               "--time-limit", "1s"])
                steps = json.loads(pathlib.Path(schedule).read_text())["steps"]
                short["digest"] = hashlib.sha256(json.dumps(steps).encode()).hexdigest()[:12]
                short["valid"] = bool(checked) and all(checked.get(k) == answer[k] for k in ("cost", "peak_bytes"))
            return short

    @staticmethod
    def json_of(command):
        done = subprocess.run(command, capture_output=True, text=True)
        try:
            return json.loads(done.stdout), None
        except json.JSONDecodeError:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            return None, lines[0]


def found(answer):
    return bool(answer and answer.get("steps") and answer["status"] not in ("infeasible", "not_found"))


def increase(answer):
    return 100 * (answer["cost"] / answer["baseline_cost"] - 1)


def gap(answer):
    bound = answer.get("lower_bound_cost") or answer["baseline_cost"]
    return 100 * (answer["cost"] / bound - 1)


def middle(values):
    return statistics.median(values) if values else None


def summary(answers):
    """Returns the cells of one build in a row of the table: cost, status, gap, seconds until the best schedule was
    found, and seconds of the search. `answers` are the build's answers, one for each seed."""
    answers = [a for a in answers if a]
    if not answers:
        return ["-"] * 5
    good = [a for a in answers if found(a)]
    states = [a["status"] for a in answers]
    status = ", ".join(f"{states.count(s)} {s}" if len(set(states)) > 1 else s for s in dict.fromkeys(states))
    if any(a.get("valid") is False for a in good):
        status += " INVALID"
    if not good:
        return ["none", status, "", "", f"{middle([a.get('solve_seconds') or 0 for a in answers]):.2f}"]
    costs = [increase(a) for a in good]
    spread = f" +- {max(costs) - min(costs):.2f}" if len(costs) > 1 else ""
    return [f"{middle(costs):.2f}%{spread}", status, f"{middle([gap(a) for a in good]):.2f}%",
            f"{middle([a['best_seconds'] for a in good]):.2f}", f"{middle([a['solve_seconds'] for a in good]):.2f}"]


def compare(args):
    builds = [Build(path, args.save) for path in args.builds]
    labels = args.labels.split(",") if args.labels else [f"build {i + 1}" for i in range(len(builds))]
    print_head(["graph", "budget", "limit", *[f"{label}: {cell}" for label in labels
                                              for cell in ("cost", "status", "gap", "best s", "solve s")]])
    for graph, budgets, limit in cases(args):
        for budget in budgets:
            cells = [graph_name(graph), budget, limit]
            for build in builds:
                cells += summary([build.solve(graph, args.solver, budget, limit, seed, args.order, args.extra)
                                  for seed in range(args.first_seed, args.first_seed + args.seeds)])
            print_row(cells)


def rivals(args):
    build = Build(args.builds[0], args.save)
    other_build = Build(args.others) if args.others else build
    print_head(["graph", "budget", "limit", "auto", "status", "gap", "best s", "best other", "by",
                "auto is better by, points"])
    lost = 0
    for graph, budgets, limit in cases(args):
        for budget in budgets:
            seeds = range(args.first_seed, args.first_seed + args.seeds)
            auto = [build.solve(graph, "auto", budget, limit, seed, args.order, args.extra) for seed in seeds]
            others = {}
            for solver in args.solvers.split(","):
                answer = other_build.solve(graph, solver, budget, limit, args.first_seed, args.order, args.extra)
                if found(answer):
                    others[solver] = increase(answer)
            by = min(others, key=others.get, default=None)
            own = [increase(a) for a in auto if found(a)]
            better = ""
            if by and own:
                # Two percentages of equal costs can differ in the last bit, so a difference below 1e-9 does not count.
                difference = others[by] - middle(own)
                better = f"{difference:.2f}"
                lost += difference < -1e-9
            elif by:
                better, lost = "lost", lost + 1
            cells = summary(auto)
            print_row([graph_name(graph), budget, limit, *cells[:4], f"{others[by]:.2f}%" if by else "none", by or "",
                       better])
    print(f"\n`auto` is worse than the best of the others in {lost} of the rows.")


def limits(args):
    build = Build(args.builds[0], args.save)
    print_head(["graph", "n", "m", "solver", "budget", "limit", "solve s", "wall s", "beyond 5% + 0.2 s", "status"])
    for graph, budgets, _ in cases(args):
        for budget in budgets:
            for limit in args.limits.split(","):
                for solver in args.solvers.split(","):
                    answer = build.solve(graph, solver, budget, limit, args.first_seed, args.order, args.extra)
                    if not answer or answer["status"] == "refused":
                        print_row([graph_name(graph), "", "", solver, budget, limit, "", "", "", "refused"])
                        continue
                    allowed = 1.05 * seconds_of(limit) + 0.2
                    beyond = answer["solve_seconds"] - allowed
                    print_row([graph_name(graph), answer["nodes"], answer["edges"], solver, budget, limit,
                               f"{answer['solve_seconds']:.2f}", f"{answer['wall_seconds']:.2f}",
                               f"{beyond:.2f}" if beyond > 0 else "no", answer["status"]])


def repeats(args):
    build = Build(args.builds[0])
    print_head(["graph", "budget", "work", "runs", "different schedules", "cost", "solve s"])
    for graph, budgets, limit in cases(args):
        for budget in budgets:
            extra = f"{args.extra} --work-limit {args.work}"
            answers = [build.run(graph, args.solver, budget, limit, args.first_seed, args.order, extra)
                       for _ in range(args.seeds)]
            digests = {a.get("digest", a["status"]) for a in answers}
            costs = [f"{increase(a):.2f}%" for a in answers if found(a)]
            seconds = middle([a["solve_seconds"] for a in answers])
            print_row([graph_name(graph), budget, args.work, args.seeds, len(digests),
                       ", ".join(dict.fromkeys(costs)) or "none", f"{seconds:.2f}"])


def cases(args):
    return [split_case(text, args.budgets, args.time_limit) for text in args.graphs]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["compare", "rivals", "limits", "repeats"])
    parser.add_argument("builds", nargs="+", metavar="BUILD")
    parser.add_argument("--graphs", nargs="+", default=ZOO, help="files or models (default: the models of the zoo)")
    parser.add_argument("--budgets", default="80%,60%,40%,30%", help="comma-separated; none: no budget")
    parser.add_argument("--time-limit", default="10s")
    parser.add_argument("--limits", default="100ms,1s,5s", help="of mode limits")
    parser.add_argument("--work", type=int, default=3_000_000, help="of mode repeats: the work limit")
    parser.add_argument("--seeds", type=int, default=5, help="how many; of mode repeats: runs of the first seed")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--order", choices=["free", "fixed"], default="free")
    parser.add_argument("--solver", default="auto", help="of mode compare")
    parser.add_argument("--solvers", help="of modes rivals (default: all) and limits (default: auto)")
    parser.add_argument("--others", metavar="BUILD", help="of mode rivals: what runs the other solvers (default: the same)")
    parser.add_argument("--extra", default="", help="further options of every solve, as one text")
    parser.add_argument("--labels", help="of the builds, comma-separated")
    parser.add_argument("--save", help="file that measurements are appended to, one JSON object a line")
    args = parser.parse_args()
    if args.solvers is None:
        args.solvers = "auto" if args.mode == "limits" else ",".join(RIVALS)
    {"compare": compare, "rivals": rivals, "limits": limits, "repeats": repeats}[args.mode](args)


if __name__ == "__main__":
    sys.exit(main())
