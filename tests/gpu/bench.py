"""Times on the device: what a call costs, how fast memory is, and contractions beside torch where it is there."""

import statistics
import time

import cublas
import kernels
import numpy as np
from host import CompilesOnly

import kiln
from kiln import te


def call_cost(connection, calls):
    """Seconds of a call on resident arrays, seen from here, and of its kernel on the device's clock."""
    kernel = connection.build(kernels.add_one(64), target="cuda")
    device = kiln.cuda(0)
    x, y = (kiln.nd.array(np.zeros(64, "float32"), device) for _ in range(2))
    kernel(x, y)
    seconds = []
    for _ in range(calls):
        begin = time.perf_counter()
        kernel(x, y)
        seconds.append(time.perf_counter() - begin)
    on_device = kernel.time_evaluator("main", device, number=10, repeat=5)(x, y)
    return {"calls": calls, "median": statistics.median(seconds), "least": min(seconds),
            "kernel": min(on_device.results)}


def measured(kernel, arrays, number, repeat):
    return min(kernel.time_evaluator("main", kiln.cuda(0), number=number, repeat=repeat)(*arrays).results)


def copy_of(elements):
    a = te.placeholder((elements,), name="A")
    return [a, te.compute((elements,), lambda i: a[i], name="B")]


def overlap(connection, elements, rounds):
    """Seconds of a round of upload, call and download, one after another, and with the next upload under way meanwhile."""
    kernel = connection.build(kernels.add_one(elements), target="cuda")
    device = kiln.cuda(0)
    values = np.zeros(elements, "float32")

    def in_turn():
        for _ in range(rounds):
            kernel(kiln.nd.array(values, device)).numpy()

    def together():
        following = kiln.nd.array(values, device)
        for _ in range(rounds):
            under_way = kernel.submit(following)
            following = kiln.nd.array(values, device)
            under_way.result().numpy()

    row = {"bytes": 4 * elements}
    for name, work in (("in_turn", in_turn), ("together", together)) * 2:
        begin = time.perf_counter()
        work()
        seconds = (time.perf_counter() - begin) / rounds
        row[name] = min(seconds, row.get(name, seconds))
    return row


def copy_rate(connection, elements, repeat):
    """Bytes a second, read and written, of B = A."""
    kernel = connection.build(copy_of(elements), target="cuda")
    device = kiln.cuda(0)
    arrays = [kiln.nd.array(np.zeros(elements, "float32"), device) for _ in range(2)]
    seconds = measured(kernel, arrays, 1, repeat)
    return {"elements": elements, "seconds": seconds, "bytes_a_second": 8 * elements / seconds}


def torch_matmul(size):
    """A function that times one product by torch on the GPU; none where there is no torch for one."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    a, b = (torch.rand(size, size, device="cuda") for _ in range(2))
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def once():
        begin.record()
        torch.mm(a, b)
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e-3

    once()
    return once


def matmul(connection, size, rounds, fake):
    """All in turns, since a GPU that gets warm gets slow: the least of each."""
    kernel = connection.build(kernels.matmul(size, size, size), target="cuda")
    device = kiln.cuda(0)
    values = np.random.RandomState(1).rand(size, size).astype("float32")
    arrays = [kiln.nd.array(values, device) for _ in range(3)]
    others = {"torch": torch_matmul(size)}
    row = {"size": size}
    if not fake:
        try:
            others["cublas"] = cublas.matmul(size)
        except cublas.Refused as error:
            row["cublas"] = str(error)
    ours, theirs = [], {name: [] for name, once in others.items() if once}
    for _ in range(rounds):
        ours.append(measured(kernel, arrays, 1, 1))
        for name, seconds in theirs.items():
            seconds.append(others[name]())
    row.update(seconds=min(ours), flops=2 * size**3 / min(ours))
    return {**row, **{f"{name}_seconds": min(seconds) for name, seconds in theirs.items()}}


def sizes(fake):
    """Elements of the copy, and sizes of the products."""
    return (1 << 12, [16]) if fake else (1 << 26, [512, 1024, 2048])


def times(connection, fake):
    elements, products = sizes(fake)
    return {"call": call_cost(connection, 20 if fake else 1000), "copy": copy_rate(connection, elements, 3),
            "overlap": overlap(connection, elements, 4 if fake else 20),
            "matmul": [matmul(connection, size, 3, fake) for size in products]}


def compile_all(connection):
    """What times() will build."""
    elements, products = sizes(False)
    for args in (kernels.add_one(64), kernels.add_one(elements), copy_of(elements),
                 *(kernels.matmul(size, size, size) for size in products)):
        try:
            connection.build(args, target="cuda")
        except CompilesOnly:
            pass
