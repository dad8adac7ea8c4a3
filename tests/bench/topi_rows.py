"""The rows of topi_numpy.py: each operator of topi, how it is called, what numpy says, and on what.

Sizes are odd, so that no vector is full at the end of a row. A reference that is a loop of Python over elements, since numpy has no
function for it, checks the numbers, but its time says nothing: `loop=True`.
"""

import math

import numpy as np

from kiln import topi
from kiln.topi import nn, random

ROWS = []
FLOATS, INTEGERS = ("float32", "float64"), ("int32", "int64")
MATRIX, VECTOR = (1023, 1001), (1001,)
RANDOM = np.random.default_rng(0)


class Of:
    """An array of numbers between two bounds, in the types of its row; `fixed` is a type of its own."""

    def __init__(self, *shape, low=-1.0, high=1.0, fixed=None, make=None):
        self.shape, self.low, self.high, self.fixed, self.make = shape, low, high, fixed, make

    def array(self, dtype):
        dtype = self.fixed or dtype
        if self.make is not None:
            return np.asarray(self.make()).astype(dtype)
        if np.dtype(dtype).kind in "iu":
            return RANDOM.integers(int(self.low), int(self.high), self.shape).astype(dtype)
        if dtype == "bool":
            return RANDOM.integers(0, 2, self.shape) > 0
        return RANDOM.uniform(self.low, self.high, self.shape).astype(dtype)


class Row:
    def __init__(self, name, operator, reference, inputs, types, loop, of_type):
        self.name, self.operator, self.reference = name, operator, reference
        self.inputs = [each if isinstance(each, Of) else Of(*each) for each in inputs]
        self.types, self.loop, self.of_type = types, loop, of_type


def row(name, operator, reference, *inputs, types=FLOATS, loop=False, of_type=False):
    """`of_type`: operator and reference take the type as `dtype`."""
    ROWS.append(Row(name, operator, reference, inputs, types, loop, of_type))


def whole(*shape, low=-9, high=10):
    return Of(*shape, low=low, high=high)


def places(*shape, high, low=0):
    """Indices, int32 whatever the row's type is."""
    return Of(*shape, low=low, high=high, fixed="int32")


# Element by element.

sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
erf = np.vectorize(math.erf, otypes=["float64"])

for name, reference, low, high in [
    ("exp", np.exp, -2, 2), ("exp2", np.exp2, -2, 2), ("log", np.log, 0.1, 4), ("log2", np.log2, 0.1, 4), ("log10", np.log10, 0.1, 4),
    ("log1p", np.log1p, -0.5, 4), ("sqrt", np.sqrt, 0, 4), ("rsqrt", lambda x: 1 / np.sqrt(x), 0.1, 4), ("sin", np.sin, -4, 4),
    ("cos", np.cos, -4, 4), ("tan", np.tan, -1, 1), ("asin", np.arcsin, -1, 1), ("acos", np.arccos, -1, 1), ("atan", np.arctan, -4, 4),
    ("sinh", np.sinh, -2, 2), ("cosh", np.cosh, -2, 2), ("tanh", np.tanh, -3, 3), ("asinh", np.arcsinh, -3, 3), ("acosh", np.arccosh, 1, 4),
    ("atanh", np.arctanh, -0.9, 0.9), ("sigmoid", sigmoid, -5, 5), ("abs", np.abs, -3, 3), ("negative", np.negative, -3, 3),
    ("floor", np.floor, -3, 3), ("ceil", np.ceil, -3, 3), ("trunc", np.trunc, -3, 3), ("round", np.round, -3, 3), ("sign", np.sign, -1, 1),
    ("identity", np.copy, -1, 1), ("isnan", np.isnan, -1, 1), ("isinf", np.isinf, -1, 1), ("isfinite", np.isfinite, -1, 1),
]:  # fmt: skip
    row(name, getattr(topi, name), reference, Of(*MATRIX, low=low, high=high))
