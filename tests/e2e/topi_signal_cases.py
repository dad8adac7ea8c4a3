"""One row for each use of what topi has of spectra, random numbers, correlations, and gradients of depthwise convolutions."""

import itertools

import numpy as np
from topi_cases import CASES as _OTHERS
from topi_cases import case as _case
from topi_cases import real
from topi_nn_cases import pad

from kiln import topi
from kiln.topi import nn, random

CASES = []


def case(*row, **tolerances):
    _case(*row, **tolerances)
    CASES.append(_OTHERS.pop())


# Spectra.


def spectra(x, window, fft, hop, normalized, frequencies, frames):
    """By numpy's transform of each window, which is as long as the transform."""
    length = len(window)
    parts = np.stack([np.fft.fft(x[:, t * hop : t * hop + length] * window) for t in range(frames)], 2)
    parts = parts[:, :frequencies] / (np.sqrt(fft) if normalized else 1)
    return np.stack([parts.real, parts.imag], -1)


for normalized, frequencies in [(False, 5), (True, 8)]:
    case(f"stft {frequencies} frequencies",
         lambda x, w, n=normalized, f=frequencies: topi.stft(x, 8, 3, 8, w, n, f < 8, (2, f, 5, 2)),
         lambda x, w, n=normalized, f=frequencies: spectra(x, w, 8, 3, n, f, 5), real(2, 21), real(8), atol=1e-5)
for inverse in (False, True):
    whole = np.fft.ifft if inverse else np.fft.fft
    for half, part in enumerate(("real", "imag")):
        case(f"dft {part} {inverse}", lambda a, b, i=inverse, h=half: topi.dft(a, b, i)[h],
             lambda a, b, f=whole, p=part: getattr(f(a + 1j * b), p), real(3, 7), real(3, 7), atol=1e-5)

# Random numbers: the hash in Python's integers, a word after the other.

MASK = (1 << 64) - 1
ROTATIONS = [(14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32)]


