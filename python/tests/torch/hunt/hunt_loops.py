"""Makes random training loops for hunt.py. A seed determines a ``Loop``, which is the same on every machine.

The model of a loop is a chain of parts (random_models.py) with a head. Loops differ in what is compiled, in the passes
of a step, in checkpoints, hooks and optimizers, and in what happens between the steps. Many of them run several
compiled graphs in a step, or one graph several times.
"""

import contextlib
import dataclasses
import gc
import random
import warnings

import harness
import hunt_training
import random_models
import torch
import torch.nn.functional as F
from random_models import WIDTH
from torch.utils.checkpoint import checkpoint

import cairn.torch

CLASSES, LENGTH = 7, 8
PARTS = {kind.__name__: kind for kind in random_models.PARTS}


def mean_of_two(step):
    """Two passes of half a loss each, which add up to one gradient."""
    for index in (0, 1):
        (step.loss(index)[0] / 2).backward()


def plain(step):
    step.loss(0)[0].backward()


def sum_of_two(step):
    (step.loss(0)[0] + step.loss(1)[0]).backward()


def loss_on_logits(step):
    loss, logits = step.loss(0)
    (loss + 0.1 * logits.square().mean()).backward()


def twice_backward(step):
    loss, logits = step.loss(0)
    loss.backward(retain_graph=True)
    (logits.sum() * 0.01).backward()


def adversarial(step):
    """The second model learns to tell inputs apart, then the first learns from it."""
    loss, _ = step.loss(0)
    step.note("other", other := step.second(step.x[1]).mean() - step.second(step.x[1] * 0.5).mean())
    other.backward()
    (loss + step.second(step.x[0]).mean() * 0.1).backward()


def teacher(step):
    with torch.no_grad():
        wanted = step.second(step.x[0])
    loss, logits = step.loss(0)
    (loss + F.mse_loss(logits.float(), wanted.float())).backward()


def gradient_of_input(step):
    x = step.x[0].clone().requires_grad_()
    loss, _ = step.loss(0, x)
    step.note("gradient of the input", torch.autograd.grad(loss, x, retain_graph=True)[0])
    loss.backward()


def moved_input(step):
    """An adversarial input: the gradient of a first pass moves the input of a second one."""
    x = step.x[0].clone().requires_grad_()
    moved = x + 0.01 * torch.autograd.grad(step.loss(0, x)[0], x)[0].sign()
    step.loss(0, moved)[0].backward()


def kept_results(step):
    loss, logits = step.loss(0)
    loss.backward()
    step.kept += [loss, logits.detach()]


def models_in_a_row(step):
    loss, _ = step.loss(0, step.x[0] * step.second(step.x[0])[..., :1])
    loss.backward()


def recurrent(step):
    """Two passes of which the second reads a result of the first, and the next step reads a result of both."""
    losses, state = [], step.state
    for index in (0, 1):
        loss, logits = step.loss(index, step.x[index] + state)
        state = logits.float().mean((0, 1), keepdim=True)[..., :1]
        losses.append(loss)
    sum(losses).backward()
    step.state = state.detach()


def evaluation_in_between(step):
    loss, _ = step.loss(0)
    step.model.eval()
    with torch.no_grad():
        step.note("evaluated", step.loss(1)[0])
    step.model.train()
    loss.backward()


PASSES = {f.__name__: f for f in (
    plain, mean_of_two, sum_of_two, loss_on_logits, twice_backward, adversarial, teacher, gradient_of_input, moved_input,
    kept_results, models_in_a_row, recurrent, evaluation_in_between)}
# "loss": a function of inputs that returns the loss; "model": the model; "blocks": each part; "some": every other part
COMPILED = ("loss", "loss", "model", "blocks", "blocks", "some")
CHECKPOINTS = ("", "", "", "parts", "reentrant", "step")
# "scale": a hook that replaces a gradient; "in_place": one that writes a gradient when it is complete; "module": a hook
# on the backward pass of a part; "copy": hooks that copy all saved values
HOOKS = ("", "", "", "", "scale", "in_place", "module", "copy")
EVALUATIONS = ("", "", "no_grad", "inference", "gradients")
ZEROS = ("before", "before", "to_zero", "after")
OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=0.01),
}
SIZES = ((8,) * 4, (8,) * 4, (8, 8, 6, 8), (4, 9, 2, 7))


