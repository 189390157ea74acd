"""Tests that the type stub describes everything in the extension module, and imports every name that it uses."""

import ast
import builtins
import inspect
import pathlib
import unittest

import cairn
from cairn import _cairn

STUB = pathlib.Path(cairn.__file__).resolve().parent / "_cairn.pyi"
# In the build tree, the Python modules are links into the source tree, and the stub is beside the extension.
if not STUB.exists():
    STUB = pathlib.Path(_cairn.__file__).parent / "_cairn.pyi"


def public(names):
    return {name for name in names if not name.startswith("_")}


class Stub(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = ast.parse(STUB.read_text())
        cls.classes = {node.name: node for node in cls.tree.body if isinstance(node, ast.ClassDef)}
        cls.functions = {node.name: node for node in cls.tree.body if isinstance(node, ast.FunctionDef)}

    def test_it_has_all_names_and_no_others(self):
        declared = {node.target.id for node in self.tree.body if isinstance(node, ast.AnnAssign)}
        self.assertEqual(public({*self.classes, *self.functions, *declared}), public(dir(_cairn)))

    def test_classes_have_their_members(self):
        for name, node in self.classes.items():
            declared = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            self.assertEqual(public(declared), public(vars(getattr(_cairn, name))), name)

    def test_everything_is_annotated_with_names_that_are_known(self):
        known = set(dir(builtins)) | set(self.classes)
        for node in self.tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                known |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.FunctionDef):
                continue
            self.assertIsNotNone(node.returns, f"{node.name} has no return type")
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            for annotation in [node.returns] + [argument.annotation for argument in arguments if argument.annotation]:
                for part in ast.walk(annotation):
                    if isinstance(part, ast.Name):
                        self.assertIn(part.id, known, f"{node.name}: {ast.unparse(annotation)}")

    def test_the_package_offers_its_calls_with_help_and_types(self):
        for name in ("solve", "plan", "pareto", "least_budget", "largest_batch", "info", "simulate", "run",
                     "read_graph", "from_networkx", "to_networkx", "train", "datasets", "Executor"):
            call = getattr(cairn, name)
            self.assertTrue(call.__doc__, name)
            signature = inspect.signature(call)
            self.assertIsNot(signature.return_annotation, signature.empty, name)
            for parameter in signature.parameters.values():
                self.assertIsNot(parameter.annotation, parameter.empty, f"{name}({parameter.name})")
        for name in public(vars(cairn)):
            self.assertFalse(name in ("os", "re", "annotations"), name)


if __name__ == "__main__":
    unittest.main()
