#!/usr/bin/env python3
"""Measures a whole training step with its optimizer in three ways: without Cairn ("as it is"), with a plan up to the
gradients, and with a plan that includes the optimizer.

usage: whole_step.py [MODEL ...] [--budget B] [--optimizer adamw|sgd] [--rounds N] [--json FILE] [--markdown FILE]

A step consists of zero_grad, forward pass, loss, backward pass, and the optimizer's step. The budget of both plans is
"min", the least that is found, unless --budget gives another one. Columns:
  MiB    largest number of bytes alive during the fourth step. Gradients and temporary tensors of the optimizer count.
         Parameters, the optimizer's state and inputs do not count, nor do gradients of the third step, which are freed.
  step   time of the step divided by that of the step as it is, as the median over the rounds. The three ways alternate
         in one process.
  same   whether parameters, buffers and loss after four steps have the same bits as those of the step as it is
"""

import argparse
import gc
import json
import pathlib
import statistics
import sys
import time

import models
import rows
import table

WAYS = "eager", "step", "optimizer"  # without Cairn, planned up to the gradients, planned with the optimizer
STEPS = 4  # the last step is measured


class Way:
    def __init__(self, torch, name, model, kind, budget, time_limit):
        self.torch = torch
        case = models.build(model)
        self.model, self.inputs = case.model, case.inputs
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = (torch.optim.AdamW(parameters, lr=1e-3) if kind == "adamw" else
                          torch.optim.SGD(parameters, lr=1e-2, momentum=0.9))
        self.run, self.report = self.train, None
        if name != "eager":
            import cairn.torch
            self.run = cairn.torch.step(self.train, budget, optimizer=self.optimizer if name == "optimizer" else None,
                                        fallback=False, time_limit=time_limit)
            self.report = self.run.report

    def train(self, *inputs):
        self.optimizer.zero_grad()
        loss = self.model(*inputs)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def step(self):
        self.torch.manual_seed(7)
        return self.run(*self.inputs)

    def measured(self):
        """Runs all steps. Returns the peak of the last step in bytes, and the loss, parameters and buffers after it,
        for the comparison of the ways."""
        import cairn.torch
        for _ in range(STEPS - 1):
            self.step()
        self.optimizer.zero_grad()
        gc.collect()
        with cairn.torch.MemoryTrace() as trace:
            loss = self.step()
        state = [t.detach().clone() for t in self.model.state_dict().values()]
        return trace.peak, [loss, *state]


def measure(model, given, tell):
    torch = table.set_up(given.threads)
    ways, found, reference = {}, {}, None
    for name in WAYS:
        begin = time.monotonic()
        torch._dynamo.reset()
        way = Way(torch, name, model, given.optimizer, given.budget, given.time_limit)
        peak, state = way.measured()
        reference = reference or state
        found[name] = {"peak_bytes": peak, "same": all(torch.equal(a, b) for a, b in zip(reference, state))}
        if way.report is not None:
            graphs = way.report.graphs
            found[name].update(promised_bytes=way.report.promised, measured_bytes=way.report.measured,
                               gradient_bytes=graphs[0].resident.get("gradient", 0), updated=graphs[0].updated,
                               state_bytes=way.report.optimizer_state, graphs=len(graphs))
        ways[name] = way
        tell(f"{model:20} {name:10} {rows.mib(peak)} MiB, {'same' if found[name]['same'] else 'NOT the same'} "
             f"({time.monotonic() - begin:.0f} s)")
    # Each way runs one step untimed, because torch._dynamo.reset() has dropped its compiled code, so this step compiles
    # again.
    for way in ways.values():
        way.step()
    times = {name: [] for name in ways}
    for _ in range(given.rounds):
        for name, way in ways.items():
            begin = time.perf_counter()
            way.step()
            times[name].append(time.perf_counter() - begin)
    for name, seconds in times.items():
        if seconds:
            found[name]["step_over_eager"] = statistics.median(s / e for s, e in zip(seconds, times["eager"]))
    return found


def markdown(data):
    lines = [f"{data['optimizer']}, budget {data['budget']}; torch {data['machine']['torch']}, "
             f"{rows.threads(data['machine'])}, {data['machine']['cpu']}.", "",
             "| | gradients MiB | as it is MiB | up to the gradients MiB | step | optimizer in the plan MiB | promised | step | "
             "of as it is | same |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]
    for model, found in data["models"].items():
        eager, step, planned = (found[name] for name in WAYS)

        def ratio(row):
            return f"{row['step_over_eager']:.2f}" if "step_over_eager" in row else ""

        same = "bit for bit" if step["same"] and planned["same"] else "**no**"
        lines.append(f"| {model} | {rows.mib(step['gradient_bytes'])} | {rows.mib(eager['peak_bytes'])} | "
                     f"{rows.mib(step['peak_bytes'])} | {ratio(step)} | {rows.mib(planned['peak_bytes'])} | "
                     f"{rows.mib(planned['promised_bytes'])} | {ratio(planned)} | "
                     f"{100 * planned['peak_bytes'] / eager['peak_bytes']:.0f}% | {same} |")
    return "\n".join([*lines, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="default: gpt-6, vit, resnet50, lstm")
    parser.add_argument("--budget", default="min", help="of each way that is planned; default min")
    parser.add_argument("--optimizer", choices=("adamw", "sgd"), default="adamw")
    parser.add_argument("--rounds", type=int, default=9, metavar="N", help="timed steps of each way; default 9")
    parser.add_argument("--time-limit", type=float, default=10, metavar="S", help="of each search; default 10")
    parser.add_argument("--threads", type=int, metavar="N", help="of torch; default: torch's")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="default: the terminal")
    given = parser.parse_args()
    unknown = [name for name in given.models if name not in models.MODELS]
    if unknown:
        parser.error(f"no model is called {unknown[0]!r}; table.py --list has them")
    data = {"machine": table.machine(given.threads), "optimizer": given.optimizer, "budget": given.budget, "models": {}}
    for model in given.models or ("gpt-6", "vit", "resnet50", "lstm"):
        data["models"][model] = measure(model, given, lambda text: print(text, file=sys.stderr, flush=True))
        if given.json:
            given.json.write_text(json.dumps(data))
        text = markdown(data)
        if given.markdown:
            given.markdown.write_text(text)
    if not given.markdown:
        print(text)


if __name__ == "__main__":
    main()
