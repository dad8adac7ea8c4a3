"""te.gradient: gradients of what people write, compiled and run, against numpy and, where it is installed, torch."""

import numpy as np
import pytest

import kiln as tvm
from kiln import te, topi

pytestmark = pytest.mark.usefixtures("service")


def run(inputs, outputs, *values):
    made = tvm.build([*inputs, *outputs])(*values)
    return [each.numpy() for each in (made if isinstance(made, tuple) else (made,))]


def drawn(*shape):
    return np.random.RandomState(sum(shape) + 1).uniform(-1, 1, shape)


def differences(f, values, heads, step=1e-5):
    """Central differences of sum(heads * f(*values)) for each value."""
    found = []
    for which, value in enumerate(values):
        slope = np.empty_like(value)
        for at in np.ndindex(*value.shape):
            sides = []
            for sign in (1, -1):
                moved = [v.copy() for v in values]
                moved[which][at] += sign * step
                sides.append(np.sum(heads * f(*moved)))
            slope[at] = (sides[0] - sides[1]) / (2 * step)
        found.append(slope)
    return found


def test_a_matmul():
    A, B = (te.placeholder(shape, "float64", name=n) for n, shape in (("A", (3, 4)), ("B", (4, 5))))
    G = te.placeholder((3, 5), "float64", name="G")
    dA, dB = te.gradient(topi.matmul(A, B), [A, B], G)
    assert dA.shape == (3, 4) and dB.shape == (4, 5)
    a, b, g = drawn(3, 4), drawn(4, 5), drawn(3, 5)
    for found, wanted in zip(run([A, B, G], [dA, dB], a, b, g), (g @ b.T, a.T @ g)):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_without_a_head_it_is_the_jacobian():
    X = te.placeholder((3,), "float64", name="X")
    (jacobian,) = te.gradient(te.compute((3,), lambda i: X[i] * X[2 - i], name="Y"), X)
    assert jacobian.shape == (3, 3)
    (found,) = run([X], [jacobian], np.array([2.0, 3.0, 5.0]))
    np.testing.assert_allclose(found, [[5, 0, 2], [0, 6, 0], [5, 0, 2]])


def test_dimensions_in_front_of_the_head_stay():
    X, G = te.placeholder((3,), "float64", name="X"), te.placeholder((2, 3), "float64", name="G")
    Y = te.compute((3,), lambda i: te.exp(X[i]), name="Y")
    (found,) = run([X, G], te.gradient(Y, [X], G), drawn(3), drawn(2, 3))
    np.testing.assert_allclose(found, drawn(2, 3) * np.exp(drawn(3)), rtol=1e-12)


def test_sizes_may_be_symbolic():
    n, m = te.var("n"), te.var("m")
    X = te.placeholder((n, m), "float64", name="X")
    k, l = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, m), name="l")
    L = te.compute((), lambda: te.sum(X[k, l] * X[k, l], axis=[k, l]), name="L")
    (found,) = run([X], te.gradient(L, X), drawn(3, 2))
    np.testing.assert_allclose(found, 2 * drawn(3, 2), rtol=1e-12)


def test_gradients_are_tensors_to_go_on_with():
    X = te.placeholder((4,), "float64", name="X")
    k = te.reduce_axis((0, 4), name="k")
    L = te.compute((), lambda: te.sum(te.exp(X[k]), axis=k), name="L")
    (dX,) = te.gradient(L, X)
    stepped = te.compute((4,), lambda i: X[i] - 0.1 * dX[i], name="stepped")
    (ddX,) = te.gradient(te.compute((), lambda: dX[2]), X)
    x = drawn(4)
    moved, second = run([X], [stepped, ddX], x)
    np.testing.assert_allclose(moved, x - 0.1 * np.exp(x), rtol=1e-12)
    np.testing.assert_allclose(second, np.exp(x) * [0, 0, 1, 0], rtol=1e-12)


def softmax_cross_entropy(x, p):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return -(p * np.log(e / e.sum(axis=-1, keepdims=True))).sum(axis=-1)


def test_the_second_derivative_of_softmax_cross_entropy():
    X, P = (te.placeholder((5,), "float64", name=n) for n in "XP")
    k = te.reduce_axis((0, 5), name="k")
    log = topi.nn.log_softmax(X)
    L = te.compute((), lambda: -te.sum(P[k] * log[k], axis=k), name="L")
    (slope,) = te.gradient(L, X)
    (hessian,) = te.gradient(slope, X)
    x, p = drawn(5), np.abs(drawn(5)) / np.abs(drawn(5)).sum()
    first, second = run([X, P], [slope, hessian], x, p)
    y = np.exp(x) / np.exp(x).sum()
    np.testing.assert_allclose(first, y - p, atol=1e-12)
    np.testing.assert_allclose(second, np.diag(y) - np.outer(y, y), atol=1e-12)


def conv2d(x, f, stride, padding, dilation):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    reach = [(f.shape[d] - 1) * dilation + 1 for d in (2, 3)]
    rows, columns = ((x.shape[d + 2] - reach[d]) // stride + 1 for d in (0, 1))
    y = np.zeros((x.shape[0], f.shape[0], rows, columns))
    for i in range(rows):
        for j in range(columns):
            window = x[:, :, i * stride : i * stride + reach[0] : dilation, j * stride : j * stride + reach[1] : dilation]
            y[:, :, i, j] = np.einsum("ncrs,ocrs->no", window, f)
    return y


@pytest.mark.parametrize("stride, padding, dilation", [(1, 0, 1), (1, 1, 1), (2, 1, 1), (1, 2, 2)])
def test_a_convolution(stride, padding, dilation):
    X, F = (te.placeholder(s, "float64", name=n) for n, s in (("X", (2, 3, 7, 6)), ("F", (4, 3, 3, 3))))
    Y = topi.nn.conv2d(X, F, stride, padding, dilation)
    x, f = drawn(2, 3, 7, 6), drawn(4, 3, 3, 3)
    value = conv2d(x, f, stride, padding, dilation)
    G = te.placeholder(value.shape, "float64", name="G")
    g = drawn(*value.shape)
    found = run([X, F, G], te.gradient(Y, [X, F], G), x, f, g)
    wanted = differences(lambda *v: conv2d(*v, stride, padding, dilation), [x, f], g)
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other, atol=1e-6)


