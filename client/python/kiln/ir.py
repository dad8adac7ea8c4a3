"""What programs take from tvm.ir."""

from . import transform
from ._encoding.saved_tensors import load_json, save_json
from ._expressions.c_functions import register_intrin_lowering, register_op_attr
from ._expressions.expr import Expr as PrimExpr
from ._expressions.range import Range

__all__ = ["PrimExpr", "Range", "load_json", "register_intrin_lowering", "register_op_attr", "save_json", "transform"]
