"""Spectra: the Fourier transform of rows, and of windows that overlap, as products with tables of cosines and sines."""

import math

from .._base.error import invalid, public
from .._definitions import define
from .._expressions import reduce
from .._expressions.arithmetic import apply, cast, constant
from .._expressions.text import shape_text
from ._common import constant_int, tensor

__all__ = []


def _export(function):
    __all__.append(function.__name__)
    return public(function)


def _turn(dtype, product, period):
    """The angle of `product` steps of which `period` are a turn. Whole turns are taken off while it is an integer."""
    return cast(dtype, product % period) * constant(2 * math.pi, dtype) / cast(dtype, period)


@_export
def stft(data, n_fft, hop_length, win_length, window, normalized, onesided, output_shape):
    """Spectra of windows of `win_length` of each row of `data`, each `hop_length` after the one before: `output_shape` is
    (rows, frequencies, windows, 2), the real parts and the imaginary ones. `normalized`: divided by sqrt(n_fft)."""
    where = "topi.stft"
    data, window = tensor(data, where), tensor(window, where)
    shape = define.as_shape(output_shape, where)
    if data.ndim != 2 or window.ndim != 1 or len(shape) != 4:
        raise invalid(
            "ARGUMENT_RANK",
            f"{where} takes rows of data, a vector as window and an output_shape of 4 dimensions, but {data.name} has shape "
            f"{shape_text(data.shape)}, {window.name} {shape_text(window.shape)} and the output {shape_text(shape)}",
        )
    length = constant_int(win_length, f"{where}: win_length")
    scale = 1 / math.sqrt(n_fft) if normalized else 1.0

    def waves(f, w, part):
        angle = _turn(data.dtype, f * w, length)
        wave = apply("select", part == 0, apply("cos", angle), -apply("sin", angle))
        return wave * window(w) * constant(scale, data.dtype)

    table = define.compute((shape[1], length, 2), waves, name="stft_waves")

    def body(b, f, t, part):
        w = define.reduce_axis((0, length), name="w")
        return reduce.sum(data(b, t * hop_length + w) * table(f, w, part), axis=w)

    return define.compute(shape, body, name="stft")


@_export
def dft(re_data, im_data, inverse):
    """The discrete Fourier transform along the last dimension, real and imaginary parts; the inverse is divided by the
    length. n * n products a row."""
    re, im = tensor(re_data, "topi.dft"), tensor(im_data, "topi.dft")
    if re.shape != im.shape or re.dtype != im.dtype or not re.ndim:
        raise invalid(
            "ARGUMENT_SHAPE",
            f"topi.dft takes real and imaginary parts of one shape and type, but {re.name} is {re.dtype} of shape "
            f"{shape_text(re.shape)} and {im.name} is {im.dtype} of shape {shape_text(im.shape)}",
        )
    size = re.shape[-1]
    sign = 1 if inverse else -1
    wave = lambda of, name: define.compute(  # noqa: E731
        (size, size), lambda k, n: apply(of, _turn(re.dtype, k * n, size)), name=name
    )
    cosines, sines = wave("cos", "dft_cosines"), wave("sin", "dft_sines")

    def part(a, b, direction, name):
        def body(*index):
            k = define.reduce_axis((0, size), name="k")
            at = (*index[:-1], k)
            total = reduce.sum(a(*at) * cosines(index[-1], k) + direction * b(*at) * sines(index[-1], k), axis=k)
            return total / cast(re.dtype, size) if inverse else total

        return define.compute(re.shape, body, name=name)

    return [part(re, im, -sign, "dft_real"), part(im, re, sign, "dft_imaginary")]
