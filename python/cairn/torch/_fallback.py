"""A graph whose schedule turns out not to run, when it is run first, runs as torch.compile captured it."""

import cairn

from . import _private


def run_guarded(run, module, failed):
    """``run`` as a function that is tried once. If it raises where ``module`` does not, that runs in its place from then on,
    and ``failed`` is told why. What the module raises, too, is the model's own error.

    A failed run has written nothing that is the caller's, as AOTAutograd writes inputs when a graph has ended, and random
    numbers are drawn again from the state before. Ranks do not fall back: others would wait for what was exchanged already.
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
            if _private.is_out_of_memory(error) or _private.collective_store() is not None:
                raise
            reason = f"{type(error).__name__}: {' '.join(str(error).splitlines()[:1])}"
        _private.set_generator_states(states)
        result = module.forward(*args)
        failed(reason)
        chosen = module.forward
        return result

    return call
