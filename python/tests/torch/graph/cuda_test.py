"""Tests the CUDA code where no GPU is needed: graphs of fake tensors on a GPU, and the behaviour of torch's allocator and
kernels according to their source code."""

import unittest
import unittest.mock

import cairn
import cairn.torch
import torch
from cairn.torch._graph.layouts import Layouts
from cairn.torch._graph.nondeterministic import repeats_bitwise
from cairn.torch._graph.read import trace_graph
from cairn.torch._memory import events
from torch.fx.experimental.proxy_tensor import make_fx


def traced(function, *inputs):
    """Traces a function of fake tensors. Each of ``inputs`` is (shape, device) or (shape, device, dtype). Returns
    (Trace, FX graph)."""
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
        given = [torch.empty(shape, device=device, dtype=dtype[0] if dtype else None) for shape, device, *dtype in inputs]
        graph = make_fx(function)(*given).graph
    return trace_graph(graph), graph


class Devices(unittest.TestCase):
    """Tests that a budget limits only the device that holds the most bytes."""

    def test_bytes_of_another_device_do_not_count(self):
        def function(x, y):
            return x.sin().cos().sum(), y.sin().cos().sum()

        trace, _ = traced(function, ((1024, 1024), "cuda:0"), ((256, 256), "cpu"))
        alone, _ = traced(lambda x: x.sin().cos().sum(), ((1024, 1024), "cuda:0"))
        self.assertEqual((trace.device, alone.device), ("cuda", "cuda"))
        built, expected = trace.build(), alone.build()
        peak, wanted = (cairn.evaluate(graph, range(graph.node_count)).peak for graph in (built, expected))
        self.assertEqual(peak, wanted)
        self.assertEqual(trace.resident["input"], 4 * 2**20)
        self.assertEqual(trace.elsewhere, {"cpu": 3 * 256 * 256 * 4 + 4})

    def test_the_report_says_what_lies_elsewhere(self):
        report = cairn.torch.GraphReport(
            name="graph 0", device="cuda", operations=1, budget=1, baseline=1, promised=1, lower_bound=None, cost_increase=0.0,
            resident={}, recomputed=[], at_peak=[], peak_operation="", calibrated=True, source="solved", seconds={},
            elsewhere={"cpu": 2048})
        self.assertIn("2.00 KiB on cpu, which is not in the budget", str(report))

    @unittest.skipIf(torch.cuda.device_count() == 1, "torch refuses fake tensors of a GPU that is not there beside one that is")
    def test_several_gpus_are_not_planned(self):
        with self.assertRaisesRegex(NotImplementedError, "cuda:0 and cuda:1, and a budget is of one"):
            traced(lambda x, y: (x.sin(), y.cos()), ((8,), "cuda:0"), ((8,), "cuda:1"))


class Kernels(unittest.TestCase):
    """Tests that operations that use atomic additions are pinned (run only once) on a GPU."""

    def pinned(self, function, *inputs):
        """Returns the names of the pinned operators, apart from those that are pinned because the caller reads their
        results."""
        trace, _ = traced(lambda *given: function(*given).sin().cos(), *inputs)
        return [op.node.target._schema.name for op in trace.operations if op.pinned and op.outputs[0].keep is False]

    def test_sums_at_indices(self):
        def pinned(device):
            given = ((64, 8), device), ((64,), device, torch.int64), ((64, 8), device)
            return self.pinned(lambda x, i, y: x.index_add(0, i, y), *given)

        self.assertEqual((pinned("cuda:0"), pinned("cpu")), (["aten::index_add"], []))
        with unittest.mock.patch("torch.are_deterministic_algorithms_enabled", return_value=True):
            self.assertEqual(pinned("cuda:0"), [])

    def test_convolutions(self):
        aten = torch.ops.aten
        given = ((2, 4, 8, 8), "cuda:0"), ((4, 4, 3, 3), "cuda:0")

        def backward(x, w):
            return aten.convolution_backward(x, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, False, False])[0]

        def convolution(x, w, transposed):
            return aten.convolution(x, w, None, [1, 1], [1, 1], [1, 1], transposed, [0, 0], 1)

        self.assertEqual(self.pinned(backward, *given), ["aten::convolution_backward"])
        self.assertEqual(self.pinned(lambda x, w: convolution(x, w, False), *given), [])
        self.assertEqual(self.pinned(lambda x, w: convolution(x, w, True), *given), ["aten::convolution"])
        with torch.backends.cudnn.flags(deterministic=True):
            self.assertEqual(self.pinned(backward, *given), [])

    def test_scans_of_floating_point_numbers(self):
        self.assertEqual(self.pinned(lambda x: x.cumsum(0), ((64,), "cuda:0")), ["aten::cumsum"])
        self.assertEqual(self.pinned(lambda x: x.cumsum(0), ((64,), "cuda:0", torch.int64)), [])

    def test_most_may_run_again(self):
        _, graph = traced(lambda x, y: torch.nn.functional.gelu((x @ y).softmax(-1)), ((8, 8), "cuda:0"), ((8, 8), "cuda:0"))
        self.assertTrue(all(repeats_bitwise(node) for node in graph.nodes if node.op == "call_function"))


class Allocator(unittest.TestCase):
    """Tests code about CUDA's caching allocator, whose behaviour is known from its source code."""

    def test_events_get_the_time_at_which_the_profiler_saw_them(self):
        """Tests that events of the allocator get the times of the profiler's events. The profiler does not record the
        allocation of another thread (at address 40), nor frees (negative sizes)."""
        history = [(10, 100), (20, 513), (10, -100), (40, 512), (10, 1), (20, -513)]
        profiled = [(1000, 1024, 10), (2000, 1024, 20), (3000, 512, 10)]
        self.assertEqual(events.timed(history, profiled), [
            (1000, 512, 10), (2000, 1024, 20), (2000, -512, 10), (2000, 512, 40), (3000, 512, 10), (3000, -1024, 20)])
        self.assertEqual(events.timed([(10, -5)], []), [(0, -512, 10)])

    def test_a_result_that_lies_in_the_memory_of_the_host(self):
        """Tests a result in the host's memory that the tracer assumes to be on the GPU, such as the seed of an
        attention's dropout. After a measurement, its layout must name the host as its device."""
        with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
            given = torch.empty(4, 4, device="cuda:0"), torch.empty(4, 4, device="cuda:0")
            graph = make_fx(lambda x, y: torch.aminmax(x @ y))(*given).graph
        layouts = Layouts()
        for node in graph.nodes:
            if node.op == "placeholder":
                layouts.given(node)
            elif node.target is torch.ops.aten.mm.default:
                layouts.measured(node, [[4, 1]], ["cuda"], [None])
                self.assertTrue(layouts.as_traced(node))
            elif node.target is torch.ops.aten.aminmax.default:
                layouts.measured(node, [[], []], ["cuda", "cpu"], [None, None])
                self.assertEqual([value.device.type for value in layouts.value(node)], ["cuda", "cpu"])
                return
        self.fail(f"no such operations: {graph}")
