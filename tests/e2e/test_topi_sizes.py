"""Operators of kiln.topi on sizes that are known at the call only."""

import numpy as np
import pytest
from topi_nn_cases import conv2d, softmax

from kiln import te, topi

n, m, k = te.var("n"), te.var("m"), te.var("k")


def real(*shape):
    return np.random.RandomState(1).uniform(-1, 1, shape).astype("float32")


CASES = [
    ("add", ((n, m), (m,)), topi.add, np.add, (real(3, 4), real(4))),
    ("sum", ((n, m),), lambda x: topi.sum(x, 1), lambda x: x.sum(1), (real(3, 4),)),
    ("argmax", ((n, m),), lambda x: topi.argmax(x, 1), lambda x: x.argmax(1), (real(3, 4),)),
    ("transpose", ((n, m),), topi.transpose, np.transpose, (real(3, 4),)),
    ("reshape of known parts", ((n, 4, 6),), lambda x: topi.reshape(x, (n, 3, 8)),
     lambda x: x.reshape(-1, 3, 8), (real(2, 4, 6),)),
    ("reshape to a product", ((n, m, 5),), lambda x: topi.reshape(x, (n * m, 5)),
     lambda x: x.reshape(-1, 5), (real(2, 3, 5),)),
    ("reshape by -1", ((n, m),), lambda x: topi.reshape(x, (-1,)), lambda x: x.reshape(-1),
     (real(2, 3),)),
    ("reshape with -1 in front", ((n, 6),), lambda x: topi.reshape(x, (-1, 2, 3)),
     lambda x: x.reshape(-1, 2, 3), (real(2, 6),)),
    ("flatten", ((n, m, k),), topi.flatten, lambda x: x.reshape(len(x), -1), (real(2, 3, 4),)),
    ("concatenate", ((n, 3), (m, 3)), lambda a, b: topi.concatenate((a, b)),
     lambda *x: np.concatenate(x), (real(2, 3), real(4, 3))),
    ("stack", ((n,), (n,)), lambda a, b: topi.stack((a, b), 1), lambda *x: np.stack(x, 1),
     (real(3), real(3))),
    ("strided_slice", ((n, m),), lambda x: topi.strided_slice(x, (1, 0), (n, -1)),
     lambda x: x[1:, :-1], (real(3, 4),)),
    ("flip", ((n, m),), lambda x: topi.flip(x, 1), lambda x: np.flip(x, 1), (real(3, 4),)),
    ("repeat", ((n,),), lambda x: topi.repeat(x, 2, 0), lambda x: x.repeat(2), (real(3),)),
    ("tile", ((n, m),), lambda x: topi.tile(x, (2, 2)), lambda x: np.tile(x, (2, 2)), (real(3, 4),)),
    ("cumsum", ((n,),), topi.cumsum, np.cumsum, (real(5),)),
    ("matmul", ((n, m), (m, k)), topi.matmul, np.matmul, (real(3, 4), real(4, 5))),
    ("batched matmul", ((n, 3, m), (m, k)), topi.matmul, np.matmul, (real(2, 3, 4), real(4, 5))),
    ("dense", ((n, m), (k, m)), topi.nn.dense, lambda x, w: x @ w.T, (real(3, 4), real(5, 4))),
    ("softmax", ((n, m),), topi.nn.softmax, lambda x: softmax(x, 1), (real(3, 4),)),
    ("pad", ((n, m),), lambda x: topi.nn.pad(x, (1, 2)),
     lambda x: np.pad(x, ((1, 1), (2, 2))), (real(3, 4),)),
    ("conv2d", ((n, 3, m, k), (4, 3, 3, 3)), lambda x, f: topi.nn.conv2d_nchw(x, f, 2, 1),
     lambda x, f: conv2d(x, f, (2, 2), ((1, 1), (1, 1))), (real(2, 3, 6, 7), real(4, 3, 3, 3))),
    ("max pool", ((n, 3, m, k),), lambda x: topi.nn.pool2d(x, 2, 2, 1, 0, "max"),
     lambda x: x.reshape(2, 3, 3, 2, 4, 2).max((3, 5)), (real(2, 3, 6, 8),)),
    ("global pool", ((n, 3, m, k),), lambda x: topi.nn.global_pool(x, "avg"),
     lambda x: x.mean((2, 3), keepdims=True), (real(2, 3, 6, 8),)),
]


@pytest.mark.parametrize("name, shapes, build, expected, inputs", CASES, ids=[row[0] for row in CASES])
def test_one_kernel_serves_all_sizes(shared_daemon, name, shapes, build, expected, inputs):
    tensors = [te.placeholder(shape, name=f"X{i}") for i, shape in enumerate(shapes)]
    kernel = shared_daemon.build([*tensors, build(*tensors)])
    assert kernel.report()["guards"] == 0
    found = kernel(*inputs).numpy()
    np.testing.assert_allclose(found, expected(*inputs), rtol=1e-5, atol=1e-5)
