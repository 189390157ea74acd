"""Several processes share a store, and DistributedDataParallel splits graphs and copies gradients."""

import torch


def collective_store():
    """The key-value store that all ranks share; None where there is one process."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return None
    if torch.distributed.get_world_size() < 2:
        return None
    return torch.distributed.distributed_c10d._get_default_store()


def splits_for_ddp():
    """Whether torch.compile, in its present capture, splits the graph at the buckets of DistributedDataParallel."""
    parallel = torch.nn.parallel.DistributedDataParallel
    return bool(torch._dynamo.config.optimize_ddp in (True, "ddp_optimizer") and parallel._get_active_ddp_module() is not None)


def gradients_are_copied():
    """Whether the running forward pass is that of a DistributedDataParallel whose gradients lie in its buckets, so that
    new gradients are copied there."""
    module = torch.nn.parallel.DistributedDataParallel._get_active_ddp_module()
    return module is not None and module.gradient_as_bucket_view
