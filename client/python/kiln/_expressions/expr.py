"""Scalar expressions: what the body of a compute is made of.

Python's operators are put on them by arithmetic.py, which makes expressions of expressions.
"""

from .._base import dtypes
from .._base.error import invalid, public
from .._base.suggest import refuse_private, unknown_name
from .text import text
from .unknown_value import UnknownValue, numpy_function


class Operand:
    """Everything that stands for a scalar, and has the operators of one."""

    __slots__ = ()
    __hash__ = object.__hash__

    @public
    def __array_ufunc__(self, function, method, *inputs, **options):
        return numpy_function(Operand, function, method, inputs)


class Expr(UnknownValue, Operand):
    """A scalar value of a kernel, known only when it runs. `_written` is its text, for the writer of text.py."""

    __slots__ = ("dtype",)

    def __iter__(self):
        raise invalid("NOT_A_SEQUENCE", f"{self} is a scalar expression, not a sequence")

    def __getattr__(self, name):
        refuse_private(name, "Expr")
        raise unknown_name(
            f"{self} is an expression, which has no {name}; the functions of expressions are those of te, as te.exp"
        )

    def same_as(self, other):
        """Whether both are the same object; `==` is an expression."""
        return self is other

    def __repr__(self):
        return text(self)


class IntegerConstant(Expr):
    __slots__ = ("value",)

    def __init__(self, value, dtype):
        low, high = dtypes.limits(dtype)
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

    def _written(self, writer, strength, depth):
        return ("false", "true")[self.value] if self.dtype == "bool" else str(self.value)


class FloatConstant(Expr):
    __slots__ = ("value",)

    def __init__(self, value, dtype):
        if dtypes.is_past_range(value, dtype):
            raise invalid("CONSTANT_RANGE", f"the number {value} does not fit into {dtype}")
        self.value = float(value)
        self.dtype = dtype

    def __float__(self):
        return self.value

    def __int__(self):
        return int(self.value)

    def _written(self, writer, strength, depth):
        return repr(self.value)


class Var(Expr):
    """A size that is known at the call."""

    __slots__ = ("name", "nonnegative")

    def __init__(self, name, nonnegative=False):
        self.name = name
        self.nonnegative = nonnegative
        self.dtype = "int64"

    def _written(self, writer, strength, depth):
        return self.name


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

    def _written(self, writer, strength, depth):
        return self.name


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

    def _written(self, writer, strength, depth):
        return writer.operation(self.operator, self.operands, strength, depth)


def _is_finished_axis(node):
    """An axis of a stage that is described in full, so that no kernel's value is meant."""
    return isinstance(node, Axis) and node.op is not None and node.op.num_outputs > 0


class Cast(Expr):
    __slots__ = ("operand",)

    def __init__(self, dtype, operand):
        self.dtype = dtype
        self.operand = operand

    def _written(self, writer, strength, depth):
        return f"{self.dtype}({writer.text(self.operand, 0, depth + 1)})"


class Read(Expr):
    """An element of a tensor."""

    __slots__ = ("tensor", "indices")

    def __init__(self, tensor, indices):
        self.tensor = tensor
        self.indices = indices
        self.dtype = tensor.dtype

    def _written(self, writer, strength, depth):
        return f"{self.tensor.name}[{writer.texts(self.indices, depth)}]"


class Parameter(Expr):
    """A value of a reducer, in its results: one of those on the left, or behind them on the right."""

    __slots__ = ("name", "position")

    def __init__(self, name, position, dtype):
        self.name = name
        self.position = position
        self.dtype = dtype

    def _written(self, writer, strength, depth):
        return self.name


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

    def _written(self, writer, strength, depth):
        parts = [writer.texts(self.sources, depth)]
        if self.condition is not None:
            parts.append(f"where={writer.text(self.condition, 0, depth + 1)}")
        if self.init:
            init = writer.texts(self.init, depth)
            parts.append(f"init=({init})" if len(self.init) > 1 else f"init={init}")
        return f"{self.name}[{', '.join(axis.name for axis in self.axes)}]({', '.join(parts)})"


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
