"""Programs in the spelling of 0.7: te and tir, contexts, asnumpy."""

import math

import numpy as np
import pytest

import kiln as tvm
from kiln import te, tir

pytestmark = pytest.mark.usefixtures("service")


def uniform(*shape):
    return np.random.RandomState(0).uniform(-1, 1, size=shape).astype("float32")


def run(tensors, *inputs, schedule=None, target="llvm"):
    """The outputs as numpy has them, computed through a schedule as programs of the time did."""
    ctx = tvm.context(target, 0)
    outputs = [t for t in tensors if not isinstance(t.op, te.PlaceholderOp)]
    s = schedule or te.create_schedule([t.op for t in outputs])
    func = tvm.build(s, tensors, target)
    result = func(*(tvm.nd.array(x, ctx) for x in inputs))
    return [r.asnumpy() for r in (result if isinstance(result, tuple) else (result,))]


# Declaring.


def test_names_of_axes():
    A = te.placeholder((3, 4, 5), name="A")
    B = te.compute((3, 4, 5), lambda *i: A(*i), name="B")
    C = te.compute((3, 4, 5), lambda n, *i: A(n, *i), name="C", varargs_names=["row", "column"])
    assert [a.var.name for a in B.op.axis] == ["i0", "i1", "i2"]
    assert [a.var.name for a in C.op.axis] == ["n", "row", "column"]
    x = uniform(3, 4, 5)
    for result in run([A, B, C], x):
        np.testing.assert_array_equal(result, x)


def test_a_compute_without_dimensions():
    A = te.placeholder((), name="A")
    scale = te.placeholder((), name="s")
    B = te.compute((), lambda: A() + scale(), name="B")
    assert run([A, scale, B], np.float32(2), np.float32(3))[0] == 5


