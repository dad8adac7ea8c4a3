"""What makes expressions of expressions: casts, the operators of the table, and Python's own operators."""

import inspect
import numbers

import numpy as np

from .._base import dtypes
from .._base.error import invalid, public
from .._tables import OPERATORS
from .expr import Apply, Cast, Expr, FloatConstant, IntegerConstant, Operand

TYPE_RULE = {name: rule for name, _, rule, _, _ in OPERATORS}
ARITY = {name: arity for name, arity, _, _, _ in OPERATORS}

_INTEGER_DIVISION = (
    "there are several integer divisions: write a // b or te.floordiv(a, b) to round down, "
    "te.truncdiv(a, b) to round to zero, te.floormod or te.truncmod for the remainder"
)


def is_integer(value):
    """Whether `value` is known and whole: a Python or numpy integer, or a constant."""
    return isinstance(value, IntegerConstant) or (
        hasattr(value, "__index__") and not isinstance(value, Expr)
    )


def as_integer(value):
    """The integer; a TypeError where the value is none, or not known."""
    if not is_integer(value):
        raise TypeError
    return value.__index__()


def whole(value):
    """A float without a fraction as an int, anything else as it is: of 1024 / 32 Python 3 makes 32.0, where the
    programs that te's tutorials show mean a size."""
    return int(value) if isinstance(value, (float, np.floating)) and value.is_integer() else value


def is_number(value):
    return isinstance(value, (bool, numbers.Real, np.bool_)) and not isinstance(value, Expr)


def constant(value, dtype):
    """A number as a constant of `dtype`."""
    if dtypes.is_float(dtype):
        return FloatConstant(value, dtype)
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        if value != int(value):
            raise invalid("CONSTANT_TYPE", f"the number {value} is no {dtype}")
    return IntegerConstant(int(value), dtype)


def natural_dtype(value):
    """The type of a number that stands alone: as classic te has it."""
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, np.generic) and not isinstance(value, float):
        return dtypes.dtype_name(value.dtype, "constant")
    if isinstance(value, numbers.Integral):
        return "int32" if -(1 << 31) <= value < 1 << 31 else "int64"
    return "float32"


def as_expr(value, dtype=None):
    """`value` as an expression; a number becomes a constant of `dtype`."""
    if isinstance(value, Expr):
        return value
    if is_number(value):
        return constant(value, dtype or natural_dtype(value))
    scalar = getattr(value, "_as_scalar", None)
    if scalar is not None:
        return scalar()
    if isinstance(value, np.ndarray):
        element = f"A[{', '.join('ijklmnop'[: value.ndim])}]"
        raise invalid(
            "ARRAY_IN_EXPRESSION",
            f"a numpy array of shape {value.shape} stands in an expression; declare a te.placeholder for "
            f"it, read its elements ({element}), and pass the array when the kernel is called",
        )
    if value is None:
        raise invalid(
            "NOT_AN_EXPRESSION", "None cannot stand in an expression; does a function lack its return"
        )
    if inspect.isgenerator(value):
        raise invalid(
            "NOT_AN_EXPRESSION",
            "a generator cannot stand in an expression; a sum over a range is te.sum over a te.reduce_axis",
        )
    raise invalid(
        "NOT_AN_EXPRESSION",
        f"{value!r} of type {type(value).__name__} cannot stand in an expression",
    )


def cast(dtype, value):
    """`value` as `dtype`; nothing when it is of that type already."""
    dtype = dtypes.dtype_name(dtype, "cast")
    if is_number(value):
        return constant(value, dtype)
    operand = as_expr(value)
    if operand.dtype == dtype:
        return operand
    if isinstance(operand, (IntegerConstant, FloatConstant)) and operand.dtype != "bool":
        if dtypes.is_float(dtype) and not dtypes.is_past_range(operand.value, dtype):
            return FloatConstant(operand.value, dtype)
        if dtypes.is_int(dtype) and isinstance(operand, IntegerConstant):
            low, high = dtypes.limits(dtype)
            if low <= operand.value <= high:
                return IntegerConstant(operand.value, dtype)
    return Cast(dtype, operand)


