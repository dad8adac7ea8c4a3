"""What topi adds up of floats of 16 bits is float32, and rounded once at the end."""

import kiln
import ml_dtypes
import numpy as np
import pytest
from kiln import topi

TYPES = {"float16": (np.float16, 2**-11), "bfloat16": (ml_dtypes.bfloat16, 2**-8)}


def drawn(dtype, *shapes):
    random = np.random.RandomState(2)
    return [random.normal(size=shape).astype(TYPES[dtype][0]) for shape in shapes]


def images(x, w):
    """conv2d_nchw without padding, of float64."""
    rows, columns = x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    assert windows.shape[2:4] == (rows, columns)
    return np.einsum("nchwrs,mcrs->nmhw", windows, w)


def softmax(x):
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def normalized(x, gamma, beta):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gamma + beta


# A sum of 3000 terms in float16 has an error of 1 %.
CASES = [
    ("matmul", topi.matmul, lambda a, b: a @ b, (20, 3000), (3000, 30)),
    ("vector", topi.matmul, lambda a, b: a @ b, (20, 3000), (3000,)),
    ("dense", topi.nn.dense, lambda a, b: a @ b.T, (20, 3000), (30, 3000)),
    ("dense with bias", topi.nn.dense, lambda a, b, c: a @ b.T + c, (20, 3000), (30, 3000), (30,)),
    ("batch_matmul", topi.nn.batch_matmul, lambda a, b: a @ b.transpose(0, 2, 1), (3, 4, 3000), (3, 5, 3000)),
    ("einsum", lambda a, b: topi.einsum("ik,jk->ji", a, b), lambda a, b: (a @ b.T).T, (20, 3000), (30, 3000)),
    ("tensordot", lambda a, b: topi.tensordot(a, b, 1), lambda a, b: a @ b, (20, 3000), (3000, 30)),
    ("conv2d", lambda x, w: topi.nn.conv2d_nchw(x, w, 1, 0, 1), images, (1, 300, 6, 5), (4, 300, 3, 3)),
    ("sum", lambda x: topi.sum(x, axis=1), lambda x: x.sum(axis=1), (20, 3000)),
    ("softmax", topi.nn.softmax, softmax, (20, 3000)),
    ("layer_norm", topi.nn.layer_norm, normalized, (20, 3000), (3000,), (3000,)),
]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_sums_of_short_floats_are_rounded_once(service, case, dtype):
    _, function, exact, *shapes = case
    given = drawn(dtype, *shapes)
    found = np.asarray(kiln.function(function)(*given))
    assert found.dtype == TYPES[dtype][0]
    wanted = exact(*(each.astype("float64") for each in given))
    # Half a unit of the result, and what 3000 roundings to float32 come to.
    np.testing.assert_allclose(found.astype("float64"), wanted, rtol=1.1 * TYPES[dtype][1], atol=2e-4 * np.abs(wanted).max())


def test_another_type_is_that_of_the_sums(service):
    a, b = drawn("float16", (20, 3000), (3000, 30))
    found = np.asarray(kiln.function(lambda a, b: topi.matmul(a, b, out_dtype="float32"))(a, b))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, a.astype("float64") @ b.astype("float64"), rtol=1e-4, atol=1e-3)
