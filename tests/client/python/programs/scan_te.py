"""The scans of the tutorials in the spelling of 2021 and later. KWARGS are those of te.scan."""

from __future__ import absolute_import, print_function

import numpy as np

import kiln as tvm
from kiln import te

KWARGS = globals().get("KWARGS", lambda x: {"inputs": [x]})

# One stage, bound to blocks and threads.
rows = te.var("m")
columns = te.var("n")
X = te.placeholder((rows, columns), name="X")
so_far = te.placeholder((rows, columns))
begin = te.compute((1, columns), lambda _, i: X[0, i])
step = te.compute((rows, columns), lambda t, i: so_far[t - 1, i] + X[t, i])
result = tvm.te.scan(begin, step, so_far, **KWARGS(X))

s = te.create_schedule(result.op)
threads = 256
block_x = te.thread_axis("blockIdx.x")
thread_x = te.thread_axis("threadIdx.x")
xo, xi = s[begin].split(begin.op.axis[1], factor=threads)
s[begin].bind(xo, block_x)
s[begin].bind(xi, thread_x)
xo, xi = s[step].split(step.op.axis[1], factor=threads)
s[step].bind(xo, block_x)
s[step].bind(xi, thread_x)
TEXT_BOUND = tvm.lower(s, [X, result], simple_mode=True)
print(TEXT_BOUND)

f = tvm.build(s, [X, result], "llvm", name="myscan")
dev = tvm.cpu(0)
m, n = 10, 1024
x_np = np.random.uniform(size=(m, n)).astype(result.dtype)
x = tvm.nd.array(x_np, dev)
y = tvm.nd.array(np.zeros((m, n), dtype=result.dtype), dev)
f(x, y)
tvm.testing.assert_allclose(y.numpy(), np.cumsum(x_np, axis=0))

# Two stages, the first computed inside the loop of the second.
rows, columns = te.var("m"), te.var("n")
X = te.placeholder((rows, columns), name="X")
so_far = te.placeholder((rows, columns))
begin = te.compute((1, columns), lambda _, i: X[0, i])
stage1 = te.compute((rows, columns), lambda t, i: so_far[t - 1, i] * 2, name="s1")
stage2 = te.compute((rows, columns), lambda t, i: stage1[t, i] + X[t, i], name="s2")
result = tvm.te.scan(begin, stage2, so_far, **KWARGS(X))

s = te.create_schedule(result.op)
xo, xi = s[stage2].split(stage2.op.axis[1], factor=32)
s[stage1].compute_at(s[stage2], xo)
TEXT_TWO_STAGES = tvm.lower(s, [X, result], simple_mode=True)
print(TEXT_TWO_STAGES)

f = tvm.build(s, [X, result], "llvm")
y = tvm.nd.empty((m, n))
f(x, y)
expected = x_np.copy()
for t in range(1, m):
    expected[t] = expected[t - 1] * 2 + x_np[t]
tvm.testing.assert_allclose(y.numpy(), expected)

# Two states of different widths.
rows, columns, others = te.var("m"), te.var("n"), te.var("l")
X = te.placeholder((rows, columns), name="X")
state1 = te.placeholder((rows, columns))
state2 = te.placeholder((rows, others))
begin1 = te.compute((1, columns), lambda _, i: X[0, i])
begin2 = te.compute((1, others), lambda _, i: 0.0)
step1 = te.compute((rows, columns), lambda t, i: state1[t - 1, i] + X[t, i])
step2 = te.compute((rows, others), lambda t, i: state2[t - 1, i] + state1[t - 1, 0])
result1, result2 = tvm.te.scan([begin1, begin2], [step1, step2], [state1, state2], **KWARGS(X))
s = te.create_schedule(result1.op)
TEXT_TWO_STATES = tvm.lower(s, [X, result1, result2], simple_mode=True)
print(TEXT_TWO_STATES)

f = tvm.build(s, [X, result1, result2], "llvm")
y1, y2 = tvm.nd.empty((m, n)), tvm.nd.empty((m, 7))
f(x, y1, y2)
expected = np.cumsum(x_np, axis=0)
tvm.testing.assert_allclose(y1.numpy(), expected)
firsts = np.zeros((m, 7), "float32")
for t in range(1, m):
    firsts[t] = firsts[t - 1] + expected[t - 1, 0]
tvm.testing.assert_allclose(y2.numpy(), firsts)
