"""Hunts for silent differences: trains random modules (hunt_models.py) under budgets and without, and compares the
results.

usage: hunt.py [--seeds A-B] [--jobs N] [--results FILE] [--timeout S]     trains the seeds that are not in FILE yet
       hunt.py --summary FILE
       hunt.py --shrink SEED [--budget B]              drops parts as long as the difference stays
       hunt.py --try "Spec(...)" "Mode(...)"           trains one module, given as --shrink prints it

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

``promises`` lists graphs that took more memory than promised; ``warnings`` lists Cairn's warnings.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import gc
import json
import logging
import os
import pathlib
import random
import select
import shlex
import subprocess
import sys
import time
import warnings

HERE = pathlib.Path(__file__).parent
WORK = 5_000  # work limit of a search; schedules need not be good, only different from the traced order
RECYCLE = 60  # number of seeds after which a process is replaced, because torch keeps compiled code
# Budgets, as positions between the least peak (0) and the peak without a budget (1).
BUDGETS = {"min": 0.0, "quarter": 0.25, "middle": 0.5}
EXPECTED = "an input now shares memory with something else"  # part of a warning that is expected if inputs share memory

# --- What is run


@dataclasses.dataclass(frozen=True)
class Mode:
    """The way in which a module is trained, and the options of the backend."""

    steps: int = 2
    random: str = "keep"
    dynamic: bool = False
    calibrate: bool = True
    # "step": trained by cairn.torch.step; "optimizer": in addition, the plan contains the optimizer; empty: by
    # cairn.torch.backend
    whole_step: str = ""
    allow_rnn: bool = False
    pattern: str = ""  # what the caller does in addition to a forward and a backward pass: one of PATTERNS


PATTERNS = ("two_forwards", "eval_between", "no_grad_between", "accumulate", "retain")


def draw_mode(seed, spec):
    draw = random.Random(f"mode {seed}")
    whole_step = draw.choices(("", "step", "optimizer"), (30, 1, 1))[0]
    return Mode(steps=draw.choice([2] * 7 + [3]), random="replay" if seed % 3 == 0 else "keep",
                dynamic=draw.random() < 0.03 and "state_shared" not in spec.traits,
                calibrate=draw.random() < 0.95, whole_step=whole_step, allow_rnn=draw.random() < 0.5,
                pattern="" if whole_step or draw.random() < 0.85 else draw.choice(PATTERNS))


class Recorder:
    """Records everything that a caller can see of each step, as a dictionary of tensors and other values."""

    def __init__(self, case):
        self.case, self.steps = case, []

    def begin(self):
        self.steps.append({})

    def put(self, name, value):
        self.steps[-1][name] = value.detach().clone() if isinstance(value, torch.Tensor) else value

    def outputs(self, out):
        storages = {}
        for name, tensor in self.inputs():
            storages.setdefault(tensor.untyped_storage().data_ptr(), name)
        for index, value in enumerate(out):
            name = "loss" if index == 0 else f"output {index}"
            self.put(name, value)
            if isinstance(value, torch.Tensor):
                owner = storages.setdefault(value.untyped_storage().data_ptr(), name)
                self.put(f"layout of {name}", [list(value.shape), list(value.stride()), str(value.dtype), owner])

    def inputs(self):
        yield "input x", self.case.x
        for name, tensor in self.case.extra.items():
            yield f"input {name}", tensor

    def gradients(self):
        for name, parameter in self.case.model.named_parameters():
            self.put(f"gradient {name}", parameter.grad)
        self.put("gradient of x", self.case.x.grad)

    def end(self):
        self.put("generator", torch.get_rng_state())
        for index, generator in enumerate(self.case.model.generators()):
            self.put(f"generator {index}", generator.get_state())
        for name, tensor in (*self.case.model.named_buffers(), *self.inputs()):
            self.put(name if name.startswith("input") else f"buffer {name}", tensor)
        for name, parameter in self.case.model.named_parameters():
            self.put(f"parameter {name}", parameter)
        self.put("log", list(hunt_ops.LOG))


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)


def begin_step(case, mode, recorder, number):
    if mode.dynamic and number == 1:
        case.make_smaller()
    recorder.begin()
    torch.manual_seed(100 + number)
    case.x.grad = None


def train(case, mode, compiled, kept=False):
    """Trains a model, compiled or not, and returns the records of its steps. ``kept``: whether memory that inputs share
    with numpy is overwritten only after the backward pass, not before it."""
    recorder, optimizer = Recorder(case), optimizer_of(case.model)
    for number in range(mode.steps):
        begin_step(case, mode, recorder, number)
        between(case, mode, compiled)
        out = compiled(*case.arguments())
        recorder.outputs(out)
        total = hunt_models.total_of(out)
        if mode.pattern == "two_forwards":
            total = total + hunt_models.total_of(compiled(*case.arguments())) * 0.5
        if not kept:
            case.overwrite()
        total.backward(retain_graph=mode.pattern == "retain")
        if kept:
            case.overwrite()
        recorder.gradients()
        optimizer.step()
        recorder.end()
        if mode.pattern != "accumulate":
            optimizer.zero_grad()
    return recorder.steps


def between(case, mode, compiled):
    if mode.pattern == "eval_between":
        training = [(m, m.training) for m in case.model.modules()]
        case.model.eval()
        with torch.no_grad():
            compiled(*case.arguments())
        for module, value in training:
            module.training = value
    elif mode.pattern == "no_grad_between":
        with torch.no_grad():
            compiled(*case.arguments())


def train_whole(case, mode, wrap, model=None):
    """Trains a model whose whole training step is wrapped by ``wrap``, for example by cairn.torch.step. Returns the
    records of the steps."""
    recorder, optimizer = Recorder(case), optimizer_of(case.model)
    model = case.model if model is None else model
    overwrite = torch._dynamo.disable(case.overwrite)

    def train_step(x, targets, extra):
        optimizer.zero_grad()
        out = model(x, targets, extra)
        hunt_models.total_of(out).backward()
        overwrite()
        optimizer.step()
        return [o.detach() if isinstance(o, torch.Tensor) else o for o in out]

    step = wrap(train_step, optimizer)
    for number in range(mode.steps):
        begin_step(case, mode, recorder, number)
        recorder.outputs(step(*case.arguments()))
        if mode.whole_step == "step":
            recorder.gradients()
        recorder.end()
    return recorder.steps


def run(spec, mode, compiler, budget=None):
    """Trains a module with the compiler "cairn" or one of REFERENCES. Returns (records, report or None, messages of
    CairnWarnings)."""
    compiler, kept = compiler.removesuffix(" kept"), compiler.endswith(" kept")
    torch._dynamo.reset()
    torch._dynamo.config.allow_rnn = mode.allow_rnn
    dynamic = True if mode.dynamic else None
    case = hunt_models.Case(spec)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if compiler == "cairn":
            options = {"fallback": False, "work_limit": WORK, "random": mode.random, "calibrate": mode.calibrate}
            if mode.whole_step:
                in_plan = mode.whole_step == "optimizer"
                steps = train_whole(case, mode, lambda step, optimizer: cairn.torch.step(
                    step, budget, optimizer=optimizer if in_plan else None, **options))
            else:
                steps = train(case, mode, torch.compile(case.model, backend=cairn.torch.backend(budget, **options),
                                                        dynamic=dynamic))
        else:
            backend = harness.unscheduled() if compiler == "unscheduled" else compiler
            model = case.model if compiler in ("eager", "whole step") else torch.compile(case.model, backend=backend, dynamic=dynamic)
            if compiler == "whole step":
                steps = train_whole(case, mode, lambda step, _: torch.compile(step, backend="aot_eager"))
            elif mode.whole_step:
                steps = train_whole(case, mode, lambda step, _: step, model)
            else:
                steps = train(case, mode, model, kept)
    told = sorted({str(w.message)[:300] for w in caught if issubclass(w.category, cairn.torch.CairnWarning)})
    return steps, cairn.torch.last_report() if compiler == "cairn" else None, told


# --- What is compared

REFERENCES = ("aot_eager", "eager", "unscheduled", "whole step", "eager kept", "aot_eager kept")


def bits(tensor):
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.contiguous().view(whole[tensor.element_size()]) if tensor.is_floating_point() else tensor


def difference(a, b):
    """Compares two values. Returns None if they are equal. Otherwise returns the largest difference, relative to the
    largest number in ``b``, or a description of the difference."""
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return None if not isinstance(a, torch.Tensor) and not isinstance(b, torch.Tensor) and a == b else f"{a} {b}"[:400]
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
    """Compares a module under budgets with its references, i.e. the same module trained by the compilers REFERENCES.
    Each reference is computed once, when it is first needed."""

    def __init__(self, spec, mode):
        self.spec, self.mode, self.known, self.peaks = spec, mode, {}, []

    def reference(self, compiler):
        if compiler not in self.known:
            try:
                self.known[compiler] = run(self.spec, self.mode, compiler)[0]
            except Exception as error:
                if compiler == "aot_eager":
                    raise
                self.known[compiler] = [{"error": message(error)}] * self.mode.steps
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
                steps, report, told = run(self.spec, self.mode, "cairn", budget)
                break
            except cairn.InfeasibleError as error:
                budget = least = error.least_budget
            except Exception as error:
                return {"budget": asked, "least": least, "verdict": "loud", "error": message(error)}
        else:
            return {"budget": asked, "least": least, "verdict": "loud", "error": "InfeasibleError again and again"}
        result, found = verdict(steps, self.reference, "overwritten" in self.spec.traits, self.mode.whole_step)
        graphs = report.graphs if report is not None else []
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
        row |= {"warnings": told} if told else {}
        if not graphs:
            row["verdict"] = "loud" if result == "same" else result
            row["error"] = "no graph"
        return row


def judge_seed(seed):
    """Judges the module of a seed and returns its row of the results."""
    start = time.process_time()
    spec = hunt_models.draw_spec(seed)
    mode = draw_mode(seed, spec)
    judge = Judge(spec, mode)
    row = {"seed": seed, "parts": spec.names(), "traits": spec.traits, "mode": changed(mode)}
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


def changed(mode):
    return {f.name: getattr(mode, f.name) for f in dataclasses.fields(mode) if getattr(mode, f.name) != f.default}


# --- The smallest module


def smaller(spec, mode):
    """Yields pairs of a spec, which describes a module, and a mode. Each pair is simpler in one respect than the given
    pair."""
    for index in range(len(spec.parts)):
        yield dataclasses.replace(spec, parts=spec.parts[:index] + spec.parts[index + 1:]), mode
    for index in range(len(spec.traits)):
        yield dataclasses.replace(spec, traits=spec.traits[:index] + spec.traits[index + 1:]), mode
    for field in dataclasses.fields(mode):
        if field.name != "steps" and getattr(mode, field.name) != field.default:
            yield spec, dataclasses.replace(mode, **{field.name: field.default})
    if mode.steps > 1:
        yield spec, dataclasses.replace(mode, steps=mode.steps - 1)
    for index, (family, kind, seed, skip) in enumerate(spec.parts):
        if skip is not None:
            yield with_part(spec, index, (family, kind, seed, None)), mode
        words = kind.split("+")
        for word in range(1, len(words)):
            if len(words) > 2:
                yield with_part(spec, index, (family, "+".join(words[:word] + words[word + 1:]), seed, skip)), mode


def with_part(spec, index, part):
    return dataclasses.replace(spec, parts=spec.parts[:index] + (part,) + spec.parts[index + 1:])


def wrong(spec, mode, budget, wanted):
    if not spec.parts:
        return None
    judge = Judge(spec, mode)
    if judge.impossible():
        return None
    row = judge.judge(budget)
    return row if row["verdict"] == wanted else None


def shrink(seed, budget=None):
    spec = hunt_models.draw_spec(seed)
    mode = draw_mode(seed, spec)
    row = next((r for b in ([budget] if budget else BUDGETS) for r in [Judge(spec, mode).judge(b)]
                if r["verdict"] not in ("same", "as_eager")), None)
    if row is None:
        print(f"seed {seed}: no difference")
        return
    budget, wanted, progress = row["budget"], row["verdict"], True
    while progress:
        progress = False
        for next_spec, next_mode in smaller(spec, mode):
            found = wrong(next_spec, next_mode, budget, wanted)
            if found:
                spec, mode, row, progress = next_spec, next_mode, found, True
                print(f"  {len(spec.parts)} parts, {len(spec.traits)} traits", file=sys.stderr, flush=True)
                break
    print(f"{wanted} at {budget}: {' '.join(spec.names())}, {' '.join(spec.traits)}")
    print(f"hunt.py --budget {budget} --try {shlex.quote(str(spec))} {shlex.quote(str(mode))}")
    print(json.dumps(row))


# --- Many seeds


def prepare():
    """Imports torch and the modules that need it, turns off torch's messages, and limits torch to one thread."""
    global cairn, harness, hunt_models, hunt_ops, torch
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    sys.path[:0] = str(HERE), str(HERE.parent)
    import cairn.torch
    import harness
    import hunt_models
    import hunt_ops
    import torch
    torch.set_num_threads(1)
    torch._logging.set_logs(all=logging.CRITICAL)
    torch._dynamo.config.recompile_limit = 32


