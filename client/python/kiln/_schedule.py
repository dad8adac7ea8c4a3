"""Schedules: ordered steps that say how a kernel runs.

What a step defines and which fields it has stands in the step table. Checked here is what needs no
proof; the rest is checked by the daemon, which answers with the step's line.
"""

from . import _extents, _inner_reductions, _source
from ._error import invalid, public, unsupported
from ._expr import Axis, IntegerConstant, as_integer
from ._hints import Hints
from ._new_stages import NewStages, OpNow, copied_from, axis_names, known_scope
from ._range import Range
from ._stage_facts import StageFacts
from ._suggest import nearest, refuse_private, unknown_name
from ._tables import THREAD_TAGS
from ._tensor import Operation, Tensor, as_operation

_PAST = {"split": "split", "tile": "tiled", "fuse": "fused"}

# Steps of classic te that this version does not have.
_ABSENT_ON_STAGE = ("rolling_buffer", "set_axis_separators", "transform_layout")
_ABSENT_ON_SCHEDULE = ("create_group",)


class ThreadAxis:
    """A GPU thread axis, for `bind`. With an extent, only an axis of that many iterations is bound to it."""

    def __init__(self, tag, dom=None, name=""):
        self.tag = self.thread_tag = tag
        self.dom = dom
        self.name = name or tag

    @property
    def var(self):
        return self

    def equal(self, other):
        """A condition for set_store_predicate."""
        return f"{self.tag} == {other}"

    def __repr__(self):
        return f"thread_axis({self.tag!r})"


@public
def thread_axis(dom=None, tag="", name="", span=None):
    """A thread axis such as "blockIdx.x"; the range is found from the axis bound to it, unless given."""
    if isinstance(dom, str):
        dom, tag = None, dom
    if dom is not None and not isinstance(dom, Range):
        dom = Range(*dom) if isinstance(dom, (tuple, list)) else Range(dom)
    return ThreadAxis(_known_tag(tag), dom, name)


def _known_tag(tag):
    tag = "vthread" if tag == "cthread" else tag
    if tag not in THREAD_TAGS:
        raise invalid("THREAD_AXIS", f"unknown thread axis {tag}; known: {', '.join(THREAD_TAGS)}")
    return tag


class DerivedAxis:
    """An axis that a step made: `i.outer`, `i.inner`, `i.j.fused`."""

    def __init__(self, name, op, kind):
        self.name = name
        self.op = op
        self.kind = kind
        self.extent = None  # of type int, where the client can know it
        self.size = None  # the same as an expression, once it is asked for
        self.made_by = None  # the step
        self.dom = None  # found by the daemon

    @property
    def var(self):
        return self

    def __repr__(self):
        return self.name


class Step:
    """One step, in the user's words and at the user's line."""

    __slots__ = (
        "name", "stage", "axes", "factors", "parts", "tag", "at", "output", "readers", "tags", "value", "file",
        "line", "defined", "made", "data", "reduce",
    )  # fmt: skip

    def __init__(
        self, name, stage, axes=(), factors=(), parts=0, tag="", at=None, output=0, value=0, readers=(), tags=()
    ):
        self.name = name
        self.stage = stage
        self.axes = axes
        self.factors = factors
        self.parts = parts
        self.tag = tag
        self.at = at  # (consumer's operation, its axis)
        self.output = output
        self.readers = readers  # stages
        self.tags = tags  # thread axes
        self.value = value
        self.file, self.line = _source.caller()
        self.defined = []
        self.made = None  # the operation of the stage it defines, named by these axes of its own
        self.data, self.reduce = [], []

    @property
    def owner(self):
        """The stage whose loops the axes are: of a layout, the reader's."""
        return self.readers[0] if self.readers else self.stage


@public
def create_schedule(ops):
    """A schedule without steps for one or more operations (or tensors) and all they read."""
    outputs = ops if isinstance(ops, (list, tuple)) else [ops]
    return Schedule([as_operation(op, "create_schedule") for op in outputs])


