"""What a kernel file calls the stages and axes of a schedule: those of the definition, then what steps define."""

from .._definitions.encode import Encoder, Names
from .._definitions.tensor import operations_below
from .table import axes_defined, stage_defined

_RESERVED = ("true", "false", "nan", "inf")


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


class Naming:
    """What a file calls the stages and axes behind some operations, and the other way round."""

    def __init__(self, outputs):
        encoder = Encoder("main", [op.output(0) for op in outputs])
        definition, names = encoder.definition, encoder.source_map
        sizes = Names()
        sizes.unique("_")
        taken = [sizes.unique(_identifier(name)) for name in names.variables] + ["_"]
        self._stage_names = {}  # id of an operation -> its name
        self._axis_names = {}  # ids of an operation and of its axis -> the axis's name
        self._tensor_names = {}  # id of an operation and an output -> its name
        self.stages, self.axes, self.tensors = {}, {}, {}  # by name
        operations = {id(op): op for op in operations_below(outputs)}
        stage_names = _names_taken(taken)
        for key, number in encoder.stage_ids.items():
            self._name_stage(operations[key], names.stages[number], stage_names)
        used = {e.axis for e in definition.expressions if e.WhichOneof("kind") == "axis"}
        axis_names, blanks = {}, set()
        for (key, _), number in sorted(encoder.axis_ids.items(), key=lambda item: item[1]):
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
        names = axes_defined(
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
                step.made, stage_defined(step.name, self.stage(source), tensor, step.tag, self.stages)
            )
        for (name, _), axis in zip(names, step.defined):
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
    return next(axis for axis in op.axes if encoder.axis_ids.get((id(op), id(axis))) == number)
