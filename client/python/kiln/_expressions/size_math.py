"""Sizes that are known at the call: when two of them are surely the same."""

from . import arithmetic, expr
from .text import text

_LINEAR = ("add", "subtract", "multiply")


def linear(size):
    """The size as {part: factor}, with the constant under "": m*2 + 1 is {"m": 2, "": 1}. Parts that
    are no sums or multiples stand under their text and their sizes."""
    if isinstance(size, int):
        return {"": size} if size else {}
    if isinstance(size, expr.IntegerConstant):
        return linear(size.value)
    if isinstance(size, expr.Apply) and size.operator in _LINEAR:
        a, b = map(linear, size.operands)
        if size.operator == "multiply":
            return _product(size, a, b)
        return _sum(a, b, -1 if size.operator == "subtract" else 1)
    return {_key(size): 1}


def _sum(a, b, sign):
    result = dict(a)
    for part, factor in b.items():
        result[part] = result.get(part, 0) + sign * factor
    return {part: factor for part, factor in result.items() if factor}


def _product(size, a, b):
    for constant, other in ((a, b), (b, a)):
        if set(constant) <= {""}:
            factor = constant.get("", 0)
            return {part: f * factor for part, f in other.items() if f * factor}
    # A product of two sizes: its factors, in an order of their own.
    if len(a) == 1 and len(b) == 1:
        (p, f), (q, g) = *a.items(), *b.items()
        return {tuple(sorted([*_factors(p), *_factors(q)])): f * g}
    return {_key(size): 1}


def _factors(part):
    return part if isinstance(part, tuple) else (part,)


def _key(size):
    variables = [n for n in expr.nodes(size) if isinstance(n, expr.Var)]
    return f"{text(size)} {[id(v) for v in variables]}"


def difference(a, b):
    """The constant a - b, or None where it depends on sizes."""
    rest = _sum(linear(a), linear(b), -1)
    return rest.get("", 0) if set(rest) <= {""} else None


def equal(a, b):
    """Whether two sizes are the same whatever the call gives."""
    return difference(a, b) == 0


def product(sizes):
    """The sizes multiplied, constants folded."""
    result = 1
    for size in sizes:
        result = size if result == 1 else result if size == 1 else result * size
    return result


def divide(size, factor):
    """size / factor where that is surely a whole number, else None."""
    if isinstance(size, int) and isinstance(factor, int):
        return size // factor if factor and size % factor == 0 else None
    if equal(size, factor):
        return 1
    if isinstance(factor, int):
        parts = linear(size)
        if factor and all(f % factor == 0 for f in parts.values()):
            return folded("floordiv", size, factor)
    return None


# x op constant = x, and x op constant = constant.
_UNCHANGED = {("add", 0), ("subtract", 0), ("multiply", 1), ("floordiv", 1), ("truncdiv", 1)}


def folded(operator, *operands):
    """The operator applied, without what changes nothing: i * 1, h + 0, x // 1."""
    operands = [arithmetic.as_expr(operand, "int64") for operand in operands]
    if len(operands) == 2 and all(operand.dtype == "int64" for operand in operands):
        a, b = operands
        if isinstance(b, expr.IntegerConstant) and not isinstance(a, expr.IntegerConstant):
            if (operator, b.value) in _UNCHANGED:
                return a
            if (operator, b.value) in (("multiply", 0), ("floormod", 1)):
                return arithmetic.as_expr(0, "int64")
            inner = _inner_constant(operator, a, b.value)
            if inner is not None:
                return inner
        if isinstance(a, expr.IntegerConstant) and not isinstance(b, expr.IntegerConstant):
            if (operator, a.value) in (("add", 0), ("multiply", 1)):
                return b
            if (operator, a.value) == ("multiply", 0):
                return a
        if operator == "subtract" and a is b:
            return arithmetic.as_expr(0, "int64")
    return arithmetic.apply(operator, *operands)


def unchanged(size):
    """The size without a last step that changes nothing: n - 0 is n."""
    return folded(size.operator, *size.operands) if isinstance(size, expr.Apply) else size


def _inner_constant(operator, a, value):
    """(x + 2) - 3 as x - 1."""
    if operator not in ("add", "subtract") or not isinstance(a, expr.Apply):
        return None
    if a.operator not in ("add", "subtract") or not isinstance(a.operands[1], expr.IntegerConstant):
        return None
    total = a.operands[1].value * (1 if a.operator == "add" else -1)
    total += value if operator == "add" else -value
    if total >= 0:
        return folded("add", a.operands[0], total)
    return folded("subtract", a.operands[0], -total)
