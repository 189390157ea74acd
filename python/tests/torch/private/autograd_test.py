"""Tests that in the installed torch, autograd's graph gives access to the running node, its leaves and its saved
values."""

import unittest

import torch
from cairn.torch import _private


class Nodes(unittest.TestCase):
    def test_autograd_is_compiled(self):
        self.assertFalse(_private.autograd_is_compiled())
        with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
            self.assertTrue(_private.autograd_is_compiled())

    def test_keeps_graph(self):
        found = []

        class Asks(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, gradient):
                found.append(_private.keeps_graph())
                return gradient * 2

        x = torch.ones(2, requires_grad=True)
        Asks.apply(x).sum().backward()
        Asks.apply(x).sum().backward(retain_graph=True)
        torch.autograd.grad(Asks.apply(x).sum(), x, create_graph=True)
        self.assertEqual(found, [False, True, True])

    def test_saves_by_hooks(self):
        self.assertFalse(_private.saves_by_hooks())
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            self.assertTrue(_private.saves_by_hooks())

    def test_attributes_of_a_context_that_hide_methods_of_nodes(self):
        found = []

        class Hides(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.name, ctx.variable, ctx._sequence_nr = "layer", torch.ones(2), 3
                return x * 2

            @staticmethod
            def backward(ctx, gradient):
                found.append((_private.name_of_node(), _private.edges_of_node()))
                return gradient * 2

        leaf = torch.ones(3, requires_grad=True)
        first = Hides.apply(leaf)
        before = _private.nodes_made()
        last = Hides.apply(first)
        self.assertIsNone(_private.backward_node([last], before))
        last.sum().backward()
        (name, (edge,)), (_, (to_leaf,)) = found
        self.assertEqual((edge.leaf, edge.size), (None, 12))
        self.assertIs(to_leaf.leaf, leaf)
        self.assertNotEqual(name[0], 3)

    def test_edges_of_node(self):
        found = []

        class Seen(torch.autograd.Function):
            @staticmethod
            def forward(ctx, *given):
                return given[0] * 2

            @staticmethod
            def backward(ctx, gradient):
                found.append((_private.name_of_node(), _private.edges_of_node()))
                return (gradient, *[gradient] * (len(ctx.needs_input_grad) - 2), None)

        leaf, other = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        first = Seen.apply(leaf, 1)
        first.grad_fn.metadata["cairn"] = "a compiled graph"
        (Seen.apply(first.view(1, 3).view(3), first, leaf, other * 2, 1)).sum().backward()
        (_, edges), (name, last) = found
        self.assertEqual([(edge.leaf is leaf, edge.reader, edge.size) for edge in edges],
                         [(False, name, 12), (False, name, 12), (True, None, 12), (False, None, 12)])
        self.assertEqual([edge.target for edge in last], [edges[2].target])
        self.assertEqual(len({edge.target for edge in edges}), 4)
        self.assertEqual([edge.index for edge in edges], [0, 1, 2, 3])

    def test_backward_node(self):
        nodes = []

        def backend(module, inputs):
            compiled = _private.aot_autograd(fw_compiler=lambda m, _: _private.boxed(m),
                                             bw_compiler=lambda m, _: _private.boxed(m))(module, inputs)

            def call(*args):
                before = _private.nodes_made()
                result = compiled(*args)
                nodes.append(_private.backward_node((*result, *args), before))
                return result

            return call

        torch._dynamo.reset()
        w = torch.ones(3, requires_grad=True)
        twice = torch.compile(lambda x: (x * 2).view(3, 1), backend=backend)
        one = twice(w)
        self.assertIs(nodes[0], _private.backward_node([one, None, torch.ones(1)], 0))
        seen = []
        nodes[0].register_prehook(seen.append)
        nodes[0].metadata["cairn"] = True
        self.assertIsNone(_private.backward_node([one], _private.nodes_made()))
        self.assertIsNone(_private.backward_node([(w * 2).cos()], 0))
        one.sum().backward()
        self.assertEqual(len(seen), 1)
        written = torch.zeros(3)
        torch.compile(lambda x, out: out.copy_(x * 2) is None, backend=backend)(w, written)
        self.assertIs(nodes[1], _private.backward_node([written], 0))
        number = type(nodes[1])._forward_cls._aot_id
        self.assertIs(nodes[1], _private.backward_node([written], 0, number))
        self.assertIsNone(_private.backward_node([written], 0, number + 1))
        nodes[1].metadata["cairn"] = True  # marks the node as found before, so that it is not found again
        self.assertIsNone(_private.backward_node([written], 0))
        with torch.no_grad():
            view = w[1:]
            view.mul_(1)
        # Torch raises an error if the gradient function of this view is read.
        self.assertIsNone(_private.backward_node([view], 0))

    def test_metadata_of_node(self):
        x, seen = torch.ones(3, requires_grad=True), []
        y = x * 2
        y.grad_fn.metadata["cairn"] = 7
        x.register_hook(lambda _: seen.append(dict(_private.metadata_of_node())))
        y.grad_fn.register_prehook(lambda _: seen.append(dict(_private.metadata_of_node())))
        self.assertEqual(_private.metadata_of_node(), {})
        y.sum().backward()
        self.assertIn({"cairn": 7}, seen)

    def test_graph_task(self):
        seen = []
        x = torch.ones(2, requires_grad=True)
        for _ in range(2):
            y = x * 2
            y.register_hook(lambda _: seen.append(_private.graph_task()))
            y.sum().backward()
        self.assertEqual(_private.graph_task(), -1)
        self.assertTrue(0 <= seen[0] < seen[1])
