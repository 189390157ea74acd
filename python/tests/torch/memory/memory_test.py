"""Tests that MemoryTrace reports known allocations and frees correctly."""

import gc
import threading
import unittest
import weakref

import cairn
import cairn.torch
import torch


def address(tensor):
    return tensor.untyped_storage().data_ptr()


class Traces(unittest.TestCase):
    def test_measure_peak_while_a_profiler_runs(self):
        def nested():
            with self.assertRaisesRegex(cairn.InputError, "a profiler of torch is running already"):
                cairn.torch.measure_peak(lambda: torch.ones(10))
            return torch.ones(1000)

        _, peak, _ = cairn.torch.measure_peak(nested)
        self.assertEqual(peak, 4000)

    def test_a_second_trace_of_the_thread_is_refused(self):
        with cairn.torch.MemoryTrace() as trace:
            with self.assertRaisesRegex(cairn.InputError, "another one is recording already"), cairn.torch.MemoryTrace():
                self.fail("two traces record")
            torch.ones(100)
        self.assertEqual(trace.peak, 400)

    def test_a_trace_need_not_wait_for_another_thread(self):
        begun, ended = threading.Event(), threading.Event()

        def record():
            with cairn.torch.MemoryTrace():
                begun.set()
                ended.wait()

        thread = threading.Thread(target=record)
        thread.start()
        begun.wait()
        try:
            with self.assertRaisesRegex(cairn.InputError, "another one"), cairn.torch.MemoryTrace(waits=False):
                self.fail("two traces record")
        finally:
            ended.set()
            thread.join()
        with cairn.torch.MemoryTrace(waits=False):
            pass

    def test_garbage_is_not_collected(self):
        """Tests garbage from before a trace that a collection within the trace would free."""
        class Node:
            def __init__(self):
                self.itself, self.values = self, torch.ones(1000)

        gc.collect()
        thresholds = gc.get_threshold()
        self.addCleanup(gc.set_threshold, *thresholds)
        for enabled in (True, False):
            gc.set_threshold(1000000)
            with cairn.torch.MemoryTrace():  # the size of a storage is known only if it was allocated under a profiler
                garbage = weakref.ref(Node())
            if not enabled:
                self.addCleanup(gc.enable)
                gc.disable()
            with cairn.torch.MemoryTrace() as trace:
                gc.set_threshold(1)
                containers = [[i] for i in range(100)]
                gc.set_threshold(1000000)
                torch.ones(100)
            self.assertEqual((gc.isenabled(), trace.peak, trace.end, len(containers)), (enabled, 400, 0, 100))
            self.assertIsNotNone(garbage())
            gc.collect()
            self.assertIsNone(garbage())

    def test_peak_and_end(self):
        with cairn.torch.MemoryTrace() as trace:
            a = torch.ones(1000)
            b = torch.ones(500)
            del b
            c = torch.ones(250)
        self.assertEqual((trace.peak, trace.end), (6000, 5000))
        self.assertEqual(trace.at_peak({address(a)})[0], 2000)
        self.assertEqual(a.sum() + c.sum(), 1250)

    def test_an_optional_trace_makes_room_for_another(self):
        with cairn.torch.MemoryTrace(optional=True) as trace:
            torch.ones(1000)
            cairn.torch.MemoryTrace.end_optional()
            _, peak, _ = cairn.torch.measure_peak(lambda: torch.ones(10))
        self.assertEqual((trace.ended, trace.peak, peak), (True, 0, 40))
        with cairn.torch.MemoryTrace() as trace:
            cairn.torch.MemoryTrace.end_optional()  # must not end this trace, which is not optional
            torch.ones(100)
        self.assertEqual((trace.ended, trace.peak), (False, 400))

    def test_what_was_there_before_may_count_to_the_end(self):
        with cairn.torch.MemoryTrace():  # the size of a storage is known only if it was allocated under a profiler
            before = torch.ones(1000)
        held = {address(before)}
        with cairn.torch.MemoryTrace() as trace:
            torch.ones(100)  # a trace begins with its first operation, so it would not record a free before this line
            del before
            after = torch.ones(500)
        self.assertEqual(trace.live()[-1], -2000)
        self.assertEqual(trace.live(held=held)[-1], 2000)
        self.assertEqual(after.sum(), 500)
