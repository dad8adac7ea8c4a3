"""The axes that schedules have beside those of the definition: GPU thread axes, and what steps make."""

from .._base.error import invalid, public
from .._expressions.expr import Axis
from .._expressions.range import Range
from .._tables import THREAD_TAGS


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
    return ThreadAxis(known_tag(tag), dom, name)


def known_tag(tag):
    """The tag of a thread axis; cthread is what it was called once."""
    tag = "vthread" if tag == "cthread" else tag
    if tag not in THREAD_TAGS:
        raise invalid("THREAD_AXIS", f"unknown thread axis {tag}; known: {', '.join(THREAD_TAGS)}")
    return tag


class DerivedAxis:
    """An axis that a step made: `i.outer`, `i.inner`, `i.j.fused`."""

    def __init__(self, name, op, made_by, kind):
        self.name = name
        self.op = op
        self.made_by = made_by  # the step
        self.kind = kind
        self.extent = None  # of type int, where the client can know it
        self.size = None  # the same as an expression, once it is asked for
        self.dom = None  # found by the daemon

    @property
    def var(self):
        return self

    @property
    def iter_type(self):
        """The number classic te has for its kind."""
        return {"data": 0, "reduce": 2, "time": 3}[self.kind]

    def __repr__(self):
        return self.name


class SingletonAxis(DerivedAxis):
    """A loop of one iteration, which `fuse()` of no axes makes. There is nothing to run in another way, so steps on it
    are not sent."""

    def __init__(self, op):
        super().__init__("singleton", op, None, "data")
        self.extent = 1


class _IterVarType(type):
    """What isinstance asks: an axis of a definition or of a schedule."""

    def __instancecheck__(cls, value):
        return isinstance(value, (Axis, DerivedAxis, ThreadAxis))

    @public
    def __call__(cls, *args, **kwargs):
        raise invalid(
            "AXIS_BY_HAND",
            'IterVar is the type of an axis, of which none is made by it: call te.reduce_axis((0, n), name="k") or '
            'te.thread_axis("threadIdx.x"); those of a tensor C are C.op.axis',
        )


class IterVar(metaclass=_IterVarType):
    """Any axis, as classic programs ask for its type, and the numbers of `iter_type`."""

    (
        DataPar, ThreadIndex, CommReduce, Ordered, DimInfo, Unrolled, Vectorized, Parallelized, Tensorized,
    ) = range(9)  # fmt: skip
