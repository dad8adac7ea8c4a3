"""What classic programs ask of a stage: where it is attached, and what its axes have become."""

from .axes import ThreadAxis
from .relations import Singleton, relations_of

# The numbers that classic te has for how an axis runs and how a stage is attached.
_RUNS_AS = {"bind": 1, "unroll": 5, "vectorize": 6, "parallel": 7}
_ATTACHED_BY = {"compute_root": 1, "compute_inline": 2, "compute_at": 4}


class AxisFact:
    """How an axis runs: `iter_type`, and the thread axis it is bound to."""

    def __init__(self, step):
        self.iter_type = _RUNS_AS[step.name]
        self.bind_thread = None
        if step.name == "bind":
            self.bind_thread = ThreadAxis(step.tag)


class StageFacts:
    """Read from the steps taken so far."""

    __slots__ = ()

    @property
    def _own_steps(self):
        return [step for step in self.schedule.steps if step.stage is self]

    @property
    def scope(self):
        """The memory scope that a step has named; "" when none has."""
        scopes = [step.tag for step in self._own_steps if step.name == "set_scope"]
        made = [
            step.tag
            for step in self.schedule.steps
            if step.made is self.origin_op and step.name in ("cache_read", "cache_write")
        ]
        return (scopes or made or [""])[-1]

    @property
    def relations(self):
        """How axes were made of others: Split, Fuse and Singleton."""
        made = [relation for step in self._own_steps for relation in relations_of(step)]
        return [*map(Singleton, self.singletons), *made]

    @property
    def iter_var_attrs(self):
        """By axis, how it runs, for those that a step says it of."""
        return {step.axes[0]: AxisFact(step) for step in self._own_steps if step.name in _RUNS_AS}

    @property
    def _attaching(self):
        found = [step for step in self._own_steps if step.name in _ATTACHED_BY]
        return found[-1] if found else None

    @property
    def attach_type(self):
        """1 at the root, 2 inlined, 4 at a loop of `attach_stage`."""
        return _ATTACHED_BY[self._attaching.name] if self._attaching else 1

    @property
    def attach_stage(self):
        at = self._attaching.at if self._attaching else None
        return self.schedule[at[0]] if at else None

    @property
    def attach_ivar(self):
        at = self._attaching.at if self._attaching else None
        return at[1] if at else None

    @property
    def group(self):
        """Kiln has no groups of stages."""
        return None
