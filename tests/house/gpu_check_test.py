"""scripts/gpu_check.sh and bench/gpu_check.py on stand-ins for the build, the tools and PyTorch.

Every figure here is made up."""

import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import gpu_check  # noqa: E402

SOLVERS = ["auto", "greedy", "none"]
RUN = {
    "device": "Test GPU, 80 GiB", "budget_bytes": 50, "identical": True, "loss": 1.5, "solve_seconds": 0.5,
    "baseline": {"seconds": 0.1, "predicted_seconds": 0.1, "measured_peak_bytes": 100, "planned_bytes": 100},
    "scheduled": {"seconds": 0.11, "measured_peak_bytes": 48, "planned_bytes": 48, "cost_increase_pct": 8.0,
                  "recomputed": 3},
}
CAIRN = """#!/bin/sh
here={folder}
echo "cairn $*" >> $here/calls
case "$*" in
  'run --help') echo '  --repeats INT  executions; the median is reported  --poison x' ;;
  'solve --help') echo '  -s,--solver TEXT=auto  one of auto, greedy, none' ;;
  'measure '*) echo '{{}}' ;;
  *'--solver none'*) echo '{{"error": "nothing fits"}}'; exit 4 ;;
  *--check*) cat $here/check.json; exit $(cat $here/check.code) ;;
  *) cat $here/run.json; exit $(cat $here/run.code) ;;
esac
"""
MODELS = len(gpu_check.QUICK_MODELS)
RUNS = MODELS * (3 + 2 + 3 * (len(SOLVERS) - 1))  # budgets; other precisions; other solvers


class StandIns(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.build = self.folder / "built"
        self.results = self.folder / "results"
        self.program("built/bin/cairn", CAIRN.format(folder=self.folder))
        self.program("built/tests/test_cuda", self.logging("test_cuda $CAIRN_REQUIRE_DEVICE", "echo 'All passed (9)'"))
        self.program("built/bench/cairn_cuda_bench",
                     self.logging("bench", 'for w in "$@"; do case $w in --benchmark_out=*) '
                                  "echo '{\"benchmarks\": [{\"name\": \"copy\", \"real_time\": 1.5, \"time_unit\": "
                                  "\"us\", \"bytes_per_second\": 4e12}]}' > ${w#*=};; esac; done"))
        self.program("path/nvidia-smi", "#!/bin/sh\necho 'Test GPU X1, 1.2.3'\n")
        self.program("path/git", "#!/bin/sh\n[ $3 = status ] || echo abc1234\n")
        self.program("path/compute-sanitizer", self.logging("sanitizer", 'echo "===== ERROR SUMMARY: 0 errors"'))
        (self.folder / "modules").mkdir()
        (self.folder / "modules" / "torch.py").write_text("raise ImportError\n")
        self.run_answers(RUN, 0)
        self.answers("check", {**RUN, "host_check": {"worst_error": 2e-5, "passed": True}}, 0)

    def logging(self, words, body):
        return f'#!/bin/sh\necho "{words} $*" >> {self.folder}/calls\n{body}\n'

    def program(self, name, text):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def answers(self, name, answer, code):
        (self.folder / f"{name}.json").write_text(json.dumps(answer))
        (self.folder / f"{name}.code").write_text(str(code))

    def run_answers(self, answer, code):
        self.answers("run", answer, code)

    def calls(self, start=""):
        return [line for line in (self.folder / "calls").read_text().splitlines() if line.startswith(start)]

    def check(self, *arguments, script=ROOT / "scripts" / "gpu_check.sh", build=True, **environment):
        command = [script, *(["--build", self.build] if build else []), *arguments]
        if build:
            command += ["--results", self.results]
        path = f"{self.folder}/path:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**os.environ, "PATH": path, "PYTHONPATH": str(self.folder / "modules"),
                                   "PYTHONDONTWRITEBYTECODE": "1", **environment})

    def figures(self):
        (file,) = self.results.glob("*.json")
        return json.loads(file.read_text())

    def step(self, name):
        (step,) = [step for step in self.figures()["steps"] if step["step"] == name]
        return step


