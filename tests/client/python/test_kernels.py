"""The kernels of a course on automatic differentiation, at its sizes, against numpy."""

import numpy as np
import pytest

import kiln as tvm
from kiln import te, topi
from kiln._base import dtypes


def build(s, arguments, name="main"):
    return tvm.build(s, arguments, "llvm", target_host="llvm", name=name)


def uniform(*shape, low=0.0, high=1.0):
    return np.random.default_rng(sum(shape)).uniform(low, high, size=shape).astype("float32")


def called(f, *inputs, shape):
    """The result of a call in the old manner, with arrays on a device."""
    out = tvm.nd.array(np.zeros(shape, "float32"), tvm.cpu(0))
    f(*(tvm.nd.array(x, tvm.cpu(0)) for x in inputs), out)
    return out.asnumpy()


def elementwise(shape, body, inputs=1):
    tensors = [te.placeholder(shape, name="AB"[i], dtype="float32") for i in range(inputs)]
    c = te.compute(tensors[0].shape, lambda *i: body(*(t(*i) for t in tensors)), name="C")
    return build(te.create_schedule(c.op), [*tensors, c], "elementwise")


ELEMENTWISE = [
    ("add", (500, 200), 2, lambda a, b: a + b, lambda a, b: a + b),
    ("multiply", (500, 200), 2, lambda a, b: a * b, lambda a, b: a * b),
    ("add_constant", (2000, 3000), 1, lambda a: a + 3.7, lambda a: a + np.float32(3.7)),
    ("multiply_constant", (2000, 3000), 1, lambda a: a * 3.7, lambda a: a * np.float32(3.7)),
    ("relu", (2000, 2500), 1, lambda a: te.max(a, 0.0), lambda a: np.maximum(a, 0)),
    ("relu_of_constant", (300, 7), 1, lambda a: te.max(a, te.const(0, "float32")), lambda a: np.maximum(a, 0)),
    ("relu_gradient", (2000, 2500), 2,
     lambda a, g: tvm.tir.Select(a > 0, g, 0.0), lambda a, g: np.where(a > 0, g, np.float32(0))),
]


@pytest.mark.parametrize("shape, inputs, body, reference", [row[1:] for row in ELEMENTWISE],
                         ids=[row[0] for row in ELEMENTWISE])
def test_elementwise(daemon, shape, inputs, body, reference):
    values = [uniform(*shape, low=-1) + i for i in range(inputs)]
    result = called(elementwise(shape, body, inputs), *values, shape=shape)
    np.testing.assert_allclose(result, reference(*values), rtol=1e-6)


def matmul(shape_a, transpose_a, shape_b, transpose_b, tiles=None):
    a = te.placeholder(shape_a, dtype="float32", name="A")
    b = te.placeholder(shape_b, dtype="float32", name="B")
    rows, inner = shape_a[::-1] if transpose_a else shape_a
    columns = shape_b[0] if transpose_b else shape_b[1]
    k = te.reduce_axis((0, inner), name="k")
    left = (lambda i: a[k, i]) if transpose_a else (lambda i: a[i, k])
    right = (lambda j: b(j, k)) if transpose_b else (lambda j: b[k, j])
    c = te.compute((rows, columns), lambda i, j: te.sum(left(i) * right(j), axis=k), name="C")
    s = te.create_schedule(c.op)
    if tiles:
        x, y = s[c].op.axis
        kk = s[c].op.reduce_axis[0]
        xo, xi = s[c].split(x, factor=tiles[0])
        yo, yi = s[c].split(y, factor=tiles[1])
        ko, ki = s[c].split(kk, factor=tiles[2])
        s[c].reorder(xo, yo, ko, xi, yi, ki)
        s[c].vectorize(yi)
        s[c].parallel(xo)
    return build(s, [a, b, c], "matmul")


@pytest.mark.parametrize("tiles", [None, (32, 32, 4)], ids=["unscheduled", "tiles_32_32_4"])
@pytest.mark.parametrize("transpose_a", [False, True], ids=["A", "At"])
@pytest.mark.parametrize("transpose_b", [False, True], ids=["B", "Bt"])
def test_matmul(daemon, transpose_a, transpose_b, tiles):
    x, y = uniform(500, 700), uniform(700, 1000)
    a = np.ascontiguousarray(x.T) if transpose_a else x
    b = np.ascontiguousarray(y.T) if transpose_b else y
    f = matmul(a.shape, transpose_a, b.shape, transpose_b, tiles)
    np.testing.assert_allclose(called(f, a, b, shape=(500, 1000)), x @ y, rtol=1e-5)


