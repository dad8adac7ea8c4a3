"""Arithmetic of whole tensors: `A + B` outside te.compute makes a tensor, element by element.

Inside the function of a compute a tensor without indices stays a mistake, which is named. The operators are put
on Tensor here, since what they make is itself computed.
"""

import operator

from .._base.error import public
from .._expressions.arithmetic import is_number
from .._expressions.expr import Operand
from .broadcast import mapped
from .describing import is_inside
from .tensor import Tensor

_BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor"
)  # fmt: skip
_COMPARISONS = ("lt", "le", "gt", "ge")  # == and != ask whether two tensors are the same
_UNARY = ("neg", "abs", "invert")


def _is_whole(*values):
    if is_inside():
        return False
    tensors = [value for value in values if isinstance(value, Tensor)]
    rest = [value for value in values if not isinstance(value, Tensor)]
    return any(tensor.ndim for tensor in tensors) and all(map(is_number, rest))


def _define(name, swapped):
    word = name.rstrip("_")
    scalar = getattr(operator, name)
    method = f"__{'r' if swapped else ''}{word}__"
    of_scalars = getattr(Operand, method)

    def operate(self, *other):
        values = [*other, self] if swapped else [self, *other]
        if _is_whole(*values):
            return mapped(scalar, values, f"T_{word}", f"{word} of tensors")
        return of_scalars(self, *other)

    operate.__name__ = method
    setattr(Tensor, method, public(operate))


for _name in (*_BINARY, *_COMPARISONS, *_UNARY):
    _define(_name, swapped=False)
for _name in _BINARY:
    _define(_name, swapped=True)
