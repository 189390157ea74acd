"""Contains the parts that hunt_models.py composes. Each part takes a tensor of shape (batch, length, WIDTH), and
returns a tensor of this shape.

A family of parts is a class, and each of its methods is a kind of part. The length is the square of ``side``, so that
the tensor can be viewed as a batch of images.
"""

import torch
import torch.nn.functional as F
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_op
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.nn.attention.flex_attention import flex_attention

import hunt_ops as ops

WIDTH = 24


def like(x, stacked):
    """Returns a result that scan has stacked, in the shape (batch, length, WIDTH) of ``x``. Different versions of torch
    stack along different dimensions."""
    return stacked if stacked.shape[0] == x.shape[0] else stacked.transpose(0, 1)


class Part(torch.nn.Module):
    """The base class of all parts. ``kind``: name of the method that computes the part. ``draw``: a random.Random.
    MODULES: kind -> function that makes a further module for parts of this kind. All parts have a layer, a scale and a
    buffer."""

    MODULES = {}
    HIDDEN = ("__init__", "forward")

    def __init__(self, kind, draw, side):
        super().__init__()
        self.kind, self.side = kind, side
        self.lin = torch.nn.Linear(WIDTH, WIDTH)
        self.scale = torch.nn.Parameter(1 + 0.1 * torch.randn(WIDTH))
        self.register_buffer("mean", torch.zeros(WIDTH))
        self.p = draw.choice([0.1, 0.3, 0.5])
        self.inner = self.MODULES[kind]() if kind in self.MODULES else None

    @classmethod
    def draw_kind(cls, draw):
        return draw.choice(sorted(name for name in vars(cls) if callable(vars(cls)[name]) and name[0] != "_"
                                  and name not in cls.HIDDEN))

    def forward(self, x):
        return getattr(self, self.kind)(x)


