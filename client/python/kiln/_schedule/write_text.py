"""Schedules as text: the steps as a kernel file has them."""

from .._base.error import invalid
from .naming import Naming
from .table import ROWS

TARGETS = ("cpu", "cuda")


def _step_text(step, naming):
    op = step.stage.origin_op
    row = ROWS[step.name]
    parts = []
    if row.axes == 0:
        is_tensor = "output" in row.uses
        parts.append(naming.tensor(op.output(step.output)) if is_tensor else naming.stage(op))
    operands = [naming.axis(step.owner.origin_op, axis) for axis in step.axes]
    if not step.readers:
        parts += operands
    word = "factor=" if len(step.factors) == 1 else ""
    parts += [f"{word}{factor}" for factor in step.factors]
    if step.parts:
        parts.append(f"parts={step.parts}")
    if step.tag:
        parts.append(step.tag)
    parts += step.tags
    if step.readers:
        parts += [*(naming.stage(reader.origin_op) for reader in step.readers), *operands]
    if "at" in row.uses:
        parts.append(naming.axis(*step.at))
    if step.value:
        parts.append(f"{row.value}={step.value}")
    return f"{step.name}({', '.join(parts)})"


def schedule_text(schedule, target):
    """The block `schedule TARGET { ... }`."""
    if target not in TARGETS:
        raise invalid("TARGET", f"unknown target {target}; known: {', '.join(TARGETS)}")
    naming = Naming(schedule.outputs)
    lines = [f"schedule {target} {{"]
    for step in schedule.steps:
        lines.append("  " + _step_text(step, naming))
        naming.enter_defined(step)
    return "\n".join([*lines, "}"]) + "\n"
