"""The rows of topi_numpy.py for topi.nn."""

import itertools

import numpy as np
from topi_rows import INTEGERS, MATRIX, VECTOR, Of, erf, places, row, sigmoid, whole

from kiln.topi import nn

# Activations, layers and losses.

row("nn.relu", nn.relu, lambda x: np.maximum(x, 0), MATRIX)
row("nn.relu of integers", nn.relu, lambda x: np.maximum(x, 0), whole(*MATRIX), types=INTEGERS)
row("nn.relu_gradient", nn.relu_gradient, lambda x, g: np.where(x > 0, g, 0), MATRIX, MATRIX)
row("nn.leaky_relu", lambda x: nn.leaky_relu(x, 0.1), lambda x: np.where(x > 0, x, x.dtype.type(0.1) * x), MATRIX)
row("nn.prelu", nn.prelu, lambda x, a: np.where(x > 0, x, a * x), MATRIX, VECTOR)
row("nn.elu", lambda x: nn.elu(x, 0.5), lambda x: np.where(x > 0, x, x.dtype.type(0.5) * (np.exp(x) - 1)), MATRIX)
row("nn.gelu", nn.gelu, lambda x: x * (0.5 + 0.5 * erf(x / 2**0.5)), (101, 1001), loop=True)
row("nn.silu", nn.silu, lambda x: x * sigmoid(x), MATRIX)
row("nn.softplus", nn.softplus, lambda x: np.log1p(np.exp(x)), MATRIX)
row("nn.hard_sigmoid", nn.hard_sigmoid, lambda x: np.clip(x / 6 + x.dtype.type(0.5), 0, 1), MATRIX)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


for axis in (1, 0):
    row(f"nn.softmax along {axis}", lambda x, a=axis: nn.softmax(x, a), lambda x, a=axis: softmax(x, a), MATRIX)
    row(f"nn.log_softmax along {axis}", lambda x, a=axis: nn.log_softmax(x, a), lambda x, a=axis: np.log(softmax(x, a)), MATRIX)
row("nn.softmax_common", lambda x: nn.softmax_common(x, 1, True), softmax, MATRIX)
row("nn.matmul with a bias", lambda a, b, c: nn.matmul(a, b, c, transpose_b=True), lambda a, b, c: a @ b.T + c, (255, 513), (257, 513), (257,))
row("nn.dense", nn.dense, lambda x, w: x @ w.T, (129, 513), (255, 513))
row("nn.batch_matmul", nn.batch_matmul, lambda a, b: a @ b.transpose(0, 2, 1), (15, 127, 129), (15, 125, 129))
row("nn.add", nn.add, np.add, MATRIX, VECTOR)
row("nn.bias_add", nn.bias_add, lambda x, b: x + b[:, None, None], (3, 31, 57, 59), (31,))
row("nn.scale_shift_nchw", nn.scale_shift_nchw, lambda x, a, b: x * a[:, None, None] + b[:, None, None], (3, 31, 57, 59), (31,), (31,))
row("nn.scale_shift_nhwc", nn.scale_shift_nhwc, lambda x, a, b: x * a + b, (3, 57, 59, 31), (31,), (31,))
row("nn.scale_shift_nchwc", nn.scale_shift_nchwc, lambda x, a, b: x * a[:, None, None] + b[:, None, None], (3, 7, 57, 59, 4), (7, 4), (7, 4))
row("nn.flatten", nn.flatten, lambda x: x.reshape(101, -1).copy(), (101, 101, 99))
row("nn.softmax_cross_entropy", nn.softmax_cross_entropy, lambda x, p: np.mean(-np.sum(p * np.log(softmax(x, 1)), 1)), MATRIX, Of(*MATRIX, low=0))
row("nn.nll_loss", nn.nll_loss, lambda x, t: -np.mean(x[np.arange(len(x)), t]), MATRIX, places(1023, high=1001))
row("nn.embedding", nn.embedding, lambda i, t: t[i], places(101, 31, high=1023), MATRIX)