class Common(Part):
    MODULES = {
        "mlp": lambda: torch.nn.ModuleList([torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, 3 * WIDTH),
                                            torch.nn.Linear(3 * WIDTH, WIDTH)]),
        "attention": lambda: torch.nn.Linear(WIDTH, 3 * WIDTH),
        "attention_by_hand": lambda: torch.nn.Linear(WIDTH, 3 * WIDTH),
        "attention_module": lambda: torch.nn.MultiheadAttention(WIDTH, 4, 0.2, batch_first=True),
        "conv1d": lambda: torch.nn.Conv1d(WIDTH, WIDTH, 3, padding=1, groups=2),
        "encoder": lambda: torch.nn.TransformerEncoderLayer(WIDTH, 2, 48, 0.1, F.gelu, batch_first=True, norm_first=True),
    }

    def mlp(self, x):
        norm, up, down = self.inner
        return x + F.dropout(down(F.gelu(up(norm(x)))), self.p, self.training)

    def tied(self, x):
        return F.linear(torch.tanh(self.lin(x)), self.lin.weight.t(), self.scale)

    def elementwise(self, x):
        return torch.sin(x * self.scale).exp() - torch.sigmoid(x) * x.abs().sqrt().clamp(min=0.1)

    def norms(self, x):
        x = F.layer_norm(x, (WIDTH,), self.scale)
        return F.normalize(x, dim=1) + F.rms_norm(x, (WIDTH,), self.scale) + x / x.norm(dim=-1, keepdim=True)

    def _heads(self, x):
        return (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in self.inner(x).chunk(3, -1))

    def attention(self, x):
        q, k, v = self._heads(x)
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0.0)
        return x + mixed.transpose(1, 2).flatten(2)

    def attention_by_hand(self, x):
        q, k, v = self._heads(x)
        weights = (q @ k.transpose(-1, -2) / 3).masked_fill(torch.ones(x.shape[1], x.shape[1]).triu(1).bool(), -1e4)
        return x + (F.dropout(weights.softmax(-1), self.p, self.training) @ v).transpose(1, 2).reshape(x.shape)

    def attention_module(self, x):
        return x + self.inner(x, x, x)[0]

    def encoder(self, x):
        return self.inner(x)

    def conv1d(self, x):
        return F.silu(self.inner(x.transpose(1, 2))).transpose(1, 2)

    def autocast(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = F.dropout(F.gelu(self.lin(x)), self.p, self.training)
            return (y @ y.transpose(1, 2)).softmax(-1).to(x.dtype) @ x + self.lin(y).to(x.dtype)


class Custom(Part):
    """Parts with custom operations whose schemas and tags mention all their effects."""

    def bend(self, x):
        return ops.bend(self.lin(x)) + x

    def bend_twice(self, x):
        return ops.bend(ops.bend(x) * self.scale)

    def moments(self, x):
        centred, mean, top = ops.moments(x)
        return centred * self.scale + mean.tanh() + F.one_hot(top, WIDTH)

    def noise_tagged(self, x):
        return ops.noise_tagged(x) * self.scale

    def mask_tagged(self, x):
        return ops.mask_tagged(self.lin(x))[0] + x

    def noise_both_ways_tagged(self, x):
        return ops.noise_both_ways_tagged(self.lin(x)) + x

    def noise_permuted(self, x):
        return ops.noise_tagged(x.transpose(1, 2).sin()).transpose(1, 2) * self.scale

    def add_mean(self, x):
        ops.add_mean(x.detach(), self.mean)
        return x - self.mean * self.scale

    def shifted(self, x):
        return ops.compliant["shifted"](x, 0.3) * self.scale + ops.plain["shifted"](x.cos(), -0.2)

    def library_noise_tagged(self, x):
        return ops.compliant["noise_tagged"](x) * self.scale + ops.plain["noise_tagged"](x.cos())

    def composite(self, x):
        return ops.compliant["composite"](x) * self.scale + ops.plain["composite"](x.sin())


class Untold(Part):
    """Parts with custom operations that draw random numbers or have effects without mentioning it in a tag or a
    schema."""

    def noise(self, x):
        return ops.noise(x) * self.scale

    def mask(self, x):
        return ops.mask(self.lin(x))[0] + x

    def noise_both_ways(self, x):
        return ops.noise_both_ways(self.lin(x)) + x

    def logged(self, x):
        return ops.logged[0](self.lin(x)) * self.scale

    def logged_thrice(self, x):
        return ops.logged[0](x) * 0.3 + ops.logged[1](x * self.scale) * 0.3 + ops.logged[2](self.lin(x)) * 0.3

    def counted(self, x):
        return ops.counted(self.lin(x).tanh()) + x

    def only_log(self, x):
        ops.only_log(x.detach())
        return self.lin(x).tanh()

    def add_mean_logged(self, x):
        total = ops.add_mean_logged(x.detach(), self.mean)
        return x - self.mean * self.scale + total.tanh()

    def fill_noise(self, x):
        noise = x.detach() * 0.1
        ops.fill_noise(noise)
        return x * self.scale + noise

    def fill_buffer(self, x):
        ops.fill_noise(self.mean)
        return x * self.scale + self.mean

    def library_noise(self, x):
        return ops.compliant["noise"](x) * self.scale + ops.plain["noise"](x.cos())

    def library_logged(self, x):
        return ops.compliant["logged"](x) * self.scale + ops.plain["logged"](x.cos())


class Higher(Part):
    """Parts with higher-order operations, such as torch.cond, that draw no random numbers."""

    def cond(self, x):
        return torch.cond(x.sum() > 0, lambda a: torch.tanh(self.lin(a)), lambda a: self.lin(a).sin() * self.scale, (x,))

    def loop(self, x):
        return while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, torch.tanh(a * 1.1)), (torch.tensor(0), self.lin(x)))[1]

    def scan(self, x):
        def body(carry, a):
            return torch.tanh(carry + a), carry * a
        return like(x, scan(body, torch.zeros(x.shape[0], WIDTH, dtype=x.dtype), self.lin(x), dim=1)[1])

    def map(self, x):
        return map_op(lambda a, scale: torch.tanh(self.lin(a)) * scale, self.lin(x), self.scale)

    def associative(self, x):
        return associative_scan(lambda a, b: a * 0.5 + b, x, 1, combine_mode="generic") * self.scale

    def flex(self, x):
        heads = self.lin(x).detach().unflatten(-1, (2, -1)).transpose(1, 2)
        return x + flex_attention(heads, heads, heads).transpose(1, 2).flatten(2) * self.scale


