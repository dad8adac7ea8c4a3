"""One row for each use of an operator of topi about orders and places."""

import numpy as np
from topi_cases import CASES as _OTHERS
from topi_cases import case as _case
from topi_cases import real, whole

from kiln import topi

CASES = []


def case(*row, **tolerances):
    _case(*row, **tolerances)
    CASES.append(_OTHERS.pop())


# Orders. With many equal elements, so that their own order shows.

ROWS = whole(3, 13, low=-4, high=5)
MIXED = np.array([[2.0, np.nan, -1.0, np.inf, 2.0, -np.inf, np.nan, 0.0]], "float32")
for name, x in [("integers", ROWS), ("floats", ROWS.astype("float32")), ("special values", MIXED),
                ("one element", real(4, 1)), ("nothing", real(3, 0)), ("a power of two", whole(2, 16))]:  # fmt: skip
    case(f"sort of {name}", topi.sort, lambda x: np.sort(x), x)
    case(f"argsort of {name}", lambda x: topi.argsort(x, dtype="int32"),
         lambda x: np.argsort(x, kind="stable").astype("int32"), x)
ZEROS = np.array([[0.0, -0.0, 1.0, -1.0, -0.0, 0.0]], "float32")
for ascend in (True, False):
    case(f"argsort of zeros of both signs {ascend}", lambda x, a=ascend: topi.argsort(x, is_ascend=a, dtype="int32"),
         lambda x, a=ascend: np.argsort(x if a else -x, kind="stable").astype("int32"), ZEROS)
case("argsort of a long row", lambda x: topi.argsort(x, dtype="int32"), lambda x: np.argsort(x, kind="stable").astype("int32"),
     whole(1, 5001, low=-99, high=99).astype("float32"))
case("sort of bytes descending", lambda x: topi.sort(x, is_ascend=False), lambda x: np.sort(x)[:, ::-1], whole(2, 33, low=0, high=256, dtype="uint8"))
case("sort of halves", topi.sort, lambda x: np.sort(x), real(2, 33, dtype="float16"))
case("sort descending along 0", lambda x: topi.sort(x, 0, False), lambda x: -np.sort(-x, 0), whole(7, 2, 3))
case("argsort descending", lambda x: topi.argsort(x, axis=1, is_ascend=False),
     lambda x: np.argsort(-x, 1, kind="stable").astype("float32"), ROWS)
case("topk values", lambda x: topi.topk(x, 3, ret_type="values"), lambda x: -np.sort(-x)[:, :3], ROWS)
case("topk indices", lambda x: topi.topk(x, 3)[1], lambda x: np.argsort(-x, kind="stable")[:, :3], ROWS)
case("topk smallest along 0", lambda x: topi.topk(x, 2, 0, "values", True), lambda x: np.sort(x, 0)[:2], ROWS)
case("topk of all", lambda x: topi.topk(x, 0, ret_type="values"), lambda x: -np.sort(-x), ROWS)
SORTED = np.sort(whole(10, low=0, high=9)).astype("float32")
for side in (False, True):
    case(f"searchsorted right={side}", lambda s, v, side=side: topi.searchsorted(s, v, side),
         lambda s, v, side=side: np.searchsorted(s, v, "right" if side else "left"), SORTED, real(2, 3, low=-1, high=10))
    case(f"searchsorted in a long row right={side}", lambda s, v, side=side: topi.searchsorted(s, v, side, "int32"),
         lambda s, v, side=side: np.searchsorted(s, v, "right" if side else "left").astype("int32"),
         np.sort(whole(999, low=0, high=300)).astype("float32"), whole(5, 63, low=-2, high=302).astype("float32"))
case("searchsorted in long rows", topi.searchsorted,
     lambda s, v: np.stack([np.searchsorted(a, b) for a, b in zip(s, v)]), np.sort(real(2, 512)), real(2, 33, low=-2, high=2))
case("searchsorted by rows", topi.searchsorted,
     lambda s, v: np.stack([np.searchsorted(a, b) for a, b in zip(s, v)]), np.sort(real(4, 6)), real(4, 3))
SEVERAL = np.array([3, 1, 3, 2, 2, 9, 1, 0, 3, 4], "int32")


def _filled(values, like=SEVERAL):
    return np.concatenate([values, np.zeros(len(like) - len(values))]).astype("int32")


