"""What is measured: operators at sizes, as data. What each must compute stands in references.py."""

import zlib
from dataclasses import dataclass, field
from math import prod

import numpy as np


@dataclass(frozen=True)
class Workload:
    name: str
    op: str  # the method of a peer
    shapes: tuple  # of the inputs, float32
    work: float  # of one call: floating operations, or bytes (inputs read once, the output written once)
    unit: str  # GFLOP/s or GB/s
    attrs: dict = field(default_factory=dict)
    tolerance: float = 1e-5  # of the largest value of the result

    def inputs(self):
        """The same numbers in every process."""
        random = np.random.default_rng(zlib.crc32(self.name.encode()))
        arrays = [random.uniform(-1, 1, shape).astype("float32") for shape in self.shapes]
        if self.op == "cross_entropy":
            rows, classes = self.shapes[1]
            arrays[1] = np.eye(classes, dtype="float32")[random.integers(0, classes, rows)]
        return arrays

    def rate(self, seconds):
        """In the workload's unit."""
        return self.work / seconds / 1e9


def _matmul(name, rows, inner, columns, batch=(), a_transposed=False, b_transposed=False):
    a = (inner, rows) if a_transposed else (rows, inner)
    b = (columns, inner) if b_transposed else (inner, columns)
    attrs = {"a_transposed": a_transposed, "b_transposed": b_transposed}
    flops = 2 * rows * inner * columns * prod(batch)
    return Workload(name, "matmul", (batch + a, batch + b), flops, "GFLOP/s", attrs)


def _conv(name, data, weight, stride=1, padding=0, groups=1):
    sizes = [(extent + 2 * padding - k) // stride + 1 for extent, k in zip(data[2:], weight[2:])]
    attrs = {"stride": stride, "padding": padding, "groups": groups}
    return Workload(name, "conv2d", (data, weight), 2 * data[0] * prod(sizes) * prod(weight), "GFLOP/s", attrs)


def _memory(name, op, inputs, output, tolerance=1e-5, **attrs):
    moved = 4 * (sum(map(prod, inputs)) + prod(output))
    return Workload(name, op, inputs, moved, "GB/s", attrs, tolerance)


_SQUARE = (4096, 4096)

GROUPS = {
    "matmul": [
        *(_matmul(f"matmul {n}", n, n, n) for n in (64, 100, 127, 128, 256, 512, 1000, 1024, 2048)),
        _matmul("matmul 1024, B transposed", 1024, 1024, 1024, b_transposed=True),
        _matmul("matmul 1024, A transposed", 1024, 1024, 1024, a_transposed=True),
        _matmul("matmul 1024, both transposed", 1024, 1024, 1024, a_transposed=True, b_transposed=True),
        _matmul("matmul 1000x784x256", 1000, 784, 256),
        _matmul("matmul 1000x256x100", 1000, 256, 100),
        _matmul("matmul 33x1000x777", 33, 1000, 777),
        _matmul("matmul 1023x1025x1027", 1023, 1025, 1027),
        _matmul("matmul 1x4096x4096", 1, 4096, 4096),
    ],
    "batched matmul": [
        _matmul("batch 64, 128x128x128", 128, 128, 128, (64,)),
        _matmul("batch 16, 512x64x512", 512, 64, 512, (16,)),
        _matmul("batch 32, 128x64x128", 128, 64, 128, (32,)),
    ],
    "convolution": [
        _conv("conv 3x3, 64 channels, 56x56", (1, 64, 56, 56), (64, 64, 3, 3), padding=1),
        _conv("conv 7x7 stride 2, 224x224", (1, 3, 224, 224), (64, 3, 7, 7), stride=2, padding=3),
        _conv("conv 3x3, 512 channels, 7x7", (1, 512, 7, 7), (512, 512, 3, 3), padding=1),
        _conv("conv 1x1, 256 channels, 56x56", (1, 256, 56, 56), (64, 256, 1, 1)),
        _conv("conv 3x3, 8 of 32x28x28", (8, 32, 28, 28), (64, 32, 3, 3)),
        _conv("conv 3x3 depthwise, 64x56x56", (1, 64, 56, 56), (64, 1, 3, 3), padding=1, groups=64),
        _conv("conv 5x5, 100 of 3x28x28", (100, 3, 28, 28), (10, 3, 5, 5)),
    ],
    "rows": [
        *(_memory(f"softmax {r}x{c}", "softmax", ((r, c),), (r, c)) for r, c in ((1000, 10), (4096, 1000), (64, 32000))),
        *(_memory(f"cross entropy 1000x{c}", "cross_entropy", ((1000, c),) * 2, ()) for c in (10, 1000)),
        _memory("layer norm 4096x1024", "layer_norm", ((4096, 1024), (1024,), (1024,)), (4096, 1024)),
    ],
    "elements": [
        _memory("max(a*b + c, 0), 10M", "fma_relu", ((10_000_000,),) * 3, (10_000_000,)),
        _memory("max(a*b + c, 0), 64K", "fma_relu", ((65_536,),) * 3, (65_536,)),
        _memory("gelu 10M", "gelu", ((10_000_000,),), (10_000_000,)),
        _memory("bias add 4096x4096", "add", (_SQUARE, (4096,)), _SQUARE),
        _memory("transpose 4096x4096", "transpose", (_SQUARE,), (4096, 4096)),
    ],
    "reductions": [
        _memory("sum of columns 4096x4096", "sum", (_SQUARE,), (4096,), axis=0),
        _memory("sum of rows 4096x4096", "sum", (_SQUARE,), (4096,), axis=1),
        _memory("maximum of columns 4096x4096", "max", (_SQUARE,), (4096,), axis=0),
        _memory("maximum of rows 4096x4096", "max", (_SQUARE,), (4096,), axis=1),
        _memory("sum of columns 1000x256", "sum", ((1000, 256),), (256,), axis=0),
    ],
    "scans": [
        *(_memory(f"running sum down {r}x{c}", "cumsum", ((r, c),), (r, c), 1e-4, axis=0)
          for r, c in ((10, 1024), (1024, 1024), (4096, 4096))),
        _memory("running sum along 4096x4096", "cumsum", (_SQUARE,), _SQUARE, 1e-4, axis=1),
        _memory("s = 0.9*s + x, 4096x1024", "recurrence", ((4096, 1024),), (4096, 1024), 1e-4, decay=0.9),
    ],
}  # fmt: skip

# The schedule that tutorials teach, by those that have schedules: tiles of 32 x 32, the sum in fours, vectors, threads.
_TAUGHT = Workload("matmul 1024, scheduled by hand", "tutorial", ((1024, 1024),) * 2, 2 * 1024**3, "GFLOP/s")
GROUPS["by hand"] = [_TAUGHT]

# Kiln's speed over the fastest peer's, to reach in a group: in each workload (see also report.least), and as the mean.
BARS = {
    "matmul": (0.95, 1.05), "batched matmul": (0.95, 1.05), "convolution": (0.95, 1), "rows": (1, 1), "elements": (1, 1),
    "reductions": (1, 1), "scans": (1, 1), "by hand": (1, 1), "random": (0.5, 0.9),
}  # fmt: skip

# The share of streaming triad to reach where the data are larger than any cache.
TRIAD_BARS = {"elements": 0.9, "reductions": 0.9, "scans": 0.85}
PAST_CACHES = 64 << 20  # bytes

WORKLOADS = {workload.name: workload for group in GROUPS.values() for workload in group}
