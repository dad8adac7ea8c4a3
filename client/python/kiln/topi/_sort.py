"""Orders: sorting, the largest few, and what is told by comparing elements.

The place of an element is the number of those that come before it: n * n comparisons, all of which are vectors. A dimension that is
known to be long is sorted by a bitonic network instead, one stage of it a step of a scan over time, n * log2(n)^2 comparisons (K. E.
Batcher, Sorting networks and their applications, 1968). What is compared are integers in the order of the elements. Of equal
elements the one that comes first stays first, and nan comes last, as numpy has it.
"""

from .._base import dtypes
from .._base.error import invalid, public
from .._definitions import define
from .._definitions.scatter import scatter as scattered
from .._expressions import operators, reduce, size_math
from .._expressions.arithmetic import apply, cast, constant
from ._common import constant_int, is_empty, normal_axis, tensor
from ._gather import gather
from ._reduction import cumsum
from ._shape import reshape, strided_slice

__all__ = []


def _export(function):
    __all__.append(function.__name__)
    return public(function)


_LONGEST_COUNTED = 4096  # from here on the network takes less time
_SHORTEST_BISECTED = 512  # vectors compare all elements of less in as little time


def _keys(data, ascend):
    """Integers in the order of the elements: of floats the bits, those of negative ones turned round. nan is the largest."""
    dtype = data.dtype
    if not dtypes.is_float(dtype):
        if dtype == "bool":
            dtype = "int32"
        turned = lambda key: key if ascend else apply("bitwise_not", key)  # noqa: E731
        return define.compute(data.shape, lambda *index: turned(cast(dtype, data(*index))), name="T_keys")
    wide = dtype if dtype in ("float32", "float64") else "float32"
    size = int(wide[5:])
    dtype, largest = f"int{size}", (1 << (size - 1)) - 1

    def body(*index):
        value = cast(wide, data(*index))
        bits = operators.reinterpret(dtype, value)
        sign = apply("shift_right", bits, constant(size - 1, dtype))
        key = apply("bitwise_xor", bits, apply("bitwise_and", sign, constant(largest, dtype)))
        key = apply("select", value == 0, constant(0, dtype), key)  # both zeros
        return apply("select", apply("isnan", value), constant(largest, dtype), key if ascend else apply("bitwise_not", key))

    return define.compute(data.shape, body, name="T_keys")


def _order(data, axis, ascend):
    """int32 places: which element of each row comes first, second, ..."""
    size = data.shape[axis]
    if isinstance(size, int) and size <= 1:
        return define.compute(data.shape, lambda *index: constant(0, "int32"), name="T_order")
    keys = _keys(data, ascend)
    if isinstance(size, int) and size > _LONGEST_COUNTED:
        return strided_slice(_network(keys, axis), [0], [size], axes=[axis])
    return _order_by_counting(keys, axis)


def _network(keys, axis):
    """The places after the last stage of a bitonic network, of 2^k elements; those past the end of the data stay last."""
    size = keys.shape[axis]
    bits = (size - 1).bit_length()
    width, steps = 1 << bits, bits * (bits + 1) // 2
    shape = [*keys.shape[:axis], width, *keys.shape[axis + 1 :]]
    # The stages in a row: blocks of 2^p elements, in each of which those 2^q apart are compared.
    stages = [(p, q) for p in range(1, bits + 1) for q in reversed(range(p))]
    block = _numbers([1 << p for p, _ in stages], "block")
    apart = _numbers([1 << q for _, q in stages], "apart")
    state = define.placeholder((steps + 1, *shape), "int32", name="places")
    init = define.compute((1, *shape), lambda _, *index: cast("int32", index[axis]), name="in_order")

    def update(t, *index):
        i = index[axis]
        other = apply("bitwise_xor", i, cast("int64", apart(t - 1)))
        other = apply("min", apply("max", other, 0), width - 1)
        mine = state(t - 1, *index)
        theirs = state(t - 1, *index[:axis], other, *index[axis + 1 :])
        at = lambda place: keys(  # noqa: E731
            *index[:axis], apply("min", apply("max", cast("int64", place), 0), size - 1), *index[axis + 1 :]
        )
        inside = reduce.all(mine < size, theirs < size)
        a, b = at(mine), at(theirs)
        earlier = reduce.any(a < b, reduce.all(a == b, mine < theirs))
        before = apply("select", inside, earlier, mine < theirs)
        is_first = i < other
        rises = apply("bitwise_and", i, cast("int64", block(t - 1))) == 0
        keeps = apply("equal", apply("equal", before, is_first), rises)
        return apply("select", keeps, mine, theirs)

    steps_of = define.compute((steps + 1, *shape), update, name="compared")
    sorted_places = define.scan(init, steps_of, state, name="network")
    return define.compute(shape, lambda *index: sorted_places(steps, *index), name="T_order")