# Normalizations.


def standard(x, axes):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + x.dtype.type(1e-5))


IMAGE = (3, 30, 57, 59)
CHANNELS = [(30,), (30,)]
row("nn.batch_norm", lambda *o: nn.batch_norm(*o)[0],
    lambda x, g, b, m, v: (x - m[:, None, None]) / np.sqrt(v[:, None, None] + x.dtype.type(1e-5)) * g[:, None, None] + b[:, None, None],
    IMAGE, *CHANNELS, (30,), Of(30, low=0.5))
row("nn.layer_norm", lambda x, g, b: nn.layer_norm(x, g, b, [1]), lambda x, g, b: standard(x, 1) * g + b, MATRIX, VECTOR, VECTOR)
row("nn.rms_norm", nn.rms_norm, lambda x, g: x / np.sqrt(np.mean(x * x, -1, keepdims=True) + x.dtype.type(1e-5)) * g, MATRIX, VECTOR)
row("nn.instance_norm", lambda x, g, b: nn.instance_norm(x, g, b, (2, 3)), lambda x, g, b: standard(x, (2, 3)) * g[:, None, None] + b[:, None, None],
    IMAGE, *CHANNELS)
row("nn.group_norm", lambda x, g, b: nn.group_norm(x, g, b, 3, 1, (2, 3)),
    lambda x, g, b: standard(x.reshape(3, 3, 10, 57, 59), (2, 3, 4)).reshape(x.shape) * g[:, None, None] + b[:, None, None], IMAGE, *CHANNELS)
row("nn.l2_normalize", lambda x: nn.l2_normalize(x, 1e-6, 1), lambda x: x / np.sqrt(np.maximum((x * x).sum(1, keepdims=True), 1e-6)).astype(x.dtype), MATRIX)


