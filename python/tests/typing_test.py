"""Tests that mypy accepts the package, and also code of users who check their own code with mypy's strictest
settings."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import cairn

# A user's code. mypy must refuse the lines that end with "# wrong", and no others.
USER = '''
import numpy
import cairn

builder = cairn.GraphBuilder("step")
x: int = builder.add("embedding", size=4096, cost=12)
builder.add("loss", size=4, keep=True, inputs=[(x, 0)])
graph: cairn.Graph = builder.build()

answer = cairn.solve(graph, "60%", time_limit=5, progress=lambda peak, cost, seconds: True)
steps: numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.int32]] = answer.schedule.steps
increase: float = answer.cost_increase
found: cairn.FoundPlan = cairn.plan(graph, answer.schedule)
print(cairn.evaluate(graph, steps).peak, cairn.profile(graph, [0, 1]), cairn.lifetimes(graph, answer.schedule))
for point in cairn.pareto(graph).points:
    print(point.peak, point.cost)
schedule = cairn.Schedule([0, 1], transfers=None)
cairn.write_schedule("schedule.json", graph, schedule)
executor = cairn.Executor(graph, "50%", arena=None)
executor.set("images", [1.0])
try:
    cairn.run(graph, 4096)
except cairn.InfeasibleError as error:
    print(error.least_budget)

cairn.solve(graph, budget=[1])  # wrong
builder.add(3)  # wrong
print(answer.peek)  # wrong
nothing: str = answer.cost_increase  # wrong
'''


@unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
class Types(unittest.TestCase):
    def mypy(self, *arguments, **options):
        path = str(pathlib.Path(cairn.__file__).parent.parent)
        environment = {**os.environ, "MYPYPATH": path} if "site-packages" not in path else None
        done = subprocess.run([sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", os.devnull, *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, **options)
        return done.stdout.splitlines()

    def test_the_package(self):
        self.assertEqual(self.mypy("-m", "cairn", "-m", "cairn.models"), [])

    def test_code_of_users(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "user.py").write_text(USER)
            said = self.mypy("--strict", "--follow-imports=silent", "user.py", cwd=folder)
        refused = {int(line.split(":")[1]) for line in said if ": error: " in line}
        wrong = {number for number, line in enumerate(USER.splitlines(), 1) if line.endswith("# wrong")}
        self.assertEqual(refused, wrong, "\n".join(said))

    def test_everything_is_exported(self):
        kept = {name for name, value in vars(cairn).items() if not name.startswith("_") and not isinstance(value, type(os))}
        self.assertEqual(set(cairn.__all__), kept | {"__version__", "models"})


if __name__ == "__main__":
    unittest.main()
