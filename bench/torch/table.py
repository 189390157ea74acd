#!/usr/bin/env python3
"""Measures memory and time of training steps: eager, with torch.utils.checkpoint, torch's memory budget, and Cairn.

usage: table.py [MODEL ...] [--json FILE] [--markdown FILE] [options]

  table.py gpt-6 vit                                  two models, Markdown on the terminal
  table.py --json torch.json --markdown torch.md      all of them; about 2 minutes a model on 2 cores
  table.py gpt-6 --json torch.json                    measures gpt-6 again; the file's other models stay as they are
  table.py --inductor gpt-6                           rows with Inductor's kernels, too
  table.py --device cuda gpt-6                        on a GPU
  table.py --list                                     the models
"""

import argparse
import contextlib
import copy
import gc
import json
import os
import pathlib
import platform
import statistics
import sys
import tempfile
import time
import traceback
import warnings

import models
from rows import AS_CHECKPOINT, FUSED, REFERENCES, markdown, one_line, write

SHARES = ("90", "70", "50", "40", "min")
KNOB = ("1", "0.5", "0.2", "0")
ALL = [*models.MODELS, *models.MORE]

EPILOG = """\
How. Every model ends in its loss; a step is forward and backward, without an optimizer. Each row is measured in a process
of its own, of which a crash or --timeout makes a row with its reason. The first step of two from the same state and the
same seed compiles, the second is measured.
eager: no compiler. checkpoint: eager, torch.utils.checkpoint (not reentrant) around every block. AOT: AOTAutograd's graph
with eager kernels, nothing recomputed. knob b: torch._functorch.config.activation_memory_budget = b below the backend
aot_eager. Cairn: cairn.torch.backend, calibrated, with eager kernels; 70 is 70% of the peak of the graph without a budget,
at checkpoint's peak the bytes that the row checkpoint was measured to need.
With --inductor the same over Inductor, whose random numbers are its own, but for Cairn: its rows are of fused kernels
(backend(compiler="inductor")), with torch's random numbers. 100% is that graph without a budget.
Peak: the most bytes alive during the step beyond those before it, by the profiler's memory events (kernels' scratch counts),
less the gradients of parameters. Promised: what Cairn predicts.
Step: by turns in one process, all rows once a round; the median over the rounds of the time over eager's in that round.
Right: loss, gradients and buffers against AOT's bit for bit; eager and checkpoint against eager; Cairn's fused kernels
against those at 100%; the others over Inductor against Inductor without a budget, where a process may draw other random
numbers than the one before: such rows say so.
Where bits differ: the largest error of a gradient over that gradient's largest element (or over 1/1000 of the largest
element of all gradients, where that is more), or of the loss or a buffer. Above 0.1% it is called wrong.
"""


def modes(given):
    rows = ["eager", "checkpoint", "aot", *(f"knob-{b}" for b in KNOB), *(f"cairn-{s}" for s in SHARES), AS_CHECKPOINT]
    if given.inductor:
        rows += ["inductor", "inductor-checkpoint", *(f"inductor-knob-{b}" for b in KNOB[1:]), FUSED,
                 *(f"inductor-cairn-{s}" for s in SHARES)]
    return [row for row in rows if given.modes is None or row in given.modes or row in REFERENCES]


# --- Functions that run in a child process


class Way:
    """One way to run a training step of a case (a model with inputs), such as eager or with a budget. The first call of
    step() compiles the model."""

    def __init__(self, mode, case, time_limit, budget=None):
        import torch
        self.torch, self.mode, self.inputs = torch, mode, case.inputs
        self.model = copy.deepcopy(case.model)
        self.state = copy.deepcopy(self.model.state_dict())
        self.settings = contextlib.nullcontext()
        self.backend = None
        if mode.endswith("checkpoint"):
            checkpoint_blocks(self.model, case.blocks)
        self.call = self.compiled(time_limit, budget)

    def compiled(self, time_limit, budget):
        torch, model = self.torch, self.model
        if self.mode in ("eager", "checkpoint"):
            return model
        kind, *rest = self.mode.removeprefix("inductor-").split("-")
        over_inductor = self.mode.startswith("inductor")
        if kind == "aot":
            self.backend = unscheduled
        elif kind in ("inductor", "checkpoint"):
            self.backend = "inductor"
        elif kind == "knob":
            self.settings = torch._functorch.config.patch(activation_memory_budget=float(rest[0]))
            self.backend = "inductor" if over_inductor else "aot_eager"
        else:
            import cairn.torch
            budget = budget or (rest[0] if rest[0] == "min" else f"{rest[0]}%")
            self.backend = cairn.torch.backend(budget, compiler="inductor" if over_inductor else "eager", fallback=False,
                                               time_limit=time_limit)

        def step_of(*inputs):  # a new function for each way, so that torch.compile shares no code between ways
            return model(*inputs)

        return torch.compile(step_of, backend=self.backend)

    def step(self):
        self.torch.manual_seed(7)
        loss = self.call(*self.inputs)
        loss.backward()
        return loss.detach()

    def first(self):
        with self.settings:
            self.step()
        self.restore()

    def restore(self):
        self.model.load_state_dict(self.state)
        self.model.zero_grad(set_to_none=True)

    def results(self, loss):
        gradients = {n: p.grad for n, p in self.model.named_parameters() if p.grad is not None}
        return {"loss": {"loss": loss}, "gradients": gradients, "buffers": dict(self.model.named_buffers())}


