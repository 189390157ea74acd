#!/usr/bin/env python3
"""Computes the peaks of simrd traces from their lines, and compares them with the baseline's peaks that cairn reports.

usage: bench/simrd_peak.py CAIRN TRACE...

A storage takes memory from the CALL that makes it to the last operation that names it. If the trace never releases the
storage, it takes memory until the end. Storages that exist before START, and constants, are resident and are not
counted. This script shares no code with core/formats/simrd.cpp. The exit code is 1 if a peak differs.
"""

import json
import sys

from table_rows import need


class Storage:
    def __init__(self, resident):
        self.resident = resident
        self.bytes = 0
        self.references = 0
        self.last_use = 0


def operations(path):
    """Reads a trace. Returns, for each operation of the step, the storages that it makes and the storages that it
    reads. The `last_use` of a storage is the index of the last operation that names it."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.strip()]
    started = not any(line.get("ANNOTATION") == "START" for line in lines)
    tensors, every, steps = {}, [], []

    def define(name, storage):
        if name in tensors:
            tensors[name].references -= 1
        storage.references += 1
        tensors[name] = storage

    def make():
        every.append(Storage(not started))
        return every[-1]

    def use(names):
        storages = [tensors[name] for name in names]
        for storage in storages:
            storage.last_use = len(steps)
        return storages

    for line in lines:
        kind = line["INSTRUCTION"]
        if kind == "ANNOTATE" and line["ANNOTATION"] == "START" and not started:
            started = True
            steps.clear()
            for storage in every:
                storage.resident = True
        elif kind == "CONSTANT":
            define(line["NAME"], make())
            tensors[line["NAME"]].resident = True
        elif kind == "MEMORY":
            tensors[line["NAME"]].bytes = int(line["MEMORY"])
        elif kind == "ALIAS" and int(line["ALIAS"]) != -1:
            made, arguments = steps[-1]
            own = tensors[line["NAME"]]
            if own in made:
                made.remove(own)
            define(line["NAME"], arguments[int(line["ALIAS"])])
        elif kind == "CALL":
            arguments = use(line["ARGS"])
            made = [make() for _ in line["RESULT"]]
            for storage in made:
                storage.last_use = len(steps)
            steps.append((made, arguments))
            for name, storage in zip(line["RESULT"], made):
                define(name, storage)
        elif kind == "MUTATE":
            steps.append(([], use(line["ARGS"])))
        elif kind in ("COPY", "COPY_FROM"):
            define(line["DST"], tensors[line["SRC"]])
        elif kind == "RELEASE":
            tensors.pop(line["NAME"]).references -= 1
    return steps


def peak(path):
    live = highest = 0
    ends = {}
    for step, (made, _) in enumerate(operations(path)):
        for storage in made:
            if storage.resident:
                continue
            live += storage.bytes
            if storage.references == 0:
                ends.setdefault(storage.last_use, []).append(storage)
        highest = max(highest, live)
        live -= sum(storage.bytes for storage in ends.get(step, []))
    return highest


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    differ = 0
    for path in sys.argv[2:]:
        found = need([sys.argv[1], "info", path, "--time-limit", "1s", "--json"])["baseline_peak_bytes"]
        expected = peak(path)
        differ += found != expected
        print(f"{path}: trace {expected}, cairn {found}{'' if found == expected else '  DIFFERS'}")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
