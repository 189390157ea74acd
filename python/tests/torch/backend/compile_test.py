"""Tests the backend together with torch.compile: options, symbolic sizes, limits, and what is printed."""

import copy
import os
import pickle
import random
import subprocess
import sys
import unittest
import unittest.mock

import cairn
import cairn.torch
import harness
import torch
from cairn.torch import _private


def backend(budget="100%", **options):
    return cairn.torch.backend(budget, **{"work_limit": 1000, **options})


def two_layers(width=64):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Tanh(), torch.nn.Linear(width, width))


def run(program, **environment):
    """Runs a Python program in a separate process. Returns (stdout, lines of stderr)."""
    kept = {k: v for k, v in os.environ.items() if k not in ("KINETO_LOG_LEVEL", "TORCH_CPP_LOG_LEVEL", "TORCHDYNAMO_VERBOSE")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**kept, **environment})
    return done.stdout, done.stderr.splitlines()


class Options(harness.Fresh):
    """Tests that mode= and options= of torch.compile are obeyed, or rejected with a message of one line."""

    def refused(self, regex, compiler="eager", **given):
        torch._dynamo.reset()
        with self.assertRaisesRegex(cairn.InputError, regex) as raised:
            torch.compile(two_layers(), backend=backend(compiler=compiler), **given)(torch.randn(8, 64))
        self.assertEqual(len(str(raised.exception).splitlines()), 1)

    def test_of_kernels_that_are_not_compiled(self):
        for mode in ("reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"):
            self.refused("^mode: '.*leave it out", mode=mode)
        self.refused(r"^options: 'budget'.* cairn.torch.backend\(\)", options={"budget": "60%"})
        torch.compile(two_layers(), backend=backend(), mode="default")(torch.randn(8, 64)).sum().backward()
        self.assertEqual(len(cairn.torch.last_report().graphs), 1)

    def test_of_inductor(self):
        self.refused("^mode: 'reduce-overhead' records CUDA graphs", "inductor", mode="reduce-overhead")
        self.refused("^options: 'triton.cudagraphs' records CUDA graphs", "inductor", options={"triton.cudagraphs": True})
        self.refused("^mode, options: .*=fastest", "inductor", mode="fastest")
        self.refused("^mode, options: .* no_such", "inductor", options={"no_such": 1})
        self.refused("^options: 'custom_partitioner_fn'", "inductor", options={"custom_partitioner_fn": None})
        torch._dynamo.reset()
        seen = []

        def compile_kernel(module, values, settings):
            seen.append(settings)
            return lambda args: module.forward(*args)

        with unittest.mock.patch.object(_private, "compile_kernel", compile_kernel):
            torch.compile(two_layers(), backend=backend(compiler="inductor"), options={"max_fusion_size": 4})(torch.randn(80, 64))
        self.assertTrue(all(settings["max_fusion_size"] == 4 for settings in seen) and seen)


