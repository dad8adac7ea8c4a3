"""The operators of topi that the tutorials use."""

import operator

from . import _define, _reduce
from ._error import invalid, public
from ._expr import same as _same
from ._text import shape_text


def _normal_axes(data, axis):
    if axis is None:
        return list(range(data.ndim))
    axes = axis if isinstance(axis, (list, tuple)) else [axis]
    normal = []
    for each in map(operator.index, axes):
        if not -data.ndim <= each < data.ndim:
            raise invalid(
                "AXIS_RANGE",
                f"topi.sum: axis {each} is out of range; {data.name} has {data.ndim} dimensions",
            )
        normal.append(each % data.ndim)
    if len(set(normal)) != len(normal):
        raise invalid("AXIS_RANGE", f"topi.sum: axis {axis} names a dimension twice")
    return sorted(normal)


@public
def sum(data, axis=None, keepdims=False):
    """The sum over dimensions, all of them by default."""
    reduced = _normal_axes(data, axis)
    kept = [d for d in range(data.ndim) if d not in reduced]
    axes = {d: _define.reduce_axis((0, data.shape[d]), name=f"k{d}") for d in reduced}
    shape = [1 if d in axes else data.shape[d] for d in (range(data.ndim) if keepdims else kept)]

    def body(*index):
        outer = dict(zip(range(data.ndim) if keepdims else kept, index))
        read = data(*(axes[d] if d in axes else outer[d] for d in range(data.ndim)))
        return _reduce.sum(read, axis=list(axes.values()))

    return _define.compute(shape, body, name=f"{data.name}_red")


@public
def broadcast_to(data, shape):
    """The tensor with its dimensions of extent 1 repeated, and new ones in front, as numpy does."""
    shape = _define.as_shape(shape, "topi.broadcast_to")
    missing = len(shape) - data.ndim
    if missing < 0 or not all(map(_stretches, data.shape, shape[missing:])):
        raise invalid(
            "BROADCAST",
            f"topi.broadcast_to: {data.name} has shape {shape_text(data.shape)}, which does not "
            f"broadcast to {shape_text(shape)}",
        )

    def body(*index):
        inner = index[missing:]
        stretched = [0 if s == 1 else i for i, s in zip(inner, data.shape)]
        return data(*stretched)

    return _define.compute(shape, body, name="T_broadcast_to")


def _stretches(old, new):
    if isinstance(old, int) or isinstance(new, int):
        return old == 1 or (isinstance(old, int) and isinstance(new, int) and old == new)
    return _same(old, new)


__all__ = ["sum", "broadcast_to"]
