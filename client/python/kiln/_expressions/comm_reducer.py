"""Reducers of the user's own."""

import inspect

from .._base import dtypes
from .._base.error import Error, invalid, public
from . import arithmetic
from .arithmetic import as_expr
from .expr import Axis, FloatConstant, IntegerConstant, Parameter, Read, Reducer, Reduction, nodes
from .reduce import axes_of, reduced

__all__ = ["comm_reducer"]


@public
def comm_reducer(fcombine, fidentity, name="reduce"):
    """A reducer: `fcombine(left, right)` combines the values so far with the next ones, and
    `fidentity(dtype)` is what leaves any value as it is, or, where it uses the axes around a
    reduction, what that starts from. For several values at once, left, right and what both
    functions return are tuples, and `fidentity` takes a dtype for each.

    `reducer(expr, axis=k, where=condition, init=start)` reduces, a tuple of expressions to a tuple;
    `reducer(a, b)` combines two values. In which order values are combined must not matter."""
    what = _named(name, fcombine, fidentity)
    made = {}

    def reducer(expr, axis, where=None, init=None, *args):
        if not _is_axes(axis):
            more = [value for value in (where, init, *args) if value is not None]
            return _directly(what, fcombine, [expr, axis, *more])
        sources = _values(expr)
        if not sources:
            raise invalid("REDUCER", f"{what} got no value to reduce")
        types = tuple(source.dtype for source in sources)
        made_by, around = made.get(types) or _made(what, name, fcombine, fidentity, types)
        if around is None:
            made[types] = made_by, None
        axes = axes_of(what, axis)
        starts = None if init is None else _starts(what, init, len(sources))
        if not axes:
            results = tuple(sources)
        elif around is None:
            results = reduced(made_by, sources, axes, where, starts)
        else:
            _check_around(what, around, axes)
            flag = arithmetic.constant(True, "bool")
            results = reduced(made_by, [*sources, flag], axes, where, [*(starts or around), flag])[:-1]
        return results if isinstance(expr, (tuple, list)) else results[0]

    reducer.__name__ = reducer.__qualname__ = name
    reducer.__doc__ = f"The reducer {name}: over `axis`, or of two values."
    return public(reducer)


def _named(name, fcombine, fidentity):
    if not isinstance(name, str) or not name:
        raise invalid("REDUCER", f"te.comm_reducer: name= must be a string, but is {name!r}")
    for role, function in (("fcombine", fcombine), ("fidentity", fidentity)):
        if not callable(function):
            raise invalid(
                "REDUCER", f"te.comm_reducer {name}: {role} must be a function, but is {function!r}"
            )
    return f"te.comm_reducer {name}"


def _is_axes(axis):
    if isinstance(axis, Axis):
        return True
    return isinstance(axis, (tuple, list)) and all(isinstance(each, Axis) for each in axis)


def _values(expr):
    return [as_expr(value) for value in (expr if isinstance(expr, (tuple, list)) else [expr])]


def _starts(what, init, count):
    starts = list(init) if isinstance(init, (tuple, list)) else [init]
    if len(starts) != count:
        raise invalid(
            "REDUCTION_INIT",
            f"{what} combines {_count(count, 'value')}, but init= has {len(starts)}",
        )
    return starts


def _count(number, noun):
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _directly(what, fcombine, values):
    """Values combined one after the other."""
    several = isinstance(values[0], (tuple, list))
    total = values[0]
    for value in values[1:]:
        if isinstance(value, (tuple, list)) != several or (several and len(value) != len(total)):
            raise invalid(
                "REDUCER",
                f"{what} got {_number_of(total)} on the left and {_number_of(value)} on the right; over an "
                "axis write axis= with a te.reduce_axis",
            )
        total = fcombine(total, value)
    return total


def _number_of(value):
    return _count(len(value) if isinstance(value, (tuple, list)) else 1, "value")


def _made(what, name, fcombine, fidentity, types):
    """The reducer, and None; or one with a flag more, and what its values start from, where the identities depend on the
    axes around the reduction."""
    parameters = _parameters(fcombine, types)
    left, right = parameters[: len(types)], parameters[len(types) :]
    both = (tuple(left), tuple(right)) if len(types) > 1 else (left[0], right[0])
    results = _typed(what, "fcombine", _called(what, "fcombine", fcombine, both, len(types)), types, True)
    identities = _typed(what, "fidentity", _called(what, "fidentity", fidentity, types, len(types)), types, False)
    if any(isinstance(node, Axis) for identity in identities for node in nodes(identity)):
        return _with_flag(name, left, right, results), identities
    return Reducer(name, parameters, identities, results), None


