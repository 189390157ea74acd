"""Tests when a schedule may run the updates of parameters."""

import random
import unittest

from cairn.torch._graph.trace import Operation, Trace


class InTime(unittest.TestCase):
    def test_no_update_before_the_last_that_reads_its_parameter(self):
        """Tests Trace.in_time() on random schedules: each update must come after the last run of an operation that
        reads its parameter."""
        drawn = random.Random(0)
        for _ in range(2000):
            trace = Trace("random")
            readers = [Operation(i, None) for i in range(drawn.randint(1, 6))]
            updates = [Operation(len(readers) + i, None) for i in range(drawn.randint(1, 3))]
            trace.readers = {u: drawn.sample(readers, drawn.randint(0, len(readers))) for u in updates}
            steps = [r.index for r in readers] + [drawn.choice(readers).index for _ in range(drawn.randint(0, 8))]
            for update in updates:
                steps.insert(drawn.randint(0, len(steps)), update.index)
            found = trace.in_time(steps)
            self.assertEqual(sorted(found), sorted(steps))
            kept = {r.index for r in readers}
            self.assertEqual([s for s in found if s in kept], [s for s in steps if s in kept])
            for update, read in trace.readers.items():
                last = max((i for i, s in enumerate(found) if s in {r.index for r in read}), default=-1)
                self.assertGreater(found.index(update.index), last)
                before = steps[:steps.index(update.index)]
                # An update that is late enough in the given steps must stay between the same readers.
                if all(steps.count(r.index) == before.count(r.index) for r in read):
                    self.assertEqual([s for s in found[:found.index(update.index)] if s in kept], [s for s in before if s in kept])
