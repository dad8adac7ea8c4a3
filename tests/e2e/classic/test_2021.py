"""Programs in the spelling of 0.8 to 0.11: devices, numpy(), te.create_schedule and its steps."""

import numpy as np
import pytest

import kiln as tvm
import kiln.testing
from kiln import te

pytestmark = pytest.mark.usefixtures("service")


def uniform(*shape):
    return np.random.RandomState(0).uniform(-1, 1, size=shape).astype("float32")


def evaluated(s, args, inputs, shape):
    """The one output of `args`, computed as tutorials of the time do."""
    dev = tvm.device("llvm", 0)
    func = tvm.build(s, args, target="llvm", name="f")
    out = tvm.nd.array(np.zeros(shape, dtype=args[-1].dtype), dev)
    func(*(tvm.nd.array(x, dev) for x in inputs), out)
    return out.numpy()


def product(n, m, l):
    A, B = te.placeholder((n, l), name="A"), te.placeholder((l, m), name="B")
    k = te.reduce_axis((0, l), name="k")
    return A, B, te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")


def check_product(s, A, B, C):
    a, b = uniform(*A.shape), uniform(*B.shape)
    tvm.testing.assert_allclose(evaluated(s, [A, B, C], [a, b], C.shape), a @ b, rtol=1e-4, atol=1e-5)


# One stage.