@dataclasses.dataclass(frozen=True)
class Loop:
    parts: tuple  # (name of a class in random_models.py, seed) of each part
    compiled: str = "loss"
    passes: str = "plain"
    checkpoint: str = ""
    hook: str = ""
    evaluation: str = ""  # a pass in evaluation mode after the second step
    optimizer: str = "sgd"
    zero: str = "before"  # when gradients are dropped, or set to zero
    clip: bool = False
    frozen: bool = False  # whether the first part is frozen
    autocast: bool = False
    sizes: tuple = (8, 8, 8)  # batch size of each step
    dynamic: bool | None = None
    random: str = "keep"
    accumulate: bool = False
    differentiated: str = "loss"

    whole_step = ""  # as in hunt_training.Mode
    overwritten = False  # as in hunt.py

    @property
    def steps(self):
        return len(self.sizes)

    @property
    def runs_in_one_graph(self):
        """Whether a step consists of one forward and one backward pass of a graph, and nothing else that allocates
        memory, so that the peak that torch's profiler sees must be within what is promised."""
        return (self.compiled == "loss" and self.passes in ("plain", "kept_results") and self.zero != "to_zero" and
                not self.checkpoint and not self.hook and "Break" not in self.described()["parts"])

    def described(self):
        return {"parts": [kind for kind, _ in self.parts], "mode": hunt_training.changed(self)}

    def smaller(self):
        """Yields loops that are simpler in one respect."""
        for index in range(len(self.parts)):
            yield dataclasses.replace(self, parts=self.parts[:index] + self.parts[index + 1:])
        for field in dataclasses.fields(self)[1:]:
            if field.name != "sizes" and getattr(self, field.name) != field.default:
                yield dataclasses.replace(self, **{field.name: field.default})
        if len(self.sizes) > 1:
            yield dataclasses.replace(self, sizes=self.sizes[:-1])
        if len(set(self.sizes)) > 1:
            yield dataclasses.replace(self, sizes=(8,) * len(self.sizes))

    def run(self, compiler, budget=None):
        """Trains the loop, as hunt_training.run() trains a module."""
        torch._dynamo.reset()
        options = {"random": self.random, "accumulate": self.accumulate, "differentiated": self.differentiated}
        backend = {
            "cairn": lambda: cairn.torch.backend(budget, fallback=False, work_limit=hunt_training.WORK, **options),
            "unscheduled": harness.unscheduled,
        }.get(compiler.removesuffix(" kept"), lambda: compiler)()

        def compiled(function):
            return function if backend == "eager" else torch.compile(function, backend=backend, dynamic=self.dynamic)

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            training = Training(self, compiled)
            for number in range(self.steps):
                training.step(number)
        report = cairn.torch.last_report() if compiler == "cairn" else None
        ran = hunt_training.Ran(training.records, report, hunt_training.told_in(caught))
        if report is not None and report.kept and self.runs_in_one_graph:
            promised = report.promised
            ran = ran._replace(beyond=max(0, training.own_peak() - promised))
        return ran


def draw_loop(seed):
    draw = random.Random(f"loop {seed}")
    parts = tuple((draw.choice(list(PARTS)), draw.randrange(1000)) for _ in range(draw.randint(1, 4)))
    loop = Loop(
        parts, compiled=draw.choice(COMPILED), passes=draw.choice(list(PASSES)), checkpoint=draw.choice(CHECKPOINTS),
        hook=draw.choice(HOOKS), evaluation=draw.choice(EVALUATIONS), optimizer=draw.choice(list(OPTIMIZERS)),
        zero=draw.choice(ZEROS), clip=draw.random() < 0.2, frozen=draw.random() < 0.15, autocast=draw.random() < 0.1,
        sizes=draw.choice(SIZES), dynamic=draw.choice((None, None, True, False)), random=draw.choice(("keep", "replay")),
        accumulate=draw.random() < 0.2, differentiated=draw.choice(("loss",) * 5 + ("all",)))
    # If a checkpoint inside of a compiled function contains a write to a buffer, torch's gradients are those after
    # another number of writes. Cairn's are those without the checkpoint.
    writes = any(kind == "InPlace" for kind, _ in parts) and loop.compiled in ("loss", "model")
    return dataclasses.replace(loop, checkpoint="") if writes and loop.checkpoint in ("parts", "reentrant") else loop


def allocations(nodes):
    """Yields the allocations in a tree of the profiler's events."""
    for node in nodes:
        if node.tag.name == "Allocation":
            yield node
        yield from allocations(node.children)


class Model(torch.nn.Module):
    """A chain of parts with a head that returns logits."""

    def __init__(self, loop, parts, compiled):
        super().__init__()
        self.loop = loop
        self.parts = torch.nn.ModuleList(PARTS[kind](random.Random(seed)) for kind, seed in parts)
        self.head = torch.nn.Linear(WIDTH, CLASSES)
        is_compiled = {"blocks": lambda index: True, "some": lambda index: index % 2 == 0}.get(loop.compiled, lambda index: False)
        # a tuple, so that compiled parts are not registered as modules
        self.runs = tuple(compiled(part) if is_compiled(index) else part for index, part in enumerate(self.parts))

    def forward(self, x):
        for index, run in enumerate(self.runs):
            if self.training and self.loop.checkpoint in ("parts", "reentrant") and index % 2 == 0:
                is_reentrant = self.loop.checkpoint == "reentrant" and x.requires_grad and not torch.compiler.is_compiling()
                x = checkpoint(run, x, use_reentrant=is_reentrant)
            else:
                x = run(x)
        return self.head(x)


