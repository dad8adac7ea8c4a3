"""Small questions about shapes, as topi.utils has them."""

from .._base.error import invalid, public
from .._expressions.expr import IntegerConstant


@public
def get_const_int(expr):
    """A constant size as a Python int."""
    if isinstance(expr, int):
        return expr
    if isinstance(expr, IntegerConstant):
        return expr.value
    raise invalid("CONSTANT", f"{expr} is known at the call only")


@public
def get_const_tuple(in_tuple):
    """A shape with its constant sizes as Python ints."""
    return tuple(
        each.value if isinstance(each, IntegerConstant) else each for each in in_tuple
    )


def simplify(expr):
    """The expression itself: sizes are folded as they are made."""
    return expr


def prod(x):
    """The product of sizes."""
    result = 1
    for each in x:
        result = each * result
    return result
