"""Tensors without dimensions, without elements, with strides, and past 2^31 elements."""

import os

import ml_dtypes
import numpy as np
import pytest

import kiln as tvm
from kiln import te


def add_one(dtype="float32", rank=1):
    shape = tuple(te.var(name) for name in "nmlk"[:rank])
    x = te.placeholder(shape, dtype, name="X")
    y = te.compute(shape, lambda *i: x(*i) + te.const(1, dtype), name="Y")
    return tvm.build([x, y], target="llvm", name="add_one")


def test_a_tensor_without_dimensions(daemon):
    x = te.placeholder((), "float32", name="X")
    a = te.placeholder((te.var("n"),), "float32", name="A")
    y = te.compute(a.shape, lambda i: a[i] * x() + x, name="Y")
    k = te.reduce_axis((0, a.shape[0]), name="k")
    total = te.compute((), lambda: te.sum(a[k] * x, axis=k), name="total")
    f = tvm.build([x, a, y, total], target="llvm", name="scale")
    values = np.arange(5, dtype="float32")
    scaled, summed = f(np.float32(3), values)
    np.testing.assert_array_equal(scaled.numpy(), values * 3 + 3)
    assert summed.shape == () and summed.numpy() == 30
    np.testing.assert_array_equal(f(np.array(2.0, "float32"), values)[1].numpy(), 20)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_a_tensor_without_elements(daemon, shape):
    n, m = te.var("n"), te.var("m")
    x = te.placeholder((n, m), name="X")
    k, l = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="l")
    rows = te.compute((n,), lambda i: te.sum(x[i, k], axis=k), name="rows")
    top = te.compute((n,), lambda i: te.max(x[i, l], axis=l), name="top")
    y = te.compute((n, m), lambda i, j: x[i, j] / rows[i], name="Y")
    r, c = te.reduce_axis((0, n), name="r"), te.reduce_axis((0, m), name="c")
    total = te.compute((), lambda: te.sum(x[r, c], axis=[r, c]), name="total")
    results = tvm.build([x, rows, top, y, total], target="llvm", name="empty")(np.zeros(shape, "f4"))
    assert [r.shape for r in results] == [shape[:1], shape[:1], shape, ()]
    np.testing.assert_array_equal(results[0].numpy(), np.zeros(shape[0]))
    np.testing.assert_array_equal(results[1].numpy(), np.full(shape[0], -np.inf))
    assert results[3].numpy() == 0


@pytest.mark.parametrize("combiner, dtype, identity", [
    (te.sum, "int8", 0), (te.prod, "float32", 1), (te.min, "float32", np.inf), (te.min, "int16", 32767),
    (te.max, "uint8", 0), (te.max, "int64", -2**63), (te.any, "bool", False), (te.all, "bool", True),
])
def test_a_reduction_over_nothing_is_the_identity(daemon, combiner, dtype, identity):
    x = te.placeholder((te.var("n"),), dtype, name="X")
    k = te.reduce_axis((0, x.shape[0]), name="k")
    y = te.compute((), lambda: combiner(x[k], axis=k), name="Y")
    assert tvm.build([x, y], target="llvm", name="nothing")(np.zeros(0, dtype)).numpy() == identity


def test_a_constant_dimension_of_zero(daemon):
    x = te.placeholder((0, 4), name="X")
    y = te.compute((0, 3), lambda i, j: x[i, j] + x[i, j + 1], name="Y")
    k = te.reduce_axis((0, 0), name="k")
    z = te.compute((4,), lambda j: te.sum(x[k, j], axis=k), name="Z")
    results = tvm.build([x, y, z], target="llvm", name="zero")(np.zeros((0, 4), "f4"))
    assert results[0].shape == (0, 3)
    np.testing.assert_array_equal(results[1].numpy(), np.zeros(4))


VIEWS = {
    "steps": lambda a: a[::2, 1::3],
    "transposed": lambda a: a.T,
    "backwards": lambda a: a[::-1, ::-2],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "column": lambda a: a[:, 3:4],
    "fortran": np.asfortranarray,
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16"])
def test_views_of_numpy(daemon, view, dtype):
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    whole = np.arange(15 * 17).reshape(15, 17).astype(dtype)
    x = view(whole)
    f = add_one(dtype.name, rank=2)
    np.testing.assert_array_equal(f(x).numpy(), x + dtype.type(1))
    out = view(np.zeros_like(whole))
    if out.flags.writeable:
        f(x, out)
        np.testing.assert_array_equal(out, x + dtype.type(1))


@pytest.mark.skipif(not os.environ.get("KILN_LONG"), reason="needs 5 GiB; set KILN_LONG=1")
def test_a_tensor_past_two_to_the_31_elements(daemon):
    count = (1 << 31) + 10
    x = te.placeholder((te.var("n"),), "int8", name="X")
    at = te.placeholder((te.var("m"),), "int64", name="at")
    y = te.compute(at.shape, lambda i: x[at[i]] + x[x.shape[0] - 1 - i], name="Y")
    values = np.zeros(count, "int8")
    values[-4:] = [1, 2, 3, 4]
    places = np.array([count - 4, count - 3, 0], "int64")
    result = tvm.build([x, at, y], target="llvm", name="long")(values, places).numpy()
    np.testing.assert_array_equal(result, [1 + 4, 2 + 3, 0 + 2])
