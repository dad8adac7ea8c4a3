"""One row for each use of an operator of topi.nn over any number of dimensions, in groups, in blocks, and transposed."""

import itertools

import numpy as np
from topi_cases import CASES as _OTHERS
from topi_cases import case as _case
from topi_cases import real, sigmoid, whole
from topi_nn_cases import conv2d, pad, to_nchw, to_nhwc

from kiln.topi import nn

CASES = []


def case(*row, **tolerances):
    _case(*row, **{"atol": 1e-5, **tolerances})
    CASES.append(_OTHERS.pop())


def convolution(x, f, stride, low, high, dilation=1, groups=1):
    """Data (n, c, ...) and filters (m, c / groups, ...), in double precision, element by element."""
    dims = x.ndim - 2
    x = pad(x.astype("float64"), [(low, high)] * dims)
    sizes = [(s - (w - 1) * dilation - 1) // stride + 1 for s, w in zip(x.shape[2:], f.shape[2:])]
    result = np.zeros((len(x), len(f), *sizes))
    m, c = len(f) // groups, f.shape[1]
    for o in range(len(f)):
        part = x[:, o // m * c : (o // m + 1) * c]
        for place in itertools.product(*map(range, f.shape[2:])):
            cut = tuple(slice(p * dilation, p * dilation + (n - 1) * stride + 1, stride) for p, n in zip(place, sizes))
            result[:, o] += np.einsum("nc...,c->n...", part[(slice(None), slice(None), *cut)], f[(o, slice(None), *place)])
    return result


def adjoint(x, f, stride, side, extra=0, groups=1):
    """Data (n, c, ...) and filters (c, m / groups, ...)."""
    sizes = [(s - 1) * stride + w for s, w in zip(x.shape[2:], f.shape[2:])]
    outputs, c = f.shape[1], x.shape[1] // groups
    result = np.zeros((len(x), outputs * groups, *(s + extra for s in sizes)))
    for channel in range(x.shape[1]):
        first = channel // c * outputs
        for place in itertools.product(*map(range, f.shape[2:])):
            cut = tuple(slice(p, p + (n - 1) * stride + 1, stride) for p, n in zip(place, x.shape[2:]))
            for o in range(outputs):
                result[(slice(None), first + o, *cut)] += x[:, channel] * f[(channel, o, *place)]
    return result[(..., *(slice(side, s + extra - side) for s in sizes))]


VOLUMES = real(2, 4, 5, 6, 7), real(6, 4, 2, 3, 3)
for stride, padding, low, high, dilation in [(1, 0, 0, 0, 1), (2, 1, 1, 1, 1), (1, 2, 2, 2, 2)]:
    case(f"nn.conv3d_ncdhw by {stride}, {padding}, {dilation}",
         lambda x, f, a=(stride, padding, dilation): nn.conv3d_ncdhw(x, f, *a),
         lambda x, f, a=(stride, low, high, dilation): convolution(x, f, *a), *VOLUMES)
case("nn.conv3d in groups", lambda x, f: nn.conv3d(x, f, groups=2), lambda x, f: convolution(x, f, 1, 0, 0, 1, 2),
     VOLUMES[0], real(6, 2, 2, 3, 3))
LAST = VOLUMES[0].transpose(0, 2, 3, 4, 1), VOLUMES[1].transpose(2, 3, 4, 1, 0)
case("nn.conv3d_ndhwc", lambda x, f: nn.conv3d_ndhwc(x, f, 2, 1),
     lambda x, f: convolution(VOLUMES[0], VOLUMES[1], 2, 1, 1).transpose(0, 2, 3, 4, 1), *LAST)
case("nn.conv", lambda x, f: nn.conv(x, f, 2, 1, 1, 1, "NDHWC", "DHWIO"),
     lambda x, f: convolution(VOLUMES[0], VOLUMES[1], 2, 1, 1).transpose(0, 2, 3, 4, 1), *LAST)
LINES = real(2, 4, 9), real(6, 2, 3)
case("nn.group_conv1d_ncw", lambda x, f: nn.group_conv1d_ncw(x, f, 2, 1, 1, 2), lambda x, f: convolution(x, f, 2, 1, 1, 1, 2), *LINES)
case("nn.group_conv1d_nwc", lambda x, f: nn.group_conv1d_nwc(x, f, 1, 1, 2, 2),
     lambda x, f: convolution(*LINES, 1, 1, 1, 2, 2).transpose(0, 2, 1), LINES[0].transpose(0, 2, 1), LINES[1].transpose(2, 1, 0))
IMAGES = real(2, 4, 7, 6), real(6, 2, 3, 3)
case("nn.group_conv2d_nhwc", lambda x, f: nn.group_conv2d_nhwc(x, f, 1, 1, 1, 2),
     lambda x, f: to_nhwc(conv2d(*IMAGES, (1, 1), ((1, 1), (1, 1)), groups=2)), to_nhwc(IMAGES[0]), IMAGES[1].transpose(2, 3, 1, 0))
case("nn.conv2d in groups with channels last", lambda x, f: nn.conv2d(x, f, data_layout="NHWC", groups=2),
     lambda x, f: to_nhwc(conv2d(*IMAGES, groups=2)), to_nhwc(IMAGES[0]), IMAGES[1].transpose(2, 3, 1, 0))
PLAIN = real(2, 3, 7, 6), real(4, 3, 3, 2)
case("nn.conv2d with filters OHWI", lambda x, f: nn.conv2d(x, f, data_layout="NHWC", kernel_layout="OHWI"),
     lambda x, f: to_nhwc(conv2d(*PLAIN)), to_nhwc(PLAIN[0]), PLAIN[1].transpose(0, 2, 3, 1))
case("nn.conv2d with filters HWIO", lambda x, f: nn.conv2d(x, f, kernel_layout="HWIO"), lambda x, f: conv2d(*PLAIN),
     PLAIN[0], PLAIN[1].transpose(2, 3, 1, 0))
case("nn.conv1d with filters WIO", lambda x, f: nn.conv1d(x, f, kernel_layout="WIO"), lambda x, f: convolution(x, f.transpose(2, 1, 0), 1, 0, 0),
     real(2, 3, 7), real(2, 3, 4))

for stride, side, extra in [(1, 0, 0), (2, 1, 0), (2, 1, 1), (3, 0, 2)]:
    for name, x, f in [("conv1d_transpose_ncw", real(2, 3, 5), real(3, 4, 3)), ("conv2d_transpose_nchw", real(2, 3, 4, 5), real(3, 2, 3, 3)),
                       ("conv3d_transpose_ncdhw", real(1, 2, 3, 2, 3), real(2, 3, 3, 3, 3))]:  # fmt: skip
        case(f"nn.{name} by {stride}, {side}, {extra}",
             lambda x, f, n=name, a=(stride, side, extra): getattr(nn, n)(x, f, a[0], a[1], output_padding=a[2]),
             lambda x, f, a=(stride, side, extra): adjoint(x, f, *a), x, f)
case("nn.group_conv1d_transpose_ncw", lambda x, f: nn.group_conv1d_transpose_ncw(x, f, 2, 1, None, 1, 2),
     lambda x, f: adjoint(x, f, 2, 1, 1, 2), real(2, 4, 5), real(4, 3, 3))
case("nn.group_conv2d_transpose_nchw", lambda x, f: nn.group_conv2d_transpose_nchw(x, f, 2, 1, None, (1, 1), 2),
     lambda x, f: adjoint(x, f, 2, 1, 1, 2), real(2, 4, 3, 4), real(4, 3, 3, 3))


def in_blocks(x, b):
    return x.reshape(len(x), -1, b, *x.shape[2:]).transpose(0, 1, 3, 4, 2)


BLOCKS = real(2, 8, 6, 5), real(6, 8, 3, 3)
case("nn.conv2d_NCHWc", lambda x, f: nn.conv2d_NCHWc(x, f, 1, 1, 1),
     lambda x, f: in_blocks(conv2d(*BLOCKS, sides=((1, 1), (1, 1))), 3), in_blocks(BLOCKS[0], 4),
     BLOCKS[1].reshape(2, 3, 2, 4, 3, 3).transpose(0, 2, 4, 5, 3, 1))
DEPTHWISE = real(8, 1, 3, 3)
case("nn.depthwise_conv2d_NCHWc", lambda x, f: nn.depthwise_conv2d_NCHWc(x, f, 1, 1, 1),
     lambda x, f: in_blocks(conv2d(BLOCKS[0], DEPTHWISE, sides=((1, 1), (1, 1)), groups=8), 4), in_blocks(BLOCKS[0], 4),
     DEPTHWISE.reshape(2, 4, 1, 3, 3, 1).transpose(0, 2, 3, 4, 5, 1))
# Half of an even window more stands in front, whatever the stride is.
for size, stride, low, high in [(2, 1, 1, 0), (3, 2, 1, 1), (4, 3, 2, 1)]:
    case(f'nn.conv2d_nchw "SAME" of {size} by {stride}', lambda x, f, s=stride: nn.conv2d_nchw(x, f, s, "SAME"),
         lambda x, f, a=(stride, low, high): convolution(x, f, *a), real(1, 2, 7, 8), real(3, 2, size, size))

# Blocks of pixels.

PIXELS = real(2, 8, 3, 4)


def depth_to_space(x, mode):
    n, c, h, w = x.shape
    if mode == "DCR":
        return x.reshape(n, 2, 2, c // 4, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, c // 4, 2 * h, 2 * w)
    return x.reshape(n, c // 4, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // 4, 2 * h, 2 * w)


for mode in ("DCR", "CDR"):
    case(f"nn.depth_to_space {mode}", lambda x, m=mode: nn.depth_to_space(x, 2, "NCHW", m), lambda x, m=mode: depth_to_space(x, m), PIXELS)
case("nn.depth_to_space with channels last", lambda x: nn.depth_to_space(x, 2, "NHWC"), lambda x: to_nhwc(depth_to_space(to_nchw(x), "DCR")),
     to_nhwc(PIXELS))
case("nn.space_to_depth", lambda x: nn.space_to_depth(x, 2), lambda x: x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(2, 12, 2, 3),
     real(2, 3, 4, 6))


def space_to_batch(x):
    x = np.pad(x, ((0, 0), (1, 0), (0, 2), (0, 0)))
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 3, 3, c).transpose(2, 4, 0, 1, 3, 5).reshape(n * 6, h // 2, w // 3, c)


TILES = real(2, 3, 4, 5)
case("nn.space_to_batch_nd", lambda x: nn.space_to_batch_nd(x, [2, 3], [1, 0], [0, 2]), space_to_batch, TILES)
case("nn.batch_to_space_nd", lambda x: nn.batch_to_space_nd(x, [2, 3], [1, 0], [0, 2]), lambda x: TILES, space_to_batch(TILES))
for mode, name in (("SYMMETRIC", "symmetric"), ("REFLECT", "reflect")):
    case(f"nn.mirror_pad {mode}", lambda x, m=mode: nn.mirror_pad(x, (0, 2, 1), (1, 1, 2), m),
         lambda x, m=name: np.pad(x, ((0, 1), (2, 1), (1, 2)), m), real(2, 4, 5))
case("nn.upsampling", lambda x: nn.upsampling(x, 2, 3), lambda x: x.repeat(2, 2).repeat(3, 3), real(2, 3, 4, 5))
case("nn.upsampling3d", lambda x: nn.upsampling3d(x, 2, 1, 3), lambda x: x.repeat(2, 2).repeat(3, 4), real(1, 2, 2, 3, 4))


def bilinear(x, scale, corners):
    def between(size):
        at = np.arange(size * scale)
        at = at * (size - 1) / (size * scale - 1) if corners else (at + 0.5) / scale - 0.5
        at = np.clip(at, 0, size - 1)
        low = np.floor(at).astype(int)
        weights = np.zeros((len(at), size))
        for row, (place, share) in enumerate(zip(low, at - low)):
            weights[row, place] += 1 - share
            weights[row, min(place + 1, size - 1)] += share
        return weights

    return np.einsum("yh,xw,nchw->ncyx", between(x.shape[2]), between(x.shape[3]), x)


for corners in (False, True):
    case(f"nn.upsampling bilinear, corners {corners}", lambda x, c=corners: nn.upsampling(x, 2, 2, "NCHW", "bilinear", c),
         lambda x, c=corners: bilinear(x, 2, c), real(1, 2, 3, 4))

# Pools.


def pool3d(x, how):
    cut = np.lib.stride_tricks.sliding_window_view(x, (2, 3, 2), (2, 3, 4))[:, :, ::2, ::2, ::2]
    return getattr(cut, how)((5, 6, 7))


for how, method in (("max", "max"), ("avg", "mean")):
    case(f"nn.pool3d {how}", lambda x, h=how: nn.pool3d(x, (2, 3, 2), 2, 1, 0, h), lambda x, m=method: pool3d(x, m), real(2, 3, 5, 7, 6))
    case(f"nn.adaptive_pool1d {how}", lambda x, h=how: nn.adaptive_pool1d(x, 3, h),
         lambda x, m=method: np.stack([getattr(x[..., a:b], m)(-1) for a, b in ((0, 3), (2, 5), (4, 7))], -1), real(2, 3, 7))
    case(f"nn.adaptive_pool3d {how}", lambda x, h=how: nn.adaptive_pool3d(x, (1, 2, 1), h),
         lambda x, m=method: np.stack([getattr(x[:, :, :, a:b], m)((2, 3, 4)) for a, b in ((0, 3), (2, 5))], 2)[:, :, None, :, None], real(2, 3, 4, 5, 6))


def pool_gradient(g, x, how, count_pad=True):
    """Windows of 3 by stride 2, padded by 1."""
    result, wide = np.zeros(x.shape), np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    for n, c, i, j in np.ndindex(g.shape):
        y, z = np.mgrid[2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
        inside = (y >= 1) & (y <= x.shape[2]) & (z >= 1) & (z <= x.shape[3])
        if how == "max":
            place = np.unravel_index(np.argmax(wide[n, c, y, z]), (3, 3))
            result[n, c, y[place] - 1, z[place] - 1] += g[n, c, i, j]
        else:
            result[n, c, y[inside] - 1, z[inside] - 1] += g[n, c, i, j] / (9 if count_pad else inside.sum())
    return result


GRADIENT, SOURCE = real(2, 2, 3, 4), whole(2, 2, 5, 7, low=-3, high=4).astype("float32")
for how, count_pad in (("max", True), ("avg", True), ("avg", False)):
    case(f"nn.pool_grad {how} {count_pad}", lambda g, x, h=how, c=count_pad: nn.pool_grad(g, x, 3, 2, 1, h, False, c),
         lambda g, x, h=how, c=count_pad: pool_gradient(g, x, h, c), GRADIENT, SOURCE)

# Layers.

case("nn.matmul with a bias", lambda a, b, c: nn.matmul(a, b, c, transpose_b=True), lambda a, b, c: a @ b.T + c,
     real(4, 3), real(5, 3), real(5))
case("nn.matmul without one", lambda a, b: nn.matmul(a, b, None, None, True), lambda a, b: a.T @ b, real(3, 4), real(3, 5))
case("nn.add", nn.add, np.add, real(4, 3), real(3))

NORMED = real(2, 6, 3, 4)


def standard(x, axes):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


case("nn.instance_norm", lambda x, g, b: nn.instance_norm(x, g, b, (2, 3)),
     lambda x, g, b: standard(x, (2, 3)) * g[:, None, None] + b[:, None, None], NORMED, real(6), real(6), rtol=1e-4)
case("nn.group_norm", lambda x, g, b: nn.group_norm(x, g, b, 3, 1, (2, 3)),
     lambda x, g, b: standard(x.reshape(2, 3, 2, 3, 4), (2, 3, 4)).reshape(x.shape) * g[:, None, None] + b[:, None, None],
     NORMED, real(6), real(6), rtol=1e-4)


def lstm(x, wi, wh, b, order="IFGO", reverse=False):
    h, c, hs = np.zeros((x.shape[1], wh.shape[1])), np.zeros((x.shape[1], wh.shape[1])), []
    for step in x[::-1] if reverse else x:
        gates = dict(zip(order, np.split(step @ wi.T + h @ wh.T + b, 4, -1)))
        c = sigmoid(gates["F"]) * c + sigmoid(gates["I"]) * np.tanh(gates["G"])
        h = sigmoid(gates["O"]) * np.tanh(c)
        hs.append(h)
    return np.stack(hs)


LSTM = real(5, 2, 3), real(16, 3), real(16, 4), real(16)
case("nn.lstm", lambda *x: nn.lstm(*x)[0], lstm, *LSTM)
case("nn.lstm in another order, reversed", lambda *x: nn.lstm(*x, reverse=True, weight_layout="OIFG")[0],
     lambda *x: lstm(*x, "OIFG", True), *LSTM)
