#!/usr/bin/env python3
"""Reproduces Tables 1 and 2 and Figures 2, 3 and 4 of Kumar et al. 2019, with the published numbers beside Cairn's.

usage: run.py --cairn PATH [--only table1,depth,figure4,table2] [--quick] [--time-limit 120s] [--images DIR]

PATH is the built command. It makes the graphs, which are Cairn's models in elementary operations (`--granularity op`).
As in the paper, each operation costs 1. NoRemat, GreedyRemat and TWRemat are the solvers `none`, `greedy` and `tw`.
--quick uses only small depths. --images writes the figures as SVG.

Three kinds of schedules of TWRemat are shown:
  TWRemat(k)   the schedule of Algorithm 1 without changes; `--sweep` computes it for many k, and the table says which k
               is shown
  searched     the schedule that the solver finds within a budget (`--option retain=0`); the solver also tries
               recursions in which a call runs all of its nodes at once if they fit into the free memory
  cleaned up   the solver's default: the searched schedule, after values were kept in memory, instead of computed again,
               wherever the budget allows it

Lengths are relative to the number of nodes. The budget of `greedy` is lowered in steps of 5% of NoRemat's memory until
the solver finds no schedule. `cairn plan` reads every schedule except those of a sweep, and rejects invalid ones.
"""
import argparse
import os
import sys
import tempfile
from xml.sax.saxutils import escape

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from table_rows import need, print_head, print_row, run  # noqa: E402

GIB = 2.0**30
FFN = ["ffn", "--batch", "4096"]
# Hyperparameters of the transformer's official implementation: sequences of 256 tokens, 2048 tokens per batch for the
# base model and 4096 for the big model, a vocabulary of 33708 tokens, and three kinds of dropout.
OFFICIAL = ["--seq", "256", "--vocab", "33708", "--attention-dropout", "10", "--relu-dropout", "10"]
TRANSFORMERS = {
    "Transformer Base": ["transformer", "--batch", "8", *OFFICIAL],
    "Transformer Big": ["transformer-big", "--batch", "16", *OFFICIAL],
}
TABLE1 = {
    "ResNet200": (["resnet200"], 17705, 27312, 11),
    "FFN (100 layers)": ([*FFN, "--layers", "100"], 3217, 4447, 6),
    "Transformer Base": (TRANSFORMERS["Transformer Base"], 15842, 21771, 18),
}
# Published numbers of Table 2, for each model: memory of NoRemat in GiB; memory of GreedyRemat in GiB and its relative
# length; memory of TWRemat in GiB, its reduction and its relative length. The paper prints GreedyRemat's lengths in
# NoRemat's column by mistake.
TABLE2 = {"Transformer Base": (3.97, 2.92, 1.21, 1.14, 3.48, 10.61),
          "Transformer Big": (13.25, 10.12, 1.27, 2.89, 4.59, 10.64)}
# Options of `cairn model` for ResNets, by the number of convolutions and linear layers. Models with more than 200 of
# these layers repeat the blocks of ResNet-200.
RESNETS = {18: ["resnet18"], 34: ["resnet34"], 50: ["resnet50"], 101: ["resnet101"], 152: ["resnet152"],
           200: ["resnet200"], 398: ["resnet200", "--depth-multiplier", "2"],
           794: ["resnet200", "--depth-multiplier", "4"]}
FFNS = {depth: [*FFN, "--layers", str(depth)] for depth in (10, 20, 50, 100, 200, 400)}
REDUCTION = 10  # the paper reports a reduction of "up to 10x" for ResNet and FFN


class Bench:
    """The command `cairn`, its time limit, and a folder for the graphs that it makes."""

    def __init__(self, args, folder):
        self.cairn, self.time_limit, self.folder = args.cairn, args.time_limit, folder

    def graph(self, model):
        """Writes the graph of a model to a file, and returns it as a Graph."""
        path = os.path.join(self.folder, "-".join(model) + ".json")
        answer = need([self.cairn, "model", *model, "--granularity", "op", "--unit-cost", "-o", path, "--json"])
        return Graph(self, path, answer["nodes"], answer["edges"], answer["baseline_peak_bytes"])


