"""Element types: their names, numbers on the wire, and numpy's view of them."""

import math
import re

import ml_dtypes
import numpy as np

from .._tables import DTYPES
from .error import invalid

NUMBER = {name: number for name, number, _, _ in DTYPES}
NAME = {number: name for name, number, _, _ in DTYPES}
KIND = {name: kind for name, _, kind, _ in DTYPES}
BITS = {name: bits for name, _, _, bits in DTYPES}

_ML = {name: np.dtype(getattr(ml_dtypes, name)) for name in NUMBER if hasattr(ml_dtypes, name)}
NUMPY = {name: _ML.get(name) or np.dtype(name) for name in NUMBER}
_VECTOR = re.compile(r"([a-z]+\d+)x(\d+)")
_OF_NUMPY = {dtype: name for name, dtype in NUMPY.items()}


def is_float(dtype):
    return KIND[dtype] == "float"


def is_int(dtype):
    return KIND[dtype] in ("int", "uint")


def is_vector(dtype):
    """Whether it is written as several lanes of a known type: float32x4."""
    lanes = _VECTOR.fullmatch(str(dtype))
    return lanes is not None and lanes[1] in NUMBER


def dtype_name(dtype, what):
    """The name of a dtype given as a string, a numpy dtype or a type. `what` is for the message."""
    if isinstance(dtype, str) and dtype in NUMBER:
        return dtype
    try:
        return _OF_NUMPY[np.dtype(dtype)]
    except (TypeError, KeyError):
        if is_vector(dtype):
            lanes = _VECTOR.fullmatch(str(dtype))
            raise invalid(
                "DTYPE",
                f"{what}: {dtype} is a vector type, which Kiln has not; write {lanes[1]} and a last dimension of {lanes[2]}, "
                "whose loop is vectorized",
            ) from None
        known = ", ".join(NUMBER)
        raise invalid("DTYPE", f"{what}: unknown dtype {dtype}; known: {known}") from None


def limits(dtype):
    """(smallest, largest) value of an integer type."""
    if KIND[dtype] == "bool":
        return 0, 1
    bits = BITS[dtype]
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if KIND[dtype] == "int" else (0, (1 << bits) - 1)


def is_past_range(value, dtype):
    """Whether the number would become an infinity, or nan, in a floating type."""
    try:
        value = float(value)
    except OverflowError:
        return True
    if abs(value) <= 448 or not math.isfinite(value):  # what float8_e4m3fn has
        return False
    with np.errstate(over="ignore"):
        return not np.isfinite(NUMPY[dtype].type(value))


def promoted(a, b):
    """The type in which values of `a` and `b` meet."""
    if a == b:
        return a
    if KIND[a] == "bool" or KIND[b] == "bool":
        return b if KIND[a] == "bool" else a
    if is_float(a) != is_float(b):
        return a if is_float(a) else b
    if is_float(a):
        if BITS[a] != BITS[b]:
            return a if BITS[a] > BITS[b] else b
        return "float32"  # float16 and bfloat16, or the two float8 types
    if KIND[a] == KIND[b]:
        return a if BITS[a] > BITS[b] else b
    signed, unsigned = (a, b) if KIND[a] == "int" else (b, a)
    bits = max(BITS[signed], min(2 * BITS[unsigned], 64))
    return f"int{bits}"
