#!/usr/bin/env python3
"""Checks three promises of the command `cairn`, and prints Markdown tables: `info`, `solve` and `run` agree about which
budgets suffice; all commands that name the least budget find the same one; and commands keep their time limits.

usage: promises.py fits CAIRN [--graphs GRAPH...] [--budgets B,...] [--time-limit T]
       promises.py least CAIRN [--graphs GRAPH...] [--time-limit T]
       promises.py limits CAIRN [--sizes N,...] [--time-limits T,...] [--commands NAME,...]

fits: Prints one row for each graph and budget. `info`, `solve` and `run` get the same budget. The row shows their exit
codes (0: a schedule fits, 3: it is proved that none fits, 4: none was found) and the bytes that `run` measured. The
commands agree if the three exit codes are equal and the measured bytes are within the budget. The budget `least` stands
for the least budget that `info` knows. For this budget, three more things are checked: `info` gives the same budget
again; `plan` accepts the schedule that `info` writes; `solve` finds a schedule within the budget in at most half a
second more than `info` took.

least: Prints one row for each graph. `solve -b min`, `solve -b min --peak-only` and `info` run with the same time limit.
The row shows the least budget that each of them found, in bytes and in percent of the baseline's peak, and whether
`solve -b` meets the lowest of the three. A row is good if `solve -b` meets the lowest budget, and if `solve -b min` and
`info` name at most 1.02 times the lowest. The commands do not know each other's answers.

limits: Prints one row for each command and limit on random layered graphs. The row shows by how many seconds of wall
time the command exceeds the limit, and whether this is at most 5% of the limit plus 0.2 s. The time for reading the
graph counts.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from table_rows import print_head, print_row

GRAPHS = ["ffn", "unet", "resnet18 --image 64", "resnet50 --batch 2 --image 32", "mlp-mixer --layers 2 --image 64",
          "transformer --layers 2 --width 64 --seq 32", "gpt2 --layers 2 --width 64 --heads 2 --seq 64 --vocab 500",
          "gpt2 --layers 1 --width 32 --heads 2 --seq 16 --vocab 100 --granularity op",
          "generate random --nodes 60 --edges 150 --in-place 0.3 --keep 0.1 --seed 1",
          "generate random --nodes 200 --edges 500 --seed 2",
          "generate random-layered --nodes 100 --seed 1", "generate random-layered --nodes 250 --seed 1"]


class Cairn:
    def __init__(self, path):
        self.path = os.path.abspath(path)

    def run(self, *words):
        """Runs `cairn` with the given words and --json. Returns (exit code, JSON answer, seconds of wall time)."""
        begin = time.monotonic()
        done = subprocess.run([self.path, *words, "--json"], capture_output=True, text=True)
        wall = time.monotonic() - begin
        try:
            return done.returncode, json.loads(done.stdout), wall
        except json.JSONDecodeError:
            return done.returncode, {"error": done.stderr.strip()}, wall

    def graph(self, text, folder):
        """Returns the words by which commands name the graph. If `text` begins with "generate", first writes the
        generated graph to a file."""
        words = text.split()
        if words[0] != "generate":
            return words
        file = os.path.join(folder, text.replace(" ", "_").replace("generate_", "") + ".json")
        if not os.path.exists(file):
            subprocess.run([self.path, *words, "-o", file, "-q"], check=True)
        return [file]


def finish(columns, rows, good, word):
    """Prints the table, and how many of its rows are good. Returns the script's exit code: 0 if all rows are good, else
    1."""
    print_head(columns)
    for row in rows:
        print_row(row)
    print(f"\n{good} of {len(rows)} {word}")
    return 0 if good == len(rows) else 1


def judge(cairn, graph, name, budget, limit, least, folder):
    alignment = ["--alignment", str(least["alignment"])]
    asked = str(least["least_feasible_bytes"]) if budget == "least" else budget
    options = ["-b", asked, "-t", limit, *alignment]
    info, told, info_s = cairn.run("info", *graph, *options)
    solve, solved, solve_s = cairn.run("solve", *graph, *options)
    run, ran, _ = cairn.run("run", *graph, *options, "--backend", "host")
    measured = ran.get("scheduled", {}).get("measured_peak_bytes")
    bytes_asked = told.get("budget_bytes")
    known = measured is not None and bytes_asked is not None  # an answer that failed has no figures
    kept = run != 0 or (known and measured <= bytes_asked)
    agree = info == solve == run and info in (0, 3, 4) and kept
    note = ""
    if budget == "least":
        schedule, plan = os.path.join(folder, "w.json"), os.path.join(folder, "p.json")
        for path in schedule, plan:
            pathlib.Path(path).unlink(missing_ok=True)  # removes the file of the previous graph
        _, again, again_s = cairn.run("info", *graph, "-t", limit, *alignment, "--witness", schedule, "--witness-plan", plan)
        same = again.get("least_feasible_bytes") == least["least_feasible_bytes"]
        _, planned, _ = cairn.run("plan", *graph, schedule, *alignment)
        written = json.loads(pathlib.Path(plan).read_text()) if os.path.exists(plan) else {}
        reached = written.get("bytes", float("inf")) <= least["least_feasible_bytes"]
        first = cairn.run("solve", *graph, "-b", asked, "-t", f"{max(again_s, least['wall']) + 0.5:.2f}s", *alignment)
        note = f"same again: {same}; witness reached: {reached and 'planned_bytes' in planned}; " \
               f"solve in info's {max(again_s, least['wall']):.1f} s: {first[0] == 0}"
        agree = agree and solve == 0 and same and reached and first[0] == 0
    cost = solved.get("cost_increase_pct")
    return agree, [name, budget, bytes_asked, info, solve, run, "-" if measured is None else measured,
                   "-" if cost is None else f"{cost:+.2f}%", "yes" if agree else "NO", note]


def fits(arguments):
    cairn = Cairn(arguments.cairn)
    rows, good = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for text in arguments.graphs:
            graph = cairn.graph(text, folder)
            _, least, wall = cairn.run("info", *graph, "-t", arguments.time_limit)
            if "least_feasible_bytes" not in least:
                sys.exit(f"promises: {text}: {least.get('error')}")
            least["wall"] = wall
            for budget in arguments.budgets.split(","):
                agree, row = judge(cairn, graph, text.removeprefix("generate "), budget, arguments.time_limit, least, folder)
                good += agree
                rows.append(row)
                print(" ".join(map(str, row)), file=sys.stderr, flush=True)
    columns = ["graph", "budget", "bytes", "info", "solve", "run", "measured bytes", "cost", "agree", ""]
    return finish(columns, rows, good, "agree")


LEAST = {"solve -b min": ["solve", "-b", "min"], "--peak-only": ["solve", "-b", "min", "--peak-only"], "info": ["info"]}


def least(arguments):
    cairn = Cairn(arguments.cairn)
    rows, good = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for text in arguments.graphs:
            graph = cairn.graph(text, folder)
            found, baseline = {}, None
            for name, words in LEAST.items():
                _, told, _ = cairn.run(*words[:1], *graph, *words[1:], "-t", arguments.time_limit)
                if "least_feasible_bytes" not in told:
                    sys.exit(f"promises: {text}: {told.get('error')}")
                baseline = told["hundred_percent_bytes"]
                found[name] = min(told["least_feasible_bytes"], told.get("planned_bytes", told["least_feasible_bytes"]))
            lowest = min(found.values())
            code, _, _ = cairn.run("solve", *graph, "-b", str(lowest), "-t", arguments.time_limit)
            kept = code == 0 and max(found["solve -b min"], found["info"]) <= 1.02 * lowest
            good += kept
            rows.append([os.path.basename(text.removeprefix("generate ")),
                         *(f"{size} ({100 * size / baseline:.2f}%)" for size in found.values()),
                         f"{100 * lowest / baseline:.2f}%", "met" if code == 0 else code, "yes" if kept else "NO"])
            print(" ".join(map(str, rows[-1])), file=sys.stderr, flush=True)
    return finish(["graph", *LEAST, "lowest", "solve -b lowest", "kept"], rows, good, "kept")


COMMANDS = {
    "info": ["info"],
    "info -b 80%": ["info", "-b", "80%"],
    "solve": ["solve"],
    "solve -b 80%": ["solve", "-b", "80%"],
    "solve -b min": ["solve", "-b", "min"],
    "solve -b 1": ["solve", "-b", "1"],
    "solve -s tw": ["solve", "-s", "tw"],
    "solve -s greedy -b 80%": ["solve", "-s", "greedy", "-b", "80%"],
    "pareto": ["pareto"],
    "run -b 80%": ["run", "-b", "80%", "--backend", "host"],
    "simulate": ["simulate", "--random", "1000000000", "--backend", "host"],
    "plan": ["plan"],
}


def limits(arguments):
    cairn = Cairn(arguments.cairn)
    rows, good = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for size in arguments.sizes.split(","):
            graph = cairn.graph(f"generate random-layered --nodes {size} --seed 1", folder)
            schedule = os.path.join(folder, "s.json")
            cairn.run("solve", *graph, "-s", "none", "-t", "1s", "-o", schedule)
            for name in arguments.commands.split(",") if arguments.commands else COMMANDS:
                for limit in arguments.time_limits.split(","):
                    words = [*COMMANDS[name][:1], *graph, *([schedule] if name == "plan" else []), *COMMANDS[name][1:]]
                    code, _, wall = cairn.run(*words, "-t", limit)
                    seconds = float(limit.removesuffix("s"))
                    allowed = 0.05 * seconds + 0.2
                    kept = wall - seconds <= allowed
                    good += kept
                    rows.append([size, name, limit, f"{wall:.2f}", f"{wall - seconds:+.2f}", f"{allowed:.2f}",
                                 "yes" if kept else "NO", code])
                    print(" ".join(map(str, rows[-1])), file=sys.stderr, flush=True)
    columns = ["nodes", "command", "limit", "seconds", "beyond", "allowed", "kept", "exit code"]
    return finish(columns, rows, good, "kept")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    one = modes.add_parser("fits")
    one.add_argument("cairn")
    one.add_argument("--graphs", nargs="+", default=GRAPHS, help="files, models with options, or 'generate ...'")
    one.add_argument("--budgets", default="90%,60%,40%,25%,least")
    one.add_argument("--time-limit", default="5s")
    one.set_defaults(act=fits)
    three = modes.add_parser("least")
    three.add_argument("cairn")
    three.add_argument("--graphs", nargs="+", default=GRAPHS, help="as those of fits")
    three.add_argument("--time-limit", default="10s")
    three.set_defaults(act=least)
    two = modes.add_parser("limits")
    two.add_argument("cairn")
    two.add_argument("--sizes", default="1000,10000,100000")
    two.add_argument("--time-limits", default="3s,10s")
    two.add_argument("--commands", default="")
    two.set_defaults(act=limits)
    arguments = parser.parse_args()
    return arguments.act(arguments)


if __name__ == "__main__":
    sys.exit(main())
