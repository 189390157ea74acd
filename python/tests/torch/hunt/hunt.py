"""Hunts for silent differences: trains random modules (hunt_models.py), or random training loops (hunt_loops.py), under
budgets and without, and compares the results.

usage: hunt.py [--loops] [--seeds A-B] [--jobs N] [--results FILE] [--timeout S]     trains seeds that are not in FILE
       hunt.py --summary FILE
       hunt.py [--loops] --shrink SEED [--budget B]    drops parts as long as the difference stays
       hunt.py --try "Module(...)" [--budget B]        trains one module or loop, given as --shrink prints it

The module of each seed is trained for two or three steps by ``backend="aot_eager"`` and by Cairn at the least budget.
If Cairn recomputes anything, it also trains at two budgets above the least one. After each step, everything that a
caller can see is compared bit for bit: the loss, outputs, gradients, buffers, parameters, inputs, the states of
generators, and the log that custom operations write. A row of FILE is JSON, with a verdict for each budget:

    same            the results are those of aot_eager
    as_eager        they are those of eager, which differ from those of aot_eager
    as_kept         they are those of eager or aot_eager if memory is overwritten only after the backward pass
    as_unscheduled  they are those of AOTAutograd without recomputation, but neither of eager nor of aot_eager; or, if
                    a whole step is planned, those of aot_eager for the whole step, which adds up gradients in another
                    order
    mixed           each value is that of aot_eager, of eager or of AOTAutograd without recomputation
    layout          values are those of aot_eager, but strides or aliases of outputs differ
    silent          none of the above: a defect
    loud            an error, or a warning that there is no budget
    impossible      aot_eager fails

``promises`` lists graphs that took more memory than promised; ``warnings`` lists Cairn's warnings. Two entries are
defects: ``untold``, a broken promise without a warning, and ``beyond``, bytes above a promise that reads as kept.
"""

import argparse
import collections
import concurrent.futures
import gc
import json
import logging
import os
import pathlib
import select
import shlex
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
RECYCLE = 60  # number of seeds after which a process is replaced, because torch keeps compiled code
# Budgets, as positions between the least peak (0) and the peak without a budget (1).
BUDGETS = {"min": 0.0, "quarter": 0.25, "middle": 0.5}
EXPECTED = "an input now shares memory with something else"  # part of a warning that is expected if inputs share memory

# --- What is compared

REFERENCES = ("aot_eager", "eager", "unscheduled", "whole step", "eager kept", "aot_eager kept")


def bits(tensor):
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.contiguous().view(whole[tensor.element_size()]) if tensor.is_floating_point() else tensor


def difference(a, b):
    """Compares two values. Returns None if they are equal. Otherwise returns the largest difference, relative to the
    largest number in ``b``, or a description of the difference."""
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        # as texts, because NaN does not equal NaN
        are_others = not isinstance(a, torch.Tensor) and not isinstance(b, torch.Tensor)
        return None if are_others and repr(a) == repr(b) else f"{a} {b}"[:400]
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype} {list(a.shape)}, {b.dtype} {list(b.shape)}"
    if torch.equal(bits(a), bits(b)):
        return None
    a, b = a.double(), b.double()
    if torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num()):
        return None if a.isnan().any() else 0.0  # 0.0: only the signs of zeros differ
    return float((a - b).abs().nan_to_num(nan=1e9).max() / b.abs().nan_to_num().max().clamp(min=1e-30))


def differences(steps, reference):
    """Returns a list of [step, name, difference] for the values that differ in the first step in which any value
    differs."""
    for number, (step, other) in enumerate(zip(steps, reference)):
        found = [[number, name, size] for name in sorted(step.keys() | other.keys())
                 if (size := difference(step.get(name, "absent"), other.get(name, "absent"))) is not None]
        if found:
            return found
    return []


