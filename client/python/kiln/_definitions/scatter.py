"""Scatters: a copy of a tensor whose elements take updates at computed places."""

from .._base import dtypes
from .._base.error import invalid, public
from .._expressions import arithmetic
from .._expressions.arithmetic import as_expr
from .define import as_shape, axes_for, check_body
from .tensor import ScatterOp, Tensor


def _scatter(function, combiner, doc):
    def scatter(base, shape, fupdate, name=function, tag="", attrs=None, varargs_names=None):
        what = f"{function} {name}"
        if not isinstance(base, Tensor):
            raise invalid("SCATTER", f"{what}: the base must be a tensor, but is {type(base).__name__}")
        if not callable(fupdate):
            raise invalid(
                "SCATTER",
                f"{what}: the third argument must be a function of the axes that returns the indices "
                "and the update",
            )
        axes = axes_for(fupdate, as_shape(shape, what), name, varargs_names)
        op = ScatterOp(name, base, axes, combiner)
        for axis in axes:
            axis.op = op
        indices, update = _places(what, base, fupdate(*axes))
        _, inputs = check_body(op, [*indices, update])
        op.complete(indices, update, inputs)
        return op.output(0)

    scatter.__name__ = scatter.__qualname__ = function
    scatter.__doc__ = f"""{doc}

    `fupdate(*axes)` gives the indices (one a dimension of `base`) and the update, for every value of
    the axes, whose extents are `shape`; updates are made one after the other, the first axis
    outermost: `te.{function}(base, (m, d), lambda r, c: ((idx[r], c), x[r, c]))`. `base` itself stays
    as it is. An index that is negative or past the end stops the call."""
    return public(scatter)


def _places(what, base, result):
    """The indices as int64 expressions, and the update in the type of the base."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise invalid("SCATTER", f"{what}: its function must return (indices, update)")
    given, update = result
    given = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if len(given) != base.ndim:
        raise invalid(
            "SCATTER_RANK",
            f"{what}: {base.name} has {base.ndim} dimension{'' if base.ndim == 1 else 's'}, but its "
            f"function gives {len(given)} ind{'ex' if len(given) == 1 else 'ices'}",
        )
    indices = []
    for d, index in enumerate(given):
        index = as_expr(index, "int64")
        if not dtypes.is_int(index.dtype):
            raise invalid("INDEX_TYPE", f"{what}: index {d} is {index.dtype}, but must be an integer")
        indices.append(arithmetic.cast("int64", index))
    update = as_expr(update, base.dtype)
    if update.dtype != base.dtype:
        raise invalid(
            "SCATTER_TYPE",
            f'{what}: the update is {update.dtype}, but {base.name} is {base.dtype}; cast it with '
            f'.astype("{base.dtype}")',
        )
    return indices, update


scatter_add = _scatter("scatter_add", "add", "A copy of `base` with updates added to its elements.")
scatter_min = _scatter(
    "scatter_min", "min", "A copy of `base` whose elements take the smaller of themselves and updates."
)
scatter_max = _scatter(
    "scatter_max", "max", "A copy of `base` whose elements take the larger of themselves and updates."
)
scatter = _scatter(
    "scatter", "", "A copy of `base` whose elements are replaced by updates; the last one stays."
)

__all__ = ["scatter", "scatter_add", "scatter_min", "scatter_max"]
