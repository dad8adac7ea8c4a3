"""The steps whose row of the step table says all: a method of Stage is made of each.

    ('unroll', 1 axis)                            ->  stage.unroll(var)
    ('software_pipeline', 1 axis, value stages)   ->  stage.software_pipeline(var, stages)

A row that needs more than this, a name that is looked up or a number with bounds, has a method of its own, in
loop_steps.py or hints.py; one that defines a stage stands in new_stages.py.
"""

import inspect

from .._base.error import invalid, public
from .._expressions.arithmetic import as_integer
from .table import ANY_NUMBER, ROWS


def number(step, word, value):
    """An int, or a constant expression that is one; True and False are 1 and 0."""
    try:
        return int(value) if isinstance(value, bool) else as_integer(value)
    except TypeError:
        raise invalid("STEP_FIELDS", f"{step}: the {word} must be an integer constant, but is {value!r}") from None


def flat(args):
    """Axes as they are given: each for itself, or all in a list."""
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        return list(args[0])
    return list(args)


def add_plain_steps(owner):
    """Puts the methods on Stage that it does not have yet."""
    for row in ROWS.values():
        if _is_plain(row) and not hasattr(owner, row.name):
            setattr(owner, row.name, _method(row))


def _is_plain(row):
    return not row.stage and not row.factors and row.uses == ("none",) and row.axes in (ANY_NUMBER, 0, 1)


def _method(row):
    signature = inspect.Signature(list(_parameters(row)))

    def step(self, *args, **kwargs):
        given = signature.bind(self, *args, **kwargs).arguments
        axes = flat(given.get("args", ())) if row.axes == ANY_NUMBER else [given["var"]] if row.axes else []
        self._check_axes(row.name, axes)
        value = 0
        if row.value:
            value = number(f"{row.name}({', '.join(axis.name for axis in axes)})", row.value, given[row.value])
        defined = self._take(row.name, axes, value=value).defined
        return (tuple(defined) if len(defined) > 1 else defined[0]) if defined else None

    step.__name__, step.__qualname__ = row.name, f"Stage.{row.name}"
    step.__doc__ = f"{row.doc[0].upper()}{row.doc[1:]}."
    step.__signature__ = signature
    return public(step)


def _parameters(row):
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    yield inspect.Parameter("self", kind)
    if row.axes == ANY_NUMBER:
        yield inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)
    elif row.axes:
        yield inspect.Parameter("var", kind)
    if row.value:
        yield inspect.Parameter(row.value, kind if row.axes != ANY_NUMBER else inspect.Parameter.KEYWORD_ONLY)
