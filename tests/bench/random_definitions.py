"""Definitions drawn at random: the families of expressions.py with axes permuted, odd sizes, and epilogues.

    python tests/bench/compare.py --random 7                          40 of seed 7
    python tests/bench/compare.py --random 7 --workload '*convolution*'

`drawn(seed)` gives the same workloads in every process.
"""

import random
from math import prod

from workloads import Workload

COUNT = 40
# How often each family is drawn, of COUNT.
_SHARES = {
    "contraction": 13, "convolution": 6, "normalised": 6, "reduction": 6, "chain": 4, "scan": 3,
    "stencil": 1, "distances": 1,
}  # fmt: skip


def drawn(seed):
    names = [family for family, share in _SHARES.items() for _ in range(share)]
    assert len(names) == COUNT
    workloads = []
    for index, family in enumerate(names):
        choice = random.Random(seed * 1000 + index)
        shapes, work, unit, parameters, what = globals()[f"_{family}"](choice)
        attrs = {"family": family, "parameters": parameters}
        name = f"random {seed}.{index} {family} {what}"
        workloads.append(Workload(name, "expression", shapes, work, unit, attrs, 1e-4))
    return workloads


def named(name):
    """The workload that drawn() calls so."""
    seed = int(name.split()[1].split(".")[0])
    return next(workload for workload in drawn(seed) if workload.name == name)


def _times(sizes):
    return "x".join(map(str, sizes))


def _bytes(shapes, output):
    return 4 * (sum(map(prod, shapes)) + prod(output))


