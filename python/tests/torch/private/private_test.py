"""Each private function of torch that the package uses still does what it is used for."""

import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import torch
from cairn.torch import _private
from torch.utils import _pytree as pytree
from torch.testing._internal.two_tensor import TwoTensor


def joint_graph(function, inputs):
    """The joint graph of a function, and the pair of modules that ``extract`` cuts from it."""
    found = {}

    def partition(joint, _, *, num_fwd_outputs, static_lifetime_input_indices=None, **__):
        found["joint"], found["outputs"] = joint, num_fwd_outputs
        return torch._functorch.partitioners.default_partition(
            joint, _, num_fwd_outputs=num_fwd_outputs, static_lifetime_input_indices=static_lifetime_input_indices)

    found["result"] = _private.trace_functional(function, inputs, on_joint=partition)(*inputs)
    return found


class FrontEnd(unittest.TestCase):
    """Of torch.compile."""

    def graphs_of(self, function, *inputs, **options):
        """The modules that torch.compile captures."""
        modules = []

        def backend(module, _):
            modules.append(module)
            return module.forward

        torch._dynamo.reset()
        torch.compile(function, backend=backend, **options)(*inputs)
        return modules

    def test_optimizers_are_left_to_python(self):
        parameter = torch.nn.Parameter(torch.ones(3))
        parameter.grad = torch.ones(3)
        optimizer = torch.optim.AdamW([parameter])

        def step():
            torch.nn.utils.clip_grad_norm_([parameter], 1.0)
            optimizer.step()

        skipped = set(torch._dynamo.trace_rules.FORCE_SKIP_FILES)
        with _private.left_to_python:
            self.assertEqual(self.graphs_of(step), [])
        self.assertEqual(torch._dynamo.trace_rules.FORCE_SKIP_FILES, skipped)

    def test_optimizers_of_others_are_left_to_python(self):
        class Plain(torch.optim.Optimizer):
            def __init__(self, parameters):
                super().__init__(parameters, {})

            def step(self):
                for group in self.param_groups:
                    for parameter in group["params"]:
                        parameter.data.add_(parameter.grad, alpha=-0.1)

        parameter = torch.nn.Parameter(torch.ones(3))
        parameter.grad = torch.ones(3)
        optimizer = Plain([parameter])
        step = Plain.step
        with _private.left_to_python:
            with _private.left_to_python:
                self.assertEqual(self.graphs_of(lambda: optimizer.step()), [])
            self.assertIsNot(Plain.step, step)
        self.assertIs(Plain.step, step)
        torch.testing.assert_close(parameter.detach(), torch.full((3,), 0.9))

    def test_largest_differentiated(self):
        weight = torch.nn.Parameter(torch.ones(3))
        x = torch.ones(3)
        (with_gradient,) = self.graphs_of(lambda: weight * 2)
        (without,) = self.graphs_of(lambda: (weight * 2).detach())
        (alone,) = self.graphs_of(lambda: x * 2)
        self.assertEqual([_private.largest_differentiated(m) for m in (with_gradient, without, alone)], [3, 0, 0])

    def test_evaluates(self):
        class Model(torch.nn.Module):
            def forward(self, x):
                return x * 2

        said = []

        def backend(module, _):
            said.append(_private.evaluates())
            return module.forward

        self.assertFalse(_private.evaluates())
        model = Model()
        for training in (True, False):
            torch._dynamo.reset()
            torch.compile(model.train(training), backend=backend)(torch.ones(2))
        torch.compile(lambda x: x * 2, backend=backend)(torch.ones(2))
        self.assertEqual(said, [False, True, False])

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

    def test_tell_of_limits(self):
        class Listener:
            def gave_up(self, frame, limit, value, function):
                seen.append((frame, limit, value, function.split()[0]))

        frames, seen, listener = set(), [], Listener()

        def backend(module, _):
            frames.add(_private.compiled_frame())
            return module.forward

        self.assertIsNone(_private.compiled_frame())
        torch._dynamo.reset()
        _private.tell_of_limits(listener)
        double = torch.compile(lambda x: x * 2, backend=backend, dynamic=False)
        with torch._dynamo.config.patch(recompile_limit=2), self.assertLogs("torch._dynamo.convert_frame", "WARNING"):
            for size in (1, 2, 3, 4):
                double(torch.ones(size))
        self.assertEqual(seen, [(frames.pop(), "recompile_limit", 2, "'<lambda>'")])
        self.assertEqual(frames, set())

    def test_settings_of_errors(self):
        self.assertEqual((_private.suppresses_errors(), _private.shows_frames()), (False, False))
        with torch._dynamo.config.patch(suppress_errors=True, verbose=True):
            self.assertEqual((_private.suppresses_errors(), _private.shows_frames()), (True, True))

    def test_inductor_config(self):
        self.assertEqual(_private.inductor_config(None, None), {})
        self.assertEqual(_private.inductor_config("default", {"max-fusion-size": 4}), {"max_fusion_size": 4})
        self.assertTrue(_private.inductor_config("reduce-overhead", None)["triton.cudagraphs"])
        for mode, options in (("fastest", None), (None, {"no_such": 1}), (None, {"max_fusion_size": "4"})):
            with self.assertRaises(RuntimeError):
                _private.inductor_config(mode, options)

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
                                   (lambda x: torch.cat([x, x]) * 2, [1, 1, 1])):
            torch._dynamo.reset()
            pinned.clear()
            counts = []
            compiled = torch.compile(function, backend=backend, dynamic=True)
            for size in (50, 40, 30):
                compiled(torch.ones(size))
                counts.append(len(pinned))
            self.assertEqual(counts, expected)

    def test_called_boxed(self):
        inside = []
        call = _private.called_boxed(lambda args: inside.append(torch.compiler.is_compiling()))
        self.assertTrue(call._boxed_call)
        torch._dynamo.reset()
        torch.compile(lambda: call([]), backend="eager")()
        self.assertEqual(inside, [False])


