"""Softmax over rows: four stages, no schedule, any shape."""

import numpy as np
from show import built, show

import kiln as tvm
from kiln import te

m, n = te.var("m"), te.var("n")
X = te.placeholder((m, n), name="X")
k, k2 = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="k2")
top = te.compute((m,), lambda i: te.max(X[i, k], axis=k), name="top")
e = te.compute((m, n), lambda i, j: te.exp(X[i, j] - top[i]), name="e")
total = te.compute((m,), lambda i: te.sum(e[i, k2], axis=k2), name="total")
Y = te.compute((m, n), lambda i, j: e[i, j] / total[i], name="Y")

f = built(tvm.build([X, Y], name="softmax"))
x = np.random.default_rng(0).normal(size=(64, 1000)).astype("float32")
powers = np.exp(x - x.max(axis=1, keepdims=True))
show("softmax of 64 x 1000", f, f(x), powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)
