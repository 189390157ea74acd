"""This module has vision models: ViT, the MLP-Mixer, ResNets and two U-Nets."""

import torch
import torch.nn.functional as F
from torch import nn

from .attention import Attention, Block, FeedForward
from .case import Case, Model


class Vit(Model):
    def __init__(self, layers, width, heads, image, patch, classes, dropout):
        super().__init__(dropout)
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(0.02 * torch.randn(1, (image // patch)**2 + 1, width))
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, Attention(width, heads, False, dropout), FeedForward(width, 4 * width),
                                          dropout) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def begin(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        return self.drop(torch.cat((self.first.expand(x.shape[0], -1, -1), x), 1) + self.positions)

    def end(self, targets, x):
        return F.cross_entropy(self.head(self.norm(x)[:, 0]), targets)


def images(batch, size, classes, of_pixels=False):
    return torch.randn(batch, 3, size, size), torch.randint(0, classes, (batch, size, size) if of_pixels else (batch,))


def vit(layers=8, width=192, heads=3, batch=8, image=64, patch=8, classes=100, dropout=0.1):
    return Case(Vit(layers, width, heads, image, patch, classes, dropout), images(batch, image, classes))


class AcrossTokens(FeedForward):
    def forward(self, x):
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class MlpMixer(Model):
    def __init__(self, layers, width, image, patch, token_hidden, channel_hidden, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        tokens = (image // patch)**2
        self.blocks = nn.ModuleList(Block(width, AcrossTokens(tokens, token_hidden, nn.GELU("tanh")),
                                          FeedForward(width, channel_hidden, nn.GELU("tanh"))) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def begin(self, images):
        return self.patches(images).flatten(2).transpose(1, 2)

    def end(self, targets, x):
        return F.cross_entropy(self.head(self.norm(x).mean(1)), targets)


def conv_norm(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs)


class Residual(nn.Module):
    """A residual block: two 3x3 convolutions if `basic` is set, else a bottleneck with the stride in its 3x3
    convolution."""

    def __init__(self, basic, inputs, width, stride):
        super().__init__()
        relu, outputs = nn.ReLU(inplace=True), width if basic else 4 * width
        if basic:
            self.convs = nn.Sequential(*conv_norm(inputs, width, 3, stride), relu, *conv_norm(width, width, 3))
        else:
            self.convs = nn.Sequential(*conv_norm(inputs, width, 1), relu, *conv_norm(width, width, 3, stride), relu,
                                       *conv_norm(width, outputs, 1))
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(*conv_norm(inputs, outputs, 1, stride))

    def forward(self, x):
        y = self.convs(x)
        y += self.shortcut(x)
        return F.relu_(y)


RESNET_DEPTHS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3),
                 200: (3, 24, 36, 3)}


class ResNet(Model):
    """A ResNet. Its first block is the stem: a convolution, a batch norm, a ReLU and a max pooling."""

    def __init__(self, layers, classes, width=64):
        super().__init__()
        basic, inputs = layers < 50, width
        self.blocks = nn.ModuleList(
            [nn.Sequential(*conv_norm(3, width, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))])
        for stage, depth in enumerate(RESNET_DEPTHS[layers]):
            for i in range(depth):
                self.blocks.append(Residual(basic, inputs, width << stage, 2 if stage and i == 0 else 1))
                inputs = (width if basic else 4 * width) << stage
        self.head = nn.Linear(inputs, classes)

    def end(self, targets, x):
        return F.cross_entropy(self.head(x.mean((2, 3))), targets)


def resnet50(batch=4, image=96, classes=100):
    return Case(ResNet(50, classes), images(batch, image, classes), [f"blocks.{i}" for i in range(1, 17)])


def double_conv(inputs, outputs):
    relu = nn.ReLU(inplace=True)
    return nn.Sequential(*conv_norm(inputs, outputs, 3), relu, *conv_norm(outputs, outputs, 3), relu)


class UNet(Model):
    """A U-Net whose upward path uses transposed convolutions and reads results of the downward path."""

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


def unet(width=16, depth=3, batch=4, image=64, classes=4):
    return Case(UNet(width, depth, classes), images(batch, image, classes, of_pixels=True),
                [f"down.{i}" for i in range(depth + 1)] + [f"up.{i}" for i in range(depth)])


class Level(nn.Module):
    """A level of CairnUNet. It takes and returns x, followed by the results that the upward path will read later."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.convs = double_conv(inputs, outputs)

    def forward(self, x, *skips):
        return (self.convs(x), *skips)


class Down(Level):
    def forward(self, x, *skips):
        x = self.convs(x)
        return (F.max_pool2d(x, 2), *skips, x)


class Up(Level):
    def __init__(self, channels):
        super().__init__(2 * channels, channels)
        self.wider = nn.Conv2d(2 * channels, channels, 3, padding=1)

    def forward(self, x, *skips):
        x = self.wider(F.interpolate(x, scale_factor=2, mode="nearest"))
        return (self.convs(torch.cat((skips[-1], x), 1)), *skips[:-1])


class CairnUNet(Model):
    """Cairn's U-Net. Its upward path enlarges images by repeating pixels, and has 3x3 convolutions. In the downward
    path, a level and its pooling form one block."""

    def __init__(self, width, depth, classes):
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.blocks = nn.ModuleList(Down(i, o) for i, o in zip([3] + widths, widths[:-1]))
        self.blocks.append(Level(widths[-2], widths[-1]))
        self.blocks.extend(Up(channels) for channels in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, classes, 1)

    def end(self, targets, x):
        # If images are stored channels-last, the permuted tensor is contiguous, so flatten() copies nothing.
        logits = self.head(x).permute(0, 2, 3, 1)
        return F.cross_entropy(logits.flatten(0, 2), targets.flatten())
