"""Compiles a graph with AOTAutograd, and wraps its forward and backward pass in functions that measure and check
them."""

import dataclasses

import torch

import cairn

from .. import _private
from .._errors import InfeasibleError
from .._graph import policies, regions
from .._inputs.read_again import ReadAgain
from .._memory.peak import Measured
from .._memory.together import Alive, held_by_graphs_of
from .._offload.copies import is_on_host
from .._plan import solve
from .._plan.partition import limits_of, partition, prepare_within, schedule
from .._plan.share import Share, tell_of_least
from .._report import size_text
from .._rewrite.scheduled_module import recomputing_as_in_forward, rewrite_module
from .._rewrite.tangents import Tangents
from .._several.points import Part


class OtherRegions(Exception):
    """Raised if a graph must be compiled once more, with other plans of its regions. ``plans``: a RegionPlans."""

    def __init__(self, plans):
        super().__init__("the regions of the graph must be planned in another way")
        self.plans = plans


@dataclasses.dataclass(frozen=True)
class RegionPlans:
    """Says how the regions (torch.compiler.nested_compile_region) of a graph are planned."""

    least: bool = False  # for the least memory, not only within the graph's budget
    # Whether operations that read an argument of a region run once, because the argument may be an input that is written
    # between the passes.
    read_once: bool = False


