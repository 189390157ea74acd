"""Models of the tables: small to middle, seeded, the same on every run.

build("gpt-6") is a Case: a module that ends in its loss, the inputs of a step, and the names of the blocks that
torch.utils.checkpoint goes around. Models of `transformers` and `timm` are made from their configurations, without
weights. `python bench/torch/models.py` lists all.
"""

import dataclasses
import importlib.util
import sys

import torch
import torch.nn.functional as F
from torch import nn


class Absent(Exception):
    """A package that a model needs is not installed."""


@dataclasses.dataclass
class Case:
    """`model(*inputs)` is the loss of one training step; `blocks` are names of submodules."""

    model: nn.Module
    inputs: tuple
    blocks: list


# --- Transformers


class Attention(nn.Module):
    def __init__(self, width, heads, dropout, causal):
        super().__init__()
        self.heads, self.dropout, self.causal = heads, dropout, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, mask=None):
        batch, length, width = x.shape
        query, key, value = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=self.causal,
                                               dropout_p=self.dropout if self.training else 0.0)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class Block(nn.Module):
    """Norm first, as in GPT-2 and ViT."""

    def __init__(self, width, heads, dropout, causal, feed_forward=None):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout, causal)
        self.feed_forward = feed_forward or FeedForward(width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.drop(self.feed_forward(self.norm2(x)))


class Gpt(nn.Module):
    """The embedding's weight is the head's, too. `experts` > 0: every second block has that many feed-forward parts."""

    def __init__(self, layers, width, heads, vocabulary, length, dropout, experts=0):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            Block(width, heads, dropout, True, Experts(width, experts) if experts and i % 2 else None) for i in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        for embedding in (self.tokens, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)
        self.head.weight = self.tokens.weight

    def forward(self, tokens, targets):
        x = self.drop(self.tokens(tokens) + self.positions.weight[:tokens.shape[1]])
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def gpt(layers, width, heads, batch, length, dropout=0.1, vocabulary=1000, experts=0):
    model = Gpt(layers, width, heads, vocabulary, length, dropout, experts)
    tokens = torch.randint(0, vocabulary, (batch, length + 1))
    return Case(model, (tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()), [f"blocks.{i}" for i in range(layers)])


class Experts(nn.Module):
    """A mixture of experts: each token goes to its two best, as far as those have room (shapes do not depend on data)."""

    def __init__(self, width, experts, best=2, room=1.25):
        super().__init__()
        self.best, self.room = best, room
        self.router = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) * width**-0.5)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) * (2 * width)**-0.5)

    def forward(self, x):
        flat = x.flatten(0, 1)
        count, experts = flat.shape[0], self.up.shape[0]
        places = int(self.room * self.best * count / experts)
        weights, chosen = self.router(flat).softmax(-1).topk(self.best)
        weights = weights / weights.sum(-1, keepdim=True)
        taken = F.one_hot(chosen.T.flatten(), experts)  # first choices first
        place = (taken.cumsum(0) - 1).gather(1, chosen.T.reshape(-1, 1)).squeeze(1)
        fits = place < places
        slot = torch.where(fits, chosen.T.flatten() * places + place, experts * places)
        rows = torch.arange(count, device=x.device).repeat(self.best)
        sent = flat.new_zeros(experts * places + 1, flat.shape[1]).index_add(0, slot, flat[rows] * fits[:, None])
        hidden = F.gelu(torch.bmm(sent[:-1].view(experts, places, -1), self.up))
        back = F.pad(torch.bmm(hidden, self.down).flatten(0, 1), (0, 0, 0, 1))
        mixed = (back[slot] * weights.T.reshape(-1, 1)).view(self.best, count, -1).sum(0)
        return mixed.view_as(x)


class Bert(nn.Module):
    """An encoder with norms after its sums and a mask of padding, trained on masked tokens."""

    def __init__(self, layers, width, heads, vocabulary, length, dropout):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(dropout)
        self.blocks = nn.ModuleList(BertBlock(width, heads, dropout) for _ in range(layers))
        self.transform, self.head = nn.Linear(width, width), nn.Linear(width, vocabulary)

    def forward(self, tokens, lengths, targets):
        mask = (torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None])[:, None, None, :]
        x = self.drop(self.norm(self.tokens(tokens) + self.positions.weight[:tokens.shape[1]]))
        for block in self.blocks:
            x = block(x, mask)
        return F.cross_entropy(self.head(F.gelu(self.transform(x))).flatten(0, 1), targets.flatten(), ignore_index=-100)


