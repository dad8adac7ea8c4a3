"""Floats of 16 bits: what operators add up of them is float32, as numpy and torch have it, and rounded once at the end."""

import functools
import inspect

from .._base import dtypes
from .._definitions import define, views
from .._expressions.arithmetic import cast

_SHORT = ("float16", "bfloat16")


def _meeting(operands):
    """The type in which operands meet, where it has 16 bits; else nothing. What is no tensor is looked at later."""
    types = [getattr(each, "dtype", None) for each in operands]
    if not types or any(not isinstance(each, str) or each not in dtypes.KIND for each in types):
        return None
    dtype = functools.reduce(dtypes.promoted, types)
    return dtype if wide_of(dtype) != dtype else None


def wide_of(dtype):
    """The type of sums of it."""
    return "float32" if dtype in _SHORT else dtype


def rounded(result, dtype):
    """The tensor in a shorter type, by the same name; the tensor itself where it has that type."""
    if result.dtype == dtype:
        return result
    return define.compute(result.shape, lambda *i: cast(dtype, result(*i)), name=result.name)


def sums_in_float32(function):
    """For a function of two tensors that takes `out_dtype`: sums of floats of 16 bits are float32, where no other type is asked for."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # which says what is wrong
        dtype = None if bound.arguments.get("out_dtype") else _meeting(list(bound.arguments.values())[:2])
        if dtype is None:
            return function(*args, **kwargs)
        bound.arguments["out_dtype"] = "float32"
        return rounded(function(*bound.args, **bound.kwargs), dtype)

    return call


def computed_in_float32(function):
    """For a function of tensors: where all of them are floats of 16 bits, all of it is computed in float32."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        tensors = [each for each in (*args, *kwargs.values()) if hasattr(each, "dtype")]
        dtype = _meeting(tensors)
        if dtype is None:
            return function(*args, **kwargs)

        def wide(value):
            return views.cast(value, "float32") if hasattr(value, "dtype") else value

        return rounded(function(*map(wide, args), **{name: wide(value) for name, value in kwargs.items()}), dtype)

    return call
