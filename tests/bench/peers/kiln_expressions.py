"""The families of ../expressions.py as Kiln's definitions, plain `te` with names that say nothing."""

import itertools

from kiln import te


class Names:
    """Names of tensors and axes, other ones for every definition."""

    def __init__(self, seed):
        self.words = itertools.count(seed % 89 + 7)

    def __call__(self):
        return f"v{next(self.words)}"


def contraction(name, a, b, *rest, spec, epilogue):
    (left, right), out = spec.split("->")[0].split(","), spec.split("->")[1]
    extents = {**dict(zip(left, a.shape)), **dict(zip(right, b.shape))}
    summed = {x: te.reduce_axis((0, extents[x]), name=name()) for x in extents if x not in out}

    def product(*axes):
        at = {**dict(zip(out, axes)), **summed}
        return te.sum(a(*(at[x] for x in left)) * b(*(at[x] for x in right)), axis=[*summed.values()])

    return _finished(name, te.compute([extents[x] for x in out], product, name=name()), rest, epilogue)


def convolution(name, data, weight, *rest, stride, padding, dilation, channels_last, epilogue):
    def element(n, c, y, x):
        return data[n, y, x, c] if channels_last else data[n, c, y, x]

    count, channels, height, width = data.shape
    if channels_last:
        count, height, width, channels = data.shape
    outputs, _, *kernel = weight.shape
    rows, columns = ((e + 2 * padding - dilation * (k - 1) - 1) // stride + 1 for e, k in zip((height, width), kernel))
    c, i, j = (te.reduce_axis((0, e), name=name()) for e in (channels, *kernel))

    def product(n, f, y, x):
        row, column = y * stride + i * dilation - padding, x * stride + j * dilation - padding
        value = element(n, c, row, column)
        if padding:
            inside = te.all(row >= 0, row < height, column >= 0, column < width)
            value = te.if_then_else(inside, value, 0.0)
        return te.sum(value * weight[f, c, i, j], axis=[c, i, j])

    if channels_last:
        out = te.compute((count, rows, columns, outputs), lambda n, y, x, f: product(n, f, y, x), name=name())
    else:
        out = te.compute((count, outputs, rows, columns), product, name=name())
    return _finished(name, out, rest, epilogue)


def normalised(name, x, *rest, kind, axis, factor):
    without = [e for i, e in enumerate(x.shape) if i != axis]
    extent = x.shape[axis]

    def along(reducer, body):
        k = te.reduce_axis((0, extent), name=name())
        insert = lambda axes: (*axes[:axis], k, *axes[axis:])
        return te.compute(without, lambda *axes: reducer(body(insert(axes), axes), axis=k), name=name())

    drop = lambda axes: (*axes[:axis], *axes[axis + 1 :])
    if kind == "softmax":
        largest = along(te.max, lambda at, _: x(*at))
        e = te.compute(x.shape, lambda *at: te.exp((x(*at) - largest(*drop(at))) * factor), name=name())
        total = along(te.sum, lambda at, _: e(*at))
        return te.compute(x.shape, lambda *at: e(*at) / total(*drop(at)), name=name())
    read = x
    if kind == "centred":
        total = along(te.sum, lambda at, _: x(*at))
        read = te.compute(x.shape, lambda *at: x(*at) - total(*drop(at)) / float(extent), name=name())
    squares = along(te.sum, lambda at, _: read(*at) * read(*at))
    scale = lambda at: te.sqrt(squares(*drop(at)) / float(extent) + factor)
    return te.compute(x.shape, lambda *at: read(*at) / scale(at) * rest[0](at[axis]), name=name())


def reduction(name, x, *rest, kind, axes, strides):
    extents = [(extent + stride - 1) // stride for extent, stride in zip(x.shape, strides)]
    summed = {i: te.reduce_axis((0, extents[i]), name=name()) for i in axes}

    def reduced(*free):
        free = iter(free)
        at = [(summed[i] if i in summed else next(free)) * strides[i] for i in range(len(extents))]
        if kind == "maximum":
            return te.max(x(*at), axis=[*summed.values()])
        value = {"sum": lambda: x(*at), "squares": lambda: x(*at) * x(*at), "product": lambda: x(*at) * rest[0](*at)}
        return te.sum(value[kind](), axis=[*summed.values()])

    return te.compute([e for i, e in enumerate(extents) if i not in summed], reduced, name=name())


def chain(name, x, y, z, order, kind):
    places = [order.index(i) for i in range(len(order))]

    def element(*axes):
        a, b, c = x(*(axes[place] for place in places)), y(*axes), z(axes[-1])
        if kind == "relu":
            return te.max(a * b + c, 0.0)
        return a * b / (1 + te.exp(-c * b)) if kind == "gate" else te.tanh(a) * b + c

    return te.compute(y.shape, element, name=name())


def scan(name, x, kind, axis, decay):
    before = lambda axes, t: (*axes[:axis], t, *axes[axis + 1 :])
    state = te.placeholder(x.shape, name=name())
    first = [1 if i == axis else extent for i, extent in enumerate(x.shape)]
    init = te.compute(first, lambda *axes: x(*before(axes, 0)), name=name())

    def update(*axes):
        old = state(*before(axes, axes[axis] - 1))
        return (old if kind == "sum" else decay * old) + x(*axes)

    return te.scan(init, te.compute(x.shape, update, name=name()), state, name=name(), axis=axis)


def stencil(name, x, taps, weights):
    *outer, rows, columns = x.shape

    def total(*axes):
        *before, r, c = axes
        terms = [weights[i][j] * x(*before, r + i, c + j) for i in range(taps) for j in range(taps)]
        return sum(terms[1:], terms[0])

    return te.compute((*outer, rows - taps + 1, columns - taps + 1), total, name=name())


def distances(name, a, b, turned):
    k = te.reduce_axis((0, a.shape[1]), name=name())

    def square(i, j):
        difference = a[i, k] - b[j, k]
        return te.sum(difference * difference, axis=k)

    if turned:
        return te.compute((b.shape[0], a.shape[0]), lambda j, i: square(i, j), name=name())
    return te.compute((a.shape[0], b.shape[0]), square, name=name())


def _finished(name, out, rest, epilogue):
    """Each step of the epilogue in one expression over the product."""
    rest = list(rest)

    def element(*axes):
        value, reads = out(*axes), iter(rest)
        for step, argument in epilogue:
            if step == "bias":
                value = value + next(reads)(axes[argument])
            elif step == "residual":
                value = value + next(reads)(*axes)
            elif step == "scale":
                value = value * argument
            else:
                value = te.max(value, 0.0) if step == "relu" else te.tanh(value)
        return value

    return te.compute(out.shape, element, name=name()) if epilogue else out