class Graph:
    def __init__(self, bench, path, nodes, edges, baseline):
        self.bench, self.path, self.nodes, self.edges, self.baseline = bench, path, nodes, edges, baseline

    def solve(self, solver, *more):
        """Runs a solver, checks its schedule, and returns the schedule's peak and relative length. Returns None if the
        solver finds no schedule."""
        schedule = os.path.join(self.bench.folder, "schedule.json")
        command = [self.bench.cairn, "solve", self.path, "--solver", solver, "--time-limit", self.bench.time_limit,
                   "--peak-only", "--json", "-o", schedule, *more]
        code, answer = run(command)
        if code != 0:
            return None
        if run([self.bench.cairn, "plan", self.path, schedule, "--json", "--time-limit", "1s"])[0] != 0:
            sys.exit(f"{self.path}: the schedule of {solver} is not valid")
        return Point(answer["peak_bytes"], answer["steps"] / self.nodes)

    def width(self):
        """Returns the least width of a tree decomposition that `cairn info` finds, and the proved lower bound on the
        width."""
        path = os.path.join(self.bench.folder, "decomposition.td")
        answer = need([self.bench.cairn, "info", self.path, "--td", path, "--time-limit", "10s", "--json"])
        return answer["treewidth_upper"], answer["treewidth_lower"]

    def sweep(self, clean=False):
        """Returns the points (peak, relative length, k) of TWRemat(k) for many k, by descending k. With `clean`, a
        point also has the length after values were kept in memory instead of computed again."""
        command = [self.bench.cairn, "solve", self.path, "--solver", "tw", "--option", f"retain={int(clean)}", "--json",
                   "--sweep", os.path.join(self.bench.folder, "curve.csv"), "--time-limit", self.bench.time_limit]
        points = []
        for row in need(command)["points"]:
            if row["steps"]:
                cleaned_up = row["retained_steps"] and row["retained_steps"] / self.nodes
                points.append(Point(row["peak_bytes"], row["steps"] / self.nodes, row["k"], cleaned_up))
        return points

    def checked(self, point):
        """Computes and checks the schedule that belongs to a point of sweep(), and returns its point. Returns None if
        `point` is None."""
        return point and self.solve("tw", "--option", f"k={point.k}", "--option", "retain=0", "--option", "steps=50000000")

    def searched(self, budget):
        return self.solve("tw", "--budget", str(budget), "--option", "retain=0")

    def cleaned_up(self, budget):
        return self.solve("tw", "--budget", str(budget))

    def greedy(self):
        """Returns the point of the lowest budget, in steps of 5%, at which `greedy` still finds a schedule. Returns
        None if it finds no schedule at 95%."""
        best = None
        for share in range(95, 0, -5):
            point = self.solve("greedy", "--budget", f"{share}%")
            if point is None:
                break
            best = point
        return best


class Point:
    def __init__(self, peak, length, k=None, cleaned_up=None):
        self.peak, self.length, self.k, self.cleaned_up = peak, length, k, cleaned_up


def least(points):
    return min(points, key=lambda point: (point.peak, point.length))


def shortest_within(points, budget):
    return min((point for point in points if point.peak <= budget), key=lambda point: point.length, default=None)


def gib(size):
    return f"{size / GIB:.2f}"


def length(point):
    return point and f"{point.length:.2f}"


def print_titled(title, columns):
    print(f"\n### {title}\n")
    print_head(columns)


def table1(bench, args):
    print_titled("Table 1", ["graph", "paper: n", "m", "width", "ours: n", "m", "width", "at least"])
    for name, (model, *published) in TABLE1.items():
        graph = bench.graph(model)
        print_row([name, *published, graph.nodes, graph.edges, *graph.width()])


COLOURS = {"NoRemat": "#68707b", "GreedyRemat": "#c2571a", "TWRemat": "#2a6fbb", "TWRemat, cleaned up": "#1c8a5a"}


