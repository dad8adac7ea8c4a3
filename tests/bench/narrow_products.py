"""Products of matrices and convolutions in 8 and 16 bits: Kiln's time on resident tensors beside a call of torch, taking
turns.

    KILN_ADDRESS=unix:/tmp/k.sock python tests/bench/narrow_products.py --turns 3 --threads 1

Definitions without a schedule. A figure is the least of all turns. The daemon has as many threads as it was started with:
--threads is torch's. torch multiplies int8 by int8 alone into int32 (torch._int_mm), and takes seconds for it on CPUs
without VNNI: --alone leaves it out."""

import argparse
import os
import time

import avx2
import numpy as np

import kiln
from kiln import te

SHAPES = {
    **{str(n): (n, n, n) for n in (64, 128, 256, 512, 1000, 1024, 2048)},
    "33x1000x777": (33, 1000, 777),
    "8x1024x1024": (8, 1024, 1024),
    "32x4096x1024": (32, 4096, 1024),
    "1024, A transposed": (1024, 1024, 1024),
    "1024, B transposed": (1024, 1024, 1024),
    "batch of 64, 128": (128, 128, 128),
    "batch of 16, 512x64x512": (512, 64, 512),
}
# Images, channels, height and width; filters, and their height and width. Channels first, without padding.
CONVOLUTIONS = {
    "3x3, 64 channels, 58x58": (1, 64, 58, 58, 64, 3, 3),
    "3x3, 512 channels, 9x9": (1, 512, 9, 9, 512, 3, 3),
    "1x1, 256 channels, 56x56": (1, 256, 56, 56, 64, 1, 1),
    "3x3, 8 of 32 channels, 30x30": (8, 32, 30, 30, 32, 3, 3),
}
# Of the factors, of the sums, and of what is stored. torch stores products of 16 bits in these.
TYPES = {
    "float32": ("float32", "float32", "float32", "float32"),
    "int8": ("int8", "int8", "int32", "int32"),
    "uint8 by int8": ("uint8", "int8", "int32", "int32"),
    "bfloat16": ("bfloat16", "bfloat16", "float32", "float32"),
    "bfloat16, stored in it": ("bfloat16", "bfloat16", "float32", "bfloat16"),
    "float16": ("float16", "float16", "float32", "float32"),
    "float16, stored in it": ("float16", "float16", "float32", "float16"),
}
SECONDS = 0.05  # of a turn


def shapes_of(name):
    rows, steps, columns = SHAPES[name]
    a = (steps, rows) if "A transposed" in name else (rows, steps)
    b = (columns, steps) if "B transposed" in name else (steps, columns)
    batch = (batch_of(name),) if "batch" in name else ()
    return (*batch, *a), (*batch, *b)


def batch_of(name):
    return int(name.split()[2].strip(",")) if "batch" in name else 1


def numbers(shape, type_, random):
    if "int8" in type_:
        return random.integers(0, 100, shape).astype(type_)
    return random.standard_normal(shape).astype(kiln.nd.empty((1,), type_).numpy().dtype)


def product(name, types):
    """Two placeholders and their product."""
    rows, steps, columns = SHAPES[name]
    left, right, sum_, _ = types
    a_shape, b_shape = shapes_of(name)
    a = te.placeholder(a_shape, dtype=left, name="A")
    b = te.placeholder(b_shape, dtype=right, name="B")
    k = te.reduce_axis((0, steps), name="k")

    def term(*axes):
        *batch, i, j = axes
        x = a[(*batch, k, i)] if "A transposed" in name else a[(*batch, i, k)]
        y = b[(*batch, j, k)] if "B transposed" in name else b[(*batch, k, j)]
        return te.sum(x.astype(sum_) * y.astype(sum_), axis=k)

    return a, b, te.compute((*a_shape[:-2], rows, columns), term, name="C")


def convolution(name, types):
    """An image, filters, and the convolution of both."""
    images, channels, height, width, filters, tall, wide = CONVOLUTIONS[name]
    left, right, sum_, _ = types
    x = te.placeholder((images, channels, height, width), dtype=left, name="X")
    w = te.placeholder((filters, channels, tall, wide), dtype=right, name="W")
    c, r, s = (te.reduce_axis((0, n), name=axis) for n, axis in ((channels, "c"), (tall, "r"), (wide, "s")))

    def term(n, o, i, j):
        return te.sum(x[n, c, i + r, j + s].astype(sum_) * w[o, c, r, s].astype(sum_), axis=[c, r, s])

    return x, w, te.compute((images, filters, height - tall + 1, width - wide + 1), term, name="Y")


