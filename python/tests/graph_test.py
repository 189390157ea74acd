"""Tests graphs: building them, viewing them as arrays, writing and reading them, and converting them to networkx and
back."""

import gc
import pathlib
import pickle
import tempfile
import unittest
import warnings

import cairn
import networkx
import numpy as np
from support import chain, random_graph


def diamond():
    builder = cairn.GraphBuilder("diamond")
    a = builder.add("a", size=8, cost=5)
    b = builder.add("b", size=16, cost=9, scratch=3, inputs=[a])
    c = builder.add("c", size=4, cost=2, inputs=[b])
    builder.add("d", size=2, cost=2, keep=True, inputs=[a, c])
    return builder.build()


class Building(unittest.TestCase):
    def test_a_worked_example(self):
        graph = diamond()
        self.assertEqual((graph.name, graph.node_count, graph.value_count, graph.edge_count, len(graph)),
                         ("diamond", 4, 4, 4, 4))
        self.assertEqual(graph.sizes.tolist(), [8, 16, 4, 2])
        self.assertEqual(graph.costs.tolist(), [5, 9, 2, 2])
        self.assertEqual(graph.scratch.tolist(), [0, 3, 0, 0])
        self.assertEqual(graph.input_order.tolist(), [0, 1, 2, 3])
        self.assertEqual((graph.baseline.peak, graph.baseline.cost, graph.baseline.recomputed), (28, 18, 0))
        self.assertEqual(graph.peak_lower_bound, 27)
        node = graph.node(3)
        self.assertEqual((node.name, node.inputs, node.keep, node.op), ("d", (0, 2), True, None))
        self.assertEqual(graph.node_id("c"), 2)
        self.assertIn("diamond", repr(graph))

    def test_several_outputs_in_place_and_control_edges(self):
        builder = cairn.GraphBuilder()
        x = builder.add("x", size=100)
        norm = builder.add("norm", inputs=[x], outputs=[cairn.Output(100, inplace=x, name="y"), cairn.Output(8, name="mean"), 4])
        relu = builder.add("relu", size=100, inputs=[(norm, 0)], inplace=(norm, 0))
        side = builder.add("side", size=0, pinned=True)
        loss = builder.add("loss", size=4, keep=True, inputs=[relu, (norm, 1)])
        builder.add_control_input(loss, side)
        graph = builder.build()
        self.assertFalse(graph.single_output)
        self.assertEqual(graph.outputs(norm), (cairn.Output(100, False, x, "y"), cairn.Output(8, name="mean"), cairn.Output(4)))
        self.assertEqual(graph.inputs(loss), (relu, (norm, 1), side))
        stays = cairn.GraphBuilder()
        stays.add("x", outputs=[cairn.Output(8, stays=True), cairn.Output(8)])
        self.assertEqual([output.stays for output in stays.build().node(0).outputs], [True, False])
        self.assertEqual(graph.node(relu).outputs[0].inplace, (norm, 0))
        self.assertEqual(graph.value_begin.tolist(), [0, 1, 4, 5, 6, 7])
        self.assertEqual(graph.pinned.tolist(), [False, False, False, True, False])
        self.assertIn(side, graph.predecessors(loss).tolist())

    def test_residents_are_counted(self):
        builder = cairn.GraphBuilder()
        builder.add("a", size=1)
        builder.add_resident("w", 4096, "weight")
        builder.add_resident("odd", 7)
        builder.add_resident_bytes(10)
        graph = builder.build()
        self.assertEqual(graph.resident_bytes, 4096 + 7 + 10)
        self.assertEqual([r.kind for r in graph.residents], ["weight", "constant"])

    def test_bad_graphs_are_refused_by_name(self):
        def cycle(builder):
            a = builder.add("first")
            builder.add_input(a, builder.add("second", inputs=[a]))

        bad = {
            "cycle": cycle,
            "first": lambda builder: (builder.add("first"), builder.add("first")),
            "negative": lambda builder: builder.add("x", size=-1),
            "99": lambda builder: builder.add("x", inputs=[99]),
            "size must be a whole number": lambda builder: builder.add("x", size=1.5),
            "out of range": lambda builder: builder.add("x", size=1 << 70),
            "an input": lambda builder: builder.add("x", inputs=["y"]),
            "(1, 2, 3)": lambda builder: builder.add("x", inputs=[(1, 2, 3)]),
            "give size, keep and inplace with each": lambda builder: builder.add("x", size=5, outputs=[1]),
            "kind is": lambda builder: builder.add_resident("w", 4, "wieght"),
            "node 5 was not added": lambda builder: builder.add_control_input(5, 6),
        }
        for words, make in bad.items():
            with self.subTest(words=words), self.assertRaises(cairn.InputError) as caught:
                builder = cairn.GraphBuilder()
                make(builder)
                builder.build()
            self.assertIn(words, str(caught.exception))
            self.assertNotIn("\n", str(caught.exception))
            self.assertEqual(caught.exception.exit_code, 2)
            self.assertIsInstance(caught.exception, ValueError)
        with self.assertRaisesRegex(cairn.InputError, "did you mean 'a'|no node 'aa'"):
            diamond().node_id("aa")
        with self.assertRaisesRegex(cairn.InputError, "no node 4"):
            diamond().node(4)


