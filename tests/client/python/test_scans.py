"""Recurrences of every kind against numpy."""

import contextlib

import numpy as np
import pytest

import kiln as tvm
from kiln import te


@contextlib.contextmanager
def refused(kind, message):
    """The body raises exactly this kind with exactly this message."""
    with pytest.raises(getattr(tvm, kind)) as caught:
        yield
    assert caught.value.message == message


def values(*shape):
    return np.random.default_rng(sum(shape)).uniform(-1, 1, size=shape).astype("float32")


def cumulative(shape, axis, reverse, steps=1):
    """S at t is the sum of the `steps` values before it, and X at t."""
    m = shape[axis]
    x = te.placeholder(shape, name="X")
    state = te.placeholder(shape)
    first = tuple(steps if d == axis else n for d, n in enumerate(shape))

    def at(i, t):
        return i[:axis] + (t,) + i[axis + 1 :]

    offset = m - steps if reverse else 0
    init = te.compute(first, lambda *i: x(*at(i, i[axis] + offset)))

    def step(*i):
        total = x(*i)
        for d in range(1, steps + 1):
            total = total + state(*at(i, i[axis] + d if reverse else i[axis] - d))
        return total

    update = te.compute(shape, step)
    return x, te.scan(init, update, state, inputs=[x], axis=axis, reverse=reverse)


def cumulative_reference(x, axis, reverse, steps=1):
    x = np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0)
    s = x.copy()
    for t in range(steps, len(x)):
        for d in range(1, steps + 1):
            s[t] = s[t] + s[t - d]
    s = np.moveaxis(s, 0, axis)
    return np.flip(s, axis) if reverse else s


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_any_axis_either_way(daemon, axis, reverse, steps):
    m, n, l = te.var("m"), te.var("n"), te.var("l")
    f = tvm.build(list(cumulative((m, n, l), axis, reverse, steps)))
    for shape in [(5, 4, 37), (3, 3, 3), (6, 40, 5)]:
        x = values(*shape)
        np.testing.assert_array_equal(f(x).numpy(), cumulative_reference(x, axis, reverse, steps))


def test_scan_of_one_dimension(daemon):
    m = te.var("m")
    f = tvm.build(list(cumulative((m,), -1 % 1, True)))
    np.testing.assert_array_equal(f(np.arange(4.0, dtype="float32")).numpy(), [6, 6, 5, 3])


@pytest.mark.parametrize("reverse", [False, True])
def test_few_steps(daemon, reverse):
    m, n = te.var("m"), te.var("n")
    x, total = cumulative((m, n), 0, reverse, 3)
    f = tvm.build([x, total], name="k")
    np.testing.assert_array_equal(f(values(3, 5)).numpy(), values(3, 5))
    assert f(values(7, 0)).shape == (7, 0)
    with refused("InvalidArgument", "argument X of k: dimension 0 is 2, but must be at least 3 "
                 "(initial steps of scan)"):
        f(values(2, 5))


def test_time_must_be_a_dimension(daemon):
    x = te.placeholder((4, 3), name="X")
    state = te.placeholder((4, 3))
    init = te.compute((1, 3), lambda t, i: 0.0)
    update = te.compute((4, 3), lambda t, i: state[t - 1, i] + x[t, i])
    with refused("InvalidArgument", "state of scan s has 2 dimensions, so time cannot be dimension 2"):
        te.scan(init, update, state, name="s", axis=2)
    with refused("InvalidArgument", "init of scan s has shape (1, 3) but its state has shape (4, 3); "
                 "dimension 0 must agree"):
        te.scan(init, update, state, name="s", axis=1)
    s = te.scan(init, update, state, name="s", reverse=True)
    with refused("InvalidArgument", "scan s: update reads state at t - 1 (an earlier step); it may "
                 "read only t+1"):
        tvm.build([x, s])


