"""The step table as the client reads it: what a step takes, and what it defines by which names.

    split(i, factor=4)         -> i.outer, i.inner
    cache_write(C, "local")    -> the stage C.local, with the axes i.c, j.c and k

The rows are those of compiler/language/tables/steps.def, by way of _tables.py; the comment there says what the
columns mean.
"""

import re
from typing import NamedTuple

from .._base.error import limited
from .._tables import STEPS

ANY_NUMBER = -1
_LONGEST_NAME = 1024  # bytes, as the daemon has it
_HOLE = re.compile(r"\{(\w+)\}")


class Row(NamedTuple):
    """A step of the table."""

    name: str
    axes: int  # how many it names, or ANY_NUMBER
    factors: int
    uses: tuple  # which other fields: parts, tag, at, output, readers, tags, layout
    value: str  # the word for the number in `value`; "" for none
    stage: str  # what the stage that it defines is called; "" for none
    defines: tuple  # patterns of the axes that it defines
    doc: str


def _row(name, axes, factors, uses, value, stage, defines, doc):
    return Row(name, axes, factors, tuple(uses.split()), value, stage, tuple(defines.split()), doc)


ROWS = {columns[0]: _row(*columns) for columns in STEPS}


def axes_defined(step, axes, data=(), reduce=(), dimensions=0, place=0, name_of=str):
    """(name, the axes it is made of) of each axis that a step defines, in the order of their ids.

    `axes` are those that the step names, `data` and `reduce` those of its stage; a dimension of a tensor is made
    of no axis. `name_of` says what an axis is called."""
    found = []
    for pattern in ROWS[step].defines:
        holes = _HOLE.findall(pattern)
        if holes == ["dimensions"]:
            names = [name_of(axis) for axis in axes] or [f"ax{i}" for i in range(dimensions)]
            found += [(name, ()) for name in names]
        elif holes in (["data"], ["reduce"]):
            each = data if holes == ["data"] else reduce
            found += [(_filled(pattern, name_of(axis)), (axis,)) for axis in each]
        else:
            made_of = tuple(axes) if holes == ["all"] else (axes[int(holes[0])],)
            found.append((_filled(pattern, ".".join(map(name_of, made_of))), made_of))
    if step == "rfactor":  # the row has the factored loop behind the data axes; it is dimension `place`
        found.insert(place, found.pop(len(data)))
    for name, _ in found:
        # Refused here, since a name of a name grows faster than the steps that make it.
        if len(name.encode()) > _LONGEST_NAME:
            raise limited("LIMIT", f"an axis name has {len(name.encode())} bytes; the limit is {_LONGEST_NAME}")
    return found


def _filled(pattern, name):
    return _HOLE.sub(lambda hole: name, pattern)


def stage_defined(step, stage, tensor, tag, taken):
    """The name of the stage a step defines: one that is not taken."""
    wanted = ROWS[step].stage.format(stage=stage, tensor=tensor, tag=tag)
    name, count = wanted, 0
    while name in taken:
        count += 1
        name = f"{wanted}_{count}"
    return name
