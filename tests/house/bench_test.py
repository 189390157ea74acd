"""Tests scripts/gpu_check.sh and scripts of bench/ without a GPU or PyTorch. All figures are invented."""

import json
import shutil
import subprocess
import sys
import time
import types
import unittest
from unittest import mock

from stand_ins import ROOT, ScriptTest

sys.path.insert(0, str(ROOT / "bench"))
import gpu_check  # noqa: E402
import promises  # noqa: E402
import torch_compare  # noqa: E402

PART = {"seconds": 0.1, "predicted_seconds": 0.1, "measured_peak_bytes": 9, "planned_bytes": 9, "recomputed": 3}
RUN = {"device": "Test GPU X1, 80 GiB", "identical": True, "loss": 1.5, "budget_bytes": 50, "baseline": PART,
       "scheduled": {**PART, "cost_increase_pct": 8}, "host_check": {"worst_error": 2e-5}}
TESTS = f'echo "cuda $CAIRN_REQUIRE_DEVICE" >> CALLS  # {gpu_check.KERNEL}'
RUNS = len(gpu_check.QUICK_MODELS) * (3 * 3 + 2)  # 3 budgets in each of 3 precisions; 2 other solvers under one budget


class BenchTest(ScriptTest):
    def cairn(self, answer, code=0):
        """Replaces the command `cairn` by a script that prints `answer` for run, measure and model, and exits with
        `code`."""
        self.stand_in("built/bin/cairn", f"""echo "$*" >> CALLS; case "$*" in
run*--help*) echo '--repeats INT  timed steps; the\n  median is reported\n  --poison' ;;
solve*) echo '--solver TEXT\n  one of auto,\n  greedy, none\n  -t' ;;
*'--solver none'*) echo '{{"error": "nothing fits"}}'; exit 4 ;;
*) echo '{answer if isinstance(answer, str) else json.dumps(answer)}'; exit {code} ;;
esac""")
        given = torch_compare.parse_arguments(["ffn", "--cairn", f"{self.bin}/built/bin/cairn", "--graph", "g.json"])
        given.repeat_option = "--repeats"
        return torch_compare.Cairn(given.cairn), given


class Promises(BenchTest):
    def test_a_command_that_fails_keeps_no_promise_and_ends_no_table(self):
        self.stand_in("cairn", """case "$*" in
run*) echo '{"scheduled": {"measured_peak_bytes": 9}}' ;;
*) echo 'no answer' >&2; exit 5 ;;
esac""")
        least = {"alignment": 1, "least_feasible_bytes": 9, "wall": 0.1}
        for budget in ("60%", "least"):
            agree, row = promises.judge(promises.Cairn(self.bin / "cairn"), ["g.json"], "g", budget, "1s", least, self.root)
            self.assertFalse(agree)
            self.assertEqual(row[:7], ["g", budget, None, 5, 5, 0, 9])


