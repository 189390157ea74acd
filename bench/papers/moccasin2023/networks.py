#!/usr/bin/env python3
"""Proves schedules of training graphs like those of Checkmate (Jain et al. 2020), which MOCCASIN (Bartan et al.
2023) uses, too. Some of these graphs are not published, such as ResNet50, SegNet and U-Net; this program makes graphs
like them from the layers of the networks.

usage: networks.py --cairn PATH [--time-limit 10s] [--budgets 90%,80%,70%,60%,50%] [--only segnet,...] [--write DIR]

In a graph, each layer has a forward node and a backward node. As in MOCCASIN's files, the backward node reads the
layer's output, the outputs of the layers that read it, and their gradients, has the size of the layer's output, and
costs twice as much as the layer. Costs are operations; sizes are those of 32-bit floats. Budgets limit plans. For each
schedule, the table shows what is proved, and whether check_certificate.py verifies the certificate.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
from table_rows import print_head, print_row, run  # noqa: E402

CHECKER = os.path.join(HERE, "..", "..", "..", "tests", "reference", "check_certificate.py")
COLUMNS = ["graph", "nodes", "budget", "cost", "status", "gap", "solve s", "certificate"]
FLOAT_BYTES = 4


class Network:
    """The layers of a network, in the order in which they run. A layer is the position of its node."""

    def __init__(self, batch, height, width, channels=3):
        self.batch = batch
        self.nodes = []  # (name, operations, bytes, inputs)
        self.shapes = {None: (height, width, channels)}

    def add(self, name, shape, operations, *inputs):
        height, width, channels = shape
        size = self.batch * height * width * channels * FLOAT_BYTES
        inputs = [i for i in inputs if i is not None]
        self.nodes.append((f"{name}_{len(self.nodes)}", operations * self.batch, size, inputs))
        self.shapes[len(self.nodes) - 1] = shape
        return len(self.nodes) - 1

    def conv(self, x, channels, kernel=3, stride=1):
        height, width, before = self.shapes[x]
        shape = (-(-height // stride), -(-width // stride), channels)
        return self.add("conv", shape, shape[0] * shape[1] * channels * before * kernel * kernel, x)

    def pointwise(self, name, *inputs):
        """A layer such as a batch norm or an activation, whose result has the shape of its first input."""
        height, width, channels = self.shapes[inputs[0]]
        return self.add(name, (height, width, channels), height * width * channels, *inputs)

    def scaled(self, name, x, factor):
        height, width, channels = self.shapes[x]
        shape = (int(height * factor), int(width * factor), channels)
        return self.add(name, shape, shape[0] * shape[1] * channels, x)

    def concat(self, a, b):
        (height, width, channels), (_, _, more) = self.shapes[a], self.shapes[b]
        return self.add("concat", (height, width, channels + more), 0, a, b)

    def normed(self, x, channels, kernel=3, stride=1, relu=True):
        x = self.pointwise("norm", self.conv(x, channels, kernel, stride))
        return self.pointwise("relu", x) if relu else x

    def training_graph(self, name):
        """Returns the graph of a training step in the node-link format of networkx, as MOCCASIN's graphs are."""
        count = len(self.nodes)
        readers = [[] for _ in range(count)]
        for v, (_, _, _, inputs) in enumerate(self.nodes):
            for u in inputs:
                readers[u].append(v)
        backward = {v: 2 * count - v for v in range(count)}  # the loss is the node `count`
        nodes = [(name, False, cost, size, inputs) for name, cost, size, inputs in self.nodes]
        nodes.append(("loss", True, 0, FLOAT_BYTES * self.batch, [count - 1]))
        for v in reversed(range(count)):
            layer, cost, size, _ = self.nodes[v]
            gradients = [backward[reader] for reader in readers[v]] or [count]
            nodes.append((f"{layer}_backward", True, 2 * cost, size, [v, *readers[v], *gradients]))
        return {"directed": True, "multigraph": False, "graph": {"name": name},
                "nodes": [{"id": i, "name": label, "backward": is_backward, "cost_cpu": cost, "cost_ram": size}
                          for i, (label, is_backward, cost, size, _) in enumerate(nodes)],
                "links": [{"source": u, "target": v} for v, (*_, inputs) in enumerate(nodes) for u in inputs]}


