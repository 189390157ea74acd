"""Models for comparisons with PyTorch: those of the tables in this folder, and Cairn's own.

build("gpt-6") is a Case of the tables: small to middle, seeded, the same on every run. Models of `transformers` and
`timm` are made from their configurations, without weights. `python bench/torch/models.py` lists all.
build_cairn("gpt2", options) is a Case of models/*.cpp: the same layers, widths, initial distributions and loss.
"""

import dataclasses
import functools
import importlib.util
import math
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Absent(Exception):
    """A package that a model needs is not installed."""


@dataclasses.dataclass
class Case:
    """`model(*inputs)` is the loss of one training step; `blocks` are names of submodules, to be checkpointed."""

    model: nn.Module
    inputs: tuple
    blocks: list = None

    def __post_init__(self):
        if self.blocks is None:
            self.blocks = [f"blocks.{i}" for i in range(len(self.model.blocks))]


class Model(nn.Module):
    """begin(*inputs) makes a state, each of `blocks` changes it, and end(targets, *state) is the loss.

    A state is a tensor or a tuple of tensors. `dropout` says whether the model draws random numbers.
    """

    def __init__(self, dropout=0.0):
        super().__init__()
        self.random = dropout > 0

    def begin(self, *inputs):
        return inputs

    def forward(self, *inputs, segment=0):
        """The loss; with `segment` > 0 that many consecutive blocks are checkpointed as one."""
        *inputs, targets = inputs
        state = self.begin(*inputs)
        if segment == 0:
            state = through(self.blocks, state)
        else:
            for first in range(0, len(self.blocks), segment):
                # Where nothing is drawn, the state of the random numbers need not be kept.
                state = checkpoint(through, self.blocks[first:first + segment], state, use_reentrant=False,
                                   preserve_rng_state=self.random)
        return self.end(targets, *several(state))


def several(state):
    return state if isinstance(state, tuple) else (state,)


def through(blocks, state):
    for block in blocks:
        state = block(*several(state))
    return state


# --- Transformers


@functools.cache
def later_positions(tokens, device):
    return torch.ones(tokens, tokens, dtype=torch.bool, device=device).triu(1)


class Attention(nn.Module):
    """`fused`: one product makes queries, keys and values. `sdpa`: torch's kernel, else matmul, softmax, matmul."""

    def __init__(self, width, heads, causal=False, dropout=0.0, fused=True, sdpa=True):
        super().__init__()
        self.heads, self.causal, self.dropout, self.fused, self.sdpa = heads, causal, dropout, fused, sdpa
        if fused:
            self.qkv = nn.Linear(width, 3 * width)
        else:
            self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def split(self, x, memory):
        batch, length, _ = x.shape
        if self.fused:
            return self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        memory = x if memory is None else memory
        return (part(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                for part, y in ((self.query, x), (self.key, memory), (self.value, memory)))

    def forward(self, x, memory=None, mask=None):
        query, key, value = self.split(x, memory)
        dropout = self.dropout if self.training else 0.0
        if self.sdpa:
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=self.causal,
                                                   dropout_p=dropout)
        else:
            scores = (query * query.shape[-1]**-0.5) @ key.transpose(-1, -2)
            if self.causal:
                scores.masked_fill_(later_positions(x.shape[1], x.device), -math.inf)
            mixed = F.dropout(scores.softmax(-1), dropout) @ value
        return self.out(mixed.transpose(1, 2).flatten(2))


class FeedForward(nn.Sequential):
    def __init__(self, width, hidden, activation=None):
        super().__init__(nn.Linear(width, hidden), activation or nn.GELU(), nn.Linear(hidden, width))


class Block(nn.Module):
    """Norm first, as in GPT-2 and ViT."""

    def __init__(self, width, mixing, feed_forward, dropout=0.0):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixing, self.feed_forward, self.drop = mixing, feed_forward, nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.drop(self.mixing(self.norm1(x)))
        return x + self.drop(self.feed_forward(self.norm2(x)))


