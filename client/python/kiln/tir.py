"""The expression functions that programs take from tir."""

from ._base import absent as _absent
from ._base.error import invalid, public
from ._base.suggest import answers as _answers
from ._definitions.define import size_var as size_var, var as var
from ._definitions.intrin import Buffer as Buffer, decl_buffer as decl_buffer
from ._encoding.lowered import Lowered as PrimFunc
from ._expressions import arithmetic as _arithmetic, expr as _expr
from ._expressions.arithmetic import cast as _cast
from ._expressions.c_functions import (
    Call as Call,
    call_extern as call_extern,
    call_pure_extern as call_pure_extern,
    intrinsic as _by_rule,
)
from ._expressions.expr import Expr as Expr, Expr as PrimExpr, Var as Var
from ._expressions.operators import *  # noqa: F403
from ._expressions.operators import __all__ as _operators, const, div, select
from ._expressions.reduce import *  # noqa: F403
from ._expressions.reduce import __all__ as _reduce
from ._schedule.axes import IterVar as IterVar

Select = select
SizeVar = size_var

_NODES = {
    "Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "truncdiv", "Mod": "truncmod",
    "FloorDiv": "floordiv", "FloorMod": "floormod", "Min": "min", "Max": "max", "EQ": "equal",
    "NE": "not_equal", "LT": "less", "LE": "less_equal", "GT": "greater", "GE": "greater_equal",
    "And": "logical_and", "Or": "logical_or", "Not": "logical_not",
}  # fmt: skip


def _node(name, operator):
    def node(*operands, span=None):
        if len(operands) != _arithmetic.ARITY[operator]:
            raise invalid(
                "OPERAND_COUNT", f"tir.{name} takes {_arithmetic.ARITY[operator]} operands, but got {len(operands)}"
            )
        if name == "Div":
            return div(*operands)
        return _arithmetic.apply(operator, *operands)

    node.__name__ = node.__qualname__ = name
    node.__doc__ = f"The operator {operator}, as a node of 2017's tvm.make."
    return public(node)


for _name, _operator in _NODES.items():
    globals()[_name] = _node(_name, _operator)
for _name in _absent.TIR:
    globals()[_name] = getattr(_absent, _name)


class _ConstantType(type):
    """What isinstance asks and calls: IntImm(dtype, value) makes a constant of the class it stands for."""

    def __instancecheck__(cls, value):
        return isinstance(value, cls.stands_for)

    @public
    def __call__(cls, dtype, value, span=None):
        return const(value if cls is IntImm else float(value), dtype)


class IntImm(metaclass=_ConstantType):
    """An integer constant: IntImm("int32", 1)."""

    stands_for = _expr.IntegerConstant


class FloatImm(metaclass=_ConstantType):
    """A floating constant: FloatImm("float32", 1.0)."""

    stands_for = _expr.FloatConstant


@public
def call_intrin(dtype, name, *args, span=None):
    """An intrinsic by its name, "tir.exp" or "exp", or one that the program has registered a rule for."""
    short = str(name).removeprefix("tir.")
    if short not in _operators:
        made = _by_rule(name, dtype, args)
        if made is not None:
            return made
        raise invalid("INTRINSIC", f"there is no intrinsic {name}; docs/language.md lists them")
    return _cast(dtype, globals()[short](*args))


call_pure_intrin = call_intrin


class CallEffectKind:
    """What programs say of their intrinsics; here all are pure."""

    ExprAnnotation, Pure, ReadState, UpdateState, SpecialCallArg, EmbedInfo, ControlJump = range(7)


@public
def Cast(dtype, value, span=None):  # noqa: N802
    """`value` as `dtype`."""
    return _cast(dtype, value)


@public
def ceildiv(a, b, span=None):
    """The quotient rounded up."""
    return _arithmetic.apply("floordiv", _arithmetic.as_expr(a) + (_arithmetic.as_expr(b) - 1), b)


__all__ = sorted(
    {
        *_operators, *_reduce, *_NODES, *_absent.TIR, "Buffer", "Call", "CallEffectKind", "Cast", "FloatImm", "IntImm", "IterVar", "PrimExpr", "PrimFunc", "Select",
        "SizeVar", "Var", "call_extern", "call_intrin", "call_pure_extern", "call_pure_intrin", "ceildiv", "decl_buffer",
    }
)  # fmt: skip
__getattr__ = _answers(__name__, __all__)
