"""Tensors and the operations that make them."""

from .._base import dtypes, source
from .._base.absent import ABSENT_STEPS, IDLE_STEPS
from .._base.error import invalid, public
from .._base.suggest import refuse_private, unknown_name
from .._expressions import arithmetic, expr
from .._expressions.text import shape_text, text
from .._tables import STEPS

# What a tensor is asked for in place of its stage.
STEPS_OF_A_STAGE = {name for name, *_, stage, _, _ in STEPS if not stage}.union(ABSENT_STEPS, IDLE_STEPS)


class Indexable(expr.Operand):
    """A tensor that wants `given` + more indices; in an expression it is a mistake, kindly named."""

    __slots__ = ()

    def _indexed(self, indices):
        raise NotImplementedError

    @public
    def __getitem__(self, indices):
        return self._indexed(indices if isinstance(indices, tuple) else (indices,))

    @public
    def __call__(self, *indices):
        return self._indexed(indices)

    def __iter__(self):
        raise invalid("NOT_A_SEQUENCE", f"{self} has no elements yet: index it inside te.compute")

    def __setitem__(self, indices, value):
        raise invalid(
            "ASSIGNMENT", f"elements of {self.name} cannot be assigned; te.compute says what each element is"
        )

    def __matmul__(self, other):
        raise invalid("MATRIX_PRODUCT", "there is no @ of tensors; write topi.matmul(A, B)")

    __rmatmul__ = __matmul__

    def __bool__(self):
        return True

    def __hash__(self):
        return id(self)


class Tensor(Indexable):
    """A tensor of a kernel's description: output `value_index` of `op`."""

    __slots__ = ("op", "value_index", "shape", "dtype")

    def __init__(self, op, value_index, shape, dtype):
        self.op = op
        self.value_index = value_index
        self.shape = shape
        self.dtype = dtype

    @property
    def name(self):
        if self.op.tensor_names:
            return self.op.tensor_names[self.value_index]
        return f"{self.op.name}.v{self.value_index}" if self.op.num_outputs > 1 else self.op.name

    @property
    def ndim(self):
        return len(self.shape)

    # Tensors are compared as what they are, not element by element, so that they serve as keys.
    def __eq__(self, other):
        return (
            isinstance(other, Tensor)
            and self.op is other.op
            and self.value_index == other.value_index
        )

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((id(self.op), self.value_index))

    def __getattr__(self, name):
        refuse_private(name, "Tensor")
        if name in STEPS_OF_A_STAGE:
            raise unknown_name(
                f"{name} is a step of a schedule, as in s[{self.name}].{name}(...) with "
                f"s = te.create_schedule({self.name}.op)"
            )
        if hasattr(self.op, name):
            raise unknown_name(f"tensor {self.name} has no {name}; write {self.name}.op.{name}")
        raise unknown_name(
            f"tensor {self.name} has no {name}: it describes values, which kiln.build's function makes; operators "
            "of whole tensors are in kiln.topi"
        )

    def same_as(self, other):
        """Whether both are the same tensor."""
        return self == other

    def __len__(self):
        if not self.shape:
            raise TypeError(f"{self.name} has no dimensions")
        return self.shape[0]

    def _indexed(self, indices):
        indices = tuple(_index(self, d, index) for d, index in enumerate(indices))
        if len(indices) > self.ndim:
            raise invalid("READ_RANK", _count_message(self, len(indices)))
        if len(indices) < self.ndim:
            return TensorSlice(self, indices)
        return expr.Read(self, indices)

    def _as_scalar(self):
        if self.ndim == 0:
            return expr.Read(self, ())
        example = ", ".join("ijklmnop"[d] if d < 8 else f"i{d}" for d in range(self.ndim))
        raise invalid(
            "TENSOR_WITHOUT_INDICES",
            f"tensor {self.name} of shape {shape_text(self.shape)} stands in an expression without "
            f"indices; read an element, as in {self.name}[{example}], inside te.compute",
        )

    def __repr__(self):
        return (
            f"Tensor({self.name}, shape={shape_text(self.shape)}, dtype={self.dtype}, "
            f"op={self.op.describe()})"
        )


class TensorSlice(Indexable):
    """`A[i]` of a tensor with more dimensions: `A[i][j]` completes it."""

    __slots__ = ("tensor", "indices")

    def __init__(self, tensor, indices):
        self.tensor = tensor
        self.indices = indices

    @property
    def dtype(self):
        return self.tensor.dtype

    def _indexed(self, indices):
        return self.tensor._indexed(self.indices + indices)

    def _as_scalar(self):
        raise invalid("READ_RANK", _count_message(self.tensor, len(self.indices)))

    def __repr__(self):
        return f"{self.tensor.name}[{', '.join(map(text, self.indices))}]"


def _count_message(tensor, count):
    dimensions = f"{tensor.ndim} dimension" + ("" if tensor.ndim == 1 else "s")
    return f"{tensor.name} has {dimensions}, but is read with {count} ind{'ex' if count == 1 else 'ices'}"


