"""Tests that random operations that run again draw the same numbers, leave the generator in the right state, and need
less memory."""

import functools
import unittest
import unittest.mock

import cairn
import cairn.torch
import harness
import torch
from cairn.torch._graph import read
from cairn.torch._plan import partition
from cairn.torch._rewrite import dropout

WORK = 1_000_000
RANDOM = ("dropout_mask", "mask_like", "aten.native_dropout.default", "aten.rand", "aten.bernoulli")
backend = functools.partial(cairn.torch.backend, fallback=False, work_limit=WORK, random="replay")


class Masks(harness.Layers):
    """A model in which the masks of dropouts take most of the memory that is kept for the backward pass."""

    def forward(self, x):
        for layer in self.layers:
            x = torch.nn.functional.dropout(torch.nn.functional.dropout(torch.tanh(layer(x)), 0.1), 0.2)
        return x.square().mean()


class Noise(harness.Layers):
    """A model with several kinds of noise, which its backward pass reads again."""

    def __init__(self, layers=4):
        super().__init__(layers)
        self.scale = torch.nn.Parameter(torch.tensor(0.1))
        self.drop = torch.nn.Dropout(0.2)
        self.other = torch.nn.AlphaDropout(0.1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x)) * (1 + self.scale * torch.rand_like(x))
            x = self.drop(x) + self.scale * torch.randn_like(x) * torch.bernoulli(torch.full_like(x, 0.5))
            x = self.other(x) + torch.rand(x.shape[-1]) * self.scale
        return x.square().mean()


class NoisyGradient(torch.autograd.Function):
    """A function that draws random numbers in the forward and in the backward pass."""

    @staticmethod
    def forward(ctx, x):
        noise = torch.rand_like(x)
        ctx.save_for_backward(noise)
        return x * noise

    @staticmethod
    def backward(ctx, gradient):
        (noise,) = ctx.saved_tensors
        return gradient * noise * torch.rand_like(gradient)


class DrawsInBackward(harness.Layers):
    def forward(self, x):
        for layer in self.layers:
            x = torch.nn.functional.dropout(NoisyGradient.apply(torch.tanh(layer(x))), 0.1)
        return x.square().mean()


class Early(torch.nn.Module):
    """A model that draws numbers long before it reads them. Under a budget, the schedule therefore discards the numbers
    of the first run, and draws them again right before they are read."""

    def __init__(self, width=64):
        super().__init__()
        self.wide, self.narrow = torch.nn.Linear(width, 8 * width), torch.nn.Linear(8 * width, width)

    def forward(self, x):
        noise, ones = torch.rand_like(x), torch.nn.functional.dropout(torch.ones_like(x), 0.3)
        x = self.narrow(torch.nn.functional.dropout(torch.tanh(self.wide(x)), 0.1))
        return (x * noise * ones).square().mean()


class Attention(torch.nn.Module):
    def __init__(self, width=32, heads=4, layers=2):
        super().__init__()
        self.heads = heads
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, 3 * width) for _ in range(layers))

    def forward(self, x):
        batch, length, width = x.shape
        for layer in self.layers:
            q, k, v = layer(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
            mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.2)
            x = x + mixed.transpose(1, 2).reshape(batch, length, width)
        return x.square().mean()


