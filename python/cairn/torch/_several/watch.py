"""Watches which graphs run while other graphs hold memory, and lets the graphs of a step be planned together.

The passes of graphs are divided into rounds; in most cases, a round is a training step. A *round* begins with a forward
pass, and ends when all runs (forward passes) that began in it have had their backward pass. It also ends at a new
forward pass if every run that still lacks its backward pass is older than all runs that have had theirs: such an old
run may never have a backward pass. But if runs of the same graph had one in a later round, or held memory in one, as the
runs of a GAN's generator, the round goes on for about as many passes. If several graphs held memory at the same time in
a round, and together exceeded the budget, these graphs are planned together, and are compiled once more when they are
called again. A graph without a backward pass, such as a teacher, belongs to a round if it runs while graphs of the round
hold memory. An *Alive* (_memory/together.py) is a compiled graph, and a *Run* is one run of its forward pass. A *Part*
(points.py) is a graph that can be planned together with other graphs. A *Window* (choose.py) is one pass of a part, with
the memory that other parts hold meanwhile. round.py records the passes of a round.
"""

import collections
import functools
import inspect
import signal
import sys
import threading
import weakref

from .. import _private
from .._errors import InfeasibleError
from .._plan.solve import budget_bytes, is_share
from .._report import Together
from .choose import Freed, Window, peak
from .plan import Planner
from .round import Round, shape_of

_FEW_ROUNDS = 4  # number of latest rounds in which runs that are left over are taken for a part of each step
# A backward pass that came in a later round may come after this many times as many passes again.
_LATER = 2
# a run that holds memory for more passes than this number is not taken for a part of the present step
_MOST_BETWEEN = 1_000
# with the budget "min" (the least possible), a step that exceeds its planned peak by at most this fraction is not
# planned anew
_CLOSE_TO_LEAST = 1 / 100
# largest number of times that the same functions are planned together; each time, all of them are compiled again
_MOST_PLANS = 4


_threads = set()  # idents of the threads that have run forward passes of any backend


def _run_in_several_threads():
    """Returns whether at least two threads that exist now have run forward passes. If so, torch.compile must not be
    told to compile a function again, because it would free the old code while another thread may be running it. Even
    models with different backends may share their code."""
    _threads.intersection_update(thread.ident for thread in threading.enumerate())
    return len(_threads) > 1


def _in_signal_handler():
    """Returns whether this code runs in a signal handler. What a handler runs is no part of a step: if it were planned
    with the step, and so compiled again, the handler could compile while torch compiles the code that it interrupts."""
    # Code is compared by identity: code that torch makes can have constants without a hash.
    handlers = {id(_code_of(handler)) for handler in map(signal.getsignal, signal.valid_signals()) if callable(handler)}
    frame = sys._getframe()
    while frame is not None and id(frame.f_code) not in handlers:
        frame = frame.f_back
    return frame is not None


def _code_of(handler):
    """Returns the code of a function, a functools.partial, or an object that can be called; None if it is not in
    Python."""
    # all functions that torch.compiler.disable() returns share the code of their wrapper
    handler = inspect.unwrap(handler.func if isinstance(handler, functools.partial) else handler)
    code = getattr(handler, "__code__", None)
    return code or getattr(getattr(type(handler), "__call__", None), "__code__", None)


