"""Operators of topi without a schedule against numpy: right in float32 and float64, and how fast. Prints a table, judges nothing.

    KILN_DAEMON=build/release/bin/kilnd build/venv/bin/python tests/bench/topi_numpy.py            all
    ... topi_numpy.py softmax conv                                                                 those with these words

Sizes are odd, so that no vector is full at the end of a row. The error is the largest, relative to the largest value of numpy's
result in float64. Kiln's time is that of the kernel on resident arrays, numpy's that of the call; both take turns, and the
shortest of all turns counts. On a machine that does something else, Kiln's threads wait for each other: the figures say nothing.
"""

import sys
import time

import numpy as np

import kiln
from kiln import te, topi
from kiln.topi import nn

TURNS = 7
ROWS, COLUMNS = 1023, 1001
MATRIX = (ROWS, COLUMNS)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def windows(x, f):
    """A convolution of numpy: windows that overlap, and a product."""
    return np.einsum("nchwrs,mcrs->nmhw", np.lib.stride_tricks.sliding_window_view(x, f.shape[2:], (2, 3)), f, optimize=True)


def pooled(x, of):
    return of(np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))[:, :, ::2, ::2], (-2, -1))


def normalized(x, gamma, beta):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5) * gamma + beta


def table():
    """(name, operator, numpy's, shapes)."""
    one = lambda *names: [(n, getattr(topi, n), getattr(np, n), [MATRIX]) for n in names]  # noqa: E731
    two = lambda *names: [(n, getattr(topi, n), getattr(np, n), [MATRIX, MATRIX]) for n in names]  # noqa: E731
    yield from one("exp", "tanh", "sin", "cos", "floor", "ceil", "abs", "negative", "sign", "exp2")
    for name in ("sqrt", "log1p"):
        yield f"{name} of abs", lambda x, f=getattr(topi, name): f(topi.abs(x)), lambda x, f=getattr(np, name): f(abs(x)), [MATRIX]
    yield "log", lambda x: topi.log(topi.add(topi.abs(x), 1.0)), lambda x: np.log(abs(x) + 1), [MATRIX]
    yield "sigmoid", topi.sigmoid, lambda x: 1 / (1 + np.exp(-x)), [MATRIX]
    yield "clip", lambda x: topi.clip(x, -0.5, 0.5), lambda x: x.clip(-0.5, 0.5), [MATRIX]
    yield "nn.relu", nn.relu, lambda x: np.maximum(x, 0), [MATRIX]
    yield from two("add", "subtract", "multiply", "divide", "maximum", "minimum")
    yield "add of a row", topi.add, np.add, [MATRIX, (COLUMNS,)]
    yield "where", lambda c, a: topi.where(topi.greater(c, 0.0), c, a), lambda c, a: np.where(c > 0, c, a), [MATRIX, MATRIX]
    for name in ("sum", "max", "min", "prod", "mean", "var", "argmax"):
        for axis in (0, 1):
            yield (f"{name} along {axis}", lambda x, f=getattr(topi, name), a=axis: f(x, a),
                   lambda x, f=getattr(np, name), a=axis: f(x, a), [MATRIX])
    yield "sum of all", topi.sum, np.sum, [MATRIX]
    yield "cumsum along 1", lambda x: topi.cumsum(x, 1), lambda x: np.cumsum(x, 1), [MATRIX]
    yield "transpose", topi.transpose, lambda x: np.ascontiguousarray(x.T), [MATRIX]
    yield "concatenate", lambda a, b: topi.concatenate([a, b], 1), lambda a, b: np.concatenate([a, b], 1), [MATRIX, MATRIX]
    yield "flip", lambda x: topi.flip(x, 1), lambda x: np.ascontiguousarray(np.flip(x, 1)), [MATRIX]
    yield "tile", lambda x: topi.tile(x, (2, 2)), lambda x: np.tile(x, (2, 2)), [MATRIX]
    yield "repeat", lambda x: topi.repeat(x, 2, 1), lambda x: x.repeat(2, 1), [MATRIX]
    yield "strided_slice", lambda x: topi.strided_slice(x, (1, 2), (1000, 1000), (2, 3)), lambda x: x[1:1000:2, 2:1000:3].copy(), [MATRIX]
    yield "sort", lambda x: topi.sort(x, 1), lambda x: np.sort(x, 1), [(101, COLUMNS)]
    yield "nn.pad", lambda x: nn.pad(x, (1, 2)), lambda x: np.pad(x, ((1, 1), (2, 2))), [MATRIX]
    yield "matmul", topi.matmul, np.matmul, [(511, 517), (517, 509)]
    yield "nn.batch_matmul", nn.batch_matmul, lambda a, b: a @ b.transpose(0, 2, 1), [(15, 127, 129), (15, 125, 129)]
    yield "nn.dense", nn.dense, lambda x, w: x @ w.T, [(129, 513), (255, 513)]
    yield "einsum ij,ij->i", lambda a, b: topi.einsum("ij,ij->i", a, b), lambda a, b: np.einsum("ij,ij->i", a, b), [MATRIX, MATRIX]
    yield "nn.softmax", nn.softmax, softmax, [MATRIX]
    yield "nn.log_softmax", nn.log_softmax, lambda x: np.log(softmax(x)), [MATRIX]
    yield "nn.layer_norm", lambda x, g, b: nn.layer_norm(x, g, b, [1]), normalized, [MATRIX, (COLUMNS,), (COLUMNS,)]
    yield "nn.conv2d_nchw", nn.conv2d_nchw, windows, [(1, 31, 57, 57), (33, 31, 3, 3)]
    yield "nn.pool2d max", lambda x: nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max"), lambda x: pooled(x, np.max), [(1, 64, 56, 58)]
    yield "nn.pool2d avg", lambda x: nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "avg"), lambda x: pooled(x, np.mean), [(1, 64, 56, 58)]


def seconds(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def row(name, operator, reference, shapes):
    random = np.random.default_rng(0)
    given = [random.uniform(-1, 1, shape) for shape in shapes]
    cells = []
    for dtype in ("float32", "float64"):
        tensors = [te.placeholder(shape, dtype, f"X{i}") for i, shape in enumerate(shapes)]
        kernel = kiln.build([*tensors, operator(*tensors)], name="f")
        values = [x.astype(dtype) for x in given]
        exact = reference(*(x.astype("float64") for x in values))
        arrays = [kiln.nd.array(x) for x in values]
        found = kernel(*arrays)
        off = abs(found.numpy().astype("float64") - exact).max() / max(abs(exact).max(), 1e-30)
        measure = kernel.time_evaluator("f", kiln.cpu(0), number=1)
        turns = [(measure(*arrays, found).min, seconds(lambda v=values: reference(*v))) for _ in range(TURNS)]
        ours, theirs = (min(side) for side in zip(*turns))
        cells += [f"{off:.0e}", f"{ours * 1e6:.0f}", f"{theirs * 1e6:.0f}", f"{theirs / ours:.1f}"]
    shown = ", ".join("x".join(map(str, shape)) for shape in shapes)
    print(f"| `{name}` | {shown} | {' | '.join(cells)} |", flush=True)


def main(words):
    print("| operator | shapes | error float32 | Kiln us | numpy us | times faster | error float64 | Kiln us | numpy us | times faster |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, operator, reference, shapes in table():
        if not words or any(word in name for word in words):
            row(name, operator, reference, shapes)


if __name__ == "__main__":
    main(sys.argv[1:])
