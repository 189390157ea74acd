"""Counts the memory that graphs hold while other graphs run. Unless graphs are planned together, a budget limits each
graph alone, although the memory of several graphs adds up.

Each run of a graph's forward pass holds its results and the values saved for its backward pass, until the backward pass
has ended or can no longer come. Only weak references to storages are stored. So memory that autograd or the caller has
freed does not count, and memory that two graphs share counts once. An input counts if it is a result of another graph.
An *Edge* (_private/autograd.py) is an edge of autograd's graph, along which a gradient is passed. A *Watch*
(_several/watch.py) observes which graphs run in a step, and then lets them be planned together.
"""

import collections
import contextlib
import functools
import threading
import weakref

import torch

from .. import _private
from .._report import Together, size_text
from .._rewrite.scheduled_module import input_names
from .._rewrite.tangents import WORTH_TELLING
from .events import bytes_beyond
from .sums import Sums

# Largest number of backward passes in _sums and _around. Several threads can each run one at once, and a reentrant
# checkpoint runs one within another.
_PASSES = 128

_lock = threading.RLock()  # reentrant, because a signal handler can run a graph while its thread holds the lock
# The Runs whose backward pass may still come. Autograd's node for this backward pass holds the only strong reference to
# a Run.
_open = weakref.WeakSet()
_loose = {}  # storage -> (weak reference, bytes): results of graphs without a backward pass, also some that are freed
_FEW_LOOSE = 64
_loose_at_most = _FEW_LOOSE  # number of entries of _loose from which on those of freed storages are dropped
# Alive -> the storages of _loose that the graph made in the present step with gradients enabled, or while others held
# memory for their backward passes. The caller may hold them until the step ends. Results of an evaluation
# (torch.no_grad) are left out: if the caller keeps them, they are resident. While nothing is held, the same is true of
# all runs but the latest if the graph has not run in the steps before (_FEW_STEPS).
_of_step = weakref.WeakKeyDictionary()
_steps = 0  # number of steps that have ended
# A graph without a backward pass that ran in one of this number of steps before is taken for a part of each step. Steps
# of a GAN, for example, are different in turn.
_FEW_STEPS = 4
_NO_BACKWARD = ", which has no backward pass"  # what reports say about the pass of such a graph
# Storage -> (weak reference, bytes, number of the backward pass of autograd): gradients that one graph passes to
# another, and results of graphs whose own backward pass has ended.
_passing = {}
# Storage -> (weak reference, bytes, number of the backward pass of autograd, weak reference to an Alive): what a
# checkpoint holds of the runs that it has repeated within this backward pass. The Alive is the graph of such a run.
_repeated = {}
# Arguments for _note_left_behind(). A finalizer adds them, which can run at any time, also while another function of
# this module iterates over a dict.
_left = collections.deque()
_sums = {}  # backward pass -> its Sums
# backward pass -> the backward pass within which it runs, for example because a hook began it
_around = {}
_running = {}  # thread -> the Alive (graph) whose pass runs in this thread
_local = threading.local()  # its attribute ``made`` is the Run of this thread's latest forward pass


