#!/usr/bin/env python3
"""Draws pictures (SVG, for light and dark pages) of what table.py, large.py and ../torch_compare.py wrote as JSON.

usage: plot.py [--table FILE] [--large FILE] [--model MODEL] [--compare FILE ...] [--to FOLDER]

torch_peak.svg shows the peaks of one model, promised and measured. torch_tradeoff.svg shows the step time over the peak
for every model. torch_large.svg shows how much longer a step of a large model takes under each budget. gpu.svg shows
the time of a step over its memory on a GPU, for PyTorch and for Cairn's own executor.
"""

import argparse
import json
import pathlib
import sys
from xml.sax.saxutils import escape

import rows as words

STYLE = """
text { fill: #5f6772; font: 11.5px system-ui, sans-serif; } .ground { fill: #ffffff; } .axis { stroke: #cdd1d4; }
.grid { stroke: #ebecea; } .strong { fill: #22272e; font-weight: 600; } .cairn { fill: #2468b4; stroke: #2468b4; }
.plain { fill: #9aa2ad; stroke: #9aa2ad; } .knob { fill: #b8741a; stroke: #b8741a; } .wrong { fill: #c2352b; stroke: #c2352b; }
.checkpoint { fill: #23794b; stroke: #23794b; } .bar { stroke: none; } .line { fill: none; stroke-width: 1.6; }
.promise { stroke: #22272e; stroke-width: 2; } text.wrong { stroke: none; } .cross { fill: none; stroke-width: 1.8; }
@media (prefers-color-scheme: dark) { text { fill: #a0a9b4; } .ground { fill: #1c2026; } .axis { stroke: #434b57; }
.grid { stroke: #272c34; } .strong { fill: #e4e8ec; } .cairn { fill: #6bb0f5; stroke: #6bb0f5; }
.plain { fill: #727c89; stroke: #727c89; } .knob { fill: #e0a355; stroke: #e0a355; } .wrong { fill: #f0766c; stroke: #f0766c; }
.checkpoint { fill: #5cc48d; stroke: #5cc48d; } .bar { stroke: none; } .line { fill: none; } .promise { stroke: #e4e8ec; }
text.wrong { stroke: none; } .cross { fill: none; } }
"""


class Picture:
    def __init__(self, width, height, label):
        self.size = width, height
        self.label = label
        self.parts = []

    def text(self, x, y, text, anchor="start", kind=""):
        kind = f" class='{kind}'" if kind else ""
        self.parts.append(f"<text{kind} x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'>{escape(text)}</text>")

    def line(self, x1, y1, x2, y2, kind):
        self.parts.append(f"<line class='{kind}' x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}'/>")

    def bar(self, x, y, width, height, kind):
        self.parts.append(f"<rect class='bar {kind}' x='{x:.1f}' y='{y:.1f}' width='{max(width, 0):.1f}' height='{height:.1f}' "
                          "rx='2'/>")

    def dot(self, x, y, kind, title, radius=3.2):
        self.parts.append(f"<circle class='{kind}' cx='{x:.1f}' cy='{y:.1f}' r='{radius}'><title>{escape(title)}</title>"
                          "</circle>")

    def square(self, x, y, kind, title):
        self.parts.append(f"<rect class='{kind}' x='{x - 3.5:.1f}' y='{y - 3.5:.1f}' width='7' height='7'>"
                          f"<title>{escape(title)}</title></rect>")

    def cross(self, x, y, kind, title):
        self.parts.append(f"<path class='cross {kind}' d='M{x - 3.5:.1f} {y - 3.5:.1f}l7 7m0-7l-7 7'><title>{escape(title)}"
                          "</title></path>")

    def mark(self, x, y, kind, title):
        draw = self.square if kind == "checkpoint" else self.cross if kind in ("knob", "wrong") else self.dot
        draw(x, y, kind, title)

    def legend(self, x, y, names):
        """Draws a legend, from position x to the right. ``names`` are pairs (kind of mark, name)."""
        for kind, name in names:
            self.mark(x, y, kind, name)
            self.text(x + 9, y + 4, name)
            x += 30 + 6.2 * len(name)

    def path(self, points, kind):
        self.parts.append(f"<polyline class='line {kind}' points='{' '.join(f'{x:.1f},{y:.1f}' for x, y in points)}'/>")

    def write(self, path):
        width, height = self.size
        head = (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' "
                f"role='img' aria-label='{escape(self.label)}'>\n<style>{STYLE}</style>\n"
                f"<rect class='ground' width='{width}' height='{height}'/>")
        path.write_text("\n".join([head, *self.parts, "</svg>"]) + "\n")


