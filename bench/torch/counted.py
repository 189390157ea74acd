#!/usr/bin/env python3
"""Counts the memory of training steps, which may consist of several graphs, and compares it with Cairn's promises.

usage: counted.py [MODEL ...] [--budgets 70,40,min] [--json FILE] [--markdown FILE] [options]

Default: all models of models/tables.py and models/more.py. A budget is a share of the step's peak without a budget.
Every row is measured in a process of its own. A step is forward and backward pass, without an optimizer. Three steps
run before the counted step: in the first, Cairn observes the graphs of the step; from the second on, the step follows a
plan for all of these graphs. Columns:
  counted    the largest number of bytes that were alive at one time during the step, without the bytes that were alive
             before it. A TorchDispatchMode counts the storages that operations make. So the count is independent of
             Cairn, and has no memory that kernels allocate for themselves.
  measured   the same number by torch's profiler, with the memory that kernels allocate
  promised   the peak that Cairn's report promises. It has no memory of code that runs outside of graphs. If more was
             counted than promised, the table says whether there was such code.
No column has the gradients of parameters. Loss, gradients and buffers of the last step must have the same bits as with
the backend "aot_eager". A cell of the table has the promise in MiB, and the measured and the counted bytes in percent
of the promise.
"""

import argparse
import gc
import json
import pathlib
import re
import sys
import tempfile
import time

import models
import rows
import table

STEPS = 3  # number of steps before the counted step


def counter():
    """Returns a class of TorchDispatchModes. After a ``with`` block in such a mode, its method peak(without) returns
    the largest number of bytes that were alive at one time in the block."""
    import torch
    from torch.multiprocessing.reductions import StorageWeakRef
    from torch.utils._python_dispatch import TorchDispatchMode

    def storages_of(values):
        return [value.untyped_storage() for value in torch.utils._pytree.tree_leaves(values)
                if isinstance(value, torch.Tensor) and value.layout is torch.strided]

    class Counter(TorchDispatchMode):
        """Records, for each storage that an operation makes, the time at which it is made and the time at which it is
        freed. A time is the number of operations that have run so far."""

        def __init__(self, given):
            super().__init__()
            self.known = {t.untyped_storage()._cdata: StorageWeakRef(t.untyped_storage()) for t in given}
            self.alive, self.time, self.lives = {}, 0, []  # lives: (begin, end, bytes, address)

        @classmethod
        def ignore_compile_internals(cls):  # otherwise torch.compile's functions would run eagerly in the mode
            return True

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            self.time += 1
            self.end_lives()
            for storage in storages_of((args, kwargs)):
                if self.is_new(storage):  # made before the block, such as a graph's constant
                    self.known[storage._cdata] = StorageWeakRef(storage)
            for storage in storages_of(result):
                if self.is_new(storage):
                    self.known.pop(storage._cdata, None)
                    self.alive[storage._cdata] = self.time, StorageWeakRef(storage), storage.nbytes(), storage.data_ptr()
            return result

        def is_new(self, storage):
            key = storage._cdata
            known = self.known.get(key) or (self.alive[key][1] if key in self.alive else None)
            return known is None or known.expired()

        def end_lives(self):
            for key, (begin, weak, size, address) in list(self.alive.items()):
                if weak.expired():
                    self.lives.append((begin, self.time, size, address))
                    del self.alive[key]

        def peak(self, without):
            """Returns the largest number of bytes that were alive at one time. ``without`` has the addresses of
            storages that are alive now and must not count."""
            self.time += 1
            self.end_lives()
            changes = [0] * (self.time + 2)
            for begin, end, size, _ in self.lives:
                changes[begin] += size
                changes[end] -= size
            for begin, _, size, address in self.alive.values():
                changes[begin] += size if address not in without else 0
            most = now = 0
            for change in changes:
                now += change
                most = max(most, now)
            return most

    return Counter


class Step:
    def __init__(self, case, backend):
        import torch
        torch._dynamo.reset()
        self.model, self.inputs = case.model, case.inputs
        model = self.model
        self.state = {name: value.clone() for name, value in model.state_dict().items()}
        self.call = torch.compile(lambda *inputs: model(*inputs), backend=backend)

    def __call__(self):
        import numpy
        import torch
        torch.manual_seed(7)
        numpy.random.seed(7)  # transformers draws the masks of wav2vec2 with numpy's random generator
        loss = self.call(*self.inputs)
        loss.backward()
        return loss.detach()

    def restore(self):
        self.model.load_state_dict(self.state)
        self.model.zero_grad(set_to_none=True)
        gc.collect()

    def gradients(self):
        return {name: p.grad for name, p in self.model.named_parameters() if p.grad is not None}

    def addresses(self):
        return {g.untyped_storage().data_ptr() for g in self.gradients().values()}