def attention(q, k, v):
    scores = q @ k.T / np.sqrt(q.shape[1])
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ v


def test_attention():
    Q, K, V, G = (te.placeholder((4, 3), "float64", name=n) for n in "QKVG")
    d = te.reduce_axis((0, 3), name="d")
    j = te.reduce_axis((0, 4), name="j")
    scores = te.compute((4, 4), lambda i, j: te.sum(Q[i, d] * K[j, d], axis=d), name="scores")
    scaled = te.compute((4, 4), lambda i, j: scores[i, j] / np.sqrt(3.0), name="scaled")
    weights = topi.nn.softmax(scaled)
    Y = te.compute((4, 3), lambda i, c: te.sum(weights[i, j] * V[j, c], axis=j), name="Y")
    q, k, v, g = (np.random.RandomState(seed).normal(size=(4, 3)) for seed in range(4))
    found = run([Q, K, V, G], te.gradient(Y, [Q, K, V], G), q, k, v, g)
    for one, other in zip(found, differences(attention, [q, k, v], g)):
        np.testing.assert_allclose(one, other, atol=1e-6)


def lstm(x, w, u):
    h, c, sigmoid = np.zeros(3), np.zeros(3), lambda z: 1 / (1 + np.exp(-z))
    for t in range(1, len(x)):
        gates = w @ x[t] + u @ h
        i, f, g, o = gates.reshape(4, 3)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    return h


def test_an_lstm_through_time():
    m = te.var("m")
    X, W, U, G = (
        te.placeholder(s, "float64", name=n)
        for n, s in (("X", (m, 3)), ("W", (4, 3, 3)), ("U", (4, 3, 3)), ("G", (3,)))
    )
    k, l = te.reduce_axis((0, 3), name="k"), te.reduce_axis((0, 3), name="l")
    of_x = te.compute((m, 4, 3), lambda t, g, i: te.sum(W[g, i, k] * X[t, k], axis=k), name="of_x")
    state_h, state_c = te.placeholder((m, 3), "float64"), te.placeholder((m, 3), "float64")
    of_h = te.compute((m, 4, 3), lambda t, g, i: te.sum(U[g, i, l] * state_h[t - 1, l], axis=l), name="of_h")
    gate = lambda t, g, i: of_x[t, g, i] + of_h[t, g, i]
    c = te.compute(
        (m, 3),
        lambda t, i: te.sigmoid(gate(t, 1, i)) * state_c[t - 1, i] + te.sigmoid(gate(t, 0, i)) * te.tanh(gate(t, 2, i)),
        name="c",
    )
    h = te.compute((m, 3), lambda t, i: te.sigmoid(gate(t, 3, i)) * te.tanh(c[t, i]), name="h")
    zero = te.compute((1, 3), lambda _, i: te.const(0, "float64"), name="zero")
    zero_c = te.compute((1, 3), lambda _, i: te.const(0, "float64"), name="zero_c")
    hs, _ = te.scan([zero, zero_c], [h, c], [state_h, state_c], inputs=[X])
    last = te.compute((3,), lambda i: hs[m - 1, i], name="last")
    x, w, u, g = drawn(5, 3), drawn(4, 3, 3), 0.5 * drawn(4, 3, 3), drawn(3)
    found = run([X, W, U, G], te.gradient(last, [X, W, U], G), x, w, u, g)
    f = lambda x, w, u: lstm(x, w.reshape(12, 3), u.reshape(12, 3))
    for one, other in zip(found, differences(f, [x, w, u], g)):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_an_embedding_scatters():
    W, ids = te.placeholder((5, 3), "float64", name="W"), te.placeholder((4,), "int32", name="ids")
    G = te.placeholder((4, 3), "float64", name="G")
    Y = te.compute((4, 3), lambda i, j: W[ids[i], j], name="Y")
    g, chosen = drawn(4, 3), np.array([1, 4, 1, 0], "int32")
    (found,) = run([W, ids, G], te.gradient(Y, [W], G), drawn(5, 3), chosen, g)
    wanted = np.zeros((5, 3))
    np.add.at(wanted, chosen, g)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_against_torch():
    torch = pytest.importorskip("torch")
    X, F = (te.placeholder(s, "float64", name=n) for n, s in (("X", (2, 4, 9, 8)), ("F", (6, 4, 3, 3))))
    Y = topi.nn.softmax(topi.nn.conv2d(X, F, 2, 1, 1), axis=1)
    x, f = drawn(2, 4, 9, 8), drawn(6, 4, 3, 3)
    tx, tf = (torch.tensor(v, requires_grad=True) for v in (x, f))
    value = torch.softmax(torch.nn.functional.conv2d(tx, tf, stride=2, padding=1), dim=1)
    g = drawn(*value.shape)
    value.backward(torch.tensor(g))
    G = te.placeholder(tuple(value.shape), "float64", name="G")
    for found, wanted in zip(run([X, F, G], te.gradient(Y, [X, F], G), x, f, g), (tx.grad, tf.grad)):
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-9, atol=1e-12)
