"""A script of scripts/ on stand-ins for the programs that it calls."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"


class ScriptTest(unittest.TestCase):
    script = ""
    tools = None  # programs of the system that it finds beside the stand-ins; None: all

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.bin = self.root / "bin"
        self.bin.mkdir()
        self.log = self.root / "calls"
        for tool in self.tools or ():
            (self.bin / tool).symlink_to(f"/usr/bin/{tool}")

    def stand_in(self, name, body):
        """A program of that name: lines of sh, which may add to the file CALLS."""
        file = self.bin / name
        file.write_text("#!/bin/sh\n" + body.replace("CALLS", str(self.log)) + "\n")
        file.chmod(0o755)

    def calls(self):
        """What was added, by lines."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def run_script(self, *arguments, **environment):
        """What the script did, and all calls until then."""
        path = str(self.bin) if self.tools is not None else f"{self.bin}:{os.environ['PATH']}"
        run = subprocess.run(["/bin/sh", SCRIPTS / self.script, *arguments], env={"PATH": path, **environment},
                             stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return run, self.calls()

    def check_refusal(self, run, words):
        """That it failed with one line, which has those words."""
        self.assertEqual((run.returncode, len(run.stderr.splitlines())), (1, 1), run.stderr)
        self.assertTrue(run.stderr.startswith(self.script.removesuffix(".sh") + ": "), run.stderr)
        self.assertIn(words, run.stderr)
