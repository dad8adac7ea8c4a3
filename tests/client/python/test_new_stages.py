"""cache_read, cache_write, rfactor and set_scope, from the names of their axes to their values."""

import kiln as tvm
import numpy as np
import pytest
from kiln import te


def product(n=33, m=20, l=40):
    A = te.placeholder((n, l), name="A")
    B = te.placeholder((l, m), name="B")
    k = te.reduce_axis((0, l), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C, k


def check(s, A, B, C):
    f = tvm.build(s, [A, B, C])
    shape = lambda tensor: [int(d) for d in tensor.shape]  # noqa: E731
    a = np.random.default_rng(1).standard_normal(shape(A)).astype("float32")
    b = np.random.default_rng(2).standard_normal(shape(B)).astype("float32")
    np.testing.assert_allclose(f(a, b).numpy(), a @ b, rtol=1e-4, atol=1e-4)


def test_cache_read_is_a_tensor_of_the_schedule():
    A, B, C, k = product()
    s = te.create_schedule(C.op)
    AA = s.cache_read(A, "shared", [C])
    assert AA.name == "A.shared"
    assert [axis.name for axis in s[AA].op.axis] == ["ax0", "ax1"]
    io, ii = s[C].split(C.op.axis[0], factor=8)
    s[AA].compute_at(s[C], io)
    s[AA].vectorize(s[AA].split(s[AA].op.axis[1], factor=8)[1])
    assert "allocate A.shared: float32[8, 40] scope(shared)" in str(tvm.lower(s, [A, B, C]))
    check(s, A, B, C)


def test_cache_read_with_a_layout_has_the_loops_of_its_reader_as_dimensions():
    A, B, C, k = product()
    s = te.create_schedule(C.op)
    jo, ji = s[C].split(C.op.axis[1], factor=16)
    s[C].reorder(jo, C.op.axis[0], k, ji)
    packed = s.cache_read(B, "global", C, layout=[jo, k, ji])
    assert packed.name == "B.global"
    assert [axis.name for axis in s[packed].op.axis] == ["j.outer", "k", "j.inner"]
    assert [int(d) for d in packed.shape] == [-(-int(C.shape[1]) // 16), int(B.shape[0]), 16]
    s[C].vectorize(ji)
    s[packed].vectorize(packed.op.axis[2])
    text = s.text("cpu")
    assert "  cache_read(B, global, C, C.j.outer, C.k, C.j.inner)\n" in text
    assert tvm.parse_schedule(text, [A, B, C]).text("cpu") == text
    check(s, A, B, C)


def padded_products(n=19, channels=5, filters=8, stride=1):
    X = te.placeholder((channels, n), name="X")
    W = te.placeholder((filters, channels, 3), name="W")
    c, r = te.reduce_axis((0, channels), name="c"), te.reduce_axis((0, 3), name="r")

    def product(f, x):
        at = x * stride + r - 1
        value = te.if_then_else(te.all(at >= 0, at < n), X[c, at], 0.0)
        return te.sum(value * W[f, c, r], axis=[c, r])

    return X, W, te.compute((filters, (n - 1) // stride + 1), product, name="Y")


@pytest.mark.parametrize("stride", [1, 2])
def test_cache_padded_has_what_stands_around_a_tensor(stride):
    X, W, Y = padded_products(stride=stride)
    s = te.create_schedule(Y.op)
    XP = s.cache_padded(X, Y)
    assert XP.name == "X.padded"
    assert [axis.name for axis in s[XP].op.axis] == ["ax0", "ax1"]
    assert [int(d) for d in XP.shape] == [5, 21]
    fo, fi = s[Y].split(Y.op.axis[0], factor=4)
    s[XP].compute_at(s[Y], fo)
    text = s.text("cpu")
    assert "  cache_padded(X, Y)\n" in text
    assert tvm.parse_schedule(text, [X, W, Y]).text("cpu") == text
    f = tvm.build(s, [X, W, Y])
    random = np.random.default_rng(1)
    x, w = random.standard_normal((5, 19)).astype("float32"), random.standard_normal((8, 5, 3)).astype("float32")
    padded = np.pad(x, ((0, 0), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=1)[:, ::stride]
    np.testing.assert_allclose(f(x, w).numpy(), np.einsum("cxr,fcr->fx", windows, w), rtol=1e-4, atol=1e-4)


def test_cache_padded_knows_the_extents_of_strides_and_sizes():
    n = te.size_var("n")
    X = te.placeholder((n, 40), name="X")
    r = te.reduce_axis((0, 5), name="r")

    def window(i, j):
        at, row = j * 2 + r * 3 - 4, te.floordiv(i, 2)
        value = te.if_then_else(te.all(at >= 0, at < 40), X[row, at], 0.0)
        return te.sum(value, axis=r)

    Y = te.compute((n, 18), window, name="Y")
    s = te.create_schedule(Y.op)
    XP = s.cache_padded(X, Y)
    assert int(XP.shape[1]) == 17 * 2 + 4 * 3 + 1
    assert "allocate X.padded: float32[floordiv(n + 1, 2), 47]" in str(tvm.lower(s, [X, Y]))


def test_cache_write_as_in_the_tutorials():
    A, B, C, k = product()
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "global")
    xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], 8, 8)
    s[CC].compute_at(s[C], yo)
    xc, yc = s[CC].op.axis
    (kk,) = s[CC].op.reduce_axis
    assert (xc.name, yc.name, kk.name) == ("i.c", "j.c", "k")
    ko, ki = s[CC].split(k, factor=4)  # the axis of the definition stands for the new stage's
    s[CC].reorder(ko, xc, ki, yc)
    s[CC].unroll(ki)
    s[CC].vectorize(yc)
    assert s[C].op.reduce_axis == []
    check(s, A, B, C)


def test_cache_write_takes_its_layout_from_the_loops_so_far():
    A, B, C, k = product()
    s = te.create_schedule(C.op)
    s[C].tile(C.op.axis[0], C.op.axis[1], 8, 16)
    CC = s.cache_write(C, "local")
    assert [int(d) for d in CC.shape] == [5, 2, 8, 16]
    check(s, A, B, C)


def test_rfactor_reduces_in_parallel():
    A, B, C, k = product()
    s = te.create_schedule(C.op)
    ko, ki = s[C].split(k, factor=16)
    CF = s.rfactor(C, ko)
    assert CF.name == "C.rf"
    assert [int(d) for d in CF.shape] == [3, 33, 20]
    assert [axis.name for axis in s[C].op.reduce_axis] == ["k.outer.v"]
    s[CF].parallel(s[CF].op.axis[0])
    check(s, A, B, C)


def test_a_second_copy_has_a_name_of_its_own():
    A, B, C, k = product()
    s = te.create_schedule(C.op)
    first = s.cache_read(A, "local", C)
    CC = s.cache_write(C, "local")
    second = s.cache_read(first, "local", [CC])
    third = s.cache_read(A, "local", [first])
    assert [t.name for t in (first, second, third)] == ["A.local", "A.local.local", "A.local_1"]
    s[CC].set_scope("global")
    check(s, A, B, C)


def test_symbolic_sizes():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    k = te.reduce_axis((0, n), name="k")
    B = te.compute((1,), lambda i: te.sum(A[k], axis=k), name="B")
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(k, factor=16)
    BF = s.rfactor(B, ki, factor_axis=-1)
    s[BF].vectorize(s[BF].op.axis[1])
    f = tvm.build(s, [A, B])
    for size in (0, 1, 16, 37):
        a = np.arange(size, dtype="float32")
        np.testing.assert_allclose(f(a).numpy(), [a.sum()])


def test_text_has_the_new_stages():
    A, B, C, k = product()
    s = te.create_schedule(C.op)
    AA = s.cache_read(A, "shared", [C])
    CC = s.cache_write(C, "local")
    ko, ki = s[CC].split(k, factor=4)
    CF = s.rfactor(CC, ki, 1)
    s[AA].compute_at(s[CF], ko)
    text = s.text()
    assert text == (
        "schedule cpu {\n"
        "  cache_read(A, shared, C)\n"
        "  cache_write(C, local)\n"
        "  split(C.local.k, factor=4)\n"
        "  rfactor(C.local.k.inner, factor_axis=1)\n"
        "  compute_at(A.shared, C.local.rf.k.outer)\n"
        "}\n"
    )
    again = tvm.parse_schedule(text, [A, B, C])
    assert again.text() == text
    check(again, A, B, C)


@pytest.mark.parametrize(
    "step, message",
    [
        (lambda s, A, C, k: s.cache_read(A, "sharedd", [C]), "unknown memory scope sharedd"),
        (lambda s, A, C, k: s.cache_read(C, "shared", [A]), "A does not read C"),
        (lambda s, A, C, k: s.rfactor(C, C.op.axis[0]), "axis i of C is not a reduction axis"),
        (lambda s, A, C, k: s.cache_write(A, "local"), "A is a placeholder"),
    ],
)
def test_mistakes_are_errors_at_the_call(step, message):
    A, B, C, k = product()
    s = te.create_schedule(C.op)
    with pytest.raises(tvm.InvalidArgument, match=message):
        step(s, A, C, k)


def test_the_old_axes_of_a_copy_are_explained():
    A, B, C, k = product()
    s = te.create_schedule(C.op)
    s.cache_write(C, "global")
    with pytest.raises(tvm.InvalidArgument, match="C is now a copy; the reduction is in C.global"):
        s[C].split(k, factor=4)


def dense(n=33, m=20, l=40):
    A, W = te.placeholder((n, l), name="A"), te.placeholder((l, m), name="W")
    b = te.placeholder((m,), name="b")
    k = te.reduce_axis((0, l), name="k")
    C = te.compute((n, m), lambda i, j: te.max(te.sum(A[i, k] * W[k, j], axis=k) + b[j], 0.0), name="C")
    return A, W, b, C, k


def test_reduction_stage_has_loops_of_its_own():
    A, W, b, C, k = dense()
    s = te.create_schedule(C.op)
    CS = s.reduction_stage(C, k)
    assert CS.name == "C.sum" and CS.dtype == "float32"
    assert [int(d) for d in CS.shape] == [33, 20]
    assert [axis.name for axis in (*s[CS].op.axis, *s[CS].op.reduce_axis)] == ["i", "j", "k"]
    assert s[C].op.reduce_axis == []
    assert [t.name for t in s[C].op.input_tensors] == ["b", "C.sum"]
    assert [t.name for t in s[CS].op.input_tensors] == ["A", "W"]
    ko, ki = s[CS].split(k, factor=8)  # the axis of the definition stands for the new stage's
    s[CS].reorder(ko, ki, s[CS].op.axis[1])
    AA = s.cache_read(A, "local", CS)
    s[AA].compute_at(s[CS], ko)
    s[CS].compute_at(s[C], C.op.axis[0])
    f = tvm.build(s, [A, W, b, C])
    a, w, bias = (np.random.default_rng(i).standard_normal(t).astype("float32") for i, t in
                  enumerate([(33, 40), (40, 20), (20,)]))  # fmt: skip
    np.testing.assert_allclose(f(a, w, bias).numpy(), np.maximum(a @ w + bias, 0), rtol=1e-4, atol=1e-4)
    text = s.text()
    assert text.startswith("schedule cpu {\n  reduction_stage(C.i, C.j, C.k, sum)\n  split(C.sum.k, factor=8)\n")
    assert tvm.parse_schedule(text, [A, W, b, C]).text() == text


def test_reduction_stage_of_a_copy_that_was_read():
    A, W, b, C, k = dense()
    s = te.create_schedule(C.op)
    AA = s.cache_read(A, "local", C)
    CS = s.reduction_stage(C, [k])
    assert [t.name for t in s[CS].op.input_tensors] == ["A.local", "W"]
    assert "C.sum[i, j] + A.local[i, k]*W[k, j]" in str(tvm.lower(s, [A, W, b, C]))


def test_reduction_stages_of_a_recurrence():
    T, B, H = 12, 5, 16
    x, W = te.placeholder((T, B, H), name="x"), te.placeholder((H, H), name="W")
    h0 = te.placeholder((1, B, H), name="h0")
    state = te.placeholder((T, B, H), name="state")
    k, l = te.reduce_axis((0, H), name="k"), te.reduce_axis((0, H), name="l")
    init = te.compute((1, B, H), lambda t, i, j: h0[t, i, j], name="init")
    update = te.compute(
        (T, B, H),
        lambda t, i, j: te.tanh(
            te.sum(state[t - 1, i, k] * W[k, j], axis=k) + te.sum(x[t, i, l] * W[l, j], axis=l)
        ),
        name="update",
    )
    h = te.scan(init, update, state, inputs=[x, W], name="h")
    s = te.create_schedule(h.op)
    recurrent, given = s.reduction_stage(update, k), s.reduction_stage(update, l)
    assert (recurrent.name, given.name) == ("update.sum", "update.sum_1")
    s[given].parallel(s[given].op.axis[0])  # needs no state: all steps at once
    f = tvm.build(s, [x, W, h0, h])
    rng = np.random.default_rng(3)
    xs, w, first = (rng.standard_normal(t).astype("float32") * 0.3 for t in [(T, B, H), (H, H), (1, B, H)])
    want = [first[0]]
    for t in range(1, T):
        want.append(np.tanh(want[-1] @ w + xs[t] @ w))
    np.testing.assert_allclose(f(xs, w, first).numpy(), np.stack(want), rtol=1e-4, atol=1e-4)
    with pytest.raises(tvm.error.InvalidArgument, match="axis t of update.sum is the time of scan h"):
        s[recurrent].parallel(s[recurrent].op.axis[0])
        tvm.build(s, [x, W, h0, h])
