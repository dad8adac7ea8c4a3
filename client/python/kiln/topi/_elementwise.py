"""Element by element, with numpy's broadcasting."""

import inspect

from .._base import dtypes
from .._base.error import invalid, public
from .._definitions.broadcast import mapped
from .._expressions import expr, operators
from .._expressions.arithmetic import apply, as_expr, cast as cast_expr
from ._common import operand, tensor

__all__ = []


def _export(name, arity, function, doc):
    def operator(*values):
        where = f"topi.{name}"
        if len(values) != arity:
            count = f"{arity} operand" + ("" if arity == 1 else "s")
            raise invalid("OPERAND_COUNT", f"{where} takes {count}, but got {len(values)}")
        values = [operand(value, where) for value in values]
        return mapped(function, values, f"T_{name}", where)

    operator.__name__ = operator.__qualname__ = name
    operator.__doc__ = f"{doc}."
    parameters = ("x",) if arity == 1 else ("a", "b")
    operator.__signature__ = inspect.Signature(
        [inspect.Parameter(each, inspect.Parameter.POSITIONAL_ONLY) for each in parameters]
    )
    globals()[name] = public(operator)
    __all__.append(name)


def _sign(x):
    x = as_expr(x)
    positive = apply("select", x > 0, cast_expr(x.dtype, 1), x)
    if dtypes.KIND[x.dtype] == "uint":
        return positive
    result = apply("select", x < 0, cast_expr(x.dtype, -1), positive)
    return apply("select", x == 0, cast_expr(x.dtype, 0), result)


def _of_conditions(operator):
    return lambda *values: apply(operator, *(_condition(value) for value in values))


def _condition(value):
    """Numbers hold where they are not 0."""
    value = as_expr(value)
    return value if value.dtype == "bool" else value != 0


def _rounding(operator):
    """Whole numbers stay what they are."""

    def function(x):
        x = as_expr(x)
        return apply(operator, x) if dtypes.is_float(x.dtype) else x

    return function


def _float_test(operator, of_integers):
    def function(x):
        x = as_expr(x)
        if dtypes.is_float(x.dtype):
            return apply(operator, x)
        return expr.IntegerConstant(of_integers, "bool")

    return function


_BINARY = {
    "add": ("add", "a + b"),
    "subtract": ("subtract", "a - b"),
    "multiply": ("multiply", "a * b"),
    "maximum": ("max", "The larger; nan when either is"),
    "minimum": ("min", "The smaller; nan when either is"),
    "floor_divide": ("floordiv", "The quotient rounded down"),
    "trunc_divide": ("truncdiv", "The quotient of integers rounded to zero"),
    "mod": ("floormod", "The remainder with the sign of b, as Python's"),
    "floor_mod": ("floormod", "The remainder with the sign of b, as Python's"),
    "trunc_mod": ("truncmod", "The remainder of integers with the sign of a, as C's"),
    "fmod": ("fmod", "The remainder with the sign of a, as C's fmod"),
    "left_shift": ("shift_left", "a * 2^b"),
    "right_shift": ("shift_right", "a / 2^b rounded down"),
    "greater": ("greater", "a > b"),
    "less": ("less", "a < b"),
    "equal": ("equal", "a == b"),
    "not_equal": ("not_equal", "a != b"),
    "greater_equal": ("greater_equal", "a >= b"),
    "less_equal": ("less_equal", "a <= b"),
    "bitwise_and": ("bitwise_and", "Bits set in both"),
    "bitwise_or": ("bitwise_or", "Bits set in either"),
    "bitwise_xor": ("bitwise_xor", "Bits set in one of the two"),
    "atan2": ("atan2", "The angle of the point (b, a)"),
    "hypot": ("hypot", "sqrt(a^2 + b^2) without overflow"),
    "copysign": ("copysign", "a with the sign of b"),
}
_UNARY = {
    "exp": "e^x", "exp2": "2^x", "log": "The natural logarithm", "log2": "The logarithm to base 2",
    "log10": "The logarithm to base 10", "log1p": "log(1 + x)", "sqrt": "The square root",
    "rsqrt": "1 / sqrt(x)", "sin": "The sine", "cos": "The cosine", "tan": "The tangent",
    "asin": "The inverse sine", "acos": "The inverse cosine", "atan": "The inverse tangent",
    "sinh": "The hyperbolic sine", "cosh": "The hyperbolic cosine", "tanh": "The hyperbolic tangent",
    "asinh": "The inverse hyperbolic sine", "acosh": "The inverse hyperbolic cosine",
    "atanh": "The inverse hyperbolic tangent", "erf": "The error function",
    "sigmoid": "1 / (1 + exp(-x))", "abs": "The absolute value", "negative": "-x",
    "bitwise_not": "Every bit flipped",
}  # fmt: skip
_ROUNDING = {
    "floor": "Rounded down", "ceil": "Rounded up", "trunc": "Rounded to zero",
    "round": "Rounded to the nearest, halves to even",
}  # fmt: skip
_LOGIC = {
    "logical_and": (2, "Both hold; a number holds where it is not 0"),
    "logical_or": (2, "Either holds"),
    "logical_not": (1, "It does not hold"),
}