def test_batched_matmul_with_a_vectorised_reduction(daemon):
    a = te.placeholder((32, 128, 64), name="A")
    b = te.placeholder((32, 64, 128), name="B")
    k = te.reduce_axis((0, 64), name="k")
    c = te.compute((32, 128, 128), lambda n, i, j: te.sum(a[n, i, k] * b[n, k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    n, i, j = s[c].op.axis
    kk = s[c].op.reduce_axis[0]
    no, ni = s[c].split(n, factor=16)
    io, ii = s[c].split(i, factor=16)
    jo, ji = s[c].split(j, factor=16)
    ko, ki = s[c].split(kk, factor=16)
    s[c].reorder(no, io, jo, ko, ni, ii, ji, ki)
    s[c].vectorize(ki)
    s[c].parallel(no)
    assert "vectorize" in tvm.lower(s, [a, b, c], simple_mode=True)
    x, y = uniform(32, 128, 64), uniform(32, 64, 128)
    f = build(s, [a, b, c], "flexible_matmul")
    np.testing.assert_allclose(called(f, x, y, shape=(32, 128, 128)), x @ y, rtol=1e-5)


def test_matmul_with_a_vectorised_reduction(daemon):
    a, b = te.placeholder((100, 70), name="A"), te.placeholder((70, 90), name="B")
    k = te.reduce_axis((0, 70), name="k")
    c = te.compute((100, 90), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    i, j = s[c].op.axis
    io, ii = s[c].split(i, factor=16)
    jo, ji = s[c].split(j, factor=16)
    ko, ki = s[c].split(c.op.reduce_axis[0], factor=16)
    s[c].reorder(io, jo, ko, ii, ji, ki)
    s[c].vectorize(ki)
    s[c].parallel(io)
    x, y = uniform(100, 70), uniform(70, 90)
    np.testing.assert_allclose(called(build(s, [a, b, c]), x, y, shape=(100, 90)), x @ y, rtol=1e-5)


@pytest.mark.parametrize("scheduled", [False, True])
def test_convolution(daemon, scheduled):
    image = te.placeholder((1, 3, 32, 32), name="X")
    weights = te.placeholder((16, 3, 3, 3), name="F")
    rc, rr, rs = (te.reduce_axis((0, 3), name=name) for name in ("rc", "rr", "rs"))
    y = te.compute((1, 16, 30, 30), lambda n, m, h, w: te.sum(
        image[n, rc, h + rr, w + rs] * weights[m, rc, rr, rs], axis=[rc, rr, rs]), name="Y")
    s = te.create_schedule(y.op)
    if scheduled:
        n, m, h, w = s[y].op.axis
        rc, rr, rs = s[y].op.reduce_axis
        ho, hi = s[y].split(h, factor=16)
        wo, wi = s[y].split(w, factor=16)
        s[y].reorder(n, m, ho, wo, hi, wi, rc, rr, rs)
        s[y].vectorize(wi)
        s[y].parallel(ho)
    x, f = uniform(1, 3, 32, 32), uniform(16, 3, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(x[0], (3, 3), axis=(1, 2))
    expected = np.einsum("chwrs,mcrs->mhw", windows, f)[None]
    result = called(build(s, [image, weights, y], "conv2d"), x, f, shape=(1, 16, 30, 30))
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def softmax_of(a, shape):
    j, k = te.reduce_axis((0, shape[1]), name="j"), te.reduce_axis((0, shape[1]), name="k")
    top = te.compute((shape[0],), lambda i: te.max(a[i, j], axis=j), name="top")
    e = te.compute(shape, lambda i, j: te.exp(a[i, j] - top[i]), name="e")
    total = te.compute((shape[0],), lambda i: te.sum(e[i, k], axis=k), name="total")
    return te.compute(shape, lambda i, j: e[i, j] / total[i], name="softmax")


def softmax_reference(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_softmax(daemon):
    shape = (400, 1000)
    a = te.placeholder(shape, name="A")
    b = softmax_of(a, shape)
    x = uniform(*shape, low=-5, high=5)
    result = called(build(te.create_schedule(b.op), [a, b], "softmax"), x, shape=shape)
    np.testing.assert_allclose(result, softmax_reference(x), rtol=1e-5)


@pytest.mark.parametrize("classic", [True, False], ids=["classic", "reductions_inside_expressions"])
def test_softmax_cross_entropy(daemon, classic):
    shape = rows, columns = (400, 1000)
    a, wanted = te.placeholder(shape, name="A"), te.placeholder(shape, name="A_")
    p = softmax_of(a, shape)
    j, i = te.reduce_axis((0, columns), name="j"), te.reduce_axis((0, rows), name="i")
    if classic:
        log = te.compute(shape, lambda i, j: te.log(p[i, j]), name="log")
        each = te.compute((rows,), lambda i: te.sum(-wanted[i, j] * log[i, j], axis=j), name="each")
        c = te.compute((1,), lambda _: te.sum(each[i] / rows, axis=i), name="C")
    else:
        each = te.compute((rows,), lambda i: -te.sum(wanted[i, j] * te.log(p[i, j]), axis=j), name="each")
        c = te.compute((1,), lambda _: te.sum(each[i], axis=i) / rows, name="C")
    f = build(te.create_schedule(c.op), [a, wanted, c], "cross_entropy")
    x, y = uniform(*shape, low=-5, high=5), softmax_reference(uniform(*shape))
    expected = np.mean(-np.sum(y * np.log(softmax_reference(x)), axis=1), keepdims=True)
    np.testing.assert_allclose(called(f, x, y, shape=(1,)), expected, rtol=1e-5)


def test_sum_of_the_first_axis(daemon):
    a = te.placeholder((500, 200), name="A")
    b = topi.sum(a, axis=0)
    x = uniform(500, 200)
    result = called(build(te.create_schedule(b.op), [a, b], "reduce_sum_axis_zero"), x, shape=(200,))
    np.testing.assert_allclose(result, x.sum(axis=0), rtol=1e-5)


def test_broadcast_to(daemon):
    a = te.placeholder((200, 300), name="A")
    b = topi.broadcast_to(a, (130, 200, 300))
    x = uniform(200, 300)
    result = called(build(te.create_schedule(b.op), [a, b], "broadcast_to"), x, shape=(130, 200, 300))
    np.testing.assert_array_equal(result, np.broadcast_to(x, (130, 200, 300)))


def test_one_kernel_for_all_shapes_bit_for_bit(daemon):
    before = tvm.describe()["compiles"]
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: x[0, i])
    # No other test adds in this order, so that this is the daemon's first compile of it.
    update = te.compute((m, n), lambda t, i: x[t, i] + state[t - 1, i])
    f = tvm.build([x, te.scan(init, update, state)], name="myscan")
    for width in (1024, 1000, 31, 1, 0):
        values = uniform(10, width)
        assert f(values).numpy().tobytes() == np.cumsum(values, axis=0, dtype="float32").tobytes()
    assert tvm.describe()["compiles"] - before == 1


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8", "int32", "int64", "uint8", "uint32"])
def test_types(daemon, dtype):
    a = te.placeholder((100,), dtype, name="A")
    f = tvm.build([a, te.compute((100,), lambda i: a[i] + a[i], name="B")])
    x = np.arange(100).astype(dtypes.NUMPY[dtype])
    result = f(x)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.numpy(), x + x)


def test_several_outputs_come_as_a_tuple(daemon):
    a = te.placeholder((50,), name="A")
    b, c = te.compute((50,), lambda i: (a[i] + 1, a[i] * 2), name="B")
    x = uniform(50)
    more, twice = tvm.build([a, b, c])(x)
    np.testing.assert_array_equal(more.numpy(), x + 1)
    np.testing.assert_array_equal(twice.numpy(), x * 2)


def test_a_reduction_over_a_triangle(daemon):
    a = te.placeholder((20, 20), name="A")

    def row(i):
        k = te.reduce_axis((0, i + 1), name="k")
        return te.sum(a[i, k], axis=k)

    x = uniform(20, 20)
    f = tvm.build([a, te.compute((20,), row, name="B")])
    np.testing.assert_allclose(f(x).numpy(), np.tril(x).sum(axis=1), rtol=1e-6)


def test_where_and_init_of_a_reduction(daemon):
    a = te.placeholder((20, 30), name="A")
    k = te.reduce_axis((0, 30), name="k")
    x = uniform(20, 30, low=-1)
    b = te.compute((20,), lambda i: te.max(a[i, k], axis=k, where=k < i + 1, init=-0.5), name="B")
    expected = np.where(np.tri(20, 30), x, -np.inf).max(axis=1)
    np.testing.assert_array_equal(tvm.build([a, b])(x).numpy(), np.maximum(expected, np.float32(-0.5)))


def test_calls_of_all_kinds(daemon):
    a = te.placeholder((te.var("n"),), name="A")
    f = tvm.build([a, te.compute(a.shape, lambda i: a[i] + 1, name="B")], name="add_one")
    x = uniform(10)
    out = np.zeros(10, "float32")
    assert f(x, out) is None
    np.testing.assert_array_equal(out, x + 1)
    np.testing.assert_array_equal(f.submit(x).result(30).numpy(), x + 1)
    large = uniform(3_000_000)
    result = np.zeros_like(large)
    f(large, result)
    np.testing.assert_array_equal(result, large + 1)
    timings = f.timings
    assert timings["cache"] in ("compiled", "memory", "disk") and timings["kernel"] > 0
    measured = f.time_evaluator(f.entry_name, tvm.cpu(0), number=3, repeat=4)(x, out)
    assert len(measured.results) == 4 and measured.mean > 0


def test_a_profile_says_where_the_time_goes(daemon):
    a = te.placeholder((1000,), name="A")
    f = tvm.build([a, te.compute(a.shape, lambda i: a[i] + 1, name="B")], name="add_one")
    x = tvm.nd.array(uniform(1000))
    for profile in (f.profile(x), tvm.runtime.profiling.profile_function(f, tvm.cpu(0))(x, tvm.nd.empty((1000,)))):
        assert list(profile.seconds) == ["queue", "compile", "upload", "kernel", "download"]
        assert profile.bytes == 8000 and len(profile.kernel.results) == 5
        assert 0 < profile.kernel.min <= profile.kernel.median and profile.bandwidth == 8000 / profile.kernel.min
        assert profile.seconds["kernel"] <= profile.wall
        assert sum(share for _, _, share in profile.rows()) == pytest.approx(1)
        lines = str(profile).splitlines()
        assert lines[0] == "Function add_one(A: float32[1000], B: float32[1000]) for llvm"
        assert [line.split()[0] for line in lines[2:8]] == [*profile.seconds, "way"]
        assert lines[9].startswith("arguments and results: 8000 bytes, ")
        assert profile._repr_html_().count("<tr>") == 7


def test_a_size_of_a_report_is_a_whole_number(daemon):
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    f = tvm.build([a, te.compute((n,), lambda i: a[i] + 1.0, name="B")], name="plus")
    for call, by in (
        (lambda: f.report({"n": "x"}), "report of plus"),
        (lambda: tvm.predict([a, te.compute((n,), lambda i: a[i] + 1.0)], sizes={n: "x"}), "predict"),
        (lambda: tvm.tune([a, te.compute((n,), lambda i: a[i] + 1.0)], sizes={"n": "x"}), "tune"),
    ):
        with pytest.raises(tvm.InvalidArgument) as error:
            call()
        assert str(error.value).splitlines()[0] == (
            f"{by}: n must be an integer, but is 'x'; sizes are given by their names, as in sizes={{\"n\": 1024}}"
        )


def test_sources_and_report(daemon):
    a = te.placeholder((64,), name="A")
    f = tvm.build([a, te.compute((64,), lambda i: a[i] + 1, name="B")], name="add_one")
    assert "define " in f.get_source()
    assert f.source("lowered").startswith("fn add_one(")
    assert f.source("asm")
    assert {"guards", "proved", "launches", "schedule", "notes", "kernels"} <= set(f.report())


def test_the_sum_of_a_triangle(daemon):
    a = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    l = te.reduce_axis((0, k + 1), name="l")
    total = te.compute((1,), lambda _: te.sum(a[k, l], axis=[k, l]), name="total")
    x = np.arange(64, dtype="float32").reshape(8, 8)
    assert tvm.build([a, total])(x).numpy() == np.tril(x).sum()
