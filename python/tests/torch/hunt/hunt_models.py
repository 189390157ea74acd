"""Makes random modules for hunt.py. A seed determines a ``Spec``, which is the same on every machine. A spec determines
a module and its inputs.

A module is a chain of parts (hunt_parts.py). A class of parts is called a family. Each part is drawn from its own seed,
so that it stays the same if other parts are removed from the spec.
"""

import dataclasses
import random

import numpy
import torch
import torch.nn.functional as F

import hunt_ops
import hunt_parts
from hunt_images import Image, Volume
from hunt_parts import WIDTH

FAMILIES = {f.__name__: f for f in (
    hunt_parts.Common, hunt_parts.Custom, hunt_parts.Untold, hunt_parts.Higher, hunt_parts.HigherRandom, hunt_parts.Nested,
    hunt_parts.Views, hunt_parts.InPlace, hunt_parts.Buffers, hunt_parts.Draws, hunt_parts.Index, hunt_parts.Networks,
    hunt_parts.Breaks, Image, Volume)}
# For each family of parts: the probability that a module has parts of this family, and the weight of the family when a
# part is drawn.
THEMES = {"Common": (1.0, 2), "Custom": (0.3, 2), "Untold": (0.2, 1), "Higher": (0.15, 1), "HigherRandom": (0.15, 1),
          "Nested": (0.3, 1), "Views": (0.4, 2), "InPlace": (0.4, 2), "Buffers": (0.4, 2), "Draws": (0.4, 2),
          "Index": (0.3, 1), "Networks": (0.15, 1), "Breaks": (0.06, 1), "Image": (0.4, 3), "Volume": (0.12, 1)}
# Properties that a module can have in addition to its parts, and their probabilities.
TRAITS = {
    "x_requires_grad": 0.4,
    "twice": 0.25,  # a part is used a second time at the end
    "tied": 0.15,  # two parts share the same weight
    "eval_part": 0.2,  # one part is in evaluation mode while the module trains
    "unused_parameter": 0.15,
    "autocast": 0.08,
    "double": 0.05,
    "bfloat16": 0.04,
    "out_mean": 0.3,
    "out_last": 0.2,
    "out_alias_input": 0.1,
    "out_alias_output": 0.15,
    "out_detached": 0.15,
    "out_index": 0.1,
    "out_buffer": 0.1,
    "out_number": 0.08,
    "frames": 0.12,  # two uint8 inputs that overlap in a ring buffer of numpy
    "ring": 0.12,  # two float inputs that overlap in a ring buffer of numpy
    "shared": 0.08,  # two tensors share a storage, because one is the other's .data
    "shared_set": 0.05,  # two tensors share a storage, because set_() gave one the storage of the other
    "state": 0.12,  # an input that is written
    "state_shared": 0.05,  # an input that is written, and a second input that shares its memory
    "buffer_is_input": 0.06,
    "overwritten": 0.5,  # memory shared with numpy is overwritten between forward and backward
}
NUMPY = ("frames", "ring")


@dataclasses.dataclass(frozen=True)
class Spec:
    """The description of a module. ``parts``: a tuple (family, kind, seed, skip) for each part. ``skip`` says what a
    skip connection adds to the part's result: None for nothing, 0 for the input of the chain, k for the result of the
    k-th part. ``traits``: names from TRAITS, in the order of TRAITS."""

    seed: int
    parts: tuple
    traits: tuple
    batch: int
    side: int

    def names(self):
        return [f"{family}.{kind}" for family, kind, _, _ in self.parts]


def draw_spec(seed):
    draw = random.Random(f"hunt {seed}")
    families = {name: weight for name, (share, weight) in THEMES.items() if draw.random() < share}
    parts = []
    for index in range(draw.randint(2, 5)):
        own = random.Random(f"hunt {seed} part {index}")
        family = own.choices(list(families), list(families.values()))[0]
        skip = own.randrange(index + 1) if own.random() < 0.35 else None
        parts.append((family, FAMILIES[family].draw_kind(own), own.randrange(2**31), skip))
    traits = tuple(name for name, share in TRAITS.items() if draw.random() < share)
    return Spec(seed, tuple(parts), traits, draw.choice([2, 4, 8]), draw.choice([4, 4, 6]))


