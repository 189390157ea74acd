"""Tests that Cairn leaves alone what belongs to the caller: attributes of models, random generators, flags of torch that
all threads share, and the lives of models and optimizers."""

import gc
import random
import threading
import unittest
import weakref

import cairn.torch
import harness
import numpy
import torch


class Cache:
    """Keys that a model keeps, within an object that is no module."""

    def __init__(self):
        self.keys, self.calls = [], {"count": 0}


class Remembering(torch.nn.Module):
    """A model whose forward pass changes Python state in many ways."""

    def __init__(self):
        super().__init__()
        self.linear, self.shift = torch.nn.Linear(8, 8), torch.nn.Parameter(torch.zeros(8))
        self.mask, self.initialized, self.cache = None, False, Cache()
        vars(self)["trainer"] = weakref.proxy(Cache())  # of an object that is gone, as in a LightningModule after its training
        self.register_buffer("average", torch.zeros(8))

    def forward(self, x):
        if self.mask is None:
            self.mask = torch.tril(torch.ones(len(x), len(x), device=x.device))
        if not self.initialized:
            with torch.no_grad():
                self.shift.copy_(-x.mean(0))
            self.initialized = True
        if not hasattr(self, "positions"):
            self.register_buffer("positions", torch.arange(len(x), device=x.device).float()[:, None])
        y = self.mask @ self.linear(x + self.shift) + self.positions
        self.average = 0.9 * self.average + 0.1 * y.detach().mean(0)
        self.cache.keys.append(y)
        self.cache.calls["count"] += 1
        return (y - self.average).square().mean()


class Models(harness.Fresh):
    def check(self, plan):
        model, other, x = Remembering(), Remembering(), torch.randn(4, 8)
        other.load_state_dict(model.state_dict())
        names, tensors = set(vars(model)), dict(model.state_dict(keep_vars=True))
        plan(model, x)
        self.assertEqual(set(vars(model)), names)
        self.assertEqual((model.mask, model.initialized, model.cache.keys, model.cache.calls), (None, False, [], {"count": 0}))
        now = model.state_dict(keep_vars=True)
        self.assertTrue(now.keys() == tensors.keys() and all(now[name] is tensors[name] for name in now))
        self.assertTrue(torch.equal(model(x), other(x)))
        self.assertTrue(torch.equal(model.average, other.average))

    def test_graph(self):
        self.check(cairn.torch.graph)
        self.check(lambda model, x: cairn.torch.graph(model, x, backward=False))

    def test_will_it_fit(self):
        self.check(lambda model, x: cairn.torch.will_it_fit(model, (x,), device="1GiB"))


class Flags(harness.Fresh):
    """Tests of flags that all threads share, while another thread compiles."""

    def compile_in_a_thread(self, seconds):
        """Returns a thread that compiles a function, and holds the compilation for this time."""
        began, held = threading.Event(), threading.Event()

        def backend(module, _):
            began.set()
            held.wait(seconds)
            return module.forward

        thread = threading.Thread(target=lambda: torch.compile(lambda x: x.sin() + seconds, backend=backend)(torch.ones(3)))
        thread.start()
        began.wait()
        return thread

    def test_optimizers_are_tested_while_another_thread_compiles(self):
        model = torch.nn.Linear(8, 1)
        for seconds in (0.01, 0.02, 0.05, 0.1):
            thread = self.compile_in_a_thread(seconds)
            made = cairn.torch.step(lambda x: None, optimizer=torch.optim.AdamW(model.parameters()))
            thread.join()
            self.assertIsInstance(made, cairn.torch.Step)

    def test_a_graph_is_traced_while_another_thread_compiles(self):
        traced, thread = [], []

        class Slow(torch.nn.Linear):
            def forward(self, x):
                if not thread:
                    # If tracing did not wait for compilations and they not for it, this one would begin now and end last.
                    thread.append(threading.Thread(target=lambda: torch.compile(
                        lambda x: x.cos(), backend=lambda module, _: (ended.wait(5), module.forward)[1])(torch.ones(3))))
                    thread[0].start()
                    begun.wait(0.2)
                return super().forward(x).sum()

        begun, ended = threading.Event(), threading.Event()
        traced.append(cairn.torch.graph(Slow(4, 4), torch.ones(2, 4)))
        ended.set()
        thread[0].join()
        self.assertFalse(torch.compiler.is_compiling())


class Langevin(torch.optim.Optimizer):
    """An optimizer that adds noise, with temperature 0 at first."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.1, "temperature": 0.0})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    noise = torch.randn_like(p) * (1 + random.random() + numpy.random.rand())
                    p.add_(p.grad, alpha=-group["lr"]).add_(noise, alpha=group["temperature"])


class Optimizers(harness.Fresh):
    def test_random_generators(self):
        def states():
            return [torch.get_rng_state().tolist(), random.getstate(), [str(part) for part in numpy.random.get_state()]]

        optimizer = Langevin(torch.nn.Linear(8, 1).parameters())
        before = states()
        with harness.cairn_warnings("ignore"):
            cairn.torch.step(lambda x: None, optimizer=optimizer)
        self.assertEqual(states(), before)

    def test_they_are_freed_with_their_step(self):
        def train():
            model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.GELU(), torch.nn.Linear(32, 1))
            optimizer = torch.optim.AdamW(model.parameters())

            def plain(x):
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
                return loss.detach()

            step = cairn.torch.step(plain, "100%", optimizer=optimizer, work_limit=1000)
            for _ in range(2):
                step(torch.randn(64, 32))
            return weakref.ref(model[0].weight), weakref.ref(optimizer)

        kept = train()
        gc.collect()
        self.assertEqual([one() for one in kept], [None, None])


if __name__ == "__main__":
    unittest.main()