def _dtype_for_number(number, other):
    """A number takes the type of what it meets, unless that would lose its fraction."""
    if isinstance(number, (bool, np.bool_)):
        return other
    if isinstance(number, numbers.Integral):
        return "int32" if other == "bool" else other
    return other if dtypes.is_float(other) else "float32"


def matched(*values):
    """The values as expressions of one type. At least one is no plain number, or all are."""
    types = [as_expr(v).dtype for v in values if not is_number(v)]
    if not types:
        types = [natural_dtype(v) for v in values]
    dtype = types[0]
    for other in types[1:]:
        dtype = dtypes.promoted(dtype, other)
    for value in values:
        if is_number(value):
            dtype = dtypes.promoted(dtype, _dtype_for_number(value, dtype))
    return [cast(dtype, value) for value in values]


_FOLDABLE = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "floormod": lambda a, b: a % b,
    "min": min,
    "max": max,
}


def apply(operator, *values):
    """The operator on values, after the casts its type rule asks for."""
    rule = TYPE_RULE[operator]
    if rule == "choose":
        return _choose(operator, *values)
    if rule == "logic":
        operands = [condition(value, operator) for value in values]
    else:
        operands = matched(*values)
    dtype = operands[0].dtype
    if rule == "bits" and not dtypes.is_float(dtype):
        raise invalid("OPERAND_TYPE", f"{operator} takes a floating number, but got {dtype}")
    if rule == "from_bits":
        return _from_bits(operator, operands[0])
    if rule in ("same_float", "float_test") and not dtypes.is_float(dtype):
        dtype = "float32"
        operands = [cast(dtype, operand) for operand in operands]
    elif rule in ("same_int", "int_to_int") and not dtypes.is_int(dtype):
        raise invalid("OPERAND_TYPE", f"{operator} takes integers, but got {dtype}: {operands[0]}")
    elif rule == "same_bits" and dtypes.is_float(dtype):
        raise invalid("OPERAND_TYPE", f"{operator} takes integers or bool, but got {dtype}")
    elif rule == "same" and dtype == "bool":
        dtype = "int32"
        operands = [cast(dtype, operand) for operand in operands]
    if operator in ("floordiv", "floormod", "truncdiv", "truncmod"):
        _refuse_zero(operator, operands)
    if operator in _FOLDABLE and all(isinstance(o, IntegerConstant) for o in operands):
        return IntegerConstant(_FOLDABLE[operator](*(o.value for o in operands)), dtype)
    if rule in ("compare", "float_test"):
        dtype = "bool"
    if rule == "bits":
        dtype = f"uint{8 * dtypes.NUMPY[dtype].itemsize}"
    return Apply(operator, tuple(operands), dtype)


def _from_bits(operator, operand):
    dtype = operator.removesuffix("_of_bits")
    bits = f"uint{8 * dtypes.NUMPY[dtype].itemsize}"
    if isinstance(operand, IntegerConstant):
        operand = cast(bits, operand)
    if operand.dtype != bits:
        raise invalid("OPERAND_TYPE", f"{operator} takes {bits}, but got {operand.dtype}: {operand}")
    return Apply(operator, (operand,), dtype)


def _refuse_zero(operator, operands):
    if isinstance(operands[1], IntegerConstant) and operands[1].value == 0:
        raise invalid("DIVISION_BY_ZERO", f"{operator}({operands[0]}, 0) divides by zero")


def condition(value, where):
    """`value` as a bool expression."""
    if isinstance(value, (bool, np.bool_)):
        return IntegerConstant(int(value), "bool")
    operand = as_expr(value)
    if operand.dtype != "bool":
        raise invalid(
            "CONDITION_TYPE",
            f"{where} takes conditions, but got {operand.dtype}: {operand}; "
            f"write a comparison such as {operand} != 0",
        )
    return operand


def _choose(operator, test, a, b):
    test = condition(test, operator)
    a, b = matched(a, b)
    return Apply(operator, (test, a, b), a.dtype)


def unary(operator, a):
    return apply(operator, a)


def _has_no_operators(*values):
    """Whether one of the operands may know of an operator that we do not; None and a text surely do not."""
    for value in values:
        if isinstance(value, (str, bytes, type(None))):
            as_expr(value)
    return not all(isinstance(v, (Operand, np.ndarray)) or is_number(v) for v in values)


