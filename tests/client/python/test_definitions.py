"""Sizes, placeholders, computes, reductions and scans, and the mistakes made with them."""

import numpy as np
import pytest
from expect import expect

import kiln
from kiln import te, topi
from kiln._base import source


def matrix(name="A", shape=(4, 5), dtype="float32"):
    return te.placeholder(shape, dtype, name)


def test_a_placeholder_knows_its_shape_and_type():
    n = te.var("n")
    a = te.placeholder((n, 3), name="A")
    assert a.shape[0] is n and a.shape[1] == 3
    assert (a.dtype, a.name, a.ndim, a.op.name) == ("float32", "A", 2, "A")
    assert te.placeholder((2,)).name == "placeholder"
    assert te.placeholder(7).shape == (7,)
    assert te.placeholder([np.int64(7)]).shape == (7,)
    assert te.placeholder(()).shape == ()
    assert te.placeholder((1,), dtype=np.float64).dtype == "float64"
    assert te.placeholder((1,), dtype="bfloat16").dtype == "bfloat16"


def test_printing_a_tensor_shows_name_shape_type_and_operation():
    n = te.var("n")
    a = te.placeholder((n, 3), name="A")
    b = te.compute((n,), lambda i: a[i, 0] + a[i, 2] * 2, name="B")
    assert repr(a) == "Tensor(A, shape=(n, 3), dtype=float32, op=placeholder)"
    assert repr(b) == "Tensor(B, shape=(n,), dtype=float32, op=compute A[i, 0] + A[i, 2] * 2.0)"


@pytest.mark.parametrize("function, names", [
    (lambda i, j: 0.0, ["i", "j"]),
    (lambda *i: 0.0, ["i0", "i1"]),
    (lambda _, i: 0.0, ["_", "i"]),
    (lambda i, *rest: 0.0, ["i", "i1"]),
    (lambda i, j, scale=2: 0.0, ["i", "j"]),
])
def test_parameters_name_the_axes(function, names):
    assert [axis.name for axis in te.compute((4, 5), function).op.axis] == names


def test_ways_to_index():
    a = matrix()
    bodies = [te.compute((4, 5), f).op.body[0] for f in (
        lambda i, j: a[i, j], lambda i, j: a[i][j], lambda i, j: a(i, j), lambda *i: a(*i),
        lambda *i: a[i], lambda i, j: a[(i, j)])]
    assert {str(body).replace("i0", "i").replace("i1", "j") for body in bodies} == {"A[i, j]"}


def test_plain_numbers_are_bodies():
    assert te.compute((2,), lambda _: 0.0).dtype == "float32"
    assert te.compute((2,), lambda _: 1).dtype == "int32"
    assert te.compute((2,), lambda _: True).dtype == "bool"
    assert te.compute((2,), lambda i: i).dtype == "int64"
    assert te.compute((2,), lambda i: np.float64(1)).dtype == "float32"


def test_several_outputs():
    a = matrix()
    total, twice = te.compute((4, 5), lambda i, j: (a[i, j] + 1, a[i, j] * 2), name="T")
    assert (total.name, twice.name) == ("T.v0", "T.v1")
    assert total.op is twice.op and total.op.num_outputs == 2


def test_zero_dimensions():
    a = te.placeholder((), name="a")
    b = te.compute((), lambda: a() + a, name="b")
    assert repr(b) == "Tensor(b, shape=(), dtype=float32, op=compute a[] + a[])"


def test_reductions():
    a = matrix()
    k, l = te.reduce_axis((0, 5), name="k"), te.reduce_axis((1, 4), name="l")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")
    assert [x.name for x in b.op.reduce_axis] == ["k"] and b.op.input_tensors == [a]
    c = te.compute((1,), lambda _: te.max(a[l, k], axis=[l, k]))
    assert [x.name for x in c.op.reduce_axis] == ["l", "k"]
    assert (int(l.dom.min), int(l.dom.extent)) == (1, 3)
    assert str(te.compute((4,), lambda i: te.sum(a[i, k], axis=k) / 5).op.body[0]) == "sum[k](A[i, k]) / 5.0"
    assert str(te.sum(a[0, k], k, where=k > 1)) == "sum[k](A[0, k], where=k > 1)"
    assert str(te.max(a[0, k], axis=k, init=3)) == "max[k](A[0, k], init=3.0)"
    assert te.any(a[0, k] > 0, axis=k).dtype == "bool"
    assert str(te.max(a[0, 0], 0)) == "max(A[0, 0], 0.0)"
    assert str(te.all(a[0, 0] > 0, a[0, 1] > 0)) == "A[0, 0] > 0.0 && A[0, 1] > 0.0"
    assert kiln.sum is te.sum and kiln.prod is te.prod