for place, expected in enumerate([
    lambda x: _filled(np.unique(x)), lambda x: _filled(np.unique(x, return_index=True)[1]),
    lambda x: np.unique(x, return_inverse=True)[1].astype("int32"), lambda x: np.array([len(np.unique(x))], "int32"),
    lambda x: _filled(np.unique(x, return_counts=True)[1]),
]):  # fmt: skip
    case(f"unique, result {place}", lambda x, place=place: topi.unique(x, True, True)[place], expected, SEVERAL)
case("unique in order of appearance", lambda x: topi.unique(x, False)[0], lambda x: _filled(list(dict.fromkeys(x.tolist()))),
     SEVERAL)
case("unique in order of appearance, inverse", lambda x: topi.unique(x, False)[2],
     lambda x: np.array([list(dict.fromkeys(x.tolist())).index(v) for v in x], "int32"), SEVERAL)
SPARSE = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [5, 0, 0, 1]], "int32")
case("argwhere", lambda x: topi.argwhere((4, 2), x), lambda x: np.argwhere(x).astype("int32"), SPARSE)
case("argwhere with rows left", lambda x: topi.argwhere((6, 2), x),
     lambda x: np.concatenate([np.argwhere(x), np.zeros((2, 2))]).astype("int32"), SPARSE)
case("argwhere of a vector", lambda x: topi.argwhere((3, 1), x), lambda x: np.argwhere(x).astype("int32"), SPARSE[0, [1, 3, 0, 3]])
case("invert_permutation", topi.invert_permutation, lambda p: np.argsort(p).astype("int32"), np.array([2, 0, 3, 1], "int32"))

# Scatters.

DATA, PLACES, NEW = real(4, 5), np.array([[0, 2, 1, -1, 3]], "int32"), real(1, 5)


def put(x, i, u, axis=0, apply=None):
    result = x.copy()
    for index in np.ndindex(i.shape):
        at = list(index)
        at[axis] = i[index]
        at = tuple(at)
        result[at] = u[index] if apply is None else apply(result[at], u[index])
    return result


case("scatter", topi.scatter, put, DATA, PLACES, NEW)
case("scatter along 1", lambda *x: topi.scatter(*x, 1), lambda *x: put(*x, 1), DATA, whole(4, 2, low=0, high=5), real(4, 2))
case("scatter_add", topi.scatter_add, lambda *x: put(*x, 0, np.add), DATA, whole(6, 5, low=0, high=4), real(6, 5))
for reduction, function in (("min", np.minimum), ("max", np.maximum)):
    case(f"scatter_elements of {reduction}", lambda *x, r=reduction: topi.scatter_elements(*x, 0, r),
         lambda *x, f=function: put(*x, 0, f), DATA, whole(6, 5, low=0, high=4), real(6, 5))
POINTS = np.array([[0, 3, 1], [4, 0, 2]], "int32")


def put_nd(x, i, u, add=False):
    result = x.copy()
    (np.add.at if add else (lambda r, at, v: r.__setitem__(at, v)))(result, tuple(i), u)
    return result


case("scatter_nd", topi.scatter_nd, put_nd, DATA, POINTS, real(3))
case("scatter_nd of rows, added", lambda *x: topi.scatter_nd(*x, "add"), lambda *x: put_nd(*x, True), DATA,
     np.array([[1, 1, 3]], "int32"), real(3, 5))  # fmt: skip


def dense(places, values):
    result = np.full((4, 5), -1, "float32")
    result[tuple(places.T)] = values
    return result


case("sparse_to_dense", lambda i, v: topi.sparse_to_dense(i, (4, 5), v, -1.0), dense, POINTS.T.copy()[:, [1, 0]] % 4, real(3))
case("sparse_to_dense of a vector", lambda i: topi.sparse_to_dense(i, (6,), 7.0),
     lambda i: np.isin(np.arange(6), i).astype("float32") * 7, np.array([1, 4], "int32"))


def sliced(x, v, *slices):
    result = x.copy()
    result[slices] = v
    return result


case("strided_set", lambda x, v: topi.strided_set(x, v, [1, 0], [4, 5], [2, 2]),
     lambda x, v: sliced(x, v, slice(1, 4, 2), slice(0, 5, 2)), DATA, real(2, 3))
