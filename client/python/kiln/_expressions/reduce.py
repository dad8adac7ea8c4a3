"""Reducers: sum, prod, min, max, any, all."""

import builtins

from .._base import dtypes
from .._base.error import invalid, public
from .._tables import COMBINERS
from . import arithmetic
from .arithmetic import as_expr
from .expr import Axis, Operand, Reduction, nodes

_OPERATOR = {name: operator for name, operator, _ in COMBINERS}


def reduced_axes(root):
    """The axes that reductions inside an expression run over, outermost reduction last."""
    found = {}
    for node in nodes(root):
        if isinstance(node, Reduction):
            for axis in node.axes:
                found.setdefault(id(axis), axis)
    return list(found.values())


def axes_of(name, axis):
    """What `axis=` gives, as a list of reduction axes."""
    axes = list(axis) if isinstance(axis, (list, tuple)) else [axis]
    for each in axes:
        if not isinstance(each, Axis):
            raise invalid(
                "REDUCE_AXIS",
                f"{name}: axis must be a te.reduce_axis or a list of them, but got {each!r}",
            )
        if each.kind != "reduce":
            owner = f" of {each.op.name}" if each.op is not None else ""
            raise invalid(
                "REDUCE_AXIS",
                f"{name}: {each.name} is a {each.kind} axis{owner}; make one with te.reduce_axis",
            )
    return axes


def reduced(by, sources, axes, where, init):
    """All results of a reduction by a combiner of the table or by a reducer, on checked values."""
    what = f"te.{by}" if isinstance(by, str) else by.name
    condition = None if where is None else arithmetic.condition(where, "where=")
    starts = tuple(
        _start(what, source.dtype, value) for source, value in zip(sources, init or ())
    )
    for start in starts:
        for node in nodes(start):
            if builtins.any(node is axis for axis in axes):
                raise invalid(
                    "REDUCTION_INIT",
                    f"{what}: init= uses {node.name}, which is reduced over; a reduction starts from what "
                    "is known outside of it",
                )
    return tuple(
        Reduction(by, tuple(sources), tuple(axes), output, condition, starts)
        for output in range(len(sources))
    )


def _start(what, dtype, value):
    """What a value starts from, as its type; a cast would hide that init= is more than that."""
    if arithmetic.is_number(value):
        return arithmetic.constant(value, dtype)
    value = as_expr(value)
    if dtypes.is_float(value.dtype) and not dtypes.is_float(dtype):
        raise invalid(
            "REDUCTION_INIT", f"{what}: init= is {value.dtype}, but what it reduces is {dtype}; cast it"
        )
    return arithmetic.cast(dtype, value)


def _reduced(combiner, expr, axis, where, init):
    axes = axes_of(f"te.{combiner}", axis)
    source = as_expr(expr)
    if combiner in ("any", "all"):
        source = arithmetic.condition(source, f"te.{combiner}")
    elif source.dtype == "bool":
        source = arithmetic.cast("int32", source)
    if not axes:
        return source
    return reduced(combiner, [source], axes, where, None if init is None else [init])[0]


def _is_axes(value):
    if isinstance(value, Axis):
        return value.kind == "reduce"
    return isinstance(value, (list, tuple)) and builtins.any(
        isinstance(v, Axis) for v in value
    )


def _missing_axis(name, expr):
    used = {id(n): n for n in nodes(as_expr(expr)) if isinstance(n, Axis)}
    axes = [axis.name for axis in used.values() if axis.kind == "reduce"]
    hint = f"; did you mean axis={axes[0] if len(axes) == 1 else '[' + ', '.join(axes) + ']'}" if axes else ""
    if not axes and name in ("min", "max"):
        hint = f", or two values, as te.{name}(a, b)"
    raise invalid("REDUCE_AXIS", f"te.{name} needs the axis to reduce over{hint}")


def _reducer(name, doc):
    def reducer(expr, axis=None, where=None, init=None, span=None):
        if axis is None:
            _missing_axis(name, expr)
        if arithmetic.is_number(axis) or (isinstance(axis, Operand) and not isinstance(axis, Axis)):
            return arithmetic.apply(_OPERATOR[name], expr, axis)
        return _reduced(name, expr, axis, where, init)

    reducer.__name__ = reducer.__qualname__ = name
    reducer.__doc__ = f"Reduces over `axis`: {doc}. Of two values: the two combined."
    return public(reducer)


def _extremum(name, doc):
    reduce = _reducer(name, doc)

    def extremum(a, b=None, where=None, init=None, axis=None, span=None):
        if axis is None and b is not None and not _is_axes(b):
            return arithmetic.apply(name, a, b)
        return reduce(a, axis if axis is not None else b, where, init)

    extremum.__name__ = extremum.__qualname__ = name
    extremum.__doc__ = reduce.__doc__
    return public(extremum)


def _quantifier(name, doc):
    def quantifier(*args, axis=None, where=None, init=None, span=None):
        if axis is None and len(args) == 2 and _is_axes(args[1]):
            args, axis = args[:1], args[1]
        if axis is not None:
            return _reduced(name, args[0], axis, where, init)
        if not args:
            raise invalid("OPERAND_COUNT", f"te.{name} takes at least one condition")
        result = arithmetic.condition(args[0], f"te.{name}")
        for arg in args[1:]:
            result = arithmetic.apply(_OPERATOR[name], result, arg)
        return result

    quantifier.__name__ = quantifier.__qualname__ = name
    quantifier.__doc__ = f"Of conditions: {doc}. With `axis=`, over all its values."
    return public(quantifier)


_DOC = {name: doc for name, _, doc in COMBINERS}
sum = _reducer("sum", _DOC["sum"])
prod = _reducer("prod", _DOC["prod"])
min = _extremum("min", _DOC["min"])
max = _extremum("max", _DOC["max"])
any = _quantifier("any", _DOC["any"])
all = _quantifier("all", _DOC["all"])

__all__ = ["sum", "prod", "min", "max", "any", "all"]
