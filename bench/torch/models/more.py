"""This module builds models of transformers, timm, torchvision, diffusers and torch. No part of Cairn was written for
these models. torch.compile divides several of them into more than one graph."""

import torch
import torch.nn.functional as F
from torch import nn

from .case import Case
from .language import next_tokens
from .packages import listed, need, of_timm, of_transformers
from .vision import images

_SMALL = {"num_hidden_layers": 4, "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 4,
          "vocab_size": 1000}
_DECODER = {**_SMALL, "num_key_value_heads": 2, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}


class WithLoss(nn.Module):
    """A model followed by its loss. Returns loss(model, *inputs), where the function `loss` calls the model and
    computes the loss from its outputs."""

    def __init__(self, model, loss):
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *inputs):
        return self.loss(self.model, *inputs)


def _case(model, inputs, loss, blocks=""):
    wrapped = WithLoss(model, loss)
    return Case(wrapped, inputs, [f"model.{name}" for name in listed(model, blocks)] if blocks else [])


def _configured(kind, auto, **configuration):
    transformers = need("transformers")
    config = transformers.AutoConfig.for_model(kind, **configuration)
    if hasattr(config, "use_cache"):
        config.use_cache = False
    return getattr(transformers, auto).from_config(config)


def _sequence_to_sequence(kind, blocks, **configuration):
    model = _configured(kind, "AutoModelForSeq2SeqLM", vocab_size=1000, decoder_start_token_id=0, pad_token_id=0,
                        bos_token_id=1, eos_token_id=2, **configuration)
    source, target = torch.randint(3, 1000, (4, 64)), torch.randint(3, 1000, (4, 32))
    return _case(model, (source, target), lambda m, x, y: m(input_ids=x, labels=y).loss, blocks)


def whisper():
    model = _configured("whisper", "AutoModelForSpeechSeq2Seq", vocab_size=1000, d_model=128, encoder_layers=2,
                        decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=256,
                        decoder_ffn_dim=256, num_mel_bins=16, max_source_positions=64, max_target_positions=32,
                        decoder_start_token_id=0, pad_token_id=0, bos_token_id=1, eos_token_id=2, suppress_tokens=None,
                        begin_suppress_tokens=None)
    return _case(model, (torch.randn(2, 16, 128), torch.randint(3, 1000, (2, 24))),
                 lambda m, x, y: m(input_features=x, labels=y).loss, "model.encoder.layers,model.decoder.layers")


def wav2vec2():
    model = _configured("wav2vec2", "AutoModelForCTC", vocab_size=32, hidden_size=128, num_hidden_layers=3,
                        num_attention_heads=4, intermediate_size=256, conv_dim=(64,) * 4, conv_stride=(5, 4, 2, 2),
                        conv_kernel=(10, 8, 4, 4), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4,
                        pad_token_id=0)
    return _case(model, (torch.randn(2, 8000), torch.randint(1, 32, (2, 10))),
                 lambda m, x, y: m(input_values=x, labels=y).loss, "wav2vec2.encoder.layers")


def deeplab():
    torchvision = need("torchvision")
    model = torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=8)
    return _case(model, images(2, 96, 8, of_pixels=True), lambda m, x, y: F.cross_entropy(m(x)["out"], y), "backbone")


def feature_pyramid():
    torchvision = need("torchvision")
    model = torchvision.models.detection.backbone_utils.resnet_fpn_backbone(
        backbone_name="resnet18", weights=None, trainable_layers=5)
    return _case(model, images(4, 96, 8), lambda m, x, y: sum(f.square().mean() for f in m(x).values()))


def of_torchvision(name, blocks="", **options):
    torchvision = need("torchvision")
    model = getattr(torchvision.models, name)(weights=None, num_classes=100, **options)
    return _case(model, images(4, 96, 100), lambda m, x, y: F.cross_entropy(m(x), y), blocks)


