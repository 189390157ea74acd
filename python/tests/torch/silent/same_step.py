"""Compares a step under a budget bit for bit with the same step without a budget. Models may contain operators of other
packages."""

import functools

import cairn
import cairn.torch
import harness
import torch

WORK = 300_000
backend = functools.partial(cairn.torch.backend, fallback=False, work_limit=WORK)
log = []


@torch.library.custom_op("cairn_tests::noisy", mutates_args=())
def noisy(x: torch.Tensor) -> torch.Tensor:
    return x + torch.randn_like(x)


noisy.register_fake(lambda x: torch.empty_like(x))
noisy.register_autograd(lambda ctx, gradient: gradient)


@torch.library.custom_op("cairn_tests::logged", mutates_args=())
def logged(x: torch.Tensor, number: int) -> torch.Tensor:
    log.append(number)
    return x * 2


logged.register_fake(lambda x, number: torch.empty_like(x))
logged.register_autograd(lambda ctx, gradient: (logged(gradient, ctx.number + 100), None),
                         setup_context=lambda ctx, inputs, output: setattr(ctx, "number", inputs[1]))


def linears(count, width=64):
    return torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(count))


class Same(harness.Fresh):
    """A base class of tests that compare loss, gradients, buffers and states of generators of a step bit for bit."""

    def check(self, model, inputs, budgets, reference=None, **options):
        reference = harness.train(model, inputs, reference or harness.unscheduled())
        state, logged_then = torch.get_rng_state(), list(log)
        log.clear()
        for budget in budgets:
            with self.subTest(budget=budget, **options):
                with harness.cairn_warnings("error"):
                    step = self.within(model, inputs, budget, **options)
                self.assertEqual(harness.same(reference, step), "")
                self.assertTrue(torch.equal(torch.get_rng_state(), state))
                self.assertEqual(log, logged_then)
                log.clear()

    def within(self, model, inputs, budget, **options):
        try:
            return harness.train(model, inputs, backend(budget, **options))
        except cairn.InfeasibleError as error:
            log.clear()
            return harness.train(model, inputs, backend(error.least_budget, **options))
