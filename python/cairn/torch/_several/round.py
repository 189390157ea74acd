"""Records the passes of one round. What a round is, and the terms Alive, Run, Part and Window, are explained in
watch.py. In this module, the parts of Windows are keys of Parts, not indices."""

import bisect
import collections
import itertools
import weakref

from .choose import Freed, Window, held_by_parts

_FEW_PASSES = 64
_MOST_PASSES = 20_000  # a longer round is not planned


class Round:
    """The passes that have run since the last round ended, except passes of runs that began before."""

    def __init__(self):
        self._began = weakref.WeakKeyDictionary()  # Run -> its number, in the order in which runs begin
        self._first_done = None  # lowest number among the runs that have had their backward pass
        self._passes = []  # (Window, number of the run, number of the pass)
        self._most_passes = _FEW_PASSES  # when there are more passes, those that will not count are dropped
        # number of a run -> numbers of the first and the last pass in which it held memory for others
        self._held_in = {}
        # (shape of a window, numbers of the runs that held memory) -> [Window that covers all these passes, number of
        # passes], for passes of graphs without a backward pass
        self._alone = {}
        self._earlier = set()  # keys of the parts whose runs of earlier rounds held memory
        self._numbers, self._pass_numbers = itertools.count(), itertools.count()
        self.is_spoiled = False  # whether the round cannot be planned
        # whether runs of graphs that have been compiled again for a new plan held memory in this round
        self.is_mixed = False

    def begin(self, run):
        self._began[run] = next(self._numbers)

    def has(self, run):
        return run in self._began

    def of_round(self, runs):
        """Returns those of ``runs`` that began in this round."""
        return [run for run in runs if run in self._began]

    def is_empty(self):
        return not self._passes

    def is_several(self):
        """Returns whether several graphs, or several runs of one graph, have held memory at the same time, including
        runs of earlier rounds."""
        return bool(self._alone or self._earlier) or any(window.others for window, *_ in self._passes)

    def is_over(self, runs):
        """Returns whether a new forward pass ends the round: if all of ``runs``, the runs of this round whose backward
        pass may still come, are older than the runs that have had theirs."""
        return self._first_done is not None and all(self._began[run] < self._first_done for run in runs)

    def add(self, run, backward, others, held, freed, parts, at_end=0):
        """Records a pass of a Run. ``others``: the other Runs of this round that hold memory. ``held``: the bytes that
        all other runs hold. ``parts``: a dict from key to Part. ``freed``, ``at_end``: as in Watch.ran()."""
        if backward and (self._first_done is None or self._began[run] < self._first_done):
            self._first_done = self._began[run]
        self.is_mixed = self.is_mixed or any(one.graph.report.replaced for one in (run, *others))
        if len(self._passes) >= _MOST_PASSES:
            self.is_spoiled = True
        if self.is_spoiled:
            return
        gone = _freed([*others, run] if backward else others, [*others, run], freed)
        number = next(self._pass_numbers)
        self._passes.append((_window(run.graph.part.key, backward, others, held, gone, parts, at_end), self._began[run], number))
        for other in others:
            first, _ = self._held_in.get(self._began[other], (number, number))
            self._held_in[self._began[other]] = first, number
        self._drop_unfinished()

    def add_alone(self, key, others, held, freed, parts):
        """Records a pass of the graph with this key, which has no backward pass. The other arguments are those of
        add()."""
        if self.is_spoiled:
            return
        window = _window(key, False, others, held, _freed(others, others, freed), parts)
        name = shape_of(window), frozenset(self._began[other] for other in others)
        known, times = self._alone.get(name, (window, 0))
        self._alone[name] = [window.joined(known), times + 1]

    def add_earlier(self, runs):
        """Notes that runs of earlier rounds hold memory."""
        self._earlier.update(run.graph.part.key for run in runs if run.graph.part is not None)

    def _drop_unfinished(self):
        """Forgets the passes of runs that were freed without a backward pass, such as those of an evaluation with
        gradients enabled: a round with such runs may never end. Keeps one of each shape that ran while others held
        memory. Takes O(1) time on average for each pass."""
        if len(self._passes) <= self._most_passes:
            return
        kept = {number for window, number, _ in self._passes if window.backward}.union(self._began.values())
        held, shapes = self._held_by(kept), set()

        def is_first(window, number):
            is_new = held[number] and shape_of(window) not in shapes
            shapes.add(shape_of(window))
            return is_new

        self._passes = [known for known in self._passes if known[1] in kept or is_first(known[0], known[2])]
        self._most_passes = 2 * len(self._passes) + _FEW_PASSES

    def _held_by(self, runs):
        """Returns a list that says for each pass whether one of ``runs``, numbers of runs, held memory for it."""
        numbers = [number for *_, number in self._passes] + [last for _, last in self._held_in.values()]
        changes = [0] * (max(numbers, default=-1) + 2)
        for run, (first, last) in self._held_in.items():
            if run in runs:
                changes[first] += 1
                changes[last + 1] -= 1
        return [count > 0 for count in itertools.accumulate(changes)]

    def counted(self):
        """Returns (windows, times, unfinished) of the passes that count. ``windows``: a list. ``times``: key -> number
        of times that the round has run the part. ``unfinished``: an Unfinished.

        Passes of runs without a backward pass, such as those of an evaluation, count only if a run with a backward pass
        held memory meanwhile, or if the run held memory in a later pass of such a run."""
        with_backward = {run for window, run, _ in self._passes if window.backward}
        held = self._held_by(with_backward)
        numbers = [number for _, run, number in self._passes if run in with_backward]  # in ascending order
        left = {run: (first, last) for run, (first, last) in self._held_in.items() if run not in with_backward and
                bisect.bisect_left(numbers, first) < bisect.bisect_right(numbers, last)}
        shapes = {shape_of(window) for window, run, number in self._passes
                  if run in with_backward and any(first <= number <= last for first, last in left.values())}
        others = [window for window, run, number in self._passes if run not in with_backward and (held[number] or run in left)]
        windows = [window for window, run, _ in self._passes if run in with_backward] + others
        times = collections.Counter(window.part for window, run, _ in self._passes if run in with_backward and window.backward)
        times.update(window.part for window in others)
        for (shape, runs), (window, count) in self._alone.items():
            if not runs.isdisjoint(with_backward):
                windows.append(window)
                times[window.part] += count
                shapes.update(() if runs <= with_backward else [shape])
        return windows, times, Unfinished(shapes, self._earlier)