def binary(operator, a, b):
    if operator in ("equal", "not_equal") and any(isinstance(v, (str, type(None))) for v in (a, b)):
        return operator == "not_equal"
    if _has_no_operators(a, b):
        return NotImplemented
    return apply(operator, a, b)


def bits(operator, on_bool, a, b):
    if _has_no_operators(a, b):
        return NotImplemented
    operands = matched(a, b)
    return apply(on_bool if operands[0].dtype == "bool" else operator, *operands)


def divide(a, b):
    if _has_no_operators(a, b):
        return NotImplemented
    operands = matched(a, b)
    if not dtypes.is_float(operands[0].dtype):
        raise invalid("INTEGER_DIVISION", _INTEGER_DIVISION)
    return apply("divide", *operands)


def power(a, b):
    if _has_no_operators(a, b):
        return NotImplemented
    if not is_number(a) and isinstance(b, numbers.Integral) and not isinstance(b, bool):
        base = as_expr(a)
        if b == 2 or (not dtypes.is_float(base.dtype) and 1 <= b <= 16):
            result = base
            for _ in range(int(b) - 1):
                result = result * base
            return result
        if b < 0 and not dtypes.is_float(base.dtype):
            raise invalid(
                "INTEGER_POWER", f"integers have no power of {b}; cast {base} to a floating type"
            )
    return apply("pow", a, b)


class _PythonOperators:
    """What Python calls for `a + b` and the like. They stand here, behind what they call, and go to Operand."""

    # fmt: off
    def __add__(self, other): return binary("add", self, other)
    def __radd__(self, other): return binary("add", other, self)
    def __sub__(self, other): return binary("subtract", self, other)
    def __rsub__(self, other): return binary("subtract", other, self)
    def __mul__(self, other): return binary("multiply", self, other)
    def __rmul__(self, other): return binary("multiply", other, self)
    def __truediv__(self, other): return divide(self, other)
    def __rtruediv__(self, other): return divide(other, self)
    def __floordiv__(self, other): return binary("floordiv", self, other)
    def __rfloordiv__(self, other): return binary("floordiv", other, self)
    def __mod__(self, other): return binary("floormod", self, other)
    def __rmod__(self, other): return binary("floormod", other, self)
    def __pow__(self, other): return power(self, other)
    def __rpow__(self, other): return power(other, self)
    def __and__(self, other): return bits("bitwise_and", "logical_and", self, other)
    def __rand__(self, other): return bits("bitwise_and", "logical_and", other, self)
    def __or__(self, other): return bits("bitwise_or", "logical_or", self, other)
    def __ror__(self, other): return bits("bitwise_or", "logical_or", other, self)
    def __xor__(self, other): return bits("bitwise_xor", "not_equal", self, other)
    def __rxor__(self, other): return bits("bitwise_xor", "not_equal", other, self)
    def __lshift__(self, other): return binary("shift_left", self, other)
    def __rlshift__(self, other): return binary("shift_left", other, self)
    def __rshift__(self, other): return binary("shift_right", self, other)
    def __rrshift__(self, other): return binary("shift_right", other, self)
    def __lt__(self, other): return binary("less", self, other)
    def __le__(self, other): return binary("less_equal", self, other)
    def __gt__(self, other): return binary("greater", self, other)
    def __ge__(self, other): return binary("greater_equal", self, other)
    def __eq__(self, other): return binary("equal", self, other)
    def __ne__(self, other): return binary("not_equal", self, other)
    def __neg__(self): return unary("negative", self)
    def __pos__(self): return as_expr(self)
    def __abs__(self): return unary("abs", self)
    # fmt: on

    def __invert__(self):
        operand = as_expr(self)
        return unary("logical_not" if operand.dtype == "bool" else "bitwise_not", operand)


for _name, _method in vars(_PythonOperators).items():
    if callable(_method):
        setattr(Operand, _name, public(_method))


def astype(self, dtype):
    """This value as another type."""
    return cast(dtype, self)


def equal(self, other):
    return binary("equal", self, other)


Expr.astype, Expr.equal = astype, equal
