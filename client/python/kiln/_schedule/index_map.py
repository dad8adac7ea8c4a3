"""Index maps: where in memory the element at an index of a stage lies.

    lambda i, j: [i // 4, j, i % 4]  ->  the axes i, j, i with the factors 4, 1, 1

An axis with a factor counts how often so many elements along it have been passed; the next larger factor of the
same axis says when it starts again. So each element has a place of its own, and no two share one.
"""

import inspect

from .._base.error import invalid
from .._expressions.expr import Apply, IntegerConstant, Var


def digits_of(stage, axes, mapping_function):
    """[(axis, factor)] of each dimension in memory, in its order."""
    count = len(inspect.signature(mapping_function).parameters)
    if count != len(axes):
        raise invalid(
            "TRANSFORM_LAYOUT", f"transform_layout of {stage} takes a function of {len(axes)} indices, but got one of {count}"
        )
    # Axes that a step has made are no expressions.
    variables = [(Var(axis.name), axis) for axis in axes]
    indices = mapping_function(*(variable for variable, _ in variables))
    if not isinstance(indices, (list, tuple)):
        indices = [indices]
    found = [_digit(stage, variables, index) for index in indices]
    for (axis, factor, count), index in zip(found, indices):
        larger = [other for each, other, _ in found if each is axis and other > factor]
        if (min(larger) if larger else None) != (factor * count if count else None):
            raise invalid(
                "TRANSFORM_LAYOUT",
                f"transform_layout of {stage}: after {index} there must be an index that counts {axis.name} on, as "
                f"in [{axis.name} // 4, {axis.name} % 4]",
            )
    return [(axis, factor) for axis, factor, _ in found]


def _digit(stage, variables, index):
    """(axis, factor, count): `axis // factor % count`, without a count where it goes on to the end."""
    for variable, axis in variables:
        if index is variable:
            return axis, 1, None
    by = index.operands[1] if isinstance(index, Apply) and index.operator in ("floordiv", "floormod") else None
    if not isinstance(by, IntegerConstant) or by.value < 1:
        raise _refused(stage, index)
    axis, factor, count = _digit(stage, variables, index.operands[0])
    if count is not None and count % by.value != 0:
        raise _refused(stage, index)
    if index.operator == "floormod":
        return axis, factor, by.value
    return axis, factor * by.value, count // by.value if count is not None else None


def _refused(stage, index):
    return invalid(
        "TRANSFORM_LAYOUT",
        f"transform_layout of {stage} takes indices of the stage with // and % by constants, but got {index}",
    )


def split_into(stage, axis, factors):
    """The loops of an axis for its factors, the largest first."""
    loops = []
    for factor in factors[:-1]:
        outer, axis = stage.split(axis, factor)
        loops.append(outer)
    return loops + [axis]
