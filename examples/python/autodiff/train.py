"""Trains logistic regression or a multilayer perceptron on handwritten digits.

    python train.py mlp --schedule tiled --epochs 10
"""

import argparse
import pathlib
import time

import digits
import numpy as np
from graph import Executor, gradients, variable
from operators import broadcast_to, matmul, relu, softmax_cross_entropy

import kiln
from kiln import te

BATCH, RATE = 1000, 1e-3
LAYERS = {"logistic": (784, 10), "mlp": (784, 256, 100, 10)}


def tiled(op, arguments):
    """Matrix products in tiles of 32 x 32 x 4, all else as plain loops."""
    if op.name != "matmul":
        return kiln.build(arguments, name=op.name, auto="never")
    result = arguments[-1]
    s = te.create_schedule(result.op)
    (x, y), (k,) = s[result].op.axis, s[result].op.reduce_axis
    xo, xi = s[result].split(x, factor=32)
    yo, yi = s[result].split(y, factor=32)
    ko, ki = s[result].split(k, factor=4)
    s[result].reorder(xo, yo, ko, xi, yi, ki)
    s[result].vectorize(yi)
    s[result].parallel(xo)
    return kiln.build(s, arguments, name=op.name, auto="never")


BUILDS = {
    "plain": lambda op, arguments: kiln.build(arguments, name=op.name, auto="never"),
    "tiled": tiled,
    "automatic": lambda op, arguments: kiln.build(arguments, name=op.name),
}


def model(sizes):
    """The nodes of a network of fully connected layers: x, labels, parameters, scores, loss."""
    x, labels = variable("x"), variable("labels")
    weights = [variable(f"w{i}") for i in range(len(sizes) - 1)]
    biases = [variable(f"b{i}") for i in range(len(sizes) - 1)]
    value = x
    for i, (w, b) in enumerate(zip(weights, biases)):
        product = matmul(value if i == 0 else relu(value), w)
        value = product + broadcast_to(b, product)
    return x, labels, weights + biases, value, softmax_cross_entropy(value, labels)


def initial(sizes):
    """Weights, then biases."""
    random = np.random.RandomState(123)
    shapes = [*zip(sizes, sizes[1:]), *((n,) for n in sizes[1:])]
    return [random.normal(scale=0.1, size=shape).astype("float32") for shape in shapes]


def step_in_place(shape, build):
    """w - rate * g; called as f(w, g, w) it writes into its own input."""
    w, g = (te.placeholder(shape, "float32", name=name) for name in "WG")
    return build(_Update, [w, g, te.compute(shape, lambda *i: w(*i) - g(*i) * RATE, name="updated")])


class _Update:
    name = "update"


class Training:
    """A model, its parameters on the device, and the functions that improve them."""

    def __init__(self, kind, schedule, device=None):
        self.device = device or kiln.cpu(0)
        build = BUILDS[schedule]
        sizes = LAYERS[kind]
        self.x, self.labels, self.parameters, scores, loss = model(sizes)
        self.values = [kiln.nd.array(v, self.device) for v in initial(sizes)]
        self.updates = [step_in_place(v.shape, build) for v in self.values]
        self.learn = Executor([loss, *gradients(loss, self.parameters)], self.device, build)
        self.predict = Executor([scores], self.device, build)

    def batches(self, images, labels):
        """The data on the device, a batch at a time."""
        one_hot = np.eye(10, dtype="float32")[labels]
        return [
            (kiln.nd.array(images[i : i + BATCH], self.device), kiln.nd.array(one_hot[i : i + BATCH], self.device))
            for i in range(0, len(images), BATCH)
        ]

    def epoch(self, batches):
        """The losses, one a batch."""
        losses = []
        for images, labels in batches:
            feeds = {self.x: images, self.labels: labels, **dict(zip(self.parameters, self.values))}
            loss, *slopes = self.learn.run(feeds)
            for update, value, slope in zip(self.updates, self.values, slopes):
                update(value, slope, value)
            losses.append(loss.numpy()[0])
        return losses

    def accuracy(self, images, labels):
        right = 0
        for start in range(0, len(images), BATCH):
            batch = kiln.nd.array(images[start : start + BATCH], self.device)
            (scores,) = self.predict.run({self.x: batch, **dict(zip(self.parameters, self.values))})
            right += (scores.numpy().argmax(axis=1) == labels[start : start + BATCH]).sum()
        return right / len(images)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=LAYERS)
    parser.add_argument("--schedule", choices=BUILDS, default="automatic")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--data", type=pathlib.Path, default=digits.default_folder(), help="where the digits are kept")
    options = parser.parse_args()
    images, labels = digits.load(options.data)
    training = Training(options.model, options.schedule)
    batches = training.batches(images[:50_000], labels[:50_000])
    seconds = []
    for epoch in range(options.epochs):
        begin = time.perf_counter()
        losses = training.epoch(batches)
        seconds.append(time.perf_counter() - begin)
        print(f"epoch {epoch}: loss {losses[-1]:.6f}, {seconds[-1]:.3f} s")
    accuracy = training.accuracy(images[50_000:], labels[50_000:])
    print(f"accuracy {accuracy:.4f}, {sorted(seconds)[len(seconds) // 2]:.3f} s an epoch (median)")


if __name__ == "__main__":
    main()
