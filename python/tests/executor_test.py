"""Tests cairn.Executor: numpy arrays as inputs and outputs, training steps, memory, and rejection of bad input."""

import os
import signal
import threading
import tracemalloc
import unittest

import cairn
import numpy as np
from support import ticks_during

SMALL = {"batch": 8, "layers": 3, "width": 32, "inputs": 24, "outputs": 16}


def ffn(**options):
    return cairn.models.build("ffn", **{**SMALL, **options})


def resnet(**options):
    return cairn.models.build("resnet18", **{"batch": 4, "image": 16, "classes": 10, "width": 4, "optimizer": "adamw",
                                             **options})


def gpt2(**options):
    return cairn.models.build("gpt2", **{"batch": 4, "seq": 16, "layers": 3, "width": 32, "heads": 2, "vocab": 62,
                                         "optimizer": "adamw", **options})


def executor(graph, *arguments, **options):
    return cairn.Executor(graph, *arguments, backend="host", **options)


def weights(made):
    return {name: made.get(name) for name, tensor in made.residents.items() if tensor.kind in ("weight", "optimizer")}


class Arrays(unittest.TestCase):
    def test_residents_are_described(self):
        tensors = executor(resnet()).residents
        self.assertEqual(tensors["images"], ((4, 16, 16, 3), np.float32, "data"))
        self.assertEqual(tensors["labels"], ((4,), np.int32, "data"))
        self.assertEqual(tensors["fc.weight"], ((32, 10), np.float32, "weight"))
        self.assertEqual(tensors["fc.weight.exp_avg"].kind, "optimizer")

    def test_what_is_set_is_read(self):
        made = executor(ffn(optimizer="sgd"))
        draw = np.random.default_rng(1)
        for name, tensor in made.residents.items():
            values = draw.standard_normal(tensor.shape, np.float32)
            made.set(name, values)
            got = made.get(name)
            np.testing.assert_array_equal(got, values)
            self.assertEqual((got.shape, got.dtype), (tensor.shape, tensor.dtype))
            room = np.empty_like(values)
            self.assertIs(made.get(name, out=room), room)
            np.testing.assert_array_equal(room, values)

    def test_a_mapping_that_is_refused_sets_nothing(self):
        made = executor(ffn())
        before = made.get("inputs")
        with self.assertRaisesRegex(cairn.InputError, "'targets'.* is NaN"):
            made.set({"inputs": np.ones((8, 24)), "targets": np.full((8, 16), np.nan)})
        np.testing.assert_array_equal(made.get("inputs"), before)

    def test_numbers_that_become_infinite_are_refused(self):
        made = executor(ffn())
        with self.assertRaisesRegex(cairn.InputError, r"'inputs' has elements of type float32, but 1e\+39 is too large"):
            made.set("inputs", np.full((8, 24), 1e39))
        made.set("inputs", np.full((8, 24), np.inf))

    def test_no_step_no_output(self):
        made = executor(ffn())
        for begin_again in (lambda: None, made.reset):
            begin_again()
            with self.assertRaisesRegex(cairn.InputError, "no step has been completed since"):
                made.output("loss")
            made.step()
            made.output("loss")

    def test_a_child_process_executes_and_ends(self):
        graph = gpt2()
        answer = cairn.solve(graph, "45%", time_limit=1, link="10GB/s,1us")
        self.assertTrue(answer.schedule.transfers.evicts)
        made = cairn.Executor(graph.with_host_memory("10GB/s,1us"), schedule=answer, backend="host")
        made.step()
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # ends a child that hangs
            made.reset()
            made.step()
            del made
            os._exit(0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        made.reset()
        made.step()

    def test_room_that_is_only_copied_is_refused(self):
        made = executor(ffn())
        with self.assertRaisesRegex(cairn.InputError, "out= must be an array; list gives only copies"):
            made.get("inputs", out=[[np.float32(0)] * 24] * 8)

    def test_a_step_computes_with_what_was_set(self):
        made = executor(ffn(layers=1))
        draw = np.random.default_rng(2)
        x, y = draw.standard_normal((8, 24), np.float32), draw.standard_normal((8, 16), np.float32)
        w, b = draw.standard_normal((24, 16), np.float32), draw.standard_normal(16, np.float32)
        made.set({"inputs": x, "targets": y, "layer0.weight": w, "layer0.bias": b})
        report = made.step()
        self.assertGreater(report.seconds, 0)
        self.assertGreater(report.live_peak_bytes, 0)
        np.testing.assert_allclose(made.output("loss"), [np.square(x @ w + b - y).mean()], rtol=1e-5)

    def test_outputs_that_the_graph_does_not_keep(self):
        graph = ffn(layers=2)
        with self.assertRaisesRegex(cairn.InputError, r"'layer1' is not kept; .*with_kept\(\['layer1'\]\)"):
            executor(graph).output("layer1")
        made = executor(graph.with_kept(["layer1", graph.node_id("layer0")]))
        made.step()
        self.assertEqual((made.output("layer1").shape, made.output("layer0").shape), ((8, 16), (8, 32)))
        room = np.empty((8, 16), np.float32)
        self.assertIs(made.output("layer1", out=room), room)
        np.testing.assert_allclose(np.square(room - made.get("targets")).mean(), made.output("loss")[0], rtol=1e-5)
        with self.assertRaisesRegex(cairn.InputError, "no node 'layre1'; did you mean 'layer1'"):
            graph.with_kept(["layre1"])

    def test_nothing_is_copied_in_between(self):
        made = executor(cairn.models.build("ffn", batch=4096, inputs=1024, layers=1, outputs=1))
        shape = made.residents["inputs"].shape
        values, room = np.ones(shape, np.float32), np.empty(shape, np.float32)
        fixed = values.copy()
        fixed.flags.writeable = False

        def allocated(work):
            tracemalloc.start()
            work()
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return peak

        few = values.nbytes // 100
        self.assertLess(allocated(lambda: made.set("inputs", values)), few)
        self.assertLess(allocated(lambda: made.set("inputs", fixed)), few)
        self.assertLess(allocated(lambda: made.stage("inputs", values)), few)
        self.assertLess(allocated(lambda: made.get("inputs", out=room)), few)
        self.assertLess(allocated(lambda: made.get("inputs")), values.nbytes + few)
        # An array that is not contiguous is copied first, so set() needs more memory than the array has.
        self.assertGreater(allocated(lambda: made.set("inputs", values.T.copy().T)), values.nbytes)

    def test_other_arrays_are_converted(self):
        made = executor(resnet())
        tensor = made.residents["images"]
        values = np.arange(np.prod(tensor.shape)).reshape(tensor.shape) % 200
        for dtype in (np.float64, np.float16, np.int64, np.uint8):
            made.set("images", values.astype(dtype))
            np.testing.assert_array_equal(made.get("images"), values.astype(np.float32))
        turned = np.asfortranarray(values.astype(np.float32))
        made.set("images", turned)
        np.testing.assert_array_equal(made.get("images"), turned)
        made.set("labels", [1, 2, 3, 9])
        np.testing.assert_array_equal(made.get("labels"), [1, 2, 3, 9])
        made.set("learning_rate", 0.25)
        self.assertEqual(made.get("learning_rate").tolist(), [0.25])

    def test_bad_arrays(self):
        made = executor(resnet())
        images = np.zeros((4, 16, 16, 3), np.float32)
        broken = images.copy()
        broken[1, 2, 3, 0] = np.nan
        before = made.get("images")

        class OnDevice:
            def __dlpack_device__(self):
                return 2, 0  # the number of the device type CUDA in DLPack, and the number of the device

        for values, words in ((images.transpose(0, 3, 1, 2), r"'images' has the shape \[4, 16, 16, 3\], .* \[4, 3, 16"),
                              (images[:2], r"but the array has \[2, 16, 16, 3\]"), (broken, "element 873 .* is NaN"),
                              (images.astype(complex), "complex128 is not converted"), ("text", "is not converted"),
                              ([[1], [2, 3]], "not an array"), (None, "is not converted"),
                              (OnDevice(), "'images': the array is in memory of a GPU")):
            for put in (made.set, made.stage):
                with self.subTest(words=words), self.assertRaisesRegex(cairn.InputError, words) as caught:
                    put("images", values)
                self.assertNotIn("\n", str(caught.exception))
        made.step()
        np.testing.assert_array_equal(made.get("images"), before)
        for values, words in (([1.5] * 4, "int32, which float64 is not converted to"), ([1, 2, 3, 10], "10"),
                              ([1, 2, 3, 1 << 40], "too large"), ([1, 2, 3, -1], "-1")):
            with self.subTest(words=words), self.assertRaisesRegex(cairn.InputError, words):
                made.set("labels", values)

    def test_nothing_is_set_if_a_name_or_a_shape_of_several_is_wrong(self):
        made = executor(resnet())
        before = made.get("labels")
        for other in ({"image": 0}, {"images": np.zeros(3)}):
            with self.assertRaises(cairn.InputError):
                made.set({"labels": (before + 1) % 10, **other})
            np.testing.assert_array_equal(made.get("labels"), before)

    def test_bad_names_and_room(self):
        made = executor(resnet())
        for call in (made.get, lambda name: made.set(name, 1), lambda name: made.stage(name, 1)):
            with self.assertRaisesRegex(cairn.InputError, "no resident tensor 'imagse'; did you mean 'images'"):
                call("imagse")
        with self.assertRaisesRegex(cairn.InputError, "no node 'lass'"):
            made.output("lass")
        with self.assertRaisesRegex(cairn.InputError, "no output 3"):
            made.output("loss", 3)
        with self.assertRaisesRegex(cairn.InputError, "text, not 3"):
            made.get(3)
        with self.assertRaisesRegex(cairn.InputError, "either"):
            made.set({"images": 1}, 2)
        fixed = np.zeros(4, np.int32)
        fixed.flags.writeable = False
        for room, words in ((np.zeros(4, np.int64), "int32 with shape .4., but out= is one of int64"),
                            (np.zeros(5, np.int32), r"\[5\]"), (np.zeros(8, np.int32)[::2], "contiguous"),
                            (fixed, "writeable")):
            with self.assertRaisesRegex(cairn.InputError, words):
                made.get("labels", out=room)


class Streams(unittest.TestCase):
    def test_the_host_has_none(self):
        class Stream:
            cuda_stream = 1 << 40

        for stream in (1 << 40, Stream()):
            with self.assertRaisesRegex(cairn.InputError, "without streams of CUDA; drop stream= or use backend='cuda'$"):
                executor(ffn(), stream=stream)
        for stream, words in ((0, "stream=0 is CUDA's default stream"), (True, "not True"), (-1, "not -1"),
                              (1 << 64, "not 18446744073709551616"), ("1", "handle of a CUDA stream, .* not '1'")):
            with self.subTest(words=words), self.assertRaisesRegex(cairn.InputError, words):
                executor(ffn(), stream=stream)


    def test_the_number_of_streams(self):
        graph = ffn(optimizer="sgd", inputs=64, outputs=10)
        for make in (lambda **options: executor(graph, **options),
                     lambda **options: cairn.run(graph, "100%", backend="host", **options),
                     lambda **options: cairn.train(graph, "digits", steps=1, backend="host", **options)):
            for options, words in (({"streams": 2}, "one stream only; drop streams= or use backend='cuda'$"),
                                   ({"streams": 0}, "streams=0 must be at least 1"),
                                   ({"streams": "2"}, "streams must be a whole number"),
                                   ({"overlap_steps": 2}, "overlap_steps= is for steps on several streams; "
                                                          "give streams=2 or drop it"),
                                   ({"overlap_steps": -1}, "overlap_steps=-1 must be at least 0")):
                with self.subTest(words=words), self.assertRaisesRegex(cairn.InputError, words):
                    make(**options)


class OnlyDlpack:
    """An array of a library that shares memory of the host only by DLPack, not by numpy's protocols."""

    def __init__(self, host):
        self.host = host

    def __dlpack_device__(self):
        return self.host.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.host.__dlpack__(**options)


class Arenas(unittest.TestCase):
    def test_memory_of_the_caller_is_used(self):
        graph = resnet()
        own = executor(graph)
        own.step()
        room = own.planned_bytes + 255
        for memory in (np.zeros(room, np.uint8), np.zeros((room + 9) // 10 * 10, np.uint8).reshape(10, -1),
                       bytearray(room), memoryview(bytearray(room)), OnlyDlpack(np.zeros(room, np.uint8))):
            with self.subTest(type=type(memory)):
                made = executor(graph, arena=memory)
                made.step()
                self.assertEqual(made.output("loss"), own.output("loss"))
                self.assertEqual(made.measured_peak_bytes, made.planned_bytes)
                written = np.asarray(getattr(memory, "host", memory))
                self.assertGreater(np.count_nonzero(written), room // 2)

    def test_several_executors_share_it_and_keep_it(self):
        graph = resnet()
        expected = executor(graph)
        expected.step()
        memory = np.zeros(expected.planned_bytes + 255, np.uint8)
        both = [executor(graph, seed=seed, arena=memory) for seed in (0, 1)]
        del memory
        for made in (*both, both[0]):
            made.reset()
            made.step()
        self.assertEqual(both[0].output("loss"), expected.output("loss"))

    def test_bad_arenas(self):
        graph = ffn()
        planned = executor(graph).planned_bytes
        fixed = np.zeros(planned + 255, np.uint8)
        fixed.flags.writeable = False

        class OnDevice:
            __cuda_array_interface__ = {"shape": (1 << 20,), "typestr": "|u1", "data": (1 << 20, False), "version": 3}

        for memory, words in ((np.zeros(planned + 255, np.float32), "arena= must be an array of uint8, not of float32"),
                              (7, "array of uint8, not of int64"), (b"bytes", "array of uint8"), ([[1], [2, 3]], "array"),
                              (np.zeros(planned // 2, np.uint8), f"arena= has {planned // 2} bytes, but the plan needs "
                                                                 f"{planned},.*give {planned + 255} bytes"),
                              (np.zeros(2 * planned + 510, np.uint8)[::2], "arena= must be contiguous and writeable"),
                              (fixed, "arena= must be contiguous and writeable"),
                              (OnDevice(), "arena= is in memory of a GPU, but the host executes the step")):
            with self.subTest(words=words), self.assertRaisesRegex(cairn.InputError, words) as caught:
                executor(graph, arena=memory)
            self.assertNotIn("\n", str(caught.exception))


class Steps(unittest.TestCase):
    def test_a_budget_changes_memory_and_nothing_else(self):
        graph = gpt2()
        one, other = executor(graph), executor(graph, "60%", work_limit=200_000, poison=True)
        self.assertEqual(one.planned_bytes, one.plan.bytes)
        self.assertLessEqual(other.planned_bytes, 0.6 * graph.baseline.peak)
        for made in (one, other):
            made.step()
            made.step()
            self.assertLessEqual(made.measured_peak_bytes, made.planned_bytes)
        self.assertLess(other.measured_peak_bytes, one.measured_peak_bytes)
        self.assertEqual(one.output("loss"), other.output("loss"))
        theirs = weights(other)
        for name, values in weights(one).items():
            np.testing.assert_array_equal(values, theirs[name], name)

    def test_schedules_that_are_given(self):
        graph = gpt2()
        answer = cairn.solve(graph, "70%", work_limit=100_000)
        made = executor(graph, schedule=answer)
        self.assertEqual(made.schedule, answer.schedule)
        self.assertEqual(executor(graph).schedule, cairn.baseline_schedule(graph))
        with self.assertRaisesRegex(cairn.NotFoundError, "more than the budget"):
            executor(graph, "50%", schedule=cairn.baseline_schedule(graph))
        with self.assertRaises(cairn.InfeasibleError):
            executor(graph, 100)
        with self.assertRaisesRegex(cairn.InputError, "fp32 only"):
            executor(graph, precision="bf16")

    def test_the_later_of_set_and_stage_decides(self):
        made = executor(ffn())
        values = np.random.default_rng(1).standard_normal((8, 24), np.float32)
        made.stage("inputs", values)
        made.set("inputs", 2 * values)
        made.step()
        np.testing.assert_array_equal(made.get("inputs"), 2 * values)

    def test_staged_values_wait_for_the_step(self):
        made = executor(resnet())
        labels = np.array([5, 6, 7, 8], np.int32)
        before = made.get("labels")
        made.stage({"labels": labels})
        labels[:] = 0
        np.testing.assert_array_equal(made.get("labels"), before)
        made.enqueue()
        made.wait()
        np.testing.assert_array_equal(made.get("labels"), [5, 6, 7, 8])

    def test_reset_and_seeds(self):
        graph = resnet()
        made = executor(graph, seed=3)
        first = weights(made)
        made.step()
        loss = made.output("loss")
        self.assertFalse(np.array_equal(made.get("fc.weight"), first["fc.weight"]))
        made.reset()
        np.testing.assert_array_equal(made.get("fc.weight"), first["fc.weight"])
        made.step()
        self.assertEqual(made.output("loss"), loss)
        self.assertFalse(np.array_equal(executor(graph, seed=4).get("fc.weight"), first["fc.weight"]))

    def test_seeds_of_dropout(self):
        made = executor(gpt2(dropout=50, optimizer="none"))

        def loss(seed):
            made.set_dropout_seed(seed)
            made.step()
            return float(made.output("loss")[0])

        losses = [loss(seed) for seed in (0, 1, 2, 1)]
        self.assertEqual(len(set(losses)), 3)
        self.assertEqual(losses[1], losses[3])

    def test_other_threads_run_during_a_step(self):
        made = executor(cairn.models.build("ffn", batch=512, width=1024, inputs=1024, outputs=1024))
        self.assertGreater(ticks_during(lambda: [made.step() for _ in range(3)]), 8)

    def test_threads_take_turns(self):
        made, alone = executor(resnet()), executor(resnet())
        threads = [threading.Thread(target=lambda: [made.step() for _ in range(5)]) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for _ in range(15):
            alone.step()
        np.testing.assert_array_equal(made.get("fc.weight"), alone.get("fc.weight"))


class Optimizers(unittest.TestCase):
    def test_sgd_is_what_it_says(self):
        made = executor(ffn(optimizer="sgd", learning_rate=0.5, beta1=0.75, weight_decay=0.25))
        self.assertEqual(made.get("learning_rate").tolist(), [0.5])
        gradients = executor(ffn())
        w, m = made.get("layer0.weight").astype(np.float64), 0.0
        for _ in range(3):
            gradients.set({name: made.get(name) for name, tensor in gradients.residents.items()
                           if tensor.kind == "weight"})
            gradients.step()
            grad, = (name for name, tensor in gradients.residents.items()
                     if tensor.kind == "weight_grad" and name.startswith("layer0.weight"))
            m = 0.75 * m + gradients.get(grad) + 0.25 * w
            w -= 0.5 * m
            made.step()
            np.testing.assert_allclose(made.get("layer0.weight"), w, rtol=1e-4, atol=1e-6)

    def test_options(self):
        clipped, free = (executor(ffn(optimizer="sgd", beta1=0, learning_rate=1, clip=clip)) for clip in (1e-3, None))
        for made in (clipped, free):
            before = weights(made)
            made.step()
            moved = sum(np.square(value - before[name]).sum() for name, value in weights(made).items()
                        if "momentum" not in name)
            self.assertEqual(np.sqrt(moved) < 1.01e-3, made is clipped)
        for options, words in (({"learning_rate": 1}, "learning_rate= is for optimizer='sgd'"),
                               ({"optimizer": "adam", "clip": 1}, "clip= is for"),
                               ({"optimizer": "adamw", "beta1": 1.0}, "beta1 is 1"),
                               ({"optimizer": "adamw", "weight_decay": -1}, "weight_decay=-1 must be at least 0"),
                               ({"optimizer": "adamw", "clip": float("nan")}, "clip=nan"),
                               ({"optimizer": "adamw", "clip": 0}, "clip=0 must be above 0"),
                               ({"optimizer": "adamw", "learning_rate": "x"}, "must be a number"),
                               ({"optimizer": "adamv"}, "unknown optimizer")):
            with self.subTest(words=words), self.assertRaisesRegex(cairn.InputError, words) as caught:
                ffn(**options)
            self.assertNotIn("\n", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
