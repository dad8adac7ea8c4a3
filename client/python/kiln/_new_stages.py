"""The steps of a schedule that define stages: cache_read, cache_padded, cache_write, rfactor and reduction_stage."""

from . import _expr, _extents, _inner_reductions, _padding
from ._error import invalid, limited, public, unsupported
from ._tables import MEMORY_SCOPES, STEPS
from ._tensor import ComputeOp, Operation, Tensor

_STAGE_NAMES = {row[0]: row[5] for row in STEPS}
_LONGEST_NAME = 1024  # bytes, as the daemon has it
_AXIS_NAMES = {row[0]: row[6].split() for row in STEPS}


def axis_names(step, axes, data=(), reduce=(), dimensions=0, place=0):
    """The names of the axes a step defines, in the order of their ids, by those of what it is about."""
    names = []
    for pattern in _AXIS_NAMES[step]:
        if pattern == "{dimensions}":
            names += axes or [f"ax{i}" for i in range(dimensions)]
        elif "{data}" in pattern:
            names += [pattern.replace("{data}", name) for name in data]
        elif "{reduce}" in pattern:
            names += [pattern.replace("{reduce}", name) for name in reduce]
        else:
            names.append(pattern.replace("{all}", ".".join(axes)).format(*axes))
    if step == "rfactor":
        names.insert(place, names.pop(len(data)))
    for name in names:
        # Refused here, since a name of a name grows faster than the steps that make it.
        if len(name.encode()) > _LONGEST_NAME:
            raise limited("LIMIT", f"an axis name has {len(name.encode())} bytes; the limit is {_LONGEST_NAME}")
    return names


def stage_name(step, stage, tensor, tag, taken):
    """The name of the stage a step defines: one that is not taken."""
    wanted = _STAGE_NAMES[step].format(stage=stage, tensor=tensor, tag=tag)
    name, count = wanted, 0
    while name in taken:
        count += 1
        name = f"{wanted}_{count}"
    return name


def known_scope(scope):
    if scope not in MEMORY_SCOPES:
        raise invalid("MEMORY_SCOPE", f"unknown memory scope {scope}; known: {', '.join(MEMORY_SCOPES)}")
    return scope


class StepOp(ComputeOp):
    """A stage that a step makes."""

    def __init__(self, name, axis, reduce_axis, inputs):
        super().__init__(name, axis)
        self.reduce_axis = reduce_axis
        self._inputs = inputs
        self.is_copy = False
        for each in (*axis, *reduce_axis):
            each.op = self

    def make_outputs(self, shape, dtypes):
        self._outputs = [Tensor(self, i, shape, dtype) for i, dtype in enumerate(dtypes)]

    def describe(self):
        return f"values of {', '.join(tensor.name for tensor in self._inputs)}"


class OpNow(Operation):
    """What a stage computes after a step has given its work to another one."""

    def __init__(self, origin, axis, reduce_axis, inputs):
        self.origin = origin
        self.axis = axis
        self.reduce_axis = reduce_axis
        self._now = inputs

    def __getattr__(self, name):
        return getattr(self.origin, name)

    kind = property(lambda self: self.origin.kind)
    num_outputs = property(lambda self: self.origin.num_outputs)
    outputs = property(lambda self: self.origin.outputs)
    input_tensors = property(lambda self: list(self._now))
    axes = property(lambda self: [*self.axis, *self.reduce_axis])

    def output(self, index):
        return self.origin.output(index)

    def describe(self):
        return f"values of {', '.join(tensor.name for tensor in self._now)}"


def copied_from(tensor):
    """What a cache_read, or one of a copy, is a copy of."""
    while isinstance(tensor.op, StepOp) and tensor.op.is_copy:
        tensor = tensor.op.input_tensors[0]
    return tensor


def _same(a, b):
    return a.op is b.op and a.value_index == b.value_index


