"""ResNet-18 on images of 224x224 with random weights, as one program. Its batch normalizations are folded into scales
and shifts of channels, as they are when a trained model predicts."""

import measure
import numpy as np

import kiln
from kiln import topi

STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # channels, and how far apart the first block reads
BLOCKS = 2


def convolutions():
    """Name, output channels, input channels and window of each convolution."""
    yield "stem", 64, 3, 7
    channels = 64
    for stage, (wide, stride) in enumerate(STAGES):
        for block in range(BLOCKS):
            name = f"s{stage}b{block}"
            yield f"{name}.a", wide, channels, 3
            yield f"{name}.b", wide, wide, 3
            if block == 0 and (stride > 1 or channels != wide):
                yield f"{name}.skip", wide, channels, 1
            channels = wide


def shapes_of(classes):
    shapes = {}
    for name, out, channels, window in convolutions():
        shapes |= {f"{name}.w": (out, channels, window, window), f"{name}.scale": (out,), f"{name}.shift": (out,)}
    return shapes | {"fc.w": (classes, STAGES[-1][0]), "fc.b": (classes,)}


def layers(x, w, conv, relu, max_pool, mean_pool, dense):
    """The network, of whatever the functions work on."""

    def normal(x, name, stride=1, padding=1):
        return conv(x, w[f"{name}.w"], stride, padding, w[f"{name}.scale"], w[f"{name}.shift"])

    x = max_pool(relu(normal(x, "stem", 2, 3)))
    for stage, (_, stride) in enumerate(STAGES):
        for block in range(BLOCKS):
            name = f"s{stage}b{block}"
            step = stride if block == 0 else 1
            same = normal(x, f"{name}.skip", step, 0) if f"{name}.skip.w" in w else x
            x = relu(normal(relu(normal(x, f"{name}.a", step)), f"{name}.b") + same)
    return dense(mean_pool(x), w["fc.w"], w["fc.b"])


def model(batch, weights, size=224):
    """The program, and its input."""
    program = kiln.Program("resnet18")
    x = program.input((batch, 3, size, size), name="x")
    w = {name: program.parameter(value, name) for name, value in weights.items()}

    def conv(x, f, stride, padding, scale, shift):
        return topi.nn.scale_shift_nchw(topi.nn.conv2d(x, f, stride, padding), scale, shift)

    def max_pool(x):
        return topi.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max")

    scores = layers(x, w, conv, topi.nn.relu, max_pool, lambda x: topi.nn.flatten(topi.nn.global_pool(x, "avg")), topi.nn.dense)
    program.output(scores=scores)
    return program, x


def windows(x, size, stride, padding, value=0.0):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), constant_values=value)
    return np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(2, 3))[:, :, ::stride, ::stride]


def reference(x, w):
    """By numpy."""

    def conv(x, f, stride, padding, scale, shift):
        y = np.tensordot(windows(x, f.shape[2], stride, padding), f, ([1, 4, 5], [1, 2, 3])).transpose(0, 3, 1, 2)
        return y * scale[:, None, None] + shift[:, None, None]

    return layers(
        x, w, conv, lambda x: np.maximum(x, 0), lambda x: windows(x, 3, 2, 1, -np.inf).max((4, 5)),
        lambda x: x.mean((2, 3)), lambda x, w, b: x @ w.T + b,
    )  # fmt: skip


def random_weights(classes=1000):
    weights = measure.weights(shapes_of(classes))
    for name, value in weights.items():
        if name.endswith(".scale"):
            value += 1
        elif name.endswith(".w") and value.ndim == 4:  # so that what a relu halves stays as large
            value *= np.sqrt(2)
    return weights


def main():
    options = measure.arguments(__doc__, batch=1, size=224)
    weights = random_weights()
    program, x = model(options.batch, weights, options.size)
    values = np.random.default_rng(1).standard_normal(x.shape, "float32")
    measure.compiled(program, {x: values})
    result = measure.timed(program, {x: values}, options.runs, f"{options.batch} images of {options.size}x{options.size}")
    measure.checked(result.scores, reference(values, weights), 1e-4)


if __name__ == "__main__":
    main()