def kind_of(mode, row):
    if mode.startswith("knob"):
        return "wrong" if words.is_wrong(row.get("against_aot") or {"identical": True}) else "knob"
    return "cairn" if mode.startswith("cairn") else "checkpoint" if mode == "checkpoint" else "plain"


def working(rows):
    return {mode: row for mode, row in rows.items() if isinstance(row, dict) and "failed" not in row and "peak_bytes" in row
            and not mode.startswith("inductor")}


def peaks(model, rows, path):
    """Draws the measured peaks of one model as bars, with marks for the peaks that Cairn promised, and writes the
    picture to `path`."""
    rows = working(rows)
    left, right, top, step = 190, 300, 46, 21
    width, height = 860, top + step * len(rows) + 12
    picture = Picture(width, height, f"Peak memory of a training step of {model}")
    picture.text(12, 20, f"{model}: peak of activations and scratch in a training step, MiB", kind="strong")
    most = max(row["peak_bytes"] for row in rows.values())
    scale = (width - left - right) / most
    picture.line(left + 4, 34, left + 4, 44, "promise")
    picture.text(left + 10, 43, "promised before the first step")
    picture.text(width - right + 76, 43, "step")
    picture.text(width - right + 128, 43, "gradients")
    for i, (mode, row) in enumerate(rows.items()):
        y = top + step * i + 4
        kind = kind_of(mode, row)
        picture.text(left - 8, y + 12, words.title(mode), "end", "strong" if kind == "cairn" else "")
        picture.bar(left, y + 2, scale * row["peak_bytes"], 13, kind)
        if "cairn" in row:
            x = left + scale * row["cairn"]["promised_bytes"]
            picture.line(x, y, x, y + 17, "promise")
        picture.text(left + scale * row["peak_bytes"] + 7, y + 12, words.mib(row["peak_bytes"]))
        if "step_over_eager" in row:
            picture.text(width - right + 76, y + 12, f"{row['step_over_eager']:.2f} x")
        found = row.get(f"against_{words.reference_of(mode)}")
        if found is not None:
            exact = "bit for bit" if found["identical"] else ("" if found["error"] is None else f"to {found['error']:.0e}")
            text = f"wrong by {100 * (found['error'] or 0):.0f}%" if words.is_wrong(found) else exact
            picture.text(width - right + 128, y + 12, text, kind="wrong" if words.is_wrong(found) else "")
    picture.write(path)


