"""Models whose steps become several graphs, and the measurement of such a step."""

import gc

import cairn.torch
import torch


class Layer(torch.nn.Module):
    """A residual block whose intermediate results are several times its output."""

    def __init__(self, width=64, dropout=0.0):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.drop = torch.nn.Dropout(dropout)

    def forward(self, x):
        return x + self.drop(self.down(torch.nn.functional.gelu(self.up(self.norm(x)))))


class Loss(torch.nn.Module):
    def forward(self, x):
        return x.square().mean()


class Halves(torch.nn.Module):
    """A model of layers with a graph break in the middle, unless ``broken`` is False."""

    def __init__(self, layers=6, layer=Layer, broken=True):
        super().__init__()
        self.broken = broken
        self.first = torch.nn.Sequential(*[layer() for _ in range(layers // 2)])
        self.second = torch.nn.Sequential(*[layer() for _ in range(layers // 2)])

    def forward(self, x):
        x = self.first(x)
        if self.broken:
            torch._dynamo.graph_break()
        return self.second(x).square().mean()


class Quarters(torch.nn.Module):
    """A model of layers with three graph breaks. The second and the last part read the first part's result. So in the
    backward pass, autograd keeps the gradient of this result that the last part gives while the parts between run."""

    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleList(torch.nn.Sequential(Layer(), Layer()) for _ in range(4))

    def forward(self, x):
        first = self.parts[0](x)
        torch._dynamo.graph_break()
        y = self.parts[1](first).cos()
        torch._dynamo.graph_break()
        y = self.parts[2](y).sin()
        torch._dynamo.graph_break()
        return (self.parts[3](y) * first).square().mean()


class Shared(torch.nn.Module):
    """A model whose layers are used before and after a graph break, so that two graphs share parameters."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(3)])

    def forward(self, x):
        x = self.layers(x)
        torch._dynamo.graph_break()
        return self.layers(x).square().mean()


class Skips(torch.nn.Module):
    """A model of four parts. The last three read a large result of the first part, and hold little memory
    themselves."""

    def __init__(self):
        super().__init__()
        self.scale, self.other = torch.nn.Parameter(torch.ones(64)), torch.nn.Parameter(torch.ones(64))

    def forward(self, x):
        y = torch.tanh(x * self.scale)
        torch._dynamo.graph_break()
        first = (y * self.other).sin().cos().exp().sum(0, keepdim=True)
        torch._dynamo.graph_break()
        second = (y.view(-1, 64) * self.other).sum(0, keepdim=True)
        torch._dynamo.graph_break()
        return (y * first * second).sum()


class Writes(torch.nn.Module):
    """A model whose second part adds a value to results of the first part: in place or, if ``in_place`` is False, into
    new tensors. After an addition in place, autograd makes zeros as gradients of the values before the addition."""

    def __init__(self, in_place=True):
        super().__init__()
        self.stem, self.in_place = torch.nn.ModuleList([torch.nn.Linear(64, 64) for _ in range(4)]), in_place
        self.up, self.down = torch.nn.Linear(64, 512), torch.nn.Linear(512, 64)

    def forward(self, x):
        parts = [layer(x) for layer in self.stem]
        torch._dynamo.graph_break()
        more = self.down(torch.tanh(self.up(x)))
        if self.in_place:
            for part in parts:
                part += more
        else:
            parts = [part + more for part in parts]
        torch._dynamo.graph_break()
        return sum(part.pow(2).mean() for part in parts)


def measured(step, parameters=()):
    """Returns the peak in bytes while ``step()`` runs, minus the gradients of parameters that it leaves."""
    gc.collect()  # memory of earlier tests that is freed during the step would make the peak look lower
    with cairn.torch.MemoryTrace() as trace:
        step()
    grads = {p.grad.untyped_storage().data_ptr() for p in parameters if p.grad is not None}
    return trace.at_peak(grads)[0]
