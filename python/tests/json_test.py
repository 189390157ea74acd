"""Tests that to_json() of every result equals the output of the command `cairn --json` for the same input and the same
work limit."""

import json
import pathlib
import tempfile
import unittest

import cairn
from support import COMMAND, chain, command, random_graph
from in_python import in_python

WORK = 200_000
# Keys whose values are times, or depend on times, and therefore differ from run to run.
TIMES = {"seconds", "solve_seconds", "best_seconds", "seconds_min", "seconds_max", "op_seconds_sum",
         "candidates_per_second", "time_increase_pct", "disturbed_executions", "note"}


def timeless(value):
    """Replaces the values of all keys in TIMES by booleans that say whether the value is not None."""
    if isinstance(value, dict):
        return {key: one is not None if key in TIMES else timeless(one) for key, one in value.items()}
    return [timeless(one) for one in value] if isinstance(value, list) else value


@unittest.skipUnless(COMMAND, "the command was not built")
class BesideTheCommand(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file_of(self, graph):
        path = self.folder / "g.json"
        graph.write(path)
        return path

    def check(self, result, name, *arguments, but=()):
        """Compares a result with the output of the command `cairn` with these `arguments`. `but`: keys that are not
        compared, because they name the source of the input, which differs."""
        code, theirs = command(name, *arguments)
        self.assertIn(code, (0, 3, 4), theirs)
        ours = json.loads(result.to_json())
        for answer in (ours, theirs):
            for key in ("warnings", "error", "exit_code", *but):
                answer.pop(key, None)
        self.assertEqual(timeless(ours), timeless(theirs))
        return theirs

    def test_solve(self):
        for budget in ("75%", "min"):
            graph = random_graph(3, nodes=30)
            self.check(cairn.solve(graph, budget, work_limit=WORK), "solve", self.file_of(graph), "--budget", budget,
                       "--work-limit", WORK)

    def test_pareto(self):
        graph = chain(10)
        self.check(cairn.pareto(graph, points=4, work_limit=WORK), "pareto", self.file_of(graph), "--points", 4,
                   "--work-limit", WORK)

    def test_info_and_the_least_budget(self):
        for seed, budget in [(0, None), (1, "90%"), (2, "5%"), (3, "70%")]:
            with self.subTest(seed=seed, budget=budget):
                graph = random_graph(seed)
                theirs = self.check(cairn.info(graph, budget, work_limit=WORK), "info", self.file_of(graph),
                                    "--work-limit", WORK, *([] if budget is None else ["--budget", budget]))
                if budget is None:
                    least = cairn.least_budget(graph, work_limit=WORK)
                    self.assertEqual(json.loads(least.to_json()), theirs["least_budget"])
        least = json.loads(cairn.least_budget(chain(10), peak_only=True, work_limit=WORK).to_json())
        self.assertIsNone(least["planned_bytes"])

    def test_plan(self):
        graph = chain(12)
        answer = cairn.solve(graph, "60%", work_limit=WORK)
        cairn.write_schedule(self.folder / "s.json", graph, answer.schedule)
        for alignment in (1, 64):
            found = cairn.plan(graph, answer.schedule, alignment=alignment)
            theirs = self.check(found, "plan", self.file_of(graph), self.folder / "s.json", "--alignment", alignment)
            self.assertEqual((found.bytes, found.status, found.proved_bytes),
                             (theirs["planned_bytes"], theirs["status"], theirs["proved_bytes"]))
            self.assertIsInstance(found, cairn.Plan)

    def test_random_schedules(self):
        graph = random_graph(5, nodes=30)
        for options, arguments in [([], {}), (["--recompute", 3, "--seed", 9, "--top", 4, "--budget", "90%"],
                                              dict(recompute=3, seed=9, top=4, budget="90%")), (["--undominated"], dict(undominated=True))]:
            sweep = cairn.simulate(graph, random=3000, backend="host", **arguments)
            self.check(sweep, "simulate", self.file_of(graph), "--random", 3000, "--backend", "host", *options)
            self.assertIn("Pareto set", str(sweep))

    def test_given_schedules(self):
        graph = random_graph(2, nodes=20)
        order = graph.input_order.tolist()
        rows = [order, order[::-1], order + order[:2]]
        (self.folder / "lines").write_text("".join(f"{row}\n" for row in rows))
        sweep = cairn.simulate(graph, rows, backend="host")
        # The command numbers candidates by their lines in the file; the package counts them from 0.
        numbered = ("best", "top", "pareto", "invalid_candidates")
        theirs = self.check(sweep, "simulate", self.file_of(graph), "--schedules", self.folder / "lines", "--backend",
                            "host", but=("source", *numbered))
        ours = json.loads(sweep.to_json())
        self.assertEqual(theirs["candidates"], 3)
        self.assertEqual(ours["source"], "given")
        self.assertEqual(ours["best"], {"index": 0, "peak_bytes": sweep.peak, "cost": sweep.cost})
        self.assertEqual([one["line"] for one in ours["invalid_candidates"]], [1])
        self.assertIn("candidate 1: ", str(sweep))

    def test_runs(self):
        synthetic = chain(8)
        real = cairn.models.build("ffn", layers=3, width=32, inputs=32, outputs=16, batch=16)
        for graph, options, arguments in [(synthetic, [], {}), (real, ["--check"], dict(check=True)),
                                          (real, ["--sentinels", "--alignment", 512], dict(sentinels=True, alignment=512)),
                                          (real, ["--precision", "bf16"], dict(precision="bf16"))]:
            with self.subTest(options=options):
                if "bf16" in options:  # the host cannot execute bf16, so both must fail in the same way
                    with self.assertRaises(cairn.Error) as caught:
                        cairn.run(graph, "80%", backend="host", work_limit=WORK, **arguments)
                    code, theirs = command("run", self.file_of(graph), "--budget", "80%", "--backend", "host", *options)
                    self.assertEqual((caught.exception.exit_code, str(caught.exception)),
                                     (code, in_python(theirs["error"])))
                    continue
                result = cairn.run(graph, "80%", backend="host", work_limit=WORK, repeats=1, **arguments)
                self.check(result, "run", self.file_of(graph), "--budget", "80%", "--work-limit", WORK, "--backend",
                           "host", "--repeat", 1, *options)
                self.assertIn("identical", str(result))
                self.assertNotRegex(str(result), "--[a-z]")

    def test_runs_of_a_schedule(self):
        graph = chain(8)
        schedule = cairn.solve(graph, "70%", work_limit=WORK).schedule
        cairn.write_schedule(self.folder / "s.json", graph, schedule, solver="given")
        for budget, options in [(None, []), ("90%", ["--budget", "90%"])]:
            result = cairn.run(graph, budget, schedule=schedule, backend="host", repeats=1)
            self.check(result, "run", self.file_of(graph), "--schedule", self.folder / "s.json", "--backend", "host",
                       "--repeat", 1, *options)
        for arguments in (dict(budget="min"), dict(max_cost="5%")):
            with self.assertRaisesRegex(cairn.InputError, "runs a schedule as it is"):
                cairn.run(graph, schedule=schedule, backend="host", **arguments)


if __name__ == "__main__":
    unittest.main()
