"""A graph runs as torch.compile captured it where its schedule fails in its first run."""

import sys

import torch

import cairn

from .. import _private

_NOT_OF_CALLER = {"torch", "functorch", "cairn", *sys.stdlib_module_names}


def run_guarded(run, module, failed, written):
    """Wraps ``run`` so that it is tried once. If it raises where ``module`` does not, ``module`` runs in its place from
    then on, and ``failed`` gets the reason. An error that the module raises, too, is the model's own, and so is one
    that the user's code raises.

    A failed run has written nothing that the caller owns, as AOTAutograd writes inputs when a graph has ended; random
    numbers are drawn again from the state before. If the module fails, too, the arguments that it writes
    (``written(args)``) are restored. Ranks do not fall back: others would wait for exchanges that have already taken
    place.
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
        except cairn.Error:
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
        failed(reason)
        chosen = module.forward
        return result

    return call


def _is_of_caller(error):
    """Whether an error was raised within code that is neither torch's nor Cairn's, such as an operator, a signal
    handler or a saved-tensor hook. Code generated from graphs is in no module, or in one of torch's."""
    where, modules = error.__traceback__, set()
    while where is not None:
        modules.add(where.tb_frame.f_globals.get("__name__") or "torch")
        where = where.tb_next
    return getattr(error, "is_of_caller", False) or not {name.split(".")[0] for name in modules} <= _NOT_OF_CALLER