class Lengths(harness.Fresh):
    """Tests inputs whose lengths vary from call to call."""

    def setUp(self):
        super().setUp()
        self.model = two_layers(16)

    def train(self, compiled, length):
        self.model.zero_grad()
        compiled(torch.randn(length, 16)).square().sum().backward()

    def test_few_plans_for_many_lengths(self):
        """Tests that few plans serve many lengths. Torch stops compiling a function after eight variants."""
        draw = random.Random(0)
        lengths = sorted(int(2 ** draw.uniform(5, 11)) for _ in range(150))
        for dynamic, order in ((None, lengths), (True, lengths), (None, draw.sample(lengths, len(lengths)))):
            torch._dynamo.reset()
            chosen = backend("min", fallback=False)
            compiled = torch.compile(lambda x: self.model(x), backend=chosen, dynamic=dynamic)
            with harness.cairn_warnings("error"):
                for length in order:
                    self.train(compiled, length)
            self.assertLessEqual(len(chosen.report.graphs), 8)
            self.assertEqual(chosen.report.unplanned, [])
            self.assertIs(chosen.report.kept, True)

    def test_sizes_for_which_the_model_would_divide_by_zero(self):
        chosen = backend("min", fallback=False)
        compiled = torch.compile(lambda x: self.model(x).view(x.shape[0] // 7, 7, 16) * x.shape[0], backend=chosen)
        with harness.cairn_warnings("error"):
            for length in (70, 77, 91):
                self.train(compiled, length)
        self.assertIs(chosen.report.kept, True)

    def test_a_shorter_input_is_planned_for_the_longest_so_far(self):
        chosen = backend("min", fallback=False)
        compiled = torch.compile(lambda x: self.model(x), backend=chosen)
        for length, graphs in ((100, 1), (60, 2), (99, 2), (100, 2), (101, 3), (124, 3), (125, 3), (126, 4), (187, 4)):
            self.train(compiled, length)
            self.assertEqual(len(chosen.report.graphs), graphs, length)
        self.assertEqual(chosen.report.graphs[0].promised, chosen.report.graphs[1].promised)

    def test_a_budget_that_only_the_present_length_meets(self):
        """Tests a budget that a plan for the present length can meet, but a plan for a larger length cannot. The plan
        must be for the present length."""
        chosen = backend("min", fallback=False)
        compiled = torch.compile(lambda x: self.model(x), backend=chosen, dynamic=True)
        self.train(compiled, 101)
        budget = chosen.report.promised + 200
        torch._dynamo.reset()
        chosen = backend(budget, fallback=False)
        compiled = torch.compile(lambda x: self.model(x), backend=chosen, dynamic=True)
        for length in (100, 101, 90):
            self.train(compiled, length)
        self.assertEqual([graph.promised <= budget for graph in chosen.report.graphs], [True, True])
        self.assertIs(chosen.report.kept, True)
        with self.assertRaises(cairn.InfeasibleError):
            self.train(compiled, 110)
        self.train(compiled, 101)


class Numbers(harness.Fresh):
    """Tests arguments that are numbers."""

    def test_a_number_on_which_no_size_depends(self):
        """Tests the number of a step. Plans hold for all numbers, so torch.compile must not reach its limit."""
        layers, chosen = two_layers(), backend(fallback=False)
        compiled = torch.compile(lambda x, step: (layers(x) * (step / 1000)).sum(), backend=chosen, fullgraph=True)
        for step in range(12):
            compiled(torch.randn(4, 64), step).backward()
            layers.zero_grad()
        self.assertLessEqual(len(chosen.report.graphs), 3)
        self.assertTrue(chosen.report.kept)

    def test_a_number_that_becomes_negative(self):
        """Tests a number whose square decides a size: a plan for 5 must not be used for -40."""
        weight, chosen = torch.nn.Parameter(torch.ones(4)), backend(fallback=False)
        compiled = torch.compile(lambda x, n: (x.repeat(1, n * n).exp() * weight.sum()).sum(), backend=chosen)
        for number in (3, 5, 4, -40):
            compiled(torch.randn(4, 4), number).backward()
            weight.grad = None
        self.assertGreater(chosen.report.promised, 4 * 4 * 4 * 40 * 40)
        self.assertTrue(chosen.report.kept)

    def test_a_number_of_two(self):
        """Tests a number that is 2 when its graph is made, and for which a smaller number needs more memory."""
        weight, chosen = torch.nn.Parameter(torch.ones(64)), backend(fallback=False)
        compiled = torch.compile(lambda x, n: (x[n:].exp() * weight).sum(), backend=chosen)
        for number in (5, 2, 1, 0):
            compiled(torch.randn(8, 64), number).backward()
            weight.grad = None
            self.assertTrue(chosen.report.kept)

    def test_a_chain_of_many_views(self):
        weight, chosen = torch.nn.Parameter(torch.ones(4, 4)), backend(fallback=False)

        def function(x):
            y = x * weight
            for _ in range(1100):
                y = y.t()
            return y.exp().sum()

        torch.compile(function, backend=chosen)(torch.randn(4, 4)).backward()
        self.assertTrue(chosen.report.kept)

    def test_a_batch_of_two(self):
        """Tests a batch of two with symbolic sizes. Torch's graphs without symbolic sizes return a wrong view of a
        returned view, here of ``h``. So the graph must keep its symbolic sizes, as with aot_eager."""
        weight, x = torch.nn.Parameter(torch.rand(24)), torch.rand(2, 36, 24)

        def function(x):
            h = (x * weight).transpose(1, 2).unflatten(2, (6, 6)).tanh().flatten(2).transpose(1, 2)
            return h.square().mean(), h, h.detach()

        chosen = backend(fallback=False)
        for results in harness.afresh(("aot_eager", chosen)):
            loss, h, view = torch.compile(function, backend=results, dynamic=True)(x)
            loss.backward()
            self.assertTrue(torch.equal(h, view))
            self.assertEqual(h.stride(), view.stride())
            weight.grad = None
        self.assertTrue(chosen.report.kept)
        self.assertEqual(len(chosen.report.graphs), 1)
        torch.compile(function, backend=chosen, dynamic=True)(torch.rand(3, 36, 24))[0].backward()
        self.assertEqual(len(chosen.report.graphs), 2)  # a larger batch needs a new plan

    def test_a_number_below_zero(self):
        """Tests a number with a lower bound that is the present number and is below 0. Larger numbers need new plans."""
        weight, chosen = torch.nn.Parameter(torch.rand(8)), backend("min", fallback=False)

        def function(x, n):
            if n >= -3:
                x = x * weight
            return torch.nn.functional.pad(x, (0, 0, n + 4, 0)).tanh().square().sum()

        compiled = torch.compile(function, backend=chosen, dynamic=True)
        for number in (-3, -2, 3, -3):
            compiled(torch.rand(40, 8), number).backward()
        self.assertTrue(all(graph.kept for graph in chosen.report.graphs))
        self.assertGreaterEqual(len(chosen.report.graphs), 3)

    def test_a_marked_size_of_two(self):
        layers, chosen = two_layers(), backend(fallback=False)
        compiled = torch.compile(lambda x: layers(x).square().sum(), backend=chosen)
        for rows in (2, 3, 2, 40):
            x = torch.randn(rows, 64)
            torch._dynamo.mark_dynamic(x, 0)
            compiled(x).backward()
            layers.zero_grad()
        self.assertTrue(chosen.report.kept)


class Sizes(harness.Fresh):
    """Tests sizes that are marked by torch._dynamo.mark_dynamic."""

    def setUp(self):
        super().setUp()
        self.model = two_layers(16)
        self.chosen = backend(fallback=False)
        self.compiled = torch.compile(lambda x: self.model(x).square().sum(), backend=self.chosen)

    def train(self, size, **marked):
        x = torch.randn(size, 16)
        torch._dynamo.mark_dynamic(x, 0, **marked)
        self.model.zero_grad()
        self.compiled(x).backward()

    def test_with_a_maximum_the_plan_is_for_that(self):
        for size in (8, 6, 16, 40, 64):
            self.train(size, min=2, max=64)
        (graph,) = self.chosen.report.graphs
        torch._dynamo.reset()
        self.model.zero_grad()
        chosen = backend(fallback=False)
        torch.compile(lambda x: self.model(x).square().sum(), backend=chosen)(torch.randn(64, 16)).backward()
        self.assertEqual(graph.promised, chosen.report.promised)

    def test_without_a_maximum_a_larger_one_is_planned_anew(self):
        for size, graphs in ((8, 1), (6, 1), (16, 2)):
            self.train(size)
            self.assertEqual(len(self.chosen.report.graphs), graphs)

    def test_with_a_minimum_alone_a_larger_one_is_told(self):
        """Tests that a size marked dynamic with a minimum alone causes a warning when the size grows. No guard can
        limit the size to that of the plan, because such a guard would contradict the mark."""
        if torch.__version__ < "2.12":
            self.skipTest("torch up to 2.11 asks for max=, too")
        self.assertEqual(harness.told_by(lambda: self.train(8, min=2))[1], [])
        told = harness.told_by(lambda: [self.train(size, min=2) for size in (16, 32)])[1]
        self.assertEqual(len(told), 3)
        self.assertRegex(told[0], "marked dynamic is 16 now, and the plan is for up to 8")
        # Each new size is measured, and takes more than the promised peak.
        for text in told[1:]:
            self.assertRegex(text, "promised a peak of .*, measured")

    def test_what_grows_when_a_marked_size_shrinks_is_not_planned(self):
        compiled = torch.compile(lambda x: torch.cat([x, torch.zeros(100 - x.shape[0], 16)]).mul(2).sum(), backend=backend())
        x = torch.randn(8, 16, requires_grad=True)
        torch._dynamo.mark_dynamic(x, 0, min=2, max=64)
        _, told = harness.told_by(lambda: compiled(x).backward())
        self.assertRegex(told[0], "without a budget.* marked dynamic makes something larger when it is smaller")

    def test_smaller_sizes_that_need_more_scratch_are_measured(self):
        """Tests that smaller sizes are measured as well, because they can need more scratch: the resize in this model
        needs a buffer unless the height is 64 already."""
        weight = torch.nn.Parameter(torch.ones(16, 1, 1))
        chosen = backend("min")
        compiled = torch.compile(lambda x: torch.nn.functional.interpolate(
            x * weight, size=(64, 64), mode="bilinear", antialias=True).mean(), backend=chosen)

        def train(height):
            x = torch.randn(4, 16, height, 32)
            torch._dynamo.mark_dynamic(x, 2, min=8, max=64)
            weight.grad = None
            compiled(x).backward()

        _, told = harness.told_by(lambda: [train(64), train(64)])
        self.assertEqual((told, chosen.report.kept), ([], True))
        _, told = harness.told_by(lambda: [train(60), train(60)])
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0], "promised a peak of .*, measured .*_upsample_bilinear2d_aa ")
        self.assertEqual((len(chosen.report.graphs), chosen.report.kept), (1, False))

    def test_sizes_that_the_data_decide_are_told(self):
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
            for bounded in (False, True):
                def loss(x, times):
                    rows = x.repeat_interleave(times, 0)
                    if bounded:
                        torch._check(rows.shape[0] <= 100)
                    return (self.model(rows) ** 2).sum()

                torch._dynamo.reset()
                self.model.zero_grad()
                chosen = backend("min")
                compiled = torch.compile(loss, backend=chosen)
                _, told = harness.told_by(lambda: compiled(torch.randn(4, 16), torch.full((4,), 3)).backward())
                (graph,) = chosen.report.graphs
                self.assertEqual((len(told), chosen.report.kept), (0, True) if bounded else (1, None), told)
                self.assertEqual(bool(graph.sized_by_data), not bounded)
                if not bounded:
                    self.assertRegex(told[0], "may exceed the plan .*repeat_interleave.* plan is for 4096")

    def test_a_tensor_that_grows_as_a_size_from_data_falls(self):
        def loss(x, rows):
            rows = rows.item()
            torch._check(rows >= 0)
            torch._check(rows <= 40)
            return (self.model(x) * torch.ones(40 - rows, 16).exp().sum(0)).square().mean()

        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            chosen = backend("min")
            compiled = torch.compile(loss, backend=chosen)
            _, told = harness.told_by(lambda: compiled(torch.randn(40, 16), torch.tensor(40)).backward())
        self.assertRegex(told[0], "may exceed the plan .*or it grows as another size falls")
        self.assertIsNone(chosen.report.kept)

    def test_a_branch_that_was_not_measured(self):
        def loss(x):
            return torch.cond(x[0, 0] > 0, torch.sin, lambda a: (a[:, None] * a[None]).exp().mean(0), (self.model(x),)).sum()

        chosen = backend("min")
        compiled = torch.compile(loss, backend=chosen)
        with harness.cairn_warnings("ignore"):
            compiled(torch.full((16, 16), 0.5)).backward()
        self.assertIsNot(chosen.report.kept, True)
        self.assertIn("data decide which code cond", str(chosen.report))

    def measured_at(self, larger, last):
        """Runs the steps 1 to ``last`` of a model that takes more memory in the steps ``larger``. Returns the number of
        the first step at whose end the report contains this memory, and what Cairn has told."""
        def loss(x):
            y = torch.nn.functional.gelu(self.model(x))
            return torch.cond(x[0, 0] > 0, torch.sin, lambda a: (a[:, None] * a[None]).exp().mean(0), (y,)).sum()

        chosen, found = backend("100%"), None
        compiled = torch.compile(loss, backend=chosen)
        with harness.told() as told:
            for number in range(1, last + 1):
                compiled(torch.full((64, 16), -0.5 if number in larger else 0.5)).backward()
                self.model.zero_grad()
                if found is None and chosen.report.measured > 64 * 64 * 16 * 4:
                    found = number
        self.assertIs(chosen.report.kept, False)  # the branches of cond could not be measured in advance
        return found, told

    def test_later_steps_are_measured_again(self):
        """Tests that the 10th step, the 100th step, and so on are measured again."""
        number, told = self.measured_at((9, 10), 10)
        self.assertEqual(number, 10)
        self.assertRegex(told[-1], "promised a peak of .*, measured ")

    def test_a_step_is_measured_again_if_the_allocator_saw_more_bytes(self):
        """Tests with a stand-in for CUDA's allocator, whose largest number of bytes rises in one or several passes. A step
        asks the allocator before and after each of its two passes; a measured step, such as the first, does not ask."""
        every = range(3, 9)
        for calls_that_rise, larger, expected in (
                ({6}, every, 4), ({8}, every, 4), ({10}, every, 5), ((), every, None),
                # The step after the first alarm, step 4, is measured but small; the step after the second alarm is large.
                ({6, 10}, (3, 5, 6), 6)):
            calls, rises = [], []

            def requested(device):
                calls.append(device)
                rises.extend(calls_that_rise & {len(calls)} if calls_that_rise else ())
                return 1000, 1000 + 10**9 * len(rises)

            torch._dynamo.reset()
            with self.subTest(calls_that_rise=calls_that_rise), unittest.mock.patch(
                    "cairn.torch._private.requested_bytes", requested):
                self.assertEqual(self.measured_at(larger, 8)[0], expected)

    def test_a_size_that_is_a_remainder(self):
        """Tests a size that is a remainder. x.shape[0] % 16 is not largest for the largest input, so a plan for one
        number of rows need not be valid for fewer rows, and torch compiles many variants. After 8 variants, torch
        compiles no more, and the report no longer says that the promise is kept."""
        def loss(x):
            return (self.model(x) + torch.ones(x.shape[0] % 16, 16).exp().sum(0)).square().mean()

        chosen = backend("min")
        compiled = torch.compile(loss, backend=chosen, dynamic=True)
        with harness.cairn_warnings("ignore"):
            for rows in (40, 40, 31, 24):
                compiled(torch.randn(rows, 16)).backward()
            # 31 % 16 is the largest remainder, so the plan for 31 rows is valid for all smaller numbers of rows.
            self.assertEqual(len(chosen.report.graphs), 2)
            self.assertTrue(chosen.report.kept)
            for rows in range(50, 60):
                compiled(torch.randn(rows, 16)).backward()
        self.assertIsNone(chosen.report.kept)

    def test_numbers_that_come_of_a_marked_size_by_division(self):
        """Tests a variance of a tensor whose size is marked dynamic. The variance divides by the size minus one, which
        must not make the size a constant."""
        model = torch.nn.Linear(32, 64)
        chosen = backend("min")
        compiled = torch.compile(lambda x: model(x).std(0).sum(), backend=chosen)
        for rows in (64, 3, 17):
            x = torch.randn(rows, 32)
            torch._dynamo.mark_dynamic(x, 0, min=2, max=64)
            model.zero_grad()
            compiled(x).backward()
            found = [p.grad.clone() for p in model.parameters()]
            model.zero_grad()
            model(x).std(0).sum().backward()
            self.assertTrue(all(torch.allclose(p.grad, f) for p, f in zip(model.parameters(), found)))
        self.assertEqual(len(chosen.report.graphs), 1)

    def test_zeros_that_are_nowhere(self):
        """Tests a forward-mode derivative, which saves tensors of zeros that have no memory. The step must run under a
        budget nevertheless."""
        weight = torch.nn.Parameter(torch.randn(64, 64) * 0.1)

        def function(x):
            return sum(torch.func.jvp(lambda a: (a @ weight).tanh().exp(), (x,), (torch.ones_like(x),))).sum()

        torch.compile(function, backend=backend("100%", fallback=False))(torch.randn(64, 64, requires_grad=True)).backward()


