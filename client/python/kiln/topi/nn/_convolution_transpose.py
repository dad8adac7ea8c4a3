"""The adjoints of convolutions: what each output element of a convolution saw adds up."""

from ..._base.error import invalid, public
from ..._definitions import define
from ..._definitions.built_in import operator
from ..._expressions import reduce
from ..._expressions.arithmetic import apply, cast
from .._common import tensor
from .._short import sums_in_float32
from ._convolution import _check_channels, _operands
from ._convolution_nd import _groups_of
from ._padding import per_dimension, sides

__all__ = []


def _export(function):
    __all__.append(function.__name__)
    return public(function)


@sums_in_float32
def _transposed(data, kernel, strides, padding, output_padding, groups, out_dtype, name):
    """Data (n, c, *sizes) and filters (c, m / groups, *windows)."""
    where = f"topi.nn.{name}"
    ndim = tensor(data, where).ndim
    data, kernel = _operands(data, kernel, ndim, out_dtype, where)
    _check_channels(data, 1, kernel, 0, where)
    groups = _groups_of(kernel.shape[0], groups, where)
    count = ndim - 2
    strides = per_dimension(strides, count, f"{where}: strides")
    extra = per_dimension(output_padding, count, f"{where}: output_padding")
    if any(more >= stride for more, stride in zip(extra, strides) if more):
        raise invalid("PADDING", f"{where}: output_padding {tuple(extra)} must be less than the strides {tuple(strides)}")
    windows, given = kernel.shape[2:], data.shape[2:]
    around = sides(padding, windows, where)
    if count == 2 and groups == 1 and not any(extra) and not any(side for pair in around for side in pair):
        return operator("conv2d_transpose")(data, kernel, stride_h=strides[0], stride_w=strides[1], name=name)
    sizes = [
        (size - 1) * stride + window - low - high + more
        for size, stride, window, (low, high), more in zip(given, strides, windows, around, extra)
    ]
    phases = _Phases(strides, windows, sizes, [low for low, _ in around])
    shape = [data.shape[0], kernel.shape[1] * groups, *sizes]
    names = [f"i{d}" for d in range(count)]
    if not phases.strided:
        whole = _sum_of(data, kernel, phases, groups)
        return define.compute(shape, lambda n, o, *place: whole(n, o, *phases.of(place)[0]), name=name, varargs_names=names)
    sums = _in_phases(data, _filters_in_phases(kernel, phases), phases, groups, name)

    def body(n, o, *place):
        at, holds = phases.of(place)
        return _where(holds, sums(n, o, *at))

    return define.compute(shape, body, name=name, varargs_names=names)


