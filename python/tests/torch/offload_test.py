"""Tests values that move to the host and come back. Results must equal those of a step without a schedule, device
and host must hold no more than promised, and defects that the tests plant into the copies must be noticed."""

import functools
import unittest
import unittest.mock

import cairn
import cairn.torch
import harness
import torch
from cairn.torch import _cache, _private
from cairn.torch._offload import copies, link
from cairn.torch._offload.places import Places

WORK = 20_000
LINK = "25GB/s,1us"
backend = functools.partial(cairn.torch.backend, fallback=False, work_limit=WORK)


def transformer():
    return harness.gpt(layers=2, width=32, dropout=0.0)


def late(seed):
    """Returns a function that decides at random whether a copy runs late, i.e. only in end(), when its result is
    needed."""
    generator = torch.Generator().manual_seed(seed)
    return lambda: bool(torch.randint(2, (), generator=generator))


class Trials(harness.Fresh):
    def setUp(self):
        super().setUp()
        self.addCleanup(lambda before: vars(copies.trial).update(before), dict(vars(copies.trial)))

    def replace(self, name, function):
        patch = unittest.mock.patch.object(copies, name, function)
        patch.start()
        self.addCleanup(patch.stop)


class Steps(Trials):
    """Tests that steps with and without transfers have the same results, and stay within the promised peak."""

    def check(self, model, inputs, budgets):
        reference = harness.train(model, inputs, harness.unscheduled())
        for budget in budgets:
            costs = {}
            for offload in (None, LINK):
                with self.subTest(budget=budget, offload=offload), harness.cairn_warnings("error"):
                    step = harness.train(model, inputs, backend(budget, offload=offload))
                    (graph,) = cairn.torch.last_report().graphs
                    self.assertEqual(harness.same(reference, step), "")
                    self.assertEqual((graph.kept, graph.met), (True, True))
                    self.assertLessEqual(graph.measured, graph.promised)
                    self.assertLessEqual(step.peak, graph.promised)
                    self.assertGreaterEqual(step.peak, 0.97 * graph.promised)
                    self.assertEqual(max(graph.promised_forward, graph.promised_backward), graph.promised)
                    self.assertEqual(bool(graph.offloaded), graph.host_peak > 0)
                    costs[offload] = graph.cost_increase
                    print(f"{type(model).__name__} {budget} offload={offload}: {reference.peak} -> {step.peak} bytes, promised "
                          f"{graph.promised}, {len(graph.offloaded)} values, host {graph.host_peak}, cost "
                          f"{100 * graph.cost_increase:+.2f}%, {len(graph.recomputed)} recomputed")
            self.assertTrue(graph.offloaded, "nothing moved, so that the test shows nothing")
            self.assertIn("offloaded", str(graph))
            self.assertLessEqual(costs[LINK], costs[None] + 0.02)

    def test_transformer(self):
        self.check(*transformer(), ["70%", "50%"])

    def test_convolutions(self):
        self.check(*harness.cnn(layers=4, channels=8, image=16), ["80%", "65%"])

    def test_a_checkpoint_around(self):
        """Tests a checkpoint around the compiled model: each of several steps stays within the promise. The copies of
        the forward pass that the backward pass repeats have other addresses than those of the first one."""
        model, inputs = transformer()
        reference = harness.train(model, inputs, harness.unscheduled())
        torch._dynamo.reset()
        compiled = torch.compile(model, backend=backend("50%", offload=LINK))

        def step():
            model.zero_grad()
            torch.utils.checkpoint.checkpoint(
                compiled, *inputs, use_reentrant=False, preserve_rng_state=False).backward()

        step()  # compiles
        step()  # is measured by Cairn
        graph = cairn.torch.last_report().graphs[0]
        for _ in range(8):
            with cairn.torch.MemoryTrace("cpu") as trace:
                step()
            gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
            for name, gradient in gradients.items():
                self.assertTrue(torch.equal(gradient, reference.gradients[name]), name)
            peak, operation = trace.at_peak({g.untyped_storage().data_ptr() for g in gradients.values()})
            self.assertLessEqual(peak, graph.promised, operation)
        self.assertTrue(graph.offloaded)
        self.assertEqual((graph.kept, graph.unknown), (True, []))

    def test_copies_on_the_host_are_aligned(self):
        for size in (0, 1, 63, 64, 1000):
            memory = copies.uncounted_memory(size)
            self.assertEqual((memory.untyped_storage().nbytes(), memory.data_ptr() % _private.ALIGNMENT), (size, 0))
        with cairn.torch.MemoryTrace("cpu") as trace:
            restored = copies.empty_on_host((3, 4), (5, 1), 16, dtype=torch.float32)
        self.assertEqual((restored.shape, restored.stride(), _private.alignment_of(restored)), ((3, 4), (5, 1), 16))
        self.assertEqual(trace.at_peak(())[0], 0)

    def test_zero_tensors_without_memory(self):
        """Tests zero tensors, which forward-mode differentiation makes: they have a size, but no memory. They must stay
        on the device, because a copy of one would crash, and the promise must be kept."""
        class Tangents(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.randn(64, 64) / 8)

            def forward(self, x):
                hidden = (x @ self.weight).tanh()
                output = torch.func.jvp(lambda a: a.tanh() @ self.weight, (hidden,), (hidden,))[1]
                return (output.square() + (hidden * self.weight[0]).tanh() + hidden.fmod(0.7)).mean()

        torch.manual_seed(0)
        model, inputs = Tangents(), (torch.randn(48, 64),)
        reference = harness.train(model, inputs, harness.unscheduled())
        for offload in (None, LINK):
            with self.subTest(offload=offload), harness.cairn_warnings("error"):
                step = harness.train(model, inputs, backend("min", offload=offload))
                (graph,) = cairn.torch.last_report().graphs
                self.assertEqual(harness.same(reference, step), "")
                self.assertEqual((graph.kept, graph.estimated), (True, []))
                self.assertEqual(bool(graph.offloaded), offload is not None)
                self.assertFalse(any("zerotensor" in item.name for item in graph.offloaded), graph.offloaded)
        zeros = torch._efficientzerotensor((4, 4))
        host = copies.evicted(copies.evict(zeros), zeros)
        back = copies.fetched(copies.fetch(host, "cpu"), host, True)
        self.assertTrue(host._is_zerotensor() and back._is_zerotensor())

    def test_copies_as_late_as_allowed_and_poison(self):
        for model, inputs in (transformer(), harness.cnn(layers=4, channels=8, image=16)):
            reference = harness.train(model, inputs, harness.unscheduled())
            for trial in (copies.Trial(late=lambda: True, poison=True), copies.Trial(poison=True),
                          copies.Trial(late=late(1), poison=True), copies.Trial(late=late(2), poison=True)):
                vars(copies.trial).update(vars(trial))
                chosen = backend("65%", offload=LINK, measure=False)
                self.assertEqual(harness.same(reference, harness.train(model, inputs, chosen)), "")
                self.assertTrue(chosen.report.graphs[0].offloaded)

    def test_what_has_left_is_freed_and_the_host_holds_what_is_planned(self):
        left, hosts, seen = {}, [], []
        evict, evicted, fetch = copies.evict, copies.evicted, copies.fetch

        def on_host():
            return sum(size for reference, size in hosts if not reference.expired())

        def noted_evict(value):
            host = evict(value)
            hosts.append((_private.weak_storage(host.untyped_storage()), value.untyped_storage().nbytes()))
            seen.append(on_host())
            return host

        def noted_evicted(host, value):
            left[host.data_ptr()] = _private.weak_storage(value.untyped_storage())
            return evicted(host, value)

        def noted_fetch(host, device):
            self.assertTrue(left[host.data_ptr()].expired(), "a value is still in memory when it is fetched")
            return fetch(host, device)

        for name, function in (("evict", noted_evict), ("evicted", noted_evicted), ("fetch", noted_fetch)):
            self.replace(name, function)
        chosen = backend("60%", offload=LINK)
        harness.train(*transformer(), chosen)
        (graph,) = chosen.report.graphs
        self.assertTrue(graph.offloaded)
        self.assertLessEqual(max(seen), graph.host_peak)
        self.assertEqual(on_host(), 0)

    def test_two_backward_passes_and_two_forward_passes(self):
        def twice(compiled, inputs):
            one, other = compiled(*inputs), compiled(*inputs)
            one.backward(retain_graph=True)
            one.backward()
            other.backward()

        model, inputs = transformer()
        expected = harness.gradients_after(model, inputs, harness.unscheduled(), twice)
        chosen = backend("60%", offload=LINK)
        with harness.cairn_warnings("ignore"):
            found = harness.gradients_after(model, inputs, chosen, twice)
        for a, b in zip(expected, found):
            self.assertTrue(torch.equal(a, b))
        # The later passes are measured. But the pass with retain_graph=True, which kept its saved values, may have
        # needed more than promised. So ``kept`` is None, i.e. unknown.
        self.assertIsNotNone(chosen.report.measured)
        self.assertIsNone(chosen.report.kept)

    def test_operations_whose_results_stay_run_again(self):
        """Tests values that cannot be moved, such as views of parts of a tensor and complex conjugates. The operations
        that make these values must run again instead."""
        class Mixed(harness.Layers):
            def forward(self, x):
                for layer in self.layers:
                    y = layer(x)
                    order = y.argsort(1)
                    half, double = y.to(torch.bfloat16).sin(), y.double().cos()
                    x = torch.where(y > 0, half.float(), double.float()) * torch.gather(y, 1, order)
                    c = torch.complex(x, y)
                    x = (c * c.conj()).real.sqrt() + c.exp().imag.clamp(-1, 1)
                return x.square().mean()

        model, inputs = Mixed(count=3, width=32), (torch.randn(64, 32),)
        reference = harness.train(model, inputs, harness.unscheduled())
        budget = "26%"
        for offload in (None, "1000GB/s"):
            chosen = backend(budget, offload=offload)
            self.assertEqual(harness.same(reference, harness.train(model, inputs, chosen)), "")
            self.assertTrue(chosen.report.graphs[0].recomputed or chosen.report.graphs[0].offloaded)
            self.assertTrue(chosen.report.graphs[0].met)

    def test_compiled_autograd(self):
        def compiled_backward(compiled, inputs):
            loss = compiled(*inputs)
            with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
                loss.backward()

        model, inputs = transformer()
        expected = harness.gradients_after(model, inputs, harness.unscheduled(), compiled_backward)
        chosen = backend("60%", offload=LINK)
        with harness.cairn_warnings("ignore"):
            found = harness.gradients_after(model, inputs, chosen, compiled_backward)
        self.assertTrue(chosen.report.graphs[0].offloaded)
        self.assertIsNone(chosen.report.kept)
        for a, b in zip(expected, found):
            self.assertTrue(torch.equal(a, b))

    def test_ranks_that_measure_different_links_share_a_schedule(self):
        values = {}

        class Store:
            def add(self, name, more):
                values[name] = values.get(name, 0) + more
                return values[name]

            set = staticmethod(values.__setitem__)
            get = staticmethod(values.__getitem__)
            wait = staticmethod(lambda names, seconds: None)

        sources = []
        with harness.new_cache(), unittest.mock.patch.object(_private, "collective_store", Store):
            for measured in ("25GB/s,1us", "26GB/s,2us"):
                with unittest.mock.patch.object(link, "measured_link", lambda device: measured):
                    chosen = backend("60%", offload="measure")
                    harness.train(*transformer(), chosen)
                    sources.append((chosen.report.graphs[0].source, len(chosen.report.graphs[0].offloaded)))
        self.assertEqual([source for source, _ in sources], ["solved", "another rank"])
        self.assertEqual(sources[0][1], sources[1][1])

    def test_saved_tensor_hooks(self):
        def hooked(compiled, inputs):
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
                loss = compiled(*inputs)
            loss.backward()

        model, inputs = transformer()
        expected = harness.gradients_after(model, inputs, harness.unscheduled(), hooked)
        vars(copies.trial).update(late=lambda: True)
        with harness.cairn_warnings("ignore"):
            found = harness.gradients_after(model, inputs, backend("60%", offload=LINK), hooked)
        for a, b in zip(expected, found):
            self.assertTrue(torch.equal(a, b))

    def test_a_size_from_data_that_is_nothing(self):
        class Chosen(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32)

            def forward(self, x):
                hidden = torch.tanh(self.first(x))
                chosen = torch.tanh(self.second(hidden[x[:, 0] > 0]))
                return chosen.square().sum() + hidden.sin().sum()

        patch = unittest.mock.patch.object(torch._dynamo.config, "capture_dynamic_output_shape_ops", True)
        patch.start()
        self.addCleanup(patch.stop)
        model, inputs = Chosen(), (torch.randn(100, 32) - 9,)
        reference = harness.train(model, inputs, harness.unscheduled())
        chosen = backend("80%", offload="1000GB/s")
        with harness.cairn_warnings("ignore"):
            self.assertEqual(harness.same(reference, harness.train(model, inputs, chosen)), "")
        self.assertTrue(chosen.report.graphs[0].offloaded)

    def test_gradients_of_many_at_once(self):
        x = torch.randn(16, 32, requires_grad=True)
        layer = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Tanh()) for _ in range(4)))

        def gradients(compiled, inputs):
            return torch.autograd.grad(compiled(*inputs).square().mean(), [x], grad_outputs=torch.tensor([1.0, 2.0]),
                                       is_grads_batched=True)

        expected = gradients(torch.compile(layer, backend=harness.unscheduled()), (x,))
        torch._dynamo.reset()
        chosen = backend("80%", offload="1000GB/s")
        with harness.cairn_warnings("ignore"):
            found = gradients(torch.compile(layer, backend=chosen), (x,))
        self.assertTrue(chosen.report.graphs[0].offloaded)
        self.assertTrue(torch.equal(expected[0], found[0]))

    def test_runs_that_are_alive_at_once_add_up_on_the_host(self):
        model, inputs = transformer()
        first = backend("60%", offload=LINK)
        harness.train(model, inputs, first)
        (graph,) = first.report.graphs
        chosen = backend("60%", offload=LINK, host_budget=2 * graph.host_peak - 1, accumulate=True)

        def three():
            torch._dynamo.reset()
            compiled = torch.compile(model, backend=chosen)
            for loss in [compiled(*inputs) for _ in range(3)]:
                loss.backward()

        told = harness.told_by(three)[1]
        self.assertRegex(" ".join(told), "host_budget holds for each graph.*add up to .* on the host, which is above")
        self.assertEqual(chosen.report.host_peak, 3 * chosen.report.graphs[0].host_peak)
        self.assertIn("on the host at most; each keeps", str(chosen.report))

    def test_a_planned_step(self):
        model, inputs = transformer()
        reference = harness.train(model, inputs, harness.unscheduled())

        def step(*given):
            loss = model(*given)
            loss.backward()
            return loss.detach()

        torch._dynamo.reset()
        planned = cairn.torch.step(step, "60%", offload=LINK, work_limit=WORK, fallback=False)
        planned(*inputs)
        self.assertTrue(planned.report.graphs[0].offloaded)
        for name, parameter in model.named_parameters():
            self.assertTrue(torch.equal(parameter.grad, reference.gradients[name]), name)


