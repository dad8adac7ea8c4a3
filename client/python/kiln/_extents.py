"""How many iterations the axes of a schedule have, where the client can know."""

import math

from ._expr import Axis, IntegerConstant


def of(axis):
    """The number of iterations, or None where it depends on sizes."""
    if isinstance(axis, Axis):
        extent = axis.dom.extent
        return extent.value if isinstance(extent, IntegerConstant) else None
    return axis.extent


def defined_by(step, axes, factors, parts):
    """Those of the axes a step defines, in their order."""
    extents = [of(axis) for axis in axes]
    if step == "split" and parts:
        return [parts, _quotient(extents[0], parts)]
    if step == "split":
        return [_quotient(extents[0], factors[0]), factors[0]]
    if step == "tile":
        return [*map(_quotient, extents, factors), *factors]
    if step == "fuse" and None not in extents:
        return [math.prod(extents)]
    return []


def _quotient(extent, factor):
    return None if extent is None else -(-extent // factor)
