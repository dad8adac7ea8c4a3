"""Weights and inputs that all systems are given alike."""

import measure
import numpy as np


def normal(*shape):
    return np.random.default_rng(1).standard_normal(shape, "float32")


def resnet(sizes):
    import resnet

    return resnet.random_weights(), normal(sizes.batch, 3, sizes.image, sizes.image)


def lstm(sizes):
    shapes = {f"l{i}.{kind}": (sizes.hidden, 4 * sizes.hidden) for i in range(2) for kind in "xh"}
    return measure.weights(shapes), normal(sizes.steps, sizes.batch, sizes.hidden)


def gpt2(sizes):
    import gpt2

    tokens = np.random.default_rng(2).integers(0, sizes.words, sizes.tokens).astype("int32")
    return measure.weights(gpt2.shapes_of(sizes.layers, sizes.width, sizes.words, sizes.places)), tokens


def mnist(count=50_000):
    """Images and labels as numbers that look like digits do: sparse, from 0 to 1."""
    random = np.random.default_rng(3)
    images = np.maximum(random.standard_normal((count, 784), "float32") - 1, 0) / 4
    return images, np.eye(10, dtype="float32")[random.integers(0, 10, count)]
