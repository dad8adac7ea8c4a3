"""Arithmetic of whole tensors: `A + B`, and `A + n` with a size, outside te.compute makes a tensor, element by element.

Inside the function of a compute a tensor without indices stays a mistake, which is named. The operators are put
on Tensor here, since what they make is itself computed.
"""

import operator

from .._base.error import public
from .._expressions.arithmetic import is_number
from .._expressions.expr import Axis, Expr, Operand, nodes
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
    return any(tensor.ndim for tensor in tensors) and all(map(_is_the_same_everywhere, rest))


def _is_the_same_everywhere(value):
    """A number, or an expression of sizes and of elements at known places."""
    return is_number(value) or (isinstance(value, Expr) and not any(isinstance(node, Axis) for node in nodes(value)))


def _define(name, swapped):
    word = name.rstrip("_")
    scalar = getattr(operator, name)
    method = f"__{'r' if swapped else ''}{word}__"
    of_scalars = getattr(Operand, method)

    def operate(self, *other):
        values = [*other, self] if swapped else [self, *other]
        if _is_whole(*values):
            made = mapped(scalar, values, f"T_{word}", f"{word} of tensors")
            made.op.tag = made.op.tag or ("broadcast" if all(isinstance(v, Tensor) for v in values) else "elemwise")
            return made
        return of_scalars(self, *other)

    operate.__name__ = method
    setattr(Tensor, method, public(operate))


def _leave_to_tensors(name):
    """An expression on the left of a whole tensor leaves the operator to the tensor."""
    method = f"__{name.rstrip('_')}__"
    of_scalars = getattr(Expr, method)

    def operate(self, other):
        return NotImplemented if isinstance(other, Tensor) and _is_whole(self, other) else of_scalars(self, other)

    operate.__name__ = method
    setattr(Expr, method, operate)


for _name in (*_BINARY, *_COMPARISONS):
    _leave_to_tensors(_name)
for _name in (*_BINARY, *_COMPARISONS, *_UNARY):
    _define(_name, swapped=False)
for _name in _BINARY:
    _define(_name, swapped=True)
