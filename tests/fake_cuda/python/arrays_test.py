"""Tests cairn.Executor with arrays in memory of a GPU. They run on the fake CUDA runtime, whose device memory the host
can read.
"""

import ctypes
import json
import tempfile
import unittest

import cairn
import numpy as np
from cairn import _cairn

_runtime = ctypes.CDLL(_cairn.__file__)  # the fake runtime is part of the extension module
_runtime.fake_cuda_allocate.restype = _runtime.fake_cuda_stream.restype = ctypes.c_void_p
SHAPE = (8, 24)


def ffn(**options):
    return cairn.models.build("ffn", batch=8, layers=3, width=32, inputs=24, outputs=16, **options)


def executor(graph, *arguments, **options):
    return cairn.Executor(graph, *arguments, backend="cuda", **options)


class Memory:
    """An allocation of the fake device. `host` is a numpy array of the same memory."""

    def __init__(self, shape, dtype=np.float32):
        count = int(np.prod(shape)) * np.dtype(dtype).itemsize
        self.address = ctypes.c_void_p(_runtime.fake_cuda_allocate(ctypes.c_size_t(count)))
        self.host = np.frombuffer((ctypes.c_char * count).from_address(self.address.value), dtype).reshape(shape)

    def fill_later(self, byte, stream):
        _runtime.fake_cuda_fill(self.address, byte, ctypes.c_size_t(self.host.nbytes), ctypes.c_void_p(stream))

    def __del__(self):
        _runtime.fake_cuda_free(self.address)


class Interface:
    """An array of a library that supports only the CUDA array interface."""

    def __init__(self, host, stream=None, fixed=False, strides=None):
        self.host = host
        self.__cuda_array_interface__ = {"shape": host.shape, "typestr": host.dtype.str, "strides": strides,
                                         "data": (host.ctypes.data, fixed), "version": 3, "stream": stream}


