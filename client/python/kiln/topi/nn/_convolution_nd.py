"""Convolutions over any number of dimensions: three of them, and groups of lines.

The letters of a layout say where dimensions stand; `W`, `HW` and `DHW` are those that windows go over.
"""

from ..._base.error import invalid, public
from ..._definitions import define, views
from ..._definitions.built_in import operator
from ..._expressions import reduce
from ..._expressions.arithmetic import apply, cast
from ..._expressions.text import text
from .._common import constant_int, tensor
from .._shape import transpose
from .._short import sums_in_float32
from ._convolution import _check_channels, _in_layout, _layout_error, _operands, _window, conv2d_nchw
from ._convolution import depthwise_conv2d_nchw
from ._padding import per_dimension, sides

__all__ = []


def _export(function):
    __all__.append(function.__name__)
    return public(function)


def _groups_of(kernel_outputs, groups, where):
    groups = constant_int(groups, f"{where}: groups")
    if groups < 1 or (isinstance(kernel_outputs, int) and kernel_outputs % groups):
        raise invalid("GROUPS", f"{where}: {text(kernel_outputs)} filters cannot be divided into {groups} groups")
    return groups


@sums_in_float32
def _convolved(data, kernel, window, groups, out_dtype, name):
    """Data (n, c, *sizes) and filters (m, c / groups, *windows)."""
    where = f"topi.nn.{name}"
    ndim = tensor(data, where).ndim
    data, kernel = _operands(data, kernel, ndim, out_dtype, where)
    groups = _groups_of(kernel.shape[0], groups, where)
    _check_channels(data, 1, kernel, 1, where, groups)
    dims = list(range(2, ndim))
    data, strides, dilations = _window(data, dims, [kernel.shape[d] for d in dims], *window, where)
    outputs, channels = kernel.shape[0], kernel.shape[1]
    sizes = [
        (data.shape[d] - (kernel.shape[d] - 1) * dilation - 1) // stride + 1
        for d, stride, dilation in zip(dims, strides, dilations)
    ]

    def body(n, o, *place):
        c = define.reduce_axis((0, channels), name="rc")
        axes = [define.reduce_axis((0, kernel.shape[d]), name=f"r{d - 2}") for d in dims]
        channel = c if groups == 1 else o // (outputs // groups) * channels + c
        at = [i * stride + r * dilation for i, r, stride, dilation in zip(place, axes, strides, dilations)]
        return reduce.sum(data(n, channel, *at) * kernel(o, c, *axes), axis=[c, *axes])

    return define.compute([data.shape[0], outputs, *sizes], body, name=name, varargs_names=[f"i{d}" for d in range(len(sizes))])


def _in_order(result, layout, wanted):
    """From the order `wanted` back to the layout of the data."""
    return result if layout == wanted else transpose(result, [wanted.index(letter) for letter in layout])


@_export
def conv3d(data, filter, strides=1, padding=0, dilation=1, groups=1, data_layout="NCDHW", kernel_layout="", out_dtype=None):
    """Over a volume: data (n, c, d, h, w) and filters (m, c / groups, q, r, s); data_layout "NDHWC" has filters
    (q, r, s, c / groups, m)."""
    where = "topi.nn.conv3d"
    if data_layout not in ("NCDHW", "NDHWC"):
        raise _layout_error(where, data_layout, "NCDHW, NDHWC")
    order = kernel_layout or ("OIDHW" if data_layout == "NCDHW" else "DHWIO")
    given = _in_layout(data, data_layout, "NCDHW", where, "data"), _in_layout(filter, order, "OIDHW", where, "filters")
    result = _convolved(*given, (strides, padding, dilation), groups, out_dtype, "conv3d")
    return _in_order(result, data_layout, "NCDHW")


@_export
def conv3d_ncdhw(Input, Filter, stride=1, padding=0, dilation=1, groups=1, out_dtype=None):
    """As conv3d with data_layout "NCDHW"."""
    return conv3d(Input, Filter, stride, padding, dilation, groups, out_dtype=out_dtype)


@_export
def conv3d_ndhwc(Input, Filter, stride=1, padding=0, dilation=1, groups=1, out_dtype=None):
    """As conv3d with data_layout "NDHWC"."""
    return conv3d(Input, Filter, stride, padding, dilation, groups, "NDHWC", out_dtype=out_dtype)


