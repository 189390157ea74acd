"""Tests that a whole training step becomes one graph, and that the graph of a model can be traced without running a
step."""

import cairn
import cairn.torch
import harness
import torch

WORK = 1_000_000


def trained(make, budget=None, steps=4, **options):
    """Trains some steps. Returns (the results of all steps, the model's state after them). ``make()`` returns (model,
    train_step, inputs, change). Before each step, ``change`` is called with the step's number."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, train_step, inputs, change = make()
    if budget is not None:
        train_step = cairn.torch.step(train_step, budget, fallback=False, work_limit=WORK, **options)
    torch.manual_seed(3)
    returned = []
    for number in range(steps):
        change(number)
        returned.append(train_step(*inputs(number)))
    return returned, [t.detach().clone() for t in model.state_dict().values()]


def nothing(number):
    pass


class Net(torch.nn.Module):
    """A model with two parts. One has dropout, the other batch norm."""

    def __init__(self, width=32):
        super().__init__()
        self.first = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Dropout(0.2),
                                         torch.nn.Linear(4 * width, width))
        self.second = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.BatchNorm1d(4 * width), torch.nn.ReLU(),
                                          torch.nn.Linear(4 * width, width))

    def forward(self, x):
        return self.second(x + self.first(x))


class Steps(harness.Fresh):
    def check(self, make, budgets=("75%", "min"), steps=4, **options):
        """Checks that each step returns and stores the same bits as without Cairn."""
        returned, state = trained(make, steps=steps)
        for budget in budgets:
            with self.subTest(budget=budget), harness.cairn_warnings("error"):
                again, other = trained(make, budget, steps, **options)
                self.assertEqual([torch.equal(a, b) for a, b in zip(returned, again)], [True] * steps)
                self.assertEqual([torch.equal(a, b) for a, b in zip(state, other)], [True] * len(state))
                measured = [g for g in cairn.torch.last_report().graphs if g.measured is not None]
                # A graph that is compiled while the whole step is being measured may stay unmeasured, but not all
                # graphs.
                self.assertGreater(len(measured), 0)
                for graph in measured:
                    self.assertLessEqual(graph.measured, graph.promised)

    def test_old_gradients_that_a_step_frees_do_not_lower_its_peak(self):
        """Tests that the measured peak of a step is not lowered by gradients of the previous step that the step frees.
        Whether the measured step frees such gradients depends on whether graphs were measured before. So the same
        training runs twice, and both must have the same peak."""
        def peak():
            torch._dynamo.reset()
            model = torch.nn.Sequential(torch.nn.Linear(49, 49), torch.nn.GELU(), torch.nn.Linear(49, 49))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

            def train(x):
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                if torch.isfinite(loss):
                    optimizer.step()
                return loss.detach()

            step = cairn.torch.step(train, work_limit=WORK)
            for _ in range(3):
                step(torch.randn(64, 49))
            return step.report.whole_step

        self.assertEqual(peak(), peak())

    def net(self, body, change=lambda *_: None, batch=64):
        """Returns a value for ``make`` of trained(): a function that makes a Net with AdamW. Its training step is
        ``body(model, optimizer, x, y)``."""
        def make():
            model = Net()
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
            x, y = torch.randn(batch, 32), torch.randn(batch, 32)
            return (model, lambda x, y: body(model, optimizer, x, y), lambda _: (x, y),
                    lambda number: change(model, optimizer, number))

        return make

    def plain(self, model, optimizer, x, y):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def test_transformer_and_adam(self):
        def make():
            model, inputs = harness.gpt()
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

            def train_step(*inputs):
                optimizer.zero_grad()
                loss = model(*inputs)
                loss.backward()
                optimizer.step()
                return loss.detach()

            return model, train_step, lambda _: inputs, nothing

        self.check(make)
        self.assertEqual(len(cairn.torch.last_report().graphs), 1)

    def test_batch_norm_and_momentum(self):
        def make():
            model, inputs = harness.cnn()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

            def train_step(*inputs):
                loss = model(*inputs)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                return loss.detach()

            return model, train_step, lambda _: inputs, nothing

        self.check(make)

    def test_the_loss_is_in_the_graph(self):
        trained(self.net(self.plain), "100%")
        self.assertEqual(len(cairn.torch.last_report().graphs), 1)
        self.assertGreater(sum("mean" in i.operation or "pow" in i.operation or "sub" in i.operation
                               for i in cairn.torch.last_report().graphs[0].at_peak), 0)

    def test_graphs_are_measured_before_the_whole_step(self):
        """Tests steps that have two shapes in turn, each of which has its own graph. Both graphs must be measured
        before the whole step."""
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64))

        def train_step(x):
            model.zero_grad(set_to_none=True)
            loss = model(x).square().mean()
            loss.backward()
            return loss.detach()

        with torch._dynamo.config.patch(automatic_dynamic_shapes=False):
            planned = cairn.torch.step(train_step, "min", work_limit=2_000)
            for rows in (64, 32, 32, 64, 64, 64):
                planned(torch.randn(rows, 64))
        self.assertGreater(len(planned.report.graphs), 1)
        self.assertEqual((planned.report.kept, planned.report.unknown), (True, []))
        self.assertIsNotNone(planned.report.whole_step)

    def test_a_measurement_of_an_equal_graph_does_not_count(self):
        """Tests two steps with equal graphs. The backward pass of the first updates its parameters. The second computes
        its gradients by autograd.grad, so that nothing is updated and all gradients are in memory at its end."""
        def train(by_grad):
            torch._dynamo.reset()
            model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(4)))
            optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
            loss_of = lambda x: model(x).square().mean()

            def step(x):
                optimizer.zero_grad()
                loss, parameters = loss_of(x), list(model.parameters())
                if by_grad:
                    for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters)):
                        parameter.grad = gradient
                else:
                    loss.backward()
                optimizer.step()
                return loss.detach()

            planned = cairn.torch.step(step, "min", optimizer=optimizer, fallback=False, work_limit=WORK)
            for _ in range(4):
                planned(torch.randn(64, 64))
            return planned.report

        with harness.new_cache(), harness.cairn_warnings("ignore"):
            first, second = train(False), train(True)
        self.assertEqual((first.kept, second.kept), (True, False), second)
        self.assertEqual(first.promised, second.promised)
        self.assertGreater(second.graphs[0].measured, second.promised)

    def test_the_whole_step_is_measured(self):
        trained(self.net(self.plain), "min")
        report = cairn.torch.last_report()
        gradients = report.graphs[0].resident["gradient"]
        self.assertGreaterEqual(report.whole_step, gradients)
        # AdamW needs little additional memory on the CPU, so the whole step needs little more than its gradients and
        # its graph.
        self.assertLessEqual(report.whole_step, gradients + 2 * report.promised)
        self.assertIn("the whole step", str(report))

    def test_several_optimizers_schedules_clipping_and_averages(self):
        def make():
            model = Net()
            average = Net()
            optimizers = [torch.optim.AdamW(model.first.parameters(), lr=1e-2),
                          torch.optim.SGD(model.second.parameters(), lr=1e-2, momentum=0.9)]
            schedulers = [torch.optim.lr_scheduler.StepLR(o, 1, 0.7) for o in optimizers]
            x, y = torch.randn(64, 32), torch.randn(64, 32)

            def train_step(x, y):
                model.zero_grad()
                loss = (model(x) - y).square().mean()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                for optimizer, scheduler in zip(optimizers, schedulers):
                    optimizer.step()
                    scheduler.step()
                with torch.no_grad():
                    for mean, new in zip(average.parameters(), model.parameters()):
                        mean.lerp_(new, 0.1)
                return loss.detach() + schedulers[0].get_last_lr()[0] + next(average.parameters()).detach().sum()

            return torch.nn.ModuleList([model, average]), train_step, lambda _: (x, y), nothing

        self.check(make, steps=12)

    def test_gradients_set_to_none_by_hand(self):
        def body(model, optimizer, x, y):
            for parameter in model.parameters():
                parameter.grad = None
            loss = (model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        self.check(self.net(body))

    def test_modes_frozen_and_replaced_parameters(self):
        def change(model, optimizer, number):
            if number == 1:
                model.first.eval()
            elif number == 2:
                model.first.train()
                model.second[0].weight.requires_grad_(False)
            elif number == 3:
                model.load_state_dict({n: t * 2 for n, t in model.state_dict().items()}, assign=True)
                for p in model.parameters():
                    p.requires_grad_(True)
            # From now on, some of the model's parameters are not the optimizer's, so the optimizer does not clear
            # their gradients.
            if number > 3:
                model.zero_grad()

        self.check(self.net(self.plain, change), steps=5)

    def test_numbers(self):
        def make():
            model = Net()
            optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
            x = torch.randn(64, 32)

            def train_step(x, scale, flag):
                optimizer.zero_grad()
                loss = (model(x) * scale).square().mean()
                if flag is True:
                    loss = loss + model(x).abs().mean()
                loss.backward()
                optimizer.step()
                return loss.detach()

            return model, train_step, lambda n: (x, (1, 2.0, 2.5, 3)[n], (True, 1, 1, True)[n]), nothing

        self.check(make)

    def test_autocast_and_a_gradient_scaler(self):
        make = self.net(self.body_of_autocast)
        losses, _ = trained(make, "75%")
        plain, _ = trained(make)
        # traced code rounds 16-bit values at other places than eager code, as with aot_eager
        for loss, other in zip(losses, plain):
            torch.testing.assert_close(loss, other, rtol=0.05, atol=0.05)

    def body_of_autocast(self, model, optimizer, x, y):
        optimizer.zero_grad()
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        with torch.autocast("cpu", torch.bfloat16):
            loss = (model(x) - y).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    def test_autocast_about_the_step(self):
        model, step, inputs, _ = self.net(self.plain)()
        step = cairn.torch.step(step, "75%", fallback=False, work_limit=WORK)
        for on in (True, False, True):
            with torch.autocast("cpu", torch.bfloat16, enabled=on):
                self.assertTrue(torch.isfinite(step(*inputs(0))))
        self.assertGreaterEqual(len(cairn.torch.last_report().graphs), 2)

    def test_hooks(self):
        def halve(parameter):
            parameter.grad.mul_(0.5)

        def make():
            model, step, inputs, _ = self.net(self.plain)()
            for parameter in model.parameters():
                parameter.register_post_accumulate_grad_hook(halve)
            model.second[0].weight.register_hook(lambda g: g + 1e-3)
            model.first.register_forward_hook(lambda module, args, out: out * 1.5)
            return model, step, inputs, nothing

        self.check(make, accumulate=True)
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "hooks if they return a gradient, .* accumulate=True"):
            trained(make, "75%")

    def test_micro_batches(self):
        def body(model, optimizer, x, y):
            loss = (model(x) - y).square().mean()
            loss.backward()
            return loss.detach()

        def change(model, optimizer, number):
            if number and number % 2 == 0:
                optimizer.step()
                optimizer.zero_grad()

        self.check(self.net(body, change), accumulate=True)
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "accumulate=True"):
            trained(self.net(body, change), "75%")

    def test_a_larger_batch_is_planned_anew(self):
        def make():
            model, step, _, _ = self.net(self.plain)()
            return model, step, lambda n: [torch.randn((16, 32, 24, 64, 48)[n], 32) for _ in range(2)], nothing

        self.check(make, steps=5)
        self.assertGreaterEqual(len(cairn.torch.last_report().graphs), 3)

    def test_a_budget_that_cannot_be_met(self):
        with self.assertRaises(cairn.InfeasibleError) as raised:
            trained(self.net(self.plain), 1000)
        self.assertGreater(raised.exception.least_budget, 1000)

    def test_what_cannot_be_compiled_runs_once_and_says_so(self):
        model = torch.nn.Linear(3, 3)
        calls = []

        @torch.compiler.disable
        def loss_of(x):
            calls.append(1)
            return model(x).square().mean()

        def train_step(x):
            loss = loss_of(x)
            loss.backward()
            return loss.detach()

        step = cairn.torch.step(train_step, "60%", work_limit=WORK)
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "without a budget"):
            step(torch.randn(2, 3))
        self.assertEqual(len(calls), 1)
        self.assertIsNotNone(model.weight.grad)

    def test_a_part_without_gradients_draws_only_what_is_read(self):
        unread = {  # what nobody reads, AOTAutograd leaves out
            "dropout": lambda x: torch.dropout(x, 0.5, True),
            "in place": lambda x: torch.empty(4, 8).normal_(),
            "read by what nobody reads": lambda x: torch.rand(4, 8) * 2,
            "attention": lambda x: torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.5),
        }

        def trained(compile_step, draw):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 8))

            def train_step(x):
                with torch.no_grad():
                    draw(x)
                    target = torch.tanh(x)
                torch._dynamo.graph_break()
                loss = (model(x) - target).square().mean()
                loss.backward()
                return loss.detach()

            run = compile_step(train_step)
            torch.manual_seed(1)
            return torch.stack([run(torch.ones(4, 8)) for _ in range(3)]), torch.get_rng_state()

        for name, draw in unread.items():
            with self.subTest(name):
                planned = trained(lambda f: cairn.torch.step(f, "100%", work_limit=WORK), draw)
                expected = trained(lambda f: torch.compile(f, backend="aot_eager"), draw)
                self.assertTrue(all(map(torch.equal, planned, expected)))

    def test_a_part_without_gradients_is_decomposed(self):
        """Tests an operator that AOTAutograd decomposes, so that its bits differ from those of the operator's kernel."""
        def larger(x):
            return torch.nn.functional.interpolate(x[None, None], size=(7, 11), mode="bilinear")[0, 0].mul_(2)

        def trained(compile_step):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model = torch.nn.Linear(8, 11)

            def train_step(x):
                with torch.no_grad():
                    target = larger(x)
                torch._dynamo.graph_break()
                loss = (model(x[:7]) - target).square().mean()
                loss.backward()
                return loss.detach(), target

            run = compile_step(train_step)
            return [value for _ in range(3) for value in run(torch.randn(8, 8))]

        planned = trained(lambda f: cairn.torch.step(f, "100%", work_limit=WORK))
        expected = trained(lambda f: torch.compile(f, backend="aot_eager"))
        self.assertTrue(all(map(torch.equal, planned, expected)))
        torch.manual_seed(0)
        torch.nn.Linear(8, 11)
        self.assertFalse(torch.equal(larger(torch.randn(8, 8)), expected[1]))  # otherwise, the kernel would do, too

    def test_updates_that_are_left_to_the_optimizer_are_measured(self):
        model = torch.nn.Sequential(*(torch.nn.Linear(128, 128) for _ in range(6)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

        def train_step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        step = cairn.torch.step(train_step, "min", optimizer=optimizer, work_limit=WORK)
        kept = []
        with harness.cairn_warnings("ignore"):
            for number in range(5):
                if number == 3:
                    for parameter in model.parameters():
                        parameter.register_post_accumulate_grad_hook(lambda p: None)
                step(torch.ones(16, 128))
                kept.append(step.report.kept)
        self.assertEqual(kept[2:], [True, True, False])
        self.assertGreater(step.report.measured, 3 * step.report.promised)

    def test_a_loss_in_the_second_graph_is_not_told(self):
        first, second = (torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64)) for _ in range(2))

        def train_step(x):
            h = first(x)
            torch._dynamo.graph_break()
            loss = second(h).square().mean()
            loss.backward()
            for p in (*first.parameters(), *second.parameters()):
                p.grad = None
            return loss.detach()

        step = cairn.torch.step(train_step, "95%", work_limit=WORK)
        for _ in range(4):
            step(torch.randn(256, 64))
        self.assertEqual((step.report.unplanned, step.report.kept), ([], True))

    def test_an_optimizer_of_another_package_runs_as_ordinary_python(self):
        class Own(torch.optim.Optimizer):
            def __init__(self, parameters):
                super().__init__(parameters, {"lr": 0.1})

            @torch.no_grad()
            def step(self, closure=None):
                for group in self.param_groups:
                    for p in group["params"]:
                        state = self.state.setdefault(p, {"m": torch.zeros_like(p), "n": 0})
                        state["n"] += 1
                        state["m"].lerp_(p.grad, 0.1)
                        p.mul_(1 - group["lr"] * 0.01).addcdiv_(state["m"], state["m"].norm() + 1e-3,
                                                                value=-group["lr"] / (1 - 0.9 ** state["n"]))

        def make(schedule, stored):
            model = Net()
            optimizer = Own(model.parameters())
            schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: 0.9 ** i) if schedule else None
            update = optimizer.step if stored else lambda: optimizer.step()

            def train_step(x):
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                update()
                if schedule is not None:
                    schedule.step()
                return loss.detach()

            return model, train_step, lambda number: (torch.randn(16, 32),), nothing

        for given in ((False, False), (True, False), (False, True)):
            with self.subTest(given):
                self.check(lambda: make(*given), ("min",))

    def test_results_beside_a_loss_are_not_told(self):
        def body(model, optimizer, x, y):
            out = model(x)
            loss = (out - y).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach(), out.detach()

        make = self.net(body)
        _, train_step, inputs, _ = make()
        step = cairn.torch.step(train_step, fallback=False, work_limit=WORK)
        with harness.told() as told:
            step(*inputs(0))
        self.assertEqual([text for text in told if "outside of the graph" in text], [])

    def test_a_loss_outside_is_told(self):
        @torch.compiler.disable
        def loss_of(out, y):
            return (out - y).square().mean()

        def body(model, optimizer, x, y):
            loss = loss_of(model(x), y)
            loss.backward()
            return loss.detach()

        with self.assertWarnsRegex(cairn.torch.CairnWarning, "outside of the graph"):
            trained(self.net(body), "100%", steps=1)
        self.assertIsNone(cairn.torch.last_report().kept)

    def test_a_model_outside_is_told(self):
        """Tests the warning about a model whose forward() is not compiled. The graph of a step then begins only at the
        model's results."""
        class Eager(torch.nn.Sequential):
            @torch._dynamo.disable
            def forward(self, x):
                return super().forward(x)

        model = Eager(torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))

        def train_step(x, y):
            model.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()

        run = cairn.torch.step(train_step, "min", fallback=False, work_limit=1000)
        with harness.told() as told:
            for _ in range(3):
                run(torch.randn(8, 16), torch.randint(0, 4, (8,)))
        self.assertEqual(sum("before the graph of this step" in text for text in told), 1)
        self.assertIsNone(run.report.kept)

    def test_accumulation_into_replaced_parameters_is_told(self):
        def body(model, optimizer, x, y):
            (model(x) - y).square().mean().backward()
            return x.sum()

        def change(model, optimizer, number):
            if number < 2:
                model.load_state_dict({n: t.clone() for n, t in model.state_dict().items()}, assign=True)

        with harness.cairn_warnings("error"):
            trained(self.net(body, change), "100%", steps=2)
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "accumulate=True"):
            trained(self.net(body, change), "100%", steps=3)

    def test_a_step_in_a_class(self):
        class Trainer:
            def __init__(self):
                self.model = Net()

            def train(self, x):
                loss = self.model(x).square().mean()
                loss.backward()
                return loss.detach()

            step = cairn.torch.step(train, "min", work_limit=WORK)

        trainer = Trainer()
        trainer.step(torch.randn(64, 32))
        self.assertIsNotNone(trainer.model.first[0].weight.grad)

    def test_parts_are_told(self):
        def body(model, optimizer, x, y):
            hidden = x + model.first(x)
            torch._dynamo.graph_break()
            (model.second(hidden) - y).square().mean().backward()
            return hidden.detach()

        with self.assertWarnsRegex(cairn.torch.CairnWarning, "2 graphs"):
            trained(self.net(body), "100%")


