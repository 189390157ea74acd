"""Tests the limits that CONTRIBUTING.md states: on the lengths of files, functions and the README, and on the number of
public headers."""

import ast
import re
import sys
import unittest

from stand_ins import ROOT, tracked

sys.path.insert(0, str(ROOT / "scripts"))
import check_includes  # noqa: E402

MOST_LINES_OF_FILE = 700
MOST_LINES_OF_FUNCTION = 80
MOST_WORDS_OF_README = 1000
MOST_PUBLIC_HEADERS = 60
CPP = {".h", ".cpp", ".cu", ".cuh"}
# A line that may end the head of a function: clang-format puts the opening brace on it. Heads of loops and conditions
# match too, but these are never longer than the function around them. The same is true of lambdas, which are left out.
HEAD = re.compile(r"^ *\S.*[)}][^;=\"]*\{$")
LAMBDA = re.compile(r"\[[^\[\]]*\] ?[({]")


def functions_of_cpp(text):
    """Yields (line, number of lines) of each function of a file that clang-format has formatted."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if not HEAD.match(line) or LAMBDA.search(line) or line.lstrip().startswith(("namespace", "class", "struct", "enum", "//")):
            continue
        begin, depth = i, line.count("(") - line.count(")")
        # The head may take several lines: its parentheses are open, or a list of members is initialized.
        while begin > 0 and (depth < 0 or lines[begin].lstrip().startswith(":") or lines[begin - 1].endswith(",")):
            begin -= 1
            depth += lines[begin].count("(") - lines[begin].count(")")
        indent = re.match(" *", lines[begin]).group()
        end = next((j for j in range(i + 1, len(lines)) if lines[j].startswith(indent + "}")), i)
        yield begin + 1, end - begin + 1


def functions_of_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1


class Limits(unittest.TestCase):
    def code(self):
        return [path for path in tracked(self) if path.suffix in {".py", *CPP}]

    def test_files(self):
        for path in self.code():
            with self.subTest(file=str(path)):
                lines = (ROOT / path).read_text(encoding="utf-8").count("\n")
                self.assertLessEqual(lines, MOST_LINES_OF_FILE)

    def test_functions(self):
        seen = 0
        for path in self.code():
            if path.parts[0] == "tests" or path.parts[:2] == ("python", "tests"):
                continue
            text = (ROOT / path).read_text(encoding="utf-8")
            for line, length in functions_of_python(text) if path.suffix == ".py" else functions_of_cpp(text):
                seen += 1
                with self.subTest(file=str(path), line=line):
                    self.assertLessEqual(length, MOST_LINES_OF_FUNCTION)
        self.assertGreater(seen, 5000)

    def test_functions_are_measured(self):
        body = "  int a = 0;\n" * 79
        for head in ("int f(int a) {\n", "int f(int a,\n      int b) {\n", "Box::Box(int a)\n    : a_(a),\n      b_(0) {\n"):
            with self.subTest(head=head):
                longest = max(length for _, length in functions_of_cpp(f"int x;\n\n{head}{body}}}\n"))
                self.assertEqual(longest, head.count("\n") + 79 + 1)

    def test_readme(self):
        words = len((ROOT / "README.md").read_text(encoding="utf-8").split())
        self.assertLessEqual(words, MOST_WORDS_OF_README)

    def test_public_headers(self):
        headers = [path for path in self.code() if check_includes.is_public_header(path)]
        self.assertLessEqual(len(headers), MOST_PUBLIC_HEADERS)
        self.assertGreater(len(headers), 30)


if __name__ == "__main__":
    unittest.main()
