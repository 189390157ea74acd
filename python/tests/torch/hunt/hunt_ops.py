"""Contains custom operations for hunt_models.py. Some are deterministic and some are random. Some have several outputs,
some write their arguments, and some have effects that their schemas do not mention. They are made by
torch.library.custom_op and torch.library.Library.

Each operation with an effect appends two numbers to ``LOG`` when it runs: the operation's number, and a number that
depends on its argument.
"""

import torch

LOG = []
_COUNT = [0]  # number of calls of ``counted`` since ``reset``; the result of ``counted`` depends on it


def reset():
    LOG.clear()
    _COUNT[0] = 0


def log(number, x):
    LOG.append((number, round(float(x.detach().double().sum()), 4)))


def custom(name, *, mutates=(), tags=()):
    return torch.library.custom_op(f"hunt::{name}", mutates_args=mutates, tags=tags)


def differentiable(op, backward, save=lambda inputs, output: ()):
    """Makes a custom operation differentiable. Its result has the shape of its first argument. ``backward`` computes
    the gradient from the result's gradient and from the tensors that ``save`` returns."""
    def setup_context(ctx, inputs, output):
        saved = save(inputs, output)
        ctx.save_for_backward(*(t for t in saved if isinstance(t, torch.Tensor)))

    op.register_fake(lambda x: torch.empty_like(x))
    op.register_autograd(lambda ctx, grad: backward(grad, *ctx.saved_tensors), setup_context=setup_context)
    return op


# --- Deterministic


def _bend(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * 1.5


def _bend_back(grad: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return grad * (1.5 - y * y / 1.5)


bend = custom("bend")(_bend)
bend_back = custom("bend_back")(_bend_back)
bend_back.register_fake(lambda grad, y: torch.empty_like(grad))
differentiable(bend, bend_back, lambda inputs, output: (output,))


def _moments(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    mean = x.mean(-1, keepdim=True)
    return x - mean, mean, x.argmax(-1)


moments = custom("moments")(_moments)
moments.register_fake(lambda x: (torch.empty_like(x), x.new_empty((*x.shape[:-1], 1)),
                                 x.new_empty(x.shape[:-1], dtype=torch.int64)))
moments.register_autograd(lambda ctx, centred, mean, _: centred - centred.mean(-1, keepdim=True) + mean / centred.shape[-1],
                          setup_context=lambda ctx, inputs, output: ctx.mark_non_differentiable(output[2]))


# --- Random, with and without the tag that says so


def _noise(x: torch.Tensor) -> torch.Tensor:
    return x + 0.1 * torch.randn_like(x)


def _mask(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    mask = torch.rand_like(x) > 0.2
    return x * mask, mask


def _noisy_back(grad: torch.Tensor) -> torch.Tensor:
    return grad + 0.01 * torch.randn_like(grad)


def random_ops(suffix, tags):
    noise, mask = custom(f"noise{suffix}", tags=tags)(_noise), custom(f"mask{suffix}", tags=tags)(_mask)
    back = custom(f"noisy_back{suffix}", tags=tags)(_noisy_back)
    noisy_back = custom(f"noise_both_ways{suffix}", tags=tags)(_noise)
    differentiable(noise, lambda grad: grad)
    back.register_fake(lambda grad: torch.empty_like(grad))
    differentiable(noisy_back, back)
    mask.register_fake(lambda x: (torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)))
    mask.register_autograd(lambda ctx, grad, _: grad * ctx.saved_tensors[0],
                           setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output[1]))
    return noise, mask, noisy_back


noise, mask, noise_both_ways = random_ops("", ())
noise_tagged, mask_tagged, noise_both_ways_tagged = random_ops("_tagged", (torch.Tag.nondeterministic_seeded,))


# --- With effects


def logging_op(number):
    def forward(x: torch.Tensor) -> torch.Tensor:
        log(number, x)
        return torch.sin(x) + x

    def backward(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        log(-number, grad)
        return grad * (torch.cos(x) + 1)

    op, back = custom(f"logged{number}")(forward), custom(f"logged_back{number}")(backward)
    back.register_fake(lambda grad, x: torch.empty_like(grad))
    return differentiable(op, back, lambda inputs, output: (inputs[0],))


logged = [logging_op(number) for number in (1, 2, 3)]


def _counted(x: torch.Tensor) -> torch.Tensor:
    _COUNT[0] += 1
    log(10, x)
    return x * (1 + _COUNT[0] / 16)


counted = custom("counted")(_counted)
differentiable(counted, lambda grad: grad)


def _only_log(x: torch.Tensor) -> None:
    log(11, x)


only_log = custom("only_log")(_only_log)
only_log.register_fake(lambda x: None)


# --- With arguments that are written


def _add_mean(x: torch.Tensor, into: torch.Tensor) -> None:
    into.mul_(0.9).add_(x.mean((0, 1)), alpha=0.1)


def _add_mean_logged(x: torch.Tensor, into: torch.Tensor) -> torch.Tensor:
    log(12, into)
    into.mul_(0.9).add_(x.mean((0, 1)), alpha=0.1)
    return into.sum()


def _fill_noise(into: torch.Tensor) -> None:
    into.add_(torch.randn_like(into), alpha=0.1)


add_mean = custom("add_mean", mutates=("into",))(_add_mean)
add_mean.register_fake(lambda x, into: None)
add_mean_logged = custom("add_mean_logged", mutates=("into",))(_add_mean_logged)
add_mean_logged.register_fake(lambda x, into: into.new_empty(()))
fill_noise = custom("fill_noise", mutates=("into",))(_fill_noise)
fill_noise.register_fake(lambda into: None)


# --- Operations of a torch.library.Library

library = torch.library.Library("hunt_library", "DEF")


def define(schema, function, *, key="CPU", tags=(), derivative=None):
    name = schema.split("(")[0]
    library.define(schema, tags=tags)
    library.impl(name, function, key)
    if key != "CompositeImplicitAutograd":
        torch.library.register_fake(f"hunt_library::{name}", lambda x, *_: torch.empty_like(x), lib=library)
        torch.library.register_autograd(f"hunt_library::{name}", derivative, lib=library,
                                        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output))
    return getattr(torch.ops.hunt_library, name)


def _logged_library(x):
    log(20, x)
    return x.exp().clamp(max=3)


def _shifted_back(ctx, grad):
    return grad * 0.5, None


def _both(suffix, tags):
    return {
        "shifted": define(f"shifted{suffix}(Tensor x, float by) -> Tensor", lambda x, by: x * 0.5 + by, tags=tags,
                          derivative=_shifted_back),
        "noise": define(f"noise{suffix}(Tensor x) -> Tensor", _noise, tags=tags, derivative=lambda ctx, grad: grad),
        "noise_tagged": define(f"noise_tagged{suffix}(Tensor x) -> Tensor", _noise,
                               tags=(*tags, torch.Tag.nondeterministic_seeded), derivative=lambda ctx, grad: grad),
        "logged": define(f"logged{suffix}(Tensor x) -> Tensor", _logged_library, tags=tags,
                         derivative=lambda ctx, grad: grad * ctx.saved_tensors[0].clamp(max=2)),
        "composite": define(f"composite{suffix}(Tensor x) -> Tensor", _noise, key="CompositeImplicitAutograd", tags=tags),
    }


compliant, plain = _both("_compliant", (torch.Tag.pt2_compliant_tag,)), _both("", ())
