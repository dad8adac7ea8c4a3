"""The twelve operators of a course of 2018, at its sizes, as its students write them: kernels called on
arrays of the device, results in an array given; numpy's arrays serve as well."""

import numpy as np
import pytest

import kiln as tvm

pytestmark = pytest.mark.usefixtures("service")

TGT = TGT_HOST = "llvm"
DTYPE = "float32"


def built(args, name):
    s = tvm.create_schedule(args[-1].op)
    return tvm.build(s, args, TGT, target_host=TGT_HOST, name=name)


def element_wise(shape, body, inputs, name):
    args = [tvm.placeholder(shape, dtype=DTYPE, name=n) for n in "AB"[:inputs]]
    return built([*args, tvm.compute(shape, lambda *i: body(*(a(*i) for a in args)))], name)


def check(f, inputs, expected):
    ctx = tvm.context(TGT, 0)
    out = tvm.nd.array(np.zeros(expected.shape, DTYPE), ctx=ctx)
    f(*(tvm.nd.array(x, ctx=ctx) for x in inputs), out)
    np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-5)
    given = np.zeros(expected.shape, DTYPE)
    f(*inputs, given)
    np.testing.assert_array_equal(given, out.asnumpy())


def uniform(shape, low=0, high=10):
    return np.random.RandomState(3).uniform(low, high, size=shape).astype(DTYPE)


def test_element_wise_add():
    x, y = uniform((500, 200)), uniform((500, 200), -5, 5)
    check(element_wise((500, 200), lambda a, b: a + b, 2, "elem_add"), [x, y], x + y)


def test_element_wise_mul():
    x, y = uniform((500, 200)), uniform((500, 200), -5, 5)
    check(element_wise((500, 200), lambda a, b: a * b, 2, "elem_mul"), [x, y], x * y)


def test_element_wise_add_by_const():
    x, const = uniform((2000, 3000)), np.random.RandomState(4).uniform(0, 10)
    check(element_wise((2000, 3000), lambda a: a + const, 1, "add_by_const"), [x], x + const)


def test_element_wise_mul_by_const():
    x, const = uniform((2000, 3000)), np.random.RandomState(4).uniform(0, 10)
    check(element_wise((2000, 3000), lambda a: a * const, 1, "mul_by_const"), [x], x * const)


def test_relu():
    x = uniform((2000, 2500), -1, 1)
    f = element_wise((2000, 2500), lambda a: tvm.max(a, tvm.const(0, DTYPE)), 1, "relu")
    check(f, [x], np.maximum(x, 0))


@pytest.mark.parametrize("choose", [tvm.select, tvm.if_then_else])
def test_relu_gradient(choose):
    x, g = uniform((2000, 2500), -1, 1), uniform((2000, 2500), -5, 5)
    f = element_wise((2000, 2500), lambda a, b: choose(a > 0, b, tvm.const(0, DTYPE)), 2, "relu_gradient")
    check(f, [x, g], np.where(x > 0, g, 0))


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("ta, tb", [(False, False), (True, False), (False, True), (True, True)])
def test_matrix_multiply(ta, tb, tiled):
    n, l, m = 500, 700, 1000
    A = tvm.placeholder((l, n) if ta else (n, l), dtype=DTYPE, name="A")
    B = tvm.placeholder((m, l) if tb else (l, m), dtype=DTYPE, name="B")
    k = tvm.reduce_axis((0, l), name="k")
    C = tvm.compute((n, m), lambda i, j: tvm.sum(
        (A[k, i] if ta else A[i, k]) * (B[j, k] if tb else B[k, j]), axis=k), name="C")
    s = tvm.create_schedule(C.op)
    if tiled:
        x, y = s[C].op.axis
        xo, xi = s[C].split(x, factor=32)
        yo, yi = s[C].split(y, factor=32)
        ko, ki = s[C].split(s[C].op.reduce_axis[0], factor=4)
        s[C].reorder(xo, yo, ko, xi, yi, ki)
        s[C].vectorize(yi)
        s[C].parallel(xo)
    f = tvm.build(s, [A, B, C], TGT, target_host=TGT_HOST, name="matrix_mul")
    a, b = uniform(A.shape), uniform(B.shape)
    check(f, [a, b], (a.T if ta else a) @ (b.T if tb else b))


