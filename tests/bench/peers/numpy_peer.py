"""numpy with the BLAS it comes with; every output is given."""

import os
from functools import partial

import numpy as np

import expressions


class Names:
    """What expressions.py asks of numpy."""

    exp, sqrt, tanh, transposed, cumsum = np.exp, np.sqrt, np.tanh, np.transpose, np.cumsum
    dense = staticmethod(np.ascontiguousarray)
    einsum = partial(np.einsum, optimize=True)

    @staticmethod
    def relu(x):
        return np.maximum(x, x.dtype.type(0))

    @staticmethod
    def largest(x, axis, keep):
        return x.max(axis=axis, keepdims=keep)

    @staticmethod
    def recurrence(x, axis, decay):
        out = np.array(x)
        steps = np.moveaxis(out, axis, 0)
        for before, now in zip(steps, steps[1:]):
            now += x.dtype.type(decay) * before
        return out


class Peer:
    def __init__(self, threads):
        # OpenBLAS spins as OpenMP does, but no variable binds its threads to cores.
        np.dot(*np.ones((2, 512, 512), "float32"))
        for thread, core in zip(sorted(map(int, os.listdir("/proc/self/task"))), sorted(os.sched_getaffinity(0))):
            os.sched_setaffinity(thread, {core})

    def get(self, result):
        return np.asarray(result)

    def expression(self, *arrays, family, parameters):
        run = expressions.expression(Names, family, parameters)
        return run and partial(run, *arrays)

    def matmul(self, a, b, a_transposed, b_transposed):
        a = a.swapaxes(-1, -2) if a_transposed else a
        b = b.swapaxes(-1, -2) if b_transposed else b
        return partial(np.matmul, a, b, out=np.empty((*a.shape[:-1], b.shape[-1]), "float32"))

    def softmax(self, x):
        out = np.empty_like(x)

        def run():
            np.subtract(x, x.max(-1, keepdims=True), out=out)
            np.exp(out, out=out)
            return np.divide(out, out.sum(-1, keepdims=True), out=out)

        return run

    def cross_entropy(self, x, labels):
        z, e = np.empty_like(x), np.empty_like(x)

        def run():
            np.subtract(x, x.max(-1, keepdims=True), out=z)
            return (np.log(np.exp(z, out=e).sum(-1)).sum() - np.vdot(labels, z)) / np.float32(len(x))

        return run

    def layer_norm(self, x, gamma, beta):
        out, d = np.empty_like(x), np.empty_like(x)

        def run():
            np.subtract(x, x.mean(-1, keepdims=True), out=d)
            variance = np.einsum("ij,ij->i", d, d) / np.float32(x.shape[1])
            np.divide(d, np.sqrt(variance + np.float32(1e-5))[:, None], out=out)
            return np.add(np.multiply(out, gamma, out=out), beta, out=out)

        return run

    def fma_relu(self, a, b, c):
        out = np.empty_like(a)
        return lambda: np.maximum(np.add(np.multiply(a, b, out=out), c, out=out), 0, out=out)

    def add(self, a, b):
        return partial(np.add, a, b, out=np.empty_like(a))

    def transpose(self, x):
        out = np.empty(x.shape[::-1], "float32")

        def run():
            out[...] = x.T
            return out

        return run

    def sum(self, x, axis):
        return partial(np.sum, x, axis=axis, out=np.empty(x.shape[1 - axis], "float32"))

    def max(self, x, axis):
        return partial(np.max, x, axis=axis, out=np.empty(x.shape[1 - axis], "float32"))

    def cumsum(self, x, axis):
        return partial(np.cumsum, x, axis=axis, out=np.empty_like(x))

    def recurrence(self, x, decay):
        out, decay = np.empty_like(x), np.float32(decay)
        steps = list(zip(out, out[1:], x[1:]))

        def run():
            out[0] = x[0]
            for before, now, new in steps:
                np.add(np.multiply(before, decay, out=now), new, out=now)
            return out

        return run
