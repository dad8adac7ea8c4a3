"""The scans of the tutorials in the spelling of 2017. KWARGS are those of tvm.scan."""

from __future__ import absolute_import, print_function

import numpy as np

import kiln as tvm

KWARGS = globals().get("KWARGS", lambda x: {"inputs": [x]})

rows = tvm.var("m")
columns = tvm.var("n")
X = tvm.placeholder((rows, columns), name="X")
so_far = tvm.placeholder((rows, columns))
begin = tvm.compute((1, columns), lambda _, i: X[0, i])
step = tvm.compute((rows, columns), lambda t, i: so_far[t-1, i] + X[t, i])
result = tvm.scan(begin, step, so_far, **KWARGS(X))

s = tvm.create_schedule(result.op)
threads = 256
block_x = tvm.thread_axis("blockIdx.x")
thread_x = tvm.thread_axis("threadIdx.x")
xo, xi = s[begin].split(begin.op.axis[1], factor=threads)
s[begin].bind(xo, block_x)
s[begin].bind(xi, thread_x)
xo, xi = s[step].split(step.op.axis[1], factor=threads)
s[step].bind(xo, block_x)
s[step].bind(xi, thread_x)
TEXT_BOUND = tvm.lower(s, [X, result], simple_mode=True)

f = tvm.build(s, [X, result], "llvm", name="myscan")
ctx = tvm.cpu(0)
m, n = 10, 1024
x_np = np.random.uniform(size=(m, n)).astype(result.dtype)
x = tvm.nd.array(x_np, ctx)
y = tvm.nd.array(np.zeros((m, n), dtype=result.dtype), ctx)
f(x, y)
np.testing.assert_allclose(y.asnumpy(), np.cumsum(x_np, axis=0))

rows = tvm.var("m")
columns = tvm.var("n")
X = tvm.placeholder((rows, columns), name="X")
so_far = tvm.placeholder((rows, columns))
begin = tvm.compute((1, columns), lambda _, i: X[0, i])
stage1 = tvm.compute((rows, columns), lambda t, i: so_far[t-1, i] * 2, name="s1")
stage2 = tvm.compute((rows, columns), lambda t, i: stage1[t, i] + X[t, i], name="s2")
result = tvm.scan(begin, stage2, so_far, **KWARGS(X))
s = tvm.create_schedule(result.op)
xo, xi = s[stage2].split(stage2.op.axis[1], factor=32)
s[stage1].compute_at(s[stage2], xo)
TEXT_TWO_STAGES = tvm.lower(s, [X, result], simple_mode=True)

rows, columns, others = tvm.var("m"), tvm.var("n"), tvm.var("l")
X = tvm.placeholder((rows, columns), name="X")
state1 = tvm.placeholder((rows, columns))
state2 = tvm.placeholder((rows, others))
begin1 = tvm.compute((1, columns), lambda _, i: X[0, i])
begin2 = tvm.compute((1, others), lambda _, i: 0.0)
step1 = tvm.compute((rows, columns), lambda t, i: state1[t-1, i] + X[t, i])
step2 = tvm.compute((rows, others), lambda t, i: state2[t-1, i] + state1[t-1, 0])
result1, result2 = tvm.scan([begin1, begin2], [step1, step2], [state1, state2], **KWARGS(X))
s = tvm.create_schedule(result1.op)
TEXT_TWO_STATES = tvm.lower(s, [X, result1, result2], simple_mode=True)

# What a course of 2018 needs beside it.
ctx = tvm.context("llvm", 0)
A = tvm.placeholder((200, 300), dtype="float32", name="A")
relu = tvm.compute(A.shape, lambda *i: tvm.select(A(*i) > 0, A(*i), tvm.const(0, "float32")))
f = tvm.build(tvm.create_schedule(relu.op), [A, relu], "llvm", target_host="llvm", name="relu")
a_np = np.random.uniform(-1, 1, size=(200, 300)).astype("float32")
b = tvm.nd.empty((200, 300), "float32", ctx=ctx)
f(tvm.nd.array(a_np, ctx=ctx), b)
assert isinstance(b, tvm.ndarray.NDArray)
np.testing.assert_allclose(b.asnumpy(), np.maximum(a_np, 0))
