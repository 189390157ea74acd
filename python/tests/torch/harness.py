"""Contains what the tests of cairn.torch share: models, and functions that train and compare steps. A step under a
budget must have the same loss, gradients and buffers as a step without a budget, and must stay within the promised
peak."""

import contextlib
import copy
import dataclasses
import os
import tempfile
import unittest
import unittest.mock
import warnings

import torch

import cairn.torch
from cairn.torch import _private

# --- Models


class Block(torch.nn.Module):
    """A block of a transformer, with dropout."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.drop = torch.nn.Dropout(dropout)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        x = x + self.drop(self.out(mixed.transpose(1, 2).reshape(batch, length, width)))
        return x + self.drop(self.down(torch.nn.functional.gelu(self.up(self.norm2(x)))))


class Gpt(torch.nn.Module):
    """A GPT that returns its loss. Embedding and output layer share their weight."""

    def __init__(self, layers=2, width=64, heads=4, vocabulary=200, length=32, dropout=0.1):
        super().__init__()
        self.tokens, self.positions = torch.nn.Embedding(vocabulary, width), torch.nn.Embedding(length, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.drop = torch.nn.Dropout(dropout)

    def forward(self, tokens, targets):
        x = self.drop(self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device)))
        for block in self.blocks:
            x = block(x)
        return torch.nn.functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class Square(torch.autograd.Function):
    """A function that stores its input in its context without save_for_backward, so that torch does not check the input
    for writes."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient * ctx.x


def gpt(batch=4, length=32, **options):
    model = Gpt(length=length, **options)
    tokens = torch.randint(0, 200, (batch, length + 1))
    return model, (tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())


class Cnn(torch.nn.Module):
    """A model with convolutions and batch norms. The forward pass writes the buffers of the batch norms."""

    def __init__(self, layers=6, channels=16):
        super().__init__()
        self.convs = torch.nn.ModuleList(
            torch.nn.Conv2d(channels if i else 3, channels, 3, padding=1) for i in range(layers))
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm2d(channels) for _ in range(layers))
        self.head = torch.nn.Linear(channels, 10)

    def forward(self, x, targets):
        for conv, norm in zip(self.convs, self.norms):
            x = torch.relu(norm(conv(x)))
        return torch.nn.functional.cross_entropy(self.head(x.mean((2, 3))), targets)


def cnn(batch=4, image=24, **options):
    return Cnn(**options), (torch.randn(batch, 3, image, image), torch.randint(0, 10, (batch,)))


class Layers(torch.nn.Module):
    """A base class with linear layers. Derived models define in ``forward`` what they compute with the layers."""

    def __init__(self, count=6, width=64):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(count))


class Amp(torch.nn.Module):
    """Wraps a model so that it runs under autocast."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *inputs):
        with torch.autocast(inputs[0].device.type, dtype=torch.bfloat16):
            return self.inner(*inputs)


# --- Tests


@contextlib.contextmanager
def new_cache():
    """Returns a context in which Cairn's cache is a new folder."""
    with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, CAIRN_CACHE=folder):
        yield


def afresh(values):
    """Yields the values one by one. Before each value, forgets all compiled code, and seeds the generator."""
    for value in values:
        torch._dynamo.reset()
        torch.manual_seed(0)
        yield value


class Fresh(unittest.TestCase):
    """A base class of tests that begin without compiled code, and draw the same random numbers in every run."""

    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)


# --- Steps

# A regular expression for the warnings that are expected if a model consists of several graphs.
OF_PARTS = (r"graph \d+ runs while |budgets hold for each graph|.* because it is tiny$|"
            r"graph \d+: gradients of results are laid out in another way")


@contextlib.contextmanager
def told():
    """Returns a context whose value is a list. When the context has ended, the list contains the texts of the
    CairnWarnings."""
    texts = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", cairn.torch.CairnWarning)
        yield texts
    texts += [str(w.message) for w in caught if w.category is cairn.torch.CairnWarning]


def told_by(function, *arguments):
    """Calls the function. Returns (its result, the texts of its CairnWarnings)."""
    with told() as texts:
        result = function(*arguments)
    return result, texts


@contextlib.contextmanager
def cairn_warnings(action):
    """Returns a context in which CairnWarnings are treated by this action of the module warnings, such as "error" or
    "ignore"."""
    with warnings.catch_warnings():
        warnings.simplefilter(action, cairn.torch.CairnWarning)
        yield


@dataclasses.dataclass
class Step:
    """The results of a training step, and the step's peak in bytes, not counting gradients of parameters."""

    loss: torch.Tensor
    gradients: dict
    buffers: dict
    peak: int
    peak_operation: str


def unscheduled():
    """Returns a backend that compiles in the same way as Cairn's but without a schedule: all values that the backward
    pass reads are kept until then."""
    def compiler(module, inputs):
        return _private.boxed(module)

    return _private.aot_autograd(fw_compiler=compiler, bw_compiler=compiler, keep_inference_input_mutations=False,
                                 partition_fn=torch._functorch.partitioners.default_partition)


def train(model, inputs, backend, *, loss_of=None, seed=7, **compile_options):
    """Trains two steps from the same state. The first step compiles and warms up, the second is measured. If the model
    becomes several graphs, the second step compiles them again, and a third step is measured instead. Returns the last
    step."""
    torch._dynamo.reset()
    model = copy.deepcopy(model)
    state = copy.deepcopy(model.state_dict())
    compiled = torch.compile(model, backend=backend, **compile_options)

    def step():
        torch.manual_seed(seed)
        out = compiled(*inputs)
        loss = out if loss_of is None else loss_of(out)
        loss.backward()
        return loss.detach()

    step()
    if getattr(getattr(backend, "report", None), "together", None) is not None:
        model.zero_grad(set_to_none=True)
        step()
    model.load_state_dict(state)
    model.zero_grad(set_to_none=True)
    with cairn.torch.MemoryTrace(inputs[0].device.type) as trace:
        loss = step()
    gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    peak, operation = trace.at_peak({g.untyped_storage().data_ptr() for g in gradients.values()})
    return Step(loss, gradients, dict(model.named_buffers()), peak, operation)


def gradients_after(model, inputs, backend, body):
    """Compiles the model with ``backend``, calls ``body(compiled model, inputs)``, and returns the gradients."""
    torch._dynamo.reset()
    model.zero_grad()
    body(torch.compile(model, backend=backend), inputs)
    return [p.grad.clone() for p in model.parameters()]


def same(a, b):
    """Compares two steps bit for bit. Returns the name of the first thing that differs; empty if nothing does."""
    if not torch.equal(a.loss, b.loss):
        return "loss"
    for what in ("gradients", "buffers"):
        one, other = getattr(a, what), getattr(b, what)
        if one.keys() != other.keys():
            return f"{what}: {sorted(one.keys() ^ other.keys())}"
        for name in one:
            if not torch.equal(one[name], other[name]):
                return f"{what} {name}"
    return ""
