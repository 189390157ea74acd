"""Tests that gradients of results take no memory if the caller does not give them. An example is the gradient of logits
that a model returns beside its loss."""

import unittest
import warnings

import cairn
import cairn.torch
import harness
import torch
from cairn.torch._rewrite import tangents

WORK = 20_000


def backend(budget="min", **options):
    return cairn.torch.backend(budget, **{"fallback": False, "work_limit": WORK, **options})


class Causal(torch.nn.Module):
    """A model that returns its loss and its logits, as transformers' language models do."""

    def __init__(self, vocabulary=2000, width=32):
        super().__init__()
        self.tokens = torch.nn.Embedding(vocabulary, width)
        self.blocks = torch.nn.ModuleList(harness.Block(width, 4, 0.0) for _ in range(2))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        shifted = torch.nn.functional.pad(tokens, (0, 1), value=-100)[:, 1:]
        return {"loss": torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), shifted.flatten()), "logits": logits}


class Pair(torch.nn.Module):
    """A model that returns features, and a number that does not depend on the features, such as the scale of CLIP
    models."""

    def __init__(self):
        super().__init__()
        self.lin, self.scale = torch.nn.Linear(64, 64), torch.nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.lin(x).tanh(), self.scale.exp()


def gradients(model, inputs, backend, body, **options):
    """Compiles the model with ``backend``, and calls ``body`` with the model's results. Returns (gradients, texts of
    CairnWarnings)."""
    torch._dynamo.reset()
    model.zero_grad()
    with harness.told() as told:
        compiled = torch.compile(model, backend=backend, **options)
        body(compiled(*inputs))
    return [None if p.grad is None else p.grad.clone() for p in model.parameters()], told


class Given(unittest.TestCase):
    """Tests gradients of results that the caller passes to backward()."""

    def test_what_the_caller_holds_of_those_that_are_copied_or_parts_counts(self):
        model, x = torch.nn.Sequential(torch.nn.Conv2d(8, 8, 1), torch.nn.Tanh()), torch.randn(8, 8, 32, 32)
        ways = {"laid out as the result": lambda: torch.ones(8, 8, 32, 32),
                "in another way": lambda: torch.ones(8, 32, 32, 8).permute(0, 3, 1, 2),
                "a part": lambda: torch.ones(32, 8, 32, 32)[8:16],
                "a part with gaps": lambda: torch.ones(8, 32, 32, 32)[:, :8]}
        for first, then in (("in another way",) * 2, ("a part",) * 2, ("laid out as the result", "in another way"),
                            ("laid out as the result", "a part"), ("laid out as the result", "a part with gaps")):
            with self.subTest(first=first, then=then):
                torch._dynamo.reset()
                chosen = backend("100%")
                compiled = torch.compile(model, backend=chosen)
                with harness.told() as told:
                    for way in (first, then):
                        model.zero_grad()
                        compiled(x).backward(ways[way]())
                    model.zero_grad()
                    with cairn.torch.MemoryTrace() as trace:
                        result = compiled(x)  # the result is held to the end of the step, as the promised peak assumes
                        result.backward(ways[then]())
                del result
                really = trace.at_peak({p.grad.untyped_storage().data_ptr() for p in model.parameters()})[0]
                self.assertRegex(told[0], "gradients of results are laid out in another way")
                self.assertGreaterEqual(chosen.report.promised, really)
                # The promised peak counts a copied gradient until the pass ends, but autograd frees it after its last
                # use.
                copied = 0 if then == "a part" else x.nbytes
                self.assertLessEqual(chosen.report.promised, 1.01 * really + copied)
                self.assertTrue(chosen.report.kept)

    def test_a_missing_gradient_at_the_peak(self):
        self.enterContext(harness.new_cache())
        for dtype in (torch.float32, torch.float64):
            weight, x, mask = torch.randn(1000, dtype=dtype, requires_grad=True), *torch.rand(2, 1000, dtype=dtype)

            def masked(x, mask):
                y = x * weight
                return (y * mask).sum(), y

            torch._dynamo.reset()
            chosen = backend("100%")
            torch.compile(masked, backend=chosen)(x, mask)[0].backward()
            self.assertEqual((chosen.report.promised, chosen.report.kept), (chosen.report.measured, True))

    def test_many_at_once_of_what_lies_beside_a_loss(self):
        weight, x = torch.randn(16, 16, requires_grad=True), torch.randn(8, 16)

        def pair(x):
            logits = (x @ weight).tanh()
            return logits.square().sum(), logits

        found = []
        with torch._functorch.config.patch(donated_buffer=False):
            for chosen in harness.afresh(("aot_eager", backend("min", measure=False))):
                _, logits = torch.compile(pair, backend=chosen)(x)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found += torch.autograd.grad(logits, weight, torch.ones(3, 8, 16), is_grads_batched=True)
        self.assertTrue(torch.equal(*found))


