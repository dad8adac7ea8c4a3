"""Operators that move elements and change none."""

from .._base.error import invalid, public
from .._definitions import define
from .._definitions.broadcast import is_one
from .._expressions import arithmetic, size_math
from .._expressions.arithmetic import apply, as_expr
from .._expressions.text import shape_text, text
from ._common import as_size, constant_int, empty, is_empty, normal_axes, normal_axis, same_size, tensor

__all__ = []


def _export(function):
    __all__.append(function.__name__)
    return public(function)


@_export
def broadcast_to(data, shape):
    """Dimensions of extent 1 repeated, and new ones in front, as numpy does."""
    data = tensor(data, "topi.broadcast_to")
    shape = define.as_shape(shape, "topi.broadcast_to")
    missing = len(shape) - data.ndim
    if missing < 0 or not all(map(_stretches, data.shape, shape[missing:])):
        raise invalid(
            "BROADCAST",
            f"topi.broadcast_to: {data.name} has shape {shape_text(data.shape)}, which does not "
            f"broadcast to {shape_text(shape)}",
        )

    def body(*index):
        stretched = [0 if is_one(s) else i for i, s in zip(index[missing:], data.shape)]
        return data(*stretched)

    return define.compute(shape, body, name="T_broadcast_to")


def _stretches(old, new):
    return is_one(old) or same_size(old, new)


def _along(a, axis, size, place, name):
    """`a` with `size` indices along one dimension, of which index i reads the one at place(i)."""
    shape = [size if d == axis else each for d, each in enumerate(a.shape)]

    def body(*index):
        return a(*(place(i) if d == axis else i for d, i in enumerate(index)))

    return define.compute(shape, body, name=name)


@_export
def broadcast_to_like(data, like):
    """Stretched to the shape of another tensor."""
    return broadcast_to(data, tensor(like, "topi.broadcast_to_like").shape)


@_export
def transpose(a, axes=None):
    """Dimension d of the result is dimension axes[d]; without `axes` in reverse order."""
    a = tensor(a, "topi.transpose")
    if axes is None:
        axes = range(a.ndim)[::-1]
    axes = [normal_axis(a, axis, "topi.transpose") for axis in axes]
    if sorted(axes) != list(range(a.ndim)):
        raise invalid(
            "AXES",
            f"topi.transpose: axes {tuple(axes)} must name each of the {a.ndim} dimensions of "
            f"{a.name} once",
        )

    def body(*index):
        return a(*(index[axes.index(d)] for d in range(a.ndim)))

    return define.compute([a.shape[d] for d in axes], body, name="T_transpose")


@_export
def swapaxes(a, axis1, axis2):
    """Two dimensions exchanged."""
    a = tensor(a, "topi.swapaxes")
    axes = list(range(a.ndim))
    first, second = (normal_axis(a, axis, "topi.swapaxes") for axis in (axis1, axis2))
    axes[first], axes[second] = axes[second], axes[first]
    return transpose(a, axes)


@_export
def expand_dims(a, axis, num_newaxis=1):
    """New dimensions of extent 1 at `axis`."""
    a = tensor(a, "topi.expand_dims")
    axis = normal_axis(a, axis, "topi.expand_dims", a.ndim + 1)
    shape = [*a.shape[:axis], *[1] * num_newaxis, *a.shape[axis:]]

    def body(*index):
        return a(*index[:axis], *index[axis + num_newaxis :])

    return define.compute(shape, body, name="T_expand_dims")


@_export
def squeeze(a, axis=None):
    """Without dimensions of extent 1: those of `axis`, or all."""
    a = tensor(a, "topi.squeeze")
    if axis is None:
        axes = [d for d, size in enumerate(a.shape) if is_one(size)]
    else:
        axes = normal_axes(a, axis, "topi.squeeze")
    for d in axes:
        if not is_one(a.shape[d]):
            raise invalid(
                "SQUEEZE",
                f"topi.squeeze: dimension {d} of {a.name} is {text(a.shape[d])}, but must be 1",
            )
    kept = [d for d in range(a.ndim) if d not in axes]

    def body(*index):
        place = dict(zip(kept, index))
        return a(*(place.get(d, 0) for d in range(a.ndim)))

    return define.compute([a.shape[d] for d in kept], body, name="T_squeeze")