class HuntModel(torch.nn.Module):
    """A chain of parts with skip connections. It returns its loss and further outputs."""

    def __init__(self, spec):
        super().__init__()
        self.traits = frozenset(spec.traits)
        self.parts = torch.nn.ModuleList()
        for family, kind, seed, _ in spec.parts:
            torch.manual_seed(seed)
            self.parts.append(FAMILIES[family](kind, random.Random(seed), spec.side))
        torch.manual_seed(spec.seed)
        self.skips = [skip for _, _, _, skip in spec.parts]
        if "tied" in self.traits and len(self.parts) > 1:
            self.parts[-1].lin.weight = self.parts[0].lin.weight
        if "twice" in self.traits:
            self.parts.append(self.parts[spec.seed % len(self.parts)])
            self.skips.append(None)
        self.head = torch.nn.Linear(WIDTH, 7)
        self.mix = torch.nn.Linear(WIDTH, WIDTH)
        self.register_buffer("seen", torch.zeros(WIDTH))
        if "unused_parameter" in self.traits:
            self.unused = torch.nn.Parameter(torch.zeros(3))
        self.to(next((getattr(torch, dtype) for dtype in ("double", "bfloat16") if dtype in self.traits), torch.float32))
        if "eval_part" in self.traits:
            self.parts[spec.seed // 7 % len(self.parts)].eval()

    def mixed(self, x, extra):
        """Returns ``x`` combined with the further inputs ``extra``."""
        if "frames_a" in extra:
            x = x + self.mix(extra["frames_a"].to(x.dtype) / 255).tanh() * (extra["frames_b"].to(x.dtype) / 128).cos()
        if "ring_a" in extra:
            x = x + self.mix(extra["ring_a"]).sin() * extra["ring_b"]
        if "shared_a" in extra:
            x = x + (extra["shared_a"] * self.mix.bias).tanh() + extra["shared_b"].sin()
        if "state" in extra:
            x = x * (1 + extra["state"].tanh())
            extra["state"].mul_(0.9).add_(x.detach().mean((0, 1)), alpha=0.1)
            x = x + extra["state"] * self.mix.bias
        if "state_view" in extra:
            x = x - extra["state_view"].sin()
        if "bound" in extra:
            x = x + self.bound.sin() * self.mix.bias + extra["bound"].cos()
        return x

    def outputs(self, x, given, extra):
        if "out_mean" in self.traits:
            yield x.mean(1)
        if "out_last" in self.traits:
            yield x
        if "out_alias_input" in self.traits:
            yield given.transpose(1, 2)
        if "out_alias_output" in self.traits:
            yield (y := x.sin().clone(memory_format=torch.contiguous_format)).view(-1)
            yield y.transpose(1, 2)[:, 1:]
        if "out_detached" in self.traits:
            yield x.detach()
        if "out_index" in self.traits:
            yield x.argmax(-1)
        if "out_buffer" in self.traits:
            self.seen.add_(x.detach().mean((0, 1)).to(self.seen.dtype))
            yield self.seen
        if "out_number" in self.traits:
            yield x.shape[1]

    def body(self, given, targets, extra):
        x = self.mixed(given, extra)
        seen = [x]
        for part, skip in zip(self.parts, self.skips):
            x = part(x)
            if self.head.weight.dtype == torch.bfloat16:
                x = x.to(torch.bfloat16)  # needed, because some parts add float32 tensors
            if skip is not None:
                x = x + seen[min(skip, len(seen) - 1)]
            seen.append(x)
        loss = F.cross_entropy(self.head(x).flatten(0, 1).float(), targets.flatten())
        return loss, *self.outputs(x, given, extra)

    def forward(self, given, targets, extra):
        if "autocast" in self.traits:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return self.body(given, targets, extra)
        return self.body(given, targets, extra)

    def generators(self):
        return [part.source for part in self.parts if isinstance(getattr(part, "source", None), torch.Generator)]


def total_of(out):
    """Returns the number that is differentiated: the loss plus a fraction of each further output that requires
    gradients."""
    return out[0] + sum(0.1 * o.float().square().mean() for o in out[1:] if isinstance(o, torch.Tensor) and o.requires_grad)


class Case:
    """A case of the hunt: a new module and its inputs, made from a spec."""

    def __init__(self, spec):
        hunt_ops.reset()
        self.spec = spec
        self.model = HuntModel(spec)
        self.dtype = self.model.head.weight.dtype
        torch.manual_seed(spec.seed + 1)
        self.numpy = numpy.random.RandomState(spec.seed % 2**31)
        self.shape = (spec.batch, spec.side**2, WIDTH)
        self.x = torch.randn(self.shape).to(self.dtype).requires_grad_("x_requires_grad" in spec.traits)
        self.targets = torch.randint(0, 7, self.shape[:2])
        self.rings = {}
        self.extra = dict(self.further_inputs())

    def ring(self, name, dtype):
        """Makes two inputs that are neighbouring windows of a ring buffer of numpy. They share all rows except one."""
        ring = self.rings[name] = numpy.zeros((self.shape[0] + 1, *self.shape[1:]), dtype)
        self.fill()
        return torch.from_numpy(ring[:-1]), torch.from_numpy(ring[1:])

    def further_inputs(self):
        traits = self.spec.traits
        plain = self.dtype in (torch.float32, torch.float64)
        if "frames" in traits:
            a, b = self.ring("frames", numpy.uint8)
            yield from {"frames_a": a, "frames_b": b}.items()
        if "ring" in traits and plain:
            a, b = self.ring("ring", numpy.float32 if self.dtype == torch.float32 else numpy.float64)
            yield from {"ring_a": a, "ring_b": b}.items()
        if "shared" in traits or "shared_set" in traits:
            a = torch.randn(self.shape, dtype=self.dtype)
            b = a.data if "shared" in traits else torch.empty(0, dtype=self.dtype).set_(
                a.untyped_storage(), WIDTH, (self.shape[1], WIDTH), (WIDTH, 1))
            yield from {"shared_a": a, "shared_b": b}.items()
        if "state" in traits or "state_shared" in traits:
            state = torch.randn(2 * WIDTH, dtype=self.dtype)
            yield "state", state[:WIDTH]
            if "state_shared" in traits:
                yield "state_view", state[WIDTH // 2:WIDTH // 2 + WIDTH]
        if "buffer_is_input" in traits:
            bound = torch.randn(self.shape[1:], dtype=self.dtype)
            self.model.register_buffer("bound", bound)
            yield "bound", bound

    def make_smaller(self):
        """Removes the last element of the batch, to test symbolic sizes."""
        rows = self.shape[0] - 1
        self.x = self.x.detach()[:rows].clone().requires_grad_(self.x.requires_grad)
        self.targets = self.targets[:rows]
        self.extra = {name: t[:rows] if t.shape == self.shape else t for name, t in self.extra.items()}

    def fill(self):
        for ring in self.rings.values():
            ring[...] = self.numpy.randint(0, 256, ring.shape) / (1 if ring.dtype == numpy.uint8 else 128)

    def overwrite(self):
        """If the spec says so, writes new numbers into inputs through numpy, which torch does not notice."""
        if "overwritten" in self.spec.traits:
            self.fill()

    def arguments(self):
        return self.x, self.targets, self.extra
