"""Kernels whose indices and bounds are data: gathers, scatters, sparse matrices."""

import numpy as np
import pytest

import kiln as tvm
from kiln import te

HERE = __file__


def sparse(rows=50, columns=40, seed=0):
    """A matrix as numpy has it, and in compressed rows."""
    random = np.random.default_rng(seed)
    dense = (random.random((rows, columns)) < 0.2) * random.random((rows, columns))
    dense[[3, rows - 1]] = 0
    dense = dense.astype("float32")
    ends = np.concatenate([[0], np.cumsum((dense != 0).sum(axis=1))]).astype("int32")
    return dense, ends, np.nonzero(dense)[1].astype("int32"), dense[dense != 0]


def product():
    m, z, n = te.var("m"), te.var("z"), te.var("n")
    ptr = te.placeholder((m + 1,), "int32", name="ptr")
    col = te.placeholder((z,), "int32", name="col")
    val = te.placeholder((z,), name="val")
    x = te.placeholder((n,), name="x")

    def row(i):
        k = te.reduce_axis((ptr[i], ptr[i + 1]), name="k")
        return te.sum(val[k] * x[col[k]], axis=k)

    return [ptr, col, val, x, te.compute((m,), row, name="y")]


@pytest.mark.parametrize("factor", [0, 1, 8])
def test_a_sparse_matrix_by_a_vector(daemon, factor):
    arguments = product()
    y = arguments[-1]
    s = te.create_schedule(y.op)
    if factor:
        outer, inner = s[y].split(y.op.reduce_axis[0], factor)
        s[y].unroll(inner)
    f = tvm.build(s if factor else arguments, arguments, target="llvm", name="spmv")
    dense, ends, columns, values = sparse()
    x = np.random.default_rng(1).random(40).astype("float32")
    np.testing.assert_allclose(f(ends, columns, values, x).numpy(), dense @ x, rtol=1e-5)


def test_a_sparse_matrix_that_reads_outside(daemon):
    arguments = product()
    line = arguments[-1].op.line
    f = tvm.build(arguments, target="llvm", name="spmv")
    _, ends, columns, values = sparse()
    ends[5] = 10**6
    with pytest.raises(tvm.InvalidArgument) as caught:
        f(ends, columns, values, np.zeros(40, "float32"))
    count = len(values)
    assert caught.value.message == (
        f"y of spmv reads index {count} of dimension 0 of val, but its extent there is {count}")
    assert (caught.value.reason, caught.value.file, caught.value.line) == (
        "INDEX_OUT_OF_RANGE", HERE, line)


def test_bounds_that_read_outside(daemon):
    n, m = te.var("n"), te.var("m")
    ends = te.placeholder((n,), "int64", name="ends")
    x = te.placeholder((m,), name="x")

    def row(i):
        k = te.reduce_axis((0, ends[i]), name="k")
        return te.sum(x[k], axis=k)

    y = te.compute((m,), row, name="y")
    f = tvm.build([ends, x, y], target="llvm", name="ragged")
    with pytest.raises(tvm.InvalidArgument, match="y of ragged reads index 2 of dimension 0 of ends"):
        f(np.array([0, 1]), np.ones(3, "float32"))


def scattered(function, dtype="float32"):
    n, d, m = te.var("n"), te.var("d"), te.var("m")
    base = te.placeholder((n, d), dtype, name="base")
    idx = te.placeholder((m,), "int32", name="idx")
    x = te.placeholder((m, d), dtype, name="x")
    out = function(base, (m, d), lambda r, c: ((idx[r], c), x[r, c]), name="out")
    return [base, idx, x, out]


def scatter_inputs(dtype="float32", rows=7, updates=500, columns=70):
    random = np.random.default_rng(0)
    base = random.normal(size=(rows, columns)) * 30
    x = random.normal(size=(updates, columns)) * 30
    return base.astype(dtype), random.integers(0, rows, updates).astype("int32"), x.astype(dtype)


def replace(base, idx, x):
    for r, i in enumerate(idx):
        base[i] = x[r]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16"])
@pytest.mark.parametrize("function, reference", [
    (te.scatter_add, np.add.at), (te.scatter_min, np.minimum.at), (te.scatter_max, np.maximum.at),
    (te.scatter, replace)], ids=["add", "min", "max", "replace"])