def verdict(steps, references, overwritten, whole_step):
    """Returns the verdict on the records of a module (see the top of this file), and their differences from aot_eager.
    ``references``: a function that returns the records of the compiler with a given name. ``overwritten``: whether the
    memory of an input is overwritten in each step. ``whole_step``: the value of Mode.whole_step."""
    found = differences(steps, references("aot_eager"))
    if not found:
        return "same", []
    if all(name.startswith("layout") for _, name, _ in found):
        return "layout", found
    if not differences(steps, references("eager")):
        return "as_eager", found
    for name in REFERENCES[2:]:
        if (name == "whole step" and not whole_step) or (name.endswith("kept") and not overwritten):
            continue
        if all(f[1].startswith("layout") for f in differences(steps, references(name))):
            return "as_kept" if name.endswith("kept") else "as_unscheduled", found
    for number, name, _ in found:
        value = steps[number].get(name, "absent")
        if not name.startswith("layout") and all(difference(value, references(other)[number].get(name, "absent")) is not None
                                                 for other in ("eager", "unscheduled")):
            return "silent", found
    return "mixed", found


def message(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"


class Judge:
    """Compares a Module (hunt_training.py) or a Loop under budgets with its references, i.e. with itself as trained by the compilers
    REFERENCES. Each reference is computed once, when it is first needed."""

    def __init__(self, subject):
        self.subject, self.known, self.peaks = subject, {}, []

    def reference(self, compiler):
        if compiler not in self.known:
            try:
                self.known[compiler] = self.subject.run(compiler).records
            except Exception as error:
                if compiler == "aot_eager":
                    raise
                self.known[compiler] = [{"error": message(error)}] * self.subject.steps
        return self.known[compiler]

    def least(self):
        """Returns (least peak, peak without a budget) of each graph, in bytes."""
        if not self.peaks:
            self.judge("min")
        return self.peaks or [(1, 1)]

    def impossible(self):
        try:
            self.reference("aot_eager")
        except Exception as error:
            return message(error)
        return ""

    def judge(self, budget):
        """Returns the row of results for a budget, which is a name in BUDGETS, or any budget that the backend
        accepts."""
        asked, least = budget, None
        if BUDGETS.get(budget, 0):
            share = max((low + BUDGETS[budget] * (high - low)) / high for low, high in self.least())
            budget = f"{min(100 * share + 0.05, 100):.1f}%"
        # The run is repeated with larger budgets, because each of several graphs can need more than the graphs before
        # it.
        for _ in range(8):
            try:
                ran = self.subject.run("cairn", budget)
                break
            except cairn.InfeasibleError as error:
                budget = least = error.least_budget
            except Exception as error:
                return {"budget": asked, "least": least, "verdict": "loud", "error": message(error)}
        else:
            return {"budget": asked, "least": least, "verdict": "loud", "error": "InfeasibleError again and again"}
        result, found = verdict(ran.records, self.reference, self.subject.overwritten, self.subject.whole_step)
        graphs = ran.report.graphs if ran.report is not None else []
        if budget == "min":
            self.peaks = [(g.promised, g.baseline) for g in graphs if g.baseline]
        row = {"budget": asked, "least": least, "verdict": result, "graphs": len(graphs), "given": budget,
               "recomputed": sum(r.count if hasattr(r, "count") else 1 for g in graphs for r in g.recomputed or ())}
        broken = [[g.promised, g.measured, g.broken_by and str(g.broken_by)[:200]] for g in graphs
                  if g.measured is not None and g.measured > g.promised]
        unmeasured = sum(g.measured is None for g in graphs)
        row |= {"differs": found[:12], "count": len(found)} if found else {}
        row |= {"promises": broken} if broken else {}
        row |= {"unmeasured": unmeasured} if unmeasured else {}
        row |= {"warnings": ran.told} if ran.told else {}
        row |= {"beyond": ran.beyond} if ran.beyond else {}
        row |= {"untold": True} if ran.report is not None and ran.report.kept is False and not ran.told else {}
        if not graphs:
            row["verdict"] = "loud" if result == "same" else result
            row["error"] = "no graph"
        return row


def judge_seed(seed, draw):
    """Judges the module or loop of a seed and returns its row of the results."""
    start = time.process_time()
    subject = draw(seed)
    judge = Judge(subject)
    row = {"seed": seed, **subject.described()}
    impossible = judge.impossible()
    if impossible:
        row["impossible"] = impossible
    else:
        row["budgets"] = [judge.judge("min")]
        # If nothing is recomputed at the least budget, other budgets would only change the order of operations.
        if row["budgets"][0].get("recomputed", 1):
            row["budgets"] += [judge.judge(budget) for budget in ("quarter", "middle")]
    row["seconds"] = round(time.process_time() - start, 2)
    return row


# --- The smallest module


def wrong(subject, budget, wanted):
    if not subject.parts:
        return None
    judge = Judge(subject)
    if judge.impossible():
        return None
    row = judge.judge(budget)
    return row if row["verdict"] == wanted else None


def shrink(subject, budget=None):
    row = next((r for b in ([budget] if budget else BUDGETS) for r in [Judge(subject).judge(b)]
                if r["verdict"] not in ("same", "as_eager")), None)
    if row is None:
        print("no difference")
        return
    budget, wanted, progress = row["budget"], row["verdict"], True
    while progress:
        progress = False
        for other in subject.smaller():
            found = wrong(other, budget, wanted)
            if found:
                subject, row, progress = other, found, True
                print(f"  {len(subject.parts)} parts", file=sys.stderr, flush=True)
                break
    print(f"{wanted} at {budget}: {' '.join(subject.described()['parts'])}")
    print(f"hunt.py --budget {budget} --try {shlex.quote(str(subject))}")
    print(json.dumps(row))


# --- Many seeds


def prepare():
    """Imports torch and the modules that need it, turns off torch's messages, and limits torch to one thread."""
    global cairn, hunt_loops, hunt_models, hunt_training, torch
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    sys.path[:0] = str(HERE), str(HERE.parent)
    import cairn.torch
    import hunt_loops
    import hunt_models
    import hunt_training
    import torch
    torch.set_num_threads(1)
    torch._logging.set_logs(all=logging.CRITICAL)
    torch._dynamo.config.recompile_limit = 32


def drawer(loops):
    return hunt_loops.draw_loop if loops else hunt_training.draw_module


def worker(loops):
    """Reads seeds from stdin, and prints a row for each."""
    rows = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    prepare()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)  # otherwise, garbage collection takes a fifth of the time
    for line in sys.stdin:
        print(json.dumps(judge_seed(int(line), drawer(loops))), file=rows, flush=True)