class Compiling:
    """Holds the state of one graph while AOTAutograd compiles it, and afterwards while it runs."""

    def __init__(self, owner, inputs=(), region_plans=RegionPlans()):
        self.owner = owner
        self.inputs = inputs  # the inputs for which the graph is compiled
        self.region_plans, self.has_regions = region_plans, False
        self.report = None
        self.measured = None
        self.share = None  # a share.Share, which turns a budget in percent into bytes; None without a backward pass
        self.alive = None  # a together.Alive, which counts the bytes that other graphs of the step hold
        self.in_step = torch.is_grad_enabled()  # whether the graph runs in a training step, not in an evaluation
        self.written = []  # the inputs that are written after the forward pass (_private.written_inputs)
        self.read_again = None  # a read_again.ReadAgain, which checks the values that recomputation reads
        self.default_dtype = torch.get_default_dtype()
        # Settings that decide which kernels run, such as TF32, when the last forward pass began.
        self.kernels = _private.kernel_settings()
        # Kernel settings under which random numbers are drawn in the right order; None: under all.
        self.right_kernels = None
        self.kernels_behind = self.kernels  # kernel settings when the latest pass (forward or backward) began
        self.autocast_behind = set()  # the values (True, False) that "autocast is active" has had in backward passes
        self.hooks = False  # whether there were saved-tensor hooks when the graph was measured
        updates = owner.options.updates
        self.changes = updates.changes if updates is not None else 0  # Updates.changes when the graph was planned
        self.left = None  # number of parameters in Updates.left when the graph ran first or was to be measured again

    def partition(self, joint, inputs, **given):
        if not inputs:
            return self._partition_region(joint, given["num_fwd_outputs"])
        try:
            return self._partition(joint, **given)
        except InfeasibleError:
            self._try_least_regions()
            raise

    def _add_part(self, prepared, solved):
        """Lets the graph be planned together with other graphs of the step."""
        options = self.owner.options
        part = Part(prepared, self.report, limits_of(options, prepared.trace), options.offload is not None)
        part.runs = part.add(solved.steps, solved.transfers) or part.runs
        self.alive.part = part
        self.owner.watch.compiled(part, self.alive)

    def _try_least_regions(self):
        """Has the graph compiled once more, with its regions planned for the least memory, unless they are already."""
        if self.has_regions and not self.region_plans.least:
            raise OtherRegions(dataclasses.replace(self.region_plans, least=True)) from None

    def _partition(self, joint, *, num_fwd_outputs, static_lifetime_input_indices=None, **_):
        options = self.owner.options
        self.share = Share(self.owner, joint)
        among = self.owner.watch.among(self.share.ends_in_loss, held_by_graphs_of(self.owner),
                                       _private.plans_for_larger(joint.graph))
        forward, backward, prepared, solved, self.report = partition(
            joint, options, name=self.owner.next_name(), num_fwd_outputs=num_fwd_outputs,
            static_indices=static_lifetime_input_indices, largest=self.share.largest, inputs=self.inputs,
            or_least=self.share.or_least, among=among)
        trace = prepared.trace
        self._note_draws(prepared)
        if trace.has_unsafe_regions and not self.region_plans.read_once:
            raise OtherRegions(dataclasses.replace(self.region_plans, read_once=True))
        if solved.unmet is not None:
            self._try_least_regions()
        self.share.planned(self.report, solved.unmet, among)
        self._tell_of_data()
        self._tell_of_names_and_kernels()
        results = _private.outputs(joint.graph)[:num_fwd_outputs]
        self.written = _private.written_inputs(joint.graph, num_fwd_outputs)
        self.alive = Alive(self.owner, self.report, num_fwd_outputs, list(trace.kept_results(results)),
                           Tangents(joint, num_fwd_outputs, self.owner, self.report), self.written)
        if among is not None:
            self._add_part(prepared, solved)
        self.read_again = ReadAgain(self.owner, self.report, self.alive, num_fwd_outputs, lambda: self.kernels, forward)
        self.owner.report.graphs.append(self.report)
        if options.measure:
            self.measured = Measured(trace, self.report, num_fwd_outputs, joint, self.alive.is_free)
        else:
            self.report.not_measured = "is not measured (measure=False)"
        return forward, backward

    def _partition_region(self, joint, num_fwd_outputs):
        """Plans a region, i.e. a subgraph that the graph calls (torch.compiler.nested_compile_region). In the plan of
        the graph, the call of the region is one operation. The operations inside of the region are planned with the
        graph's budget or, if the graph then cannot meet it, for the least memory. The region's memory is measured together
        with that of the graph."""
        self.has_regions = True
        # In a region, layouts of arguments are unknown, so random operations do not run again (random="replay").
        options = dataclasses.replace(self.owner.options, offload=None, replay=False)
        if self.region_plans.least:
            options = dataclasses.replace(options, budget="min")
        forward, backward, prepared, solved, report = partition(
            joint, options, name="region", num_fwd_outputs=num_fwd_outputs, static_indices=(), or_least=lambda baseline: True,
            all_shared=self.region_plans.read_once)
        names, _ = prepared.trace.read_again(solved.steps)
        regions.mark(backward, names, report.recomputes)
        return forward, backward

    def forward(self, module, inputs):
        _private.hide_writes()
        _private.donate_nothing()
        return self.run_forward(_private.boxed(module), module)

    def backward(self, module, inputs):
        run = recomputing_as_in_forward(module, _private.boxed(module), self.default_dtype)
        return self.run_backward(run, module)

    def called(self, compiled):
        return compiled if self.alive is None else self.alive.called(compiled)

    def written_among(self, args):
        """Returns the arguments that are written when the graph's forward pass has ended."""
        found = (_private.argument_of(description, args) for _, description in self.written)
        return [value for value in found if isinstance(value, torch.Tensor)]

    def run_forward(self, run, module):
        self.alive.on_host = [i for i, node in enumerate(_private.outputs(module.graph)) if is_on_host(node)]
        run = self.alive.forward(self.measured.forward(run, module) if self.measured is not None else run)
        run = self.read_again.forward(run, module)
        copied = copied_as_a_whole(module)

        def call(args):
            self.owner.ran.add(self.report.name)
            self._note_kernels()
            self._note_storages(args, copied)
            self._note_readers(args, has_backward=True)
            return run(args)

        return _private.called_boxed(call)

    def run_backward(self, run, module):
        run = self.alive.backward(self.measured.backward(run, module) if self.measured is not None else run, module)
        run = self.read_again.backward(run, module)

        def call(args):
            self._note_kernels_behind()
            self.share.backward_begins()
            if _private.keeps_graph():
                self.report.retained = True
                self.owner.tell(
                    f"{self.report.name}: backward(retain_graph=True), or create_graph=True, leaves what was saved between forward "
                    "and backward, which the promise takes to be freed as it is read: this step's peak is not measured")
            else:
                _private.free_unchecked()
            if torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled():
                self.report.checked_for_nan = True
                self.owner.tell(
                    f"{self.report.name}: torch.autograd.set_detect_anomaly(True) looks for NaN in each gradient when the graph's "
                    "backward pass has ended, which takes a byte per element beside what is promised")
            return run(args)

        return _private.called_boxed(call)

    def _note_draws(self, prepared):
        if prepared.draws_by_layout:
            self.right_kernels = _private.kernel_settings()

    def _tell_of_data(self):
        """Warns if a size depends on the data, and may therefore be larger than the size for which the graph is
        planned."""
        operations = self.report.sized_by_data
        if operations:
            self.owner.tell(
                f"{self.report.name}: the data decide a size that may exceed the plan ({operations[0]}): it has no upper bound, and the "
                f"plan is for {_private.DATA_SIZE}, or it grows as another size falls. A step then takes more than promised; "
                "torch._check(size <= most) gives a bound")

    def _tell_of_names_and_kernels(self):
        """Warns if a name in never_recompute= matches no operation, or if Inductor could not compile some kernels."""
        if self.report.unnamed:
            self.owner.tell(f"{self.report.name}: never_recompute={self.report.unnamed[0]!r} names no operator and no module of it")
        failed = self.report.not_fused
        if failed:
            self.owner.tell(
                f"{self.report.name}: Inductor could not compile {len(failed)} kernels, so torch's kernels run their operations one by "
                f"one: {failed[0]}")

    def _note_kernels(self):
        """Measures the graph again if settings of kernels have changed, if saved-tensor hooks have been added or removed,
        or if the optimizer's step now updates parameters that were to be updated in the backward pass. When settings
        change, torch.compile compiles again only for some of them. For all others the plan stays the same, although
        kernels may need more memory than before. Hooks may need memory that no plan contains."""
        if self.right_kernels not in (None, _private.kernel_settings()):
            raise cairn.InputError(
                f"{self.report.name}: kernel settings (threads, default dtype, mkldnn, precision, determinism) differ from those when this was planned; "
                "kernels may lay out values in another way, and random='replay' would draw other numbers: "
                "torch._dynamo.reset() has it planned anew, and random='keep' works under all settings")
        now, hooks = _private.kernel_settings(), _private.saves_by_hooks()
        turned = now != self.kernels
        if (turned or hooks != self.hooks) and self.measured is not None:
            self.measured.measure_again()
        self.hooks = hooks
        if turned:
            self.kernels = self.kernels_behind = now
            self._tell_of_kernels()
        updates = self.owner.options.updates
        if self.report.updated and self.left != len(updates.left):
            if self.left is not None and self.measured is not None:
                self.measured.measure_again(why="the optimizer's step updates parameters that the plan was to update")
            self.left = len(updates.left)
        if self.report.updated and updates.changes != self.changes:
            self.changes = updates.changes
            if self.measured is not None:
                self.measured.measure_again(passing_over=1)
            self.owner.tell(
                f"{self.report.name}: settings of the optimizer (weight decay, momentum, ...) differ from those when this was "
                "planned: updates may take more than was measured then; torch._dynamo.reset() has it planned anew")

    def _note_readers(self, args, has_backward):
        if self.owner.options.updates is not None:
            self.owner.options.updates.note_run(args, has_backward)

    def _note_storages(self, args, copied):
        """Measures the graph again if an input is a part of a larger tensor than when the graph was planned, and an
        operation copies the whole tensor. ``copied``: see copied_as_a_whole()."""
        for i, known in copied.items():
            size = args[i].untyped_storage().nbytes() if _private.is_plain(args[i]) else 0
            if size > known:
                copied[i] = size
                if self.measured is not None:
                    self.measured.measure_again()
                self.owner.tell(
                    f"{self.report.name}: an input is a part of a tensor of {size_text(size)}, which an operation copies as a "
                    f"whole; {size_text(known)} of it were planned: a step takes more than promised; clone() the input")

    def _note_kernels_behind(self):
        """Measures the next step again if settings of kernels, or autocast, changed between the forward and the
        backward pass."""
        now, autocast = _private.kernel_settings(), _private.autocasts()
        is_new = self.autocast_behind and autocast not in self.autocast_behind
        if (now != self.kernels_behind or is_new) and self.measured is not None:
            self.measured.measure_again()
        self.autocast_behind.add(autocast)
        if now != self.kernels_behind:
            self.kernels_behind = now
            self._tell_of_kernels()

    def _tell_of_kernels(self):
        self.owner.tell(
            f"{self.report.name}: kernel settings (threads, default dtype, mkldnn, precision, determinism) differ from those when this was "
            "planned: kernels may take more than was measured then; torch._dynamo.reset() has it planned anew")

    def inference(self, module, inputs):
        name = self.owner.next_name()
        options = self.owner.options
        self.written = _private.written_inputs(module.graph)
        _private.hide_writes()
        # A name that matches nothing here may be the name of an operation of a training graph, so this is not told.
        policies.never_recompute(module.graph, options.never_recompute)
        among = self.owner.watch.among_alone(held_by_graphs_of(self.owner))
        # while other graphs are held or planned, the graph may be a part of a step, whose plan must know its dropouts
        in_step = among is not None and (among.held or among.goal is not None)
        prepared = prepare_within(module.graph, options, name=name, largest=self.owner.report.baseline, always_rewrite=in_step)
        trace = prepared.trace
        self._note_draws(prepared)
        is_planned = among is not None and among.planned(prepared) is not None
        solved, report = schedule(prepared, options, or_least=solve.is_share(options.budget), among=among if is_planned else None)
        if solved.unmet is not None:
            tell_of_least(self.owner, report, "it has no backward pass")
        self.owner.report.graphs.append(report)
        self.report = report
        self._tell_of_data()
        self._tell_of_names_and_kernels()
        run = _private.boxed(rewrite_module(module, trace, solved.steps, solved.transfers))
        if options.measure:
            self.measured = Measured(trace, report, None, module)
            run = self.measured.alone(run)
        else:
            report.not_measured = "is not measured (measure=False)"
        self.alive = Alive(self.owner, report)
        if among is not None:
            self._add_part(prepared, solved)
        run = self.alive.alone(run, self.in_step)
        copied = copied_as_a_whole(module)

        def call(args):
            self._note_kernels()
            self._note_storages(args, copied)
            self._note_readers(args, has_backward=False)
            return run(args)

        return _private.called_boxed(call)


# AOTAutograd replaces a write into a part of an input by one of these operations. They copy the whole storage of the
# input, not only the part.
_COPIES_STORAGE = {torch.ops.aten.slice_scatter.default, torch.ops.aten.select_scatter.default,
                   torch.ops.aten.diagonal_scatter.default, torch.ops.aten.as_strided_scatter.default}


def copied_as_a_whole(module):
    """Returns a dict with the inputs whose whole storage is copied by an operation: index of the input -> bytes of its
    storage when the graph was planned."""
    return {i: _private.hint(node.meta["val"].untyped_storage().nbytes())
            for i, node in enumerate(module.graph.find_nodes(op="placeholder"))
            if isinstance(node.meta.get("val"), torch.Tensor) and any(
                user.target in _COPIES_STORAGE and user.args[0] is node for user in node.users)}