def _index(tensor, dimension, index):
    if isinstance(index, slice) or index is None or index is Ellipsis:
        raise invalid(
            "INDEX_TYPE",
            f"tensor {tensor.name} is indexed by a slice; one element is read at a time: "
            "use the axes of te.compute as indices",
        )
    if arithmetic.is_number(index) and not arithmetic.is_integer(index):
        raise invalid("INDEX_TYPE", f"index {index} of tensor {tensor.name} is not an integer")
    index = arithmetic.as_expr(index, "int64")
    if not dtypes.is_int(index.dtype):
        raise invalid(
            "INDEX_TYPE",
            f"index {index} of tensor {tensor.name} is {index.dtype}, but must be an integer; "
            'write .astype("int64")',
        )
    extent = tensor.shape[dimension] if dimension < tensor.ndim else None
    if isinstance(index, expr.IntegerConstant):
        outside = index.value < 0 or (isinstance(extent, int) and index.value >= extent)
        if outside and extent is not None:
            raise invalid(
                "INDEX_RANGE",
                f"index {index} of tensor {tensor.name} is out of range: "
                f"dimension {dimension} is {text(extent)}",
            )
    return arithmetic.cast("int64", index)


class Operation:
    """A stage of a kernel: makes one or more tensors."""

    kind = ""

    def __init__(self, name):
        self.name = name
        self.file, self.line = source.caller()
        self.tag = ""
        self.attrs = {}
        self._outputs = []
        self.tensor_names = []  # of several outputs, where they have names of their own

    @property
    def num_outputs(self):
        return len(self._outputs)

    def output(self, index):
        return self._outputs[index]

    @property
    def outputs(self):
        return list(self._outputs)

    @property
    def input_tensors(self):
        """The tensors it reads."""
        return []

    @property
    def axes(self):
        """Every axis that a schedule may name."""
        return []

    def describe(self):
        return self.kind

    def __repr__(self):
        return f"{self.kind}({self.name})"


class PlaceholderOp(Operation):
    kind = "placeholder"

    def __init__(self, name, shape, dtype):
        super().__init__(name)
        self._outputs = [Tensor(self, 0, shape, dtype)]
        self.shape = shape
        self.dtype = dtype
        self.scan = None  # that this is a state of

    @property
    def axis(self):
        raise unknown_name(
            f"{self.name} is given and has no loops of its own, so no axis; s.cache_read({self.name}, ...) makes a stage "
            "that has"
        )


class ComputeOp(Operation):
    kind = "compute"

    def __init__(self, name, axis):
        super().__init__(name)
        self.axis = axis
        self.body = []
        self.reduce_axis = []
        self._inputs = []

    def complete(self, shape, bodies, reduce_axis, inputs):
        self.body = bodies
        self.reduce_axis = reduce_axis
        self._inputs = inputs
        self._outputs = [Tensor(self, i, shape, body.dtype) for i, body in enumerate(bodies)]

    @property
    def input_tensors(self):
        return list(self._inputs)

    @property
    def axes(self):
        return [*self.axis, *self.reduce_axis]

    def describe(self):
        return f"compute {', '.join(map(text, self.body))}"


class ScanOp(Operation):
    kind = "scan"

    def __init__(self, name, scan_axis, init, update, state, inputs, dimension=0, reverse=False):
        super().__init__(name)
        self.scan_axis = scan_axis
        self.dimension = dimension
        self.reverse = reverse
        self.init = init
        self.update = update
        self.state_placeholder = state
        for tensor in state:
            tensor.op.scan = self
        self.inputs = inputs
        self._outputs = [
            Tensor(self, i, u.shape, u.dtype) for i, u in enumerate(update)
        ]

    @property
    def axis(self):
        return [self.scan_axis]

    @property
    def reduce_axis(self):
        return []

    @property
    def input_tensors(self):
        return [*self.init, *self.update]

    @property
    def axes(self):
        return [self.scan_axis]

    def describe(self):
        return f"scan over {self.scan_axis.name}"


class ScatterOp(Operation):
    kind = "scatter"

    def __init__(self, name, base, axis, combiner):
        super().__init__(name)
        self.base = base
        self.axis = axis
        self.combiner = combiner
        self.indices = []
        self.update = None
        self._inputs = []
        self._outputs = [Tensor(self, 0, base.shape, base.dtype)]

    def complete(self, indices, update, inputs):
        self.indices = indices
        self.update = update
        self._inputs = inputs

    @property
    def body(self):
        return [self.update]

    @property
    def reduce_axis(self):
        return []

    @property
    def input_tensors(self):
        return [self.base, *(t for t in self._inputs if t is not self.base)]

    @property
    def axes(self):
        return list(self.axis)

    def describe(self):
        places = ", ".join(map(text, self.indices))
        return f"scatter {text(self.update)} to [{places}] of {self.base.name}"


class ExternOp(Operation):
    """What te.extern makes in classic te; no operation of Kiln is one. So are the two below."""


class HybridOp(Operation):
    """Of te.hybrid."""


class TensorComputeOp(Operation):
    """Of a compute over tensor intrinsics."""


def as_operation(value, what):
    """The operation of a tensor, or the operation itself."""
    if isinstance(value, Tensor):
        return value.op
    if isinstance(value, Operation):
        return getattr(value, "origin", value)
    raise invalid("NOT_A_TENSOR", f"{what} takes a tensor, but got {type(value).__name__}")


def operations_below(outputs):
    """The operations that the outputs need, each after those it needs itself."""
    order, seen = [], set()
    stack = [(op, False) for op in reversed(outputs)]
    while stack:
        op, ready = stack.pop()
        if ready:
            order.append(op)
        elif id(op) not in seen:
            seen.add(id(op))
            stack.append((op, True))
            stack.extend((t.op, False) for t in reversed(_needed(op)))
    return order


def _needed(op):
    if op.kind == "scan":
        return [*op.inputs, *op.state_placeholder, *op.init, *op.update]
    return op.input_tensors