@pytest.mark.parametrize("x_shape, f_shape", [
    ((100, 3, 28, 28), (10, 3, 5, 5)), ((1, 3, 32, 32), (16, 3, 3, 3))])
def test_conv2d(x_shape, f_shape):
    (n, c, h, w), (m, _, r, s) = x_shape, f_shape
    X, F = tvm.placeholder(x_shape, dtype=DTYPE, name="X"), tvm.placeholder(f_shape, dtype=DTYPE, name="F")
    rc, rr, rs = tvm.reduce_axis((0, c), "rc"), tvm.reduce_axis((0, r), "rr"), tvm.reduce_axis((0, s), "rs")
    Y = tvm.compute((n, m, h - r + 1, w - s + 1), lambda n, m, i, j: tvm.sum(
        X[n, rc, i + rr, j + rs] * F[m, rc, rr, rs], axis=[rc, rr, rs]), name="Y")
    x, f = uniform(x_shape), uniform(f_shape)
    windows = np.lib.stride_tricks.sliding_window_view(x, (r, s), axis=(2, 3))
    check(built([X, F, Y], "conv2d"), [x, f], np.einsum("nchwrs,mcrs->nmhw", windows, f, optimize=True))


def softmax(A, n, m):
    k, l = tvm.reduce_axis((0, m), name="k"), tvm.reduce_axis((0, m), name="l")
    top = tvm.compute((n,), lambda i: tvm.max(A[i, k], axis=k), name="max_x")
    e = tvm.compute((n, m), lambda i, j: tvm.exp(A[i, j] - top[i]), name="e_x")
    total = tvm.compute((n,), lambda i: tvm.sum(e[i, l], axis=l), name="ex_sum")
    return tvm.compute((n, m), lambda i, j: e[i, j] / total[i], name="softmax_x")


def softmax_of(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_softmax():
    A = tvm.placeholder((400, 1000), dtype=DTYPE, name="A")
    x = uniform((400, 1000), -5, 5)
    check(built([A, softmax(A, 400, 1000)], "softmax"), [x], softmax_of(x))


@pytest.mark.parametrize("sums", ["row by row", "at once"])
def test_softmax_cross_entropy(sums):
    shape = n, m = 400, 1000
    A, A_ = tvm.placeholder(shape, dtype=DTYPE, name="A"), tvm.placeholder(shape, dtype=DTYPE, name="A_")
    j, k = tvm.reduce_axis((0, m), name="j"), tvm.reduce_axis((0, n), name="k")
    p = softmax(A, n, m)
    log = tvm.compute(shape, lambda i, j: tvm.log(p[i, j]), name="log")
    if sums == "at once":
        C = tvm.compute((1,), lambda _: -tvm.sum(A_[k, j] * log[k, j], axis=[k, j]) / n, name="C")
    else:
        rows = tvm.compute((n,), lambda i: tvm.sum(-A_[i, j] * log[i, j], axis=j), name="sum_cross_entropy")
        C = tvm.compute((1,), lambda _: tvm.sum(rows[k] / n, axis=k), name="C")
    y, y_ = uniform(shape, -5, 5), uniform(shape, 0, 1)
    expected = np.mean(-np.sum(y_ * np.log(softmax_of(y.astype("float64"))), axis=1), keepdims=True)
    check(built([A, A_, C], "softmax_cross_entropy"), [y, y_], expected)


def test_reduce_sum_axis_zero():
    A = tvm.placeholder((500, 200, 100), dtype=DTYPE, name="A")
    k = tvm.reduce_axis((0, 500), name="k")
    C = tvm.compute((200, 100), lambda i, j: tvm.sum(A[k, i, j], axis=k), name="C")
    x = uniform((500, 200, 100))
    check(built([A, C], "reduce_sum_axis_zero"), [x], x.sum(axis=0, dtype="float64"))


def test_broadcast_to():
    A = tvm.placeholder((200, 300), dtype=DTYPE, name="A")
    C = tvm.compute((130, 200, 300), lambda *i: A(*i[1:]), name="C")
    x = uniform((200, 300), -1, 1)
    check(built([A, C], "broadcast_to"), [x], np.broadcast_to(x, (130, 200, 300)))
