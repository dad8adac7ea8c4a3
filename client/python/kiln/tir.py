"""The expression functions that programs take from tir."""

from ._define import size_var as size_var
from ._define import var as var
from ._error import public
from ._expr import Expr as PrimExpr
from ._expr import Var as Var
from ._expr import cast as _cast
from ._operators import *  # noqa: F403
from ._operators import __all__ as _operators
from ._operators import select
from ._reduce import *  # noqa: F403
from ._reduce import __all__ as _reduce

Select = select


@public
def Cast(dtype, value, span=None):  # noqa: N802
    """`value` as `dtype`."""
    return _cast(dtype, value)


__all__ = sorted({*_operators, *_reduce, "Cast", "PrimExpr", "Select", "Var"})
