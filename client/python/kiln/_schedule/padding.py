"""What a stage reads of a tensor with a constant around it, which cache_padded makes a stage of."""

from .._base.error import unsupported
from .._expressions import arithmetic, expr
from .._expressions.expr import Apply, Axis, Cast, IntegerConstant, Read


def find(stage, tensor):
    """The choice between an element of the tensor and something else in the stage's expression, and the element."""
    for body in getattr(stage.origin_op, "body", ()):
        for node in expr.nodes(body):
            if not isinstance(node, Apply) or node.operator not in ("if_then_else", "select"):
                continue
            for branch in map(_without_casts, node.operands[1:]):
                if isinstance(branch, Read) and branch.tensor is tensor:
                    return node, branch
    raise unsupported(
        "CACHE_READ",
        f"cannot make a padded copy of {tensor.name} for {stage.op.name}: {stage.op.name} does not read {tensor.name} "
        "under a condition, with a constant where it fails",
    )


def extents(read):
    """How many values each index of the read has, as numbers or expressions over sizes."""
    return [_count(index, read.tensor) for index in read.indices]


def _without_casts(node):
    while isinstance(node, Cast):
        node = node.operand
    return node


def _count(index, tensor):
    ends = _ends(index)
    if ends is None:
        raise unsupported(
            "CACHE_READ", f"nothing is known of where the index {index} of {tensor.name} begins and ends"
        )
    count = arithmetic.as_expr(ends[1] - ends[0] + 1)
    return count.value if isinstance(count, IntegerConstant) else count


def _ends(index):
    """The least and the greatest value over the loops, or None."""
    if isinstance(index, IntegerConstant):
        return index.value, index.value
    if expr.is_size(index):
        return index, index
    if isinstance(index, Axis):
        low, extent = index.dom.min, index.dom.extent
        if not expr.is_size(low) or not expr.is_size(extent):
            return None
        low, extent = _number(low), _number(extent)
        return low, low + extent - 1
    if not isinstance(index, Apply) or len(index.operands) != 2:
        return None
    a, b = map(_ends, index.operands)
    if a is None or b is None:
        return None
    if index.operator == "add":
        return a[0] + b[0], a[1] + b[1]
    if index.operator == "subtract":
        return a[0] - b[1], a[1] - b[0]
    if index.operator in ("multiply", "floordiv"):
        return _scaled(index.operator, a, b)
    return None


def _scaled(operator, a, b):
    """Times a number, or divided by a positive one."""
    if operator == "multiply" and _is_number(a):
        a, b = b, a
    if not _is_number(b) or (operator == "floordiv" and b[0] < 1):
        return None
    if operator == "floordiv":
        return a[0] // b[0], a[1] // b[0]
    ends = a[0] * b[0], a[1] * b[0]
    return ends if b[0] >= 0 else ends[::-1]


def _is_number(ends):
    return isinstance(ends[0], int) and ends[0] is ends[1]


def _number(value):
    return value.value if isinstance(value, IntegerConstant) else value
