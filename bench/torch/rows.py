"""This module writes measurements as Markdown tables. It does not need torch."""

import json
import os
import pathlib

WRONG = 1e-3  # a relative error above this cannot come from rounding
AS_CHECKPOINT = "cairn-checkpoint"  # Cairn; its budget is the peak measured with a checkpoint around each block
FUSED = "inductor-cairn-100"  # Cairn's graph of fused kernels, without a budget
REFERENCES = "eager", "aot", "inductor", FUSED  # rows to which other rows are compared


def reference_of(mode):
    if mode in ("eager", "checkpoint"):
        return "eager"
    return FUSED if mode.startswith("inductor-cairn") else "inductor" if mode.startswith("inductor") else "aot"


def title(mode):
    names = {"eager": "eager", "checkpoint": "checkpoint by block", "aot": "AOT, no schedule", "inductor": "Inductor",
             "inductor-checkpoint": "checkpoint by block, Inductor"}
    if mode in names:
        return names[mode]
    below = ", Inductor" if mode.startswith("inductor") else ""
    if mode == AS_CHECKPOINT:
        return "Cairn at checkpoint's peak"
    kind, setting = mode.removeprefix("inductor-").split("-")
    return (f"knob {setting}" if kind == "knob" else f"Cairn {setting}{'' if setting == 'min' else '%'}") + below


def mib(count):
    return f"{count / 2**20:.1f}" if count < 200 * 2**20 else f"{count / 2**20:.0f}"


def threads(machine):
    return f"{machine['threads']} thread{'s' * (machine['threads'] > 1)}"


def is_wrong(found):
    return not found["identical"] and (found["error"] is None or not found["error"] <= WRONG)


def right(row, mode):
    """Returns a text that says how much the loss, gradients and buffers of a row differ from those of the row's
    reference (reference_of())."""
    found = row.get(f"against_{reference_of(mode)}")
    if found is None:
        return ""
    if found["identical"]:
        return "bit for bit"
    if found["error"] is None:
        return f"**wrong**: {found['of']}"
    percent = 100 * found["error"]
    text = f"{percent:.0f}%" if percent >= 1 else f"{percent:.2g}%" if percent >= 0.01 else f"{found['error']:.0e}"
    if is_wrong(found) and reference_of(mode) == "inductor":  # Inductor can draw other random numbers in another process
        return f"other random numbers, or wrong: {text} ({found['of'].split(':')[0]})"
    return f"**wrong**: {text} ({found['of'].split(':')[0]})" if is_wrong(found) else f"to {text}"


def one_line(row, mode):
    if "failed" in row:
        return row["failed"]
    promised = f", promised {mib(row['cairn']['promised_bytes'])}" if "cairn" in row else ""
    return f"{mib(row['peak_bytes'])} MiB{promised}, {right(row, mode)}"


def markdown(data):
    machine = data["machine"]
    packages = "".join(f", {p} {machine[p]}" for p in ("transformers", "timm") if p in machine)
    lines = [f"torch {machine['torch']}{packages}, {threads(machine)}, {machine.get('device', machine['cpu'])}; "
             f"Python {machine['python']}.", "", *overview(data), ""]
    for model, rows in data["models"].items():
        if "skipped" in rows:
            lines += [f"**{model}**: skipped, {rows['skipped']}", ""]
            continue
        base = rows.get("aot", {}).get("peak_bytes")
        eager = rows.get("eager", {}).get("step_s")
        step = f"; eager's step takes {1e3 * eager:.0f} ms" if eager else ""
        operations = [g["operations"] for m, r in rows.items() if m.startswith("cairn") and "cairn" in r
                      for g in r["cairn"]["graphs"]][:1]
        size = f", {operations[0]:,} operations" if operations else ""
        lines += [f"**{model}**{size}{step}", "", "| | promised MiB | peak MiB | of AOT | step | right | recomputed |",
                  "| --- | ---: | ---: | ---: | ---: | --- | ---: |"]
        for mode, row in rows.items():
            if "failed" in row:
                lines.append(f"| {title(mode)} | | | | | {row['failed'].replace('|', '/')} | |")
                continue
            cairn = row.get("cairn")
            promised = mib(cairn["promised_bytes"]) if cairn else ""
            share = f"{100 * row['peak_bytes'] / base:.0f}%" if base else ""
            ratio = f"{row['step_over_eager']:.2f}" if "step_over_eager" in row else ""
            again = f"{sum(g['recomputed'] for g in cairn['graphs'])}" if cairn else ""
            lines.append(f"| {title(mode)} | {promised} | {mib(row['peak_bytes'])} | {share} | {ratio} | "
                         f"{right(row, mode)} | {again} |")
            if "not_timed" in row and row["not_timed"]:
                lines[-1] = lines[-1].replace("|  |", f"| not timed: {row['not_timed'].replace('|', '/')} |", 1)
        lines.append("")
    return "\n".join([*lines, summary(data), ""])