class BertBlock(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.attention, self.feed_forward = Attention(width, heads, dropout, False), FeedForward(width)
        self.norm1, self.norm2, self.drop = nn.LayerNorm(width), nn.LayerNorm(width), nn.Dropout(dropout)

    def forward(self, x, mask):
        x = self.norm1(x + self.drop(self.attention(x, mask)))
        return self.norm2(x + self.drop(self.feed_forward(x)))


def bert(layers=6, width=256, heads=4, batch=8, length=128, vocabulary=1000, dropout=0.1):
    tokens = torch.randint(0, vocabulary, (batch, length))
    targets = torch.where(torch.rand(batch, length) < 0.15, tokens, -100)
    lengths = torch.randint(length // 2, length + 1, (batch,))
    return Case(Bert(layers, width, heads, vocabulary, length, dropout), (tokens, lengths, targets),
                [f"blocks.{i}" for i in range(layers)])


class Llama(nn.Module):
    """RMS norms, rotary positions, grouped keys and values, gated feed-forward parts; no dropout."""

    def __init__(self, layers, width, heads, key_heads, hidden, vocabulary, theta=500000.0):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, key_heads, hidden) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width, eps=1e-5), nn.Linear(width, vocabulary, bias=False)
        self.angles = theta, width // heads

    def forward(self, tokens, targets):
        theta, size = self.angles
        frequencies = theta ** (-torch.arange(0, size, 2, device=tokens.device, dtype=torch.float32) / size)
        angles = torch.outer(torch.arange(tokens.shape[1], device=tokens.device, dtype=torch.float32), frequencies)
        x = self.tokens(tokens)
        rotation = torch.cat((angles, angles), -1)
        rotation = rotation.cos().to(x.dtype), rotation.sin().to(x.dtype)
        for block in self.blocks:
            x = block(x, rotation)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1).float(), targets.flatten())


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, key_heads, hidden):
        super().__init__()
        self.heads, self.key_heads, size = heads, key_heads, width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.query, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.key, self.value = (nn.Linear(width, key_heads * size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, rotation):
        batch, length, width = x.shape
        y = self.norm1(x)
        query, key, value = (f(y).view(batch, length, h, -1).transpose(1, 2)
                             for f, h in ((self.query, self.heads), (self.key, self.key_heads), (self.value, self.key_heads)))
        mixed = F.scaled_dot_product_attention(rotate(query, *rotation), rotate(key, *rotation), value, is_causal=True,
                                               enable_gqa=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def rotate(x, cosine, sine):
    one, other = x.chunk(2, -1)
    return x * cosine + torch.cat((-other, one), -1) * sine


def llama(layers=4, width=256, heads=8, key_heads=2, hidden=704, vocabulary=1000, batch=4, length=128):
    model = Llama(layers, width, heads, key_heads, hidden, vocabulary)
    tokens = torch.randint(0, vocabulary, (batch, length + 1))
    return Case(model, (tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()), [f"blocks.{i}" for i in range(layers)])


# --- Images


class Vit(nn.Module):
    def __init__(self, layers, width, heads, image, patch, classes, dropout):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(0.02 * torch.randn(1, (image // patch)**2 + 1, width))
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, dropout, False) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images, targets):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = self.drop(torch.cat((self.first.expand(x.shape[0], -1, -1), x), 1) + self.positions)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)[:, 0]), targets)


def images(batch, size, classes):
    return torch.randn(batch, 3, size, size), torch.randint(0, classes, (batch,))


def vit(layers=8, width=192, heads=3, batch=8, image=64, patch=8, classes=100, dropout=0.1):
    return Case(Vit(layers, width, heads, image, patch, classes, dropout), images(batch, image, classes),
                [f"blocks.{i}" for i in range(layers)])


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.norm3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != 4 * width:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.relu(self.norm2(self.conv2(y)))
        return self.relu(self.norm3(self.conv3(y)) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, depths, classes):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        blocks, inputs = [], 64
        for stage, depth in enumerate(depths):
            for i in range(depth):
                blocks.append(Bottleneck(inputs, 64 << stage, 2 if stage and i == 0 else 1))
                inputs = 256 << stage
        self.blocks, self.head = nn.ModuleList(blocks), nn.Linear(inputs, classes)

    def forward(self, x, targets):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x)), inplace=True), 3, 2, 1)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x.mean((2, 3))), targets)


def resnet50(batch=4, image=96, classes=100):
    return Case(ResNet((3, 4, 6, 3), classes), images(batch, image, classes), [f"blocks.{i}" for i in range(16)])


