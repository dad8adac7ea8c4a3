"""A recurrence whose step is computed in two stages: twice the last row, plus the next input."""

import numpy as np
from show import built, show

import kiln as tvm
from kiln import te

m, n = te.var("m"), te.var("n")
X = te.placeholder((m, n), name="X")
state = te.placeholder((m, n))
init = te.compute((1, n), lambda _, i: X[0, i])
doubled = te.compute((m, n), lambda t, i: state[t - 1, i] * 2, name="doubled")
update = te.compute((m, n), lambda t, i: doubled[t, i] + X[t, i], name="update")
result = te.scan(init, update, state, inputs=[X])

# The first stage is computed 32 columns at a time, inside the loop of the second.
s = te.create_schedule(result.op)
outer, inner = s[update].split(update.op.axis[1], factor=32)
s[doubled].compute_at(s[update], outer)
print(tvm.lower(s, [X, result], name="decay"))

f = built(tvm.build(s, [X, result], name="decay"))
x = np.random.default_rng(0).uniform(size=(12, 100)).astype("float32")
expected = x.copy()
for t in range(1, len(x)):
    expected[t] = expected[t - 1] * 2 + x[t]
show("a two-stage recurrence of 12 x 100", f, f(x), expected)