class Run:
    """One run of a graph's forward pass. ``storages`` maps each storage that the run leaves in memory to (weak
    reference, bytes)."""

    def __init__(self, graph, tensors, flowing):
        self.graph = graph
        self.tensors = tensors  # indices of the inputs that are tensors
        # indices of the inputs whose gradients are passed on to the code that computed these inputs
        self.flowing = flowing
        self.storages = {}
        # a dict like ``storages``, for results of other graphs: those that are inputs, and those that a graph without a
        # backward pass made in the same step
        self.given_results = {}
        self.written = set()  # storages of the inputs that the graph has written
        # id of an input tensor -> number of times that autograd holds this tensor, because the graph saves it
        self.saved_inputs = collections.Counter()
        self.copies = {}  # a dict like ``storages``, for copies on the host
        # a result of Tangents.shapes(): properties of the gradients that the caller is expected to give
        self.shapes = {}
        self.unchanged = None  # a read_again.Unchanged: what the backward pass must find unchanged
        # whether DistributedDataParallel will copy new gradients into its buckets
        self.copied = _private.gradients_are_copied()
        self.own_results = {}  # a dict like ``storages``, for the results that the caller holds
        # storage of a result that only the caller holds, as the run does not save it -> number of the result among the
        # results that the caller holds
        self.results = {}
        # (weak reference to another Run, number of one of its results, index of this graph's input that is this result)
        self.reads = []
        self.given = {}  # storage -> (weak reference, bytes), for gradients that the caller gives to the backward pass
        self.to_write = ()  # results that AOTAutograd will copy into inputs after the forward pass
        # the edges along which autograd passes zeros because of the writes in ``to_write``: a result of
        # edges_of_writes()
        self.zeros = ()
        # a dict like ``storages``, for what may stay in memory if autograd frees the run without a backward pass
        self.left_behind = {}
        self.pass_number = None  # number of the forward pass among all passes that the Watch has recorded
        self.made_within = _private.graph_task()  # number of the backward pass within which the forward pass runs, or -1

    def own_storages(self):
        """Returns the entries of ``storages`` without results of other graphs."""
        return {key: self.storages[key] for key in self.storages.keys() - self.given_results.keys()}

    @property
    def freed(self):
        """Returns the storages of results that have been freed, because nobody holds a reference to them any more."""
        return [key for key in self.results if self.storages[key][0].expired()]


