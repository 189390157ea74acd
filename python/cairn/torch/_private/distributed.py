"""The store that several processes share, and what DistributedDataParallel does to graphs and gradients."""

import torch


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