class Graphs(harness.Fresh):
    def test_is_what_training_needs(self):
        model, inputs = harness.gpt()
        graph = cairn.torch.graph(model, inputs)
        step = harness.train(model, inputs, harness.unscheduled())
        # the traced graph contains no scratch, because nothing was measured
        self.assertLessEqual(graph.baseline.peak, step.peak)
        self.assertGreater(graph.baseline.peak, 0.9 * step.peak)
        self.assertGreater(graph.resident_bytes, 2 * sum(p.numel() * 4 for p in model.parameters()))

    def test_a_model_larger_than_the_machine(self):
        with torch.device("meta"):
            model = harness.Gpt(layers=3, width=8192, heads=64, vocabulary=50000, length=2048, dropout=0.0)
        tokens = torch.empty((64, 2048), dtype=torch.int64, device="meta")
        graph = cairn.torch.graph(model, (tokens, tokens))
        self.assertGreater(graph.baseline.peak, 100 * 2**30)
        answer = cairn.solve(graph, graph.baseline.peak * 7 // 10, peak_only=True, work_limit=WORK)
        self.assertLessEqual(answer.peak, graph.baseline.peak * 7 // 10)

    def test_forward_alone(self):
        model, inputs = harness.cnn()
        both, forward = cairn.torch.graph(model, inputs), cairn.torch.graph(model, inputs, backward=False)
        self.assertLess(forward.node_count, both.node_count)
        self.assertLess(forward.baseline.peak, both.baseline.peak)

    def test_the_model_is_as_it_was(self):
        model, inputs = harness.cnn()
        before = {n: t.clone() for n, t in model.state_dict().items()}
        cairn.torch.graph(model, inputs)
        self.assertTrue(all(torch.equal(t, before[n]) for n, t in model.state_dict().items()))
        self.assertTrue(all(p.grad is None for p in model.parameters()))