class Alive:
    """One compiled graph of a backend. While the graph runs, counts the memory that other graphs of this process
    hold."""

    def __init__(self, owner, report, forward_outputs=0, kept_results=(), tangents=None, written=()):
        self.owner, self.report, self.tangents = owner, report, tangents
        self.forward_outputs, self.kept_results, self.written = forward_outputs, kept_results, written
        self.ddp = _private.splits_for_ddp()
        self.number = _private.compiling()[0]
        self.on_host = ()  # indices of results of the forward pass that are copies on the host
        self.latest_step = None  # number of the step in which the graph, which has no backward pass, ran last
        self.recurs = False  # whether the graph ran in one of the _FEW_STEPS steps before that
        self.part = None  # a points.Part, if the graph may be planned together with other graphs of the step
        # The Watch is stored here, because torch._dynamo.reset() gives the owner a new Watch, and this graph stays with
        # the old one.
        self.watch = owner.watch

    # --- Wrappers of a graph's passes. They count memory whenever the forward or the backward pass runs.

    def forward(self, run):
        """Wraps the forward pass of a graph that also has a backward pass. When the forward pass runs, the memory that
        other graphs hold is counted."""
        def call(args):
            if not _are_real(args):
                return run(args)
            inputs = storages_of(args)
            tensors = [i for i, t in enumerate(args) if isinstance(t, torch.Tensor)]
            made = Run(self, tensors, [i for i in tensors if args[i].requires_grad and not args[i].is_leaf])
            given = {id(args[i]) for i in tensors}
            if self._continues(args, made.flowing):
                self.owner.continues = self.owner.report.outside = True
            held, runs, given_results = self._begin(inputs, made)
            freed = self._freed_results()
            made.reads = _reads(args, runs) if self.watch.enabled else []
            self._count_copies(made)
            with self._while_running():
                result = run(args)
            on_device = _weak(value for i, value in enumerate(result) if i not in self.on_host)
            made.given_results = given_results
            made.storages = {**given_results, **{key: entry for key, entry in on_device.items() if key not in inputs}}
            made.copies = _weak(result[i] for i in self.on_host)
            saved = storages_of(result[self.forward_outputs:])
            if not _private.saves_by_hooks():  # hooks may keep something else
                made.saved_inputs.update(id(value) for value in result[self.forward_outputs:] if id(value) in given)
            made.shapes = self.tangents.shapes(result)
            for number, i in enumerate(self.kept_results):
                for key in storages_of([result[i]]) & made.storages.keys():
                    made.own_results[key] = made.storages[key]
                    if key not in saved:
                        made.results.setdefault(key, number)
            made.to_write = [result[i] for i, _ in self.written]
            _local.made = made
            self._seen(held, runs)
            self._watched(made, held, freed)
            return result

        return call

    def alone(self, run, in_step):
        """Wraps a graph that has no backward pass. When the graph runs, the memory that other graphs hold is counted.
        ``in_step``: whether the graph runs with gradients enabled, i.e. in a training step. It also belongs to a step
        if others hold memory for their backward passes."""
        def call(args):
            if not _are_real(args):
                return run(args)
            inputs = storages_of(args)
            with _lock:
                if not self._is_part_of_steps() and not _open:
                    _of_step.pop(self, None)
            held, runs, _ = self._begin(inputs, None)
            freed = self._freed_results()
            with self._while_running():
                result = run(args)
            with _lock:
                _drop_expired_loose()
                made = {key: entry for key, entry in _weak(result).items() if key not in inputs}
                _loose.update(made)
                for keys in list(_of_step.values()):  # a new storage can have the address of one that was freed
                    keys.difference_update(made)
                if in_step or runs:
                    _of_step.setdefault(self, set()).update(made)
            self._seen(held, runs, note=_NO_BACKWARD)
            with _lock:
                open_runs = list(_open)
            self.watch.ran_alone(self, held, open_runs, freed)
            return result

        return call

    def _is_part_of_steps(self):
        if self.latest_step != _steps:
            self.recurs = self.latest_step is not None and _steps - self.latest_step <= _FEW_STEPS
            self.latest_step = _steps
        return self.recurs

    def backward(self, run, module):
        names = input_names(module)
        tangents = [i for i, n in enumerate(module.graph.find_nodes(op="placeholder")) if _private.is_tangent(n)]
        primals = [i for i, name in enumerate(names) if name.startswith("primals")]  # saved inputs
        computed = [i for i in range(len(names)) if i not in tangents and i not in primals]
        without = {i for i, node in enumerate(_private.outputs(module.graph)) if node is None}

        def call(args):
            mine = self.beginning()
            if mine is not None:
                mine.left_behind.clear()
            if mine is not None and not _private.keeps_graph():
                mine.saved_inputs.clear()
            flowing = mine.flowing if mine is not None else ()
            self.tangents.complete(args, names, mine.shapes if mine is not None else {})
            gradients = [args[i] for i in tangents]
            given = _weak(gradients)
            saved = storages_of(args[i] for i in computed) - storages_of(args[i] for i in primals)
            held, runs, _ = self._begin(given, mine, self._beside(gradients, given, mine), saved)
            del gradients
            edges = [e for e in _private.edges_of_node() if _position_of(e, mine) not in without]
            held += self._begin_gradients(mine, edges)
            # Bytes of this run's results that have been freed. They are subtracted, because the promised peak of the
            # backward pass includes all results of the run until the pass has ended.
            let_go = sum(mine.storages[key][1] for key in mine.freed) if mine is not None else 0
            freed = self._freed_results()
            with self._while_running():
                result = run(args)
            if mine is not None and not _private.keeps_graph():
                with _lock:
                    _open.discard(mine)
            if not _open:
                step_ended()
            task = _private.graph_task()
            passing = {**given, **_weak(result[i] for i in flowing if i < len(result))}
            if mine is not None:
                passing.update(mine.own_results)
            with _lock:
                _passing.update((key, (*entry, task)) for key, entry in passing.items())
            at_end = self._end_gradients(edges, _gradients_of(edges, result, mine), passing)
            with _lock:
                if not _open:
                    _sums.clear()
            self._seen(held, runs, backward=True, let_go=let_go, at_end=at_end)
            self._tell_of_broken()
            # ``at_end`` does not include the results that have been freed, which the plan subtracts from each peak
            self._watched(mine, held - let_go, freed, backward=True, at_end=at_end + let_go if at_end else 0)
            return result

        return call

    def latest(self):
        """Returns the Run of the forward pass that has just ended; None if that pass belongs to another graph."""
        made = getattr(_local, "made", None)
        return made if made is not None and made.graph is self else None

    def beginning(self):
        """Returns the Run whose backward pass runs in this thread. Returns None if this Run is unknown, for example
        under compiled autograd."""
        begins = _private.metadata_of_node().get("cairn")
        return begins if begins is not None and begins.graph is self else None

    def called(self, compiled):
        """Wraps the compiled graph in a function of the graph's inputs. The function attaches the Run of each call to
        autograd's node for the backward pass, so that the Run exists until autograd frees this node."""
        def call(*args):
            # A hook that gets the values that another graph saves may call this graph.
            outer, _local.made = getattr(_local, "made", None), None
            before = _private.nodes_made()
            holders = {id(value): _private.holders(value) for value in args if isinstance(value, torch.Tensor)}
            try:
                result = compiled(*args)
            except Exception as error:
                if _local.made is not None and _private.saves_by_hooks():
                    raise self._saving_failed(error, args)
                raise
            finally:
                made, _local.made = _local.made, outer
            if made is None:
                return result
            made.to_write = ()
            for value in args:  # autograd may hold a saved input in another way than by a reference to the tensor
                if id(value) in made.saved_inputs:
                    added = max(0, _private.holders(value) - holders[id(value)])
                    made.saved_inputs[id(value)] = min(made.saved_inputs[id(value)], added)
            written = [_private.input_of(description, args) for _, description in self.written]
            made.zeros, made.written = _private.edges_of_writes(written), storages_of(written)
            node = _private.backward_node((*result, *args), before, self.number)
            if node is not None:
                node.metadata["cairn"] = made
                made.left_behind.update(made.own_storages())
                weakref.finalize(made, _left.append, (made.left_behind, weakref.ref(self), _private.graph_task())).atexit = False
                # Compiled autograd supports neither hooks that run before a node (prehooks) nor missing gradients.
                if not _private.autograd_is_compiled():
                    if self.tangents.worth_noting:
                        node.register_prehook(_private.left_alone(functools.partial(_note_given, weakref.ref(made))))
                    self.tangents.may_be_missing(node)
                with _lock:
                    _open.add(made)
            return result

        return call

    def _saving_failed(self, error, args):
        """Handles an error that a saved-tensor hook has raised. Checkpoints raise such an error to end a recomputation
        early. The forward pass has already run, but AOTAutograd has not yet written the graph's results into inputs, so
        this method writes them."""
        made, _local.made = _local.made, None
        _left.append((made.own_storages(), weakref.ref(self), _private.graph_task()))
        for value, (_, description) in zip(made.to_write, self.written):
            target = _private.input_of(description, args)
            if isinstance(target, torch.Tensor):
                with torch.no_grad():
                    target.copy_(value)
        error.is_of_caller = True
        return error

    def _continues(self, args, flowing):
        """Returns whether an input was computed by differentiable code outside of the compiled graphs."""
        with _lock:
            # Results of graphs without a backward pass are left out, unless a graph with a backward pass has written
            # into them: they are differentiated only if code outside of the graphs made them differentiable, such as a
            # torch.autograd.Function that calls the graph.
            known = {key for run in list(_open) for key in run.storages.keys() - (run.given_results.keys() - run.written)}
            known.update(_passing)
        return not storages_of(args[i] for i in flowing) <= known | self.owner.given

    @contextlib.contextmanager
    def _while_running(self):
        """Marks a pass as running. If passes run in other threads at the same time, gives a warning, because the memory
        of the passes adds up, and the promised peaks do not include this sum."""
        thread = threading.get_ident()
        with _lock:
            before = _running.get(thread)
            others = [alive for other, alive in _running.items() if other != thread]
            _running[thread] = self
            is_known = self.owner.report.overlapping
            for alive in (self, *others) if others else ():
                alive.owner.report.overlapping = True
        try:
            if others and not is_known:
                self.owner.tell(
                    f"{self.report.name} runs while another thread runs {others[0].report.name}: a promise is for one pass "
                    "at a time, and the memory of passes that run at the same time adds up")
            yield
        finally:
            with _lock:
                if before is None:
                    del _running[thread]
                else:
                    _running[thread] = before

    # --- Counting what is in memory while a pass runs

    def _begin(self, given, mine, beside=None, saved=frozenset()):
        """Counts the memory that other graphs hold when a pass of this graph begins. ``given``: storages of the forward
        pass's arguments, or of the given gradients. ``mine``: the Run to which the pass belongs, or None. Returns
        (bytes, Runs of the other graphs, a dict like Run.given_results). The other arguments are only for a backward
        pass. ``beside``: a result of _beside(). ``saved``: storages of the saved values that are no inputs."""
        held, runs, backward = dict(beside or {}), [], beside is not None
        # An argument counts for its reader, too, because the graph that made it can be freed earlier: in ``a =
        # g(h.detach()); del h``, autograd may still hold h for g.
        of_runs = {}
        with _lock:
            tasks = _tasks(mine)
            _note_left_behind()
            for run in list(_open):
                if run is not mine:
                    alive = _in_memory(run.storages)
                    if alive:
                        runs.append(run)
                        held.update(alive)
                        if not backward:
                            of_runs.update((key, run.storages[key]) for key in alive.keys() & given)
            _drop_expired(_passing)
            _drop_expired(_repeated)
            of_task = {key: entry for key, entry in _repeated.items() if entry[2] in tasks}
            held.update((key, entry[1]) for key, entry in of_task.items())
            held.update((key, size) for key, (_, size, of) in _passing.items() if of in tasks)
            keys = set(given).union(*list(_of_step.values()))
            loose = {key: _loose[key] for key in keys if key in _loose and not _loose[key][0].expired()}
        held.update({key: size for key, (_, size) in loose.items()})
        own = set(given) | {key for key in saved & of_task.keys() if of_task[key][3]() is self} if backward else set()
        if mine is not None:  # the graph's promised peak includes the values that it saves, but not its inputs
            own.update(mine.own_storages())
            held.update(_in_memory(mine.given_results))
        if runs and not backward and sum(held.values()) >= WORTH_TELLING:
            self._tell_of_second(runs, sum(held.values()))
        return sum(size for key, size in held.items() if key not in own), runs, {**of_runs, **loose}

    def _count_copies(self, mine):
        """Counts the bytes of all copies on the host: those of Runs whose backward pass may still come, and those of
        the run that begins (``mine``). Warns if the sum exceeds the host budget, which limits each graph alone."""
        with _lock:
            runs = [run for run in list(_open) if run is not mine and run.copies]
            held = sum(sum(_in_memory(run.copies).values()) for run in runs)
        if not held or not self.report.host_peak:
            return
        whole, together = self._whole(runs), held + self.report.host_peak
        with _lock:
            whole.host_peak = max(whole.host_peak, together)
        offload = self.owner.options.offload
        if offload is not None and offload.host_budget is not None and together > offload.host_budget:
            self._tell(whole, "host", f"host_budget holds for each graph, and graphs that are alive at once add up to at least "
                                      f"{size_text(together)} on the host, which is above {size_text(offload.host_budget)}")

    def _beside(self, gradients, given, mine):
        """Returns the memory of gradients that the caller gives and holds, as far as no plan contains it: a dict from
        storage to bytes. There are two kinds of such memory. AOTAutograd copies gradients with an unexpected layout, so
        the originals take memory in addition. A gradient that is a part of a larger tensor keeps the whole tensor in
        memory."""
        beside = {key: size for key, (_, size) in mine.given.items() if key not in given} if mine is not None else {}
        beside[None] = bytes_beyond(gradients)
        size = sum(beside.values())
        if size < WORTH_TELLING:
            return {}
        self.owner.tell(
            f"{self.report.name}: gradients of results are laid out in another way than the results, so that they are copied, or "
            f"are parts of larger tensors: {size_text(size)} beside {size_text(self.report.promised)} as promised")
        return beside

    def _begin_gradients(self, mine, edges):
        """Returns the bytes of gradients that are in memory while the pass runs, in addition to the given gradients of
        results and to the resident gradients of parameters. ``edges``: the Edges along which the pass will pass on
        gradients. Three kinds are counted: gradients of parameters that autograd has received from other Runs and still
        has to add up, sums of gradients of results, and zeros for results that a graph has written into. If gradients
        are copied into buckets (DistributedDataParallel), all new gradients of parameters count as well."""
        leaves = [edge for edge in edges if edge.leaf is not None]
        self._tell_of_accumulated(sum(edge.size for edge in leaves if edge.leaf.grad is not None and _private.accumulates(edge.leaf)))
        self._tell_of_replaced(sum(edge.size for edge in leaves if _private.may_be_replaced(edge.leaf)))
        with _lock:
            sums = _sums.setdefault(_private.graph_task(), Sums())
            while len(_sums) > _PASSES:
                del _sums[next(iter(_sums))]
            held, waiting = sums.begin(_private.name_of_node(), leaves, mine.zeros if mine is not None else ())
            held += sum(_sums[around].size for around in _tasks(mine)[1:] if around in _sums)
        is_copied = mine is not None and mine.copied and not self.owner.options.accumulate
        return held + sum(edge.size for edge in (leaves if is_copied else waiting))

    def _end_gradients(self, edges, gradients, passing):
        """Counts memory at the end of a pass, when autograd adds the pass's gradients to gradients of earlier passes.
        If an addition is out of place, returns the bytes that are in memory because of this pass and the addition; else
        0. ``gradients``: a result of _gradients_of(). ``passing``: the storages that the pass leaves in memory, as in
        _passing."""
        with _lock:
            sums = _sums.get(_private.graph_task())
            largest = sums.end(edges, gradients) if sums is not None else 0
        if not largest:
            return 0
        added = sum(edge.size for edge in edges if edge.leaf is not None) if self.owner.options.accumulate else 0
        return largest + added + sum(_in_memory(passing).values())

    def _tell_of_accumulated(self, size):
        """Warns that torch allocates new gradients while the existing ones are in memory."""
        if size and not self.owner.options.accumulate:
            self.owner.tell(
                f"{self.report.name}: gradients are added to those of earlier steps, and torch makes up to {size_text(size)} of "
                f"new ones beside them, which {size_text(self.report.promised)} as promised does not count; "
                "backend(..., accumulate=True) does")

    def _tell_of_replaced(self, size):
        """Warns that the graph's gradients stay in memory until the pass has ended, although autograd replaces them by
        other tensors."""
        if size >= WORTH_TELLING and not self.owner.options.accumulate:
            self.owner.tell(
                f"{self.report.name}: grad_dtype, or hooks if they return a gradient, replace gradients of parameters: up to "
                f"{size_text(size)} of replaced ones stay beside the new, which {size_text(self.report.promised)} as promised does not count; "
                "backend(..., accumulate=True) does")

    def _seen(self, held, runs, backward=False, let_go=0, at_end=0, note=""):
        """Records that a pass has run while other graphs held ``held`` bytes. ``let_go``: bytes of results that have
        been freed, although the promised peak of the pass includes them. ``at_end``: a result of _end_gradients().
        ``note``: what the report says about the pass after its name."""
        report = self.report
        if not held and not report.of_step:
            return
        promised = report.promised_backward if backward else report.promised_forward
        measured = report.measured_backward if backward else report.measured_forward
        if measured is None and report.measured is not None:
            measured = min(report.measured, promised)
        whole = self._whole(runs)
        with _lock:
            name = f"the {'backward' if backward else 'forward'} pass of {report.name}{note}"
            whole.add(held + promised - let_go, held + measured - let_go if measured is not None else None, name)
            if at_end:
                whole.add(held + at_end, held + at_end, f"autograd's sum of gradients after {name}")
        budget = self.watch.budget_of(report)
        if (backward or not runs) and budget is not None and whole.promised > budget:
            held = "" if self.watch.plan else "budgets hold for each graph, and "
            self._tell(whole, "sum", f"{held}graphs that are alive at once add up to {size_text(whole.promised)}, which is above the "
                                     f"budget of {size_text(budget)}{self.watch.outlook()}")

    def _tell_of_broken(self):
        """Warns if the graphs of a step together took more memory than was promised for them together, even if no
        single graph took more than promised. Does nothing before the end of the step, i.e. while a Run still has a
        backward pass to come, because a later pass of the step can raise the promise."""
        whole = self.owner.report.together
        if whole is not None and whole.broken and not _open:
            self._tell(whole, "broken", f"graphs that are alive at once: promised a peak of {size_text(whole.promised)}, measured "
                                        f"{size_text(whole.measured)} in {whole.measured_at} "
                                        f"({whole.measured - whole.promised} bytes more)")

    def _freed_results(self):
        """Returns a dict from each Run whose backward pass may still come to the numbers of its freed results. Runs
        without freed results are left out. The dict is empty if the Watch is not enabled, because only the Watch needs
        these numbers."""
        if not self.watch.enabled:
            return {}
        with _lock:
            found = {run: [run.results[key] for key in run.freed] for run in list(_open)}
        return {run: numbers for run, numbers in found.items() if numbers}

    def _watched(self, run, held, freed, backward=False, at_end=0):
        with _lock:
            open_runs = list(_open)
        self.watch.ran(self, run, backward, held, open_runs, freed, at_end)

    def is_free(self):
        """Returns whether no backward pass of an earlier run of this graph is still to come."""
        with _lock:
            return all(run.graph is not self for run in list(_open))

    def _whole(self, runs):
        with _lock:
            return Together.of([self.owner.report, *(run.graph.owner.report for run in runs)])

    def _tell(self, whole, reason, text):
        """Gives a warning unless the same ``reason`` was told before for this group of graphs. ``whole``: the Together
        of the graphs that hold memory at the same time."""
        if reason not in whole.told:
            whole.told.add(reason)
            self.owner.tell(text)

    def _tell_of_second(self, runs, held):
        of_this = all(run.graph.owner is self.owner for run in runs)
        if self.watch.plan is not None and of_this:
            return
        if self.watch.enabled and of_this:
            one = ("torch._dynamo.config.optimize_ddp = False keeps the model whole" if self.ddp else
                   "TORCH_LOGS=graph_breaks names what breaks a model into graphs")
            text = (f"{self.report.name} runs while {size_text(held)} of other graphs, or of earlier runs, are held for their backward "
                    f"passes: when these have run, Cairn tries to plan the graphs of the step together within one budget; {one}")
        elif all(run.graph is self for run in runs):
            text = (f"{self.report.name} runs again while {size_text(held)} of earlier runs are held for their backward "
                    "passes: each run keeps the budget, and together they add up")
        else:
            names = list(dict.fromkeys(
                f"{run.graph.report.name}{'' if run.graph.owner is self.owner else ' of another backend'}" for run in runs))
            one = "DDP splits it at its buckets: torch._dynamo.config.optimize_ddp = False keeps it whole" if self.ddp else (
                "compile the whole model rather than its blocks, and avoid graph breaks (TORCH_LOGS=graph_breaks names them)")
            text = (f"{self.report.name} runs while {', '.join(names[:3])}{', ...' if len(names) > 3 else ''} "
                    f"hold{'s' if len(names) == 1 else ''} {size_text(held)} for the backward pass: each graph keeps the "
                    f"budget, and together they add up. One graph has one budget; {one}")
        self._tell(self._whole(runs), "second", text)


