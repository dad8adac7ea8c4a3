"""From the tables of a definition to tensors of te: its stages anew, on tensors of the caller."""

from .._base import dtypes
from .._base.error import invalid
from .._expressions import arithmetic, expr, reduce, size_math
from ..v1 import kernel_pb2 as wire
from . import define, scatter as scatters, views
from .broadcast import is_one, stretched
from .tensor import Tensor


class Binding:
    """What the parts of a definition stand for in one call."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.sizes = {}  # by variable: an int or a size expression
        self.types = {}  # by type of the definition: the type that takes its place
        self.tensors = {}  # by stage of an input: a tensor or a view
        self.ranks = {}  # by stage of an input: its own dimensions, the last ones
        self.axis = None  # from the end: where the one dimension of the definition stands


class Instance:
    """The stages of one call, made as they are asked for."""

    def __init__(self, binding):
        self._binding = binding
        self._definition = binding.kernel.definition
        self._names = binding.kernel.source_map
        self._sizes = {}
        self._reducers = {}
        self._made = {}  # by stage: tensors whose own dimensions come last, as the definition has them
        self._plain = {}  # by stage: the tensors as te has them
        self._new_names = {}
        self._batch = self._batches()  # by stage: the dimensions in front
        for stage, tensor in binding.tensors.items():
            self._made[stage] = [tensor]

    def output(self, tensor):
        """The tensor of te for a tensor of the definition."""
        self._make(tensor.stage)
        return self._plain[tensor.stage][tensor.output]

    def put(self, stage, tensors):
        """The tensors of the caller that stand for all outputs of a stage."""
        self._made[stage] = self._plain[stage] = tensors

    def rename(self, names):
        """What stages are called, by their numbers, instead of their names in the definition."""
        self._new_names = names

    def size(self, number):
        """A size expression of the definition, as an int where it is known."""
        if number not in self._sizes:
            expression = Expressions(self, None).of(number)
            is_constant = isinstance(expression, expr.IntegerConstant)
            self._sizes[number] = expression.value if is_constant else expression
        return self._sizes[number]

    def variable(self, number):
        return self._binding.sizes[number]

    def dtype(self, number):
        name = dtypes.NAME[number]
        return self._binding.types.get(name, name)

    def axis_name(self, number):
        return self._names.axes[number] if number < len(self._names.axes) else f"i{number}"

    def row(self, kind, number):
        return getattr(self._definition, kind)[number]

    def _batches(self):
        """The dimensions in front of each stage: what those of the inputs below it stretch to."""
        below = {stage: {stage} for stage in self._binding.tensors}
        stages = self._definition.stages
        scans = [(n, row.scan) for n, row in enumerate(stages) if row.WhichOneof("kind") == "scan"]
        # What a scan reads decides about all of its parts, its states included. Scans may read scans.
        for stage, scan in scans:
            states = {t.stage for t in scan.state}
            reached = self._reached([*scan.init, *scan.update], states, below)
            for tensor in [*scan.state, *scan.init, *scan.update]:
                below[tensor.stage] = reached
            below[stage] = reached
        for stage in range(len(stages)):
            if stage not in below:
                needed = self._needed(stage)
                below[stage] = set().union(*(below.get(other, set()) for other in needed))
        front = {
            stage: tensor.shape[: tensor.ndim - self._binding.ranks[stage]]
            for stage, tensor in self._binding.tensors.items()
        }
        return {
            stage: front.get(stage, stretched([front[i] for i in sorted(inputs)]))
            for stage, inputs in below.items()
        }

    def _reached(self, tensors, states, below):
        """The inputs below tensors, without what only states lead to."""
        reached, seen, stack = set(), set(states), [t.stage for t in tensors]
        while stack:
            stage = stack.pop()
            if stage in seen:
                continue
            seen.add(stage)
            if stage in below:
                reached |= below[stage]
            else:
                stack.extend(self._needed(stage))
        return reached

    # Stages.

    def _make(self, last):
        """Makes a stage and what it needs, without recursion."""
        stack = [last]
        while stack:
            stage = stack[-1]
            if stage in self._made:
                stack.pop()
                continue
            missing = [s for s in self._needed(stage) if s not in self._made]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            row = self._definition.stages[stage]
            getattr(self, f"_make_{row.WhichOneof('kind')}")(stage, row)

    def _needed(self, stage):
        row = self._definition.stages[stage]
        kind = row.WhichOneof("kind")
        if kind == "compute":
            return sorted({read.tensor.stage for read in self.reads(row.compute.bodies)})
        if kind == "scatter":
            scatter = row.scatter
            reads = self.reads([*scatter.indices, scatter.update])
            return sorted({scatter.base.stage, *(read.tensor.stage for read in reads)})
        if kind == "scan":
            scan = row.scan
            return sorted({t.stage for t in [*scan.init, *scan.update, *scan.state]})
        return []

    def reads(self, roots):
        """The reads below expressions."""
        expressions = self._definition.expressions
        seen, stack = set(), list(roots)
        while stack:
            number = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            row = expressions[number]
            if row.WhichOneof("kind") == "read":
                yield row.read
            stack.extend(self.below(row))

    def below(self, row):
        """The expressions that an expression is made of, bounds of axes included."""
        kind = row.WhichOneof("kind")
        if kind == "operation":
            return list(row.operation.operands)
        if kind == "cast":
            return [row.cast.operand]
        if kind == "read":
            return list(row.read.indices)
        if kind == "axis":
            return []
        if kind == "reduction":
            return [*self.bounds(row), *_parts(row.reduction)]
        return []

    def bounds(self, row):
        """The bounds of the axes of a reduction; of any other expression none."""
        rows = [self._definition.axes[axis] for axis in row.reduction.axes]
        return [bound for axis in rows for bound in (axis.minimum, axis.extent)]

    def reducer(self, number):
        """A reducer of the definition."""
        if number not in self._reducers:
            row = self._definition.reducers[number]
            known = number < len(self._names.reducers)
            names = self._names.reducers[number] if known else wire.ReducerNames(name="reducer")
            types = [self.dtype(type) for type in row.types]
            expressions = Expressions(self, None)
            self._reducers[number] = expr.Reducer(
                names.name,
                [
                    expr.Parameter(name, position, types[position % len(types)])
                    for position, name in enumerate(names.parameters)
                ],
                tuple(map(expressions.of, row.identities)),
                tuple(map(expressions.of, row.results)),
            )
        return self._reducers[number]

    def name(self, stage):
        """What a stage is called; the parts of a scan, Y.init, follow what Y is called now."""
        if stage in self._new_names:
            return self._new_names[stage]
        for renamed, name in self._new_names.items():
            prefix = f"{self._names.stages[renamed]}."
            if self._names.stages[stage].startswith(prefix):
                return f"{name}.{self._names.stages[stage][len(prefix):]}"
        return self._names.stages[stage] if stage < len(self._names.stages) else f"tensor{stage}"

    def _make_placeholder(self, stage, row):
        own = [self.size(extent) for extent in row.placeholder.shape]
        full, order = [*self._batch[stage], *own], self._placed(stage, len(own))
        dtype = self.dtype(row.placeholder.type)
        tensor = define.placeholder([full[d] for d in order], dtype, self.name(stage))
        self._finish(stage, [tensor], order)

    def _make_compute(self, stage, row):
        compute = row.compute
        shape = [self.size(self.row("axes", axis).extent) for axis in compute.axes]
        batch = self._batch[stage]
        order = self._placed(stage, len(shape))
        names = self._axis_names(compute.axes, len(batch))
        full = [*batch, *shape]

        def bodies(*placed):
            place = dict(zip(order, placed))
            indices = [place[d] for d in range(len(full))]
            own = dict(zip(compute.axes, indices[len(batch) :]))
            expressions = Expressions(self, own, batch, indices[: len(batch)])
            return tuple(expressions.of(body) for body in compute.bodies)

        made = define.compute(
            [full[d] for d in order], bodies, name=self.name(stage),
            varargs_names=[names[d] for d in order],
        )  # fmt: skip
        self._finish(stage, list(made), order)

    def _placed(self, stage, rank):
        """Which of (leading, own) dimensions of a stage stands where."""
        order = list(range(len(self._batch[stage]) + rank))
        axis = self._binding.axis
        if axis is None or rank != 1:
            return order
        order.insert(max(0, len(order) + 1 - axis - 1), order.pop())
        return order

    def _axis_names(self, axes, leading):
        own = [self.axis_name(axis) for axis in axes]
        front, number = [], 0
        while len(front) < leading:
            if f"i{number}" not in own:
                front.append(f"i{number}")
            number += 1
        return front + own

    def _finish(self, stage, tensors, order):
        self._plain[stage] = tensors
        own = {n.tensor.output: n.name for n in self._names.tensors if n.tensor.stage == stage}
        if len(own) == len(tensors) > 1:
            tensors[0].op.tensor_names = [own[output] for output in range(len(tensors))]
        if order == sorted(order):
            self._made[stage] = tensors
        else:
            back = [order.index(d) for d in range(len(order))]
            self._made[stage] = [views.permuted(tensor, back) for tensor in tensors]

    def _make_scan(self, stage, row):
        scan = row.scan
        lists = [
            [self._plain[t.stage][t.output] if t.stage in self._plain else self._made[t.stage][0]
             for t in tensors]
            for tensors in (scan.init, scan.update, scan.state)
        ]  # fmt: skip
        state = scan.state[0].stage
        order = self._placed(stage, len(self._definition.stages[state].placeholder.shape))
        time = order.index(len(self._batch[stage]) + scan.dimension)
        made = define.scan(*lists, name=self.name(stage), axis=time, reverse=scan.reverse)
        tensors = made if isinstance(made, list) else [made]
        axis = self.axis_name(scan.axis)
        if axis != f"{self._names.stages[stage]}.idx":
            tensors[0].op.scan_axis.name = axis
        self._finish(stage, tensors, order)

    def _make_scatter(self, stage, row):
        scatter, batch = row.scatter, self._batch[stage]
        base = self._stored(scatter.base, batch)
        if self._placed(stage, base.ndim - len(batch)) != list(range(base.ndim)):
            name = self._binding.kernel.name
            raise invalid("AXIS", f"{name} has a scatter, so its dimension must be the last one")
        own = [self.size(self.row("axes", axis).extent) for axis in scatter.axes]

        def update(*indices):
            leading = indices[: len(batch)]
            axes = dict(zip(scatter.axes, indices[len(batch) :]))
            expressions = Expressions(self, axes, batch, leading)
            places = (*leading, *(expressions.of(index) for index in scatter.indices))
            return places, expressions.of(scatter.update)

        function = f"scatter_{scatter.combiner}" if scatter.combiner else "scatter"
        made = getattr(scatters, function)(
            base, [*batch, *own], update, name=self.name(stage),
            varargs_names=self._axis_names(scatter.axes, len(batch)),
        )  # fmt: skip
        self._finish(stage, [made], list(range(made.ndim)))

    def _stored(self, tensor, batch):
        """A tensor with all the dimensions in front, which a copy has where it is seen otherwise."""
        made, own = self._made[tensor.stage][tensor.output], self._batch[tensor.stage]
        if isinstance(made, Tensor) and len(own) == len(batch) and all(map(size_math.equal, own, batch)):
            return made

        def element(*indices):
            return self.read(tensor, indices[len(batch) :], batch, indices[: len(batch)])

        return define.compute([*batch, *made.shape[len(own) :]], element, name=f"{made.name}_copy")

    # Reads.

    def read(self, tensor, indices, batch, leading):
        """The element of a tensor at own `indices`, below the leading indices of its reader."""
        made = self._made[tensor.stage][tensor.output]
        own = self._batch[tensor.stage]
        skipped = len(batch) - len(own)
        front = [
            0 if is_one(extent) and not is_one(of_reader) else index
            for extent, of_reader, index in zip(own, batch[skipped:], leading[skipped:])
        ]
        return made(*front, *indices)


class Expressions:
    """The expressions of one stage. `axes` are its own axes by number."""

    def __init__(self, instance, axes, batch=(), leading=()):
        self._instance = instance
        self._axes = dict(axes or {})
        self._batch = batch
        self._leading = leading
        self._known = {}

    def of(self, root):
        """The expression as one of te; operands are made first, without recursion."""
        stack = [root]
        while stack:
            number = stack[-1]
            if number in self._known:
                stack.pop()
                continue
            row = self._instance.row("expressions", number)
            # The bounds of the axes of a reduction first, then what uses the axes.
            missing = [n for n in self._instance.bounds(row) if n not in self._known]
            missing = missing or [n for n in self._instance.below(row) if n not in self._known]
            if missing:
                stack.extend(reversed(missing))
                continue
            self._known[number] = getattr(self, f"_{row.WhichOneof('kind')}")(row)
            stack.pop()
        return self._known[root]

    def _integer(self, row):
        value = row.integer.value
        if dtypes.NAME[row.integer.type] == "uint64" and value < 0:
            value += 1 << 64
        return arithmetic.constant(value, self._constant_type(row.integer.type))

    def _floating(self, row):
        return arithmetic.constant(row.floating.value, self._constant_type(row.floating.type))

    def _constant_type(self, number):
        return self._instance.dtype(number)

    def _variable(self, row):
        return arithmetic.as_expr(self._instance.variable(row.variable), "int64")

    def _axis(self, row):
        axis = self._axes.get(row.axis)
        if axis is None:
            bounds = self._instance.row("axes", row.axis)
            minimum, extent = (self._known_or_made(b) for b in (bounds.minimum, bounds.extent))
            name = self._instance.axis_name(row.axis)
            axis = self._axes[row.axis] = expr.Axis(name, "reduce", minimum, extent)
        return axis

    def _known_or_made(self, number):
        return self._known[number] if number in self._known else self.of(number)

    def _operation(self, row):
        operands = [self._known[o] for o in row.operation.operands]
        return size_math.folded(row.operation.operator, *operands)

    def _cast(self, row):
        return arithmetic.cast(self._instance.dtype(row.cast.type), self._known[row.cast.operand])

    def _read(self, row):
        indices = [self._known[i] for i in row.read.indices]
        return self._instance.read(row.read.tensor, indices, self._batch, self._leading)

    def _reduction(self, row):
        reduction = row.reduction
        axes = [self._axis(wire.Expression(axis=axis)) for axis in reduction.axes]
        by = reduction.combiner or self._instance.reducer(reduction.reducer)
        where = self._known[reduction.condition] if reduction.HasField("condition") else None
        sources = [self._known[source] for source in reduction.sources]
        init = [self._known[start] for start in reduction.init] or None
        return reduce.reduced(by, sources, axes, where, init)[reduction.output]

    def _parameter(self, row):
        position = row.parameter.position
        return expr.Parameter(f"value{position}", position, self._constant_type(row.parameter.type))


def _parts(reduction):
    condition = [reduction.condition] if reduction.HasField("condition") else []
    return [*reduction.sources, *condition, *reduction.init]
