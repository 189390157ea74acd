"""Contains functions that the tests share: they make random graphs, and run the built command `cairn`."""

import json
import os
import random
import subprocess
import threading
import time

import cairn

COMMAND = os.environ.get("CAIRN_COMMAND")


def random_graph(seed, nodes=24, several=True):
    """Returns a random graph. Nodes have one or, if `several`, up to three outputs, some of size 0. Some outputs are
    kept or in place. Some nodes are pinned, and the second half of the nodes is the backward pass."""
    draw = random.Random(seed)
    builder = cairn.GraphBuilder(f"random{seed}")
    outputs = []  # the number of outputs of each node
    for v in range(nodes):
        refs = [(u, k) for u in range(max(0, v - 8), v) for k in range(outputs[u])]
        inputs = draw.sample(refs, min(len(refs), draw.randint(0, 3)))
        count = draw.choice([1, 1, 1, 2, 3]) if several else 1
        backward = v >= nodes // 2
        own = {"cost": draw.randint(0, 50), "scratch": draw.choice([0, 0, draw.randint(1, 64)]), "backward": backward,
               "pinned": draw.random() < 0.1, "inputs": inputs,
               "forward": draw.randrange(nodes // 2) if backward and draw.random() < 0.5 else None}
        sizes = [draw.choice([0, draw.randint(1, 256)]) for _ in range(count)]
        if count == 1:
            builder.add(f"n{v}", size=sizes[0], keep=draw.random() < 0.1,
                        inplace=inputs[0] if inputs and draw.random() < 0.2 else None, **own)
        else:
            builder.add(f"n{v}", outputs=[cairn.Output(size, keep=draw.random() < 0.1, name=f"o{k}")
                                          for k, size in enumerate(sizes)], **own)
        outputs.append(count)
    if draw.random() < 0.5:
        builder.add_resident("weights", draw.randint(0, 1000), "weight")
    builder.add_resident_bytes(draw.randint(0, 9))
    if draw.random() < 0.5:
        builder.set_cost_unit("ns", "a test")
    return builder.build()


def chain(length, size=100):
    """Returns a training graph with `length` layers, for which recomputation saves memory."""
    builder = cairn.GraphBuilder("chain")
    forward = []
    for i in range(length):
        forward.append(builder.add(f"f{i}", size=size, cost=10, inputs=forward[-1:]))
    last = builder.add("loss", size=4, cost=1, inputs=[forward[-1]])
    for i in reversed(range(length)):
        last = builder.add(f"b{i}", size=size, cost=20, backward=True, forward=forward[i],
                           inputs=[last] + (forward[i - 1:i] if i else []), keep=i == 0)
    return builder.build()


def command(*arguments):
    """Runs `cairn ... --json`. Returns (exit code, printed object)."""
    run = subprocess.run([COMMAND, *map(str, arguments), "--json"], capture_output=True, text=True, check=False)
    return run.returncode, json.loads(run.stdout)


def ticks_during(work):
    """Calls `work`, while another thread wakes up every millisecond. Returns how often that thread has woken up."""
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    work()
    end = time.monotonic()
    done.set()
    thread.join()
    return sum(begin < at < end for at in ticks)
