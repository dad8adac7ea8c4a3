"""Tensors with elements written at computed places. A negative index counts from the end; one that is out of range stops
the kernel."""

from .._base.error import invalid, public
from .._definitions import define, scatter as scatters
from .._definitions.broadcast import is_one
from .._definitions.tensor import Tensor
from .._expressions import arithmetic, reduce
from .._expressions.arithmetic import apply, as_expr, cast
from .._expressions.text import shape_text
from ._common import normal_axis, tensor
from ._elementwise import identity
from ._gather import _from_end, _indices
from ._shape import _range

__all__ = []

_REDUCTIONS = {"update": "scatter", "add": "scatter_add", "min": "scatter_min", "max": "scatter_max"}


def _export(function):
    __all__.append(function.__name__)
    return public(function)


def _base(data):
    """A tensor to scatter into, of a tensor or of a view of one."""
    return data if isinstance(data, Tensor) else identity(data)


@_export
def scatter_elements(data, indices, updates, axis=0, reduction="update"):
    """A copy of `data` in which the element that each index names along `axis` takes the update: "update" (the last one
    stays), "add", "min" or "max"."""
    where = "topi.scatter_elements"
    data, indices, updates = tensor(data, where), _indices(indices, where), tensor(updates, where)
    axis = normal_axis(data, axis, where)
    if reduction not in _REDUCTIONS:
        raise invalid("MODE", f"{where}: unknown reduction {reduction!r}; known: {', '.join(_REDUCTIONS)}")
    if indices.ndim != data.ndim or updates.ndim != data.ndim:
        raise invalid(
            "SCATTER",
            f"{where}: {data.name} has {data.ndim} dimensions, so the indices and the updates have as many, but their "
            f"shapes are {shape_text(indices.shape)} and {shape_text(updates.shape)}",
        )

    def place(*index):
        at = list(index)
        at[axis] = _from_end(indices(*index), data.shape[axis])
        return tuple(at), cast(data.dtype, updates(*index))

    return getattr(scatters, _REDUCTIONS[reduction])(_base(data), indices.shape, place, name="T_scatter")


@_export
def scatter(data, indices, updates, axis=0):
    """scatter_elements whose updates replace."""
    return scatter_elements(data, indices, updates, axis)


@_export
def scatter_add(data, indices, updates, axis=0):
    """scatter_elements whose updates are added."""
    return scatter_elements(data, indices, updates, axis, "add")


@_export
def scatter_nd(data, indices, updates, mode="update"):
    """A copy of `data` in which the elements (or slices) that the columns of `indices` name take the updates; see
    gather_nd."""
    where = "topi.scatter_nd"
    data, indices, updates = tensor(data, where), _indices(indices, where), tensor(updates, where)
    if mode not in _REDUCTIONS:
        raise invalid("MODE", f"{where}: unknown mode {mode!r}; known: {', '.join(_REDUCTIONS)}")
    depth = indices.shape[0] if indices.ndim else None
    rest = indices.ndim - 1
    if not isinstance(depth, int) or depth > data.ndim or updates.ndim != rest + data.ndim - depth:
        raise invalid(
            "SCATTER",
            f"{where}: indices of shape {shape_text(indices.shape)} and updates of shape {shape_text(updates.shape)} do "
            f"not fit {data.name} of shape {shape_text(data.shape)}: the first dimension of the indices holds one index "
            "for each of the first dimensions of the data, the updates have the others and those that are left",
        )

    def place(*index):
        at = [_from_end(indices(d, *index[:rest]), data.shape[d]) for d in range(depth)]
        return (*at, *index[rest:]), cast(data.dtype, updates(*index))

    return getattr(scatters, _REDUCTIONS[mode])(_base(data), updates.shape, place, name="T_scatter_nd")


