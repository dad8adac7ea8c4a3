"""Programs in the spelling of 0.12 to 0.19: targets, modules from lower, scans of every form."""

import numpy as np
import pytest

import kiln as tvm
from kiln import te

pytestmark = pytest.mark.usefixtures("service")

TARGET = tvm.target.Target("llvm", host="llvm")


def uniform(*shape):
    return np.random.default_rng(0).uniform(-1, 1, size=shape).astype("float32")


def run(outputs, args, *inputs):
    """As programs of the time do: a module from lower, built under a target."""
    s = te.create_schedule([t.op for t in outputs])
    with tvm.transform.PassContext(opt_level=3):
        mod = tvm.lower(s, args + outputs, name="main")
        func = tvm.build(mod, target=TARGET)
    dev = tvm.cpu()
    result = func(*(tvm.nd.array(x, dev) for x in inputs))
    return [r.numpy() for r in (result if isinstance(result, tuple) else (result,))]


# Scans.


def test_the_steps_before_the_last_one():
    m = te.var("m")
    n = te.var("n")
    X = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n), name="state")
    init = te.compute((2, n), lambda t, i: X[t, i], name="init")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + state[t - 2, i], name="update")
    fib = te.scan(init, update, state, inputs=[X])
    expected = [1.0, 1.0]
    while len(expected) < 12:
        expected.append(expected[-1] + expected[-2])
    result = run([fib], [X], np.ones((12, 3), "float32"))[0]
    np.testing.assert_allclose(result, np.repeat(np.float32(expected)[:, None], 3, axis=1))


def test_a_product_over_time():
    m, n = te.var("m"), te.var("n")
    X = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: X[0, i])
    update = te.compute((m, n), lambda t, i: state[t - 1, i] * X[t, i])
    x = uniform(6, 5)
    result = run([te.scan(init, update, state, name="prod", inputs=[X])], [X], x)[0]
    np.testing.assert_allclose(result, np.cumprod(x, axis=0), rtol=1e-5)


def test_two_states_of_different_shapes():
    m, n, l = te.var("m"), te.var("n"), te.var("l")
    X = te.placeholder((m, n), name="X")
    state1, state2 = te.placeholder((m, n)), te.placeholder((m, l))
    init1 = te.compute((1, n), lambda _, i: X[0, i])
    init2 = te.compute((1, l), lambda _, i: 0.0)
    update1 = te.compute((m, n), lambda t, i: state1[t - 1, i] + X[t, i])
    update2 = te.compute((m, l), lambda t, i: state2[t - 1, i] + state1[t - 1, 0])
    out1, out2 = te.scan([init1, init2], [update1, update2], [state1, state2], inputs=[X])
    assert out1.op is out2.op and out1.op.num_outputs == 2
    f = tvm.build(te.create_schedule(out1.op), [X, out1, out2], target=TARGET)
    x = uniform(7, 4)
    first, second = np.zeros((7, 4), "float32"), np.zeros((7, 3), "float32")
    f(x, first, second)
    sums = np.cumsum(x, axis=0)
    np.testing.assert_allclose(first, sums)
    expected = np.concatenate([[0], np.cumsum(sums[:-1, 0])])
    np.testing.assert_allclose(second, np.repeat(expected[:, None], 3, axis=1), rtol=1e-4, atol=1e-5)


def test_a_recurrent_layer():
    steps, batch, hidden = 5, 3, 8
    X = te.placeholder((steps, batch, hidden), name="X")
    W = te.placeholder((hidden, hidden), name="W")
    state = te.placeholder((steps, batch, hidden), name="state")
    k = te.reduce_axis((0, hidden), name="k")
    init = te.compute((1, batch, hidden), lambda _, b, i: 0.0)
    inner = te.compute((steps, batch, hidden), lambda t, b, i: te.sum(state[t - 1, b, k] * W[k, i], axis=k))
    update = te.compute((steps, batch, hidden), lambda t, b, i: te.tanh(inner[t, b, i] + X[t, b, i]))
    rnn = te.scan(init, update, state, inputs=[X, W], name="rnn")
    x, w = uniform(steps, batch, hidden), uniform(hidden, hidden)
    expected = [np.zeros((batch, hidden), "float32")]
    for t in range(1, steps):
        expected.append(np.tanh(expected[-1] @ w + x[t]))
    np.testing.assert_allclose(run([rnn], [X, W], x, w)[0], np.array(expected), rtol=1e-4, atol=1e-5)


