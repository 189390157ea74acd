#!/usr/bin/env python3
"""Measures how a busy machine affects `cairn run` and `cairn measure`. Each round executes them alone, then beside
processes that use the CPU in endless loops.

usage: busy_machine.py [--cairn PATH] [--spinners N] [--rounds N] [--blas FOLDER] [MODEL...]

A MODEL is a model's name with its options, as one argument: 'resnet18 --batch 4 --image 32'. --spinners is the number
of processes with endless loops. --blas is a folder with a libopenblas.so.0 that is loaded instead of the usual one.

Prints a table with the medians over the rounds:
  run       milliseconds of the baseline's step
  measure   seconds that the command takes; cost of a step that it measures; and, for the op whose cost the busy machine
            raises most, the ratio between its cost on the busy and on the idle machine
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

MODELS = ["unet", "resnet18 --batch 4 --image 32"]
SPIN = "while True: pass"


def cairn(given, words):
    environment = dict(os.environ)
    if given.blas:
        environment["LD_LIBRARY_PATH"] = f"{given.blas}:{environment.get('LD_LIBRARY_PATH', '')}"
    start = time.monotonic()
    answer = subprocess.run([given.cairn, *words, "--backend", "host", "--json"], capture_output=True, text=True,
                            env=environment)
    seconds = time.monotonic() - start
    if answer.returncode not in (0, 1):  # code 1 (outputs differ) can come from older versions with OpenMP
        sys.exit(f"busy_machine.py: {' '.join(words)} ended with {answer.returncode}: {answer.stderr.strip()}")
    return json.loads(answer.stdout), seconds


def run_once(given, model):
    answer, _ = cairn(given, ["run", *model.split(), "--budget", "100%", "--repeat", "4"])
    return answer["baseline"]["seconds"] * 1e3


def measure_once(given, model):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "g.json"
        answer, seconds = cairn(given, ["measure", *model.split(), "-o", str(path)])
        costs = {node["name"]: node["cost"] for node in json.loads(path.read_text())["nodes"]}
    return seconds, answer["baseline_cost_ns"] / 1e6, costs


class Spinners:
    def __init__(self, count):
        self.count = count

    def __enter__(self):
        self.running = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(self.count)]
        time.sleep(0.2)

    def __exit__(self, *_):
        for process in self.running:
            process.kill()
            process.wait()


def rounds(given, once):
    alone, busy = [], []
    for _ in range(given.rounds):
        alone.append(once())
        with Spinners(given.spinners):
            busy.append(once())
    return alone, busy


def row(name, unit, alone, busy):
    a, b = statistics.median(alone), statistics.median(busy)
    print(f"| {name} | {a:.3g} {unit} | {b:.3g} {unit} | {b / a:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--cairn", default="build/default/bin/cairn")
    parser.add_argument("--spinners", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--blas")
    parser.add_argument("models", nargs="*", default=MODELS)
    given = parser.parse_args()
    print(f"{given.spinners} spinning processes, {os.cpu_count()} cores, medians of {given.rounds}\n")
    print("| | alone | busy | busy / alone |\n| --- | --- | --- | --- |")
    for model in given.models:
        row(f"`run {model}`: a step", "ms", *rounds(given, lambda: run_once(given, model)))
    for model in given.models:
        alone, busy = rounds(given, lambda: measure_once(given, model))
        row(f"`measure {model}`: the command", "s", [x[0] for x in alone], [x[0] for x in busy])
        row(f"`measure {model}`: cost of a step", "ms", [x[1] for x in alone], [x[1] for x in busy])
        usual = {name: statistics.median(x[2][name] for x in alone) for name in alone[0][2]}
        worst = [max(x[2][name] / usual[name] for name in usual) for x in busy]
        print(f"| `measure {model}`: most of one op | 1 | | {statistics.median(worst):.2f} |", flush=True)


if __name__ == "__main__":
    main()
