"""Writes docs/first_steps.ipynb, a notebook, from the text below; a test runs its cells.

    python3 docs/generate_notebook.py > docs/first_steps.ipynb
"""

import json
import sys

CELLS = [
    """# First steps

Describe a tensor, compile it, run it, look at what became of it. The daemon starts by itself.""",
    """import numpy as np

import kiln
from kiln import te, topi""",
    """## A recurrence

A running sum over rows: `scan` says how step t follows from step t - 1.""",
    """m, n = te.var("m"), te.var("n")
X = te.placeholder((m, n), name="X")
state = te.placeholder((m, n))
init = te.compute((1, n), lambda _, i: X[0, i])
update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i])
total = te.scan(init, update, state, inputs=[X], name="total")
cumsum = kiln.build([X, total], name="cumsum")

x = kiln.nd.array(np.arange(12.0, dtype="float32").reshape(4, 3))
cumsum(x)""",
    """assert np.array_equal(cumsum(x), np.cumsum(x.numpy(), axis=0))
print(cumsum)
print(kiln.lower([X, total], auto=True))""",
    """## A product, and a schedule

Without a schedule the compiler chooses one. With steps it does what they say.""",
    """A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
k = te.reduce_axis((0, n), name="k")
C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
matmul = kiln.build([A, B, C], name="matmul")

s = te.create_schedule(C.op)
io, jo, ii, ji = s[C].tile(*C.op.axis, 4, 64)
s[C].reorder(io, jo, k, ii, ji)
s[C].vectorize(ji)
print(kiln.lower(s, [A, B, C]))""",
    """a, b = (kiln.nd.array(np.random.rand(256, 256).astype("float32")) for _ in range(2))
by_hand = kiln.build(s, [A, B, C])
np.testing.assert_allclose(matmul(a, b), a.numpy() @ b.numpy(), rtol=1e-3)
np.testing.assert_allclose(by_hand(a, b), a.numpy() @ b.numpy(), rtol=1e-3)""",
    """## Operators, and gradients""",
    """W = te.placeholder((n, 10), name="W")
T = te.placeholder((n, 10), name="T")
loss = topi.nn.softmax_cross_entropy(topi.matmul(A, W), T)
(dW,) = te.gradient(loss, [W])
step = kiln.build([A, W, T, loss, dW], name="step")
w, t = kiln.nd.zeros((256, 10)), np.eye(10, dtype="float32")[np.random.randint(0, 10, 256)]
first = step(a, w, t)[0].item()
for _ in range(20):
    value, gradient = step(a, w, t)
    w -= gradient * 0.1
assert value.item() < first
first, value.item()""",
    """## A mistake

What is wrong is said in the names you gave, at the line you wrote.""",
    """try:
    te.compute((n,), lambda i: A[i] + 1, name="D")
except kiln.InvalidArgument as error:
    print(error)""",
]  # fmt: skip


def notebook():
    cells = []
    for number, text in enumerate(CELLS):
        kind = "markdown" if text.startswith("#") else "code"
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}}, "nbformat": 4,
            "nbformat_minor": 5}  # fmt: skip


if __name__ == "__main__":
    sys.stdout.write(json.dumps(notebook(), indent=1) + "\n")
