"""The gradient of every operator of topi, in float64, against central differences of the operator itself.

An operator's whole gradient is checked at once: along a random direction d of its inputs, sum(head * operator) changes
by the sum of gradient * d. What it gives is compared with numpy by test_topi.py.
"""

import numpy as np
import pytest
from test_topi import CASES

from kiln import te

STEP = 1e-5

# Approximations, whose gradient is that of what they approximate; operators on bits; cases with equal elements, whose order
# or largest one any step changes.
_WITHOUT = ("fast_", "reinterpret", "sort of floats", "nn.pool_grad max True")


def _floats(case):
    return [i for i, x in enumerate(case.inputs) if x.dtype.kind == "f"]


def _type(x):
    return "float64" if x.dtype.kind == "f" else str(x.dtype)


def cases():
    """Those whose inputs are finite: elsewhere no difference says what the gradient is."""
    return [
        c for c in CASES
        if _floats(c) and all(np.isfinite(x).all() for x in c.inputs) and not c.name.startswith(_WITHOUT)
    ]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_the_gradient_is_what_differences_say(shared_daemon, case):
    inputs = [te.placeholder(x.shape, _type(x), f"X{i}") for i, x in enumerate(case.inputs)]
    output = case.build(*inputs)
    if output.dtype != "float64":
        pytest.skip("its result has no gradient")
    head = te.placeholder(output.shape, "float64", "head")
    chosen = [inputs[i] for i in _floats(case)]
    gradients = te.gradient(output, chosen, head, connection=shared_daemon)
    random = np.random.RandomState(1)
    values = [x.astype(_type(x)) for x in case.inputs]
    weights = random.uniform(0.5, 1, [int(size) for size in output.shape])
    ways = [random.uniform(-1, 1, values[i].shape) for i in _floats(case)]

    slopes = shared_daemon.build([*inputs, head, *gradients])(*values, weights)
    slopes = [each.numpy() for each in (slopes if isinstance(slopes, tuple) else (slopes,))]
    forward = shared_daemon.build([*inputs, output])
    sides = []
    for sign in (1, -1):
        moved = list(values)
        for i, way in zip(_floats(case), ways):
            moved[i] = values[i] + sign * STEP * way
        sides.append((forward(*moved).numpy() * weights).sum())
    found = sum((slope * way).sum() for slope, way in zip(slopes, ways))
    wanted = (sides[0] - sides[1]) / (2 * STEP)
    size = sum(np.abs(slope * way).sum() for slope, way in zip(slopes, ways))
    assert abs(found - wanted) <= 1e-6 * max(1, size)