class HigherRandom(Part):
    """Parts with higher-order operations, such as torch.cond, that draw random numbers."""

    def cond_dropout(self, x):
        return torch.cond(x.sum() > 0, lambda a: F.dropout(self.lin(a), 0.3), lambda a: F.dropout(a, 0.2) * self.scale, (x,))

    def cond_noise(self, x):
        return torch.cond(x.mean() > 0, lambda a: self.lin(a) + torch.randn_like(a), lambda a: self.lin(a).sin(), (x,))

    def scan_dropout(self, x):
        def body(carry, a):
            return torch.tanh(carry + F.dropout(a, 0.3)), carry * a
        return like(x, scan(body, torch.zeros(x.shape[0], WIDTH, dtype=x.dtype), self.lin(x), dim=1)[1])

    def map_dropout(self, x):
        return map_op(lambda a, scale: F.dropout(torch.tanh(self.lin(a)), 0.3) * scale, self.lin(x), self.scale)

    def loop_noise(self, x):
        return while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, torch.tanh(a) + 0.1 * torch.randn_like(a)),
                          (torch.tensor(0), self.lin(x)))[1]


class NoisyFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        mask = torch.rand_like(x) > 0.3
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0] + 0.01 * torch.randn_like(grad)


class BackwardNoise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return F.dropout(grad, 0.2, True)


class LoggedFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return ops.bend(x)

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return ops.bend(grad) * torch.cos(x) + ops.noise_tagged(grad) * 0.01


class Nested(Part):
    """Parts with checkpoints, and with functions that have their own backward pass."""

    def _body(self, x):
        return F.dropout(torch.relu(self.lin(x)), self.p, self.training) * self.scale

    def checkpoint(self, x):
        return torch.utils.checkpoint.checkpoint(lambda a: torch.tanh(self.lin(a)).exp() * self.scale, x, use_reentrant=False)

    def checkpoint_dropout(self, x):
        return torch.utils.checkpoint.checkpoint(self._body, x, use_reentrant=False, preserve_rng_state=True)

    def checkpoint_not_preserved(self, x):
        return torch.utils.checkpoint.checkpoint(self._body, x, use_reentrant=False, preserve_rng_state=False)

    def checkpoint_nested(self, x):
        def outer(a):
            return torch.utils.checkpoint.checkpoint(self._body, a.sin(), use_reentrant=False) + F.dropout(a, 0.1)
        return torch.utils.checkpoint.checkpoint(outer, x, use_reentrant=False)

    def noisy_function(self, x):
        return NoisyFunction.apply(self.lin(x)) + x

    def backward_noise(self, x):
        return BackwardNoise.apply(self.lin(x).tanh()) + x

    def custom_function(self, x):
        return LoggedFunction.apply(self.lin(x)) + x

    def no_grad(self, x):
        with torch.no_grad():
            y = F.dropout(self.lin(x), self.p, self.training)
        return x * self.scale + y.tanh()


