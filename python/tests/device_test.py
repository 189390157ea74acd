"""Tests the argument device_memory=, which gives the memory of a device instead of a budget. Also tests the search for
the largest batch that fits."""

import json
import subprocess
import threading
import unittest

import cairn
from support import COMMAND, chain, command

WORK = 100_000
OPTIONS = {"layers": 3, "width": 32, "inputs": 32, "outputs": 16}
MODEL = ["ffn", *(word for name, value in OPTIONS.items() for word in (f"--{name}", str(value)))]
LIBRARIES = 32 << 20  # bytes that Cairn reserves for libraries such as cuBLAS, for graphs that it can execute


def build(batch):
    return cairn.models.build("ffn", batch=batch, **OPTIONS)


def arena(budget, batch=64):
    """Returns the arguments that describe a device which has `budget` bytes left for the arena, i.e. for everything
    that is not resident."""
    return dict(device_memory=build(batch).resident_bytes + LIBRARIES + budget, context_memory=0)


class Devices(unittest.TestCase):
    def test_a_device_is_divided(self):
        graph = build(64)
        info = cairn.info(graph, device_memory="1GiB", work_limit=WORK)
        share = info.device
        self.assertEqual((share.memory, share.resident, share.workspace, share.context),
                         (1 << 30, graph.resident_bytes, LIBRARIES, 512 << 20))
        self.assertEqual(share.arena, share.memory - share.resident - share.workspace - share.context)
        self.assertEqual(info.budget, share.arena)
        self.assertEqual((info.fits, info.least_device_memory, info.largest_batch), (True, None, None))
        self.assertIn("512.00 MiB", str(info))
        self.assertIsNone(cairn.info(graph, "90%", work_limit=WORK).device)

    def test_what_helps_where_it_is_too_small(self):
        least = cairn.least_budget(build(64), work_limit=WORK).bytes
        info = cairn.info(build(64), work_limit=WORK, build=build, **arena(least // 2))
        self.assertFalse(info.fits)
        self.assertEqual(info.least_device_memory, arena(info.least_budget.bytes)["device_memory"])
        self.assertLess(info.largest_batch.batch, 64)
        self.assertGreaterEqual(info.largest_batch.batch, info.largest_batch.batch_of_baseline)
        self.assertIsNone(cairn.info(build(64), work_limit=WORK, **arena(least // 2)).largest_batch)

    def test_a_device_that_is_full_already(self):
        graph = build(64)
        for call in (cairn.info, cairn.solve, cairn.run):
            with self.assertRaisesRegex(cairn.InfeasibleError, "does not fit into device_memory='1.00 MiB'") as caught:
                call(graph, device_memory="1MiB")
            self.assertEqual(caught.exception.exit_code, 3)
            self.assertNotIn("--", str(caught.exception))
        with self.assertRaisesRegex(cairn.InfeasibleError, "largest batch: none: 1 is proved too large"):
            cairn.info(graph, device_memory="1MiB", build=build, work_limit=WORK)

    def test_searches_and_executions_take_one(self):
        least = cairn.least_budget(build(64), work_limit=WORK).bytes
        answer = cairn.solve(build(64), work_limit=WORK, **arena(least))
        self.assertEqual(answer.budget, least)
        self.assertLessEqual(answer.planned, least)
        result = cairn.run(build(64), work_limit=WORK, repeats=1, backend="host", **arena(least))
        self.assertLessEqual(result.scheduled.measured, least)

    def test_bad_arguments(self):
        for words, arguments in {"drop one": dict(budget="60%", device_memory="1GiB"),
                                 "part of device_memory=": dict(context_memory=0),
                                 "not a size": dict(device_memory="80%"), "above 0": dict(device_memory=0),
                                 "context_memory": dict(device_memory="1GiB", context_memory="some")}.items():
            for call in (cairn.info, cairn.solve, cairn.run):
                with self.subTest(words=words), self.assertRaisesRegex(cairn.InputError, words):
                    call(build(8), **arguments)
        with self.assertRaisesRegex(cairn.InputError, "drop one"):
            cairn.solve(build(8), max_cost="5%", device_memory="1GiB")


class Batches(unittest.TestCase):
    def test_the_largest_fits_and_the_next_one_is_not_known_to(self):
        budget = build(8).baseline.peak + 256 * 20
        found = cairn.largest_batch(build, budget, work_limit=WORK)
        self.assertGreaterEqual(found.batch, 8)
        self.assertLessEqual(cairn.solve(build(found.batch), budget, work_limit=WORK).planned, budget)
        self.assertEqual(found.refused, found.batch + 1)
        self.assertEqual(json.loads(found.to_json())["batch"], found.batch)
        self.assertIn(str(found.batch), str(found))

    def test_graphs_are_built_in_the_thread_that_called(self):
        threads = set()

        def one(batch):
            threads.add(threading.get_ident())
            return chain(4, size=batch)

        found = cairn.largest_batch(one, "1KiB", work_limit=WORK)
        self.assertLessEqual(cairn.solve(chain(4, size=found.batch), "1KiB", work_limit=WORK).planned, 1024)
        self.assertEqual(threads, {threading.get_ident()})

    def test_failures(self):
        class Mine(Exception):
            pass

        def fail(batch):
            raise Mine("enough")

        with self.assertRaisesRegex(Mine, "enough"):
            cairn.largest_batch(fail, "1MiB")
        with self.assertRaisesRegex(cairn.InputError, "must be a cairn.Graph, not 7"):
            cairn.largest_batch(lambda batch: 7, "1MiB")
        with self.assertRaisesRegex(cairn.InfeasibleError, "1 is proved too large"):
            cairn.largest_batch(build, 100, work_limit=WORK)
        for arguments in ({}, {"budget": "60%"}, {"budget": "min"}, {"budget": 100, "device_memory": 100}):
            with self.subTest(**arguments), self.assertRaises(cairn.InputError):
                cairn.largest_batch(build, **arguments)


@unittest.skipUnless(COMMAND, "the command was not built")
class BesideTheCommand(unittest.TestCase):
    def test_advice(self):
        least = cairn.least_budget(build(64), work_limit=WORK).bytes
        for budget in (1 << 20, least, least // 2):
            device = arena(budget)
            code, theirs = command("info", *MODEL, "--batch", 64, "--device-memory", device["device_memory"],
                                   "--context-memory", 0, "--work-limit", WORK)
            ours = cairn.info(build(64), work_limit=WORK, build=build, **device)
            for key in ("warnings", "error", "exit_code"):
                theirs.pop(key, None)
            self.assertEqual(json.loads(ours.to_json()), theirs)
            self.assertEqual(code == 0, ours.fits)

    def test_the_largest_batch(self):
        device = arena(50_000, batch=8)
        text = f"--batch auto --context-memory 0 --work-limit {2 * WORK} --device-memory {device['device_memory']}"
        run = subprocess.run([COMMAND, "info", *MODEL, *text.split()], capture_output=True, text=True, check=True)
        # The command uses only half of its work limit to search for the batch, so it was given twice the limit of the
        # call.
        self.assertIn(f"--batch auto: {cairn.largest_batch(build, work_limit=WORK, **device)}\n", run.stderr)


if __name__ == "__main__":
    unittest.main()
