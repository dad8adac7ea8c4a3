"""Sizes by their names."""

from .._base.error import InvalidArgument
from .._expressions.arithmetic import is_integer, whole


def size_value(called_by, name, value, example="f(n=1024)"):
    """The value of a size that is given by name, as in `example`."""
    value = whole(value)
    if not is_integer(value) or isinstance(value, bool):
        raise InvalidArgument(
            f"{called_by}: {name} must be an integer, but is {value!r}; sizes are given by their names, as in {example}",
            "SIZE",
        )
    if not -(2**63) <= value < 2**63:
        raise InvalidArgument(f"{called_by}: {name} is {value}, which is past the range of int64", "SIZE")
    return int(value)


def sizes_by_name(sizes, called_by):
    """Of a dict by names or by vars."""
    named = ((getattr(size, "name", size), value) for size, value in (sizes or {}).items())
    return {name: size_value(called_by, name, value, 'sizes={"n": 1024}') for name, value in named}