class Logits(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.model, self.tokens = Causal(), torch.randint(0, 2000, (2, 32))
        self.size = 2 * 32 * 2000 * 4

    def check(self, body, model=None, inputs=None, told=(), budget="min", compile_options=None, **options):
        """Checks that the gradients have the same bits as without a schedule, where autograd fills in zeros for missing
        gradients, and that the warnings match the patterns ``told``. Returns the report."""
        model, inputs = model or self.model, inputs or (self.tokens,)
        expected, _ = gradients(model, inputs, harness.unscheduled(), body, **(compile_options or {}))
        found, said = gradients(model, inputs, backend(budget, **options), body, **(compile_options or {}))
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(expected, found)))
        self.assertEqual(len(said), len(told), said)
        for text, pattern in zip(said, told):
            self.assertRegex(text, pattern)
        return cairn.torch.last_report()

    def test_a_loss_and_logits(self):
        report = self.check(lambda out: out["loss"].backward())
        self.assertTrue(report.kept)
        counted = self.check(lambda out: out["loss"].backward(), differentiated="all")
        self.assertTrue(counted.kept)
        self.assertGreaterEqual(counted.promised - report.promised, 0.9 * self.size)
        # At the peak, four tensors of this size are in memory: the logits, their softmax, and the gradients of both.
        self.assertLess(report.promised, 4.1 * self.size)

    def test_what_the_step_really_takes(self):
        compiled = torch.compile(self.model, backend=backend())
        compiled(self.tokens)["loss"].backward()
        self.model.zero_grad()
        with cairn.torch.MemoryTrace() as trace:
            out = compiled(self.tokens)
            out["loss"].backward()
        peak, _ = trace.at_peak({p.grad.untyped_storage().data_ptr() for p in self.model.parameters()})
        promised = cairn.torch.last_report().promised
        self.assertEqual(out["logits"].untyped_storage().nbytes(), self.size)
        self.assertLessEqual(peak, promised)
        self.assertGreaterEqual(peak, 0.97 * promised)

    def test_logits_that_are_differentiated_all_the_same(self):
        """Tests a caller that gives a gradient of the logits although none was expected. The gradients must be right,
        and a warning must report the additional memory."""
        def both(out):
            (out["loss"] + out["logits"].square().mean()).backward()

        report = self.check(both, told=("the caller gives gradients of results beside the loss, 500.00 KiB", "promised a peak of"))
        self.assertFalse(report.kept)
        # A run of an equal graph that kept the promise must not count as a measurement of this one.
        self.check(lambda out: out["loss"].backward())
        self.assertFalse(self.check(both, told=("the caller gives", "promised a peak of")).kept)
        self.assertTrue(self.check(both, differentiated="all").kept)

    def test_logits_alone_are_differentiated(self):
        self.check(lambda out: out["logits"].square().mean().backward(), told=("the caller gives", "promised a peak of"))

    def test_one_after_the_other(self):
        def body(out):
            out["loss"].backward(retain_graph=True)
            out["logits"].sum().backward()

        expected, _ = gradients(self.model, (self.tokens,), harness.unscheduled(), body)
        found, _ = gradients(self.model, (self.tokens,), backend(), body)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(expected, found)))

    def test_mixed_precision(self):
        model = harness.Amp(self.model)
        report = self.check(lambda out: out["loss"].backward(), model)
        counted = self.check(lambda out: out["loss"].backward(), model, differentiated="all")
        self.assertLess(report.graphs[0].baseline, counted.graphs[0].baseline)

    def test_any_size(self):
        report = self.check(lambda out: out["loss"].backward(), compile_options={"dynamic": True})
        self.assertTrue(report.kept)
        self.assertLess(report.promised, 4.2 * self.size)
        self.check(lambda out: out["logits"].sum().backward(), told=("the caller gives",),
                   compile_options={"dynamic": True})

    def test_results_that_no_loss_is_made_from_count(self):
        x = torch.randn(32, 64)
        report = self.check(lambda out: (out[0] * out[1]).sum().backward(), Pair(), (x,), budget="100%")
        self.assertTrue(report.kept)
        # Only one result is differentiated, so the gradient of the other result is zeros.
        self.check(lambda out: out[0].sum().backward(), Pair(), (x,), budget="100%")
        self.check(lambda out: out[1].backward(), Pair(), (x,), budget="100%")

    def test_several_results(self):
        class Several(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(4))

            def forward(self, x):
                hidden = self.lin[0](x).tanh()
                beside = self.lin[1](hidden)
                last = self.lin[2](hidden).view(16, 2, 64)
                return last.square().mean(), hidden, beside, last, self.lin[3](last).sum()

        inputs = (torch.randn(32, 64),)
        for body in (lambda out: out[0].backward(), lambda out: (out[0] + out[2].sum()).backward(), lambda out: out[4].backward(),
                     lambda out: (out[0] + out[1].sum() + out[3].cos().sum()).backward()):
            model = Several()
            expected, _ = gradients(model, inputs, harness.unscheduled(), body)
            found, _ = gradients(model, inputs, backend(), body)
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(expected, found)))

    def test_the_report_and_the_error_name_them(self):
        self.check(lambda out: out["loss"].backward(), differentiated="all")
        text = str(cairn.torch.last_report())
        self.assertRegex(text, r"gradient of a result +tangents_test.py:\d+, which the caller gives, else zeros")
        self.assertRegex(text, r"tangents_test.py:\d+, returned, and held by the caller")
        for options, expected in (({}, "The caller holds 500.00 KiB of results"),
                                  ({"differentiated": "all"}, "500.00 KiB of gradients of results, which the caller gives or "
                                   "autograd fills in with zeros, and 500.00 KiB of results are held .* return the loss alone")):
            torch._dynamo.reset()
            with self.assertRaisesRegex(cairn.torch.InfeasibleError, expected):
                torch.compile(self.model, backend=backend(1000, **options))(self.tokens)

    def test_a_graph_alone_has_none_either(self):
        graph = cairn.torch.graph(self.model, (self.tokens,))
        self.assertLess(graph.baseline.peak, 4.9 * self.size)

    def gradients(self, kind, x, dynamic=False):
        """Returns the gradients of a model, whose first result is the loss, under aot_eager and under Cairn."""
        found = []
        for chosen in harness.afresh(("aot_eager", backend("100%"))):
            torch.manual_seed(0)
            model = kind()
            torch.compile(model, backend=chosen, dynamic=dynamic)(x)[0].backward()
            found.append([p.grad for p in model.parameters()])
        return found

    def test_gradients_that_a_kernel_lays_out_otherwise(self):
        """Tests results in channels-last whose gradient from the loss is contiguous, although the tracer takes it for
        channels-last. The layout of the sum decides how later sums over it round."""
        class Gated(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Conv2d(8, 16, 3, padding=1).to(memory_format=torch.channels_last)
                self.scale = torch.nn.Parameter(torch.randn(16, 1, 1))

            def forward(self, x):
                h = torch.sin(self.layer(x) * self.scale)
                y = torch.nn.functional.glu(h, 1)
                return (y * torch.exp(y)).mean(), h

        x = torch.randn(4, 8, 33, 37).to(memory_format=torch.channels_last)
        for dynamic in (False, True):
            self.assertTrue(all(map(torch.equal, *self.gradients(Gated, x, dynamic))), dynamic)

    def test_zeros_are_laid_out_as_traced(self):
        """Tests zeros for a result that the caller does not differentiate, beside one whose gradient is expected to be
        missing. The kernel has laid out the result in another way than the tracer."""
        class Rolled(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Conv2d(8, 8, 3, padding=1).to(memory_format=torch.channels_last)
                self.scale = torch.nn.Parameter(torch.randn(8, 1, 1))

            def forward(self, x):
                h = torch.sin(self.layer(x) * self.scale)
                return (h * torch.exp(h)).mean(), h, h.roll(1, 1)

        x = torch.randn(4, 8, 33, 37).to(memory_format=torch.channels_last)
        self.assertTrue(all(map(torch.equal, *self.gradients(Rolled, x))))

    def test_zeros_are_added(self):
        """Tests that adding zeros for a missing gradient gives the same bits as when autograd adds them; adding zeros
        can change the sign of a zero."""
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            x = torch.tensor([-0.0, 0.0, -1.5, float("inf"), 1e-40], dtype=dtype)
            whole = torch.zeros_like(x) + x
            self.assertTrue(torch.equal(torch.signbit(tangents.plus_given(x, None)), torch.signbit(whole)))
            self.assertTrue(torch.equal(tangents.plus_given(x, None), whole))
            self.assertEqual(tangents.plus_given(x, None).dtype, dtype)

    def test_wrong_words(self):
        with self.assertRaisesRegex(cairn.InputError, "differentiated"):
            cairn.torch.backend("min", differentiated="some")
