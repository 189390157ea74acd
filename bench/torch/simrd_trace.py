#!/usr/bin/env python3
"""Records one training step of PyTorch, without a compiler, as a simrd trace that `cairn` reads (docs/graph_format.md).

usage: simrd_trace.py MODEL FILE     a model of the tables (`python -m models` lists them)
"""
import json
import sys
import time

import models
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode


class Recorder(TorchDispatchMode):
    """Writes a line of the trace for each operation that PyTorch executes. In the trace, tensors are references to
    storages. All tensors of a storage are released together, when PyTorch frees the storage."""

    def __init__(self, file):
        super().__init__()
        self.file = file
        self.names = 0
        self.alive = {}  # storage -> (weak reference, names of its tensors)

    def write(self, instruction, **entries):
        self.file.write(json.dumps({"INSTRUCTION": instruction, **entries}, separators=(",", ":")) + "\n")

    def new_name(self):
        self.names += 1
        return f"x{self.names}"

    def entry(self, tensor):
        return self.alive.get(tensor.untyped_storage()._cdata)

    def made(self, tensor, name):
        storage = tensor.untyped_storage()
        self.alive[storage._cdata] = (StorageWeakRef(storage), [name])
        return str(storage.nbytes())

    def release(self):
        for key in [key for key, (reference, _) in self.alive.items() if reference.expired()]:
            for name in self.alive.pop(key)[1]:
                self.write("RELEASE", NAME=name)

    def argument(self, tensor):
        """Returns a name by which the trace knows the tensor's storage. If no recorded operation has made the storage,
        first writes the storage to the trace as a constant."""
        if self.entry(tensor) is None:
            name = self.new_name()
            self.write("CONSTANT", NAME=name)
            self.write("MEMORY", NAME=name, MEMORY=self.made(tensor, name))
        return self.entry(tensor)[1][0]

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.release()
        given = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        names = [self.argument(tensor) for tensor in given]
        begin = time.perf_counter_ns()
        result = function(*args, **kwargs)
        took = str(time.perf_counter_ns() - begin)
        results = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        written = self.written(function, args, kwargs, given)
        if written:
            self.write("MUTATE", NAME=function._schema.name, ARGS=names, MUTATE=written, TIME=took)
            took = "0"
        # An operation that writes some of its arguments can also make new tensors. For example, a batch norm writes its
        # running statistics and returns a new output.
        if results and (not written or any(self.entry(tensor) is None for tensor in results)):
            self.note_results(function, given, names, results, took)
        return result

    @staticmethod
    def written(function, args, kwargs, given):
        """Returns the positions in `given`, the list of the operation's tensor arguments, of the tensors that the
        operation writes."""
        values = [*args, *(kwargs.get(a.name) for a in function._schema.arguments[len(args):])]
        written = [id(leaf) for a, value in zip(function._schema.arguments, values)
                   if a.alias_info is not None and a.alias_info.is_write for leaf in pytree.tree_leaves(value)]
        return [i for i, tensor in enumerate(given) if id(tensor) in written]

    def note_results(self, function, given, names, results, took):
        made = [self.new_name() for _ in results]
        self.write("CALL", NAME=function._schema.name, ARGS=names, RESULT=made, TIME=took)
        for tensor, name in zip(results, made):
            known = self.entry(tensor)
            shared = [i for i, other in enumerate(given) if known is not None and self.entry(other) is known]
            if shared:
                known[1].append(name)
            self.write("MEMORY", NAME=name, MEMORY="0" if shared else self.made(tensor, name))
            self.write("ALIAS", NAME=name, ALIAS=str(shared[0] if shared else -1))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    case = models.build(sys.argv[1])
    case.model(*case.inputs).backward()  # runs one step unrecorded, because a first step also initialises things
    case.model.zero_grad()
    with open(sys.argv[2], "w") as file:
        recorder = Recorder(file)
        with recorder:
            recorder.write("ANNOTATE", ANNOTATION="START")
            loss = case.model(*case.inputs)
            recorder.write("ANNOTATE", ANNOTATION="BACKWARD")
            loss.backward()
            del loss
            recorder.release()


if __name__ == "__main__":
    main()