class Worker:
    """A process that judges seeds. The process is replaced after RECYCLE seeds, or if a seed takes longer than
    ``timeout`` seconds."""

    def __init__(self, loops, timeout):
        self.loops, self.timeout, self.process, self.done = loops, timeout, None, 0

    def judge(self, seed):
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / "hunt.py"), "--worker", *["--loops"][:self.loops]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
            self.done = 0
        self.process.stdin.write(f"{seed}\n".encode())
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], self.timeout)
        line = self.process.stdout.readline() if ready else b""
        self.done += 1
        if not line or self.done == RECYCLE:
            self.end()
        if line:
            return json.loads(line)
        return {"seed": seed, "impossible": "", "lost": "the process ended" if ready else "time-out"}

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def hunt(seeds, loops, jobs, results, timeout):
    results = pathlib.Path(results)
    known = {json.loads(line)["seed"] for line in results.read_text().splitlines()} if results.exists() else set()
    left = iter([seed for seed in seeds if seed not in known])

    def work():
        one = Worker(loops, timeout)
        try:
            while (seed := next(left, None)) is not None:
                row = one.judge(seed)
                with results.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                for line in findings(row):
                    print(line, flush=True)
        finally:
            one.end()

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for future in [pool.submit(work) for _ in range(jobs)]:
            future.result()
    summarize(results)


