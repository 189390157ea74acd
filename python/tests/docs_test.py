"""Runs the examples of docs/python.md, of the README's section about Python, and of the folder examples."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import cairn

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def test_the_page(self):
        names = {}
        examples = blocks((ROOT / "docs" / "python.md").read_text())
        self.assertEqual(len(examples), 6)
        for example in examples:
            exec(compile(example, "docs/python.md", "exec"), names)
        self.assertEqual({path.name for path in pathlib.Path().iterdir()}, {"answer.html", "answer.json", "training.safetensors"})
        self.assertTrue(cairn.evaluate(names["graph"], names["answer"].schedule).valid)
        self.assertGreater(names["largest"].batch, 1)
        self.assertLess(names["losses"][-1], names["losses"][0] / 2)
        self.assertGreater(names["result"].accuracy, 0.5)

    def test_the_readme(self):
        section = (ROOT / "README.md").read_text().split("## Use it from Python")[1].split("\n## ")[0]
        example, = blocks(section)
        names = {}
        exec(compile(example, "README.md", "exec"), names)
        self.assertEqual(names["answer"].recomputed, 1)

    def test_the_network_for_digits(self):
        run = subprocess.run([sys.executable, ROOT / "examples" / "digits.py"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertRegex(run.stdout, r"9[789]\.\d\d% of the test digits recognised; \d+ of \d+ bytes \([34]\d\.")


if __name__ == "__main__":
    unittest.main()
