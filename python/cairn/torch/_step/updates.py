"""Updates each parameter in the backward pass as soon as its gradient is complete, so that the gradient can be
freed."""

import functools
import sys
import threading
import warnings
import weakref

import torch
from torch.utils import _pytree as pytree

import cairn

from .. import _private
from .._errors import CairnWarning
from .._memory.events import bytes_of
from .._report import size_text
from .averages import Averages
from .coupled import is_trained, refuse_coupled
from .one_parameter import (Owner, Update, alone, are_same, is_kept_as_gradient, laid_out_as, settings_of,
                            state_with_versions, step_alone)

_SETTINGS = ("optimizer: its settings (the learning rate, say) or its state were changed between backward() and its step, when "
             "parameters had been updated already; change them before or after, or plan this step without optimizer=")


def _kind_of(value, is_rate):
    """Returns, as a text, the properties of a setting on which the memory of updates can depend."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {value.device.type} {list(value.shape)}"
    if isinstance(value, (bool, int, float)):
        return "number" if is_rate or value else "0"
    return repr(value) if value is None or isinstance(value, str) else type(value).__name__


def _autocast_may_change(optimizer):
    """Returns whether updates may have other bits under autocast. Those of torch are elementwise, and autocast leaves
    such operations alone. Only the optimizers named here multiply matrices."""
    return not type(optimizer).__module__.startswith("torch.") or type(optimizer).__name__ in ("Adafactor", "Muon")


def _trained_by(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"] if is_trained(p)]


def _place_of(tensor):
    return tensor.untyped_storage()._cdata, tensor.storage_offset()


class Mark(torch.Tensor):
    """Takes the place of the gradient of a parameter that has already been updated. Its elements are NaN. Python code
    may read only properties such as shape and type; any other use by Python code raises an error. Uses by C++ code
    cannot be noticed here."""

    _KIND = frozenset(
        "shape size dim ndim ndimension numel nelement stride element_size itemsize nbytes dtype device get_device layout is_cpu "
        "is_cuda is_sparse is_sparse_csr is_quantized is_meta is_nested is_mkldnn is_floating_point is_complex is_contiguous is_leaf "
        "requires_grad grad_fn names _version __len__ __hash__".split())

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name == "__get__":
            name = getattr(function.__self__, "__name__", "")
        # A tracer inspects every tensor that it can reach, and must get no error for that. But the user's code must get
        # the error even while it is being traced.
        if name not in cls._KIND and (torch.compiler.is_dynamo_compiling() or not _private.asked_by_tracer(sys._getframe(1))):
            raise cairn.InputError(
                f"optimizer: the gradient of a parameter was read or written ({name}) between backward() and the optimizer's step, "
                "when the parameter had been updated already (clipping, a norm, a scaler, zeroing); plan this step without optimizer=")
        with _private.as_plain_tensors():
            return function(*args, **(kwargs or {}))


class Updates:
    """Runs the updates of a step's parameters. Within a ``with`` block, ``update`` updates a parameter during the
    backward pass, and the optimizer's own step skips this parameter. Between the update and the optimizer's step, the
    gradient of the parameter is a Mark (NaN), so that code that reads, clips or scales gradients is noticed."""

    def __init__(self, optimizers):
        self.optimizers = list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]
        for optimizer in self.optimizers:
            if not isinstance(optimizer, torch.optim.Optimizer) or not hasattr(optimizer, "_optimizer_step_pre_hooks"):
                raise cairn.InputError(f"optimizer: a torch.optim.Optimizer, or a list of them, not {type(optimizer).__name__}")
            refuse_coupled(optimizer)
        self.optimizers = list({id(optimizer): optimizer for optimizer in self.optimizers}.values())
        self.tell = lambda text: warnings.warn(text, CairnWarning, stacklevel=2)
        self.averages = Averages()
        self._active = False
        # address of a storage -> (weak reference to it, ids of the tensors that are inputs of graphs)
        self._inputs = {}
        self._owners = {}  # id(parameter) -> Owner; None if the parameter belongs to two optimizers
        # id(parameter) -> (parameter, its Mark, (its version counter, its place), result of state_with_versions())
        self._updated = {}
        self._settings = {}  # id(group) -> (Owner, the group's settings when the first of its parameters was updated)
        self._marks = {}  # (dtype, device) -> (a scalar NaN, its version)
        self._hooks = {}  # id(optimizer) -> handle of the hook that calls _before_step()
        self._stepping = set()  # ids of optimizers whose step() runs
        self._stepped = set()  # ids of optimizers in the plan whose step() has ended in this step
        self._gone = set()  # ids of parameters that such an optimizer has skipped, and that have no gradient any more
        # id(optimizer) -> [(parameter, its Mark)] of the step() that runs, for hooks of the caller that follow it
        self._hidden = {}
        # storage -> (id of the first tensor with this storage that a graph of this step has read, number of that run)
        self._readers = {}
        self._runs = 0  # number of runs of graphs with a backward pass in this step
        self._shared = set()  # storages that graphs of this step have read by several tensors, or in several such runs
        self._running = set()  # numbers of backward passes that have updated parameters and have not ended
        self._modes = None  # modes of the user that were active when the first parameter of the step was updated
        # id(parameter) -> weak reference to it, for parameters that were trained when their optimizer was tested
        self._tested = {id(p): weakref.ref(p) for optimizer in self.optimizers for p in _trained_by(optimizer)}
        self._ever_updated = set()  # ids of parameters that were updated in a backward pass of any step
        # id(optimizer) -> (its zero_grad(), the function that takes the place of zero_grad() while a step runs)
        self._zeroing = {}
        self._own_zeroing = {}  # id(optimizer) -> zero_grad() that the caller has set; None: that of the class
        self._fills_zeros = set()  # ids of optimizers whose latest zero_grad() was called with set_to_none=False
        # Number of times that settings changed between two steps in a way that can change the memory of updates.
        self.changes = 0
        self.left = set()  # ids of parameters that were to be updated in a backward pass, but were left to the optimizer's step
        # The result of _kinds_now() before the latest step. For the first step, this is the result after the step
        # instead: some settings are counters that are 0 only before it.
        self._kinds = None
        # name of an optimizer's class -> bytes of the gradients with which step() of such optimizers updated parameters
        # that no backward pass of this step has updated
        self._outside = {}

    def forget(self):
        """Drops the optimizers and their parameters. Compiled graphs keep this object as long as torch keeps the graphs,
        i.e. longer than the caller keeps the step."""
        self.optimizers, self.averages = [], Averages()
        for kept in (self._owners, self._zeroing, self._inputs, self._hidden):
            kept.clear()

    # --- While a graph is compiled

    def of_inputs(self, inputs):
        """Returns a dict from index to Update, for those inputs of a graph that are parameters and may be updated in
        the backward pass."""
        self._find_owners()
        self._note_inputs(inputs)
        with _private.no_modes():
            self._test_again()
            return {i: Update(p, self._owners[id(p)]) for i, p in enumerate(inputs)
                    if self._may_update(p) and not self._is_read_as_another(p)}

    def _note_inputs(self, inputs):
        for tensor in inputs:
            if _private.is_plain(tensor):
                storage = tensor.untyped_storage()
                readers = self._inputs.get(storage._cdata)
                if readers is None or readers[0].expired():
                    readers = self._inputs[storage._cdata] = _private.weak_storage(storage), set()
                readers[1].add(id(tensor))

    def _is_read_as_another(self, p):
        """Returns whether a graph of the step has an input that is another tensor with the parameter's memory, such as
        ``p.data``. The backward pass of that graph may come after the update."""
        return bool(self._inputs[p.untyped_storage()._cdata][1] - {id(p)})

    def note_run(self, args, has_backward):
        """Notes the memory that graphs of the step read by several tensors, or that several runs read whose backward
        passes will come. Called when the forward pass of a graph begins. Parameters in such memory are left to the
        optimizer's step, because a backward pass may read the memory after an update, or give another gradient."""
        is_within = _private.graph_task() >= 0  # a forward pass that a checkpoint repeats is no further run
        again = is_within and {place[0] for _, _, (_, place), _ in self._updated.values()}
        self._runs += has_backward and not is_within
        seen = set()
        for value in filter(_private.is_plain, args):
            key = value.untyped_storage()._cdata
            tensor, run = self._readers.setdefault(key, (id(value), self._runs))
            # Weights that were tied after the graph was compiled are one tensor at two of its inputs.
            if tensor != id(value) or (has_backward and (run != self._runs or key in seen)):
                self._shared.add(key)
            seen.add(key)
            if again and key in again:
                raise cairn.InputError(
                    "optimizer: a graph runs its forward pass within the backward pass (a checkpoint around it, a hook?) and "
                    "reads a parameter that was updated already; plan this step without optimizer=")

    def function(self):
        """Returns the function that a compiled graph calls to update a parameter."""
        def update_parameter(parameter, gradient):
            return self.update(parameter, gradient)

        return update_parameter

    def _find_owners(self):
        self._owners = {}
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for i, p in enumerate(group["params"]):
                    self._owners[id(p)] = None if id(p) in self._owners else Owner(optimizer, group, i)

    def _may_update(self, p):
        return (isinstance(p, torch.Tensor) and type(p) in (torch.Tensor, torch.nn.Parameter) and p.is_leaf and p.requires_grad
                and p.layout is torch.strided and self._owners.get(id(p)) is not None
                and not _private.may_be_replaced(p) and not p._post_accumulate_grad_hooks)

    # --- While a step runs

    def __enter__(self):
        self.averages.enter(p for optimizer in self.optimizers for group in optimizer.param_groups for p in group["params"])
        try:
            return self._begin()
        except BaseException:
            self.averages.leave()
            raise

    def _begin(self):
        if _private.autograd_is_compiled():
            raise cairn.InputError("optimizer: compiled autograd replaces the backward passes in which parameters are updated; "
                                   "plan this step without optimizer=, or switch compiled autograd off")
        self._test_again()
        self._find_owners()
        now = self._kinds_now()
        if self._kinds is not None and now != self._kinds:
            self.changes += 1
            self._kinds = now
        self._make_marks()
        self._hooks = {id(o): o.register_step_pre_hook(_private.left_alone(self._before_step)) for o in self.optimizers}
        self._hooks[None] = _private.before_any_step(self._before_any_step)
        self._hooks["last"] = _private.after_any_step(self._hide_marks)
        for optimizer in self.optimizers:
            self._hooks["after", id(optimizer)] = optimizer.register_step_post_hook(_private.left_alone(self._after_step))
            first = self._hooks["first after", id(optimizer)] = optimizer.register_step_post_hook(
                _private.left_alone(self._show_marks))
            optimizer._optimizer_step_post_hooks.move_to_end(first.id, last=False)
        self._stepping.clear()
        self._stepped.clear()
        self._gone.clear()
        self._shared.clear()
        self._running.clear()
        self._outside.clear()
        self._readers.clear()
        self._runs = 0
        self._watch_zeroing()
        self._active = True
        return self

    def _test_again(self):
        """Tests the optimizers again that have got parameters, or of which parameters train for the first time."""
        for optimizer in self.optimizers:
            trained = _trained_by(optimizer)
            if any(id(p) not in self._tested or self._tested[id(p)]() is not p for p in trained):
                refuse_coupled(optimizer)
                self._tested.update((id(p), weakref.ref(p)) for p in trained)

    def _make_marks(self):
        """Makes a scalar NaN for the Marks of each type and device, unless there is one that nobody has written. Marks
        are views of these scalars. So later steps need no memory for Marks."""
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for p in group["params"]:
                    scalar, version = self._marks.get((p.dtype, p.device), (None, None))
                    if p.requires_grad and (scalar is None or scalar._version != version):
                        scalar = torch.full((), torch.nan, dtype=p.dtype, device=p.device)
                        self._marks[p.dtype, p.device] = scalar, scalar._version

    def _watch_zeroing(self):
        """Replaces zero_grad() of the optimizers by functions that note whether the caller wants gradients of zeros
        instead of None."""
        for optimizer in self.optimizers:
            self._own_zeroing[id(optimizer)] = vars(optimizer).get("zero_grad")
            given = optimizer.zero_grad
            wrapped, _ = self._zeroing.get(id(optimizer), (None, None))
            if wrapped != given:  # a new function each time would make torch.compile compile the step again
                self._zeroing[id(optimizer)] = given, _private.left_alone(self._noting(optimizer, given))
            optimizer.zero_grad = self._zeroing[id(optimizer)][1]

    def _noting(self, optimizer, zero_grad):
        def noted(*args, **kwargs):
            set_to_none = kwargs.get("set_to_none", args[0] if args else True)
            (self._fills_zeros.discard if set_to_none else self._fills_zeros.add)(id(optimizer))
            if set_to_none:  # in plain PyTorch, these parameters have no gradients from here on, either
                self._gone.difference_update(id(p) for group in optimizer.param_groups for p in group["params"])
            return zero_grad(*args, **kwargs)

        return noted

    def _kinds_now(self):
        """Returns the properties of settings on which the memory of updates can depend: for each setting, such as
        weight decay or momentum, whether it is 0 and whether it is a tensor. Values of learning rates are left out,
        because they may change in every step."""
        return [sorted((name, _kind_of(leaf, name in ("lr", "initial_lr")))
                       for name, value in group.items() if name not in ("params", "param_names")
                       for leaf in pytree.tree_leaves(value))
                for optimizer in self.optimizers for group in optimizer.param_groups]

    def __exit__(self, kind, error, where):
        self._active = False
        self.averages.leave()
        if self._kinds is None and kind is None:
            self._kinds = self._kinds_now()
        for hook in self._hooks.values():
            hook.remove()
        for optimizer in self.optimizers:
            own = self._own_zeroing.pop(id(optimizer), None)
            if vars(optimizer).get("zero_grad") is not self._zeroing.get(id(optimizer), (None, None))[1]:
                continue  # the step has replaced it
            if own is not None:
                optimizer.zero_grad = own
            else:
                vars(optimizer).pop("zero_grad", None)
        left = len(self._updated)
        for optimizer in self.optimizers:
            self._hide_marks(optimizer, (), {})
        for parameter, *_ in self._updated.values():
            parameter.grad = None
        self._updated.clear()
        self._settings.clear()
        if not left:
            return
        if kind is None:
            raise cairn.InputError(
                f"optimizer: step() of the optimizer was not called in this step, though {left} parameters are updated as soon as "
                "their gradients are there (a scaler that skipped it? micro batches?); plan this step without optimizer=")
        # Torch raises an error with these words if autograd adds a gradient to a Mark.
        if issubclass(kind, RuntimeError) and "single memory location" in str(error):
            raise cairn.InputError(
                f"optimizer: a second backward pass, or code that is in no graph, added to gradients when {left} parameters had "
                "been updated already; plan this step without optimizer=") from error
        if issubclass(kind, RuntimeError) and "modified by an inplace operation" in str(error):
            raise cairn.InputError(
                "optimizer: a parameter was updated when its gradient from one graph of this step was there, while another part of "
                "the step still reads it; plan this step without optimizer=") from error
        if not issubclass(kind, cairn.Error):
            self.tell(f"this step ended with {kind.__name__} when {left} parameters had been updated already, as the optimizer is in "
                      "the plan")

    def update(self, parameter, gradient):
        """Updates the parameter and returns None. If the optimizer's own step must update the parameter, returns the
        gradient instead."""
        if id(parameter) in self._updated:
            raise cairn.InputError(
                f"optimizer: a parameter of shape {list(parameter.shape)} gets a second gradient after it was updated, as with "
                "several backward passes in a step; plan this step without optimizer=")
        if not self._active:
            return gradient
        owner = self._owners.get(id(parameter))
        if owner is not None and not owner.is_current(parameter):
            self._find_owners()
            owner = self._owners.get(id(parameter))
        # If torch.autograd.grad() returns the gradient to the caller, or if nobody asked for it, the parameter is not
        # updated.
        if not _private.accumulates(parameter):
            return gradient if _private.is_returned(parameter) else None
        is_shared = parameter.untyped_storage()._cdata in self._shared
        if parameter.grad is not None or is_shared or not self._may_update(parameter) or _private.autograd_is_compiled():
            self.tell("a parameter that is to be updated as soon as its gradient is there was left to the optimizer's step, as it has a "
                      "hook or a gradient now, another optimizer, memory that another input shares, or two graphs that read it, or "
                      "compiled autograd is on: that gradient is not within what is promised")
            self.left.add(id(parameter))
            return gradient
        if not self._updated:
            self._modes = _private.modes_of_user()
        task = _private.graph_task()
        if task not in self._running:
            self._running.add(task)
            _private.when_backward_ends(functools.partial(self._running.discard, task))
        if id(owner.group) not in self._settings:
            self._settings[id(owner.group)] = owner, settings_of(owner.group, as_numbers=True)
        if not is_kept_as_gradient(gradient, parameter):
            gradient = laid_out_as(parameter).copy_(gradient)
        parameter.grad = gradient
        del gradient
        with _private.no_autocast():
            step_alone(alone(owner.optimizer, owner, parameter))
        # Makes torch raise an error if autograd later reads the parameter's value from before the update.
        torch.autograd.graph.increment_version(parameter)
        mark = self._marks[parameter.dtype, parameter.device][0].expand_as(parameter).as_subclass(Mark)
        parameter.grad = mark
        self._ever_updated.add(id(parameter))
        self._updated[id(parameter)] = (
            parameter, mark, (parameter._version, _place_of(parameter)), state_with_versions(owner.optimizer, parameter))
        return None

    def _before_any_step(self, optimizer, args, kwargs):
        if any(optimizer is own for own in self.optimizers):
            return
        if any(id(p) in self._updated or (id(p) in self._gone and p.grad is None)
               for group in optimizer.param_groups for p in group["params"]):
            raise cairn.InputError(f"optimizer: {type(optimizer).__name__} has parameters of an optimizer that is in the plan")

    def _before_step(self, optimizer, args, kwargs):
        """Checks that settings, state and gradients have not changed since the parameters were updated in the backward
        pass. Then removes the Marks, so that the optimizer skips these parameters."""
        name = type(optimizer).__name__
        if any(a is not None for a in (*args[1:], *kwargs.values())):  # the first argument is the optimizer
            raise cairn.InputError("optimizer: one that is called with a closure cannot be in the plan; plan the closure")
        if next(reversed(optimizer._optimizer_step_pre_hooks)) != self._hooks[id(optimizer)].id:
            raise cairn.InputError(f"optimizer: {name} got a hook within the step; register it before, or plan this step without "
                                   "optimizer=")
        if id(optimizer) in self._stepped:
            raise cairn.InputError(f"optimizer: step() of {name} was called twice in a step, and the gradients are gone after the "
                                   "first call; plan this step without optimizer=")
        mine = [p for p, *_ in self._updated.values() if (owner := self._owners.get(id(p))) and owner.optimizer is optimizer]
        if mine and self._running and _private.graph_task() < 0:  # else, a hook of the backward pass calls step()
            raise cairn.InputError(
                f"optimizer: a backward pass of this step failed when {len(self._updated)} parameters had been updated already; "
                "plan this step without optimizer=, or let the error end it")
        for p in mine:
            _, mark, updated, state = self._updated[id(p)]
            scalar, version = self._marks[p.dtype, p.device]
            is_written = (p._version, _place_of(p)) != updated
            if p.grad is not mark or scalar._version != version or is_written:
                what = "value" if is_written else "gradient"
                raise cairn.InputError(
                    f"optimizer: the {what} of a parameter of shape {list(p.shape)} was changed between backward() and the "
                    "optimizer's step (clipping, a scaler, another backward pass), when it had been updated already; plan this "
                    "step without optimizer=")
            now = state_with_versions(optimizer, p)
            if len(now) != len(state) or not all(a is b and v == w for (a, v), (b, w) in zip(state, now)):
                raise cairn.InputError(_SETTINGS)
        for owner, before in [known for known in self._settings.values() if known[0].optimizer is optimizer]:
            if not any(group is owner.group for group in optimizer.param_groups) or not are_same(
                    before, settings_of(owner.group, as_numbers=True)):
                raise cairn.InputError(_SETTINGS)
            del self._settings[id(owner.group)]
        if mine and _private.modes_of_user() != self._modes:
            raise cairn.InputError(f"optimizer: other modes that see operations are active in the step of {name} than when its "
                                   "parameters were updated, in the backward pass; plan this step without optimizer=")
        if mine and _autocast_may_change(optimizer) and any(
                torch.is_autocast_enabled(kind) for kind in {p.device.type for p in mine}):
            raise cairn.InputError(f"optimizer: {name} steps under autocast, and its parameters have been updated without; call step() "
                                   "outside of autocast, or plan this step without optimizer=")
        if mine:
            self._stepping.add(id(optimizer))
        known = {id(p) for p in mine}
        outside = [p for group in optimizer.param_groups for p in group["params"] if id(p) not in known and p.grad is not None]
        for p in outside:
            if self.averages.has(p):
                raise cairn.InputError(
                    f"optimizer: the gradient of a parameter of shape {list(p.shape)} was not averaged over the ranks, because it had "
                    "a hook or a gradient before, or because its graph runs without a budget; plan this step without optimizer=")
        untold = [p for p in outside if id(p) not in self.left]
        if untold and not self._ever_updated.isdisjoint(id(p) for group in optimizer.param_groups for p in group["params"]):
            self._outside[name] = self._outside.get(name, 0) + bytes_of(p.grad for p in untold)
        if id(optimizer) in self._fills_zeros and any(
                p.grad is None and id(p) not in known and id(p) in self._ever_updated
                for group in optimizer.param_groups for p in group["params"]):
            raise cairn.InputError(
                f"optimizer: {name}.zero_grad(set_to_none=False) leaves gradients of zeros, with which step() updates parameters that "
                "this step does not use, and in the plan they have none; leave set_to_none out, or plan this step without optimizer=")
        for p in mine:
            p.grad = None
            self._hidden.setdefault(id(optimizer), []).append((p, self._updated.pop(id(p))[1]))
            self._gone.add(id(p))

    def tell_of_unused(self):
        """Warns about each optimizer of which no parameter has been updated in a backward pass so far."""
        for optimizer in self.optimizers:
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            if not any(id(p) in self._ever_updated for p in parameters):
                of_two = any(id(p) in self._owners and self._owners[id(p)] is None for p in parameters)
                why = ("its parameters belong to another optimizer, too" if of_two else "no graph of this step computes the whole "
                       "gradient of one of its parameters (does it have the parameters of another model, do several graphs read them, "
                       "or are their gradients parts of one tensor?)")
                self.tell(f"optimizer: the plan does not contain {type(optimizer).__name__}, as {why}")

    def tell_of_outside(self):
        """Warns about optimizers whose step() has updated parameters that no backward pass updates, beside those of the
        plan."""
        for name, size in self._outside.items():
            self.tell(f"optimizer: {name}.step() updates parameters that are not in the plan, for example because they have hooks or "
                      "gradients of their own, share gradients or memory, or because code that is in no graph computes gradients of "
                      f"them: their gradients, {size_text(size)}, and what their updates allocate are not within what is promised")

    def _show_marks(self, optimizer, args, kwargs):
        """Puts the Marks back while the caller's hooks run that follow a step, so that code in them that reads gradients
        is noticed."""
        for p, mark in self._hidden.get(id(optimizer), ()):
            if p.grad is None:
                p.grad = mark

    def _hide_marks(self, optimizer, args, kwargs):
        for p, mark in self._hidden.pop(id(optimizer), ()):
            if p.grad is mark:
                p.grad = None

    def _after_step(self, optimizer, args, kwargs):
        # If an optimizer's step() calls the step() of its base class, torch calls the hooks twice; only the first call
        # counts.
        if id(optimizer) in self._stepping:
            self._stepping.remove(id(optimizer))
            self._stepped.add(id(optimizer))


class OptimizersThatStep:
    """Collects the optimizers whose step() this thread runs within a ``with`` block."""

    def __enter__(self):
        self.optimizers = []
        self._thread = threading.get_ident()
        self._hook = _private.after_any_step(self._after_step)
        return self

    def __exit__(self, *error):
        self._hook.remove()

    def _after_step(self, optimizer, args, kwargs):
        if threading.get_ident() == self._thread and all(o is not optimizer for o in self.optimizers):
            self.optimizers.append(optimizer)

    def state_bytes(self):
        """Returns the bytes of the distinct tensors in the states of these optimizers."""
        return bytes_of(leaf for optimizer in self.optimizers for state in optimizer.state.values()
                        for leaf in pytree.tree_leaves(state))