class Errors(harness.Fresh):
    def test_errors_within_a_compiled_call_can_be_pickled(self):
        for wrong, kind in ((dict(mode="max-autotune"), cairn.InputError), (dict(options={"budget": "1"}), cairn.InputError)):
            with self.assertRaises(kind) as raised:
                torch.compile(two_layers(), backend=backend(), **wrong)(torch.randn(8, 64))
            again = pickle.loads(pickle.dumps(raised.exception))
            self.assertEqual((type(again), str(again)), (kind, str(raised.exception)))


class Limits(harness.Fresh):
    """Tests that a CairnWarning is given when torch.compile reaches its limit of recompilations."""

    def told_of(self, chosen):
        weight = torch.randn(4, requires_grad=True)
        compiled = torch.compile(lambda x: (x * weight).sum(), backend=chosen, dynamic=False)
        with torch._dynamo.config.patch(recompile_limit=2), self.assertLogs("torch._dynamo.convert_frame", "WARNING"):
            return harness.told_by(lambda: [compiled(torch.randn(size, 4)) for size in (1, 2, 3, 4, 5)])[1]

    def test_it_is_told_once(self):
        told = self.told_of(backend())
        self.assertEqual(len(told), 1, told)
        self.assertRegex(told[0], "<lambda>.* runs without a budget .*recompile_limit = 4 allows more")

    def test_a_copied_backend_is_told(self):
        for copied in (copy.deepcopy(backend()), pickle.loads(pickle.dumps(backend()))):
            torch._dynamo.reset()
            self.assertRegex(self.told_of(copied)[0], "runs without a budget .*recompile_limit = 4 allows more")
            self.assertIsNone(cairn.torch.last_report().kept)

    def test_functions_without_a_graph(self):
        """Tests a decorator whose code has no graph of its own, and is shared by blocks that break the graph. When torch
        stops compiling the decorator, it compiles the blocks that it wraps no longer."""
        def decorated(function):
            def wrapped(*args):
                name = args[0].name  # a different name needs a new variant
                return function(*args) if name else None
            return wrapped

        class Block(torch.nn.Module):
            def __init__(self, name):
                super().__init__()
                self.name, self.linear = name, torch.nn.Linear(8, 8)

            @decorated
            def forward(self, x):
                if x.sum() > 1e9:
                    x = x + 1
                return x + self.linear(x).tanh()

        for chosen, options in ((backend("min"), None), ("cairn", {"budget": "min"})):
            torch._dynamo.reset()
            model = torch.nn.Sequential(*[Block(f"{i}") for i in range(5)])
            compiled = torch.compile(lambda x: model(x).sum(), backend=chosen, options=options)
            with torch._dynamo.config.patch(recompile_limit=2), harness.told() as told:
                compiled(torch.randn(4, 8)).backward()
            self.assertTrue(any("wrapped" in text and "runs without a budget" in text for text in told), told)
            self.assertIsNone(cairn.torch.last_report().kept)

    def test_those_of_others_are_not_told(self):
        chosen = backend()
        torch.compile(lambda x: x * 2, backend=chosen)(torch.randn(3))
        self.assertEqual(self.told_of("eager"), [])
        torch._dynamo.reset()  # after a reset, functions are numbered from the beginning
        self.assertEqual(self.told_of("eager"), [])


