"""Tests that Cairn leaves alone what belongs to the caller: attributes of models, random generators, flags of torch that
all threads share, and the lives of models and optimizers."""

import collections
import gc
import logging
import random
import threading
import time
import unittest
import weakref

import cairn.torch
import harness
import numpy
import torch


class Tables(dict):
    """A class of dicts that a model may define."""


class Outputs(collections.OrderedDict):
    """A class that cannot be copied by OrderedDict.copy(), because its constructor needs an argument."""

    def __init__(self, first):
        super().__init__(first=first)


class Latest(collections.deque):
    def __init__(self, most):
        super().__init__(maxlen=most)


class Cache:
    """What a model keeps in an object that is no module."""

    def __init__(self):
        self.keys, self.tables, self.calls = [], Tables(), collections.Counter()
        self.outputs, self.latest, self.seen = Outputs(1), Latest(3), set()


class Remembering(torch.nn.Module):
    """A model whose forward pass changes Python state in many ways."""

    def __init__(self):
        super().__init__()
        self.linear, self.shift = torch.nn.Linear(8, 8), torch.nn.Parameter(torch.zeros(8))
        self.mask, self.initialized, self.cache = None, False, Cache()
        self.logger = logging.getLogger("cairn_test")
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
        self.cache.tables["last"] = y
        self.cache.calls["forward"] += 1
        self.cache.outputs["last"] = y
        self.cache.latest.append(y)
        self.cache.seen.add(tuple(x.shape))
        logging.getLogger(f"cairn_test.{len(logging.root.manager.loggerDict)}")
        return (y - self.average).square().mean()


class Models(harness.Fresh):
    def check(self, plan):
        model, other, x = Remembering(), Remembering(), torch.randn(4, 8)
        other.load_state_dict(model.state_dict())
        names, tensors = set(vars(model)), dict(model.state_dict(keep_vars=True))
        loggers = len(logging.root.manager.loggerDict)
        plan(model, x)
        self.assertEqual(set(vars(model)), names)
        self.assertEqual((model.mask, model.initialized), (None, False))
        self.assertEqual((model.cache.keys, model.cache.tables, model.cache.calls), ([], {}, {}))
        self.assertEqual((list(model.cache.outputs.items()), len(model.cache.latest), model.cache.seen), ([("first", 1)], 0, set()))
        self.assertGreater(len(logging.root.manager.loggerDict), loggers)  # those of the process are not undone
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
        began = threading.Event()

        def backend(module, _):
            began.set()
            time.sleep(seconds)
            return module.forward

        compiled = torch.compile(lambda x: x.sin() + seconds, backend=backend)
        thread = threading.Thread(target=lambda: compiled(torch.ones(3)), daemon=True)
        thread.start()
        began.wait(60)
        return thread

    def test_optimizers_are_tested_while_another_thread_compiles(self):
        model = torch.nn.Linear(8, 1)
        for seconds in (0.01, 0.02, 0.05, 0.1):
            thread = self.compile_in_a_thread(seconds)
            made = cairn.torch.step(lambda x: None, optimizer=torch.optim.AdamW(model.parameters()))
            thread.join()
            self.assertIsInstance(made, cairn.torch.Step)

    def test_a_graph_is_traced_while_another_thread_compiles(self):
        began, may_end, threads = threading.Event(), threading.Event(), []

        def backend(module, _):
            began.set()
            may_end.wait(60)
            return module.forward

        class Slow(torch.nn.Linear):
            def forward(self, x):
                if not threads:
                    compiled = torch.compile(lambda x: x.cos(), backend=backend)
                    threads.append(threading.Thread(target=lambda: compiled(torch.ones(3)), daemon=True))
                    threads[0].start()
                    # This compilation waits until the graph is traced. If it did not, it would end after the trace, and
                    # restore the flag that it found.
                    began.wait(1)
                return super().forward(x).sum()

        cairn.torch.graph(Slow(4, 4), torch.ones(2, 4))
        may_end.set()
        threads[0].join()
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
