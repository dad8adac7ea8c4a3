"""Products of matrices in 8 and 16 bits: Kiln's time on resident tensors beside a call of torch, taking turns.

    KILN_ADDRESS=unix:/tmp/k.sock python tests/bench/narrow_products.py --turns 3 --threads 1

Definitions without a schedule. A figure is the least of all turns. The daemon has as many threads as it was started with:
--threads is torch's. torch multiplies int8 by int8 alone into int32 (torch._int_mm), and takes seconds for it on CPUs
without VNNI: --alone leaves it out."""

import argparse
import time

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
}
TYPES = {
    "float32": ("float32", "float32", "float32"),
    "int8": ("int8", "int8", "int32"),
    "uint8 by int8": ("uint8", "int8", "int32"),
    "bfloat16": ("bfloat16", "bfloat16", "float32"),
    "float16": ("float16", "float16", "float32"),
}
SECONDS = 0.05  # of a turn


def shapes_of(name):
    rows, steps, columns = SHAPES[name]
    a = (steps, rows) if "A transposed" in name else (rows, steps)
    b = (columns, steps) if "B transposed" in name else (steps, columns)
    return a, b


def numbers(shape, type_, random):
    if "int8" in type_:
        return random.integers(0, 100, shape).astype(type_)
    return random.standard_normal(shape).astype(kiln.nd.empty((1,), type_).numpy().dtype)


def of_kiln(name, types):
    """A function that runs so many times and returns the seconds of one."""
    rows, steps, columns = SHAPES[name]
    left, right, sum_ = types
    a_shape, b_shape = shapes_of(name)
    a = te.placeholder(a_shape, dtype=left, name="A")
    b = te.placeholder(b_shape, dtype=right, name="B")
    k = te.reduce_axis((0, steps), name="k")

    def term(i, j):
        x = a[k, i] if "A transposed" in name else a[i, k]
        y = b[j, k] if "B transposed" in name else b[k, j]
        return te.sum(x.astype(sum_) * y.astype(sum_), axis=k)

    c = te.compute((rows, columns), term, name="C")
    f = kiln.build([a, b, c], target="llvm", name="product")
    random = np.random.default_rng(0)
    device = kiln.cpu()
    given = [numbers(a_shape, left, random), numbers(b_shape, right, random)]
    tensors = [kiln.nd.array(each, device) for each in given]
    tensors.append(kiln.nd.empty((rows, columns), sum_, device))
    f(*tensors)
    x, y = (each.astype("float64") for each in given)
    expected = (x.T if "A transposed" in name else x) @ (y.T if "B transposed" in name else y)
    error = np.abs(tensors[2].numpy() - expected).max() / np.abs(expected).max()
    assert error < 1e-2, f"{name}, {types}: off by {error}"

    def run(times):
        return min(f.time_evaluator(f.entry_name, device, number=times, repeat=1)(*tensors).results)

    return run


def of_torch(name, types):
    import torch

    if types[0] == "uint8":
        return None
    a_shape, b_shape = shapes_of(name)
    make = (lambda shape: torch.randint(0, 100, shape, dtype=torch.int8)) if types[0] == "int8" else (
        lambda shape: torch.randn(shape).to(getattr(torch, types[0]))
    )  # fmt: skip
    a, b = make(a_shape), make(b_shape)
    a = a.t() if "A transposed" in name else a
    b = b.t() if "B transposed" in name else b
    multiply = torch._int_mm if types[0] == "int8" else torch.mm

    def run(times):
        start = time.perf_counter()
        for _ in range(times):
            multiply(a, b)
        return (time.perf_counter() - start) / times

    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--type", action="append", choices=TYPES)
    parser.add_argument("--shape", action="append", choices=SHAPES)
    parser.add_argument("--alone", action="store_true", help="without torch")
    given = parser.parse_args()
    if not given.alone:
        import torch

        torch.set_num_threads(given.threads)
    print("| | us | GOP/s | Kiln / torch |\n|---|---|---|---|")
    for type_ in given.type or TYPES:
        for name in given.shape or SHAPES:
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
            rows, steps, columns = SHAPES[name]
            rate = 2 * rows * steps * columns / best[0] / 1e9
            ratio = f"{best[1] / best[0]:.2f}" if best[1] else ""
            print(f"| {type_}, {name} | {best[0] * 1e6:.1f} | {rate:.0f} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
