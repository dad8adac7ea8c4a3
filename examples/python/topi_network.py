"""A small network of topi operators: a convolution, a pool and a layer, for any number of images."""

import numpy as np
from show import built, show

import kiln as tvm
from kiln import te, topi

n = te.var("n")
X = te.placeholder((n, 1, 16, 16), name="X")
F = te.placeholder((4, 1, 3, 3), name="F")
W = te.placeholder((10, 4 * 7 * 7), name="W")

hidden = topi.nn.relu(topi.nn.conv2d(X, F))
pooled = topi.nn.pool2d(hidden, 2, 2, 1, 0, "max")
P = topi.nn.softmax(topi.nn.dense(topi.flatten(pooled), W))

f = built(tvm.build([X, F, W, P], name="network"))
random = np.random.default_rng(0)
x = random.normal(size=(8, 1, 16, 16)).astype("float32")
filters = random.normal(size=(4, 1, 3, 3)).astype("float32")
w = random.normal(size=(10, 196)).astype("float32") * 0.1

windows = np.lib.stride_tricks.sliding_window_view(x[:, 0], (3, 3), axis=(1, 2))
values = np.maximum(np.einsum("nhwrs,mrs->nmhw", windows, filters[:, 0]), 0)
values = values.reshape(8, 4, 7, 2, 7, 2).max((3, 5)).reshape(8, -1) @ w.T
powers = np.exp(values - values.max(axis=1, keepdims=True))
show("classes of 8 images", f, f(x, filters, w), powers / powers.sum(axis=1, keepdims=True), rtol=1e-4)