class Watch:
    """Records the rounds of one backend, and starts planning. In this class, the parts of Windows are keys of Parts,
    not indices."""

    def __init__(self, owner, enabled):
        self.owner, self.enabled = owner, enabled
        self.plan = None  # the Plan by which the present graphs were compiled; None before the first
        self._lock = threading.RLock()  # reentrant as that of together.py
        # set of Codes -> number of times that the graphs of these functions were planned together
        self._plans = collections.Counter()
        self._parts = {}  # key -> the latest Part with this key
        self._compiled = {}  # key -> WeakSet of the Alives of the graphs with this key
        self._codes = {}  # key -> Codes of the functions whose compilation made the graphs with this key
        self._reports = {}  # Code of a function -> GraphReports of all graphs that its compilation made
        # Code of a function -> the input sizes that torch.compile had seen when it had made the first of its variants
        self._first_seen = {}
        self._round = Round()  # the present round
        self._was_several = False  # whether the round before was Round.is_several()
        self._was_mixed = False  # whether the latest round that counted was mixed
        self._count = 0  # number of passes of all rounds
        # key -> largest number of passes between a run of the part and its backward pass, if this came in a later round
        self._late = {}
        # key -> largest number of passes between a run of the part and a backward pass of a later round in which the
        # run held memory
        self._left = {}
        self._unfinished = collections.deque(maxlen=_FEW_ROUNDS)  # the Unfinished of the latest rounds
        self._windows = {}  # (part, pass, others) -> the Window that covers all such windows of all rounds so far
        self._times = collections.Counter()  # key -> largest number of times that a round has run the part
        # whether the graphs are to be planned together as soon as torch.compile compiles one of them
        self._waits = False
        self._asked = set()  # Codes of the functions that torch.compile was told to compile again for that plan

    # --- While graphs are compiled

    def among(self, ends_in_loss, held, for_larger):
        """Returns an Among, which says how to plan a graph that has a backward pass and is being compiled; None if
        graphs are not planned together. ``held``: bytes that other graphs of the backend hold now. ``for_larger``: as
        in Among."""
        if not self.enabled:
            return None
        is_alone = ends_in_loss and not held and self._round.is_empty() and self.plan is None and not _private.splits_for_ddp()
        return Among(self.plan, held, is_alone, for_larger)

    def among_alone(self, held):
        """Like among(), for a graph without a backward pass."""
        return Among(self.plan, held, False, False) if self.enabled else None

    def compiled(self, part, alive):
        with self._lock:
            self._parts[part.key] = part
            self._compiled.setdefault(part.key, weakref.WeakSet()).add(alive)
            self._codes.setdefault(part.key, set()).add(_private.compiled_code())

    def made(self, reports):
        """Stores the GraphReports of the graphs that the present compilation has made."""
        code = _private.compiled_code()
        self._reports.setdefault(code, []).extend(reports)
        if code is not None and code not in self._first_seen:
            self._first_seen[code] = _private.sizes_seen(code)

    def plan_now(self):
        """Plans the graphs of the step together if a round has asked for it (``_waits``). Called before a graph is
        compiled. Raises InfeasibleError if the step cannot meet its budget; the next step is then treated like a first
        step."""
        if not self._waits:
            return
        with self._lock:
            keys = list(self._times)
            # A graph of another function is compiled before those of the round, which may no longer exist.
            if _private.compiled_code() not in set().union(*(self._codes[key] for key in keys)):
                return
            parts = [self._parts[key] for key in keys]
            windows = self._numbered(self._windows.values(), keys)
            most_beside = self._numbered(self._windows.values(), keys, unplanned=True)
        def planned(goal):
            times = [self._times[key] for key in keys]
            share = is_share(self.owner.options.budget)
            return Planner(parts, windows, times, goal, parts[0].limits, share, most_beside).plan()

        try:
            self.plan = planned(self._goal(parts, most_beside))
        except InfeasibleError as error:
            if self.plan is None or not is_share(self.owner.options.budget):
                codes = set().union(*(self._codes[key] for key in keys))
                self._start_over()
                self._forget(codes)
                raise
            # Graphs may have been compiled anew meanwhile, for which the plan of earlier steps contains no schedules.
            try:
                self.plan = planned(error.least_budget)
                self.owner.tell(f"{error} Steps take this least from now on.")
            except InfeasibleError:
                self.owner.tell(f"{error} The plan of earlier steps stays.")
        self._waits = self.owner.report.waits = False
        self._asked.clear()
        self._forget(set().union(*(self._codes[key] for key in keys)))

    def _start_over(self):
        """Forgets all rounds. Otherwise, windows of a step that cannot meet the budget would count in all later plans,
        even for steps that can."""
        with self._lock:
            self._waits, self.plan = False, None
            self.owner.report.waits = False
            self._asked.clear()
            self._windows.clear()
            self._times.clear()
            self._plans.clear()

    def _forget(self, codes):
        """Removes graphs from the report that will be compiled again. ``codes``: Codes of their functions."""
        report = self.owner.report
        replaced = {id(graph) for code in codes for graph in self._reports.pop(code, ())}
        report.broken_before += sum(graph.kept is False for graph in report.graphs if id(graph) in replaced)
        for graph in report.graphs:
            graph.replaced = id(graph) in replaced
        report.graphs[:] = [graph for graph in report.graphs if not graph.replaced]
        report.first_step = report.first_step or report.together
        report.joined, report.step = None, self.plan.report if self.plan else None

    def _goal(self, parts, windows):
        """Returns the budget of the watched rounds in bytes; None for "min". ``windows``: with what graphs outside of
        the rounds hold without a budget."""
        goal = budget_bytes(self.owner.options.budget, peak(windows, [part.baseline for part in parts]))
        if self.plan is not None and is_share(self.owner.options.budget):
            goal = max(goal, self.plan.report.budget)
        return goal

    # --- While graphs run

    def budget_of(self, report):
        """Returns the budget, in bytes, for all graphs together that hold memory at the same time; None if it is
        unknown. ``report``: the GraphReport of one of these graphs."""
        if self.plan is not None:
            return self.plan.report.budget
        # A share refers to the memory of the whole step, which is known only after a step.
        return None if self.enabled and is_share(self.owner.options.budget) else report.budget

    def outlook(self):
        """Returns the end of a warning about an exceeded budget. It says whether Cairn will try to plan the graphs
        together. Whether there will be a plan is not known before the step has ended."""
        if not self.enabled or not self.is_several() or _run_in_several_threads():
            return ""
        return ": Cairn tries to plan them anew when their backward passes have run" if self.plan else (
            " in this first step: when its backward passes have run, Cairn tries to plan the graphs together")

    def ran(self, alive, run, backward, held, open_runs, freed, at_end=0):
        """Records that a pass of the graph ``alive`` has run. ``run``: the Run to which the pass belongs. ``held``: the
        bytes that all other graphs held when the pass began. ``open_runs``: Runs of this and of other backends whose
        backward pass may still come. ``freed``: a dict from a Run to the numbers of those of its results that had been
        freed when the pass began. ``at_end``: as in Window."""
        if not self.enabled or (not backward and _in_signal_handler()):
            return
        if not backward:
            _threads.add(threading.get_ident())
            # A forward pass within a backward pass is the repeated forward pass of a checkpoint. It must have the same
            # plan as the first run, so it ends no round.
            if _private.graph_task() < 0 and self._is_over(open_runs, run):
                self._end_round()
        with self._lock:
            self._count += 1
            if not backward and run is not None:
                run.pass_number = self._count
                self._round.begin(run)
            elif run is None or not self._round.has(run):
                if run is not None:
                    self._note_use(self._late, run)
                return
            others = [other for other in open_runs if other is not run]
            mine = self._round.of_round(others)
            earlier = [other for other in others if not self._round.has(other) and other.graph.watch is self]
            self._round.add_earlier(earlier)
            for other in earlier if backward else ():
                self._note_use(self._left, other)
            is_unknown = alive.part is None or any(other.graph.part is None for other in mine)
            if is_unknown or (backward and _private.keeps_graph()):
                self._round.is_spoiled = True
            self._round.add(run, backward, mine, held, freed, self._parts, at_end)
        if backward and not mine:
            self._end_round()

    def ran_alone(self, alive, held, open_runs, freed):
        """Records that a graph without a backward pass has run, if graphs of the present round held memory meanwhile.
        The arguments are those of ran()."""
        if not self.enabled or alive.part is None or _in_signal_handler():
            return
        if _private.graph_task() < 0 and self._is_over(open_runs, None):
            self._end_round()
        with self._lock:
            mine = self._round.of_round(open_runs)
            if mine and all(other.graph.part is not None for other in mine):
                _threads.add(threading.get_ident())
                self._round.add_alone(alive.part.key, mine, held, freed, self._parts)

    def _note_use(self, known, run):
        """Notes in ``known`` (_late or _left) for how many passes a run of an earlier round has been in use. If its key
        is new, the rounds so far were only parts of a step, so a plan that they asked for is not made."""
        if run.graph.part is None or run.pass_number is None:  # a run without a number is that of a signal handler
            return
        key, passes = run.graph.part.key, self._count - run.pass_number
        if passes > _MOST_BETWEEN:
            return
        if key not in known and self.plan is None:
            asked = set(self._asked)
            self._start_over()
            if asked:
                self._forget(asked)
        known[key] = max(passes, known.get(key, 0))

    def _is_in_use(self, run):
        """Returns whether the step of a run presumably goes on, as in earlier steps: its backward pass is still to
        come, as that of a GAN's generator, which comes after those of the discriminators, or other backward passes are,
        in which it holds memory."""
        if run.graph.part is None:
            return False
        key, passes = run.graph.part.key, self._count + 1 - run.pass_number  # until the pass that begins
        return passes <= max(_LATER * self._late.get(key, 0), self._left.get(key, -1))

    def _is_over(self, open_runs, run):
        """Returns whether the round has ended before the forward pass ``run``."""
        with self._lock:
            runs = self._round.of_round(other for other in open_runs if other is not run)
            return self._round.is_over(runs) and not any(map(self._is_in_use, runs))

    @staticmethod
    def is_threaded():
        """Returns whether several threads run compiled code. If so, compiled code must not be replaced."""
        return _run_in_several_threads()

    def is_several(self):
        """Returns whether several graphs, or several runs of one graph, have held memory at the same time in the
        present round or, if it has no passes yet, in the round before: its last backward passes may still come."""
        with self._lock:
            return self._round.is_several() or (self._round.is_empty() and self._was_several)

    def _end_round(self):
        with self._lock:
            ended, self._round = self._round, Round()
            self._was_several = ended.is_several()
            self._drop_freed()
            passes, times, unfinished = ended.counted()
            is_known = unfinished.is_known(self._unfinished)
            self._unfinished.append(unfinished)
            if ended.is_spoiled or not any(window.others for window in passes):
                return
            # An evaluation with gradients enabled, or a step that failed, leaves runs behind that hold memory in the
            # next step only. They count if one of the latest rounds had such runs, too, as in the steps of a GAN.
            if not is_known:
                return
            if _private.others_compile():  # the next round tries again
                return
            if _run_in_several_threads():
                self.owner.report.threaded = True
                return
            # The plan of another backend may have freed graphs during the round.
            if any(key not in self._parts for window in passes for key in (window.part, *dict(window.others))):
                return
            for part, count in times.items():
                self._times[part] = max(self._times[part], count)
            windows = {}
            for window in passes:
                shape = shape_of(window)
                windows[shape] = window.joined(windows.get(shape, window))
            are_new = not windows.keys() <= self._windows.keys()
            for shape, window in windows.items():
                self._windows[shape] = window.joined(self._windows.get(shape, window))
            codes = frozenset().union(*(self._codes[key] for key in self._times))
            # The functions of a round that waits for its plan may never be called again. Another round does not wait
            # for them.
            if (self._waits and codes <= self._asked) or not self._needs_plan(windows.values(), are_new, ended.is_mixed):
                return
            may_plan = self._plans[codes] < _MOST_PLANS
            self._plans[codes] += 1
            if may_plan:
                self._waits = self.owner.report.waits = True
                codes, self._asked = codes - self._asked, self._asked | codes
        if not may_plan:
            self.owner.tell(f"the graphs of a step have been planned together {_MOST_PLANS} times, and are not planned anew: steps "
                            f"with other graphs may exceed the budget (report.promised, not report.step, says what they take)")
            return
        # A function can have several variants because modules of the same class, with different sizes, share its code,
        # or because input sizes vary. If the step has run all variants, they belong to different modules. torch.compile
        # then forgets the sizes of all modules but the first, so that the first variant again has these as constants.
        # Sizes that steps change must be symbolic, as without a plan: AOTAutograd then expects other layouts of
        # gradients, and layouts decide how operations round.
        ran = {window.part for window in passes}
        for code in codes:
            variants = {key for key, graph in self._compiled.items() if code in self._codes[key] and len(graph)}
            # evaluations of a function that trains belong to no step
            variants = {key for key in variants if self._parts[key].has_backward} or variants
            if _private.compile_again(code, self._first_seen.get(code) if variants <= ran else None):
                self._first_seen.pop(code, None)
            else:
                with self._lock:  # another thread has begun to compile; the next round asks again
                    self._waits = self.owner.report.waits = False
                    self._asked.clear()

    def _drop_freed(self):
        """Forgets the windows of graphs that have been freed, for example because their model no longer exists. Does
        nothing while graphs of a round wait to be compiled again, as these have been freed as well."""
        if self._waits:
            return
        freed = {key for key in self._times if not len(self._compiled[key])}
        for key in freed:
            del self._times[key], self._parts[key], self._compiled[key]
            self._late.pop(key, None)
            self._left.pop(key, None)
        if freed:
            self._windows = {shape: window for shape, window in self._windows.items()
                             if window.part not in freed and freed.isdisjoint(key for key, _ in window.others)}

    def _needs_plan(self, windows, are_new, is_mixed):
        """Returns whether a round makes a new plan necessary. If not, stores in the reports how much memory the round
        took. ``are_new``: whether the round has windows that no earlier round had. ``is_mixed``: as in Round."""
        keys = list(self._times)
        parts = [self._parts[key] for key in keys]
        unplanned = self._numbered(windows, keys, unplanned=True)
        goal, windows = self._goal(parts, unplanned), self._numbered(windows, keys)
        most = peak(windows, [part.runs.sizes for part in parts])
        if self.plan is not None:
            self._forget_mixed(most, is_mixed)
        if goal is None and self.plan is not None:
            step = self.plan.report
            if most <= (1 + _CLOSE_TO_LEAST) * step.budget:
                step.budget = step.promised = max(most, step.budget)
                return False
        if goal is None or most > goal:
            return True
        # The budget is met. If it is in bytes, planning the graphs together would not make them cheaper. If it is a
        # share, the graphs were planned for the share of each single graph, or of a smaller round. The share of this
        # round may be larger, and a new plan may then be cheaper.
        is_larger = self.plan is None or goal > self.plan.report.budget
        if are_new and is_larger and is_share(self.owner.options.budget):
            return True
        if self.plan is None:
            self._accept(parts, most)
            return False
        step = self.plan.report
        step.promised, step.budget = max(step.promised, most), max(step.budget, goal)
        step.baseline = max(step.baseline, peak(unplanned, [part.baseline for part in parts]))
        return False

    def _forget_mixed(self, most, is_mixed):
        """Forgets the peak of a mixed round, in which graphs of an earlier plan held memory, after the first round that
        is not mixed. ``most``: the peak of the present round in bytes."""
        whole = self.owner.report.together
        if self._was_mixed and not is_mixed and whole is not None and not whole.broken:
            self.owner.report.joined = Together(told=whole.told - {"sum"}, host_peak=whole.host_peak)
            self.owner.report.joined.add(most, None, self.plan.report.at)
        self._was_mixed = is_mixed

    def _accept(self, parts, most):
        """Reports a round that meets the budget without a plan for all graphs. ``most``: the peak of the round in
        bytes. The promised peak of a single graph may be higher, because it includes results that the step frees
        earlier."""
        for part in parts:
            part.report.of_step = True
        whole = Together.of([self.owner.report])
        whole.add(most, None, whole.at)

    def _numbered(self, windows, keys, unplanned=False):
        """Returns the windows with indices in ``keys`` instead of keys as parts. Parts that are not in ``keys`` have
        passes in no round that counts. The bytes that they hold are added to ``beside``: with ``unplanned``, the bytes
        that they hold without a budget if these are more."""
        def sizes_of(key):
            part = self._parts[key]
            return max([part.runs.sizes, part.unplanned.sizes] if unplanned else [part.runs.sizes], key=lambda sizes: sizes.held)

        number, found = {key: i for i, key in enumerate(keys)}, []
        for window in windows:
            others = tuple((number[key], count) for key, count in window.others if key in number)
            beside = window.beside + sum(count * sizes_of(key).held for key, count in window.others
                                         if key not in number)
            freed = []
            for one, count in window.freed:
                if one.part in number:
                    readers = tuple((number[key], i) for key, i in one.readers if key in number)
                    freed.append((Freed(number[one.part], one.result, readers), count))
                else:
                    beside -= count * sizes_of(one.part).results[one.result]
            if window.part in number:
                found.append(Window(number[window.part], window.backward, others, beside, tuple(freed), window.at_end))
        return found


class Among:
    """Says how to plan a graph that may be one of several in a step. ``plan``: the Plan of the step, or None. ``held``:
    bytes that the other graphs hold. ``is_alone``: whether the graph is presumably the only one of its step.
    ``for_larger``: whether the graph is being planned for larger inputs than the present ones."""

    def __init__(self, plan, held, is_alone, for_larger):
        self.plan, self.held, self.is_alone, self.for_larger = plan, held, is_alone, for_larger

    @property
    def goal(self):
        """Returns the budget of the planned step in bytes; None if there is no plan yet."""
        return None if self.plan is None else self.plan.report.budget

    def planned(self, prepared):
        """Returns the schedule [steps, transfers] that the step's plan contains for the graph; None if there is
        none."""
        return None if self.plan is None else self.plan.schedules.get(prepared.key)