class Schedule(NewStages):
    """The stages of a kernel and the steps taken so far."""

    def __init__(self, outputs):
        self.outputs = outputs
        self.steps = []
        self._stages = {id(op): Stage(self, op) for op in operations_below(outputs)}

    @public
    def __getitem__(self, key):
        op = as_operation(key, "a schedule's []")
        stage = self._stages.get(id(op))
        if stage is None:
            raise invalid("FOREIGN_STAGE", self._foreign_message(op))
        return stage

    def _foreign_message(self, op):
        mine = [stage.op for stage in self._stages.values()]
        if any(each.name == op.name for each in mine):
            return f"this {op.name} is not part of this schedule, which has another tensor {op.name}"
        return f"{op.name} is not part of this schedule, which has {', '.join(each.name for each in mine)}"

    def __getattr__(self, name):
        refuse_private(name, "Schedule")
        if hasattr(Stage, name):
            output = self.outputs[0].name
            raise unknown_name(f"{name} is a step of a stage, as in s[{output}].{name}(...)")
        raise unknown_name(f"a schedule has no {name}{nearest(name, dir(Schedule))}")

    def __contains__(self, key):
        return id(as_operation(key, "in")) in self._stages

    @public
    def text(self, target="cpu"):
        """The steps as a block of a schedule file: `schedule cpu { split(C.i, factor=32) ... }`."""
        from . import _schedule_text

        return _schedule_text.text(self, target)

    @public
    def save(self, path, target="cpu"):
        """Writes that file, which `kiln.load_schedule` and `kiln run --schedule` take."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text(target))

    @property
    def stages(self):
        return list(self._stages.values())

    @property
    def stage_map(self):
        return {stage.op: stage for stage in self.stages}

    def normalize(self):
        """Nothing is left to do; classic programs call it."""
        return self

    def __repr__(self):
        return f"Schedule of {', '.join(op.name for op in self.outputs)}, {len(self.steps)} steps"


def operations_below(outputs):
    """The operations that the outputs need, each after those it needs itself."""
    order, seen = [], set()
    stack = [(op, False) for op in reversed(outputs)]
    while stack:
        op, ready = stack.pop()
        if ready:
            order.append(op)
        elif id(op) not in seen:
            seen.add(id(op))
            stack.append((op, True))
            stack.extend((t.op, False) for t in reversed(_needed(op)))
    return order


def _needed(op):
    if op.kind == "scan":
        return [*op.inputs, *op.state_placeholder, *op.init, *op.update]
    return op.input_tensors


class Stage(Hints, StageFacts):
    """One operation of a schedule."""

    def __init__(self, schedule, op):
        self.schedule = schedule
        self.op = op
        self.origin_op = op
        self.data = list(getattr(op, "axis", ()))
        self.reduce = list(getattr(op, "reduce_axis", ()))
        self.reads = list(op.input_tensors) if op.kind == "compute" else []
        self.aliases = {}  # id of an axis that the stage took over -> its own
        self.inner_stages = {}  # id of a reduction inside the expression -> the tensor that it has become
        self.leaf_iter_vars = list(op.axes)
        self.all_iter_vars = list(op.axes)
        self._consumed = {}  # id of an axis -> the step that used it up

    def __getattr__(self, name):
        refuse_private(name, "Stage")
        if hasattr(Schedule, name):
            raise unknown_name(f"{name} is a step of a schedule, as in s.{name}(...)")
        raise unknown_name(f"stage {self.op.name} has no step {name}{nearest(name, dir(Stage))}")

    @property
    def is_output(self):
        return any(self.origin_op is op for op in self.schedule.outputs)

    @public
    def split(self, parent, factor=None, nparts=None):
        """The axis as outer * factor + inner; with `nparts`, as that many outer iterations."""
        self._check_axes("split", [parent])
        if (factor is None) == (nparts is None):
            given = "both" if factor is not None else "neither"
            raise invalid(
                "SPLIT_ARGUMENTS", f"split({parent.name}): give factor= or nparts=, not {given}"
            )
        if factor is not None:
            step = self._step("split", [parent], factors=[self._count("split", parent, "factor", factor)])
        else:
            step = self._step("split", [parent], parts=self._count("split", parent, "nparts", nparts))
        return tuple(step.defined)

    @public
    def tile(self, x_parent, y_parent, x_factor, y_factor):
        """Both axes split, the outer ones outside the inner ones."""
        axes = [x_parent, y_parent]
        self._check_axes("tile", axes)
        factors = [
            self._count("tile", x_parent, "factor", x_factor),
            self._count("tile", y_parent, "factor", y_factor),
        ]
        step = self._step("tile", axes, factors=factors)
        return tuple(step.defined)

    @public
    def fuse(self, *args):
        """Neighbouring axes as one."""
        axes = _flat(args)
        if not axes:
            raise invalid("FUSE_ARGUMENTS", "fuse() needs at least one axis")
        self._check_axes("fuse", axes)
        return self._step("fuse", axes).defined[0]

    @public
    def reorder(self, *args):
        """The axes named stand in this order, in the places they hold."""
        axes = _flat(args)
        self._check_axes("reorder", axes)
        self._step("reorder", axes)

    @public
    def bind(self, ivar, thread_ivar):
        """The axis is a GPU thread axis."""
        self._check_axes("bind", [ivar])
        if isinstance(thread_ivar, str):
            tag = _known_tag(thread_ivar)
        elif isinstance(thread_ivar, ThreadAxis):
            tag = thread_ivar.tag
            self._check_extent(ivar, thread_ivar)
        else:
            raise invalid(
                "BIND_ARGUMENTS",
                f"bind({ivar.name}): the second argument must be a te.thread_axis, but is "
                f"{type(thread_ivar).__name__}",
            )
        self._step("bind", [ivar], tag=tag)

    @public
    def parallel(self, var):
        """Iterations run on several cores."""
        self._check_axes("parallel", [var])
        self._step("parallel", [var])

    @public
    def vectorize(self, var):
        """Iterations run as lanes of vector instructions."""
        self._check_axes("vectorize", [var])
        self._step("vectorize", [var])

    @public
    def unroll(self, var):
        """The loop is replaced by its iterations."""
        self._check_axes("unroll", [var])
        self._step("unroll", [var])

    @public
    def compute_at(self, parent, scope):
        """Computed inside the consumer's loop `scope`, only what that iteration needs."""
        consumer = parent if isinstance(parent, Stage) else self.schedule[parent]
        if consumer.schedule is not self.schedule:
            raise invalid(
                "FOREIGN_STAGE", f"compute_at: {consumer.op.name} is a stage of another schedule"
            )
        consumer._check_axes("compute_at", [scope], attached=self.op.name)
        self._step("compute_at", at=(consumer.origin_op, consumer.own(scope)))

    @public
    def compute_inline(self):
        """The expression stands where the tensor is read."""
        self._step("compute_inline")

    @public
    def compute_root(self):
        """Computed whole, before its consumers."""
        self._step("compute_root")

    @public
    def set_scope(self, scope):
        """The memory scope in which the stage's values lie."""
        self._step("set_scope", tag=known_scope(scope))

    def set_store_predicate(self, predicate):
        """Taken without effect: which thread stores a result that all of them have is Kiln's to say."""

    def own(self, axis):
        """The axis, or the one that stands for it in this stage."""
        return self.aliases.get(id(axis), axis)

    def become_copy(self, step, made):
        """The work is `made`'s now; this stage's own data axes are its loops."""
        kept = {id(axis) for axis in self.data}
        for axis in self.all_iter_vars:
            self._consumed[id(axis)] = step
        for axis in self.data:
            del self._consumed[id(axis)]
        self.all_iter_vars = [axis for axis in self.all_iter_vars if id(axis) in kept]
        self.leaf_iter_vars = list(self.data)
        self._take_over([], made)

    def reduce_partial(self, step, made):
        """The stage reduces what `made` has over the last axis of the step."""
        before = [axis for axis in self.leaf_iter_vars if axis.kind == "reduce"]
        where = _position(self.leaf_iter_vars, before[0])
        for axis in before:
            self._consumed[id(axis)] = step
        self.leaf_iter_vars = [axis for axis in self.leaf_iter_vars if axis.kind != "reduce"]
        self.leaf_iter_vars.insert(where, step.defined[-1])
        self.all_iter_vars.append(step.defined[-1])
        self._take_over([step.defined[-1]], made)

    def give_reduction(self, step, reduction, made):
        """A reduction inside the expression is the tensor `made` now."""
        gone = {id(axis) for axis in step.reduce}
        for axis in step.reduce:
            self._consumed[id(axis)] = step
        self.leaf_iter_vars = [axis for axis in self.leaf_iter_vars if id(axis) not in gone]
        self.reduce = [axis for axis in self.reduce if id(axis) not in gone]
        self.inner_stages[id(reduction)] = made
        left = _inner_reductions.reads(self.origin_op.body, self.inner_stages)
        self.reads = [each for each in self.reads if copied_from(each) in left] + [made]
        self.op = OpNow(self.origin_op, self.data, self.reduce, self.reads)

    def _take_over(self, reduce, made):
        self.reduce = reduce
        self.reads = list(made.op.outputs)
        self.op = OpNow(self.origin_op, self.data, reduce, self.reads)

    def _step(self, name, axes=(), **fields):
        axes = [self.own(axis) for axis in axes]
        step = Step(name, self, axes, **fields)
        for i, text in enumerate(axis_names(name, [axis.name for axis in axes])):
            kind = "reduce" if any(axis.kind == "reduce" for axis in axes) else axes[0].kind
            if name == "tile":
                kind = axes[i % 2].kind
            step.defined.append(DerivedAxis(text, self.origin_op, kind))
            step.defined[-1].made_by = step
        for axis, extent in zip(step.defined, _extents.defined_by(name, axes, step.factors, step.parts)):
            axis.extent = extent
        if step.defined:
            self._replace(step, axes)
        elif name == "reorder":
            self._reorder(axes)
        self.schedule.steps.append(step)
        return step

    def _check_extent(self, axis, thread):
        given = thread.dom.extent if thread.dom is not None else None
        extent = _extents.of(axis)
        if isinstance(given, IntegerConstant) and extent not in (None, given.value):
            raise invalid(
                "BIND_ARGUMENTS",
                f"bind({axis.name}): {thread.tag} was made for {given.value} iterations, but {axis.name} has "
                f"{extent}; leave the range out, or split by {given.value}",
            )

    def _replace(self, step, axes):
        where = min(_position(self.leaf_iter_vars, axis) for axis in axes)
        for axis in axes:
            self._consumed[id(axis)] = step
            del self.leaf_iter_vars[_position(self.leaf_iter_vars, axis)]
        self.leaf_iter_vars[where:where] = step.defined
        self.all_iter_vars += step.defined

    def _reorder(self, axes):
        places = sorted(_position(self.leaf_iter_vars, axis) for axis in axes)
        for place, axis in zip(places, axes):
            self.leaf_iter_vars[place] = axis

    def _check_axes(self, step, axes, attached=None, consumed=False):
        seen = set()
        for axis in map(self.own, axes):
            if not isinstance(axis, (Axis, DerivedAxis)):
                raise invalid(
                    "STEP_AXIS",
                    f"{step} takes axes of {self.op.name}, which has {_names(self.leaf_iter_vars)}, but got "
                    f"{axis!r} of type {type(axis).__name__}",
                )
            if id(axis) in seen:
                raise invalid("AXIS_TWICE", f"{step} names axis {axis.name} twice")
            seen.add(id(axis))
            used_by = self._consumed.get(id(axis))
            if used_by is not None and not consumed:
                raise invalid("CONSUMED_AXIS", _consumed_message(axis, used_by, attached))
            own_axes = self.all_iter_vars if consumed else self.leaf_iter_vars
            if not any(axis is own for own in own_axes):
                raise invalid("FOREIGN_AXIS", self._foreign_message(axis))

    def _foreign_message(self, axis):
        for stage in self.schedule.stages:
            if any(axis is each for each in stage.all_iter_vars):
                return f"axis {axis.name} belongs to stage {stage.op.name}, not to {self.op.name}"
        if axis.op is None:
            return f"axis {axis.name} is not used by {self.op.name}, which has {_names(self.leaf_iter_vars)}"
        owner = f"another {axis.op.name}" if axis.op.name == self.op.name else axis.op.name
        return (
            f"axis {axis.name} belongs to {owner}, which is not part of this schedule; {self.op.name} has "
            f"{_names(self.leaf_iter_vars)}"
        )

    def _count(self, step, axis, word, value):
        noun = "parts" if word == "nparts" else word
        try:
            count = as_integer(value)
        except TypeError:
            raise invalid(
                "SPLIT_FACTOR",
                f"{step}({axis.name}, {word}={value}): the {noun} must be an integer constant",
            ) from None
        if count < 1:
            raise invalid(
                "SPLIT_FACTOR",
                f"{step}({axis.name}, {word}={count}): the {noun} must be at least 1",
            )
        return count

    def __repr__(self):
        return f"stage {self.op.name}({', '.join(a.name for a in self.leaf_iter_vars)})"