class Graphs(unittest.TestCase):
    def setUp(self):
        x = torch.randn(4, 4, requires_grad=True)
        self.found = joint_graph(lambda x: [(x.sin() * x).sum()], [x])
        self.graph = self.found["joint"].graph

    def test_placeholders(self):
        placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        self.assertEqual([_private.is_primal(n) for n in placeholders], [True, False])
        self.assertEqual([_private.is_tangent(n) for n in placeholders], [False, True])
        self.assertFalse(any(_private.is_backward_state(n) for n in placeholders))

    def test_static_inputs(self):
        """Of a model whose checks have tokens, which its inputs stand behind."""
        found = []

        def partition(joint, inputs, *, num_fwd_outputs, static_lifetime_input_indices, **_):
            found.extend(n.meta["val"].shape for n in _private.static_inputs(joint.graph, static_lifetime_input_indices))
            self.assertEqual(_private.static_inputs(joint.graph, None), [])
            return torch._functorch.partitioners.default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs)

        linear = torch.nn.Linear(4, 4)
        backend = torch._dynamo.backends.common.aot_autograd(fw_compiler=lambda m, _: m, partition_fn=partition)
        torch._dynamo.reset()
        torch.compile(lambda x: torch.linalg.solve(linear(x), x).sum(), backend=backend)(torch.eye(4)[None].expand(3, 4, 4))
        self.assertEqual(sorted(found), [(4,), (4, 4)])
        found.clear()
        torch.compile(lambda x: (linear(x) * x).sum(), backend=backend)(TwoTensor(torch.ones(3, 4), torch.ones(3, 4)))
        self.assertEqual(sorted(found), [(4,), (4, 4)])

    def test_sides(self):
        sides = [_private.is_backward(n) for n in self.graph.nodes if n.op == "call_function"]
        self.assertEqual(sides, sorted(sides))
        self.assertTrue(sides[-1])
        node = next(n for n in self.graph.nodes if n.op == "call_function")
        _private.set_side(node, True)
        self.assertTrue(_private.is_backward(node))

    def test_tell_sides(self):
        """Of what is marked: a node that has lost its mark is of the forward pass if a result needs it."""
        results, marks = _private.outputs(self.graph)[:1], []
        for node in self.graph.find_nodes(op="call_function", target=torch.ops.aten.sin.default):
            node.meta.pop("partitioner_tag", None)
        backward = [n for n in self.graph.nodes if n.op == "call_function" and _private.is_backward(n)]
        backward[0].meta.pop("partitioner_tag")
        _private.tell_sides(self.graph, results)
        marks = [_private.is_backward(n) for n in self.graph.nodes if n.op == "call_function"]
        self.assertEqual(marks, sorted(marks))
        if torch.__version__ >= "2.10":  # 2.9 marks the backward pass alone
            self.assertEqual(sum(marks), len(backward))

    def test_descriptions(self):
        descriptions = _private.output_descriptions(self.graph)
        self.assertEqual([_private.is_gradient(d) for d in descriptions], [False, True])
        self.assertFalse(any(_private.is_mutation(d) for d in descriptions))

    def test_saved_by_compiled_hooks(self):
        """AOTAutograd renames what they give back."""
        pack, unpack = torch.fx.symbolic_trace(lambda x: x * 2), torch.fx.symbolic_trace(lambda x: x / 2)
        seen = []

        def backward(module, _):
            seen.extend(node.name for node in module.graph.find_nodes(op="placeholder"))
            return _private.boxed(module)

        chosen = _private.aot_autograd(fw_compiler=lambda m, _: _private.boxed(m), bw_compiler=backward,
                                       partition_fn=torch._functorch.partitioners.default_partition)
        torch._dynamo.reset()
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            loss = torch.compile(lambda x: x.exp().sin().sum(), backend=chosen)(torch.ones(3, requires_grad=True))
        loss.backward()
        self.assertTrue(_private.saved_by_compiled_hooks(seen))
        self.assertEqual(_private.saved_by_compiled_hooks(["primals_1", "exp"]), [])
        self.assertEqual(_private.saved_by_compiled_hooks(["pre_hook_1"], ["pre_hook_1"]), [])  # an operator of that name

    def test_modes_of_user(self):
        class Mode(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))

        class Function(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))

        with Mode(), Function(), torch.device("cpu"):
            self.assertEqual([name.split(".")[-1] for name in _private.modes_of_user()], ["Mode", "Function"])
        self.assertEqual(_private.modes_of_user(), [])

    def test_check_version(self):
        """Of what a function keeps in its context; torch 2.9 always checks."""
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.x = x
                return x * x

            @staticmethod
            def backward(ctx, gradient):
                return 2 * gradient * ctx.x

        checked, kept, found = True, [], []

        def partition(joint, inputs, **options):
            found.extend(n for n in joint.graph.nodes if "saved_tensor_with_no_vc_check" in n.meta)
            for node in joint.graph.nodes if checked else ():
                _private.check_version(node)
            return torch._functorch.partitioners.default_partition(joint, inputs, **options)

        def backward(args):
            _private.free_unchecked()
            kept.append(getattr(torch._C._current_autograd_node(), "_tensors_no_vc_check", []))
            return run(args)

        def compiler(module, _):
            nonlocal run
            run = _private.boxed(module)
            return _private.called_boxed(backward)

        run = None
        compiled_by = _private.aot_autograd(fw_compiler=lambda m, _: _private.boxed(m), bw_compiler=compiler, partition_fn=partition)
        for checked in (True, False):
            torch._dynamo.reset()
            x = torch.ones(3, requires_grad=True)
            y = x * 1
            loss = torch.compile(lambda y: Square.apply(y).sum(), backend=compiled_by)(y)
            with torch.no_grad():
                y.mul_(2)
            if checked or not found:
                with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                    loss.backward()
            else:
                loss.backward()
                self.assertEqual(x.grad.tolist(), [4, 4, 4])
        self.assertEqual(kept, [[]] if found else [])

    def test_checkpoint_policy(self):
        policies = []

        def partition(joint, inputs, **options):
            policies.extend(_private.checkpoint_policy(n) for n in joint.graph.nodes if n.op == "call_function")
            return torch._functorch.partitioners.default_partition(joint, inputs, **options)

        torch._dynamo.reset()
        backend = _private.aot_autograd(fw_compiler=lambda m, _: _private.boxed(m), partition_fn=partition)
        checkpoint = torch.utils.checkpoint.checkpoint
        torch.compile(lambda x: checkpoint(torch.sin, x, use_reentrant=False).sum(), backend=backend)(
            torch.ones(3, requires_grad=True)).backward()
        self.assertEqual((policies[0], policies[-1]), ("PREFER_RECOMPUTE", None))

    def test_outputs(self):
        self.assertEqual([leaf.op for leaf in _private.outputs(self.graph)], ["call_function"] * 2)

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

        def partition(joint, inputs, **options):
            seen.extend(_private.is_mutation(d) for d in _private.output_descriptions(joint.graph))
            written.extend(node.meta["val"].shape for node in _private.mutated_inputs(joint.graph))
            of_results.extend((i, _private.argument_of(d, inputs_given)) for i, d in _private.written_inputs(joint.graph, 2))
            return torch._functorch.partitioners.default_partition(joint, inputs, **options)

        torch._dynamo.reset()
        backend = _private.aot_autograd(fw_compiler=lambda m, _: _private.boxed(m), partition_fn=partition,
                                        keep_inference_input_mutations=False)
        torch.compile(Count(), backend=backend)().backward()
        self.assertEqual(seen.count(True), 1)
        self.assertEqual(written, [(1,)])
        self.assertEqual(of_results, [(0, "the first")])

    def test_unseen_writes(self):
        """By what AOTAutograd knows as it cuts the graph."""
        found = []

        def partition(joint, inputs, **options):
            number, metadata = _private.compiling()
            found.append((number, _private.unseen_writes(metadata, joint.graph, options["num_fwd_outputs"])))
            return torch._functorch.partitioners.default_partition(joint, inputs, **options)

        def write(x, seen, leaf, unseen):
            seen.mul_(2)
            with torch.no_grad():
                leaf.mul_(3)
                unseen.mul_(4)
            return (x * seen * leaf * unseen).sum()

        torch._dynamo.reset()
        backend = _private.aot_autograd(fw_compiler=lambda m, _: _private.boxed(m), partition_fn=partition,
                                        keep_inference_input_mutations=False)
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

        torch._dynamo.reset()
        backend = _private.aot_autograd(fw_compiler=forward, bw_compiler=lambda m, _: _private.boxed(m),
                                        partition_fn=torch._functorch.partitioners.default_partition,
                                        keep_inference_input_mutations=False)
        x, kept, number = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True).clone(), torch.ones(2)
        function = kept.grad_fn
        torch.compile(write, backend=backend)(x, kept, number)
        self.assertIs(kept.grad_fn, function)
        self.assertEqual((kept.tolist(), number.tolist()), ([2, 2], [2, 2]))
        _private.hide_writes()  # of nothing

    def test_extract(self):
        saved = [n for n in self.graph.nodes if n.op == "placeholder" and _private.is_primal(n)]
        forward, backward = _private.extract(self.found["joint"], saved, [], [], num_fwd_outputs=1, static_nodes=[])
        outputs = pytree.arg_tree_leaves(*next(iter(reversed(forward.graph.nodes))).args)
        self.assertEqual(len(outputs), 2)
        x = torch.randn(4, 4)
        loss, kept = _private.boxed(forward)([x])
        (gradient,) = _private.boxed(backward)([kept, torch.ones(())])
        self.assertTrue(torch.equal(loss, (x.sin() * x).sum()))
        self.assertTrue(torch.allclose(gradient, x.cos() * x + x.sin()))


    def test_extract_saves_what_must_be_in_the_forward_pass(self):
        sine = next(n for n in self.graph.nodes if n.target is torch.ops.aten.sin.default)
        _private.set_side(sine, False, only_there=True)
        primal = next(n for n in self.graph.nodes if n.op == "placeholder")
        forward, backward = _private.extract(self.found["joint"], [primal, sine], [], [], num_fwd_outputs=1, static_nodes=[])
        self.assertEqual([n.target for n in forward.graph.nodes].count(torch.ops.aten.sin.default), 1)
        self.assertNotIn(torch.ops.aten.sin.default, [n.target for n in backward.graph.nodes])