class Training:
    """Trains a loop and records what its user can see. ``compiled``: a function that compiles a function or module."""

    def __init__(self, loop, compiled):
        torch.manual_seed(7)
        self.loop, self.records, self.kept, self.state = loop, [], [], torch.zeros(1, 1, 1)
        self.model = Model(loop, loop.parts, compiled)
        self.second_model = Model(dataclasses.replace(loop, checkpoint=""), loop.parts[-1:], compiled)
        self.second = self.second_model if loop.compiled in ("blocks", "some") else compiled(self.second_model)
        if loop.frozen:
            self.model.parts[0].requires_grad_(False)
        run = compiled(self.model) if loop.compiled == "model" else self.model

        def loss_of(x, targets):
            with torch.autocast("cpu", torch.bfloat16, enabled=loop.autocast):
                logits = run(x)
            return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten()), logits

        self.run = compiled(loss_of) if loop.compiled == "loss" else loss_of
        self.trained = [p for m in (self.model, self.second_model) for p in m.parameters() if p.requires_grad]
        self.optimizer = OPTIMIZERS[loop.optimizer](self.trained)
        self._register_hooks()

    def _register_hooks(self):
        if self.loop.hook == "scale":
            self.trained[0].register_hook(lambda gradient: gradient * 0.5)
        elif self.loop.hook == "in_place":
            self.trained[0].register_post_accumulate_grad_hook(self._halve)
        elif self.loop.hook == "module":
            self.model.parts[0].register_full_backward_hook(lambda module, given, got: self.note("of the hook", got[0]))

    @staticmethod
    def _halve(parameter):
        parameter.grad.mul_(0.5)

    def note(self, name, value):
        self.records[-1][name] = value.detach().clone() if isinstance(value, torch.Tensor) else value

    def loss(self, index, x=None):
        """Returns the loss and the logits of one of the step's two batches. ``x``: another input than that of the
        batch."""
        around = contextlib.nullcontext()
        if self.loop.hook == "copy":
            around = torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda saved: saved)
        x = self.x[index] if x is None else x
        with around:
            if self.loop.checkpoint == "step" and torch.is_grad_enabled():
                return checkpoint(self.run, x, self.targets[index], use_reentrant=False)
            return self.run(x, self.targets[index])

    def step(self, number):
        loop, size = self.loop, self.loop.sizes[number]
        self.records.append({})
        torch.manual_seed(100 + number)
        self.x = [torch.randn(size, LENGTH, WIDTH) for _ in range(2)]
        self.targets = [torch.randint(CLASSES, (size, LENGTH)) for _ in range(2)]
        if loop.zero != "after":
            self.optimizer.zero_grad(set_to_none=loop.zero == "before")
        # If a backward pass is to be repeated, the graphs must keep what they have saved.
        with torch._functorch.config.patch(donated_buffer=loop.passes not in ("twice_backward", "gradient_of_input")):
            PASSES[loop.passes](self)
        for index, parameter in enumerate(self.trained):
            self.note(f"gradient {index}", parameter.grad)
        if loop.clip:
            torch.nn.utils.clip_grad_norm_(self.trained, 0.5)
        self.optimizer.step()
        if loop.zero == "after":
            self.optimizer.zero_grad()
        if loop.evaluation and number == 1:
            self._evaluate()
        self._note_state()

    def own_peak(self):
        """Returns the peak in bytes, as torch's profiler sees it, of what one more forward and backward pass allocate.
        Gradients that are left at the end do not count."""
        self.optimizer.zero_grad()
        gc.collect()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiler:
            PASSES[self.loop.passes](self)
            gradients = {p.grad.untyped_storage().data_ptr() for p in self.trained if p.grad is not None}
        events = sorted(((node.start_time_ns, node.extra_fields.ptr, node.extra_fields.alloc_size)
                         for node in allocations(profiler.profiler.kineto_results.experimental_event_tree())), key=lambda e: e[0])
        last = {address: index for index, (_, address, size) in enumerate(events) if size > 0 and address in gradients}
        live, now, peak = {}, 0, 0
        for index, (_, address, size) in enumerate(events):
            if size > 0 and last.get(address) != index:
                live[address] = size
                now += size
            elif size < 0:
                now -= live.pop(address, 0)
            peak = max(peak, now)
        return peak

    def _evaluate(self):
        modes = {"no_grad": torch.no_grad, "inference": torch.inference_mode, "gradients": torch.enable_grad}
        self.model.eval()
        with modes[self.loop.evaluation]():
            for name, value in zip(("loss", "logits"), self.loss(0)):
                self.note(f"evaluated {name}", value)
        self.model.train()

    def _note_state(self):
        self.note("generator", torch.get_rng_state())
        for name, model in (("", self.model), ("of the second model", self.second_model)):
            for index, value in enumerate(model.parameters()):
                self.note(f"parameter {index} {name}", value)
            for index, value in enumerate(model.buffers()):
                self.note(f"buffer {index} {name}", value)
        for index, value in enumerate(self.kept):
            self.note(f"kept {index}", value)