# --- Reports


def findings(row):
    """Yields one line of text for each finding in a row of results."""
    about = f"seed {row['seed']}"
    described = f"{' '.join(row.get('parts', ()))} [{' '.join(row.get('traits', ()))}] {row.get('mode', '')}"
    if "lost" in row:
        yield f"lost: {about}: {row['lost']}"
    elif "impossible" in row:
        yield f"impossible: {about}: {row['impossible'][:200]}: {described}"
    for budget in row.get("budgets", ()):
        at = f"{about} at {budget['budget']}"
        if budget["verdict"] in ("silent", "layout", "mixed", "as_unscheduled"):
            first = "; ".join(f"step {n} {name} {str(size)[:60]}" for n, name, size in budget["differs"][:3])
            yield f"{budget['verdict']}: {at}: {budget['count']} values: {first}: {described}"
        elif budget["verdict"] == "loud":
            yield f"loud: {at}: {budget['error'][:300]}: {described}"
        if "beyond" in budget or "untold" in budget:
            beyond = f" by {budget['beyond']} bytes" if "beyond" in budget else ""
            yield f"untold: {at}: a promise is exceeded{beyond} without a warning: {described}"
        for promised, measured, operation in budget.get("promises", ()):
            yield f"broken promise: {at}: {measured} of {promised}, {operation}: {described}"
        for text in budget.get("warnings", ()):
            if EXPECTED not in text:
                yield f"warning: {at}: {text[:200]}"


def summarize(results):
    rows = [json.loads(line) for line in pathlib.Path(results).read_text().splitlines()]
    verdicts = collections.Counter(b["verdict"] for row in rows for b in row.get("budgets", ()))
    recomputed = sum(b.get("recomputed", 0) > 0 for row in rows for b in row.get("budgets", ()))
    print(f"{len(rows)} seeds: impossible {sum('impossible' in r and 'lost' not in r for r in rows)}, lost "
          f"{sum('lost' in r for r in rows)}; "
          f"{sum(r.get('seconds', 0) for r in rows) / max(1, len(rows)):.1f} core-seconds each")
    print(f"budgets: {', '.join(f'{name} {count}' for name, count in verdicts.most_common())}; recomputation in {recomputed}; "
          f"broken promises {sum('promises' in b for r in rows for b in r.get('budgets', ()))}, "
          f"warnings {sum('warnings' in b for r in rows for b in r.get('budgets', ()))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loops", action="store_true", help="training loops instead of modules")
    parser.add_argument("--seeds", default="0-49")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", default="hunt.jsonl")
    parser.add_argument("--timeout", type=float, default=180, help="seconds for a seed")
    parser.add_argument("--summary", metavar="FILE")
    parser.add_argument("--shrink", type=int, metavar="SEED")
    parser.add_argument("--budget")
    parser.add_argument("--try", dest="one", metavar="MODULE")
    parser.add_argument("--worker", action="store_true")
    given = parser.parse_args()
    if given.worker:
        worker(given.loops)
    elif given.summary:
        for line in pathlib.Path(given.summary).read_text().splitlines():
            print(*findings(json.loads(line)), sep="\n", end="\n" if list(findings(json.loads(line))) else "")
        summarize(given.summary)
    elif given.shrink is not None:
        prepare()
        shrink(drawer(given.loops)(given.shrink), given.budget)
    elif given.one:
        prepare()
        names = {"Loop": hunt_loops.Loop, "Mode": hunt_training.Mode, "Module": hunt_training.Module, "Spec": hunt_models.Spec}
        judge = Judge(eval(given.one, names))
        print(judge.impossible() or [judge.judge(b) for b in ([given.budget] if given.budget else BUDGETS)])
    else:
        first, last = given.seeds.split("-")
        hunt(range(int(first), int(last) + 1), given.loops, given.jobs, given.results, given.timeout)


if __name__ == "__main__":
    main()