class Execution(unittest.TestCase):
    def test_boxed_frees_its_arguments(self):
        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        y = graph.call_function(torch.ops.aten.sin.default, (x,))
        graph.output((graph.call_function(torch.ops.aten.cos.default, (y,)),))
        run = _private.boxed(torch.fx.GraphModule(torch.nn.Module(), graph))
        value = torch.randn(3)
        arguments = [value]
        self.assertTrue(torch.equal(run(arguments)[0], value.sin().cos()))
        self.assertEqual(arguments, [])

    def test_no_modes(self):
        state = torch.random.get_rng_state()
        with torch._subclasses.FakeTensorMode(), _private.no_modes():
            real = torch.rand(3)
            self.assertFalse(torch.is_grad_enabled())
        self.assertNotIsInstance(real, torch._subclasses.FakeTensor)
        self.assertTrue(torch.equal(state, torch.random.get_rng_state()))

    def test_asked_by_tracer(self):
        asked = []

        class Asked(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                asked.append(_private.asked_by_tracer(sys._getframe(1)))
                with _private.as_plain_tensors():
                    return function(*args, **(kwargs or {}))

        tensor = torch.ones(3).as_subclass(Asked)
        tensor.norm(), torch.neg(tensor), torch.functional.norm(tensor)
        self.assertTrue(asked)
        self.assertFalse(any(asked))
        asked.clear()
        torch._subclasses.FakeTensorMode().from_tensor(tensor)
        self.assertTrue(asked)
        self.assertTrue(all(asked))

    def test_as_plain_tensors(self):
        class Loud(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                raise AssertionError("asked")

        loud = torch.ones(3).as_subclass(Loud)
        with self.assertRaises(AssertionError):
            torch.neg(loud)
        with _private.as_plain_tensors():
            self.assertEqual(loud.shape, (3,))
            self.assertEqual(torch.neg(loud).sum().item(), -3)

    def test_generator_states(self):
        states = _private.generator_states()
        expected = torch.rand(3)
        _private.set_generator_states(states)
        self.assertTrue(torch.equal(torch.rand(3), expected))

    def test_fake_like(self):
        parameter = torch.nn.Parameter(torch.randn(4, 6).t())
        mode, (fake, again) = _private.fake_like([parameter, parameter])
        self.assertIs(fake, again)
        self.assertEqual((fake.shape, fake.stride(), fake.requires_grad), (parameter.shape, parameter.stride(), True))

    def test_replaced_tensors(self):
        model = torch.nn.Linear(2, 2)
        before = model.weight
        with _private.replaced_tensors(model, {"weight": torch.zeros(2, 2), "bias": torch.ones(2)}):
            self.assertTrue(torch.equal(model(torch.randn(1, 2)), torch.ones(1, 2)))
        self.assertIs(model.weight, before)

    def test_copies_are_aligned_as_what_they_are_copied_from(self):
        for first in range(20):
            tensor = torch.randn(100)[first:first + 64].view(8, 8).T
            copied = _private.copy_of_input(tensor)
            self.assertTrue(torch.equal(copied, tensor))
            self.assertEqual((copied.stride(), _private.alignment_of(copied)), (tensor.stride(), _private.alignment_of(tensor)))

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
        torch._dynamo.reset()
        torch.compile(lambda x, y: (x * y).sum(), backend=backend)(x, y)
        self.assertEqual([position for position, _ in found[:3]], [0, 0, 1])
        self.assertTrue(all(one is other for (_, one), other in zip(found, (x.a, x.b, y))))
        self.assertEqual(found[3:], [(None, None)] * 2)

    def traced(self):
        """A joint graph of two inputs and a tangent."""
        found = []

        def partition(joint, inputs, **options):
            found.append(joint)
            return torch._functorch.partitioners.default_partition(joint, inputs, **options)

        def compiler(module, inputs):
            return _private.boxed(module)

        torch._dynamo.reset()
        backend = _private.aot_autograd(fw_compiler=compiler, bw_compiler=compiler, partition_fn=partition)
        torch.compile(lambda x, y: (x * y).sum(), backend=backend)(torch.ones(2, requires_grad=True), torch.ones(2))
        return found[0]

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

    def test_errors_pass_through_the_compiler(self):
        class Told(_private.ShortenTraceback):
            def __init__(self):
                Exception.__init__(self, "told")
                self.first_useful_frame = None

        def backend(module, inputs):
            raise Told

        torch._dynamo.reset()
        with self.assertRaises(Told):
            torch.compile(lambda x: x * 2, backend=backend)(torch.randn(3))


    def test_is_batched(self):
        found = []

        def see(x):
            found.append((_private.is_batched(x), _private.is_plain(x)))
            return x * 2

        see(torch.ones(3))
        torch.func.vmap(see)(torch.ones(3))
        self.assertEqual(found, [(False, True), (True, False)])
        y = torch.ones(3, requires_grad=True) * 2
        y.register_hook(see)
        torch.autograd.grad(y, y, torch.eye(3), is_grads_batched=True)
        self.assertEqual(found[2:], [(True, False)])
        self.assertFalse(_private.is_batched(1))

    def test_is_there(self):
        x = torch.ones(4, 4)
        self.assertTrue(all(map(_private.is_there, (x, x.T, x[1:, 2:], x[0].expand(9, 4), torch.ones(())))))
        x.untyped_storage().resize_(48)
        self.assertFalse(_private.is_there(x))
        self.assertTrue(_private.is_there(x[:3]))

    def test_saves_by_hooks(self):
        self.assertFalse(_private.saves_by_hooks())
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            self.assertTrue(_private.saves_by_hooks())

    def test_gradients_are_copied(self):
        """Within the forward pass of a DistributedDataParallel; one rank is enough for one."""
        found = [_private.gradients_are_copied()]

        class Seen(torch.nn.Linear):
            def forward(self, x):
                found.append(_private.gradients_are_copied())
                return super().forward(x)

        with tempfile.TemporaryDirectory() as folder:
            torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=0, world_size=1)
            self.addCleanup(torch.distributed.destroy_process_group)
            for view in (False, True):
                torch.nn.parallel.DistributedDataParallel(Seen(2, 2), gradient_as_bucket_view=view)(torch.ones(1, 2))
        self.assertEqual(found, [False, False, True])

    def test_leaves_of_node(self):
        found = []

        class Seen(torch.autograd.Function):
            @staticmethod
            def forward(ctx, *given):
                return given[0] * 2

            @staticmethod
            def backward(ctx, gradient):
                found.extend(_private.leaves_of_node())
                return gradient, gradient, None, None

        leaf, other = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        Seen.apply(leaf, other * 2, torch.ones(3), 1).sum().backward()
        self.assertEqual([(id(t), size) for t, size in found], [(id(leaf), 12)])

    def test_autocasts(self):
        self.assertFalse(_private.autocasts())
        with torch.autocast("cpu", torch.bfloat16):
            self.assertTrue(_private.autocasts())
            with _private.no_autocast():
                self.assertFalse(_private.autocasts())

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
        nodes[1].metadata["cairn"] = True  # it is known already
        self.assertIsNone(_private.backward_node([written], 0))
        with torch.no_grad():
            view = w[1:]
            view.mul_(1)
        self.assertIsNone(_private.backward_node([view], 0))  # of which torch refuses to say what made it

    def test_metadata_of_node(self):
        x, seen = torch.ones(3, requires_grad=True), []
        y = x * 2
        y.grad_fn.metadata["cairn"] = 7
        x.register_hook(lambda _: seen.append(dict(_private.metadata_of_node())))
        y.grad_fn.register_prehook(lambda _: seen.append(dict(_private.metadata_of_node())))
        self.assertEqual(_private.metadata_of_node(), {})
        y.sum().backward()
        self.assertIn({"cairn": 7}, seen)

    def test_left_alone(self):
        def function(seen):
            seen.append(torch.compiler.is_compiling())

        seen = []
        for called in (_private.left_alone(function), function):
            torch._dynamo.reset()
            torch.compile(lambda x: (called(seen), x + 1), backend="eager")(torch.ones(1))
        self.assertEqual(seen, [False, True])

    def test_result_of(self):
        found = []

        def partition(joint, inputs, *, num_fwd_outputs, **options):
            descriptions = _private.output_descriptions(joint.graph)[:num_fwd_outputs]
            tangents = [n for n in joint.graph.nodes if n.op == "placeholder" and _private.is_tangent(n)]
            found.extend(_private.result_of(n.meta["desc"], descriptions) for n in tangents)
            return torch._functorch.partitioners.default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs, **options)

        def backend(module, inputs):
            return _private.aot_autograd(fw_compiler=lambda m, _: _private.boxed(m), bw_compiler=lambda m, _: _private.boxed(m),
                                         partition_fn=partition)(module, inputs)

        torch._dynamo.reset()
        w = torch.ones(3, requires_grad=True)
        torch.compile(lambda x: (w.detach() + 1, x * 2, x.sum()), backend=backend)(w)
        self.assertEqual(found, [1, 2])
        self.assertIsNone(_private.result_of(None, [None, None]))

    def test_graph_task(self):
        seen = []
        x = torch.ones(2, requires_grad=True)
        for _ in range(2):
            y = x * 2
            y.register_hook(lambda _: seen.append(_private.graph_task()))
            y.sum().backward()
        self.assertEqual(_private.graph_task(), -1)
        self.assertTrue(0 <= seen[0] < seen[1])

    def test_weak_storage(self):
        x = torch.ones(3)
        found = _private.weak_storage(x.untyped_storage())
        self.assertEqual(found.cdata, x.untyped_storage()._cdata)
        y = x[:1]
        del x
        self.assertFalse(found.expired())
        del y
        self.assertTrue(found.expired())

    def test_splits_for_ddp(self):
        self.assertFalse(_private.splits_for_ddp())
        parallel = torch.nn.parallel.DistributedDataParallel
        with unittest.mock.patch.object(parallel, "_active_ddp_module", object()):
            self.assertTrue(_private.splits_for_ddp())
            with torch._dynamo.config.patch(optimize_ddp=False):
                self.assertFalse(_private.splits_for_ddp())


