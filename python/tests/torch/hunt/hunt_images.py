"""Contains parts, i.e. modules of which hunt_models.py composes models. The parts of this file treat their argument as
an image or a volume, in several memory formats.

The kind of such a part is a memory format followed by a chain of operations, such as "conv+gelu+dropout".
"""

import torch
import torch.nn.functional as F

from hunt_parts import WIDTH, Part

FORMATS = ("given", "contiguous", "last")


def bumped(noise):
    """Returns a function that adds noise to its argument. ``noise`` draws the noise, in the layout of the argument."""
    return lambda h: h + 0.1 * noise(h)


def in_float(operation):
    """Returns the operation in a form that computes in float32 if the argument is bfloat16, for operations for which
    PyTorch has no kernel for bfloat16."""
    return lambda h: operation(h.float() if h.dtype == torch.bfloat16 else h).to(h.dtype)


# Operations with the same name and meaning for images and volumes.
EITHER = {
    "alpha_dropout": lambda h: F.alpha_dropout(h, 0.3, True),
    "bernoulli": bumped(lambda h: torch.bernoulli(h.detach().sigmoid())),
    "bernoulli_in_place": bumped(lambda h: torch.empty_like(h).bernoulli_(0.4)),
    "cat": lambda h: torch.cat([h[:, 12:].sin(), h[:, :12]], 1),
    "copysign": lambda h: torch.copysign(h, h.flip(1)),
    "copysign_of_permuted": lambda h: torch.copysign(h, h.detach().transpose(2, 3).contiguous().transpose(2, 3)),
    "cumsum": lambda h: h.cumsum(2) * 0.2,
    "dropout": lambda h: F.dropout(h, 0.3),
    "dropout_in_place": lambda h: F.dropout(h.sin(), 0.3, inplace=True),
    "expanded": lambda h: h * h.mean(1, keepdim=True).expand_as(h).sigmoid(),
    "feature_alpha_dropout": lambda h: F.feature_alpha_dropout(h, 0.3, True),
    "flip": lambda h: h.flip(2).sin(),
    "gelu": F.gelu,
    "gelu_tanh": lambda h: F.gelu(h, approximate="tanh"),
    "glu": lambda h: F.glu(torch.cat([h, h.cos()], 1), 1),
    "hardswish": F.hardswish,
    "lerp": lambda h: torch.lerp(h, h.transpose(2, 3).reshape(h.shape).sin(), 0.3),
    "log_softmax": lambda h: h.log_softmax(1) * 0.3,
    "mish": F.mish,
    "normal": bumped(lambda h: torch.normal(h.detach(), 0.5)),
    "normal_in_place": bumped(lambda h: torch.empty_like(h).normal_()),
    "rand_like": bumped(torch.rand_like),
    "rand_like_contiguous": bumped(lambda h: torch.rand_like(h, memory_format=torch.contiguous_format)),
    "randint_like": bumped(lambda h: torch.randint_like(h, 5)),
    "randn_like": bumped(torch.randn_like),
    "randn_of_shape": bumped(lambda h: torch.randn(h.shape)),
    "relu_in_place": lambda h: F.relu(h.cos(), inplace=True),
    "roll": lambda h: h.roll(1, 2) * 0.9,
    "rrelu": lambda h: F.rrelu(h, training=True),
    "silu": F.silu,
    "softmax": lambda h: h.softmax(1) * 3,
    "sort": lambda h: h.sort(1)[0] * 0.7,
    "swapped": lambda h: F.elu(h.transpose(2, 3)).transpose(2, 3),
    "to_contiguous": lambda h: h.contiguous().tanh(),
    "where": lambda h: torch.where(h > 0, h, h.roll(1, 1).tanh()),
}
IMAGE = {
    "adaptive": lambda h: F.interpolate(F.adaptive_avg_pool2d(h, 2), size=h.shape[2:]) + h,
    "avg_pool": lambda h: F.avg_pool2d(h, 3, 1, 1),
    "bilinear": lambda h: F.avg_pool2d(F.interpolate(h, scale_factor=2, mode="bilinear"), 2),
    "channel_shuffle": lambda h: F.channel_shuffle(h, 4),
    "dropout2d": lambda h: F.dropout2d(h, 0.3),
    "fractional_pool": lambda h: F.interpolate(F.fractional_max_pool2d(h.contiguous(), 2, output_size=2),
                                               size=h.shape[2:]) + h,
    "grid_sample": lambda h: F.grid_sample(h, F.affine_grid(torch.eye(2, 3).expand(h.shape[0], 2, 3) * 0.9, h.shape,
                                                            align_corners=False).to(h.dtype), align_corners=False),
    "local_response": in_float(lambda h: F.local_response_norm(h, 3)),
    "max_pool": lambda h: F.max_pool2d(h, 3, 1, 1),
    "max_unpool": lambda h: F.max_unpool2d(*F.max_pool2d(h.contiguous(), 2, return_indices=True), 2) + h,
    "nearest": lambda h: F.max_pool2d(F.interpolate(h, scale_factor=2), 2),
    "pad": lambda h: F.pad(h, (1, 1, 1, 1), mode="reflect")[:, :, 1:-1, 2:],
    "pixel_shuffle": lambda h: F.pixel_unshuffle(F.gelu(F.pixel_shuffle(h, 2)), 2),
    "to_last": lambda h: h.to(memory_format=torch.channels_last).sigmoid(),
    "unfold": lambda h: F.fold(F.unfold(h, 2, stride=2).tanh(), h.shape[2:], 2, stride=2) + h,
}
VOLUME = {
    "avg_pool": in_float(lambda h: F.avg_pool3d(h, (3, 1, 1), 1, (1, 0, 0))),
    "dropout3d": lambda h: F.dropout3d(h, 0.3),
    "max_pool": lambda h: F.max_pool3d(h, 3, 1, 1),
    "nearest": in_float(lambda h: F.avg_pool3d(F.interpolate(h, scale_factor=2), 2)),
    "to_last": lambda h: h.to(memory_format=torch.channels_last_3d).sigmoid(),
    "trilinear": in_float(lambda h: F.interpolate(F.avg_pool3d(h, (2, 2, 1)), size=h.shape[2:], mode="trilinear") + h),
}
DRAWS = {name for name in EITHER | IMAGE | VOLUME if any(word in name for word in (
    "dropout", "bernoulli", "normal", "rand", "rrelu", "fractional"))}


