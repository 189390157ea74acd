"""bench/torch_compare.py without PyTorch and without a device: messages, Cairn's side against a stand-in, the table.

Every figure here is made up."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "bench" / "torch_compare.py"
sys.path.insert(0, str(ROOT / "bench"))
import torch_compare  # noqa: E402

MIB = 2**20


def torch_row(mode, ms, activations, sdpa=False, note=""):
    return {"mode": mode, "sdpa": sdpa, "ms": ms, "fastest_ms": ms and ms - 1, "peak_bytes": None,
            "activation_bytes": activations, "note": note}


def cairn_row(key, ms, measured, baseline_ms=100.0):
    return {"label": key, "budget": "1", "key": key, "failed": False, "exit_code": 0, "note": "identical", "ms": ms,
            "baseline_ms": baseline_ms, "baseline_bytes": 90 * MIB, "measured_bytes": measured,
            "increase_pct": 100 * (ms / baseline_ms - 1)}


PYTORCH = [torch_row("eager", 110.0, 100 * MIB), torch_row("eager-graph", 105.0, None),
           torch_row("checkpoint", 143.0, 40 * MIB), torch_row("checkpoint-sqrt", 140.0, 60 * MIB),
           torch_row("eager", 90.0, 70 * MIB, sdpa=True)]
CAIRN = [cairn_row("70%", 102.0, 60 * MIB), cairn_row("half of eager", 109.0, 50 * MIB),
         cairn_row("checkpoint", 120.0, 40 * MIB),
         {"label": "as checkpoint-sqrt", "budget": "1", "key": "checkpoint-sqrt", "failed": False, "exit_code": 3,
          "note": "no schedule fits (proved)"}]


class Messages(unittest.TestCase):
    def run_script(self, *arguments, python_path=None):
        environment = {**os.environ, "PYTHONPATH": str(python_path or ""), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, env=environment)

    def test_without_pytorch_one_line_says_how_to_get_it(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "torch.py").write_text("raise ImportError('not here')\n")
            run = self.run_script("ffn", "--device", "cpu", python_path=folder)
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertEqual(run.stderr, "torch_compare: PyTorch is not installed; python3 -m pip install torch\n")

    def test_bad_arguments_are_refused_in_one_line(self):
        for arguments, words in [
            ([], "MODEL"),
            (["resnet51"], "unknown model 'resnet51'; there are ffn"),
            (["resnet50", "--seq", "4"], "resnet50 has no option --seq; it takes --batch, --image, --classes, --width"),
            (["gpt2", "--batch", "0"], "gpt2: --batch 0 is out of range"),
            (["gpt2", "--bach", "1"], "--bach"),
            (["gpt2", "--precision", "fp64"], "fp64"),
            (["gpt2", "--modes", "eager,fast"], "unknown mode 'fast'"),
            (["gpt2", "--modes", "checkpoint"], "--modes must have eager"),
            (["gpt2", "--repeats", "0"], "--repeats must be at least 1"),
            (["unet", "--sdpa"], "unet has no attention"),
            (["unet", "--cairn", "/nowhere/cairn"], "--cairn '/nowhere/cairn' is no program"),
            (["unet", "--json", "/nowhere/x.json"], "no such folder"),
        ]:
            with self.subTest(arguments=arguments):
                run = self.run_script(*arguments)
                self.assertEqual((run.returncode, run.stdout), (2, ""))
                self.assertTrue(run.stderr.startswith("torch_compare: "), run.stderr)
                self.assertEqual(run.stderr.count("\n"), 1)
                self.assertIn(words, run.stderr)

    def test_help_says_what_is_compared(self):
        run = self.run_script("--help")
        self.assertEqual(run.returncode, 0)
        for words in ["What is compared", "bf16", "channels-last", "--token-mlp", "Activations"]:
            self.assertIn(words, run.stdout)


class Arguments(unittest.TestCase):
    def test_defaults_are_completed_with_what_is_given(self):
        given = torch_compare.parse_arguments(["transformer-big", "--batch", "2", "--dropout", "0"])
        self.assertEqual(given.options, {**torch_compare.OPTIONS["transformer-big"], "batch": 2, "dropout": 0})
        self.assertEqual(torch_compare.option_words({"batch": 2, "seq": 8}), ["--batch", "2", "--seq", "8"])

    def test_the_defaults_are_those_of_the_models(self):
        for file, name in [("ffn", "ffn"), ("resnet", "resnet50"), ("unet", "unet"), ("gpt2", "gpt2"),
                           ("mlp_mixer", "mlp-mixer")]:
            text = (ROOT / "models" / f"{file}.cpp").read_text()
            for option, value in torch_compare.OPTIONS[name].items():
                with self.subTest(model=name, option=option):
                    self.assertIn(f'{{"{option}", {value}, ', text)


class CairnSide(unittest.TestCase):
    """Against a stand-in for the command that answers from files and logs how it was called."""

    ANSWER = {
        "budget_bytes": 50, "device": "a device", "identical": True, "loss": 1.5,
        "baseline": {"seconds": 0.1, "measured_peak_bytes": 100, "planned_bytes": 100},
        "scheduled": {"seconds": 0.11, "measured_peak_bytes": 48, "planned_bytes": 48, "cost_increase_pct": 8.0,
                      "recomputed": 3},
    }

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        program = self.folder / "cairn"
        program.write_text(f'#!/bin/sh\necho "$*" >> {self.folder}/calls\n'
                           f'case "$*" in *--help) cat {self.folder}/$1.help; exit 0;; esac\n'
                           f"cat {self.folder}/$1.json\nexit $(cat {self.folder}/$1.code)\n")
        program.chmod(0o755)
        self.cairn = torch_compare.Cairn(program)
        self.given = torch_compare.parse_arguments(["ffn", "--precision", "bf16", "--cairn", str(program)])
        self.given.repeat_option = "--repeats"

    def answers(self, command, answer, code=0):
        text = answer if isinstance(answer, str) else json.dumps(answer)
        (self.folder / f"{command}.json").write_text(text)
        (self.folder / f"{command}.code").write_text(str(code))

    def calls(self):
        return (self.folder / "calls").read_text().splitlines()

    def row(self):
        return torch_compare.cairn_row(self.cairn, self.given, "g.json", "50%", "50%", "50%")

    def test_a_run_becomes_a_row(self):
        self.answers("run", self.ANSWER)
        row = self.row()
        self.assertEqual(self.calls(), ["run g.json --budget 50% --time-limit 20s --repeats 20 --precision bf16 "
                                        "--backend cuda --json"])
        self.assertFalse(row["failed"])
        self.assertAlmostEqual(row["increase_pct"], 10.0)
        self.assertEqual((row["measured_bytes"], row["planned_bytes"]), (48, 48))
        self.assertEqual(row["note"], "identical, measured = planned; +8.0% predicted")

    def test_no_schedule_is_a_row_that_says_so(self):
        for code, words in [(3, "no schedule fits (proved)"), (4, "no schedule found")]:
            self.answers("run", {"error": "x", "least_feasible_bytes": 3 * MIB}, code)
            row = self.row()
            self.assertEqual((row["failed"], row["note"]), (False, f"{words}; least known 3.0 MiB"))

    def test_what_must_not_happen_is_a_failure(self):
        self.answers("run", {**self.ANSWER, "identical": False})
        self.assertTrue(self.row()["failed"])
        self.answers("run", {**self.ANSWER, "scheduled": {**self.ANSWER["scheduled"], "measured_peak_bytes": 49}})
        self.assertIn("MEASURED IS NOT PLANNED", self.row()["note"])
        self.answers("run", "no json", 1)
        self.assertEqual(self.row()["note"], "exit code 1: no json")
        self.answers("run", "no json", 0)
        self.assertTrue(self.row()["failed"])

    def test_parameters_that_differ_are_one_line(self):
        self.answers("model", {"parameters": 12})
        torch_compare.check_parameters(self.cairn, self.given, 12)
        with self.assertRaisesRegex(torch_compare.Failure, "ffn has 12 parameters in Cairn and 13 in PyTorch"):
            torch_compare.check_parameters(self.cairn, self.given, 13)
        self.assertIn("model ffn --batch 256 --layers 8 --width 1024 --inputs 1024 --outputs 1024 --json",
                      self.calls())

    def test_the_graph_is_measured_on_the_device_in_the_precision(self):
        self.answers("measure", {})
        torch_compare.write_graph(self.cairn, self.given, "g.json")
        self.assertIn("--precision bf16 --backend cuda -o g.json --json", self.calls()[-1])
        self.answers("measure", {"error": "no device"}, 5)
        with self.assertRaisesRegex(torch_compare.Failure, "cairn measure: no device") as caught:
            torch_compare.write_graph(self.cairn, self.given, "g.json")
        self.assertEqual(caught.exception.code, 5)

    def test_what_the_help_says_is_used(self):
        help_file = self.folder / "run.help"
        help_file.write_text("  --repeats INT=20   timed steps; the\n     median is reported\n  --poison  x\n")
        self.assertEqual(self.cairn.repeat_option(), ("--repeats", "median"))
        help_file.write_text("  --repeat INT=1   executions; the fastest is reported\n  --poison  the median\n")
        self.assertEqual(self.cairn.repeat_option(), ("--repeat", "fastest"))
        (self.folder / "solve.help").write_text("  -s,--solver TEXT=auto   one of auto, tw,\n      greedy\n  -t  x\n")
        self.assertEqual(self.cairn.solvers(), ["auto", "tw", "greedy"])

    def test_budgets_follow_what_pytorch_reached(self):
        budgets = torch_compare.cairn_budgets(PYTORCH)
        self.assertEqual([b[1] for b in budgets], ["100%", "70%", "50%", "35%", str(50 * MIB), str(40 * MIB),
                                                   str(60 * MIB)])
        self.assertEqual(len(torch_compare.cairn_budgets([torch_row("eager", 1.0, None)])), 4)

    def test_without_time_nothing_is_started(self):
        self.given.graph, self.given.seconds = "g.json", -1
        rows = torch_compare.cairn_rows(self.given, self.cairn, PYTORCH, torch_compare.time.monotonic())
        self.assertEqual({row["note"] for row in rows}, {"not run: time"})
        self.assertFalse((self.folder / "calls").exists())


class Table(unittest.TestCase):
    def test_rows_say_what_changed_against_what(self):
        cells = torch_compare.table_rows(PYTORCH, CAIRN)
        by_name = {row[0]: row for row in cells}
        self.assertEqual(by_name["PyTorch eager"][1:5], ["110.000", "", "100.0 MiB", "100.0%"])
        self.assertEqual(by_name["PyTorch checkpoint"][1:5], ["143.000", "+30.0%", "40.0 MiB", "40.0%"])
        self.assertEqual(by_name["PyTorch eager sdpa"][2], "-18.2%")
        self.assertEqual(by_name["Cairn, nothing recomputed"][1:5], ["100.000", "", "90.0 MiB", "90.0%"])
        self.assertEqual(by_name["Cairn, 70%"][1:5], ["102.000", "+2.0%", "60.0 MiB", "60.0%"])
        self.assertEqual(by_name["Cairn, as checkpoint-sqrt"][1:], ["", "", "", "", "no schedule fits (proved)"])

    def test_columns_are_aligned(self):
        lines = torch_compare.format_table([["a", "ms", "note"], ["longer", "1.5", "x"]]).splitlines()
        self.assertEqual(lines, ["| a      |  ms | note |", "| ------ | --: | ---- |", "| longer | 1.5 | x    |"])

    def test_failed_modes_and_a_missing_cairn_leave_cells_empty(self):
        cells = torch_compare.table_rows([torch_row("eager", None, None, note="out of memory")], [])
        self.assertEqual(cells[1:], [["PyTorch eager", "", "", "", "", "out of memory"]])


class Verdicts(unittest.TestCase):
    def test_each_question_is_answered_by_like_figures(self):
        found = torch_compare.verdicts(PYTORCH, CAIRN, "median")
        self.assertEqual([answer for _, answer, _ in found], [True, True, True, False])
        self.assertIn("100.000 ms and 110.000 ms, median", found[0][2])
        self.assertIn("CUDA graph 105.000 ms", found[0][2])
        self.assertIn("+20.0% and +30.0% in 40.0 MiB", found[2][2])
        fastest = torch_compare.verdicts(PYTORCH, CAIRN, "fastest")
        self.assertIn("100.000 ms and 109.000 ms, fastest", fastest[0][2])

    def test_slower_is_no(self):
        slow = [cairn_row("half of eager", 121.0, 50 * MIB, baseline_ms=110.1),
                cairn_row("checkpoint", 150.0, 40 * MIB, baseline_ms=110.1)]
        found = torch_compare.verdicts(PYTORCH[:3], slow, "median")
        self.assertEqual([answer for _, answer, _ in found], [False, True, False])

    def test_what_was_not_measured_is_said(self):
        rows = [torch_row("eager", 1.0, None), torch_row("checkpoint", 1.0, None)]
        found = torch_compare.verdicts(rows, [], "median")
        self.assertEqual([answer for _, answer, _ in found], [None, None, None])
        self.assertEqual(torch_compare.verdict_line("q", None, ""), "q: not measured")
        self.assertEqual(torch_compare.verdict_line("q", True, "1 and 2"), "q: yes (1 and 2)")

    def test_main_gives_failures_their_exit_code(self):
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(torch_compare.main(["nothing"]), 2)
        self.assertTrue(errors.getvalue().startswith("torch_compare: unknown model"))


if __name__ == "__main__":
    unittest.main()
