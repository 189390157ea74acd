"""Tests that in the installed torch, a joint graph says which pass a node belongs to, and can be cut into both
passes."""

import harness
import torch
from cairn.torch import _private
from joint_graphs import OfJointGraph, cut_after
from torch.utils import _pytree as pytree


class Joint(OfJointGraph):
    def test_placeholders(self):
        placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        self.assertEqual([_private.is_primal(n) for n in placeholders], [True, False])
        self.assertEqual([_private.is_tangent(n) for n in placeholders], [False, True])

    def test_sides(self):
        sides = [_private.is_backward(n) for n in self.graph.nodes if n.op == "call_function"]
        self.assertEqual(sides, sorted(sides))
        self.assertTrue(sides[-1])
        node = next(n for n in self.graph.nodes if n.op == "call_function")
        _private.set_side(node, True)
        self.assertTrue(_private.is_backward(node))

    def test_tell_sides(self):
        """Tests tell_sides(): an unmarked node belongs to the forward pass if a result of the forward pass depends on
        it, else to the backward pass."""
        results, marks = _private.outputs(self.graph)[:1], []
        for node in self.graph.find_nodes(op="call_function", target=torch.ops.aten.sin.default):
            node.meta.pop("partitioner_tag", None)
        backward = [n for n in self.graph.nodes if n.op == "call_function" and _private.is_backward(n)]
        backward[0].meta.pop("partitioner_tag")
        _private.tell_sides(self.graph, results)
        marks = [_private.is_backward(n) for n in self.graph.nodes if n.op == "call_function"]
        self.assertEqual(marks, sorted(marks))
        if torch.__version__ >= "2.10":  # torch 2.9 marks only nodes of the backward pass
            self.assertEqual(sum(marks), len(backward))

    def test_saved_by_compiled_hooks(self):
        """Tests that values that compiled saved-tensor hooks return are recognised by the names that AOTAutograd gives
        them."""
        pack, unpack = torch.fx.symbolic_trace(lambda x: x * 2), torch.fx.symbolic_trace(lambda x: x / 2)
        seen = []

        def backward(module, _):
            seen.extend(node.name for node in module.graph.find_nodes(op="placeholder"))
            return _private.boxed(module)

        chosen = _private.aot_autograd(fw_compiler=lambda m, _: _private.boxed(m), bw_compiler=backward,
                                       partition_fn=torch._functorch.partitioners.default_partition)
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            loss = torch.compile(lambda x: x.exp().sin().sum(), backend=chosen)(torch.ones(3, requires_grad=True))
        loss.backward()
        self.assertTrue(_private.saved_by_compiled_hooks(seen))
        self.assertEqual(_private.saved_by_compiled_hooks(["primals_1", "exp"]), [])
        # An ordinary operator can make a value whose name looks like that of a hook's value, such as pre_hook_1. The
        # second argument lists the names of all such values, and none of them may be returned.
        self.assertEqual(_private.saved_by_compiled_hooks(["pre_hook_1"], ["pre_hook_1"]), [])

    def test_check_version(self):
        """Tests that values for which check_version() was called are checked for writes, although their function stores
        them in its context without save_for_backward. Torch 2.9 always checks such values."""
        checked, kept, found = True, [], []

        def look(joint, **_):
            found.extend(n for n in joint.graph.nodes if "saved_tensor_with_no_vc_check" in n.meta)
            for node in joint.graph.nodes if checked else ():
                _private.check_version(node)

        def backward(args):
            _private.free_unchecked()
            kept.append(getattr(torch._C._current_autograd_node(), "_tensors_no_vc_check", []))
            return run(args)

        def compiler(module, _):
            nonlocal run
            run = _private.boxed(module)
            return _private.called_boxed(backward)

        run = None
        compiled_by = cut_after(look, bw_compiler=compiler)
        for checked in (True, False):
            torch._dynamo.reset()
            x = torch.ones(3, requires_grad=True)
            y = x * 1
            loss = torch.compile(lambda y: harness.Square.apply(y).sum(), backend=compiled_by)(y)
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

        def look(joint, **_):
            policies.extend(_private.checkpoint_policy(n) for n in joint.graph.nodes if n.op == "call_function")

        checkpoint = torch.utils.checkpoint.checkpoint
        torch.compile(lambda x: checkpoint(torch.sin, x, use_reentrant=False).sum(), backend=cut_after(look))(
            torch.ones(3, requires_grad=True)).backward()
        self.assertEqual((policies[0], policies[-1]), ("PREFER_RECOMPUTE", None))

    def test_outputs(self):
        self.assertEqual([leaf.op for leaf in _private.outputs(self.graph)], ["call_function"] * 2)

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