def test_split_by_parts_and_by_factor():
    A = te.placeholder((30,), name="A")
    B = te.compute((30,), lambda i: A[i] - 1, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(s[B].op.axis[0], nparts=7)
    s[B].split(inner, factor=2)
    assert [a.var.name for a in s[B].leaf_iter_vars] == ["i.outer", "i.inner.outer", "i.inner.inner"]
    x = uniform(30)
    tvm.testing.assert_allclose(evaluated(s, [A, B], [x], (30,)), x - 1)


def test_tile_fuse_and_vectorize():
    m, n = te.var("m"), te.var("n")
    A = te.placeholder((m, n), name="A")
    B = te.compute((m, n), lambda i, j: A[i, j] * A[i, j], name="B")
    s = te.create_schedule(B.op)
    xo, yo, xi, yi = s[B].tile(B.op.axis[0], B.op.axis[1], x_factor=4, y_factor=8)
    s[B].parallel(s[B].fuse(xo, yo))
    s[B].vectorize(yi)
    s[B].unroll(xi)
    x = uniform(13, 29)
    tvm.testing.assert_allclose(evaluated(s, [A, B], [x], x.shape), x * x, rtol=1e-6)


def test_threads_on_a_cpu():
    n = te.var("n")
    A = te.placeholder((n, n), name="A")
    B = te.compute((n, n), lambda i, j: A[j, i], name="B")
    s = te.create_schedule(B.op)
    by, ty = s[B].split(B.op.axis[0], factor=8)
    bx, tx = s[B].split(B.op.axis[1], factor=8)
    s[B].reorder(by, bx, ty, tx)
    s[B].bind(by, te.thread_axis("blockIdx.y"))
    s[B].bind(bx, te.thread_axis("blockIdx.x"))
    s[B].bind(ty, te.thread_axis((0, 8), "threadIdx.y"))
    s[B].bind(tx, te.thread_axis((0, 8), "threadIdx.x"))
    x = uniform(21, 21)
    tvm.testing.assert_allclose(evaluated(s, [A, B], [x], x.shape), x.T)


# Matrix products, step by step.


def test_the_product_of_the_course():
    A, B, C = product(50, 70, 30)
    s = te.create_schedule(C.op)
    x, y = s[C].op.axis
    (k,) = s[C].op.reduce_axis
    xo, xi = s[C].split(x, factor=32)
    yo, yi = s[C].split(y, factor=32)
    ko, ki = s[C].split(k, factor=4)
    s[C].reorder(xo, yo, ko, xi, yi, ki)
    s[C].vectorize(yi)
    s[C].parallel(xo)
    check_product(s, A, B, C)


def test_a_product_that_vectorizes_its_reduction():
    A, B, C = product(16, 24, 64)
    s = te.create_schedule(C.op)
    io, ii = s[C].split(C.op.axis[0], factor=16)
    jo, ji = s[C].split(C.op.axis[1], factor=16)
    ko, ki = s[C].split(C.op.reduce_axis[0], factor=16)
    s[C].reorder(io, jo, ko, ii, ji, ki)
    s[C].vectorize(ki)
    check_product(s, A, B, C)


def test_a_product_with_a_packed_operand():
    n, bn = 64, 16
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    packedB = te.compute((n // bn, n, bn), lambda bigN, k, littleN: B[k, bigN * bn + littleN], name="packedB")
    C = te.compute((n, n), lambda m, n: te.sum(
        A[m, k] * packedB[n // bn, k, tvm.tir.indexmod(n, bn)], axis=k), name="C")
    s = te.create_schedule(C.op)
    mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], bn, bn)
    (kaxis,) = s[C].op.reduce_axis
    ko, ki = s[C].split(kaxis, factor=4)
    s[C].reorder(mo, no, ko, mi, ki, ni)
    s[C].vectorize(ni)
    bigN, _, littleN = s[packedB].op.axis
    s[packedB].vectorize(littleN)
    s[packedB].parallel(bigN)
    check_product(s, A, B, C)


@pytest.mark.parametrize("transposed_a", [False, True])
@pytest.mark.parametrize("transposed_b", [False, True])
def test_transposed_operands(transposed_a, transposed_b):
    n, l, m = 20, 30, 40
    A = te.placeholder((l, n) if transposed_a else (n, l), name="A")
    B = te.placeholder((m, l) if transposed_b else (l, m), name="B")
    k = te.reduce_axis((0, l), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(
        (A[k, i] if transposed_a else A[i, k]) * (B[j, k] if transposed_b else B[k, j]), axis=k), name="C")
    a, b = uniform(*A.shape), uniform(*B.shape)
    expected = (a.T if transposed_a else a) @ (b.T if transposed_b else b)
    result = evaluated(te.create_schedule(C.op), [A, B, C], [a, b], (n, m))
    tvm.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_a_product_of_batches():
    A, B = te.placeholder((4, 8, 16), name="A"), te.placeholder((4, 16, 8), name="B")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute((4, 8, 8), lambda b, i, j: te.sum(A[b, i, k] * B[b, k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    b, i, j = s[C].op.axis
    s[C].parallel(b)
    s[C].reorder(b, i, k, j)
    s[C].vectorize(j)
    a, c = uniform(4, 8, 16), uniform(4, 16, 8)
    tvm.testing.assert_allclose(evaluated(s, [A, B, C], [a, c], (4, 8, 8)), a @ c, rtol=1e-4, atol=1e-5)


def test_integers_in_a_wider_sum():
    A, B = te.placeholder((8, 32), "uint8", name="A"), te.placeholder((32, 8), "int8", name="B")
    k = te.reduce_axis((0, 32), name="k")
    C = te.compute((8, 8), lambda i, j: te.sum(
        A[i, k].astype("int32") * B[k, j].astype("int32"), axis=k), name="C")
    a = np.random.RandomState(1).randint(0, 255, (8, 32)).astype("uint8")
    b = np.random.RandomState(2).randint(-128, 127, (32, 8)).astype("int8")
    result = evaluated(te.create_schedule(C.op), [A, B, C], [a, b], (8, 8))
    np.testing.assert_array_equal(result, a.astype("int32") @ b.astype("int32"))


# Several stages.


def test_a_convolution_in_tiles():
    X, F = te.placeholder((1, 3, 18, 18), name="X"), te.placeholder((4, 3, 3, 3), name="F")
    rc, rr, rs = (te.reduce_axis((0, 3), name=name) for name in ("rc", "rr", "rs"))
    Y = te.compute((1, 4, 16, 16), lambda n, m, h, w: te.sum(
        X[n, rc, h + rr, w + rs] * F[m, rc, rr, rs], axis=[rc, rr, rs]), name="Y")
    s = te.create_schedule(Y.op)
    n, m, h, w = s[Y].op.axis
    ho, hi = s[Y].split(h, factor=8)
    wo, wi = s[Y].split(w, factor=8)
    s[Y].reorder(n, m, ho, wo, hi, wi, rc, rr, rs)
    s[Y].vectorize(wi)
    s[Y].parallel(ho)
    x, f = uniform(1, 3, 18, 18), uniform(4, 3, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    expected = np.einsum("nchwrs,mcrs->nmhw", windows, f)
    tvm.testing.assert_allclose(evaluated(s, [X, F, Y], [x, f], Y.shape), expected, rtol=1e-4, atol=1e-5)


def test_a_blur_in_two_passes():
    n = 40
    A = te.placeholder((n + 2, n + 2), name="A")
    rows = te.compute((n + 2, n), lambda y, x: (A[y, x] + A[y, x + 1] + A[y, x + 2]) / 3.0, name="rows")
    blur = te.compute((n, n), lambda y, x: (rows[y, x] + rows[y + 1, x] + rows[y + 2, x]) / 3.0, name="blur")
    s = te.create_schedule(blur.op)
    yo, xo, yi, xi = s[blur].tile(blur.op.axis[0], blur.op.axis[1], 8, 16)
    s[blur].vectorize(xi)
    s[rows].compute_at(s[blur], xo)
    s[rows].vectorize(rows.op.axis[1])
    a = uniform(n + 2, n + 2)
    r = (a[:, :-2] + a[:, 1:-1] + a[:, 2:]) / 3
    expected = (r[:-2] + r[1:-1] + r[2:]) / 3
    tvm.testing.assert_allclose(evaluated(s, [A, blur], [a], (n, n)), expected, rtol=1e-4, atol=1e-5)


def test_stages_within_stages():
    A = te.placeholder((64, 32), name="A")
    B = te.compute((64, 32), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((64, 32), lambda i, j: B[i, j] * 2, name="C")
    D = te.compute((64, 32), lambda i, j: C[i, j] - 3, name="D")
    s = te.create_schedule(D.op)
    io, ii = s[D].split(D.op.axis[0], factor=8)
    s[C].compute_at(s[D], io)
    s[B].compute_at(s[C], s[C].op.axis[0])
    x = uniform(64, 32)
    tvm.testing.assert_allclose(
        evaluated(s, [A, D], [x], x.shape), (x + 1) * 2 - 3, rtol=1e-5, atol=1e-6)


def test_attached_and_sent_back_to_the_root():
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] + 1, name="B")
    C = te.compute((16,), lambda i: B[i] * B[i], name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].compute_root()
    x = uniform(16)
    tvm.testing.assert_allclose(evaluated(s, [A, C], [x], (16,)), (x + 1) ** 2, rtol=1e-6)


def test_a_softmax_of_four_stages():
    m, n = te.var("m"), te.var("n")
    A = te.placeholder((m, n), name="A")
    k1, k2 = te.reduce_axis((0, n), name="k1"), te.reduce_axis((0, n), name="k2")
    top = te.compute((m,), lambda i: te.max(A[i, k1], axis=k1), name="top")
    e = te.compute((m, n), lambda i, j: te.exp(A[i, j] - top[i]), name="e")
    total = te.compute((m,), lambda i: te.sum(e[i, k2], axis=k2), name="total")
    B = te.compute((m, n), lambda i, j: e[i, j] / total[i], name="B")
    s = te.create_schedule(B.op)
    for stage in (top, e, total):
        s[stage].compute_at(s[B], B.op.axis[0])
    s[B].parallel(B.op.axis[0])
    x = uniform(9, 33) * 5
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    tvm.testing.assert_allclose(evaluated(s, [A, B], [x], x.shape), expected, rtol=1e-5)


def test_two_outputs_of_one_schedule():
    A = te.placeholder((12,), name="A")
    B = te.compute((12,), lambda i: A[i] * 2, name="B")
    C = te.compute((12,), lambda i: B[i] + 1, name="C")
    s = te.create_schedule([B.op, C.op])
    assert s.outputs == [B.op, C.op]
    s[B].vectorize(s[B].split(B.op.axis[0], factor=4)[1])
    f = tvm.build(s, [A, B, C])
    x = uniform(12)
    b, c = f(x)
    tvm.testing.assert_allclose(b, x * 2)
    tvm.testing.assert_allclose(c, x * 2 + 1)


# Building and measuring.


def test_evaluating_the_time():
    A, B, C = product(8, 8, 8)
    func = tvm.build(te.create_schedule(C.op), [A, B, C], target="llvm", name="mmult")
    dev = tvm.device("llvm", 0)
    a, b = tvm.nd.array(uniform(8, 8), dev), tvm.nd.array(uniform(8, 8), dev)
    c = tvm.nd.empty((8, 8), "float32", dev)
    evaluator = func.time_evaluator(func.entry_name, dev, number=5, repeat=2)
    result = evaluator(a, b, c)
    assert len(result.results) == 2 and 0 < result.mean < 1


def test_the_text_of_the_loops():
    A = te.placeholder((32,), name="A")
    B = te.compute((32,), lambda i: A[i] + 1, name="B")
    s = te.create_schedule(B.op)
    s[B].parallel(s[B].split(B.op.axis[0], factor=8)[0])
    text = str(tvm.lower(s, [A, B], simple_mode=True))
    assert "for i.outer in 0..4 parallel {" in text


@tvm.testing.parametrize_targets("llvm", "cuda")
def test_on_every_device(target, dev):
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] + 1, name="B")
    f = tvm.build(te.create_schedule(B.op), [A, B], target)
    assert f(tvm.nd.array(np.zeros(16, "float32"), dev)).numpy().tolist() == [1] * 16