class SumFirst(nn.Module):
    """Norms after the sums, as in BERT and the first transformer."""

    def __init__(self, width, attention, feed_forward, dropout):
        super().__init__()
        self.attention, self.feed_forward, self.drop = attention, feed_forward, nn.Dropout(dropout)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def attend(self, x, mask=None):
        return self.norm1(x + self.drop(self.attention(x, mask=mask)))

    def feed(self, x):
        return self.norm2(x + self.drop(self.feed_forward(x)))


class Gpt(Model):
    """The embedding's weight is the head's, too. `experts` > 0: every second block has that many feed-forward parts."""

    def __init__(self, layers, width, heads, vocabulary, length, dropout, experts=0, gelu="none", **attention):
        super().__init__(dropout)
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        for embedding in (self.tokens, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            Block(width, Attention(width, heads, True, dropout, **attention), Experts(width, experts)
                  if experts and i % 2 else FeedForward(width, 4 * width, nn.GELU(gelu)), dropout)
            for i in range(layers))
        self.norm = nn.LayerNorm(width)

    def begin(self, tokens):
        return self.drop(self.tokens(tokens) + self.positions.weight[:tokens.shape[1]])

    def end(self, targets, x):
        return F.cross_entropy(F.linear(self.norm(x), self.tokens.weight).flatten(0, 1), targets.flatten())


def next_tokens(vocabulary, batch, length):
    tokens = torch.randint(0, vocabulary, (batch, length + 1))
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def gpt(layers, width, heads, batch, length, dropout=0.1, vocabulary=1000, experts=0):
    return Case(Gpt(layers, width, heads, vocabulary, length, dropout, experts), next_tokens(vocabulary, batch, length))


class Experts(nn.Module):
    """A mixture of experts: each token goes to its two best, if those have room (shapes do not depend on data)."""

    def __init__(self, width, experts, best=2, room=1.25):
        super().__init__()
        self.best, self.room = best, room
        self.router = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) * width**-0.5)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) * (2 * width)**-0.5)

    def forward(self, x):
        flat = x.flatten(0, 1)
        count, experts = flat.shape[0], self.up.shape[0]
        places = int(self.room * self.best * count / experts)
        weights, chosen = self.router(flat).softmax(-1).topk(self.best)
        weights = weights / weights.sum(-1, keepdim=True)
        taken = F.one_hot(chosen.T.flatten(), experts)  # first choices first
        place = (taken.cumsum(0) - 1).gather(1, chosen.T.reshape(-1, 1)).squeeze(1)
        fits = place < places
        slot = torch.where(fits, chosen.T.flatten() * places + place, experts * places)
        rows = torch.arange(count, device=x.device).repeat(self.best)
        sent = flat.new_zeros(experts * places + 1, flat.shape[1]).index_add(0, slot, flat[rows] * fits[:, None])
        hidden = F.gelu(torch.bmm(sent[:-1].view(experts, places, -1), self.up))
        back = F.pad(torch.bmm(hidden, self.down).flatten(0, 1), (0, 0, 0, 1))
        mixed = (back[slot] * weights.T.reshape(-1, 1)).view(self.best, count, -1).sum(0)
        return mixed.view_as(x)


class BertBlock(SumFirst):
    def forward(self, x, mask):
        return self.feed(self.attend(x, mask)), mask


class Bert(Model):
    """An encoder with norms after its sums and a mask of padding, trained on masked tokens."""

    def __init__(self, layers, width, heads, vocabulary, length, dropout):
        super().__init__(dropout)
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(dropout)
        self.blocks = nn.ModuleList(BertBlock(width, Attention(width, heads, False, dropout),
                                              FeedForward(width, 4 * width), dropout) for _ in range(layers))
        self.transform, self.head = nn.Linear(width, width), nn.Linear(width, vocabulary)

    def begin(self, tokens, lengths):
        mask = (torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None])[:, None, None, :]
        return self.drop(self.norm(self.tokens(tokens) + self.positions.weight[:tokens.shape[1]])), mask

    def end(self, targets, x, _):
        logits = self.head(F.gelu(self.transform(x))).flatten(0, 1)
        return F.cross_entropy(logits, targets.flatten(), ignore_index=-100)


