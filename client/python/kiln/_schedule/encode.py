"""From the steps of a schedule to their message of the wire."""

from .._base.error import InvalidArgument, called
from ..v1 import schedule_pb2


def encode_steps(steps, encoder):
    """The message of the steps, on the stages and axes as an encoder has numbered them. What a step defines
    has the next free numbers, in the order of the step table."""
    schedule = schedule_pb2.Schedule()
    numbers = _Numbers(encoder)
    for step in steps:
        message = schedule.steps.add(
            name=step.name,
            stage=numbers.stage(step, step.stage.origin_op),
            axes=[numbers.axis(step.owner.origin_op, axis) for axis in step.axes],
            factors=step.factors,
            parts=step.parts,
            tag=step.tag,
            tags=step.tags,
            output=step.output,
            readers=[numbers.stage(step, reader.origin_op) for reader in step.readers],
            value=step.value,
        )
        if step.at is not None:
            message.at_stage = numbers.stage(step, step.at[0])
            message.at_axis = numbers.axis(*step.at)
        message.line.file = encoder.file_id(step.file)
        message.line.line = step.line
        numbers.define(step)
    return schedule


class _Numbers:
    """The ids of stages and axes: those of the definition, then those that steps define."""

    def __init__(self, encoder):
        self._encoder = encoder
        self._stages = dict(encoder.stage_ids)
        self._derived = {}  # by id of the axis
        self._next_axis, self._next_stage = len(encoder.definition.axes), len(encoder.definition.stages)

    def define(self, step):
        for axis in step.defined:
            self._derived[id(axis)] = self._next_axis
            self._next_axis += 1
        if step.made is not None:
            self._stages[id(step.made)] = self._next_stage
            self._next_stage += 1

    def stage(self, step, op):
        if id(op) in self._stages:
            return self._stages[id(op)]
        raise InvalidArgument(
            f"{step.name} schedules {op.name}, which no argument of {called(self._encoder.source_map.kernel)} is "
            "computed from",
            "FOREIGN_STAGE",
            (),
            step.file,
            step.line,
        )

    def axis(self, op, axis):
        if id(axis) in self._derived:
            return self._derived[id(axis)]
        return self._encoder.axis_ids[id(op), id(axis)]
