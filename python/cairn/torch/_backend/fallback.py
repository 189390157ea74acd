"""If the first run of a graph's schedule fails, runs the graph without a schedule, as torch.compile captured it."""

import sys

import torch

import cairn

from .. import _private
from .._errors import CairnWarning

_NOT_OF_CALLER = {"torch", "functorch", "cairn", *sys.stdlib_module_names}


def run_guarded(run, module, failed, written):
    """Wraps ``run`` in a function that falls back to ``module``. If the first call of ``run`` raises an error and
    ``module`` raises none, ``module`` runs from then on, and ``failed`` is called with the reason. If ``module`` fails
    as well, or if the error comes from the user's code, the error is passed on, because Cairn did not cause it.

    A failed run has not written what the caller owns, because AOTAutograd writes inputs only at the end of a graph. The
    random generators are set back to their states before the failed run. If the module fails as well, the arguments
    that it writes (``written(args)``) are restored. With several ranks, there is no fallback: the module would repeat
    exchanges with other ranks, and would wait for them for ever.
    """
    chosen = None

    def call(*args):
        nonlocal chosen
        if chosen is not None:
            return chosen(*args)
        states = _private.generator_states()
        try:
            result = run(*args)
            chosen = run
            return result
        except (cairn.Error, CairnWarning):  # the caller may have warnings raised as errors
            raise
        except Exception as error:
            if _is_of_caller(error) or _private.is_out_of_memory(error) or _private.collective_store() is not None:
                raise
            reason = f"{type(error).__name__}: {' '.join(str(error).splitlines()[:1])}"
        _private.set_generator_states(states)
        before = [(tensor, tensor.detach().clone()) for tensor in written(args)]
        try:
            result = module.forward(*args)
        except BaseException:
            with torch.no_grad():
                for tensor, value in before:
                    tensor.copy_(value)
            raise
        chosen = module.forward
        failed(reason)
        return result

    return call


def _is_of_caller(error):
    """Returns whether the error comes from code outside of torch and Cairn, such as a custom operator, a signal handler
    or a saved-tensor hook. Code that was generated from graphs does not count as outside: it has no module, or a module
    of torch."""
    where, modules = error.__traceback__, set()
    while where is not None:
        modules.add(where.tb_frame.f_globals.get("__name__") or "torch")
        where = where.tb_next
    return getattr(error, "is_of_caller", False) or not {name.split(".")[0] for name in modules} <= _NOT_OF_CALLER
