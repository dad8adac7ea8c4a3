"""An LSTM of two layers of 512 over a sequence, as one program with random weights."""

import measure
import numpy as np

import kiln
from kiln import te


def layer(program, x, w, name):
    """The hidden states of a layer. What it makes of the input is one product over all steps; the scan adds what it
    makes of its own last step."""
    steps, batch, inputs = x.shape
    hidden = w[f"{name}.h"].shape[0]
    wx, wh = program.parameter(w[f"{name}.x"], f"{name}.x"), program.parameter(w[f"{name}.h"], f"{name}.h")
    k, l = te.reduce_axis((0, inputs), name="k"), te.reduce_axis((0, hidden), name="l")
    from_x = te.compute(
        (steps, batch, 4 * hidden), lambda t, b, j: te.sum(x[t, b, k] * wx[k, j], axis=k), name=f"{name}.of_x"
    )
    # Step 0 of the states is where they begin.
    h, c = (te.placeholder((steps + 1, batch, hidden), name=f"{name}.{s}_state") for s in "hc")
    gates = te.compute(
        (steps + 1, batch, 4 * hidden),
        lambda t, b, j: te.sum(h[t - 1, b, l] * wh[l, j], axis=l),
        name=f"{name}.of_h",
    )

    def gate(t, b, i, which):
        return gates[t, b, which * hidden + i] + from_x[t - 1, b, which * hidden + i]

    next_c = te.compute(
        c.shape,
        lambda t, b, i: te.sigmoid(gate(t, b, i, 1)) * c[t - 1, b, i]
        + te.sigmoid(gate(t, b, i, 0)) * te.tanh(gate(t, b, i, 2)),
        name=f"{name}.next_c",
    )
    next_h = te.compute(
        h.shape, lambda t, b, i: te.sigmoid(gate(t, b, i, 3)) * te.tanh(next_c[t, b, i]), name=f"{name}.next_h"
    )
    zeros = [te.compute((1, batch, hidden), lambda t, b, i: 0.0, name=f"{name}.{s}0") for s in "hc"]
    states, _ = te.scan(zeros, [next_h, next_c], [h, c], name=name)
    return te.compute((steps, batch, hidden), lambda t, b, i: states[t + 1, b, i], name=f"{name}.y")


def reference(x, wx, wh):
    hidden = wh.shape[0]
    h = c = np.zeros((x.shape[1], hidden))
    states = []
    for step in x:
        i, f, g, o = np.split(step @ wx + h @ wh, 4, axis=1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        states.append(h)
    return np.stack(states)


def main():
    options = measure.arguments(__doc__, steps=100, batch=1, hidden=512)
    hidden = options.hidden
    w = measure.weights({f"l{i}.{kind}": (hidden, 4 * hidden) for i in range(2) for kind in "xh"})
    program = kiln.Program("lstm")
    x = program.input((options.steps, options.batch, hidden), name="x")
    program.output(y=layer(program, layer(program, x, w, "l0"), w, "l1"))
    values = np.random.default_rng(1).standard_normal(x.shape, "float32")
    measure.compiled(program, {x: values})
    result = measure.timed(program, {x: values}, options.runs, f"{options.steps} steps of batch {options.batch}")
    wanted = reference(reference(values, w["l0.x"], w["l0.h"]), w["l1.x"], w["l1.h"])
    measure.checked(result.y, wanted, 1e-4)


if __name__ == "__main__":
    main()