class Script(StandIns):
    def test_all_steps_run_and_are_written_down(self):
        run = self.check("--quick")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("nothing failed", run.stdout.splitlines()[-1])

        self.assertEqual(self.calls("test_cuda"), ["test_cuda 1 "])
        self.assertEqual(self.calls("sanitizer"),
                         [f"sanitizer --tool {tool} --error-exitcode 9 {self.build}/tests/test_cuda [sanitize]"
                          for tool in ("memcheck", "racecheck", "initcheck", "synccheck")])
        self.assertEqual(len(self.calls("cairn measure")), 3 * MODELS)
        self.assertIn("--precision bf16 --backend cuda -o ", self.calls("cairn measure resnet50")[0])
        runs = [call for call in self.calls("cairn run") if "--solver" in call]
        self.assertEqual(len(runs), RUNS)
        self.assertIn("--budget 50% --solver auto --time-limit 20s --precision bf16 --backend cuda --repeats 10 --json",
                      runs[0])

        figures = self.figures()
        self.assertEqual((figures["machine"]["device"], figures["machine"]["driver"]), ("Test GPU X1", "1.2.3"))
        self.assertEqual((figures["machine"]["revision"], figures["machine"]["cairn_time"]), ("abc1234", "median"))
        self.assertEqual(self.step("runs")["detail"],
                         f"{RUNS - 3 * MODELS} identical, measured = planned; step / its ops alone at most 1.000 "
                         "(asked 1.02), increase at most 2.0 points off (asked 3); "
                         f"{3 * MODELS} without a schedule")
        self.assertEqual(self.step("against the host")["detail"],
                         "worst error fp32 2.0e-05, tf32 2.0e-05, bf16 2.0e-05")
        self.assertEqual(len([call for call in self.calls("cairn run") if "--check" in call]), 3 * MODELS)
        self.assertEqual(self.step("benchmarks")["detail"], "1 benchmarks")
        self.assertEqual(self.step("PyTorch gpt2")["result"], "skipped")
        (page,) = self.results.glob("Test-GPU-X1-*-quick.md")
        text = page.read_text()
        for words in ["# Test GPU X1", "no schedule found", "+8.0%", "bytes_per_second 4e+12", "`gpt2 --batch 4"]:
            self.assertIn(words, text)

    def test_without_a_device_one_line_and_exit_5(self):
        self.run_answers({"error": "--backend cuda: no CUDA device", "exit_code": 5}, 5)
        run = self.check("--quick")
        self.assertEqual((run.returncode, run.stdout), (5, ""))
        self.assertEqual(run.stderr, "gpu_check: --backend cuda: no CUDA device\n")
        self.assertEqual(len(self.calls()), 1)
        self.assertFalse(self.results.exists())

    def test_a_failing_step_does_not_stop_the_later_ones(self):
        self.program("built/tests/test_cuda", "#!/bin/sh\necho 'matmul differs'\nexit 1\n")
        self.program("path/compute-sanitizer", '#!/bin/sh\necho "== ERROR SUMMARY: 2 errors"\nexit 9\n')
        self.program("built/bench/cairn_cuda_bench", "#!/bin/sh\nexit 1\n")
        run = self.check("--quick")
        self.assertEqual(run.returncode, 1)
        self.assertIn("something FAILED", run.stdout.splitlines()[-1])
        self.assertIn("matmul differs", run.stdout)
        self.assertEqual(self.step("tests")["result"], "FAILED")
        self.assertEqual(self.step("memcheck")["detail"], "exit code 9: 2 errors")
        self.assertEqual(self.step("benchmarks")["result"], "FAILED")
        self.assertEqual(self.step("runs")["result"], "ok")

    def test_results_that_differ_fail(self):
        self.run_answers({**RUN, "identical": False}, 0)
        run = self.check("--quick")
        self.assertEqual((run.returncode, self.step("runs")["result"]), (1, "FAILED"))
        self.assertIn("results differ", run.stdout)

    def test_a_refusing_sanitizer_and_missing_programs_are_skipped(self):
        self.program("path/compute-sanitizer", "#!/bin/sh\necho '========= Error: Device not supported'\nexit 1\n")
        (self.build / "bench" / "cairn_cuda_bench").unlink()
        run = self.check("--quick")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual((self.step("racecheck")["result"], self.step("racecheck")["detail"]),
                         ("skipped", "Error: Device not supported"))
        self.assertEqual(self.step("benchmarks")["result"], "skipped")

    def test_what_no_longer_fits_is_listed_as_not_run(self):
        run = self.check(GPU_CHECK_SECONDS="0")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(self.step("against the host")["result"], "not run: time")
        self.assertEqual(self.step("runs")["result"], "not run: time")
        self.assertEqual(self.step("benchmarks")["result"], "not run: time")
        self.assertEqual({row["result"] for row in self.figures()["runs"]}, {"not run: time"})
        self.assertEqual(len(self.figures()["runs"]), RUNS)
        self.assertEqual(self.step("PyTorch unet")["detail"], "PyTorch is not installed or sees no device")

    def test_steps_can_be_chosen(self):
        run = self.check("--quick", "--steps", "tests,benchmarks")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual([step["step"] for step in self.figures()["steps"]], ["tests", "benchmarks"])
        self.assertEqual(self.calls("sanitizer") + self.calls("cairn measure"), [])

    def test_bad_usage_is_one_line(self):
        for arguments, words in [(["--build"], "--build needs a folder"),
                                 (["--build", "/nowhere"], "'/nowhere/bin/cairn' is not there"),
                                 (["--build", str(self.build), "--wrong"], "--wrong"),
                                 (["--build", str(self.build), "--steps", "runs,run"], "there is no step 'run'")]:
            with self.subTest(arguments=arguments):
                run = self.check(*arguments, build=False)
                self.assertEqual((run.returncode, run.stderr.count("\n")), (2, 1), run.stderr)
                self.assertIn(words, run.stderr)
        run = self.check(GPU_CHECK_SECONDS="soon")
        self.assertEqual((run.returncode, run.stderr), (2, "gpu_check: GPU_CHECK_SECONDS 'soon' is no number\n"))


