#!/usr/bin/env python3
"""Measures steps that consist of several graphs: with a budget for each graph, and with one budget for the whole step.

usage: several.py [MODEL ...] [--parts N] [--budgets 70,40,min] [--rounds N] [--time-limit S] [--threads N] [--markdown FILE]

Each model gets graph breaks before N - 1 of its blocks. A row of the table belongs to a budget, which is a share of the
peak of the step without a budget. Each row has three ways to run the step:
  alone     (together=False) each graph is planned alone, and its budget is a share of the largest graph's peak
  together  the graphs are planned together after the first step
  whole     the model has no graph breaks, and gets as many bytes as the step of `together`
For each way, the columns are the measured peak, the promised peak, and the time of the step divided by the time of
the step without a budget (the median over the rounds; the ways alternate in one process). "same" says whether the
loss and the gradients of all ways have the same bits as those of the graphs without a budget. Gradients of parameters
do not count in peaks. There are two exceptions, in which the measured peak is too high. If several graphs use a
parameter, such as a tied embedding, a part of its gradient exists before the gradient is complete, and counts. Memory
of code that runs outside of all graphs counts, too.
"""

import argparse
import copy
import gc
import pathlib
import statistics
import sys
import time

import models
import rows
import table

STEPS = 3  # number of steps before the measured step; the second of them compiles the graphs that are planned together


def broken(case, parts):
    """Returns a copy of the case whose model has a graph break before parts - 1 of its blocks."""
    import torch
    case = copy.deepcopy(case)
    blocks = case.blocks

    @torch._dynamo.disable
    def end_graph(module, inputs):
        pass

    for name in {blocks[len(blocks) * i // parts] for i in range(1, parts)}:
        case.model.get_submodule(name).register_forward_pre_hook(end_graph)
    return case


class Way:
    def __init__(self, case, backend):
        import torch
        torch._dynamo.reset()
        self.torch, self.model, self.inputs, self.backend = torch, copy.deepcopy(case.model), case.inputs, backend
        self.state = copy.deepcopy(self.model.state_dict())
        model = self.model
        self.call = torch.compile(lambda *inputs: model(*inputs), backend=backend)

    def step(self):
        self.torch.manual_seed(7)
        self.model.load_state_dict(self.state)
        self.model.zero_grad(set_to_none=True)
        loss = self.call(*self.inputs)
        loss.backward()
        return loss.detach()

    def measured(self):
        """Returns (peak in bytes, list of loss and gradients) of the step after the first STEPS steps."""
        import cairn.torch
        for _ in range(STEPS):
            self.step()
        self.model.zero_grad(set_to_none=True)
        gc.collect()
        with cairn.torch.MemoryTrace() as trace:
            loss = self.step()
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        return trace.at_peak({g.untyped_storage().data_ptr() for g in gradients})[0], [loss, *(g.clone() for g in gradients)]


def measure(name, given):
    """Measures one model in all ways, and returns its lines of the table."""
    torch = table.set_up(given.threads)
    import cairn.torch

    def backend(budget, **options):
        return cairn.torch.backend(budget, time_limit=given.time_limit, **options)

    whole = models.build(name)
    parts = broken(whole, given.parts)
    reference = Way(parts, "aot_eager")
    without, expected = reference.measured()
    _, expected_whole = Way(whole, "aot_eager").measured()
    lines = []
    for share in given.budgets.split(","):
        budget = share if share == "min" else f"{share}%"
        together = Way(parts, backend(budget))
        peaks = {"together": together.measured()}
        step = together.backend.report.step
        ways = {"together": together, "alone": Way(parts, backend(budget, together=False)), "whole": Way(whole, backend(step.budget))}
        cells, same = [f"{name}, {len(together.backend.report.graphs)} graphs", budget, f"{rows.mib(step.baseline)}"], True
        for way in ("alone", "together", "whole"):
            try:
                peak, values = peaks.get(way) or ways[way].measured()
            except cairn.torch.InfeasibleError:
                del ways[way]
                continue
            same &= all(map(torch.equal, values, expected_whole if way == "whole" else expected))
            peaks[way] = peak, ways[way].backend.report.promised
        torch._dynamo.reset()
        for way in (reference, *ways.values()):
            for _ in range(STEPS):
                way.step()
        times = {way: [] for way in ways}
        for _ in range(given.rounds):
            seconds = {}
            for way, one in {"reference": reference, **ways}.items():
                begin = time.perf_counter()
                one.step()
                seconds[way] = time.perf_counter() - begin
            for way in ways:
                times[way].append(seconds[way] / seconds["reference"])
        for way in ("alone", "together", "whole"):
            if way not in ways:
                cells += ["refused", ""]
                continue
            peak, promised = peaks[way]
            cells += [f"{rows.mib(peak)}, {rows.mib(promised)}", f"{statistics.median(times[way]):.2f}" if times[way] else ""]
        lines.append("| " + " | ".join([*cells, "bit for bit" if same else "**no**"]) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="default: vit, llama, moe, resnet50")
    parser.add_argument("--parts", type=int, default=4, metavar="N", help="parts of the blocks; default 4")
    parser.add_argument("--budgets", default="70,40,min", help="shares, and min; default 70,40,min")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="timed steps of each way; default 7")
    parser.add_argument("--time-limit", type=float, default=10, metavar="S", help="of each search; default 10")
    parser.add_argument("--threads", type=int, metavar="N", help="of torch; default: torch's")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="default: the terminal")
    given = parser.parse_args()
    unknown = [name for name in given.models if name not in models.MODELS]
    if unknown:
        parser.error(f"no model is called {unknown[0]!r}; table.py --list has them")
    head = ["| | budget | without a budget MiB | alone: measured, promised MiB | step | together: measured, promised | step | "
            "one graph: measured, promised | step | same |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]
    text = "\n".join([*head, *(line for name in given.models or ("vit", "llama", "moe", "resnet50") for line in measure(name, given)), ""])
    if given.markdown:
        given.markdown.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
