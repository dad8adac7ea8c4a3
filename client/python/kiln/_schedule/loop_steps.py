"""The steps about a stage's loops that need more than their row of the step table says."""

from .._base.error import invalid, public
from .._expressions.arithmetic import as_integer, whole
from .._expressions.expr import IntegerConstant
from .._tables import MEMORY_SCOPES
from . import extents
from .axes import SingletonAxis, ThreadAxis, known_tag
from .plain_steps import flat


def known_scope(scope):
    """A memory scope by its name."""
    if scope not in MEMORY_SCOPES:
        raise invalid("MEMORY_SCOPE", f"unknown memory scope {scope}; known: {', '.join(MEMORY_SCOPES)}")
    return scope


class LoopSteps:
    """The part of Stage that makes and places loops."""

    @public
    def split(self, parent, factor=None, nparts=None):
        """The axis as outer * factor + inner; with `nparts`, as that many outer iterations."""
        self._check_axes("split", [parent])
        if isinstance(parent, SingletonAxis):
            return parent, self._singleton()
        if (factor is None) == (nparts is None):
            given = "both" if factor is not None else "neither"
            raise invalid(
                "SPLIT_ARGUMENTS", f"split({parent.name}): give factor= or nparts=, not {given}"
            )
        if factor is not None:
            step = self._take("split", [parent], factors=[_count("split", parent, "factor", factor)])
        else:
            step = self._take("split", [parent], parts=_count("split", parent, "nparts", nparts))
        return tuple(step.defined)

    @public
    def tile(self, x_parent, y_parent, x_factor, y_factor):
        """Both axes split, the outer ones outside the inner ones."""
        axes = [x_parent, y_parent]
        self._check_axes("tile", axes)
        if any(isinstance(axis, SingletonAxis) for axis in axes):
            (xo, xi), (yo, yi) = self.split(x_parent, x_factor), self.split(y_parent, y_factor)
            return xo, yo, xi, yi
        factors = [_count("tile", axis, "factor", factor) for axis, factor in zip(axes, (x_factor, y_factor))]
        return tuple(self._take("tile", axes, factors=factors).defined)

    @public
    def fuse(self, *args):
        """Neighbouring axes as one; of no axes, a loop of one iteration."""
        axes = flat(args)
        self._check_axes("fuse", axes)
        real = [axis for axis in axes if not isinstance(axis, SingletonAxis)]
        if not real:
            return axes[0] if axes else self._singleton()
        return self._take("fuse", real).defined[0]

    @public
    def bind(self, ivar, thread_ivar):
        """The axis is a GPU thread axis."""
        self._check_axes("bind", [ivar])
        if isinstance(thread_ivar, str):
            tag = known_tag(thread_ivar)
        elif isinstance(thread_ivar, ThreadAxis):
            tag = thread_ivar.tag
            _check_extent(self.own(ivar), thread_ivar)
        else:
            raise invalid(
                "BIND_ARGUMENTS",
                f"bind({ivar.name}): the second argument must be a te.thread_axis, but is "
                f"{type(thread_ivar).__name__}",
            )
        self._take("bind", [ivar], tag=tag)

    @public
    def compute_at(self, parent, scope):
        """Computed inside the consumer's loop `scope`, only what that iteration needs."""
        consumer = parent if isinstance(parent, LoopSteps) else self.schedule[parent]
        if consumer.schedule is not self.schedule:
            raise invalid(
                "FOREIGN_STAGE", f"compute_at: {consumer.op.name} is a stage of another schedule"
            )
        consumer._check_axes("compute_at", [scope], attached=self.op.name)
        if isinstance(scope, SingletonAxis):
            raise invalid(
                "ATTACH_AXIS",
                f"cannot compute {self.op.name} at {scope.name} of {consumer.op.name}, which is a loop of one iteration; "
                "leave it at the root",
            )
        self._take("compute_at", at=(consumer.origin_op, consumer.own(scope)))

    @public
    def set_scope(self, scope):
        """The memory scope in which the stage's values lie."""
        self._take("set_scope", tag=known_scope(scope))

    def set_store_predicate(self, predicate):
        """Taken without effect: which thread stores a result that all of them have is Kiln's to say."""


def _check_extent(axis, thread):
    given = thread.dom.extent if thread.dom is not None else None
    extent = extents.of(axis)
    if isinstance(given, IntegerConstant) and extent not in (None, given.value):
        raise invalid(
            "BIND_ARGUMENTS",
            f"bind({axis.name}): {thread.tag} was made for {given.value} iterations, but {axis.name} has "
            f"{extent}; leave the range out, or split by {given.value}",
        )


def _count(step, axis, word, value):
    noun = "parts" if word == "nparts" else word
    try:
        count = as_integer(whole(value))
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
