"""Records the passes of one round. What a round is, and the terms Alive, Run, Part and Window, are explained in
watch.py. In this module, the parts of Windows are keys of Parts, not indices."""

import bisect
import collections
import dataclasses
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
        self._passes = []  # a _Pass for each pass of a run
        self._most_passes = _FEW_PASSES  # when there are more passes, those that will not count are dropped
        # number of a run -> numbers of the first and the last pass in which it held memory for others
        self._held_in = {}
        # (shape of a window, holders) -> [Window that covers all these passes, number of passes]: passes of graphs
        # without a backward pass, and of runs that were freed without one
        self._loose = {}
        self._most_loose = _FEW_PASSES  # when there are more entries, those that will not count are dropped
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
        return bool(self._loose or self._earlier) or any(known.window.others for known in self._passes)

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
        window = _window(run.graph.part.key, backward, others, held, gone, parts, at_end)
        self._passes.append(_Pass(window, self._began[run], number, self._holders(others)))
        for other in others:
            first, _ = self._held_in.get(self._began[other], (number, number))
            self._held_in[self._began[other]] = first, number
        self._drop_unfinished()

    def add_alone(self, key, others, held, freed, parts):
        """Records a pass of the graph with this key, which has no backward pass. The other arguments are those of
        add()."""
        if not self.is_spoiled:
            self._add_loose(_window(key, False, others, held, _freed(others, others, freed), parts), self._holders(others))
            self._drop_unfinished()

    def add_earlier(self, runs):
        """Notes that runs of earlier rounds hold memory."""
        self._earlier.update(run.graph.part.key for run in runs if run.graph.part is not None)

    def _holders(self, runs):
        """Returns the numbers of the oldest and of the newest of ``runs``, as a set. They stand for all of them: a
        pass belongs to a step if one of them has a backward pass, and to nothing else if both have."""
        numbers = [self._began[run] for run in runs]
        return frozenset((min(numbers), max(numbers)) if numbers else ())

    def _add_loose(self, window, holders, times=1):
        known, before = self._loose.get((shape_of(window), holders), (window, 0))
        self._loose[shape_of(window), holders] = [window.joined(known), before + times]

    def _drop_unfinished(self):
        """Forgets passes that will not count, such as those of an evaluation with gradients enabled: a round with such
        runs may never end. Takes O(1) time on average for each pass."""
        if len(self._passes) <= self._most_passes and len(self._loose) <= self._most_loose:
            return
        kept = {known.run for known in self._passes if known.window.backward}.union(self._began.values())
        for known in self._passes:
            if known.run not in kept and not known.holders.isdisjoint(kept):
                self._add_loose(known.window, known.holders)
        self._passes = [known for known in self._passes if known.run in kept]
        self._loose = {name: entry for name, entry in self._loose.items() if not name[1].isdisjoint(kept)}
        numbers = [known.number for known in self._passes]
        self._held_in = {run: held for run, held in self._held_in.items() if run in kept or _has_between(numbers, *held)}
        self._most_passes = 2 * len(self._passes) + _FEW_PASSES
        self._most_loose = 2 * len(self._loose) + _FEW_PASSES

    def counted(self):
        """Returns (windows, times, unfinished) of the passes that count. ``windows``: a list. ``times``: key -> number
        of times that the round has run the part. ``unfinished``: an Unfinished.

        Passes of runs without a backward pass, such as those of an evaluation, count only if a run with a backward pass
        held memory meanwhile, or if the run held memory in a later pass of such a run."""
        with_backward = {known.run for known in self._passes if known.window.backward}
        counted = [known for known in self._passes if known.run in with_backward]
        numbers = [known.number for known in counted]  # in ascending order
        left = {run: held for run, held in self._held_in.items() if run not in with_backward and _has_between(numbers, *held)}
        windows = [known.window for known in counted]
        times = collections.Counter(window.part for window in windows if window.backward)
        shapes = {shape_of(known.window) for known, is_left in zip(counted, _covered(numbers, left.values())) if is_left}
        loose = [(known.window, 1, known.holders, known.run in left) for known in self._passes if known.run not in with_backward]
        loose += [(window, count, holders, False) for (_, holders), (window, count) in self._loose.items()]
        for window, count, holders, is_left in loose:
            if is_left or not holders.isdisjoint(with_backward):
                windows.append(window)
                times[window.part] += count
                shapes.update(() if holders <= with_backward else [shape_of(window)])
        return windows, times, Unfinished(shapes, self._earlier)


@dataclasses.dataclass(frozen=True)
class _Pass:
    """``run``: the number of the run. ``number``: the number of the pass. ``holders``: as Round._holders()."""

    window: Window
    run: int
    number: int
    holders: frozenset


def _has_between(numbers, first, last):
    """Returns whether one of ``numbers``, which ascend, lies in first..last."""
    return bisect.bisect_left(numbers, first) < bisect.bisect_right(numbers, last)


def _covered(numbers, ranges):
    """Returns for each of ``numbers``, which ascend, whether it lies in one of the ``ranges`` (first, last)."""
    changes = [0] * (len(numbers) + 1)
    for first, last in ranges:
        changes[bisect.bisect_left(numbers, first)] += 1
        changes[bisect.bisect_right(numbers, last)] -= 1
    return [count > 0 for count in itertools.accumulate(changes[:-1])]


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
    by_runs += held_by_parts((), gone, {key: part.runs.sizes for key, part in parts.items()}) if gone else 0
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
