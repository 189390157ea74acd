"""Tests that in the installed torch, symbolic sizes have hints, and that torch compiles a graph again if a size
violates a guard."""

import unittest

import torch
from cairn.torch import _private


class Bounds(unittest.TestCase):
    def test_bound_sizes(self):
        sizes = []

        def backend(module, _):
            _private.bound_sizes(module)
            sizes.append(None)
            return module.forward

        torch._dynamo.reset()
        double = torch.compile(lambda x: x * 2, backend=backend, dynamic=True)
        compiled = []
        for size in (8, 5, 9, 7, 9):
            double(torch.ones(size))
            compiled.append(len(sizes))
        self.assertEqual(compiled, [1, 1, 2, 2, 2])

    def test_bound_sizes_leaves_marked_ones_alone(self):
        found = []

        def backend(module, _):
            found.append(_private.bound_sizes(module))
            example = module.graph.find_nodes(op="placeholder")[-1].meta["example_value"]
            found.append(_private.hint(example.shape[0] * 2))
            return module.forward

        double = torch.compile(lambda x: x * 2, backend=backend)
        torch._dynamo.reset()
        for size in (8, 5, 9):
            x = torch.ones(size)
            torch._dynamo.mark_dynamic(x, 0, min=2, max=64)
            double(x)
        self.assertEqual(found, [[], 128])

    def test_pin_sizes(self):
        pinned = []

        def backend(module, inputs):
            def compiler(inner, _):
                sizes = [node.meta["val"].untyped_storage().nbytes() for node in inner.graph.nodes
                         if isinstance(node.meta.get("val"), torch.Tensor)]
                _private.pin_sizes(sizes, inner.graph)
                pinned.append(None)
                return _private.boxed(inner)

            return _private.aot_autograd(fw_compiler=compiler)(module, inputs)

        for function, expected in ((lambda x: torch.cat([x, torch.zeros(100 - x.shape[0])]) * 2, [1, 2, 3]),
                                   (lambda x: torch.cat([x, torch.zeros(x.shape[0] % 16)]) * 2, [1, 2, 3]),
                                   (lambda x: torch.cat([x, x]) * 2, [1, 1, 1])):
            torch._dynamo.reset()
            pinned.clear()
            counts = []
            compiled = torch.compile(function, backend=backend, dynamic=True)
            for size in (50, 40, 30):
                compiled(torch.ones(size))
                counts.append(len(pinned))
            self.assertEqual(counts, expected)


    def test_may_exceed_plan(self):
        found = {}

        def backend(module, inputs):
            def compiler(inner, _):
                for node in inner.graph.nodes:
                    if isinstance(node.meta.get("val"), torch.Tensor):
                        found[node.name] = _private.may_exceed_plan(node.meta["val"].untyped_storage().nbytes())
                return _private.boxed(inner)

            return _private.aot_autograd(fw_compiler=compiler)(module, inputs)

        def function(rows):
            rows = rows.item()
            torch._check(rows >= 0)
            torch._check(rows <= 40)
            return torch.ones(rows).sum() + torch.zeros(40 - rows).sum()

        torch._dynamo.reset()
        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            torch.compile(function, backend=backend)(torch.tensor(40))
        self.assertEqual(sum(found.values()), 1, found)
        self.assertFalse(_private.may_exceed_plan(12))


class Hints(unittest.TestCase):
    def test_hint(self):
        self.assertEqual(_private.hint(7), 7)
        sizes = []

        def backend(module, inputs):
            for node in module.graph.nodes:
                value = node.meta.get("example_value")
                if isinstance(value, torch.Tensor):
                    sizes.extend(_private.hint(s) for s in value.shape if _private.is_sym(s))
            return module.forward

        torch._dynamo.reset()
        torch.compile(lambda x: x * 2, backend=backend, dynamic=True)(torch.randn(37, 2))
        self.assertIn(37, sizes)
