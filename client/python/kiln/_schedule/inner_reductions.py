"""The reductions inside the expression of a stage, which reduction_stage makes stages of."""

import re

from .._base.error import invalid
from .._expressions import expr
from .._expressions.expr import Axis, Read, Reduction


def find(stage, axes):
    """The reduction inside the stage's expression that runs over these axes."""
    if not axes:
        raise invalid(
            "REDUCTION_STAGE",
            f"reduction_stage names no axis that a reduction inside the expression of {stage.op.name} runs over; "
            "such axes come last",
        )
    over = {id(axis) for axis in axes}
    for body in stage.origin_op.body:
        for node in expr.nodes(body):
            if isinstance(node, Reduction) and over <= {id(axis) for axis in node.axes}:
                return _inside(stage, node)
    names = " and ".join(axis.name for axis in axes)
    if any(axis is each for axis in axes for each in stage.leaf_iter_vars):
        raise invalid(
            "REDUCTION_STAGE",
            f"cannot make a stage of the reduction over {names} inside {stage.op.name}: it is no "
            "expression of the definition; take reduction_stage before cache_write and rfactor",
        )
    raise invalid("REDUCTION_STAGE", f"no reduction inside the expression of {stage.op.name} runs over {names}")


def _inside(stage, reduction):
    bodies = stage.origin_op.body
    axes = {id(axis) for axis in reduction.axes}
    is_whole = all(isinstance(body, Reduction) and {id(axis) for axis in body.axes} == axes for body in bodies)
    if is_whole and any(reduction is body for body in bodies):
        names = ", ".join(axis.name for axis in reduction.axes)
        raise invalid(
            "REDUCTION_STAGE",
            f"the reduction over {names} is all that {stage.op.name} computes, so it is a stage of its own "
            "already",
        )
    return reduction


def axes_used(stage, reduction):
    """The data axes of the stage that the reduction uses, in their order."""
    used = {id(node) for part in _parts(reduction) for node in expr.nodes(part) if isinstance(node, Axis)}
    for axis in list(_reduced(reduction)):
        used |= {id(node) for bound in (axis.dom.min, axis.dom.extent) for node in expr.nodes(bound)}
    return [axis for axis in stage.data if id(axis) in used]


def _parts(reduction):
    return (*reduction.inside(), *reduction.init)


def _reduced(reduction):
    """The axes of the reduction and of those inside of it."""
    yield from reduction.axes
    for part in _parts(reduction):
        for node in expr.nodes(part):
            if isinstance(node, Reduction):
                yield from node.axes


def reads(roots, made):
    """The tensors read below `roots`; of a reduction in `made`, which has those that are stages, its stage."""
    found, seen, stack = {}, set(), list(roots)
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if id(node) in made:
            found.setdefault(made[id(node)])
            continue
        if isinstance(node, Read):
            found.setdefault(node.tensor)
        stack.extend(expr.children(node))
        if isinstance(node, Reduction):
            stack.extend(bound for axis in node.axes for bound in (axis.dom.min, axis.dom.extent))
    return found


def word_for(reduction):
    """What the stage is called after the name of its own stage: the reducer, as a kernel file can have it."""
    name = reduction.by if isinstance(reduction.by, str) else reduction.by.name
    word = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return word if word[:1].isalpha() or word[:1] == "_" else f"_{word}"