class GpuCheck(BenchTest):
    script = "scripts/gpu_check.sh"

    def check(self, code, *arguments, **environment):
        results = self.root / "results"
        run = self.run_script("--build", self.bin / "built", *arguments, "--results", results, **environment)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        (page,) = [file for file in results.glob("Test-GPU-X1-*.md") if "# Test GPU X1" in file.read_text()]
        self.figures = json.loads(page.with_suffix(".json").read_text())
        shutil.rmtree(results)
        return {step["step"]: step["result"] for step in self.figures["steps"] if "orch" not in step["step"]}

    def test_all_steps_run_and_neither_a_failure_nor_a_lack_stops_the_later_ones(self):
        self.cairn(RUN)
        bench = """case $3 in --benchmark_out=*) echo '{"benchmarks": [{"name": "copy"}]}' > ${3#*=};; esac"""
        for name, body in [("built/tests/test_cuda", TESTS), ("built/bench/cairn_cuda_bench", bench),
                           ("compute-sanitizer", 'echo "sanitizer $*" >> CALLS')]:
            self.stand_in(name, body)
        steps = dict.fromkeys(("tests", *gpu_check.SANITIZERS, "against the host", "runs", "benchmarks"), "ok")
        self.assertEqual(self.check(0, "--quick"), steps)
        self.assertEqual((self.calls("cuda"), len(self.calls("measure resnet50 --batch 8 "))), (["cuda 1"], 3))
        checked = [call for call in self.calls("run") if call.endswith(" --check --json")]
        self.assertEqual((len(checked), {call.split(" --budget ")[1][:3] for call in checked}), (12, {"70%"}))
        self.assertEqual(len([call for call in self.calls("run") if "--solver" in call]), RUNS)
        self.assertEqual([call for call in self.calls("run") if "greedy" in call and "--budget 50%" not in call], [])
        (detail,) = [step["detail"] for step in self.figures["steps"] if step["step"] == "runs"]
        # The script in place of `cairn` states equal times with and without recomputation, but predicts an increase of
        # 8%.
        self.assertIn(f"; increase 0 of {RUNS - 4} within 3 points, at most 8.0 off; step / its ops alone at", detail)
        self.cairn({**RUN, "identical": False, "host_check": None})
        for name, code in ("built/tests/test_cuda", 9), ("built/bench/cairn_cuda_bench", 0), ("compute-sanitizer", 9):
            self.stand_in(name, f"exit {code}  # {gpu_check.KERNEL}")
        self.assertEqual(self.check(1, "--quick"), dict.fromkeys(steps, "FAILED"))
        self.stand_in("compute-sanitizer", "echo '= Error: Device not supported'; exit 1")
        found = self.check(0, "--steps", "sanitizers,runs", GPU_CHECK_SECONDS="0")
        self.assertEqual(found, {**dict.fromkeys(gpu_check.SANITIZERS, "skipped"), "runs": "not run: time"})
        self.assertEqual([row["result"] for row in self.figures["runs"]], ["not run: time"] * RUNS)

    def test_sanitizers_of_shared_memory_watch_only_kernels_of_cairn(self):
        self.cairn(RUN)
        self.stand_in("built/tests/test_cuda", TESTS)
        self.stand_in("compute-sanitizer", 'echo "sanitizer $*" >> CALLS')
        self.check(0, "--steps", "sanitizers")
        watched = {call.split()[2]: "--kernel-name kns=_ZN5cairn " in call for call in self.calls("sanitizer")}
        self.assertEqual(watched, {"memcheck": False, "racecheck": True, "initcheck": False, "synccheck": True})
        self.stand_in("built/tests/test_cuda", "exit 0  # its kernels have other names")
        found = self.check(1, "--steps", "sanitizers")
        self.assertEqual(found, {tool: "FAILED" if watched[tool] else "ok" for tool in gpu_check.SANITIZERS})
        source = (ROOT / "cuda/internal/machine.cuh").read_text()
        self.assertRegex(source, r"__global__ [^;]*\n *run_teams\(")

    def test_a_sanitizer_that_is_not_done_in_time_has_failed(self):
        self.stand_in("built/tests/test_cuda", TESTS)
        self.stand_in("compute-sanitizer", "sleep 9")
        check = gpu_check.Check(types.SimpleNamespace(build=self.bin / "built", cairn="cairn", quick=True))
        with mock.patch.object(gpu_check, "find_tool", return_value=self.bin / "compute-sanitizer"), \
             mock.patch.object(gpu_check, "SANITIZER_SECONDS", 0.1):
            for tool in gpu_check.SANITIZERS:
                self.assertEqual(check.sanitizer(tool), ("FAILED", "not done after 0.1 s"))

    def test_promises_that_are_counted(self):
        check = gpu_check.Check(types.SimpleNamespace(build=self.bin / "built", cairn="cairn", quick=False))
        check.folder = self.root
        row = {"same": True, "measured": 9, "counted": 8, "promised": 9}

        def counted(rows, code):
            def call(command, seconds, environment=None):
                if "--json" not in command:
                    return 0, ""
                (self.root / "promises.json").write_text(json.dumps({"models": {"gpt-6": {"aot": {}, **rows}}}))
                return code, "its last line"

            with mock.patch.object(gpu_check, "call", call):
                return check.count_promises()

        self.assertEqual(counted({"70%": row, "min": row, "40%": {"failed": "refused"}}, 0),
                         ("ok", "2 of 2 steps have the same bits within the promise, 1 were refused"))
        self.assertEqual(counted({"70%": row, "min": {**row, "counted": 10}}, None)[0], "FAILED")
        self.assertEqual(counted({"70%": {**row, "same": False}}, 0)[0], "FAILED")
        self.assertEqual(counted({"70%": row}, 1), ("FAILED", "its last line"))

    def test_runs_say_how_many_predictions_are_within_the_points_asked(self):
        rows = [{"solver": "auto", "result": "ok", "replay_over_sum": 1, "prediction_error_points": points}
                for points in (0.2, 3, 3.1)]
        rows += [{"solver": "auto", "result": "no schedule"}, {"solver": "measure", "result": "ok"}]
        result, detail = gpu_check.summarise_runs(rows)
        self.assertEqual(result, "ok")
        self.assertEqual(detail, "3 identical, measured = planned; increase 2 of 3 within 3 points, at most 3.1 off; "
                                 "step / its ops alone at most 1.000 (asked 1.02); 1 without a schedule")

    def test_refusals_are_one_line_and_a_program_out_of_time_ends_with_its_children(self):
        self.cairn({"error": "no CUDA device"}, 5)
        for words, code, fault in [("--build", 2, "needs a folder"), ("--build /nowhere", 2, "'/nowhere/bin/cairn' is"),
                                   (f"--build {self.bin}/built --steps run", 2, "there is no step 'run'"),
                                   (f"--build {self.bin}/built --quick", 5, "no CUDA device")]:
            self.check_refusal(self.run_script(*words.split()), fault, code)
        self.assertEqual(gpu_check.call(["sh", "-c", f"(sleep 0.5; touch {self.root}/mark) & wait"], 0.1), (None, ""))
        time.sleep(0.7)
        self.assertFalse((self.root / "mark").exists())

    def test_it_builds_with_what_is_installed(self):
        self.cairn(RUN)
        for folder in ("scripts", "bench"):
            shutil.copytree(ROOT / folder, self.root / folder)
        self.script = f"{self.root}/{self.script}"
        self.stand_in("../scripts/install_deps.sh", "exit 1")
        self.stand_in("cmake", f"[ $1 = --preset ] || cp -r {self.bin}/built/. build/cuda/")
        self.assertEqual(self.run_script("--quick", "--steps", "host").returncode, 0)
        self.stand_in("cmake", "exit 1")
        self.check_refusal(self.run_script("--quick"), "could not be configured")


