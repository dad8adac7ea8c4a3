"""Families of definitions with parameters, written once for numpy, torch and jax.

`names` has what the three call differently; a family whose `needs` it lacks is left out for that peer. Results lie in
memory in the order of their axes, as Kiln's do: a view with its axes swapped is not the work that was asked for.
"""


def contraction(names, a, b, *rest, spec, epilogue):
    return _finished(names, names.einsum(spec, a, b), rest, epilogue)


def convolution(names, data, weight, *rest, stride, padding, dilation, channels_last, epilogue):
    if channels_last:
        data = names.transposed(data, (0, 3, 1, 2))
    out = names.conv2d(data, weight, stride, padding, dilation)
    if channels_last:
        out = names.transposed(out, (0, 2, 3, 1))
    return _finished(names, out, rest, epilogue)


def normalised(names, x, *rest, kind, axis, factor):
    if kind == "softmax":
        e = names.exp((x - names.largest(x, axis, True)) * factor)
        return e / e.sum(axis=axis, keepdims=True)
    if kind == "centred":
        x = x - x.mean(axis=axis, keepdims=True)
    norm = names.sqrt((x * x).mean(axis=axis, keepdims=True) + factor)
    return x / norm * _along(rest[0], axis, x.ndim)


def reduction(names, x, *rest, kind, axes, strides):
    x = x[tuple(slice(None, None, stride) for stride in strides)]
    if kind == "maximum":
        return names.largest(x, tuple(axes), False)
    if kind == "squares":
        x = x * x
    elif kind == "product":
        x = x * rest[0][tuple(slice(None, None, stride) for stride in strides)]
    return x.sum(axis=tuple(axes))


def chain(names, x, y, z, order, kind):
    """x with its axes in another order, y as it is, z along the last axis."""
    x = names.transposed(x, order)
    if kind == "relu":
        out = names.relu(x * y + z)
    elif kind == "gate":
        out = x * y / (1 + names.exp(-z * y))
    else:
        out = names.tanh(x) * y + z
    return names.dense(out)


def scan(names, x, kind, axis, decay):
    if kind == "sum":
        return names.cumsum(x, axis)
    return names.recurrence(x, axis, decay)


def stencil(names, x, taps, weights):
    """A weighted sum of neighbours, along the last two axes; the output has no border."""
    rows, columns = (extent - taps + 1 for extent in x.shape[-2:])
    total = 0
    for i in range(taps):
        for j in range(taps):
            total = total + weights[i][j] * x[..., i : i + rows, j : j + columns]
    return total


def distances(names, a, b, turned):
    """Squares of the distances of rows."""
    difference = b[:, None] - a[None] if turned else a[:, None] - b[None]
    return (difference * difference).sum(axis=-1)


FAMILIES = {f.__name__: f for f in (contraction, convolution, normalised, reduction, chain, scan, stencil, distances)}


def expression(names, family, parameters):
    """A function of arrays; None where the peer has no name for what it needs."""
    needs = {"convolution": "conv2d", "scan": "cumsum" if parameters.get("kind") == "sum" else "recurrence"}
    if not hasattr(names, needs.get(family, "einsum")):
        return None
    return lambda *arrays: names.dense(FAMILIES[family](names, *arrays, **parameters))


def _along(vector, axis, rank):
    """A vector so that it stretches along one axis of so many."""
    shape = [1] * rank
    shape[axis] = -1
    return vector.reshape(shape)


def _finished(names, out, rest, epilogue):
    """What follows a product: steps (name, argument), those that read an array taking the next of `rest`."""
    rest = iter(rest)
    for step, argument in epilogue:
        if step == "bias":
            out = out + _along(next(rest), argument, out.ndim)
        elif step == "residual":
            out = out + next(rest)
        elif step == "scale":
            out = out * argument
        else:
            out = getattr(names, step)(out)
    return out