def step_ended():
    """Notes that a step has ended, or failed. What the caller still holds is then resident, for example results that the
    traceback of an error holds."""
    global _steps
    with _lock:
        _steps += 1
        _of_step.clear()


def _tasks(mine):
    """Returns the numbers of the backward pass that runs in this thread, and of those within which it runs. ``mine``: the
    Run whose pass runs now; its backward pass runs within the backward pass in which its forward pass was run, or in
    the same one."""
    task = _private.graph_task()
    if mine is not None and 0 <= mine.made_within < task:
        _around[task] = mine.made_within
        if len(_around) > _PASSES:
            del _around[next(iter(_around))]
    found = []
    while task >= 0 and task not in found:
        found.append(task)
        task = _around.get(task, -1)
    return found


def held_by_graphs_of(owner):
    """Returns the bytes that graphs of this backend hold for backward passes that may still come."""
    with _lock:
        held = {key: size for run in list(_open) if run.graph.owner is owner for key, size in _in_memory(run.storages).items()}
    return sum(held.values())


def _note_left_behind():
    """Treats what is left of runs that autograd has freed without a backward pass, such as ``y`` after ``y =
    f(x).detach()``, like results of graphs without a backward pass. If a run began within a backward pass of autograd, a
    checkpoint has repeated it, and may hold what it saved."""
    while _left:
        storages, graph, task = _left.popleft()
        alive = {key: entry for key, entry in storages.items() if not entry[0].expired()}
        _drop_expired_loose()
        _loose.update(alive)
        if task >= 0:
            _repeated.update((key, (*entry, task, graph)) for key, entry in alive.items())