class _Phases:
    """Elements of an adjoint whose places leave the same remainder by the stride are sums over the same part of the window:
    with an axis for the remainder these are convolutions without a stride (Shi et al. 2016, "Is the deconvolution layer the
    same as a convolutional layer?"). Element i is at remainder p and quotient q, i + low = q * stride + p; of dimensions
    without a stride there is no remainder."""

    def __init__(self, strides, windows, sizes, lows):
        self.strides, self.windows, self.lows = strides, windows, lows
        self.strided = [d for d, stride in enumerate(strides) if stride != 1]
        # Of a window shorter than the stride some remainders get nothing.
        self.remainders = [
            min(strides[d], windows[d]) if isinstance(windows[d], int) else strides[d] for d in self.strided
        ]
        self.rounds = [(window + stride - 1) // stride for window, stride in zip(windows, strides)]
        self.quotients = [(size + low - 1) // stride + 1 for size, low, stride in zip(sizes, lows, strides)]

    def of(self, place):
        """Remainders and quotients of a place, and what must hold for it to get anything."""
        values = [i + low for i, low in zip(place, self.lows)]
        remainders = [apply("floormod", values[d], self.strides[d]) for d in self.strided]
        quotients = [value // stride for value, stride in zip(values, self.strides)]
        short = zip(remainders, self.remainders, self.strided)
        holds = [p < reached for p, reached, d in short if reached is not self.strides[d]]
        return [*remainders, *quotients], holds

    def in_window(self, remainders, rounds):
        """Where in the windows the terms of a remainder are, round after round."""
        at = [round * stride for round, stride in zip(rounds, self.strides)]
        for d, remainder in zip(self.strided, remainders):
            at[d] = at[d] + remainder
        return at


def _where(holds, value):
    return apply("if_then_else", reduce.all(*holds), value, cast(value.dtype, 0)) if holds else value


def _filters_in_phases(kernel, phases):
    """Filters (c, m, *windows) as (c, m, *remainders, *rounds), 0 where a window ends before."""
    split = len(phases.strided)

    def body(c, m, *place):
        at = phases.in_window(place[:split], place[split:])
        return _where([at[d] < phases.windows[d] for d in phases.strided], kernel(c, m, *at))

    names = [f"p{d}" for d in phases.strided] + [f"u{d}" for d in range(len(phases.rounds))]
    shape = [*kernel.shape[:2], *phases.remainders, *phases.rounds]
    return define.compute(shape, body, name="filters", varargs_names=names)


def _sum_of(data, filters, phases, groups):
    """What an element (n, o, *remainders, *quotients) adds up."""
    channels, outputs, split = data.shape[1] // groups, filters.shape[1], len(phases.strided)

    def body(n, o, *place):
        c = define.reduce_axis((0, channels), name="rc")
        axes = [define.reduce_axis((0, rounds), name=f"r{d}") for d, rounds in enumerate(phases.rounds)]
        channel = c if groups == 1 else o // outputs * channels + c
        output = o if groups == 1 else o % outputs
        at = [q - r for q, r in zip(place[split:], axes)]
        inside = [part for i, size in zip(at, data.shape[2:]) for part in (i >= 0, i < size)]
        product = _where(inside, data(n, channel, *at)) * filters(channel, output, *place[:split], *axes)
        return reduce.sum(product, axis=[c, *axes])

    return body


def _in_phases(data, filters, phases, groups, name):
    """The sums (n, m, *remainders, *quotients): of each remainder a convolution with its part of the filters."""
    shape = [data.shape[0], filters.shape[1] * groups, *phases.remainders, *phases.quotients]
    names = [f"p{d}" for d in phases.strided] + [f"q{d}" for d in range(len(phases.quotients))]
    return define.compute(shape, _sum_of(data, filters, phases, groups), name=f"{name}_phases", varargs_names=names)


@_export
def conv1d_transpose_ncw(data, kernel, stride=1, padding=0, out_dtype=None, output_padding=0):
    """The adjoint of conv1d_ncw: data (n, c, w) and filters (c, m, s)."""
    return _transposed(data, kernel, stride, padding, output_padding, 1, out_dtype, "conv1d_transpose_ncw")


@_export
def group_conv1d_transpose_ncw(data, kernel, stride=1, padding=0, out_dtype=None, output_padding=0, groups=1):
    """The same in groups: filters (c, m / groups, s)."""
    return _transposed(data, kernel, stride, padding, output_padding, groups, out_dtype, "group_conv1d_transpose_ncw")


@_export
def conv2d_transpose_nchw(Input, Filter, strides=1, padding=0, out_dtype=None, output_padding=(0, 0)):
    """The adjoint of conv2d_nchw: data (n, c, h, w) and filters (c, m, r, s). `output_padding` rows and columns more at the
    end."""
    return _transposed(Input, Filter, strides, padding, output_padding, 1, out_dtype, "conv2d_transpose_nchw")


@_export
def group_conv2d_transpose_nchw(data, kernel, stride=1, padding=0, out_dtype=None, output_padding=(0, 0), groups=1):
    """The same in groups: filters (c, m / groups, r, s)."""
    return _transposed(data, kernel, stride, padding, output_padding, groups, out_dtype, "group_conv2d_transpose_nchw")


@_export
def conv3d_transpose_ncdhw(Input, Filter, strides=1, padding=0, out_dtype=None, output_padding=(0, 0, 0)):
    """The adjoint of conv3d_ncdhw: data (n, c, d, h, w) and filters (c, m, q, r, s)."""
    return _transposed(Input, Filter, strides, padding, output_padding, 1, out_dtype, "conv3d_transpose_ncdhw")
