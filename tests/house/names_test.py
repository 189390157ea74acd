"""Tests that every file that a comment or a documentation page names exists in the repository."""

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


if __name__ == "__main__":
    unittest.main()
