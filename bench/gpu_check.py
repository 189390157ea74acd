#!/usr/bin/env python3
"""Checks and measures a CUDA build on the GPU of this machine. scripts/gpu_check.sh makes the build.

Steps: the device's tests; compute-sanitizer on the tests tagged [sanitize]; cairn.torch's tests of a GPU; small models
against the host's results; four models under three budgets with one solver, and under one budget with every solver; the
device benchmarks; a comparison with PyTorch; and, for models of bench/torch, a comparison of the peaks that cairn.torch
promises with the peaks that are counted. A step that fails does not stop the later ones. Writes
bench/results/<device>-<date>.md and .json.
Exit codes: 0 if nothing failed, 1 if something failed, 2 for bad usage, 5 without a device.
"""

import argparse
import concurrent.futures
import datetime
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from torch_compare import NO_SCHEDULE, Cairn, Failure, Parser  # noqa: E402
from torch_compare import format_table, mib, percent_over, verdict_line  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = {
    "resnet50": "--batch 128 --image 224",
    "gpt2": "--batch 16 --seq 1024 --layers 12 --width 768",
    "unet": "--batch 16 --image 256 --width 64",
    "transformer": "--batch 64 --seq 128",
}
QUICK_MODELS = {
    "resnet50": "--batch 8 --image 64",
    "gpt2": "--batch 4 --seq 128 --layers 2 --width 128 --heads 4 --vocab 1000",
    "unet": "--batch 4 --image 64",
    "transformer": "--batch 4 --seq 64 --layers 2 --width 128 --heads 4 --ff 256 --vocab 1000",
}
BUDGETS = ("50%", "70%", "35%")  # budgets of the runs, the most important first
PRECISIONS = ("fp32", "tf32", "bf16")
STEPS = ("tests", "sanitizers", "torch", "host", "runs", "benchmarks", "pytorch", "counted")
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
SANITIZER_SECONDS = 300  # for each tool; initcheck is the slowest
TEST_SECONDS = 300
# Budget of the small models whose results are compared with the host's. It is not 50%, because the small U-Net has no
# schedule within 50%: on an H100, one convolution needs up to 57% of the baseline's peak, most of it as scratch.
HOST_BUDGET = "70%"
# Models of bench/torch. They are measured in this order, so there may be no time left for the last models.
PROMISED = ("gpt-6", "resnet50", "vit", "unet", "moe", "lstm", "llama", "bert")
PROMISES_SECONDS = 240  # for all of these models together
HOST_SHARE = 0.2  # fraction of the remaining time for the comparison with the host
# Fraction of the remaining time that the runs under budgets may take. RUNS_SHARE leaves time for the benchmarks and for
# the comparison with PyTorch; RUNS_SHARE_WITHOUT_TORCH only for the benchmarks.
RUNS_SHARE = 0.6
RUNS_SHARE_WITHOUT_TORCH = 0.85
REPEATS = "10"
POINTS_ASKED = 3  # allowed difference, in percentage points, between a step's predicted and measured increase
RATIO_ASKED = 1.02  # largest allowed ratio of a step's time to the sum of its ops' times
BENCHMARK_SECONDS = "0.05"  # for each of about a hundred benchmarks
NOT_RUN = "not run: time"
# racecheck and synccheck watch only Cairn's kernels, because they would also report hazards within kernels of cuBLAS.
# memcheck and initcheck watch all kernels. This way, memcheck finds accesses out of bounds by a library that Cairn
# calls with wrong arguments. initcheck must see what kernels of libraries write, because otherwise it would report
# Cairn's kernels that read these values. The mangled names of functions in the namespace cairn begin with OWN_KERNELS;
# the names of CUB's kernels do not.
OWN_KERNELS_ONLY = ("racecheck", "synccheck")
OWN_KERNELS = "_ZN5cairn"
# Mangled name of the template of which all of Cairn's kernels are instances. The script checks that the program
# contains this name: if the template were renamed, OWN_KERNELS might match no kernel, nothing would be watched, and
# compute-sanitizer would not say so.
KERNEL = "_ZN5cairn4cuda9run_teams"
# Messages that compute-sanitizer prints if it cannot work with any program on this machine, as in some virtual
# machines.
UNSUPPORTED = re.compile(r"(?i)device (is )?not supported|insufficient permissions")