class TorchCompare(BenchTest):
    script = "bench/torch_compare.py"

    def test_refusals_are_one_line(self):
        for words, fault in [("", "MODEL"), ("resnet51", "unknown model"), ("ffn --sdpa", "no attention"),
                             ("ffn --seq 4", "it takes --batch"), ("ffn --batch 0", "--batch 0 is out of range"),
                             ("ffn --modes eager,x", "mode 'x'"), ("ffn --modes checkpoint", "must have eager"),
                             ("ffn --cairn /nowhere", "no program"), ("ffn --json /nowhere/x", "no such folder")]:
            self.check_refusal(self.run_script(*words.split()), fault, 2)
        run = subprocess.run([sys.executable, "-S", ROOT / self.script, "ffn"], capture_output=True, text=True)
        self.check_refusal(run, "PyTorch is not installed", 2)  # with -S, Python finds no packages

    def test_answers_of_cairn_are_judged(self):
        above = {**RUN["scheduled"], "measured_peak_bytes": 10}
        for answer, code, failed, note in [
                (RUN, 0, False, "identical, measured = planned"), ({**RUN, "identical": False}, 0, True, "DIFFER"),
                ({}, 3, False, "(proved)"), ({**RUN, "scheduled": above}, 0, True, "IS NOT PLANNED"),
                ({}, 4, False, "schedule found"), ("no json", 1, True, "no json"), ("no json", 0, True, "no json")]:
            row = torch_compare.cairn_row(*self.cairn(answer, code), "g.json", "50%", "50%", "50%")
            self.assertEqual((row["failed"], note in row["note"]), (failed, True), row)
        cairn, given = self.cairn({"parameters": 12})
        self.assertEqual([*cairn.repeat_option(), *cairn.solvers()], ["--repeats", "median", "auto", "greedy", "none"])
        with self.assertRaisesRegex(torch_compare.Failure, "ffn has 12 parameters in Cairn and 13 in PyTorch"):
            torch_compare.check_parameters(cairn, given, 13)

    def test_verdicts_compare_like_figures(self):
        theirs = [{"mode": mode, "sdpa": False, "ms": ms, "fastest_ms": ms, "activation_bytes": size}
                  for mode, ms, size in (("eager", 110, 100), ("checkpoint", 143, 40), ("checkpoint-sqrt", 132, 60))]
        cairn, given = self.cairn(RUN)
        ours = torch_compare.cairn_rows(given, cairn, theirs, time.monotonic())
        self.assertEqual([row["budget"] for row in ours], ["100%", "70%", "50%", "35%", "50", "40", "60"])
        slow = [{**row, "baseline_ms": 111, "increase_pct": 31} for row in ours]
        for rows, answer in ((ours, True), (slow, False), ([], None)):
            self.assertEqual([v[1] for v in torch_compare.verdicts(theirs, rows, "median")], [answer] * 4)

    def test_pictures_have_a_mark_for_each_figure(self):
        self.script = "bench/torch/plot.py"
        figures = ROOT / "bench/results/h100-2026-11-26-gpt2.json"  # 7 runs of Cairn, 3 of PyTorch with known memory
        self.assertEqual(self.run_script("--compare", figures, "--to", self.root).returncode, 0)
        self.assertEqual((self.root / "gpu.svg").read_text().count(" ms</title>"), 7 + 3)


if __name__ == "__main__":
    unittest.main()
