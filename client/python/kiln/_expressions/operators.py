"""The intrinsics of te and tir: one function for each row of the operator table, and what classic
programs call by other names."""

import math

import ml_dtypes

from .._base import dtypes
from .._base.error import invalid, public
from .._tables import OPERATORS
from . import arithmetic, expr
from .arithmetic import apply, as_expr, cast


def _function(name, arity, doc):
    def intrinsic(*operands):
        if len(operands) != arity:
            count = f"{arity} argument" + ("" if arity == 1 else "s")
            raise invalid("OPERAND_COUNT", f"{name} takes {count}, but got {len(operands)}")
        return apply(name, *operands)

    intrinsic.__name__ = intrinsic.__qualname__ = name
    intrinsic.__doc__ = f"{name}({', '.join('abc'[:arity])}): {doc}."
    return public(intrinsic)


# min and max are both reducers and operators, and stand in reduce.py.
_TABLE = {
    name: _function(name, arity, doc)
    for name, arity, _, _, doc in OPERATORS
    if name not in ("min", "max", "divide")
}
globals().update(_TABLE)

__all__ = sorted(_TABLE)


def _export(function):
    __all__.append(function.__name__)
    return public(function)


@_export
def const(value, dtype=None, span=None):
    """A constant; an int is int32 and a float float32 unless `dtype` says otherwise."""
    if isinstance(value, expr.Expr):
        return value if dtype is None else cast(dtype, value)
    if not arithmetic.is_number(value):
        raise invalid("CONSTANT", f"const takes a number, but got {type(value).__name__}")
    dtype = dtypes.dtype_name(dtype, "const") if dtype else arithmetic.natural_dtype(value)
    return arithmetic.constant(value, dtype)


@_export
def power(x, y, span=None):
    """The power x ** y."""
    return arithmetic.power(as_expr(x), y)


@_export
def div(a, b, span=None):
    """The quotient a / b; of integers rounded to zero, as C's."""
    a, b = arithmetic.matched(a, b)
    return apply("divide" if dtypes.is_float(a.dtype) else "truncdiv", a, b)


@_export
def divide(a, b, span=None):
    """The quotient a / b of floating numbers."""
    return arithmetic.divide(as_expr(a), b)


@_export
def indexdiv(a, b, span=None):
    """The quotient of two indices, rounded down."""
    return apply("floordiv", a, b)


@_export
def indexmod(a, b, span=None):
    """The remainder of two indices."""
    return apply("floormod", a, b)


@_export
def nearbyint(x, span=None):
    """Rounded to the nearest, halves to even."""
    return apply("round", x)


@_export
def if_then_else(cond, t, e, span=None):
    """Gives t where `cond` holds, else e; only the chosen one is computed, so it may guard a read."""
    return apply("if_then_else", cond, t, e)


@_export
def select(cond, t, e):
    """Gives t where `cond` holds, else e; both are computed."""
    return apply("select", cond, t, e)


@_export
def likely(cond, span=None):
    """A hint of classic programs; it changes nothing here."""
    return as_expr(cond)


@_export
def infinity(dtype="float32", span=None):
    """The infinity of a floating type."""
    return expr.FloatConstant(math.inf, dtypes.dtype_name(dtype, "infinity"))


@_export
def min_value(dtype, span=None):
    """The smallest finite value of a type."""
    return arithmetic.constant(bound(dtype, "min"), dtypes.dtype_name(dtype, "min_value"))


@_export
def max_value(dtype, span=None):
    """The largest finite value of a type."""
    return arithmetic.constant(bound(dtype, "max"), dtypes.dtype_name(dtype, "max_value"))


def bound(dtype, which):
    dtype = dtypes.dtype_name(dtype, which)
    if dtypes.is_float(dtype):
        return float(getattr(ml_dtypes.finfo(dtypes.NUMPY[dtype]), which))
    return dtypes.limits(dtype)[which == "max"]


@_export
def ldexp(x, y, span=None):
    """The product x * 2 ** y, for a whole number y."""
    x = as_expr(x)
    wide = "float64" if x.dtype == "float64" else "float32"
    if x.dtype in (wide, "float16", "bfloat16") or not dtypes.is_float(x.dtype):
        dtype = x.dtype if dtypes.is_float(x.dtype) else wide
        return apply("ldexp", cast(dtype, x), cast(dtype, y))
    # The whole numbers of a float8 are too few.
    return cast(x.dtype, apply("ldexp", cast(wide, x), cast(wide, y)))


@_export
def reinterpret(dtype, value, span=None):
    """The number of another type, as wide, with the same bits."""
    dtype = dtypes.dtype_name(dtype, "reinterpret")
    value = as_expr(value)
    if dtype == value.dtype:
        return value
    wide = [name for name in (dtype, value.dtype) if name == "bool"]
    if wide or dtypes.NUMPY[dtype].itemsize != dtypes.NUMPY[value.dtype].itemsize:
        raise invalid(
            "REINTERPRET", f"reinterpret: {value.dtype} and {dtype} are not types of one width"
        )
    unsigned = f"uint{8 * dtypes.NUMPY[dtype].itemsize}"
    bits = apply("bits_of", value) if dtypes.is_float(value.dtype) else cast(unsigned, value)
    return apply(f"{dtype}_of_bits", bits) if dtypes.is_float(dtype) else cast(dtype, bits)


@_export
def q_multiply_shift(x, y, q, s, span=None):
    """The product of two fixed-point numbers of `q` fractional bits, shifted left by `s` (right where it
    is negative) and rounded, halves up: round(x * y * 2 ** (s - q)) of int32, in int64 on the way."""
    for name, number in (("q", q), ("s", s)):
        if not isinstance(getattr(number, "value", number), int):
            raise invalid("OPERAND_TYPE", f"q_multiply_shift: {name} must be a number, but is {number}")
    q, s = (getattr(number, "value", number) for number in (q, s))
    product = cast("int64", x) * cast("int64", y)
    if s > 0:
        product = product << s
    shift = q - min(s, 0)
    if shift > 0:
        product = (product + (1 << (shift - 1))) >> shift
    return cast("int32", product)


@_export
def convert(value, span=None):
    """Numbers as constants, also inside lists; all else as it is."""
    if isinstance(value, (list, tuple)):
        return [convert(each) for each in value]
    return const(value) if arithmetic.is_number(value) else value


__all__ = sorted(set(__all__))
