"""Tests the simulation of PyTorch's allocator, of snapshots of the real allocator, and of will_it_fit()."""

import dataclasses
import os
import pathlib
import pickle
import random
import tempfile
import unittest

import cairn
import cairn.torch
import harness
import torch
from cairn.torch._memory.caching import CachingAllocator, OutOfMemory

MIB = 1 << 20


class Rules(unittest.TestCase):
    """Tests the rules that comments in c10/cuda/CUDACachingAllocator.cpp state."""

    def reserved(self, *sizes, **options):
        allocator = CachingAllocator(**options)
        for size in sizes:
            allocator.allocate(size)
        return allocator.reserved

    def test_segments(self):
        for sizes, reserved in (((1,), 2 * MIB), ((MIB,), 2 * MIB), ((MIB + 1,), 20 * MIB), ((10 * MIB - 512,), 20 * MIB),
                                ((10 * MIB,), 10 * MIB), ((11 * MIB,), 12 * MIB), ((0,), 0),
                                # Small blocks share a segment, and large blocks share another one.
                                ((512,) * 4096, 2 * MIB), ((512,) * 4097, 4 * MIB), ((5 * MIB,) * 4, 20 * MIB),
                                ((512, 2 * MIB), 22 * MIB)):
            self.assertEqual(self.reserved(*sizes), reserved, sizes)

    def test_ends_of_blocks(self):
        """Tests when a block is cut: a large block only if more than 1 MiB would be left, a small block if at least 512
        bytes would be left."""
        allocator = CachingAllocator()
        allocator.allocate(19 * MIB)
        self.assertEqual((allocator.reserved, allocator.in_use), (20 * MIB, 20 * MIB))
        allocator = CachingAllocator()
        for size, in_use in ((9 * MIB, 9 * MIB), (10 * MIB + MIB // 4, 20 * MIB)):
            allocator.allocate(size)
            self.assertEqual((allocator.reserved, allocator.in_use), (20 * MIB, in_use))
        allocator.allocate(100)
        self.assertEqual(allocator.in_use, 20 * MIB + 512)

    def test_the_best_fit_and_merged_neighbours(self):
        allocator = CachingAllocator()
        blocks = [allocator.allocate(size * MIB) for size in (4, 2, 6, 2, 3)]
        for i in (0, 2):
            allocator.free(blocks[i])
        self.assertEqual(allocator.allocate(4 * MIB).address, 0)
        allocator.free(blocks[1])  # the freed block merges with the free block behind it
        self.assertEqual(allocator.allocate(8 * MIB).address, 4 * MIB)
        self.assertEqual(allocator.reserved, 20 * MIB)

    def test_memory_that_is_given_back(self):
        allocator = CachingAllocator(capacity=40 * MIB)
        allocator.free(allocator.allocate(30 * MIB))
        allocator.allocate(36 * MIB)  # to make room, the free segment of 30 MiB is given back to the driver
        self.assertEqual((allocator.reserved, allocator.peak_reserved), (36 * MIB, 36 * MIB))
        with self.assertRaisesRegex(OutOfMemory, r"^\d+ bytes cannot be allocated: 37748736 of 41943040 bytes are reserved"):
            allocator.allocate(5 * MIB)

    def test_scattered_blocks(self):
        """Tests an allocation that needs free memory of several segments. Only with expandable segments, it can use
        this memory."""
        for expandable, reserved in ((False, 250 * MIB), (True, 160 * MIB)):
            allocator = CachingAllocator(expandable_segments=expandable)
            blocks = [allocator.allocate(10 * MIB) for _ in range(15)]
            for block in blocks:
                allocator.free(block)
            allocator.allocate(100 * MIB)
            self.assertEqual(allocator.reserved, reserved)

    def test_blocks_that_can_grow(self):
        """Tests which free block of an expandable segment is taken. The last block counts with the size to which it can
        grow, so the first block, which counts as smaller, must be taken although it fits less well."""
        allocator = CachingAllocator(expandable_segments=True)
        first, _, last = (allocator.allocate(size * MIB) for size in (40, 2, 30))
        allocator.free(first)
        allocator.free(last)
        self.assertEqual(allocator.allocate(30 * MIB).address % (20 * MIB), 0)
        allocator.allocate(45 * MIB)
        self.assertEqual(allocator.reserved, 100 * MIB)

    def test_random_sequences(self):
        for seed in range(60):
            draw = random.Random(seed)
            capacity = draw.choice([None, 300 * MIB, 120 * MIB])
            allocator = CachingAllocator(capacity, bool(seed % 2))
            live = []
            for _ in range(300):
                if live and draw.random() < 0.48:
                    allocator.free(live.pop(draw.randrange(len(live))))
                    continue
                try:
                    live.append(allocator.allocate(int(2 ** draw.uniform(3, 25.5))))
                except OutOfMemory:
                    self.assertIsNotNone(capacity)
                places = sorted((b.address, b.address + b.size) for b in live)
                self.assertTrue(all(end <= begin for (_, end), (begin, _) in zip(places, places[1:])))
                self.assertEqual(allocator.in_use, sum(b.size for b in live))
                self.assertLessEqual(allocator.in_use, allocator.reserved)
                self.assertLessEqual(allocator.reserved, capacity or allocator.reserved)
            for block in live:
                allocator.free(block)
            allocator.give_back()
            self.assertEqual((allocator.reserved, allocator.in_use), (0, 0))


def recorded(seed, before=5, events=200):
    """Simulates random allocations. Returns (a snapshot of them in torch's form, the simulated allocator, largest
    number of bytes in use)."""
    draw = random.Random(seed)
    allocator, live, trace, most = CachingAllocator(), [], [], 0

    def change():
        if live and draw.random() < 0.48:
            size, block = live.pop(draw.randrange(len(live)))
            address = block.address
            allocator.free(block)
            return "free_completed", size, address
        size = int(2 ** draw.uniform(9, 24))
        reserved = allocator.reserved
        block = allocator.allocate(size)
        live.append((size, block))
        if allocator.reserved > reserved:
            trace.append({"action": "segment_alloc", "addr": block.address, "size": allocator.reserved - reserved})
        return "alloc", size, block.address

    for _ in range(before):
        change()
    trace.clear()
    most = sum(size for size, _ in live)
    for _ in range(events):
        action, size, address = change()
        if action != "alloc":
            trace.append({"action": "free_requested", "addr": address, "size": size})
        trace.append({"action": action, "addr": address, "size": size})
        most = max(most, sum(size for size, _ in live))
    blocks = [{"size": block.size, "requested_size": size, "state": "active_allocated"} for size, block in live]
    segment = {"device": 0, "total_size": allocator.reserved, "blocks": blocks}
    return {"segments": [segment], "device_traces": [trace]}, allocator, most


class Snapshots(unittest.TestCase):
    def test_what_was_recorded(self):
        for seed in range(30):
            source, allocator, most = recorded(seed)
            found = cairn.torch.read_snapshot(source)
            self.assertEqual(found.in_use, most)
            self.assertEqual(found.reserved, allocator.peak_reserved)
            self.assertGreaterEqual(found.static_plan(), most)
            self.assertLess(found.static_plan(), found.reserved)

    def test_the_model_reserves_what_the_allocator_did(self):
        for seed in range(30):
            source, allocator, _ = recorded(seed, before=0)
            self.assertEqual(cairn.torch.read_snapshot(source).modelled(), allocator.peak_reserved)

    def test_files(self):
        source, _, _ = recorded(3)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "snapshot.pickle"
            path.write_bytes(pickle.dumps(source))
            found = cairn.torch.read_snapshot(path)
            self.assertRegex(str(found), r"^\d+ allocations: .* reserved, .* in use, .*; a static plan needs \d")
            table = pathlib.Path(folder) / "buffers.csv"
            found.write_buffers(table)
            rows = [list(map(int, row.split(","))) for row in table.read_text().splitlines()[1:]]
            self.assertEqual([row[1:] for row in rows], found.buffers.tolist())

    def test_bad_files(self):
        source, _, _ = recorded(3)
        broken = [{}, {"device_traces": [], "segments": []}, {"device_traces": [3], "segments": []},
                  {"device_traces": [[{"action": "alloc", "addr": 1, "size": -1}]], "segments": []},
                  {"device_traces": [[{"action": "alloc", "addr": 1, "size": "2"}]], "segments": []},
                  {"device_traces": [[{"action": "alloc", "addr": i, "size": (1 << 48) - 1} for i in range(9)]], "segments": []},
                  {"device_traces": [[]], "segments": [{"device": 0}]}]
        for bad in broken:
            with self.subTest(bad), self.assertRaisesRegex(cairn.InputError, "^snapshot: [^\n]*$"):
                cairn.torch.read_snapshot(bad)
        with self.assertRaisesRegex(cairn.InputError, "^snapshot: is of 1 devices"):
            cairn.torch.read_snapshot(source, device=1)
        with self.assertRaisesRegex(cairn.InputError, "No such file"):
            cairn.torch.read_snapshot("/no/such/file")

    def test_damaged_and_malicious_pickles(self):
        class Malicious:
            def __reduce__(self):
                return os.putenv, ("CAIRN_SNAPSHOT_RAN", "1")

        whole = pickle.dumps(recorded(3, events=30)[0])
        draw = random.Random(0)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "snapshot.pickle"
            path.write_bytes(pickle.dumps({"device_traces": [[]], "segments": Malicious()}))
            with self.assertRaisesRegex(cairn.InputError, "putenv"):
                cairn.torch.read_snapshot(path)
            # a damaged pickle whose length field claims a bytearray of 1 TiB
            path.write_bytes(b"\x80\x05\x96" + (1 << 40).to_bytes(8, "little") + b".")
            with self.assertRaisesRegex(cairn.InputError, "no pickle"):
                cairn.torch.read_snapshot(path)
            refused = 0
            for _ in range(1000):
                data = bytearray(whole)
                for _ in range(draw.randint(1, 4)):
                    data[draw.randrange(len(data))] = draw.randrange(256)
                path.write_bytes(data[:draw.choice([len(data), draw.randrange(len(data))])])
                try:
                    cairn.torch.read_snapshot(path)
                except cairn.InputError:
                    refused += 1
            self.assertGreater(refused, 500)


class Fits(harness.Fresh):
    def setUp(self):
        super().setUp()
        self.model, self.inputs = harness.gpt(layers=3, batch=64, length=128, dropout=0.0)

    def fit(self, device, **options):
        return cairn.torch.will_it_fit(self.model, self.inputs, device, others=1, work_limit=20_000, **options)

    def test_devices_around_what_is_needed(self):
        needed = self.fit("80GiB").without
        self.assertGreaterEqual(needed.reserved, needed.in_use)
        graph = cairn.torch.graph(self.model, self.inputs)
        resident = graph.resident_bytes
        self.assertGreaterEqual(needed.in_use, graph.baseline.peak + resident)
        for device, unscheduled in ((needed.reserved + 1, True), (needed.in_use - 40 * MIB, False)):
            found = self.fit(device)
            self.assertEqual((found.fits, found.budget is None), (True, unscheduled))
            self.assertLessEqual(found.needs.in_use, device)
            self.assertIn("fits", str(found))

    def test_gradients_that_torch_copies(self):
        """Tests weights that the model joins, so that their gradients are columns of one tensor, which torch copies. At
        the end of the backward pass, parameters, this tensor and the copies are in memory."""
        class Joined(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weights = torch.nn.ParameterList(torch.rand(256, 512) for _ in range(8))

            def forward(self, x):
                return (x @ torch.cat(list(self.weights), 1)).square().mean()

        self.model, self.inputs = Joined(), (torch.rand(4, 256),)
        size = sum(p.nbytes for p in self.model.parameters())
        found = self.fit("80GiB", optimizer="sgd")
        self.assertEqual(found.resident["gradients"], size)
        self.assertGreaterEqual(found.without.in_use, 3 * size)
        self.assertLess(found.without.in_use, 3.1 * size)

    def test_the_budget_is_met(self):
        needed = self.fit("80GiB", optimizer=None).without
        found = self.fit(needed.in_use - 40 * MIB, optimizer=None)
        harness.train(self.model, self.inputs, cairn.torch.backend(found.budget, calibrate=False, fallback=False))
        self.assertLessEqual(cairn.torch.last_report().promised, found.budget)

    def test_a_device_on_which_free_segments_are_given_back(self):
        """Tests that a device can suffice although it has less memory than would be reserved in unlimited memory,
        because free segments are given back."""
        fits = self.fit("1GiB")
        needed = fits.needs.reserved + fits.resident["others"]
        for device, text in ((needed, "fits"), (needed - 1, "fits: with unlimited memory, .* would be reserved; .*")):
            self.assertRegex(str(dataclasses.replace(fits, device=device)).splitlines()[-1], f"^{text}$")

    def test_too_small_a_device(self):
        found = self.fit("1MiB")
        self.assertFalse(found.fits)
        self.assertRegex(str(found), "does not fit: a device needs .* under the least budget found")
        again = self.fit(found.needs.reserved + 1)
        self.assertTrue(again.fits)

    def test_optimizers(self):
        reserved = [self.fit("80GiB", optimizer=name).without.in_use for name in (None, "sgd", "momentum", "adamw")]
        self.assertEqual(reserved[0], reserved[1])
        self.assertTrue(reserved[1] < reserved[2] < reserved[3])
        expandable = self.fit("80GiB", expandable_segments=True)
        self.assertEqual(expandable.without.in_use, self.fit("80GiB").without.in_use)

    def test_meta_tensors(self):
        with torch.device("meta"):
            model, inputs = harness.gpt(layers=3, batch=64, length=128, dropout=0.0)
        expected = str(cairn.torch.will_it_fit(self.model, self.inputs, "1GiB"))
        self.assertEqual(str(cairn.torch.will_it_fit(model, inputs, "1GiB")), expected)
        with torch.inference_mode():
            self.assertEqual(str(cairn.torch.will_it_fit(model, inputs, "1GiB")), expected)

    def test_a_search_that_finds_nothing_is_an_answer(self):
        for work in (300, 1000):
            fit = cairn.torch.will_it_fit(self.model, self.inputs, "8MiB", others=0, work_limit=work)
            self.assertFalse(fit.fits)

    def test_wrong_words(self):
        for options, text in (({"device": "60%"}, "^device: "), ({"device": "min"}, "^device: "),
                              ({"device": "0"}, "^device: "), ({"device": "1GiB", "others": "min"}, "^others: "),
                              ({"device": "1GiB", "others": "50%"}, "^others: "), ({"device": "1GiB", "others": -1}, "^others: "),
                              ({"device": "1GiB", "optimizer": "lion"}, "^optimizer: .*'adamw'")):
            with self.assertRaisesRegex(cairn.InputError, text):
                cairn.torch.will_it_fit(self.model, self.inputs, **options)
        self.assertTrue(cairn.torch.will_it_fit(self.model, self.inputs, "80GiB", others=0).fits)
