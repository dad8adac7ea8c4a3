"""Expressions as a person writes them, for messages and for printing. How each kind of node is written stands at
its class, in expr.py."""

from .._tables import OPERATORS

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
        """A part; in parentheses where it binds less than `strength`."""
        if isinstance(node, int):
            return str(node)
        self._room -= 1
        if depth > _DEEPEST or self._room < 0:
            return "..."
        return node._written(self, strength, depth)

    def texts(self, nodes, depth):
        """Parts of what stands at that depth, between commas."""
        return ", ".join(self.text(node, 0, depth + 1) for node in nodes)

    def operation(self, operator, operands, strength, depth):
        """An operator of the table on its operands."""
        infix = _INFIX.get(operator)
        if infix is None:
            return f"{operator}({self.texts(operands, depth)})"
        own = _STRENGTH[infix]
        left, right = operands
        result = f"{self.text(left, own, depth + 1)} {infix} {self.text(right, own + 1, depth + 1)}"
        return f"({result})" if own < strength else result


def shape_text(shape):
    """(m, n), (3,), ()"""
    inner = ", ".join(map(text, shape))
    return f"({inner},)" if len(shape) == 1 else f"({inner})"
