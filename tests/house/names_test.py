"""Tests that every file that a comment or a documentation page names exists in the repository, and that the C++ tests
name only what both versions of Catch2 have."""

import re
import unittest

from stand_ins import ROOT, tracked

CODE = {".h", ".cpp", ".cu", ".cuh", ".js", ".py", ".sh", ".cmake"}
FILE = re.compile(r"(?<![\w./*{}<-])((?:[\w-]+/)*[\w-]+\.(?:h|cuh?|cpp|js|py|sh|cmake|md))(?![\w/*.])")
# Names that comments may use although no such file exists: files of other projects, of users, and generated files.
OTHERS = {"torch.md", "large.md", "_test.cpp", "_bench.cpp", "model.py", "crt/host_runtime.h"}


def comments(path, text):
    """Returns the text of a Markdown page, or the comments of a code file."""
    if path.suffix == ".md":
        return text
    lines = (re.search(r"(?://|#(?!include|pragma|if|el|en|define|!)|^\s*\*).*", line) for line in text.splitlines())
    return "\n".join(line.group(0) for line in lines if line and "http" not in line.group(0))


class Names(unittest.TestCase):
    def test_named_files_exist(self):
        files = [str(path) for path in tracked(self)]
        suffixes = {"/".join(parts[k:]) for parts in (f.split("/") for f in files) for k in range(len(parts))}
        seen = 0
        for name in files:
            path = ROOT / name
            if path.suffix not in CODE | {".md"} or "uplot" in name or name.startswith("bench/results/"):
                continue
            for named in FILE.findall(comments(path, path.read_text(encoding="utf-8"))):
                named = named.removeprefix("cairn/")
                seen += 1
                with self.subTest(file=name, names=named):
                    self.assertTrue(named in suffixes or named in OTHERS)
        self.assertGreater(seen, 300)

    def test_names_of_catch(self):
        # Debian 12 has Catch2 2, and newer systems have Catch2 3, in which matchers have other names (tests/catch.h).
        seen = 0
        for path in tracked(self):
            if path.parts[0] != "tests" or path.suffix not in {".h", ".cpp", ".cu"}:
                continue
            for name in re.findall(r"\bCatch::(\w+)", (ROOT / path).read_text(encoding="utf-8")):
                seen += 1
                with self.subTest(file=str(path)):
                    self.assertIn(name, {"Approx", "Session"})
        self.assertGreaterEqual(seen, 2)


if __name__ == "__main__":
    unittest.main()