def diffusion_unet():
    diffusers = need("diffusers")
    model = diffusers.UNet2DModel(sample_size=32, in_channels=3, out_channels=3, layers_per_block=1, norm_num_groups=8,
                                  block_out_channels=(32, 64), down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                                  up_block_types=("AttnUpBlock2D", "UpBlock2D"))
    return _case(model, (torch.randn(4, 3, 32, 32), torch.randint(0, 1000, (4,)), torch.randn(4, 3, 32, 32)),
                 lambda m, x, t, noise: F.mse_loss(m(x, t).sample, noise), "down_blocks,up_blocks")


class Recurrent(nn.Module):
    """A language model with an nn.GRU. torch.compile does not compile nn.GRU, so the graph is divided there."""

    def __init__(self, width, vocabulary):
        super().__init__()
        self.tokens, self.gru = nn.Embedding(vocabulary, width), nn.GRU(width, width, 2, batch_first=True, dropout=0.1)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(F.gelu(self.norm(self.gru(self.tokens(tokens))[0])))


def gru():
    return _case(Recurrent(128, 500), next_tokens(500, 16, 48),
                 lambda m, x, y: F.cross_entropy(m(x).flatten(0, 1), y.flatten()))


def torch_transformer():
    layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.1, batch_first=True, norm_first=True)
    return _case(nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), (torch.randn(8, 64, 128),),
                 lambda m, x: m(x).square().mean(), "layers")


MORE = {
    "transformers/qwen2": lambda: of_transformers("qwen2", "model.layers", **_DECODER),
    "transformers/mistral": lambda: of_transformers("mistral", "model.layers", **_DECODER),
    "transformers/gemma2": lambda: of_transformers("gemma2", "model.layers", **_DECODER, head_dim=32),
    "transformers/mixtral": lambda: of_transformers("mixtral", "model.layers", **_DECODER, num_local_experts=4),
    "transformers/mamba": lambda: of_transformers("mamba", "backbone.layers", batch=2, length=32, num_hidden_layers=2,
                                                  hidden_size=64, state_size=8, vocab_size=500, pad_token_id=0,
                                                  bos_token_id=0, eos_token_id=0),
    "transformers/deberta": lambda: of_transformers("deberta-v2", "deberta.encoder.layer", decoder=False, **_SMALL),
    "transformers/electra": lambda: of_transformers("electra", "electra.encoder.layer", decoder=False, **_SMALL),
    "transformers/t5": lambda: _sequence_to_sequence("t5", "encoder.block,decoder.block", d_model=128, d_kv=32, d_ff=256,
                                                     num_layers=2, num_heads=4),
    "transformers/bart": lambda: _sequence_to_sequence(
        "bart", "model.encoder.layers,model.decoder.layers", d_model=128, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=256, decoder_ffn_dim=256,
        max_position_embeddings=64),
    "transformers/whisper": whisper,
    "transformers/wav2vec2": wav2vec2,
    "timm/swin": lambda: of_timm("swin_tiny_patch4_window7_224", ",".join(f"layers.{i}.blocks" for i in range(4)),
                                 img_size=64, window_size=4, patch_size=2, embed_dim=32, depths=(1, 1, 2, 1),
                                 num_heads=(1, 2, 4, 8), image=64),
    "timm/convnextv2_atto": lambda: of_timm("convnextv2_atto", ",".join(f"stages.{i}.blocks" for i in range(4))),
    "timm/regnety_002": lambda: of_timm("regnety_002", "s1,s2,s3,s4"),
    "timm/efficientnetv2_b0": lambda: of_timm("tf_efficientnetv2_b0", "blocks"),
    "torchvision/densenet121": lambda: of_torchvision("densenet121", "features"),
    "torchvision/mobilenet_v3_small": lambda: of_torchvision("mobilenet_v3_small", "features"),
    "torchvision/deeplab": deeplab,
    "torchvision/fpn": feature_pyramid,
    "diffusers/unet": diffusion_unet,
    "torch/gru": gru,
    "torch/transformer": torch_transformer,
}
