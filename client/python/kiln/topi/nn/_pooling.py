"""Pooling over windows."""

from ..._base import dtypes
from ..._base.error import invalid, public
from ..._definitions import define, views
from ..._definitions.built_in import operator
from ..._expressions import size_math
from ..._expressions.arithmetic import apply, cast
from ..._expressions.operators import bound
from ..._expressions.text import shape_text
from .. import _elementwise, _reduction
from .._common import tensor
from .._shape import transpose
from ._padding import padded, per_dimension, sides

__all__ = []


def _export(function):
    __all__.append(function.__name__)
    return public(function)


def _spatial(data, layout, letters, where):
    """Where the dimensions called `letters` stand in a layout such as NCHW."""
    data = tensor(data, where)
    if len(layout) != data.ndim or not set(letters) <= set(layout):
        raise invalid(
            "LAYOUT",
            f"{where}: layout {layout!r} does not fit {data.name} of shape {shape_text(data.shape)}",
        )
    return [layout.index(letter) for letter in letters]


def _check_type(pool_type, where):
    if pool_type not in ("max", "avg"):
        raise invalid("POOL_TYPE", f"{where}: unknown pool_type {pool_type!r}; known: max, avg")


@_export
def pool1d(data, kernel, stride, dilation, padding, pool_type, ceil_mode=False, layout="NCW",
           count_include_pad=True):  # fmt: skip
    """The largest or the mean of windows along W; see pool2d."""
    where = "topi.nn.pool1d"
    dims = _spatial(data, layout, "W", where)
    return _pool(data, dims, kernel, stride, dilation, padding, pool_type, ceil_mode,
                 count_include_pad, where)  # fmt: skip


@_export
def pool2d(data, kernel, stride, dilation, padding, pool_type, ceil_mode=False, layout="NCHW",
           count_include_pad=True):  # fmt: skip
    """The largest ("max") or the mean ("avg") of windows over H and W. With `ceil_mode` a last window that
    hangs over counts too; without `count_include_pad` the mean is that of real elements only."""
    where = "topi.nn.pool2d"
    dims = _spatial(data, layout, "HW", where)
    return _pool(data, dims, kernel, stride, dilation, padding, pool_type, ceil_mode,
                 count_include_pad, where)  # fmt: skip


@_export
def pool(data, kernel, stride, padding, pool_type, ceil_mode=False, layout="NCHW",
         count_include_pad=True):  # fmt: skip
    """As pool2d without dilation: the order of arguments of older programs."""
    return pool2d(data, kernel, stride, 1, padding, pool_type, ceil_mode, layout, count_include_pad)


def _pool(data, dims, kernel, stride, dilation, padding, pool_type, ceil_mode, count_pad, where):
    _check_type(pool_type, where)
    count = len(dims)
    windows = per_dimension(kernel, count, f"{where}: kernel")
    strides = per_dimension(stride, count, f"{where}: stride")
    dilations = per_dimension(dilation, count, f"{where}: dilation")
    reach = [(w - 1) * d + 1 for w, d in zip(windows, dilations)]
    sizes = [data.shape[d] for d in dims]
    around = sides(padding, reach, sizes, strides, where)
    wide = [
        (low, high + _overhang(size + low + high, r, s) if ceil_mode else high)
        for (low, high), size, r, s in zip(around, sizes, reach, strides)
    ]
    value = 0
    if pool_type == "max":
        value = float("-inf") if dtypes.is_float(data.dtype) else bound(data.dtype, "min")
    whole = padded(data, dims, wide, value)
    pooled = _windows(whole, dims, windows, strides, dilations, "max" if pool_type == "max" else "sum")
    if pool_type == "max":
        return pooled
    return _mean(pooled, dims, sizes, windows, strides, dilations, around, count_pad)


def _overhang(size, reach, stride):
    """How much is missing for a last window that begins inside."""
    if not isinstance(size, int):
        return stride - 1
    return -(size - reach) % stride


def _windows(data, dims, windows, strides, dilations, how):
    """The windows of some dimensions reduced, in the layout of the data."""
    order = [d for d in range(data.ndim) if d not in dims] + list(dims)
    given = views.permuted(data, order)
    if len(dims) == 1:
        sizes = {"s": windows[0], "stride": strides[0], "dilation": dilations[0]}
        name = f"{how}_pool1d"
    else:
        names = ("r", "s", "stride_h", "stride_w", "dilation_h", "dilation_w")
        sizes = dict(zip(names, (*windows, *strides, *dilations)))
        name = f"{how}_pool2d"
    return _back(operator(name)(given, name=f"pool_{how}", **sizes), order)


def _back(pooled, order):
    if order == sorted(order):
        return pooled
    return transpose(pooled, [order.index(d) for d in range(len(order))])


def _mean(total, dims, sizes, windows, strides, dilations, around, count_pad):
    whole = 1
    for window in windows:
        whole = window * whole
    plain = all(low == 0 and high == 0 for low, high in around)

    def body(*index):
        if plain or count_pad:
            number = whole
        else:
            number = 1
            for d, size, w, s, dilation, (low, _) in zip(
                dims, sizes, windows, strides, dilations, around
            ):
                number = _inside(index[d], size, w, s, dilation, low) * number
        element = total(*index)
        if dtypes.is_float(element.dtype):
            return element / cast(element.dtype, number)
        return apply("truncdiv", element, cast(element.dtype, number))

    return define.compute(total.shape, body, name="pool_avg")


def _inside(i, size, window, stride, dilation, low):
    """How many of a window's elements are no padding; at least 1."""
    first = i * stride - low
    # k with 0 <= first + k * dilation < size
    begin = apply("max", (0 - first + (dilation - 1)) // dilation, 0)
    end = apply("min", (size - first + (dilation - 1)) // dilation, window)
    return apply("max", end - begin, 1)


@_export
def global_pool(data, pool_type, layout="NCHW"):
    """The largest or the mean over all of H and W, which become 1."""
    where = "topi.nn.global_pool"
    _check_type(pool_type, where)
    dims = _spatial(data, layout, "HW", where)
    if pool_type == "max":
        return _reduction.max(data, dims, keepdims=True)
    return _over_count(_reduction.sum(data, dims, keepdims=True), [data.shape[d] for d in dims])


def _over_count(total, sizes):
    count = size_math.product(sizes)
    return _elementwise.divide(total, count if isinstance(count, int) else cast(total.dtype, count))


@_export
def adaptive_pool(data, output_size, pool_type, layout="NCHW"):
    """So many windows over H and W, as even as they can be."""
    where = "topi.nn.adaptive_pool"
    _check_type(pool_type, where)
    dims = _spatial(data, layout, "HW", where)
    rows, columns = per_dimension(output_size, 2, f"{where}: output_size")
    order = [d for d in range(data.ndim) if d not in dims] + dims
    name = f"adaptive_{pool_type}_pool2d"
    pooled = operator(name)(views.permuted(data, order), u=rows, v=columns, name="adaptive_pool")
    return _back(pooled, order)