case("strided_set backwards", lambda x, v: topi.strided_set(x, v, [3], [0], [-1]),
     lambda x, v: sliced(x, v, slice(3, 0, -1)), DATA, real(3, 5))
case("adv_index", lambda x, i, j: topi.adv_index(x, [i, j]), lambda x, i, j: x[i, j], DATA,
     np.array([[0], [3]], "int32"), np.array([1, -1, 2], "int32"))
case("adv_index of rows", lambda x, i: topi.adv_index(x, [i]), lambda x, i: x[i], DATA, np.array([3, 0, 0], "int64"))

# Shapes, triangles, windows.

case("shape", topi.shape, lambda x: np.array(x.shape, "int32"), real(3, 0, 2))
case("ndarray_size", topi.ndarray_size, lambda x: np.array(x.size, "int32"), real(3, 4))
case("unravel_index", lambda i: topi.unravel_index(i, (3, 4, 5)),
     lambda i: np.stack(np.unravel_index(i, (3, 4, 5))).astype("int32"), whole(7, low=0, high=60))
case("unravel_index by a tensor", topi.unravel_index,
     lambda i, s: np.stack(np.unravel_index(i, s)).astype("int32"), whole(7, low=0, high=12), np.array([3, 4], "int32"))
case("reinterpret", lambda x: topi.reinterpret(x, "int32"), lambda x: x.view("int32"), real(3, 4))
case("expand_like", lambda x, y: topi.expand_like(x, y, [1]), lambda x, y: np.broadcast_to(x[:, None], y.shape), real(3, 4), real(3, 2, 4))
case("roll", lambda x: topi.roll(x, 2, 1), lambda x: np.roll(x, 2, 1), DATA)
case("roll of two", lambda x: topi.roll(x, (-1, 7), (1, 0)), lambda x: np.roll(x, (-1, 7), (1, 0)), DATA)
for upper, function in ((True, np.triu), (False, np.tril)):
    for k in (0, -1, 2):
        case(f"trilu {upper} {k}", lambda x, k=k, u=upper: topi.trilu(x, k, u), lambda x, k=k, f=function: f(x, k), real(2, 4, 5))
for k in (0, 2, -1):
    case(f"diag of a vector {k}", lambda x, k=k: topi.diag(x, k), lambda x, k=k: np.diag(x, k), real(4))
    case(f"diag of a matrix {k}", lambda x, k=k: topi.diag(x, k), lambda x, k=k: np.diag(x, k), real(4, 5))
case("const_vector", lambda x: topi.add(x, topi.const_vector(np.array([1, 5, 2], "int32"))), lambda x: x + np.array([1, 5, 2], "int32"), whole(3))
for indexing in ("ij", "xy"):
    for place in (0, 1, 2):
        case(f"meshgrid {indexing} {place}", lambda *x, n=place, i=indexing: topi.meshgrid(x, i)[n],
             lambda *x, n=place, i=indexing: np.meshgrid(*x, indexing=i)[n], real(3), real(4), real(2))
case("sliding_window", lambda x: topi.sliding_window(x, 1, (2, 3), (1, 2)),
     lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 3), (1, 2))[:, ::1, ::2], real(2, 5, 8))


def masked(x, lengths, value=-1, axis=0):
    time = np.arange(x.shape[axis]).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
    of = lengths.reshape([-1 if d == 1 - axis else 1 for d in range(x.ndim)])
    return np.where(time < of, x, np.float32(value))


case("sequence_mask", lambda x, n: topi.sequence_mask(x, n, -1), masked, real(5, 3, 2), np.array([0, 5, 2], "int32"))
case("sequence_mask along 1", lambda x, n: topi.sequence_mask(x, n, -1, 1), lambda x, n: masked(x, n, -1, 1), real(3, 5),
     np.array([0, 5, 2], "int32"))


def backwards(x, lengths):
    return np.stack([np.concatenate([row[:n][::-1], row[n:]]) for row, n in zip(x, lengths)])


case("reverse_sequence", topi.reverse_sequence, backwards, real(3, 5, 2), np.array([0, 5, 2], "int32"))
case("reverse_sequence of columns", lambda x, n: topi.reverse_sequence(x, n, 0, 1),
     lambda x, n: backwards(x.swapaxes(0, 1), n).swapaxes(0, 1), real(5, 3), np.array([1, 4, 3], "int32"))


