"""Attention from kernels as functions: one in kernel text, two that Kiln has, mapped over heads."""

import numpy as np
from show import built, show

import kiln as tvm
from kiln import te, topi

scores = tvm.parse_kernels("""
    # How much each of n queries looks at each of m keys.
    kernel scores(Q: float32[n, d], K: float32[m, d]) -> (S: float32[n, m]) {
      S[i, j] = sum[k < d](Q[i, k] * K[j, k]) / sqrt(float32(d))
    }
""")["scores"]

n, m = te.var("n"), te.var("m")
Q = te.placeholder((8, n, 32), name="Q")  # eight heads
K = te.placeholder((8, m, 32), name="K")
V = te.placeholder((8, m, 32), name="V")
A = topi.matmul(topi.nn.softmax(scores(Q, K)), V)

f = built(tvm.build([Q, K, V, A], name="attention"))
random = np.random.default_rng(0)
q, k = (random.normal(size=(8, rows, 32)).astype("float32") for rows in (20, 30))
v = random.uniform(size=(8, 30, 32)).astype("float32")
looks = q @ k.transpose(0, 2, 1) / np.sqrt(np.float32(32))
powers = np.exp(looks - looks.max(axis=-1, keepdims=True))
expected = powers / powers.sum(axis=-1, keepdims=True) @ v
show("attention of 8 heads, 20 x 30", f, f(q, k, v), expected, rtol=1e-5)
