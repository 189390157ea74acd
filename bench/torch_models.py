"""Cairn's built-in models in PyTorch: the same layers, widths, initial distributions and losses as models/*.cpp.

A model is begin(), a list of blocks and end(); between them stands a tuple of tensors. The blocks are what
checkpointing drops and computes again. Images are channels-last, attention is written out (matmul, softmax, matmul)
unless `sdpa` is set, and in-place ReLUs, additions and masks are used where autograd allows them, as people do.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

EPS = 1e-5
RESNET_BLOCKS = {
    "resnet18": (2, 2, 2, 2),
    "resnet34": (3, 4, 6, 3),
    "resnet50": (3, 4, 6, 3),
    "resnet101": (3, 4, 23, 3),
    "resnet152": (3, 8, 36, 3),
    "resnet200": (3, 24, 36, 3),
}
BASIC_BLOCKS = ("resnet18", "resnet34")


def linear(inputs, outputs):
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=inputs**-0.5)
    nn.init.zeros_(layer.bias)
    return layer


def conv(inputs, outputs, kernel, stride=1, pad=0, bias=False):
    layer = nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=pad, bias=bias)
    nn.init.normal_(layer.weight, std=math.sqrt(2 / (kernel * kernel * inputs)))
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


class BatchNorm(nn.Module):
    """Of the batch's own statistics; no running ones are kept, as Cairn keeps none."""

    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return F.batch_norm(x, None, None, self.weight, self.bias, training=True, eps=EPS)


def dropout(x, p):
    return F.dropout(x, p) if p > 0 else x


def gelu(x):
    return F.gelu(x, approximate="tanh")


class Attention(nn.Module):
    def __init__(self, width, heads, causal, drop, sdpa):
        super().__init__()
        self.heads, self.causal, self.drop, self.sdpa = heads, causal, drop, sdpa
        self.query, self.key, self.value, self.output = (linear(width, width) for _ in range(4))

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, memory, hidden_later):
        query, key, value = self.split(self.query(x)), self.split(self.key(memory)), self.split(self.value(memory))
        if self.sdpa:
            context = F.scaled_dot_product_attention(query, key, value, dropout_p=self.drop, is_causal=self.causal)
        else:
            scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)
            if self.causal:
                scores.masked_fill_(hidden_later, -math.inf)
            context = dropout(scores.softmax(-1), self.drop) @ value
        return self.output(context.transpose(1, 2).flatten(2))


class Model(nn.Module):
    """What the models share. A subclass fills `blocks` and defines data(), begin() and end()."""

    image_model = False  # then weights and data are channels-last
    drop = 0.0

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList()

    def forward(self, data, segment=0):
        """The loss; with `segment` > 0 that many consecutive blocks are checkpointed as one."""
        state = self.begin(*data)
        if segment == 0:
            for block in self.blocks:
                state = block(*state)
        else:
            for first in range(0, len(self.blocks), segment):
                part = self.blocks[first : first + segment]
                # Only dropout draws random numbers; where there is none their state need not be kept.
                state = checkpoint(self.run_blocks, part, *state, use_reentrant=False,
                                   preserve_rng_state=self.drop > 0)
        return self.end(state, *data)

    @staticmethod
    def run_blocks(blocks, *state):
        for block in blocks:
            state = block(*state)
        return state

    def parameter_count(self):
        return sum(p.numel() for p in self.parameters())


class FfnLayer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = linear(inputs, outputs)

    def forward(self, x):
        return (F.relu_(self.linear(x)),)


class Ffn(Model):
    def __init__(self, o):
        super().__init__()
        self.o = o
        inputs = o["inputs"]
        for _ in range(o["layers"] - 1):
            self.blocks.append(FfnLayer(inputs, o["width"]))
            inputs = o["width"]
        self.last = linear(inputs, o["outputs"])

    def data(self):
        return torch.randn(self.o["batch"], self.o["inputs"]), torch.randn(self.o["batch"], self.o["outputs"])

    def begin(self, x, _):
        return (x,)

    def end(self, state, _, target):
        return F.mse_loss(self.last(*state), target)


