"""Runs a function in several processes that exchange tensors, as the ranks of distributed training do."""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing

available = dist.is_available() and dist.is_gloo_available()


def on_ranks(work, ranks):
    """Starts ``ranks`` processes, and calls ``work(rank, ranks)`` in each of them. ``work`` must be a function at the
    top level of a module, and its results must be storable by torch.save. Returns the results in the order of the
    ranks. Each process has one thread and its own cache."""
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_run, (work, ranks, folder), ranks)
        return [torch.load(os.path.join(folder, f"{rank}.pt")) for rank in range(ranks)]


def _run(rank, work, ranks, folder):
    torch.set_num_threads(1)
    os.environ["CAIRN_CACHE"] = os.path.join(folder, f"cache-{rank}")
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
    torch.save(work(rank, ranks), os.path.join(folder, f"{rank}.pt"))
    dist.barrier()
    dist.destroy_process_group()
