"""One row for each use of an operator of topi.nn, against references written out in numpy."""

import math

import numpy as np
from topi_cases import CASES as _ELEMENTWISE
from topi_cases import case as _case
from topi_cases import erf, real, sigmoid, whole

from kiln.topi import nn

CASES = []


def case(*row, **tolerances):
    _case(*row, **tolerances)
    CASES.append(_ELEMENTWISE.pop())


def windows(x, shape, strides, dilations, axes):
    """The windows of dimensions `axes`: these count windows, new last dimensions the places in one."""
    reach = [(s - 1) * d + 1 for s, d in zip(shape, dilations)]
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=axes)
    index = [slice(None)] * view.ndim
    for place, (axis, stride, dilation) in enumerate(zip(axes, strides, dilations)):
        index[axis] = slice(None, None, stride)
        index[x.ndim + place] = slice(None, None, dilation)
    return view[tuple(index)]


def pad(x, sides, value=0):
    """Sides of the last dimensions."""
    return np.pad(x, [(0, 0)] * (x.ndim - len(sides)) + list(sides), constant_values=value)


def conv2d(x, f, stride=(1, 1), sides=((0, 0), (0, 0)), dilation=(1, 1), groups=1):
    """NCHW, in double precision."""
    x, f = pad(x.astype("float64"), sides), f.astype("float64")
    parts = windows(x, f.shape[2:], stride, dilation, (2, 3))
    n, m = len(x), len(f) // groups
    c = f.shape[1]
    results = [
        np.einsum("nchwrs,mcrs->nmhw", parts[:, g * c : (g + 1) * c], f[g * m : (g + 1) * m])
        for g in range(groups)
    ]
    return np.concatenate(results, 1).reshape(n, len(f), *parts.shape[2:4])


def to_nchw(x):
    return x.transpose(0, 3, 1, 2)


def to_nhwc(x):
    return x.transpose(0, 2, 3, 1)


# Activations.

X = real(3, 4, 5)
case("nn.relu", nn.relu, lambda x: np.maximum(x, 0), X)
case("nn.relu of integers", nn.relu, lambda x: np.maximum(x, 0), whole(9))
case("nn.relu in float64", nn.relu, lambda x: np.maximum(x, 0), real(9, dtype="float64"))
case("nn.relu_gradient", nn.relu_gradient, lambda x, g: np.where(x > 0, g, 0), X, real(3, 4, 5))
case("nn.leaky_relu", lambda x: nn.leaky_relu(x, 0.1), lambda x: np.where(x > 0, x, np.float32(0.1) * x), X)
case("nn.prelu", nn.prelu, lambda x, a: np.where(x > 0, x, a[:, None] * x), X, real(4))
case("nn.elu", lambda x: nn.elu(x, 0.5), lambda x: np.where(x > 0, x, 0.5 * (np.exp(x) - 1)), X)
case("nn.gelu", nn.gelu, lambda x: x * (0.5 + 0.5 * erf(x / math.sqrt(2))), X)
case("nn.silu", nn.silu, lambda x: x * sigmoid(x), X)
case("nn.softplus", nn.softplus, lambda x: np.log1p(np.exp(x)), X)
case("nn.softplus of large numbers", nn.softplus, lambda x: np.maximum(x, 0), real(2) * 1e3 + 500)
case("nn.hard_sigmoid", nn.hard_sigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1), real(9, low=-5, high=5))