def segnet():
    """An encoder of four convolutions, and a decoder that doubles the size three times."""
    net, x = Network(32, 416, 608), None
    for channels in (64, 128, 256, 256):
        x = net.scaled("pool", net.normed(x, channels), 1 / 2)
    for channels in (512, 256, 128, 64):
        x = net.pointwise("norm", net.conv(x if channels == 512 else net.scaled("up", x, 2), channels))
    net.pointwise("softmax", net.conv(x, 12))
    return net


def vgg_segnet():
    """The encoder of VGG16, and its mirror image as decoder."""
    net, x = Network(32, 416, 608), None
    levels = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
    for channels, count in levels:
        for _ in range(count):
            x = net.normed(x, channels)
        x = net.scaled("pool", x, 1 / 2)
    for channels, count in reversed(levels):
        x = net.scaled("up", x, 2)
        for _ in range(count):
            x = net.normed(x, channels)
    net.pointwise("softmax", net.conv(x, 12))
    return net


def unet():
    net, x, skips = Network(32, 416, 608), None, []
    for channels in (64, 128, 256, 512):
        for _ in range(2):
            x = net.pointwise("relu", net.conv(x, channels))
        skips.append(x)
        x = net.scaled("pool", x, 1 / 2)
    for _ in range(2):
        x = net.pointwise("relu", net.conv(x, 1024))
    for channels in (512, 256, 128, 64):
        x = net.concat(net.conv(net.scaled("up", x, 2), channels, 2), skips.pop())
        for _ in range(2):
            x = net.pointwise("relu", net.conv(x, channels))
    net.pointwise("softmax", net.conv(x, 12, 1))
    return net


def resnet50():
    net = Network(256, 224, 224)
    x = net.scaled("pool", net.normed(None, 64, 7, 2), 1 / 2)
    for stage, (channels, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            short = net.normed(x, 4 * channels, 1, stride, relu=False) if block == 0 else x
            y = net.normed(net.normed(x, channels, 1, stride), channels)
            y = net.pointwise("add", net.normed(y, 4 * channels, 1, relu=False), short)
            x = net.pointwise("relu", y)
    net.conv(net.scaled("pool", x, 1 / 7), 1000, 1)
    return net


NETWORKS = {"segnet": segnet, "vgg_segnet": vgg_segnet, "unet": unet, "resnet50": resnet50}


def row(args, name, path, budget, folder):
    certificate = os.path.join(folder, f"{name}_{budget}.json")
    code, answer = run([args.cairn, "solve", path, "--budget", budget, "--time-limit", args.time_limit, "--json",
                        "--certificate", certificate])
    cells = [name, answer["nodes"], budget]
    if code != 0:
        return [*cells, "-", answer["status"], "-", f"{answer['solve_seconds']:.2f}", "-"]
    checked = subprocess.run([sys.executable, CHECKER, certificate], capture_output=True, text=True)
    if checked.returncode != 0:
        sys.exit(f"{path}, {budget}: the certificate is refused: {checked.stdout}{checked.stderr}")
    whole = "whole bound" if answer["certificate"]["proves_bound"] else "a part of the bound"
    return [*cells, f"{answer['cost_increase_pct']:.2f}%", answer["status"], f"{answer['gap_pct']:.2f}%",
            f"{answer['solve_seconds']:.2f}", f"verified: {whole}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cairn", required=True)
    parser.add_argument("--time-limit", default="10s")
    parser.add_argument("--budgets", default="90%,80%,70%,60%,50%")
    parser.add_argument("--only", default=",".join(NETWORKS))
    parser.add_argument("--write", help="folder for the graphs")
    args = parser.parse_args()
    print_head(COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        for name in args.only.split(","):
            path = os.path.join(args.write or folder, f"{name}_train.json")
            with open(path, "w") as file:
                json.dump(NETWORKS[name]().training_graph(name), file)
            for budget in args.budgets.split(","):
                print_row(row(args, name, path, budget, folder))


if __name__ == "__main__":
    main()
