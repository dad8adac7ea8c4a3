"""Ranges of integers."""

from .._base import dtypes
from .._base.error import invalid, public
from . import arithmetic, expr, size_math


def size_expression(what, value):
    """A bound of a range, as an int64 expression."""
    value = arithmetic.as_expr(value, "int64")
    if not dtypes.is_int(value.dtype):
        raise invalid("REDUCE_AXIS", f"{what}: the bound {value} is {value.dtype}, not an integer")
    return arithmetic.cast("int64", value)


class Range(expr.Range):
    """begin, begin + 1, ... end - 1; with one argument 0 ... begin - 1."""

    __slots__ = ()

    @public
    def __init__(self, begin, end=None, span=None):
        first, last = (0, begin) if end is None else (begin, end)
        minimum, end = size_expression("Range", first), size_expression("Range", last)
        super().__init__(minimum, size_math.folded("subtract", end, minimum))
        if isinstance(self.extent, expr.IntegerConstant) and self.extent.value < 0:
            raise invalid("RANGE", f"the range ({first}, {last}) ends before it begins")

    @staticmethod
    @public
    def from_min_extent(min_value, extent, span=None):
        """The range of `extent` numbers from `min_value`."""
        minimum, extent = (size_expression("Range", v) for v in (min_value, extent))
        return Range(minimum, arithmetic.apply("add", minimum, extent))