class UNet(nn.Module):
    """Long skips: what the way down makes is read on the way up."""

    def __init__(self, width, depth, classes):
        super().__init__()
        widths = [width << i for i in range(depth + 1)]
        self.down = nn.ModuleList(double_conv(i, o) for i, o in zip([3] + widths, widths))
        self.wider = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths[:-1]))
        self.up = nn.ModuleList(double_conv(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x, targets):
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        skips.pop()
        for wider, block in zip(self.wider, self.up):
            x = block(torch.cat((wider(x), skips.pop()), 1))
        return F.cross_entropy(self.head(x), targets)


def double_conv(inputs, outputs):
    layers = []
    for i in (inputs, outputs):
        layers += [nn.Conv2d(i, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def unet(width=16, depth=3, batch=4, image=64, classes=4):
    targets = torch.randint(0, classes, (batch, image, image))
    return Case(UNet(width, depth, classes), (torch.randn(batch, 3, image, image), targets),
                [f"down.{i}" for i in range(depth + 1)] + [f"up.{i}" for i in range(depth)])


# --- Recurrence


class LstmSegment(nn.Module):
    """Some time steps of a layered LSTM, written out: torch.compile leaves nn.LSTM alone."""

    def __init__(self, cells, drop):
        super().__init__()
        self.cells, self.drop = cells, drop

    def forward(self, xs, hidden, memory):
        outputs, hidden, memory = [], list(hidden.unbind()), list(memory.unbind())
        for x in xs.unbind(1):
            for i, cell in enumerate(self.cells):
                into, forget, new, out = cell(torch.cat((x, hidden[i]), -1)).chunk(4, -1)
                memory[i] = forget.sigmoid() * memory[i] + into.sigmoid() * new.tanh()
                hidden[i] = out.sigmoid() * memory[i].tanh()
                x = self.drop(hidden[i])
            outputs.append(x)
        return torch.stack(outputs, 1), torch.stack(hidden), torch.stack(memory)


class Lstm(nn.Module):
    def __init__(self, layers, width, vocabulary, segments, dropout):
        super().__init__()
        self.tokens, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.cells = nn.ModuleList(nn.Linear(2 * width, 4 * width) for _ in range(layers))
        self.segments = nn.ModuleList(LstmSegment(self.cells, nn.Dropout(dropout)) for _ in range(segments))

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        hidden = memory = x.new_zeros(len(self.cells), x.shape[0], x.shape[2])
        outputs = []
        for part, segment in zip(x.chunk(len(self.segments), 1), self.segments):
            y, hidden, memory = segment(part, hidden, memory)
            outputs.append(y)
        return F.cross_entropy(self.head(torch.cat(outputs, 1)).flatten(0, 1), targets.flatten())


def lstm(layers=2, width=192, batch=32, length=48, vocabulary=500, segments=6, dropout=0.1):
    tokens = torch.randint(0, vocabulary, (batch, length + 1))
    return Case(Lstm(layers, width, vocabulary, segments, dropout), (tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()),
                [f"segments.{i}" for i in range(segments)])


# --- Models of packages


class LossOf(nn.Module):
    """Of a model of `transformers`: the next token's, or a masked token's."""

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
    """Names of the modules that stand in these containers, joined by commas."""
    return [f"{name}.{child}" for name in containers.split(",") for child, _ in model.get_submodule(name).named_children()]


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
    "transformers/gpt2": lambda: of_transformers("gpt2", "transformer.h", n_layer=4, n_embd=256, n_head=4, vocab_size=1000,
                                                 n_positions=128, bos_token_id=0, eos_token_id=0),
    "transformers/llama": lambda: of_transformers("llama", "model.layers", num_hidden_layers=4, hidden_size=256,
                                                  intermediate_size=704, num_attention_heads=8, num_key_value_heads=2,
                                                  vocab_size=1000, bos_token_id=0, eos_token_id=0),
    "transformers/bert": lambda: of_transformers("bert", "bert.encoder.layer", decoder=False, num_hidden_layers=4,
                                                 hidden_size=256, num_attention_heads=4, intermediate_size=1024,
                                                 vocab_size=1000),
    "timm/vit_tiny": lambda: of_timm("vit_tiny_patch16_224", "blocks", batch=8, img_size=96),
    "timm/convnext_atto": lambda: of_timm("convnext_atto", "stages.0.blocks,stages.1.blocks,stages.2.blocks,stages.3.blocks"),
    "timm/efficientnet_b0": lambda: of_timm("efficientnet_b0", "blocks", drop_path_rate=0.2),
}


def build(name, seed=0):
    """The Case of that name in training mode. Throws Absent where a package is missing, KeyError for an unknown name."""
    torch.manual_seed(seed)
    case = MODELS[name]()
    case.model.train()
    return case


def main():
    for name in MODELS:
        try:
            case = build(name)
        except Absent as error:
            print(f"{name:22} skipped: {error}")
            continue
        parameters = sum(p.numel() for p in case.model.parameters())
        print(f"{name:22} {parameters:11,} parameters, {len(case.blocks):3} blocks, loss {case.model(*case.inputs).item():.4f}")


if __name__ == "__main__":
    sys.exit(main())
