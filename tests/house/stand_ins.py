"""Runs a script of this project. Small shell scripts, the stand-ins, take the place of the programs that it calls."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def tracked(test):
    """Returns the files of the repository, also new ones that git does not ignore, as paths relative to ROOT. Skips
    ``test`` outside of a git checkout."""
    found = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if found.returncode != 0 or not found.stdout:
        print("skipped: this is no git checkout")
        test.skipTest("no git")
    paths = map(pathlib.PurePosixPath, found.stdout.split())
    return [path for path in paths if (ROOT / path).is_file()]


class ScriptTest(unittest.TestCase):
    script = ""  # path of the script, relative to the root of the project
    tools = None  # real programs that the script can call besides the stand-ins; None means all

    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.bin, self.log = self.root / "bin", self.root / "calls"
        for tool in self.tools or ():
            self.stand_in(tool, f'exec /usr/bin/{tool} "$@"')

    def stand_in(self, name, body):
        """Writes a stand-in with this name into bin/. `body` is shell code, which may append lines to the file CALLS;
        calls() returns these lines."""
        file = self.bin / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/sh\n" + body.replace("CALLS", str(self.log)) + "\n")
        file.chmod(0o755)

    def calls(self, start=""):
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if line.startswith(start)]

    def run_script(self, *arguments, **environment):
        by = sys.executable if self.script.endswith(".py") else "/bin/sh"
        path = f"{self.bin}{'' if self.tools else ':' + os.environ['PATH']}"
        return subprocess.run([by, ROOT / self.script, *arguments], capture_output=True, text=True,
                              env={"PATH": path, "PYTHONDONTWRITEBYTECODE": "1", **environment})

    def check_refusal(self, run, words, code=1):
        self.assertEqual((run.returncode, len(run.stderr.splitlines())), (code, 1), run.stderr)
        self.assertRegex(run.stderr, f"^{pathlib.Path(self.script).stem}: .*{words}")
