"""A program whose types checkers must find nothing wrong with: te, a schedule, arrays, calls, operators, errors."""

from __future__ import annotations

import numpy as np

import kiln as tvm
from kiln import te, tir, topi

n, m = te.var("n"), te.var("m")
A = te.placeholder((n, m), name="A")
B: te.Tensor = te.placeholder((n, m), dtype="float32", name="B")
k = te.reduce_axis((0, m), name="k")
C = te.compute((n,), lambda i: te.sum(A[i, k] * B[i, k] + tir.const(1, "float32"), axis=k), name="C")
D = topi.nn.softmax(topi.add(A, B), axis=-1)
rows, columns = D.shape

s = te.create_schedule([C.op, D.op])
outer, inner = s[C].split(C.op.axis[0], factor=4)
s[C].parallel(outer)
s[C].unroll(inner)
local = s.cache_read(A, "local", [C])
print(tvm.lower(s, [A, B, C], simple_mode=True))

f = tvm.build([A, B, C, D], name="both")
x = tvm.nd.array(np.ones((3, 4), "float32"), tvm.cpu(0))
f(x, x)
seconds: float = f.time_evaluator("both", tvm.cpu(0), number=3)(x, x).mean
values: np.ndarray = x.numpy()
total = values + x + 1
shape: tuple[int, ...] = x.shape
print(seconds, x.dtype, x.device.exist, f.profile(x, x).kernel.min, total)


def compiled(tensors: list[te.Tensor]) -> dict[str, object]:
    with tvm.connect("unix:/run/kiln.sock", default=False) as connection:
        report: dict[str, object] = connection.build(tensors).report()
        return report


try:
    compiled([A, C])
except tvm.InvalidArgument as error:
    print(error.reason, error.line, error.notes)