def test_powers_of_a_matrix():
    n, times = 6, 4
    A = te.placeholder((n, n), name="A")
    state = te.placeholder((times, n, n))
    k = te.reduce_axis((0, n), name="k")
    init = te.compute((1, n, n), lambda _, i, j: A[i, j])
    update = te.compute((times, n, n), lambda t, i, j: te.sum(state[t - 1, i, k] * A[k, j], axis=k))
    power = te.scan(init, update, state, inputs=[A])
    a = uniform(n, n)
    expected = [np.linalg.matrix_power(a, e + 1) for e in range(times)]
    np.testing.assert_allclose(run([power], [A], a)[0], expected, rtol=1e-4, atol=1e-5)


def test_a_scan_between_other_stages():
    m, n = te.var("m"), te.var("n")
    X = te.placeholder((m, n), name="X")
    doubled = te.compute((m, n), lambda t, i: X[t, i] * 2, name="doubled")
    state = te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: doubled[0, i])
    update = te.compute((m, n), lambda t, i: te.max(state[t - 1, i], doubled[t, i]))
    highest = te.scan(init, update, state, inputs=[doubled])
    out = te.compute((m, n), lambda t, i: highest[t, i] + 1, name="out")
    x = uniform(9, 4)
    np.testing.assert_allclose(run([out], [X], x)[0], np.maximum.accumulate(x * 2, axis=0) + 1, rtol=1e-6)


def test_a_scan_of_a_scan():
    m, n = te.var("m"), te.var("n")
    X = te.placeholder((m, n), name="X")

    def cumsum(x, name):
        state = te.placeholder((m, n))
        init = te.compute((1, n), lambda _, i: x[0, i])
        update = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i])
        return te.scan(init, update, state, inputs=[x], name=name)

    x = uniform(6, 3)
    expected = np.cumsum(np.cumsum(x, axis=0, dtype="float32"), axis=0, dtype="float32")
    np.testing.assert_allclose(run([cumsum(cumsum(X, "once"), "twice")], [X], x)[0], expected)


def test_a_scan_of_integers():
    n = te.var("n")
    X = te.placeholder((n,), "int64", name="X")
    state = te.placeholder((n,), "int64")
    init = te.compute((1,), lambda _: X[0])
    update = te.compute((n,), lambda t: te.max(state[t - 1] // 2, X[t]))
    x = np.int64([5, 1, 0, 9, 2, 1 << 40])
    expected = [5]
    for value in x[1:]:
        expected.append(max(expected[-1] // 2, value))
    np.testing.assert_array_equal(run([te.scan(init, update, state)], [X], x)[0], expected)


def test_a_scheduled_scan():
    m, n = te.var("m"), te.var("n")
    X = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: X[0, i])
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i])
    scan = te.scan(init, update, state, inputs=[X])
    s = te.create_schedule(scan.op)
    for stage in (init, update):
        xo, xi = s[stage].split(stage.op.axis[1], factor=16)
        s[stage].bind(xo, te.thread_axis("blockIdx.x"))
        s[stage].bind(xi, te.thread_axis("threadIdx.x"))
    assert s[scan].op.scan_axis.var.name == "scan.idx"
    x = uniform(5, 50)
    f = tvm.build(s, [X, scan], TARGET, name="scan")
    np.testing.assert_allclose(f(tvm.nd.array(x)).numpy(), np.cumsum(x, axis=0))


# Everything else of a module.


def test_a_module_of_two_functions():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    add = te.compute((n,), lambda i: A[i] + 1, name="add")
    mul = te.compute((n,), lambda i: A[i] * 3, name="mul")
    mods = [tvm.lower(te.create_schedule(t.op), [A, t], name=t.op.name) for t in (add, mul)]
    assert all("fn " in mod.script() for mod in mods)
    lib = tvm.build(mods, target=TARGET)
    x = uniform(5)
    np.testing.assert_allclose(lib["add"](x).numpy(), x + 1)
    np.testing.assert_allclose(lib["mul"](x).numpy(), x * 3)


def test_exported_and_loaded(tmp_path):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: te.exp(A[i]), name="B")
    lib = tvm.build(te.create_schedule(B.op), [A, B], target=TARGET, name="exp")
    lib.export_library(tmp_path / "lib.tar")
    loaded = tvm.runtime.load_module(str(tmp_path / "lib.tar"))
    x = uniform(5)
    np.testing.assert_array_equal(loaded["exp"](x).numpy(), lib(x).numpy())


