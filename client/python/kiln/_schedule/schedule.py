"""Schedules: ordered steps that say how a kernel runs."""

from .._base.absent import ABSENT_STEPS_OF_A_SCHEDULE
from .._base.error import invalid, public
from .._base.suggest import nearest, refuse_private, unknown_name
from .._definitions.tensor import Operation, Tensor, as_operation, operations_below
from .axes import thread_axis
from .new_stages import NewStages
from .stage import Stage, add_absent
from .write_text import schedule_text


@public
def create_schedule(ops):
    """A schedule without steps for one or more operations (or tensors) and all they read."""
    outputs = ops if isinstance(ops, (list, tuple)) else [ops]
    return Schedule([as_operation(op, "create_schedule") for op in outputs])


class Schedule(NewStages):
    """The stages of a kernel and the steps taken so far."""

    def __init__(self, outputs):
        self.outputs = outputs
        self.steps = []
        self._stages = {id(op): Stage(self, op) for op in operations_below(outputs)}

    @public
    def __getitem__(self, key):
        op = as_operation(key, "a schedule's []")
        stage = self._stages.get(id(op))
        if stage is None:
            raise invalid("FOREIGN_STAGE", self._foreign_message(op))
        return stage

    def _foreign_message(self, op):
        mine = [stage.op for stage in self._stages.values()]
        if any(each.name == op.name for each in mine):
            return f"this {op.name} is not part of this schedule, which has another tensor {op.name}"
        return f"{op.name} is not part of this schedule, which has {', '.join(each.name for each in mine)}"

    def __getattr__(self, name):
        refuse_private(name, "Schedule")
        if hasattr(Stage, name):
            output = self.outputs[0].name
            raise unknown_name(f"{name} is a step of a stage, as in s[{output}].{name}(...)")
        raise unknown_name(f"a schedule has no {name}{nearest(name, dir(Schedule))}")

    def __contains__(self, key):
        return id(as_operation(key, "in")) in self._stages

    @public
    def text(self, target="cpu"):
        """The steps as a block of a schedule file: `schedule cpu { split(C.i, factor=32) ... }`."""
        return schedule_text(self, target)

    @public
    def save(self, path, target="cpu"):
        """Writes that file, which `kiln.load_schedule` and `kiln run --schedule` take."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text(target))

    @property
    def stages(self):
        return list(self._stages.values())

    @property
    def stage_map(self):
        return {stage.op: stage for stage in self.stages}

    def normalize(self):
        """Nothing is left to do; classic programs call it."""
        return self

    def __repr__(self):
        return f"Schedule of {', '.join(op.name for op in self.outputs)}, {len(self.steps)} steps"


add_absent(Schedule, ABSENT_STEPS_OF_A_SCHEDULE)

__all__ = ["Operation", "Schedule", "Stage", "Tensor", "create_schedule", "thread_axis"]
