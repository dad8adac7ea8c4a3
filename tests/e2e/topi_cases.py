"""One row for each use of an operator of topi: how it is called, what numpy says, and on what."""

import math

import numpy as np

from kiln import topi

CASES = []


class Case:
    def __init__(self, name, build, expected, inputs, rtol, atol):
        self.name = name
        self.build = build  # tensors -> tensor
        self.expected = expected  # arrays -> array
        self.inputs = inputs
        self.rtol = rtol
        self.atol = atol


def case(name, build, expected, *inputs, rtol=1e-5, atol=1e-6):
    CASES.append(Case(name, build, expected, inputs, rtol, atol))


RANDOM = np.random.RandomState(4)


def real(*shape, low=-2.0, high=2.0, dtype="float32"):
    return RANDOM.uniform(low, high, shape).astype(dtype)


def whole(*shape, low=-9, high=10, dtype="int32"):
    return RANDOM.randint(low, high, shape).astype(dtype)


SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.5, 0.5, -0.5], "float32")

# Element by element.

sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
erf = np.vectorize(math.erf, otypes=["float32"])

for name, reference, low, high in [
    ("exp", np.exp, -2, 2), ("exp2", np.exp2, -2, 2), ("log", np.log, 0.1, 4),
    ("log2", np.log2, 0.1, 4), ("log10", np.log10, 0.1, 4), ("log1p", np.log1p, -0.5, 4),
    ("sqrt", np.sqrt, 0, 4), ("rsqrt", lambda x: 1 / np.sqrt(x), 0.1, 4), ("sin", np.sin, -4, 4),
    ("cos", np.cos, -4, 4), ("tan", np.tan, -1, 1), ("asin", np.arcsin, -1, 1),
    ("acos", np.arccos, -1, 1), ("atan", np.arctan, -4, 4), ("sinh", np.sinh, -2, 2),
    ("cosh", np.cosh, -2, 2), ("tanh", np.tanh, -3, 3), ("asinh", np.arcsinh, -3, 3),
    ("acosh", np.arccosh, 1, 4), ("atanh", np.arctanh, -0.9, 0.9), ("erf", erf, -2, 2),
    ("sigmoid", sigmoid, -5, 5), ("abs", np.abs, -3, 3), ("negative", np.negative, -3, 3),
    ("floor", np.floor, -3, 3), ("ceil", np.ceil, -3, 3), ("trunc", np.trunc, -3, 3),
    ("round", np.round, -3, 3), ("sign", np.sign, -1, 1), ("identity", np.copy, -1, 1),
    ("fast_exp", np.exp, -2, 2), ("fast_tanh", np.tanh, -2, 2), ("fast_erf", erf, -2, 2),
]:  # fmt: skip
    case(name, getattr(topi, name), reference, real(3, 5, low=low, high=high))
for name, reference in [
    ("sign", np.sign), ("round", np.round), ("isnan", np.isnan), ("isinf", np.isinf),
    ("isfinite", np.isfinite), ("floor", np.floor), ("abs", np.abs),
]:  # fmt: skip
    case(f"{name} of special values", getattr(topi, name), reference, SPECIAL)
case("bitwise_not", topi.bitwise_not, np.invert, whole(3, 4))
case("floor of integers", topi.floor, np.floor, whole(3, 4))
case("isfinite of integers", topi.isfinite, np.isfinite, whole(3, 4))
case("sign of integers", topi.sign, np.sign, whole(9))
case("logical_not", topi.logical_not, np.logical_not, whole(9, low=0, high=2))