class Unfinished:
    """What a round has because of runs that have had no backward pass in it (``shapes``: the shapes of windows in which
    such runs held memory), or that began in an earlier round (``earlier``: keys of their parts)."""

    def __init__(self, shapes, earlier):
        self.shapes, self.earlier = shapes, earlier

    def is_known(self, latest):
        """Returns whether the Unfinished objects of the ``latest`` rounds had the same. If not, the round is presumably
        no typical step."""
        return (self.shapes <= set().union(*(round.shapes for round in latest)) and
                self.earlier <= set().union(*(round.earlier for round in latest)))


def shape_of(window):
    return window.part, window.backward, window.others


def _window(key, backward, others, held, gone, parts, at_end=0):
    counts = tuple(sorted(collections.Counter(other.graph.part.key for other in others).items()))
    # A run of a graph that has been compiled again meanwhile holds what its own schedule saves.
    by_runs = sum(other.graph.part.runs.sizes.held for other in others)
    by_runs += held_by_parts((), gone, {key: part.runs.sizes for key, part in parts.items()})
    return Window(key, backward, counts, max(0, held - by_runs), gone, at_end)


def _freed(runs, readers, numbers):
    """Returns the value of Window.freed for the freed results of ``runs``. ``numbers``: a dict from a Run to the
    numbers of its freed results. ``readers``: Runs that may have read these results."""
    if not any(run in numbers for run in runs):
        return ()
    read = {}
    for reader in readers:
        for of, result, i in reader.reads:
            read.setdefault((of(), result), []).append((reader.graph.part.key, i))
    found = collections.Counter(Freed(run.graph.part.key, number, tuple(sorted(read.get((run, number), ()))))
                                for run in runs for number in numbers.get(run, ()))
    return tuple(sorted(found.items(), key=lambda entry: (entry[0].part, entry[0].result, entry[0].readers)))
