"""What programs take from tvm.ir."""

from . import transform
from ._expr import Expr as PrimExpr
from ._range import Range

__all__ = ["PrimExpr", "Range", "transform"]