class Replayed(harness.Fresh):
    """Tests that every budget is kept and that no result changes, although masks and noise are drawn again."""

    def check(self, model, inputs, budgets=("70%", "min"), replays=True, **options):
        """Trains under each budget, and compares the steps with a step without a schedule. ``replays``: whether random
        operations must run again under the last budget, because that saves so much memory that every search finds
        it."""
        reference = harness.train(model, inputs, harness.unscheduled(), **options)
        state = torch.get_rng_state()
        for budget in budgets:
            with self.subTest(budget=budget):
                with harness.cairn_warnings("error"):
                    step = harness.train(model, inputs, backend(budget), **options)
                self.assertTrue(torch.equal(torch.get_rng_state(), state))
                self.assertEqual(harness.same(reference, step), "")
                (graph,) = cairn.torch.last_report().graphs
                self.assertLessEqual(graph.measured, graph.promised)
                self.assertLessEqual(step.peak, graph.promised)
        again = [item.operation for item in graph.recomputed]
        self.assertTrue(not replays or any(name.startswith(RANDOM) for name in again), again)

    def test_transformer_with_dropout(self):
        self.check(*harness.gpt(batch=8, length=64), replays=False)

    def test_sizes_that_are_symbolic(self):
        """Tests dropouts with symbolic sizes. Their masks cannot be drawn without the input of the dropout, which
        must be there when a mask is drawn again."""
        self.check(Masks(6), (torch.randn(512, 64),), dynamic=True)

    def test_noise_and_several_kinds_of_dropout(self):
        self.check(Noise(), (torch.randn(300, 64),))

    def test_attention(self):
        self.check(Attention(), (torch.randn(4, 48, 32),), replays=False)

    def test_before_every_use(self):
        """Tests a schedule in which every value that is drawn without inputs is drawn again before each operation that
        reads it. The test puts this schedule in place of the one that the search has found."""
        schedule = partition.schedule
        inserted = []

        def with_replays(prepared, *rest):
            solved, report = schedule(prepared, *rest)
            trace = prepared.trace
            steps = []
            for step in solved.steps:
                for storage in trace.operations[step].reads:
                    draws = storage.producer
                    if draws.state is not None and not draws.pinned and len(draws.reads) == 1:
                        steps.append(draws.index)
                        inserted.append(draws)
                steps.append(step)
            solved.steps = steps
            return solved, report

        for model, inputs in (harness.gpt(batch=8, length=64), (Noise(), (torch.randn(300, 64),)),
                              (Attention(), (torch.randn(4, 48, 32),)), (DrawsInBackward(4), (torch.randn(400, 64),))):
            with self.subTest(model=type(model).__name__):
                reference = harness.train(model, inputs, harness.unscheduled())
                state = torch.get_rng_state()
                inserted.clear()
                with unittest.mock.patch.object(partition, "schedule", with_replays):
                    step = harness.train(model, inputs, backend("min", measure=False))
                self.assertGreaterEqual(len(inserted), 4)
                self.assertTrue(torch.equal(torch.get_rng_state(), state))
                self.assertEqual(harness.same(reference, step), "")

    def test_read_long_after(self):
        self.check(Early(), (torch.randn(400, 64),), ("90%", "min"))

    def test_drawn_in_the_backward_pass(self):
        self.check(DrawsInBackward(4), (torch.randn(400, 64),))

    def test_under_autocast(self):
        self.check(harness.Amp(Masks(12)), (torch.randn(512, 64),))

    def test_without_gradients(self):
        model, x = Masks(12), torch.randn(200, 64)
        with torch.no_grad():
            torch.manual_seed(5)
            expected, state = model(x), torch.get_rng_state()
            torch.manual_seed(5)
            found = torch.compile(model, backend=backend("min"))(x)
        self.assertTrue(torch.equal(expected, found))
        self.assertTrue(torch.equal(torch.get_rng_state(), state))

    def test_others_draw_between_the_passes(self):
        """Tests that gradients and later random numbers are the same as without a schedule if other code draws random
        numbers between the forward and the backward pass and in the losses. There are several steps, and no seed is set
        between them."""
        found = []

        def three(compiled, inputs):
            torch.manual_seed(1)
            for _ in range(3):
                out = compiled(*inputs)
                (out * torch.rand(())).backward()
                found.append(torch.rand(4))

        def twice_forward(compiled, inputs):
            torch.manual_seed(2)
            first, second = compiled(*inputs), compiled(*inputs)
            first.backward()
            second.backward()
            found.append(torch.rand(4))

        for model, inputs in ((Noise(layers=2), (torch.randn(200, 64),)), harness.gpt()):
            for body in (three, twice_forward):
                with self.subTest(model=type(model).__name__, body=body.__name__), harness.cairn_warnings("ignore"):
                    # warnings are ignored, because one about accumulated gradients is expected
                    gradients, drawn = [], []
                    for chosen in (harness.unscheduled(), backend("60%")):
                        found.clear()
                        gradients.append(harness.gradients_after(model, inputs, chosen, body))
                        drawn.append(list(found))
                    self.assertTrue(all(torch.equal(a, b) for a, b in zip(*drawn)))
                    self.assertTrue(all(torch.equal(a, b) for a, b in zip(*gradients)))

    def test_a_whole_step(self):
        def trained(**options):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model = Masks(6)
            optimizer = torch.optim.Adam(model.parameters())
            x = torch.randn(256, 64)

            def train_step(x):
                optimizer.zero_grad()
                loss = model(torch.nn.functional.dropout(x, 0.1))
                loss.backward()
                optimizer.step()
                return loss.detach()

            run = cairn.torch.step(train_step, "min", fallback=False, work_limit=WORK, **options) if options else train_step
            return [run(x) for _ in range(3)] + list(model.state_dict().values()) + [torch.get_rng_state()]

        expected, found = trained(), trained(random="replay")
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(expected, found)))
        self.assertIn("dropout_mask", [item.operation for item in cairn.torch.last_report().graphs[0].recomputed])

    def test_gradients_of_several_losses_at_once(self):
        """Tests a backward pass under autograd's own vmap, which refuses random operations. What is drawn again has no
        batch."""
        found = []
        for chosen in harness.afresh(("aot_eager", backend("min"))):
            torch.manual_seed(0)
            model = Masks(3)
            values = torch.compile(lambda x: torch.stack([model(x), 2 * model(x)]), backend=chosen)(torch.randn(64, 64))
            with harness.cairn_warnings("ignore"):
                found.append(torch.autograd.grad(values, list(model.parameters()), torch.eye(2), is_grads_batched=True))
        self.assertTrue(all(map(torch.equal, *found)))

    def test_less_than_with_masks_that_are_kept(self):
        model, inputs = Masks(12), (torch.randn(512, 64),)
        promised = {}
        for random in ("keep", "replay"):
            harness.train(model, inputs, backend("min", random=random))
            graph = cairn.torch.last_report().graphs[0]
            self.assertLessEqual(graph.measured, graph.promised)
            promised[random] = graph.promised
        print(f"the least for {2 * 12} masks of {512 * 64} bytes: {promised}")
        self.assertLess(promised["replay"], 0.9 * promised["keep"])