def test_a_range_may_depend_on_an_axis_before_it():
    a = matrix(shape=(8, 8))
    k = te.reduce_axis((0, 8), name="k")
    l = te.reduce_axis((0, k + 1), name="l")
    b = te.compute((1,), lambda _: te.sum(a[k, l], axis=[k, l]), name="B")
    assert [axis.name for axis in b.op.reduce_axis] == ["k", "l"]
    expect(kiln.InvalidArgument,
           "reduce axis k is used in B, but no reducer reduces over it; write te.sum(..., axis=k)",
           lambda: te.compute((1,), lambda _: te.sum(a[l, l], axis=[l, k]), name="B"))


def cumsum(**options):
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: x[0, i])
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i])
    return x, te.scan(init, update, state, **options)


def test_a_scan_runs_from_its_initial_steps():
    x, s = cumsum(inputs=None)
    assert (s.name, s.dtype, s.op.scan_axis.name) == ("scan", "float32", "scan.idx")
    assert (str(s.op.scan_axis.dom.min), str(s.op.scan_axis.dom.extent)) == ("1", "m - 1")
    assert cumsum(inputs=[x], name="total")[1].op.scan_axis.name == "total.idx"


def test_a_scan_of_lists_gives_a_list():
    a, b = te.placeholder((6, 2)), te.placeholder((6, 3), dtype="float64")
    result = te.scan(
        [te.compute((1, 2), lambda _, i: 0.0), te.compute((1, 3), lambda _, i: te.const(0, "float64"))],
        [te.compute((6, 2), lambda t, i: a[t - 1, i]), te.compute((6, 3), lambda t, i: b[t - 1, i])],
        [a, b])
    assert [t.name for t in result] == ["scan.v0", "scan.v1"]
    assert [t.shape for t in result] == [(6, 2), (6, 3)]


def test_topi():
    a = matrix()
    assert topi.sum(a, axis=0).shape == (5,)
    assert topi.sum(a, axis=-1, keepdims=True).shape == (4, 1)
    assert topi.sum(a).shape == ()
    assert topi.broadcast_to(te.placeholder((5,), name="b"), (3, 4, 5)).shape == (3, 4, 5)
    n = te.var("n")
    assert topi.broadcast_to(te.placeholder((1, n), name="b"), (4, n)).shape == (4, n)


A = matrix()
B1 = te.placeholder((4,), name="B1")
K = te.reduce_axis((0, 5), name="k")
STATE = te.placeholder((6, 3), name="state")


def of(shape, dtype="float32", name="t"):
    return te.compute(shape, lambda *i: te.const(0, dtype), name=name)


