"""A graph of tensors as nodes, each a definition of its own."""

from .._definitions.encode import Encoder
from .._definitions.tensor import operations_below


class Node:
    """One operation, or a scan with its cell: what it reads from outside, and what it makes."""

    def __init__(self, op, inside, inputs):
        self.op = op
        self.inside = inside  # operations, in order, the last `op`
        self.inputs = inputs
        self.outputs = op.outputs


def nodes_below(tensors):
    """The nodes that the tensors need, each after those it needs itself."""
    operations = operations_below([tensor.op for tensor in tensors])
    cells = {id(op): _cell(op, operations) for op in operations if op.kind == "scan"}
    hidden = {id(each) for cell in cells.values() for each in cell}
    nodes = []
    for op in operations:
        if op.kind == "placeholder" or id(op) in hidden:
            continue
        inside = [*cells.get(id(op), ()), op]
        nodes.append(Node(op, inside, _inputs(inside)))
    return nodes


def _cell(scan, operations):
    """The states of a scan, how it begins, and what reads a state on the way to an update."""
    states = [state.op for state in scan.state_placeholder]
    reading = {id(op) for op in states}
    needed = {id(op) for op in operations_below([tensor.op for tensor in scan.update])}
    cell = [*states, *dict.fromkeys(init.op for init in scan.init if init.op.kind == "compute")]
    for op in operations:
        if id(op) in needed and op.kind != "placeholder":
            if any(id(tensor.op) in reading for tensor in _read(op)):
                reading.add(id(op))
                cell.append(op)
    for update in scan.update:
        if update.op not in cell and update.op.kind != "placeholder":
            cell.append(update.op)
    return cell


def _read(op):
    return [*op.init, *op.update] if op.kind == "scan" else op.input_tensors


def _inputs(inside):
    own = {id(op) for op in inside}
    found = {}
    for op in inside:
        for tensor in [*_read(op), *(op.inputs if op.kind == "scan" else ())]:
            if id(tensor.op) not in own:
                found[tensor] = True
    return list(found)


class NodeEncoder(Encoder):
    """The definition of one node: what it reads from other nodes is a placeholder."""

    def __init__(self, node):
        self._given = {}
        super().__init__(node.op.name, [])
        for tensor in node.inputs:
            self._add_given(tensor)
        for op in node.inside:
            self._add_stage(op)
        for tensor in (*node.inputs, *node.outputs):
            self.set_tensor(self.definition.parameters.add(), tensor)

    def _add_given(self, tensor):
        number = len(self.definition.stages)
        stage = self.definition.stages.add()
        self._add_placeholder(tensor, stage)
        self._given[tensor] = number
        self.source_map.stages.append(self._stage_names.unique(tensor.name))
        self.source_map.stage_lines.add(file=self.file_id(tensor.op.file), line=tensor.op.line)

    def set_tensor(self, message, tensor):
        if tensor in self._given:
            message.stage, message.output = self._given[tensor], 0
        else:
            super().set_tensor(message, tensor)
