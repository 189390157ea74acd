"""Trains the modules of hunt_models.py with Cairn and without."""

import dataclasses
import random
import typing
import warnings

import cairn.torch
import harness
import hunt_models
import hunt_ops
import torch

WORK = 5_000  # work limit of a search; schedules need not be good, only different from the traced order


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
    """Trains a module with the compiler "cairn" or one of hunt.REFERENCES."""
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
    return Ran(steps, cairn.torch.last_report() if compiler == "cairn" else None, told_in(caught))


class Ran(typing.NamedTuple):
    """A training that has ended."""

    records: list  # for each step, a dict from name to value
    report: object  # None without Cairn
    told: list  # texts of CairnWarnings
    beyond: int = 0  # bytes above the promise that were measured apart from Cairn, although ``report.kept`` is True


def told_in(caught):
    return sorted({str(w.message)[:300] for w in caught if issubclass(w.category, cairn.torch.CairnWarning)})


@dataclasses.dataclass(frozen=True)
class Module:
    """A module of hunt_models.py and the way in which it is trained. hunt_loops.Loop has the same methods."""

    spec: hunt_models.Spec
    mode: Mode

    @property
    def parts(self):
        return self.spec.parts

    @property
    def steps(self):
        return self.mode.steps

    @property
    def whole_step(self):
        return self.mode.whole_step

    @property
    def overwritten(self):
        return "overwritten" in self.spec.traits

    def run(self, compiler, budget=None):
        return run(self.spec, self.mode, compiler, budget)

    def described(self):
        """Returns the entries of a row of results that describe the module."""
        return {"parts": self.spec.names(), "traits": self.spec.traits, "mode": changed(self.mode)}

    def smaller(self):
        """Yields modules that are simpler in one respect."""
        spec, mode = self.spec, self.mode
        for index in range(len(spec.parts)):
            yield self._with(parts=spec.parts[:index] + spec.parts[index + 1:])
        for index in range(len(spec.traits)):
            yield self._with(traits=spec.traits[:index] + spec.traits[index + 1:])
        for field in dataclasses.fields(mode):
            if field.name != "steps" and getattr(mode, field.name) != field.default:
                yield Module(spec, dataclasses.replace(mode, **{field.name: field.default}))
        if mode.steps > 1:
            yield Module(spec, dataclasses.replace(mode, steps=mode.steps - 1))
        for index, (family, kind, seed, skip) in enumerate(spec.parts):
            if skip is not None:
                yield self._with_part(index, (family, kind, seed, None))
            words = kind.split("+")
            for word in range(1, len(words)):
                if len(words) > 2:
                    yield self._with_part(index, (family, "+".join(words[:word] + words[word + 1:]), seed, skip))

    def _with(self, **changes):
        return Module(dataclasses.replace(self.spec, **changes), self.mode)

    def _with_part(self, index, part):
        return self._with(parts=self.spec.parts[:index] + (part,) + self.spec.parts[index + 1:])


def draw_module(seed):
    spec = hunt_models.draw_spec(seed)
    return Module(spec, draw_mode(seed, spec))


def changed(settings):
    """Returns the fields of a dataclass that differ from their defaults."""
    return {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings)
            if f.default is not dataclasses.MISSING and getattr(settings, f.name) != f.default}
