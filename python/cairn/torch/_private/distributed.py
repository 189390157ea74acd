"""Wraps what Cairn needs of torch.distributed: the store that all processes share, and DistributedDataParallel, also
with a forward pass that does not exchange gradients."""

import gc
import sys
import time

import torch
import torch.distributed
from torch.utils import _pytree as pytree

import cairn

from .tensors import holders

# Seconds; the longest wait for gloo's threads to drop their references to a tensor. The limit matters only if something
# else holds the tensor as well. On two busy cores with four ranks, gloo's threads took at most 3 ms.
_LET_GO = 0.02
# Seconds; the longest wait until torch drops a Python object that it no longer needs. A switch of threads takes 0.1 ms.
_DROP = 0.002


def collective_store():
    """Returns the key-value store that all ranks share; None if there is one process."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return None
    if torch.distributed.get_world_size() < 2:
        return None
    return torch.distributed.distributed_c10d._get_default_store()


def splits_for_ddp():
    """Returns whether torch.compile splits the present graph at the buckets of DistributedDataParallel."""
    parallel = torch.nn.parallel.DistributedDataParallel
    return bool(torch._dynamo.config.optimize_ddp in (True, "ddp_optimizer") and parallel._get_active_ddp_module() is not None)


def gradients_are_copied():
    """Returns whether new gradients of the running forward pass are copied into buckets, because its
    DistributedDataParallel keeps gradients as views of buckets (gradient_as_bucket_view)."""
    module = torch.nn.parallel.DistributedDataParallel._get_active_ddp_module()
    return module is not None and module.gradient_as_bucket_view


def wait_tensor(tensor):
    """Calls torch's operator wait_tensor, and then waits until gloo's threads have dropped their references to the
    collective's tensors. Otherwise, these tensors might be freed at any later time, and the measured memory would not
    follow the plan."""
    return _after_letting_go(torch.ops._c10d_functional.wait_tensor.default(tensor))


def wait_tensors(tensors):
    """Does the same as wait_tensor() for several tensors of one collective."""
    return [_after_letting_go(tensor) for tensor in torch.ops._c10d_functional.wait_tensors.default(tensors)]


def _after_letting_go(tensor):
    if type(tensor) is not torch.Tensor or tensor.device.type != "cpu":
        return tensor
    references = sys.getrefcount(tensor)
    end, waited = time.monotonic() + _LET_GO, False
    while holders(tensor) > 1 and time.monotonic() < end:
        waited = True
        time.sleep(0)
    # While C++ code holds a tensor, newer versions of torch also hold its Python object. Gloo's thread drops the Python
    # object last, because it must wait for the interpreter's lock first.
    end = time.monotonic() + _DROP
    while waited and sys.getrefcount(tensor) >= references and time.monotonic() < end:
        time.sleep(1e-5)
    return tensor


class DataParallel:
    """Wraps a DistributedDataParallel. Within a ``with`` block, its forward pass only calls the wrapped module, so that
    torch.compile can capture it as a whole, and gradients are not exchanged between ranks. Buffers are still
    exchanged."""

    def __init__(self, module):
        self.module = module
        self.ranks = module.process_group.size()
        self.group = module.process_group.group_name
        # This must be the same function object in all steps, because torch.compile's guards compare its identity.
        self._forward = _forward_without_exchange(module)

    @classmethod
    def all(cls):
        """Returns a DataParallel for each DistributedDataParallel of this process."""
        if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
            return []
        kind = torch.nn.parallel.DistributedDataParallel
        found = [value for value in gc.get_objects() if issubclass(type(value), kind)]
        # an object without a reducer is still under construction
        return [cls(value) for value in found if "reducer" in vars(value)]

    @staticmethod
    def runs():
        """Returns whether the ordinary forward pass of a DistributedDataParallel is running, i.e. outside of a ``with``
        block."""
        return torch.nn.parallel.DistributedDataParallel._get_active_ddp_module() is not None

    def parameters(self):
        """Returns the parameters whose gradients the DistributedDataParallel averages over the ranks."""
        ignored = self.module.parameters_to_ignore
        return [p for name, p in self.module.module.named_parameters() if p.requires_grad and name not in ignored]

    def unknown_feature(self):
        """Returns the name of a feature of DistributedDataParallel that is in use and that the forward pass within a
        ``with`` block lacks; None if there is none."""
        module, buffers = self.module, getattr(self.module, "buffer_hook", None)
        features = {"a communication hook": module._comm_hooks or buffers is not None,
                    "mixed_precision": module.mixed_precision is not None,
                    "delay_all_reduce_named_params": module._delay_all_reduce_params,
                    "join()": module._join_config.enable,
                    "a forward() of its own": "forward" in vars(module) or type(module).forward is not _FORWARD}
        return next((name for name, used in features.items() if used), None)

    def buckets(self, parameters):
        """Returns DistributedDataParallel's buckets in the first step, in the order in which it averages them. A bucket
        is a list of indices of ``parameters`` whose gradients are averaged together. A bucket has at most bucket_cap_mb
        (an option of DistributedDataParallel); the bucket of the module's first parameters is smaller."""
        distributed, module = torch.distributed, self.module
        first = distributed._DEFAULT_FIRST_BUCKET_BYTES if module.bucket_bytes_cap_default else module.bucket_bytes_cap
        found, _ = distributed._compute_bucket_assignment_by_size(parameters, [first, module.bucket_bytes_cap])
        return found[::-1]

    def __enter__(self):
        self.module.forward = self._forward

    def __exit__(self, *error):
        del self.module.forward


