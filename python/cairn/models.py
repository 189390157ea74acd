"""Builds training graphs of models such as ResNets, U-Net, transformers and GPT-2, as the command `cairn models` lists
them."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Tuple

from . import _cairn
from ._api import _number
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
          optimizer: Optional[str] = None, learning_rate: Optional[float] = None, beta1: Optional[float] = None,
          beta2: Optional[float] = None, eps: Optional[float] = None, weight_decay: Optional[float] = None,
          clip: Optional[float] = None, granularity: str = "layer", **options: int) -> Graph:
    """Builds the training step of a model: build("resnet50", batch=8, image=64).

    forward       whether to build only the forward part
    unit_cost     whether every node costs 1
    weight_grads  where gradients of weights are stored: "arena" (part of the budget) or "resident" (not part of it)
    optimizer     "sgd" or "adamw": the graph updates its weights, so that it can be trained. "none", "momentum" or
                  "adam": only the bytes of the optimizer's state count as resident.
    granularity   what a node stands for: "layer", or "op" (an elementary operation)

    Only for the optimizers sgd and adamw:

    learning_rate  initial value of the resident tensor "learning_rate"; 0.001 by default
    beta1          momentum of sgd, or beta1 of adamw; 0.9 by default
    beta2, eps     parameters of adamw; 0.999 and 1e-8 by default
    weight_decay   0 by default
    clip           largest norm of all gradients together; None: gradients are not clipped
    """
    if weight_grads not in ("arena", "resident"):
        raise InputError(f"weight_grads='{weight_grads}' must be 'arena' or 'resident'")
    update = _update(optimizer, learning_rate=learning_rate, beta1=beta1, beta2=beta2, eps=eps,
                     weight_decay=weight_decay, clip=clip)
    values = {option.replace("_", "-"): value for option, value in options.items()}
    return _cairn.build_model(name, values, forward, unit_cost, weight_grads == "arena", optimizer or "", update,
                              granularity)


class Builder(_cairn.ModelBuilder):
    """Builds the training step of a model of your own, for an Executor.

        model = cairn.models.Builder("small", optimizer="adamw")
        x, labels = model.data("images", [32, 64]), model.indices("labels", [32], 10)
        y = model.relu("hidden.relu", model.linear("hidden", x, model.weight("hidden.weight", [64, 50], scale=0.1)))
        y = model.linear("last", y, model.weight("last.weight", [50, 10], scale=0.1))
        graph = model.training_step(model.cross_entropy("loss", y, labels))

    Every method adds a tensor or a node with the given name and returns a handle of the result, whose `shape` is known.
    Images are N,H,W,C. The arguments of the constructor are those of build.
    """

    def __init__(self, name: str, *, optimizer: str = "none", learning_rate: Optional[float] = None,
                 beta1: Optional[float] = None, beta2: Optional[float] = None, eps: Optional[float] = None,
                 weight_decay: Optional[float] = None, clip: Optional[float] = None) -> None:
        super().__init__(name, optimizer, _update(optimizer, learning_rate=learning_rate, beta1=beta1, beta2=beta2,
                                                  eps=eps, weight_decay=weight_decay, clip=clip))


_UPDATE = {"learning_rate": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0, "clip": 0.0}


def _update(optimizer: Optional[str], **numbers: Optional[float]) -> _cairn.UpdateOptions:
    given = {key: _number(value, key) for key, value in numbers.items() if value is not None}
    if given and optimizer not in ("sgd", "adamw"):
        raise InputError(f"{next(iter(given))}= is for optimizer='sgd' and optimizer='adamw'; give one of them")
    if given.get("clip") == 0:
        raise InputError("clip=0 must be above 0; without clip=, gradients are not clipped")
    return _cairn.UpdateOptions(**{**_UPDATE, **given})
