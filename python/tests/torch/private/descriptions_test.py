"""Tests that the installed torch's AOTAutograd describes the inputs and results of its graphs, and says which of them
are written."""

import contextlib

import harness
import torch
from cairn.torch import _private
from joint_graphs import OfJointGraph, cut_after
from torch.testing._internal.two_tensor import TwoTensor


class Written(OfJointGraph):
    def test_static_inputs(self):
        """Tests that the static inputs, here the weights, are found in the graph of a model with checks (assertions).
        This graph has placeholders of effect tokens before the inputs, so the positions of inputs are shifted."""
        found = []

        def partition(joint, inputs, *, num_fwd_outputs, static_lifetime_input_indices, **_):
            found.extend(n.meta["val"].shape for n in _private.static_inputs(joint.graph, static_lifetime_input_indices))
            self.assertEqual(_private.static_inputs(joint.graph, None), [])
            return torch._functorch.partitioners.default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs)

        linear = torch.nn.Linear(4, 4)
        backend = torch._dynamo.backends.common.aot_autograd(fw_compiler=lambda m, _: m, partition_fn=partition)
        torch.compile(lambda x: torch.linalg.solve(linear(x), x).sum(), backend=backend)(torch.eye(4)[None].expand(3, 4, 4))
        self.assertEqual(sorted(found), [(4,), (4, 4)])
        found.clear()
        torch.compile(lambda x: (linear(x) * x).sum(), backend=backend)(TwoTensor(torch.ones(3, 4), torch.ones(3, 4)))
        self.assertEqual(sorted(found), [(4,), (4, 4)])

    def test_static_inputs_that_are_no_arguments(self):
        found = []

        def look(joint, *, static_lifetime_input_indices, **_):
            found.extend(n.meta["val"].shape for n in _private.static_inputs(joint.graph, static_lifetime_input_indices))

        with torch._dynamo.config.patch(inline_inbuilt_nn_modules=False):
            model = torch.nn.Linear(4, 4)
            torch.compile(lambda x, y: (model(x) * y).sum(), backend=cut_after(look))(torch.ones(3, 4), torch.ones(4))
        self.assertEqual(sorted(found), [(4,), (4, 4)])

    def test_descriptions(self):
        descriptions = _private.output_descriptions(self.graph)
        self.assertEqual([_private.is_gradient(d) for d in descriptions], [False, True])
        self.assertFalse(any(_private.is_mutation(d) for d in descriptions))

    def test_mutations(self):
        class Count(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("n", torch.zeros(1))
                self.w = torch.nn.Parameter(torch.ones(3))

            def forward(self):
                self.n.add_(1)
                return (self.w * 2).sum()

        seen, written, of_results, inputs_given = [], [], [], ["the first", "the second"]

        def look(joint, **_):
            seen.extend(_private.is_mutation(d) for d in _private.output_descriptions(joint.graph))
            written.extend(node.meta["val"].shape for node in _private.mutated_inputs(joint.graph))
            of_results.extend((i, _private.argument_of(d, inputs_given)) for i, d in _private.written_inputs(joint.graph, 2))

        torch.compile(Count(), backend=cut_after(look, keep_inference_input_mutations=False))().backward()
        self.assertEqual(seen.count(True), 1)
        self.assertEqual(written, [(1,)])
        self.assertEqual(of_results, [(0, "the first")])

    def test_unseen_writes(self):
        """Tests that writes that autograd does not see are found from AOTAutograd's metadata while AOTAutograd cuts the
        graph."""
        found = []

        def look(joint, *, num_fwd_outputs, **_):
            number, metadata = _private.compiling()
            found.append((number, _private.unseen_writes(metadata, joint.graph, num_fwd_outputs)))

        def write(x, seen, leaf, unseen):
            seen.mul_(2)
            with torch.no_grad():
                leaf.mul_(3)
                unseen.mul_(4)
            return (x * seen * leaf * unseen).sum()

        backend = cut_after(look, keep_inference_input_mutations=False)
        x, leaf = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        loss = torch.compile(write, backend=backend)(x, x * 1, leaf, x * 1)
        (number, positions), = found
        self.assertEqual(positions, [1, 2])
        self.assertEqual(type(loss.grad_fn)._forward_cls._aot_id, number)
        self.assertEqual(_private.compiling(), (None, None))
        self.assertEqual(_private.unseen_writes(None, self.graph, 1), [])

    def test_hidden_writes(self):
        def forward(module, _):
            _private.hide_writes()
            return _private.boxed(module)

        def write(x, kept, unseen):
            with torch.no_grad():
                kept.mul_(2)
            unseen.mul_(2)
            return (x * kept).sum()

        backend = _private.aot_autograd(fw_compiler=forward, bw_compiler=lambda m, _: _private.boxed(m),
                                        partition_fn=torch._functorch.partitioners.default_partition,
                                        keep_inference_input_mutations=False)
        x, kept, number = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True).clone(), torch.ones(2)
        function = kept.grad_fn
        torch.compile(write, backend=backend)(x, kept, number)
        self.assertIs(kept.grad_fn, function)
        self.assertEqual((kept.tolist(), number.tolist()), ([2, 2], [2, 2]))
        _private.hide_writes()  # does nothing if no graph is being compiled

    def test_donated_buffers(self):
        def forward(module, _):
            donate_nothing()
            return _private.boxed(module)

        for donate_nothing, refuses in (lambda: None, True), (_private.donate_nothing, False):
            torch._dynamo.reset()
            backend = _private.aot_autograd(fw_compiler=forward, bw_compiler=lambda m, _: _private.boxed(m),
                                            partition_fn=torch._functorch.partitioners.default_partition)
            compiled = torch.compile(lambda x: x.sin().exp().sum(), backend=backend)
            x = torch.ones(2, requires_grad=True)
            compiled(x).backward()
            with self.assertRaisesRegex(RuntimeError, "donated") if refuses else contextlib.nullcontext():
                compiled(x).backward(retain_graph=True)
        _private.donate_nothing()  # does nothing if no graph is being compiled


