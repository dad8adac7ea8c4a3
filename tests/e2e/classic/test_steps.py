"""Steps that make or move storage, and reducers of a program's own, as tests and tutorials of te use them."""

import numpy as np
import pytest

import kiln as tvm
from kiln import te

pytestmark = pytest.mark.usefixtures("service")


def uniform(*shape):
    return np.random.RandomState(0).uniform(-1, 1, size=shape).astype("float32")


def product(n, m, l):
    A, B = te.placeholder((n, l), name="A"), te.placeholder((l, m), name="B")
    k = te.reduce_axis((0, l), name="k")
    return A, B, te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")


def check_product(s, A, B, C):
    a, b = uniform(*A.shape), uniform(*B.shape)
    result = tvm.build(s, [A, B, C], "llvm")(a, b).numpy()
    np.testing.assert_allclose(result, a @ b, rtol=1e-4, atol=1e-5)


# Storage.


def test_cache_write_of_a_product():
    A, B, C = product(64, 64, 64)
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "global")
    mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], 16, 16)
    s[CC].compute_at(s[C], no)
    mc, nc = s[CC].op.axis
    (kaxis,) = s[CC].op.reduce_axis
    ko, ki = s[CC].split(kaxis, factor=4)
    s[CC].reorder(ko, mc, ki, nc)
    s[CC].vectorize(nc)
    s[CC].unroll(ki)
    s[C].parallel(mo)
    check_product(s, A, B, C)


def test_cache_read_into_shared_memory():
    A, B, C = product(32, 32, 32)
    s = te.create_schedule(C.op)
    AA = s.cache_read(A, "shared", [C])
    BB = s.cache_read(B, "shared", [C])
    xo, xi = s[C].split(C.op.axis[0], factor=8)
    ko, ki = s[C].split(C.op.reduce_axis[0], factor=8)
    s[C].reorder(xo, ko, xi, ki)
    s[AA].compute_at(s[C], ko)
    s[BB].compute_at(s[C], ko)
    check_product(s, A, B, C)


def test_cache_read_of_a_computed_tensor():
    A = te.placeholder((40,), name="A")
    B = te.compute((40,), lambda i: A[i] * 2, name="B")
    C = te.compute((38,), lambda i: B[i] + B[i + 2], name="C")
    s = te.create_schedule(C.op)
    BL = s.cache_read(B, "local", [C])
    xo, xi = s[C].split(C.op.axis[0], factor=10)
    s[BL].compute_at(s[C], xo)
    s[B].compute_inline()
    x = uniform(40)
    np.testing.assert_allclose(tvm.build(s, [A, C])(x).numpy(), 2 * (x[:-2] + x[2:]), rtol=1e-5, atol=1e-6)