def test_last_step_needs_no_whole_buffer(daemon):
    m, n = te.var("m"), te.var("n")
    for reverse in (False, True):
        x, total = cumulative((m, n), 0, reverse)
        last = te.compute((n,), lambda i: total[0 if reverse else m - 1, i], name="last")
        s = te.create_schedule(last.op)
        assert "allocate scan: float32[2, n]" in str(tvm.lower(s, [x, last]))
        f = tvm.build([x, last])
        assert "scan keeps 2 steps at a time, since no more of it is read" in f.report()["notes"]
        data = values(33, 70)
        expected = cumulative_reference(data, 0, reverse)[0 if reverse else -1]
        np.testing.assert_array_equal(f(data).numpy(), expected)
        np.testing.assert_array_equal(f(data[:1]).numpy(), data[0])


def test_stages_between_scans(daemon):
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), name="X")

    def running(read, name, reverse=False):
        state = te.placeholder((m, n))
        init = te.compute((1, n), lambda z, i: read(m - 1 if reverse else 0, i))
        step = 1 if reverse else -1
        update = te.compute((m, n), lambda t, i: state[t + step, i] + read(t, i))
        return te.scan(init, update, state, name=name, reverse=reverse)

    first = running(lambda t, i: x[t, i], "first")
    doubled = te.compute((m, n), lambda t, i: first[t, i] * 2)
    second = running(lambda t, i: doubled[t, i] - first[m - 1 - t, i], "second", reverse=True)
    third = running(lambda t, i: second[t, i], "third")
    f = tvm.build([x, third, first])
    data = values(9, 21)
    a = np.cumsum(data, axis=0)
    b = np.flip(np.cumsum(np.flip(2 * a - np.flip(a, 0), 0), axis=0), 0)
    results = f(data)
    np.testing.assert_allclose(results[0].numpy(), np.cumsum(b, axis=0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(results[1].numpy(), a, rtol=1e-6)


def test_states_of_several_ranks(daemon):
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n, n), name="X")
    whole, total = te.placeholder((m, n, n)), te.placeholder((m,))
    k, l = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="l")
    product = te.compute((m, n, n), lambda t, i, j: te.sum(whole[t - 1, i, k] * x[t, k, j], axis=k))
    norm = te.compute((m,), lambda t: te.max(te.abs(product[t, l, 0]), axis=l))
    results = te.scan(
        [te.compute((1, n, n), lambda z, i, j: x[0, i, j]), te.compute((1,), lambda z: 0.0)],
        [
            te.compute((m, n, n), lambda t, i, j: product[t, i, j] / (1 + norm[t])),
            te.compute((m,), lambda t: total[t - 1] + norm[t]),
        ],
        [whole, total],
    )
    f = tvm.build([x, *results])
    data = values(6, 5, 5)
    s, r = data[0], np.float32(0)
    for step in data[1:]:
        p = s @ step
        norm_now = np.abs(p[:, 0]).max()
        s, r = p / (1 + norm_now), r + norm_now
    out = f(data)
    np.testing.assert_allclose(out[0].numpy()[-1], s, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(out[1].numpy()[-1], r, rtol=1e-5)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


B, H = 3, 20


class Cell:
    """Weights and numpy's next state of a recurrent cell; its stages, made by `update`."""

    def __init__(self, gates):
        self.w = te.placeholder((H, gates, H), name="W")
        self.u = te.placeholder((H, gates, H), name="U")
        self.gates = gates

    def products(self, x, h, m):
        k, l = te.reduce_axis((0, H), name="k"), te.reduce_axis((0, H), name="l")
        shape = (m, B, self.gates, H)
        of_x = te.compute(shape, lambda t, b, g, i: te.sum(x(t, b, k) * self.w[k, g, i], axis=k), name="of_x")
        of_h = te.compute(shape, lambda t, b, g, i: te.sum(h[t - 1, b, l] * self.u[l, g, i], axis=l), name="of_h")
        return of_x, of_h


def scan_from_zero(m, states, updates, name):
    shape = (1, B, H)
    inits = [te.compute(shape, lambda z, b, i: 0.0) for _ in states]
    result = te.scan(inits, updates, states, name=name)
    return result if isinstance(result, te.Tensor) else result[0]


def lstm(x, m, name, one_tensor):
    cell = Cell(4)
    shape = (m, B, H)
    h, c = te.placeholder(shape), te.placeholder(shape)
    of_x, of_h = cell.products(x, h, m)
    if one_tensor:
        sums = te.compute((m, B, 4, H), lambda t, b, g, i: of_x[t, b, g, i] + of_h[t, b, g, i])
        gate = [lambda t, b, i, g=g: sums[t, b, g, i] for g in range(4)]
    else:
        gate = [te.compute(shape, lambda t, b, i, g=g: of_x[t, b, g, i] + of_h[t, b, g, i]) for g in range(4)]
    next_c = te.compute(shape, lambda t, b, i: te.sigmoid(gate[1](t, b, i)) * c[t - 1, b, i]
                        + te.sigmoid(gate[0](t, b, i)) * te.tanh(gate[2](t, b, i)))
    next_h = te.compute(shape, lambda t, b, i: te.sigmoid(gate[3](t, b, i)) * te.tanh(next_c[t, b, i]))
    return scan_from_zero(m, [h, c], [next_h, next_c], name), cell, of_h


def lstm_numpy(x, w, u):
    h, c = np.zeros((2, B, H), "float32")
    result = [h]
    for step in x[1:]:
        i, f, g, o = np.moveaxis(np.tensordot(step, w, 1) + np.tensordot(h, u, 1), 1, 0)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        result.append(h)
    return np.stack(result)


def weights(cell, seed):
    random = np.random.default_rng(seed)
    return [random.normal(scale=0.3, size=(H, cell.gates, H)).astype("float32") for _ in range(2)]


@pytest.mark.parametrize("one_tensor", [True, False])
@pytest.mark.parametrize("auto", [None, "never"])
def test_lstm_of_two_layers(daemon, one_tensor, auto):
    m = te.var("m")
    x = te.placeholder((m, B, H), name="X")
    first, cell1, _ = lstm(lambda t, b, k: x[t, b, k], m, "first", one_tensor)
    second, cell2, _ = lstm(lambda t, b, k: first[t, b, k], m, "second", one_tensor)
    f = tvm.build([x, cell1.w, cell1.u, cell2.w, cell2.u, second], name="lstm", **({"auto": auto} if auto else {}))
    data = values(21, B, H)
    w = weights(cell1, 1) + weights(cell2, 2)
    expected = lstm_numpy(lstm_numpy(data, *w[:2]), *w[2:])
    np.testing.assert_allclose(f(data, *w).numpy(), expected, rtol=1e-4, atol=1e-6)


def test_scheduled_lstm(daemon):
    m = te.var("m")
    x = te.placeholder((m, B, H), name="X")
    result, cell, of_h = lstm(lambda t, b, k: x[t, b, k], m, "lstm", True)
    s = te.create_schedule(result.op)
    _, b, g, i = of_h.op.axis
    (l,) = of_h.op.reduce_axis
    outer, inner = s[of_h].split(i, factor=8)
    s[of_h].reorder(b, g, outer, l, inner)
    s[of_h].vectorize(inner)
    s[of_h].parallel(b)
    next_h = result.op.update[0]
    s[next_h].parallel(next_h.op.axis[1])
    s[next_h].vectorize(s[next_h].split(next_h.op.axis[2], factor=4)[1])
    outer, inner = s[result].split(result.op.scan_axis, factor=4)
    s[result].unroll(inner)
    f = tvm.build(s, [x, cell.w, cell.u, result], name="lstm")
    data = values(21, B, H)
    w = weights(cell, 1)
    np.testing.assert_allclose(f(data, *w).numpy(), lstm_numpy(data, *w), rtol=1e-4, atol=1e-6)


def test_gru(daemon):
    m = te.var("m")
    x = te.placeholder((m, B, H), name="X")
    cell = Cell(3)
    h = te.placeholder((m, B, H))
    of_x, of_h = cell.products(lambda t, b, k: x[t, b, k], h, m)
    shape = (m, B, H)
    reset = te.compute(shape, lambda t, b, i: te.sigmoid(of_x[t, b, 0, i] + of_h[t, b, 0, i]))
    keep = te.compute(shape, lambda t, b, i: te.sigmoid(of_x[t, b, 1, i] + of_h[t, b, 1, i]))
    new = te.compute(shape, lambda t, b, i: te.tanh(of_x[t, b, 2, i] + reset[t, b, i] * of_h[t, b, 2, i]))
    update = te.compute(shape, lambda t, b, i: (1 - keep[t, b, i]) * new[t, b, i] + keep[t, b, i] * h[t - 1, b, i])
    result = scan_from_zero(m, [h], [update], "gru")
    f = tvm.build([x, cell.w, cell.u, result])
    data = values(12, B, H)
    w, u = weights(cell, 3)
    expected = [np.zeros((B, H), "float32")]
    for step in data[1:]:
        a = np.moveaxis(np.tensordot(step, w, 1), 1, 0)
        p = np.moveaxis(np.tensordot(expected[-1], u, 1), 1, 0)
        r, z = sigmoid(a[0] + p[0]), sigmoid(a[1] + p[1])
        expected.append((1 - z) * np.tanh(a[2] + r * p[2]) + z * expected[-1])
    np.testing.assert_allclose(f(data, w, u).numpy(), np.stack(expected), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
def test_rnn_with_its_product_inside_an_expression(daemon, reverse):
    m = te.var("m")
    x = te.placeholder((m, B, H), name="X")
    u = te.placeholder((H, H), name="U")
    h = te.placeholder((m, B, H))
    k = te.reduce_axis((0, H), name="k")
    d = 1 if reverse else -1
    update = te.compute(
        (m, B, H), lambda t, b, i: te.tanh(te.sum(h[t + d, b, k] * u[k, i], axis=k) + x[t, b, i]))
    init = te.compute((1, B, H), lambda z, b, i: 0.0)
    f = tvm.build([x, u, te.scan(init, update, h, reverse=reverse)])
    data = values(8, B, H)
    weight = weights(Cell(1), 4)[0][:, 0]
    expected = [np.zeros((B, H), "float32")]
    for step in (data[::-1] if reverse else data)[1:]:
        expected.append(np.tanh(expected[-1] @ weight + step))
    expected = np.stack(expected[::-1] if reverse else expected)
    np.testing.assert_allclose(f(data, weight).numpy(), expected, rtol=1e-4, atol=1e-6)


def test_split_time_keeps_its_order(daemon):
    m, n = te.var("m"), te.var("n")
    x, total = cumulative((m, n), 0, True)
    s = te.create_schedule(total.op)
    outer, inner = s[total].split(total.op.scan_axis, factor=4)
    s[total].unroll(inner)
    data = values(11, 6)
    f = tvm.build(s, [x, total])
    np.testing.assert_array_equal(f(data).numpy(), cumulative_reference(data, 0, True))


@pytest.mark.parametrize("step", [
    lambda stage, outer, inner: stage.parallel(outer),
    lambda stage, outer, inner: stage.vectorize(inner),
    lambda stage, outer, inner: stage.bind(inner, te.thread_axis("threadIdx.x")),
    lambda stage, outer, inner: stage.reorder(inner, outer),
], ids=["parallel", "vectorize", "bind", "reorder"])
def test_time_is_sequential(daemon, step):
    x, total = cumulative((te.var("m"), 4), 0, False)
    s = te.create_schedule(total.op)
    with refused("InvalidArgument", "the time axis of a scan is sequential"):
        step(s[total], *s[total].split(total.op.scan_axis, factor=4))
        tvm.build(s, [x, total])