def parse_arguments(arguments):
    parser = Parser(prog="gpu_check.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                    allow_abbrev=False)
    parser.add_argument("--build", required=True, metavar="DIR", help="folder that is built with CUDA")
    parser.add_argument("--quick", action="store_true", help="small sizes, without PyTorch")
    parser.add_argument("--steps", default=",".join(STEPS), metavar="LIST",
                        help=f"some of {', '.join(STEPS)}, where time with the device is short; default all")
    parser.add_argument("--precision", choices=PRECISIONS, default="bf16",
                        help="of runs and comparison; default bf16. The solver auto also runs in the others")
    parser.add_argument("--time-limit", default="20s", help="of each search; default 20s")
    parser.add_argument("--results", default=str(ROOT / "bench" / "results"), metavar="DIR",
                        help="folder to write; default bench/results")
    given = parser.parse_args(arguments)
    given.steps = given.steps.split(",")
    if unknown := [step for step in given.steps if step not in STEPS]:
        raise Failure(2, f"--steps: there is no step '{unknown[0]}'; there are {', '.join(STEPS)}")
    given.build = pathlib.Path(given.build).resolve()
    given.cairn = given.build / "bin" / "cairn"
    if not os.access(given.cairn, os.X_OK):
        raise Failure(2, f"'{given.cairn}' is not there; build it, or name another folder with --build")
    try:
        given.seconds = float(os.environ.get("GPU_CHECK_SECONDS", "480"))
    except ValueError:
        raise Failure(2, f"GPU_CHECK_SECONDS '{os.environ['GPU_CHECK_SECONDS']}' is not a number") from None
    return given


def call(command, seconds, environment=None):
    """Runs a command and returns its exit code and its output. After `seconds` seconds, kills the command with all of
    its child processes; the exit code is then None."""
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True,
                               env={**os.environ, **(environment or {})})
    try:
        output, _ = process.communicate(timeout=max(seconds, 0.1))
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return None, output
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