def checkpoint_blocks(model, names):
    from torch.utils.checkpoint import checkpoint

    def around(forward):
        return lambda *args, **kwargs: checkpoint(forward, *args, use_reentrant=False, **kwargs)

    for name in names:
        block = model.get_submodule(name)
        block.forward = around(block.forward)


def unscheduled(module, inputs):
    """Compiles a module with AOTAutograd, without a schedule: all values that the backward pass reads stay in memory
    until it reads them, and inputs are freed after their last use."""
    from cairn.torch import _private
    from torch._functorch.partitioners import default_partition

    def compiler(graph, _):
        return _private.boxed(graph)

    return _private.aot_autograd(fw_compiler=compiler, bw_compiler=compiler, inference_compiler=compiler,
                                 partition_fn=default_partition, keep_inference_input_mutations=False)(module, inputs)


def set_up(threads=None):
    import torch
    if threads:
        torch.set_num_threads(threads)
    torch.backends.cudnn.deterministic = True  # otherwise, two equal steps on a GPU can have different bits
    warnings.simplefilter("ignore")
    torch._dynamo.config.recompile_limit = 100
    return torch


def synchronize(device):
    if device == "cuda":
        import torch
        torch.cuda.synchronize()


def measure_peak(model, mode, folder, time_limit, budget, device):
    import torch
    import cairn.torch
    case = models.build(model, device)
    way = Way(mode, case, time_limit, budget)
    begin = time.perf_counter()
    way.first()
    row = {"first_step_s": time.perf_counter() - begin}
    gc.collect()
    with cairn.torch.MemoryTrace(device) as trace:
        loss = way.step()
    results = way.results(loss)
    row["peak_bytes"], row["peak_operation"] = trace.at_peak(
        {g.untyped_storage().data_ptr() for g in results["gradients"].values()})
    row["peak_with_gradients_bytes"] = trace.peak
    if mode in REFERENCES:
        torch.save(results, folder / f"{mode}.pt")
    for reference in REFERENCES:
        file = folder / f"{reference}.pt"
        if file.exists():
            row[f"against_{reference}"] = compare(results, torch.load(file))
    if "cairn" in mode:
        row["cairn"] = described(cairn.torch.last_report())
    return row


def described(report):
    return {"promised_bytes": report.promised, "first_measured_bytes": report.measured, "graphs": [
        {"operations": g.operations, "budget_bytes": g.budget, "baseline_bytes": g.baseline, "promised_bytes": g.promised,
         "lower_bound_bytes": g.lower_bound, "cost_increase": g.cost_increase, "source": g.source, "seconds": g.seconds,
         "recomputed": sum(item.times for item in g.recomputed)} for g in report.graphs]}


def compare(found, reference):
    """Compares the loss, gradients and buffers of two results. Returns whether all bits are equal, the largest relative
    error, and the tensor that has this error."""
    if any(found[what].keys() != reference[what].keys() for what in reference):
        return {"identical": False, "error": None, "of": "other names of gradients or buffers"}
    most = max((float(g.abs().max()) for g in reference["gradients"].values() if g.numel()), default=0.0)
    worst, of, identical = 0.0, "", True
    for what, values in reference.items():
        for name, value in values.items():
            other = found[what][name]
            same = value.shape == other.shape and bool((value == other).all())
            identical = identical and same
            if same:
                continue
            difference = float((other.double() - value.double()).abs().max())
            floor = most / 1000 if what == "gradients" else 0.0
            error = difference / max(float(value.abs().max()), floor, 1e-30)
            if not error <= worst:  # also true if the error is NaN
                worst, of = error, f"{what}: {name}" if what != "loss" else "loss"
    return {"identical": identical, "error": worst, "of": of}


