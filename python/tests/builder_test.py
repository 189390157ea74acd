"""Tests that cairn.models.Builder builds the same graphs as the built-in models, and rejects bad input."""

import unittest

import cairn
import numpy as np

Builder = cairn.models.Builder


def linear(model, name, x, outputs, shape=()):
    inputs = x.shape[-1]
    w = model.weight(name + ".weight", [inputs, outputs], scale=1 / inputs**0.5)
    return model.linear(name, x, w, model.weight(name + ".bias", [outputs], init="zeros"), shape=shape)


def layer_norm(model, name, x):
    return model.layernorm(name, x, model.weight(name + ".params", [2, x.shape[-1]], init="norm"))


def small(**options):
    model = Builder("small", **options)
    x = model.data("x", [2, 8, 8, 3])
    y = model.conv2d("conv", x, model.weight("w", [4, 3, 3, 3], scale=0.2), model.weight("b", [4], init="ones"), pad=1)
    y = model.batchnorm("norm", y, model.weight("p", [2, 4], init="norm"))
    z = model.upsample("up", model.maxpool("pool", y, 2, 2))
    return model, model.mean_pool("mean", model.scale("scaled", model.concat("both", y, z), 0.5))


class Models(unittest.TestCase):
    def test_a_perceptron(self):
        model = Builder("ffn", optimizer="sgd", learning_rate=0.5, beta1=0.25, clip=2)
        x, target = model.data("inputs", [8, 24]), model.data("targets", [8, 16])
        x = model.relu("layer0.relu", linear(model, "layer0", x, 32))
        graph = model.training_step(model.mse("loss", linear(model, "layer1", x, 16), target))
        same = cairn.models.build("ffn", batch=8, layers=2, width=32, inputs=24, outputs=16, optimizer="sgd",
                                  learning_rate=0.5, beta1=0.25, clip=2)
        self.assertEqual(graph.to_json(), same.to_json())

    def test_gpt2(self):
        model = Builder("gpt2", optimizer="adamw", weight_decay=0.5)
        tokens, labels = model.indices("tokens", [2, 8], 20), model.indices("labels", [2, 8], 20)
        table = model.weight("wte.weight", [20, 16], scale=0.02)
        x = model.embedding("embedding", tokens, table, model.weight("wpe.weight", [8, 16], scale=0.01))
        x = model.dropout("embedding.dropout", x, 0.1)
        normed = layer_norm(model, "block0.norm1", x)
        heads = [model.permute(f"block0.attention.{part}.heads",
                               linear(model, f"block0.attention.{part}", normed, 16, [2, 8, 2, 8]), [0, 2, 1, 3])
                 for part in ("query", "key", "value")]
        scores = model.matmul("block0.attention.scores", heads[0], heads[1], trans_b=True, alpha=1 / 8**0.5)
        weights = model.dropout("block0.attention.weights.dropout",
                                model.softmax("block0.attention.weights", scores, True), 0.1)
        context = model.matmul("block0.attention.context", weights, heads[2])
        joined = model.permute("block0.attention.context.joined", context, [0, 2, 1, 3])
        y = model.weight("block0.attention.output.weight", [16, 16], scale=0.25)
        y = model.linear("block0.attention.output", joined, y,
                         model.weight("block0.attention.output.bias", [16], init="zeros"), shape=[2, 8, 16])
        x = model.add("block0.add1", x, model.dropout("block0.attention.dropout", y, 0.1))
        y = linear(model, "block0.mlp.linear1", layer_norm(model, "block0.norm2", x), 64)
        y = linear(model, "block0.mlp.linear2", model.gelu("block0.mlp.gelu", y), 16)
        x = model.add("block0.add2", x, model.dropout("block0.mlp.dropout", y, 0.1))
        logits = model.linear("logits", layer_norm(model, "norm", x), table, transposed=True)
        graph = model.training_step(model.cross_entropy("loss", logits, labels))
        same = cairn.models.build("gpt2", batch=2, seq=8, layers=1, width=16, heads=2, vocab=20, dropout=10,
                                  optimizer="adamw", weight_decay=0.5)
        self.assertEqual(graph.to_json(), same.to_json())

    def test_images(self):
        model, mean = small()
        self.assertEqual(mean.shape, (2, 8))
        graph = model.training_step(model.mse("loss", mean, model.data("target", [2, 8])))
        made = cairn.Executor(graph.with_kept(["mean", "norm"]), backend="host")
        made.step()
        y = made.output("norm")
        z = y.reshape(2, 4, 2, 4, 2, 4).max((2, 4)).repeat(2, 1).repeat(2, 2)
        np.testing.assert_allclose(made.output("mean"), 0.5 * np.concatenate([y, z], 3).mean((1, 2)), atol=1e-5)