def tradeoff(data, path):
    """Draws step time over peak memory in one panel per model. Peaks are relative to the peak of AOTAutograd's graph,
    times to the time of an eager step."""
    panels = {m: working(r) for m, r in data["models"].items() if "skipped" not in r}
    panels = {m: r for m, r in panels.items() if "aot" in r and any("step_over_eager" in row for row in r.values())}
    columns, wide, high, gap = 3, 270, 190, 22
    lines = -(-len(panels) // columns)
    picture = Picture(columns * (wide + gap) + gap, 62 + lines * (high + gap + 12), "Step time over peak memory of every model")
    picture.text(gap, 20, "Step time (eager's is 1) over peak memory (% of the graph without a schedule)", kind="strong")
    picture.legend(gap + 4, 38, (("cairn", "Cairn"), ("checkpoint", "checkpoint by block"), ("knob", "torch's memory budget"),
                                 ("wrong", "the same, gradients wrong"), ("plain", "eager; graph without a schedule")))
    for i, (model, rows) in enumerate(panels.items()):
        panel(picture, model, rows, gap + i % columns * (wide + gap), 56 + i // columns * (high + gap + 12), wide, high)
    picture.write(path)


def panel(picture, model, rows, x0, y0, wide, high):
    base = rows["aot"]["peak_bytes"]
    points = {mode: (row["peak_bytes"] / base, row["step_over_eager"]) for mode, row in rows.items()
              if "step_over_eager" in row}
    most_x = max(1.1, *(x for x, _ in points.values())) * 1.04
    low_y = min(0.8, *(y for _, y in points.values()))
    most_y = max(1.5, *(y for _, y in points.values())) * 1.04
    left, bottom = x0 + 30, y0 + high - 18

    def place(x, y):
        return left + (wide - 34) * x / most_x, bottom - (high - 44) * (y - low_y) / (most_y - low_y)

    picture.text(x0 + 30, y0 + 12, model, kind="strong")
    tick = 0.5 if most_y - low_y < 3 else 1.0 if most_y - low_y < 6 else 2.0
    value = tick * -(-low_y // tick)
    while value <= most_y:
        y = place(0, value)[1]
        picture.line(left, y, x0 + wide, y, "grid")
        picture.text(left - 5, y + 4, f"{value:g}", "end")
        value += tick
    for share in (0.25, 0.5, 0.75, 1.0):
        picture.text(place(share, 0)[0], bottom + 14, f"{100 * share:.0f}%", "middle")
    picture.line(left, bottom, x0 + wide, bottom, "axis")
    line = sorted(points[m] for m in points if m.startswith("cairn"))
    picture.path([place(*p) for p in line], "cairn")
    for mode, point in points.items():
        picture.mark(*place(*point), kind_of(mode, rows[mode]), f"{words.title(mode)}: "
                     f"{words.mib(rows[mode]['peak_bytes'])} MiB, {point[1]:.2f} of eager's time")


def large(data, path):
    """Draws by how much each budget prolongs a step of a large model, and which budgets are proved to be impossible."""
    points = [p for p in data["curve"]["points"] if p["known"]]
    width, height, left, top, bottom = 860, 330, 60, 44, 280
    model = data["model"]
    picture = Picture(width, height, "What a budget costs of a large model")
    picture.text(12, 20, f"{data['parameters'] / 1e9:.1f} billion parameters, {model['tokens']:,} tokens: estimated extra time "
                 "over the peak of activations", kind="strong")
    most_x = data["peak_bytes"] / 2**30 * 1.04
    most_y = max(5.0, 100 * max(p["cost_increase"] for p in points)) * 1.08

    def place(gib, percent):
        return left + (width - left - 20) * gib / most_x, bottom - (bottom - top) * percent / most_y

    tick = next(t for t in (1, 2, 5, 10, 20, 50, 100) if most_y / t <= 7)
    for value in range(0, int(most_y) + 1, tick):
        y = place(0, value)[1]
        picture.line(left, y, width - 20, y, "grid")
        picture.text(left - 7, y + 4, f"+{value}%", "end")
    tick = next(t for t in (1, 2, 5, 10, 20, 50, 100, 200, 500) if most_x / t <= 12)
    for value in range(0, int(most_x) + 1, tick):
        picture.text(place(value, 0)[0], bottom + 16, f"{value}", "middle")
    picture.line(left, bottom, width - 20, bottom, "axis")
    picture.text(width - 20, bottom + 34, "peak, GiB", "end")
    bound = place(data["curve"]["lower_bound_bytes"] / 2**30, 0)[0]
    picture.line(bound, top, bound, bottom, "axis")
    picture.text(bound + 5, top + 10, "proved: no schedule is below")
    line = sorted((p["peak_bytes"] / 2**30, 100 * p["cost_increase"]) for p in points)
    picture.path([place(*p) for p in line], "cairn")
    for p in points:
        picture.dot(*place(p["peak_bytes"] / 2**30, 100 * p["cost_increase"]), "cairn",
                    f"{p['peak_bytes'] / 2**30:.2f} GiB, {100 * p['cost_increase']:+.1f}%", 4.5 if p["knee"] else 3.2)
    knee = next((p for p in points if p["knee"]), None)
    if knee:
        x, y = place(knee["peak_bytes"] / 2**30, 100 * knee["cost_increase"])
        picture.text(x + 9, y - 8, f"knee: {knee['peak_bytes'] / 2**30:.1f} of {data['peak_bytes'] / 2**30:.1f} GiB for "
                     f"{100 * knee['cost_increase']:+.1f}%")
    picture.write(path)


def compare(found, path):
    """Draws the time of a training step over its memory on a GPU, in one panel per model."""
    wide, high, gap = 420, 250, 20
    picture = Picture(len(found) * (wide + gap) + gap, high + 62, "Step time over memory on a GPU")
    device = found[0]["device"]
    picture.text(gap, 20, f"A training step on one {device}, {found[0]['precision']}: ms over GiB of activations", kind="strong")
    picture.legend(gap + 4, 38, (("cairn", "Cairn"), ("plain", "PyTorch, eager"), ("checkpoint", "PyTorch, checkpoint")))
    for i, data in enumerate(found):
        compare_panel(picture, data, gap + i * (wide + gap), 52, wide, high)
    picture.write(path)


def compare_panel(picture, data, x0, y0, wide, high):
    ours = sorted((row["measured_bytes"] / 2**30, row["ms"], row["label"]) for row in data["cairn"] if row.get("ms"))
    theirs = [(row["activation_bytes"] / 2**30, row["ms"], row["mode"]) for row in data["pytorch"]
              if row.get("ms") and row.get("activation_bytes")]
    most_x = 1.06 * max(x for x, *_ in ours + theirs)
    most_y = 1.1 * max(y for _, y, _ in ours + theirs)
    left, bottom = x0 + 30, y0 + high - 20

    def place(x, y):
        return left + (wide - 34) * x / most_x, bottom - (high - 46) * y / most_y

    options = ", ".join(f"{name} {value}" for name, value in list(data["options"].items())[:3])
    picture.text(left, y0 + 14, f"{data['model']}: {options}", kind="strong")
    tick = next(t for t in (5, 10, 20, 50, 100, 200) if most_y / t <= 7)
    for value in range(0, int(most_y) + 1, tick):
        y = place(0, value)[1]
        picture.line(left, y, x0 + wide, y, "grid")
        picture.text(left - 5, y + 4, f"{value}", "end")
    tick = next(t for t in (1, 2, 5, 10, 20, 50) if most_x / t <= 8)
    for value in range(0, int(most_x) + 1, tick):
        picture.text(place(value, 0)[0], bottom + 15, f"{value}", "middle")
    picture.line(left, bottom, x0 + wide, bottom, "axis")
    picture.path([place(x, y) for x, y, _ in ours], "cairn")
    for x, y, label in ours:
        picture.mark(*place(x, y), "cairn", f"Cairn, {label}: {x:.2f} GiB, {y:.1f} ms")
    for x, y, mode in theirs:
        picture.mark(*place(x, y), "checkpoint" if mode.startswith("checkpoint") else "plain", f"PyTorch {mode}: {x:.2f} GiB, "
                     f"{y:.1f} ms")


def main():
    parser = argparse.ArgumentParser(prog="plot.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("--table", metavar="FILE", type=pathlib.Path, help="of table.py --json")
    parser.add_argument("--large", metavar="FILE", type=pathlib.Path, help="of large.py --json")
    parser.add_argument("--model", default="gpt-6", metavar="MODEL", help="whose peaks are drawn; default gpt-6")
    parser.add_argument("--compare", metavar="FILE", type=pathlib.Path, nargs="+", help="of torch_compare.py --json, a panel each")
    parser.add_argument("--to", default=".", metavar="FOLDER", type=pathlib.Path)
    given = parser.parse_args()
    if not given.to.is_dir():
        parser.error(f"--to '{given.to}': there is no such folder")
    if given.table:
        data = json.loads(given.table.read_text())
        if given.model in data["models"]:
            peaks(given.model, data["models"][given.model], given.to / "torch_peak.svg")
        tradeoff(data, given.to / "torch_tradeoff.svg")
    if given.large:
        large(json.loads(given.large.read_text()), given.to / "torch_large.svg")
    if given.compare:
        compare([json.loads(file.read_text()) for file in given.compare], given.to / "gpu.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
