"""How long the daemon takes for a kernel it has not seen, has in memory, or has on disk; prints a table, judges nothing.

    python tests/bench/compile_time.py [--count 30] [--json FILE] [--arch sm_90]

Starts a kilnd (KILN_DAEMON, or that of PATH) of its own with an empty cache. Each kernel has many definitions, no two
alike, so that no cache serves. "compiled", "from memory" and "from disk" are the daemon's own reports; from memory also how
much longer a client waits than for a call that does nothing. With --arch it is for CUDA, by way of NVRTC, and needs no GPU.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

import numpy as np

import kiln
from kiln import te, topi
from kiln.v1 import service_pb2 as wire


def elements(i):
    X, Y, Z = (te.placeholder((1000 + i,), name=name) for name in "XYZ")
    return [X, Y, Z, te.compute(X.shape, lambda j: te.max(X[j] * Y[j] + Z[j], 0.5 + i), name="out")]


def symbolic_elements(i):
    n = te.var("n")
    X, Y = (te.placeholder((n,), name=name) for name in "XY")
    return [X, Y, te.compute((n,), lambda j: X[j] + Y[j] * (2.0 + i), name="out")]


def product(i):
    size = 512 + 32 * i
    A, B = te.placeholder((size, 1024), name="A"), te.placeholder((1024, 1024), name="B")
    k = te.reduce_axis((0, 1024), name="k")
    return [A, B, te.compute((size, 1024), lambda y, x: te.sum(A[y, k] * B[k, x], axis=k), name="C")]


def odd_product(i):
    A, B = te.placeholder((101 + 2 * i, 777), name="A"), te.placeholder((777, 333), name="B")
    k = te.reduce_axis((0, 777), name="k")
    return [A, B, te.compute((101 + 2 * i, 333), lambda y, x: te.sum(A[y, k] * B[k, x], axis=k), name="C")]


def tiled(arguments):
    """The schedule that tutorials teach."""
    C = arguments[-1]
    s = te.create_schedule(C.op)
    (x, y), (k,) = s[C].op.axis, s[C].op.reduce_axis
    (xo, xi), (yo, yi), (ko, ki) = (s[C].split(axis, factor=f) for axis, f in ((x, 32), (y, 32), (k, 4)))
    s[C].reorder(xo, yo, ko, xi, yi, ki)
    s[C].vectorize(yi)
    s[C].parallel(xo)
    return s


def convolution(i):
    X = te.placeholder((1, 64, 56, 56), name="X")
    F = te.placeholder((32 + 2 * i, 64, 3, 3), name="F")
    return [X, F, topi.nn.conv2d(X, F, 1, 1, 1)]


def softmax(i):
    X = te.placeholder((1000, 500 + i), name="X")
    return [X, topi.nn.softmax(X)]


# The kernel, its definitions, its schedule, and the milliseconds to reach.
KERNELS = [
    ("element-wise, fixed size", elements, None, 5),
    ("element-wise, any size", symbolic_elements, None, 5),
    ("matmul", product, None, 8),
    ("matmul of odd sizes", odd_product, None, 8),
    ("matmul, tiled by hand", product, tiled, 8),
    ("softmax", softmax, None, None),
    ("conv2d 3x3", convolution, None, 15),
]


# The same for a GPU.
BAR_OF_CUDA = 100
arch = None  # of the GPU; None: for this host's processor


class Daemon:
    """A kilnd on a socket of its own, and a connection to it."""

    def __init__(self, folder):
        program = os.environ.get("KILN_DAEMON") or shutil.which("kilnd")
        if program is None:
            raise SystemExit("there is no kilnd: set KILN_DAEMON, or put it on PATH")
        address = f"unix:{folder}/kilnd.sock"
        self.log = open(folder / "kilnd.log", "w")
        command = [program, "--listen", address, "--cache-dir", str(folder / "cache")]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        limit = time.monotonic() + 30
        while not (folder / "kilnd.sock").exists():
            if self.process.poll() is not None or time.monotonic() > limit:
                raise SystemExit(f"kilnd does not start: {(folder / 'kilnd.log').read_text()[-500:]}")
            time.sleep(0.01)
        self.connection = kiln.connect(address)

    def close(self):
        self.connection.close()
        self.process.terminate()
        self.process.wait()
        self.log.close()


def build(kernel, i):
    """The function, and the seconds until the client had it."""
    _, make, schedule, _ = kernel
    arguments = make(i)
    inputs = (schedule(arguments), arguments) if schedule else (arguments,)
    begin = time.perf_counter()
    function = kiln.compile(*inputs, target="cuda", arch=arch) if arch else kiln.build(*inputs)
    return function, time.perf_counter() - begin


def reported(kernel, indices, cache):
    """The daemon's reports, and the clients' waits, of kernels that must come from `cache`."""
    seconds, waits = [], []
    for i in indices:
        function, wait = build(kernel, i)
        came = function.timings["cache"]
        if came != cache:
            raise SystemExit(f"{kernel[0]} {i} came from {came}, not {cache}: is another client using this daemon?")
        seconds.append(function.timings["compile"])
        waits.append(wait)
    return seconds, waits


def waits_of(action, count):
    seconds = np.empty(count)
    for i in range(count):
        begin = time.perf_counter()
        action()
        seconds[i] = time.perf_counter() - begin
    return seconds


def from_memory(kernel, connection, calls=2000):
    """Seconds for a kernel in memory: the daemon's report, and how much longer than for nothing a client waits."""
    request = build(kernel, 1)[0]._request
    compiled = lambda: connection.call("KernelService/Compile", request, wire.CompileResponse)
    nothing = lambda: connection.call("TensorService/Free", wire.FreeRequest(), wire.FreeResponse)
    waits_of(compiled, 200), waits_of(nothing, 200)
    turns = [(waits_of(compiled, calls // 5), waits_of(nothing, calls // 5)) for _ in range(5)]
    longer = statistics.median(float(np.median(a) - np.median(b)) for a, b in turns)
    return statistics.median(compiled().timings.compile for _ in range(calls // 5)), longer


def take_turns(folder, count):
    """{kernel: seconds}, as medians."""
    table = {}
    daemon = Daemon(folder)
    try:
        for kernel in KERNELS:
            build(kernel, 0)  # the compiler process has then seen its code once
            seconds, waits = reported(kernel, range(1, count + 1), "compiled")
            memory, longer = from_memory(kernel, daemon.connection)
            table[kernel[0]] = {
                "compiled": statistics.median(seconds), "slowest": max(seconds),
                "wait": statistics.median(waits), "memory": memory, "memory_wait": longer,
            }  # fmt: skip
        time.sleep(1)  # the last kernels are being written to disk
        daemon.close()
        daemon = Daemon(folder)
        for kernel in KERNELS:
            seconds, waits = reported(kernel, range(1, count + 1), "disk")
            table[kernel[0]].update(disk=statistics.median(seconds), disk_wait=statistics.median(waits))
    finally:
        daemon.close()
    return table


def markdown(table):
    rows = [
        "| | compiled, ms | to reach | slowest | client waits | from memory, us | client waits longer | from disk, us | client waits |",
        "|---" * 9 + "|",
    ]
    for name, _, _, bar in KERNELS:
        row = table[name]
        compiled = f"{row['compiled'] * 1e3:.1f}"
        if bar and row["compiled"] * 1e3 > bar:
            compiled = f"**{compiled}**"
        memory, longer, disk = (f"{row[level] * 1e6:.0f}" for level in ("memory", "memory_wait", "disk"))
        rows.append(
            f"| {name} | {compiled} | {bar or ''} | {row['slowest'] * 1e3:.1f} | {row['wait'] * 1e3:.1f} | "
            f"{memory} | {longer} | {disk} | {row['disk_wait'] * 1e6:.0f} |"
        )
    return "\n".join([*rows, "", "To reach from memory: 20 us, from disk: 300 us." if not arch else "To reach from disk: 2 ms."])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=30, help="definitions of each kernel (%(default)s)")
    parser.add_argument("--json", type=pathlib.Path, help="where to write the figures")
    parser.add_argument("--arch", help="sm_90, ...: compile for such a GPU")
    options = parser.parse_args()
    if options.arch:
        global arch, KERNELS
        arch = options.arch
        KERNELS = [(name, make, None, BAR_OF_CUDA) for name, make, schedule, _ in KERNELS if not schedule]
    with tempfile.TemporaryDirectory(prefix="kiln-bench-") as folder:
        table = take_turns(pathlib.Path(folder), options.count)
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))
    print(markdown(table))


if __name__ == "__main__":
    main()
