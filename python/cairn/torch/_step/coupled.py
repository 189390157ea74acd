"""Rejects optimizers that do not update each parameter independently of the others."""

import collections
import contextlib
import random
import warnings

import numpy
import torch

import cairn

from .. import _private
from .._errors import CairnWarning
from .one_parameter import FIRST_STEPS, Owner, alone, are_same, copied_with, laid_out_as, settings_of, step_alone

# Factor of the gradients in each round in which updates are compared. Small gradients come first: an optimizer's lower
# bounds (such as eps) affect updates only as long as its averages contain no large gradients. The factors grow so slowly
# that a bound on a common norm shows: in some round, the norm of all gradients exceeds it, and no single one does.
_SCALES = (*(1e-4 * 1.5 ** i for i in range(46)), *(1e-3, 10.0, 1e4, 1.0) * (FIRST_STEPS // 4))

_LARGE = 1 << 18  # largest number of elements of parameters that are tested because their shapes are equal


def refuse_coupled(optimizer):
    """Raises an error unless the optimizer updates each parameter independently. No other thread compiles meanwhile,
    because torch's optimizers compute in another way while torch compiles. Random generators keep their states."""
    with _private.compile_lock(), _private.compiling_flag(False), _private.no_modes(), _kept_generators():
        _refuse_coupled(optimizer)
    name = type(optimizer).__name__
    if not type(optimizer).step.__module__.startswith("torch.optim."):
        warnings.warn(
            f"optimizer: {name} is not one of torch.optim, and was only tested: its first {len(_SCALES)} steps update small "
            "parameters one by one with the same bits. If it couples parameters later or only large ones, leave out "
            "optimizer=, because results would differ", CairnWarning, stacklevel=4)


def _refuse_coupled(optimizer):
    """Raises an error unless the optimizer updates each parameter independently. The test runs on copies of small
    parameters: the two smallest of each group and each kind (_smallest). All kinds are tested, because some optimizers
    treat matrices differently from vectors, or let the type of the first parameter decide a setting for all
    (Adafactor). There are two sets of copies, which get the same gradients in several rounds. The first set is updated
    by one step for all copies. The second set is updated one parameter at a time, followed by a step without gradients.
    Both sets must have the same bits after each round, because only then each parameter may be updated as soon as its
    gradient is complete. In the last round, one gradient is infinite."""
    name = type(optimizer).__name__
    generator = torch.Generator().manual_seed(0)
    # A frozen parameter may be of a type that has no arithmetic, and one of a lazy module has no size before the module's
    # first call. When such a parameter begins to train, the test runs again.
    chosen = [(group, _smallest([p for p in group["params"] if is_trained(p)])) for group in optimizer.param_groups]
    chosen = [(group, parameters) for group, parameters in chosen if parameters]
    if any(p.layout is not torch.strided for _, parameters in chosen for p in parameters):
        raise cairn.InputError(f"optimizer: {name} has a sparse parameter, which cannot be in the plan")

    def copied():
        return copied_with(optimizer, [
            (group, {p: torch.nn.Parameter(laid_out_as(p).copy_(p.detach())) for p in parameters}) for group, parameters in chosen])

    def noise(shape):  # whatever the default device and type
        return torch.randn(shape, generator=generator, device="cpu", dtype=torch.float32)

    def parameters(one):
        return [p for group in one.param_groups for p in group["params"]]

    try:
        together, apart = copied(), copied()
        for number, scale in enumerate(_SCALES if parameters(together) else ()):
            gradients = []
            for p in parameters(together):
                p.grad = laid_out_as(p).copy_(noise(p.shape).mul_(scale))
                if not gradients and number + 1 == len(_SCALES):
                    p.grad[(0,) * p.ndim] = torch.inf
                gradients.append(p.grad.clone())
            step_alone(together)
            for group in reversed(apart.param_groups):  # in reverse order, to find out whether the order matters
                for i, q in reversed(list(enumerate(group["params"]))):
                    q.grad = gradients.pop()
                    step_alone(alone(apart, Owner(apart, group, i), q))
                    q.grad = None
            step_alone(apart)
            same = all(torch.equal(p.isnan(), q.isnan()) and torch.equal(p.detach().nan_to_num(), q.detach().nan_to_num())
                       for p, q in zip(parameters(together), parameters(apart)))
            settings = [[settings_of(group) for group in one.param_groups] for one in (together, apart)]
            if not same or not all(map(are_same, *settings)) or not all(isinstance(k, torch.Tensor) for k in apart.state):
                raise cairn.InputError(
                    f"optimizer: {name} does not update each parameter for itself (a common norm, a counter of its own?), so that it "
                    "cannot be in the plan; its step runs as ever without optimizer=")
    except cairn.Error:
        raise
    except Exception as error:  # raised, for example, if step() needs a closure
        raise cairn.InputError(f"optimizer: {name} cannot update one parameter at a time: {type(error).__name__}: "
                               f"{' '.join(str(error).split())}") from error


@contextlib.contextmanager
def _kept_generators():
    """Returns a context after which the random generators of Python and numpy have the same states as before."""
    states = random.getstate(), numpy.random.get_state()
    try:
        yield
    finally:
        random.setstate(states[0])
        numpy.random.set_state(states[1])


def is_trained(parameter):
    return parameter.requires_grad and not torch.nn.parameter.is_lazy(parameter)


def _smallest(parameters):
    """Returns the two smallest parameters for each number of dimensions, type and device, in the order of the group. Adds
    the two smallest of equal shape, unless they are large: some optimizers update parameters of one shape together."""
    alike = collections.defaultdict(list)
    for p in parameters:
        if (p.is_floating_point() or p.is_complex()) and p.numel():
            alike[p.ndim, p.dtype, p.device].append(p)
    kept = set()
    for same in alike.values():
        ordered, of_shape = sorted(same, key=torch.Tensor.numel), collections.defaultdict(list)
        for p in ordered:
            of_shape[p.shape].append(p)
        pair = next((some[:2] for some in of_shape.values() if len(some) > 1 and some[0].numel() <= _LARGE), [])
        kept.update(map(id, [*ordered[:2], *pair]))
    return [p for p in parameters if id(p) in kept]
