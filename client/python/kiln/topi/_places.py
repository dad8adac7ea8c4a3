"""Operators about places: shapes as tensors, layouts, triangles and diagonals, windows, sequences of different lengths."""

import re

from .._base import dtypes
from .._base.error import invalid, public
from .._definitions import define
from .._definitions.scatter import scatter as scattered
from .._expressions import arithmetic, operators, reduce, size_math
from .._expressions.arithmetic import apply, as_expr, cast, constant
from .._expressions.text import shape_text
from ._common import as_size, constant_int, dimensions, is_empty, normal_axes, normal_axis, tensor
from ._gather import _from_end, _indices
from ._shape import _along, broadcast_to, expand_dims

__all__ = []


def _export(function):
    __all__.append(function.__name__)
    return public(function)


@_export
def shape(array, dtype="int32"):
    """The sizes of a tensor, as a vector."""
    array = tensor(array, "topi.shape")
    dtype = dtypes.dtype_name(dtype, "topi.shape")

    def body(i):
        result = cast(dtype, 0)
        for d in reversed(range(array.ndim)):
            result = apply("select", i == d, cast(dtype, as_expr(array.shape[d], "int64")), result)
        return result

    return define.compute((array.ndim,), body, name="T_shape")


@_export
def ndarray_size(array, dtype="int32"):
    """The number of elements of a tensor, without dimensions."""
    array = tensor(array, "topi.ndarray_size")
    dtype = dtypes.dtype_name(dtype, "topi.ndarray_size")
    count = as_expr(size_math.product(array.shape), "int64")
    return define.compute((), lambda: cast(dtype, count), name="ndarray_size")


@_export
def unravel_index(indices, shape):
    """numpy.unravel_index: row d of the result has the index along dimension d. `shape` is a tuple, or a vector of
    constant length."""
    where = "topi.unravel_index"
    indices = _indices(indices, where)
    if hasattr(shape, "ndim"):
        sizes = [cast("int64", shape(d)) for d in range(constant_int(shape.shape[0], f"{where}: the length of the shape"))]
    else:
        sizes = [as_expr(size, "int64") for size in define.as_shape(shape, where)]

    def body(d, *index):
        rest, result = cast("int64", indices(*index)), constant(0, indices.dtype)
        for dimension in reversed(range(len(sizes))):
            part = apply("floormod", rest, sizes[dimension]) if dimension else rest
            result = apply("select", d == dimension, cast(indices.dtype, part), result)
            rest = apply("floordiv", rest, sizes[dimension]) if dimension else rest
        return result

    return define.compute((len(sizes), *indices.shape), body, name="T_unravel_index")


@_export
def reinterpret(x, dtype):
    """The same bits as another type, as wide."""
    x = tensor(x, "topi.reinterpret")
    return define.compute(x.shape, lambda *index: operators.reinterpret(dtype, x(*index)), name="T_reinterpret")


@_export
def expand_like(a, shape_like, axis):
    """New dimensions at the axes, as long as those of another tensor."""
    a, like = tensor(a, "topi.expand_like"), tensor(shape_like, "topi.expand_like")
    axes = normal_axes(like, axis, "topi.expand_like")
    if a.ndim + len(axes) == like.ndim or (a.ndim == 1 and a.shape[0] == 1):
        for d in axes if a.ndim + len(axes) == like.ndim else ():
            a = expand_dims(a, d)
        return broadcast_to(a, like.shape)
    raise invalid(
        "BROADCAST",
        f"topi.expand_like: {a.name} has {dimensions(a.ndim)} and gets {len(axes)}, but {like.name} has {like.ndim}",
    )


@_export
def roll(a, shift, axis=None):
    """Elements moved on by `shift` along `axis`, those of the end to the beginning."""
    a = tensor(a, "topi.roll")
    axes = normal_axes(a, axis, "topi.roll")
    if axis is None and a.ndim != 1:
        raise invalid("AXIS_RANGE", f"topi.roll: {a.name} has {a.ndim} dimensions; name an axis")
    shifts = list(shift) if isinstance(shift, (tuple, list)) else [shift] * len(axes)
    order = list(axis) if isinstance(axis, (tuple, list)) else axes
    for d, by in zip(order, shifts):
        d = normal_axis(a, d, "topi.roll")
        size = 1 if is_empty([a.shape[d]]) else as_expr(a.shape[d], "int64")
        a = _along(a, d, a.shape[d], lambda i, by=by, size=size: apply("floormod", i - by, size), "T_roll")
    return a


@_export
def trilu(data, k, upper):
    """The upper triangles of the last two dimensions, from the diagonal `k` on, or the lower ones up to it; 0 elsewhere."""
    return _triangle(data, k, upper, "topi.trilu")


def _triangle(data, k, upper, where):
    data = tensor(data, where)
    if data.ndim < 2:
        raise invalid("ARGUMENT_RANK", f"{where} takes matrices, but {data.name} has {dimensions(data.ndim)}")
    k = k() if hasattr(k, "ndim") else k

    def body(*index):
        offset = index[-1] - index[-2]
        inside = offset >= k if upper else offset <= k
        return apply("select", inside, data(*index), cast(data.dtype, 0))

    return define.compute(data.shape, body, name="trilu")