class Views(unittest.TestCase):
    NAMES = ["sizes", "costs", "scratch", "value_sizes", "input_order", "pinned", "value_kept", "producers",
             "value_begin", "input_begin", "input_values"]

    def test_arrays_are_views_that_cannot_be_written(self):
        graph = random_graph(1)
        for name in self.NAMES:
            with self.subTest(name=name):
                first, second = getattr(graph, name), getattr(graph, name)
                self.assertEqual(first.__array_interface__["data"][0], second.__array_interface__["data"][0])
                self.assertFalse(first.flags.owndata)
                with self.assertRaises(ValueError):
                    first[0] = 1
        self.assertEqual(graph.sizes.dtype, np.int64)
        self.assertEqual(graph.input_order.dtype, np.int32)

    def test_arrays_keep_their_graph(self):
        for name in self.NAMES:
            with self.subTest(name=name):
                graph = random_graph(2)
                expected = getattr(graph, name).tolist()
                array = getattr(graph, name)
                del graph
                gc.collect()
                # new graphs overwrite the memory of `graph` if it was freed too early
                [random_graph(seed) for seed in range(3, 6)]
                self.assertEqual(array.tolist(), expected)

    def test_steps_are_a_view_that_keeps_the_schedule(self):
        schedule = cairn.Schedule(range(1000))
        steps = schedule.steps
        self.assertEqual(steps.__array_interface__["data"], schedule.steps.__array_interface__["data"])
        del schedule
        gc.collect()
        self.assertEqual(steps.tolist(), list(range(1000)))
        self.assertEqual(steps.dtype, np.int32)

    def test_columns_say_what_nodes_say(self):
        for seed in range(10):
            graph = random_graph(seed)
            nodes = [graph.node(v) for v in range(graph.node_count)]
            self.assertEqual(graph.sizes.tolist(), [node.size for node in nodes])
            self.assertEqual(graph.costs.tolist(), [node.cost for node in nodes])
            self.assertEqual(graph.pinned.tolist(), [node.pinned for node in nodes])
            self.assertEqual(graph.value_sizes.tolist(), [output.size for node in nodes for output in node.outputs])
            self.assertEqual(graph.value_kept.tolist(), [output.keep for node in nodes for output in node.outputs])
            inputs = [graph.input_values[graph.input_begin[v]:graph.input_begin[v + 1]].tolist() for v in range(len(nodes))]
            values = [[graph.value_begin[ref[0]] + ref[1] if isinstance(ref, tuple) else graph.value_begin[ref]
                       for ref in node.inputs] for node in nodes]
            self.assertEqual(inputs, values)

    def test_a_view_outlives_the_graph_and_its_base(self):
        graph = diamond()
        view = graph.sizes
        base = view.base
        self.assertIsNotNone(base)
        del graph, base
        gc.collect()
        self.assertEqual(view[1], 16)


