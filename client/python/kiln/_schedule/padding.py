"""What a stage reads of a tensor with a constant around it, or computes of single elements of it, which
cache_padded makes a stage of."""

from .._base import dtypes
from .._base.error import unsupported
from .._expressions import arithmetic, expr
from .._expressions.expr import Apply, Axis, Cast, IntegerConstant, Read, Reduction


def find(stage, tensor):
    """The choice between an element of the tensor and something else in the stage's expression, or the most that it
    computes of an element, and the element."""
    bodies = getattr(stage.origin_op, "body", ())
    for body in bodies:
        for node in expr.nodes(body):
            if not isinstance(node, Apply) or node.operator not in ("if_then_else", "select"):
                continue
            for branch in map(_without_casts, node.operands[1:]):
                if isinstance(branch, Read) and branch.tensor is tensor:
                    return node, branch
    elements = []
    for body in bodies:
        for node in expr.nodes(body):
            is_own = isinstance(node, Read) and node.tensor is tensor
            if is_own and not any(expr.same(node, other) for other in elements):
                elements.append(node)
    if len(elements) == 1:
        found = []
        for body in bodies:
            _collect(body, elements[0], found)
        if len(found) == 1 and not isinstance(found[0], Read):
            return found[0], elements[0]
    raise unsupported(
        "CACHE_READ",
        f"cannot make a padded copy of {tensor.name} for {stage.op.name}: {stage.op.name} neither reads {tensor.name} "
        "under a condition, with a constant where it fails, nor computes anything of single elements of it",
    )


def _collect(node, element, found):
    """The largest expressions that are computed of the element, without casts that keep each value."""
    if not any(expr.same(each, element) for each in expr.nodes(node)):
        return
    if not _is_of_element(node, element):
        for part in expr.children(node):
            _collect(part, element, found)
        return
    value = _without_widening(node)
    if not any(expr.same(value, other) for other in found):
        found.append(value)


def _is_of_element(node, element):
    """Whether an expression depends on the element alone, and on its place where its indices say that."""
    if expr.same(node, element):
        return True
    if isinstance(node, Reduction):
        return False
    if isinstance(node, Axis):
        return any(index is node for index in element.indices)
    if isinstance(node, Read) and any(isinstance(each, Read) for index in node.indices for each in expr.nodes(index)):
        return False
    return all(_is_of_element(part, element) for part in expr.children(node))


def _without_widening(node):
    while True:
        if isinstance(node, Apply) and node.operator == "tf32":
            node = node.operands[0]
        elif isinstance(node, Cast) and _is_widening(node.operand.dtype, node.dtype):
            node = node.operand
        else:
            return node


def _is_widening(narrow, wide):
    same_kind = dtypes.is_float(narrow) == dtypes.is_float(wide)
    return same_kind and narrow != "bool" and dtypes.BITS[wide] > dtypes.BITS[narrow]


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