_FORWARD = torch.nn.parallel.DistributedDataParallel.forward


def _forward_without_exchange(module):
    def forward(*args, **kwargs):
        if not module.require_backward_grad_sync:
            _refuse_no_sync()
        if module.device_ids:
            device = torch.device(module.device_type, module.device_ids[0])
            args, kwargs = pytree.tree_map_only(torch.Tensor, lambda value: value.to(device), (args, kwargs))
        if module.will_sync_module_buffers():
            _broadcast([b for name, b in module.module.named_buffers() if name not in module.parameters_to_ignore],
                       module.process_group)
        result = module.module(*args, **kwargs)
        module.require_forward_param_sync = torch.is_grad_enabled()
        return result

    return forward


@torch._dynamo.disable
def _refuse_no_sync():
    raise cairn.InputError("optimizer: within no_sync() gradients add up over several backward passes, and in the plan they are "
                           "freed; plan this step without optimizer=")


def _broadcast(buffers, group):
    """Gives the buffers the values that they have on the first rank. torch.compile can capture this function."""
    kinds = {}
    for buffer in buffers:
        kinds.setdefault((buffer.dtype, buffer.device), []).append(buffer)
    with torch.no_grad():
        for alike in kinds.values():
            flat = torch.cat([buffer.reshape(-1) for buffer in alike])
            flat = torch.distributed._functional_collectives.broadcast(flat, 0, group)
            for buffer, part in zip(alike, flat.split([buffer.numel() for buffer in alike])):
                buffer.copy_(part.view(buffer.shape))


def average(gradients, ranks, group):
    """Returns the averages of gradients over the ranks of a group, computed as DistributedDataParallel does it for one
    bucket: the bits are the same if DistributedDataParallel's buckets are the same, or if there are two ranks."""
    flat = gradients[0].reshape(-1) if len(gradients) == 1 else torch.cat([gradient.reshape(-1) for gradient in gradients])
    operators = torch.ops._c10d_functional
    flat = operators.wait_tensor(operators.all_reduce(flat * (1.0 / ranks), "sum", group))
    parts = flat.split([gradient.numel() for gradient in gradients])
    return [part.view(gradient.shape).clone() for gradient, part in zip(gradients, parts)]