for _name, (_operator, _doc) in _BINARY.items():
    _export(_name, 2, lambda a, b, operator=_operator: apply(operator, a, b), _doc)
for _name, _doc in _UNARY.items():
    _export(_name, 1, lambda x, operator=_name: apply(operator, x), _doc)
for _name, _doc in _ROUNDING.items():
    _export(_name, 1, _rounding(_name), f"{_doc}; integers stay what they are")
for _name, (_arity, _doc) in _LOGIC.items():
    _export(_name, _arity, _of_conditions(_name), _doc)
_export(
    "logical_xor", 2, lambda a, b: apply("not_equal", _condition(a), _condition(b)),
    "One of the two holds",
)  # fmt: skip
_export("divide", 2, operators.div, "a / b; of integers rounded to zero, as in classic topi")
_export("power", 2, operators.power, "a^b; of integers with a constant exponent from 1 to 16")
_export("sign", 1, _sign, "-1, 0 or 1; nan stays nan")
_export("identity", 1, as_expr, "A copy")
_export("isnan", 1, _float_test("isnan", 0), "Whether it is nan")
_export("isinf", 1, _float_test("isinf", 0), "Whether it is an infinity")
_export("isfinite", 1, _float_test("isfinite", 1), "Whether it is neither nan nor an infinity")

def _public(function):
    __all__.append(function.__name__)
    return public(function)


@_public
def clip(x, a_min, a_max):
    """Values below `a_min` become a_min, those above `a_max` a_max; nan stays nan."""
    x = operand(x, "topi.clip")

    def body(value):
        value = as_expr(value)
        low, high = cast_expr(value.dtype, a_min), cast_expr(value.dtype, a_max)
        return apply("min", apply("max", value, low), high)

    return mapped(body, [x], "T_clip", "topi.clip")


@_public
def cast(x, dtype, span=None):
    """In another type; floats to integers round to zero."""
    x = operand(x, "topi.cast")
    dtype = dtypes.dtype_name(dtype, "topi.cast")
    return mapped(lambda value: cast_expr(dtype, value), [x], "T_cast", "topi.cast")


@_public
def where(condition, x, y):
    """x where the condition holds, else y. A number holds where it is not 0."""
    values = [operand(value, "topi.where") for value in (condition, x, y)]
    return mapped(
        lambda c, a, b: apply("select", _condition(c), a, b), values, "T_where", "topi.where"
    )


@_public
def elemwise_sum(xs):
    """The sum of several tensors of one shape."""
    xs = [tensor(x, "topi.elemwise_sum") for x in xs]
    if not xs:
        raise invalid("OPERAND_COUNT", "topi.elemwise_sum takes at least one tensor")

    def body(*values):
        total = values[0]
        for value in values[1:]:
            total = total + value
        return as_expr(total)

    return mapped(body, xs, "T_elemwise_sum", "topi.elemwise_sum")


for _alias, _name in {
    "fast_exp": "exp", "fast_tanh": "tanh", "fast_erf": "erf", "floor_div": "floor_divide",
    "floormod": "floor_mod", "floordiv": "floor_divide", "truncdiv": "trunc_divide",
    "truncmod": "trunc_mod", "broadcast_add": "add", "broadcast_sub": "subtract",
    "broadcast_mul": "multiply", "broadcast_div": "divide", "broadcast_mod": "mod",
    "broadcast_maximum": "maximum", "broadcast_minimum": "minimum", "broadcast_power": "power",
    "broadcast_greater": "greater", "broadcast_less": "less", "elementwise_sum": "elemwise_sum",
}.items():  # fmt: skip
    globals()[_alias] = globals()[_name]
    __all__.append(_alias)
__all__.sort()
