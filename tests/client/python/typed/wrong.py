"""Mistakes that checkers must find, each in the line that ends with its word."""

import kiln as tvm
from kiln import te, topi

A = te.placeholder((4,), nme="A")  # <- argument
B = te.compte((4,), lambda i: A[i])  # <- attribute
C = te.placeholder(name="C")  # <- argument
s = te.create_schedule(C.op)
s[C].vectorise(C.op.axis[0])  # <- attribute
tvm.nd.array([1.0]).nunpy()  # <- attribute
tvm.nd.array([1.0]).shape + 1  # <- operator
topi.nn.softmx(C)  # <- attribute
topi.sum(C, axes=0)  # <- argument
tvm.build([A], name=3)  # <- argument
text: int = tvm.kernel_text([A])  # <- assignment