@_export
def tril(data, k=0):
    """numpy.tril: the lower triangles of the last two dimensions, up to the diagonal `k`; 0 elsewhere."""
    return _triangle(data, k, False, "topi.tril")


@_export
def triu(data, k=0):
    """numpy.triu: the upper triangles of the last two dimensions, from the diagonal `k` on; 0 elsewhere."""
    return _triangle(data, k, True, "topi.triu")


@_export
def diag(data, k=0):
    """numpy.diag: a vector on the diagonal `k`, or that diagonal of a matrix."""
    data = tensor(data, "topi.diag")
    k = constant_int(k, "topi.diag: k")
    down, right = max(-k, 0), max(k, 0)
    if data.ndim == 1:
        size = data.shape[0] + abs(k)

        def matrix(i, j):
            on = reduce.all(j - i == k, i >= down, j >= right)
            return apply("if_then_else", on, data(apply("min", i - down, data.shape[0] - 1)), cast(data.dtype, 0))

        return define.compute((size, size), matrix, name="T_diag")
    if data.ndim != 2 or not all(isinstance(size, int) for size in data.shape):
        raise invalid("ARGUMENT_RANK", f"topi.diag takes a vector or a matrix of known sizes, but got {shape_text(data.shape)}")
    length = max(0, min(data.shape[0] - down, data.shape[1] - right))
    return define.compute((length,), lambda i: data(i + down, i + right), name="T_diag")


@_export
def const_vector(vector, name="const_vector"):
    """The numbers of a small numpy vector, as a tensor."""
    values, dtype = vector.tolist(), dtypes.dtype_name(vector.dtype, "topi.const_vector")

    def body(i):
        result = cast(dtype, 0)
        for place, value in enumerate(values):
            result = apply("select", i == place, cast(dtype, value), result)
        return result

    return define.compute((len(values),), body, name=name)


@_export
def meshgrid(a_tuple, indexing):
    """numpy.meshgrid of vectors: "ij" or "xy"."""
    vectors = [tensor(each, "topi.meshgrid") for each in a_tuple]
    if indexing not in ("ij", "xy"):
        raise invalid("MODE", f"topi.meshgrid: unknown indexing {indexing!r}; known: ij, xy")
    order = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        order[:2] = [1, 0]
    sizes = [vectors[d].shape[0] if vectors[d].ndim else 1 for d in order]
    return [
        define.compute(
            sizes, lambda *index, v=v, d=d: v(index[order.index(d)]) if v.ndim else v(), name="T_meshgrid"
        )
        for d, v in enumerate(vectors)
    ]


@_export
def sliding_window(data, axis, window_shape, strides):
    """Windows over the dimensions from `axis` on: first where they are, then what is in them."""
    data = tensor(data, "topi.sliding_window")
    axis = normal_axis(data, axis, "topi.sliding_window")
    windows, strides = list(window_shape), list(strides)
    if len(windows) != data.ndim - axis or len(strides) != len(windows):
        raise invalid(
            "DIMENSIONS",
            f"topi.sliding_window: {data.name} has {dimensions(data.ndim - axis)} from {axis} on, but there are "
            f"{len(windows)} sizes of windows and {len(strides)} strides",
        )
    count = len(windows)
    places = [
        as_size(size_math.folded("add", size_math.folded("floordiv", size_math.folded("subtract", size, w), s), 1))
        for size, w, s in zip(data.shape[axis:], windows, strides)
    ]

    def body(*index):
        at, inside = index[axis : axis + count], index[axis + count :]
        return data(*index[:axis], *(i * s + w for i, s, w in zip(at, strides, inside)))

    return define.compute([*data.shape[:axis], *places, *windows], body, name="T_sliding_window")


@_export
def sequence_mask(data, valid_length, mask_value=0, axis=0):
    """Elements past the valid length of their sequence as `mask_value`; time is dimension `axis`, 0 or 1, and the
    sequences are the other one."""
    where = "topi.sequence_mask"
    data, lengths = tensor(data, where), _indices(valid_length, where)
    if axis not in (0, 1) or data.ndim < 2:
        raise invalid("AXIS_RANGE", f"{where}: the axis of time must be 0 or 1 of at least 2 dimensions, but is {axis}")

    def body(*index):
        valid = index[axis] < cast("int64", lengths(index[1 - axis]))
        return apply("select", valid, data(*index), cast(data.dtype, mask_value))

    return define.compute(data.shape, body, name="T_sequence_mask")


@_export
def reverse_sequence(a, seq_lengths, seq_axis=1, batch_axis=0):
    """The first elements of each sequence, as many as its length says, in reverse."""
    where = "topi.reverse_sequence"
    a, lengths = tensor(a, where), _indices(seq_lengths, where)
    time, batch = normal_axis(a, seq_axis, where), normal_axis(a, batch_axis, where)

    def body(*index):
        length = cast("int64", lengths(index[batch]))
        place = list(index)
        place[time] = apply("select", index[time] < length, apply("max", length - 1 - index[time], 0), index[time])
        return a(*place)

    return define.compute(a.shape, body, name="T_reverse_sequence")