class Defects(Trials):
    """Tests that each planted defect changes results or raises an error."""

    def outcome(self):
        """Returns the name of the first thing that differs from a step without transfers; empty if nothing does."""
        model, inputs = transformer()
        reference = harness.train(model, inputs, harness.unscheduled())
        chosen = backend("60%", offload=LINK, measure=False)
        step = harness.train(model, inputs, chosen)
        self.assertTrue(chosen.report.graphs[0].offloaded)
        return harness.same(reference, step)

    def test_a_fetch_that_is_not_waited_for(self):
        copies.trial.late = lambda: True
        self.replace("fetched", lambda value, host, last: value)
        self.assertNotEqual(self.outcome(), "")

    def test_an_evict_that_is_not_waited_for(self):
        copies.trial.late = lambda: True
        self.replace("evicted", lambda host, value: host)
        self.assertNotEqual(self.outcome(), "")

    def test_a_value_that_is_freed_too_early(self):
        copies.trial.late = lambda: True
        evicted = copies.evicted
        self.replace("evicted", lambda host, value: evicted(host, value.clone()))
        with self.assertRaisesRegex(cairn.DefectError, "freed before its copy"):
            self.outcome()

    def test_a_value_that_stays(self):
        """Tests a defect: later operations read the old value instead of the fetched one, so the old value never leaves
        memory. Only the measured bytes can show this."""
        chosen = backend("60%", offload=LINK)
        with harness.new_cache(), unittest.mock.patch.object(
                Places, "_replace", lambda places, i: places.arriving.pop(i)):
            texts = harness.told_by(harness.train, *transformer(), chosen)[1]
        self.assertRegex(" ".join(texts), "promised a peak of .*, measured")
        self.assertEqual(chosen.report.kept, False)

    def test_a_wrong_buffer(self):
        fetch, seen = copies.fetch, []

        def wrong(host, device):
            others = [h for h in seen if h.shape == host.shape and h.data_ptr() != host.data_ptr()]
            seen.append(host)
            return fetch(others[0] if others else host, device)

        self.replace("fetch", wrong)
        self.assertNotEqual(self.outcome(), "")