def family(bench, name, depths):
    """Prints the rows of a family of models of different depths. Returns the curves of this family for Figures 2 and
    3."""
    at = f"at a {REDUCTION}th of NoRemat's memory"
    print_titled(f"Figures 2 and 3, {name}",
                 ["layers", "n", "NoRemat (GiB)", "GreedyRemat (GiB)", "length", "TWRemat(k), least memory: GiB",
                  "reduction", "k", "length", "cleaned up at that budget: length", f"{at}: TWRemat(k), length",
                  "searched", "cleaned up"])
    memory = {label: [] for label in COLOURS if label != "TWRemat, cleaned up"}
    lengths = {label: [] for label in COLOURS}
    for depth, model in depths.items():
        graph = bench.graph(model)
        greedy = graph.greedy() or Point(graph.baseline, 1.0)
        points = graph.sweep()
        tw = least(points)
        k, tw = tw.k, graph.checked(tw)
        clean = graph.cleaned_up(tw.peak)
        budget = graph.baseline // REDUCTION
        tenth = graph.checked(shortest_within(points, budget))
        print_row([depth, graph.nodes, gib(graph.baseline), gib(greedy.peak), length(greedy), gib(tw.peak),
                   f"{graph.baseline / tw.peak:.1f}x", k, length(tw), length(clean), length(tenth),
                   length(graph.searched(budget)), length(graph.cleaned_up(budget))])
        memory["NoRemat"].append((depth, graph.baseline / GIB))
        memory["GreedyRemat"].append((depth, greedy.peak / GIB))
        memory["TWRemat"].append((depth, tw.peak / GIB))
        lengths["NoRemat"].append((depth, 1.0))
        lengths["GreedyRemat"].append((depth, greedy.length))
        lengths["TWRemat"].append((depth, tw.length))
        if clean:
            lengths["TWRemat, cleaned up"].append((depth, clean.length))
    return memory, lengths


def depth_figures(bench, args):
    shallow = {"ResNet": (18, 34, 50), "FFN": (10, 20, 50)}
    memory, lengths = [], []
    for name, depths in (("ResNet", RESNETS), ("FFN", FFNS)):
        chosen = {depth: model for depth, model in depths.items() if not args.quick or depth in shallow[name]}
        of_memory, of_length = family(bench, name, chosen)
        memory.append((name, "layers", "peak memory (GiB)", of_memory))
        lengths.append((name, "layers", "length of the schedule / nodes", of_length))
    print("\nThe paper's figures give no numbers; its text: GreedyRemat about 2x on ResNet and very little on FFN, "
          "TWRemat up to 10x on both\nwith distinctly sublinear growth, at lengths of 3 to 4; GreedyRemat marginally "
          "longer than NoRemat.")
    write_svg(args, "kumar2019_memory.svg", memory)
    write_svg(args, "kumar2019_length.svg", lengths)


def figure4(bench, args):
    name = "resnet50" if args.quick else "resnet200"
    graph = bench.graph([name])
    print_titled(f"Figure 4, {name}: n = {graph.nodes}, NoRemat {gib(graph.baseline)} GiB",
                 ["k", "TWRemat(k): GiB", "length", "the same k cleaned up: length"])
    points = graph.sweep(clean=True)
    for point in points:
        print_row([point.k, gib(point.peak), length(point), point.cleaned_up and f"{point.cleaned_up:.2f}"])
    plain = sorted((point.length, point.peak / GIB) for point in points)
    clean = sorted((point.cleaned_up, point.peak / GIB) for point in points if point.cleaned_up)
    write_svg(args, "kumar2019_tradeoff.svg", [(name, "length of the schedule / nodes", "peak memory (GiB)",
                                                {"TWRemat": plain, "TWRemat, cleaned up": clean})])


def table2(bench, args):
    print_titled("Table 2", ["model", "", "NoRemat (GiB)", "GreedyRemat (GiB)", "length", "TWRemat (GiB)", "reduction",
                             "length", "searched: length", "cleaned up: length"])
    for name, (none, greedy, greedy_length, tw, reduction, tw_length) in TABLE2.items():
        print_row([name, "paper", none, greedy, greedy_length, tw, f"{reduction:.2f}x", tw_length, None, None])
        graph = bench.graph(TRANSFORMERS[name])
        ours = graph.greedy() or Point(graph.baseline, 1.0)
        points = graph.sweep()
        budget = int(graph.baseline / reduction)
        for label, point, limit in [("ours, the paper's reduction", shortest_within(points, budget), budget),
                                    ("ours, TWRemat(k) of least memory", least(points), least(points).peak)]:
            print_row([name, label, gib(graph.baseline), gib(ours.peak), length(ours), gib(limit),
                       f"{graph.baseline / limit:.2f}x", length(graph.checked(point)), length(graph.searched(limit)),
                       length(graph.cleaned_up(limit))])