def saved_by_runs(tensor):
    """Returns the number of references to a tensor that autograd holds because graphs save this input of theirs for
    their backward passes. Tensors that require a gradient are not counted, because autograd holds other tensors of the
    same memory."""
    if tensor.requires_grad or _private.autograd_was_compiled():
        return 0
    with _lock:
        return sum(run.saved_inputs[id(tensor)] for run in list(_open))


def _position_of(edge, run):
    """Returns the position of an Edge's gradient among the results of the backward pass of a Run; None if it is
    unknown."""
    inputs = run.tensors if run is not None else ()
    return inputs[edge.index] if edge.index < len(inputs) else None


def _gradients_of(edges, results, run):
    """Returns the gradient that belongs to each Edge, from ``results``, the results of the backward pass of a Run; None
    where it is unknown."""
    positions = [_position_of(edge, run) for edge in edges]
    found = [results[i] if i is not None and i < len(results) else None for i in positions]
    return [gradient if _private.is_plain(gradient) else None for gradient in found]


def _note_given(made, gradients):
    made().given = _weak(gradients)


def _are_real(values):
    """Returns whether no value is a fake tensor. When DistributedDataParallel splits a graph, each part first runs with
    fake tensors, which must not be counted."""
    return _private.fake_mode_of(values) is None