class Positions(harness.Fresh):
    def test_input_position(self):
        given = [n.meta.get("desc") for n in self.traced().graph.nodes if n.op == "placeholder"]
        self.assertEqual([_private.input_position(d) for d in given], [0, 1, None])

    def test_input_of(self):
        found, x = [], TwoTensor(torch.ones(3), torch.zeros(3))
        y = torch.ones(3, requires_grad=True)

        def partition(joint, inputs, **options):
            descriptions = [n.meta.get("desc") for n in joint.graph.find_nodes(op="placeholder")]
            found.extend((_private.input_position(d), _private.input_of(d, [x, y])) for d in descriptions)
            self.assertTrue(all(a is b for a, b in zip((_private.argument_of(d, [x, y]) for d in descriptions), (x, x, y))))
            return torch._functorch.partitioners.default_partition(joint, inputs, num_fwd_outputs=options["num_fwd_outputs"])

        backend = torch._dynamo.backends.common.aot_autograd(fw_compiler=lambda m, _: m, partition_fn=partition)
        torch.compile(lambda x, y: (x * y).sum(), backend=backend)(x, y)
        self.assertEqual([position for position, _ in found[:3]], [0, 0, 1])
        self.assertTrue(all(one is other for (_, one), other in zip(found, (x.a, x.b, y))))
        self.assertEqual(found[3:], [(None, None)] * 2)

    def traced(self):
        """Returns a joint graph with two inputs and a tangent."""
        found = []
        backend = cut_after(lambda joint, **_: found.append(joint))
        torch.compile(lambda x, y: (x * y).sum(), backend=backend)(torch.ones(2, requires_grad=True), torch.ones(2))
        return found[0]

    def test_result_of(self):
        found = []

        def look(joint, *, num_fwd_outputs, **_):
            descriptions = _private.output_descriptions(joint.graph)[:num_fwd_outputs]
            tangents = [n for n in joint.graph.nodes if n.op == "placeholder" and _private.is_tangent(n)]
            found.extend(_private.result_of(n.meta["desc"], descriptions) for n in tangents)

        w = torch.ones(3, requires_grad=True)
        torch.compile(lambda x: (w.detach() + 1, x * 2, x.sum()), backend=cut_after(look))(w)
        self.assertEqual(found, [1, 2])
        self.assertIsNone(_private.result_of(None, [None, None]))