class BadInput(unittest.TestCase):
    def refused(self, words, work):
        with self.assertRaisesRegex(cairn.InputError, words) as caught:
            work()
        self.assertNotIn("\n", str(caught.exception))

    def test_shapes(self):
        model, mean = small()
        self.refused("'sum'", lambda: model.add("sum", mean, model.data("other", [2, 9])))
        self.refused("axes", lambda: model.conv2d("c", mean, mean))
        self.refused("no axis 7", lambda: model.permute("p", mean, [0, 7]))
        self.refused("not 2", lambda: model.linear("l", mean, model.data("three", [1, 2, 3])))
        self.refused("'l'", lambda: model.linear("l", mean, model.data("two", [7, 3])))
        self.refused("init='other'", lambda: model.weight("v", [1], init="other"))
        self.refused("negative|extent|-1", lambda: model.data("d", [2, -1]))

    def test_a_step_that_fails_leaves_no_remains(self):
        b = Builder("m", optimizer="sgd")
        x, target = b.data("x", (4, 8)), b.data("target", (4, 8))
        w, z = b.weight("w", (8, 8)), b.weight("z", (4, 8))
        y = b.linear("y", x, w)
        wrong = b.mse("wrong", b.add("sum", y, z), target)  # a weight may not be a term of a sum
        right = b.mse("right", y, target)
        nodes = 4
        with self.assertRaisesRegex(cairn.InputError, "'z' is a term of an add"):
            b.training_step(wrong)
        graph = b.training_step(right)
        self.assertEqual([r for r in cairn.Executor(graph, backend="host").residents if "rate" in r], ["learning_rate"])
        names = [graph.node_name(v) for v in range(len(graph))]
        self.assertEqual(names[:nodes], ["y", "sum", "wrong", "right"])
        self.assertFalse([name for name in names if name.startswith("wrong/")])

    def test_sums_of_equal_shapes(self):
        b = Builder("m")
        with self.assertRaisesRegex(cairn.InputError, r"'s' adds tensors of the shapes \[4, 8\] and \[8, 4\]"):
            b.add("s", b.data("x", (4, 8)), b.data("y", (8, 4)))

    def test_scales_are_finite(self):
        for scale in (float("nan"), float("inf")):
            b = Builder("m")
            y = b.linear("y", b.data("x", (4, 8)), b.weight("w", (8, 8), scale=scale))
            with self.assertRaisesRegex(cairn.InputError, "'w' has the scale .*, which must be finite"):
                b.training_step(b.mse("loss", y, b.data("target", (4, 8))))

    def test_kept_nodes_of_a_graph_with_updates(self):
        b = Builder("m", optimizer="sgd")
        h, target = b.data("x", (64, 16)), b.data("target", (64, 16))
        for i in range(6):
            h = b.relu(f"r{i}", b.linear(f"y{i}", h, b.weight(f"w{i}", (16, 16), scale=0.3)))
        graph = b.training_step(b.mse("loss", h, target)).with_kept(["y1", "r3"])
        reference = cairn.Executor(graph, backend="host")
        reference.step()
        for budget in range(95, 20, -5):
            try:
                made = cairn.Executor(graph, f"{budget}%", backend="host", time_limit=0.2)
            except cairn.InfeasibleError:
                continue
            made.step()
            for name in ("y1", "r3"):
                np.testing.assert_array_equal(made.output(name), reference.output(name))
            np.testing.assert_array_equal(made.get("w2"), reference.get("w2"))
        self.assertLessEqual(budget, 60)

    def test_tensors_of_others(self):
        (one, mean), (other, _) = small(), small()
        self.refused("another builder", lambda: other.relu("relu", mean))
        loss = one.mse("loss", mean, one.data("target", [2, 8]))
        self.refused("another builder", lambda: other.training_step(loss))
        one.training_step(loss)
        self.refused("built its graph already", lambda: one.relu("relu", mean))
        self.refused("built its graph already", lambda: one.training_step(loss))

    def test_optimizers_and_losses(self):
        self.refused("clip= is for", lambda: Builder("x", clip=1))
        model, mean = small(optimizer="adamx")
        loss = model.mse("loss", mean, model.data("target", [2, 8]))
        self.refused("unknown optimizer", lambda: model.training_step(loss))
        model, mean = small()
        self.refused("loss|relu|mean", lambda: model.training_step(mean))


if __name__ == "__main__":
    unittest.main()