def lrn(x, size, alpha, beta, bias):
    square = np.pad(x * x, [(0, 0), (size // 2, size // 2), (0, 0), (0, 0)])
    total = sum(square[:, k : k + x.shape[1]] for k in range(size))
    return x / (bias + alpha * total / size) ** beta


row("nn.lrn", lambda x: nn.lrn(x, 5, 1, 0.1, 0.75, 2), lambda x: lrn(x, 5, 0.1, 0.75, 2), IMAGE)

# Padding and blocks.

row("nn.pad", lambda x: nn.pad(x, (1, 2)), lambda x: np.pad(x, ((1, 1), (2, 2))), MATRIX)
row("nn.mirror_pad", lambda x: nn.mirror_pad(x, (3, 2), (1, 4), "REFLECT"), lambda x: np.pad(x, ((3, 1), (2, 4)), "reflect"), MATRIX)


def dilated(x, strides):
    """Zeros between the elements of the last dimensions."""
    front = x.ndim - len(strides)
    shape = [(n - 1) * s + 1 for n, s in zip(x.shape[front:], strides)]
    result = np.zeros((*x.shape[:front], *shape), x.dtype)
    result[(..., *(slice(None, None, s) for s in strides))] = x
    return result


row("nn.dilate", lambda x: nn.dilate(x, (2, 3)), lambda x: dilated(x, (2, 3)), (501, 333))
row("nn.depth_to_space", lambda x: nn.depth_to_space(x, 2),
    lambda x: x.reshape(3, 2, 2, 9, 57, 59).transpose(0, 3, 4, 1, 5, 2).reshape(3, 9, 114, 118), (3, 36, 57, 59))
row("nn.space_to_depth", lambda x: nn.space_to_depth(x, 3), lambda x: x.reshape(3, 7, 19, 3, 17, 3).transpose(0, 3, 5, 1, 2, 4).reshape(3, 63, 19, 17),
    (3, 7, 57, 51))


def space_to_batch(x):
    n, h, w, c = x.shape
    return x.reshape(n, h // 3, 3, w // 3, 3, c).transpose(2, 4, 0, 1, 3, 5).reshape(n * 9, h // 3, w // 3, c)


def batch_to_space(x):
    n, h, w, c = x.shape
    return x.reshape(3, 3, n // 9, h, w, c).transpose(2, 3, 0, 4, 1, 5).reshape(n // 9, h * 3, w * 3, c)


row("nn.space_to_batch_nd", lambda x: nn.space_to_batch_nd(x, [3, 3], [0, 0], [0, 0]), space_to_batch, (3, 57, 51, 31))
row("nn.batch_to_space_nd", lambda x: nn.batch_to_space_nd(x, [3, 3], [0, 0], [0, 0]), batch_to_space, (27, 19, 17, 31))
row("nn.layout_transform", lambda x: nn.layout_transform(x, "NCHW", "NHWC"), lambda x: np.ascontiguousarray(x.transpose(0, 2, 3, 1)), (3, 31, 57, 59))
row("nn.unpack_NCHWc_to_nchw", lambda x, dtype: nn.unpack_NCHWc_to_nchw(x, dtype), lambda x, dtype: x.transpose(0, 1, 4, 2, 3).reshape(3, 28, 57, 59),
    (3, 7, 57, 59, 4), of_type=True)
row("nn.upsampling", lambda x: nn.upsampling(x, 2, 3), lambda x: x.repeat(2, 2).repeat(3, 3), (3, 31, 57, 59))
row("nn.upsampling3d", lambda x: nn.upsampling3d(x, 2, 1, 3), lambda x: x.repeat(2, 2).repeat(3, 4), (1, 7, 21, 23, 25))
row("nn.fifo_buffer", lambda x, b: nn.fifo_buffer(x, b, 1), lambda x, b: np.concatenate([b[:, x.shape[1] :], x], 1), (1023, 101), MATRIX)

# Convolutions of numpy: windows that overlap, and a product.


def conv(x, f, stride=1, side=0, groups=1):
    """Data (n, c, ...) and filters (m, c / groups, ...)."""
    dims = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(side, side)] * dims)
    axes = tuple(range(2, 2 + dims))
    parts = np.lib.stride_tricks.sliding_window_view(x, f.shape[2:], axes)[(slice(None), slice(None), *[slice(None, None, stride)] * dims)]
    if groups == len(f) == x.shape[1]:  # a filter a channel
        return np.einsum("nc...,c...->nc...", *_last(parts, f[:, 0], dims))
    m, c = len(f) // groups, f.shape[1]
    contracted = [1, *range(2 + dims, 2 + 2 * dims)], [1, *axes]
    made = [np.tensordot(parts[:, g * c : (g + 1) * c], f[g * m : (g + 1) * m], contracted) for g in range(groups)]
    return np.ascontiguousarray(np.moveaxis(np.concatenate(made, -1), -1, 1))


def _last(parts, f, dims):
    """Windows of one channel with its filter, as products over what is left."""
    n, c, *sizes = parts.shape[: 2 + dims]
    flat = np.matmul(parts.reshape(n, c, -1, f[0].size), f.reshape(c, -1, 1))[..., 0]
    return flat.reshape(n, c, *sizes), np.ones((c,) + (1,) * dims, f.dtype)


def transposed(x, f, stride, side, groups=1):
    """Data (n, c, ...) and filters (c, m / groups, ...): a convolution of what has zeros between its elements."""
    dims, c = x.ndim - 2, x.shape[1] // groups
    f = np.flip(f, tuple(range(2, 2 + dims)))
    f = np.concatenate([f[g * c : (g + 1) * c].swapaxes(0, 1) for g in range(groups)])
    return conv(dilated(x, (stride,) * dims), f, 1, f.shape[2] - 1 - side, groups)


def last(x):
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def first(x):
    return np.moveaxis(x, -1, 1)


def filters(f):
    """(..., i, o) as (o, i, ...)."""
    return np.moveaxis(f, (-1, -2), (0, 1))


LINES, SERIES = (3, 31, 1001), (33, 31, 5)
row("nn.conv1d", lambda x, f: nn.conv1d(x, f, 2, 1), lambda x, f: conv(x, f, 2, 1), LINES, SERIES)
row("nn.conv1d_ncw", nn.conv1d_ncw, conv, LINES, SERIES)
row("nn.conv1d_nwc", nn.conv1d_nwc, lambda x, f: last(conv(first(x), filters(f))), (3, 1001, 31), (5, 31, 33))
row("nn.group_conv1d_ncw", lambda x, f: nn.group_conv1d_ncw(x, f, 1, 1, 1, 3), lambda x, f: conv(x, f, 1, 1, 3), (3, 33, 1001), (33, 11, 5))
row("nn.group_conv1d_nwc", lambda x, f: nn.group_conv1d_nwc(x, f, 1, 1, 1, 3), lambda x, f: last(conv(first(x), filters(f), 1, 1, 3)),
    (3, 1001, 33), (5, 11, 33))
IMAGES, SQUARES = (1, 31, 57, 59), (33, 31, 3, 3)
LAST, HWIO = (1, 57, 59, 31), (3, 3, 31, 33)
row("nn.conv2d", lambda x, f: nn.conv2d(x, f, 2, 1), lambda x, f: conv(x, f, 2, 1), IMAGES, SQUARES)
row("nn.conv2d_nchw", nn.conv2d_nchw, conv, IMAGES, SQUARES)
row("nn.conv2d_nhwc", nn.conv2d_nhwc, lambda x, f: last(conv(first(x), filters(f))), LAST, HWIO)
row("nn.conv2d_hwcn", nn.conv2d_hwcn, lambda x, f: np.ascontiguousarray(conv(x.transpose(3, 2, 0, 1), filters(f)).transpose(2, 3, 1, 0)),
    (57, 59, 31, 1), HWIO)
row("nn.conv", lambda x, f: nn.conv(x, f, 1, 1, 1, 1, "NHWC", "HWIO"), lambda x, f: last(conv(first(x), filters(f), 1, 1)), LAST, HWIO)
row("nn.conv2d_winograd_nhwc", lambda x, f: nn.conv2d_winograd_nhwc(x, f, 1, 0), lambda x, f: last(conv(first(x), filters(f))), LAST, HWIO)


def in_blocks(x, b):
    return np.ascontiguousarray(x.reshape(len(x), -1, b, *x.shape[2:]).transpose(0, 1, 3, 4, 2))


def of_blocks(x):
    return x.transpose(0, 1, 4, 2, 3).reshape(len(x), -1, *x.shape[2:4])


def filters_of_blocks(f):
    """(o, i, h, w, b, c) as (o * c, i * b, h, w)."""
    o, i, h, w, b, c = f.shape
    return f.transpose(0, 5, 1, 4, 2, 3).reshape(o * c, i * b, h, w)


row("nn.conv2d_NCHWc", lambda x, f: nn.conv2d_NCHWc(x, f, 1, 1, 1), lambda x, f: in_blocks(conv(of_blocks(x), filters_of_blocks(f), 1, 1), 11),
    (1, 4, 57, 59, 8), (3, 4, 3, 3, 8, 11))
row("nn.group_conv2d_nchw", lambda x, f: nn.group_conv2d_nchw(x, f, 1, 1, 1, 3), lambda x, f: conv(x, f, 1, 1, 3), (1, 33, 57, 59), (33, 11, 3, 3))
row("nn.group_conv2d_nhwc", lambda x, f: nn.group_conv2d_nhwc(x, f, 1, 1, 1, 3), lambda x, f: last(conv(first(x), filters(f), 1, 1, 3)),
    (1, 57, 59, 33), (3, 3, 11, 33))
row("nn.conv3d", lambda x, f: nn.conv3d(x, f, 1, 1), lambda x, f: conv(x, f, 1, 1), (1, 15, 11, 29, 31), (17, 15, 3, 3, 3))
row("nn.conv3d_ncdhw", nn.conv3d_ncdhw, conv, (1, 15, 11, 29, 31), (17, 15, 3, 3, 3))
row("nn.conv3d_ndhwc", nn.conv3d_ndhwc, lambda x, f: last(conv(first(x), filters(f))), (1, 11, 29, 31, 15), (3, 3, 3, 15, 17))
row("nn.conv1d_transpose_ncw", lambda x, f: nn.conv1d_transpose_ncw(x, f, 2, 1), lambda x, f: transposed(x, f, 2, 1), (3, 31, 501), (31, 33, 5))
row("nn.conv2d_transpose_nchw", lambda x, f: nn.conv2d_transpose_nchw(x, f, 2, 1), lambda x, f: transposed(x, f, 2, 1), (1, 31, 29, 27), (31, 17, 3, 3))
row("nn.conv3d_transpose_ncdhw", lambda x, f: nn.conv3d_transpose_ncdhw(x, f, 2, 1), lambda x, f: transposed(x, f, 2, 1), (1, 15, 7, 13, 11),
    (15, 9, 3, 3, 3))
row("nn.group_conv1d_transpose_ncw", lambda x, f: nn.group_conv1d_transpose_ncw(x, f, 2, 1, None, 0, 3), lambda x, f: transposed(x, f, 2, 1, 3),
    (3, 33, 501), (33, 11, 5))
row("nn.group_conv2d_transpose_nchw", lambda x, f: nn.group_conv2d_transpose_nchw(x, f, 2, 1, None, (0, 0), 3),
    lambda x, f: transposed(x, f, 2, 1, 3), (1, 33, 29, 27), (33, 5, 3, 3))
row("nn.depthwise_conv2d_nchw", lambda x, f: nn.depthwise_conv2d_nchw(x, f, 1, 1), lambda x, f: conv(x, f, 1, 1, 31), IMAGES, (31, 1, 3, 3))
row("nn.depthwise_conv2d_nhwc", lambda x, f: nn.depthwise_conv2d_nhwc(x, f, 1, 1), lambda x, f: last(conv(first(x), f.transpose(2, 3, 0, 1), 1, 1, 31)),
    LAST, (3, 3, 31, 1))
row("nn.depthwise_conv2d_NCHWc", lambda x, f: nn.depthwise_conv2d_NCHWc(x, f, 1, 1, 1),
    lambda x, f: in_blocks(conv(of_blocks(x), f.transpose(0, 5, 1, 2, 3, 4).reshape(28, 1, 3, 3), 1, 1, 28), 4), (1, 7, 57, 59, 4), (7, 1, 3, 3, 1, 4))
PAIRS = list(itertools.product(range(3), range(3)))


def backward_input(f, g):
    result = np.zeros((1, 59, 61, 31), g.dtype)
    for r, s in PAIRS:
        result[:, r : r + 57, s : s + 59] += g * f[r, s, :, 0]
    return result


row("nn.depthwise_conv2d_backward_input_nhwc", lambda f, g: nn.depthwise_conv2d_backward_input_nhwc(f, g, (1, 57, 59, 31), (1, 59, 61, 31), 1, 0),
    backward_input, (3, 3, 31, 1), LAST)
row("nn.depthwise_conv2d_backward_weight_nhwc", lambda x, g: nn.depthwise_conv2d_backward_weight_nhwc(x, g, (1, 57, 59, 31), (3, 3, 31, 1), 1, 0),
    lambda x, g: np.stack([(x[:, r : r + 57, s : s + 59] * g).sum((0, 1, 2)) for r, s in PAIRS]).reshape(3, 3, 31, 1), (1, 59, 61, 31), LAST)


def correlated(a, b):
    """Products of pixels up to two away, by numpy a shift at a time."""
    wide = np.pad(b, [(0, 0), (0, 0), (2, 2), (2, 2)])
    shifts = itertools.product(range(5), range(5))
    return np.stack([(a * wide[:, :, y : y + a.shape[2], x : x + a.shape[3]]).mean(1) for y, x in shifts], 1)


row("nn.correlation_nchw", lambda a, b: nn.correlation_nchw(a, b, 1, 2, 1, 1, 2, True), correlated, IMAGES, IMAGES)

# Pools.

PHOTO = (1, 63, 56, 58)


def pooled(x, of, dims=2, size=2):
    axes = tuple(range(2, 2 + dims))
    return of(np.lib.stride_tricks.sliding_window_view(x, (size,) * dims, axes)[(..., *[slice(None, None, size)] * dims, *[slice(None)] * dims)],
              tuple(range(-dims, 0)))


for how, of in (("max", np.max), ("avg", np.mean)):
    row(f"nn.pool1d {how}", lambda x, h=how: nn.pool1d(x, 2, 2, 1, (0, 0), h), lambda x, f=of: pooled(x, f, 1), (3, 63, 1002))
    row(f"nn.pool2d {how}", lambda x, h=how: nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), h), lambda x, f=of: pooled(x, f), PHOTO)
    row(f"nn.pool3d {how}", lambda x, h=how: nn.pool3d(x, 2, 2, 1, 0, h), lambda x, f=of: pooled(x, f, 3), (1, 15, 20, 28, 26))
    row(f"nn.global_pool {how}", lambda x, h=how: nn.global_pool(x, h), lambda x, f=of: f(x, (2, 3), keepdims=True), PHOTO)
    row(f"nn.adaptive_pool {how}", lambda x, h=how: nn.adaptive_pool(x, (7, 29), h), lambda x, f=of: f(x.reshape(1, 63, 7, 8, 29, 2), (3, 5)), PHOTO)
    row(f"nn.adaptive_pool1d {how}", lambda x, h=how: nn.adaptive_pool1d(x, 11, h), lambda x, f=of: f(x.reshape(3, 63, 11, 91), 3), (3, 63, 1001))
    row(f"nn.adaptive_pool3d {how}", lambda x, h=how: nn.adaptive_pool3d(x, (5, 7, 13), h),
        lambda x, f=of: f(x.reshape(1, 15, 5, 4, 7, 4, 13, 2), (3, 5, 7)), (1, 15, 20, 28, 26))
row("nn.pool", lambda x: nn.pool(x, (2, 2), (2, 2), (0, 0, 0, 0), "max"), lambda x: pooled(x, np.max), PHOTO)
row("nn.pool_grad avg", lambda g, x: nn.pool_grad(g, x, 2, 2, 0, "avg"), lambda g, x: (g / 4).repeat(2, 2).repeat(2, 3), (1, 63, 28, 29), PHOTO)

# Attention and recurrent units.


def attention(q, k, v):
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.dtype.type(q.shape[-1]))) @ v