def test_shapes_made_of_sizes():
    n, m = te.size_var("n"), te.size_var("m")
    A = te.placeholder((n, m), name="A")
    B = te.compute((n * 2, m + 1), lambda i, j: tir.if_then_else(j < m, A[i // 2, j], 0.0), name="B")
    C = te.compute((n // 2, m), lambda i, j: A[i * 2, j] + A[i * 2 + 1, j], name="C")
    x = uniform(5, 3)
    b, c = run([A, B, C], x)
    np.testing.assert_array_equal(b, np.pad(x.repeat(2, axis=0), ((0, 0), (0, 1))))
    np.testing.assert_allclose(c, x[0:4:2] + x[1:4:2], rtol=1e-6)


def test_a_range_that_does_not_begin_at_zero():
    A = te.placeholder((10,), name="A")
    k = te.reduce_axis((2, 7), name="k")
    B = te.compute((1,), lambda _: te.sum(A[k], axis=k), name="B")
    x = uniform(10)
    np.testing.assert_allclose(run([A, B], x)[0], [x[2:7].sum()], rtol=1e-5)


def test_a_constant_tensor():
    B = te.compute((2, 3), lambda i, j: te.const(7, "int16"), name="B")
    assert B.dtype == "int16"
    np.testing.assert_array_equal(run([B])[0], np.full((2, 3), 7))


# Expressions.


def test_ways_to_index():
    A = te.placeholder((4, 5), name="A")
    B = te.compute((4, 5), lambda i, j: A[i][j] + A[i, j] + A(i, j), name="B")
    x = uniform(4, 5)
    np.testing.assert_allclose(run([A, B], x)[0], x * 3, rtol=1e-6)


def test_divisions_of_integers():
    A = te.placeholder((7,), "int32", name="A")
    B = te.placeholder((7,), "int32", name="B")
    tensors = [
        te.compute((7,), lambda i: te.floordiv(A[i], B[i])), te.compute((7,), lambda i: te.floormod(A[i], B[i])),
        te.compute((7,), lambda i: te.truncdiv(A[i], B[i])), te.compute((7,), lambda i: te.truncmod(A[i], B[i])),
        te.compute((7,), lambda i: te.div(A[i], B[i])),
        te.compute((7,), lambda i: te.indexdiv(te.abs(A[i]), te.abs(B[i]))),
    ]  # fmt: skip
    a, b = np.int32([7, -7, 7, -7, 6, 0, 1]), np.int32([2, 2, -2, -2, 3, 5, 9])
    truncated = np.trunc(a / b).astype("int32")
    expected = [a // b, a % b, truncated, a - truncated * b, truncated, abs(a) // abs(b)]
    for result, wanted in zip(run([A, B, *tensors], a, b), expected):
        np.testing.assert_array_equal(result, wanted)
    with pytest.raises(tvm.InvalidArgument, match="several integer divisions"):
        te.compute((7,), lambda i: A[i] / B[i])


def test_bits_and_shifts():
    A = te.placeholder((8,), "uint8", name="A")
    tensors = [
        te.compute((8,), lambda i: (A[i] & 15) | 64), te.compute((8,), lambda i: A[i] ^ 255),
        te.compute((8,), lambda i: ~A[i]), te.compute((8,), lambda i: (A[i] << 1) + (A[i] >> 3)),
        te.compute((8,), lambda i: te.popcount(A[i])),
    ]  # fmt: skip
    x = np.uint8([0, 1, 3, 17, 64, 127, 200, 255])
    expected = [(x & 15) | 64, x ^ 255, ~x, (x << 1) + (x >> 3), [bin(v).count("1") for v in x]]
    for result, wanted in zip(run([A, *tensors], x), expected):
        np.testing.assert_array_equal(result, wanted)


def test_comparisons_and_logic():
    A = te.placeholder((9,), name="A")
    B = te.compute((9,), lambda i: tir.all(A[i] > -0.5, tir.any(A[i] <= 0.0, A[i] == 0.25, A[i] != A[i])))
    C = te.compute((9,), lambda i: tir.Not(A[i] >= 0.25).astype("int32") * 2)
    x = np.linspace(-1, 1, 9).astype("float32")
    b, c = run([A, B, C], x)
    np.testing.assert_array_equal(b, (x > -0.5) & ((x <= 0) | (x == 0.25)))
    np.testing.assert_array_equal(c, (x < 0.25) * 2)


def test_types_that_meet():
    A = te.placeholder((3,), "int8", name="A")
    B = te.placeholder((3,), "float16", name="B")
    C = te.placeholder((3,), "float32", name="C")
    D = te.compute((3,), lambda i: A[i].astype("float32") * 2 + B[i] * C[i])
    assert D.dtype == "float32"
    a, b, c = np.int8([-1, 2, 3]), np.float16([0.5, 1, 2]), np.float32([1, 2, 4])
    np.testing.assert_allclose(run([A, B, C, D], a, b, c)[0], a * 2 + b * c)


def test_lazy_and_eager_choices():
    A = te.placeholder((6,), name="A")
    B = te.compute((8,), lambda i: tir.if_then_else(tir.all(i > 0, i < 7), A[i - 1], te.min_value("float32")))
    C = te.compute((6,), lambda i: tir.Select(A[i] > 0, te.sqrt(te.abs(A[i])), -A[i]))
    x = uniform(6)
    b, c = run([A, B, C], x)
    np.testing.assert_array_equal(b[1:-1], x)
    assert b[0] == b[-1] == np.finfo("float32").min
    np.testing.assert_allclose(c, np.where(x > 0, np.sqrt(abs(x)), -x), rtol=1e-6)


def test_functions_of_a_number():
    names = ["exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "erf", "floor", "ceil", "trunc", "sin", "cos", "atan"]
    A = te.placeholder((40,), name="A")
    tensors = [te.compute((40,), lambda i, f=getattr(te, name): f(A[i]), name=name) for name in names]
    x = np.linspace(0.1, 3, 40).astype("float32")
    numpys = {"rsqrt": lambda v: 1 / np.sqrt(v), "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
              "erf": np.vectorize(math.erf), "atan": np.arctan}  # fmt: skip
    for name, result in zip(names, run([A, *tensors], x)):
        np.testing.assert_allclose(result, numpys.get(name, getattr(np, name, None))(x.astype("float64")), rtol=2e-6)


def test_powers_and_remainders():
    A = te.placeholder((5,), name="A")
    B = te.compute((5,), lambda i: te.power(A[i], 3.0) + te.fmod(A[i], 2.0) + tir.atan2(A[i], 1.0))
    x = np.float32([0.5, 1, 2.5, 3, 4])
    np.testing.assert_allclose(run([A, B], x)[0], x**3 + np.fmod(x, 2) + np.arctan2(x, 1), rtol=1e-5)


def test_special_numbers():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: te.isnan(A[i]))
    C = te.compute((4,), lambda i: te.isinf(A[i]))
    D = te.compute((4,), lambda i: te.isfinite(A[i]))
    x = np.float32([1, math.nan, math.inf, -math.inf])
    for result, wanted in zip(run([A, B, C, D], x), (np.isnan(x), np.isinf(x), np.isfinite(x))):
        np.testing.assert_array_equal(result, wanted)


def test_gather_by_an_index_tensor():
    n = te.var("n")
    A = te.placeholder((n, 3), name="A")
    I = te.placeholder((5,), "int32", name="I")  # noqa: E741
    B = te.compute((5, 3), lambda i, j: A[I[i], j], name="B")
    x, index = uniform(4, 3), np.int32([3, 0, 0, 2, 1])
    np.testing.assert_array_equal(run([A, I, B], x, index)[0], x[index])


# Reducers.


def test_two_axes_and_a_condition():
    A = te.placeholder((4, 5, 6), name="A")
    k1, k2 = te.reduce_axis((0, 5), "k1"), te.reduce_axis((0, 6), "k2")
    B = te.compute((4,), lambda i: te.sum(A[i, k1, k2], axis=[k1, k2], where=te.all(k1 > 0, k2 < 3)), name="B")
    C = te.compute((4,), lambda i: te.max(A[i, k1, k2], axis=[k1, k2]), name="C")
    x = uniform(4, 5, 6)
    b, c = run([A, B, C], x)
    np.testing.assert_allclose(b, x[:, 1:, :3].sum(axis=(1, 2)), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(c, x.max(axis=(1, 2)))


def test_a_reduction_whose_range_depends_on_the_row():
    n = te.var("n")
    A = te.placeholder((n, n), name="A")
    lower = te.compute((n,), lambda i: te.sum(A[i, k_of(i)], axis=k_of(i)), name="lower")
    x = uniform(6, 6)
    np.testing.assert_allclose(run([A, lower], x)[0], np.tril(x).sum(axis=1), rtol=1e-5, atol=1e-6)


_axes = {}


def k_of(i):
    """One reduce axis (0, i + 1) for each row axis."""
    return _axes.setdefault(id(i), te.reduce_axis((0, i + 1), "k"))


def test_a_mean_is_one_expression():
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    B = te.compute((4,), lambda i: -te.sum(A[i, k], axis=k) / 8.0, name="B")
    x = uniform(4, 8)
    np.testing.assert_allclose(run([A, B], x)[0], -x.mean(axis=1), rtol=1e-5, atol=1e-6)


def test_tags_stay_on_operations():
    A = te.placeholder((4,), name="A")
    with te.tag_scope(tag="elemwise"):
        B = te.compute((4,), lambda i: A[i] + 1, name="B")
    assert B.op.tag == "elemwise"
    np.testing.assert_array_equal(run([A, B], np.zeros(4, "float32"))[0], np.ones(4))
