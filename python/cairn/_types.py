"""Defines the types that describe nodes, transfers, resident tensors and data sets."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Tuple, Union

import numpy

Ref = Union[int, Tuple[int, int]]
"""An output of a node: the node's id, or (id, output index)."""


class Output(NamedTuple):
    """One of several outputs of a node, for GraphBuilder.add. Sizes are in bytes."""

    size: int
    keep: bool = False
    """Whether the output must be in memory at the end."""
    inplace: Optional[Ref] = None
    """The input whose storage the output takes over, if that input is not used again."""
    name: str = ""
    stays: bool = False
    """Whether no search may move the output to the host."""


class Node(NamedTuple):
    """A node of a Graph."""

    id: int
    name: str
    size: int
    """Total bytes of the node's outputs."""
    cost: int
    scratch: int
    keep: bool
    backward: bool
    pinned: bool
    forward: Optional[int]
    inputs: Tuple[Ref, ...]
    outputs: Tuple[Output, ...]
    op: Optional[str]
    """The kind of the node's op; None if it has none. Only nodes with an op run real kernels."""


class Evict(NamedTuple):
    """A copy of a value from the device to the host, which begins after step `start` and is over before step
    `finish`."""

    value: int
    """Number of the value. It is the number of its node if all nodes have one output; see Graph.producers and
    Graph.value_begin."""
    made: int
    """The step that computes the copied value."""
    start: int
    finish: int


class Fetch(NamedTuple):
    """A copy from the host to the device, which begins after step `start` and is over before step `finish`."""

    evict: int
    """Index of the Evict whose copy on the host comes back."""
    start: int
    finish: int


class Transfers(NamedTuple):
    """The copies between device and host that go with the steps of a schedule."""

    evicts: List[Evict] = []
    fetches: List[Fetch] = []


class Resident(NamedTuple):
    """A tensor that stays in memory, such as a weight, and is not part of the budget."""

    name: str
    bytes: int
    kind: str


class Tensor(NamedTuple):
    """A resident tensor of an Executor."""

    shape: Tuple[int, ...]
    """Extents, outermost first. Images are N,H,W,C; weights of convolutions are [out, height, width, in], and weights
    of linear layers are [in, out]."""
    dtype: numpy.dtype
    """The type of numpy arrays that hold the elements: int32, or float32, which also stands for tensors that the step
    stores as bf16."""
    kind: str
    """What the tensor holds: "weight", "weight_grad", "optimizer", "data" or "constant"."""


class DatasetInfo(NamedTuple):
    """A data set that load_dataset can load."""

    name: str
    summary: str
    """What the data set holds, where it comes from, and its licence."""
