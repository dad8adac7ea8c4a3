"""Times on the device: what a call costs, how fast memory is, and kernels beside torch where it is there."""

import statistics
import time

import cublas
import kernels
import numpy as np
import timed_kernels
from host import CompilesOnly

import kiln
from kiln import te

ELEMENTS = 1 << 26  # of what is copied, more than caches hold


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


def by_torch(timed, values):
    """A function that times a kernel's work once by torch on the GPU; none where there is no torch for one."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    tensors = [torch.from_numpy(each).to("cuda", getattr(torch, arg.dtype))
               for each, arg in zip(values, timed.args[:-1], strict=True)]
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def once():
        begin.record()
        timed.torch(torch, *tensors)
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e-3

    once()
    return once


def by_cublas(timed, row):
    """The same by cuBLAS, of products of squares in float32; `row` is told where it is not here."""
    shapes = {tuple(int(extent) for extent in arg.shape) for arg in timed.args}
    [shape, *others] = shapes
    if others or len(shape) != 2 or shape[0] != shape[1] or not timed.operations or timed.args[0].dtype != "float32":
        return None
    try:
        return cublas.matmul(shape[0])
    except cublas.Refused as error:
        row["cublas"] = str(error)
        return None


def predicted(connection, args, target):
    """What a kernel is predicted to take, in seconds, and what it waits for."""
    first = kiln.predict(args, target=target, connection=connection).schedules[0]
    return {"predicted": first.seconds, "bound_by": first.bound}


def values_of(timed):
    """Of its inputs, float32 of 0 to 1, the same each time."""
    random = np.random.RandomState(1)
    return [random.rand(*(int(extent) for extent in arg.shape)).astype("float32") for arg in timed.args[:-1]]


def arrays_of(timed):
    """Its inputs, in their own types, and its result, on the device."""
    device = kiln.cuda(0)
    own_type = {arg.dtype: kiln.nd.empty((1,), arg.dtype).numpy().dtype for arg in timed.args}
    arrays = [kiln.nd.array(each.astype(own_type[arg.dtype]), device)
              for each, arg in zip(values_of(timed), timed.args[:-1], strict=True)]
    result = timed.args[-1]
    return [*arrays, kiln.nd.empty(tuple(int(extent) for extent in result.shape), result.dtype, device)]


def beside_others(connection, timed, rounds, fake):
    """All in turns, since a GPU that gets warm gets slow: the least of each."""
    kernel = connection.build(timed.args, target="cuda")
    arrays = arrays_of(timed)
    row = predicted(connection, timed.args, "cuda")
    others = {} if fake else {"torch": by_torch(timed, values_of(timed)), "cublas": by_cublas(timed, row)}
    ours, theirs = [], {name: [] for name, once in others.items() if once}
    for _ in range(rounds):
        ours.append(measured(kernel, arrays, 1, 1))
        for name, seconds in theirs.items():
            seconds.append(others[name]())
    row.update(seconds=min(ours), **rate(timed, min(ours)))
    return {**row, **{f"{name}_seconds": min(seconds) for name, seconds in theirs.items()}}


def rate(timed, seconds):
    return {"flops": timed.operations / seconds} if timed.operations else {"bytes_a_second": timed.bytes / seconds}


def means(rows):
    """Of each group the geometric mean of how fast it is beside others, and of predicted to measured times."""
    found = {}
    for group, kernels_of_group in rows.items():
        ratios = {}
        for row in kernels_of_group.values():
            for name in ("torch_seconds", "cublas_seconds", "predicted"):
                if name in row:
                    ratios.setdefault(name.removesuffix("_seconds"), []).append(row[name] / row["seconds"])
        found[group] = {name: statistics.geometric_mean(each) for name, each in ratios.items()}
    return found


def times(connection, fake):
    elements = 1 << 12 if fake else ELEMENTS
    rows = {group: {name: beside_others(connection, timed, 3, fake) for name, timed in kernels_of_group.items()}
            for group, kernels_of_group in timed_kernels.groups(small=fake).items()}
    return {"call": call_cost(connection, 20 if fake else 1000), "copy": copy_rate(connection, elements, 3),
            # Rounds whose tensors all fit a service's memory, though none of them were freed yet.
            "overlap": overlap(connection, elements // 16, 4 if fake else 20), "kernels": rows, "means": means(rows)}


def predictions(connection, arches, word=""):
    """What the same kernels, those with `word` in their names, are predicted to take on GPUs that are not here, by
    architecture."""
    return {arch: {group: {name: predicted(connection, timed.args, f"cuda -arch={arch}")
                           for name, timed in kernels_of_group.items() if word in name}
                   for group, kernels_of_group in timed_kernels.groups().items()} for arch in arches}


def compile_all(connection):
    """What times() will build."""
    timed = [each.args for group in timed_kernels.groups().values() for each in group.values()]
    for args in (kernels.add_one(64), kernels.add_one(ELEMENTS), copy_of(ELEMENTS), *timed):
        try:
            connection.build(args, target="cuda")
        except CompilesOnly:
            pass