MISTAKES = [
    (lambda: te.placeholder((2,), "float33", "A"),
     "placeholder A: unknown dtype float33; known: bool, int8, int16, int32, int64, uint8, uint16, uint32, "
     "uint64, float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2"),
    (lambda: te.placeholder((2, -3), name="A"), "placeholder A: dimension 1 is -3, but must not be negative"),
    (lambda: te.compute((2,), lambda i: te.sum((A[i, k] for k in range(3)), axis=te.reduce_axis((0, 2)))),
     "a generator cannot stand in an expression; a sum over a range is te.sum over a te.reduce_axis"),
    (lambda: te.placeholder((2.5,), name="A"),
     "placeholder A: dimension 0 is 2.5, but must be an integer or made of te.var sizes"),
    (lambda: te.placeholder((A[0, 0],), name="P"),
     "placeholder P: dimension 0 is A[0, 0], but must be an integer or made of te.var sizes"),
    (lambda: te.placeholder(None, name="A"), "placeholder A: None is no shape; write a tuple of sizes"),
    (lambda: te.placeholder((1,), name=3), "te.placeholder: the name must be a string, but got int"),
    (lambda: te.compute((4, 5), lambda i: A[i, 0], name="B"),
     "compute B has 2 dimensions, but its function takes 1 parameter (i); it needs one for each dimension"),
    (lambda: te.compute((1,), lambda: 0.0, name="C"),
     "compute C has 1 dimension, but its function takes 0 parameters; it needs one for each dimension"),
    (lambda: te.compute((4,), lambda i, j: A[i, j], name="B"),
     "compute B has 1 dimension, but its function takes 2 parameters (i, j); it needs one for each "
     "dimension"),
    (lambda: te.compute((4,), lambda i: None, name="B"),
     "compute B: its function returned nothing; is a return missing?"),
    (lambda: te.compute((4,), 3, name="B"), "compute B: the second argument must be a function of the axes"),
    (lambda: te.compute((1,), lambda _: B1 / 3, name="B"),
     "tensor B1 of shape (4,) stands in an expression without indices; read an element, as in B1[i], "
     "inside te.compute"),
    (lambda: te.compute((4,), lambda i: A[i, K], name="B"),
     "reduce axis k is used in B, but no reducer reduces over it; write te.sum(..., axis=k)"),
    (lambda: te.compute((4,), lambda i: te.sum(A[i, K], axis=K) * A[i, K], name="B"),
     "reduce axis k is used in B, but no reducer reduces over it; write te.sum(..., axis=k)"),
    (lambda: te.compute((4,), lambda i: te.sum(A[i, K], axis=i), name="B"),
     "te.sum: i is a data axis of B; make one with te.reduce_axis"),
    (lambda: te.sum(A[0, K]), "te.sum needs the axis to reduce over; did you mean axis=k"),
    (lambda: te.max(A[0, 0]), "te.max needs the axis to reduce over, or two values, as te.max(a, b)"),
    (lambda: te.sum(A[0, K], axis="k"),
     "te.sum: axis must be a te.reduce_axis or a list of them, but got 'k'"),
    (lambda: te.reduce_axis(0, 5), "te.reduce_axis: write the range as one pair: (0, 5)"),
    (lambda: te.reduce_axis(5, name="k"), "te.reduce_axis k: write the range as (0, n), but got 5"),
    (lambda: te.reduce_axis((3, 1), name="k"), "te.reduce_axis k: the range (3, 1) ends before it begins"),
    (lambda: te.compute((4,), lambda i: B1[of((3,), name="C").op.axis[0]], name="B"),
     "axis i0 belongs to C and cannot be used in B"),
    (lambda: te.scan([of((1, 3))], [of((6, 3)), of((6, 3))], [STATE], name="s"),
     "scan s has 1 init, 2 update and 1 state; their numbers must be the same"),
    (lambda: te.scan(of((1, 3)), of((6, 3)), of((6, 3), name="c"), name="s"),
     "the state of scan s must be a placeholder, but c is computed"),
    (lambda: te.scan(of((1, 3)), of((6, 3), "float64"), STATE, name="s"),
     "update of scan s is float64 but its state is float32"),
    (lambda: te.scan(of((1,)), of((6, 3)), STATE, name="s"),
     "init of scan s has shape (1,) but its state has shape (6, 3); its time dimension is missing"),
    (lambda: te.scan(of((1, 3)), of((6, 4)), STATE, name="s"),
     "update of scan s has shape (6, 4) but its state has shape (6, 3)"),
    (lambda: te.scan(of((1, 4)), of((6, 3)), STATE, name="s"),
     "init of scan s has shape (1, 4) but its state has shape (6, 3); dimension 1 must agree"),
    (lambda: te.scan(of((1, 3)), of((6, 3)), [3], name="s"), "scan s: state must be a tensor, but is int"),
    (lambda: topi.broadcast_to(A, (3, 5)),
     "topi.broadcast_to: A has shape (4, 5), which does not broadcast to (3, 5)"),
    (lambda: topi.sum(A, axis=2), "topi.sum: axis 2 is out of range; A has 2 dimensions"),
]  # fmt: skip


@pytest.mark.parametrize("mistake, message", MISTAKES, ids=[m for _, m in MISTAKES])
def test_a_mistake_gets_a_sentence(mistake, message):
    error = expect(kiln.InvalidArgument, message, mistake)
    assert isinstance(error, ValueError)
    assert error.file == __file__ and error.line > 0


def test_an_error_in_the_function_shows_its_line_and_few_frames():
    def body(i):
        return A[i] + 1

    error = expect(kiln.InvalidArgument, "A has 2 dimensions, but is read with 1 index",
                   lambda: te.compute((4,), body))
    assert error.line == body.__code__.co_firstlineno + 1
    assert str(error).endswith(f"\n  at {source.display(__file__)}:{error.line}")
    entry, names = error.__traceback__, []
    while entry is not None:
        names.append(entry.tb_frame.f_code.co_name)
        entry = entry.tb_next
    assert names[-3:] == ["<lambda>", "call", "body"]


def test_a_size_that_is_no_integer_is_refused_with_the_way_out():
    expect(kiln.InvalidArgument,
           "te.size_var alpha is float32, but sizes are integers; write te.var",
           lambda: te.size_var("alpha", "float32"))


def test_a_shape_may_be_a_numpy_array():
    assert te.placeholder(np.array([4, 5]), name="A").shape == (4, 5)


def test_the_axes_of_a_tensor_are_those_of_its_operation():
    with pytest.raises(AttributeError) as caught:
        te.compute((4,), lambda i: i, name="B").axis
    assert str(caught.value).startswith("tensor B has no axis; write B.op.axis")


def test_a_float_without_a_fraction_is_a_size():
    n, bn = 1024, 32
    B = te.placeholder((n, n / 1), name="B")
    packed = te.compute((n / bn, n, bn), lambda x, y, z: B[y, x * bn + z], name="packed")
    assert packed.shape == (32, 1024, 32) and B.shape == (1024, 1024)
    s = te.create_schedule(packed.op)
    s[packed].split(packed.op.axis[1], factor=n / 64)
    assert "factor=16" in s.text()
