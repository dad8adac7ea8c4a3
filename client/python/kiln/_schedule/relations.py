"""How the axes of a stage came about, as classic programs read it in `s[C].relations`."""


class Split:
    """`parent` became outer * factor + inner; one of `factor` and `nparts` is None."""

    def __init__(self, parent, outer, inner, factor, nparts):
        self.parent, self.outer, self.inner, self.factor, self.nparts = parent, outer, inner, factor, nparts

    def __repr__(self):
        by = f"factor={self.factor}" if self.nparts is None else f"nparts={self.nparts}"
        return f"split(parent={self.parent}, outer={self.outer}, inner={self.inner}, {by})"


class Fuse:
    """`axes`, the first of them `outer` and the last `inner`, became `fused`."""

    def __init__(self, axes, fused):
        self.axes, self.outer, self.inner, self.fused = list(axes), axes[0], axes[-1], fused

    def __repr__(self):
        return f"fuse({', '.join(map(repr, self.axes))}, fused={self.fused})"


class Singleton:
    """`iter` is a loop of one iteration, which fuse() of no axes made."""

    def __init__(self, iter):
        self.iter = iter

    def __repr__(self):
        return f"singleton({self.iter})"


def relations_of(step):
    """Those of a step of the schedule; a tile is two splits."""
    if step.name == "fuse":
        return [Fuse(step.axes, step.defined[0])]
    if step.name not in ("split", "tile"):
        return []
    count = len(step.axes)
    factors = list(step.factors) or [None] * count
    return [
        Split(axis, step.defined[i], step.defined[count + i], factors[i], step.parts or None)
        for i, axis in enumerate(step.axes)
    ]
