"""An LSTM of two layers over a sequence, of which only the last step is kept."""

import numpy as np
from show import built, show

import kiln as tvm
from kiln import te

STEPS, BATCH, HIDDEN = 20, 4, 32
m = te.var("m")  # steps, of which one kernel takes any number


def lstm(x, name):
    """The hidden states of a layer: step 0 is zero, step t reads x at t and its own step t - 1."""
    wx, wh = (te.placeholder((HIDDEN, 4, HIDDEN), name=f"{name}.{w}") for w in ("wx", "wh"))
    h, c = (te.placeholder((m + 1, BATCH, HIDDEN), name=f"{name}.{s}") for s in ("h", "c"))
    k, l = (te.reduce_axis((0, HIDDEN), name=axis) for axis in ("k", "l"))
    shape = (m + 1, BATCH, 4, HIDDEN)
    gates_x = te.compute(shape, lambda t, b, g, i: te.sum(x[t, b, k] * wx[k, g, i], axis=k))
    gates_h = te.compute(shape, lambda t, b, g, i: te.sum(h[t - 1, b, l] * wh[l, g, i], axis=l))
    gates = te.compute(shape, lambda t, b, g, i: gates_x[t, b, g, i] + gates_h[t, b, g, i])
    next_c = te.compute(
        (m + 1, BATCH, HIDDEN),
        lambda t, b, i: te.sigmoid(gates[t, b, 1, i]) * c[t - 1, b, i]
        + te.sigmoid(gates[t, b, 0, i]) * te.tanh(gates[t, b, 2, i]),
    )
    next_h = te.compute(
        (m + 1, BATCH, HIDDEN),
        lambda t, b, i: te.sigmoid(gates[t, b, 3, i]) * te.tanh(next_c[t, b, i]),
    )
    zero = [te.compute((1, BATCH, HIDDEN), lambda t, b, i: 0.0) for _ in range(2)]
    result, _ = te.scan(zero, [next_h, next_c], [h, c], name=name)
    return result, [wx, wh]


X = te.placeholder((m, BATCH, HIDDEN), name="X")
inputs = te.compute(
    (m + 1, BATCH, HIDDEN), lambda t, b, i: te.if_then_else(t > 0, X[t - 1, b, i], 0.0)
)
first, weights = lstm(inputs, "layer1")
second, more = lstm(first, "layer2")
last = te.compute((BATCH, HIDDEN), lambda b, i: second[m, b, i], name="last")
f = built(tvm.build([X, *weights, *more, last], name="lstm"))


def reference(x, wx, wh):
    """The same with numpy, one layer."""
    h, c = np.zeros((2, BATCH, HIDDEN), "float32")
    for step in x:
        i, f, g, o = np.moveaxis(np.tensordot(step, wx, 1) + np.tensordot(h, wh, 1), 1, 0)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        yield h


random = np.random.default_rng(0)
x = random.normal(size=(STEPS, BATCH, HIDDEN)).astype("float32")
w = [random.normal(scale=0.2, size=(HIDDEN, 4, HIDDEN)).astype("float32") for _ in range(4)]
expected = list(reference(np.stack(list(reference(x, *w[:2]))), *w[2:]))[-1]
show(f"two layers, {STEPS} steps", f, f(x, *w), expected, rtol=1e-3)
