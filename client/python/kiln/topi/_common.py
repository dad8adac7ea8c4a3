"""What the operators share: checks of tensors and axes, and broadcasting."""

from .._base.error import invalid
from .._definitions import define, views
from .._definitions.broadcast import is_tensor
from .._definitions.tensor import Tensor
from .._expressions import arithmetic, expr, size_math


def tensor(value, where):
    """`value` if it is a tensor."""
    if isinstance(value, (Tensor, views.View)):
        return value
    raise invalid("NOT_A_TENSOR", f"{where} takes a tensor, but got {type(value).__name__}")


def operand(value, where):
    """A tensor; a number or an expression stands for one without dimensions."""
    if isinstance(value, (Tensor, views.View)):
        return value
    if arithmetic.is_number(value) or isinstance(value, expr.Operand):
        return value
    return tensor(value, where)


def name_of(value):
    return value.name if is_tensor(value) else str(value)


def dimensions(count):
    """"1 dimension", "2 dimensions"."""
    return f"{count} dimension" + ("" if count == 1 else "s")


def normal_axis(data, axis, where, ndim=None):
    """One axis as a number from 0."""
    ndim = data.ndim if ndim is None else ndim
    try:
        number = arithmetic.as_integer(axis)
    except TypeError:
        raise invalid("AXIS_RANGE", f"{where}: axis {axis} is no integer") from None
    if not -ndim <= number < ndim:
        raise invalid(
            "AXIS_RANGE",
            f"{where}: axis {axis} is out of range; {data.name} has {dimensions(data.ndim)}",
        )
    return number % ndim


def normal_axes(data, axis, where):
    """Axes as sorted numbers from 0; None is all of them."""
    if axis is None:
        return list(range(data.ndim))
    axes = list(axis) if isinstance(axis, (list, tuple)) else [axis]
    normal = [normal_axis(data, each, where) for each in axes]
    if len(set(normal)) != len(normal):
        raise invalid("AXIS_RANGE", f"{where}: axis {axis} names a dimension twice")
    return sorted(normal)


def constant_int(value, where):
    """A Python int, where no size of the call will do."""
    try:
        return arithmetic.as_integer(value)
    except TypeError:
        raise invalid("CONSTANT", f"{where} must be an integer, but is {value}") from None


def as_size(value):
    """An int where it is known, else the expression."""
    if isinstance(value, expr.IntegerConstant):
        return value.value
    return value


def is_empty(shape):
    """Whether a dimension is known to be 0: then there is no element to compute."""
    return any(isinstance(size, int) and size == 0 for size in shape)


def empty(shape, dtype, name):
    """A tensor without elements."""
    return define.compute(shape, lambda *_: arithmetic.cast(dtype, 0), name=name)


def same_size(a, b):
    return size_math.equal(a, b)