def threefry(key, counter):
    key = [*key, 0x1BD11BDAA9FC1A22 ^ key[0] ^ key[1] ^ key[2] ^ key[3]]
    x = list(counter)
    for r in range(20):
        if r % 4 == 0:
            x = [(word + key[(r // 4 + j) % 5] + (r // 4 if j == 3 else 0)) & MASK for j, word in enumerate(x)]
        for j, bits in enumerate(ROTATIONS[r % 8]):
            b = x[2 * j + 1]
            x[2 * j] = (x[2 * j] + b) & MASK
            x[2 * j + 1] = x[2 * j] ^ ((b << bits | b >> (64 - bits)) & MASK)
        x[1], x[3] = x[3], x[1]
    return x


def half(high, low):
    both = (high << 64 | low) >> 1
    return [both >> 64, both & MASK]


def roomy(gen, count):
    g = [int(word) for word in gen]
    if g[7] < MASK - count:
        return g
    if g[8] == g[9] == 0:
        return [*threefry(g[:4], [MASK] * 4), 0, 0, 0, 0, 1 << 63, 0]
    return [*g[:4], g[4] | g[8], g[5] | g[9], 0, 0, *half(g[8], g[9])]


def words(gen, count):
    g = roomy(gen, count)
    blocks = [threefry(g[:4], [word + n & MASK for word in g[4:8]]) for n in range(count // 4)]
    blocks += [threefry(g[:4], [*g[4:7], g[7] + count // 4 * 4 & MASK])] if count % 4 else []
    return np.array(list(itertools.chain(*blocks))[:count], "uint64")


def advanced(gen, count):
    g = roomy(gen, count)
    return np.array([*g[:6], 0, g[7] + -(-count // 4) * 4 & MASK, *g[8:]], "uint64")


def split(gen, right):
    g = [int(word) for word in gen]
    if g[8] == g[9] == 0:
        return np.array([*threefry(g[:4], g[4:8]), right << 63, 0, 0, 0, 1 << 62, 0], "uint64")
    path = [g[4] | g[8], g[5] | g[9]] if right else g[4:6]
    return np.array([*g[:4], *path, *g[6:8], *half(g[8], g[9])], "uint64")


STATES = {
    "of a seed": [0, 0, 0, 7, 0, 0, 0, 0, 1 << 63, 0],
    "deep": [1, 2, 3, MASK, 1 << 62, 5, 0, 9, 0, 1 << 5],
    "at a border": [1, 2, 3, 4, 1 << 62, 5, 0, 9, 1, 0],
    "without a counter": [1, 2, 3, 4, 5, 6, 0, MASK - 3, 0, 1 << 5],
    "without a path": [1, 2, 3, 4, 5, 6, 0, MASK - 3, 0, 0],
}
for name, state in STATES.items():
    state = np.array(state, "uint64")
    for shape in ((8,), (2, 3)):
        count = int(np.prod(shape))
        case(f"random.threefry_generate {name} {count}", lambda g, s=shape: random.threefry_generate(g, s)[1],
             lambda g, s=shape: words(g, int(np.prod(s))).reshape(s), state)
        case(f"random.threefry_generate next {name} {count}", lambda g, s=shape: random.threefry_generate(g, s)[0],
             lambda g, c=count: advanced(g, c), state)
    for side in (0, 1):
        case(f"random.threefry_split {name} {side}", lambda g, s=side: random.threefry_split(g)[s],
             lambda g, s=side: split(g, s), state)

SEED = np.array(STATES["of a seed"], "uint64")


def fractions(gen, count, dtype):
    bits = words(gen, count)
    return (bits.astype("uint32") >> 9) / 2.0**23 if dtype == "float32" else (bits >> np.uint64(12)) / 2.0**52


for dtype in ("float32", "float64"):
    case(f"random.uniform {dtype}", lambda g, d=dtype: random.uniform(g, -1.0, 3.0, (3, 5), d)[1],
         lambda g, d=dtype: fractions(g, 15, d).reshape(3, 5) * 4 - 1, SEED)
    case(f"random.normal {dtype}", lambda g, d=dtype: random.normal(g, 2.0, 0.5, (3, 5), d)[1],
         lambda g, d=dtype: (lambda u: np.sqrt(-2 * np.log(1 - u[0])) * np.sin(2 * np.pi * u[1]) * 0.5 + 2)(
             fractions(g, 30, d).reshape(2, 3, 5)), SEED, rtol=1e-4, atol=1e-5)
SHARES = np.array([[0.1, 0.5, -1, 0.4], [3, 0, 0, 1]], "float32")


def drawn(gen, shares):
    bounds = np.cumsum(np.maximum(shares, 0) / np.maximum(shares, 0).sum(1, keepdims=True), 1)
    places = fractions(gen, 14, "float32").reshape(2, 7)
    return np.array([[np.searchsorted(b, u, "right") for u in row] for b, row in zip(bounds, places)], "int32")


case("random.multinomial", lambda g, p: random.multinomial(g, p, 7)[1], drawn, SEED, SHARES)

# Two images, blocks and queues.


def correlated(a, b, size, most, stride1, stride2, side, multiply):
    a, b = (pad(x.astype("float64"), [(side, side)] * 2) for x in (a, b))
    border, radius = most + size // 2, most // stride2
    places = [-(-(extent - 2 * border) // stride1) for extent in a.shape[2:]]
    steps = list(itertools.product(range(-radius, radius + 1), repeat=2))
    result = np.zeros((len(a), len(steps), *places))
    for q, (dy, dx) in enumerate(steps):
        for i, j in np.ndindex(*places):
            y, x = i * stride1 + most, j * stride1 + most
            first = a[:, :, y : y + size, x : x + size]
            y, x = y + dy * stride2, x + dx * stride2
            second = b[:, :, y : y + size, x : x + size]
            alike = first * second if multiply else abs(first - second)
            result[:, q, i, j] = alike.mean((1, 2, 3))
    return result


IMAGES = real(2, 3, 7, 8), real(2, 3, 7, 8)
for row in [(1, 2, 1, 1, 2, True), (3, 2, 2, 2, 3, False)]:
    case(f"nn.correlation_nchw {row[0]}", lambda a, b, r=row: nn.correlation_nchw(a, b, *r),
         lambda a, b, r=row: correlated(a, b, *r), *IMAGES, atol=1e-5)
for axis in (0, 1, 2):
    new = tuple(2 if d == axis else size for d, size in enumerate((4, 3, 5)))
    case(f"nn.fifo_buffer {axis}", lambda x, b, a=axis: nn.fifo_buffer(x, b, a),
         lambda x, b, a=axis: np.concatenate([b, x], a).take(range(2, 2 + b.shape[a]), a), real(*new), real(4, 3, 5))
case("nn.scale_shift_nchwc", nn.scale_shift_nchwc, lambda x, s, t: x * s[:, None, None] + t[:, None, None],
     real(2, 3, 4, 5, 2), real(3, 2), real(3, 2))
case("nn.unpack_NCHWc_to_nchw", lambda x: nn.unpack_NCHWc_to_nchw(x, "float64"),
     lambda x: x.transpose(0, 1, 4, 2, 3).reshape(2, 6, 4, 5).astype("float64"), real(2, 3, 4, 5, 2))
case("nn.layout_transform", lambda x: nn.layout_transform(x, "NCHW", "NHWC"), lambda x: x.transpose(0, 2, 3, 1), real(2, 3, 4, 5))
case("nn.softmax_common", lambda x: nn.softmax_common(x, 1, True),
     lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True), real(3, 5))


def nhwc(x, f, stride, side):
    """A convolution of each channel with the filters of its own."""
    x = np.pad(x, [(0, 0), (side, side), (side, side), (0, 0)])
    rows, columns, channels, q = f.shape
    sizes = [(extent - window) // stride + 1 for extent, window in zip(x.shape[1:3], (rows, columns))]
    result = np.zeros((len(x), *sizes, channels, q))
    for r, s in itertools.product(range(rows), range(columns)):
        cut = x[:, r : r + sizes[0] * stride : stride, s : s + sizes[1] * stride : stride][:, : sizes[0], : sizes[1]]
        result += cut[..., None] * f[r, s]
    return result.reshape(*result.shape[:3], channels * q)


def adjoint(of, shape, gradient):
    """The gradient of a linear function by its argument: what each element of it adds to the result."""
    result = np.zeros(shape)
    for place in np.ndindex(*shape):
        unit = np.zeros(shape)
        unit[place] = 1
        result[place] = (of(unit) * gradient).sum()
    return result


for stride, side in [(1, 0), (2, 1)]:
    x, f = real(1, 6, 5, 2), real(3, 2, 2, 2)
    g = real(*nhwc(x, f, stride, side).shape)
    case(f"nn.depthwise_conv2d_backward_input_nhwc {stride}",
         lambda f, g, a=(stride, side): nn.depthwise_conv2d_backward_input_nhwc(f, g, g.shape, (1, 6, 5, 2), *a),
         lambda f, g, a=(stride, side): adjoint(lambda x: nhwc(x, f, *a), (1, 6, 5, 2), g), f, g, atol=1e-5)
    case(f"nn.depthwise_conv2d_backward_weight_nhwc {stride}",
         lambda x, g, a=(stride, side): nn.depthwise_conv2d_backward_weight_nhwc(x, g, g.shape, (3, 2, 2, 2), *a),
         lambda x, g, a=(stride, side): adjoint(lambda f: nhwc(x, f, *a), (3, 2, 2, 2), g), x, g, atol=1e-5)
case("nn.conv2d_winograd_nhwc", lambda x, f: nn.conv2d_winograd_nhwc(x, f, 1, 0),
     lambda x, f: np.einsum("bhwcrs,rscm->bhwm", np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2)), f),
     real(1, 6, 7, 3), real(3, 3, 3, 4), atol=1e-5)
