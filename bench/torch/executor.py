#!/usr/bin/env python3
"""Compares the time of a whole training step (forward, backward, optimizer) on the CPU: PyTorch in eager mode, and
Cairn's executor with and without a budget.

usage: executor.py [MODEL ...] [--threads N] [--rounds N] [--budget B] [--optimizer adamw|sgd] [--json FILE]

PyTorch and Cairn run in two processes that take turns, so that a slow phase of the machine affects both: a round is
some steps of PyTorch, some of Cairn, and some of Cairn under the budget. The table shows the median of all steps, and
the median over the rounds of Cairn's time divided by PyTorch's in the same round.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time

# The models and options that are compared.
MODELS = {
    "resnet50": {"batch": 8, "image": 64, "classes": 1000, "width": 64},
    "resnet18": {"batch": 64, "image": 32, "classes": 10, "width": 64},
    "gpt2": {"batch": 8, "seq": 128, "layers": 4, "width": 256, "heads": 8, "vocab": 1000, "dropout": 0},
    "gpt2-long": {"batch": 2, "seq": 512, "layers": 4, "width": 512, "heads": 8, "vocab": 4000, "dropout": 0},
    "unet": {"batch": 4, "image": 64, "width": 16, "depth": 4, "classes": 2},
    "transformer": {"batch": 8, "seq": 64, "layers": 2, "width": 256, "heads": 4, "ff": 1024, "vocab": 4000,
                    "dropout": 10},
    "mlp-mixer": {"batch": 8, "image": 64, "patch": 8, "layers": 4, "width": 256, "token-mlp": 128,
                  "channel-mlp": 1024, "classes": 1000},
}
STEPS = 3  # number of timed steps in a round; one more step, before them, is not timed


def kind(model):
    return model.split("-long")[0]


def torch_steps(model, given):
    import torch
    sys.path.insert(0, os.path.dirname(__file__))
    import models

    torch.set_num_threads(given.threads)
    case = models.build_cairn(kind(model), MODELS[model], "cpu", "fp32", False)
    parameters = list(case.model.parameters())
    optimizer = (torch.optim.AdamW(parameters, lr=1e-3) if given.optimizer == "adamw" else
                 torch.optim.SGD(parameters, lr=1e-3, momentum=0.9))

    def step():
        optimizer.zero_grad(set_to_none=True)
        case.model(*case.inputs, segment=0).backward()
        optimizer.step()

    return {"torch": step}


def cairn_steps(model, given):
    import cairn

    graph = cairn.models.build(kind(model), optimizer=given.optimizer,
                               **{name.replace("-", "_"): value for name, value in MODELS[model].items()})
    return {"cairn": cairn.Executor(graph, backend="host").step,
            "budget": cairn.Executor(graph, given.budget, backend="host", time_limit=10).step}


def worker(steps, model, given, pipe):
    """Runs in a process of its own. Receives names of steps through `pipe`, runs each named step a few times, and sends
    the seconds of these runs back."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:given.threads])  # also limits Cairn's threads
    known = steps(model, given)
    pipe.send(list(known))
    while (name := pipe.recv()) is not None:
        seconds = []
        for _ in range(STEPS + 1):
            begin = time.perf_counter()
            known[name]()
            seconds.append(time.perf_counter() - begin)
        pipe.send(seconds[1:])


def measure(model, given):
    context = multiprocessing.get_context("spawn")
    ways = {}
    for steps in torch_steps, cairn_steps:
        here, there = context.Pipe()
        process = context.Process(target=worker, args=(steps, model, given, there), daemon=True)
        process.start()
        there.close()
        for name in here.recv():
            ways[name] = here
    rounds = []
    for _ in range(given.rounds):
        rounds.append({})
        for name, pipe in ways.items():
            pipe.send(name)
            rounds[-1][name] = pipe.recv()
    for pipe in set(ways.values()):
        pipe.send(None)
    row = {"model": model, "options": MODELS[model]}
    for name in ways:
        row[name] = statistics.median(second for each in rounds for second in each[name])
        if name != "torch":
            row[f"{name}_ratio"] = statistics.median(
                statistics.median(each[name]) / statistics.median(each["torch"]) for each in rounds)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\nusage")[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"default: {', '.join(MODELS)}")
    parser.add_argument("--threads", type=int, default=2, help="of PyTorch and of Cairn; default 2")
    parser.add_argument("--rounds", type=int, default=7, help="default 7")
    parser.add_argument("--budget", default="60%", help="of the second way of Cairn; default 60%%")
    parser.add_argument("--optimizer", choices=("adamw", "sgd"), default="adamw")
    parser.add_argument("--json", metavar="FILE", help="file to write with every figure")
    given = parser.parse_args()
    for model in given.models:
        if model not in MODELS:
            parser.error(f"unknown model '{model}'; there are {', '.join(MODELS)}")
    rows = []
    print(f"| model | PyTorch, ms | Cairn, ms | Cairn / PyTorch | Cairn at {given.budget}, ms | / PyTorch |")
    print("| --- | --- | --- | --- | --- | --- |")
    for model in given.models or MODELS:
        row = measure(model, given)
        rows.append(row)
        print(f"| {model} | {1e3 * row['torch']:.0f} | {1e3 * row['cairn']:.0f} | {row['cairn_ratio']:.2f} | "
              f"{1e3 * row['budget']:.0f} | {row['budget_ratio']:.2f} |", flush=True)
    if given.json:
        with open(given.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
