"""This module has language models: GPT with and without experts, BERT, Llama, the first transformer, and an LSTM."""

import torch
import torch.nn.functional as F
from torch import nn

from .attention import Attention, Block, FeedForward, SumFirst
from .case import Case, Model


class Gpt(Model):
    """GPT, whose embedding and output layer share a weight. If `experts` is above 0, every second block has a mixture
    of `experts` feed-forward networks."""

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
    """A mixture of experts (feed-forward networks). Each token goes to its two best experts, if these have free places.
    An expert has a fixed number of places, so that shapes do not depend on data."""

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
        taken = F.one_hot(chosen.T.flatten(), experts)  # first all tokens' best experts, then their second-best
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
    """BERT: an encoder with norms after the residual sums and a mask for padding. The loss is for predicting masked
    tokens."""

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
    """Llama: a decoder with RMS norms, rotary positions, grouped keys and values, and gated feed-forward networks,
    without dropout."""

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
    """The transformer of Vaswani et al. 2017, with encoder and decoder. The two embeddings and the output layer share
    one weight, which is scaled for the output."""

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


class LstmSegment(nn.Module):
    """Some time steps of an LSTM with several layers. The cells are written as single operations, because torch.compile
    does not compile nn.LSTM."""

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