def expected_of(name, x, y):
    x, y = x.astype("float64"), y.astype("float64")
    if name in CONVOLUTIONS:
        windows = np.lib.stride_tricks.sliding_window_view(x, y.shape[2:], axis=(2, 3))
        return np.einsum("ncijrs,ocrs->noij", windows, y, optimize=True)
    return (x.swapaxes(-1, -2) if "A transposed" in name else x) @ (y.swapaxes(-1, -2) if "B transposed" in name else y)


def operations_of(name):
    """Multiplications and additions."""
    if name in CONVOLUTIONS:
        images, channels, height, width, filters, tall, wide = CONVOLUTIONS[name]
        return 2 * images * filters * (height - tall + 1) * (width - wide + 1) * channels * tall * wide
    return 2 * batch_of(name) * np.prod(SHAPES[name])


def of_kiln(name, types):
    """A function that runs so many times and returns the seconds of one."""
    a, b, c = (convolution if name in CONVOLUTIONS else product)(name, types)
    if types[3] != types[2]:
        sums = c
        c = te.compute(sums.shape, lambda *index: sums(*index).astype(types[3]), name="R")
    f = kiln.build([a, b, c], target="llvm", name="product")
    random = np.random.default_rng(0)
    device = kiln.cpu()
    shapes = [tuple(int(n) for n in each.shape) for each in (a, b, c)]
    given = [numbers(shape, type_, random) for shape, type_ in zip(shapes[:2], types[:2], strict=True)]
    tensors = [kiln.nd.array(each, device) for each in given]
    tensors.append(kiln.nd.empty(shapes[2], types[3], device))
    f(*tensors)
    expected = expected_of(name, *given)
    error = np.abs(tensors[2].numpy().astype(expected.dtype) - expected).max() / np.abs(expected).max()
    assert error < 1e-2, f"{name}, {types}: off by {error}"

    def run(times):
        return min(f.time_evaluator(f.entry_name, device, number=times, repeat=1)(*tensors).results)

    return run


def of_torch(name, types):
    import torch

    is_convolution = name in CONVOLUTIONS
    if types[0] == "uint8" or (types[0] == "int8" and (is_convolution or "batch" in name)):
        return None
    if is_convolution:
        images, channels, height, width, filters, tall, wide = CONVOLUTIONS[name]
        a_shape, b_shape = (images, channels, height, width), (filters, channels, tall, wide)
    else:
        a_shape, b_shape = shapes_of(name)
    make = (lambda shape: torch.randint(0, 100, shape, dtype=torch.int8)) if types[0] == "int8" else (
        lambda shape: torch.randn(shape).to(getattr(torch, types[0]))
    )  # fmt: skip
    a, b = make(a_shape), make(b_shape)
    a = a.t() if "A transposed" in name else a
    b = b.t() if "B transposed" in name else b
    multiply = torch._int_mm if types[0] == "int8" else torch.conv2d if is_convolution else torch.matmul

    def run(times):
        start = time.perf_counter()
        with torch.no_grad():
            for _ in range(times):
                multiply(a, b)
        return (time.perf_counter() - start) / times

    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--type", action="append", choices=TYPES)
    parser.add_argument("--shape", action="append", choices=[*SHAPES, *CONVOLUTIONS])
    parser.add_argument("--alone", action="store_true", help="without torch")
    parser.add_argument("--avx2", action="store_true",
                        help="torch as on a CPU with AVX2 alone; start the daemon with KILN_CPU=x86-64-v3")  # fmt: skip
    given = parser.parse_args()
    if given.avx2:
        os.environ |= avx2.ENVIRONMENT
    if not given.alone:
        import torch

        torch.set_num_threads(given.threads)
    print("| | us | GOP/s | Kiln / torch |\n|---|---|---|---|")
    for type_ in given.type or TYPES:
        for name in given.shape or [*SHAPES, *CONVOLUTIONS]:
            runs = [of_kiln(name, TYPES[type_]), None if given.alone else of_torch(name, TYPES[type_])]
            best = [None, None]
            for _ in range(given.turns):
                for i, run in enumerate(runs):
                    if run is None:
                        continue
                    once = run(1)
                    # What takes seconds has been measured by one run.
                    seconds = min(once, run(int(SECONDS / once))) if once < SECONDS else once
                    best[i] = seconds if best[i] is None else min(best[i], seconds)
            rate = operations_of(name) / best[0] / 1e9
            ratio = f"{best[1] / best[0]:.2f}" if best[1] else ""
            print(f"| {type_}, {name} | {best[0] * 1e6:.1f} | {rate:.0f} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
