"""Builds training graphs: ResNets, U-Net, transformers, GPT-2, ... (`cairn models`)."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Tuple

from . import _cairn
from ._cairn import Graph
from ._errors import InputError


class Option(NamedTuple):
    """An option of a model. Its value is an int."""

    name: str
    default: int
    minimum: int
    help: str


class Model(NamedTuple):
    """A model that models.build can build."""

    name: str
    summary: str
    options: Tuple[Option, ...]


def list() -> List[Model]:  # noqa: A001 - as `cairn models`
    """Returns all models with their options."""
    return [Model(name, summary, tuple(Option(*option) for option in options))
            for name, summary, options in _cairn.models()]


def build(name: str, *, forward: bool = False, unit_cost: bool = False, weight_grads: str = "resident",
          optimizer: Optional[str] = None, granularity: str = "layer", **options: int) -> Graph:
    """Builds the training step of a model: build("resnet50", batch=8, image=64).

    forward       whether to build only the forward part
    unit_cost     whether every node costs 1
    weight_grads  where gradients of weights are stored: "arena" (part of the budget) or "resident" (not part of it)
    optimizer     the optimizer whose state is counted as resident: "none", "momentum" or "adam"
    granularity   what a node stands for: "layer", or "op" (an elementary operation)
    """
    if weight_grads not in ("arena", "resident"):
        raise InputError(f"weight_grads='{weight_grads}' must be 'arena' or 'resident'")
    values = {option.replace("_", "-"): value for option, value in options.items()}
    return _cairn.build_model(name, values, forward, unit_cost, weight_grads == "arena", optimizer or "", granularity)
