"""This module has PyTorch versions of Cairn's models (models/*.cpp). Layers, widths, initial distributions and losses
are the same."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .case import Case, Model
from .language import Gpt, Transformer, next_tokens
from .vision import RESNET_DEPTHS, CairnUNet, MlpMixer, ResNet, images


class Ffn(Model):
    def __init__(self, layers, width, inputs, outputs):
        super().__init__()
        widths = [inputs] + [width] * (layers - 1)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(i, o), nn.ReLU(inplace=True))
                                    for i, o in zip(widths, widths[1:]))
        self.last = nn.Linear(widths[-1], outputs)

    def end(self, targets, x):
        return F.mse_loss(self.last(x), targets)


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
    """Initialises the weights of a model with the distributions that Cairn uses. Also makes batch norms keep no running
    statistics, as in Cairn."""
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
    """Returns the Case (model and inputs) of one of Cairn's models. `options` must have a value for each option of the
    model. Images are stored channels-last."""
    torch.manual_seed(0)
    with torch.device(device):
        case = WITH_ATTENTION[name](options, sdpa) if name in WITH_ATTENTION else CAIRN_MODELS[name](options)
        like_cairn(case.model)
    if precision == "bf16":
        case.model.bfloat16()
        for module in case.model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.float()  # batch norm needs fp32 parameters, even if images are bf16
        case.inputs = tuple(x.bfloat16() if x.is_floating_point() else x for x in case.inputs)
    if case.inputs[0].dim() == 4:
        case.model.to(memory_format=torch.channels_last)
        case.inputs = (case.inputs[0].contiguous(memory_format=torch.channels_last), *case.inputs[1:])
    return case
