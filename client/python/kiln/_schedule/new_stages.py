"""The steps of a schedule that define stages: cache_read, cache_padded, cache_write, rfactor and reduction_stage.

    CC = s.cache_write(C, "local")    C = A*B  ->  C.local = A*B; C = C.local

Each finds out what its stage is made of; the step table says what it is called and which axes it has.
"""

from .._base.error import invalid, public, unsupported
from .._definitions.define import as_shape
from .._definitions.tensor import Operation, Tensor
from .._expressions import expr
from . import extents, inner_reductions, padding
from .axes import DerivedAxis
from .loop_steps import known_scope
from .operations import StepOp, copied_from, same_tensor
from .stage import Stage
from .step import Step
from .table import axes_defined, stage_defined


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
            if reader.origin_op.kind != "compute" or not any(same_tensor(tensor, each) for each in reader.reads):
                raise invalid("CACHE_READ", f"{reader.op.name} does not read {tensor.name}")
        loops = self._layout(tensor, scope, stages, layout)
        step = Step("cache_read", stage, loops, tag=scope, output=tensor.value_index, readers=stages)
        shape = [extents.size_of(axis) for axis in loops] if loops else tensor.shape
        made = self._define(step, shape, [tensor], [tensor.dtype], tensor.name)
        made.op.is_copy = True
        copy = made.op.output(0)
        for reader in stages:
            reader.reads = [copy if same_tensor(tensor, each) else each for each in reader.reads]
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
            size = extents.size_of(axis)
            if not isinstance(size, int) and not expr.is_size(size):
                raise unsupported(
                    "CACHE_READ",
                    f"{axis.name} cannot be a dimension of {tensor.name}.{scope}: its extent depends on other loops",
                )
        return loops

    @public
    def cache_padded(self, tensor, reader):
        """A copy of the tensor with what the reader puts around it: where the reader has
        `te.if_then_else(inside, A[i + d - 1], 0.0)`, the elements of A where `inside` holds, and 0.0 elsewhere. Or with
        what the reader computes of single elements: of `te.max(A[i, k], 0.0) * B[k, j]`, their maxima with 0.0."""
        stage = self._stage_of(tensor, "cache_padded")
        reader = self[reader]
        if reader.origin_op.kind != "compute" or not any(same_tensor(tensor, each) for each in reader.reads):
            raise invalid("CACHE_READ", f"{reader.op.name} does not read {tensor.name}")
        value, read = padding.find(reader, copied_from(tensor))
        step = Step("cache_padded", stage, output=tensor.value_index, readers=[reader])
        made = self._define(step, padding.extents(read), [tensor], [value.dtype], tensor.name)
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
        step = Step("cache_write", stage, tag=scope, data=data, reduce=list(stage.reduce))
        shape = [extents.size_of(axis) for axis in data]
        made = self._define(step, shape, stage.reads, _dtypes(stage.origin_op))
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
        size = extents.size_of(axis)
        if not isinstance(size, int) and not expr.is_size(size):
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
        step = Step("rfactor", stage, [axis], value=place, data=list(stage.data), reduce=others)
        shape = [extents.size_of(each) for each in (*stage.data[:place], axis, *stage.data[place:])]
        made = self._define(step, shape, stage.reads, _dtypes(stage.origin_op))
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
        reduction = inner_reductions.find(stage, axes)
        data, reduce = inner_reductions.axes_used(stage, reduction), list(reduction.axes)
        stage._check_axes("reduction_stage", reduce)
        return self.stage_of_reduction(stage, reduction, data, reduce, inner_reductions.word_for(reduction))

    def stage_of_reduction(self, stage, reduction, data, reduce, word):
        """The step as it is written: with the axes that the reduction uses and a word for the new stage."""
        step = Step("reduction_stage", stage, [*data, *reduce], tag=word, data=list(data), reduce=list(reduce))
        shape = [extents.size_of(each) for each in data]
        inside = inner_reductions.reads([reduction], stage.inner_stages)
        reads = [each for each in stage.reads if copied_from(each) in inside]
        made = self._define(step, shape, reads, [reduction.dtype])
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

    def _define(self, step, shape, inputs, dtypes, tensor=""):
        """Names and numbers what the step defines, by its row, and enters the stage that it makes: with a dimension
        of `shape` for each data axis, and a reduction axis for each of the step's."""
        made_of = axes_defined(
            step.name, step.axes, step.data, step.reduce, len(shape), step.value, name_of=_name
        )  # fmt: skip
        for position, (name, old) in enumerate(made_of):
            is_dimension = position < len(shape)
            axis = DerivedAxis(name, step.stage.origin_op, step, "data" if is_dimension else "reduce")
            if old:
                axis.extent, axis.size = extents.of(old[0]), extents.size_of(old[0])
            else:
                axis.size = shape[position]
            step.defined.append(axis)
        data, rest = step.defined[: len(shape)], step.defined[len(shape) :]
        reduce = rest[: len(step.reduce)]  # what is left is the step's own stage's
        taken = {name for stage in self.stages for name in _names_of(stage.origin_op)}
        name = stage_defined(step.name, step.stage.origin_op.name, tensor, step.tag, taken)
        step.made = StepOp(name, data, reduce, list(inputs))
        step.made.make_outputs(as_shape(shape, f"{step.name} of {step.stage.op.name}"), dtypes)
        self.steps.append(step)
        made = self._stages[id(step.made)] = Stage(self, step.made)
        made.aliases = {id(old): new for old, new in zip(step.reduce, reduce)}
        return made


def _name(axis):
    return axis.name


def _names_of(op):
    return {op.name, *(tensor.name for tensor in op.outputs)}


def _dtypes(op):
    return [each.dtype for each in op.outputs]