row("erf", topi.erf, erf, Of(101, 1001, low=-2, high=2), loop=True)
for name, reference in [
    ("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide), ("maximum", np.maximum),
    ("minimum", np.minimum), ("floor_divide", np.floor_divide), ("mod", np.mod), ("floor_mod", np.mod), ("fmod", np.fmod),
    ("greater", np.greater), ("less", np.less), ("equal", np.equal), ("not_equal", np.not_equal), ("greater_equal", np.greater_equal),
    ("less_equal", np.less_equal), ("atan2", np.arctan2), ("hypot", np.hypot), ("copysign", np.copysign),
    ("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor),
]:  # fmt: skip
    row(name, getattr(topi, name), reference, MATRIX, Of(*MATRIX, low=0.1, high=2))
row("add of a row", topi.add, np.add, MATRIX, VECTOR)
row("power", topi.power, np.power, Of(*MATRIX, low=0.1, high=2), MATRIX)
for name, reference in [
    ("trunc_divide", lambda a, b: np.trunc(a / b).astype(a.dtype)), ("trunc_mod", np.fmod), ("left_shift", np.left_shift),
    ("right_shift", np.right_shift), ("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor),
]:  # fmt: skip
    row(name, getattr(topi, name), reference, whole(*MATRIX, low=0, high=1000), whole(*MATRIX, low=1, high=9), types=INTEGERS)
row("bitwise_not", topi.bitwise_not, np.invert, whole(*MATRIX), types=INTEGERS)
row("logical_not", topi.logical_not, np.logical_not, whole(*MATRIX, low=0, high=2), types=INTEGERS)
row("clip", lambda x: topi.clip(x, -0.5, 0.5), lambda x: x.clip(-0.5, 0.5), MATRIX)
row("cast", lambda x: topi.cast(x, "int32"), lambda x: x.astype("int32"), Of(*MATRIX, low=-99, high=99))
row("reinterpret", lambda x, dtype: topi.reinterpret(x, dtype.replace("float", "int")), lambda x, dtype: x.view(dtype.replace("float", "int")).copy(),
    MATRIX, of_type=True)
row("where", topi.where, np.where, Of(*MATRIX, fixed="bool"), MATRIX, MATRIX)
row("elemwise_sum", lambda a, b, c: topi.elemwise_sum([a, b, c]), lambda a, b, c: a + b + c, MATRIX, MATRIX, MATRIX)
row("fixed_point_multiply", lambda x: topi.fixed_point_multiply(x, 1 << 30, 2), lambda x: x * 2, whole(*MATRIX), types=("int32",))
row("ceil_log2", topi.ceil_log2, lambda x: np.ceil(np.log2(x)).astype(x.dtype), whole(*MATRIX, low=1, high=9999), types=INTEGERS)

# Reductions.

for name in ("sum", "max", "min", "prod", "mean", "std", "argmax", "argmin"):
    for axis in (0, 1):
        row(f"{name} along {axis}", lambda x, f=getattr(topi, name), a=axis: f(x, a), lambda x, f=getattr(np, name), a=axis: f(x, a), MATRIX)
for axis in (0, 1):
    row(f"variance along {axis}", lambda x, a=axis: topi.variance(x, a), lambda x, a=axis: x.var(a), MATRIX)
row("sum of all", topi.sum, np.sum, MATRIX)
row("all along 1", lambda x: topi.all(x, 1), lambda x: x.all(1), Of(*MATRIX, fixed="bool"), types=("bool",))
row("any along 1", lambda x: topi.any(x, 1), lambda x: x.any(1), Of(*MATRIX, fixed="bool"), types=("bool",))
row("collapse_sum", lambda x: topi.collapse_sum(x, (1, 1001)), lambda x: x.sum(0, keepdims=True), MATRIX)
for axis in (0, 1):
    row(f"cumsum along {axis}", lambda x, a=axis: topi.cumsum(x, a), lambda x, a=axis: np.cumsum(x, a), MATRIX)
row("cumprod along 1", lambda x: topi.cumprod(x, 1), lambda x: np.cumprod(x, 1), Of(*MATRIX, low=0.99, high=1.01))

# Shapes.

row("broadcast_to", lambda x: topi.broadcast_to(x, MATRIX), lambda x: np.broadcast_to(x, MATRIX).copy(), VECTOR)
row("broadcast_to_like", topi.broadcast_to_like, lambda x, y: np.broadcast_to(x, y.shape).copy(), VECTOR, MATRIX)
row("expand_like", lambda x, y: topi.expand_like(x, y, [0]), lambda x, y: np.broadcast_to(x, y.shape).copy(), VECTOR, MATRIX)
row("transpose", topi.transpose, lambda x: np.ascontiguousarray(x.T), MATRIX)
row("swapaxes", lambda x: topi.swapaxes(x, 0, -1), lambda x: np.ascontiguousarray(x.swapaxes(0, 2)), (101, 101, 99))
row("reshape", lambda x: topi.reshape(x, (1001, 1023)), lambda x: x.reshape(1001, 1023).copy(), MATRIX)
row("flatten", topi.flatten, lambda x: x.reshape(101, -1).copy(), (101, 101, 99))
row("expand_dims", lambda x: topi.expand_dims(x, 1), lambda x: x[:, None].copy(), MATRIX)
row("squeeze", topi.squeeze, lambda x: x[:, 0].copy(), (1023, 1, 1001))
row("concatenate", lambda a, b: topi.concatenate([a, b], 1), lambda a, b: np.concatenate([a, b], 1), MATRIX, MATRIX)
row("stack", lambda a, b: topi.stack([a, b], 1), lambda a, b: np.stack([a, b], 1), MATRIX, MATRIX)
row("split", lambda x: topi.split(x, 7, 1)[3], lambda x: np.split(x, 7, 1)[3].copy(), MATRIX)
row("strided_slice", lambda x: topi.strided_slice(x, (1, 2), (1000, 1000), (2, 3)), lambda x: x[1:1000:2, 2:1000:3].copy(), MATRIX)
row("repeat", lambda x: topi.repeat(x, 2, 1), lambda x: x.repeat(2, 1), MATRIX)
row("tile", lambda x: topi.tile(x, (2, 2)), lambda x: np.tile(x, (2, 2)), MATRIX)
row("flip", lambda x: topi.flip(x, 1), lambda x: np.ascontiguousarray(np.flip(x, 1)), MATRIX)
row("roll", lambda x: topi.roll(x, 7, 1), lambda x: np.roll(x, 7, 1), MATRIX)
row("trilu", lambda x: topi.trilu(x, 0, True), np.triu, MATRIX)
row("tril", topi.tril, np.tril, MATRIX)
row("triu", topi.triu, np.triu, MATRIX)
row("diag", topi.diag, np.diag, VECTOR)
row("diag of a matrix", topi.diag, lambda x: np.diag(x).copy(), MATRIX)
row("meshgrid", lambda a, b: topi.meshgrid([a, b], "ij")[0], lambda a, b: np.meshgrid(a, b, indexing="ij")[0], (1023,), VECTOR)
row("sliding_window", lambda x: topi.sliding_window(x, 0, (5, 7), (2, 3)),
    lambda x: np.lib.stride_tricks.sliding_window_view(x, (5, 7))[::2, ::3].copy(), (301, 299))
row("layout_transform", lambda x: topi.layout_transform(x, "NCHW", "NHWC"), lambda x: np.ascontiguousarray(x.transpose(0, 2, 3, 1)), (3, 31, 57, 59))
row("layout_transform to blocks", lambda x: topi.layout_transform(x, "NCHW", "NCHW4c"),
    lambda x: np.ascontiguousarray(x.reshape(3, 8, 4, 57, 59).transpose(0, 1, 3, 4, 2)), (3, 32, 57, 59))
row("shape", topi.shape, lambda x: np.array(x.shape, "int32"), MATRIX)
row("ndarray_size", topi.ndarray_size, lambda x: np.array(x.size, "int32"), MATRIX)
row("full", lambda dtype: topi.full(MATRIX, dtype, 2.5), lambda dtype: np.full(MATRIX, 2.5, dtype), of_type=True)
row("full_like", lambda x: topi.full_like(x, 7), lambda x: np.full_like(x, 7), MATRIX)
row("zeros_like", topi.zeros_like, lambda x: np.full_like(x, 0), MATRIX)
row("ones_like", topi.ones_like, np.ones_like, MATRIX)
row("zeros", lambda dtype: topi.zeros(MATRIX, dtype), lambda dtype: np.full(MATRIX, 0, dtype), of_type=True)
row("ones", lambda dtype: topi.ones(MATRIX, dtype), lambda dtype: np.ones(MATRIX, dtype), of_type=True)
row("arange", lambda dtype: topi.arange(0, 100003, 1, dtype), lambda dtype: np.arange(0, 100003, 1, dtype), of_type=True)
row("const_vector", lambda x: topi.add(x, topi.const_vector(np.arange(101, dtype="int32"))), lambda x: x + np.arange(101, dtype="int32"),
    whole(1023, 101), types=("int32",))

# Orders and places.

SHORT = (101, 1001)
row("sort", lambda x: topi.sort(x, 1), lambda x: np.sort(x, 1), SHORT)
row("sort of one row", topi.sort, np.sort, (100003,))
row("sort descending along 0", lambda x: topi.sort(x, 0, False), lambda x: -np.sort(-x, 0), (1001, 101))
row("argsort", lambda x: topi.argsort(x, dtype="int32"), lambda x: np.argsort(x, kind="stable").astype("int32"), SHORT)
row("topk", lambda x: topi.topk(x, 5, ret_type="values"), lambda x: -np.sort(-np.partition(x, x.shape[1] - 5, 1)[:, -5:], 1), SHORT)
row("searchsorted", topi.searchsorted, np.searchsorted, Of(make=lambda: np.sort(RANDOM.uniform(-1, 1, 9999))), SHORT)
row("unique", lambda x: topi.unique(x)[3], lambda x: np.array([len(np.unique(x))], "int32"), whole(2001, low=0, high=300), types=INTEGERS)


def argwhere(x):
    found = np.argwhere(x)
    return np.concatenate([found, np.zeros((x.size - len(found), x.ndim))]).astype("int32")


row("argwhere", lambda x: topi.argwhere((101 * 1001, 2), x), argwhere, whole(*SHORT, low=0, high=2), types=INTEGERS)
row("invert_permutation", topi.invert_permutation, lambda p: np.argsort(p).astype(p.dtype), Of(make=lambda: RANDOM.permutation(100003)), types=("int32",))
row("take", lambda x, i: topi.take(x, i, 0), lambda x, i: x[i], MATRIX, places(2001, high=1023))
row("take of all", topi.take, lambda x, i: np.take(x, i), MATRIX, places(100003, high=1023 * 1001))
row("gather", lambda x, i: topi.gather(x, 1, i), lambda x, i: np.take_along_axis(x, i, 1), MATRIX, places(1023, 301, high=1001))
row("gather_nd", topi.gather_nd, lambda x, i: x[tuple(i)], MATRIX, places(2, 100003, high=1001))
row("adv_index", lambda x, i, j: topi.adv_index(x, [i, j]), lambda x, i, j: x[i, j], MATRIX, places(1023, 1, high=1023), places(301, high=1001))
row("one_hot", lambda i, dtype: topi.one_hot(i, 1, 0, 101, -1, dtype), lambda i, dtype: np.eye(101, dtype=dtype)[i], places(9999, high=101), of_type=True)
row("unravel_index", lambda i: topi.unravel_index(i, (101, 99, 7)), lambda i: np.stack(np.unravel_index(i, (101, 99, 7))).astype(i.dtype),
    whole(100003, low=0, high=101 * 99 * 7), types=INTEGERS)


def put(x, i, u, add=False):
    result = x.copy()
    at = np.broadcast_to(np.arange(i.shape[0])[:, None], i.shape), i
    if add:
        np.add.at(result, at, u)
    else:
        result[at] = u
    return result


row("scatter", lambda *x: topi.scatter(*x, 1), put, MATRIX, places(1023, 301, high=1001), (1023, 301))
row("scatter_add", lambda *x: topi.scatter_add(*x, 1), lambda *x: put(*x, True), MATRIX, places(1023, 301, high=1001), (1023, 301))


def put_largest(x, i, u):
    result = x.copy()
    np.maximum.at(result, (np.broadcast_to(np.arange(i.shape[0])[:, None], i.shape), i), u)
    return result


row("scatter_elements of max", lambda *x: topi.scatter_elements(*x, 1, "max"), put_largest, MATRIX, places(1023, 301, high=1001), (1023, 301))


def put_nd(x, i, u):
    result = x.copy()
    np.add.at(result, tuple(i), u)
    return result


row("scatter_nd", lambda *x: topi.scatter_nd(*x, "add"), put_nd, MATRIX, places(2, 20001, high=1001), (20001,))


def dense(at, values):
    result = np.zeros(MATRIX, values.dtype)
    result[tuple(at.T)] = values
    return result


row("sparse_to_dense", lambda i, v: topi.sparse_to_dense(i, MATRIX, v, 0.0), dense,
    Of(fixed="int32", make=lambda: np.stack(np.unravel_index(RANDOM.permutation(1023 * 1001)[:9999], MATRIX), 1)), (9999,))


def sliced(x, v):
    result = x.copy()
    result[1:1000:2, 2:1000:3] = v
    return result


row("strided_set", lambda x, v: topi.strided_set(x, v, [1, 2], [1000, 1000], [2, 3]), sliced, MATRIX, (500, 333))
row("sequence_mask", lambda x, n: topi.sequence_mask(x, n, -1), lambda x, n: np.where(np.arange(len(x))[:, None] < n, x, -1), MATRIX,
    places(1001, high=1024))
row("reverse_sequence", topi.reverse_sequence, lambda x, n: np.stack([np.concatenate([r[:k][::-1], r[k:]]) for r, k in zip(x, n)]), MATRIX,
    places(1023, high=1002))


def with_diagonal(x, d):
    result = x.copy()
    at = np.arange(d.shape[1])
    result[:, at, at] = d
    return result


row("matrix_set_diag", topi.matrix_set_diag, with_diagonal, (11, 301, 303), (11, 301))

# Products.

row("matmul", topi.matmul, np.matmul, (511, 517), (517, 509))
row("batch_matmul", topi.batch_matmul, lambda a, b: a @ b.transpose(0, 2, 1), (15, 127, 129), (15, 125, 129))
row("tensordot", lambda a, b: topi.tensordot(a, b, 2), lambda a, b: np.tensordot(a, b, 2), (101, 31, 33), (31, 33, 99))
row("einsum ij,ij->i", lambda a, b: topi.einsum("ij,ij->i", a, b), lambda a, b: np.einsum("ij,ij->i", a, b), MATRIX, MATRIX)
row("einsum bij,bjk->bik", lambda a, b: topi.einsum("bij,bjk->bik", a, b), lambda a, b: np.einsum("bij,bjk->bik", a, b, optimize=True),
    (15, 127, 129), (15, 129, 125))

# Spectra and random numbers.


def spectra(x, window):
    parts = np.lib.stride_tricks.sliding_window_view(x, 128, 1)[:, ::33] * window
    found = np.fft.rfft(parts, axis=2).transpose(0, 2, 1)
    return np.stack([found.real, found.imag], -1)


row("stft", lambda x, w: topi.stft(x, 128, 33, 128, w, False, True, (7, 65, (4001 - 128) // 33 + 1, 2)), spectra, (7, 4001), (128,))
row("dft", lambda a, b: topi.dft(a, b, False)[0], lambda a, b: np.fft.fft(a + 1j * b).real, (31, 127), (31, 127))

MASK = (1 << 64) - 1
ROTATIONS = [(14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32)]


def threefry(key, counters):
    """The words of many counters at once; of each counter four."""
    key = [np.uint64(word) for word in (*key, 0x1BD11BDAA9FC1A22 ^ key[0] ^ key[1] ^ key[2] ^ key[3])]
    x = list(counters)
    for r in range(20):
        if r % 4 == 0:
            x = [word + key[(r // 4 + j) % 5] + np.uint64(r // 4 if j == 3 else 0) for j, word in enumerate(x)]
        for j, bits in enumerate(ROTATIONS[r % 8]):
            b = x[2 * j + 1]
            x[2 * j] = x[2 * j] + b
            x[2 * j + 1] = x[2 * j] ^ (b << np.uint64(bits) | b >> np.uint64(64 - bits))
        x[1], x[3] = x[3], x[1]
    return np.stack(x, 1).ravel()


def words(gen, count):
    """Of a state that has room for them; of the last counter a part."""
    key, blocks = [int(word) for word in gen[:4]], np.arange(count // 4, dtype="uint64")
    whole = threefry(key, [word + blocks for word in gen[4:8]])
    rest = threefry(key, [gen[d : d + 1] + np.uint64(count // 4 * 4 if d == 7 else 0) for d in range(4, 8)])
    return np.concatenate([whole, rest])[:count]


def fractions(gen, count, dtype):
    bits = words(gen, count)
    return (bits.astype("uint32") >> 9) / 2.0**23 if dtype == "float32" else (bits >> np.uint64(12)) / 2.0**52


STATE = Of(fixed="uint64", make=lambda: np.array([0, 0, 0, 7, 0, 0, 0, 0, 1 << 63, 0], "uint64"))
row("random.threefry_generate", lambda g: random.threefry_generate(g, (99, 101))[1], lambda g: words(g, 9999).reshape(99, 101), STATE, types=("uint64",))
row("random.threefry_split", lambda g: random.threefry_split(g)[0], lambda g: np.concatenate([g[:8], np.array([1 << 62, 0], "uint64")]), STATE,
    types=("uint64",))
row("random.uniform", lambda g, dtype: random.uniform(g, -1.0, 3.0, (99, 101), dtype)[1],
    lambda g, dtype: (fractions(g, 9999, dtype).reshape(99, 101) * 4 - 1).astype(dtype), STATE, of_type=True)


def normal(gen, dtype):
    u = fractions(gen, 2 * 9999, dtype).reshape(2, 99, 101)
    return (np.sqrt(-2 * np.log(1 - u[0])) * np.sin(2 * np.pi * u[1]) * 0.5 + 2).astype(dtype)


row("random.normal", lambda g, dtype: random.normal(g, 2.0, 0.5, (99, 101), dtype)[1], normal, STATE, of_type=True)


def drawn(gen, shares):
    bounds = np.cumsum(shares / shares.sum(1, keepdims=True), 1)
    at = fractions(gen, len(shares) * 501, "float32").reshape(len(shares), 501)
    return np.array([np.searchsorted(b, u, "right") for b, u in zip(bounds, at)], "int32")


row("random.multinomial", lambda g, p: random.multinomial(g, p, 501)[1], drawn, STATE, Of(7, 31, low=0.1, high=1, fixed="float32"), types=("float32",))
