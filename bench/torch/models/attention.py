"""This module has the parts of transformers: attention, feed-forward networks, and blocks that consist of both."""

import functools
import math

import torch
import torch.nn.functional as F
from torch import nn


@functools.cache
def later_positions(tokens, device):
    return torch.ones(tokens, tokens, dtype=torch.bool, device=device).triu(1)


class Attention(nn.Module):
    """Multi-head attention. With `fused`, one matrix product computes queries, keys and values. With `sdpa`, torch's
    fused kernel (scaled_dot_product_attention) replaces the sequence matmul, softmax, matmul."""

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
    """A transformer block with norms before attention and before the feed-forward network, as in GPT-2 and ViT."""

    def __init__(self, width, mixing, feed_forward, dropout=0.0):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixing, self.feed_forward, self.drop = mixing, feed_forward, nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.drop(self.mixing(self.norm1(x)))
        return x + self.drop(self.feed_forward(self.norm2(x)))


class SumFirst(nn.Module):
    """A transformer block with norms after the residual sums, as in BERT and the first transformer."""

    def __init__(self, width, attention, feed_forward, dropout):
        super().__init__()
        self.attention, self.feed_forward, self.drop = attention, feed_forward, nn.Dropout(dropout)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def attend(self, x, mask=None):
        return self.norm1(x + self.drop(self.attention(x, mask=mask)))

    def feed(self, x):
        return self.norm2(x + self.drop(self.feed_forward(x)))