def worker():
    """Reads seeds from stdin, and prints a row for each."""
    rows = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    prepare()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)  # otherwise, garbage collection takes a fifth of the time
    for line in sys.stdin:
        print(json.dumps(judge_seed(int(line))), file=rows, flush=True)


class Worker:
    """A process that judges seeds. The process is replaced after RECYCLE seeds, or if a seed takes longer than
    ``timeout`` seconds."""

    def __init__(self, timeout):
        self.timeout, self.process, self.done = timeout, None, 0

    def judge(self, seed):
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / "hunt.py"), "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
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


def hunt(seeds, jobs, results, timeout):
    results = pathlib.Path(results)
    known = {json.loads(line)["seed"] for line in results.read_text().splitlines()} if results.exists() else set()
    left = iter([seed for seed in seeds if seed not in known])

    def work():
        one = Worker(timeout)
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
        for promised, measured, operation in budget.get("promises", ()):
            yield f"broken promise: {at}: {measured} of {promised}, {operation}: {described}"
        for text in budget.get("warnings", ()):
            if EXPECTED not in text:
                yield f"warning: {at}: {text[:200]}"


def summarize(results):
    rows = [json.loads(line) for line in pathlib.Path(results).read_text().splitlines()]
    verdicts = collections.Counter(b["verdict"] for row in rows for b in row.get("budgets", ()))
    recomputed = sum(b.get("recomputed", 0) > 0 for row in rows for b in row.get("budgets", ()))
    print(f"{len(rows)} modules: impossible {sum('impossible' in r and 'lost' not in r for r in rows)}, lost "
          f"{sum('lost' in r for r in rows)}; "
          f"{sum(r.get('seconds', 0) for r in rows) / max(1, len(rows)):.1f} core-seconds each")
    print(f"budgets: {', '.join(f'{name} {count}' for name, count in verdicts.most_common())}; recomputation in {recomputed}; "
          f"broken promises {sum('promises' in b for r in rows for b in r.get('budgets', ()))}, "
          f"warnings {sum('warnings' in b for r in rows for b in r.get('budgets', ()))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-49")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", default="hunt.jsonl")
    parser.add_argument("--timeout", type=float, default=180, help="seconds for a seed")
    parser.add_argument("--summary", metavar="FILE")
    parser.add_argument("--shrink", type=int, metavar="SEED")
    parser.add_argument("--budget")
    parser.add_argument("--try", nargs=2, dest="one", metavar=("SPEC", "MODE"))
    parser.add_argument("--worker", action="store_true")
    given = parser.parse_args()
    if given.worker:
        worker()
    elif given.summary:
        for line in pathlib.Path(given.summary).read_text().splitlines():
            print(*findings(json.loads(line)), sep="\n", end="\n" if list(findings(json.loads(line))) else "")
        summarize(given.summary)
    elif given.shrink is not None:
        prepare()
        shrink(given.shrink, given.budget)
    elif given.one:
        prepare()
        names = {"Spec": hunt_models.Spec, "Mode": Mode}
        judge = Judge(*(eval(text, names) for text in given.one))
        print(judge.impossible() or [judge.judge(b) for b in ([given.budget] if given.budget else BUDGETS)])
    else:
        first, last = given.seeds.split("-")
        hunt(range(int(first), int(last) + 1), given.jobs, given.results, given.timeout)


if __name__ == "__main__":
    main()