class Terminal(unittest.TestCase):
    """Tests what a program prints on stderr."""

    SETUP = """
import torch, cairn.torch
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters())
x = torch.randn(8, 64)
"""

    def test_errors_are_short(self):
        for lines, error in (
                ("torch.compile(model, backend=cairn.torch.backend(1000, work_limit=1000))(x)", "InfeasibleError: graph 0"),
                ("torch.compile(model, backend=cairn.torch.backend(), mode='max-autotune')(x)", "InputError: mode:"),
                ("cairn.torch.step(lambda x: model(x).sum().backward(), 1000, work_limit=1000)(x)", "InfeasibleError: graph")):
            with self.subTest(lines):
                _, told = run(self.SETUP + lines)
                told = [line for line in told if line.strip(" ^~")]
                self.assertLess(len(told), 15, "\n".join(told))
                self.assertIn(error, told[-1])
        _, told = run(self.SETUP + lines, TORCHDYNAMO_VERBOSE="1")
        self.assertGreater(len(told), 30)

    def test_nothing_of_our_own_measuring(self):
        """Tests that Cairn's measuring prints nothing when memory that was allocated before the measurement is freed
        during it."""
        program = self.SETUP + """
def train(x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()

train = cairn.torch.step(train, "100%", work_limit=1000)
for _ in range(3):
    train(torch.randn(8, 64))
print(train.report.whole_step is not None)
"""
        self.assertEqual(run(program), ("True\n", []))
