"""TVM's test_lstm_cell: the stages of a cell have a row for time 0, which reads before the first input and is never computed."""

import numpy as np
import pytest

import kiln as tvm
from kiln import te

pytestmark = pytest.mark.usefixtures("service")

STEPS, BATCH, INPUTS, HIDDEN = 6, 2, 5, 7


def cell():
    """(X, both weights, the results), and the gates, which are inlined. Axes of two reductions share their name."""
    X = te.placeholder((STEPS - 1, BATCH, INPUTS), name="X")
    Wi = te.placeholder((4, HIDDEN, INPUTS), name="Wi2h")
    Wh = te.placeholder((4, HIDDEN, HIDDEN), name="Wh2h")
    shape = (STEPS, BATCH, HIDDEN)
    h, c = te.placeholder(shape), te.placeholder(shape)
    init_h, init_c = (te.compute((1, *shape[1:]), lambda *i: 0.0, name=name) for name in ("init_h", "init_c"))
    k = te.reduce_axis((0, INPUTS), name="ki2h")
    from_input = te.compute((STEPS, 4, BATCH, HIDDEN), lambda t, g, i, j: te.sum(X[t - 1, i, k] * Wi[g, j, k], axis=k), name="s_i2h")
    l = te.reduce_axis((0, HIDDEN), name="ki2h")
    from_state = te.compute(from_input.shape, lambda t, g, i, j: te.sum(h[t - 1, i, l] * Wh[g, j, l], axis=l), name="s_h2h")
    gates = te.compute(from_input.shape, lambda *i: from_input(*i) + from_state(*i), name="gates")

    def gate(number, of, name):
        return te.compute(shape, lambda t, i, j: of(gates[t, number, i, j]), name=name)

    taken, new = gate(0, te.sigmoid, "in_gate"), gate(1, te.tanh, "in_transform")
    kept, shown = gate(2, te.sigmoid, "forget_gate"), gate(3, te.sigmoid, "out_gate")
    next_c = te.compute(shape, lambda t, i, j: kept[t, i, j] * c[t - 1, i, j] + taken[t, i, j] * new[t, i, j], name="next_c")
    next_h = te.compute(shape, lambda t, i, j: shown[t, i, j] * te.tanh(next_c[t, i, j]), name="next_h")
    update_c, update_h = (te.compute(shape, lambda *i: t(*i), name=n) for t, n in ((next_c, "update_c"), (next_h, "update_h")))
    scan = te.scan([init_h, init_c], [update_h, update_c], [h, c], inputs=[X], name="lstm_scan")
    return [X, Wi, Wh, *scan], [gates, taken, new, kept, shown]


def expected(x, wi, wh):
    h, c = [np.zeros((BATCH, HIDDEN))], [np.zeros((BATCH, HIDDEN))]
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    for row in x:
        taken, new, kept, shown = (row @ a.T + h[-1] @ b.T for a, b in zip(wi, wh))
        c.append(sigmoid(kept) * c[-1] + sigmoid(taken) * np.tanh(new))
        h.append(sigmoid(shown) * np.tanh(c[-1]))
    return np.stack(h), np.stack(c)


@pytest.mark.parametrize("inlined", [True, False])
def test_lstm_cell(inlined):
    tensors, gates = cell()
    s = te.create_schedule(tensors[-2].op)
    for gate in gates if inlined else ():
        s[gate].compute_inline()
    text = str(tvm.lower(s, tensors))
    assert "lstm_scan" in text and ("gates[" not in text) == inlined
    random = np.random.default_rng(0)
    values = [random.uniform(-1, 1, t.shape).astype("float32") for t in tensors[:3]]
    f = tvm.build(s, tensors, "llvm", name="lstm")
    for found, wanted in zip(f(*values), expected(*values)):
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-6)
    assert f.report()["guards"] == 0
