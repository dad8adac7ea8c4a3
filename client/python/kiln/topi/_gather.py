"""Elements chosen by tensors of indices."""

from .._base import dtypes
from .._base.error import invalid, public
from .._definitions import define
from .._expressions import arithmetic, size_math
from .._expressions.arithmetic import apply, as_expr, cast
from .._expressions.text import shape_text
from ._common import normal_axis, same_size, tensor
from ._shape import reshape

__all__ = []


def _export(function):
    __all__.append(function.__name__)
    return public(function)


def _indices(value, where):
    value = tensor(value, where)
    if not dtypes.is_int(value.dtype):
        raise invalid(
            "INDEX_TYPE", f"{where}: the indices {value.name} are {value.dtype}, but must be integers"
        )
    return value


@_export
def take(a, indices, axis=None, batch_dims=0, mode="clip"):
    """The slices of `a` at the indices along `axis`; without it of all elements in a row. An index out of
    range is moved to the end ("clip"), counted round and round ("wrap"), or stops the kernel
    ("fast")."""
    a, indices = tensor(a, "topi.take"), _indices(indices, "topi.take")
    if mode not in ("clip", "wrap", "fast"):
        raise invalid("MODE", f"topi.take: unknown mode {mode!r}; known: clip, wrap, fast")
    if batch_dims != 0:
        raise invalid("BATCH_DIMS", "topi.take: batch_dims must be 0; use topi.gather")
    if axis is None:
        a, axis = reshape(a, (-1,)) if a.ndim != 1 else a, 0
    axis = normal_axis(a, axis, "topi.take")
    size = as_expr(a.shape[axis], "int64")

    def body(*index):
        place = cast("int64", indices(*index[axis : axis + indices.ndim]))
        if mode == "clip":
            place = apply("min", apply("max", place, 0), size_math.folded("subtract", size, 1))
        elif mode == "wrap":
            place = apply("floormod", place, size)
        return a(*index[:axis], place, *index[axis + indices.ndim :])

    shape = [*a.shape[:axis], *indices.shape, *a.shape[axis + 1 :]]
    return define.compute(shape, body, name="T_take")


def _from_end(index, size):
    """A negative index counts from the end."""
    index = cast("int64", index)
    return apply("select", index < 0, index + as_expr(size, "int64"), index)


@_export
def gather(data, axis, indices):
    """numpy.take_along_axis: the element of each row that the indices name."""
    data, indices = tensor(data, "topi.gather"), _indices(indices, "topi.gather")
    axis = normal_axis(data, axis, "topi.gather")
    others = [d for d in range(data.ndim) if d != axis]
    if indices.ndim != data.ndim or not all(
        same_size(indices.shape[d], data.shape[d]) for d in others
    ):
        raise invalid(
            "GATHER",
            f"topi.gather along axis {axis}: {data.name} has shape {shape_text(data.shape)}, but the "
            f"indices have {shape_text(indices.shape)}; the other dimensions must agree",
        )

    def body(*index):
        place = list(index)
        place[axis] = _from_end(indices(*index), data.shape[axis])
        return data(*place)

    return define.compute(indices.shape, body, name="T_gather")


@_export
def gather_nd(a, indices):
    """The elements (or slices) that the columns of `indices` name: its first dimension holds one index
    for each of the first dimensions of `a`."""
    a, indices = tensor(a, "topi.gather_nd"), _indices(indices, "topi.gather_nd")
    depth = indices.shape[0] if indices.ndim else None
    if not isinstance(depth, int) or depth > a.ndim:
        raise invalid(
            "GATHER",
            f"topi.gather_nd: the indices have shape {shape_text(indices.shape)}, whose first "
            f"dimension must be a constant up to {a.ndim}, the dimensions of {a.name}",
        )
    rest = indices.ndim - 1

    def body(*index):
        place = [
            _from_end(indices(d, *index[:rest]), a.shape[d]) for d in range(depth)
        ]
        return a(*place, *index[rest:])

    return define.compute([*indices.shape[1:], *a.shape[depth:]], body, name="T_gather_nd")


@_export
def one_hot(indices, on_value, off_value, depth, axis, dtype):
    """`on_value` where the index stands along a new dimension of `depth`, elsewhere `off_value`."""
    indices = _indices(indices, "topi.one_hot")
    dtype = dtypes.dtype_name(dtype, "topi.one_hot")
    axis = normal_axis(indices, axis, "topi.one_hot", indices.ndim + 1)
    on, off = cast(dtype, _scalar(on_value)), cast(dtype, _scalar(off_value))

    def body(*index):
        place = indices(*index[:axis], *index[axis + 1 :])
        return apply("select", cast("int64", place) == index[axis], on, off)

    shape = [*indices.shape[:axis], depth, *indices.shape[axis:]]
    return define.compute(shape, body, name="T_one_hot")


def _scalar(value):
    return value if arithmetic.is_number(value) else as_expr(value)