def _with_flag(name, left, right, results):
    """Combines only what has been set: nothing has the flag false, so that no constant is asked for which leaves every value as
    it is."""
    count = len(left)
    has_left, has_right = Parameter("has_left", count, "bool"), Parameter("has_right", 2 * count + 1, "bool")
    for place, parameter in enumerate(right):
        parameter.position = count + 1 + place  # behind the flag of the left
    select = lambda condition, a, b: arithmetic.apply("select", condition, a, b)  # noqa: E731
    chosen = [select(has_left, select(has_right, both, a), b) for both, a, b in zip(results, left, right)]
    nothing = [arithmetic.constant(0, each.dtype) for each in left]
    return Reducer(
        name,
        [*left, has_left, *right, has_right],
        (*nothing, arithmetic.constant(False, "bool")),
        (*chosen, arithmetic.apply("logical_or", has_left, has_right)),
    )


def _parameters(fcombine, types):
    return [
        Parameter(parameter, position, types[position % len(types)])
        for position, parameter in enumerate(_parameter_names(fcombine, len(types)))
    ]


def _check_around(what, identities, axes):
    for identity in identities:
        for node in nodes(identity):
            if any(node is axis for axis in axes):
                raise invalid(
                    "REDUCER",
                    f"fidentity of {what} uses axis {node.name}, which is reduced over; it may use the axes around the reduction",
                )


def _called(what, role, function, arguments, count):
    """What a function of the user makes of `count` values; it may be written for another number."""
    try:
        return function(*arguments)
    except Error:
        raise
    except (TypeError, IndexError, ValueError) as error:
        raise invalid(
            "REDUCER", f"{what} got {_count(count, 'value')}, of which its {role} makes nothing: {error}"
        ) from error


def _parameter_names(fcombine, count):
    try:
        names = list(inspect.signature(fcombine).parameters)[:2]
    except (TypeError, ValueError):
        names = []
    if len(names) < 2:
        names = ["x", "y"]
    return [name if count == 1 else f"{name}{i}" for name in names for i in range(count)]


def _typed(what, role, given, types, is_result):
    """What a function of the reducer has returned, one a value and of its type."""
    values = list(given) if isinstance(given, (tuple, list)) else [given]
    if len(values) != len(types):
        raise invalid(
            "REDUCER",
            f"{what} combines {_count(len(types), 'value')}, but {role} returned {len(values)}",
        )
    return tuple(
        _of_type(f"{role} of {what}" + (f", value {i}" if len(types) > 1 else ""), value, dtype, is_result)
        for i, (value, dtype) in enumerate(zip(values, types))
    )


def _of_type(which, value, dtype, is_result):
    if value is None:
        raise invalid("REDUCER", f"{which}: it returned nothing; is a return missing?")
    value = arithmetic.constant(value, dtype) if arithmetic.is_number(value) else as_expr(value)
    for node in nodes(value):
        _check_own(which, node, is_result)
    if value.dtype == dtype:
        return value
    if isinstance(value, (IntegerConstant, FloatConstant)) and not is_result:
        if dtypes.is_float(dtype) or isinstance(value, IntegerConstant):
            return arithmetic.constant(value.value, dtype)
    raise invalid("REDUCER", f"{which} is {value.dtype}, but what it combines is {dtype}; cast it")


def _check_own(which, node, is_result):
    knows = "its two arguments" if is_result else "the types it is given"
    if isinstance(node, Axis) and is_result:
        raise invalid("REDUCER", f"{which} uses axis {node.name}; it knows {knows} only")
    if isinstance(node, Read):
        raise invalid("REDUCER", f"{which} reads {node.tensor.name}; it knows {knows} only")
    if isinstance(node, Reduction):
        raise invalid("REDUCER", f"{which} holds a reduction; it knows {knows} only")
    if isinstance(node, Parameter) and not is_result:
        raise invalid("REDUCER", f"{which} uses a value; it knows {knows} only")