def with_diagonals(x, d, low, high, align):
    result = x.copy()
    for batch in np.ndindex(x.shape[:-2]):
        for k in range(low, high + 1):
            n = len(np.diagonal(x[batch], k))
            row = d[(*batch, high - k)] if low != high else d[batch]
            right = align.split("_")[k < 0] == "RIGHT"
            row = row[len(row) - n :] if right and low != high else row[:n]
            for place in range(n):
                result[(*batch, place + max(0, -k), place + max(0, k))] = row[place]
    return result


case("matrix_set_diag", topi.matrix_set_diag, lambda x, d: with_diagonals(x, d, 0, 0, "RIGHT_LEFT"), real(2, 3, 4), real(2, 3))
for align in ("RIGHT_LEFT", "LEFT_RIGHT"):
    case(f"matrix_set_diag of several {align}", lambda x, d, a=align: topi.matrix_set_diag(x, d, (-1, 2), a),
         lambda x, d, a=align: with_diagonals(x, d, -1, 2, a), real(2, 3, 4), real(2, 4, 3))

case("layout_transform", lambda x: topi.layout_transform(x, "NCHW", "NHWC"), lambda x: x.transpose(0, 2, 3, 1), real(2, 3, 4, 5))
case("layout_transform to blocks", lambda x: topi.layout_transform(x, "NCHW", "NCHW4c"),
     lambda x: x.reshape(2, 2, 4, 3, 5).transpose(0, 1, 3, 4, 2), real(2, 8, 3, 5))
case("layout_transform from blocks", lambda x: topi.layout_transform(x, "NCHW4c", "NHWC"),
     lambda x: x.transpose(0, 2, 3, 1, 4).reshape(2, 3, 5, 8), real(2, 2, 3, 5, 4))
case("layout_transform to blocks that do not fit", lambda x: topi.layout_transform(x, "NC", "NC4c"),
     lambda x: np.pad(x, ((0, 0), (0, 3))).reshape(2, 2, 4), real(2, 5))
case("fixed_point_multiply", lambda x: topi.fixed_point_multiply(x, 1 << 30, 2), lambda x: x * 2, whole(9))
case("ceil_log2", topi.ceil_log2, lambda x: np.ceil(np.log2(np.maximum(x, 1))).astype("int32"), np.array([1, 2, 3, 4, 5, 1023, 1024, 1025], "int32"))
case("ceil_log2 of floats", topi.ceil_log2, lambda x: np.ceil(np.log2(x)), real(6, low=0.3, high=9))

# Reductions to statistics.

X = real(3, 4, 5)
for axis in (None, 1, (0, 2)):
    case(f"mean over {axis}", lambda x, a=axis: topi.mean(x, a), lambda x, a=axis: x.mean(a), X)
    case(f"std over {axis}", lambda x, a=axis: topi.std(x, a, True), lambda x, a=axis: x.std(a, keepdims=True), X)
    case(f"var variance over {axis}", lambda x, a=axis: topi.variance(x, a), lambda x, a=axis: x.var(a), X)
case("mean of integers", topi.mean, lambda x: x.mean(dtype="float32"), whole(3, 4))
case("einsum with dots", lambda a, b: topi.einsum("...ij,...jk->...ik", a, b), np.matmul, real(2, 3, 4), real(2, 4, 5))
case("einsum with dots of one", lambda a, b: topi.einsum("i...,i->...", a, b), lambda a, b: np.einsum("i...,i->...", a, b),
     real(4, 2, 3), real(4))
case("einsum with dots and no arrow", lambda a: topi.einsum("...ii", a), lambda a: np.einsum("...ii", a), real(2, 3, 3))
case("matmul transposed", lambda a, b: topi.matmul(a, b, transpose_a=True, transpose_b=True), lambda a, b: a.T @ b.T, real(4, 3), real(5, 4))
for name in ("tril", "triu"):
    for k in (0, -1, 2):
        case(f"{name} {k}", lambda x, k=k, f=getattr(topi, name): f(x, k), lambda x, k=k, f=getattr(np, name): f(x, k), real(2, 4, 5))
