"""What programs take from tvm.ir."""

from . import transform
from ._expressions.expr import Expr as PrimExpr
from ._expressions.range import Range

__all__ = ["PrimExpr", "Range", "transform"]
