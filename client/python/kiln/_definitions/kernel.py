"""Kernels as functions of tensors: a definition called on te tensors becomes part of their graph."""

from .._base import dtypes
from .._base.error import Error, invalid, public
from .._expressions import arithmetic, expr, size_math
from .._expressions.text import shape_text, text
from . import define, views
from .broadcast import stretched
from .instantiate import Binding, Instance
from .tensor import Tensor


class Kernel:
    """A definition that can be called on tensors. `C = matmul(A, B)` puts its stages into the graph of
    A and B, with sizes and types bound to theirs.

    Sizes that no shape gives are given by name: `conv2d(X, F, stride=2)`. Dimensions in front of those
    the definition has are mapped over, and stretch as numpy's do. `axis=` says where the one
    dimension of a definition over vectors stands, `name=` what the result is called. A number stands
    for a tensor without dimensions.
    """

    def __init__(self, definition, source_map, schedules=None):
        self.definition = definition
        self.source_map = source_map
        self.schedules = schedules or {}  # of a kernel file, by "cpu" and "cuda": messages of the wire
        self._outputs = [t for t in definition.parameters if not self._is_input(t)]
        self._inputs = [t for t in definition.parameters if self._is_input(t)]

    def _is_input(self, tensor):
        return self.definition.stages[tensor.stage].WhichOneof("kind") == "placeholder"

    @property
    def name(self):
        return self.source_map.kernel

    @property
    def sizes(self):
        """The names of its sizes."""
        return list(self.source_map.variables)

    @property
    def inputs(self):
        """The names of the tensors it takes."""
        return [self.source_map.stages[t.stage] for t in self._inputs]

    @property
    def outputs(self):
        """The names of the tensors it makes."""
        return [self._name(tensor) for tensor in self._outputs]

    def __repr__(self):
        return f"Kernel({self.name}({', '.join(self.inputs)}))"

    @public
    def __call__(self, *arguments, axis=None, name=None, **sizes):
        if len(arguments) != len(self._inputs):
            takes = f"{len(self._inputs)} tensor" + ("" if len(self._inputs) == 1 else "s")
            raise invalid(
                "ARGUMENT_COUNT",
                f"{self.name} takes {takes} ({', '.join(self.inputs)}), but got {len(arguments)}",
            )
        binding = self._bind(arguments, axis, sizes)
        instance = Instance(binding)
        if name is not None:
            instance.rename({tensor.stage: name for tensor in self._outputs})
        try:
            made = [instance.output(tensor) for tensor in self._outputs]
        except Error as error:
            given = (binding.tensors[tensor.stage] for tensor in self._inputs)
            types = ", ".join(f"{t.name}: {t.dtype}" for t in given)
            error.notes.append(f"in kernel {self.name}, called on {types}")
            raise
        return made[0] if len(made) == 1 else tuple(made)

    @public
    def tensors(self):
        """Its arguments as te tensors of their own, in order: for a schedule, or for build."""
        binding = Binding(self)
        rows = self.definition.variables
        binding.sizes = {v: expr.Var(n, rows[v].nonnegative) for v, n in enumerate(self.sizes)}
        sizes = Instance(binding)
        for tensor in self._inputs:
            row = self._placeholder(tensor)
            shape = [sizes.size(extent) for extent in row.shape]
            made = define.placeholder(shape, dtypes.NAME[row.type], self._name(tensor))
            binding.tensors[tensor.stage], binding.ranks[tensor.stage] = made, len(shape)
        instance = Instance(binding)
        return [
            binding.tensors[t.stage] if self._is_input(t) else instance.output(t)
            for t in self.definition.parameters
        ]

    # Binding.

    def _bind(self, arguments, axis, sizes):
        binding = Binding(self)
        self._bind_given(binding, sizes)
        self._bind_types(binding, arguments)
        for tensor, argument in zip(self._inputs, arguments):
            binding.tensors[tensor.stage] = self._as_tensor(binding, tensor, argument)
            binding.ranks[tensor.stage] = len(self._placeholder(tensor).shape)
        if axis is not None:
            self._place_axis(binding, axis)
        sources = dict.fromkeys(binding.sizes, "as given")
        for tensor in self._inputs:
            self._bind_sizes(binding, tensor, sources)
        missing = [n for v, n in enumerate(self.sizes) if v not in binding.sizes]
        if missing:
            raise invalid(
                "MISSING_SIZE",
                f"{self.name} needs the size {missing[0]}, which no shape gives: call it with "
                f"{missing[0]}=...",
            )
        instance = Instance(binding)
        for tensor in self._inputs:
            self._check_shape(binding, instance, tensor, sources)
        self._check_batch(binding)
        return binding

    def _placeholder(self, tensor):
        return self.definition.stages[tensor.stage].placeholder

    def _name(self, tensor):
        for named in self.source_map.tensors:
            if named.tensor == tensor:
                return named.name
        return self.source_map.stages[tensor.stage]

    def _what(self, tensor):
        return f"argument {self._name(tensor)} of {self.name}"

    def _bind_given(self, binding, sizes):
        for name, value in sizes.items():
            if name not in self.sizes:
                known = f"its sizes are {', '.join(self.sizes)}" if self.sizes else "it has none"
                raise invalid("UNKNOWN_SIZE", f"{self.name} has no size {name}; {known}")
            value = arithmetic.as_expr(value, "int64")
            if not (dtypes.is_int(value.dtype) and expr.is_size(value)):
                raise invalid(
                    "SIZE", f"{self.name}: {name} is {value}, but must be an integer or a size"
                )
            is_constant = isinstance(value, expr.IntegerConstant)
            value = value.value if is_constant else arithmetic.cast("int64", value)
            binding.sizes[self.sizes.index(name)] = value

    def _bind_types(self, binding, arguments):
        """A type that inputs have stands for the type of the tensors given."""
        first = {}
        for tensor, argument in zip(self._inputs, arguments):
            declared = dtypes.NAME[self._placeholder(tensor).type]
            if arithmetic.is_number(argument):
                continue
            if not isinstance(argument, (Tensor, views.View)):
                argument = arithmetic.as_expr(argument)
            if declared not in first:
                first[declared] = (tensor, argument.dtype)
                binding.types[declared] = argument.dtype
            elif first[declared][1] != argument.dtype:
                other = self._name(first[declared][0])
                raise invalid(
                    "ARGUMENT_TYPE",
                    f"{self._what(tensor)} is {argument.dtype}, but {other} is "
                    f"{first[declared][1]}; cast one of them",
                )
        if binding.types.get("int64", "int64") != "int64":
            raise invalid(
                "ARGUMENT_TYPE",
                f"{self._what(first['int64'][0])} is {first['int64'][1]}, but must be int64",
            )

    def _as_tensor(self, binding, tensor, argument):
        if isinstance(argument, (Tensor, views.View)):
            return argument
        declared = dtypes.NAME[self._placeholder(tensor).type]
        return views.number(argument, binding.types.get(declared, declared))

    def _place_axis(self, binding, axis):
        ranks = {len(self._placeholder(t).shape) for t in self._inputs}
        if ranks - {0} != {1}:
            raise invalid("AXIS", f"{self.name} takes no axis=, since it is not over one dimension")
        widest = max(t.ndim for t in binding.tensors.values())
        if not arithmetic.is_integer(axis) or not -widest <= axis < widest:
            raise invalid(
                "AXIS_RANGE",
                f"{self.name}: axis {axis} is out of range; the tensors have {widest} dimensions",
            )
        binding.axis = widest - axis % widest
        for tensor in self._inputs:
            given = binding.tensors[tensor.stage]
            if binding.ranks[tensor.stage] == 1 and given.ndim >= binding.axis:
                moved = views.moved(given, given.ndim - binding.axis, -1)
                binding.tensors[tensor.stage] = moved

    def _bind_sizes(self, binding, tensor, sources):
        given = binding.tensors[tensor.stage]
        rank = binding.ranks[tensor.stage]
        if given.ndim < rank:
            raise invalid(
                "ARGUMENT_RANK",
                f"{self._what(tensor)} has {_dimensions(given.ndim)}, but must have {rank}"
                + (" or more" if rank else ""),
            )
        for d, extent in enumerate(self._placeholder(tensor).shape):
            row = self.definition.expressions[extent]
            if row.WhichOneof("kind") != "variable" or row.variable in binding.sizes:
                continue
            binding.sizes[row.variable] = given.shape[given.ndim - rank + d]
            sources[row.variable] = f"from dimension {d} of {self._name(tensor)}"

    def _check_shape(self, binding, instance, tensor, sources):
        given = binding.tensors[tensor.stage]
        first = given.ndim - binding.ranks[tensor.stage]
        for d, extent in enumerate(self._placeholder(tensor).shape):
            actual, expected = given.shape[first + d], instance.size(extent)
            if size_math.equal(actual, expected):
                continue
            row = self.definition.expressions[extent]
            reason = ""
            if row.WhichOneof("kind") == "variable":
                reason = f" ({self.sizes[row.variable]}, {sources[row.variable]})"
            unknown = size_math.difference(actual, expected) is None
            raise invalid(
                "ARGUMENT_SHAPE",
                f"{self._what(tensor)}: dimension {d} is {text(actual)}, "
                f"{'which is not known to be' if unknown else 'but must be'} {text(expected)}{reason}",
            )

    def _check_batch(self, binding):
        shapes = {}
        for tensor in self._inputs:
            given = binding.tensors[tensor.stage]
            shapes[self._name(tensor)] = given.shape[: given.ndim - binding.ranks[tensor.stage]]
        if stretched(list(shapes.values())) is not None:
            return
        for (a, first), (b, second) in _pairs(list(shapes.items())):
            if stretched([first, second]) is None:
                raise invalid(
                    "BATCH",
                    f"{self.name}: the leading dimensions of {a} are {shape_text(first)} and those of "
                    f"{b} {shape_text(second)}, which do not stretch to one shape",
                )


def _pairs(items):
    return [(a, b) for i, a in enumerate(items) for b in items[i + 1 :]]


def _dimensions(count):
    return f"{count} dimension" + ("" if count == 1 else "s")
