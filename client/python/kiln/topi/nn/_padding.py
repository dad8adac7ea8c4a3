"""Padding: constants around a tensor, and what the `padding=` of convolutions and pools means."""

from ..._base.error import invalid, public
from ..._definitions import define
from ..._expressions import arithmetic, reduce, size_math
from ..._expressions.arithmetic import apply, as_expr, cast
from .._common import as_size, tensor

_SIDES = (
    'an integer, (height, width), (top, left, bottom, right), "VALID" or "SAME"'
)


@public
def pad(data, pad_before, pad_after=None, pad_value=0.0, name="PadInput", attrs=None):
    """`pad_before[d]` times the value before dimension d and `pad_after[d]` (the same, by default) after."""
    data = tensor(data, "topi.nn.pad")
    after = pad_before if pad_after is None else pad_after
    before, after = list(pad_before), list(after)
    if len(before) != data.ndim or len(after) != data.ndim:
        raise invalid(
            "PAD",
            f"topi.nn.pad: {data.name} has {data.ndim} dimensions, but pad_before has {len(before)} "
            f"and pad_after {len(after)} sizes",
        )
    value = cast(data.dtype, pad_value if arithmetic.is_number(pad_value) else as_expr(pad_value))
    shape = [
        as_size(size_math.folded("add", size_math.folded("add", size, low), high))
        for size, low, high in zip(data.shape, before, after)
    ]

    def body(*index):
        inside, place = [], []
        for i, size, low, high in zip(index, data.shape, before, after):
            place.append(size_math.folded("subtract", i, low))
            if not _is_zero(low):
                inside.append(i >= low)
            if not _is_zero(high):
                inside.append(i < size_math.folded("add", size, low))
        element = data(*place)
        return apply("if_then_else", reduce.all(*inside), element, value) if inside else element

    return define.compute(shape, body, name=name)


def _is_zero(size):
    return isinstance(size, int) and size == 0


def padded(data, dims, sides, value=0.0):
    """The tensor with `sides` = [(before, after), ...] around these dimensions; itself if all are 0."""
    if all(_is_zero(side) for pair in sides for side in pair):
        return data
    before, after = [0] * data.ndim, [0] * data.ndim
    for d, (low, high) in zip(dims, sides):
        before[d], after[d] = low, high
    return pad(data, before, after, value, name="pad_temp")


@public
def dilate(data, strides, dilation_value=0.0, name="DilatedInput"):
    """`strides[d] - 1` times the value between neighbours along dimension d."""
    data = tensor(data, "topi.nn.dilate")
    if len(strides) != data.ndim:
        raise invalid(
            "DILATE",
            f"topi.nn.dilate: {data.name} has {data.ndim} dimensions, but there are {len(strides)} "
            "strides",
        )
    shape = [
        as_size(size_math.folded("add", size_math.folded("multiply", size_math.folded("subtract", size, 1), s), 1))
        for size, s in zip(data.shape, strides)
    ]

    def body(*index):
        place = [size_math.folded("floordiv", i, s) for i, s in zip(index, strides)]
        holds = [apply("floormod", i, s) == 0 for i, s in zip(index, strides) if s != 1]
        element = data(*place)
        value = cast(data.dtype, dilation_value)
        return apply("if_then_else", reduce.all(*holds), element, value) if holds else element

    return define.compute(shape, body, name=name)


def per_dimension(value, count, what):
    """One number for all dimensions, or one for each."""
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(values) == 1:
        values *= count
    if len(values) != count:
        raise invalid("DIMENSIONS", f"{what} is {value}, but must be one number or {count} of them")
    return values


def sides(padding, windows, what):
    """[(before, after), ...] from the `padding=` of an operator."""
    count = len(windows)
    if isinstance(padding, str):
        if padding.upper() == "VALID":
            return [(0, 0)] * count
        if padding.upper() == "SAME":
            # One less than the window whatever the stride is, the larger half in front, as topi has it.
            return [(window // 2, window - 1 - window // 2) for window in windows]
        raise invalid("PADDING", f'{what}: unknown padding "{padding}"; write {_SIDES}')
    values = list(padding) if isinstance(padding, (list, tuple)) else [padding] * count
    if len(values) == 1:
        values *= count
    if len(values) == count:
        return [(v, v) for v in values]
    if len(values) == 2 * count:
        return list(zip(values[:count], values[count:]))
    raise invalid("PADDING", f"{what}: padding {padding} does not fit {count} dimensions; write {_SIDES}")