class RoundTrips(unittest.TestCase):
    def same(self, a, b):
        self.assertEqual(a.fingerprint, b.fingerprint)
        self.assertEqual(a.costs.tolist(), b.costs.tolist())
        self.assertEqual(a.input_order.tolist(), b.input_order.tolist())
        self.assertEqual([a.node(v) for v in range(len(a))], [b.node(v) for v in range(len(b))])
        self.assertEqual((a.name, a.resident_bytes, a.cost_unit), (b.name, b.resident_bytes, b.cost_unit))

    def test_json(self):
        for seed in range(20):
            graph = random_graph(seed)
            self.same(graph, cairn.parse_graph(graph.to_json()))

    def test_files(self):
        graph = random_graph(3)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            graph.write(folder / "graph.json")
            self.same(graph, cairn.read_graph(folder / "graph.json"))
            graph.write(folder / "graph.dot")
            self.assertIn("digraph", (folder / "graph.dot").read_text())
            graph.write(folder / "graph.gr")
            undirected = cairn.read_graph(str(folder / "graph.gr"))
            self.assertEqual(undirected.node_count, graph.node_count)
            with self.assertRaisesRegex(cairn.InputError, "none.json"):
                cairn.read_graph(folder / "none.json")
            with self.assertRaisesRegex(cairn.InputError, "no/folder"):
                graph.write(folder / "no/folder/graph.json")

    def test_pickle(self):
        graph = random_graph(4)
        self.same(graph, pickle.loads(pickle.dumps(graph)))

    def test_networkx(self):
        for seed in range(20):
            graph = random_graph(seed)
            self.same(graph, cairn.from_networkx(cairn.to_networkx(graph)))
        builder = cairn.GraphBuilder("one output")
        builder.add("x", outputs=[cairn.Output(8, stays=True, name="y")])
        graph = builder.build()
        self.same(graph, cairn.from_networkx(cairn.to_networkx(graph)))

    def test_networkx_of_other_hands(self):
        theirs = networkx.DiGraph()
        theirs.add_node("in", bytes=10, time=1)
        theirs.add_node("out", bytes=4, time=2, keep=True)
        theirs.add_edge("in", "mid")
        theirs.add_edge("mid", "out")
        theirs.nodes["mid"].update(bytes=7)
        graph = cairn.from_networkx(theirs, size="bytes", cost="time", name="theirs")
        self.assertEqual(graph.sizes.tolist(), [10, 4, 7])
        self.assertEqual(graph.costs.tolist(), [1, 2, 0])
        self.assertEqual(graph.input_order.tolist(), [0, 2, 1])
        self.assertEqual(graph.node_name(2), "mid")
        for bad in (networkx.Graph(), networkx.MultiDiGraph()):
            with self.assertRaises(cairn.InputError):
                cairn.from_networkx(bad)

    def test_arrays(self):
        for seed in range(10):
            graph = random_graph(seed, several=False)
            if any(node.outputs[0].inplace is not None for node in map(graph.node, range(len(graph)))):
                continue
            columns = dict(sizes=graph.sizes, costs=graph.costs, scratch=graph.scratch, keep=graph.value_kept,
                           pinned=graph.pinned, input_begin=graph.input_begin, inputs=graph.input_values)
            again = cairn.Graph.from_arrays(graph.name, **columns)
            self.assertEqual(again.fingerprint, graph.fingerprint)
            as_lists = {name: column.tolist() for name, column in columns.items()}
            self.assertEqual(cairn.Graph.from_arrays(**as_lists).fingerprint, graph.fingerprint)
            strided = {name: np.repeat(column, 2)[::2] for name, column in columns.items()}
            self.assertEqual(cairn.Graph.from_arrays(**strided).fingerprint, graph.fingerprint)
        for words, columns in {"costs has 1": dict(sizes=[1, 2], costs=[1], input_begin=[0, 0, 0], inputs=[]),
                               "3 entries": dict(sizes=[1, 2], input_begin=[0, 0], inputs=[]),
                               "not fall": dict(sizes=[1, 2], input_begin=[0, 1, 0], inputs=[]),
                               "whole numbers": dict(sizes=5, input_begin=[0], inputs=[]),
                               "whole number": dict(sizes=np.array([1.5]), input_begin=[0, 0], inputs=[])}.items():
            with self.subTest(words=words), self.assertRaisesRegex(cairn.InputError, words):
                cairn.Graph.from_arrays(**columns)

    def test_what_a_reader_notices_is_a_warning(self):
        text = diamond().to_json().replace('"scratch":3', '"scratch":3,"scrach":4')
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cairn.parse_graph(text)
        self.assertEqual(len(caught), 1)
        self.assertIn("scrach", str(caught[0].message))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaises(UserWarning):
                cairn.parse_graph(text)


