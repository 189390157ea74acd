"""Tests that results are not silently different if inputs are written without torch noticing."""

import ctypes
import threading
import unittest

import cairn
import cairn.torch
import harness
import numpy as np
import torch
from cairn.torch._inputs import read_again
from same_step import backend, linears
from torch.testing._internal.two_tensor import TwoTensor
from written_images import Images, OfImages


class Returned(Images):
    """A model whose backward pass reads one of the model's results. This result is in memory under every plan."""

    def forward(self, x):
        y = self.layers[0](x.float())
        z = y
        for layer in self.layers[1:]:
            z = layer(torch.tanh(y).sin() + z)
        return z.square().mean(), y


def by_storage(x):
    torch.empty(0).set_(x.untyped_storage())[:9].fill_(3)


UNSEEN = {"numpy": lambda x: x.detach().numpy().fill(3), "data": lambda x: x.data.fill_(3),
          "DLPack": lambda x: torch.from_dlpack(x.detach()).fill_(3), "its storage": by_storage,
          "its address": lambda x: ctypes.memset(x.data_ptr(), 1, 16)}


class InputsThatAreWritten(OfImages):
    def test_a_ring_of_numpy(self):
        self.check(lambda: [torch.from_numpy(self.ring())], lambda x: x.numpy().fill(7))
        self.assertEqual(len(cairn.torch.last_report().graphs[0].shared_inputs), 1)
        self.assertIn("share memory with something else", str(cairn.torch.last_report()))

    def test_a_buffer_that_is_a_ring_of_numpy(self):
        class Scaled(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.array = np.empty(64, np.float32)
                self.layers = linears(6)
                self.register_buffer("scale", torch.from_numpy(self.array))

            def forward(self, x):
                y = torch.tanh(x)
                for layer in self.layers:
                    y = torch.tanh(layer(y)) * (x * self.scale.sin()).cos()
                return y.square().mean()

        def gradients(chosen):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model = Scaled()
            compiled = torch.compile(model, backend=chosen) if chosen is not None else model
            model.array.fill(1)
            loss = compiled(torch.randn(256, 64))
            model.array.fill(9)
            loss.backward()
            return [p.grad for p in model.parameters()]

        self.assertTrue(all(map(torch.equal, gradients(None), gradients(backend("min")))))
        self.assertEqual(len(cairn.torch.last_report().graphs[0].shared_inputs), 1)

    def test_a_ring_of_numpy_that_is_said_to_be_stable(self):
        """Checks that the tests above can fail: with inputs="stable", the plan reads the input again after it was
        written, and the result must differ."""
        self.check(lambda: [torch.from_numpy(self.ring())], lambda x: x.numpy().fill(7), budgets=["min"], inputs="stable")
        self.assertEqual(cairn.torch.last_report().graphs[0].shared_inputs, [])

    def test_an_array_of_a_tensor(self):
        def batches():
            x = torch.from_numpy(self.ring()).clone()
            x.array = x.numpy()
            return [x]

        self.check(batches, lambda x: x.array.fill(7))

    def test_data_of_a_tensor(self):
        def batches():
            x = torch.from_numpy(self.ring()).clone()
            x.other = x.data
            return [x]

        self.check(batches, lambda x: x.other.fill_(7))

    def test_memory_of_another_library(self):
        def batches():
            x = torch.from_numpy(self.ring()).clone()
            x.array = np.from_dlpack(x)
            return [x]

        def write(x):
            ctypes.memset(x.array.ctypes.data, 7, x.array.nbytes)

        self.check(batches, write)

    def test_memory_of_several_processes(self):
        self.check(lambda: [torch.from_numpy(self.ring()).clone().share_memory_()], lambda x: x.data.fill_(7))

    def test_an_input_that_shares_memory_when_the_plan_is_made_already(self):
        """Tests a first batch with its own memory, and a second batch that shares memory with numpy and uses the same
        plan. A warning must be given, and the gradients must be right."""
        self.check(lambda: [torch.from_numpy(self.ring()).clone(), torch.from_numpy(self.ring())],
                   lambda x: x.numpy().fill(7) if not x.untyped_storage().resizable() else None, budgets=["min"], told=True)

    def test_parts_of_one_tensor_are_as_good_as_their_own(self):
        def batches():
            data = torch.from_numpy(self.ring()).clone()
            return [data[:32], data[32:]]

        self.check(batches, lambda x: None, told=False)
        self.assertEqual(cairn.torch.last_report().graphs[0].shared_inputs, [])
        self.assertNotEqual(cairn.torch.last_report().graphs[0].read_again, [])

    def test_a_result_that_is_written_is_an_error(self):
        """Tests results that are written between the passes in ways that do not increase their version, so that torch
        does not notice. An error must be raised."""
        model, x = Returned(), torch.rand(64, 64)
        for name, write in {"nothing": lambda y: None, "read": lambda y: y.numpy().sum(), **UNSEEN}.items():
            with self.subTest(name):
                torch._dynamo.reset()
                loss, y = torch.compile(model, backend=backend("min", measure=False))(x)
                self.assertTrue(cairn.torch.last_report().graphs[0].results_read_again)
                write(y.detach())
                if name in UNSEEN:
                    with self.assertRaisesRegex(cairn.torch.WrittenError, "a result of the forward pass was written"):
                        loss.backward()
                else:
                    loss.backward()

    def test_a_returned_view_that_is_written_is_an_error(self):
        """Tests a returned view of a value that the backward pass reads. AOTAutograd gives the view a version counter of
        its own, so torch does not notice that the view is written."""
        weight, x = torch.randn(32, 32, requires_grad=True), torch.randn(8, 12, 32)

        def loss_and_view(x):
            hidden = (x.sin() @ weight).tanh().exp()
            return hidden.square().mean(), hidden[:, :3]

        for budget in ("100%", "min"):
            for is_written in (False, True):
                with self.subTest(budget=budget, is_written=is_written):
                    torch._dynamo.reset()
                    loss, view = torch.compile(loss_and_view, backend=backend(budget))(x)
                    if not is_written:
                        loss.backward()
                        continue
                    with torch.no_grad():
                        view.add_(1)
                    with self.assertRaisesRegex(cairn.torch.WrittenError, "a result of the forward pass was written"):
                        loss.backward()

    def test_an_input_that_is_written_after_the_forward_pass_is_an_error(self):
        def refill(x):
            x.untyped_storage().resize_(0)
            x.untyped_storage().resize_(x.nbytes)

        for name, write in {**UNSEEN, "other memory": lambda x: setattr(x, "data", torch.zeros_like(x)), "refilled": refill,
                            "freed": lambda x: x.untyped_storage().resize_(0)}.items():
            with self.subTest(name):
                torch.manual_seed(0)
                with self.assertRaisesRegex(cairn.torch.WrittenError, "an input was written"):
                    self.gradients(Images(), [torch.rand(64, 64)], backend("min", measure=False), write)

    def test_inputs_that_are_said_to_change(self):
        for write in UNSEEN.values():
            self.check(lambda: [torch.from_numpy(self.ring()).clone().float()], write, inputs="changing", budgets=["min"])
        self.assertEqual(len(cairn.torch.last_report().graphs[0].shared_inputs), 1)

    def test_a_teacher_that_is_averaged_between_the_passes(self):
        def trained(chosen):
            torch._dynamo.reset()
            torch.manual_seed(0)
            teacher, student = (torch.nn.Sequential(torch.nn.Linear(32, width), torch.nn.GELU(), torch.nn.Linear(width, 256))
                                for width in (4, 256))
            teacher.requires_grad_(False)

            def loss(x):
                with torch.no_grad():
                    target = teacher(x)
                return (student(x) * torch.softmax(target, -1)).square().mean()

            compiled = torch.compile(loss, backend=chosen)
            for _ in range(3):
                result = compiled(torch.randn(64, 32))
                for p in teacher.parameters():
                    p.data.mul_(0.9)
                result.backward()
                with torch.no_grad():
                    for p in student.parameters():
                        p.sub_(p.grad)
                        p.grad = None
            return list(student.parameters())

        chosen = cairn.torch.backend("min", inputs="changing", fallback=False, work_limit=10_000)
        self.assertTrue(all(map(torch.equal, trained(chosen), trained("aot_eager"))))

    def test_one_number_of_many(self):
        """Tests that one changed number is noticed in tensors that are dense, permuted, parts of other tensors, or
        expanded. Each of these kinds is compared in a different way."""
        data = torch.arange(2.0**18).view(512, 512)
        for tensor in (data, data.T, data[:, 1:300], data[3:, ::2], data[0].expand(700, 512), data.to(torch.complex64),
                       data.double().view(2, 8, 128, 128).to(memory_format=torch.channels_last), data.to(torch.uint8)[1:],
                       data.bfloat16(), data[:2, :2], torch.tensor(3.0), torch.empty(0), data[5, 3:]):
            before = read_again.Unchanged({"x": tensor})
            self.assertIsNone(before.changed({"x": tensor, "y": data}))
            self.assertIsNone(before.changed({"x": tensor.clone(memory_format=torch.contiguous_format)}))
            if not tensor.numel():
                continue
            last = tuple(n - 1 for n in tensor.shape)
            for position in ((0,) * tensor.dim(), last):
                kept = tensor[position].clone()
                tensor.data[position] = kept + 1 if tensor.dtype != torch.bfloat16 else 7
                self.assertEqual(before.changed({"x": tensor}), "x", (tensor.shape, tensor.stride()))
                tensor.data[position] = kept
                self.assertIsNone(before.changed({"x": tensor}))

    def test_numbers_that_only_move(self):
        data = torch.randn(512, 512)
        before = read_again.Unchanged({"x": data})
        for moved in (data.roll(1, 0), data.roll(1, 1), data.flip(0), data.flip(1), data[torch.randperm(512)]):
            kept = data.clone()
            data.data.copy_(moved)
            self.assertEqual(before.changed({"x": data}), "x")
            data.data.copy_(kept)
        self.assertIsNone(before.changed({"x": data}))

    def test_an_input_of_a_graph_that_ran_in_another_thread(self):
        """Tests an input that a graph has computed in another thread. The input's node in autograd's graph must not be
        confused with the node of the graph that reads the input, and the input must still be compared."""
        one, two = (torch.randn(16, 16, requires_grad=True) for _ in range(2))
        chosen = backend("min", measure=False)
        make = torch.compile(lambda x: (x.exp() @ one).exp().sin() * x.exp().sin(), backend=chosen)
        views = torch.compile(lambda h: torch.chunk((h @ two).sin(), 2), backend=chosen)
        x, made = torch.randn(8, 16), []

        def elsewhere():
            for _ in range(20_000):  # makes more nodes of autograd than the main thread has made
                one * 1
            made.append(make(x))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        first, second = views(made[0])
        x.data.mul_(0.5)
        with self.assertRaisesRegex(cairn.torch.WrittenError, "an input was written"):
            (first.sum() + second.square().sum()).backward()

    def test_an_input_of_several_tensors(self):
        """Tests a tensor subclass with several tensors inside: each tensor inside of a TwoTensor is a separate input of
        the graph. Both must be compared, so a write to one of them must raise an error."""
        def two():
            torch.manual_seed(0)
            return TwoTensor(torch.rand(64, 64), torch.rand(64, 64))

        self.gradients(Images(), [two()], backend("min", inputs="changing", measure=False), lambda x: None)
        self.assertEqual(len(cairn.torch.last_report().graphs[0].shared_inputs), 2)
        with self.assertRaisesRegex(cairn.torch.WrittenError, "an input was written"):
            self.gradients(Images(), [two()], backend("min", measure=False), lambda x: x.b.data.fill_(3))

    def test_memory_that_is_shared_later_is_told_once_for_all_sizes(self):
        model = Images()
        compiled = torch.compile(model, backend=backend("min", measure=False), dynamic=True)
        compiled(torch.rand(48, 64)).backward()
        told = []
        for size in (30, 35, 40):
            model.zero_grad()
            with harness.told() as now:
                compiled(torch.from_numpy(np.ones((size, 64), np.float32))).backward()
            told += [text for text in now if "shares memory" in text]
        self.assertEqual(len(told), 1)

    def test_a_ring_of_numpy_beside_what_may_fail(self):
        """Tests an input on memory of numpy in a model with a solver of linear equations. The solver checks its
        arguments, and the effect token of this check is a placeholder before the other inputs. The input must be
        recognised as shared nevertheless."""
        class Solved(Images):
            def forward(self, x):
                weight = self.layers[0].weight.detach()
                return super().forward(x) + torch.linalg.solve(weight + 9 * torch.eye(64), weight).sum()

        self.check(lambda: [torch.from_numpy(self.ring())], lambda x: x.numpy().fill(7), model=Solved)
        self.assertEqual(len(cairn.torch.last_report().graphs[0].shared_inputs), 1)

    def test_a_ring_of_numpy_as_a_subclass(self):
        class Frames(torch.Tensor):
            pass

        ring = self.ring()
        self.check(lambda: [torch.from_numpy(ring.copy()).as_subclass(Frames)],
                   lambda x: x.as_subclass(torch.Tensor).numpy().fill(7), budgets=["min"])

    def test_gradients_beside_earlier_ones_are_told_where_a_result_is_read_again(self):
        compiled, x = torch.compile(Returned(), backend=backend("min", measure=False)), torch.rand(64, 64)
        compiled(x)[0].backward()
        self.assertTrue(cairn.torch.last_report().graphs[0].results_read_again)
        with self.assertWarnsRegex(cairn.torch.CairnWarning, "accumulate=True"):
            compiled(x)[0].backward()

    def test_what_a_part_before_a_graph_break_has_saved_is_its_own(self):
        class Parts(harness.Layers):
            def forward(self, x):
                for layer in self.layers[:3]:
                    x = torch.tanh(layer(x))
                torch._dynamo.graph_break()
                y = x.sin()
                for layer in self.layers[3:]:
                    y = torch.tanh(layer(y)) * x
                return y.square().mean()

        with harness.told() as told:
            compiled = torch.compile(Parts(), backend=backend("min", measure=False))
            for _ in range(2):
                compiled(torch.randn(64, 64)).backward()
        self.assertEqual([g.shared_inputs for g in cairn.torch.last_report().graphs], [[], []])
        self.assertFalse(any("shares memory" in text for text in told))

    def test_an_input_that_earlier_graphs_have_saved(self):
        """Tests a mask that separately compiled blocks read, and that each of them saves for its backward pass. It
        counts as shared only if something else holds it, too."""
        class Masked(harness.Layers):
            def forward(self, x, mask):
                for layer in self.layers:
                    x = torch.tanh(layer(x)) * mask
                return x

        for is_held in (False, True):
            with self.subTest(is_held=is_held):
                torch._dynamo.reset()
                chosen = backend("100%", measure=False)
                x, mask = torch.randn(64, 64), torch.rand(64, 64)
                held = torch.utils.dlpack.to_dlpack(mask) if is_held else None
                for block in [Masked() for _ in range(3)]:
                    x = torch.compile(lambda *given, block=block: block(*given), backend=chosen, dynamic=False)(x, mask)
                found = [graph.shared_inputs for graph in cairn.torch.last_report().graphs]
                self.assertGreater(len(found), 1)
                self.assertEqual([len(names) for names in found], [is_held] * len(found))
                x.sum().backward()
                del held

    def test_a_part_of_a_larger_tensor_that_is_copied_as_a_whole(self):
        class Column(harness.Layers):
            def forward(self, x):
                x[:, 0] = 1.0
                for layer in self.layers:
                    x = torch.tanh(layer(x))
                return x.square().mean()

        model, chosen, data = Column(), backend("100%"), torch.randn(20_000, 64)
        with harness.told() as told:
            compiled = torch.compile(model, backend=chosen)
            for x in (torch.randn(64, 64), torch.randn(64, 64), data[:64]):
                self.assertEqual(told, [])
                model.zero_grad()
                compiled(x).backward()
        self.assertRegex(told[0], "copies as a whole")
        self.assertIs(chosen.report.kept, False)

    @unittest.skipIf(torch.__version__.startswith("2.9."), "skipped: this version of torch does not trace as_strided()")
    def test_memory_outside_of_an_input(self):
        """Tests a model that reads, by as_strided(), other elements of the storage than those of its input. A write to
        these elements is not seen in the input."""
        class Beyond(harness.Layers):
            def __init__(self, part):
                super().__init__()
                self.part = part

            def forward(self, x):
                h = self.part(x).as_strided((64, 64), (64, 1), 64 * 64 - x.storage_offset()).exp().tanh()
                for layer in self.layers:
                    h = torch.nn.functional.gelu(layer(h)) + h * x
                return h.square().mean()

        for name, part in {"itself": lambda x: x, "a slice": lambda x: x[3:9, 2:], "a chunk": lambda x: x.chunk(2)[0],
                           "one of many": lambda x: x.view(4, 16, 64).unbind(0)[1].t(),
                           "split": lambda x: x.split([1, 63])[1]}.items():
            with self.subTest(part=name):
                self.check_memory_outside(Beyond(part))

    def check_memory_outside(self, model):
        found = {}
        for name, chosen in (("aot_eager", harness.unscheduled()), ("min", backend("min"))):
            torch._dynamo.reset()
            compiled, found[name] = torch.compile(model, backend=chosen), []
            for first in (True, False):  # the part behind the input, and the part before it
                for _ in range(2):
                    torch.manual_seed(1)
                    whole = torch.randn(128, 64)
                    model.zero_grad()
                    loss = compiled(whole[:64] if first else whole[64:])
                    whole.data[64:].fill_(3) if first else whole.data[:64].fill_(3)
                    loss.backward()
                    found[name].append([p.grad.clone() for p in model.parameters()])
        for one, other in zip(*found.values()):
            self.assertTrue(all(map(torch.equal, one, other)))
        graphs = cairn.torch.last_report().graphs
        self.assertTrue(all(len(graph.shared_inputs) == 1 for graph in graphs), graphs)
        self.assertTrue(any(graph.recomputed for graph in graphs))

    def test_windows_of_an_input(self):
        """Tests as_strided() with an explicit offset on inputs that begin to share memory, and on inputs that hooks
        replace by equal tensors in other memory. A copy of the input has another offset."""
        class Windows(harness.Layers):
            def forward(self, x):
                h = x.as_strided((64, 64), (16, 1), x.storage_offset()).exp().tanh()
                for layer in self.layers:
                    h = torch.nn.functional.gelu(layer(h)) + h
                return h.square().mean()

        def steps(chosen, given, hooks):
            torch._dynamo.reset()
            generator, found = np.random.default_rng(0), []
            compiled = torch.compile(model, backend=chosen)
            for i in range(4):
                array = generator.standard_normal(2 * 1072).astype("float32")
                whole = torch.from_numpy(array) if i > 0 and given == "numpy" else torch.tensor(array)
                model.zero_grad()
                with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda t: t) if hooks else harness.told():
                    loss = compiled(whole[1072:].detach() if i > 0 and given == "detached" else whole[1072:])
                loss.backward()
                found += [loss.detach(), *(p.grad.clone() for p in model.parameters())]
            return found

        model = Windows()
        for given, hooks in (("numpy", False), ("detached", False), ("itself", True)):
            with self.subTest(given=given, hooks=hooks), harness.cairn_warnings("ignore"):
                reference = steps(harness.unscheduled(), given, hooks)
                self.assertTrue(all(map(torch.equal, reference, steps(backend("min"), given, hooks))))
                self.assertTrue(cairn.torch.last_report().graphs[0].recomputed)

    def check_buffers(self, kind, **options):
        """Trains a module for two steps, and checks its gradients and buffers against those of aot_eager."""
        found = []
        for chosen in ("aot_eager", backend("min", **options)):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model = kind()
            compiled, gradients = torch.compile(model, backend=chosen), []
            for _ in range(2):
                model.zero_grad()
                compiled(torch.ones(16, 8, 64)).backward()
                gradients += [p.grad for p in model.parameters()]
            found.append([*gradients, *model.buffers()])
        self.assertTrue(all(map(torch.equal, *found)))
        self.assertTrue(cairn.torch.last_report().graphs[0].recomputed)

    def test_views_that_no_schema_tells_of(self):
        class Parts(torch.nn.Module):
            def __init__(self, split):
                super().__init__()
                self.split = split
                self.weights = torch.nn.ParameterList(torch.randn(64, 512) for _ in range(4))
                self.register_buffer("pairs", torch.randn(64, 16))
                self.register_buffer("others", torch.randn(8, 512))

            def forward(self, x):
                part, _ = self.split(self.pairs)
                y = sum(w * ((part * (i + 1.0)) @ self.others) for i, w in enumerate(self.weights))
                self.pairs.mul_(1.5)
                return y.sum() * x.mean()

        for split in (lambda t: torch.unsafe_chunk(t, 2, 1), lambda t: torch.unsafe_split(t, 8, 1),
                      lambda t: torch.unsafe_split_with_sizes(t, [8, 8], 1)):
            self.check_buffers(lambda: Parts(split))

    def test_statistics_that_are_written_without_a_word(self):
        class Statistics(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.randn(16, 8, 64))
                self.register_buffer("mean", torch.zeros(8))
                self.register_buffer("variance", torch.ones(8))

            def forward(self, x):
                mean, _ = torch.batch_norm_update_stats(x * self.weight.detach(), self.mean, self.variance, 0.1)
                return sum((self.weight * (i + 1.0) * mean[:, None]).exp().sin() for i in range(4)).sum()

        for inputs in ("checked", "stable", "changing"):
            with self.subTest(inputs=inputs):
                self.check_buffers(Statistics, inputs=inputs)

    def test_a_write_that_torch_knows_of_is_an_error(self):
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            self.gradients(Images(), [torch.from_numpy(self.ring()).clone()], backend("min"), lambda x: x.fill_(7))
