"""How many iterations the axes of a schedule have, where the client can know."""

import math

from .._expressions.expr import Axis, IntegerConstant


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


def size_of(axis):
    """The number of iterations as a number or an expression over sizes."""
    if isinstance(axis, Axis):
        return axis.dom.extent
    if axis.extent is not None:
        return axis.extent
    if axis.size is None:
        step = axis.made_by
        place = next(i for i, each in enumerate(step.defined) if each is axis)
        axis.size = _sizes_defined_by(step)[place]
    return axis.size


def _sizes_defined_by(step):
    sizes = [size_of(axis) for axis in step.axes]
    if step.name == "split" and step.parts:
        return [step.parts, (sizes[0] + (step.parts - 1)) // step.parts]
    if step.name in ("split", "tile"):
        outer = [(size + (factor - 1)) // factor for size, factor in zip(sizes, step.factors)]
        return [*outer, *step.factors]
    product = sizes[0]
    for size in sizes[1:]:
        product = product * size
    return [product]


def _quotient(extent, factor):
    return None if extent is None else -(-extent // factor)