def bert(layers=6, width=256, heads=4, batch=8, length=128, vocabulary=1000, dropout=0.1):
    tokens = torch.randint(0, vocabulary, (batch, length))
    targets = torch.where(torch.rand(batch, length) < 0.15, tokens, -100)
    lengths = torch.randint(length // 2, length + 1, (batch,))
    return Case(Bert(layers, width, heads, vocabulary, length, dropout), (tokens, lengths, targets))


class Llama(Model):
    """RMS norms, rotary positions, grouped keys and values, gated feed-forward parts; no dropout."""

    def __init__(self, layers, width, heads, key_heads, hidden, vocabulary, theta=500000.0):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, key_heads, hidden) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width, eps=1e-5), nn.Linear(width, vocabulary, bias=False)
        self.angles = theta, width // heads

    def begin(self, tokens):
        theta, size = self.angles
        frequencies = theta ** (-torch.arange(0, size, 2, device=tokens.device, dtype=torch.float32) / size)
        angles = torch.outer(torch.arange(tokens.shape[1], device=tokens.device, dtype=torch.float32), frequencies)
        x = self.tokens(tokens)
        rotation = torch.cat((angles, angles), -1)
        return x, rotation.cos().to(x.dtype), rotation.sin().to(x.dtype)

    def end(self, targets, x, _cosine, _sine):
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1).float(), targets.flatten())


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, key_heads, hidden):
        super().__init__()
        self.heads, self.key_heads, size = heads, key_heads, width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.query, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.key, self.value = (nn.Linear(width, key_heads * size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, cosine, sine):
        batch, length, width = x.shape
        y = self.norm1(x)
        query, key, value = (part(y).view(batch, length, heads, -1).transpose(1, 2) for part, heads in
                             ((self.query, self.heads), (self.key, self.key_heads), (self.value, self.key_heads)))
        mixed = F.scaled_dot_product_attention(rotate(query, cosine, sine), rotate(key, cosine, sine), value,
                                               is_causal=True, enable_gqa=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), cosine, sine


def rotate(x, cosine, sine):
    one, other = x.chunk(2, -1)
    return x * cosine + torch.cat((-other, one), -1) * sine


def llama(layers=4, width=256, heads=8, key_heads=2, hidden=704, vocabulary=1000, batch=4, length=128):
    return Case(Llama(layers, width, heads, key_heads, hidden, vocabulary), next_tokens(vocabulary, batch, length))


class EncoderLayer(SumFirst):
    def forward(self, memory, y):
        return self.feed(self.attend(memory)), y


class DecoderLayer(SumFirst):
    def __init__(self, width, attention, cross, feed_forward, dropout):
        super().__init__(width, attention, feed_forward, dropout)
        self.cross, self.norm3 = cross, nn.LayerNorm(width)

    def forward(self, memory, y):
        y = self.attend(y)
        return memory, self.feed(self.norm3(y + self.drop(self.cross(y, memory))))


def sinusoid(tokens, width):
    position = torch.arange(tokens, dtype=torch.float64)[:, None]
    channel = torch.arange(width)
    angle = position / 10000.0 ** ((channel // 2 * 2).double() / width)
    return torch.where(channel % 2 == 0, angle.sin(), angle.cos()).float()


class Transformer(Model):
    """Encoder and decoder of Vaswani et al. 2017; one table is both embeddings and, scaled, the output matrix."""

    def __init__(self, layers, width, heads, hidden, vocabulary, length, dropout, sdpa):
        super().__init__(dropout)
        self.tokens, self.drop = nn.Embedding(vocabulary, width), nn.Dropout(dropout)
        self.register_buffer("positions", sinusoid(length, width), persistent=False)

        def attention(causal):
            return Attention(width, heads, causal, fused=False, sdpa=sdpa)

        def feed_forward():
            return FeedForward(width, hidden, nn.ReLU(inplace=True))

        self.blocks = nn.ModuleList(EncoderLayer(width, attention(False), feed_forward(), dropout)
                                    for _ in range(layers))
        self.blocks.extend(DecoderLayer(width, attention(True), attention(False), feed_forward(), dropout)
                           for _ in range(layers))

    def begin(self, source, target):
        return tuple(self.drop(self.tokens(ids) + self.positions) for ids in (source, target))

    def end(self, targets, _, y):
        logits = F.linear(y * y.shape[-1]**-0.5, self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


# --- Images


class Vit(Model):
    def __init__(self, layers, width, heads, image, patch, classes, dropout):
        super().__init__(dropout)
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(0.02 * torch.randn(1, (image // patch)**2 + 1, width))
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, Attention(width, heads, False, dropout), FeedForward(width, 4 * width),
                                          dropout) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def begin(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        return self.drop(torch.cat((self.first.expand(x.shape[0], -1, -1), x), 1) + self.positions)

    def end(self, targets, x):
        return F.cross_entropy(self.head(self.norm(x)[:, 0]), targets)


def images(batch, size, classes, of_pixels=False):
    return torch.randn(batch, 3, size, size), torch.randint(0, classes, (batch, size, size) if of_pixels else (batch,))


def vit(layers=8, width=192, heads=3, batch=8, image=64, patch=8, classes=100, dropout=0.1):
    return Case(Vit(layers, width, heads, image, patch, classes, dropout), images(batch, image, classes))


class AcrossTokens(FeedForward):
    def forward(self, x):
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class MlpMixer(Model):
    def __init__(self, layers, width, image, patch, token_hidden, channel_hidden, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        tokens = (image // patch)**2
        self.blocks = nn.ModuleList(Block(width, AcrossTokens(tokens, token_hidden, nn.GELU("tanh")),
                                          FeedForward(width, channel_hidden, nn.GELU("tanh"))) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def begin(self, images):
        return self.patches(images).flatten(2).transpose(1, 2)

    def end(self, targets, x):
        return F.cross_entropy(self.head(self.norm(x).mean(1)), targets)


def conv_norm(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs)


class Residual(nn.Module):
    """Two 3x3 convolutions where `basic`, else a bottleneck with its stride in the 3x3 convolution."""

    def __init__(self, basic, inputs, width, stride):
        super().__init__()
        relu, outputs = nn.ReLU(inplace=True), width if basic else 4 * width
        if basic:
            self.convs = nn.Sequential(*conv_norm(inputs, width, 3, stride), relu, *conv_norm(width, width, 3))
        else:
            self.convs = nn.Sequential(*conv_norm(inputs, width, 1), relu, *conv_norm(width, width, 3, stride), relu,
                                       *conv_norm(width, outputs, 1))
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(*conv_norm(inputs, outputs, 1, stride))

    def forward(self, x):
        y = self.convs(x)
        y += self.shortcut(x)
        return F.relu_(y)


RESNET_DEPTHS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3),
                 200: (3, 24, 36, 3)}


class ResNet(Model):
    """The first block is the stem."""

    def __init__(self, layers, classes, width=64):
        super().__init__()
        basic, inputs = layers < 50, width
        self.blocks = nn.ModuleList(
            [nn.Sequential(*conv_norm(3, width, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))])
        for stage, depth in enumerate(RESNET_DEPTHS[layers]):
            for i in range(depth):
                self.blocks.append(Residual(basic, inputs, width << stage, 2 if stage and i == 0 else 1))
                inputs = (width if basic else 4 * width) << stage
        self.head = nn.Linear(inputs, classes)

    def end(self, targets, x):
        return F.cross_entropy(self.head(x.mean((2, 3))), targets)


def resnet50(batch=4, image=96, classes=100):
    return Case(ResNet(50, classes), images(batch, image, classes), [f"blocks.{i}" for i in range(1, 17)])


def double_conv(inputs, outputs):
    relu = nn.ReLU(inplace=True)
    return nn.Sequential(*conv_norm(inputs, outputs, 3), relu, *conv_norm(outputs, outputs, 3), relu)


class UNet(Model):
    """Long skips: what the way down makes is read on the way up, by transposed convolutions."""

    def __init__(self, width, depth, classes):
        super().__init__()
        widths = [width << i for i in range(depth + 1)]
        self.down = nn.ModuleList(double_conv(i, o) for i, o in zip([3] + widths, widths))
        self.wider = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths[:-1]))
        self.up = nn.ModuleList(double_conv(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x, targets):
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        skips.pop()
        for wider, block in zip(self.wider, self.up):
            x = block(torch.cat((wider(x), skips.pop()), 1))
        return F.cross_entropy(self.head(x), targets)


def unet(width=16, depth=3, batch=4, image=64, classes=4):
    return Case(UNet(width, depth, classes), images(batch, image, classes, of_pixels=True),
                [f"down.{i}" for i in range(depth + 1)] + [f"up.{i}" for i in range(depth)])


class Level(nn.Module):
    """Of CairnUNet: x, then the skips that wait for the way up."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.convs = double_conv(inputs, outputs)

    def forward(self, x, *skips):
        return (self.convs(x), *skips)


class Down(Level):
    def forward(self, x, *skips):
        x = self.convs(x)
        return (F.max_pool2d(x, 2), *skips, x)


class Up(Level):
    def __init__(self, channels):
        super().__init__(2 * channels, channels)
        self.wider = nn.Conv2d(2 * channels, channels, 3, padding=1)

    def forward(self, x, *skips):
        x = self.wider(F.interpolate(x, scale_factor=2, mode="nearest"))
        return (self.convs(torch.cat((skips[-1], x), 1)), *skips[:-1])


class CairnUNet(Model):
    """The way up repeats pixels and has 3x3 convolutions; a level with its pooling is a block."""

    def __init__(self, width, depth, classes):
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.blocks = nn.ModuleList(Down(i, o) for i, o in zip([3] + widths, widths[:-1]))
        self.blocks.append(Level(widths[-2], widths[-1]))
        self.blocks.extend(Up(channels) for channels in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, classes, 1)

    def end(self, targets, x):
        logits = self.head(x).permute(0, 2, 3, 1)  # rows of classes, dense when channels-last
        return F.cross_entropy(logits.flatten(0, 2), targets.flatten())


# --- Others


class Ffn(Model):
    def __init__(self, layers, width, inputs, outputs):
        super().__init__()
        widths = [inputs] + [width] * (layers - 1)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(i, o), nn.ReLU(inplace=True))
                                    for i, o in zip(widths, widths[1:]))
        self.last = nn.Linear(widths[-1], outputs)

    def end(self, targets, x):
        return F.mse_loss(self.last(x), targets)


class LstmSegment(nn.Module):
    """Some time steps of a layered LSTM, written out: torch.compile leaves nn.LSTM alone."""

    def __init__(self, cells, drop):
        super().__init__()
        self.cells, self.drop = cells, drop

    def forward(self, xs, hidden, memory):
        outputs, hidden, memory = [], list(hidden.unbind()), list(memory.unbind())
        for x in xs.unbind(1):
            for i, cell in enumerate(self.cells):
                into, forget, new, out = cell(torch.cat((x, hidden[i]), -1)).chunk(4, -1)
                memory[i] = forget.sigmoid() * memory[i] + into.sigmoid() * new.tanh()
                hidden[i] = out.sigmoid() * memory[i].tanh()
                x = self.drop(hidden[i])
            outputs.append(x)
        return torch.stack(outputs, 1), torch.stack(hidden), torch.stack(memory)


class Lstm(Model):
    def __init__(self, layers, width, vocabulary, segments, dropout):
        super().__init__(dropout)
        self.tokens, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.cells = nn.ModuleList(nn.Linear(2 * width, 4 * width) for _ in range(layers))
        self.blocks = nn.ModuleList(LstmSegment(self.cells, nn.Dropout(dropout)) for _ in range(segments))

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        hidden = memory = x.new_zeros(len(self.cells), x.shape[0], x.shape[2])
        outputs = []
        for part, segment in zip(x.chunk(len(self.blocks), 1), self.blocks):
            y, hidden, memory = segment(part, hidden, memory)
            outputs.append(y)
        return F.cross_entropy(self.head(torch.cat(outputs, 1)).flatten(0, 1), targets.flatten())


def lstm(layers=2, width=192, batch=32, length=48, vocabulary=500, segments=6, dropout=0.1):
    return Case(Lstm(layers, width, vocabulary, segments, dropout), next_tokens(vocabulary, batch, length))


# --- Models of packages


class LossOf(nn.Module):
    """Of a model of `transformers`: the next token's, or a masked token's."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, targets):
        return F.cross_entropy(self.model(input_ids=tokens).logits.flatten(0, 1), targets.flatten())


class Classified(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, targets):
        return F.cross_entropy(self.model(x), targets)


def need(package):
    if importlib.util.find_spec(package) is None:
        raise Absent(f"{package} is not installed: pip install {package}")
    return importlib.import_module(package)


def of_transformers(kind, blocks, decoder=True, batch=4, length=128, **configuration):
    transformers = need("transformers")
    config = transformers.AutoConfig.for_model(kind, **configuration)
    config.use_cache = False
    auto = transformers.AutoModelForCausalLM if decoder else transformers.AutoModelForMaskedLM
    tokens = torch.randint(3, config.vocab_size, (batch, length + 1))
    targets = tokens[:, 1:] if decoder else tokens[:, :-1]
    model = LossOf(auto.from_config(config))
    return Case(model, (tokens[:, :-1].contiguous(), targets.contiguous()),
                ["model." + name for name in listed(model.model, blocks)])


def of_timm(name, blocks, batch=4, image=96, classes=100, **options):
    timm = need("timm")
    model = Classified(timm.create_model(name, pretrained=False, num_classes=classes, **options))
    return Case(model, images(batch, image, classes), ["model." + block for block in listed(model.model, blocks)])


def listed(model, containers):
    """Names of the modules that stand in these containers, joined by commas."""
    return [f"{name}.{child}" for name in containers.split(",")
            for child, _ in model.get_submodule(name).named_children()]


MODELS = {
    "gpt-2": lambda: gpt(2, 128, 4, batch=4, length=64),
    "gpt-6": lambda: gpt(6, 256, 4, batch=8, length=128),
    "gpt-12": lambda: gpt(12, 256, 8, batch=4, length=128),
    "gpt-24": lambda: gpt(24, 256, 8, batch=4, length=128),
    "vit": vit,
    "resnet50": resnet50,
    "unet": unet,
    "bert": bert,
    "lstm": lstm,
    "moe": lambda: gpt(4, 192, 4, batch=4, length=128, experts=8),
    "llama": llama,
    "transformers/gpt2": lambda: of_transformers("gpt2", "transformer.h", n_layer=4, n_embd=256, n_head=4,
                                                 vocab_size=1000, n_positions=128, bos_token_id=0, eos_token_id=0),
    "transformers/llama": lambda: of_transformers("llama", "model.layers", num_hidden_layers=4, hidden_size=256,
                                                  intermediate_size=704, num_attention_heads=8, num_key_value_heads=2,
                                                  vocab_size=1000, bos_token_id=0, eos_token_id=0),
    "transformers/bert": lambda: of_transformers("bert", "bert.encoder.layer", decoder=False, num_hidden_layers=4,
                                                 hidden_size=256, num_attention_heads=4, intermediate_size=1024,
                                                 vocab_size=1000),
    "timm/vit_tiny": lambda: of_timm("vit_tiny_patch16_224", "blocks", batch=8, img_size=96),
    "timm/convnext_atto": lambda: of_timm("convnext_atto", ",".join(f"stages.{i}.blocks" for i in range(4))),
    "timm/efficientnet_b0": lambda: of_timm("efficientnet_b0", "blocks", drop_path_rate=0.2),
}


def build(name, seed=0):
    """The Case of that name in training mode. Throws Absent where a package is missing, KeyError for no such name."""
    torch.manual_seed(seed)
    case = MODELS[name]()
    case.model.train()
    return case


# --- Cairn's own


def cairn_ffn(o):
    data = torch.randn(o["batch"], o["inputs"]), torch.randn(o["batch"], o["outputs"])
    return Case(Ffn(o["layers"], o["width"], o["inputs"], o["outputs"]), data)


def cairn_resnet(layers):
    return lambda o: Case(ResNet(layers, o["classes"], o["width"]), images(o["batch"], o["image"], o["classes"]))


def cairn_unet(o):
    data = images(o["batch"], o["image"], o["classes"], of_pixels=True)
    return Case(CairnUNet(o["width"], o["depth"], o["classes"]), data)


def cairn_mixer(o):
    model = MlpMixer(o["layers"], o["width"], o["image"], o["patch"], o["token-mlp"], o["channel-mlp"], o["classes"])
    return Case(model, images(o["batch"], o["image"], o["classes"]))


def cairn_gpt2(o, sdpa):
    model = Gpt(o["layers"], o["width"], o["heads"], o["vocab"], o["seq"], o["dropout"] / 100, gelu="tanh", fused=False,
                sdpa=sdpa)
    nn.init.normal_(model.positions.weight, std=0.01)
    return Case(model, next_tokens(o["vocab"], o["batch"], o["seq"]))


def cairn_transformer(o, sdpa):
    model = Transformer(o["layers"], o["width"], o["heads"], o["ff"], o["vocab"], o["seq"], o["dropout"] / 100, sdpa)
    source, _ = next_tokens(o["vocab"], o["batch"], o["seq"])
    return Case(model, (source, *next_tokens(o["vocab"], o["batch"], o["seq"])))


CAIRN_MODELS = {"ffn": cairn_ffn, **{f"resnet{layers}": cairn_resnet(layers) for layers in RESNET_DEPTHS},
                "unet": cairn_unet, "mlp-mixer": cairn_mixer}
WITH_ATTENTION = {"gpt2": cairn_gpt2, "transformer": cairn_transformer, "transformer-big": cairn_transformer}


def like_cairn(model):
    """Initial distributions of Cairn; batch norms that keep no running statistics, as Cairn's keep none."""
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            gain = 2 if isinstance(module, nn.Conv2d) else 1
            nn.init.normal_(module.weight, std=math.sqrt(gain / module.weight[0].numel()))
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.BatchNorm2d):
            module.track_running_stats = False
            module.running_mean = module.running_var = module.num_batches_tracked = None


def build_cairn(name, options, device, precision="fp32", sdpa=False):
    """The Case of Cairn's model on the device. `options` has a value for each; images are channels-last."""
    torch.manual_seed(0)
    with torch.device(device):
        case = WITH_ATTENTION[name](options, sdpa) if name in WITH_ATTENTION else CAIRN_MODELS[name](options)
        like_cairn(case.model)
    if precision == "bf16":
        case.model.bfloat16()
        for module in case.model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.float()  # its kernels take parameters of fp32 beside images of bf16
        case.inputs = tuple(x.bfloat16() if x.is_floating_point() else x for x in case.inputs)
    if case.inputs[0].dim() == 4:
        case.model.to(memory_format=torch.channels_last)
        case.inputs = (case.inputs[0].contiguous(memory_format=torch.channels_last), *case.inputs[1:])
    return case


def parameter_count(model):
    return sum(p.numel() for p in model.parameters())


def main():
    for name in MODELS:
        try:
            case = build(name)
        except Absent as error:
            print(f"{name:22} skipped: {error}")
            continue
        print(f"{name:22} {parameter_count(case.model):11,} parameters, {len(case.blocks):3} blocks, "
              f"loss {case.model(*case.inputs).item():.4f}")


if __name__ == "__main__":
    sys.exit(main())