def test_a_number_among_the_arguments():
    n = te.var("n")
    alpha = te.var("alpha", dtype="float32")
    X, Y = te.placeholder((n,), name="X"), te.placeholder((n,), name="Y")
    Z = te.compute((n,), lambda i: alpha * X[i] + Y[i], name="Z")
    axpy = tvm.build(te.create_schedule(Z.op), [alpha, X, Y, Z], target=TARGET, name="axpy")
    x, y = uniform(11), uniform(11)
    np.testing.assert_allclose(axpy(2.0, x, y).numpy(), 2 * x + y, rtol=1e-6, atol=1e-6)


def test_updated_in_place():
    n = te.var("n")
    W, G = te.placeholder((n,), name="W"), te.placeholder((n,), name="G")
    sgd = tvm.build([W, G, te.compute((n,), lambda i: W[i] - 0.5 * G[i], name="U")], target=TARGET, name="sgd")
    w = tvm.nd.array(np.float32([1, 2, 3]), tvm.cpu(0))
    sgd(w, np.float32([2, 2, 2]), w)
    assert w.numpy().tolist() == [0, 1, 2]


def test_where_and_init():
    A = te.placeholder((4, 6), name="A")
    start = te.placeholder((4,), name="start")
    k = te.reduce_axis((0, 6), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k, where=A[i, k] > 0, init=start[i]), name="B")
    C = te.compute((4,), lambda i: te.sum(A[i, k], axis=k, init=5.0), name="C")
    x, first = uniform(4, 6), uniform(4)
    b, c = run([B, C], [A, start], x, first)
    np.testing.assert_allclose(b, np.maximum(x, 0).sum(axis=1) + first, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(c, x.sum(axis=1) + 5, rtol=1e-5)


def test_half_precision():
    A, B = te.placeholder((8, 8), "float16", name="A"), te.placeholder((8, 8), "float16", name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((8, 8), lambda i, j: te.sum(
        A[i, k].astype("float32") * B[k, j].astype("float32"), axis=k), name="C")
    a, b = uniform(8, 8).astype("float16"), uniform(8, 8).astype("float16")
    np.testing.assert_allclose(
        run([C], [A, B], a, b)[0], a.astype("float32") @ b.astype("float32"), rtol=1e-5, atol=1e-6)


def test_an_array_of_any_layout():
    A = te.placeholder((4, 6), name="A")
    B = te.compute((6, 4), lambda i, j: A[j, i], name="B")
    f = tvm.build([A, B], target=TARGET)
    base = uniform(6, 4)
    np.testing.assert_array_equal(f(base.T).numpy(), base)
    np.testing.assert_array_equal(f(uniform(8, 6)[::2]).numpy(), uniform(8, 6)[::2].T)


def test_what_an_unbuilt_program_tells():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    assert B.op.input_tensors == [A] and B == B.op.output(0) and {B: 1}[B.op.output(0)] == 1
    assert "Tensor(B, shape=(4,)" in str(B)
    np.testing.assert_array_equal(run([B], [A], np.zeros(4, "float32"))[0], np.ones(4))
