"""Defines Case: a model, the inputs of a training step, and the blocks that can be checkpointed."""

import dataclasses

import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint


class Absent(Exception):
    """Raised if a model needs a package that is not installed."""


@dataclasses.dataclass
class Case:
    """A model with the inputs of one training step. `model(*inputs)` returns the loss. `blocks` lists the names of the
    submodules around which checkpoints can be put."""

    model: nn.Module
    inputs: tuple
    blocks: list = None

    def __post_init__(self):
        if self.blocks is None:
            self.blocks = [f"blocks.{i}" for i in range(len(self.model.blocks))]

    def to(self, device):
        """Moves the model and its inputs to a device, and returns this Case."""
        self.model.to(device)
        self.inputs = pytree.tree_map_only(torch.Tensor, lambda value: value.to(device), self.inputs)
        return self


class Model(nn.Module):
    """A model that consists of blocks. begin(*inputs) makes a state (a tensor or a tuple of tensors), each block in
    `blocks` maps the state to the next state, and end(targets, *state) returns the loss. The model draws random numbers
    if `dropout` is above 0.
    """

    def __init__(self, dropout=0.0):
        super().__init__()
        self.random = dropout > 0

    def begin(self, *inputs):
        return inputs

    def forward(self, *inputs, segment=0):
        """Returns the loss. If `segment` is above 0, puts a checkpoint around each group of `segment` consecutive
        blocks."""
        *inputs, targets = inputs
        state = self.begin(*inputs)
        if segment == 0:
            state = through(self.blocks, state)
        else:
            for first in range(0, len(self.blocks), segment):
                # If the model draws no random numbers, checkpoints need not save the state of the random generators.
                state = checkpoint(through, self.blocks[first:first + segment], state, use_reentrant=False,
                                   preserve_rng_state=self.random)
        return self.end(targets, *several(state))


def several(state):
    return state if isinstance(state, tuple) else (state,)


def through(blocks, state):
    for block in blocks:
        state = block(*several(state))
    return state


def parameter_count(model):
    return sum(p.numel() for p in model.parameters())