def measure_times(model, names, folder, time_limit, budgets, rounds, seconds, device):
    """Measures step times of several ways in rounds. Writes the results after each round, so that a time-out loses only
    the rounds after it."""
    case = models.build(model, device)
    ways, failures, times = {}, {}, {}
    for name in names:
        try:
            way = Way(name, case, time_limit, budgets.get(name))
            way.first()
            way.step()
            ways[name], times[name] = way, []
        except Exception as error:
            failures[name] = reason_of(error)
    begin = time.monotonic()
    for i in range(rounds):
        order = list(ways)
        shift = i % max(1, len(order))
        for name in order[shift:] + order[:shift]:
            ways[name].restore()
            synchronize(device)
            start = time.perf_counter()
            ways[name].step()
            synchronize(device)
            times[name].append(time.perf_counter() - start)
        write(folder / "times.json", {"seconds": times, "failures": failures})
        if i >= 4 and time.monotonic() - begin > seconds:
            break
    return {"seconds": times, "failures": failures}


def reason_of(error):
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:300] if lines else ''}"


def child(job, errors):
    run_child(job, errors, measure_job)


def run_child(job, errors, measure):
    """Does one measurement, measure(job). Runs in a child process, whose output goes to the file ``errors`` instead of
    the terminal."""
    with open(errors, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ["CAIRN_CACHE"] = job["cache"]
    try:
        set_up(job["threads"])
        result = measure(job)
    except Exception as error:
        traceback.print_exc()
        result = {"failed": reason_of(error)}
    write(pathlib.Path(job["folder"]) / job["answer"], result)


def measure_job(job):
    folder = pathlib.Path(job["folder"])
    if job["what"] == "peak":
        return measure_peak(job["model"], job["mode"], folder, job["time_limit"], job["budget"], job["device"])
    return measure_times(job["model"], job["modes"], folder, job["time_limit"], job["budgets"], job["rounds"],
                         job["seconds"], job["device"])


# --- Functions that make the table


def processes():
    """Returns a multiprocessing context. If the system permits it, new processes are forked from a process that has
    already imported torch, which saves half of the time."""
    import multiprocessing
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torch._dynamo", "torch._functorch.aot_autograd", "cairn.torch"])
    return context


def ask(folder, cache, timeout, threads, to=child, **job):
    """Calls ``to`` in a child process to do a job. Returns the answer that the job writes, or {"failed": reason}."""
    job.update(threads=threads, folder=str(folder), cache=str(cache), answer=f"{job['what']}.answer.json")
    answer, errors = folder / job["answer"], folder / "errors.txt"
    answer.unlink(missing_ok=True)
    process = processes().Process(target=to, args=(job, str(errors)))
    process.start()
    code = wait(process, timeout)
    if code is None:
        return {"failed": f"timed out after {timeout:g} s"}
    if answer.exists():
        return json.loads(answer.read_text())
    lines = (errors.read_text() if errors.exists() else "").strip().splitlines() or [""]
    return {"failed": f"{f'killed by signal {-code}' if code < 0 else f'exit code {code}'}: {lines[-1][:300]}"}


def wait(process, timeout):
    """Waits for a process and returns its exit code. After `timeout` seconds, kills the process and returns None. Time
    in which the machine is suspended does not count."""
    left = timeout
    while left > 0 and process.exitcode is None:
        begin = time.monotonic()
        process.join(min(left, 1.0))
        left -= min(time.monotonic() - begin, 2.0)
    if process.exitcode is None:
        process.kill()
        process.join()
        return None
    return process.exitcode


def measure_model(model, given, cache, tell):
    rows, budgets = {}, {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for mode in modes(given):
            begin = time.monotonic()
            budget = None
            if mode == AS_CHECKPOINT:
                budget = rows.get("checkpoint", {}).get("peak_bytes")
                if budget is None:
                    rows[mode] = {"failed": "checkpoint has no peak"}
                    continue
                budgets[mode] = budget
            rows[mode] = ask(folder, cache, given.timeout, given.threads, what="peak", model=model, mode=mode,
                             time_limit=given.time_limit, budget=budget, device=given.device)
            tell(f"{model:20} {mode:20} {one_line(rows[mode], mode)} ({time.monotonic() - begin:.0f} s)")
        if given.rounds > 0:
            working = [mode for mode, row in rows.items() if "failed" not in row]
            answer = ask(folder, cache, 2 * given.timeout, given.threads, what="times", model=model, modes=working,
                         time_limit=given.time_limit, budgets=budgets, rounds=given.rounds, seconds=given.seconds,
                         device=given.device)
            partial = folder / "times.json"
            if "failed" in answer and partial.exists():
                answer = {**json.loads(partial.read_text()), "cut": answer["failed"]}
            add_times(rows, answer)
            tell(f"{model:20} times by turns: " + (answer.get("failed") or ", ".join(
                f"{mode} {row['step_over_eager']:.2f}" for mode, row in rows.items() if "step_over_eager" in row)))
    return rows


def add_times(rows, answer):
    eager = answer.get("seconds", {}).get("eager", [])
    for mode, row in rows.items():
        if "failed" in row:
            continue
        times = answer.get("seconds", {}).get(mode)
        if not times:
            row["not_timed"] = answer.get("failures", {}).get(mode) or answer.get("failed") or "no round ended in time"
            continue
        row["step_s"] = statistics.median(times)
        row["rounds"] = len(times)
        if eager:
            row["step_over_eager"] = statistics.median(t / e for t, e in zip(times, eager))


def add_device(parser):
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")


def machine(threads=None, device="cpu"):
    import torch
    cpu = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, IndexError):
        cpu = pathlib.Path("/proc/cpuinfo").read_text().split("model name")[1].split(":")[1].splitlines()[0].strip()
    found = {"torch": torch.__version__, "python": platform.python_version(), "cpu": cpu,
             "threads": threads or torch.get_num_threads()}
    if device == "cuda":
        found["device"] = torch.cuda.get_device_name()
    for package in ("transformers", "timm"):
        with contextlib.suppress(Exception):
            import importlib.metadata
            found[package] = importlib.metadata.version(package)
    return found


def tell(line):
    print(line, file=sys.stderr, flush=True)


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(prog="table.py", description=__doc__, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="default: the 17 of the tables; 22 others "
                        "can be named")
    parser.add_argument("--list", action="store_true", help="list the models and end")
    parser.add_argument("--modes", help="of the rows only these, joined by commas, beside eager and aot: checkpoint, knob-0.5, "
                        "cairn-70, cairn-min, ...")
    parser.add_argument("--inductor", action="store_true", help="rows with Inductor as well (needs a C++ compiler)")
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="timed steps of each row; 0: none; default 15")
    parser.add_argument("--seconds", type=float, default=60, metavar="S", help="no new round after this many; default 60")
    parser.add_argument("--time-limit", type=float, default=10, metavar="S", help="of each of Cairn's searches; default 10")
    parser.add_argument("--threads", type=int, metavar="N", help="of torch; default: torch's. 1 is steadier on a busy machine")
    add_device(parser)
    parser.add_argument("--timeout", type=float, default=300, metavar="S", help="of one row; default 300; twice that for times")
    parser.add_argument("--cache", metavar="FOLDER", help="Cairn's cache; default: a fresh one, thrown away at the end")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="every figure; models in it that are not "
                        "measured now stay")
    parser.add_argument("--markdown", metavar="FILE", type=pathlib.Path, help="the tables; default: the terminal")
    given = parser.parse_args(arguments)
    given.modes = given.modes.split(",") if given.modes else None
    unknown = [name for name in given.models if name not in ALL]
    if unknown:
        parser.error(f"unknown model '{unknown[0]}'; there are {', '.join(ALL)}")
    for path in (given.json, given.markdown):
        if path and not path.resolve().parent.is_dir():
            parser.error(f"'{path}': there is no such folder")
    return given


def main():
    given = parse_arguments(sys.argv[1:])
    if given.list:
        print("\n".join(ALL))
        return 0
    data = {"machine": machine(given.threads, given.device), "models": {}}
    if given.json and given.json.exists():
        data["models"] = json.loads(given.json.read_text())["models"]
    with contextlib.ExitStack() as stack:
        cache = given.cache or stack.enter_context(tempfile.TemporaryDirectory())
        for model in given.models or models.MODELS:
            try:
                models.build(model)
            except models.Absent as error:
                data["models"][model] = {"skipped": str(error)}
                print(f"{model}: skipped, {error}", file=sys.stderr)
            else:
                data["models"][model] = measure_model(model, given, cache, tell)
            data["models"] = dict(sorted(data["models"].items(), key=lambda item: ALL.index(item[0])
                                         if item[0] in ALL else len(ALL)))
            if given.json:
                write(given.json, data)
            if given.markdown:
                given.markdown.write_text(markdown(data))
    if not given.markdown:
        print(markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
