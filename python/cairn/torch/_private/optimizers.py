"""Wraps the steps of torch's optimizers: calls functions at each step, and finds steps without hooks."""

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from .running import left_alone

_CALLS_HOOKS = torch.optim.Optimizer.profile_hook_step(lambda _: None).__code__
_before, _after = [], []  # functions that are called before and after each step of any optimizer, in any thread


def without_hooks(step):
    """Returns the step method of an optimizer's class without torch's wrapper, which would call hooks. The hooks stay
    registered, because other threads need them."""
    wrapper = torch._dynamo.eval_frame.innermost_fn(step)  # removes the wrapper of torch.compiler.disable
    return wrapper.__wrapped__ if getattr(wrapper, "__code__", None) is _CALLS_HOOKS else step


class _Called:
    """Registers a function that is called at each step of any optimizer, until remove() is called."""

    def __init__(self, functions, function):
        self.functions, self.function = functions, left_alone(function)
        functions.append(self.function)

    def remove(self):
        self.functions.remove(self.function)


def before_any_step(function):
    return _Called(_before, function)


def after_any_step(function):
    return _Called(_after, function)


# torch.compile may capture the next two functions. As long as no functions are registered, they cause no graph break.


def _call_before(*args):
    if _before:
        for function in list(_before):
            function(*args)


def _call_after(*args):
    if _after:
        for function in list(_after):
            function(*args)


# These two hooks are registered once and never removed. If a hook is registered or removed while another thread calls
# hooks, torch raises an error in that thread.
register_optimizer_step_pre_hook(_call_before)
register_optimizer_step_post_hook(_call_after)