def test_cache_write_after_a_split_lays_out_anew():
    A = te.placeholder((32, 32), name="A")
    B = te.compute((32, 32), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((32, 32), lambda i, j: B[j, i] * 2, name="C")
    s = te.create_schedule(C.op)
    i, j = s[B].op.axis
    jo, ji = s[B].split(j, factor=8)
    s[B].reorder(jo, i, ji)
    s.cache_write(B, "global")
    s[B].compute_inline()
    x = uniform(32, 32)
    np.testing.assert_allclose(tvm.build(s, [A, C])(x).numpy(), (x + 1).T * 2, rtol=1e-6)


def test_scope_alignment_and_double_buffers():
    A = te.placeholder((64, 32), name="A")
    B = te.compute((64, 32), lambda i, j: A[i, j] * 3, name="B")
    C = te.compute((64, 32), lambda i, j: B[i, j] - 1, name="C")
    s = te.create_schedule(C.op)
    io, _ = s[C].split(C.op.axis[0], factor=8)
    s[B].compute_at(s[C], io)
    s[B].set_scope("local")
    s[B].storage_align(B.op.axis[0], 16, 4)
    s[B].double_buffer()
    x = uniform(64, 32)
    np.testing.assert_allclose(tvm.build(s, [A, C])(x).numpy(), x * 3 - 1, rtol=1e-5, atol=1e-6)


def test_a_layout_in_blocks():
    """Tiles of 8 x 4 of B lie one after the other; neither extent is a multiple of its factor."""
    n = te.var("n")
    A = te.placeholder((n, 30), name="A")
    B = te.compute((n, 30), lambda i, j: A[i, j] * 3, name="B")
    C = te.compute((30, n), lambda j, i: B[i, j] - 1, name="C")
    s = te.create_schedule(C.op)
    loops = s[B].transform_layout(lambda i, j: [i // 8, j // 4, i % 8, j % 4])
    assert [loop.var.name for loop in loops] == ["i.outer", "j.outer", "i.inner", "j.inner"]
    f = tvm.build(s, [A, C])
    for rows in (1, 8, 61):
        x = uniform(rows, 30)
        np.testing.assert_allclose(f(x).numpy(), (x * 3 - 1).T, rtol=1e-5, atol=1e-6)


def test_a_layout_of_a_packed_matrix():
    A, B, C = product(64, 48, 40)
    s = te.create_schedule(C.op)
    packed = s.cache_read(B, "global", [C])
    assert s[packed].transform_layout(lambda k, j: [j // 16, k, j % 16]) is not None
    jo, ji = s[C].split(C.op.axis[1], factor=16)
    s[C].reorder(jo, C.op.axis[0], C.op.reduce_axis[0], ji)
    s[C].vectorize(ji)
    check_product(s, A, B, C)


def test_a_layout_of_what_is_computed_at_a_loop():
    A = te.placeholder((64, 32), name="A")
    B = te.compute((64, 32), lambda i, j: A[i, j] * 3, name="B")
    C = te.compute((64, 32), lambda i, j: B[i, j] - 1, name="C")
    s = te.create_schedule(C.op)
    io, _ = s[C].split(C.op.axis[0], factor=6)
    s[B].compute_at(s[C], io)
    s[B].transform_layout(lambda i, j: [j, i])
    x = uniform(64, 32)
    np.testing.assert_allclose(tvm.build(s, [A, C])(x).numpy(), x * 3 - 1, rtol=1e-5, atol=1e-6)


def blurred(tensor, name):
    """Sums of three rows, which are two fewer."""
    rows, columns = tensor.shape
    return te.compute((rows - 2, columns), lambda i, j: tensor[i, j] + tensor[i + 1, j] + tensor[i + 2, j], name=name)


@pytest.mark.parametrize("rows", [32, 37])
def test_rows_that_stencils_share(rows):
    """Two producers in rings of their own, in blocks of rows; the last block may be a part of one."""
    A = te.placeholder((rows + 4, 40), name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] * 2, name="B")
    C = blurred(B, "C")
    D = blurred(C, "D")
    s = te.create_schedule(D.op)
    io, ii = s[D].split(D.op.axis[0], factor=8)
    s[D].parallel(io)
    for stage in (C, B):
        s[stage].compute_at(s[D], ii)
        s[stage].rolling_buffer()
        s[stage].vectorize(s[stage].split(stage.op.axis[1], factor=8)[1])
    x = uniform(rows + 4, 40)
    y = 2 * x
    for _ in range(2):
        y = y[:-2] + y[1:-1] + y[2:]
    np.testing.assert_allclose(tvm.build(s, [A, D])(x).numpy(), y, rtol=1e-5, atol=1e-5)


def test_rows_that_a_strided_pooling_shares():
    """Windows of five rows that move by two; the padding is no row of B."""
    n = te.var("n")
    A = te.placeholder((n, 20), name="A")
    B = te.compute((n, 20), lambda i, j: A[i, j] + 1, name="B")
    r = te.reduce_axis((0, 5), name="r")
    C = te.compute(((n - 5) // 2 + 1, 20), lambda i, j: te.max(B[i * 2 + r, j], axis=r), name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].rolling_buffer()
    f = tvm.build(s, [A, C])
    for rows in (5, 6, 23):
        x = uniform(rows, 20)
        expected = np.stack([(x + 1)[i : i + 5].max(axis=0) for i in range(0, rows - 4, 2)])
        np.testing.assert_allclose(f(x).numpy(), expected, rtol=1e-6)


# Reductions.


def test_rfactor():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    k = te.reduce_axis((0, n), "k")
    B = te.compute((1,), lambda i: te.sum(A[k], axis=k), name="B")
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    BF = s.rfactor(B, ki)
    s[BF].parallel(BF.op.axis[0])
    for count in (100, 5, 64):
        x = uniform(count)
        np.testing.assert_allclose(tvm.build(s, [A, B])(x).numpy(), [x.sum()], rtol=1e-4, atol=1e-5)


def test_rfactor_of_rows():
    A = te.placeholder((6, 50), name="A")
    k = te.reduce_axis((0, 50), "k")
    B = te.compute((6,), lambda i: te.max(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(s[B].op.reduce_axis[0], nparts=4)
    BF = s.rfactor(B, ko, factor_axis=1)
    s[BF].compute_at(s[B], s[B].op.axis[0])
    x = uniform(6, 50)
    np.testing.assert_array_equal(tvm.build(s, [A, B])(x).numpy(), x.max(axis=1))


def test_rows_of_different_lengths():
    n = te.var("n")
    starts = te.placeholder((n + 1,), "int32", name="starts")
    values = te.placeholder((te.var("nonzeros"),), name="values")
    columns = te.placeholder(values.shape, "int32", name="columns")
    v = te.placeholder((te.var("m"),), name="v")

    def row(i):
        k = te.reduce_axis((0, starts[i + 1] - starts[i]), name="k")
        return te.sum(values[starts[i] + k] * v[columns[starts[i] + k]], axis=k)

    out = te.compute((n,), row, name="out")
    dense = uniform(6, 5) * (uniform(6, 5) > 0)
    at = [np.flatnonzero(r) for r in dense]
    f = tvm.build(te.create_schedule(out.op), [starts, values, columns, v, out])
    x = uniform(5)
    result = f(np.cumsum([0, *map(len, at)]).astype("int32"), dense[dense != 0],
               np.concatenate(at).astype("int32"), x).numpy()
    np.testing.assert_allclose(result, dense @ x, rtol=1e-4, atol=1e-5)


# Hints.


def test_pragmas_and_prefetch():
    A = te.placeholder((64, 64), name="A")
    B = te.compute((64, 64), lambda i, j: A[i, j] * 2, name="B")
    s = te.create_schedule(B.op)
    i, j = B.op.axis
    jo, ji = s[B].split(j, factor=16)
    s[B].pragma(i, "auto_unroll_max_step", 16)
    s[B].prefetch(A, i, 1)
    x = uniform(64, 64)
    np.testing.assert_allclose(tvm.build(s, [A, B])(x).numpy(), x * 2)


def test_env_threads_of_a_scan():
    m, n = te.var("m"), te.var("n")
    X = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: X[0, i])
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i])
    scan = te.scan(init, update, state, inputs=[X])
    s = te.create_schedule(scan.op)
    tx = te.thread_axis((0, 32), "threadIdx.x")
    xo, xi = s[update].split(update.op.axis[1], factor=32)
    s[update].bind(xi, tx)
    s[scan].env_threads([tx])
    x = uniform(5, 40)
    np.testing.assert_allclose(tvm.build(s, [X, scan])(x).numpy(), np.cumsum(x, axis=0))
