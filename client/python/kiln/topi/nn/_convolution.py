"""Convolutions: padding is a stage in front, the rest a definition of compiler/operators."""

from ..._base.error import invalid, public
from ..._definitions import views
from ..._definitions.built_in import operator
from ..._expressions.text import shape_text, text
from .._common import constant_int, tensor
from .._product import as_type
from .._shape import squeeze, transpose
from .._short import sums_in_float32
from ._padding import padded, per_dimension, sides

__all__ = []


def _export(function):
    __all__.append(function.__name__)
    return public(function)


def _require_rank(value, ndim, where):
    if value.ndim != ndim:
        raise invalid(
            "ARGUMENT_RANK",
            f"{where}: {value.name} has shape {shape_text(value.shape)}, but must have {ndim} dimensions",
        )


def _operands(data, kernel, ndim, out_dtype, where):
    data, kernel = tensor(data, where), tensor(kernel, where)
    for each in (data, kernel):
        _require_rank(each, ndim, where)
    return as_type(data, kernel, out_dtype, where)


def _check_channels(data, d, kernel, k, where, groups=1):
    has, wants = data.shape[d], kernel.shape[k]
    if isinstance(has, int) and isinstance(wants, int) and has != wants * groups:
        of_groups = f" in each of {groups} groups" if groups != 1 else ""
        raise invalid(
            "CHANNELS",
            f"{where}: {data.name} has {has} channels, but the filter {kernel.name} is for {wants}"
            f"{of_groups}",
        )


def _window(data, dims, windows, stride, padding, dilation, where):
    """(padded data, strides, dilations) of windows over some dimensions."""
    count = len(dims)
    strides = per_dimension(stride, count, f"{where}: stride")
    dilations = per_dimension(dilation, count, f"{where}: dilation")
    for name, values in (("stride", strides), ("dilation", dilations)):
        if any(isinstance(value, int) and value < 1 for value in values):
            raise invalid("WINDOW", f"{where}: {name} is {tuple(values)}, but must be at least 1")
    reach = [(w - 1) * d + 1 for w, d in zip(windows, dilations)]
    sizes = [data.shape[d] for d in dims]
    around = sides(padding, reach, where)
    for size, window, (low, high) in zip(sizes, reach, around):
        total = size + low + high
        if isinstance(total, int) and isinstance(window, int) and total < window:
            raise invalid(
                "WINDOW",
                f"{where}: {data.name} of shape {shape_text(data.shape)} is {total} wide with its "
                f"padding, but the filter needs {text(window)}",
            )
    return padded(data, dims, around), strides, dilations


def _in_layout(value, layout, wanted, where, what):
    """The tensor with its dimensions in the order `wanted`; "" means that they are."""
    layout = layout or wanted
    if sorted(layout) != sorted(wanted):
        raise _layout_error(where, layout, f"the letters of {wanted} for {what} in any order")
    return views.permuted(tensor(value, where), [layout.index(letter) for letter in wanted])


def _layout_error(where, layout, known):
    return invalid("LAYOUT", f"{where}: unknown layout {layout!r}; known: {known}")


@_export
def conv1d(data, kernel, strides=1, padding="VALID", dilation=1, data_layout="NCW", kernel_layout="",
           out_dtype=None):  # fmt: skip
    """Over a line: data (n, c, w) and filters (m, c, s); data_layout "NWC" has data (n, w, c) and filters
    (s, c, m). `kernel_layout` has the filters in another order: "OIW", "WIO"."""
    if data_layout == "NWC":
        kernel = _in_layout(kernel, kernel_layout, "WIO", "topi.nn.conv1d", "filters")
        return conv1d_nwc(data, kernel, strides, padding, dilation, out_dtype)
    if data_layout != "NCW":
        raise _layout_error("topi.nn.conv1d", data_layout, "NCW, NWC")
    kernel = _in_layout(kernel, kernel_layout, "OIW", "topi.nn.conv1d", "filters")
    return conv1d_ncw(data, kernel, strides, padding, dilation, out_dtype)


