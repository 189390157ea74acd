"""This module builds the models of the tables, which are small to medium. Fixed seeds make the weights the same in
every run."""

import torch

from .language import bert, gpt, llama, lstm
from .more import MORE
from .packages import of_timm, of_transformers
from .vision import resnet50, unet, vit

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


def build(name, device="cpu", seed=0):
    """Returns the Case (model and inputs) of the model `name`, in training mode. Weights are drawn on the CPU, so that
    they do not depend on `device`. Raises Absent if a package is missing, and KeyError for an unknown name."""
    torch.manual_seed(seed)
    case = {**MODELS, **MORE}[name]()
    case.model.train()
    return case.to(device)
