"""Kernels that are timed on a GPU, without a schedule, each with what torch does for the same: products in float32 and in
16 bits, convolutions, and what waits for memory."""

import dataclasses
import math
from collections.abc import Callable

import kernels

from kiln import te

# Rows, steps of the sum, columns; "A" and "B": stored across.
PRODUCTS = [
    (256, 256, 256, ""), (512, 512, 512, ""), (1024, 1024, 1024, ""), (2048, 2048, 2048, ""), (4096, 4096, 4096, ""),
    (2048, 2048, 2048, "A"), (2048, 2048, 2048, "B"), (2048, 2048, 2048, "AB"), (1023, 1027, 1025, ""),
    (4095, 4091, 4093, ""), (1000, 784, 256, ""), (33, 1000, 777, ""), (64, 4096, 4096, ""), (4096, 4096, 64, ""),
    (4096, 64, 4096, ""), (512, 8192, 512, ""), (8192, 1024, 1024, ""), (384, 1536, 640, ""), (777, 333, 555, "B"),
    (3000, 700, 2000, "A"),
]  # fmt: skip
NARROW = ("bfloat16", "float16")
NARROW_PRODUCTS = [PRODUCTS[i] for i in (2, 3, 4, 6, 9, 11, 12)]
# Images, channels, height and width with what is around them, filters, height and width of a filter, step.
CONVOLUTIONS = [(8, 64, 58, 58, 64, 3, 3, 1), (8, 256, 16, 16, 256, 3, 3, 1), (8, 256, 56, 56, 64, 1, 1, 1),
                (4, 3, 230, 230, 64, 7, 7, 2)]  # fmt: skip


@dataclasses.dataclass
class Timed:
    """`args` are its tensors, the result last; `torch` makes the same of torch and tensors of torch; `operations` are
    those of a run, 0 where it is bytes that count."""

    args: list
    torch: Callable
    operations: int = 0

    @property
    def bytes(self):
        """Of each tensor once."""
        sizes = {"float32": 4, "bfloat16": 2, "float16": 2}
        return sum(math.prod(int(extent) for extent in arg.shape) * sizes[arg.dtype] for arg in self.args)


def product(rows, steps, columns, across="", dtype="float32"):
    a = te.placeholder((steps, rows) if "A" in across else (rows, steps), dtype=dtype, name="A")
    b = te.placeholder((columns, steps) if "B" in across else (steps, columns), dtype=dtype, name="B")
    k = te.reduce_axis((0, steps), name="k")

    def term(i, j):
        x = a[k, i] if "A" in across else a[i, k]
        y = b[j, k] if "B" in across else b[k, j]
        return te.sum(x.astype("float32") * y.astype("float32"), axis=k)

    c = te.compute((rows, columns), term, name="C")
    if dtype != "float32":
        c = te.compute((rows, columns), lambda i, j: c[i, j].astype(dtype), name="D")

    def by_torch(torch, x, y):
        return torch.mm(x.T if "A" in across else x, y.T if "B" in across else y)

    return Timed([a, b, c], by_torch, 2 * rows * steps * columns)


def convolution(images, channels, height, width, filters, rows, columns, step):
    x = te.placeholder((images, channels, height, width), name="X")
    f = te.placeholder((filters, channels, rows, columns), name="F")
    c, r, s = (te.reduce_axis((0, extent), name=name) for extent, name in ((channels, "c"), (rows, "r"), (columns, "s")))
    shape = (images, filters, (height - rows) // step + 1, (width - columns) // step + 1)
    y = te.compute(
        shape, lambda n, m, i, j: te.sum(x[n, c, i * step + r, j * step + s] * f[m, c, r, s], axis=[c, r, s]), name="Y")  # fmt: skip
    return Timed([x, f, y], lambda torch, a, b: torch.nn.functional.conv2d(a, b, stride=step),
                 2 * math.prod(shape) * channels * rows * columns)  # fmt: skip


def gelu(elements):
    x = te.placeholder((elements,), name="X")
    y = te.compute((elements,), lambda i: 0.5 * x[i] * (1 + te.erf(x[i] * 0.70710678)), name="Y")
    return Timed([x, y], lambda torch, a: torch.nn.functional.gelu(a))


def multiply_add(elements):
    a, b, c = (te.placeholder((elements,), name=name) for name in "ABC")
    y = te.compute((elements,), lambda i: te.max(a[i] * b[i] + c[i], 0.0), name="Y")
    return Timed([a, b, c, y], lambda torch, x, y, z: torch.relu(torch.addcmul(z, x, y)))


def softmax(rows, columns):
    return Timed(kernels.softmax(rows, columns), lambda torch, a: torch.softmax(a, 1))


def norm(rows, columns):
    x = te.placeholder((rows, columns), name="X")
    k, l = (te.reduce_axis((0, columns), name=name) for name in "kl")
    total = te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="total")
    spread = te.compute(
        (rows,), lambda i: te.sum((x[i, l] - total[i] / columns) * (x[i, l] - total[i] / columns), axis=l), name="spread")  # fmt: skip
    y = te.compute(
        (rows, columns), lambda i, j: (x[i, j] - total[i] / columns) * te.rsqrt(spread[i] / columns + 1e-5), name="Y")  # fmt: skip
    return Timed([x, y], lambda torch, a: torch.nn.functional.layer_norm(a, (columns,)))


def sum_along(rows, columns, axis):
    x = te.placeholder((rows, columns), name="X")
    k = te.reduce_axis((0, (rows, columns)[axis]), name="k")
    kept = (columns, rows)[axis]
    y = te.compute((kept,), lambda i: te.sum(x[i, k] if axis else x[k, i], axis=k), name="Y")
    return Timed([x, y], lambda torch, a: torch.sum(a, axis))


def transpose(rows, columns):
    x = te.placeholder((rows, columns), name="X")
    y = te.compute((columns, rows), lambda i, j: x[j, i], name="Y")
    return Timed([x, y], lambda torch, a: a.T.contiguous())


def _memory(rows, columns):
    shape = f"{rows}x{columns}"
    elements = rows * columns
    return {f"gelu {elements}": gelu(elements), f"max(a*b + c, 0) {elements}": multiply_add(elements),
            f"softmax {shape}": softmax(rows, columns), f"norm {shape}": norm(rows, columns),
            f"sum of rows {shape}": sum_along(rows, columns, 1), f"sum of columns {shape}": sum_along(rows, columns, 0),
            f"transpose {shape}": transpose(rows, columns)}  # fmt: skip


def _product_name(rows, steps, columns, across):
    return f"{rows}x{steps}x{columns}" + (f", {' and '.join(across)} across" if across else "")


def groups(small=False):
    """Kernels by their names, by groups whose geometric means are told; `small` for a device that only pretends."""
    if small:
        return {"float32": {"16x24x20": product(16, 24, 20), "40x64x72": product(40, 64, 72)}, "memory": _memory(8, 16)}
    return {
        "float32": {_product_name(*each): product(*each) for each in PRODUCTS},
        **{dtype: {_product_name(*each): product(*each, dtype) for each in NARROW_PRODUCTS} for dtype in NARROW},
        "convolution": {"x".join(map(str, each[:7])) + f", step {each[7]}": convolution(*each) for each in CONVOLUTIONS},
        "memory": _memory(4096, 4096),
    }