class NewStages:
    """The part of Schedule that makes stages."""

    @public
    def cache_read(self, tensor, scope, readers, layout=None):
        """A copy of the tensor in a memory scope, which the readers read instead of it.

        With a `layout`, loops of the one reader, the copy has these loops as its dimensions, in this order, and
        of each the element that the reader reads in that iteration: what stands far apart comes together."""
        stage = self._stage_of(tensor, "cache_read")
        known_scope(scope)
        stages = [self[each] for each in (readers if isinstance(readers, (list, tuple)) else [readers])]
        if not stages:
            raise invalid("CACHE_READ", f"cache_read of {tensor.name} names no stage that reads the copy")
        for reader in stages:
            if reader.origin_op.kind != "compute" or not any(_same(tensor, each) for each in reader.reads):
                raise invalid("CACHE_READ", f"{reader.op.name} does not read {tensor.name}")
        loops = self._layout(tensor, scope, stages, layout)
        names = axis_names("cache_read", [axis.name for axis in loops], dimensions=len(tensor.shape))
        step = self._new_step("cache_read", stage, names, axes=loops, tag=scope, output=tensor.value_index)
        step.readers = stages
        shape = [_extents.size_of(axis) for axis in loops] if loops else tensor.shape
        for axis, extent in zip(step.defined, shape):
            axis.size = extent
        made = self._enter(step, tensor.name, step.defined, [], [tensor], shape, [tensor.dtype])
        made.op.is_copy = True
        copy = made.op.output(0)
        for reader in stages:
            reader.reads = [copy if _same(tensor, each) else each for each in reader.reads]
        return copy

    def _layout(self, tensor, scope, readers, layout):
        """The loops of the one reader that become dimensions of a copy."""
        if layout is None:
            return []
        layout = list(layout) if isinstance(layout, (list, tuple)) else [layout]
        if len(readers) > 1:
            raise invalid(
                "CACHE_READ", f"the layout of a copy of {tensor.name} is the order of one reader's loops, but it has "
                f"{len(readers)} readers",
            )
        readers[0]._check_axes("cache_read", layout)
        loops = [readers[0].own(axis) for axis in layout]
        for axis in loops:
            size = _extents.size_of(axis)
            if not isinstance(size, int) and not _expr.is_size(size):
                raise unsupported(
                    "CACHE_READ",
                    f"{axis.name} cannot be a dimension of {tensor.name}.{scope}: its extent depends on other loops",
                )
        return loops

    @public
    def cache_padded(self, tensor, reader):
        """A copy of the tensor with what the reader puts around it: where the reader has
        `te.if_then_else(inside, A[i + d - 1], 0.0)`, the elements of A where `inside` holds, and 0.0 elsewhere."""
        stage = self._stage_of(tensor, "cache_padded")
        reader = self[reader]
        if reader.origin_op.kind != "compute" or not any(_same(tensor, each) for each in reader.reads):
            raise invalid("CACHE_READ", f"{reader.op.name} does not read {tensor.name}")
        value, read = _padding.find(reader, copied_from(tensor))
        names = axis_names("cache_padded", [], dimensions=len(tensor.shape))
        step = self._new_step("cache_padded", stage, names, output=tensor.value_index)
        step.readers = [reader]
        shape = _padding.extents(read)
        for axis, extent in zip(step.defined, shape):
            axis.size = extent
        made = self._enter(step, tensor.name, step.defined, [], [tensor], shape, [value.dtype])
        copy = made.op.output(0)
        reader.reads = [*reader.reads, copy]
        return copy

    @public
    def cache_write(self, tensor, scope):
        """A stage in a memory scope computes the values, laid out as the loops so far; the tensor's own
        stage becomes a copy of it."""
        tensors = list(tensor) if isinstance(tensor, (list, tuple)) else [tensor]
        stage = self._stage_of(tensors[0] if tensors else None, "cache_write")
        for each in tensors[1:]:
            if each.op is not tensors[0].op:
                raise invalid(
                    "CACHE_WRITE", f"cache_write takes the tensors of one stage, but {each.name} is not one of "
                    f"{stage.op.name}",
                )
        known_scope(scope)
        self._require_compute(stage, "cache_write")
        data = [axis for axis in stage.leaf_iter_vars if axis.kind != "reduce"]
        for axis in stage.leaf_iter_vars:
            if axis.kind == "reduce" and not any(axis is root for root in stage.reduce):
                raise invalid(
                    "CACHE_WRITE",
                    f"reduction axis {axis.name} of {stage.op.name} was made by a step; cache_write "
                    f"{stage.op.name} before that, and take the step on the new stage",
                )
        names = axis_names("cache_write", [], [a.name for a in data], [a.name for a in stage.reduce])
        step = self._new_step("cache_write", stage, names, tag=scope)
        step.data, step.reduce = data, list(stage.reduce)
        shape = [_extents.size_of(axis) for axis in data]
        for new, old in zip(step.defined, [*data, *stage.reduce]):
            new.extent, new.size = _extents.of(old), _extents.size_of(old)
            new.kind = old.kind
        made = self._enter(
            step, "", step.defined[: len(data)], step.defined[len(data) :], stage.reads, shape,
            [each.dtype for each in stage.origin_op.outputs],
        )  # fmt: skip
        made.aliases = {id(old): new for old, new in zip(stage.reduce, step.defined[len(data) :])}
        stage.become_copy(step, made)
        outputs = [made.op.output(each.value_index) for each in tensors]
        return outputs if isinstance(tensor, (list, tuple)) else outputs[0]

    @public
    def rfactor(self, tensor, axis, factor_axis=0):
        """Partial results for each value of a reduction loop become a stage, of which the loop is
        dimension `factor_axis`; the tensor's own stage reduces them."""
        stage = self._stage_of(tensor, "rfactor")
        self._require_compute(stage, "rfactor")
        stage._check_axes("rfactor", [axis])
        axis = stage.own(axis)
        if axis.kind != "reduce":
            raise invalid(
                "RFACTOR",
                f"axis {axis.name} of {stage.op.name} is not a reduction axis; rfactor takes a reduction axis "
                "or a part of one",
            )
        size = _extents.size_of(axis)
        if not isinstance(size, int) and not _expr.is_size(size):
            raise unsupported(
                "RFACTOR",
                f"cannot factor {axis.name}: its extent {size} depends on other axes, but it becomes a dimension of "
                f"the partial results of {stage.op.name}; split it and factor the inner part",
            )
        place = factor_axis if factor_axis >= 0 else len(stage.data) + 1 + factor_axis
        if not 0 <= place <= len(stage.data):
            raise invalid(
                "RFACTOR",
                f"factor_axis is {factor_axis}, but the partial results of {stage.op.name} have the "
                f"dimensions 0 to {len(stage.data)}",
            )
        others = [a for a in stage.leaf_iter_vars if a.kind == "reduce" and a is not axis]
        names = axis_names(
            "rfactor", [axis.name], [a.name for a in stage.data], [a.name for a in others], place=place
        )
        step = self._new_step("rfactor", stage, names, axes=[axis], value=place)
        step.data, step.reduce = list(stage.data), others
        before = [*stage.data[:place], axis, *stage.data[place:]]
        for new, old in zip(step.defined, [*before, *others, axis]):
            new.extent, new.size = _extents.of(old), _extents.size_of(old)
        for new in step.defined[len(before) :]:
            new.kind = "reduce"
        shape = [_extents.size_of(each) for each in before]
        made = self._enter(
            step, "", step.defined[: len(before)], step.defined[len(before) : -1], stage.reads, shape,
            [each.dtype for each in stage.origin_op.outputs],
        )  # fmt: skip
        made.aliases = {id(old): new for old, new in zip(others, step.defined[len(before) : -1])}
        stage.reduce_partial(step, made)
        outputs = made.op.outputs
        return outputs[0] if len(outputs) == 1 else outputs

    @public
    def reduction_stage(self, tensor, axis):
        """The reduction over `axis` (one, or a list) inside the tensor's expression becomes a stage: its
        value for each value of the axes that it uses, which the expression reads.

        `tanh(te.sum(A[i, k] * W[k, j], axis=k) + b[j])` computes each sum inside its own loops; as a stage,
        the sum has loops over i, j and k that steps can tile."""
        stage = self._stage_of(tensor, "reduction_stage")
        self._require_compute(stage, "reduction_stage")
        axes = [stage.own(each) for each in (axis if isinstance(axis, (list, tuple)) else [axis])]
        stage._check_axes("reduction_stage", axes)
        for each in axes:
            if each.kind != "reduce":
                raise invalid(
                    "REDUCTION_STAGE",
                    f"axis {each.name} of {stage.op.name} is not a reduction axis; reduction_stage takes those that a "
                    "reduction inside the expression runs over",
                )
        reduction = _inner_reductions.find(stage, axes)
        data, reduce = _inner_reductions.axes_used(stage, reduction), list(reduction.axes)
        stage._check_axes("reduction_stage", reduce)
        return self.stage_of_reduction(stage, reduction, data, reduce, _inner_reductions.word_for(reduction))

    def stage_of_reduction(self, stage, reduction, data, reduce, word):
        """The step as it is written: with the axes that the reduction uses and a word for the new stage."""
        names = axis_names("reduction_stage", [], [a.name for a in data], [a.name for a in reduce])
        step = self._new_step("reduction_stage", stage, names, axes=[*data, *reduce], tag=word)
        step.data, step.reduce = list(data), list(reduce)
        for new, old in zip(step.defined, step.axes):
            new.extent, new.size, new.kind = _extents.of(old), _extents.size_of(old), old.kind
        shape = [_extents.size_of(each) for each in data]
        inside = _inner_reductions.reads([reduction], stage.inner_stages)
        made = self._enter(
            step, "", step.defined[: len(data)], step.defined[len(data) :],
            [each for each in stage.reads if copied_from(each) in inside], shape, [reduction.dtype],
        )  # fmt: skip
        made.aliases = {id(old): new for old, new in zip(reduce, step.defined[len(data) :])}
        stage.give_reduction(step, reduction, made.op.output(0))
        return made.op.output(0)

    def _stage_of(self, tensor, step):
        if not isinstance(tensor, (Tensor, Operation)):
            raise invalid("NOT_A_TENSOR", f"{step} takes a tensor, but got {type(tensor).__name__}")
        return self[tensor]

    def _require_compute(self, stage, step):
        kind = stage.origin_op.kind
        if kind == "placeholder":
            raise invalid(
                "STEP_STAGE", f"{stage.op.name} is a placeholder; steps apply to what is computed"
            )
        if kind == "scan":
            raise unsupported(
                "STEP_STAGE", f"{stage.op.name} is a scan; {step} its update instead"
            )

    def _new_step(self, name, stage, names, **fields):
        from ._schedule import DerivedAxis, Step

        step = Step(name, stage, **fields)
        step.defined = [DerivedAxis(each, stage.origin_op, "data") for each in names]
        return step

    def _enter(self, step, tensor, data, reduce, inputs, shape, dtypes):
        from ._define import as_shape
        from ._schedule import Stage

        taken = {name for stage in self.stages for name in _names_of(stage.origin_op)}
        name = stage_name(step.name, step.stage.origin_op.name, tensor, step.tag, taken)
        op = StepOp(name, list(data), list(reduce), list(inputs))
        op.make_outputs(as_shape(shape, f"{step.name} of {step.stage.op.name}"), dtypes)
        step.made = op
        self.steps.append(step)
        self._stages[id(op)] = Stage(self, op)
        return self._stages[id(op)]


def _names_of(op):
    return {op.name, *(tensor.name for tensor in op.outputs)}