class _Tensor(ctypes.Structure):
    """One struct that has the fields of both DLTensor and DLManagedTensor of dlpack.h."""

    _fields_ = [("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("number", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Dlpack:
    """An array of a library that supports DLPack."""

    def __init__(self, host, code=None, bits=None):
        self.host, self.streams = host, []
        self.shape = (ctypes.c_int64 * host.ndim)(*host.shape)
        self.strides = (ctypes.c_int64 * host.ndim)(*(stride // host.itemsize for stride in host.strides))
        self.tensor = _Tensor(host.ctypes.data, 2, 0, host.ndim,
                              {"i": 0, "u": 1, "f": 2}[host.dtype.kind] if code is None else code,
                              8 * host.itemsize if bits is None else bits, 1, self.shape, self.strides, 0, None, None)

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, stream=None):  # without the parameter max_version, as before version 1.0 of DLPack
        self.streams.append(stream)
        return _new_capsule(ctypes.addressof(self.tensor), b"dltensor", None)


class Arrays(unittest.TestCase):
    def check_error(self, words, call, *arguments, **options):
        with self.assertRaisesRegex(cairn.InputError, words) as caught:
            call(*arguments, **options)
        self.assertNotIn("\n", str(caught.exception))

    def test_arrays_go_in_and_out_through_both_protocols(self):
        made = executor(ffn().with_kept(["layer2"]))
        memory, room = Memory(SHAPE), Memory(SHAPE)
        loss = Memory((1,))
        for number, kind in enumerate((Interface, Dlpack)):
            memory.host[:] = np.arange(192).reshape(SHAPE) + number
            made.set("inputs", kind(memory.host))
            np.testing.assert_array_equal(made.get("inputs"), memory.host)
            out = kind(room.host)
            self.assertIs(made.get("inputs", out=out), out)
            np.testing.assert_array_equal(room.host, memory.host)
            memory.host[:] = 0.5 + number
            made.stage({"inputs": kind(memory.host)})
            memory.host[:] = 0
            made.step()
            np.testing.assert_array_equal(made.get("inputs"), np.full(SHAPE, 0.5 + number, np.float32))
            made.output("loss", out=kind(loss.host))
            np.testing.assert_array_equal(loss.host, made.output("loss"))
        host = np.full(SHAPE, 3, np.float32)
        made.set("inputs", host)
        np.testing.assert_array_equal(made.get("inputs", out=np.empty(SHAPE, np.float32)), host)

    def test_integers(self):
        made = executor(cairn.models.build("gpt2", batch=2, seq=4, layers=1, width=8, heads=2, vocab=11))
        memory = Memory((2, 4), np.int32)
        memory.host[:] = 7
        made.set("tokens", Dlpack(memory.host))
        np.testing.assert_array_equal(made.get("tokens"), memory.host)

    def test_libraries_are_asked_to_make_the_default_stream_wait(self):
        made, memory = executor(ffn()), Memory(SHAPE)
        array = Dlpack(memory.host)
        made.get("inputs", out=array)
        made.set("inputs", array)
        self.assertEqual(array.streams, [1, 1])

    def test_copies_wait_for_the_stream_of_the_array(self):
        made, memory, stream = executor(ffn()), Memory(SHAPE), _runtime.fake_cuda_stream()
        memory.host[:] = 1
        memory.fill_later(0, stream)
        made.set("inputs", Interface(memory.host, stream=stream))
        self.assertFalse(made.get("inputs").any())
        memory.fill_later(0xFF, stream)  # fills the memory with NaN
        made.get("inputs", out=Interface(memory.host, stream=stream))
        self.assertFalse(memory.host.any())

    def test_steps_run_on_the_stream_of_the_caller(self):
        class Stream:
            cuda_stream = _runtime.fake_cuda_stream()

        graph, memory = ffn(), Memory(SHAPE)
        expected = executor(graph)
        expected.set("inputs", np.zeros(SHAPE, np.float32))
        expected.step()
        for stream in (Stream(), Stream.cuda_stream):
            made = executor(graph, stream=stream)
            memory.host[:] = 1
            memory.fill_later(0, Stream.cuda_stream)
            made.set("inputs", Interface(memory.host))  # no stream named: the fill is on the executor's stream
            made.step()
            np.testing.assert_array_equal(made.output("loss"), expected.output("loss"))
        for stream, words in ((1, "legacy default stream"), (2, "per-thread default stream")):
            self.check_error(words, executor, graph, stream=stream)

    def test_bf16(self):
        made = executor(ffn(optimizer="sgd"), precision="bf16")
        shape = made.residents["layer0.weight"].shape
        exact, half = Memory(shape), Memory(shape, np.uint16)
        exact.host[:] = 1.001
        made.set("layer0.weight", Interface(exact.host))
        np.testing.assert_array_equal(made.get("layer0.weight"), exact.host)
        made.get("layer0.weight", out=Interface(exact.host))
        np.testing.assert_array_equal(exact.host, np.full(shape, 1.001, np.float32))
        half.host[:] = 0x4020
        made.set("layer0.weight", Dlpack(half.host, code=4, bits=16))
        np.testing.assert_array_equal(made.get("layer0.weight"), np.full(shape, 2.5, np.float32))
        labels = Dlpack(half.host.reshape(-1)[:16], code=4, bits=16)
        self.check_error("does not take elements of type bf16", executor(ffn()).set, "layer2.bias", labels)

    def test_bad_arrays(self):
        made = executor(ffn())
        memory, wide = Memory(SHAPE), Memory(SHAPE, np.float64)
        before = made.get("inputs")
        for words, array in (
                ("'inputs' has elements of type float32; an array of float64 in memory", Dlpack(wide.host)),
                (r"'inputs' has the shape \[8, 24\], but the array has \[24, 8\]", Interface(memory.host.reshape(24, 8))),
                ("'inputs': an array in memory of a GPU must be contiguous", Dlpack(memory.host.reshape(24, 8).T)),
                ("must be contiguous", Interface(memory.host, strides=(4, 32))),
                ("'inputs'.* must be in memory of a GPU, but the pointer is of the host",
                 Interface(np.zeros(SHAPE, np.float32)))):
            self.check_error(words, made.set, "inputs", array)
            self.check_error(words, made.stage, "inputs", array)
        for words, array in (("out= is one of float64", Dlpack(wide.host)),
                             ("out= must be contiguous and writeable", Interface(memory.host, fixed=True)),
                             ("out= must be contiguous and writeable", Interface(memory.host, strides=(4, 32)))):
            self.check_error(words, made.get, "inputs", out=array)
            self.assertRaises(cairn.InputError, made.output, "loss", out=array)
        made.step()
        np.testing.assert_array_equal(made.get("inputs"), before)

    def test_the_arena(self):
        graph = ffn()
        answer = cairn.baseline_schedule(graph)
        expected = executor(graph)
        arena = Memory((expected.planned_bytes + 255,), np.uint8)
        arena.host[:] = 1
        for kind in (Interface, Dlpack):
            made = executor(graph, schedule=answer, arena=kind(arena.host))
            expected.step()
            made.step()
            np.testing.assert_array_equal(made.output("loss"), expected.output("loss"))
            self.assertEqual(made.measured_peak_bytes, made.planned_bytes)
            self.assertFalse((arena.host == 1).all())
            del made
        self.check_error("arena= must be an array of uint8, not of float32", executor, graph,
                         arena=Dlpack(Memory(SHAPE).host))
        self.check_error("arena= is in memory of the host, but a GPU executes", executor, graph,
                         arena=np.zeros(1 << 20, np.uint8))
        self.check_error("arena= has 100 bytes, but the plan needs", executor, graph, arena=Dlpack(arena.host[:100]))
        self.check_error("arena= must be contiguous and writeable", executor, graph,
                         arena=Interface(arena.host, fixed=True))
        self.check_error("arena= is in memory of a GPU, but the host executes", cairn.Executor, graph, backend="host",
                         arena=Dlpack(arena.host))


class Streams(unittest.TestCase):
    def test_a_run_and_a_training_say_what_several_streams_bring_and_cost(self):
        graph = cairn.models.build("resnet18", batch=2, image=16, classes=10, width=4)
        result = cairn.run(graph, "150%", backend="cuda", repeats=1, work_limit=20_000, streams=2, overlap_steps=3)
        said = json.loads(result.to_json())
        self.assertEqual((said["identical"], said["streams"], said["overlap_steps"]), (True, 2, 3))
        self.assertGreater(said["overlap_bytes"], 0)
        self.assertLess(said["makespan"], said["scheduled"]["cost"])
        self.assertRegex(str(result), "streams: 2; by the costs, .*; addresses apart for 3 steps cost ")
        options = dict(batch=8, layers=3, width=16, inputs=64, outputs=10, optimizer="adamw")
        one, several = (cairn.train(cairn.models.build("ffn", **options), "digits", steps=3, backend="cuda", **streams)
                        for streams in ({}, {"streams": 3, "overlap_steps": 2}))
        self.assertEqual(one.digest, several.digest)
        said = json.loads(several.to_json())
        self.assertEqual((said["streams"], said["overlap_steps"]), (3, 2))
        with tempfile.TemporaryDirectory() as folder:
            for made in (result, several):
                made.report(f"{folder}/page.html")
                with open(f"{folder}/page.html", encoding="utf-8") as page:
                    self.assertRegex(page.read(), "Streams.*addresses apart for . steps cost ")

    def test_an_executor_on_several_streams_has_the_bits_of_one(self):
        graph = cairn.models.build("gpt2", batch=2, seq=4, layers=2, width=8, heads=2, vocab=11, optimizer="adamw")
        one, several = executor(graph), executor(graph, streams=3, overlap_steps=2)
        for made in (one, several):
            made.step()
            made.step()
        self.assertEqual(one.output("loss"), several.output("loss"))
        self.assertGreater(several.planned_bytes, one.planned_bytes)
        for arguments, words in (({"streams": 17}, "1 to 16 streams, not 17"),
                                 ({"streams": 2, "poison": True}, "poison= and sentinels= check steps on one stream")):
            with self.assertRaisesRegex(cairn.InputError, words):
                executor(graph, **arguments)


if __name__ == "__main__":
    unittest.main()