@_export
def reshape(a, newshape):
    """The same elements, row by row, in another shape. One size may be -1."""
    a = tensor(a, "topi.reshape")
    newshape = list(newshape) if isinstance(newshape, (list, tuple)) else [newshape]
    newshape = _without_minus_one(a, [as_size(size) for size in newshape])
    newshape = define.as_shape(newshape, "topi.reshape")
    if is_empty(a.shape) and is_empty(newshape):
        return empty(newshape, a.dtype, "T_reshape")
    groups = _groups(a, newshape)

    def body(*index):
        place = []
        for old, new in groups:
            place += _place(a.shape[old], [(index[d], newshape[d]) for d in range(len(newshape))[new]])
        return a(*place)

    return define.compute(newshape, body, name="T_reshape")


def _without_minus_one(a, newshape):
    unknown = [d for d, size in enumerate(newshape) if isinstance(size, int) and size == -1]
    if not unknown:
        return newshape
    others = [size for size in newshape if not (isinstance(size, int) and size == -1)]
    rest = _divided(list(a.shape), others) if len(unknown) == 1 else None
    if rest is None:
        raise invalid(
            "RESHAPE",
            f"topi.reshape: {a.name} of shape {shape_text(a.shape)} does not fit "
            f"{shape_text(newshape)}"
            + ("; only one size may be -1" if len(unknown) > 1 else ""),
        )
    newshape[unknown[0]] = rest
    return newshape