class Views(Part):
    def expand(self, x):
        return (x.unsqueeze(1).expand(-1, 3, -1, -1) * self.scale).sin().mean(1)

    def expanded_dense(self, x):
        wide = self.lin(x).mean(1, keepdim=True).expand_as(x)
        return F.dropout(wide, self.p, self.training) * x.cos() + wide.sigmoid()

    def overlapping(self, x):
        batch, length, _ = x.shape
        flat = self.lin(x).contiguous()
        return torch.as_strided(flat, x.shape, (length * WIDTH, WIDTH // 2, 1)).exp().clamp(max=3)

    def as_strided_transposed(self, x):
        x = x.contiguous()
        return torch.as_strided(x, (x.shape[0], WIDTH, x.shape[1]), (x.stride(0), 1, WIDTH)).sin().transpose(1, 2) * self.scale

    def unfold(self, x):
        return x.unfold(1, 2, 1).softmax(-1).sum(-1).repeat(1, 2, 1)[:, :x.shape[1]] * self.scale

    def diagonal(self, x):
        y = self.lin(x)
        return x + y.diagonal(dim1=1, dim2=2).tanh().sum(-1)[:, None, None] + y.sin()

    def chain(self, x):
        y = self.lin(x)[:, :-1].transpose(0, 1)[1:].flip(0)[:, :, ::2]
        return x + y.sin().mean((0, 2))[:, None, None] + y.select(0, 1).narrow(1, 2, 3).exp().sum(1)[:, None, None] * 0.1

    def transposes(self, x):
        y = x.transpose(0, 2).transpose(1, 2).sigmoid()
        return (y * y.movedim(0, 1).transpose(0, 1).cos()).permute(1, 2, 0) * self.scale

    def complex(self, x):
        y = torch.view_as_complex(self.lin(x).float().unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(y * y.conj() + torch.exp(1j * y.real)).flatten(2).to(x.dtype)

    def unequal(self, x):
        a, b, c = x.split([5, 12, 7], -1)
        return torch.cat([c.sin(), a.cos(), (b * b).tanh()], -1) * self.scale

    def unbind(self, x):
        parts = self.lin(x).unbind(1)
        return torch.stack([p.tanh() if i % 2 else p for i, p in enumerate(parts[:4])], 1).mean(1, True) + x * self.scale

    def detached(self, x):
        y = self.lin(x)
        alias = y.detach()
        return y * torch.sigmoid(alias) + alias.view(-1).sin().view_as(x)

    def bits(self, x):
        y = x.detach().float().contiguous().view(torch.int32) & 0xFFFFF
        return x * self.scale + (y % 7).to(x.dtype) * 0.1


class InPlace(Part):
    def select(self, x):
        y = self.lin(x)
        y[:, 0].mul_(0.5)
        y[:, 1:3] += y[:, :1].tanh()
        return y.sin() * self.scale

    def diagonal_write(self, x):
        y = self.lin(x)
        y.diagonal(dim1=1, dim2=2).add_(1.0)
        return y.tanh() + x

    def index_put(self, x):
        y = self.lin(x)
        index = torch.tensor([0, 2, 0, 1])
        y.index_put_((torch.tensor([0, 0, 1, 1]), index), (x[0, :4] * self.scale).to(y.dtype), accumulate=True)
        return y.tanh()

    def masked(self, x):
        y = self.lin(x)
        y.masked_fill_(x > 1, 0.1).clamp_(-2, 2)
        return y * self.scale

    def copy_over(self, x):
        y = self.lin(x).sigmoid()
        z = y.clone()
        z[:, 1:].copy_(y[:, :-1])
        z[:, :2].copy_(z[:, 2:4].clone())
        return z + x * self.scale

    def copy_overlapping(self, x):
        y = self.lin(x)
        y[:, ::2].copy_(y[:, 1::2] * 0.5)
        y.view(-1)[:WIDTH].copy_(y.view(-1)[WIDTH // 2:WIDTH // 2 + WIDTH].clone())
        return y.cos()

    def through_detached(self, x):
        y = self.lin(x).sin()
        z = y * 2
        z.detach().mul_(0.5)
        return z.tanh() * self.scale + y

    def chained(self, x):
        y = self.lin(x)
        y.mul_(2.0).add_(x)
        y.view(-1)[::3].zero_()
        return F.relu(y - self.scale, inplace=True)

    def random_in_place(self, x):
        y = torch.empty_like(x).bernoulli_(0.7)
        z = torch.empty_like(x).uniform_(0.5, 1.0)
        z[:, ::2].normal_(1.0, 0.1)
        return x * y * self.scale + self.lin(x) * z

    def dropout_in_place(self, x):
        return F.dropout(self.lin(x), self.p, self.training, inplace=True).tanh()

    def scatter(self, x):
        y = torch.zeros_like(x).scatter_add_(1, (torch.arange(x.shape[1]) % 5)[None, :, None].expand_as(x),
                                               self.lin(x).to(x.dtype))
        return y.tanh() + x.index_add(1, torch.tensor([0, 1, 1]), (x[:, :3] * self.scale).to(x.dtype))

    def swap(self, x):
        y = self.lin(x)
        a, b = y[:, ::2], y[:, 1::2]
        kept = a.clone()
        a.copy_(b)
        b.copy_(kept)
        return y.sin()


class Buffers(Part):
    MODULES = {
        "batch_norm_cumulative": lambda: torch.nn.BatchNorm1d(WIDTH, momentum=None),
        "batch_norm_twice": lambda: torch.nn.BatchNorm1d(WIDTH),
        "instance_norm": lambda: torch.nn.InstanceNorm1d(WIDTH, affine=True, track_running_stats=True),
        "spectral": lambda: torch.nn.utils.spectral_norm(torch.nn.Linear(WIDTH, WIDTH)),
        "spectral_parametrized": lambda: torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(WIDTH, WIDTH)),
        "ring": lambda: Ring(),
    }

    def read_after_write(self, x):
        self.mean.mul_(0.9).add_(x.detach().mean((0, 1)), alpha=0.1)
        y = self.lin(x - self.mean).tanh()
        self.mean.add_(0.01)
        return y * self.mean.cos()

    def read_before_write(self, x):
        y = self.lin(x * (self.mean + 1)).tanh()
        self.mean.lerp_(y.detach().mean((0, 1)), 0.1)
        return y

    def view_of_buffer(self, x):
        self.mean.view(4, 6)[1:3].add_(x.detach().mean((0, 1)).view(4, 6)[:2])
        self.mean[::2].mul_(0.5)
        return x * self.scale + self.mean.tanh()

    def assigned(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.detach().amax((0, 1))
        return torch.tanh(self.lin(x)) * self.mean.sin() + x

    def noise_into(self, x):
        self.mean.normal_().mul_(0.1)
        return x + self.mean * self.scale

    def ring(self, x):
        return self.inner(x)

    def batch_norm_cumulative(self, x):
        return self.inner(x.transpose(1, 2)).transpose(1, 2)

    def batch_norm_twice(self, x):
        return x * self.scale + self.inner(torch.tanh(self.inner(x.detach().transpose(1, 2).contiguous()))).transpose(1, 2)

    def instance_norm(self, x):
        return x * self.scale + F.gelu(self.inner(x.detach().transpose(1, 2))).transpose(1, 2)

    def spectral(self, x):
        return self.inner(x).tanh() + x

    def spectral_parametrized(self, x):
        return self.inner(self.inner(x).tanh()) + x


class Ring(torch.nn.Module):
    """Subtracts a moving average from its input: the mean over the last four steps. The means of these steps are stored
    in a ring buffer, and ``next`` counts the steps."""

    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(4, WIDTH))
        self.register_buffer("next", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.kept.index_copy_(0, (self.next % 4).view(1), x.detach().mean((0, 1))[None])
        self.next += 1
        return x - self.kept.mean(0)


class Draws(Part):
    """Parts with random operations of all kinds."""

    def dropout_none(self, x):
        return F.dropout(self.lin(x), 0.0, True).sin()

    def dropout_all(self, x):
        return F.dropout(self.lin(x), 1.0, True) + x * self.scale

    def dropouts(self, x):
        y = F.alpha_dropout(self.lin(x), self.p, True)
        return F.feature_alpha_dropout(y, 0.2, True) + F.dropout1d(x, 0.2, True)

    def permuted_likes(self, x):
        y = self.lin(x).transpose(1, 2).sigmoid()
        return (y + torch.rand_like(y) + torch.randint_like(y, 3) + torch.bernoulli(y)).transpose(1, 2) * self.scale

    def expanded_likes(self, x):
        y = self.lin(x)[:, :1].expand_as(x)
        return x + torch.randn_like(y) * torch.rand_like(x[:, :1]).expand_as(x) * self.scale

    def normal(self, x):
        y = self.lin(x)
        noise = torch.normal(y.detach().transpose(1, 2), 0.1).transpose(1, 2)
        return y + noise * self.scale + torch.normal(0.0, 1.0, (WIDTH,))

    def multinomial(self, x):
        rows = self.lin(x).flatten(0, 1).softmax(0).t()
        picked = torch.multinomial(rows, 4, replacement=True)
        alone = torch.multinomial(rows.detach().contiguous().t()[:, ::2], 1)
        return x * self.scale + rows.gather(1, picked).sum(1) + alone.view(x.shape[:2])[..., None] * 0.01

    def rrelu(self, x):
        return F.rrelu(self.lin(x), training=True)

    def gumbel(self, x):
        return F.gumbel_softmax(self.lin(x), hard=True) * x + self.scale

    def distributions(self, x):
        y = torch.empty_like(x).exponential_() + torch.empty_like(x).geometric_(0.5) + torch.empty_like(x).log_normal_()
        return x * self.scale + y.tanh() * torch.poisson(x.detach().abs().clamp(max=3)) * 0.1

    def permutation(self, x):
        return x[:, torch.randperm(x.shape[1])] * self.scale + torch.rand(()) + torch.randint(0, 3, (WIDTH,))

    def normal_distribution(self, x):
        return x + torch.distributions.Normal(self.lin(x).tanh(), 0.1 + self.scale.exp()).rsample()

    def same_twice(self, x):
        return F.dropout(x, self.p, True) * self.scale + F.dropout(x, self.p, True)

    def in_backward_only(self, x):
        return torch.where(torch.rand_like(x) > 0.5, x * self.scale, self.lin(x))

    def unused(self, x):
        torch.randn_like(x)
        return self.lin(x).sin()


class Index(Part):
    MODULES = {
        "bag": lambda: torch.nn.EmbeddingBag(20, WIDTH, mode="max"),
        "embedding": lambda: torch.nn.Embedding(20, WIDTH, max_norm=1.0),
        "embedding_padded": lambda: torch.nn.Embedding(20, WIDTH, padding_idx=3, scale_grad_by_freq=True),
        "embedding_twice": lambda: torch.nn.Embedding(20, WIDTH, max_norm=1.0),
    }

    def _codes(self, x):
        return (x.detach().abs().sum(-1) * 7).long() % 20

    def embedding(self, x):
        return x + self.inner(self._codes(x)) * self.scale

    def embedding_twice(self, x):
        y = x + self.inner(self._codes(x))
        return y.sin() + self.inner(self._codes(y)) @ self.lin.weight

    def embedding_padded(self, x):
        return x * self.scale + self.inner(self._codes(x))

    def bag(self, x):
        return x * self.scale + self.inner(self._codes(x))[:, None]

    def topk(self, x):
        top, index = self.lin(x).topk(WIDTH // 2, -1)
        return torch.cat([top, torch.gather(x, -1, index)], -1)

    def sort(self, x):
        values, order = self.lin(x).sort(dim=1, stable=True)
        return values * self.scale + x.gather(1, order)

    def cumulative(self, x):
        values, index = x.tanh().cummax(1)
        return values * self.scale + self.lin(x).cumsum(1) * 0.05 + index.to(x.dtype) * 0.01

    def var_mean(self, x):
        var, mean = torch.var_mean(self.lin(x), -1, keepdim=True)
        return (x - mean) / (var + 1e-2).sqrt() * self.scale

    def scatter_reduce(self, x):
        index = self._codes(x)[..., None].expand_as(x) % x.shape[1]
        return x + self.lin(x).scatter_reduce(1, index, x, "amax") * self.scale

    def put_along(self, x):
        return x.index_select(1, self._codes(x)[0] % x.shape[1]) * self.scale + torch.take_along_dim(
            self.lin(x), self._codes(x)[..., None] % WIDTH, -1)

    def kthvalue(self, x):
        return x + self.lin(x).kthvalue(3, 1, keepdim=True)[0] * self.scale + x.median(1, keepdim=True)[0]


class Networks(Part):
    MODULES = {
        "gru": lambda: torch.nn.GRU(WIDTH, WIDTH // 2, 2, dropout=0.2, bidirectional=True, batch_first=True),
        "lstm": lambda: torch.nn.LSTM(WIDTH, WIDTH, 2, dropout=0.2, batch_first=True),
        "weight_norm": lambda: torch.nn.utils.weight_norm(torch.nn.Linear(WIDTH, WIDTH)),
        "weight_parametrized": lambda: torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(WIDTH, WIDTH)),
        "bilinear": lambda: torch.nn.Bilinear(6, 6, WIDTH),
        "cell": lambda: torch.nn.GRUCell(WIDTH, WIDTH),
    }

    def gru(self, x):
        return self.inner(x)[0] + x

    def lstm(self, x):
        y, (h, _) = self.inner(x)
        return y + h[-1][:, None].sin()

    def cell(self, x):
        h = torch.zeros_like(x[:, 0])
        for step in range(4):
            h = self.inner(F.dropout(x[:, step], self.p, self.training), h)
        return x + h[:, None]

    def weight_norm(self, x):
        return self.inner(x).tanh() + x

    def weight_parametrized(self, x):
        return self.inner(self.inner(x).sin()) + x

    def bilinear(self, x):
        return x + self.inner(x[..., :6].contiguous(), x[..., 6:12].contiguous()).tanh()

    def linalg(self, x):
        gram = x.transpose(1, 2) @ x / x.shape[1] + 2 * torch.eye(WIDTH, dtype=x.dtype)
        return torch.linalg.solve(gram.float(), x.float().transpose(1, 2)).transpose(1, 2).to(x.dtype) * self.scale


class Breaks(Part):
    """Parts that cause graph breaks."""

    def graph_break(self, x):
        y = self.lin(x)
        torch._dynamo.graph_break()
        return F.dropout(torch.tanh(y), self.p, self.training)

    def number(self, x):
        return self.lin(x).sin() * (1.0 if x.detach().mean().item() > 0 else 0.5)

    def generator(self, x):
        return x * self.scale + torch.randn(x.shape, generator=self.source)

    def generator_in_place(self, x):
        return self.lin(x).tanh() * torch.empty_like(x).bernoulli_(0.7, generator=self.source)

    def __init__(self, kind, draw, side):
        super().__init__(kind, draw, side)
        self.source = torch.Generator().manual_seed(5) if kind.startswith("generator") else None