@_export
def group_conv1d_ncw(data, kernel, strides=1, padding=0, dilation=1, groups=1, out_dtype=None):
    """conv1d_ncw in groups: filters (m, c / groups, s)."""
    return _convolved(data, kernel, (strides, padding, dilation), groups, out_dtype, "group_conv1d_ncw")


@_export
def group_conv1d_nwc(data, kernel, strides=1, padding=0, dilation=1, groups=1, out_dtype=None):
    """conv1d_nwc in groups: filters (s, c / groups, m)."""
    where = "topi.nn.group_conv1d_nwc"
    given = _in_layout(data, "NWC", "NCW", where, "data"), _in_layout(kernel, "WIO", "OIW", where, "filters")
    result = _convolved(*given, (strides, padding, dilation), groups, out_dtype, "group_conv1d_nwc")
    return _in_order(result, "NWC", "NCW")


@_export
def conv(inp, filt, stride, padding, dilation, groups, data_layout, kernel_layout="", out_dtype=None):
    """Over as many dimensions as the layouts have letters besides N and C (O and I of filters)."""
    where = "topi.nn.conv"
    spatial = "".join(letter for letter in data_layout if letter not in "NC")
    order = _in_layout(inp, data_layout, "NC" + spatial, where, "data")
    kernel = _in_layout(filt, kernel_layout, "OI" + spatial, where, "filters")
    result = _convolved(order, kernel, (stride, padding, dilation), groups, out_dtype, "conv")
    return _in_order(result, data_layout, "NC" + spatial)


# Channels in blocks: data (n, c / b, h, w, b).


def _joined(data, axis):
    """Blocks of channels as one dimension again."""
    block = data.shape[-1]
    shape = [*data.shape[:axis], data.shape[axis] * block, *data.shape[axis + 1 : -1]]
    return views.View(
        data.name, shape, data.dtype,
        lambda *index: data(*index[:axis], index[axis] // block, *index[axis + 1 :], index[axis] % block),
    )  # fmt: skip


def _in_blocks(result, block):
    shape = [result.shape[0], result.shape[1] // block, *result.shape[2:], block]
    return define.compute(shape, lambda n, c, y, x, b: result(n, c * block + b, y, x), name="T_blocks")


def _blocked(data, kernel, where):
    data, kernel = tensor(data, where), tensor(kernel, where)
    if data.ndim != 5 or kernel.ndim != 6:
        raise invalid("ARGUMENT_RANK", f"{where} takes data (n, c, h, w, b) and filters of 6 dimensions")
    return data, kernel


@_export
def conv2d_NCHWc(data, kernel, stride, padding, dilation, layout="NCHW", out_layout="NCHW", out_dtype=None):
    """conv2d_nchw of channels in blocks: data (n, c / b, h, w, b), filters (m / p, c / b, r, s, b, p), result
    (n, m / p, h, w, p)."""
    data, kernel = _blocked(data, kernel, "topi.nn.conv2d_NCHWc")
    inner, outer = kernel.shape[4], kernel.shape[5]
    plain = views.View(
        kernel.name, [kernel.shape[0] * outer, kernel.shape[1] * inner, *kernel.shape[2:4]], kernel.dtype,
        lambda o, c, r, s: kernel(o // outer, c // inner, r, s, c % inner, o % outer),
    )  # fmt: skip
    return _in_blocks(conv2d_nchw(_joined(data, 1), plain, stride, padding, dilation, out_dtype), outer)


@_export
def depthwise_conv2d_NCHWc(Input, Filter, stride, padding, dilation, layout="NCHW", out_layout="NCHW", out_dtype=None):
    """depthwise_conv2d_nchw of channels in blocks: data (n, c / b, h, w, b), filters (c / b, 1, r, s, 1, b)."""
    data, kernel = _blocked(Input, Filter, "topi.nn.depthwise_conv2d_NCHWc")
    block = kernel.shape[5]
    plain = views.View(
        kernel.name, [kernel.shape[0] * block, 1, *kernel.shape[2:4]], kernel.dtype,
        lambda c, q, r, s: kernel(c // block, 0, r, s, 0, c % block),
    )  # fmt: skip
    return _in_blocks(depthwise_conv2d_nchw(_joined(data, 1), plain, stride, padding, dilation, out_dtype), block)