def _divided(sizes, factors):
    """The product of sizes over that of factors, where it is surely whole."""
    for factor in list(factors):
        same = [d for d, size in enumerate(sizes) if same_size(size, factor)]
        if same:
            sizes.pop(same[0])
            factors = [f for f in factors if f is not factor]
    known, divisor = (size_math.product(s for s in row if isinstance(s, int)) for row in (sizes, factors))
    symbolic = [size for size in sizes if not isinstance(size, int)]
    if any(not isinstance(factor, int) for factor in factors):
        return size_math.divide(size_math.product(sizes), size_math.product(factors))
    if divisor and known % divisor == 0:
        return size_math.product([*symbolic, known // divisor])
    return size_math.divide(size_math.product(sizes), divisor)


def _groups(a, newshape):
    """Runs of old and new dimensions with the same number of elements, as short as they can be."""
    groups, old, new = [], 0, 0
    while old < a.ndim or new < len(newshape):
        o, n = min(old + 1, a.ndim), min(new + 1, len(newshape))
        while True:
            left, right = size_math.product(a.shape[old:o]), size_math.product(newshape[new:n])
            last = o == a.ndim and n == len(newshape)
            if same_size(left, right):
                break
            if last:
                raise invalid(
                    "RESHAPE",
                    f"topi.reshape: {a.name} of shape {shape_text(a.shape)} does not fit "
                    f"{shape_text(newshape)}; their numbers of elements "
                    + ("differ" if size_math.difference(left, right) is not None else "may differ"),
                )
            grow_old = n == len(newshape) or (o < a.ndim and _is_smaller(left, right))
            o, n = (o + 1, n) if grow_old else (o, n + 1)
        groups.append((slice(old, o), slice(new, n)))
        old, new = o, n
    return groups


def _is_smaller(left, right):
    if isinstance(left, int) and isinstance(right, int):
        return left < right
    return isinstance(left, int)


def _place(sizes, given):
    """The indices into dimensions of `sizes` of the element that `given` (index, size) names."""
    given = [(index, size) for index, size in given if not is_one(size)]
    wide = [d for d, size in enumerate(sizes) if not is_one(size)]
    place = [0] * len(sizes)
    if not wide:
        return place
    linear = as_expr(0, "int64")
    for position, (index, size) in enumerate(given):
        linear = index if position == 0 else size_math.folded("add", linear * as_expr(size, "int64"), index)
    for d in reversed(wide[1:]):
        place[d] = apply("floormod", linear, as_expr(sizes[d], "int64"))
        linear = apply("floordiv", linear, as_expr(sizes[d], "int64"))
    place[wide[0]] = linear
    return place


@_export
def flatten(a):
    """The first dimension stays; all others become one."""
    a = tensor(a, "topi.flatten")
    return reshape(a, [*a.shape[:1], size_math.product(a.shape[1:])])


@_export
def concatenate(a_tuple, axis=0):
    """Tensors one after another along `axis`."""
    parts = _list(a_tuple, "topi.concatenate")
    axis = normal_axis(parts[0], axis, "topi.concatenate")
    for part in parts[1:]:
        if part.ndim != parts[0].ndim or not all(
            d == axis or same_size(x, y) for d, (x, y) in enumerate(zip(part.shape, parts[0].shape))
        ):
            raise invalid(
                "CONCATENATE",
                f"topi.concatenate along axis {axis}: {parts[0].name} has shape "
                f"{shape_text(parts[0].shape)}, but {part.name} has {shape_text(part.shape)}; the "
                "other dimensions must agree",
            )
    starts = [as_expr(0, "int64")]
    for part in parts:
        starts.append(size_math.folded("add", starts[-1], part.shape[axis]))

    def body(*index):
        result = None
        for part, start in reversed(list(zip(parts, starts))):
            place = list(index)
            place[axis] = size_math.folded("subtract", index[axis], start)
            value = part(*place)
            result = value if result is None else (
                apply("if_then_else", index[axis] < end, value, result))
            end = start
        return result

    shape = list(parts[0].shape)
    shape[axis] = as_size(starts[-1])
    return define.compute(shape, body, name="T_concat")


def _list(tensors, where):
    tensors = [tensors] if not isinstance(tensors, (list, tuple)) else list(tensors)
    if not tensors:
        raise invalid("OPERAND_COUNT", f"{where} takes at least one tensor")
    return [tensor(each, where) for each in tensors]


@_export
def stack(tensors, axis=0):
    """Tensors of one shape side by side along a new dimension."""
    parts = _list(tensors, "topi.stack")
    axis = normal_axis(parts[0], axis, "topi.stack", parts[0].ndim + 1)
    for part in parts[1:]:
        same = part.ndim == parts[0].ndim and all(map(same_size, part.shape, parts[0].shape))
        if not same:
            raise invalid(
                "STACK",
                f"topi.stack: {parts[0].name} has shape {shape_text(parts[0].shape)}, but "
                f"{part.name} has {shape_text(part.shape)}",
            )

    def body(*index):
        rest = [*index[:axis], *index[axis + 1 :]]
        result = parts[-1](*rest)
        for number in reversed(range(len(parts) - 1)):
            result = apply("if_then_else", index[axis] == number, parts[number](*rest), result)
        return result

    shape = [*parts[0].shape[:axis], len(parts), *parts[0].shape[axis:]]
    return define.compute(shape, body, name="T_stack")


@_export
def split(ary, indices_or_sections, axis=0):
    """A list of parts: as many equal ones, or cut before each of the indices given."""
    ary = tensor(ary, "topi.split")
    axis = normal_axis(ary, axis, "topi.split")
    size = ary.shape[axis]
    if isinstance(indices_or_sections, (list, tuple)):
        starts = [0, *(as_size(i) for i in indices_or_sections)]
        ends = [*starts[1:], size]
    else:
        sections = constant_int(indices_or_sections, "the number of sections of topi.split")
        part = size_math.divide(size, sections) if sections > 0 else None
        if part is None:
            raise invalid(
                "SPLIT",
                f"topi.split: dimension {axis} of {ary.name} is {text(size)}, which {sections} does "
                "not surely divide",
            )
        part = as_size(part)
        starts = [part * number for number in range(sections)]
        ends = [*starts[1:], size]
    return [_cut(ary, axis, start, end) for start, end in zip(starts, ends)]


def _cut(a, axis, start, end):
    size = as_size(size_math.folded("subtract", end, start))
    return _along(a, axis, size, lambda i: size_math.folded("add", i, start), "T_split")


@_export
def strided_slice(a, begin, end, strides=None, axes=None, slice_mode="end"):
    """a[begin:end:strides] with Python's meaning, for each dimension or for those of `axes`. With
    slice_mode="size", `end` holds lengths, -1 being all that is left."""
    a = tensor(a, "topi.strided_slice")
    axes = list(range(len(begin))) if axes is None else [
        normal_axis(a, axis, "topi.strided_slice") for axis in axes]
    strides = [1] * len(axes) if strides is None else list(strides)
    strides += [1] * (len(axes) - len(strides))
    starts, steps, shape = {}, {}, list(a.shape)
    for axis, first, last, step in zip(axes, begin, end, strides):
        if slice_mode == "size":
            last, step = (None if last == -1 else first + last), 1
        starts[axis], steps[axis], shape[axis] = _range(a, axis, first, last, step)

    def body(*index):
        return a(*(
            size_math.folded("add", size_math.folded("multiply", i, steps[d]), starts[d]) if d in starts else i
            for d, i in enumerate(index)
        ))

    return define.compute(shape, body, name="T_strided_slice")


def _range(a, axis, first, last, step):
    """(start, step, count) of a Python slice of one dimension."""
    step = 1 if step is None else constant_int(step, "a stride of topi.strided_slice")
    size = a.shape[axis]
    if step == 0:
        raise invalid("STRIDE", "topi.strided_slice: a stride must not be 0")
    if isinstance(size, int):
        first, last = (None if v is None else constant_int(v, "a bound") for v in (first, last))
        start, stop, step = slice(first, last, step).indices(size)
        return start, step, len(range(start, stop, step))
    # Of a dimension that is known at the call only: bounds as they are written.
    first = (0 if step > 0 else size - 1) if first is None else first
    first = size + first if isinstance(first, int) and first < 0 else first
    if last is None:
        count = size - first if step > 0 else first + 1
    elif isinstance(last, int) and last < 0:
        count = size + last - first if step > 0 else first - (size + last)
    else:
        count = last - first if step > 0 else first - last
    stride = abs(step)
    count = count if stride == 1 else (count + (stride - 1)) // stride
    return first, step, as_size(arithmetic.as_expr(count, "int64"))


@_export
def repeat(a, repeats, axis):
    """Each element `repeats` times along `axis`."""
    a = tensor(a, "topi.repeat")
    axis = normal_axis(a, axis, "topi.repeat")
    repeats = constant_int(repeats, "topi.repeat: repeats")
    size = a.shape[axis] * repeats
    return _along(a, axis, size, lambda i: size_math.folded("floordiv", i, repeats), "T_repeat")


@_export
def tile(a, reps):
    """The whole tensor again and again: reps[d] times along dimension d."""
    a = tensor(a, "topi.tile")
    reps = list(reps) if isinstance(reps, (list, tuple)) else [reps]
    reps = [constant_int(rep, "topi.tile: reps") for rep in reps]
    ndim = max(a.ndim, len(reps))
    reps = [1] * (ndim - len(reps)) + reps
    sizes = [1] * (ndim - a.ndim) + list(a.shape)
    shape = [size * rep for size, rep in zip(sizes, reps)]
    if is_empty(shape):
        return empty(shape, a.dtype, "T_tile")

    def body(*index):
        place = [
            i if rep == 1 else size_math.folded("floormod", i, size)
            for i, size, rep in zip(index, sizes, reps)
        ]
        return a(*(0 if is_one(size) else i for i, size in zip(place, sizes)) if ndim == a.ndim
                 else place[ndim - a.ndim :])

    return define.compute(shape, body, name="T_tile")


@_export
def flip(a, axis=0):
    """In reverse along `axis`."""
    a = tensor(a, "topi.flip")
    axis = normal_axis(a, axis, "topi.flip")
    size = a.shape[axis]
    return _along(a, axis, size, lambda i: size_math.folded("subtract", size, 1) - i, "T_flip")
