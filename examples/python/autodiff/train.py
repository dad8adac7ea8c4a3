"""Trains logistic regression or a multilayer perceptron on handwritten digits."""

import argparse
import functools
import time

import digits
import numpy as np
from graph import Executor, gradients
from operators import Node, broadcast_to, matmul, relu, softmax_cross_entropy

import kiln
from kiln import te

BATCH, RATE = 1000, 1e-3
LAYERS = {"logistic": (784, 10), "mlp": (784, 256, 100, 10)}
SCHEDULES = ("automatic", "tiled", "plain")


def build(schedule, name, tensors):
    """A kernel as Kiln schedules it, as plain loops, or these but for matrix products in tiles of 32 x 32 x 4."""
    if schedule != "tiled" or name != "matmul":
        return kiln.build(tensors, name=name, auto="always" if schedule == "automatic" else "never")
    C = tensors[-1]
    s = te.create_schedule(C.op)
    xo, yo, xi, yi = s[C].tile(*C.op.axis, 32, 32)
    ko, ki = s[C].split(C.op.reduce_axis[0], factor=4)
    s[C].reorder(xo, yo, ko, xi, yi, ki)
    s[C].vectorize(yi)
    s[C].parallel(xo)
    return kiln.build(s, tensors, name=name, auto="never")


def model(sizes):
    """The nodes of a network of fully connected layers: x, labels, parameters, scores, loss."""
    x, labels, scores = Node(), Node(), None
    weights, biases = ([Node() for _ in sizes[1:]] for _ in "wb")
    for w, b in zip(weights, biases):
        product = matmul(relu(scores) if scores else x, w)
        scores = product + broadcast_to(b, product)
    return x, labels, weights + biases, scores, softmax_cross_entropy(scores, labels)


class Training:
    """A model, its parameters, and the functions that improve them."""

    def __init__(self, kind, schedule):
        sizes = LAYERS[kind]
        self.x, self.labels, parameters, scores, loss = model(sizes)
        compiled, random = functools.partial(build, schedule), np.random.RandomState(123)
        self.values, self.updates = {}, []
        for node, shape in zip(parameters, [*zip(sizes, sizes[1:]), *((n,) for n in sizes[1:])]):
            self.values[node] = kiln.nd.array(random.normal(scale=0.1, size=shape).astype("float32"))
            w, g = te.placeholder(shape, name="W"), te.placeholder(shape, name="G")
            self.updates.append(compiled("update", [w, g, w - g * RATE]))
        self.learn = Executor([loss, *gradients(loss, parameters)], compiled)
        self.predict = Executor([scores], compiled)

    def batches(self, *data):
        """The data on the device, a batch at a time."""
        return [[kiln.nd.array(x[i : i + BATCH]) for x in data] for i in range(0, len(data[0]), BATCH)]

    def epoch(self, batches):
        """The losses, one a batch. The parameters change in place: each update writes into its own input."""
        losses = []
        for images, labels in batches:
            loss, *slopes = self.learn.run({self.x: images, self.labels: labels, **self.values})
            for update, value, slope in zip(self.updates, self.values.values(), slopes):
                update(value, slope, value)
            losses.append(loss.numpy())
        return losses

    def accuracy(self, images, labels):
        results = [self.predict.run({self.x: x, **self.values})[0].numpy() for (x,) in self.batches(images)]
        return (np.concatenate(results).argmax(axis=1) == labels).mean()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=LAYERS)
    parser.add_argument("--schedule", choices=SCHEDULES, default="automatic")
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    images, labels = digits.load()
    training = Training(options.model, options.schedule)
    batches = training.batches(images[:50_000], np.eye(10, dtype="float32")[labels[:50_000]])
    for epoch in range(options.epochs):
        begin = time.perf_counter()
        losses = training.epoch(batches)
        print(f"epoch {epoch}: loss {losses[-1]:.6f}, {time.perf_counter() - begin:.3f} s")
    print(f"accuracy {training.accuracy(images[50_000:], labels[50_000:]):.4f}")