class Parts(unittest.TestCase):
    """Tests the two parts of a split dropout: a mask that is drawn without the input, and the output."""

    def test_agree_with_the_whole(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            for p in (0.1, 0.5, 1.0):
                for x in (torch.randn(33, 7), torch.randn(7, 33).t(), torch.randn(3, 1, 4, 1).permute(2, 3, 0, 1),
                          torch.randn(2, 8, 5, 6).to(memory_format=torch.channels_last)):
                    with self.subTest(dtype=dtype, p=p, strides=x.stride()):
                        x = x.to(dtype)
                        self.assertTrue(dropout._agrees(x, p, list(x.stride())))
                        torch.manual_seed(3)
                        out, mask = torch.ops.aten.native_dropout.default(x, p, True)
                        after = torch.rand(5)
                        torch.manual_seed(3)
                        alone = dropout.dropout_mask(x.shape, x.stride(), p)
                        self.assertTrue(torch.equal(torch.rand(5), after))
                        self.assertTrue(torch.equal(alone, mask))
                        self.assertEqual(alone.stride(), mask.stride())
                        scaled = dropout.masked_scale(x, alone, dropout._scale(p))
                        self.assertTrue(torch.equal(scaled, out))
                        self.assertEqual(scaled.stride(), out.stride())


class Once(unittest.TestCase):
    """Tests that operations that cannot or need not be replayed run only once."""

    def state_of(self, target, *args, numbers=4096, **kwargs):
        """Makes a graph with one random operation, ``target``. Returns the Operation that saves the generator's state
        for it, or None if the random operation must run once."""
        graph = torch.fx.Graph()
        with torch._subclasses.FakeTensorMode():
            x = graph.placeholder("x")
            x.meta["val"] = torch.empty(numbers)
            node = graph.call_function(target, (x, *args), kwargs)
            node.meta["val"] = torch.empty(numbers)
            graph.output((node,))
        return read.trace_graph(graph, replay=True).operation_of[node].state

    def test_functions_of_the_generator_may_run_again(self):
        self.assertIsNotNone(self.state_of(torch.ops.aten.rand_like.default))
        self.assertIsNotNone(self.state_of(torch.ops.aten.bernoulli.default))

    def test_generators_of_the_caller(self):
        given = torch.Generator()
        self.assertIsNone(self.state_of(torch.ops.aten.bernoulli.default, generator=given))
        self.assertIsNone(self.state_of(torch.ops.aten.normal_functional.default, generator=given))

    def test_drawn_in_place(self):
        self.assertIsNone(self.state_of(torch.ops.aten.bernoulli_.float, 0.5))
        self.assertIsNone(self.state_of(torch.ops.aten.normal_.default))

    def test_less_than_a_state(self):
        self.assertIsNone(self.state_of(torch.ops.aten.rand_like.default, numbers=1000))

    def test_wrong_words(self):
        with self.assertRaisesRegex(cairn.InputError, "^random: 'keep' or 'replay', not 'once'$"):
            cairn.torch.backend("60%", random="once")
