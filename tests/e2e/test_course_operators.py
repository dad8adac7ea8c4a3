"""The operators of a course on machine learning systems, written in te, at the sizes of its exercises."""

import numpy as np
import pytest

from kiln import te

RTOL = 1e-5


def uniform(*shape, low=0.0, high=10.0):
    return np.random.RandomState(11).uniform(low, high, shape).astype("float32")


def arguments(*shapes):
    return [te.placeholder(shape, name=name) for shape, name in zip(shapes, ("A", "B"))]


def check(connection, tensors, inputs, expected):
    """By writing into a given output, as the course calls its kernels."""
    output = np.zeros([int(size) for size in tensors[-1].shape], "float32")
    connection.build(tensors)(*inputs, output)
    np.testing.assert_allclose(output, expected, rtol=RTOL)


def test_elementwise_add(shared_daemon):
    A, B = arguments((500, 200), (500, 200))
    a, b = uniform(500, 200), uniform(500, 200, high=3)
    C = te.compute(A.shape, lambda *i: A(*i) + B(*i), name="C")
    check(shared_daemon, [A, B, C], (a, b), a + b)


def test_elementwise_multiply(shared_daemon):
    A, B = arguments((500, 200), (500, 200))
    a, b = uniform(500, 200), uniform(500, 200, high=3)
    C = te.compute(A.shape, lambda *i: A(*i) * B(*i), name="C")
    check(shared_daemon, [A, B, C], (a, b), a * b)


@pytest.mark.parametrize("operator", ["add", "multiply"])
def test_by_a_constant(shared_daemon, operator):
    (A,) = arguments((2000, 3000))
    a, constant = uniform(2000, 3000), 7.25
    if operator == "add":
        C = te.compute(A.shape, lambda i, j: A[i, j] + constant, name="C")
        return check(shared_daemon, [A, C], (a,), a + np.float32(constant))
    C = te.compute(A.shape, lambda i, j: A[i, j] * constant, name="C")
    check(shared_daemon, [A, C], (a,), a * np.float32(constant))


def test_relu(shared_daemon):
    (A,) = arguments((2000, 2500))
    a = uniform(2000, 2500, low=-1, high=1)
    zero = te.const(0, "float32")
    C = te.compute(A.shape, lambda *i: te.max(A(*i), zero), name="C")
    check(shared_daemon, [A, C], (a,), np.maximum(a, 0))


def test_the_gradient_of_relu(shared_daemon):
    A, G = arguments((2000, 2500), (2000, 2500))
    a, g = uniform(2000, 2500, low=-1, high=1), uniform(2000, 2500, low=-5, high=5)
    C = te.compute(
        A.shape, lambda *i: te.if_then_else(A(*i) > 0, G(*i), te.const(0, "float32")), name="C")
    check(shared_daemon, [A, G, C], (a, g), g * (a > 0))


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_matmul(shared_daemon, transpose_a, transpose_b):
    shape_a = (700, 500) if transpose_a else (500, 700)
    shape_b = (1000, 700) if transpose_b else (700, 1000)
    A, B = arguments(shape_a, shape_b)
    a, b = uniform(*shape_a), uniform(*shape_b)
    k = te.reduce_axis((0, 700), name="k")

    def element(i, j):
        left = A[k, i] if transpose_a else A[i, k]
        right = B[j, k] if transpose_b else B[k, j]
        return te.sum(left * right, axis=k)

    C = te.compute((500, 1000), element, name="C")
    left, right = a.T if transpose_a else a, b.T if transpose_b else b
    check(shared_daemon, [A, B, C], (a, b), left @ right)


def test_conv2d(shared_daemon):
    shape, filters = (100, 3, 28, 28), (10, 3, 5, 5)
    A, F = arguments(shape, filters)
    a, f = uniform(*shape), uniform(*filters)
    c, r, s = (te.reduce_axis((0, size), name=name) for size, name in zip(filters[1:], "crs"))
    C = te.compute(
        (100, 10, 24, 24),
        lambda n, m, h, w: te.sum(A[n, c, h + r, w + s] * F[m, c, r, s], axis=[c, r, s]), name="C")
    windows = np.lib.stride_tricks.sliding_window_view(a.astype("float64"), (5, 5), (2, 3))
    expected = np.einsum("nchwrs,mcrs->nmhw", windows, f.astype("float64"), optimize=True)
    check(shared_daemon, [A, F, C], (a, f), expected)


def softmax(A, rows, columns):
    k1, k2 = (te.reduce_axis((0, columns), name=name) for name in ("k1", "k2"))
    top = te.compute((rows,), lambda i: te.max(A[i, k1], axis=k1), name="top")
    E = te.compute((rows, columns), lambda i, j: te.exp(A[i, j] - top[i]), name="E")
    total = te.compute((rows,), lambda i: te.sum(E[i, k2], axis=k2), name="total")
    return te.compute((rows, columns), lambda i, j: E[i, j] / total[i], name="S")


def numpy_softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def test_softmax(shared_daemon):
    (A,) = arguments((400, 1000))
    a = uniform(400, 1000, low=-5, high=5)
    check(shared_daemon, [A, softmax(A, 400, 1000)], (a,), numpy_softmax(a))


def test_softmax_cross_entropy(shared_daemon):
    shape = (400, 1000)
    A, B = arguments(shape, shape)
    a, b = uniform(*shape, low=-5, high=5), uniform(*shape, high=1)
    S = softmax(A, *shape)
    i = te.reduce_axis((0, shape[0]), name="i")
    j = te.reduce_axis((0, shape[1]), name="j")
    total = te.compute((1,), lambda _: te.sum(B[i, j] * te.log(S[i, j]), axis=[i, j]), name="total")
    C = te.compute((1,), lambda _: -total[0] / shape[0], name="C")
    expected = np.mean(-np.sum(b * np.log(numpy_softmax(a.astype("float64"))), axis=1), keepdims=True)
    check(shared_daemon, [A, B, C], (a, b), expected)


def test_reduce_sum_axis_zero(shared_daemon):
    (A,) = arguments((500, 200, 100))
    a = uniform(500, 200, 100)
    k = te.reduce_axis((0, 500), name="k")
    C = te.compute((200, 100), lambda i, j: te.sum(A[k, i, j], axis=k), name="C")
    check(shared_daemon, [A, C], (a,), a.sum(0))


def test_broadcast_to(shared_daemon):
    (A,) = arguments((200, 300))
    a = uniform(200, 300)
    C = te.compute((130, 200, 300), lambda i, j, k: A[j, k], name="C")
    check(shared_daemon, [A, C], (a,), np.broadcast_to(a, (130, 200, 300)))