def _numbers(values, name):
    """Constants as a tensor: powers of two, which are few."""

    def body(i):
        result = constant(values[-1], "int32")
        for place in reversed(range(len(values) - 1)):
            if values[place] != values[place + 1]:
                result = apply("select", i <= place, constant(values[place], "int32"), result)
        return result

    return define.compute((len(values),), body, name=name)


def _order_by_counting(keys, axis):
    size = keys.shape[axis]
    at = lambda index, i: (*index[:axis], i, *index[axis + 1 :])  # noqa: E731

    def rank(*index):
        j, i = define.reduce_axis((0, size), name="j"), index[axis]
        other, mine = keys(*at(index, j)), keys(*index)
        before = apply("select", cast("int32", j) < cast("int32", i), cast("int32", other <= mine), cast("int32", other < mine))
        return reduce.sum(before, axis=j)

    ranks = define.compute(keys.shape, rank, name="T_rank")
    nothing = define.compute(keys.shape, lambda *index: constant(0, "int32"), name="T_none")
    return scattered(
        nothing, keys.shape, lambda *index: (at(index, cast("int64", ranks(*index))), cast("int32", index[axis])), name="T_order"
    )


@_export
def sort(data, axis=-1, is_ascend=1):
    """Sorted along `axis`; nan last."""
    data = tensor(data, "topi.sort")
    axis = normal_axis(data, axis, "topi.sort")
    return gather(data, axis, _order(data, axis, bool(is_ascend)))


@_export
def argsort(data, valid_count=None, axis=-1, is_ascend=1, dtype="float32"):
    """The places of the elements in sorted order along `axis`, those of equal ones in their own order."""
    data = tensor(data, "topi.argsort")
    if valid_count is not None:
        raise invalid("VALID_COUNT", "topi.argsort: valid_count belongs to vision, which Kiln's topi has not; slice the data")
    axis = normal_axis(data, axis, "topi.argsort")
    return _as(_order(data, axis, bool(is_ascend)), dtype, "topi.argsort", "T_argsort")


def _as(places, dtype, where, name):
    dtype = dtypes.dtype_name(dtype, where)
    return define.compute(places.shape, lambda *index: cast(dtype, places(*index)), name=name)


@_export
def topk(data, k=1, axis=-1, ret_type="both", is_ascend=False, dtype="int64"):
    """The `k` largest along `axis` (smallest with `is_ascend`; all where k is 0) and their places: "both", "values" or
    "indices"."""
    data = tensor(data, "topi.topk")
    axis = normal_axis(data, axis, "topi.topk")
    if ret_type not in ("both", "values", "indices"):
        raise invalid("RETURN_TYPE", f"topi.topk: unknown ret_type {ret_type!r}; known: both, values, indices")
    k = constant_int(k, "topi.topk: k")
    size = data.shape[axis]
    if isinstance(size, int) and k > size:
        raise invalid("TOPK", f"topi.topk: k is {k}, but dimension {axis} of {data.name} is {size}")
    places = _order(data, axis, bool(is_ascend))
    if k >= 1:
        places = strided_slice(places, [0], [k], axes=[axis])
    results = {"values": lambda: gather(data, axis, places), "indices": lambda: _as(places, dtype, "topi.topk", "T_topk")}
    if ret_type != "both":
        return results[ret_type]()
    return [make() for make in results.values()]


@_export
def searchsorted(sorted_sequence, values, right=False, out_dtype="int64"):
    """Where each value would be put into the sorted sequence (one, or one for each row of the values) to keep it sorted: in
    front of equal elements, or behind them."""
    where = "topi.searchsorted"
    row, values = tensor(sorted_sequence, where), tensor(values, where)
    dtype = dtypes.dtype_name(out_dtype, where)
    if row.ndim != 1 and row.ndim != values.ndim:
        raise invalid(
            "SEARCHSORTED",
            f"{where}: {row.name} has {row.ndim} dimensions, but must have 1 or, as {values.name}, {values.ndim}",
        )

    element = lambda index, k: row(k) if row.ndim == 1 else row(*index[:-1], k)  # noqa: E731
    comes_first = lambda index, k: (  # noqa: E731
        element(index, k) <= values(*index) if right else element(index, k) < values(*index)
    )
    size = row.shape[-1]
    if isinstance(size, int) and _SHORTEST_BISECTED <= size < 1 << 31:
        places = _bisected(values.shape, size, comes_first)
        return define.compute(values.shape, lambda *index: cast(dtype, places(*index)), name="T_searchsorted")

    def body(*index):
        k = define.reduce_axis((0, size), name="k")
        return reduce.sum(cast(dtype, comes_first(index, k)), axis=k)

    return define.compute(values.shape, body, name="T_searchsorted")


