"""Scalar expressions: what the body of a compute is made of."""

import inspect
import numbers

import numpy as np

from . import _dtype
from ._error import invalid, public
from ._tables import OPERATORS
from ._suggest import refuse_private, unknown_name
from ._unknown_value import UnknownValue, numpy_function

TYPE_RULE = {name: rule for name, _, rule, _, _ in OPERATORS}
ARITY = {name: arity for name, arity, _, _, _ in OPERATORS}

_INTEGER_DIVISION = (
    "there are several integer divisions: write a // b or te.floordiv(a, b) to round down, "
    "te.truncdiv(a, b) to round to zero, te.floormod or te.truncmod for the remainder"
)
class Operand:
    """Arithmetic for everything that stands for a scalar."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __array_ufunc__(self, function, method, *inputs, **options):
        return numpy_function(Operand, function, method, inputs)

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


for _name, _method in list(vars(Operand).items()):
    if callable(_method) and _name != "__hash__":
        setattr(Operand, _name, public(_method))


class Expr(UnknownValue, Operand):
    """A scalar value of a kernel, known only when it runs."""

    __slots__ = ("dtype",)

    def __iter__(self):
        raise invalid("NOT_A_SEQUENCE", f"{self} is a scalar expression, not a sequence")

    def __getattr__(self, name):
        refuse_private(name, "Expr")
        raise unknown_name(
            f"{self} is an expression, which has no {name}; the functions of expressions are those of te, as te.exp"
        )

    def astype(self, dtype):
        """This value as another type."""
        return cast(dtype, self)

    def equal(self, other):
        return binary("equal", self, other)

    def same_as(self, other):
        """Whether both are the same object; `==` is an expression."""
        return self is other

    def __repr__(self):
        from ._text import text

        return text(self)


class IntegerConstant(Expr):
    __slots__ = ("value",)

    def __init__(self, value, dtype):
        low, high = _dtype.limits(dtype)
        if not low <= value <= high:
            raise invalid("CONSTANT_RANGE", f"the number {value} does not fit into {dtype}")
        self.value = int(value)
        self.dtype = dtype

    def __int__(self):
        return self.value

    __index__ = __int__

    def __float__(self):
        return float(self.value)

    def __bool__(self):
        return self.value != 0


class FloatConstant(Expr):
    __slots__ = ("value",)

    def __init__(self, value, dtype):
        if _dtype.is_past_range(value, dtype):
            raise invalid("CONSTANT_RANGE", f"the number {value} does not fit into {dtype}")
        self.value = float(value)
        self.dtype = dtype

    def __float__(self):
        return self.value

    def __int__(self):
        return int(self.value)


class Var(Expr):
    """A size that is known at the call."""

    __slots__ = ("name", "nonnegative")

    def __init__(self, name, nonnegative=False):
        self.name = name
        self.nonnegative = nonnegative
        self.dtype = "int64"


class Range:
    """minimum, minimum + 1, ... minimum + extent - 1."""

    __slots__ = ("min", "extent")

    def __init__(self, minimum, extent):
        self.min = minimum
        self.extent = extent

    def __repr__(self):
        return f"range(min={self.min}, extent={self.extent})"


class Axis(Expr):
    """What a stage runs over. `kind` is data, reduce or time."""

    __slots__ = ("name", "kind", "dom", "op")

    def __init__(self, name, kind, minimum, extent):
        self.name = name
        self.kind = kind
        self.dom = Range(minimum, extent)
        self.op = None  # the operation it belongs to; for a reduction axis the first one
        self.dtype = "int64"

    @property
    def var(self):
        return self

    @property
    def iter_type(self):
        """The number classic te has for its kind."""
        return {"data": 0, "reduce": 2, "time": 3}[self.kind]


class Apply(Expr):
    """An operator of the operator table applied to operands."""

    __slots__ = ("operator", "operands")

    def __init__(self, operator, operands, dtype):
        self.operator = operator
        self.operands = operands
        self.dtype = dtype

    def __bool__(self):
        if self.operator in ("equal", "not_equal") and all(map(_is_finished_axis, self.operands)):
            # `axis in s[C].leaf_iter_vars` asks for identity.
            return (self.operands[0] is self.operands[1]) == (self.operator == "equal")
        # `assert A.shape[1] == B.shape[0]` compares sizes, which is a question about the description.
        if self.operator in ("equal", "not_equal") and all(map(is_size, self.operands)):
            return same(*self.operands) == (self.operator == "equal")
        return super().__bool__()


def _is_finished_axis(node):
    """An axis of a stage that is described in full, so that no kernel's value is meant."""
    return isinstance(node, Axis) and node.op is not None and node.op.num_outputs > 0


class Cast(Expr):
    __slots__ = ("operand",)

    def __init__(self, dtype, operand):
        self.dtype = dtype
        self.operand = operand


class Read(Expr):
    """An element of a tensor."""

    __slots__ = ("tensor", "indices")

    def __init__(self, tensor, indices):
        self.tensor = tensor
        self.indices = indices
        self.dtype = tensor.dtype


class Parameter(Expr):
    """A value of a reducer, in its results: one of those on the left, or behind them on the right."""

    __slots__ = ("name", "position")

    def __init__(self, name, position, dtype):
        self.name = name
        self.position = position
        self.dtype = dtype


class Reducer:
    """How values are combined: what `parameters`, left then right, become, and what leaves them alone."""

    __slots__ = ("name", "parameters", "identities", "results")

    def __init__(self, name, parameters, identities, results):
        self.name = name
        self.parameters = parameters
        self.identities = identities
        self.results = results