def _odd(choice, low, high):
    """A size, seldom a round one."""
    odd, round_ = choice.randint(low // 2, high // 2) * 2 + 1, choice.randint(low // 16 + 1, high // 16 + 1) * 16
    return choice.choice((choice.randint(low, high), odd, round_))


def _shuffled(choice, items):
    items = list(items)
    choice.shuffle(items)
    return items


def _epilogue(choice, output):
    """Steps, and the shapes of what they read."""
    steps, shapes = [], []
    if choice.random() < 0.5:
        axis = choice.randrange(len(output))
        steps.append(("bias", axis))
        shapes.append((output[axis],))
    if choice.random() < 0.25:
        steps.append(("residual", None))
        shapes.append(tuple(output))
    if choice.random() < 0.25:
        steps.append(("scale", 0.125))
    if choice.random() < 0.5:
        steps.append((choice.choice(("relu", "relu", "tanh")), None))
    return steps, shapes


def _with(steps):
    return "".join(f" {step}{'' if step != 'bias' else f'[{argument}]'}" for step, argument in steps)


def _contraction(choice):
    batch, split = choice.random() < 0.35, choice.random() < 0.2
    extents = {x: _odd(choice, 40, 700) for x in "ijk"}
    if split:
        extents.update(k=_odd(choice, 12, 40), l=_odd(choice, 8, 24))
    if batch:
        extents.update({"b": _odd(choice, 4, 24), **{x: _odd(choice, 20, 160) for x in "ij"}})
    summed, shared = ("kl" if split else "k"), ("b" if batch else "")
    left, right = (_shuffled(choice, shared + own + summed) for own in "ij")
    out = _shuffled(choice, shared + "ij")
    output = [extents[x] for x in out]
    steps, more = _epilogue(choice, output)
    spec = f"{''.join(left)},{''.join(right)}->{''.join(out)}"
    shapes = (*(tuple(extents[x] for x in side) for side in (left, right)), *more)
    what = f"{spec} {' '.join(f'{x}={e}' for x, e in sorted(extents.items()))}{_with(steps)}"
    return shapes, 2 * prod(extents.values()), "GFLOP/s", {"spec": spec, "epilogue": steps}, what


def _convolution(choice):
    kernel, stride, dilation = choice.choice((1, 3, 3, 5)), choice.choice((1, 1, 2)), choice.choice((1, 1, 1, 2))
    padding = choice.choice((0, (kernel - 1) * dilation // 2))
    count, channels, outputs = choice.choice((1, 2, 5, 8)), choice.randint(3, 80), choice.randint(8, 100)
    height, width = choice.randint(17, 60), choice.randint(17, 60)
    last = choice.random() < 0.3
    sizes = [(e + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1 for e in (height, width)]
    data = (count, height, width, channels) if last else (count, channels, height, width)
    output = (count, *sizes, outputs) if last else (count, outputs, *sizes)
    steps, more = [], []
    if choice.random() < 0.7:
        steps, more = [("bias", 3 if last else 1)], [(outputs,)]
    if choice.random() < 0.5:
        steps.append(("relu", None))
    weight = (outputs, channels, kernel, kernel)
    parameters = {"stride": stride, "padding": padding, "dilation": dilation, "channels_last": last, "epilogue": steps}
    what = f"{_times(data)} by {_times(weight)}" + (" channels last" if last else "")
    plain = {"stride": 1, "padding": 0, "dilation": 1}
    what += "".join(f" {k} {parameters[k]}" for k, usual in plain.items() if parameters[k] != usual)
    return (data, weight, *more), 2 * prod(output) * prod(weight[1:]), "GFLOP/s", parameters, what + _with(steps)


def _normalised(choice):
    rank, kind = choice.choice((2, 2, 3)), choice.choice(("softmax", "centred", "roots"))
    axis = choice.choice((rank - 1, rank - 1, rank - 2))
    last = choice.randint(30, 900)
    shape = (choice.randint(100, 3000), last)
    if rank == 3:
        shape = (choice.randint(3, 40), choice.randint(30, 200), last)
    factor = choice.choice((1.0, 0.125)) if kind == "softmax" else 1e-5
    shapes = (shape,) if kind == "softmax" else (shape, (shape[axis],))
    parameters = {"kind": kind, "axis": axis, "factor": factor}
    return shapes, _bytes(shapes, shape), "GB/s", parameters, f"{kind} {_times(shape)} along {axis}"


def _reduction(choice):
    rank, kind = choice.choice((2, 3, 4)), choice.choice(("sum", "maximum", "squares", "product"))
    low, high = {2: (500, 3000), 3: (40, 260), 4: (12, 70)}[rank]
    shape = tuple(_odd(choice, low, high) for _ in range(rank))
    axes = sorted(choice.sample(range(rank), choice.randint(1, rank - 1)))
    strides = [1] * rank
    if choice.random() < 0.35:
        strides[choice.randrange(rank)] = 2
    shapes = (shape, shape) if kind == "product" else (shape,)
    read = [-(-e // stride) for e, stride in zip(shape, strides)]
    output = [e for i, e in enumerate(read) if i not in axes]
    what = f"{kind} {_times(shape)} over {axes}" + (f" every {strides}" if max(strides) > 1 else "")
    work = _bytes([read] * len(shapes), output)
    return shapes, work, "GB/s", {"kind": kind, "axes": axes, "strides": strides}, what


def _chain(choice):
    rank, kind = choice.choice((2, 3)), choice.choice(("relu", "gate", "tanh"))
    shape = tuple(_odd(choice, *((400, 2500) if rank == 2 else (30, 220))) for _ in range(rank))
    order = _shuffled(choice, range(rank))
    x = [0] * rank
    for place, axis in enumerate(order):
        x[axis] = shape[place]
    shapes = (tuple(x), shape, (shape[-1],))
    return shapes, _bytes(shapes, shape), "GB/s", {"order": order, "kind": kind}, f"{kind} {_times(shape)} order {order}"


def _scan(choice):
    rank, kind = choice.choice((2, 3)), choice.choice(("sum", "decay"))
    shape = tuple(_odd(choice, *((100, 2000) if rank == 2 else (20, 160))) for _ in range(rank))
    axis = choice.randrange(rank)
    parameters = {"kind": kind, "axis": axis, "decay": 0.75}
    return (shape,), _bytes((shape,), shape), "GB/s", parameters, f"{kind} {_times(shape)} along {axis}"


def _stencil(choice):
    taps, shape = choice.choice((3, 5)), (choice.randint(1, 6), choice.randint(200, 1200), choice.randint(200, 1200))
    weights = [[round(choice.uniform(-1, 1), 3) for _ in range(taps)] for _ in range(taps)]
    output = (shape[0], shape[1] - taps + 1, shape[2] - taps + 1)
    work = _bytes((shape,), output)
    return (shape,), work, "GB/s", {"taps": taps, "weights": weights}, f"{taps}x{taps} of {_times(shape)}"


def _distances(choice):
    rows, others, inner = choice.randint(100, 500), choice.randint(100, 500), choice.randint(8, 100)
    shapes = ((rows, inner), (others, inner))
    turned = choice.random() < 0.5
    return shapes, 3 * rows * others * inner, "GFLOP/s", {"turned": turned}, f"{rows}x{others}x{inner}"