def test_scatters_have_the_bits_of_numpy(daemon, function, reference, dtype):
    f = tvm.build(scattered(function, dtype), target="llvm", name="scatter")
    with np.errstate(all="ignore"):
        base, idx, x = scatter_inputs(dtype)
        expected = base.copy()
        reference(expected, idx, x)
    np.testing.assert_array_equal(f(base, idx, x).numpy(), expected)


def test_a_histogram(daemon):
    x = te.placeholder((te.var("n"),), "uint8", name="x")
    zero = te.compute((256,), lambda i: te.const(0, "int32"), name="zero")
    out = te.scatter_add(zero, x.shape, lambda i: (x[i], 1), name="out")
    values = np.random.default_rng(0).integers(0, 256, 10_000).astype("uint8")
    result = tvm.build([x, out], target="llvm", name="histogram")(values).numpy()
    np.testing.assert_array_equal(result, np.bincount(values, minlength=256))


def test_a_scatter_with_a_schedule(daemon):
    arguments = scattered(te.scatter_add)
    out = arguments[-1]
    s = te.create_schedule(out.op)
    r, c = s[out].op.axis
    outer, inner = s[out].split(c, 16)
    s[out].reorder(outer, r, inner)
    s[out].parallel(outer)
    s[out].vectorize(inner)
    base, idx, x = scatter_inputs()
    expected = base.copy()
    np.add.at(expected, idx, x)
    np.testing.assert_array_equal(tvm.build(s, arguments, name="s")(base, idx, x).numpy(), expected)

    s = te.create_schedule(out.op)
    s[out].parallel(r)
    with pytest.raises(tvm.Unsupported, match="its iterations may update one element of out"):
        tvm.build(s, arguments, name="s")


@pytest.mark.parametrize("index", [7, -1])
def test_a_scatter_outside_of_its_base(daemon, index):
    arguments = scattered(te.scatter_add)
    f = tvm.build(arguments, target="llvm", name="scatter")
    base, idx, x = scatter_inputs()
    idx[17] = index
    with pytest.raises(tvm.InvalidArgument) as caught:
        f(base, idx, x)
    assert caught.value.message == (
        f"out of scatter updates its element at index {index} of dimension 0, but its extent there "
        "is 7")
    assert (caught.value.file, caught.value.line) == (HERE, arguments[-1].op.line)


def test_a_scatter_feeds_other_stages(daemon):
    arguments = scattered(te.scatter_add, "int32")
    out = arguments[-1]
    k = te.reduce_axis((0, out.shape[1]), name="k")
    base, idx, x = (a.astype("int32") for a in scatter_inputs())
    total = te.compute((out.shape[0],), lambda i: te.sum(out[i, k], axis=k), name="total")
    expected = base.copy()
    np.add.at(expected, idx, x)
    result = tvm.build([*arguments[:-1], total], name="total")(base, idx, x).numpy()
    np.testing.assert_array_equal(result, expected.sum(axis=1))


def test_scatters_print_what_they_are():
    out = scattered(te.scatter_add)[-1]
    assert repr(out) == ("Tensor(out, shape=(n, d), dtype=float32, "
                         "op=scatter x[r, c] to [int64(idx[r]), c] of base)")
    assert [a.name for a in out.op.axis] == ["r", "c"]
    assert [t.name for t in out.op.input_tensors] == ["base", "idx", "x"]


MISTAKES = [
    (lambda b: te.scatter_add(1, (3,), lambda r: (r, 1)),
     "scatter_add scatter_add: the base must be a tensor, but is int"),
    (lambda b: te.scatter_add(b, (3,), lambda r: r, name="s"),
     "scatter_add s: its function must return (indices, update)"),
    (lambda b: te.scatter_add(b, (3,), lambda r: (r, 1.0), name="s"),
     "scatter_add s: b has 2 dimensions, but its function gives 1 index"),
    (lambda b: te.scatter_add(b, (3,), lambda r: ((r, b[0, 0]), 1.0), name="s"),
     "scatter_add s: index 1 is float32, but must be an integer"),
    (lambda b: te.scatter_add(b, (3,), lambda r: ((r, 0), r), name="s"),
     'scatter_add s: the update is int64, but b is float32; cast it with .astype("float32")'),
    (lambda b: te.scatter_add(b, (3,), None, name="s"),
     "scatter_add s: the third argument must be a function of the axes that returns the indices and "
     "the update"),
]  # fmt: skip


@pytest.mark.parametrize("make, message", MISTAKES)
def test_mistakes_of_scatters(make, message):
    with pytest.raises(tvm.InvalidArgument) as caught:
        make(te.placeholder((4, 5), name="b"))
    assert caught.value.message == message
