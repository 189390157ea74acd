#!/usr/bin/env python3
"""Measures time and peak memory of a training step (forward and backward) in PyTorch and in Cairn, with and without
recomputation. Model, batch, precision and device are the same for both.

usage: torch_compare.py MODEL [--batch N and the model's other options] [--precision fp32|tf32|bf16]

  torch_compare.py resnet50 --batch 128 --precision bf16
  torch_compare.py gpt2 --batch 16 --precision tf32 --sdpa --json gpt2.json

Exit codes: 0 done, 1 Cairn failed or its results differ, 2 bad usage or no PyTorch, 5 no such device.
"""

import argparse
import contextlib
import gc
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[1]
DEFAULT_CAIRN = ROOT / "build" / "default" / "bin" / "cairn"

RESNET = {"batch": 32, "image": 224, "classes": 1000, "width": 64}
TRANSFORMER = {"batch": 16, "seq": 128, "layers": 6, "width": 512, "heads": 8, "ff": 2048, "vocab": 37000,
               "dropout": 10}
# The options of each model and their defaults, as `cairn models` lists them. All options are passed to Cairn.
OPTIONS = {
    "ffn": {"batch": 256, "layers": 8, "width": 1024, "inputs": 1024, "outputs": 1024},
    **{f"resnet{depth}": RESNET for depth in (18, 34, 50, 101, 152, 200)},
    "unet": {"batch": 4, "image": 64, "width": 16, "depth": 4, "classes": 2},
    "transformer": TRANSFORMER,
    "transformer-big": {**TRANSFORMER, "width": 1024, "heads": 16, "ff": 4096, "dropout": 30},
    "gpt2": {"batch": 4, "seq": 1024, "layers": 12, "width": 768, "heads": 12, "vocab": 50257, "dropout": 0},
    "mlp-mixer": {"batch": 32, "image": 224, "patch": 16, "layers": 8, "width": 512, "token-mlp": 256,
                  "channel-mlp": 2048, "classes": 1000},
}
MODES = ("eager", "eager-graph", "checkpoint", "checkpoint-sqrt")
SHARES = (100, 70, 50, 35)  # budgets in percent of the baseline's peak
NO_SCHEDULE = {3: "no schedule fits (proved)", 4: "no schedule found"}

EPILOG = """\
What is compared. PyTorch: eager mode, gradients set to None before each step, no optimizer step, --warmup steps first,
then --repeats steps between CUDA events without synchronising in between; cuDNN chooses its fastest algorithms; conv
nets are channels-last. eager: nothing recomputed. eager-graph: the same step captured as a CUDA graph. checkpoint:
torch.utils.checkpoint around every block (residual block, transformer or mixer block, U-Net level, hidden layer).
checkpoint-sqrt: around every sqrt(number of blocks) of them. Attention is matmul, softmax, matmul, as in Cairn; --sdpa
adds rows with scaled_dot_product_attention.
fp32: TF32 is off. tf32: TF32 is on for products and convolutions. bf16: parameters, activations and gradients are
bf16; batch norm's parameters are fp32 in both, layer norm's are bf16 in PyTorch (its CUDA kernel takes no mixture) and
fp32 in Cairn; statistics are fp32 in both; the loss is bf16 in PyTorch and fp32 in Cairn.
Activations of PyTorch: the most, at any moment of the step, of the bytes allocated less those allocated before it
(parameters, input data, the libraries' workspaces) and less the parameters' gradients that exist. Activations of
Cairn: the measured peak of its arena.
"""


