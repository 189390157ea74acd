"""Tests that in the installed torch, compiled graphs free their arguments, and that modes can be switched off for a
time, and states of generators restored."""

import unittest
import unittest.mock

import torch
from cairn.torch import _private


class Calls(unittest.TestCase):
    def test_called_boxed(self):
        inside = []
        call = _private.called_boxed(lambda args: inside.append(torch.compiler.is_compiling()))
        self.assertTrue(call._boxed_call)
        torch._dynamo.reset()
        torch.compile(lambda: call([]), backend="eager")()
        self.assertEqual(inside, [False])


class Running(unittest.TestCase):
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

    def test_compiling_flag(self):
        with unittest.mock.patch("torch.compiler._is_compiling_flag", True):
            with _private.compiling_flag(False):
                self.assertFalse(torch.compiler.is_compiling())
            self.assertTrue(torch.compiler.is_compiling())
        with _private.compiling_flag(True):
            self.assertTrue(torch.compiler.is_compiling())
        self.assertFalse(torch.compiler.is_compiling())

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

    def test_autocasts(self):
        self.assertFalse(_private.autocasts())
        with torch.autocast("cpu", torch.bfloat16):
            self.assertTrue(_private.autocasts())
            with _private.no_autocast():
                self.assertFalse(_private.autocasts())

    def test_left_alone(self):
        def function(seen):
            seen.append(torch.compiler.is_compiling())

        seen = []
        for called in (_private.left_alone(function), function):
            torch._dynamo.reset()
            torch.compile(lambda x: (called(seen), x + 1), backend="eager")(torch.ones(1))
        self.assertEqual(seen, [False, True])


class Modes(unittest.TestCase):
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
