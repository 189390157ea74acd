"""Trains a small convolutional network on handwritten digits. A training step gets half of the memory that it takes if
its nodes run in the order in which they were added. All data are numpy arrays. The program fails unless the network
recognises 97% of the test digits."""

import sys

import cairn
import numpy as np

BATCH, STEPS = 64, 400


def digits_network():
    """Returns the training step of a network for images of 8 x 8 pixels: forward, backward, and an update of every
    weight."""
    model = cairn.models.Builder("digits-network", optimizer="adamw", weight_decay=0.5)
    x, labels = model.data("images", [BATCH, 8, 8, 1]), model.indices("labels", [BATCH], 10)
    for i in range(8):
        name, channels, stride = f"block{i}", 24 if i < 6 else 48, 2 if i == 6 else 1
        inputs = x.shape[3]
        w = model.weight(f"{name}.weight", [channels, 3, 3, inputs], scale=(2 / (9 * inputs))**0.5)
        x = model.conv2d(f"{name}.conv", x, w, stride=stride, pad=1)
        x = model.batchnorm(f"{name}.norm", x, model.weight(f"{name}.params", [2, channels], init="norm"))
        x = model.relu(f"{name}.relu", x)
    w, bias = model.weight("last.weight", [4 * 4 * 48, 10], scale=0.02), model.weight("last.bias", [10], init="zeros")
    logits = model.linear("last", x, w, bias, shape=[BATCH, 10])
    return model.training_step(model.cross_entropy("loss", logits, labels))


def moved(images, draw):
    """Returns the images [N, 8, 8], each moved at random by up to one pixel, so that the network sees more variants."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)), constant_values=images.min())
    rows, columns = draw.integers(0, 3, (2, len(images), 1, 1))
    pixel = np.arange(8)
    return padded[np.arange(len(images))[:, None, None], rows + pixel[:, None], columns + pixel]


def train(executor, images, labels):
    draw, loss, order = np.random.default_rng(0), np.empty(1, np.float32), []
    for step in range(1, STEPS + 1):
        if len(order) < BATCH:
            order = draw.permutation(len(images))  # begins an epoch, which uses every image once
        chosen, order = order[:BATCH], order[BATCH:]
        rate = 0.003 * min(1, step / 20) * 0.5 * (1 + np.cos(np.pi * step / STEPS))
        executor.stage({"images": moved(images[chosen], draw)[..., None], "labels": labels[chosen],
                        "learning_rate": rate, "step": step})
        executor.step()
        executor.output("loss", out=loss)
        if step % 100 == 0:
            print(f"step {step}: loss {loss[0]:.4f}")


def accuracy(graph, trained, images, labels):
    """Returns the share of the images for which the network, with the weights in `trained`, is right."""
    tester = cairn.Executor(graph.forward_part().with_kept(["last"]))
    tester.set({name: trained.get(name) for name, tensor in tester.residents.items() if tensor.kind == "weight"})
    right = 0
    for begin in range(0, len(images), BATCH):
        batch = labels[begin:begin + BATCH]
        tester.set("images", np.resize(images[begin:begin + BATCH], (BATCH, 8, 8, 1)))  # the last batch repeats images
        tester.step()
        right += (tester.output("last")[:len(batch)].argmax(axis=1) == batch).sum()
    return right / len(images)


def main():
    graph = digits_network()
    executor = cairn.Executor(graph, "50%", time_limit=5)
    data = cairn.load_dataset("digits")
    first = data.training  # the images from this one on are for tests
    train(executor, data.images[:first], data.labels[:first])
    share = accuracy(graph, executor, data.images[first:], data.labels[first:])
    whole, used = graph.baseline.peak, executor.measured_peak_bytes
    print(f"{share:.2%} of the test digits recognised; {used} of {whole} bytes ({used / whole:.1%})")
    return share >= 0.97 and used <= whole / 2


if __name__ == "__main__":
    sys.exit(not main())