class Measuring(unittest.TestCase):
    def test_allocations(self):
        self.assertFalse(_private.profiler_runs())
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiler:
            self.assertTrue(_private.profiler_runs())
            with torch.profiler.record_function("cairn:block"):
                x = torch.ones(1000)
            address = x.untyped_storage().data_ptr()
            del x
        events = _private.allocations(profiler)
        block = next(i for i, e in enumerate(events) if e[4] == "cairn:block")
        sizes = [e[1:4] for e in events[block:] if e[1]]
        self.assertEqual(sizes, [(4000, address, "cpu"), (-4000, address, "cpu")])

    def test_quiet_profiler(self):
        before = os.environ.get("KINETO_LOG_LEVEL")
        with _private.quiet_profiler():
            self.assertIn("KINETO_LOG_LEVEL", os.environ)
        self.assertEqual(os.environ.get("KINETO_LOG_LEVEL"), before)
        program = ("import torch; from cairn.torch import measure_peak; "
                   "print(measure_peak(lambda: torch.ones(1000))[1])")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              env={k: v for k, v in os.environ.items() if k != "KINETO_LOG_LEVEL"})
        self.assertEqual((done.stdout, done.stderr), ("4000\n", ""))

    def test_quiet_allocator(self):
        program = ("import torch; from cairn.torch import _private; kept = [torch.ones(1000), torch.ones(1000)]\n"
                   "with _private.quiet_allocator, _private.quiet_profiler():\n"
                   "    with _private.memory_profiler():\n"
                   "        torch.ones(1); kept.clear()\n"
                   "print(_private.quiet_allocator.entered, _private.measuring._log_level().value)")
        environment = {k: v for k, v in os.environ.items() if k not in ("KINETO_LOG_LEVEL", "TORCH_CPP_LOG_LEVEL")}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              env=environment)
        self.assertEqual((done.stdout, done.stderr), ("0 1\n", ""))
        loud = program.replace("with _private.quiet_allocator, ", "with ")
        done = subprocess.run([sys.executable, "-c", loud], capture_output=True, text=True, env=environment)
        self.assertIn("Memory block of unknown size", done.stderr)

    def test_kernel_settings(self):
        before = _private.kernel_settings()
        matmul = torch.backends.cuda.matmul
        changes = [(torch.backends.mkldnn, "enabled", False), (torch.backends.cudnn, "deterministic", True),
                   (matmul, "allow_fp16_reduced_precision_reduction", False),
                   (matmul, "allow_bf16_reduced_precision_reduction", False), (matmul, "allow_fp16_accumulation", True)]
        for owner, name, value in changes:
            with self.subTest(name):
                kept = getattr(owner, name)
                setattr(owner, name, value)
                try:
                    self.assertNotEqual(_private.kernel_settings(), before)
                finally:
                    setattr(owner, name, kept)
        cuda = torch.backends.cuda
        for turn, now in ((cuda.enable_cudnn_sdp, cuda.cudnn_sdp_enabled()),
                          (cuda.allow_fp16_bf16_reduction_math_sdp, cuda.fp16_bf16_reduction_math_sdp_allowed())):
            turn(not now)
            self.assertNotEqual(_private.kernel_settings(), before)
            turn(now)
        for name in ("CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA"):
            with unittest.mock.patch.dict(os.environ, {name: ":4096:8"}):
                self.assertNotEqual(_private.kernel_settings(), before)
        self.assertEqual(_private.kernel_settings(), before)

    def test_kernel_settings_where_old_and_new_ones_are_mixed(self):
        """Torch refuses to say what an old switch is when a new one has been set."""
        program = ("import torch; from cairn.torch import _private; before = _private.kernel_settings(); "
                   "torch.backends.cuda.matmul.fp32_precision = 'tf32'; torch.backends.mkldnn.matmul.fp32_precision = 'bf16'; "
                   "print(_private.kernel_settings() != before)")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual(done.stdout, "True\n", done.stderr)

    @unittest.skipUnless(torch.cuda.is_available(), "there is no GPU")
    def test_history_of_the_allocator(self):
        torch.ones(1, device="cuda")
        with _private.AllocatorHistory() as history:
            self.assertFalse(_private.history_can_be_recorded())
            a = torch.empty(1000, device="cuda")
            b = torch.empty(3 * 2**20 + 4, dtype=torch.uint8, device="cuda")
            where = a.data_ptr(), b.data_ptr()
            del a
        self.assertEqual(history.events, [(where[0], 4000), (where[1], 3 * 2**20 + 4), (where[0], -4000)])
        self.assertTrue(_private.history_can_be_recorded())

    @unittest.skipUnless(torch.cuda.is_available(), "there is no GPU")
    def test_make_workspaces(self):
        _private.make_workspaces()
        before = torch.cuda.memory_allocated()
        _private.make_workspaces()
        self.assertEqual(torch.cuda.memory_allocated(), before)

    def test_is_out_of_memory(self):
        with self.assertRaises(RuntimeError) as raised:
            torch.empty(2**60, dtype=torch.uint8)
        self.assertTrue(_private.is_out_of_memory(raised.exception))
        self.assertFalse(_private.is_out_of_memory(RuntimeError("shapes")))

    def test_one_process_has_no_store(self):
        self.assertIsNone(_private.collective_store())
