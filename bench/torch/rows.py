"""Rows of the tables in words. Nothing here needs torch."""

import json
import os

WRONG = 1e-3  # a relative error that is not rounding
AS_CHECKPOINT = "cairn-checkpoint"  # within the peak that checkpoint by block was measured to have


def title(mode):
    names = {"eager": "eager", "checkpoint": "checkpoint by block", "aot": "AOT, no schedule", "inductor": "Inductor"}
    if mode in names:
        return names[mode]
    below = ", Inductor" if mode.startswith("inductor") else ""
    if mode == AS_CHECKPOINT:
        return "Cairn at checkpoint's peak"
    kind, setting = mode.removeprefix("inductor-").split("-")
    return (f"knob {setting}" if kind == "knob" else f"Cairn {setting}{'' if setting == 'min' else '%'}") + below


def mib(count):
    return f"{count / 2**20:.1f}" if count < 200 * 2**20 else f"{count / 2**20:.0f}"


def is_wrong(found):
    """Whether a comparison of results found more than rounding."""
    return not found["identical"] and (found["error"] is None or not found["error"] <= WRONG)


def right(row, reference):
    found = row.get(f"against_{reference}")
    if found is None:
        return ""
    if found["identical"]:
        return "bit for bit"
    if found["error"] is None:
        return f"**wrong**: {found['of']}"
    percent = 100 * found["error"]
    text = f"{percent:.0f}%" if percent >= 1 else f"{percent:.2g}%" if percent >= 0.01 else f"{found['error']:.0e}"
    return f"**wrong**: {text} ({found['of'].split(':')[0]})" if is_wrong(found) else f"to {text}"


def write(path, value):
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(value))
    os.replace(new, path)
