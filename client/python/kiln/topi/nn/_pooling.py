"""Pooling over windows."""

from ..._base import dtypes
from ..._base.error import invalid, public
from ..._definitions import define, views
from ..._definitions.built_in import operator
from ..._definitions.scatter import scatter_add
from ..._expressions import reduce, size_math
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
def pool3d(data, kernel, stride, dilation, padding, pool_type, ceil_mode=False, layout="NCDHW",
           count_include_pad=True):  # fmt: skip
    """The largest or the mean of windows over D, H and W; see pool2d."""
    where = "topi.nn.pool3d"
    dims = _spatial(data, layout, "DHW", where)
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
    around = sides(padding, reach, where)
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
    if len(dims) > 2:
        return _windows_nd(data, dims, windows, strides, dilations, how)
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


def _windows_nd(data, dims, windows, strides, dilations, how):
    shape = list(data.shape)
    for d, w, stride, dilation in zip(dims, windows, strides, dilations):
        shape[d] = (data.shape[d] - (w - 1) * dilation - 1) // stride + 1

    def body(*index):
        axes = [define.reduce_axis((0, w), name=f"r{d}") for d, w in enumerate(windows)]
        place = list(index)
        for d, r, stride, dilation in zip(dims, axes, strides, dilations):
            place[d] = index[d] * stride + r * dilation
        return getattr(reduce, how)(data(*place), axis=axes)

    return define.compute(shape, body, name=f"pool_{how}")


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


@_export
def adaptive_pool1d(data, output_size, pool_type, layout="NCW"):
    """So many windows along W, as even as they can be."""
    return _adaptive(data, output_size, pool_type, layout, "W", "topi.nn.adaptive_pool1d")


@_export
def adaptive_pool3d(data, output_size, pool_type, layout="NCDHW"):
    """So many windows over D, H and W, as even as they can be."""
    return _adaptive(data, output_size, pool_type, layout, "DHW", "topi.nn.adaptive_pool3d")


def _adaptive(data, output_size, pool_type, layout, letters, where):
    _check_type(pool_type, where)
    dims = _spatial(data, layout, letters, where)
    outputs = per_dimension(output_size, len(dims), f"{where}: output_size")
    shape = list(data.shape)
    for d, count in zip(dims, outputs):
        shape[d] = count

    def edges(index):
        return [
            (index[d] * data.shape[d] // count, ((index[d] + 1) * data.shape[d] + (count - 1)) // count)
            for d, count in zip(dims, outputs)
        ]

    def body(*index):
        place, axes = list(index), []
        for d, (begin, end) in zip(dims, edges(index)):
            axes.append(define.reduce_axis((begin, end), name=f"k{d}"))
            place[d] = axes[-1]
        return getattr(reduce, "max" if pool_type == "max" else "sum")(data(*place), axis=axes)

    pooled = define.compute(shape, body, name="adaptive_pool")
    if pool_type == "max":
        return pooled

    def mean(*index):
        count = 1
        for begin, end in edges(index):
            count = (end - begin) * count
        return pooled(*index) / cast(pooled.dtype, count)

    return define.compute(shape, mean, name="adaptive_pool_avg")


@_export
def pool_grad(grads, data, kernel, stride, padding, pool_type, ceil_mode=False, count_include_pad=True, layout="NCHW"):
    """The gradient of pool2d by its data: of a maximum all of it at the first largest element, of a mean shared."""
    where = "topi.nn.pool_grad"
    _check_type(pool_type, where)
    dims = _spatial(data, layout, "HW", where)
    grads = tensor(grads, where)
    windows, strides = (per_dimension(value, 2, f"{where}: {name}") for name, value in (("kernel", kernel), ("stride", stride)))
    around = sides(padding, windows, where)
    sizes = [data.shape[d] for d in dims]

    def first(index):
        """The first element of a window, in terms of the data."""
        return [index[d] * stride - low for d, stride, (low, _) in zip(dims, strides, around)]

    if pool_type == "avg":
        return _mean_gradient(grads, data, dims, windows, strides, around, count_include_pad)
    lowest = cast(data.dtype, float("-inf") if dtypes.is_float(data.dtype) else bound(data.dtype, "min"))

    def element(index, at):
        inside = [reduce.all(i >= 0, i < size) for i, size in zip(at, sizes)]
        place = list(index)
        for d, i in zip(dims, at):
            place[d] = i
        return apply("if_then_else", reduce.all(*inside), data(*place), lowest)

    def axes_of_window():
        return [define.reduce_axis((0, w), name=f"r{d}") for d, w in enumerate(windows)]

    def best(*index):
        axes = axes_of_window()
        return reduce.max(element(index, [i + r for i, r in zip(first(index), axes)]), axis=axes)

    largest = define.compute(grads.shape, best, name="pool_max")

    def which(*index):
        axes = axes_of_window()
        found = element(index, [i + r for i, r in zip(first(index), axes)]) == largest(*index)
        number = cast("int32", axes[0] * windows[1] + axes[1])
        return reduce.min(apply("select", found, number, cast("int32", windows[0] * windows[1] - 1)), axis=axes)

    places = define.compute(grads.shape, which, name="pool_place")
    zeros = define.compute(data.shape, lambda *_: cast(grads.dtype, 0), name="pool_zeros")

    def update(*index):
        number, at = cast("int64", places(*index)), first(index)
        place = list(index)
        for d, i, r, size in zip(dims, at, (number // windows[1], number % windows[1]), sizes):
            place[d] = apply("min", apply("max", i + r, 0), size - 1)
        return tuple(place), grads(*index)

    return scatter_add(zeros, grads.shape, update, name="pool_grad")


def _mean_gradient(grads, data, dims, windows, strides, around, count_pad):
    sizes = [data.shape[d] for d in dims]

    def body(*index):
        axes = [define.reduce_axis((0, w), name=f"r{d}") for d, w in enumerate(windows)]
        place, holds, count = list(index), [], 1
        for d, r, w, stride, (low, _), size in zip(dims, axes, windows, strides, around, sizes):
            offset = index[d] + low - r
            place[d] = offset // stride
            holds += [offset >= 0, apply("floormod", offset, stride) == 0, place[d] < grads.shape[d]]
            count = (w if count_pad else _inside(place[d], size, w, stride, 1, low)) * count
        share = grads(*place) / cast(grads.dtype, count)
        return reduce.sum(apply("if_then_else", reduce.all(*holds), share, cast(grads.dtype, 0)), axis=axes)

    return define.compute(data.shape, body, name="pool_grad")
