"""Tests that only cairn/torch/_private uses private names of torch."""

import ast
import pathlib
import re
import unittest

import cairn.torch

PACKAGE = pathlib.Path(cairn.torch.__file__).parent
# These private names may be used anywhere: pytrees, classes of operators, and operators whose names begin with "_".
ALLOWED = ("torch.utils._pytree", "torch._ops", "torch.ops.aten._")


def named(tree):
    """Yields the full names of everything in torch that a module imports or looks up."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)


class OnlyHere(unittest.TestCase):
    def test_no_other_module_names_what_is_private_in_torch(self):
        seen = 0
        for path in sorted(PACKAGE.rglob("*.py")):
            if PACKAGE / "_private" in path.parents:
                continue
            for name in named(ast.parse(path.read_text(encoding="utf-8"))):
                if name.startswith(("torch.", "functorch.")) and re.search(r"\._(?!_)", name):
                    seen += 1
                    with self.subTest(file=str(path.relative_to(PACKAGE)), name=name):
                        self.assertTrue(name.startswith(ALLOWED))
        self.assertGreater(seen, 10)
