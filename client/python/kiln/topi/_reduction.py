"""Over whole dimensions: `axis` is one of them, several, or None for all."""

from .._base import dtypes
from .._base.error import invalid, public
from .._definitions import define, views
from .._definitions.built_in import operator
from .._expressions import arithmetic, reduce, size_math
from .._expressions.arithmetic import apply, as_expr, cast
from ._common import empty, is_empty, normal_axes, normal_axis, tensor
from ._shape import reshape
from ._short import computed_in_float32

__all__ = []


def _reduced(data, axis, keepdims, name, body):
    """`body(read, axes, kept)` with the reduction axes in place of the dimensions reduced."""
    where = f"topi.{name}"
    data = tensor(data, where)
    reduced = normal_axes(data, axis, where)
    kept = [d for d in range(data.ndim) if d not in reduced]
    stays = list(range(data.ndim)) if keepdims else kept
    shape = [data.shape[d] if d in kept else 1 for d in stays]

    def compute(*index):
        outer = dict(zip(stays, index))
        axes = {d: define.reduce_axis((0, data.shape[d]), name=f"k{d}") for d in reduced}
        place = [axes.get(d, outer.get(d)) for d in range(data.ndim)]
        return body(data(*place), list(axes.values()), outer)

    return define.compute(shape, compute, name=f"{data.name}_{'red' if name == 'sum' else name}")


def _condition(value):
    return value if value.dtype == "bool" else value != 0


def _export(name, doc, prepare=as_expr):
    def reduction(data, axis=None, keepdims=False):
        return _reduced(
            data, axis, keepdims, name,
            lambda read, axes, _: getattr(reduce, name)(prepare(read), axis=axes),
        )  # fmt: skip

    if name == "sum":
        reduction = computed_in_float32(reduction)
    reduction.__name__ = reduction.__qualname__ = name
    reduction.__doc__ = f"{doc} over dimensions, all of them by default."
    globals()[name] = public(reduction)
    __all__.append(name)


_export("sum", "The sum")
_export("prod", "The product")
_export("min", "The smallest; nan when any is,")
_export("max", "The largest; nan when any is,")
_export("all", "Whether all hold", _condition)
_export("any", "Whether any holds", _condition)


def _position(name, extremum):
    def reduction(data, axis=None, keepdims=False, select_last_index=False):
        where = f"topi.{name}"
        data = tensor(data, where)
        axes = normal_axes(data, axis, where)
        best = _reduced(
            data, axes, True, extremum, lambda read, over, _: getattr(reduce, extremum)(read, axis=over)
        )  # fmt: skip
        return _reduced(
            data, axes, keepdims, name,
            lambda read, over, outer: _first(data, best, read, over, axes, outer, select_last_index),
        )  # fmt: skip

    reduction.__name__ = reduction.__qualname__ = name
    reduction.__doc__ = (
        f"Where the {extremum} stands, as int32; the first place of several and the first nan, as "
        "numpy has it. Over several dimensions the place counts row by row."
    )
    globals()[name] = public(reduction)
    __all__.append(name)


def _first(data, best, read, over, axes, outer, last):
    """The first (or last) place where the element is the best one."""
    place = as_expr(0, "int64")
    for axis, d in zip(over, axes):
        row = size_math.folded("multiply", place, data.shape[d])
        place = size_math.folded("add", row, axis)
    top = best(*(0 if d in axes else outer[d] for d in range(data.ndim)))
    found = read == top
    if dtypes.is_float(read.dtype):
        found = apply("logical_or", found, apply("isnan", read))
    place = arithmetic.cast("int32", place)
    if last:
        return reduce.max(apply("select", found, place, -1), axis=over)
    none = arithmetic.constant((1 << 31) - 1, "int32")
    return reduce.min(apply("select", found, place, none), axis=over)


