"""Kernels that several tests run, in the words of the tutorials' users."""

from kiln import te


def cumsum():
    """[X, S] with S = the running sum of X along dimension 0, for any m and n."""
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: x[0, i])
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i])
    return [x, te.scan(init, update, state, inputs=[x])]


def matmul(rows, inner, columns):
    a = te.placeholder((rows, inner), name="A")
    b = te.placeholder((inner, columns), name="B")
    k = te.reduce_axis((0, inner), name="k")
    return [a, b, te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]


def softmax(rows, columns):
    x = te.placeholder((rows, columns), name="X")
    k = te.reduce_axis((0, columns), name="k")
    top = te.compute((rows,), lambda i: te.max(x[i, k], axis=k), name="top")
    e = te.compute((rows, columns), lambda i, j: te.exp(x[i, j] - top[i]), name="e")
    k2 = te.reduce_axis((0, columns), name="k2")
    total = te.compute((rows,), lambda i: te.sum(e[i, k2], axis=k2), name="total")
    return [x, te.compute((rows, columns), lambda i, j: e[i, j] / total[i], name="Y")]


def add_one(n=64):
    x = te.placeholder((n,), name="X")
    return [x, te.compute((n,), lambda i: x[i] + 1, name="Y")]
