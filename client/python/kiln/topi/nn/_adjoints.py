"""What is left of classic topi.nn: gradients of depthwise convolutions, correlations of two images, a queue of the last
values, and channels taken out of their blocks."""

from ..._base.error import invalid, public
from ..._definitions import define
from ..._expressions import reduce
from ..._expressions.arithmetic import apply, cast
from ..._expressions.text import shape_text
from .._common import constant_int, normal_axis, tensor
from ._padding import dilate, padded, per_dimension, sides

__all__ = []


def _export(function):
    __all__.append(function.__name__)
    return public(function)


@_export
def depthwise_conv2d_backward_input_nhwc(Filter, Out_grad, oshape, ishape, stride, padding):
    """The gradient of depthwise_conv2d_nhwc by its data, which has the shape `ishape`: filters (r, s, c, q), and the
    gradient of the result (n, h, w, c * q) of shape `oshape`."""
    where = "topi.nn.depthwise_conv2d_backward_input_nhwc"
    kernel, gradient = tensor(Filter, where), tensor(Out_grad, where)
    rows, columns, _, multiplier = kernel.shape
    strides = per_dimension(stride, 2, f"{where}: stride")
    shape = define.as_shape(ishape, where)
    spread = dilate(gradient, [1, *strides, 1], name="dilated_out_grad")
    around = []
    for window, size, has, (low, _) in zip((rows, columns), shape[1:3], spread.shape[1:3], sides(padding, (rows, columns), where)):
        before = window - 1 - low
        around.append((before, size + window - 1 - before - has))
    spread = padded(spread, [1, 2], around)

    def body(b, h, w, c):
        dh, dw = define.reduce_axis((0, rows), name="dh"), define.reduce_axis((0, columns), name="dw")
        q = define.reduce_axis((0, multiplier), name="dc")
        weight = kernel(rows - 1 - dh, columns - 1 - dw, c, q)
        return reduce.sum(spread(b, h + dh, w + dw, c * multiplier + q) * weight, axis=[dh, dw, q])

    return define.compute(shape, body, name="depthwise_conv2d_backward_input")


@_export
def depthwise_conv2d_backward_weight_nhwc(Input, Out_grad, oshape, fshape, stride, padding):
    """The gradient of depthwise_conv2d_nhwc by its filters, which have the shape `fshape`."""
    where = "topi.nn.depthwise_conv2d_backward_weight_nhwc"
    data, gradient = tensor(Input, where), tensor(Out_grad, where)
    shape = define.as_shape(fshape, where)
    strides = per_dimension(stride, 2, f"{where}: stride")
    batch, height, width = gradient.shape[:3]
    data = padded(data, [1, 2], sides(padding, shape[:2], where))

    def body(r, s, c, q):
        b = define.reduce_axis((0, batch), name="db")
        h, w = define.reduce_axis((0, height), name="dh"), define.reduce_axis((0, width), name="dw")
        seen = data(b, r + h * strides[0], s + w * strides[1], c)
        return reduce.sum(gradient(b, h, w, c * shape[3] + q) * seen, axis=[b, h, w])

    return define.compute(shape, body, name="depthwise_conv2d_backward_weight")


@_export
def correlation_nchw(data1, data2, kernel_size, max_displacement, stride1, stride2, padding, is_multiply):
    """How alike windows of two images (n, c, h, w) are, for each place in the first and each displacement in the second: the
    mean of products, or of absolute differences."""
    where = "topi.nn.correlation_nchw"
    a, b = tensor(data1, where), tensor(data2, where)
    size = constant_int(kernel_size, f"{where}: kernel_size")
    if a.ndim != 4 or a.shape != b.shape or size < 1 or size % 2 == 0:
        raise invalid(
            "CORRELATION",
            f"{where} takes two tensors of one shape (n, c, h, w) and an odd kernel_size, but got {shape_text(a.shape)}, "
            f"{shape_text(b.shape)} and {size}",
        )
    around = sides(padding, (size, size), where)
    a, b = padded(a, [2, 3], around), padded(b, [2, 3], around)
    border = max_displacement + (size - 1) // 2
    radius = max_displacement // stride2
    across = 2 * radius + 1
    places = [(extent - 2 * border + stride1 - 1) // stride1 for extent in a.shape[2:]]
    channels = a.shape[1]

    def body(n, q, i, j):
        c = define.reduce_axis((0, channels), name="rc")
        r, s = define.reduce_axis((0, size), name="ry"), define.reduce_axis((0, size), name="rx")
        y, x = i * stride1 + max_displacement + r, j * stride1 + max_displacement + s
        first = a(n, c, y, x)
        second = b(n, c, y + (q // across - radius) * stride2, x + (q % across - radius) * stride2)
        alike = first * second if is_multiply else apply("abs", first - second)
        return reduce.sum(alike, axis=[c, r, s]) / cast(a.dtype, size * size * channels)

    return define.compute((a.shape[0], across * across, *places), body, name="correlation_nchw")


@_export
def fifo_buffer(data, buffer, axis):
    """The buffer after the data came in at its end along `axis`, and as much left it at its beginning."""
    where = "topi.nn.fifo_buffer"
    data, buffer = tensor(data, where), tensor(buffer, where)
    d = normal_axis(buffer, axis, where)
    if data.ndim != buffer.ndim:
        raise invalid(
            "ARGUMENT_RANK",
            f"{where}: {data.name} has shape {shape_text(data.shape)}, but must have as many dimensions as {buffer.name} of "
            f"shape {shape_text(buffer.shape)}",
        )
    new, kept = data.shape[d], buffer.shape[d] - data.shape[d]

    def body(*index):
        at = lambda i: (*index[:d], i, *index[d + 1 :])  # noqa: E731
        return apply("if_then_else", index[d] < kept, buffer(*at(index[d] + new)), data(*at(index[d] - kept)))

    return define.compute(buffer.shape, body, name="new_buffer")


@_export
def scale_shift_nchwc(Input, Scale, Shift):
    """Input * Scale + Shift of channels in blocks: Input (n, c / b, h, w, b), the others (c / b, b)."""
    data, scale, shift = (tensor(each, "topi.nn.scale_shift_nchwc") for each in (Input, Scale, Shift))
    return define.compute(
        data.shape, lambda n, c, h, w, b: data(n, c, h, w, b) * scale(c, b) + shift(c, b), name="ScaleShift"
    )


@_export
def unpack_NCHWc_to_nchw(packed_out, out_dtype):  # noqa: N802
    """Channels in blocks, (n, c / b, h, w, b), as (n, c, h, w), in another type."""
    packed = tensor(packed_out, "topi.nn.unpack_NCHWc_to_nchw")
    n, chunks, h, w, block = packed.shape
    return define.compute(
        (n, chunks * block, h, w), lambda n, c, h, w: cast(out_dtype, packed(n, c // block, h, w, c % block)), name="output_unpack"
    )