class Reduction(Expr):
    """The combination of the sources over axes, by a combiner of the table or by a reducer, of which it
    is one result. `init` is empty where it starts from the identities."""

    __slots__ = ("by", "sources", "axes", "output", "condition", "init")

    def __init__(self, by, sources, axes, output=0, condition=None, init=()):
        self.by = by  # the name of a combiner, or a Reducer
        self.sources = sources
        self.axes = axes
        self.output = output
        self.condition = condition
        self.init = init
        self.dtype = sources[output].dtype

    @property
    def name(self):
        """sum, argmax.v0"""
        if isinstance(self.by, str):
            return self.by
        return f"{self.by.name}.v{self.output}" if len(self.sources) > 1 else self.by.name

    @property
    def source(self):
        """What is combined, as classic te has it: a tuple, of one value too."""
        return self.sources

    @property
    def axis(self):
        return self.axes

    def inside(self):
        """What is computed for each value of the axes."""
        return self.sources if self.condition is None else (*self.sources, self.condition)


def children(node):
    """What an expression is made of, in order."""
    if isinstance(node, Apply):
        return node.operands
    if isinstance(node, Cast):
        return (node.operand,)
    if isinstance(node, Read):
        return node.indices
    if isinstance(node, Reduction):
        return (*node.inside(), *node.init)
    return ()


def nodes(root):
    """Every node below `root` once, operands before what uses them. Deep chains are fine."""
    seen = set()
    stack = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(children(node)))


def is_size(root):
    """Whether an expression consists of sizes and constants alone."""
    return all(isinstance(n, (Var, IntegerConstant, Apply, Cast)) for n in nodes(root))


def same(a, b):
    """Whether two expressions are written alike."""
    if a is b:
        return True
    if type(a) is not type(b) or a.dtype != b.dtype:
        return False
    if isinstance(a, (IntegerConstant, FloatConstant)):
        return a.value == b.value
    if isinstance(a, Apply) and a.operator != b.operator:
        return False
    if isinstance(a, Read) and a.tensor is not b.tensor:
        return False
    if isinstance(a, (Var, Axis, Parameter, Reduction)):
        return False
    below = children(a), children(b)
    return len(below[0]) == len(below[1]) and all(map(same, *below))


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


def is_number(value):
    return isinstance(value, (bool, numbers.Real, np.bool_)) and not isinstance(value, Expr)


def constant(value, dtype):
    """A number as a constant of `dtype`."""
    if _dtype.is_float(dtype):
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
        return _dtype.dtype_name(value.dtype, "constant")
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
    dtype = _dtype.dtype_name(dtype, "cast")
    if is_number(value):
        return constant(value, dtype)
    operand = as_expr(value)
    if operand.dtype == dtype:
        return operand
    if isinstance(operand, (IntegerConstant, FloatConstant)) and operand.dtype != "bool":
        if _dtype.is_float(dtype) and not _dtype.is_past_range(operand.value, dtype):
            return FloatConstant(operand.value, dtype)
        if _dtype.is_int(dtype) and isinstance(operand, IntegerConstant):
            low, high = _dtype.limits(dtype)
            if low <= operand.value <= high:
                return IntegerConstant(operand.value, dtype)
    return Cast(dtype, operand)


def _dtype_for_number(number, other):
    """A number takes the type of what it meets, unless that would lose its fraction."""
    if isinstance(number, (bool, np.bool_)):
        return other
    if isinstance(number, numbers.Integral):
        return "int32" if other == "bool" else other
    return other if _dtype.is_float(other) else "float32"


def matched(*values):
    """The values as expressions of one type. At least one is no plain number, or all are."""
    types = [as_expr(v).dtype for v in values if not is_number(v)]
    if not types:
        types = [natural_dtype(v) for v in values]
    dtype = types[0]
    for other in types[1:]:
        dtype = _dtype.promoted(dtype, other)
    for value in values:
        if is_number(value):
            dtype = _dtype.promoted(dtype, _dtype_for_number(value, dtype))
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
    if rule == "bits" and not _dtype.is_float(dtype):
        raise invalid("OPERAND_TYPE", f"{operator} takes a floating number, but got {dtype}")
    if rule == "from_bits":
        return _from_bits(operator, operands[0])
    if rule in ("same_float", "float_test") and not _dtype.is_float(dtype):
        dtype = "float32"
        operands = [cast(dtype, operand) for operand in operands]
    elif rule in ("same_int", "int_to_int") and not _dtype.is_int(dtype):
        raise invalid("OPERAND_TYPE", f"{operator} takes integers, but got {dtype}: {operands[0]}")
    elif rule == "same_bits" and _dtype.is_float(dtype):
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
        dtype = f"uint{8 * _dtype.NUMPY[dtype].itemsize}"
    return Apply(operator, tuple(operands), dtype)


def _from_bits(operator, operand):
    dtype = operator.removesuffix("_of_bits")
    bits = f"uint{8 * _dtype.NUMPY[dtype].itemsize}"
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
    if not _dtype.is_float(operands[0].dtype):
        raise invalid("INTEGER_DIVISION", _INTEGER_DIVISION)
    return apply("divide", *operands)


def power(a, b):
    if _has_no_operators(a, b):
        return NotImplemented
    if not is_number(a) and isinstance(b, numbers.Integral) and not isinstance(b, bool):
        base = as_expr(a)
        if b == 2 or (not _dtype.is_float(base.dtype) and 1 <= b <= 16):
            result = base
            for _ in range(int(b) - 1):
                result = result * base
            return result
        if b < 0 and not _dtype.is_float(base.dtype):
            raise invalid(
                "INTEGER_POWER", f"integers have no power of {b}; cast {base} to a floating type"
            )
    return apply("pow", a, b)
