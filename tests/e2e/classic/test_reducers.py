"""Reducers of a program's own, as tests and tutorials of te use them."""

import numpy as np
import pytest

import kiln as tvm
from kiln import te

pytestmark = pytest.mark.usefixtures("service")


def uniform(*shape):
    return np.random.RandomState(0).uniform(-1, 1, size=shape).astype("float32")


def argmax(select=te.if_then_else):
    def fcombine(x, y):
        lhs = select((x[1] >= y[1]), x[0], y[0])
        rhs = select((x[1] >= y[1]), x[1], y[1])
        return lhs, rhs

    def fidentity(t0, t1):
        return tvm.tir.const(-1, t0), te.min_value(t1)

    return te.comm_reducer(fcombine, fidentity, name="argmax")


def rows(reducer):
    m, n = te.var("m"), te.var("n")
    idx = te.placeholder((m, n), name="idx", dtype="int32")
    val = te.placeholder((m, n), name="val", dtype="float32")
    k = te.reduce_axis((0, n), "k")
    T0, T1 = te.compute((m,), lambda i: reducer((idx[i, k], val[i, k]), axis=k), name="T")
    return idx, val, T0, T1


def positions(m, n):
    return np.broadcast_to(np.arange(n, dtype="int32"), (m, n)).copy()


def check_argmax(s, arguments, m=7, n=50):
    x = uniform(m, n)
    where, top = tvm.build(s, list(arguments))(positions(m, n), x)
    np.testing.assert_array_equal(where.numpy(), x.argmax(axis=1))
    np.testing.assert_array_equal(top.numpy(), x.max(axis=1))


@pytest.mark.parametrize("select", (te.if_then_else, tvm.tir.Select))
def test_an_argmax(select):
    arguments = rows(argmax(select))
    check_argmax(te.create_schedule(arguments[2].op), arguments)


def test_an_argmax_in_chunks():
    arguments = rows(argmax())
    T0 = arguments[2]
    s = te.create_schedule(T0.op)
    outer, inner = s[T0].split(T0.op.reduce_axis[0], factor=8)
    s[T0].reorder(outer, T0.op.axis[0], inner)
    check_argmax(s, arguments)


def test_an_argmax_of_partial_results():
    arguments = rows(argmax())
    T0 = arguments[2]
    s = te.create_schedule(T0.op)
    outer, _ = s[T0].split(T0.op.reduce_axis[0], nparts=4)
    partial = s.rfactor(T0, outer)
    partial = partial[0] if isinstance(partial, (list, tuple)) else partial
    s[partial].compute_at(s[T0], s[T0].op.axis[0])
    check_argmax(s, arguments)


def test_an_argmax_written_to_a_cache():
    arguments = rows(argmax())
    s = te.create_schedule(arguments[2].op)
    s.cache_write(list(arguments[2:]), "local")
    check_argmax(s, arguments)


def test_product_reducer_by_hand():
    n, m = 6, 9
    product = tvm.comm_reducer(lambda x, y: x * y, lambda t: tvm.const(1, dtype=t), name="product")
    A = tvm.placeholder((n, m), name="A")
    k = tvm.reduce_axis((0, m), name="k")
    B = tvm.compute((n,), lambda i: product(A[i, k], axis=k), name="B")
    f = tvm.build(tvm.create_schedule(B.op), [A, B], "llvm")
    x = uniform(n, m) + 2
    np.testing.assert_allclose(f(x).asnumpy(), x.prod(axis=1), rtol=1e-5)