class BadInput(harness.Fresh):
    def test_links_that_are_none(self):
        for bad in (0, -1, 0.5, "fast", "", "0GB/s", "25GB/s,-1us", "pcie9", True, [], float("inf")):
            with self.subTest(offload=bad), self.assertRaisesRegex(cairn.InputError, "^offload: ") as caught:
                cairn.torch.backend(offload=bad)
            self.assertNotIn("\n", str(caught.exception))

    def test_arguments_that_contradict_each_other(self):
        model = torch.nn.Linear(2, 2)
        for words, options in {"host_budget: .*give offload=": dict(host_budget="1GiB"),
                               "host_budget 0 must be above 0": dict(offload=LINK, host_budget=0),
                               "host_budget": dict(offload=LINK, host_budget="much")}.items():
            with self.subTest(**options), self.assertRaisesRegex(cairn.InputError, words) as caught:
                cairn.torch.backend(**options)
            self.assertNotIn("\n", str(caught.exception))
        with self.assertRaisesRegex(cairn.InputError, "drop optimizer= or offload="):
            cairn.torch.step(lambda: None, offload=LINK, optimizer=torch.optim.SGD(model.parameters(), 0.1))

    def test_a_host_budget_that_is_too_small_says_which_is_enough(self):
        class Once(harness.Layers):
            def forward(self, x):
                for layer in self.layers:
                    x = torch.relu(layer(x))
                return x.square().mean()

        backend = functools.partial(cairn.torch.backend, fallback=False, work_limit=2_000, calibrate=False, measure=False)
        model, inputs = Once(count=4, width=16), (torch.randn(64, 16),)
        least = backend("min")
        harness.train(model, inputs, least)
        moving = backend("min", offload="1000GB/s")
        harness.train(model, inputs, moving)
        (alone,), (graph,) = least.report.graphs, moving.report.graphs
        self.assertLess(graph.promised, alone.promised)
        with self.assertRaises(cairn.InfeasibleError) as caught:
            harness.train(model, inputs, backend(graph.promised, offload="1000GB/s", host_budget=1))
        self.assertRegex(str(caught.exception), r"host_budget=1 B is too small for it: it can be met with .* bytes\) on the host")


class Measured(unittest.TestCase):
    def test_a_link_that_fits_what_was_measured(self):
        def seconds(size):
            return 10e-6 + size / 25e9

        times = [(size, seconds(size)) for size in (1 << 20, 4 << 20, 64 << 20)]
        self.assertEqual(link.link_text(times, False), "25000000000B/s,10000ns,duplex")
        self.assertEqual(link.link_text([(100, 1.0), (200, 1.0)], True), "200B/s,500000000ns,half")

    def test_the_stand_in_is_measured_once(self):
        with harness.new_cache():
            first = cairn.torch.backend(offload="measure").options.offload.given_link("cpu")
            with unittest.mock.patch.object(link, "_measured", side_effect=AssertionError):
                self.assertEqual(link.measured_link("cpu"), first)
            for damaged in ("abc", "", "\udc80", 3):
                _cache.store("link-cpu.json", damaged)
                with unittest.mock.patch.object(link, "link_text", return_value="7GB/s") as measured:
                    self.assertEqual(link.measured_link("cpu"), "7GB/s")
                measured.assert_called_once()
        self.assertRegex(first, r"^[1-9]\d+B/s,\d+ns,half$")


if __name__ == "__main__":
    unittest.main()