row("nn.attention", nn.attention, attention, (11, 127, 63), (11, 129, 63), (11, 129, 65))


def weights(gates):
    """Small ones: with large ones small differences grow from step to step."""
    return [Of(gates * 127, *more, low=-0.1, high=0.1) for more in ((65,), (127,), ())]


def lstm(x, wi, wh, b):
    h = np.zeros((x.shape[1], wh.shape[1]), x.dtype)
    c, hs = h, []
    for step in x:
        i, f, g, o = np.split(step @ wi.T + h @ wh.T + b, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        hs.append(h)
    return np.stack(hs)


row("nn.lstm", lambda *x: nn.lstm(*x)[0], lstm, (31, 7, 65), *weights(4))


def gru(x, wi, wh, bi, bh, h):
    hs = []
    for step in x:
        (ri, zi, ni), (rh, zh, nh) = (np.split(v, 3, axis=1) for v in (step @ wi.T + bi, h @ wh.T + bh))
        z = sigmoid(zi + zh)
        h = (1 - z) * np.tanh(ni + sigmoid(ri + rh) * nh) + z * h
        hs.append(h)
    return np.stack(hs)


row("nn.gru", nn.gru, gru, (31, 7, 65), *weights(3), Of(3 * 127, low=-0.1, high=0.1), (7, 127))
