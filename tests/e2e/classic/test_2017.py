"""Programs in the spelling of 2017 to 2019: everything at the root, contexts, asnumpy."""

from __future__ import absolute_import, print_function

import numpy as np
import pytest

import kiln as tvm

pytestmark = pytest.mark.usefixtures("service")


def uniform(*shape):
    return np.random.RandomState(0).uniform(-1, 1, size=shape).astype("float32")


def test_vector_add():
    n = tvm.var("n")
    A = tvm.placeholder((n,), name="A")
    B = tvm.placeholder((n,), name="B")
    C = tvm.compute(A.shape, lambda i: A[i] + B[i], name="C")
    s = tvm.create_schedule(C.op)
    bx, tx = s[C].split(C.op.axis[0], factor=64)
    s[C].bind(bx, tvm.thread_axis("blockIdx.x"))
    s[C].bind(tx, tvm.thread_axis("threadIdx.x"))
    fadd = tvm.build(s, [A, B, C], "llvm", target_host="llvm", name="myadd")
    ctx = tvm.context("llvm", 0)
    a = tvm.nd.array(np.random.uniform(size=1000).astype(A.dtype), ctx)
    b = tvm.nd.array(np.random.uniform(size=1000).astype(B.dtype), ctx)
    c = tvm.nd.array(np.zeros(1000, dtype=C.dtype), ctx)
    fadd(a, b, c)
    np.testing.assert_allclose(c.asnumpy(), a.asnumpy() + b.asnumpy())


def test_sum_of_rows():
    n, m = tvm.var("n"), tvm.var("m")
    A = tvm.placeholder((n, m), name="A")
    k = tvm.reduce_axis((0, m), "k")
    B = tvm.compute((n,), lambda i: tvm.sum(A[i, k], axis=k), name="B")
    s = tvm.create_schedule(B.op)
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    xo, xi = s[B].split(B.op.axis[0], factor=32)
    s[B].reorder(xo, ko, xi, ki)
    f = tvm.build(s, [A, B], "llvm")
    x = uniform(50, 70)
    b = tvm.nd.array(np.zeros(50, dtype="float32"), tvm.cpu(0))
    f(tvm.nd.array(x, tvm.cpu(0)), b)
    np.testing.assert_allclose(b.asnumpy(), x.sum(axis=1), rtol=1e-4, atol=1e-5)


def test_convolution_with_a_guarded_pad():
    n = tvm.var("n")
    Input = tvm.placeholder((n, n), name="Input")
    Filter = tvm.placeholder((3, 3), name="Filter")
    di = tvm.reduce_axis((0, 3), name="di")
    dj = tvm.reduce_axis((0, 3), name="dj")
    Padded = tvm.compute((n + 2, n + 2), lambda i, j: tvm.select(
        tvm.all(i >= 1, i < n + 1, j >= 1, j < n + 1),
        Input[tvm.max(tvm.min(i - 1, n - 1), 0), tvm.max(tvm.min(j - 1, n - 1), 0)], tvm.const(0.0, "float32")))
    Output = tvm.compute(
        (n, n), lambda i, j: tvm.sum(Padded[i + di, j + dj] * Filter[di, dj], axis=[di, dj]), name="Output")
    s = tvm.create_schedule(Output.op)
    s[Padded].compute_inline()
    f = tvm.build(s, [Input, Filter, Output])
    x, w = uniform(9, 9), uniform(3, 3)
    padded = np.pad(x, 1)
    expected = sum(padded[i:i + 9, j:j + 9] * w[i, j] for i in range(3) for j in range(3))
    np.testing.assert_allclose(f(x, w).asnumpy(), expected, rtol=1e-4, atol=1e-5)


def test_select_relu():
    A = tvm.placeholder((5, 6), name="A")
    B = tvm.compute(A.shape, lambda *i: tvm.select(A(*i) > 0, A(*i), tvm.const(0, A.dtype)))
    f = tvm.build(tvm.create_schedule(B.op), [A, B], "llvm", name="relu")
    x = uniform(5, 6)
    out = tvm.nd.empty((5, 6), "float32", ctx=tvm.cpu(0))
    f(tvm.nd.array(x, ctx=tvm.cpu(0)), out)
    np.testing.assert_array_equal(out.asnumpy(), np.maximum(x, 0))