def softmax(x, axis):
    e = np.exp(x.astype("float64") - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


for axis in (-1, 0, 1):
    case(f"nn.softmax over {axis}", lambda x, a=axis: nn.softmax(x, a), lambda x, a=axis: softmax(x, a), X)
    case(f"nn.log_softmax over {axis}", lambda x, a=axis: nn.log_softmax(x, a),
         lambda x, a=axis: np.log(softmax(x, a)), X)
case("nn.softmax of a row", nn.softmax, lambda x: softmax(x, 0), real(9))
case("nn.softmax of large numbers", nn.softmax, lambda x: softmax(x, 1), real(2, 5) * 1e4)
case("nn.fast_softmax", nn.fast_softmax, lambda x: softmax(x, 1), real(2, 5))

# Layers and losses.

case("nn.matmul", nn.matmul, np.matmul, real(4, 6), real(6, 3), atol=1e-5)
case("nn.dense", nn.dense, lambda x, w: x @ w.T, real(4, 6), real(3, 6), atol=1e-5)
case("nn.dense with a bias", nn.dense, lambda x, w, b: x @ w.T + b, real(4, 6), real(3, 6), real(3),
     atol=1e-5)
case("nn.dense in another type", lambda x, w: nn.dense(x, w, out_dtype="int32"),
     lambda x, w: x.astype("int32") @ w.T.astype("int32"), whole(4, 50, low=-128, high=128, dtype="int8"),
     whole(3, 50, low=-128, high=128, dtype="int8"))
case("nn.bias_add", nn.bias_add, lambda x, b: x + b[:, None, None], real(2, 3, 4, 4), real(3))
case("nn.bias_add to the last", lambda x, b: nn.bias_add(x, b, -1), lambda x, b: x + b, X, real(5))
case("nn.scale_shift_nchw", nn.scale_shift_nchw,
     lambda x, a, b: x * a[:, None, None] + b[:, None, None], real(2, 3, 4, 4), real(3), real(3))
case("nn.scale_shift_nhwc", nn.scale_shift_nhwc, lambda x, a, b: x * a + b, real(2, 4, 4, 3), real(3),
     real(3))
case("nn.flatten", nn.flatten, lambda x: x.reshape(3, 20), X)
case("nn.softmax_cross_entropy", nn.softmax_cross_entropy,
     lambda x, p: np.mean(-np.sum(p * np.log(softmax(x, 1)), 1)), real(6, 5), real(6, 5, low=0, high=1))
case("nn.softmax_cross_entropy of each", lambda x, p: nn.softmax_cross_entropy(x, p, 0, "none"),
     lambda x, p: -np.sum(p * np.log(softmax(x, 0)), 0), real(6, 5), real(6, 5, low=0, high=1))
LABELS = whole(6, low=0, high=5)
case("nn.nll_loss", nn.nll_loss, lambda x, t: -np.mean(x[np.arange(6), t]), real(6, 5), LABELS)
case("nn.nll_loss summed", lambda x, t: nn.nll_loss(x, t, reduction="sum"),
     lambda x, t: -np.sum(x[np.arange(6), t]), real(6, 5), LABELS, atol=1e-5)
case("nn.nll_loss with weights", nn.nll_loss,
     lambda x, t, w: -np.sum(x[np.arange(6), t] * w[t]) / np.sum(w[t]), real(6, 5), LABELS,
     real(5, low=0.5, high=1))
case("nn.nll_loss that ignores a class", lambda x, t: nn.nll_loss(x, t, ignore_index=int(LABELS[0])),
     lambda x, t: -np.mean(x[np.arange(6), t][t != LABELS[0]]), real(6, 5), LABELS)
case("nn.nll_loss of images", nn.nll_loss,
     lambda x, t: -np.mean(np.take_along_axis(x, t[:, None], 1)), real(2, 5, 3), whole(2, 3, low=0, high=5))

# Normalizations.

CHANNELS = [real(3), real(3), real(3), real(3, low=0.5)]


def batch_norm(x, gamma, beta, mean, variance, axis=1):
    shape = [1] * x.ndim
    shape[axis] = -1
    gamma, beta, mean, variance = (v.reshape(shape) for v in (gamma, beta, mean, variance))
    return (x - mean) / np.sqrt(variance + 1e-5) * gamma + beta


case("nn.batch_norm", lambda *x: nn.batch_norm(*x)[0], batch_norm, real(2, 3, 4, 5), *CHANNELS, atol=1e-5)
case("nn.batch_norm of the last", lambda *x: nn.batch_norm(*x, axis=-1)[0],
     lambda *x: batch_norm(*x, axis=-1), real(2, 4, 5, 3), *CHANNELS, atol=1e-5)


def layer_norm(x, gamma, beta, axis):
    mean, variance = x.mean(axis, keepdims=True), x.var(axis, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * gamma + beta


case("nn.layer_norm", nn.layer_norm, lambda x, g, b: layer_norm(x, g, b, -1), X, real(5), real(5),
     atol=1e-5)
case("nn.layer_norm of the middle", lambda x, g, b: nn.layer_norm(x, g, b, 1),
     lambda x, g, b: layer_norm(x, g[:, None], b[:, None], 1), X, real(4), real(4), atol=1e-5)
case("nn.layer_norm of several", lambda x, g, b: nn.layer_norm(x, g, b, (1, 2)),
     lambda x, g, b: layer_norm(x, g, b, (1, 2)), X, real(4, 5), real(4, 5), atol=1e-5)
case("nn.rms_norm", nn.rms_norm, lambda x, g: x / np.sqrt(np.mean(x * x, -1, keepdims=True) + 1e-5) * g, X,
     real(5))
case("nn.l2_normalize", lambda x: nn.l2_normalize(x, 1e-6, 1),
     lambda x: x / np.sqrt(np.maximum((x * x).sum(1, keepdims=True), 1e-6)), X)
case("nn.l2_normalize of all", lambda x: nn.l2_normalize(x, 1e-6),
     lambda x: x / np.sqrt(np.maximum((x * x).sum(), 1e-6)), X)


def lrn(x, size, alpha, beta, bias):
    square = np.pad(x * x, [(0, 0), (size // 2, size // 2), (0, 0)])
    total = sum(square[:, k : k + x.shape[1]] for k in range(size))
    return x / (bias + alpha * total / size) ** beta


case("nn.lrn", lambda x: nn.lrn(x, 3, 1, 0.1, 0.75, 2), lambda x: lrn(x, 3, 0.1, 0.75, 2), real(2, 6, 4))

# Padding.

case("nn.pad", lambda x: nn.pad(x, (1, 0, 2)), lambda x: np.pad(x, ((1, 1), (0, 0), (2, 2))), X)
case("nn.pad with a value", lambda x: nn.pad(x, (1, 0), (0, 2), 3.5),
     lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=3.5), real(2, 3))
case("nn.dilate", lambda x: nn.dilate(x, (2, 1)),
     lambda x: np.insert(x, np.arange(1, 3), 0, axis=0), real(3, 4))

# Convolutions.

IMAGES, FILTERS = real(2, 3, 9, 8), real(4, 3, 3, 2)
for stride, padding, sides, dilation in [
    (1, 0, ((0, 0), (0, 0)), 1), (2, 1, ((1, 1), (1, 1)), 1), ((2, 1), (1, 2), ((1, 1), (2, 2)), (1, 2)),
    (1, (0, 1, 2, 3), ((0, 2), (1, 3)), 2), (1, "VALID", ((0, 0), (0, 0)), 1),
    (1, "SAME", ((1, 1), (1, 0)), 1), (2, "SAME", ((1, 1), (1, 0)), 1),
]:  # fmt: skip
    pair = [(v, v) if isinstance(v, int) else v for v in (stride, dilation)]
    case(f"nn.conv2d_nchw by {stride}, {padding}, {dilation}",
         lambda x, f, s=stride, p=padding, d=dilation: nn.conv2d_nchw(x, f, s, p, d),
         lambda x, f, s=sides, pair=pair: conv2d(x, f, pair[0], s, pair[1]), IMAGES, FILTERS, atol=1e-5)
    case(f"nn.conv2d_nhwc by {stride}, {padding}, {dilation}",
         lambda x, f, s=stride, p=padding, d=dilation: nn.conv2d_nhwc(x, f, s, p, d),
         lambda x, f, s=sides, pair=pair: to_nhwc(
             conv2d(to_nchw(x), f.transpose(3, 2, 0, 1), pair[0], s, pair[1])),
         to_nhwc(IMAGES), FILTERS.transpose(2, 3, 1, 0), atol=1e-5)
case("nn.conv2d", lambda x, f: nn.conv2d(x, f, 1, 1, 1), lambda x, f: conv2d(x, f, sides=((1, 1), (1, 1))),
     IMAGES, FILTERS, atol=1e-5)
case("nn.conv2d with channels last", lambda x, f: nn.conv2d(x, f, 1, 0, 1, "NHWC"),
     lambda x, f: to_nhwc(conv2d(to_nchw(x), f.transpose(3, 2, 0, 1))), to_nhwc(IMAGES),
     FILTERS.transpose(2, 3, 1, 0), atol=1e-5)
case("nn.conv2d_hwcn", lambda x, f: nn.conv2d_hwcn(x, f, 2, 1),
     lambda x, f: conv2d(x.transpose(3, 2, 0, 1), f.transpose(3, 2, 0, 1), (2, 2),
                         ((1, 1), (1, 1))).transpose(2, 3, 1, 0),
     IMAGES.transpose(2, 3, 1, 0), FILTERS.transpose(2, 3, 1, 0), atol=1e-5)
case("nn.conv2d of integers", lambda x, f: nn.conv2d_nchw(x, f, 1, 1, 1, "int32"),
     lambda x, f: conv2d(x, f, sides=((1, 1), (1, 1))).astype("int32"),
     whole(1, 3, 5, 5, low=-128, high=128, dtype="int8"), whole(2, 3, 3, 3, low=-128, high=128, dtype="int8"))
case("nn.group_conv2d_nchw", lambda x, f: nn.group_conv2d_nchw(x, f, 1, 1, 1, 2),
     lambda x, f: conv2d(x, f, sides=((1, 1), (1, 1)), groups=2), real(2, 4, 6, 5), real(6, 2, 3, 3),
     atol=1e-5)
case("nn.conv2d in groups", lambda x, f: nn.conv2d(x, f, groups=4), lambda x, f: conv2d(x, f, groups=4),
     real(1, 4, 6, 5), real(4, 1, 3, 3), atol=1e-5)


def depthwise(x, f, stride, sides):
    c, q = f.shape[:2]
    return conv2d(x, f.reshape(c * q, 1, *f.shape[2:]), stride, sides, groups=c)


case("nn.depthwise_conv2d_nchw", lambda x, f: nn.depthwise_conv2d_nchw(x, f, 2, 1),
     lambda x, f: depthwise(x, f, (2, 2), ((1, 1), (1, 1))), real(2, 3, 7, 6), real(3, 2, 3, 3), atol=1e-5)
case("nn.depthwise_conv2d_nhwc", lambda x, f: nn.depthwise_conv2d_nhwc(x, f, 1, 0),
     lambda x, f: to_nhwc(depthwise(to_nchw(x), f.transpose(2, 3, 0, 1), (1, 1), ((0, 0), (0, 0)))),
     real(2, 7, 6, 3), real(3, 3, 3, 2), atol=1e-5)


def conv2d_transpose(x, f, stride, padding):
    n, c, h, w = x.shape
    m, r, s = f.shape[1:]
    y = np.zeros((n, m, (h - 1) * stride[0] + r, (w - 1) * stride[1] + s))
    for i in range(h):
        for j in range(w):
            rows, columns = slice(i * stride[0], i * stride[0] + r), slice(j * stride[1], j * stride[1] + s)
            y[:, :, rows, columns] += np.einsum("nc,cmrs->nmrs", x[:, :, i, j], f)
    return y[:, :, padding : y.shape[2] - padding, padding : y.shape[3] - padding]


for stride, padding in (((1, 1), 0), ((2, 3), 1)):
    case(f"nn.conv2d_transpose_nchw by {stride}, {padding}",
         lambda x, f, s=stride, p=padding: nn.conv2d_transpose_nchw(x, f, s, p),
         lambda x, f, s=stride, p=padding: conv2d_transpose(x, f, s, p), real(2, 3, 4, 5), real(3, 2, 3, 3),
         atol=1e-5)


def conv1d(x, f, stride, side, dilation):
    return conv2d(x[:, :, None], f[:, :, None], (1, stride), ((0, 0), side), (1, dilation))[:, :, 0]


case("nn.conv1d", lambda x, f: nn.conv1d(x, f, 2, 1, 2), lambda x, f: conv1d(x, f, 2, (1, 1), 2),
     real(2, 3, 9), real(4, 3, 3), atol=1e-5)
case("nn.conv1d_ncw", nn.conv1d_ncw, lambda x, f: conv1d(x, f, 1, (0, 0), 1), real(2, 3, 9), real(4, 3, 3),
     atol=1e-5)
case("nn.conv1d_nwc", lambda x, f: nn.conv1d_nwc(x, f, 2),
     lambda x, f: conv1d(x.transpose(0, 2, 1), f.transpose(2, 1, 0), 2, (0, 0), 1).transpose(0, 2, 1),
     real(2, 9, 3), real(3, 3, 4), atol=1e-5)
case("nn.conv1d with channels last", lambda x, f: nn.conv1d(x, f, 1, (0, 2), 1, "NWC"),
     lambda x, f: conv1d(x.transpose(0, 2, 1), f.transpose(2, 1, 0), 1, (0, 2), 1).transpose(0, 2, 1),
     real(2, 9, 3), real(3, 3, 4), atol=1e-5)

# Pools.


def pool(x, how, size, stride, dilation, sides, last, count_pad=True):
    """NCHW; `last` is what hangs over in each dimension."""
    value = -np.inf if how == "max" else 0
    wide = [(low, high + more) for (low, high), more in zip(sides, last)]
    parts = windows(pad(x, wide, value), size, stride, dilation, (2, 3))
    if how == "max":
        return parts.max((-1, -2))
    total = parts.sum((-1, -2))
    if count_pad:
        return total / np.float32(size[0] * size[1])
    ones = windows(pad(np.ones_like(x), wide), size, stride, dilation, (2, 3)).sum((-1, -2))
    return total / ones


for how in ("max", "avg"):
    for size, stride, dilation, sides, ceil, last in [
        ((2, 2), (2, 2), (1, 1), ((0, 0), (0, 0)), False, (0, 0)),
        ((3, 2), (2, 1), (1, 2), ((1, 1), (0, 1)), False, (0, 0)),
        ((2, 3), (2, 2), (1, 1), ((0, 0), (1, 1)), True, (1, 1)),
    ]:
        padding = [low for low, _ in sides] + [high for _, high in sides]
        for count_pad in (True, False):
            if ceil and count_pad:
                continue
            case(f"nn.pool2d {how} {size}, {stride}, {dilation}{' ceil' * ceil}{' real' * (not count_pad)}",
                 lambda x, a=(size, stride, dilation, padding, how, ceil), c=count_pad: nn.pool2d(
                     x, *a, count_include_pad=c),
                 lambda x, a=(how, size, stride, dilation, sides, last, count_pad): pool(x, *a),
                 real(2, 3, 7, 8))
    case(f"nn.pool2d {how} with channels last",
         lambda x, h=how: nn.pool2d(x, 2, 2, 1, 0, h, layout="NHWC"),
         lambda x, h=how: to_nhwc(pool(to_nchw(x), h, (2, 2), (2, 2), (1, 1), ((0, 0), (0, 0)), (0, 0))),
         real(2, 6, 4, 3))
    case(f"nn.pool1d {how}", lambda x, h=how: nn.pool1d(x, 3, 2, 1, (1, 1), h),
         lambda x, h=how: pool(x[:, :, None], h, (1, 3), (1, 2), (1, 1), ((0, 0), (1, 1)), (0, 0))[:, :, 0],
         real(2, 3, 9))
    reduce = np.max if how == "max" else np.mean
    case(f"nn.global_pool {how}", lambda x, h=how: nn.global_pool(x, h),
         lambda x, f=reduce: f(x, (2, 3), keepdims=True), real(2, 3, 4, 5))

    def adaptive(x, sizes, f=reduce):
        result = np.empty((*x.shape[:2], *sizes), "float32")
        for i in range(sizes[0]):
            for j in range(sizes[1]):
                rows = slice(i * x.shape[2] // sizes[0], -(-(i + 1) * x.shape[2] // sizes[0]))
                columns = slice(j * x.shape[3] // sizes[1], -(-(j + 1) * x.shape[3] // sizes[1]))
                result[:, :, i, j] = f(x[:, :, rows, columns], (2, 3))
        return result

    case(f"nn.adaptive_pool {how}", lambda x, h=how: nn.adaptive_pool(x, (3, 2), h),
         lambda x, f=adaptive: f(x, (3, 2)), real(2, 3, 7, 5))
    case(f"nn.adaptive_pool {how} with channels last",
         lambda x, h=how: nn.adaptive_pool(x, 2, h, "NHWC"),
         lambda x, f=adaptive: to_nhwc(f(to_nchw(x), (2, 2))), real(2, 5, 5, 3))
case("nn.pool", lambda x: nn.pool(x, (2, 2), (2, 2), (1, 1, 1, 1), "max"),
     lambda x: pool(x, "max", (2, 2), (2, 2), (1, 1), ((1, 1), (1, 1)), (0, 0)), real(2, 3, 6, 6))
case("nn.conv2d as older programs call it", lambda x, f: nn.conv2d(x, f, (1, 1), (1, 1), layout="NCHW"),
     lambda x, f: conv2d(x, f, sides=((1, 1), (1, 1))), IMAGES, FILTERS, atol=1e-5)
case("nn.pool2d max of integers", lambda x: nn.pool2d(x, 2, 1, 1, 1, "max"),
     lambda x: windows(pad(x, ((1, 1), (1, 1)), -128), (2, 2), (1, 1), (1, 1), (2, 3)).max((-1, -2)),
     whole(1, 2, 4, 4, low=-128, high=-100, dtype="int8"))
case("nn.embedding", nn.embedding, lambda i, t: t[i], whole(3, 4, low=0, high=6), real(6, 5))