def test_a_reducer_on_two_numbers():
    mysum = te.comm_reducer(lambda x, y: x + y, lambda t: tvm.tir.const(0, dtype=t), name="mysum")
    A = te.placeholder((4, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    B = te.compute((4,), lambda i: mysum(A[i, k], axis=k), name="B")
    C = te.compute((4,), lambda i: mysum(B[i], 10.0), name="C")
    x = uniform(4, 6)
    np.testing.assert_allclose(tvm.build([A, C])(x).numpy(), x.sum(axis=1) + 10, rtol=1e-5)


def test_mean_and_variance_in_one_pass():
    """Welford's, whose parts may be combined in any order."""

    def fcombine(a, b):
        count = a[0] + b[0]
        delta = b[1] - a[1]
        share = te.if_then_else(count > 0, b[0] / count, 0.0)
        return count, a[1] + delta * share, a[2] + b[2] + delta * delta * a[0] * share

    welford = te.comm_reducer(fcombine, lambda *types: [te.const(0, t) for t in types], name="welford")
    m, n = te.var("m"), te.var("n")
    A = te.placeholder((m, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    N, M, S = te.compute(
        (m,), lambda i: welford((te.const(1.0), A[i, k], te.const(0.0)), axis=k), name="W")
    V = te.compute((m,), lambda i: S[i] / N[i], name="V")
    x = 100 + uniform(5, 300)
    s = te.create_schedule(V.op)
    plain = tvm.build(s, [A, M, V])
    outer, _ = s[N].split(N.op.reduce_axis[0], factor=64)
    s.rfactor(N, outer)
    for f in (plain, tvm.build(s, [A, M, V]), tvm.build([A, M, V])):
        mean, variance = f(x)
        np.testing.assert_allclose(mean.numpy(), x.mean(axis=1), rtol=1e-6)
        np.testing.assert_allclose(variance.numpy(), x.var(axis=1), rtol=1e-4)


def test_one_result_inside_an_expression():
    A = te.placeholder((6, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    found = argmax()
    B = te.compute((6,), lambda i: 10 * found((k.astype("int32"), A[i, k]), axis=k)[0] + 1, name="B")
    x = uniform(6, 8)
    np.testing.assert_array_equal(tvm.build([A, B])(x).numpy(), 10 * x.argmax(axis=1) + 1)


def test_a_reducer_with_where_and_init():
    A = te.placeholder((6, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    found = argmax()
    P, V = te.compute(
        (6,),
        lambda i: found((k, A[i, k]), axis=k, where=k % 2 == 1, init=(0, A[i, 0])),
        name="P",
    )
    x = uniform(6, 8)
    odd = np.where(np.arange(8) % 2 == 1, x, -9)
    odd[:, 0] = x[:, 0]
    where, top = tvm.build([A, P, V])(x)
    np.testing.assert_array_equal(where.numpy(), odd.argmax(axis=1))
    np.testing.assert_array_equal(top.numpy(), odd.max(axis=1))


def test_a_sum_over_pairs_keeps_two_totals():
    total = te.comm_reducer(
        lambda x, y: (x[0] + y[0], x[1] + y[1]),
        lambda t0, t1: (te.const(0, t0), te.const(0, t1)),
        name="total",
    )
    A, B = te.placeholder((9, 33), name="A"), te.placeholder((9, 33), name="B", dtype="int32")
    k = te.reduce_axis((0, 33), name="k")
    S, T = te.compute((9,), lambda i: total((A[i, k], B[i, k]), axis=k), name="S")
    x, y = uniform(9, 33), np.arange(9 * 33, dtype="int32").reshape(9, 33)
    for target in (tvm.build([A, B, S, T]), tvm.build(te.create_schedule(S.op), [A, B, S, T])):
        s, t = target(x, y)
        np.testing.assert_allclose(s.numpy(), x.sum(axis=1), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(t.numpy(), y.sum(axis=1))


def test_where_keeps_elements_from_being_read():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    k = te.reduce_axis((-1, 2), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i + k], axis=k, where=te.all(i + k >= 0, i + k < n)), name="B")
    x = uniform(70)
    padded = np.pad(x, 1)
    expected = padded[:-2] + padded[1:-1] + padded[2:]
    f = tvm.build([A, B])
    np.testing.assert_allclose(f(x).numpy(), expected, rtol=1e-5, atol=1e-6)
    assert f.report()["guards"] == 0


@pytest.mark.parametrize("is_scheduled", (False, True))
def test_an_identity_that_depends_on_the_row(is_scheduled):
    A = te.placeholder((7, 50), name="A")
    k = te.reduce_axis((0, 50), "k")

    def largest_from(i):
        at_least = te.comm_reducer(te.max, lambda t: (i - 3).astype(t) / 4.0, name="at_least")
        return at_least(A[i, k], axis=k)

    B = te.compute((7,), largest_from, name="B")
    s = te.create_schedule(B.op)
    if is_scheduled:
        s[B].split(B.op.reduce_axis[0], factor=8)
        s[B].parallel(B.op.axis[0])
    a = uniform(7, 50) - 1
    expected = np.maximum(a.max(axis=1), (np.arange(7) - 3).astype("float32") / 4)
    np.testing.assert_array_equal(tvm.build(s, [A, B])(a).numpy(), expected)


def test_an_identity_of_two_values_that_depend_on_a_size():
    n = te.var("n")
    A, k = te.placeholder((n,), name="A"), te.reduce_axis((0, n), "k")
    later = te.comm_reducer(lambda x, y: (te.max(x[0], y[0]), x[1] + y[1]), lambda t, u: (n.astype(t), te.const(0, u)), name="later")
    largest, total = te.compute((1,), lambda i: later((A[k], A[k]), axis=k), name="B")
    given, sum_of = tvm.build([A, largest, total])(np.arange(5, dtype="float32"))
    assert given.numpy()[0] == 5 and sum_of.numpy()[0] == 10
