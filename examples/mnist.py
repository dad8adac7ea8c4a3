"""Trains logistic regression or a multilayer perceptron on the digits of MNIST: an epoch is one call.

    python mnist.py -m mlp -l            # loss and time of each epoch, then the accuracy
    python mnist.py -m logreg --plot loss.png
    python mnist.py -m mlp --peers       # numpy, and jax and torch where they are installed, in turns

Batches of 1,000, weights and biases from RandomState(123).normal(scale=0.1), pixels / 256, the first 50,000 digits to train
and the last 10,000 of the training file to validate. The loss is the mean over a batch, the gradient its sum."""

import argparse
import pathlib
import sys
import time

import numpy as np

import kiln
from kiln import topi

sys.path.insert(0, str(pathlib.Path(__file__).parent / "python/autodiff"))
import digits  # noqa: E402

BATCH = 1000
LAYERS = {"logreg": (784, 10), "mlp": (784, 256, 100, 10)}


def starting_parameters(model):
    """Weights, then biases."""
    sizes, random = LAYERS[model], np.random.RandomState(123)
    shapes = [*zip(sizes, sizes[1:]), *((size,) for size in sizes[1:])]
    return [random.normal(scale=0.1, size=shape) for shape in shapes]


class Training:
    """A model as two programs on the same parameters: one takes steps, one predicts."""

    def __init__(self, model, rate=1e-3):
        self.step = kiln.Program(model)
        x, labels = self.step.data((BATCH, 784), name="x"), self.step.data((BATCH, 10), name="labels")
        values = starting_parameters(model)
        names = [f"{kind}{i}" for kind in "wb" for i in range(len(values) // 2)]
        parameters = [self.step.parameter(v.astype("float32"), n) for v, n in zip(values, names)]
        loss = topi.nn.softmax_cross_entropy(self.scores(x, parameters), labels)
        self.step.report(loss=loss)
        # The gradient of the batch is summed, that of its mean loss times its rows.
        self.step.minimize(loss, kiln.optimizers.SGD(rate * BATCH))

        self.predict = kiln.Program(f"{model}_scores")
        images = self.predict.input((10_000, 784), name="images")
        arrays = self.step.parameters
        same = [self.predict.parameter(arrays[name], name) for name in names]
        self.predict.output(scores=self.scores(images, same))

    @staticmethod
    def scores(x, parameters):
        count = len(parameters) // 2
        for k in range(count):
            x = topi.matmul(x, parameters[k]) + parameters[count + k]
            x = topi.nn.relu(x) if k + 1 < count else x
        return x

    def epoch(self, data):
        """The loss of each batch."""
        return self.step.run(data).reports["loss"]

    def accuracy(self, images, labels):
        scores = self.predict.run({"images": images}).scores
        return (scores.argmax(axis=1) == labels).mean()


def reference_epoch(parameters, images, labels, rate=1e-3):
    """One epoch by numpy, in the type of what is given: changes the parameters, returns the losses."""
    count, losses = len(parameters) // 2, []
    for i in range(0, len(images), BATCH):
        inputs, y = [images[i : i + BATCH]], labels[i : i + BATCH]
        for k in range(count):
            inputs.append(inputs[-1] @ parameters[k] + parameters[count + k])
            if k + 1 < count:
                np.maximum(inputs[-1], 0, out=inputs[-1])
        scores = inputs.pop()
        scores = scores - scores.max(axis=1, keepdims=True)
        e = np.exp(scores)
        total = e.sum(axis=1, keepdims=True)
        losses.append((np.log(total[:, 0]) - (scores * y).sum(axis=1)).mean())
        slope = e / total - y
        for k in reversed(range(count)):
            of_w, of_b = inputs[k].T @ slope, slope.sum(axis=0)
            if k:
                slope = (slope @ parameters[k].T) * (inputs[k] > 0)
            parameters[k] -= rate * of_w
            parameters[count + k] -= rate * of_b
    return losses


def compare(model, images, labels):
    """Seconds of the fastest of ten epochs of each, taking turns."""
    import mnist_peers

    epochs = mnist_peers.epochs(model, images, labels)
    best = dict.fromkeys(epochs, np.inf)
    for _ in range(10):
        for name, epoch in epochs.items():
            begin = time.perf_counter()
            epoch()
            best[name] = min(best[name], time.perf_counter() - begin)
    for name, seconds in best.items():
        print(f"{name}: {seconds * 1e3:.1f} ms an epoch")


def plot(losses, path):
    from matplotlib import pyplot

    pyplot.plot(losses)
    pyplot.xlabel("step")
    pyplot.ylabel("loss")
    pyplot.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", choices=LAYERS, default="logreg")
    parser.add_argument("-l", "--print-loss", action="store_true", help="print loss and time of each epoch")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--plot", metavar="FILE", help="write the loss of each step as a picture")
    parser.add_argument("--save", metavar="FILE.npz", help="write the parameters")
    parser.add_argument("--resume", metavar="FILE.npz", help="go on from these parameters")
    parser.add_argument("--peers", action="store_true", help="measure other libraries' epochs as well")
    options = parser.parse_args()

    images, numbers = digits.load()
    one_hot = np.eye(10, dtype="float32")[numbers]
    if options.peers:
        return compare(options.model, images[:50_000], one_hot[:50_000])
    training = Training(options.model, options.rate)
    if options.resume:
        training.step.load(options.resume)
    data = {"x": kiln.nd.array(images[:50_000]), "labels": kiln.nd.array(one_hot[:50_000])}
    losses = []
    for epoch in range(options.epochs):
        begin = time.perf_counter()
        losses.extend(training.epoch(data))
        if options.print_loss:
            print(f"epoch {epoch}: loss = {losses[-1]:.6f}, {time.perf_counter() - begin:.3f} s")
    print(f"validation accuracy = {training.accuracy(images[50_000:], numbers[50_000:]):.4f}")
    if options.save:
        training.step.save(options.save)
    if options.plot:
        plot(losses, options.plot)


if __name__ == "__main__":
    main()