class Schedules(unittest.TestCase):
    def test_evaluate(self):
        graph = diamond()
        found = cairn.evaluate(graph, [0, 1, 2, 0, 3])
        self.assertEqual((found.peak, found.cost, found.recomputed, found.valid, found.defect), (27, 23, 1, True, ""))
        for steps in (np.array([0, 1, 2, 0, 3]), np.array([0, 1, 2, 0, 3], dtype=np.uint8), (0, 1, 2, 0, 3),
                      cairn.Schedule([0, 1, 2, 0, 3])):
            self.assertEqual(cairn.evaluate(graph, steps).peak, 27)
        wrong = cairn.evaluate(graph, [1, 2, 3])
        self.assertFalse(wrong)
        self.assertIn("'b'", wrong.defect)
        with self.assertRaises(cairn.InputError):
            cairn.evaluate(graph, [0.5])
        with self.assertRaises(cairn.InputError):
            cairn.evaluate(graph, [1 << 40])

    def test_profile_and_lifetimes(self):
        graph = diamond()
        self.assertEqual(cairn.profile(graph, [0, 1, 2, 3]).tolist(), [8, 27, 28, 14])
        lives = cairn.lifetimes(graph, [0, 1, 2, 0, 3])
        self.assertEqual(lives["node"].tolist(), [0, 1, 2, 0, 3])
        self.assertEqual(lives["last"].tolist(), [1, 2, 4, 4, 5])
        with self.assertRaises(cairn.InputError):
            cairn.profile(graph, [3])

    def test_the_profile_is_the_sum_of_lifetimes(self):
        for seed in range(10):
            graph = random_graph(seed)
            steps = graph.input_order
            during = np.zeros(len(steps), dtype=np.int64)
            for node, output, first, last in cairn.lifetimes(graph, steps).tolist():
                during[first:last + 1] += graph.outputs(node)[output].size
            self.assertEqual((during + graph.scratch[steps]).tolist(), cairn.profile(graph, steps).tolist())

    def test_files(self):
        graph = chain(5)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "s.json"
            cairn.write_schedule(path, graph, graph.input_order)
            self.assertEqual(cairn.read_schedule(path, graph), cairn.baseline_schedule(graph))
            plan = cairn.plan(graph, graph.input_order)
            cairn.write_plan(path, graph, plan)
            self.assertEqual(cairn.read_plan(path, graph).buffers.tolist(), plan.buffers.tolist())
            with self.assertRaises(cairn.InputError):
                cairn.read_plan(path, chain(6))

    def test_plans_are_right(self):
        for seed in range(10):
            graph = random_graph(seed)
            plan = cairn.plan(graph, graph.input_order, alignment=16)
            self.assertEqual(cairn.check_plan(graph, graph.input_order, plan), "")
            buffers = plan.buffers
            self.assertEqual(max((buffers["offset"] + buffers["size"]).tolist(), default=0), plan.bytes)
            self.assertGreaterEqual(plan.bytes, plan.lower_bound)
            self.assertTrue((buffers["offset"] % 16 == 0).all())


if __name__ == "__main__":
    unittest.main()