@_export
def adv_index(data, indices):
    """numpy's data[i0, i1, ...] for tensors of indices, which stretch to one shape; the other dimensions are whole."""
    where = "topi.adv_index"
    data = tensor(data, where)
    indices = [_indices(each, where) for each in indices]
    if not indices or len(indices) > data.ndim:
        raise invalid("GATHER", f"{where}: {data.name} has {dimensions(data.ndim)}, but there are {len(indices)} tensors of indices")
    ndim = max(each.ndim for each in indices)
    sizes = [1] * ndim
    for each in indices:
        for d, size in enumerate(each.shape, ndim - each.ndim):
            sizes[d] = size if isinstance(sizes[d], int) and sizes[d] == 1 else sizes[d]
    indices = [broadcast_to(each, sizes) for each in indices]

    def body(*index):
        place = [_from_end(each(*index[:ndim]), size) for each, size in zip(indices, data.shape)]
        return data(*place, *index[ndim:])

    return define.compute([*sizes, *data.shape[len(indices) :]], body, name="T_adv_index")


_PART = re.compile(r"(\d*)([A-Za-z])")


def _layout(text, where):
    """[(letter, factor)]: NCHW16c is N, C, H, W and 16 of C."""
    parts = [(letter, int(number or 0)) for number, letter in _PART.findall(text)]
    outer = [letter for letter, _ in parts if letter.isupper()]
    good = "".join(f"{n or ''}{c}" for c, n in parts) == text and len(set(outer)) == len(outer)
    good = good and all((n > 0) == c.islower() and c.upper() in outer for c, n in parts)
    if not good:
        raise invalid("LAYOUT", f"{where}: {text!r} is no layout; write one as NCHW or NCHW16c")
    return parts


@_export
def layout_transform(array, src_layout, dst_layout, schedule_rule="None"):
    """The same elements in another layout: "NCHW" to "NHWC" or "NCHW16c". Dimensions that a block does not divide are
    filled up with 0."""
    where = "topi.layout_transform"
    array = tensor(array, where)
    source, target = _layout(src_layout, where), _layout(dst_layout, where)
    if len(source) != array.ndim or {c.upper() for c, _ in source} != {c.upper() for c, _ in target}:
        raise invalid(
            "LAYOUT",
            f"{where}: {src_layout} to {dst_layout} does not fit {array.name} of shape {shape_text(array.shape)}",
        )
    block = lambda parts, letter: next((n for c, n in parts if c == letter.lower()), 1)  # noqa: E731
    sizes = {c: size_math.product([array.shape[d], block(source, c)]) for d, (c, _) in enumerate(source) if c.isupper()}
    rounded = lambda c: (sizes[c] + block(target, c) - 1) // block(target, c)  # noqa: E731
    result = [n if c.islower() else as_size(sizes[c] if block(target, c) == 1 else rounded(c)) for c, n in target]

    def body(*index):
        given = dict(zip((c for c, _ in target), index))
        whole = {
            c: given[c] if c.lower() not in given else given[c] * block(target, c) + given[c.lower()] for c in sizes
        }
        place = [
            apply("floormod", whole[c.upper()], n) if n else size_math.folded("floordiv", whole[c], block(source, c))
            for c, n in source
        ]
        past = [whole[c] < sizes[c] for c in sizes if not _divides(block(target, c), sizes[c])]
        element = array(*place)
        return apply("if_then_else", reduce.all(*past), element, cast(array.dtype, 0)) if past else element

    return define.compute(result, body, name="T_layout_trans")


def _divides(block, size):
    return block == 1 or (isinstance(size, int) and size % block == 0)


@_export
def invert_permutation(data):
    """Where each place stands in a permutation."""
    data = _indices(data, "topi.invert_permutation")
    base = define.compute(data.shape, lambda i: constant(0, data.dtype), name="T_none")
    return scattered(base, data.shape, lambda i: ((cast("int64", data(i)),), cast(data.dtype, i)), name="T_invert_permutation")


@_export
def fixed_point_multiply(x, multiplier, shift):
    """x times multiplier * 2**(shift - 31), rounded, of int32."""
    x = tensor(x, "topi.fixed_point_multiply")
    multiplier, shift = arithmetic.as_integer(multiplier), arithmetic.as_integer(shift)
    return define.compute(
        x.shape, lambda *index: operators.q_multiply_shift(x(*index), multiplier, 31, shift), name="T_fixed_point_multiply"
    )


@_export
def ceil_log2(x):
    """The smallest whole number whose power of 2 is not below the element; 0 for what is not above 1."""
    x = tensor(x, "topi.ceil_log2")
    if not dtypes.is_int(x.dtype):
        return define.compute(x.shape, lambda *index: apply("ceil", apply("log2", x(*index))), name="T_ceil_log2")

    def body(*index):
        number = cast("int64", x(*index))
        bits = 64 - apply("clz", apply("max", number - 1, 0))
        return cast(x.dtype, apply("select", number > 1, cast("int64", bits), constant(0, "int64")))

    return define.compute(x.shape, body, name="T_ceil_log2")
