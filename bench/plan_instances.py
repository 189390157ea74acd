#!/usr/bin/env python3
"""Makes instances of static memory allocation whose least height is known. With --solve, reports how many of them the
planner solves, and how fast.

usage: plan_instances.py --write DIR [--count 100] [--seed 0]
       plan_instances.py --solve CAIRN [--count 100] [--seed 0] [--time-limit 5s] [--keep DIR]

The instances are CSV files with the columns of MiniMalloc. The least height of each is 1048576 bytes, because a plan of
this height exists, and at one time at least, the live buffers have exactly as many bytes. Kinds of instances:
  partition     a rectangle of times and addresses, which straight cuts and pinwheels (four rectangles around a fifth)
                divide into buffers
  shortened30   a partition in which 30% of the lifetimes are shortened; all buffers that are live at one chosen time
                stay live at this time
  shortened70   the same with 70% of the lifetimes
  left_out      a partition without 10% of its buffers; all buffers that are live at one chosen time are kept
  allocator     buffers at the addresses that a simulated allocator gives them; the allocator fills most of the gaps
                that freed buffers leave, and small buffers live longer than large ones
tests/solvers/plan/plan_cases.h makes problems of the same kinds.
"""
import argparse
import collections
import os
import random
import tempfile
import time

from table_rows import run

UNIT = 1024
UNITS = 1024  # number of units of addresses, and of times
CAPACITY = UNIT * UNITS


def partition(rng, count):
    """Returns `count` to `count` + 3 rectangles (first time, end time, lower address, upper address). Together, they
    cover all times and addresses without gaps and without overlaps."""
    parts = [(0, UNITS, 0, UNITS)]
    while len(parts) < count:
        at = rng.randrange(len(parts))
        first, end, lower, upper = parts[at]
        if end - first >= 3 and upper - lower >= 3 and rng.random() < 0.3:
            left, right = sorted(rng.sample(range(first + 1, end), 2))
            bottom, top = sorted(rng.sample(range(lower + 1, upper), 2))
            parts[at] = (left, right, bottom, top)
            parts += [(first, right, lower, bottom), (right, end, lower, top), (left, end, top, upper),
                      (first, left, bottom, upper)]
        elif end - first >= 2 and rng.random() < 0.5:
            cut = rng.randrange(first + 1, end)
            parts[at] = (first, cut, lower, upper)
            parts.append((cut, end, lower, upper))
        elif upper - lower >= 2:
            cut = rng.randrange(lower + 1, upper)
            parts[at] = (first, end, lower, cut)
            parts.append((first, end, cut, upper))
    return parts


def shortened(rng, count, share):
    moment = rng.randrange(UNITS)
    parts = []
    for first, end, lower, upper in partition(rng, count):
        if rng.random() < share:
            holds = first <= moment < end
            first = rng.randint(first, moment if holds else end - 1)
            end = rng.randint(max(first, moment if holds else first) + 1, end)
        parts.append((first, end, lower, upper))
    return parts


def left_out(rng, count):
    moment = rng.randrange(UNITS)
    return [p for p in partition(rng, count * 10 // 9 + 1) if p[0] <= moment < p[1] or rng.random() >= 0.1]


def allocator(rng, count):
    """Returns buffers at the addresses that a simulated allocator gives them. The allocator fills most of the holes
    that freed buffers leave, and at one moment fills all of them."""
    placed, live = [], []
    full_from = rng.randint(1, count // 2)
    was_full = False
    now = 0
    while len(placed) + len(live) < count or not was_full:
        placed += [b for b in live if b[1] <= now]
        live = sorted((b for b in live if b[1] > now), key=lambda b: b[2])
        fill = not was_full and len(placed) + len(live) >= full_from
        was_full = was_full or fill
        start = 0
        for _, _, lower, upper in live + [(0, 0, UNITS, UNITS)]:
            while start < lower and (fill or rng.random() < 0.8):
                brief = rng.random() < 0.45
                size = min(lower - start, rng.randint(1, UNITS * 2 // 3 if brief else UNITS // 16))
                life = rng.randint(1, 6) if brief else rng.randint(4, rng.choice((20, 60, 150)))
                live.append((now, now + life, start, start + size))
                start += size
            start = upper
        now += 1
    return [(first, min(end, now), lower, upper) for first, end, lower, upper in placed + live]


KINDS = {
    "partition": partition,
    "shortened30": lambda rng, count: shortened(rng, count, 0.3),
    "shortened70": lambda rng, count: shortened(rng, count, 0.7),
    "left_out": left_out,
    "allocator": allocator,
}


def instance(seed):
    """Returns (kind, buffers) of the instance that belongs to a seed. The instance has 100 to 500 buffers. Consecutive
    seeds give different kinds."""
    rng = random.Random(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    parts = KINDS[kind](rng, rng.randint(100, 500))
    rng.shuffle(parts)
    return kind, parts


def write(path, parts):
    with open(path, "w") as out:
        out.write("id,lower,upper,size\n")
        for i, (first, end, lower, upper) in enumerate(parts):
            out.write(f"{i},{first * UNIT},{end * UNIT},{(upper - lower) * UNIT}\n")


def solve(cairn, path, time_limit):
    """Plans the buffers of the file `path`. Returns whether the plan fits into CAPACITY bytes, and the seconds of the
    command."""
    command = [cairn, "plan", "--buffers", path, "--capacity", str(CAPACITY), "--time-limit", time_limit, "--json"]
    start = time.monotonic()
    _, answer = run(command)
    seconds = time.monotonic() - start
    return answer["planned_bytes"] <= CAPACITY, seconds


def quantiles(times):
    times = sorted(times)
    return " ".join(f"{times[round(q * (len(times) - 1))]:8.2f}" for q in (0, 0.25, 0.5, 0.75, 0.9, 1))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("--write", metavar="DIR")
    parser.add_argument("--solve", metavar="CAIRN")
    parser.add_argument("--keep", metavar="DIR", help="where the instances are written that were not solved")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time-limit", default="5s")
    args = parser.parse_args()
    if not args.write and not args.solve:
        parser.error("--write or --solve")
    times = collections.defaultdict(list)
    solved = collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(args.seed, args.seed + args.count):
            kind, parts = instance(seed)
            name = f"{seed}.{kind}.{CAPACITY}.csv"
            if args.write:
                os.makedirs(args.write, exist_ok=True)
                write(os.path.join(args.write, name), parts)
            if not args.solve:
                continue
            path = os.path.join(scratch, name)
            write(path, parts)
            fits, seconds = solve(args.solve, path, args.time_limit)
            times[kind].append(seconds)
            solved[kind] += fits
            if not fits:
                print(f"not solved: {name}, {len(parts)} buffers", flush=True)
                if args.keep:
                    os.makedirs(args.keep, exist_ok=True)
                    write(os.path.join(args.keep, name), parts)
    if not args.solve:
        return
    print("kind         solved        seconds: least, quarter, half, three quarters, nine tenths, most")
    for kind in KINDS:
        if times[kind]:
            print(f"{kind:12} {solved[kind]:3} of {len(times[kind]):3}   {quantiles(times[kind])}")
    everything = [t for kind in KINDS for t in times[kind]]
    print(f"{'all':12} {sum(solved.values()):3} of {len(everything):3}   {quantiles(everything)}")


if __name__ == "__main__":
    main()
