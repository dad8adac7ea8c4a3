"""What classic programs call to inline element-wise stages before they schedule the rest."""

from .._base.error import public


@public
def AutoInlineInjective(sch):  # noqa: N802
    """Every stage without a reduction is computed where it is read, but for the outputs."""
    for stage in sch.stages:
        op = stage.origin_op
        if op.kind == "compute" and not op.reduce_axis and not stage.is_output:
            stage.compute_inline()


AutoInlineElemWise = AutoInlineBroadcast = AutoInlineInjective

__all__ = ["AutoInlineBroadcast", "AutoInlineElemWise", "AutoInlineInjective"]
