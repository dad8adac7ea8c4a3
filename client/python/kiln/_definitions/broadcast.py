"""Broadcasting: tensors stretched to one shape, as numpy does, and functions mapped over their elements."""

from .._base.error import invalid
from .._expressions import size_math
from .._expressions.text import shape_text
from . import define, views
from .tensor import Tensor


def is_one(extent):
    return isinstance(extent, int) and extent == 1


def stretched(shapes):
    """The shape that all of `shapes` stretch to, as numpy broadcasts; None where there is none."""
    result = []
    for d in range(1, max(map(len, shapes), default=0) + 1):
        sizes = [shape[-d] for shape in shapes if len(shape) >= d]
        wide = [size for size in sizes if not is_one(size)]
        if any(not size_math.equal(size, wide[0]) for size in wide[1:]):
            return None
        result.insert(0, wide[0] if wide else 1)
    return tuple(result)


def is_tensor(value):
    return isinstance(value, (Tensor, views.View))


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

    return define.compute(shape, body, name=name)
