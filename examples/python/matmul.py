"""A matrix product: without a schedule, then with the one that tutorials teach."""

import numpy as np
from show import built, show

import kiln as tvm
from kiln import te

M, K, N = 512, 512, 512
A = te.placeholder((M, K), name="A")
B = te.placeholder((K, N), name="B")
k = te.reduce_axis((0, K), name="k")
C = te.compute((M, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")

# Tiles of 32 x 32, the inner columns as vectors, rows of tiles on all cores.
s = te.create_schedule(C.op)
x, y = s[C].op.axis
(kk,) = s[C].op.reduce_axis
xo, xi = s[C].split(x, factor=32)
yo, yi = s[C].split(y, factor=32)
ko, ki = s[C].split(kk, factor=4)
s[C].reorder(xo, yo, ko, xi, yi, ki)
s[C].vectorize(yi)
s[C].parallel(xo)

rng = np.random.default_rng(0)
left, right = (rng.uniform(size=shape).astype("float32") for shape in ((M, K), (K, N)))
a, b, c = tvm.nd.array(left), tvm.nd.array(right), tvm.nd.empty((M, N))
for title, f in (
    ("unscheduled: the compiler chooses", built(tvm.build([A, B, C], name="matmul"))),
    ("split by 32, 32 and 4", built(tvm.build(s, [A, B, C], name="tiled_matmul"))),
):
    f(a, b, c)
    show(f"{M} x {K} times {K} x {N}, {title}", f, c, left @ right, rtol=1e-4)
    seconds = f.time_evaluator(f.entry_name, tvm.cpu(0), number=5, repeat=3)(a, b, c).min
    print(f"  speed    {2 * M * K * N / seconds / 1e9:,.1f} GFLOP/s")
