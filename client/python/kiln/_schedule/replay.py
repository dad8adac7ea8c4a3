"""Schedules taken from text: each step of a block is taken as a call of its method would."""

from .._base.error import InvalidArgument, NotFound, invalid, public
from .._definitions.tensor import Tensor
from . import inner_reductions
from .naming import Naming
from .read_text import Reader
from .schedule import create_schedule
from .table import ROWS


class _Replay:
    """Takes the steps of a file on a schedule without steps."""

    def __init__(self, schedule, file):
        self.schedule = schedule
        self.naming = Naming(schedule.outputs)
        self.file = file

    def take(self, name, arguments, line):
        try:
            step = self._take(name, arguments)
        except InvalidArgument as error:
            raise InvalidArgument(
                error.message, error.reason, error.notes, self.file, line
            ) from None
        step.file, step.line = self.file, line
        self.naming.enter_defined(step)

    def _take(self, name, arguments):
        if name not in ROWS:
            raise invalid("UNKNOWN_STEP", f"unknown step {name}; known: {', '.join(ROWS)}")
        row = ROWS[name]
        if row.stage:
            return self._take_new_stage(name, arguments)
        names = [value for _, value in arguments if isinstance(value, str)]
        fields = self._numbers(name, arguments)
        if set(row.uses) == {"at", "output"}:
            tensor = self._find(self.naming.tensors, names[0] if names else "", "stage")
            at = self._find(self.naming.axes, names[-1], "axis")
            fields.update(at=at, output=tensor.value_index)
            return self.schedule[tensor.op]._take(name, **fields)
        if row.axes == 0:
            op = self._find(self.naming.stages, names[0] if names else "", "stage")
            if "tags" in row.uses:
                fields["tags"] = names[1:]
            elif "at" in row.uses:
                fields["at"] = self._find(self.naming.axes, names[-1], "axis")
            elif "tag" in row.uses:
                fields["tag"] = names[1] if len(names) > 1 else ""
            return self.schedule[op]._take(name, **fields)
        if "tag" in row.uses:
            fields["tag"] = names.pop() if len(names) > row.axes else ""
        found = [self._find(self.naming.axes, each, "axis") for each in names]
        if not found or (row.axes > 0 and len(found) != row.axes):
            noun = "axis" if row.axes == 1 else "axes"
            raise invalid("STEP_FIELDS", f"{name} takes {max(row.axes, 1)} {noun}, but got {len(found)}")
        axes = [axis for _, axis in found]
        stage = self.schedule[found[0][0]]
        of_dimensions = name in ("storage_align", "transform_layout")
        stage._check_axes(name, list({id(axis): axis for axis in axes}.values()) if of_dimensions else axes,
                          consumed=of_dimensions)
        return stage._take(name, axes, **fields)

    @staticmethod
    def _numbers(name, arguments):
        """The numbers of a step by the fields they are for: factors first, then the row's own word."""
        row = ROWS[name]
        fields = {"factors": [], "parts": 0, "value": 0}
        for word, value in arguments:
            if not isinstance(value, int):
                continue
            is_own = row.value and not word and len(fields["factors"]) >= row.factors
            if is_own or (row.value and word == row.value):
                fields["value"] = value
            elif word == "parts":
                fields["parts"] = value
            else:
                fields["factors"].append(value)
        return fields

    def _take_new_stage(self, name, arguments):
        names = [value for _, value in arguments if isinstance(value, str)] + ["", ""]
        numbers = {word: value for word, value in arguments if isinstance(value, int)}
        if name == "rfactor":
            op, axis = self._find(self.naming.axes, names[0], "axis")
            self.schedule.rfactor(op.output(0), axis, numbers.get("factor_axis", 0))
        elif name == "reduction_stage":
            self._take_reduction_stage(names[:-2])
        elif name == "cache_padded":
            tensor = self._find(self.naming.tensors, names[0], "stage")
            self.schedule.cache_padded(tensor, self._find(self.naming.stages, names[1], "stage"))
        elif name == "cache_write":
            op = self._find(self.naming.stages, names[0], "stage")
            self.schedule.cache_write(op.outputs, names[1])
        else:
            tensor = self._find(self.naming.tensors, names[0], "stage")
            rest = names[2:-2]
            count = next((i for i, each in enumerate(rest) if i > 0 and each in self.naming.axes), len(rest))
            readers = [self._find(self.naming.stages, each, "stage") for each in rest[:count]]
            loops = [self._find(self.naming.axes, each, "axis")[1] for each in rest[count:]]
            self.schedule.cache_read(tensor, names[1], readers, loops or None)
        return self.schedule.steps[-1]

    def _take_reduction_stage(self, names):
        if len(names) < 2:
            raise invalid("STEP_FIELDS", "reduction_stage takes axes, then a word, as in reduction_stage(C.i, C.k, sum)")
        found = [self._find(self.naming.axes, each, "axis") for each in names[:-1]]
        stage, axes = self.schedule[found[0][0]], [axis for _, axis in found]
        self.schedule._require_compute(stage, "reduction_stage")
        stage._check_axes("reduction_stage", axes, consumed=True)
        reduce = [axis for axis in axes if axis.kind == "reduce"]
        stage._check_axes("reduction_stage", reduce)
        reduction = inner_reductions.find(stage, reduce)
        data = [axis for axis in axes if axis.kind != "reduce"]
        self.schedule.stage_of_reduction(stage, reduction, data, reduce, names[-1])

    @staticmethod
    def _find(known, name, noun):
        if name in known:
            return known[name]
        raise invalid("SYNTAX", f"unknown {noun} {name}")


@public
def parse_schedule(text, tensors, target="cpu", file="schedule"):
    """The schedule that the block for `target` makes of these tensors, whose names it uses; placeholders
    among them are left out."""
    tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    outputs = [t for t in tensors if not (isinstance(t, Tensor) and t.op.kind == "placeholder")]
    schedule = create_schedule(outputs)
    blocks = Reader(text, file).blocks()
    if target not in blocks:
        raise NotFound(f"{file} has no schedule for {target}", "SCHEDULE")
    replay = _Replay(schedule, file)
    for step in blocks[target]:
        replay.take(*step)
    return schedule


@public
def load_schedule(path, tensors, target="cpu"):
    """The same from a file, as `Schedule.save` writes it."""
    with open(path, encoding="utf-8") as file:
        return parse_schedule(file.read(), tensors, target, str(path))
