"""Tests that kernels and allocations can be measured in the installed torch, and that measuring prints nothing and
changes no settings."""

import os
import subprocess
import sys
import threading
import unittest
import unittest.mock

import torch
from cairn.torch import _private


class Measuring(unittest.TestCase):
    def test_allocations(self):
        self.assertFalse(_private.profiler_runs())
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiler:
            self.assertTrue(_private.profiler_runs())
            with torch.profiler.record_function("cairn:block"):
                x = torch.ones(1000)
            address = x.untyped_storage().data_ptr()
            del x
        events = _private.allocations(profiler)
        block = next(i for i, e in enumerate(events) if e[4] == "cairn:block")
        sizes = [e[1:4] for e in events[block:] if e[1]]
        self.assertEqual(sizes, [(4000, address, "cpu"), (-4000, address, "cpu")])

    def test_a_profiler_that_warms_up_and_one_of_another_thread(self):
        """Tests the phases in which torch itself does not call a profiler active, but a second one would take its
        trace."""
        found = []
        schedule = torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=1)
        with _private.quiet_profiler():
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule) as profiler:
                for _ in range(4):
                    found.append(_private.profiler_runs())
                    profiler.step()
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
                thread = threading.Thread(target=lambda: found.append(_private.profiler_runs()))
                thread.start()
                thread.join()
        self.assertEqual(found, [False, True, True, False, True])
        self.assertFalse(_private.profiler_runs())

    def test_requested_bytes(self):
        self.assertIsNone(_private.requested_bytes(torch.device("cpu")))
        allocator = {"requested_bytes": {"all": {"current": 5, "peak": 7, "allocated": 30, "freed": 25}}}
        with unittest.mock.patch.multiple(
                torch.cuda, is_initialized=lambda: True, get_allocator_backend=lambda: "native",
                memory_stats_as_nested_dict=lambda device: allocator):
            self.assertEqual(_private.requested_bytes(torch.device("cuda")), (5, 7))
        if torch.cuda.is_available():
            block = torch.empty(1000, device="cuda")
            present, highest = _private.requested_bytes(block.device)
            self.assertLessEqual(block.nbytes, present)
            self.assertLessEqual(present, highest)

    def test_quiet_profiler(self):
        before = os.environ.get("KINETO_LOG_LEVEL")
        with _private.quiet_profiler():
            self.assertIn("KINETO_LOG_LEVEL", os.environ)
        self.assertEqual(os.environ.get("KINETO_LOG_LEVEL"), before)
        program = ("import torch; from cairn.torch import measure_peak; "
                   "print(measure_peak(lambda: torch.ones(1000))[1])")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              env={k: v for k, v in os.environ.items() if k != "KINETO_LOG_LEVEL"})
        self.assertEqual((done.stdout, done.stderr), ("4000\n", ""))

    def test_quiet_allocator(self):
        program = ("import torch; from cairn.torch import _private; kept = [torch.ones(1000), torch.ones(1000)]\n"
                   "with _private.quiet_allocator, _private.quiet_profiler():\n"
                   "    with _private.memory_profiler():\n"
                   "        torch.ones(1); kept.clear()\n"
                   "print(_private.quiet_allocator.entered, _private.measuring._log_level().value)")
        environment = {k: v for k, v in os.environ.items() if k not in ("KINETO_LOG_LEVEL", "TORCH_CPP_LOG_LEVEL")}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              env=environment)
        self.assertEqual((done.stdout, done.stderr), ("0 1\n", ""))
        loud = program.replace("with _private.quiet_allocator, ", "with ")
        done = subprocess.run([sys.executable, "-c", loud], capture_output=True, text=True, env=environment)
        self.assertIn("Memory block of unknown size", done.stderr)

    def test_kernel_settings(self):
        before = _private.kernel_settings()
        matmul = torch.backends.cuda.matmul
        changes = [(torch.backends.mkldnn, "enabled", False), (torch.backends.cudnn, "deterministic", True),
                   (matmul, "allow_fp16_reduced_precision_reduction", False),
                   (matmul, "allow_bf16_reduced_precision_reduction", False), (matmul, "allow_fp16_accumulation", True)]
        for owner, name, value in changes:
            with self.subTest(name):
                kept = getattr(owner, name)
                setattr(owner, name, value)
                try:
                    self.assertNotEqual(_private.kernel_settings(), before)
                finally:
                    setattr(owner, name, kept)
        with torch.backends.nnpack.flags(enabled=not torch._C._get_nnpack_enabled()):
            self.assertNotEqual(_private.kernel_settings(), before)
        cuda = torch.backends.cuda
        for turn, now in ((cuda.enable_cudnn_sdp, cuda.cudnn_sdp_enabled()),
                          (cuda.allow_fp16_bf16_reduction_math_sdp, cuda.fp16_bf16_reduction_math_sdp_allowed())):
            turn(not now)
            self.assertNotEqual(_private.kernel_settings(), before)
            turn(now)
        for name in ("CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA"):
            with unittest.mock.patch.dict(os.environ, {name: ":4096:8"}):
                self.assertNotEqual(_private.kernel_settings(), before)
        self.assertEqual(_private.kernel_settings(), before)

    def test_kernel_settings_where_old_and_new_ones_are_mixed(self):
        """Tests that kernel_settings() can be read and notices changes even if new settings have been set. Torch then
        raises an error when the old setting is read."""
        program = ("import torch; from cairn.torch import _private; before = _private.kernel_settings(); "
                   "torch.backends.cuda.matmul.fp32_precision = 'tf32'; torch.backends.mkldnn.matmul.fp32_precision = 'bf16'; "
                   "print(_private.kernel_settings() != before)")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual(done.stdout, "True\n", done.stderr)

    @unittest.skipUnless(torch.cuda.is_available(), "there is no GPU")
    def test_history_of_the_allocator(self):
        torch.ones(1, device="cuda")
        with _private.AllocatorHistory() as history:
            self.assertFalse(_private.history_can_be_recorded())
            a = torch.empty(1000, device="cuda")
            b = torch.empty(3 * 2**20 + 4, dtype=torch.uint8, device="cuda")
            where = a.data_ptr(), b.data_ptr()
            del a
        self.assertEqual(history.events, [(where[0], 4000), (where[1], 3 * 2**20 + 4), (where[0], -4000)])
        self.assertTrue(_private.history_can_be_recorded())

    @unittest.skipUnless(torch.cuda.is_available(), "there is no GPU")
    def test_make_workspaces(self):
        _private.make_workspaces()
        before = torch.cuda.memory_allocated()
        _private.make_workspaces()
        self.assertEqual(torch.cuda.memory_allocated(), before)

    def test_is_out_of_memory(self):
        with self.assertRaises(RuntimeError) as raised:
            torch.empty(2**60, dtype=torch.uint8)
        self.assertTrue(_private.is_out_of_memory(raised.exception))
        self.assertFalse(_private.is_out_of_memory(RuntimeError("shapes")))