@_export
def sparse_to_dense(sparse_indices, output_shape, sparse_values, default_value=0):
    """`default_value` everywhere but at the indices (one, one a row, or rows of several), where the values are."""
    where = "topi.sparse_to_dense"
    places = _indices(sparse_indices, where)
    shape = define.as_shape(output_shape, where)
    values = sparse_values
    is_number = arithmetic.is_number(values) or not hasattr(values, "ndim")
    dtype = "float32" if is_number and isinstance(values, float) else "int32" if is_number else values.dtype
    if places.ndim > 2 or (places.ndim == 2 and places.shape[1] != len(shape)) or (places.ndim < 2 and len(shape) != 1):
        raise invalid(
            "SCATTER",
            f"{where}: indices of shape {shape_text(places.shape)} do not fit an output of {len(shape)} dimensions; write "
            f"(count, {len(shape)})",
        )
    default = cast(dtype, default_value if arithmetic.is_number(default_value) else as_expr(_scalar_of(default_value)))
    base = define.compute(shape, lambda *_: default, name="T_default")

    def place(n):
        if places.ndim == 2:
            at = tuple(cast("int64", places(n, d)) for d in range(len(shape)))
        else:
            at = (cast("int64", places(n) if places.ndim else places()),)
        value = values if is_number else values(n) if values.ndim else values()
        return at, cast(dtype, value)

    count = places.shape[0] if places.ndim else 1
    return scatters.scatter(base, (count,), place, name="T_sparse_to_dense")


def _scalar_of(value):
    return value() if hasattr(value, "ndim") and value.ndim == 0 else value


@_export
def strided_set(a, v, begin, end, strides=None):
    """A copy of `a` with a[begin:end:strides] = v."""
    where = "topi.strided_set"
    a, v = tensor(a, where), tensor(v, where)
    strides = [1] * a.ndim if strides is None else list(strides) + [1] * (a.ndim - len(strides))
    first = list(begin) + [None] * (a.ndim - len(begin))
    last = list(end) + [None] * (a.ndim - len(end))
    ranges = [_range(a, d, *each) for d, each in enumerate(zip(first, last, strides))]

    def body(*index):
        inside, place = [], []
        for i, (start, step, count), size in zip(index, ranges, v.shape):
            offset = i - start if step > 0 else start - i
            inside += [offset >= 0, apply("floormod", offset, abs(step)) == 0]
            steps = apply("floordiv", offset, abs(step))
            inside.append(steps < count)
            place.append(0 if is_one(size) else steps)
        return apply("if_then_else", reduce.all(*inside), cast(a.dtype, v(*place)), a(*index)) if inside else v()

    return define.compute(a.shape, body, name="T_strided_set")


@_export
def matrix_set_diag(data, diagonal, k=0, align="RIGHT_LEFT"):
    """The matrices of the last two dimensions with other diagonals: of `diagonal`'s last dimension the one `k` above the
    main one, or, for k = (k0, k1), the rows of its last two, the one of k1 first. `align` says on which side rows that
    are too long are filled up: superdiagonals, then subdiagonals."""
    where = "topi.matrix_set_diag"
    data, diagonal = tensor(data, where), tensor(diagonal, where)
    low, high = k if isinstance(k, (tuple, list)) else (k, k)
    low, high = arithmetic.as_integer(low), arithmetic.as_integer(high)
    if align not in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT") or high < low or data.ndim < 2:
        raise invalid(
            "DIAGONAL",
            f"{where} takes matrices, k or (k0, k1) in this order, and align of RIGHT_LEFT, LEFT_RIGHT, LEFT_LEFT or "
            f"RIGHT_RIGHT, but got k={k} and align={align!r}",
        )
    above, below = align.split("_")
    rows, columns = data.shape[-2:]
    several = low != high
    wide = diagonal.shape[-1]

    def body(*index):
        *batch, i, j = index
        offset = j - i
        step = apply("min", i, j)  # the place on the diagonal
        length = apply("min", apply("min", columns, columns - offset), apply("min", rows, rows + offset))
        right = apply("select", offset >= 0, *[cast("bool", side == "RIGHT") for side in (above, below)])
        place = step + apply("select", right, wide - length, 0) if several else step
        element = diagonal(*batch, *([high - offset] if several else []), place)
        inside = reduce.all(offset >= low, offset <= high)
        return apply("if_then_else", inside, cast(data.dtype, element), data(*index))

    return define.compute(data.shape, body, name="T_matrix_set_diag")
