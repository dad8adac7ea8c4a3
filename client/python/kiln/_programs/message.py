"""Programs as they are sent: values, nodes, and the definitions that nodes share."""

from ..v1 import program_pb2 as wire
from .graph import NodeEncoder, nodes_below

INPUT, BATCH, PARAMETER, STEP = 1, 2, 3, 4


class Message:
    """A program on its way to the wire, and the numbers of its values by tensor."""

    def __init__(self, name, given, outputs, reports, updates, until):
        """`given` has the kind of each placeholder; the others are tensors, `updates` pairs of them."""
        self.program = wire.Program(name=name)
        self.numbers = {}
        self._definitions = {}
        self._names = {}
        for tensor, kind in given.items():
            self._add_value(tensor, kind)
        wanted = [*outputs, *reports, *(value for _, value in updates)]
        for node in nodes_below([*wanted, *([until] if until is not None else [])]):
            self._add_node(node)
        for parameter, value in updates:
            self.program.updates.add(parameter=self.numbers[parameter], value=self.numbers[value])
        self.program.outputs.extend(self.numbers[tensor] for tensor in outputs)
        self.program.reports.extend(self.numbers[tensor] for tensor in reports)
        if until is not None:
            self.program.until = self.numbers[until]

    def _add_value(self, tensor, kind):
        self.numbers[tensor] = len(self.program.values)
        count = self._names[tensor.name] = self._names.get(tensor.name, 0) + 1
        name = tensor.name if count == 1 else f"{tensor.name}_{count - 1}"
        self.program.values.add(name=name, kind=kind)
        return name

    def _add_node(self, node):
        encoder = NodeEncoder(node)
        names = [self._add_value(tensor, 0) for tensor in node.outputs]
        self.program.nodes.add(
            name=names[0] if len(names) == 1 else node.op.name,
            definition=self._definition(encoder),
            inputs=[self.numbers[tensor] for tensor in node.inputs],
            outputs=[self.numbers[tensor] for tensor in node.outputs],
            file=node.op.file,
            line=node.op.line,
        )

    def _definition(self, encoder):
        key = encoder.definition.SerializeToString(deterministic=True)
        number = self._definitions.get(key)
        if number is None:
            number = self._definitions[key] = len(self.program.definitions)
            self.program.definitions.append(encoder.definition)
            self.program.source_maps.append(encoder.source_map)
        return number
