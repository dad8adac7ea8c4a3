"""Schedules as text: the steps as a kernel file has them, saved and taken again."""

import re

from . import _inner_reductions
from ._encode import Encoder, Names
from ._error import InvalidArgument, NotFound, invalid, public
from ._new_stages import axis_names, stage_name
from ._schedule import Schedule, create_schedule
from ._tables import STEPS
from ._tensor import Tensor

_ROWS = {row[0]: row for row in STEPS}
_NEW_STAGES = ("cache_read", "cache_padded", "cache_write", "rfactor", "reduction_stage")
_TARGETS = ("cpu", "cuda")
_RESERVED = ("true", "false", "nan", "inf")
_TOKEN = re.compile(
    r"[\s;]+|#[^\n]*|(?P<name>[A-Za-z_\u0080-\uffff][\w]*(?:\.\w+)*)|(?P<number>-?\d+)"
    r"|(?P<sign>[{}(),=])|(?P<wrong>.)"
)


def _identifier(name):
    """The name as a kernel file can have it: "a b" becomes a_b."""
    result = ""
    for i, c in enumerate(name):
        inside = c == "." and result and result[-1] != "." and _in_name(name[i + 1 : i + 2])
        result += c if _in_name(c) or inside else "_"
    if not result or result[0].isdigit():
        result = "_" + result
    return result + "_" if result in _RESERVED else result


def _in_name(c):
    return bool(c) and (c == "_" or c > "\x7f" or (c.isascii() and c.isalnum()))


class _Naming:
    """What a file calls the stages and axes behind some operations, and the other way round."""

    def __init__(self, schedule):
        self.schedule = schedule
        encoder = Encoder("main", [op.output(0) for op in schedule.outputs])
        definition, names = encoder.definition, encoder.source_map
        sizes = Names()
        sizes.unique("_")
        taken = [sizes.unique(_identifier(name)) for name in names.variables] + ["_"]
        self._stage_names = {}  # id of an operation -> its name
        self._axis_names = {}  # ids of an operation and of its axis -> the axis's name
        self._tensor_names = {}  # id of an operation and an output -> its name
        self.stages, self.axes, self.tensors = {}, {}, {}  # by name
        operations = {id(stage.origin_op): stage.origin_op for stage in schedule.stages}
        stage_names = _names_taken(taken)
        for key, number in encoder._stages.items():
            self._name_stage(operations[key], names.stages[number], stage_names)
        used = {e.axis for e in definition.expressions if e.WhichOneof("kind") == "axis"}
        axis_names, blanks = {}, set()
        for (key, _), number in sorted(encoder._axes.items(), key=lambda item: item[1]):
            op, axis = operations[key], _axis_of(operations[key], encoder, number)
            of_stage = axis_names.setdefault(key, _names_taken(taken))
            name = _identifier(names.axes[number])
            if name == "_" and number not in used and key not in blanks:
                blanks.add(key)
            else:
                name = of_stage.unique(name)
            self.enter(op, axis, name)

    def _name_stage(self, op, name, names):
        if op.num_outputs > 1:
            outputs = [names.unique(_identifier(f"{name}.v{i}")) for i in range(op.num_outputs)]
        else:
            outputs = [names.unique(_identifier(name))]
        self._stage_names[id(op)] = outputs[0]
        for i, output in enumerate(outputs):
            self._tensor_names[id(op), i] = output
            self.tensors[output] = op.output(i)
        for output in (*outputs, name):
            self.stages.setdefault(output, op)

    def enter(self, op, axis, name):
        self._axis_names[id(op), id(axis)] = name
        self.axes[f"{self.stage(op)}.{name}"] = (op, axis)
        if axis.kind == "time":
            self.axes[name] = (op, axis)

    def enter_defined(self, step):
        """Names what the step defines by the names of what it was given."""
        names = axis_names(
            step.name,
            self._names_of(step.owner, step.axes),
            self._names_of(step.stage, step.data),
            self._names_of(step.stage, step.reduce),
            len(step.defined),
            step.value,
        )
        if step.made is not None:
            source = step.stage.origin_op
            tensor = self.tensor(source.output(step.output))
            self._enter_stage(
                step.made, stage_name(step.name, self.stage(source), tensor, step.tag, self.stages)
            )
        for name, axis in zip(names, step.defined):
            self.enter(axis.op, axis, name)

    def _names_of(self, stage, axes):
        return [self._axis_names[id(stage.origin_op), id(axis)] for axis in axes]

    def _enter_stage(self, op, name):
        several = op.num_outputs > 1
        self._stage_names[id(op)] = name
        self.stages[name] = op
        for i in range(op.num_outputs):
            text = f"{name}.v{i}" if several else name
            self._tensor_names[id(op), i] = text
            self.tensors[text] = op.output(i)
            self.stages.setdefault(text, op)

    def stage(self, op):
        return self._stage_names[id(op)]

    def tensor(self, tensor):
        return self._tensor_names[id(tensor.op), tensor.value_index]

    def axis(self, op, axis):
        name = self._axis_names[id(op), id(axis)]
        return name if axis.kind == "time" else f"{self.stage(op)}.{name}"


def _names_taken(names):
    taken = Names()
    for name in names:
        taken.unique(name)
    return taken


def _axis_of(op, encoder, number):
    return next(axis for axis in op.axes if encoder._axes.get((id(op), id(axis))) == number)