def overview(data):
    """Returns a Markdown table with one line for each model, which compares the ways of saving memory."""
    lines = ["| | AOT MiB | checkpoint | knob, least with right gradients | knob, least | its gradients | Cairn 50% | "
             "Cairn min | Cairn at checkpoint's peak: step over checkpoint's |",
             "| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |"]
    for model, rows in data["models"].items():
        base = rows.get("aot", {}).get("peak_bytes")
        if base is None:
            continue
        knobs = [row for mode, row in rows.items() if mode.startswith("knob") and "failed" not in row]
        good = [row for row in knobs if not is_wrong(row["against_aot"])]
        least = min(knobs, key=lambda row: row["peak_bytes"], default=None)

        def cell(row):
            if not row or "peak_bytes" not in row:
                return "failed" if row else ""
            time = f", {row['step_over_eager']:.2f} x" if "step_over_eager" in row else ""
            return f"{100 * row['peak_bytes'] / base:.0f}%{time}"

        same, other = rows.get(AS_CHECKPOINT, {}), rows.get("checkpoint", {})
        over = "no schedule" if "failed" in same else ""
        if "step_over_eager" in same and "step_over_eager" in other:
            over = f"{same['step_over_eager'] / other['step_over_eager']:.2f}"
        best = min(good, key=lambda row: row["peak_bytes"], default=None)
        lines.append(" | ".join([f"| {model}", mib(base), cell(other), cell(best), cell(least),
                                 right(least, "knob") if least else "", cell(rows.get("cairn-50")),
                                 cell(rows.get("cairn-min")), f"{over} |"]))
    return [*lines, "", "Peaks in % of AOT's, step times over eager's."]


def summary(data):
    """Returns a text that says in how many rows of all models Cairn kept its promises. Only rows with eager kernels
    count."""
    rows = [(model, mode, row) for model, modes in data["models"].items() for mode, row in modes.items()
            if mode.startswith("cairn-")]
    done = [(model, mode, row) for model, mode, row in rows if "failed" not in row]
    identical = [r for *_, r in done if r.get("against_aot", {}).get("identical")]
    kept = [r for *_, r in done if r["peak_bytes"] <= r["cairn"]["promised_bytes"]]
    near = [r for *_, r in done if abs(r["peak_bytes"] / r["cairn"]["promised_bytes"] - 1) <= 0.03]
    broken = [f"{model} {title(mode)} by {r['peak_bytes'] - r['cairn']['promised_bytes']} bytes at {r['peak_operation']}"
              for model, mode, r in done if r["peak_bytes"] > r["cairn"]["promised_bytes"]]
    count = len(done)
    text = (f"Cairn, {count} of {len(rows)} rows ran: {len(identical)} of {count} bit for bit, {len(kept)} of {count} within "
            f"the promise, {len(near)} of {count} within 3% of it.")
    return text + (f" Broken: {'; '.join(broken)}." if broken else "")


def add_files(parser):
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path)
    parser.add_argument("--markdown", metavar="FILE", type=pathlib.Path, help="default: the terminal")


def write_files(given, data, text):
    """Writes `data` and `text` to the files that the user names by the options of ``add_files``. If no file is named
    for the text, prints the text."""
    if given.json:
        write(given.json, data)
    if given.markdown:
        given.markdown.write_text(text)
    else:
        print(text)


def write(path, value):
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(value))
    os.replace(new, path)
