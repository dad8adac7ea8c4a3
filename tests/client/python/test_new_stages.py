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
