"""Makes random modules with convolutions, norms, attention, dropout, views, in-place operations, several outputs,
shared weights and graph breaks. A seed determines the same module on every machine."""

import random

import torch
import torch.nn.functional as F

WIDTH = 24


class Shared(torch.nn.Module):
    """A layer that uses the transposed weight of another layer."""

    def __init__(self, draw):
        super().__init__()
        self.there = torch.nn.Linear(WIDTH, 2 * WIDTH)
        self.bias = torch.nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x):
        return F.linear(torch.tanh(self.there(x)), self.there.weight.t(), self.bias)


class Attention(torch.nn.Module):
    def __init__(self, draw):
        super().__init__()
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.heads = draw.choice([1, 2, 4])
        self.dropout = draw.choice([0.0, 0.2])
        self.by_hand = draw.random() < 0.5

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (t.reshape(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        if self.by_hand:
            weights = F.dropout(torch.softmax(q @ k.transpose(-1, -2) / 3, -1), self.dropout, self.training)
            mixed = weights @ v
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0)
        return x + mixed.transpose(1, 2).reshape(batch, length, WIDTH)


class Convolution(torch.nn.Module):
    def __init__(self, draw):
        super().__init__()
        kind = draw.choice(["batch", "group", "instance", "none"])
        self.conv = torch.nn.Conv1d(WIDTH, WIDTH, 3, padding=1, groups=draw.choice([1, 1, 2]))
        self.norm = {"batch": lambda: torch.nn.BatchNorm1d(WIDTH), "group": lambda: torch.nn.GroupNorm(4, WIDTH),
                     "instance": lambda: torch.nn.InstanceNorm1d(WIDTH, affine=True), "none": torch.nn.Identity}[kind]()
        self.act = draw.choice([torch.relu, F.gelu, F.silu, torch.sigmoid])

    def forward(self, x):
        return self.act(self.norm(self.conv(x.transpose(1, 2)))).transpose(1, 2)


class Mlp(torch.nn.Module):
    def __init__(self, draw):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(3 * WIDTH, WIDTH)
        self.drop = draw.choice([torch.nn.Dropout(0.1), torch.nn.AlphaDropout(0.1), torch.nn.Identity()])

    def forward(self, x):
        return x + self.drop(self.down(F.gelu(self.up(self.norm(x)))))


class InPlace(torch.nn.Module):
    """A layer with in-place operations on intermediate results and on a buffer."""

    def __init__(self, draw):
        super().__init__()
        self.register_buffer("mean", torch.zeros(WIDTH))
        self.update = draw.random() < 0.5
        self.lin = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = self.lin(x)
        y.mul_(2.0).add_(x)
        y[:, 0] = y[:, 0] * 0.5
        if self.update and self.training:
            self.mean.mul_(0.9).add_(y.detach().mean((0, 1)), alpha=0.1)
        return F.relu(y - self.mean, inplace=True)


class Views(torch.nn.Module):
    def __init__(self, draw):
        super().__init__()
        self.kind = draw.randrange(5)
        self.weight = torch.nn.Parameter(torch.randn(WIDTH) * 0.1 + 1)

    def forward(self, x):
        if self.kind == 0:
            a, b = x.split([WIDTH // 3, WIDTH - WIDTH // 3], -1)
            return torch.cat([b.sin(), a.cos()], -1) * self.weight
        if self.kind == 1:
            return (x.unfold(1, 2, 1).sum(-1).repeat(1, 2, 1)[:, :x.shape[1]]) * self.weight
        if self.kind == 2:
            return (x.unsqueeze(1).expand(-1, 3, -1, -1) * self.weight).mean(1).flip(1)
        if self.kind == 3:
            return torch.stack([t * self.weight for t in x.unbind(1)], 1).contiguous()
        return torch.as_strided(x.contiguous(), x.shape, x.contiguous().stride()).exp().clamp(max=4) * self.weight


class Several(torch.nn.Module):
    """A layer with operations that have several outputs, some of which are not used."""

    def __init__(self, draw):
        super().__init__()
        self.kind = draw.randrange(3)
        self.lin = torch.nn.Linear(WIDTH, WIDTH)
        self.cell = torch.nn.GRU(WIDTH, WIDTH, batch_first=True) if self.kind == 2 else None

    def forward(self, x):
        if self.kind == 0:
            top, index = self.lin(x).topk(WIDTH // 2, -1)
            return torch.cat([top, torch.gather(x, -1, index)], -1)
        if self.kind == 1:
            values, _ = self.lin(x).sort(-1)
            var, mean = torch.var_mean(values, -1, keepdim=True)
            return (values - mean) / (var + 1e-3).sqrt()
        return self.cell(x)[0]


class Noise(torch.nn.Module):
    def __init__(self, draw):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(0.1))

    def forward(self, x):
        return x + self.scale * torch.randn_like(x) * torch.bernoulli(torch.full_like(x, 0.5))


class Break(torch.nn.Module):
    """A layer with a graph break in the middle."""

    def __init__(self, draw):
        super().__init__()
        self.lin = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = self.lin(x)
        torch._dynamo.graph_break()
        return torch.tanh(y)


PARTS = [Shared, Attention, Convolution, Mlp, InPlace, Views, Several, Noise, Break]


class RandomModel(torch.nn.Module):
    """A chain of parts with skip connections. It returns its loss, which is a number, and in some models a second
    output."""

    def __init__(self, seed):
        super().__init__()
        draw = random.Random(seed)
        torch.manual_seed(seed)
        count = draw.randint(3, 9)
        kinds = [draw.choice(PARTS) for _ in range(count)]
        self.parts = torch.nn.ModuleList(kind(draw) for kind in kinds)
        if draw.random() < 0.3:  # appends one of the modules once more, so that it is used twice
            self.parts.append(self.parts[draw.randrange(count)])
        self.skips = [draw.randrange(i + 1) if draw.random() < 0.3 else None for i in range(len(self.parts))]
        self.two_outputs = draw.random() < 0.3
        self.head = torch.nn.Linear(WIDTH, 7)
        self.batch, self.length = draw.randint(2, 4), draw.randint(5, 12)

    def forward(self, x, targets):
        seen = [x]
        for part, skip in zip(self.parts, self.skips):
            x = part(x)
            if skip is not None:
                x = x + seen[skip]
            seen.append(x)
        loss = F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())
        return (loss, x.mean(1)) if self.two_outputs else loss

    def inputs(self):
        return torch.randn(self.batch, self.length, WIDTH), torch.randint(0, 7, (self.batch, self.length))


def loss_of(out):
    return out[0] + out[1].square().mean() if isinstance(out, tuple) else out
