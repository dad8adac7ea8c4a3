"""Expressions as a person writes them, for messages and for printing."""

from . import _expr
from ._tables import OPERATORS

_INFIX = {name: infix for name, _, _, infix, _ in OPERATORS if infix}
_STRENGTH = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10,
}  # fmt: skip
_DEEPEST = 40
_MOST_NODES = 200  # parts that are shared are written out each time


def text(node):
    """The expression; what lies very deep, or is too much, becomes "..."."""
    return _Writer().text(node)


class _Writer:
    """Writes one expression, with room for so many nodes."""

    def __init__(self):
        self._room = _MOST_NODES

    def text(self, node, strength=0, depth=0):
        if isinstance(node, int):
            return str(node)
        self._room -= 1
        if depth > _DEEPEST or self._room < 0:
            return "..."
        if isinstance(node, _expr.IntegerConstant):
            return ("false", "true")[node.value] if node.dtype == "bool" else str(node.value)
        if isinstance(node, _expr.FloatConstant):
            return repr(node.value)
        if isinstance(node, (_expr.Var, _expr.Axis, _expr.Parameter)):
            return node.name
        if isinstance(node, _expr.Cast):
            return f"{node.dtype}({self.text(node.operand, 0, depth + 1)})"
        if isinstance(node, _expr.Read):
            return f"{node.tensor.name}[{self._texts(node.indices, depth)}]"
        if isinstance(node, _expr.Reduction):
            axes = ", ".join(axis.name for axis in node.axes)
            return f"{node.name}[{axes}]({self._reduced(node, depth)})"
        return self._operation(node, strength, depth)

    def _reduced(self, node, depth):
        parts = [self._texts(node.sources, depth)]
        if node.condition is not None:
            parts.append(f"where={self.text(node.condition, 0, depth + 1)}")
        if node.init:
            init = self._texts(node.init, depth)
            parts.append(f"init=({init})" if len(node.init) > 1 else f"init={init}")
        return ", ".join(parts)

    def _texts(self, nodes, depth):
        return ", ".join(self.text(node, 0, depth + 1) for node in nodes)

    def _operation(self, node, strength, depth):
        infix = _INFIX.get(node.operator)
        if infix is None:
            return f"{node.operator}({self._texts(node.operands, depth)})"
        own = _STRENGTH[infix]
        left, right = node.operands
        result = f"{self.text(left, own, depth + 1)} {infix} {self.text(right, own + 1, depth + 1)}"
        return f"({result})" if own < strength else result


def shape_text(shape):
    """(m, n), (3,), ()"""
    inner = ", ".join(map(text, shape))
    return f"({inner},)" if len(shape) == 1 else f"({inner})"