class Image(Part):
    """A chain of operations on tensors of shape (batch, WIDTH, side, side)."""

    OPERATIONS = EITHER | IMAGE
    MODULES = {
        "batch_norm": lambda: torch.nn.BatchNorm2d(WIDTH),
        "conv": lambda: torch.nn.Conv2d(WIDTH, WIDTH, 3, padding=1),
        "conv_one": lambda: torch.nn.Conv2d(WIDTH, WIDTH, 1),
        "conv_grouped": lambda: torch.nn.Conv2d(WIDTH, WIDTH, 3, padding=1, groups=4),
        "conv_last": lambda: torch.nn.Conv2d(WIDTH, WIDTH, 3, padding=1).to(memory_format=torch.channels_last),
        "conv_transposed": lambda: torch.nn.ConvTranspose2d(WIDTH, WIDTH, 3, padding=1),
        "group_norm": lambda: torch.nn.GroupNorm(4, WIDTH),
        "instance_norm": lambda: torch.nn.InstanceNorm2d(WIDTH, affine=True),
        "prelu": lambda: torch.nn.PReLU(WIDTH),
    }
    LAST = torch.channels_last

    def __init__(self, kind, draw, side):
        super().__init__(kind, draw, side)
        self.format, *self.chain = kind.split("+")
        self.layers = torch.nn.ModuleList(self.MODULES.get(name, torch.nn.Identity)() for name in self.chain)

    @classmethod
    def draw_kind(cls, draw):
        """Draws a memory format and two to four operations. About one in three operations is a layer. With a
        probability of 0.4, a last operation is added, which draws random numbers."""
        names = [draw.choice(sorted(cls.MODULES)) if draw.random() < 0.35 else draw.choice(sorted(cls.OPERATIONS))
                 for _ in range(draw.randint(2, 4))]
        if draw.random() < 0.4:
            names.append(draw.choice(sorted(DRAWS & set(cls.OPERATIONS))))
        return "+".join([draw.choice(FORMATS), *names])

    def sizes(self):
        return self.side, self.side

    def forward(self, x):
        h = x.transpose(1, 2).unflatten(2, self.sizes())  # in this layout, the channels are last in memory
        if self.format != "given":
            h = h.contiguous(memory_format=torch.contiguous_format if self.format == "contiguous" else self.LAST)
        for name, layer in zip(self.chain, self.layers):
            h = layer(h) if name in self.MODULES else self.OPERATIONS[name](h)
        return h.flatten(2).transpose(1, 2)


class Volume(Image):
    """A chain of operations on tensors of shape (batch, WIDTH, side, side / 2, 2)."""

    OPERATIONS = EITHER | VOLUME
    MODULES = {
        "batch_norm": lambda: torch.nn.BatchNorm3d(WIDTH),
        "conv": lambda: torch.nn.Conv3d(WIDTH, WIDTH, 3, padding=1, groups=4),
        "conv_one": lambda: torch.nn.Conv3d(WIDTH, WIDTH, 1),
        "group_norm": lambda: torch.nn.GroupNorm(4, WIDTH),
    }
    LAST = torch.channels_last_3d

    def sizes(self):
        return self.side, self.side // 2, 2