class Check:
    """The steps of one check of the GPU, with their results."""

    def __init__(self, given):
        self.given = given
        self.cairn = Cairn(given.cairn)
        self.models = QUICK_MODELS if given.quick else MODELS
        self.steps = []  # {"step", "result", "seconds", "detail", ...}
        self.host_checks = []
        self.runs = []
        self.comparisons = []
        self.promises = {}  # what bench/torch/counted.py writes, with its table
        self.benchmarks = []
        self.machine = {}
        self.repeat_option = "--repeats"

    # Functions for the time that is left.

    def begin_timed(self):
        self.end = time.monotonic() + self.given.seconds

    def left(self):
        return self.end - time.monotonic()

    # Functions for the steps of the check.

    def step(self, name, work):
        """Runs a step of the check and stores its result. `work` returns (result, detail). If `work` raises an
        exception, the step counts as failed, and later steps still run."""
        self.steps.append(None)
        self.run_step(len(self.steps) - 1, name, work)

    def step_together(self, steps):
        """Runs several steps of the check at the same time, so these steps must not measure times. `steps` has a pair
        (name, work) for each step."""
        first = len(self.steps)
        self.steps += [None] * len(steps)
        with concurrent.futures.ThreadPoolExecutor(max(len(steps), 1)) as pool:
            for i, (name, work) in enumerate(steps):
                pool.submit(self.run_step, first + i, name, work)

    def run_step(self, place, name, work):
        start = time.monotonic()
        try:
            result, detail = work()
        except Exception as error:  # noqa: BLE001 - later steps are still useful
            result, detail = "FAILED", f"{type(error).__name__}: {error}"
        seconds = time.monotonic() - start
        self.steps[place] = {"step": name, "result": result, "seconds": round(seconds, 1), "detail": detail}
        print(f"{seconds:7.1f} s  {name}: {result}" + (f" ({detail})" if detail else ""), flush=True)

    def find_device(self):
        """Runs a small model on the device, and stores what `cairn` reports about the machine in self.machine. Returns
        the command's exit code and answer. Raises Failure with the command's message if there is no device."""
        code, answer = self.cairn.call("run", "ffn", "--batch", "8", "--layers", "2", "--width", "16", "--inputs",
                                       "16", "--outputs", "16", "--budget", "1GiB", "--backend", "cuda", timeout=120)
        if code == 5:
            raise Failure(5, answer.get("error", "no CUDA device"))
        self.machine = {
            "device": "CUDA device",
            "driver": "",
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
            "time": datetime.datetime.now(datetime.timezone.utc).strftime("%H:%M:%S UTC"),
            "revision": revision(),
            "precision": self.given.precision,
            "quick": self.given.quick,
        }
        if answer.get("device"):
            self.machine["device"] = answer["device"].split(",")[0].strip()
        if shutil.which("nvidia-smi"):
            done, text = call(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], 30)
            cells = [cell.strip() for cell in text.splitlines()[0].split(",")] if text.strip() else []
            if done == 0 and len(cells) == 2:
                self.machine.update(device=cells[0], driver=cells[1])
        return code, answer

    def tests(self):
        code, output = call([self.given.build / "tests" / "test_cuda"], TEST_SECONDS, {"CAIRN_REQUIRE_DEVICE": "1"})
        if code == 0:
            return "ok", last_line(output)
        print(output[-6000:])
        return "FAILED", f"after {TEST_SECONDS} s" if code is None else f"exit code {code}: {last_line(output)}"

    def sanitizer(self, tool):
        program = find_tool("compute-sanitizer")
        if program is None:
            return "skipped", "compute-sanitizer is not installed"
        tests = self.given.build / "tests" / "test_cuda"
        options = []
        if tool in OWN_KERNELS_ONLY:
            if KERNEL.encode() not in tests.read_bytes():
                return "FAILED", f"{tests.name} has no kernel {KERNEL}, so nothing would be watched"
            options = ["--kernel-name", f"kns={OWN_KERNELS}"]
        code, output = call([program, "--tool", tool, *options, "--error-exitcode", "9", tests, "[sanitize]"],
                            SANITIZER_SECONDS, {"CAIRN_REQUIRE_DEVICE": "1"})
        summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", output)
        detail = summary[-1] if summary else last_line(output)
        if code == 0:
            return "ok", detail
        unsupported = UNSUPPORTED.search(output)
        if unsupported:
            line = next(line for line in output.splitlines() if UNSUPPORTED.search(line))
            return "skipped", line.strip("= ")
        if code is None:
            return "FAILED", f"not done after {SANITIZER_SECONDS} s"
        print(output[-6000:])
        return "FAILED", f"exit code {code}: {detail}"

    def torch_tests(self):
        """Runs the tests of cairn.torch on the device (python/tests/torch/backend/device_test.py)."""
        problem = self.package_problem()
        if problem:
            return "skipped", problem
        program = ROOT / "python" / "tests" / "torch" / "run.py"
        code, output = call([sys.executable, program, "device_test"], TEST_SECONDS, self.with_package())
        if code == 0:
            return "ok", last_line(output)
        print(output[-6000:])
        return "FAILED", f"after {TEST_SECONDS} s" if code is None else last_line(output)

    def with_package(self):
        """Returns environment variables with which Python finds the package cairn of the build, if the build has this
        package."""
        module = self.given.build / "python"
        return {"PYTHONPATH": os.pathsep.join(filter(None, [str(module) if module.is_dir() else "",
                                                            os.environ.get("PYTHONPATH", "")]))}

    def package_problem(self):
        code, _ = call([sys.executable, "-c", "import cairn.torch"], 120, self.with_package())
        return "" if code == 0 else "the package cairn is neither installed nor in the build: pip install ."

    def count_promises(self):
        """Runs bench/torch/counted.py on the device, and stores what it writes. The JSON file has the models that were
        measured before the time ended."""
        problem = self.package_problem()
        if problem:
            return "skipped", problem
        file, page = self.folder / "promises.json", self.folder / "promises.md"
        command = [sys.executable, ROOT / "bench" / "torch" / "counted.py", *PROMISED, "--device", "cuda", "--json", file,
                   "--markdown", page]
        code, output = call(command, PROMISES_SECONDS, self.with_package())
        if file.exists():
            self.promises = {**json.loads(file.read_text()), "table": page.read_text() if page.exists() else NOT_RUN}
        if code not in (0, None) or not file.exists():
            print(output[-6000:])
            return "FAILED", last_line(output)
        rows = [row for found in self.promises["models"].values() for mode, row in found.items() if mode != "aot"]
        ran = [row for row in rows if "failed" not in row]
        kept = sum(row["same"] and max(row["measured"], row["counted"]) <= row["promised"] for row in ran)
        text = f"{kept} of {len(ran)} steps have the same bits within the promise, {len(rows) - len(ran)} were refused"
        return ("ok" if ran and kept == len(ran) else "FAILED"), text

    def against_host(self):
        """Runs small models on the device in every precision. Compares their kept outputs with those that the host
        computes, within the tolerance of `cairn`."""
        worst, faults, missing = {}, [], 0
        end = time.monotonic() + HOST_SHARE * max(self.left(), 0)
        for precision in PRECISIONS:
            for model, options in QUICK_MODELS.items():
                left = end - time.monotonic()
                if left <= 0:
                    missing += 1
                    continue
                try:
                    code, answer = self.cairn.call("run", model, *options.split(), "--budget", HOST_BUDGET,
                                                   "--time-limit", "2s", "--precision", precision, "--backend", "cuda",
                                                   "--check", timeout=left)
                except subprocess.TimeoutExpired:
                    missing += 1
                    continue
                check = answer.get("host_check")
                self.host_checks.append({"model": model, "precision": precision, "exit_code": code,
                                         "host_check": check, "error": answer.get("error", "")})
                if code != 0 or not check:
                    faults.append(f"{model} {precision}: {answer.get('error', 'it compared nothing')}")
                else:
                    worst[precision] = max(worst.get(precision, 0.0), check["worst_error"])
        detail = "worst error " + ", ".join(f"{p} {error:.1e}" for p, error in worst.items()) if worst else ""
        if faults:
            return "FAILED", "; ".join(faults)
        if missing:
            detail = "; ".join(filter(None, [detail, f"{missing} {NOT_RUN}"]))
        return ("ok" if worst else NOT_RUN), detail

    # Functions for the runs under budgets.

    def jobs(self, solvers):
        """Returns (model, precision, budget, solver) of all runs, the most important runs first, because time may run
        out."""
        first = "auto" if "auto" in solvers else solvers[0]
        main = self.given.precision
        others = [precision for precision in PRECISIONS if precision != main]
        jobs = [(model, main, budget, first) for budget in BUDGETS for model in self.models]
        jobs += [(model, other, budget, first) for budget in BUDGETS for other in others for model in self.models]
        # A run takes about 4 s, so only the solver `first` runs under every budget.
        jobs += [(model, main, BUDGETS[0], solver) for solver in solvers if solver != first for model in self.models]
        return jobs

    def graph(self, model, precision):
        return self.folder / f"{model}-{precision}.json"

    def measure(self, model, precision, end):
        """Measures a model's costs and writes its graph to a file, unless this was done before. If the command fails,
        the error is stored as a row of the results."""
        graph = self.graph(model, precision)
        start = time.monotonic()
        try:
            code, answer = self.cairn.call("measure", model, *self.models[model].split(), "--precision", precision,
                                           "--backend", "cuda", "-o", str(graph), timeout=end - start)
        except subprocess.TimeoutExpired:
            return NOT_RUN
        self.runs.append({"model": model, "precision": precision, "budget": "", "solver": "measure",
                          "seconds": round(time.monotonic() - start, 2), "exit_code": code,
                          "result": "ok" if code == 0 else "FAILED",
                          "note": "" if code == 0 else f"exit code {code}: {answer.get('error', '')}"})
        return "" if code == 0 else "the graph could not be measured"

    def run(self, model, precision, budget, solver, end):
        row = {"model": model, "precision": precision, "budget": budget, "solver": solver}
        start = time.monotonic()
        try:
            code, answer = self.cairn.call(
                "run", str(self.graph(model, precision)), "--budget", budget, "--solver", solver, "--time-limit",
                self.given.time_limit, "--precision", precision, "--backend", "cuda", self.repeat_option, REPEATS,
                timeout=end - start)
        except subprocess.TimeoutExpired:
            return {**row, "result": NOT_RUN, "note": NOT_RUN}
        row.update(seconds=round(time.monotonic() - start, 2), exit_code=code)
        return {**row, **judge_run(code, answer)}

    def all_runs(self, end):
        solvers = self.cairn.solvers()
        if not solvers:
            return "FAILED", "`cairn solve --help` lists no solvers"
        self.repeat_option, self.machine["cairn_time"] = self.cairn.repeat_option()
        graphs = {}
        for model, precision, budget, solver in self.jobs(solvers):
            if time.monotonic() < end and (model, precision) not in graphs:
                problem = self.measure(model, precision, end)
                if problem != NOT_RUN:
                    graphs[model, precision] = problem
            problem = graphs.get((model, precision), NOT_RUN)
            if time.monotonic() >= end:
                problem = problem or NOT_RUN
            if problem:
                self.runs.append({"model": model, "precision": precision, "budget": budget, "solver": solver,
                                  "result": NOT_RUN if problem == NOT_RUN else "FAILED", "note": problem})
            else:
                self.runs.append(self.run(model, precision, budget, solver, end))
                row = self.runs[-1]
                print(f"{row.get('seconds', 0):7.1f} s    {model} {precision} {budget} {solver}: {row['note']}",
                      flush=True)
        return summarise_runs(self.runs)

    # Functions for the benchmarks, and for the comparison with PyTorch.

    def bench(self):
        program = self.given.build / "bench" / "cairn_cuda_bench"
        if not os.access(program, os.X_OK):
            return "skipped", f"{program.name} is not built"
        if self.left() <= 0:
            return NOT_RUN, ""
        file = self.folder / "bench.json"
        code, output = call([program, f"--benchmark_min_time={BENCHMARK_SECONDS}", "--benchmark_format=json",
                             f"--benchmark_out={file}", "--benchmark_out_format=json"], self.left())
        if code is None:
            return NOT_RUN, "no time was left to end it"
        if code != 0:
            return "FAILED", f"exit code {code}: {last_line(output)}"
        self.benchmarks = json.loads(file.read_text())["benchmarks"]
        errors = [b["name"] for b in self.benchmarks if b.get("error_occurred")]
        if errors:
            return "FAILED", f"errors in {', '.join(errors)}"
        return ("ok", f"{len(self.benchmarks)} benchmarks") if self.benchmarks else ("FAILED", "it ran no benchmark")

    def compare(self, model, share):
        """Runs bench/torch_compare.py for one model, within the fraction `share` of the remaining time."""
        seconds = self.left() * share
        if seconds < 5:
            return NOT_RUN, ""
        file = self.folder / f"{model}-torch.json"
        command = [sys.executable, ROOT / "bench" / "torch_compare.py", model, *self.models[model].split(),
                   "--precision", self.given.precision, "--cairn", self.given.cairn, "--time-limit",
                   self.given.time_limit, "--seconds", f"{0.8 * seconds:.0f}", "--json", file]
        graph = self.graph(model, self.given.precision)
        if graph.exists():
            command += ["--graph", graph]
        code, output = call(command, seconds)
        if file.exists():
            self.comparisons.append({**json.loads(file.read_text()), "table": output})
        if code is None:
            return NOT_RUN, "no time was left to end it"
        if code != 0:
            return "FAILED", f"exit code {code}: {last_line(output)}"
        words = {True: "yes", False: "no", None: "not measured"}
        return "ok", "verdicts: " + ", ".join(words[v["answer"]] for v in self.comparisons[-1]["verdicts"])

    # Functions for the whole check.

    def main(self):
        start = time.monotonic()
        code, answer = self.find_device()
        print(f"{self.machine['device']}, driver {self.machine['driver'] or 'unknown'}", flush=True)
        if code != 0:
            self.step("device", lambda: ("FAILED", f"a run of a small model ended with {code}: {answer.get('error')}"))
        with tempfile.TemporaryDirectory() as folder:
            self.folder = pathlib.Path(folder)
            wanted = set(self.given.steps)
            # Checks torch only if a step needs it, because importing torch takes seconds.
            torch = self.torch_problem() if wanted & {"torch", "pytorch", "counted"} else ""
            checks = [("tests", self.tests)] if "tests" in wanted else []
            if "sanitizers" in wanted:
                checks += [(tool, functools.partial(self.sanitizer, tool)) for tool in SANITIZERS]
            if "torch" in wanted:
                checks.append(("cairn.torch", (lambda: ("skipped", torch)) if torch else self.torch_tests))
            self.step_together(checks)
            self.begin_timed()
            if "host" in wanted:
                self.step("against the host", self.against_host)
            share = RUNS_SHARE_WITHOUT_TORCH if torch or "pytorch" not in wanted else RUNS_SHARE
            if "runs" in wanted:
                self.step("runs", lambda: self.all_runs(time.monotonic() + share * max(self.left(), 0)))
            if "benchmarks" in wanted:
                self.step("benchmarks", self.bench)
            for i, model in enumerate(self.models if "pytorch" in wanted else ()):
                if torch:
                    self.step(f"PyTorch {model}", lambda: ("skipped", torch))
                else:
                    self.step(f"PyTorch {model}",
                              lambda model=model, i=i: self.compare(model, 1 / (len(self.models) - i)))
            if "counted" in wanted:
                self.step("PyTorch, promises", (lambda: ("skipped", torch)) if torch else self.count_promises)
        self.machine["seconds"] = round(time.monotonic() - start, 1)
        return self.report()

    def torch_problem(self):
        """Returns why the steps with PyTorch cannot run, or an empty text if they can."""
        if self.given.quick:
            return "--quick"
        code, _ = call([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"], 120)
        return "" if code == 0 else "PyTorch is not installed or sees no device"

    def report(self):
        cells = [["step", "result", "s", "detail"]]
        cells += [[s["step"], s["result"], f"{s['seconds']:.1f}", s["detail"]] for s in self.steps]
        table = format_table(cells)
        failed = any(s["result"] == "FAILED" for s in self.steps)
        folder = pathlib.Path(self.given.results)
        folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^A-Za-z0-9]+", "-", self.machine["device"]).strip("-")
        path = folder / f"{name}-{self.machine['date']}{'-quick' if self.given.quick else ''}.md"
        path.write_text(self.page(table))
        figures = {"machine": self.machine, "models": self.models, "steps": self.steps,
                   "host_checks": self.host_checks, "runs": self.runs,
                   "benchmarks": self.benchmarks, "pytorch": self.comparisons, "promises": self.promises}
        path.with_suffix(".json").write_text(json.dumps(figures, indent=2) + "\n")
        print(f"\n{table}\n\n{path} and .json: {self.machine['seconds']} s in all; "
              + ("something FAILED" if failed else "nothing failed"))
        return 1 if failed else 0

    def page(self, table):
        m = self.machine
        parts = [f"# {m['device']}, {m['date']}",
                 f"Driver {m['driver'] or 'unknown'}, revision {m['revision'] or 'unknown'}, {m['time']}, "
                 f"{m['seconds']} s in all. Written by `scripts/gpu_check.sh{' --quick' if m['quick'] else ''}`.",
                 table, "## Models",
                 "\n".join(f"- `{model} {options}`" for model, options in self.models.items()),
                 "## Runs under a budget",
                 f"Times are the {m.get('cairn_time', 'fastest')} of {REPEATS} executions; the budget is a share of "
                 "the baseline's peak, the increases are over the baseline.",
                 format_table(run_cells(self.runs))]
        if self.benchmarks:
            parts += ["## Benchmarks", format_table(bench_cells(self.benchmarks))]
        for comparison in self.comparisons:
            lines = "\n".join("- " + verdict_line(v["question"], v["answer"], v["figures"])
                              for v in comparison["verdicts"])
            rows = "\n".join(line for line in comparison["table"].splitlines() if line.startswith("|"))
            parts += [f"## PyTorch and Cairn: {comparison['model']}, {comparison['precision']}",
                      f"PyTorch {comparison['torch']}", rows, lines]
        if self.promises:
            parts += ["## Promises of cairn.torch, counted", f"PyTorch {self.promises['machine']['torch']}. In each cell: MiB that "
                      "are promised, and in percent of it, what the allocator's history and a count of storages say.",
                      self.promises["table"].strip()]
        return "\n\n".join(parts) + "\n"


def revision():
    """Returns the git revision, followed by "with changes" if files differ from it. Returns an empty text if git is not
    installed or the folder is no git repository."""
    if shutil.which("git") is None:
        return ""
    code, text = call(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], 30)
    if code != 0:
        return ""
    changed, changes = call(["git", "-C", ROOT, "status", "--porcelain"], 30)
    return text.strip() + (" with changes" if changed == 0 and changes.strip() else "")