class Building(StandIns):
    """The script in a tree of its own, whose cmake is a stand-in."""

    def setUp(self):
        super().setUp()
        self.tree = self.folder / "tree"
        for folder in ("scripts", "bench"):
            (self.tree / folder).mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "gpu_check.sh", self.tree / "scripts")
        for name in ("gpu_check.py", "torch_compare.py"):
            shutil.copy(ROOT / "bench" / name, self.tree / "bench")
        self.program("tree/scripts/install_deps.sh", self.logging("install_deps", "exit 1"))
        self.program("path/cmake", self.logging("cmake", f"[ $1 = --preset ] || cp -r {self.build}/. build/cuda/"))

    def build_and_check(self):
        return self.check("--quick", script=self.tree / "scripts" / "gpu_check.sh", build=False)

    def test_it_builds_with_what_is_installed(self):
        run = self.build_and_check()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(self.calls()[:3], ["install_deps ", "cmake --preset cuda -D CAIRN_WERROR=ON",
                                            "cmake --build build/cuda -- --quiet"])
        self.assertEqual(len(list((self.tree / "bench" / "results").glob("*.md"))), 1)

    def test_a_build_that_fails_ends_the_check(self):
        self.program("path/cmake", self.logging("cmake", "echo 'no nvcc'; exit 1"))
        run = self.build_and_check()
        self.assertEqual((run.returncode, self.calls("cairn")), (1, []))
        self.assertIn("no nvcc", run.stdout)
        self.assertIn("could not be configured", run.stderr)