class Failure(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Failure(2, f"{message}; see --help")


def parse_arguments(arguments):
    parser = Parser(prog="torch_compare.py", description=__doc__.split("\n\nusage")[0], epilog=EPILOG,
                    formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("model", metavar="MODEL", help=", ".join(OPTIONS))
    for name in sorted({name for options in OPTIONS.values() for name in options}):
        parser.add_argument(f"--{name}", type=int, metavar="N", help="an option of models, as in `cairn models`")
    parser.add_argument("--precision", choices=("fp32", "tf32", "bf16"), default="fp32")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu tries the script: no memory")
    parser.add_argument("--modes", default=",".join(MODES), help="of PyTorch, joined by commas; default: all")
    parser.add_argument("--sdpa", action="store_true", help="each mode also with scaled_dot_product_attention")
    parser.add_argument("--warmup", type=int, default=5, metavar="N", help="steps before timing; default 5")
    parser.add_argument("--repeats", type=int, default=20, metavar="N", help="timed steps; default 20")
    parser.add_argument("--cairn", metavar="PATH", help="the command; default build/default/bin/cairn if it is there")
    parser.add_argument("--graph", metavar="FILE", help="what `cairn measure` wrote for this model; default: measure")
    parser.add_argument("--time-limit", default="20s", help="of each search; default 20s")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start nothing more after this many")
    parser.add_argument("--json", metavar="FILE", help="file to write with every figure")
    given = parser.parse_args(arguments)

    if given.model not in OPTIONS:
        raise Failure(2, f"unknown model '{given.model}'; there are {', '.join(OPTIONS)}")
    given.options = model_options(given)
    given.modes = given.modes.split(",")
    for mode in given.modes:
        if mode not in MODES:
            raise Failure(2, f"unknown mode '{mode}'; there are {', '.join(MODES)}")
    if "eager" not in given.modes:
        raise Failure(2, "--modes must have eager, which the others are compared with")
    if given.repeats < 1 or given.warmup < 0:
        raise Failure(2, "--repeats must be at least 1 and --warmup at least 0")
    if given.sdpa and "heads" not in given.options:
        raise Failure(2, f"{given.model} has no attention; drop --sdpa")
    if given.cairn and not os.access(given.cairn, os.X_OK):
        raise Failure(2, f"--cairn '{given.cairn}' is no program")
    if given.cairn is None and os.access(DEFAULT_CAIRN, os.X_OK):
        given.cairn = str(DEFAULT_CAIRN)
    if given.graph and not given.cairn:
        raise Failure(2, "--graph is for Cairn; name its command with --cairn")
    if given.json and not pathlib.Path(given.json).resolve().parent.is_dir():
        raise Failure(2, f"--json '{given.json}': there is no such folder")
    return given


def model_options(given):
    options = dict(OPTIONS[given.model])
    for name in {name for known in OPTIONS.values() for name in known}:
        value = getattr(given, name.replace("-", "_"))
        if value is None:
            continue
        if name not in options:
            raise Failure(2, f"{given.model} has no option --{name}; it takes --{', --'.join(options)}")
        if value < (0 if name == "dropout" else 1):
            raise Failure(2, f"{given.model}: --{name} {value} is out of range")
        options[name] = value
    return options


def option_words(options):
    return [word for name, value in options.items() for word in (f"--{name}", str(value))]


# Functions that run Cairn.


class Cairn:

    def __init__(self, path):
        self.path = str(path)

    def text(self, *words):
        return subprocess.run([self.path, *words], capture_output=True, text=True).stdout

    def call(self, *words, timeout=None):
        """Runs `cairn` with the given words. Returns the exit code and the JSON object that the command prints. If the
        output is not JSON, returns an object whose `error` is the last line of the output."""
        done = subprocess.run([self.path, *words, "--json"], capture_output=True, text=True, timeout=timeout)
        try:
            answer = json.loads(done.stdout)
        except json.JSONDecodeError:
            lines = (done.stderr or done.stdout).strip().splitlines()
            answer = {"error": lines[-1] if lines else "no output"}
            if done.returncode == 0:
                return 1, answer
        return done.returncode, answer

    def need(self, *words):
        code, answer = self.call(*words)
        if code != 0:
            raise Failure(5 if code == 5 else 1, f"cairn {words[0]}: {answer.get('error', f'exit code {code}')}")
        return answer

    def repeat_option(self):
        """Returns the name of the option of `run` for the number of executions, and whether `run` reports the median or
        the fastest of them. Reads both from the help text, because versions of Cairn differ."""
        help_text = " ".join(self.text("run", "--help").split())
        found = re.search(r"(--repeats?)\b(.*?) -", help_text)
        if not found:
            raise Failure(1, "`cairn run --help` lists no --repeats")
        return found[1], "median" if "median" in found[2] else "fastest"

    def solvers(self):
        """Returns the names of all solvers, from the help text of --solver."""
        found = re.search(r"--solver\b.*?one of ([\w-]+(?:,\s+[\w-]+)*)", self.text("solve", "--help"), re.DOTALL)
        return re.split(r",\s+", found[1]) if found else []


def backend_words(given):
    return ["--precision", given.precision, "--backend", "cuda" if given.device == "cuda" else "host"]


def check_parameters(cairn, given, count):
    answer = cairn.need("model", given.model, *option_words(given.options))
    if answer["parameters"] != count:
        raise Failure(1, f"{given.model} has {answer['parameters']} parameters in Cairn and {count} in PyTorch")


def write_graph(cairn, given, file):
    cairn.need("measure", given.model, *option_words(given.options), *backend_words(given), "-o", file)


def cairn_budgets(torch_rows):
    """Returns (label, budget, key) for each run of Cairn. The label is for the table, and the key is what verdicts()
    finds the run by."""
    budgets = [(f"{share}%", f"{share}%", f"{share}%") for share in SHARES]
    plain = {row["mode"]: row for row in torch_rows if not row["sdpa"]}
    eager = plain.get("eager", {}).get("activation_bytes")
    if eager:
        budgets.append(("half of PyTorch eager", str(eager // 2), "half of eager"))
    for mode in ("checkpoint", "checkpoint-sqrt"):
        reached = plain.get(mode, {}).get("activation_bytes")
        if reached:
            budgets.append((f"as {mode}", str(reached), mode))
    return budgets


def cairn_row(cairn, given, graph, label, budget, key):
    """Runs Cairn under a budget and returns a row of the results. The row's `failed` is True if Cairn broke a promise,
    for example if outputs differ from those without a budget."""
    row = {"label": label, "budget": budget, "key": key, "failed": False, "note": ""}
    code, answer = cairn.call("run", graph, "--budget", budget, "--time-limit", given.time_limit,
                              given.repeat_option, str(given.repeats), *backend_words(given))
    row["exit_code"] = code
    if code in NO_SCHEDULE:
        row["note"] = NO_SCHEDULE[code]
        least = answer.get("least_feasible_bytes") or answer.get("least_planned_bytes")
        if least:
            row["note"] += f"; least known {mib(least)}"
        return row
    if code != 0:
        row.update(failed=True, note=f"exit code {code}: {answer.get('error', '')}")
        return row
    baseline, scheduled = answer["baseline"], answer["scheduled"]
    row.update(
        budget_bytes=answer["budget_bytes"],
        device=answer.get("device", ""),
        baseline_ms=1e3 * baseline["seconds"],
        baseline_bytes=baseline["measured_peak_bytes"],
        ms=1e3 * scheduled["seconds"],
        measured_bytes=scheduled["measured_peak_bytes"],
        planned_bytes=scheduled["planned_bytes"],
        predicted_increase_pct=scheduled["cost_increase_pct"],
        recomputed=scheduled["recomputed"],
        identical=answer["identical"],
        loss=answer["loss"],
    )
    row["increase_pct"] = percent_over(row["ms"], row["baseline_ms"])
    notes = []
    if not row["identical"]:
        notes.append("RESULTS DIFFER")
    if row["measured_bytes"] != row["planned_bytes"]:
        notes.append(f"MEASURED IS NOT PLANNED ({mib(row['planned_bytes'])})")
    row["failed"] = bool(notes)
    notes = notes or ["identical, measured = planned"]
    row["note"] = "; ".join([*notes, f"{row['predicted_increase_pct']:+.1f}% predicted"])
    return row


def cairn_rows(given, cairn, torch_rows, started):
    rows = []
    with contextlib.ExitStack() as stack:
        graph = given.graph
        if not graph:
            graph = os.path.join(stack.enter_context(tempfile.TemporaryDirectory()), "graph.json")
            write_graph(cairn, given, graph)
        for label, budget, key in cairn_budgets(torch_rows):
            if time.monotonic() - started > given.seconds:
                rows.append({"label": label, "budget": budget, "key": key, "failed": False, "note": "not run: time"})
            else:
                rows.append(cairn_row(cairn, given, graph, label, budget, key))
    return rows


# Functions that run PyTorch.


def import_torch():
    try:
        import torch.nn  # without PyTorch, `import torch` would find the folder bench/torch
    except ImportError:
        raise Failure(2, "PyTorch is not installed; python3 -m pip install torch") from None
    return torch


class TorchBench:
    def __init__(self, torch, given):
        sys.path.insert(0, str(ROOT / "bench" / "torch"))
        import models

        self.torch, self.given, self.models = torch, given, models
        self.cuda = given.device == "cuda"
        tf32 = given.precision == "tf32"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer versions of torch warn that these settings have got new names
            torch.backends.cuda.matmul.allow_tf32 = tf32
            torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = True
        self.parameters = 0

    def device_name(self):
        return self.torch.cuda.get_device_name() if self.cuda else "CPU"

    def row(self, mode, sdpa):
        row = {"mode": mode, "sdpa": sdpa, "ms": None, "fastest_ms": None, "peak_bytes": None,
               "activation_bytes": None, "note": ""}
        if mode == "eager-graph" and not self.cuda:
            row["note"] = "needs a CUDA device"
            return row
        try:
            self.measure(row)
        except self.torch.cuda.OutOfMemoryError:
            row["note"] = "out of memory"
        except (RuntimeError, ValueError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            if mode != "eager-graph":
                raise Failure(1, f"PyTorch {mode}: {reason}") from None
            row["note"] = f"capture failed: {reason}"
        finally:
            gc.collect()
            if self.cuda:
                self.torch.cuda.empty_cache()
        return row

    def measure(self, row):
        given = self.given
        case = self.models.build_cairn(given.model, given.options, given.device, given.precision, row["sdpa"])
        model, data = case.model, case.inputs
        self.parameters = self.models.parameter_count(model)
        segment = {"checkpoint": 1, "checkpoint-sqrt": max(1, round(math.sqrt(len(model.blocks))))}.get(row["mode"], 0)

        def step():
            for parameter in model.parameters():
                parameter.grad = None
            loss = model(*data, segment=segment)
            loss.backward()
            return loss

        if row["mode"] == "eager-graph":
            times = self.graph_times(model, data)
        else:
            for _ in range(given.warmup):
                step()
            row["loss"] = step().item()
            if self.cuda:
                self.measure_memory(row, model, data, step)
            times = self.times(step)
        row.update(ms=statistics.median(times), fastest_ms=min(times))

    def times(self, step):
        torch, repeats = self.torch, self.given.repeats
        if not self.cuda:
            times = []
            for _ in range(repeats):
                start = time.perf_counter()
                step()
                times.append(1e3 * (time.perf_counter() - start))
            return times
        # Queues the steps without waiting, as in training, so that each step is launched while the previous step still
        # runs.
        events = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
        torch.cuda.synchronize()
        events[0].record()
        for event in events[1:]:
            step()
            event.record()
        torch.cuda.synchronize()
        return [before.elapsed_time(after) for before, after in zip(events, events[1:])]

    def graph_times(self, model, data):
        torch = self.torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            # Runs some steps first, because everything that a first step sets up must exist before a CUDA graph is
            # captured.
            for _ in range(max(3, self.given.warmup)):
                model.zero_grad(set_to_none=True)
                model(*data).backward()
        torch.cuda.current_stream().wait_stream(stream)
        model.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(*data).backward()
        for _ in range(self.given.warmup):
            graph.replay()
        return self.times(graph.replay)

    def measure_memory(self, row, model, data, step):
        """Measures the memory of one step, which is not timed, by reading torch's peak whenever a gradient is complete.

        The moments at which a gradient is complete divide the step into intervals. For each interval, the activations
        are computed as the peak of the interval minus the gradients that exist. The gradient that is complete at the
        end of the interval is subtracted, too, although it did not exist for the whole interval. So the result can be
        too low by at most one gradient.
        """
        torch = self.torch
        model.zero_grad(set_to_none=True)
        gc.collect()  # frees objects of earlier steps that are in reference cycles
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        seen = {"gradients": 0, "activations": 0, "peak": 0}

        def look(parameter=None):
            peak = torch.cuda.max_memory_allocated()
            if parameter is not None:
                seen["gradients"] += parameter.grad.numel() * parameter.grad.element_size()
            seen["peak"] = max(seen["peak"], peak)
            seen["activations"] = max(seen["activations"], peak - before - seen["gradients"])
            torch.cuda.reset_peak_memory_stats()

        hooks = [p.register_post_accumulate_grad_hook(look) for p in model.parameters()]
        torch.cuda.reset_peak_memory_stats()
        step()
        look()
        for hook in hooks:
            hook.remove()
        parameters = sum(p.numel() * p.element_size() for p in model.parameters())
        inputs = sum(x.numel() * x.element_size() for x in data)
        row.update(
            peak_bytes=seen["peak"],
            activation_bytes=seen["activations"],
            allocated_before_bytes=before,
            parameter_bytes=parameters,
            input_bytes=inputs,
            # This figure is exact only if all gradients exist at the moment of the peak.
            peak_less_all_gradients_bytes=seen["peak"] - 2 * parameters - inputs,
        )


# Functions for the printed table.


def mib(count):
    return f"{count / 2**20:,.1f} MiB"


def percent_over(value, base):
    return 100 * (value / base - 1)


def label_of(row):
    return f"PyTorch {row['mode']}" + (" sdpa" if row["sdpa"] else "")


def find_row(rows, **wanted):
    for row in rows:
        if all(row.get(key) == value for key, value in wanted.items()):
            return row
    return None


def cairn_baseline(rows):
    """Returns the figures of Cairn's step without recomputation. Every run executes this step in addition to its own,
    so the time is the median over all runs."""
    times = [row["baseline_ms"] for row in rows if row.get("baseline_ms")]
    if not times:
        return None
    bytes_ = next(row["baseline_bytes"] for row in rows if row.get("baseline_ms"))
    return {"ms": statistics.median(times), "least_ms": min(times), "most_ms": max(times), "bytes": bytes_}


def table_rows(torch_rows, rows):
    """Returns the cells of the table, row by row. The columns are: step, ms, change of time, activations, activations
    in percent of PyTorch eager's, note."""
    eager = find_row(torch_rows, mode="eager", sdpa=False) or {}
    whole = eager.get("activation_bytes")

    def memory(count):
        if count is None:
            return ["", ""]
        return [mib(count), f"{100 * count / whole:.1f}%" if whole else ""]

    cells = [["step", "ms", "time", "activations", "of eager's", "note"]]
    for row in torch_rows:
        change = ""
        if row["ms"] and eager.get("ms") and row is not eager:
            change = f"{percent_over(row['ms'], eager['ms']):+.1f}%"
        notes = [row["note"]] if row["note"] else []
        if row["fastest_ms"]:
            notes.append(f"fastest {row['fastest_ms']:.3f}")
        if row["peak_bytes"]:
            notes.append(f"peak allocated {mib(row['peak_bytes'])}")
        cells.append([label_of(row), f"{row['ms']:.3f}" if row["ms"] else "", change,
                      *memory(row["activation_bytes"]), "; ".join(notes)])
    baseline = cairn_baseline(rows)
    if baseline:
        cells.append(["Cairn, nothing recomputed", f"{baseline['ms']:.3f}", "", *memory(baseline["bytes"]),
                      f"{baseline['least_ms']:.3f} to {baseline['most_ms']:.3f}"])
    for row in rows:
        timed = row.get("ms") is not None
        cells.append([f"Cairn, {row['label']}", f"{row['ms']:.3f}" if timed else "",
                      f"{row['increase_pct']:+.1f}%" if timed else "", *memory(row.get("measured_bytes")),
                      row["note"]])
    return cells


def format_table(cells):
    """Returns a Markdown table whose columns are aligned; numbers are aligned to the right."""
    widths = [max(len(row[c]) for row in cells) for c in range(len(cells[0]))]
    numeric = range(1, len(widths) - 1)

    def line(row):
        padded = [text.rjust(w) if c in numeric else text.ljust(w) for c, (text, w) in enumerate(zip(row, widths))]
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * (w - 1) + ":" if c in numeric else "-" * w for c, w in enumerate(widths)]
    return "\n".join([line(cells[0]), line(rule), *(line(row) for row in cells[1:])])


def verdicts(torch_rows, rows, statistic):
    """Answers questions about the rows of the table, such as whether Cairn is as fast as PyTorch. Returns a list of
    (question, answer, figures). An answer is True or False, or None if the necessary rows were not measured."""
    eager = find_row(torch_rows, mode="eager", sdpa=False) or {}
    key = "ms" if statistic == "median" else "fastest_ms"
    found = []

    baseline = cairn_baseline(rows)
    question = "Cairn's step without recomputation takes at most PyTorch eager's time"
    if baseline and eager.get(key):
        figures = f"{baseline['ms']:.3f} ms and {eager[key]:.3f} ms, {statistic} of the repeats"
        graph = find_row(torch_rows, mode="eager-graph", sdpa=False) or {}
        if graph.get(key):
            figures += f"; eager as a CUDA graph {graph[key]:.3f} ms"
        found.append((question, baseline["ms"] <= eager[key], figures))
    else:
        found.append((question, None, ""))

    question = "under 50% of PyTorch's activation memory Cairn's step takes at most 10% more time"
    half = find_row(rows, key="half of eager") or {}
    if half.get("increase_pct") is not None:
        figures = f"{half['increase_pct']:+.1f}% in {mib(half['measured_bytes'])}"
        found.append((question, half["increase_pct"] <= 10, figures))
    elif half and half.get("exit_code") in NO_SCHEDULE:
        found.append((question, False, half["note"]))
    else:
        found.append((question, None, half.get("note", "")))

    for mode in ("checkpoint", "checkpoint-sqrt"):
        theirs = find_row(torch_rows, mode=mode, sdpa=False)
        if theirs is None:
            continue
        question = f"in the memory of torch.utils.checkpoint ({mode}) Cairn's step grows less"
        ours = find_row(rows, key=mode) or {}
        if ours.get("increase_pct") is not None and theirs["ms"] and eager.get("ms"):
            increase = percent_over(theirs["ms"], eager["ms"])
            figures = f"{ours['increase_pct']:+.1f}% and {increase:+.1f}% in {mib(theirs['activation_bytes'])}"
            found.append((question, ours["increase_pct"] < increase, figures))
        elif ours.get("exit_code") in NO_SCHEDULE:
            found.append((question, False, ours["note"]))
        else:
            found.append((question, None, ours.get("note", "")))
    return found


def verdict_line(question, answer, figures):
    word = {True: "yes", False: "no", None: "not measured"}[answer]
    return f"{question}: {word}" + (f" ({figures})" if figures else "")


def compare(given):
    started = time.monotonic()
    torch = import_torch()
    if given.device == "cuda" and not torch.cuda.is_available():
        raise Failure(5, "PyTorch sees no CUDA device; --device cpu tries the script")
    cairn, statistic = None, "median"
    if given.cairn:
        cairn = Cairn(given.cairn)
        given.repeat_option, statistic = cairn.repeat_option()

    bench = TorchBench(torch, given)
    torch_rows, checked = [], False
    for sdpa in (False, True) if given.sdpa else (False,):
        for mode in given.modes:
            torch_rows.append(bench.row(mode, sdpa))
            if cairn and bench.parameters and not checked:
                check_parameters(cairn, given, bench.parameters)
                checked = True
    rows, problem = [], None
    if cairn:
        try:
            rows = cairn_rows(given, cairn, torch_rows, started)
        except Failure as failure:
            problem = failure  # raised after PyTorch's figures are printed

    title = f"{given.model} {' '.join(option_words(given.options))}, {given.precision}"
    print(f"{title}: {bench.parameters:,} parameters, {bench.device_name()}, PyTorch {torch.__version__}\n")
    print(format_table(table_rows(torch_rows, rows)))
    answers = []
    if cairn:
        print()
        answers = verdicts(torch_rows, rows, statistic)
        for answer in answers:
            print(verdict_line(*answer))
    elif not given.cairn:
        print(f"\nwithout Cairn: {DEFAULT_CAIRN.relative_to(ROOT)} is not built; --cairn names another")
    if given.json:
        write_json(given, bench, torch, torch_rows, rows, answers, statistic)
    if problem:
        raise problem
    return 1 if any(row["failed"] for row in rows) else 0


def write_json(given, bench, torch, torch_rows, rows, answers, statistic):
    result = {
        "model": given.model, "options": given.options, "precision": given.precision, "device": bench.device_name(),
        "torch": torch.__version__, "cuda": torch.version.cuda, "parameters": bench.parameters,
        "warmup": given.warmup, "repeats": given.repeats, "cairn_time": statistic,
        "pytorch": torch_rows, "cairn_baseline": cairn_baseline(rows), "cairn": rows,
        "verdicts": [{"question": q, "answer": a, "figures": f} for q, a, f in answers],
    }
    pathlib.Path(given.json).write_text(json.dumps(result, indent=2) + "\n")


def main(arguments):
    try:
        return compare(parse_arguments(arguments))
    except Failure as failure:
        print(f"torch_compare: {failure}", file=sys.stderr)
        return failure.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