@_export
@sums_in_float32
def conv1d_ncw(data, kernel, strides=1, padding="VALID", dilation=1, out_dtype=None):
    """As conv1d with data_layout "NCW"."""
    where = "topi.nn.conv1d_ncw"
    data, kernel = _operands(data, kernel, 3, out_dtype, where)
    _check_channels(data, 1, kernel, 1, where)
    data, (stride,), (dilation,) = _window(
        data, [2], [kernel.shape[2]], strides, padding, dilation, where
    )
    return operator("conv1d")(data, kernel, stride=stride, dilation=dilation, name="conv1d_ncw")


@_export
@sums_in_float32
def conv1d_nwc(data, kernel, strides=1, padding="VALID", dilation=1, out_dtype=None):
    """As conv1d with data_layout "NWC"."""
    where = "topi.nn.conv1d_nwc"
    data, kernel = _operands(data, kernel, 3, out_dtype, where)
    _check_channels(data, 2, kernel, 1, where)
    data, (stride,), (dilation,) = _window(
        data, [1], [kernel.shape[0]], strides, padding, dilation, where
    )
    # A line is an image of one row.
    result = operator("conv2d_nhwc")(
        views.expanded(data, [0, 2, 3], 4), views.expanded(kernel, [1, 2, 3], 4), stride_h=1,
        stride_w=stride, dilation_h=1, dilation_w=dilation, name="conv1d_nwc",
    )  # fmt: skip
    return squeeze(result, 1)


@_export
def conv2d(data, filter, strides=1, padding=0, dilation=1, data_layout="NCHW", kernel_layout="",
           out_dtype=None, groups=1, layout=None):  # fmt: skip
    """Over an image: as conv2d_nchw, conv2d_nhwc or conv2d_hwcn, by `data_layout`, which older programs call `layout`.
    `kernel_layout` has the filters in another order: "OIHW", "HWIO", "OHWI"."""
    where = "topi.nn.conv2d"
    data_layout = layout or data_layout
    if data_layout not in ("NCHW", "NHWC", "HWCN") or (data_layout == "HWCN" and groups != 1):
        raise _layout_error(where, data_layout, "NCHW, NHWC, HWCN; groups in the first two only")
    order = "OIHW" if data_layout == "NCHW" else "HWIO"
    kernel = _in_layout(filter, kernel_layout, order, where, "filters")
    window = (strides, padding, dilation)
    if groups != 1:
        grouped = group_conv2d_nchw if data_layout == "NCHW" else group_conv2d_nhwc
        return grouped(data, kernel, *window, groups, out_dtype)
    plain = {"NCHW": conv2d_nchw, "NHWC": conv2d_nhwc, "HWCN": conv2d_hwcn}[data_layout]
    return plain(data, kernel, *window, out_dtype)


def _images(name, data, kernel, channels, rows, window, out_dtype, groups=1):
    """The operands of a convolution of images, the data padded, and the numbers its definition takes.
    `channels` and `rows` say where these stand in the data and in the filters; `window` is stride,
    padding and dilation."""
    where = f"topi.nn.{name}"
    data, kernel = _operands(data, kernel, 4, out_dtype, where)
    _check_channels(data, channels[0], kernel, channels[1], where, groups)
    of_data, of_kernel = ([row, row + 1] for row in rows)
    sizes = [kernel.shape[d] for d in of_kernel]
    data, strides, dilations = _window(data, of_data, sizes, *window, where)
    names = ("stride_h", "stride_w", "dilation_h", "dilation_w")
    return data, kernel, dict(zip(names, (*strides, *dilations)))


@_export
@sums_in_float32
def conv2d_nchw(Input, Filter, stride=1, padding=0, dilation=1, out_dtype=None):
    """Data (n, c, h, w) and filters (m, c, r, s)."""
    data, kernel, numbers = _images(
        "conv2d_nchw", Input, Filter, (1, 1), (2, 2), (stride, padding, dilation), out_dtype
    )
    return operator("conv2d")(data, kernel, name="conv2d_nchw", **numbers)