def _names(axes):
    return ", ".join(axis.name for axis in axes) or "no axes"


def _position(axes, axis):
    return next(i for i, each in enumerate(axes) if each is axis)


def _flat(args):
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        return list(args[0])
    return list(args)


def _consumed_message(axis, step, attached=None):
    """What became of an axis; for compute_at of stage `attached`, where to attach instead."""
    if step.made is not None:
        name, made = step.stage.op.name, step.made.name
        if step.name == "reduction_stage":
            return f"the reduction over {axis.name} inside {name} is the stage {made} now; name the axes of {made}"
        if step.name == "rfactor":
            return f"{name} now reduces what {made} has; the reduction over {axis.name} is in {made}"
        if axis.kind == "reduce":
            return f"{name} is now a copy; the reduction is in {made}"
        return (
            f"{name} is now a copy of {made}, with its own axes as loops; {axis.name} gave the copy its layout"
        )
    parts = [d.name for d in step.defined]
    past = _PAST[step.name]
    if attached is not None:
        return (
            f"axis {axis.name} of {step.stage.op.name} was {past} at line {step.line}; "
            f"compute {attached} at {' or '.join(parts)}"
        )
    return f"axis {axis.name} was {past} into {', '.join(parts)} at line {step.line}"


def _absent(owner, name):
    def step(self, *args, **kwargs):
        raise unsupported(
            "NOT_IN_THIS_VERSION", f"the step {name} is not part of this version of Kiln"
        )

    step.__name__ = name
    setattr(owner, name, public(step))


for _name in _ABSENT_ON_STAGE:
    _absent(Stage, _name)
for _name in _ABSENT_ON_SCHEDULE:
    _absent(Schedule, _name)

__all__ = ["Operation", "Schedule", "Stage", "Tensor", "create_schedule", "thread_axis"]