A, B = real(4, 1, 5), real(3, 1)
for name, reference in [
    ("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide),
    ("maximum", np.maximum), ("minimum", np.minimum), ("floor_divide", np.floor_divide),
    ("mod", np.mod), ("floor_mod", np.mod), ("fmod", np.fmod), ("greater", np.greater),
    ("less", np.less), ("equal", np.equal), ("not_equal", np.not_equal),
    ("greater_equal", np.greater_equal), ("less_equal", np.less_equal), ("atan2", np.arctan2),
    ("hypot", np.hypot), ("copysign", np.copysign), ("logical_and", np.logical_and),
    ("logical_or", np.logical_or), ("logical_xor", np.logical_xor),
]:  # fmt: skip
    case(name, getattr(topi, name), reference, A, B, atol=1e-5)
case("power", topi.power, np.power, real(3, 4, low=0.1), real(4))
case("power by a constant", lambda x: topi.power(x, 2), np.square, real(3, 4))
case("a number on the left", lambda x: topi.subtract(1.5, x), lambda x: np.float32(1.5) - x, real(4))
case("maximum of nan", lambda x: topi.maximum(x, 0.5),
     lambda x: np.maximum(x, np.float32(0.5)), SPECIAL)
case("add of one dimension less", topi.add, np.add, real(2, 3, 4), real(4))
case("add of no dimensions", topi.add, np.add, real(2, 3), real())
case("add of two types", topi.add, np.add, whole(2, 3), real(3))
I, J = whole(4, 5), whole(5, low=1, high=5)
for name, reference in [
    ("divide", lambda a, b: np.trunc(a / b).astype("int32")), ("floor_divide", np.floor_divide),
    ("trunc_divide", lambda a, b: np.trunc(a / b).astype("int32")), ("mod", np.mod),
    ("floor_mod", np.mod), ("trunc_mod", np.fmod), ("left_shift", np.left_shift),
    ("right_shift", np.right_shift), ("bitwise_and", np.bitwise_and),
    ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor),
]:  # fmt: skip
    case(f"{name} of integers", getattr(topi, name), reference, I, J)
case("clip", lambda x: topi.clip(x, -1, 0.5), lambda x: np.clip(x, -1, np.float32(0.5)), real(3, 5))
case("clip of special values", lambda x: topi.clip(x, -1, 1), lambda x: np.clip(x, -1, 1), SPECIAL)
case("cast", lambda x: topi.cast(x, "int32"), lambda x: x.astype("int32"), real(9, low=-5, high=5))
case("cast to float64", lambda x: topi.cast(x, "float64"), lambda x: x.astype("float64"), whole(9))
case("where", topi.where, np.where, whole(4, 5, low=0, high=2) > 0, real(4, 5), real(5))
case("where of numbers", lambda c, x: topi.where(c, x, 0.0), lambda c, x: np.where(c, x, np.float32(0)),
     whole(4, low=0, high=2), real(3, 4))
case("elemwise_sum", lambda a, b, c: topi.elemwise_sum([a, b, c]), lambda a, b, c: a + b + c,
     real(3), real(3), real(3))

# Reductions.

X = real(3, 4, 5)
for axis in (None, 0, -1, (0, 2), (1,), [1, 2]):
    for keepdims in (False, True):
        numpy_axis = tuple(axis) if isinstance(axis, list) else axis
        for name in ("sum", "max", "min", "prod"):
            case(f"{name} over {axis}{' kept' * keepdims}",
                 lambda x, n=name, a=axis, k=keepdims: getattr(topi, n)(x, a, k),
                 lambda x, n=name, a=numpy_axis, k=keepdims: getattr(np, n)(x, axis=a, keepdims=k),
                 X, atol=1e-5)
M = whole(3, 4, low=0, high=2) > 0
for name in ("all", "any"):
    case(name, lambda x, n=name: getattr(topi, n)(x, 1), lambda x, n=name: getattr(np, n)(x, axis=1), M)
    case(f"{name} of numbers", lambda x, n=name: getattr(topi, n)(x),
         lambda x, n=name: getattr(np, n)(x), whole(5))