@_export
@sums_in_float32
def conv2d_nhwc(Input, Filter, stride=1, padding=0, dilation=1, out_dtype=None):
    """Data (n, h, w, c) and filters (r, s, c, m)."""
    data, kernel, numbers = _images(
        "conv2d_nhwc", Input, Filter, (3, 2), (1, 0), (stride, padding, dilation), out_dtype
    )
    return operator("conv2d_nhwc")(data, kernel, name="conv2d_nhwc", **numbers)


@_export
def conv2d_winograd_nhwc(data, weight, strides=1, padding=0, dilation=1, out_dtype=None):
    """As conv2d_nhwc: by which algorithm is the compiler's to say."""
    return conv2d_nhwc(data, weight, strides, padding, dilation, out_dtype)


@_export
@sums_in_float32
def conv2d_hwcn(Input, Filter, stride=1, padding=0, dilation=1, out_dtype=None):
    """Data (h, w, c, n) and filters (r, s, c, m); the result is (h, w, m, n)."""
    data, kernel, numbers = _images(
        "conv2d_hwcn", Input, Filter, (2, 2), (0, 0), (stride, padding, dilation), out_dtype
    )
    result = operator("conv2d_nhwc")(views.permuted(data, [3, 0, 1, 2]), kernel, **numbers)
    return transpose(result, [1, 2, 3, 0])


@_export
@sums_in_float32
def group_conv2d_nchw(Input, Filter, stride=1, padding=0, dilation=1, groups=1, out_dtype=None):
    """conv2d_nchw in groups: filters (m, c / groups, r, s), each for the channels of its group."""
    where = "topi.nn.group_conv2d_nchw"
    data, kernel = _operands(Input, Filter, 4, out_dtype, where)
    groups = constant_int(groups, f"{where}: groups")
    outputs = kernel.shape[0]
    if groups < 1 or (isinstance(outputs, int) and outputs % groups):
        raise invalid(
            "GROUPS", f"{where}: {text(outputs)} filters cannot be divided into {groups} groups"
        )
    data, kernel, numbers = _images(
        "group_conv2d_nchw", data, kernel, (1, 1), (2, 2), (stride, padding, dilation), out_dtype, groups
    )
    return operator("grouped_conv2d")(data, kernel, groups=groups, name="group_conv2d_nchw", **numbers)


@_export
def group_conv2d_nhwc(Input, Filter, stride=1, padding=0, dilation=1, groups=1, out_dtype=None):
    """conv2d_nhwc in groups: filters (r, s, c / groups, m)."""
    data, kernel = tensor(Input, "topi.nn.group_conv2d_nhwc"), tensor(Filter, "topi.nn.group_conv2d_nhwc")
    for each in (data, kernel):
        _require_rank(each, 4, "topi.nn.group_conv2d_nhwc")
    result = group_conv2d_nchw(
        views.permuted(data, [0, 3, 1, 2]), views.permuted(kernel, [3, 2, 0, 1]), stride, padding, dilation, groups, out_dtype
    )
    return transpose(result, [0, 2, 3, 1])


@_export
@sums_in_float32
def depthwise_conv2d_nchw(Input, Filter, stride=1, padding=0, dilation=1, out_dtype=None):
    """Data (n, c, h, w), each channel with the q filters of its own: (c, q, r, s) gives c * q channels."""
    data, kernel, numbers = _images(
        "depthwise_conv2d_nchw", Input, Filter, (1, 0), (2, 2), (stride, padding, dilation), out_dtype
    )
    return operator("depthwise_conv2d")(data, kernel, name="depthwise_conv2d_nchw", **numbers)


@_export
@sums_in_float32
def depthwise_conv2d_nhwc(Input, Filter, stride=1, padding=0, dilation=1, out_dtype=None):
    """As depthwise_conv2d_nchw with data (n, h, w, c) and filters (r, s, c, q)."""
    data, kernel, numbers = _images(
        "depthwise_conv2d_nhwc", Input, Filter, (3, 2), (1, 0), (stride, padding, dilation), out_dtype
    )
    return operator("depthwise_conv2d_nhwc")(data, kernel, name="depthwise_conv2d_nhwc", **numbers)