def find_tool(name):
    found = shutil.which(name)
    if found:
        return found
    for folder in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        program = os.path.join(folder, "bin", name) if folder else ""
        if program and os.access(program, os.X_OK):
            return program
    return None


def judge_run(code, answer):
    """Judges a run of `cairn run` by its exit code and answer. Returns the result ("ok", "no schedule" or "FAILED") and
    the run's figures."""
    if code in NO_SCHEDULE:
        return {"result": "no schedule", "note": NO_SCHEDULE[code]}
    if code != 0:
        return {"result": "FAILED", "note": f"exit code {code}: {answer.get('error', '')}"}
    baseline, scheduled = answer["baseline"], answer["scheduled"]
    faults = [] if answer["identical"] else ["results differ"]
    for name, part in (("baseline", baseline), ("schedule", scheduled)):
        if part["measured_peak_bytes"] != part["planned_bytes"]:
            faults.append(f"{name}: {part['measured_peak_bytes']} bytes measured, {part['planned_bytes']} planned")
    figures = {
        "baseline_ms": 1e3 * baseline["seconds"],
        "ms": 1e3 * scheduled["seconds"],
        "baseline_bytes": baseline["measured_peak_bytes"],
        "planned_bytes": scheduled["planned_bytes"],
        "measured_bytes": scheduled["measured_peak_bytes"],
        "identical": answer["identical"],
        "predicted_increase_pct": scheduled["cost_increase_pct"],
        "measured_increase_pct": percent_over(scheduled["seconds"], baseline["seconds"]),
        "replay_over_sum": baseline["seconds"] / max(baseline["predicted_seconds"], 1e-12),
        "recomputed": scheduled["recomputed"],
        "solve_seconds": answer.get("solve_seconds"),
    }
    error = abs(figures["measured_increase_pct"] - figures["predicted_increase_pct"])
    figures["prediction_error_points"] = error
    note = (f"{figures['predicted_increase_pct']:+.1f}% predicted, {figures['measured_increase_pct']:+.1f}% measured "
            f"({'within' if error <= POINTS_ASKED else 'NOT within'} {POINTS_ASKED} points); step / sum of its ops "
            f"{figures['replay_over_sum']:.3f} ({'<=' if figures['replay_over_sum'] <= RATIO_ASKED else 'NOT <='} "
            f"{RATIO_ASKED})")
    return {"result": "FAILED" if faults else "ok", "note": "; ".join([*faults, note]), **figures}