case("max with nan", topi.max, np.max, SPECIAL)
TIES = whole(4, 9, low=0, high=3)
NANS = np.where(real(4, 6) > 0.8, np.nan, real(4, 6)).astype("float32")
for name in ("argmax", "argmin"):
    for data, what in ((real(4, 6), ""), (TIES, " with ties"), (NANS, " with nan")):
        for axis in (0, 1, -1):
            case(f"{name}{what} over {axis}", lambda x, n=name, a=axis: getattr(topi, n)(x, a),
                 lambda x, n=name, a=axis: getattr(np, n)(x, axis=a).astype("int32"), data)
    case(f"{name} of all", lambda x, n=name: getattr(topi, n)(x),
         lambda x, n=name: getattr(np, n)(x).astype("int32"), TIES)
    case(f"{name} kept", lambda x, n=name: getattr(topi, n)(x, 1, True),
         lambda x, n=name: getattr(np, n)(x, axis=1, keepdims=True).astype("int32"), TIES)
case("the last argmax", lambda x: topi.argmax(x, 1, select_last_index=True),
     lambda x: (x.shape[1] - 1 - np.argmax(x[:, ::-1], 1)).astype("int32"), TIES)
case("collapse_sum", lambda x: topi.collapse_sum(x, (1, 4, 1)),
     lambda x: x.sum((0, 1, 4)).reshape(1, 4, 1) if x.ndim == 5 else x.sum((0, 2)).reshape(1, 4, 1), X,
     atol=1e-5)
case("cumsum of a row", topi.cumsum, lambda x: x.cumsum(dtype="float32"), real(7))
case("cumsum of all", topi.cumsum, lambda x: x.cumsum(dtype="float32"), real(3, 4))
case("cumprod of a row", topi.cumprod, lambda x: x.cumprod(dtype="float32"), real(7))
for axis in (0, 1, -1):
    case(f"cumsum over {axis}", lambda x, a=axis: topi.cumsum(x, a),
         lambda x, a=axis: x.cumsum(a, dtype="float32"), real(3, 4, 5), atol=1e-5)
case("exclusive cumsum over 1", lambda x: topi.cumsum(x, 1, exclusive=True),
     lambda x: (x.cumsum(1) - x).astype("int32"), whole(3, 4))
case("cumprod over 1", lambda x: topi.cumprod(x, 1), lambda x: x.cumprod(1, dtype="float32"), real(3, 4))
case("cumsum in another type", lambda x: topi.cumsum(x, dtype="int64"), lambda x: x.cumsum(), whole(7))
case("exclusive cumsum", lambda x: topi.cumsum(x, exclusive=True), lambda x: (x.cumsum() - x).astype("int32"),
     whole(7))
case("exclusive cumprod", lambda x: topi.cumprod(x, exclusive=True),
     lambda x: np.concatenate([[1], x.cumprod()[:-1]]).astype("int32"), whole(5))

# Shapes.

case("broadcast_to", lambda x: topi.broadcast_to(x, (2, 3, 4)), lambda x: np.broadcast_to(x, (2, 3, 4)),
     real(3, 1))
case("broadcast_to_like", topi.broadcast_to_like, lambda x, y: np.broadcast_to(x, y.shape), real(3, 1),
     real(2, 3, 4))
case("transpose", topi.transpose, np.transpose, X)
case("transpose of axes", lambda x: topi.transpose(x, (1, -1, 0)), lambda x: x.transpose(1, 2, 0), X)
case("swapaxes", lambda x: topi.swapaxes(x, 0, -1), lambda x: x.swapaxes(0, 2), X)
for shape in [(12, 5), (3, 20), (60,), (5, 4, 3), (6, 10), (3, 2, 2, 5), (3, 1, 4, 5), (2, -1), (-1,),
              (2, 3, 2, 5)]:
    case(f"reshape to {shape}", lambda x, s=shape: topi.reshape(x, s),
         lambda x, s=shape: x.reshape(s), X)
case("reshape of no dimensions", lambda x: topi.reshape(x, (1, 1)), lambda x: x.reshape(1, 1), real())
case("reshape to no dimensions", lambda x: topi.reshape(x, ()), lambda x: x.reshape(()), real(1))
case("flatten", topi.flatten, lambda x: x.reshape(3, 20), X)
case("expand_dims", lambda x: topi.expand_dims(x, 1, 2), lambda x: x[:, None, None], X)
case("expand_dims at the end", lambda x: topi.expand_dims(x, -1), lambda x: x[..., None], X)
case("squeeze", topi.squeeze, np.squeeze, real(1, 3, 1))
case("squeeze of one", lambda x: topi.squeeze(x, -1), lambda x: x[..., 0], real(1, 3, 1))
case("concatenate", lambda a, b, c: topi.concatenate((a, b, c), 1),
     lambda *x: np.concatenate(x, 1), real(2, 3), real(2, 1), real(2, 4))
