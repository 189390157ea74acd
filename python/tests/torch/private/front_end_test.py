"""Tests that the front end of the installed torch.compile does not compile functions that it is told to leave alone,
and that it tells which graphs it captures and which functions it stops compiling."""

import os
import sys
import threading
import unittest

import torch
from cairn.torch import _private
from cairn.torch._private import front_end


class FrontEnd(unittest.TestCase):
    def graphs_of(self, function, *inputs, **options):
        """Returns the modules that torch.compile captures."""
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

    def test_hooks_of_an_optimizer_that_is_made_meanwhile(self):
        class Late(torch.optim.SGD):
            def step(self, closure=None):
                super().step(closure)

        called = []
        with _private.left_to_python:
            optimizer = Late([torch.nn.Parameter(torch.ones(2))], lr=0.1)
        optimizer.register_step_post_hook(lambda *_: called.append(1))
        optimizer.step()
        self.assertEqual(len(called), 1)

    def test_averaged_models_are_compiled(self):
        model, graphs = torch.optim.swa_utils.AveragedModel(torch.nn.Linear(2, 2)), []

        def backend(module, inputs):
            graphs.append(module)
            return module.forward

        with _private.left_to_python:
            torch.compile(lambda x: model(x.sin()).cos(), backend=backend)(torch.ones(2, 2))
        self.assertEqual(len(graphs), 1)

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

    def test_sizes_differentiated(self):
        weight = torch.nn.Parameter(torch.ones(3))
        x = torch.ones(3)
        (with_gradient,) = self.graphs_of(lambda: weight * 2)
        (without,) = self.graphs_of(lambda: (weight * 2).detach())
        (alone,) = self.graphs_of(lambda: x * 2)
        self.assertEqual([_private.sizes_differentiated(m) for m in (with_gradient, without, alone)], [[3], [], []])

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

    def test_tell_of_limits(self):
        class Listener:
            def gave_up(self, of, frame, limit, value, function):
                seen.append((of, frame, limit, value, function.split()[0]))

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
        self.assertEqual(seen, [(backend, frames.pop(), "recompile_limit", 2, "'<lambda>'")])
        self.assertEqual(frames, set())

    def test_compile_again(self):
        """Tests that compile_again() makes torch compile a function anew, even if compile_again() is called at a graph
        break, while the compiled function runs."""
        compiled, codes, again = [], set(), []

        def backend(module, _):
            compiled.append(None)
            codes.add(_private.compiled_code())
            return module.forward

        @torch._dynamo.disable
        def between():
            for code in codes if again else ():
                _private.compile_again(code)

        def function(x):
            x = x.sin()
            between()
            return x.cos()

        self.assertIsNone(_private.compiled_code())
        torch._dynamo.reset()
        run, x = torch.compile(function, backend=backend), torch.ones(3)
        for forgets, graphs in ((False, 2), (False, 2), (True, 3), (False, 4), (False, 4)):
            again[:] = [None] if forgets else []
            self.assertTrue(torch.equal(run(x), x.sin().cos()))
            self.assertEqual(len(compiled), graphs)
        self.assertIn(_private.Code(function.__code__), codes)

    def test_codes_are_compared_by_identity(self):
        code = (lambda x: x).__code__
        same, equal = _private.Code(code), _private.Code(code.replace())
        self.assertEqual(same, _private.Code(code))
        self.assertEqual(hash(same), hash(_private.Code(code)))
        self.assertNotEqual(same, equal)
        hash(_private.Code(code.replace(co_consts=({},))))  # the code itself has no hash

    def test_compile_again_with_the_sizes_seen_first(self):
        """Tests compile_again() with the sizes of the first compilation. These sizes are then constant again, and all
        others symbolic. Without this argument, all sizes that have varied are symbolic."""
        symbolic = []

        def backend(module, inputs):
            symbolic.append(any(type(x) is torch.SymInt for x in inputs))
            return module.forward

        def function(x):
            return x.sin() * scale

        for scale in (2, 3):  # changes a variable of the function's closure
            for forgets, sizes, expected in ((False, (3, 4), [True]), (True, (3, 4), [False, True]), (True, (5,), [True])):
                torch._dynamo.reset()
                symbolic.clear()
                run, code = torch.compile(function, backend=backend), _private.Code(function.__code__)
                run(torch.ones(3))
                seen = _private.sizes_seen(code)
                run(torch.ones(4))
                for _ in range(2):
                    symbolic.clear()
                    _private.compile_again(code, seen if forgets else None)
                    for size in sizes:
                        run(torch.ones(size))
                    self.assertEqual(symbolic, expected)

    def test_compile_again_while_another_thread_compiles(self):
        """Tests that compile_again() then does nothing: the other thread has a pointer to the compiled variants."""
        compiled, began, may_end = [], threading.Event(), threading.Event()

        def slow(module, _):
            began.set()
            may_end.wait(60)
            return module.forward

        def function(x):
            return x.sin()

        torch._dynamo.reset()
        run = torch.compile(function, backend=lambda module, _: compiled.append(None) or module.forward)
        run(torch.ones(3))
        thread = threading.Thread(target=lambda: torch.compile(lambda x: x.cos(), backend=slow)(torch.ones(3)), daemon=True)
        thread.start()
        began.wait(60)
        found = _private.others_compile(), _private.compile_again(_private.Code(function.__code__))
        may_end.set()
        thread.join()
        self.assertEqual(found, (True, False))
        self.assertFalse(_private.others_compile())
        run(torch.ones(3))
        self.assertEqual(len(compiled), 1)
        self.assertTrue(_private.compile_again(_private.Code(function.__code__)))
        run(torch.ones(3))
        self.assertEqual(len(compiled), 2)

    def test_register_backend(self):
        used = []
        _private.register_backend("of_a_test", lambda module, _: used.append(None) or module.forward)
        torch._dynamo.reset()
        torch.compile(lambda x: x * 2, backend="of_a_test")(torch.ones(2))
        self.assertEqual(used, [None])

    def test_settings_of_errors(self):
        self.assertEqual((_private.suppresses_errors(), _private.shows_frames()), (False, False))
        with torch._dynamo.config.patch(suppress_errors=True, verbose=True):
            self.assertEqual((_private.suppresses_errors(), _private.shows_frames()), (True, True))


class Tracers(unittest.TestCase):
    def test_codes_of_functions(self):
        def made(path):
            names = {}
            exec(compile("def step(self): pass", path, "exec"), names)
            return front_end._codes_of(names["step"])

        folder = os.path.dirname(torch.__file__)
        self.assertEqual([len(made(path)) for path in (f"{folder}/optim/x.py", f"{folder}_optimizer/x.py", "/x.py")], [0, 1, 1])

    def test_runs_uncompiled(self):
        self.assertFalse(_private.runs_uncompiled())
        for stance in ("eager_on_recompile", "force_eager"):
            with torch.compiler.set_stance(stance):
                self.assertTrue(_private.runs_uncompiled())

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
