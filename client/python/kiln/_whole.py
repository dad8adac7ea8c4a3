"""Arithmetic of whole tensors: `A + B` outside te.compute makes a tensor, element by element.

Inside the function of a compute a tensor without indices stays a mistake, which is named.
"""

import operator
import threading

from ._error import public
from ._expr import Operand, is_number

_BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor"
)  # fmt: skip
_COMPARISONS = ("lt", "le", "gt", "ge")  # == and != ask whether two tensors are the same
_UNARY = ("neg", "abs", "invert")

_thread = threading.local()


def described(function, axes):
    """What the function of a compute gives for the axes."""
    depth = getattr(_thread, "depth", 0)
    _thread.depth = depth + 1
    try:
        return function(*axes)
    finally:
        _thread.depth = depth


class WholeTensor(Operand):
    """What makes the operators of a tensor work on all its elements."""

    __slots__ = ()


def _is_whole(*values):
    if getattr(_thread, "depth", 0):
        return False
    tensors = [value for value in values if isinstance(value, WholeTensor)]
    rest = [value for value in values if not isinstance(value, WholeTensor)]
    return any(tensor.ndim for tensor in tensors) and all(map(is_number, rest))


def _mapped(name, scalar, values):
    from .topi._common import mapped

    return mapped(scalar, values, f"T_{name.rstrip('_')}", f"{name.rstrip('_')} of tensors")


def _define(name, swapped):
    scalar = getattr(operator, name)
    method = f"__{'r' if swapped else ''}{name.rstrip('_')}__"
    of_scalars = getattr(Operand, method)

    def operate(self, *other):
        values = [*other, self] if swapped else [self, *other]
        if _is_whole(*values):
            return _mapped(name, scalar, values)
        return of_scalars(self, *other)

    operate.__name__ = method
    setattr(WholeTensor, method, public(operate))


for _name in (*_BINARY, *_COMPARISONS, *_UNARY):
    _define(_name, swapped=False)
for _name in _BINARY:
    _define(_name, swapped=True)