case("concatenate of rows", lambda a, b: topi.concatenate((a, b)), lambda *x: np.concatenate(x),
     real(2, 3), real(1, 3))
case("stack", lambda a, b, c: topi.stack((a, b, c), 1), lambda *x: np.stack(x, 1), real(2, 3),
     real(2, 3), real(2, 3))
case("stack at the end", lambda a, b: topi.stack((a, b), -1), lambda *x: np.stack(x, -1), real(2), real(2))
for part in range(3):
    case(f"part {part} of split", lambda x, p=part: topi.split(x, 3, 1)[p],
         lambda x, p=part: np.split(x, 3, 1)[p], real(2, 6))
    case(f"part {part} of split at indices", lambda x, p=part: topi.split(x, (1, 4), 1)[p],
         lambda x, p=part: np.split(x, (1, 4), 1)[p], real(2, 6))
for begin, end, strides, key in [
    ((0, 1), (2, 4), None, np.s_[0:2, 1:4]), ((0, 0), (3, 9), (1, 2), np.s_[0:3, 0:9:2]),
    ((-2, -3), (9, -1), None, np.s_[-2:9, -3:-1]), ((2, 3), (-9, 0), (-1, -2), np.s_[2::-1, 3:0:-2]),
]:  # fmt: skip
    case(f"strided_slice {begin} to {end} by {strides}",
         lambda x, b=begin, e=end, s=strides: topi.strided_slice(x, b, e, s),
         lambda x, k=key: x[k], real(3, 5))
case("strided_slice of an axis", lambda x: topi.strided_slice(x, [1], [4], [2], axes=[1]),
     lambda x: x[:, 1:4:2], real(3, 5))
case("strided_slice by sizes", lambda x: topi.strided_slice(x, [1, 1], [2, -1], slice_mode="size"),
     lambda x: x[1:3, 1:], real(3, 5))
case("repeat", lambda x: topi.repeat(x, 3, 1), lambda x: x.repeat(3, 1), real(2, 3))
case("tile", lambda x: topi.tile(x, (2, 3)), lambda x: np.tile(x, (2, 3)), real(2, 2))
case("tile to more dimensions", lambda x: topi.tile(x, (2, 1, 2)), lambda x: np.tile(x, (2, 1, 2)),
     real(2, 3))
case("tile of the last", lambda x: topi.tile(x, 2), lambda x: np.tile(x, 2), real(2, 1))
case("flip", lambda x: topi.flip(x, 1), lambda x: np.flip(x, 1), X)

# Indices, and tensors of nothing.

IDS = whole(2, 3, low=0, high=4)
WILD = whole(2, 3, low=-9, high=9)
case("take of all", topi.take, np.take, X, whole(4, low=0, high=60))
case("take along an axis", lambda x, i: topi.take(x, i, 1), lambda x, i: np.take(x, i, 1), X, IDS)
case("take clipped", lambda x, i: topi.take(x, i, 1), lambda x, i: np.take(x, i, 1, mode="clip"), X, WILD)
case("take wrapped", lambda x, i: topi.take(x, i, 0, mode="wrap"),
     lambda x, i: np.take(x, i, 0, mode="wrap"), X, WILD)
case("take unchecked", lambda x, i: topi.take(x, i, 1, mode="fast"), lambda x, i: np.take(x, i, 1), X, IDS)
case("gather", lambda x, i: topi.gather(x, 1, i), lambda x, i: np.take_along_axis(x, i, 1), real(2, 5),
     whole(2, 3, low=-5, high=5))
case("gather_nd of elements", topi.gather_nd, lambda x, i: x[tuple(i)], real(3, 4),
     np.stack([whole(5, low=0, high=3), whole(5, low=0, high=4)]))
