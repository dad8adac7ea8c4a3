"""From tensors to the messages of the wire: each operation a stage, each expression a row."""

from .._base import dtypes
from .._expressions import expr
from ..v1 import kernel_pb2
from .tensor import Tensor, operations_below


class Names:
    """Gives each thing a name of its own: a second C becomes C_1."""

    def __init__(self):
        self._used = set()
        self._counts = {}  # by name: how many have been made of it

    def unique(self, name):
        candidate, count = name, self._counts.get(name, 0)
        while candidate in self._used:
            count += 1
            candidate = f"{name}_{count}"
        self._used.add(candidate)
        self._counts[name] = count
        return candidate


class Encoder:
    """A definition on its way to the wire: `definition` and `source_map`, and by what numbers they call things.

    Arguments are tensors, and te.vars where a program passes sizes at the call: `argument_sizes` then has
    the name of each var and "" for each tensor."""

    def __init__(self, name, arguments):
        self.definition = kernel_pb2.Definition()
        self.source_map = kernel_pb2.SourceMap(kernel=name)
        self.stage_ids = {}  # by id of the operation
        self.axis_ids = {}  # by ids of the operation and of the axis
        self._stage_names, self._variable_names = Names(), Names()
        self.sizes = []  # the te.vars, by number
        self._variables, self._files = {}, {}
        self._sizes = {}  # expressions over sizes, shared by all stages
        self._reducers = {}  # numbers, and the expressions of all of them by identity
        self._of_reducers = {}
        tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
        for op in operations_below([tensor.op for tensor in tensors]):
            self._add_stage(op)
        for tensor in tensors:
            self.set_tensor(self.definition.parameters.add(), tensor)
        self.argument_sizes = [] if len(tensors) == len(arguments) else [
            "" if isinstance(argument, Tensor) else self._variable_name(argument)
            for argument in arguments
        ]  # fmt: skip

    # Stages.

    def _add_stage(self, op):
        number = len(self.definition.stages)
        stage = self.definition.stages.add()
        getattr(self, f"_add_{op.kind}")(op, stage)
        self.stage_ids[id(op)] = number
        self.source_map.stages.append(self._stage_names.unique(op.name))
        self.source_map.stage_lines.add(file=self.file_id(op.file), line=op.line)
        for output, name in enumerate(op.tensor_names):
            named = self.source_map.tensors.add(name=self._stage_names.unique(name))
            named.tensor.stage, named.tensor.output = number, output

    def _add_placeholder(self, op, stage):
        stage.placeholder.type = dtypes.NUMBER[op.dtype]
        stage.placeholder.shape.extend(self._size(size) for size in op.shape)

    def _add_compute(self, op, stage):
        known = {}
        for axis in op.axis:
            stage.compute.axes.append(self._add_axis(op, axis, known))
        for body in op.body:
            stage.compute.bodies.append(self._expression(body, known, op))

    def _add_scan(self, op, stage):
        stage.scan.axis = self._add_axis(op, op.scan_axis, {})
        stage.scan.dimension = op.dimension
        stage.scan.reverse = op.reverse
        roles = (
            (stage.scan.init, op.init),
            (stage.scan.update, op.update),
            (stage.scan.state, op.state_placeholder),
            (stage.scan.inputs, op.inputs),
        )
        for field, tensors in roles:
            for tensor in tensors:
                self.set_tensor(field.add(), tensor)

    def _add_scatter(self, op, stage):
        known = {}
        for axis in op.axis:
            stage.scatter.axes.append(self._add_axis(op, axis, known))
        self.set_tensor(stage.scatter.base, op.base)
        for index in op.indices:
            stage.scatter.indices.append(self._expression(index, known, op))
        stage.scatter.update = self._expression(op.update, known, op)
        stage.scatter.combiner = op.combiner

    def set_tensor(self, message, tensor):
        message.stage = self.stage_ids[id(tensor.op)]
        message.output = tensor.value_index

    def _variable_name(self, var):
        number = self._variables.get(id(var))
        if number is None:  # nothing depends on it; what is passed for it is not looked at
            return self._variable_names.unique(var.name)
        return self.source_map.variables[number]

    # Axes. A reduction axis that two stages use becomes an axis of each.

    def _add_axis(self, op, axis, known):
        bounds = [self._bound(edge, known, op) for edge in (axis.dom.min, axis.dom.extent)]
        number = len(self.definition.axes)
        self.axis_ids[id(op), id(axis)] = number
        kind = {"data": 1, "reduce": 2, "time": 3}[axis.kind]
        self.definition.axes.add(kind=kind, minimum=bounds[0], extent=bounds[1])
        self.source_map.axes.append(axis.name)
        return number

    def _bound(self, edge, known, op):
        return self._size(edge) if expr.is_size(edge) else self._expression(edge, known, op)

    # Expressions.

    def _size(self, size):
        if isinstance(size, int):
            size = expr.IntegerConstant(size, "int64")
        if isinstance(size, expr.IntegerConstant):
            if size.value not in self._sizes:
                self._sizes[size.value] = self._emit(size, {}, None)
            return self._sizes[size.value]
        return self._expression(size, self._sizes, None)

    def _expression(self, root, known, op):
        """The id of an expression. `known` holds those of this stage by identity."""
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            key = _key(node)
            if key in known:
                continue
            if ready:
                known[key] = self._emit(node, known, op)
                continue
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(self._before(node, op)))
        return known[_key(root)]

    def _before(self, node, op):
        if isinstance(node, expr.Axis) and (id(op), id(node)) not in self.axis_ids:
            return (node.dom.min, node.dom.extent)
        if isinstance(node, expr.Reduction):
            if not isinstance(node.by, str):
                self._add_reducer(node.by)
            return (*node.axes, *expr.children(node))
        return expr.children(node)

    def _emit(self, node, known, op):
        message = self.definition.expressions.add()
        _FILL[type(node)](self, message, node, known, op)
        return len(self.definition.expressions) - 1

    def _fill_integer(self, message, node, known, op):
        value = node.value - (1 << 64) if node.value >= 1 << 63 else node.value
        message.integer.type = dtypes.NUMBER[node.dtype]
        message.integer.value = value

    def _fill_floating(self, message, node, known, op):
        message.floating.type = dtypes.NUMBER[node.dtype]
        message.floating.value = node.value

    def _fill_variable(self, message, node, known, op):
        number = self._variables.get(id(node))
        if number is None:
            number = self._variables[id(node)] = len(self.definition.variables)
            self.sizes.append(node)
            self.definition.variables.add(nonnegative=node.nonnegative)
            self.source_map.variables.append(self._variable_names.unique(node.name))
        message.variable = number

    def _fill_axis(self, message, node, known, op):
        number = self.axis_ids.get((id(op), id(node)))
        if number is None:
            # Its bounds are in `known` by now, so this adds no expression after `message`.
            number = self._add_axis_row(op, node, known)
        message.axis = number

    def _add_axis_row(self, op, axis, known):
        number = len(self.definition.axes)
        self.axis_ids[id(op), id(axis)] = number
        bounds = [known[_key(edge)] for edge in (axis.dom.min, axis.dom.extent)]
        self.definition.axes.add(kind=2, minimum=bounds[0], extent=bounds[1])
        self.source_map.axes.append(axis.name)
        return number

    def _fill_operation(self, message, node, known, op):
        message.operation.operator = node.operator
        message.operation.operands.extend(known[_key(operand)] for operand in node.operands)

    def _fill_cast(self, message, node, known, op):
        message.cast.type = dtypes.NUMBER[node.dtype]
        message.cast.operand = known[_key(node.operand)]

    def _fill_read(self, message, node, known, op):
        self.set_tensor(message.read.tensor, node.tensor)
        message.read.indices.extend(known[_key(index)] for index in node.indices)

    def _fill_reduction(self, message, node, known, op):
        if isinstance(node.by, str):
            message.reduction.combiner = node.by
        else:
            message.reduction.reducer = self._reducers[id(node.by)]
            message.reduction.output = node.output
        message.reduction.sources.extend(known[_key(source)] for source in node.sources)
        message.reduction.axes.extend(self.axis_ids[id(op), id(axis)] for axis in node.axes)
        if node.condition is not None:
            message.reduction.condition = known[_key(node.condition)]
        message.reduction.init.extend(known[_key(init)] for init in node.init)

    def _fill_parameter(self, message, node, known, op):
        message.parameter.type = dtypes.NUMBER[node.dtype]
        message.parameter.position = node.position

    def _add_reducer(self, reducer):
        """Its row, after its expressions, which stand before whatever reduces by it."""
        if id(reducer) in self._reducers:
            return
        roots = (reducer.identities, reducer.results)
        identities, results = (
            [self._expression(root, self._of_reducers, None) for root in each] for each in roots
        )
        self._reducers[id(reducer)] = len(self.definition.reducers)
        types = [dtypes.NUMBER[identity.dtype] for identity in reducer.identities]
        self.definition.reducers.add(types=types, identities=identities, results=results)
        names = [parameter.name for parameter in reducer.parameters]
        self.source_map.reducers.add(name=reducer.name, parameters=names)

    # Files.

    def file_id(self, name):
        """The number of a source file, for the lines of stages and steps."""
        if name not in self._files:
            self._files[name] = len(self._files)
            self.source_map.files.append(name)
        return self._files[name]


def _key(node):
    if isinstance(node, expr.IntegerConstant):
        return (node.dtype, node.value)
    return id(node)


_FILL = {
    expr.IntegerConstant: Encoder._fill_integer,
    expr.FloatConstant: Encoder._fill_floating,
    expr.Var: Encoder._fill_variable,
    expr.Axis: Encoder._fill_axis,
    expr.Apply: Encoder._fill_operation,
    expr.Cast: Encoder._fill_cast,
    expr.Read: Encoder._fill_read,
    expr.Reduction: Encoder._fill_reduction,
    expr.Parameter: Encoder._fill_parameter,
}