class Steps(StandIns):
    """Single steps, in this process."""

    def setUp(self):
        super().setUp()
        self.checked = gpu_check.Check(gpu_check.parse_arguments(["--build", str(self.build)]))
        self.checked.folder = self.folder
        self.checked.begin_timed()

    def test_a_comparison_gets_the_graph_and_its_verdicts_are_kept(self):
        self.checked.graph("unet", "bf16").touch()
        commands = []

        def call(command, seconds, environment=None):
            commands.append([str(word) for word in command])
            verdicts = [{"question": "q", "answer": answer, "figures": ""} for answer in (True, False, None)]
            file = pathlib.Path(commands[-1][commands[-1].index("--json") + 1])
            file.write_text(json.dumps({"verdicts": verdicts}))
            return 0, "| a |"

        with mock.patch.object(gpu_check, "call", call):
            self.assertEqual(self.checked.compare("unet", 1.0), ("ok", "verdicts: yes, no, not measured"))
        self.assertEqual(commands[0][-2:], ["--graph", str(self.checked.graph("unet", "bf16"))])
        for words in (["unet", "--batch", "16"], ["--precision", "bf16"], ["--cairn", str(self.build / "bin/cairn")]):
            first = commands[0].index(words[0])
            self.assertEqual(commands[0][first : first + len(words)], words)
        with mock.patch.object(gpu_check, "call", lambda *a: (None, "")):
            self.assertEqual(self.checked.compare("gpt2", 1.0), ("not run: time", "no time was left to end it"))
        with mock.patch.object(gpu_check, "call", lambda *a: (1, "torch_compare: x differs\n")):
            self.assertEqual(self.checked.compare("gpt2", 1.0), ("FAILED", "exit code 1: torch_compare: x differs"))

    def test_a_missing_sanitizer_is_skipped_and_a_slow_one_is_not_passed(self):
        with mock.patch.object(gpu_check, "find_tool", lambda name: None):
            self.assertEqual(self.checked.sanitizer("memcheck")[0], "skipped")
        self.program("path/compute-sanitizer", "#!/bin/sh\nsleep 60\n")
        slow = mock.patch.object(gpu_check, "SANITIZER_SECONDS", 0.1)
        found = mock.patch.object(gpu_check, "find_tool", lambda name: str(self.folder / "path" / name))
        with slow, found, contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(self.checked.sanitizer("racecheck"), ("FAILED", "not done after 0.1 s"))
            self.assertEqual(self.checked.sanitizer("initcheck")[0], "skipped")

    def test_a_program_out_of_time_ends_with_its_children(self):
        mark = self.folder / "mark"
        code, _ = gpu_check.call(["sh", "-c", f"(sleep 1; touch {mark}) & wait"], 0.1)
        self.assertIsNone(code)
        code, output = gpu_check.call(["sh", "-c", "sleep 1.2; echo said; exit 3"], 30)
        self.assertEqual((code, output, mark.exists()), (3, "said\n", False))

    def test_a_measurement_that_fails_fails_the_runs_on_it(self):
        failing = "'measure gpt2'*) echo '{\"error\": \"no memory\"}'; exit 5 ;;\n  'measure '*)"
        self.program("built/bin/cairn", CAIRN.format(folder=self.folder).replace("'measure '*)", failing))
        with contextlib.redirect_stdout(io.StringIO()):
            result, detail = self.checked.all_runs(gpu_check.time.monotonic() + 60)
        self.assertEqual(result, "FAILED")
        measured = [row for row in self.checked.runs if row["solver"] == "measure" and row["result"] == "FAILED"]
        self.assertEqual({row["model"] for row in measured}, {"gpt2"})
        self.assertEqual(len(measured), 3)
        self.assertEqual(measured[0]["note"], "exit code 5: no memory")
        failed = [row for row in self.checked.runs if row["note"] == "the graph could not be measured"]
        self.assertEqual(len(failed), RUNS // MODELS)

    def test_results_unlike_the_hosts_fail(self):
        self.answers("check", {"error": "output 'fc' differs from the host's"}, 1)
        result, detail = self.checked.against_host()
        self.assertEqual(result, "FAILED")
        self.assertIn("gpt2 tf32: output 'fc' differs from the host's", detail)

    def test_runs_are_judged_by_what_they_say(self):
        self.assertEqual(gpu_check.judge_run(0, RUN)["note"], "+8.0% predicted, +10.0% measured (within 3 points); step / sum of its ops 1.000 (<= 1.02)")
        self.assertEqual(gpu_check.judge_run(3, {})["result"], "no schedule")
        self.assertEqual(gpu_check.judge_run(1, {"error": "e"}), {"result": "FAILED", "note": "exit code 1: e"})
        high = {**RUN, "baseline": {**RUN["baseline"], "measured_peak_bytes": 101}}
        self.assertEqual(gpu_check.judge_run(0, high)["result"], "FAILED")
        self.assertIn("baseline: 101 bytes measured, 100 planned", gpu_check.judge_run(0, high)["note"])


if __name__ == "__main__":
    unittest.main()
