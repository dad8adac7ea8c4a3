"""A stage of a schedule: its loops, what has become of them, and how a step is taken on it.

    s[C].split(i, factor=4)    loops i, j  ->  i.outer, i.inner, j; i is consumed by the step

A step's method checks its operands by the step's row, and `_take` numbers and names what the step defines. Only
what needs no proof is refused here; the daemon checks the rest and answers with the step's line.
"""

from .._base.absent import ABSENT_STEPS
from .._base.error import invalid, public, unsupported
from .._base.suggest import nearest, refuse_private, unknown_name
from .._expressions.expr import Axis
from . import extents, inner_reductions
from .axes import DerivedAxis, SingletonAxis
from .hints import Hints
from .loop_steps import LoopSteps
from .operations import OpNow, copied_from
from .plain_steps import add_plain_steps
from .stage_facts import StageFacts
from .step import Step
from .table import ROWS, axes_defined

_PAST = {"split": "split", "tile": "tiled", "fuse": "fused"}


class Stage(LoopSteps, Hints, StageFacts):
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
        self.singletons = []  # what fuse() of no axes has made
        self._consumed = {}  # id of an axis -> the step that used it up

    def __getattr__(self, name):
        refuse_private(name, "Stage")
        if hasattr(type(self.schedule), name):
            raise unknown_name(f"{name} is a step of a schedule, as in s.{name}(...)")
        raise unknown_name(f"stage {self.op.name} has no step {name}{nearest(name, dir(Stage))}")

    @property
    def is_output(self):
        return any(self.origin_op is op for op in self.schedule.outputs)

    def own(self, axis):
        """The axis, or the one that stands for it in this stage."""
        return self.aliases.get(id(axis), axis)

    def __repr__(self):
        return f"stage {self.op.name}({', '.join(a.name for a in self.leaf_iter_vars)})"

    # Steps.

    def _take(self, name, axes=(), **fields):
        """Takes a step on axes that are checked: what it defines stands where they stood."""
        given = [self.own(axis) for axis in axes]
        axes = [axis for axis in given if not isinstance(axis, SingletonAxis)]
        step = Step(name, self, axes, **fields)
        if given and not axes:
            return step  # one iteration runs in one way: there is nothing to send
        for text, made_of in axes_defined(name, axes, name_of=_name):
            kind = "reduce" if any(axis.kind == "reduce" for axis in made_of) else made_of[0].kind
            step.defined.append(DerivedAxis(text, self.origin_op, step, kind))
        for axis, extent in zip(step.defined, extents.defined_by(name, axes, step.factors, step.parts)):
            axis.extent = extent
        if step.defined:
            self._replace(step, axes)
        elif name == "reorder":
            self._reorder(given)
        self.schedule.steps.append(step)
        return step

    def _singleton(self):
        axis = SingletonAxis(self.origin_op)
        self.singletons.append(axis)
        self.leaf_iter_vars.insert(0, axis)
        self.all_iter_vars.append(axis)
        return axis

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

    # What steps that define stages leave of this one.

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
        left = inner_reductions.reads(self.origin_op.body, self.inner_stages)
        self.reads = [each for each in self.reads if copied_from(each) in left] + [made]
        self.op = OpNow(self.origin_op, self.data, self.reduce, self.reads)

    def _take_over(self, reduce, made):
        self.reduce = reduce
        self.reads = list(made.op.outputs)
        self.op = OpNow(self.origin_op, self.data, reduce, self.reads)

    # Checks.

    def _check_axes(self, step, axes, attached=None, consumed=False):
        """Each is an axis of this stage, named once, and not `consumed` by an earlier step."""
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


add_plain_steps(Stage)


def _name(axis):
    return axis.name


def _names(axes):
    return ", ".join(axis.name for axis in axes) or "no axes"


def _position(axes, axis):
    return next(i for i, each in enumerate(axes) if each is axis)


def _consumed_message(axis, step, attached=None):
    """What became of an axis; for compute_at of stage `attached`, where to attach instead."""
    if step.made is not None:
        return _given_away_message(axis, step)
    parts = [d.name for d in step.defined]
    past = _PAST.get(step.name, f"made by {step.name}")
    if attached is not None:
        return (
            f"axis {axis.name} of {step.stage.op.name} was {past} at line {step.line}; "
            f"compute {attached} at {' or '.join(parts)}"
        )
    return f"axis {axis.name} was {past} into {', '.join(parts)} at line {step.line}"


def _given_away_message(axis, step):
    name, made = step.stage.op.name, step.made.name
    if step.name == "reduction_stage":
        return f"the reduction over {axis.name} inside {name} is the stage {made} now; name the axes of {made}"
    if step.name == "rfactor":
        return f"{name} now reduces what {made} has; the reduction over {axis.name} is in {made}"
    if axis.kind == "reduce":
        return f"{name} is now a copy; the reduction is in {made}"
    return f"{name} is now a copy of {made}, with its own axes as loops; {axis.name} gave the copy its layout"


def add_absent(owner, steps):
    """Puts methods on a class that refuse the steps of classic te which the step table does not have."""
    for name, instead in steps.items():
        if name not in ROWS:
            setattr(owner, name, _absent(name, instead))


def _absent(name, instead):
    def step(self, *args, **kwargs):
        raise unsupported(
            "NOT_IN_THIS_VERSION", f"the step {name} is not part of this version of Kiln; {instead}"
        )

    step.__name__ = name
    return public(step)


add_absent(Stage, ABSENT_STEPS)