def _bisected(shape, size, comes_first):
    """How many of the first elements of a row come first: a step for each bit of the number, the highest first."""
    found = None
    for bit in reversed(range(size.bit_length())):

        def step(*index, found=found, bit=bit):
            start = constant(0, "int32") if found is None else found(*index)
            there = start + (1 << bit)
            at = apply("min", apply("max", cast("int64", there) - 1, 0), size - 1)
            return apply("select", reduce.all(there <= size, comes_first(index, at)), there, start)

        found = define.compute(shape, step, name=f"T_bit{bit}")
    return found


@_export
def unique(data, is_sorted=True, return_counts=False):
    """Of a vector: its different elements, sorted or in the order in which they come first, where each comes first, for
    each element the place of its equal there, how many there are, and on request how often each is there. What stands
    behind that number is 0. n * n comparisons."""
    data = tensor(data, "topi.unique")
    if data.ndim != 1:
        raise invalid("ARGUMENT_RANK", f"topi.unique takes a vector, but {data.name} has {data.ndim} dimensions")
    size = data.shape[0]
    over = lambda body: define.compute(  # noqa: E731
        (size,), lambda i: (lambda j: reduce.sum(body(i, j), axis=j))(define.reduce_axis((0, size), name="j")), name="T_unique"
    )
    earlier = over(lambda i, j: cast("int32", reduce.all(j < i, data(j) == data(i))))
    is_first = lambda j: earlier(j) == 0  # noqa: E731
    if is_sorted:
        inverse = over(lambda i, j: cast("int32", reduce.all(is_first(j), data(j) < data(i))))
    else:
        flags = define.compute((size,), lambda i: cast("int32", is_first(i)), name="T_flags")
        number = cumsum(flags, axis=0)
        inverse = over(lambda i, j: apply(
            "select", reduce.all(is_first(j), data(j) == data(i)), number(j) - 1, constant(0, "int32")))
    chosen = lambda value: over(lambda p, i: apply(  # noqa: E731
        "select", reduce.all(is_first(i), inverse(i) == cast("int32", p)), value(i), cast(value(i).dtype, 0)))
    results = [chosen(data), chosen(lambda i: cast("int32", i)), inverse]
    results.append(define.compute((1,), lambda _: (lambda j: reduce.sum(cast("int32", is_first(j)), axis=j))(
        define.reduce_axis((0, size), name="j")), name="T_number"))
    if return_counts:
        results.append(over(lambda p, i: cast("int32", inverse(i) == cast("int32", p))))
    return results


@_export
def argwhere(output_shape, condition):
    """The indices of the elements that are not 0, row by row: (count, ndim). `output_shape` says how many there are; rows
    past the last of them are 0."""
    condition = tensor(condition, "topi.argwhere")
    shape = define.as_shape(getattr(output_shape, "shape", output_shape), "topi.argwhere")
    if len(shape) != 2 or shape[1] != condition.ndim:
        raise invalid(
            "ARGWHERE",
            f"topi.argwhere: the output has one column for each of the {condition.ndim} dimensions of {condition.name}, so "
            f"its shape is (count, {condition.ndim})",
        )
    if is_empty(condition.shape):
        return define.compute(shape, lambda *_: constant(0, "int32"), name="T_argwhere")
    flat = reshape(condition, (-1,)) if condition.ndim != 1 else condition
    found = define.compute(flat.shape, lambda i: cast("int32", flat(i) != 0), name="T_found")
    before = cumsum(found, axis=0)
    rows, total = shape[0], flat.shape[0]
    # Whatever is not found, or past the last row, is written to one row more.
    base = define.compute((size_math.folded("add", rows, 1),), lambda i: constant(0, "int32"), name="T_none")
    places = scattered(base, (total,), lambda i: ((apply(
        "select", found(i) != 0, apply("min", cast("int64", before(i)) - 1, rows), rows),), cast("int32", i)))

    def body(row, d):
        place = cast("int64", places(row))
        result = constant(0, "int32")
        for dimension in reversed(range(condition.ndim)):
            size = condition.shape[dimension]
            part = place if dimension == 0 else apply("floormod", place, size)
            result = apply("select", d == dimension, cast("int32", part), result)
            place = apply("floordiv", place, size) if dimension else place
        return result

    return define.compute(shape, body, name="T_argwhere")