def _step_text(step, naming):
    op = step.stage.origin_op
    _, axes, _, uses, *_ = _ROWS[step.name]
    parts = []
    if axes == 0:
        is_tensor = "output" in uses.split()
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
    if "at" in uses.split():
        parts.append(naming.axis(*step.at))
    if step.value:
        parts.append(f"{_ROWS[step.name][4]}={step.value}")
    return f"{step.name}({', '.join(parts)})"


def text(schedule, target):
    """The block `schedule TARGET { ... }`."""
    if target not in _TARGETS:
        raise invalid("TARGET", f"unknown target {target}; known: {', '.join(_TARGETS)}")
    naming = _Naming(Schedule(schedule.outputs))
    lines = [f"schedule {target} {{"]
    for step in schedule.steps:
        lines.append("  " + _step_text(step, naming))
        naming.enter_defined(step)
    return "\n".join([*lines, "}"]) + "\n"


class _Reader:
    """The blocks of a file: for each target its steps as (name, arguments, line)."""

    def __init__(self, source, file):
        self.file = file
        self.tokens = []
        line = 1
        for match in _TOKEN.finditer(source):
            if match.lastgroup == "wrong":
                self.refuse(f"unexpected character {match.group()}", line)
            if match.lastgroup:
                self.tokens.append((match.lastgroup, match.group(), line))
            line += match.group().count("\n")
        self.tokens.append(("end", "the end of the file", line))
        self.at = 0

    def refuse(self, message, line):
        raise InvalidArgument(message, "SYNTAX", (), self.file, line)

    def take(self, kind, what, *texts):
        found, text, line = self.tokens[self.at]
        if found != kind or (texts and text not in texts):
            self.refuse(f"expected {what}, but found {text}", line)
        self.at += 1
        return text

    def blocks(self):
        blocks = {}
        while self.tokens[self.at][0] != "end":
            line = self.tokens[self.at][2]
            self.take("name", "a schedule", "schedule")
            target = self.take("name", "a target after schedule: cpu or cuda")
            if target not in _TARGETS:
                self.refuse(f"unknown target {target}; known: {', '.join(_TARGETS)}", line)
            if target in blocks:
                self.refuse(f"the kernel has two schedules for {target}", line)
            self.take("sign", "{ before the steps", "{")
            blocks[target] = self.steps()
        return blocks

    def steps(self):
        steps = []
        while self.tokens[self.at][1] != "}":
            line = self.tokens[self.at][2]
            name = self.take("name", "a step such as split(C.i, factor=32)")
            self.take("sign", f"( after {name}", "(")
            steps.append((name, self.arguments(), line))
        self.at += 1
        return steps

    def arguments(self):
        """(word, name or number) each; the word is that of word=number, or ""."""
        arguments = []
        while self.tokens[self.at][1] != ")":
            word = ""
            if self.tokens[self.at + 1][1] == "=":
                word = self.take("name", "a word before =")
                self.at += 1
            kind, value, line = self.tokens[self.at]
            if kind not in ("name", "number") or (word and kind == "name"):
                self.refuse(f"expected an axis or a number, but found {value}", line)
            self.at += 1
            arguments.append((word, int(value) if kind == "number" else value))
            if self.tokens[self.at][1] != ")":
                self.take("sign", ", or ) after an argument", ",")
        self.at += 1
        return arguments


class _Replay:
    """Takes the steps of a file on a schedule without steps."""

    def __init__(self, schedule, file):
        self.schedule = schedule
        self.naming = _Naming(schedule)
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
        if name not in _ROWS:
            raise invalid("UNKNOWN_STEP", f"unknown step {name}; known: {', '.join(_ROWS)}")
        if name in _NEW_STAGES:
            return self._take_new_stage(name, arguments)
        _, count, _, uses, *_ = _ROWS[name]
        names = [value for _, value in arguments if isinstance(value, str)]
        fields = self._numbers(name, arguments)
        if uses == "at output":
            tensor = self._find(self.naming.tensors, names[0] if names else "", "stage")
            at = self._find(self.naming.axes, names[-1], "axis")
            fields.update(at=at, output=tensor.value_index)
            return self.schedule[tensor.op]._step(name, **fields)
        if count == 0:
            op = self._find(self.naming.stages, names[0] if names else "", "stage")
            if uses == "tags":
                fields["tags"] = names[1:]
            elif uses == "at":
                fields["at"] = self._find(self.naming.axes, names[-1], "axis")
            elif uses == "tag":
                fields["tag"] = names[1] if len(names) > 1 else ""
            return self.schedule[op]._step(name, **fields)
        if uses == "tag":
            fields["tag"] = names.pop() if len(names) > count else ""
        found = [self._find(self.naming.axes, each, "axis") for each in names]
        if not found or (count > 0 and len(found) != count):
            noun = "axis" if count == 1 else "axes"
            raise invalid("STEP_FIELDS", f"{name} takes {max(count, 1)} {noun}, but got {len(found)}")
        axes = [axis for _, axis in found]
        stage = self.schedule[found[0][0]]
        stage._check_axes(name, axes, consumed=name == "storage_align")
        return stage._step(name, axes, **fields)

    @staticmethod
    def _numbers(name, arguments):
        """The numbers of a step by the fields they are for: factors first, then the row's own word."""
        _, _, count, uses, value_word, *_ = _ROWS[name]
        fields = {"factors": [], "parts": 0, "value": 0}
        for word, value in arguments:
            if not isinstance(value, int):
                continue
            is_own = value_word and not word and len(fields["factors"]) >= count
            if is_own or (value_word and word == value_word):
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
        reduction = _inner_reductions.find(stage, reduce)
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
    blocks = _Reader(text, file).blocks()
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