class Stem(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv, self.norm = conv(3, width, 7, 2, 3), BatchNorm(width)

    def forward(self, x):
        return (F.max_pool2d(F.relu_(self.norm(self.conv(x))), 3, 2, 1),)


class Residual(nn.Module):
    """A bottleneck has its stride in the 3x3 convolution; the shortcut is projected where the shape changes."""

    def __init__(self, basic, inputs, width, stride):
        super().__init__()
        outputs = width if basic else 4 * width
        if basic:
            convs = [conv(inputs, width, 3, stride, 1), conv(width, width, 3, 1, 1)]
        else:
            convs = [conv(inputs, width, 1), conv(width, width, 3, stride, 1), conv(width, outputs, 1)]
        self.convs = nn.ModuleList(convs)
        self.norms = nn.ModuleList(BatchNorm(c.out_channels) for c in convs)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(conv(inputs, outputs, 1, stride), BatchNorm(outputs))

    def forward(self, x):
        y = x
        for i, (convolution, norm) in enumerate(zip(self.convs, self.norms)):
            y = norm(convolution(y))
            if i + 1 < len(self.convs):
                y = F.relu_(y)
        y += x if self.shortcut is None else self.shortcut(x)
        return (F.relu_(y),)


class ResNet(Model):
    image_model = True

    def __init__(self, name, o):
        super().__init__()
        self.o = o
        self.blocks.append(Stem(o["width"]))
        basic = name in BASIC_BLOCKS
        channels = o["width"]
        for stage, count in enumerate(RESNET_BLOCKS[name]):
            width = o["width"] << stage
            for i in range(count):
                self.blocks.append(Residual(basic, channels, width, 2 if stage > 0 and i == 0 else 1))
                channels = width if basic else 4 * width
        self.fc = linear(channels, o["classes"])

    def data(self):
        side = self.o["image"]
        return torch.randn(self.o["batch"], 3, side, side), torch.randint(self.o["classes"], (self.o["batch"],))

    def begin(self, images, _):
        return (images,)

    def end(self, state, _, labels):
        (x,) = state
        return F.cross_entropy(self.fc(x.mean((2, 3))), labels)


class DoubleConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.convs = nn.ModuleList([conv(inputs, outputs, 3, 1, 1), conv(outputs, outputs, 3, 1, 1)])
        self.norms = nn.ModuleList([BatchNorm(outputs), BatchNorm(outputs)])

    def forward(self, x):
        for convolution, norm in zip(self.convs, self.norms):
            x = F.relu_(norm(convolution(x)))
        return x


class UnetDown(DoubleConv):
    def forward(self, x, *skips):
        skip = super().forward(x)
        return (F.max_pool2d(skip, 2), *skips, skip)


class UnetBottom(DoubleConv):
    def forward(self, x, *skips):
        return (super().forward(x), *skips)


class UnetUp(DoubleConv):
    def __init__(self, channels):
        super().__init__(2 * channels, channels)
        self.upconv = conv(2 * channels, channels, 3, 1, 1, bias=True)

    def forward(self, x, *skips):
        x = self.upconv(F.interpolate(x, scale_factor=2, mode="nearest"))
        return (super().forward(torch.cat((skips[-1], x), 1)), *skips[:-1])


class Unet(Model):
    image_model = True

    def __init__(self, o):
        super().__init__()
        self.o = o
        widths = [o["width"] << level for level in range(o["depth"] + 1)]
        for inputs, outputs in zip([3, *widths], widths[:-1]):
            self.blocks.append(UnetDown(inputs, outputs))
        self.blocks.append(UnetBottom(widths[-2], widths[-1]))
        self.blocks.extend(UnetUp(width) for width in reversed(widths[:-1]))
        self.head = conv(widths[0], o["classes"], 1, bias=True)

    def data(self):
        batch, side = self.o["batch"], self.o["image"]
        return torch.randn(batch, 3, side, side), torch.randint(self.o["classes"], (batch, side, side))

    def begin(self, images, _):
        return (images,)

    def end(self, state, _, labels):
        logits = self.head(*state).permute(0, 2, 3, 1)  # rows of classes, dense when channels-last
        return F.cross_entropy(logits.flatten(0, 2), labels.flatten())


def later_positions(tokens):
    return torch.ones(tokens, tokens, dtype=torch.bool).triu(1)


class LanguageModel(Model):
    def tokens(self):
        return torch.randint(self.o["vocab"], (self.o["batch"], self.o["seq"]))


class Gpt2Block(nn.Module):
    def __init__(self, o, drop, sdpa, mask):
        super().__init__()
        width = o["width"]
        self.drop, self.mask = drop, mask
        self.norm1, self.norm2 = nn.LayerNorm(width, EPS), nn.LayerNorm(width, EPS)
        self.attention = Attention(width, o["heads"], True, drop, sdpa)
        self.linear1, self.linear2 = linear(width, 4 * width), linear(4 * width, width)

    def forward(self, x):
        y = self.norm1(x)
        x = x + dropout(self.attention(y, y, self.mask()), self.drop)
        y = self.linear2(gelu(self.linear1(self.norm2(x))))
        return (x + dropout(y, self.drop),)


class Gpt2(LanguageModel):
    def __init__(self, o, sdpa):
        super().__init__()
        self.o, self.drop = o, o["dropout"] / 100
        self.table = nn.Parameter(0.02 * torch.randn(o["vocab"], o["width"]))
        self.positions = nn.Parameter(0.01 * torch.randn(o["seq"], o["width"]))
        self.register_buffer("later", later_positions(o["seq"]), persistent=False)
        self.blocks.extend(Gpt2Block(o, self.drop, sdpa, lambda: self.later) for _ in range(o["layers"]))
        self.norm = nn.LayerNorm(o["width"], EPS)

    def data(self):
        return self.tokens(), self.tokens()

    def begin(self, tokens, _):
        return (dropout(F.embedding(tokens, self.table) + self.positions, self.drop),)

    def end(self, state, _, labels):
        logits = F.linear(self.norm(*state), self.table)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class PostNorm(nn.Module):
    """Layer norm after the sum of a sublayer's input and its output with dropout."""

    def __init__(self, width, drop):
        super().__init__()
        self.norm, self.drop = nn.LayerNorm(width, EPS), drop

    def forward(self, x, y):
        return self.norm(x + dropout(y, self.drop))


class FeedForward(nn.Module):
    def __init__(self, o, drop):
        super().__init__()
        self.linear1, self.linear2 = linear(o["width"], o["ff"]), linear(o["ff"], o["width"])
        self.join = PostNorm(o["width"], drop)

    def forward(self, x):
        return self.join(x, self.linear2(F.relu_(self.linear1(x))))


class EncoderLayer(nn.Module):
    def __init__(self, o, drop, sdpa):
        super().__init__()
        self.attention = Attention(o["width"], o["heads"], False, 0.0, sdpa)
        self.join, self.ff = PostNorm(o["width"], drop), FeedForward(o, drop)

    def forward(self, x, y):
        return self.ff(self.join(x, self.attention(x, x, None))), y


class DecoderLayer(nn.Module):
    def __init__(self, o, drop, sdpa, mask):
        super().__init__()
        self.mask = mask
        self.attention = Attention(o["width"], o["heads"], True, 0.0, sdpa)
        self.cross = Attention(o["width"], o["heads"], False, 0.0, sdpa)
        self.join1, self.join2 = PostNorm(o["width"], drop), PostNorm(o["width"], drop)
        self.ff = FeedForward(o, drop)

    def forward(self, memory, y):
        y = self.join1(y, self.attention(y, y, self.mask()))
        y = self.join2(y, self.cross(y, memory, None))
        return memory, self.ff(y)


def sinusoid(tokens, width):
    position = torch.arange(tokens, dtype=torch.float64)[:, None]
    channel = torch.arange(width)
    angle = position / 10000.0 ** ((channel // 2 * 2).double() / width)
    return torch.where(channel % 2 == 0, angle.sin(), angle.cos()).float()


class Transformer(LanguageModel):
    def __init__(self, o, sdpa):
        super().__init__()
        self.o, self.drop = o, o["dropout"] / 100
        self.table = nn.Parameter(torch.randn(o["vocab"], o["width"]))
        self.register_buffer("positions", sinusoid(o["seq"], o["width"]), persistent=False)
        self.register_buffer("later", later_positions(o["seq"]), persistent=False)
        self.blocks.extend(EncoderLayer(o, self.drop, sdpa) for _ in range(o["layers"]))
        self.blocks.extend(DecoderLayer(o, self.drop, sdpa, lambda: self.later) for _ in range(o["layers"]))

    def data(self):
        return self.tokens(), self.tokens(), self.tokens()

    def begin(self, source, target, _):
        return tuple(dropout(F.embedding(ids, self.table) + self.positions, self.drop) for ids in (source, target))

    def end(self, state, _source, _target, labels):
        logits = F.linear(state[1] * self.o["width"] ** -0.5, self.table)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class MixerBlock(nn.Module):
    def __init__(self, o, tokens):
        super().__init__()
        width = o["width"]
        self.norm1, self.norm2 = nn.LayerNorm(width, EPS), nn.LayerNorm(width, EPS)
        self.tokens1, self.tokens2 = linear(tokens, o["token-mlp"]), linear(o["token-mlp"], tokens)
        self.channels1, self.channels2 = linear(width, o["channel-mlp"]), linear(o["channel-mlp"], width)

    def forward(self, x):
        y = self.norm1(x).transpose(1, 2)
        x = x + self.tokens2(gelu(self.tokens1(y))).transpose(1, 2)
        return (x + self.channels2(gelu(self.channels1(self.norm2(x)))),)


class MlpMixer(Model):
    image_model = True

    def __init__(self, o):
        super().__init__()
        self.o = o
        self.patches = conv(3, o["width"], o["patch"], o["patch"], bias=True)
        tokens = (o["image"] // o["patch"]) ** 2
        self.blocks.extend(MixerBlock(o, tokens) for _ in range(o["layers"]))
        self.norm = nn.LayerNorm(o["width"], EPS)
        self.head = linear(o["width"], o["classes"])

    def data(self):
        side = self.o["image"]
        return torch.randn(self.o["batch"], 3, side, side), torch.randint(self.o["classes"], (self.o["batch"],))

    def begin(self, images, _):
        return (self.patches(images).flatten(2).transpose(1, 2),)  # [N, tokens, channels]

    def end(self, state, _, labels):
        return F.cross_entropy(self.head(self.norm(*state).mean(1)), labels)


def store_as_bf16(model):
    """Weights and activations; batch norm keeps its parameters in fp32, which its kernels take beside bf16 images."""
    for module in model.modules():
        if isinstance(module, BatchNorm):
            continue
        for parameter in module.parameters(recurse=False):
            parameter.data = parameter.data.to(torch.bfloat16)
        for name, buffer in module.named_buffers(recurse=False):
            if buffer.is_floating_point():
                setattr(module, name, buffer.to(torch.bfloat16))


def build(name, options, device, precision="fp32", sdpa=False):
    """The model and its input data on the device. `options` has a value for every option of the model."""
    torch.manual_seed(0)
    with torch.device(device):
        if name in RESNET_BLOCKS:
            model = ResNet(name, options)
        elif name in ("gpt2", "transformer", "transformer-big"):
            model = (Gpt2 if name == "gpt2" else Transformer)(options, sdpa)
        else:
            model = {"ffn": Ffn, "unet": Unet, "mlp-mixer": MlpMixer}[name](options)
        data = model.data()
    if precision == "bf16":
        store_as_bf16(model)
        data = tuple(x.to(torch.bfloat16) if x.is_floating_point() else x for x in data)
    if model.image_model:
        model = model.to(memory_format=torch.channels_last)
        data = (data[0].contiguous(memory_format=torch.channels_last), *data[1:])
    return model, data