def _mean_of(data, axes, keepdims):
    total = globals()["sum"](data, axes, keepdims)
    count = as_expr(size_math.product(data.shape[d] for d in axes), "int64")
    return define.compute(total.shape, lambda *index: total(*index) / cast(total.dtype, count), name=f"{data.name}_mean")


def _real(data, where):
    data = tensor(data, where)
    return data if dtypes.is_float(data.dtype) else views.cast(data, "float32")


@public
def mean(data, axis=None, keepdims=False):
    """The mean over dimensions, all of them by default; of integers in float32."""
    data = _real(data, "topi.mean")
    return _mean_of(data, normal_axes(data, axis, "topi.mean"), keepdims)


@public
def variance(data, axis=None, keepdims=False):
    """The mean of squared distances from the mean, over dimensions, all of them by default."""
    data = _real(data, "topi.variance")
    axes = normal_axes(data, axis, "topi.variance")
    middle = _mean_of(data, axes, True)
    return variance_around(
        data, lambda index: middle(*(0 if d in axes else i for d, i in enumerate(index))), axes, keepdims
    )


def variance_around(data, middle, axes, keepdims):
    """The mean of squared distances from `middle`, which gets the index of an element."""

    def square(*index):
        distance = data(*index) - middle(index)
        return distance * distance

    return _mean_of(define.compute(data.shape, square, name=f"{data.name}_distance"), axes, keepdims)


var = variance


@public
def std(data, axis=None, keepdims=False):
    """The square root of the variance."""
    squared = variance(data, axis, keepdims)
    return define.compute(squared.shape, lambda *index: apply("sqrt", squared(*index)), name="T_std")


_position("argmax", "max")
_position("argmin", "min")


@public
def collapse_sum(data, target_shape):
    """The adjoint of broadcast_to: sums the dimensions that were stretched."""
    where = "topi.collapse_sum"
    data = tensor(data, where)
    target = define.as_shape(target_shape, where)
    extra = data.ndim - len(target)
    if extra < 0:
        raise invalid(
            "BROADCAST", f"{where}: {data.name} has fewer dimensions than the shape wanted"
        )
    summed = list(range(extra))
    summed += [extra + d for d, size in enumerate(target) if size == 1 and data.shape[extra + d] != 1]

    def body(*index):
        axes = {d: define.reduce_axis((0, data.shape[d]), name=f"k{d}") for d in summed}
        place = [axes[d] if d in axes else index[d - extra] for d in range(data.ndim)]
        return reduce.sum(data(*place), axis=list(axes.values()))

    return define.compute(target, body, name=f"{data.name}_red")


@public
def cumsum(data, axis=None, dtype=None, exclusive=None):
    """The running sum along a dimension; without `axis` of the tensor as one row. `exclusive`: without
    the element itself."""
    return _running("cumsum", data, axis, dtype, exclusive)


@public
def cumprod(data, axis=None, dtype=None, exclusive=None):
    """The running product along a dimension, as cumsum."""
    return _running("cumprod", data, axis, dtype, exclusive)


def _running(name, data, axis, dtype, exclusive):
    where = f"topi.{name}"
    data = tensor(data, where)
    if axis is None:
        data = reshape(data, (-1,)) if data.ndim != 1 else data
        axis = 0
    axis = normal_axis(data, axis, where)
    if dtype is not None:
        data = views.cast(data, dtypes.dtype_name(dtype, where))
    if is_empty(data.shape):
        return empty(data.shape, data.dtype, f"T_{name}")
    if not exclusive:
        return operator(name)(data, axis=axis, name=f"T_{name}")
    neutral = 0 if name == "cumsum" else 1

    def before(*index):
        place = list(index)
        place[axis] = apply("max", place[axis] - 1, 0)
        return apply("select", index[axis] > 0, data(*place), arithmetic.constant(neutral, data.dtype))

    shifted = views.View(data.name, data.shape, data.dtype, before)
    return operator(name)(shifted, axis=axis, name=f"T_{name}")


__all__ += ["collapse_sum", "cumprod", "cumsum", "mean", "std", "var", "variance"]
