"""A running sum over the rows of a matrix, for any number of rows and columns, as a scan."""

import numpy as np
from show import built, show

import kiln as tvm
from kiln import te

m, n = te.var("m"), te.var("n")
X = te.placeholder((m, n), name="X")

# The state stands for the result so far; init gives its first row, update each later one.
state = te.placeholder((m, n))
init = te.compute((1, n), lambda _, i: X[0, i])
update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i])
total = te.scan(init, update, state, inputs=[X])

# A schedule made for GPUs runs on a CPU as well: blocks in parallel, threads as vectors.
s = te.create_schedule(total.op)
for cell in (init, update):
    block, thread = s[cell].split(cell.op.axis[1], factor=256)
    s[cell].bind(block, te.thread_axis("blockIdx.x"))
    s[cell].bind(thread, te.thread_axis("threadIdx.x"))
print(tvm.lower(s, [X, total], name="cumsum"))

f = built(tvm.build(s, [X, total], "llvm", name="cumsum"))
for shape in ((10, 1024), (3, 1000), (7, 31)):
    x = np.random.default_rng(0).uniform(size=shape).astype("float32")
    a, b = tvm.nd.array(x), tvm.nd.empty(shape)
    f(a, b)
    show(f"running sum of {shape[0]} x {shape[1]}, one kernel for all shapes", f, b, np.cumsum(x, axis=0))