def storages_of(values):
    """Returns the keys (addresses of storage objects) of the storages of all tensors in ``values``."""
    return {value.untyped_storage()._cdata for value in filter(_private.is_plain, values)}


def _reads(args, runs):
    """Returns the value of Run.reads for a pass with the arguments ``args``. ``runs``: the other Runs that hold
    memory."""
    inputs = {}
    for i, value in enumerate(args):
        if _private.is_plain(value):
            inputs.setdefault(value.untyped_storage()._cdata, []).append(i)
    return [(weakref.ref(run), number, i) for run in runs for key, number in run.results.items()
            if not run.storages[key][0].expired() for i in inputs.get(key, ())]


def _weak(values):
    """Returns a dict from storage to (weak reference, bytes), for all tensors in ``values`` that hold memory."""
    found = {}
    for value in filter(_private.is_plain, values):
        storage = value.untyped_storage()
        if storage._cdata not in found and storage.nbytes():
            size = storage.nbytes()
            size = -(-size // 512) * 512 if value.device.type == "cuda" else size
            found[storage._cdata] = (_private.weak_storage(storage), size)
    return found


def _in_memory(entries):
    """Returns a dict from storage to bytes, for the storages among ``entries`` (from _weak()) that are not freed."""
    return {key: size for key, (reference, size) in entries.items() if not reference.expired()}


def _drop_expired_loose():
    """Drops entries of freed storages from _loose when their number has doubled since the last time. A call then takes
    O(1) time on average, however many results the caller keeps."""
    global _loose_at_most
    if len(_loose) > _loose_at_most:
        _drop_expired(_loose)
        _loose_at_most = 2 * len(_loose) + _FEW_LOOSE


def _drop_expired(entries):
    for key, entry in list(entries.items()):
        if entry[0].expired():
            entries.pop(key, None)