def summarise_runs(runs):
    executed = [row for row in runs if row["solver"] != "measure"]
    count = {result: sum(row["result"] == result for row in runs) for result in ("FAILED", NOT_RUN)}
    ok = sum(row["result"] == "ok" for row in executed)
    detail = f"{ok} identical, measured = planned"
    measured = [row for row in executed if "replay_over_sum" in row]
    if measured:
        ratio = max(row["replay_over_sum"] for row in measured)
        points = [row["prediction_error_points"] for row in measured]
        within = sum(error <= POINTS_ASKED for error in points)
        detail += (f"; increase {within} of {len(points)} within {POINTS_ASKED} points, at most {max(points):.1f} off; "
                   f"step / its ops alone at most {ratio:.3f} (asked {RATIO_ASKED})")
    without = sum(row["result"] == "no schedule" for row in executed)
    for number, words in ((without, "without a schedule"), (count["FAILED"], "FAILED"), (count[NOT_RUN], NOT_RUN)):
        if number:
            detail += f"; {number} {words}"
    if count["FAILED"] or (ok == 0 and not count[NOT_RUN]):
        return "FAILED", detail
    return ("ok" if ok else NOT_RUN), detail


def run_cells(runs):
    cells = [["model", "precision", "budget", "solver", "baseline ms", "ms", "predicted", "measured", "step/ops",
              "planned", "identical", "note"]]
    for row in runs:
        if row["solver"] == "measure":
            cells.append([row["model"], row["precision"], "", "measure", "", "", "", "", "", "", "",
                          row["note"] or f"{row['seconds']:.1f} s"])
        elif "ms" in row:
            cells.append([row["model"], row["precision"], row["budget"], row["solver"], f"{row['baseline_ms']:.3f}",
                          f"{row['ms']:.3f}", f"{row['predicted_increase_pct']:+.1f}%",
                          f"{row['measured_increase_pct']:+.1f}%", f"{row['replay_over_sum']:.3f}",
                          mib(row["planned_bytes"]),
                          "yes" if row["identical"] else "NO", row["note"] if row["result"] == "FAILED" else ""])
        else:
            cells.append([row["model"], row["precision"], row["budget"], row["solver"], *[""] * 7, row["note"]])
    return cells


def bench_cells(benchmarks):
    cells = [["benchmark", "time", "unit", "more"]]
    standard = {"name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions",
                "repetition_index", "threads", "iterations", "real_time", "cpu_time", "time_unit"}
    for b in benchmarks:
        more = [f"{key} {value:.4g}" for key, value in b.items()
                if key not in standard and isinstance(value, (int, float)) and not isinstance(value, bool)]
        time_text = f"{b['real_time']:.4g}" if "real_time" in b else ""
        cells.append([b["name"], time_text, b.get("time_unit", ""), ", ".join(more) or b.get("label", "")])
    return cells


def main(arguments):
    try:
        return Check(parse_arguments(arguments)).main()
    except Failure as failure:
        print(f"gpu_check: {failure}", file=sys.stderr)
        return failure.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
