"""Programs as users write them: functions, guards, reducers, updates in place, odd calls."""

import math

import numpy as np
import pytest
from expect import expect

import kiln as tvm
from kiln import te, tir, topi

X = te.placeholder((4, 4), name="X")
N = te.var("n")


def values():
    return np.random.default_rng(1).uniform(size=(4, 4)).astype("float32")


FUNCTIONS = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda v: 10**v, "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda v: 1 / np.sqrt(v),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "atanh": np.arctanh, "erf": np.vectorize(math.erf), "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.round, "abs": np.abs,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_against_numpy(daemon, name):
    z = np.linspace(0.05, 0.95, 100).astype("float32")
    a = te.placeholder((100,), name="A")
    f = tvm.build([a, te.compute((100,), lambda i: getattr(te, name)(a[i]))])
    np.testing.assert_allclose(f(z).numpy(), FUNCTIONS[name](z.astype("float64")), rtol=2e-6)


def test_padding_by_a_guard(daemon):
    padded = te.compute((6, 6), lambda i, j: tir.if_then_else(
        tir.all(i >= 1, i < 5, j >= 1, j < 5), X[i - 1, j - 1], 0.0), name="P")
    np.testing.assert_array_equal(tvm.build([X, padded])(values()).numpy(), np.pad(values(), 1))


@pytest.mark.parametrize("reducer, reference", [
    (te.min, np.min), (te.max, np.max), (te.prod, np.prod), (te.sum, np.sum)])
def test_reducers(daemon, reducer, reference):
    k = te.reduce_axis((0, 4), name="k")
    f = tvm.build([X, te.compute((4,), lambda i: reducer(X[i, k], axis=k), name="R")])
    np.testing.assert_allclose(f(values()).numpy(), reference(values(), axis=1), rtol=1e-6)


def test_any_and_all(daemon):
    k, l = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 4), name="l")
    some = te.compute((4,), lambda i: te.any(X[i, k] > 0.9, axis=k), name="some")
    every = te.compute((4,), lambda i: te.all(X[i, l] > 0.1, axis=l), name="every")
    a, b = tvm.build([X, some, every])(values())
    np.testing.assert_array_equal(a.numpy(), (values() > 0.9).any(axis=1))
    np.testing.assert_array_equal(b.numpy(), (values() > 0.1).all(axis=1))


def test_a_result_without_dimensions(daemon):
    assert float(tvm.build([X, topi.sum(X)])(values())) == pytest.approx(values().sum())


def test_integers_accumulate_in_a_wider_type(daemon):
    h = te.placeholder((16, 16), "int8", name="H")
    k = te.reduce_axis((0, 16), name="k")
    f = tvm.build([h, te.compute((16, 16), lambda i, j: te.sum(
        h[i, k].astype("int32") * h[k, j].astype("int32"), axis=k))])
    x = np.arange(256, dtype="uint8").view("int8").reshape(16, 16)
    np.testing.assert_array_equal(f(x).numpy(), x.astype("int32") @ x.astype("int32"))


def test_inputs_of_any_layout(daemon):
    f = tvm.build([X, te.compute((4, 4), lambda i, j: X[j, i])])
    np.testing.assert_array_equal(f(values().T).numpy(), values())
    np.testing.assert_array_equal(f(np.repeat(values(), 2, axis=1)[:, ::2]).numpy(), values().T)


def test_an_output_may_be_the_input(daemon):
    a = te.placeholder((N,), name="A")
    f = tvm.build([a, te.compute((N,), lambda i: a[i] * 2 + 1, name="B")])
    x = tvm.nd.array(np.ones(1000, "float32"))
    f(x, x)
    f(x, x)
    np.testing.assert_array_equal(x.numpy(), np.full(1000, 7, "float32"))


def test_a_size_that_no_argument_gives_is_given_by_name(daemon):
    f = tvm.build([te.compute((N,), lambda i: i.astype("float32"), name="iota")], name="iota")
    assert f(n=3).numpy().tolist() == [0, 1, 2]
    out = np.zeros(5, "float32")
    f(out)
    assert out.tolist() == [0, 1, 2, 3, 4]
    expect(tvm.InvalidArgument, "size n of iota is not given by any argument; pass it as a size", f)


def test_a_program_of_the_course_of_2018(daemon):
    """A training step written over compiled operators, each its own kernel."""
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(32, 20)).astype("float32"), rng.normal(size=(20, 10)).astype("float32")
    labels = np.eye(10, dtype="float32")[rng.integers(0, 10, 32)]

    a, b = te.placeholder((32, 20), name="A"), te.placeholder((20, 10), name="B")
    k = te.reduce_axis((0, 20), name="k")
    product = te.compute((32, 10), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    forward = tvm.build(te.create_schedule(product.op), [a, b, product], "llvm", name="matmul")
    scores = tvm.nd.empty((32, 10))
    forward(tvm.nd.array(x), tvm.nd.array(w), scores)

    s = te.placeholder((32, 10), name="S")
    j1, j2 = te.reduce_axis((0, 10), name="j1"), te.reduce_axis((0, 10), name="j2")
    top = te.compute((32,), lambda i: te.max(s[i, j1], axis=j1), name="top")
    e = te.compute((32, 10), lambda i, j: te.exp(s[i, j] - top[i]), name="e")
    total = te.compute((32,), lambda i: te.sum(e[i, j2], axis=j2), name="total")
    p = te.compute((32, 10), lambda i, j: e[i, j] / total[i], name="p")
    softmax = tvm.build(te.create_schedule(p.op), [s, p], "llvm", name="softmax")
    chances = softmax(scores)

    step = tvm.build(gradient_arguments(), name="gradient")(x, chances, labels)
    expected = np.exp(x @ w - (x @ w).max(axis=1, keepdims=True))
    expected = expected / expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(step.numpy(), x.T @ (expected - labels) / 32, rtol=1e-4, atol=1e-6)


def gradient_arguments():
    x, p, y = (te.placeholder(shape, name=name) for shape, name in
               (((32, 20), "X"), ((32, 10), "P"), ((32, 10), "Y")))
    n = te.reduce_axis((0, 32), name="n")
    difference = te.compute((32, 10), lambda i, j: p[i, j] - y[i, j], name="difference")
    return [x, p, y, te.compute((20, 10), lambda i, j: te.sum(
        x[n, i] * difference[n, j], axis=n) / 32, name="G")]