def test_expr_select():
    A = tvm.placeholder((7,), "int32", name="A")
    B = tvm.compute((7,), lambda i: tvm.expr.Select(A[i] % 2 == 0, A[i] // 2, 3 * A[i] + 1))
    x = np.arange(-3, 4, dtype="int32")
    f = tvm.build(tvm.create_schedule(B.op), [A, B])
    np.testing.assert_array_equal(f(x).asnumpy(), np.where(x % 2 == 0, x // 2, 3 * x + 1))


def test_intrinsic_by_name():
    n = tvm.var("n")
    A = tvm.placeholder((n,), name="A")
    B = tvm.compute(A.shape, lambda *i: tvm.call_pure_intrin("float32", "exp", A(*i)), name="B")
    s = tvm.create_schedule(B.op)
    f = tvm.build(s, [A, B], "llvm", name="myexp")
    x = uniform(33)
    np.testing.assert_allclose(f(x).asnumpy(), np.exp(x), rtol=1e-5)


def test_matmul_with_tiles():
    n = 64
    A = tvm.placeholder((n, n), name="A")
    B = tvm.placeholder((n, n), name="B")
    k = tvm.reduce_axis((0, n), name="k")
    C = tvm.compute((n, n), lambda y, x: tvm.sum(A[y, k] * B[k, x], axis=k), name="C")
    s = tvm.create_schedule(C.op)
    yo, xo, yi, xi = s[C].tile(C.op.axis[0], C.op.axis[1], 16, 16)
    ko, ki = s[C].split(k, factor=4)
    s[C].reorder(yo, xo, ko, ki, yi, xi)
    s[C].vectorize(xi)
    f = tvm.build(s, [A, B, C], "llvm")
    a, b = uniform(n, n), uniform(n, n)
    np.testing.assert_allclose(f(a, b).asnumpy(), a @ b, rtol=1e-4, atol=1e-5)


def test_running_sum():
    m, n = tvm.var("m"), tvm.var("n")
    X = tvm.placeholder((m, n), name="X")
    s_state = tvm.placeholder((m, n))
    s_init = tvm.compute((1, n), lambda _, i: X[0, i])
    s_update = tvm.compute((m, n), lambda t, i: s_state[t - 1, i] + X[t, i])
    res = tvm.scan(s_init, s_update, s_state, inputs=[X])
    s = tvm.create_schedule(res.op)
    f = tvm.build(s, [X, res], "llvm")
    x = uniform(8, 12)
    np.testing.assert_allclose(f(x).asnumpy(), np.cumsum(x, axis=0))


def test_running_sum_over_stages():
    m, n = tvm.var("m"), tvm.var("n")
    X = tvm.placeholder((m, n), name="X")
    s_state = tvm.placeholder((m, n))
    s_init = tvm.compute((1, n), lambda _, i: X[0, i])
    s_update_s1 = tvm.compute((m, n), lambda t, i: s_state[t - 1, i] * 2, name="s1")
    s_update_s2 = tvm.compute((m, n), lambda t, i: s_update_s1[t, i] + X[t, i], name="s2")
    s_scan = tvm.scan(s_init, s_update_s2, s_state, inputs=[X])
    s = tvm.create_schedule(s_scan.op)
    xo, xi = s[s_update_s2].split(s_update_s2.op.axis[1], factor=32)
    s[s_update_s1].compute_at(s[s_update_s2], xo)
    f = tvm.build(s, [X, s_scan])
    x = uniform(5, 40)
    expected = [x[0]]
    for row in x[1:]:
        expected.append(expected[-1] * 2 + row)
    np.testing.assert_allclose(f(x).asnumpy(), np.array(expected), rtol=1e-5)


def test_fuse_and_parallel():
    n, m = tvm.var("n"), tvm.var("m")
    A = tvm.placeholder((n, m), name="A")
    B = tvm.compute((n, m), lambda i, j: A[i, j] * 3 - 1, name="B")
    s = tvm.create_schedule(B.op)
    fused = s[B].fuse(*B.op.axis)
    outer, inner = s[B].split(fused, nparts=4)
    s[B].parallel(outer)
    f = tvm.build(s, [A, B], "llvm")
    x = uniform(7, 11)
    np.testing.assert_allclose(f(x).asnumpy(), x * 3 - 1, rtol=1e-6, atol=1e-6)


def test_inlined_chain():
    m = tvm.var("m")
    A = tvm.placeholder((m,), name="A")
    B = tvm.compute((m,), lambda i: A[i] + 1, name="B")
    C = tvm.compute((m,), lambda i: B[i] * 2, name="C")
    D = tvm.compute((m,), lambda i: C[i] * C[i], name="D")
    s = tvm.create_schedule(D.op)
    s[B].compute_inline()
    s[C].compute_inline()
    text = tvm.lower(s, [A, D], simple_mode=True)
    assert "allocate" not in text
    x = uniform(19)
    np.testing.assert_allclose(tvm.build(s, [A, D])(x).asnumpy(), ((x + 1) * 2) ** 2, rtol=1e-5)


def test_computed_at_its_consumer_with_a_halo():
    A = tvm.placeholder((100,), name="A")
    B = tvm.compute((98,), lambda i: A[i] + A[i + 1] + A[i + 2], name="B")
    C = tvm.compute((96,), lambda i: B[i] + B[i + 2], name="C")
    s = tvm.create_schedule(C.op)
    xo, xi = s[C].split(C.op.axis[0], factor=32)
    s[B].compute_at(s[C], xo)
    assert "allocate B: float32[34]" in tvm.lower(s, [A, C])
    x = uniform(100)
    b = x[:-2] + x[1:-1] + x[2:]
    np.testing.assert_allclose(tvm.build(s, [A, C])(x).asnumpy(), b[:-2] + b[2:], rtol=1e-5, atol=1e-6)


def test_two_results_of_one_compute():
    m = tvm.var("m")
    A0 = tvm.placeholder((m,), name="A0")
    A1 = tvm.placeholder((m,), name="A1")
    B0, B1 = tvm.compute((m,), lambda i: (A0[i] + A1[i], A0[i] * A1[i]), name="B")
    s = tvm.create_schedule(B0.op)
    f = tvm.build(s, [A0, A1, B0, B1], "llvm")
    a, b = uniform(10), uniform(10) + 2
    total, product = tvm.nd.empty((10,)), tvm.nd.empty((10,))
    f(tvm.nd.array(a), tvm.nd.array(b), total, product)
    np.testing.assert_allclose(total.asnumpy(), a + b, rtol=1e-6)
    np.testing.assert_allclose(product.asnumpy(), a * b, rtol=1e-6)


def test_a_size_among_the_arguments():
    n = tvm.var("n")
    B = tvm.compute((n,), lambda i: (i * i).astype("float32"), name="squares")
    f = tvm.build(tvm.create_schedule(B.op), [n, B], "llvm")
    b = tvm.nd.empty((6,), "float32")
    f(6, b)
    assert b.asnumpy().tolist() == [0, 1, 4, 9, 16, 25]


def test_build_config_around_lower():
    A = tvm.placeholder((8,), name="A")
    B = tvm.compute((8,), lambda i: A[i] + 1, name="B")
    s = tvm.create_schedule(B.op)
    with tvm.build_config(auto_unroll_max_step=16, unroll_explicit=True):
        with tvm.target.create("llvm"):
            f = tvm.build(tvm.lower(s, [A, B], name="plus"), target="llvm")
    assert f.entry_name == "plus" and f(np.zeros(8, "float32")).asnumpy().tolist() == [1] * 8


def test_saved_and_loaded(tmp_path):
    n = tvm.var("n")
    A = tvm.placeholder((n,), name="A")
    B = tvm.compute((n,), lambda i: A[i] * A[i], name="B")
    fsquare = tvm.build(tvm.create_schedule(B.op), [A, B], "llvm", name="square")
    fsquare.save(str(tmp_path / "square.o"))
    assert tvm.module.enabled("llvm")
    loaded = tvm.module.load(str(tmp_path / "square.o"))
    assert loaded.entry_func(np.float32([1, 2, 3])).asnumpy().tolist() == [1, 4, 9]
