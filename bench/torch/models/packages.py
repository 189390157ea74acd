"""This module builds models of the packages transformers and timm from their configurations, with random weights."""

import importlib.util

import torch
import torch.nn.functional as F
from torch import nn

from .case import Absent, Case
from .vision import images


class LossOf(nn.Module):
    """A model of `transformers` followed by its loss: the cross entropy of the next token, or of masked tokens."""

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
    """Returns the names of all direct children of some submodules of `model`. `containers` lists the names of these
    submodules, separated by commas."""
    return [f"{name}.{child}" for name in containers.split(",")
            for child, _ in model.get_submodule(name).named_children()]
