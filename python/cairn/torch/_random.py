"""Random operations that run again: each from the state that its generator had before its first run."""

import functools

import torch

from . import _private


def save_state(device):
    """The state of a device's generator: bytes, on the CPU."""
    return torch.get_rng_state() if device.type == "cpu" else torch.cuda.get_rng_state(device)


def _set_state(state, device):
    if device.type == "cpu":
        torch.set_rng_state(state)
    else:
        torch.cuda.set_rng_state(state, device)


@functools.cache
def state_bytes(device):
    with _private.no_modes():
        return save_state(device).nbytes


@functools.cache
def replayed(target, device):
    """A random operation as a function of the state that it draws from, and of its arguments. The generator is afterwards
    what it was before."""
    def run(state, *args, **kwargs):
        now = save_state(device)
        _set_state(state, device)
        try:
            return target(*args, **kwargs)
        finally:
            _set_state(now, device)

    run.__name__ = run.__qualname__ = f"{target.__name__.replace('.', '_')}_again"
    return run
