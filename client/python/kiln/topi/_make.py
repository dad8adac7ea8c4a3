"""Tensors of nothing but numbers."""

from .._base import dtypes
from .._base.error import invalid, public
from .._definitions import define
from .._expressions import arithmetic
from .._expressions.arithmetic import as_expr, cast
from ._common import tensor

__all__ = []


def _export(function):
    __all__.append(function.__name__)
    return public(function)


@_export
def full(shape, dtype, fill_value):
    """One value everywhere."""
    dtype = dtypes.dtype_name(dtype, "topi.full")
    return define.compute(shape, lambda *_: cast(dtype, fill_value), name="T_full")


@_export
def full_like(x, fill_value):
    """One value everywhere, in the shape and type of `x`."""
    x = tensor(x, "topi.full_like")
    return full(x.shape, x.dtype, fill_value)


@_export
def zeros(shape, dtype="float32"):
    """0 everywhere."""
    return full(shape, dtype, 0)


@_export
def ones(shape, dtype="float32"):
    """1 everywhere."""
    return full(shape, dtype, 1)


@_export
def zeros_like(x):
    """0 everywhere, in the shape and type of `x`."""
    return full_like(x, 0)


@_export
def ones_like(x):
    """1 everywhere, in the shape and type of `x`."""
    return full_like(x, 1)


@_export
def arange(start, stop=None, step=1, dtype="float32"):
    """start, start + step, ... below stop; arange(n) begins at 0."""
    if stop is None:
        start, stop = 0, start
    dtype = dtypes.dtype_name(dtype, "topi.arange")
    if all(map(arithmetic.is_number, (start, stop, step))):
        if step == 0:
            raise invalid("STEP", "topi.arange: the step must not be 0")
        count = max(0, -int(-(stop - start) // step))
    else:
        count = stop - start if step == 1 else (stop - start + (step - 1)) // step

    def body(i):
        first, step_by = cast(dtype, start), cast(dtype, step)
        return first + cast(dtype, i) * step_by

    return define.compute((_size_of(count),), body, name="T_arange")


def _size_of(count):
    return count if isinstance(count, int) else as_expr(count, "int64")
