"""What the operators share: checks of tensors and axes, and broadcasting."""

from .. import _define, _expr, _size, _view
from .._error import invalid
from .._instantiate import is_one, stretched
from .._tensor import Tensor
from .._text import shape_text


def tensor(value, where):
    """`value` if it is a tensor."""
    if isinstance(value, (Tensor, _view.View)):
        return value
    raise invalid("NOT_A_TENSOR", f"{where} takes a tensor, but got {type(value).__name__}")


def operand(value, where):
    """A tensor; a number or an expression stands for one without dimensions."""
    if isinstance(value, (Tensor, _view.View)):
        return value
    if _expr.is_number(value) or isinstance(value, _expr.Operand):
        return value
    return tensor(value, where)


def is_tensor(value):
    return isinstance(value, (Tensor, _view.View))


def name_of(value):
    return value.name if is_tensor(value) else str(value)


def normal_axis(data, axis, where, ndim=None):
    """One axis as a number from 0."""
    ndim = data.ndim if ndim is None else ndim
    try:
        number = _expr.as_integer(axis)
    except TypeError:
        raise invalid("AXIS_RANGE", f"{where}: axis {axis} is no integer") from None
    if not -ndim <= number < ndim:
        dimensions = f"{data.ndim} dimension" + ("" if data.ndim == 1 else "s")
        raise invalid(
            "AXIS_RANGE",
            f"{where}: axis {axis} is out of range; {data.name} has {dimensions}",
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


def broadcast_shape(values, where):
    """The shape that the tensors among `values` stretch to."""
    tensors = [value for value in values if is_tensor(value)]
    shape = stretched([t.shape for t in tensors])
    if shape is None:
        shapes = " and ".join(f"{t.name} of shape {shape_text(t.shape)}" for t in tensors)
        raise invalid("BROADCAST", f"{where}: {shapes} do not broadcast to one shape")
    return shape


def element(value, index, shape):
    """The element of a tensor at an index of the shape it is stretched to."""
    if not is_tensor(value):
        return value
    inner = index[len(shape) - value.ndim :]
    sizes = shape[len(shape) - value.ndim :]
    stretched_index = [
        0 if is_one(own) and not is_one(size) else i
        for i, own, size in zip(inner, value.shape, sizes)
    ]
    return value(*stretched_index)


def mapped(function, values, name, where):
    """function(*elements) for every position of the shape that the tensors stretch to."""
    if not any(is_tensor(value) for value in values):
        return function(*values)
    shape = broadcast_shape(values, where)

    def body(*index):
        return function(*(element(value, index, shape) for value in values))

    return _define.compute(shape, body, name=name)


def constant_int(value, where):
    """A Python int, where no size of the call will do."""
    try:
        return _expr.as_integer(value)
    except TypeError:
        raise invalid("CONSTANT", f"{where} must be an integer, but is {value}") from None


def as_size(value):
    """An int where it is known, else the expression."""
    if isinstance(value, _expr.IntegerConstant):
        return value.value
    return value


def same_size(a, b):
    return _size.equal(a, b)
