"""Ranges of integers."""

from . import _expr
from ._define import size_expression
from ._error import invalid, public

class Range(_expr.Range):
    """begin, begin + 1, ... end - 1; with one argument 0 ... begin - 1."""

    __slots__ = ()

    @public
    def __init__(self, begin, end=None, span=None):
        first, last = (0, begin) if end is None else (begin, end)
        minimum, end = size_expression("Range", first), size_expression("Range", last)
        super().__init__(minimum, _expr.apply("subtract", end, minimum))
        if isinstance(self.extent, _expr.IntegerConstant) and self.extent.value < 0:
            raise invalid("RANGE", f"the range ({first}, {last}) ends before it begins")

    @staticmethod
    @public
    def from_min_extent(min_value, extent, span=None):
        """The range of `extent` numbers from `min_value`."""
        minimum, extent = (size_expression("Range", v) for v in (min_value, extent))
        return Range(minimum, _expr.apply("add", minimum, extent))