def measure(job):
    """Measures one row of the table. ``job`` has the model, the mode ("aot", which is without Cairn, or a budget), and
    the file with the results of the mode aot."""
    import torch
    import cairn.torch
    case = models.build(job["model"], job["device"])
    own = job["mode"] != "aot"
    backend = cairn.torch.backend(job["mode"], time_limit=job["time_limit"], fallback=False) if own else "aot_eager"
    step = Step(case, backend)
    for _ in range(STEPS):
        step()
        step.restore()
    with counter()([*step.model.parameters(), *step.model.buffers(), *(t for t in step.inputs if isinstance(t, torch.Tensor))]) as mode:
        step()
    row = {"counted": mode.peak(step.addresses())}
    step.restore()
    with cairn.torch.MemoryTrace(job["device"]) as trace:
        loss = step()
    row["measured"] = trace.at_peak(step.addresses())[0]
    results = {"loss": {"loss": loss}, "gradients": step.gradients(), "buffers": dict(step.model.named_buffers())}
    if not own:
        torch.save(results, job["reference"])
        return row
    row["same"] = table.compare(results, torch.load(job["reference"]))["identical"]
    report = cairn.torch.last_report()
    whole = report.step
    row.update(graphs=len(report.graphs), promised=report.promised, kept=report.kept, outside=report.outside,
               baseline=whole.baseline if whole else report.baseline)
    return row


def child(job, errors):
    table.run_child(job, errors, measure)


def line(model, mode, row):
    if "failed" in row:
        return f"| {model} | {mode} | | | | | {row['failed'].replace('|', '/')[:160]} |"
    worst = max(row["measured"], row["counted"])
    verdict = "same" if row["same"] else "**other bits**"
    if worst > row["promised"]:
        verdict += f", **{worst - row['promised']} bytes above**" + (", code runs outside of graphs" if row["outside"] else "")
    return (f"| {model} | {mode} | {row['graphs']} | {rows.mib(row['promised'])} | {rows.mib(row['measured'])}, "
            f"{100 * row['measured'] / row['promised']:.1f}% | {rows.mib(row['counted'])} | {verdict} |")


def cell(row):
    if "failed" in row:
        least = re.search(r"the least that (?:is found|can) is ([\d.]+) MiB", row["failed"])
        return f"refused, least {least[1]}" if least else row["failed"].replace("|", "/")[:80]
    shares = ", ".join(f"{100 * row[what] / row['promised']:.1f}%" for what in ("measured", "counted"))
    outside = " (code outside)" if max(row["measured"], row["counted"]) > row["promised"] and row["outside"] else ""
    return f"{rows.mib(row['promised'])}: {shares}{outside}{'' if row['same'] else ', **other bits**'}"


def markdown(data):
    """Returns a Markdown table with one line for each model and one column for each budget."""
    budgets = list(dict.fromkeys(mode for found in data["models"].values() for mode in found if mode != "aot"))
    lines = [f"| | graphs | {' | '.join(budgets)} |", f"| --- | ---: | {' | '.join('---:' for _ in budgets)} |"]
    for model, found in data["models"].items():
        graphs = next((str(row["graphs"]) for row in found.values() if "graphs" in row), "")
        lines.append(f"| {model} | {graphs} | {' | '.join(cell(found[b]) if b in found else '' for b in budgets)} |")
    every = [row for modes in data["models"].values() for mode, row in modes.items() if mode != "aot"]
    done = [row for row in every if "failed" not in row]
    near = [row for row in done if abs(row["measured"] / row["promised"] - 1) <= 0.03]
    kept = [row for row in done if max(row["measured"], row["counted"]) <= row["promised"]]
    lines += ["", f"{len(done)} of {len(every)} rows ran: {sum(row['same'] for row in done)} have the same bits, {len(kept)} are "
              f"within the promise, {len(near)} within 3% of it.", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--budgets", default="70,40,min", help="shares, and min; default 70,40,min")
    parser.add_argument("--time-limit", type=float, default=5, metavar="S", help="of each search; default 5")
    parser.add_argument("--threads", type=int, metavar="N", help="of torch; default: torch's")
    parser.add_argument("--timeout", type=float, default=600, metavar="S", help="of one row; default 600")
    table.add_device(parser)
    rows.add_files(parser)
    given = parser.parse_args()
    unknown = [name for name in given.models if name not in table.ALL]
    if unknown:
        parser.error(f"no model is called {unknown[0]!r}; models/tables.py and models/more.py list them")
    data = json.loads(given.json.read_text()) if given.json and given.json.exists() else {"models": {}}
    data["machine"] = table.machine(given.threads, given.device)
    with tempfile.TemporaryDirectory() as folder:
        for model in given.models or table.ALL:
            data["models"][model] = found = {}
            for mode in ("aot", *(b if b == "min" else f"{b}%" for b in given.budgets.split(","))):
                begin = time.monotonic()
                found[mode] = table.ask(pathlib.Path(folder), f"{folder}/cache", given.timeout, given.threads, to=child,
                                        what="counted", model=model, mode=mode, time_limit=given.time_limit, device=given.device,
                                        reference=f"{folder}/reference.pt")
                if mode == "aot" and "failed" not in found[mode]:
                    continue
                table.tell(f"{line(model, mode, found[mode])} {time.monotonic() - begin:.0f} s")
                if mode == "aot":
                    break
            if given.json:
                rows.write(given.json, data)
    rows.write_files(argparse.Namespace(json=None, markdown=given.markdown), data, markdown(data))


if __name__ == "__main__":
    sys.exit(main())
