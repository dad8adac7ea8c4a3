"""What the workloads must compute: numpy, called with float64 arrays."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import expressions
from peers import numpy_peer


def matmul(a, b, a_transposed, b_transposed):
    return (a.swapaxes(-1, -2) if a_transposed else a) @ (b.swapaxes(-1, -2) if b_transposed else b)


def expression(*arrays, family, parameters):
    class Names(numpy_peer.Names):
        conv2d = dilated

    return expressions.expression(Names, family, parameters)(*arrays)


def dilated(data, weight, stride, padding, dilation):
    """A convolution whose taps stand apart: zeros between them."""
    outputs, channels, *kernel = weight.shape
    spread = np.zeros((outputs, channels, *((k - 1) * dilation + 1 for k in kernel)))
    spread[:, :, ::dilation, ::dilation] = weight
    return conv2d(data, spread, stride, padding, 1)


def tutorial(a, b):
    return a @ b


def conv2d(data, weight, stride, padding, groups):
    data = np.pad(data, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = sliding_window_view(data, weight.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    parts = zip(np.split(windows, groups, axis=1), np.split(weight, groups))
    results = [np.tensordot(x, w, ([1, 4, 5], [1, 2, 3])) for x, w in parts]
    return np.concatenate(results, axis=-1).transpose(0, 3, 1, 2)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def cross_entropy(x, labels):
    z = x - x.max(-1, keepdims=True)
    return -(labels * (z - np.log(np.exp(z).sum(-1, keepdims=True)))).sum(-1).mean()


def layer_norm(x, gamma, beta):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * gamma + beta


def fma_relu(a, b, c):
    return np.maximum(a * b + c, 0)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def add(a, b):
    return a + b


def transpose(x):
    return x.T


def sum(x, axis):
    return x.sum(axis)


def max(x, axis):
    return x.max(axis)


def cumsum(x, axis):
    return np.cumsum(x, axis)


def recurrence(x, decay):
    s = x.copy()
    for t in range(1, len(x)):
        s[t] += decay * s[t - 1]
    return s
