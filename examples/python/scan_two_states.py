"""Two recurrences side by side, the second of which reads the first."""

import numpy as np
from show import built, show

import kiln as tvm
from kiln import te

m, n, l = te.var("m"), te.var("n"), te.var("l")
X = te.placeholder((m, n), name="X")
first, second = te.placeholder((m, n)), te.placeholder((m, l))
sums, counts = te.scan(
    [te.compute((1, n), lambda _, i: X[0, i]), te.compute((1, l), lambda _, i: 0.0)],
    [
        te.compute((m, n), lambda t, i: first[t - 1, i] + X[t, i]),
        te.compute((m, l), lambda t, i: second[t - 1, i] + first[t - 1, 0]),
    ],
    [first, second],
    inputs=[X],
)

f = built(tvm.build([X, sums, counts], name="two_states"))
x = np.random.default_rng(0).uniform(size=(10, 8)).astype("float32")
a, b = np.empty((10, 8), "float32"), np.empty((10, 5), "float32")
f(x, a, b)

expected = np.cumsum(x, axis=0)
show("the running sum", f, a, expected)
below = np.concatenate([np.zeros(1, "float32"), np.cumsum(expected[:-1, 0], dtype="float32")])
show("the running sum of its first column", f, b, np.repeat(below[:, None], 5, axis=1))