# --- Functions that draw the figures

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480, 300, 62, 14, 44, 44
STYLE = ("text { fill: #68707b; font: 11.5px system-ui, sans-serif; } .grid { stroke: #ecedea; } "
         ".axis { stroke: #9aa2ad; } .title { font-weight: 600; } polyline { fill: none; stroke-width: 2; }")


def ticks(most):
    """Returns about five round numbers from 0 to `most`."""
    step = 10.0 ** len(str(int(most)))
    while most / step < 4:
        step /= 2.5 if str(step).lstrip("0.").startswith("5") else 2
    return [i * step for i in range(int(most / step) + 1)]


def panel(left, title, x_label, y_label, series):
    points = [point for line in series.values() for point in line]
    most_x, most_y = (1.05 * max(point[i] for point in points) for i in (0, 1))
    x_of = lambda x: left + LEFT + (WIDTH - LEFT - RIGHT) * x / most_x  # noqa: E731
    y_of = lambda y: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / most_y  # noqa: E731
    out = [f"<text class='title' x='{x_of(0):.1f}' y='16'>{escape(title)}</text>"]
    for y in ticks(most_y):
        out.append(f"<line class='grid' x1='{x_of(0):.1f}' x2='{x_of(most_x):.1f}' y1='{y_of(y):.1f}' "
                   f"y2='{y_of(y):.1f}'/>")
        out.append(f"<text x='{x_of(0) - 8:.1f}' y='{y_of(y) + 4:.1f}' text-anchor='end'>{y:g}</text>")
    for x in ticks(most_x):
        out.append(f"<text x='{x_of(x):.1f}' y='{HEIGHT - BOTTOM + 16}' text-anchor='middle'>{x:g}</text>")
    out.append(f"<line class='axis' x1='{x_of(0):.1f}' x2='{x_of(most_x):.1f}' y1='{y_of(0):.1f}' y2='{y_of(0):.1f}'/>")
    out.append(f"<text x='{x_of(most_x):.1f}' y='{HEIGHT - 8}' text-anchor='end'>{escape(x_label)}</text>")
    out.append(f"<text x='{left + 4}' y='{TOP - 10}'>{escape(y_label)}</text>")
    legend = x_of(most_x)
    for label, line in reversed(list(series.items())):
        colour = COLOURS[label]
        path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in line)
        out.append(f"<polyline points='{path}' stroke='{colour}'/>")
        out += [f"<circle cx='{x_of(x):.1f}' cy='{y_of(y):.1f}' r='3' fill='{colour}'>"
                f"<title>{escape(label)}: {x:g}, {y:.3g}</title></circle>" for x, y in line]
        out.append(f"<text x='{legend:.1f}' y='16' text-anchor='end' style='fill: {colour}'>{escape(label)}</text>")
        legend -= 7 * len(label) + 14
    return out


def write_svg(args, name, panels):
    if not args.images:
        return
    width = WIDTH * len(panels)
    out = [f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{HEIGHT}' viewBox='0 0 {width} {HEIGHT}' "
           f"role='img'><style>{STYLE}</style><rect width='{width}' height='{HEIGHT}' fill='#ffffff'/>"]
    for i, (title, x_label, y_label, series) in enumerate(panels):
        out += panel(i * WIDTH, title, x_label, y_label, {label: line for label, line in series.items() if line})
    path = os.path.join(args.images, name)
    with open(path + ".part", "w") as file:
        file.write("\n".join(out + ["</svg>", ""]))
    os.replace(path + ".part", path)


PARTS = {"table1": table1, "depth": depth_figures, "figure4": figure4, "table2": table2}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("--cairn", required=True, metavar="PATH")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--time-limit", default="120s")
    parser.add_argument("--images", metavar="DIR")
    args = parser.parse_args()
    if args.images and not os.path.isdir(args.images):
        parser.error(f"there is no folder '{args.images}'; create it first")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, folder)
        for part in args.only.split(","):
            if part not in PARTS:
                parser.error(f"there is no part '{part}', only {', '.join(PARTS)}")
            PARTS[part](bench, args)


if __name__ == "__main__":
    main()
