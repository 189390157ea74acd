"""The store that several processes share, and what DistributedDataParallel does to graphs and gradients."""

import sys
import time

import torch

from .tensors import holders

# s; the longest wait for gloo's threads to let go of a tensor, for the case that something else holds it, too. Measured
# on two busy cores with four ranks: 3 ms at most.
_LET_GO = 0.02
_DROP = 0.002  # s; the longest wait for a Python object that torch no longer needs; a switch of threads takes 0.1 ms


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
    """Returns whether new gradients of the running forward pass are copied into buckets, because the gradients of its
    DistributedDataParallel are views of them."""
    module = torch.nn.parallel.DistributedDataParallel._get_active_ddp_module()
    return module is not None and module.gradient_as_bucket_view


def wait_tensor(tensor):
    """Does what torch's operator does, and returns when gloo's threads have let go of the tensors of the collective.
    Otherwise they might free these at any later time, which no plan foresees."""
    return _after_letting_go(torch.ops._c10d_functional.wait_tensor.default(tensor))


def wait_tensors(tensors):
    """Like wait_tensor(), for several tensors of one collective."""
    return [_after_letting_go(tensor) for tensor in torch.ops._c10d_functional.wait_tensors.default(tensors)]


def _after_letting_go(tensor):
    if type(tensor) is not torch.Tensor or tensor.device.type != "cpu":
        return tensor
    references = sys.getrefcount(tensor)
    end, waited = time.monotonic() + _LET_GO, False
    while holders(tensor) > 1 and time.monotonic() < end:
        waited = True
        time.sleep(0)
    # While C++ code holds a tensor, newer versions of torch also hold its Python object. Gloo's thread drops this last,
    # as it needs the interpreter for that.
    end = time.monotonic() + _DROP
    while waited and sys.getrefcount(tensor) >= references and time.monotonic() < end:
        time.sleep(1e-5)
    return tensor