case("gather_nd of rows", topi.gather_nd, lambda x, i: x[tuple(i)], real(3, 4), whole(1, 2, low=0, high=3))
case("one_hot", lambda i: topi.one_hot(i, 1, 0, 4, -1, "float32"), lambda i: np.eye(4, dtype="float32")[i],
     IDS)
case("one_hot in front", lambda i: topi.one_hot(i, 5.0, -1.0, 4, 0, "float32"),
     lambda i: np.moveaxis(np.eye(4, dtype="float32")[i] * 6 - 1, -1, 0), IDS)
case("full", lambda x: topi.add(x, topi.full((2, 3), "float32", 2.5)), lambda x: x + np.float32(2.5),
     real(2, 3))
case("full_like", lambda x: topi.full_like(x, 7), lambda x: np.full_like(x, 7), whole(2, 3))
case("zeros_like", topi.zeros_like, np.zeros_like, real(2, 3))
case("ones_like", topi.ones_like, np.ones_like, real(2, 3))
case("arange", lambda x: topi.add(x, topi.arange(6)), lambda x: x + np.arange(6, dtype="float32"), real(6))
case("arange by steps", lambda x: topi.add(x, topi.arange(7, -2, -2, "int32")),
     lambda x: x + np.arange(7, -2, -2, "int32"), whole(5))
case("arange of fractions", lambda x: topi.add(x, topi.arange(0.5, 2, 0.5)),
     lambda x: x + np.arange(0.5, 2, 0.5, "float32"), real(3))

# Products.

P, Q = real(5, 6), real(6, 7)
case("matmul", topi.matmul, np.matmul, P, Q)
case("matmul of both transposed", lambda a, b: topi.matmul(a, b, True, True), lambda a, b: a.T @ b.T,
     real(6, 5), real(7, 6))
case("matmul of a batch", topi.matmul, np.matmul, real(2, 1, 3, 4), real(3, 4, 5), atol=1e-5)
case("matmul of vectors", topi.matmul, np.matmul, real(6), real(6), atol=1e-5)
case("matmul of a row", topi.matmul, np.matmul, real(6), Q, atol=1e-5)
case("matmul of a column", topi.matmul, np.matmul, P, real(6), atol=1e-5)
case("matmul in another type", lambda a, b: topi.matmul(a, b, out_dtype="int32"),
     lambda a, b: a.astype("int32") @ b.astype("int32"), whole(3, 40, low=-128, high=128, dtype="int8"),
     whole(40, 2, low=-128, high=128, dtype="int8"))
case("batch_matmul", topi.batch_matmul, lambda a, b: a @ b.transpose(0, 2, 1), real(2, 3, 4),
     real(2, 5, 4), atol=1e-5)
case("nn.batch_matmul not transposed", lambda a, b: topi.nn.batch_matmul(a, b, transpose_b=False),
     np.matmul, real(2, 3, 4), real(2, 4, 5), atol=1e-5)
case("tensordot by number", lambda a, b: topi.tensordot(a, b, 2), lambda a, b: np.tensordot(a, b, 2),
     real(2, 3, 4), real(3, 4, 5), atol=1e-5)
case("tensordot by axes", lambda a, b: topi.tensordot(a, b, ((0, 2), (1, 0))),
     lambda a, b: np.tensordot(a, b, ((0, 2), (1, 0))), real(2, 3, 4), real(4, 2), atol=1e-5)
for text, shapes in [
    ("ij,jk->ik", ((2, 3), (3, 4))), ("ii->i", ((3, 3),)), ("ij->", ((2, 3),)),
    ("bij,bjk,bkl->bil", ((2, 3, 2), (2, 2, 4), (2, 4, 3))), ("ij,ij", ((2, 3), (2, 3))),
    ("i,j->ji", ((2,), (3,))),
]:  # fmt: skip
    case(f"einsum {text}", lambda *x, t=text: topi.einsum(t, *x), lambda *x, t=text: np.einsum(t, *x),
         *(real(*shape) for shape in shapes), atol=1e-5)
