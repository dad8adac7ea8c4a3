"""What a kernel is made of: sizes, placeholders, computed tensors and scans."""

import inspect

import numpy as np

from .._base import dtypes
from .._base.error import InvalidArgument, invalid, public
from .._expressions import arithmetic, expr, size_math
from .._expressions.arithmetic import as_expr
from .._expressions.expr import Axis, Expr, Reduction, Var
from .._expressions.range import size_expression
from .._expressions.reduce import reduced_axes
from .._expressions.text import shape_text
from . import tags
from .describing import described
from .tensor import ComputeOp, PlaceholderOp, ScanOp, Tensor


@public
def var(name="tindex", dtype="int64", span=None):
    """A size that is known when the kernel is called; one kernel serves all its values.

    With a type that is no integer's: a value that is given at the call, as `te.placeholder(())`."""
    if dtypes.dtype_name(dtype, f"te.var {name}") not in ("int32", "int64"):
        return placeholder((), dtype, name=name)()
    return Var(_name(name, "te.var"))


@public
def size_var(name="size", dtype="int64", span=None):
    """A size that is known to be 0 or more."""
    if dtypes.dtype_name(dtype, f"te.size_var {name}") not in ("int32", "int64"):
        raise invalid(
            "VARIABLE_TYPE", f"te.size_var {name} is {dtype}, but sizes are integers; write te.var"
        )
    return Var(_name(name, "te.size_var"), nonnegative=True)


def _name(name, what):
    if not isinstance(name, str):
        raise invalid("NAME", f"{what}: the name must be a string, but got {type(name).__name__}")
    return name


def as_shape(shape, what):
    """A shape as a tuple of Python ints and size expressions."""
    if isinstance(shape, np.ndarray):
        shape = shape.tolist()
    if isinstance(shape, Expr) or hasattr(shape, "__index__"):
        shape = (shape,)
    if inspect.isfunction(shape):
        raise invalid("SHAPE", f"{what}: a function is no shape; the shape comes first, then the function")
    if isinstance(shape, Tensor):
        raise invalid("SHAPE", f"{what}: the tensor {shape.name} is no shape; write {shape.name}.shape")
    try:
        dimensions = tuple(shape)
    except TypeError:
        raise invalid("SHAPE", f"{what}: {shape!r} is no shape; write a tuple of sizes") from None
    return tuple(_dimension(what, d, size) for d, size in enumerate(dimensions))


class ConstantSize(int):
    """A dimension that is known: a Python int, with the `.value` that classic programs ask for."""

    @property
    def value(self):
        return int(self)


def _dimension(what, position, size):
    size = size.value if isinstance(size, expr.IntegerConstant) else arithmetic.whole(size)
    if arithmetic.is_integer(size) and not isinstance(size, bool):
        size = int(size)
        if size < 0:
            raise invalid("NEGATIVE_EXTENT", f"{what}: dimension {position} is {size}, but must not be negative")
        return ConstantSize(size)
    if isinstance(size, Expr) and expr.is_size(size) and dtypes.is_int(size.dtype):
        return size_math.unchanged(arithmetic.cast("int64", size))
    raise invalid(
        "SHAPE",
        f"{what}: dimension {position} is {size}, but must be an integer or made of te.var sizes",
    )


@public
def placeholder(shape, dtype=None, name="placeholder"):
    """A tensor that is given at the call."""
    what = f"placeholder {_name(name, 'te.placeholder')}"
    try:
        dtype = dtypes.dtype_name(dtype or "float32", what)
    except InvalidArgument as error:
        if not isinstance(dtype, str) or name != "placeholder" or dtypes.is_vector(dtype):
            raise
        # The second parameter, taken for the name.
        raise invalid(error.reason, f'{error.message}; a name is given as name="{dtype}"') from None
    return PlaceholderOp(name, as_shape(shape, what), dtype).output(0)


@public
def reduce_axis(dom, name="rv", thread_tag="", span=None):
    """An axis to reduce over; `dom` is (minimum, end), which may depend on the axes of
    the tensor and on data: (ptr[i], ptr[i + 1])."""
    if hasattr(dom, "__index__") and not isinstance(name, str):
        raise invalid("REDUCE_AXIS", f"te.reduce_axis: write the range as one pair: ({dom}, {name})")
    what = f"te.reduce_axis {_name(name, 'te.reduce_axis')}"
    if isinstance(dom, expr.Range):
        minimum, extent = size_expression(what, dom.min), size_expression(what, dom.extent)
    elif isinstance(dom, (tuple, list)) and len(dom) == 2:
        minimum = size_expression(what, dom[0])
        extent = size_math.folded("subtract", size_expression(what, dom[1]), minimum)
    else:
        raise invalid("REDUCE_AXIS", f"{what}: write the range as (0, n), but got {dom!r}")
    if isinstance(extent, expr.IntegerConstant) and extent.value < 0:
        raise invalid("REDUCE_AXIS", f"{what}: the range ({dom[0]}, {dom[1]}) ends before it begins")
    return Axis(name, "reduce", minimum, extent)


@public
def compute(shape, fcompute, name="compute", tag="", attrs=None, varargs_names=None):
    """A tensor with `fcompute(*axes)` at every position; a tuple of values makes several tensors."""
    what = f"compute {_name(name, 'te.compute')}"
    shape = as_shape(shape, what)
    if not callable(fcompute):
        raise invalid("COMPUTE", f"{what}: the second argument must be a function of the axes")
    axes = axes_for(fcompute, shape, name, varargs_names)
    op = ComputeOp(name, axes)
    op.tag, op.attrs = tags.current(tag), dict(attrs or {})
    for axis in axes:
        axis.op = op
    result = _values_of(fcompute, axes, name)
    several = isinstance(result, (tuple, list))
    bodies = [_body(name, value) for value in (result if several else [result])]
    if not bodies:
        raise invalid("COMPUTE", f"{what}: its function returned no value")
    reduce_axes, inputs = check_body(op, bodies)
    op.complete(shape, bodies, reduce_axes, inputs)
    return tuple(op.outputs) if several else op.output(0)


def _values_of(fcompute, axes, name):
    try:
        return described(fcompute, axes)
    except NameError as error:
        if error.name != name:
            raise
        raise invalid(
            "RECURRENCE",
            f"compute {name} reads {name} itself, which is not there yet; what follows from its earlier elements "
            "is a scan: te.scan(init, update, state)",
        ) from None


def axes_for(function, shape, name, varargs_names):
    """A data axis for each dimension, named by the parameters of the function."""
    names = _axis_names(function, len(shape), name, varargs_names)
    return [Axis(n, "data", as_expr(0, "int64"), as_expr(d, "int64")) for n, d in zip(names, shape)]


def _axis_names(fcompute, dimensions, name, varargs_names):
    """Names of the axes: the function's own parameter names."""
    try:
        parameters = list(inspect.signature(fcompute).parameters.values())
    except (TypeError, ValueError):
        return [f"i{d}" for d in range(dimensions)]
    named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in named if p.default is p.empty]
    if any(p.kind == p.VAR_POSITIONAL for p in parameters):
        rest = dimensions - len(named)
        if rest >= 0 and varargs_names is not None:
            if len(varargs_names) != rest:
                raise invalid(
                    "COMPUTE",
                    f"compute {name}: varargs_names has {len(varargs_names)} names for {rest} axes",
                )
            return [p.name for p in named] + list(varargs_names)
        first = len(named) if len(required) <= dimensions else -1
        if first >= 0:
            return [p.name for p in named[:dimensions]] + [f"i{d}" for d in range(first, dimensions)]
    if len(required) <= dimensions <= len(named):
        return [p.name for p in named[:dimensions]]
    given = f" ({', '.join(p.name for p in named)})" if named else ""
    raise invalid(
        "AXIS_COUNT",
        f"compute {name} has {_count(dimensions, 'dimension')}, but its function takes "
        f"{_count(len(named), 'parameter')}{given}; it needs one for each dimension",
    )


def _count(number, noun):
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _body(name, value):
    if value is None:
        raise invalid("COMPUTE", f"compute {name}: its function returned nothing; is a return missing?")
    return as_expr(value)


def check_body(op, bodies):
    """The reduction axes and the tensors that the bodies use, in order; and whether all is bound."""
    axes, inputs = {}, {}
    for body in bodies:
        reduced = reduced_axes(body)
        for axis in reduced:
            axes.setdefault(id(axis), axis)
        bounds = [edge for axis in reduced for edge in (axis.dom.min, axis.dom.extent)]
        for root in [*bounds, body]:
            for node in expr.nodes(root):
                if isinstance(node, expr.Read):
                    inputs.setdefault(id(node.tensor), node.tensor)
        for axis in free_axes(body).values():
            _check_axis(op, axis)
    for axis in axes.values():
        if axis.op is None:
            axis.op = op
    return list(axes.values()), list(inputs.values())


def _check_axis(op, axis):
    if axis.kind == "reduce":
        raise invalid(
            "UNREDUCED_AXIS",
            f"reduce axis {axis.name} is used in {op.name}, but no reducer reduces over it; "
            f"write te.sum(..., axis={axis.name})",
        )
    if not any(axis is own for own in op.axis):
        owner = f"belongs to {axis.op.name}" if axis.op is not None else "belongs to another stage"
        raise invalid("FOREIGN_AXIS", f"axis {axis.name} {owner} and cannot be used in {op.name}")


def free_axes(root):
    """The axes an expression uses without reducing over them."""
    free = {}
    for node in expr.nodes(root):
        if isinstance(node, Axis):
            free[id(node)] = {id(node): node}
            continue
        found = {}
        is_reduction = isinstance(node, Reduction)
        for child in node.inside() if is_reduction else expr.children(node):
            found.update(free[id(child)])
        if is_reduction:
            for axis in node.axes:
                found.pop(id(axis), None)
            for init in node.init:
                found.update(free[id(init)])
            for place, axis in enumerate(node.axes):
                before = set(map(id, node.axes[:place]))  # which a bound may use
                for edge in (axis.dom.min, axis.dom.extent):
                    used = free_axes(edge).items()
                    found.update((key, each) for key, each in used if key not in before)
        free[id(node)] = found
    return free[id(root)]


def _as_list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


@public
def scan(
    init, update, state_placeholder, inputs=None, name="scan", tag="", attrs=None, axis=0,
    reverse=False,
):  # fmt: skip
    """A recurrence along dimension `axis`: `init` gives the first steps, `update` each later one, in
    which `state_placeholder` stands for the result so far.

    With `reverse`, time runs from the last index to the first: `init` gives the last steps, in the
    order of their indices, and the update at t reads the state after t."""
    lists = [_as_list(value) for value in (init, update, state_placeholder)]
    counts = [len(values) for values in lists]
    if len(set(counts)) != 1:
        raise invalid(
            "SCAN_LISTS",
            f"scan {name} has {counts[0]} init, {counts[1]} update and {counts[2]} state; their "
            "numbers must be the same",
        )
    if not counts[0]:
        raise invalid("SCAN_LISTS", f"scan {name} has no state")
    inputs = _as_list(inputs) if inputs is not None else []
    for role, values in zip(("init", "update", "state", "inputs"), (*lists, inputs)):
        for value in values:
            if not isinstance(value, Tensor):
                raise invalid(
                    "SCAN_TENSOR",
                    f"scan {name}: {role} must be a tensor, but is {type(value).__name__}",
                )
    dimension = _time_dimension(name, axis, lists[2])
    for i, each in enumerate(zip(*lists)):
        _check_state(name, f" {i}" if counts[0] > 1 else "", *each, dimension)
    first, last = lists[0][0].shape[dimension], lists[1][0].shape[dimension]
    minimum = as_expr(first, "int64")
    extent = arithmetic.apply("subtract", as_expr(last, "int64"), minimum)
    time = Axis(f"{name}.idx", "time", minimum, extent)
    op = ScanOp(name, time, *lists, inputs, dimension, bool(reverse))
    op.tag, op.attrs = tags.current(tag), dict(attrs or {})
    time.op = op
    return op.output(0) if op.num_outputs == 1 else op.outputs


def _time_dimension(name, axis, states):
    """`axis` counted from 0; from the end where it is negative."""
    if isinstance(axis, bool) or not arithmetic.is_integer(axis):
        raise invalid("SCAN_AXIS", f"scan {name}: axis must be an integer, but is {axis!r}")
    axis = int(axis)
    for i, state in enumerate(states if not axis == 0 else ()):
        if not -state.ndim <= axis < state.ndim:
            which = f"state {i}" if len(states) > 1 else "state"
            raise invalid(
                "SCAN_AXIS",
                f"{which} of scan {name} has {_count(state.ndim, 'dimension')}, so time cannot be "
                f"dimension {axis}",
            )
    found = {axis + state.ndim if axis < 0 else axis for state in states}
    if len(found) > 1:
        raise invalid(
            "SCAN_AXIS",
            f"scan {name}: axis {axis} is another dimension of each state; count it from 0",
        )
    return found.pop()


def _check_state(scan_name, number, init, update, state, time):
    if not isinstance(state.op, PlaceholderOp):
        raise invalid(
            "SCAN_STATE",
            f"the state of scan {scan_name} must be a placeholder, but {state.name} is computed",
        )
    for role, tensor in ((f"init{number}", init), (f"update{number}", update)):
        if tensor.dtype != state.dtype:
            raise invalid(
                "SCAN_TYPE",
                f"{role} of scan {scan_name} is {tensor.dtype} but its state is {state.dtype}",
            )
    if not state.ndim:
        raise invalid(
            "SCAN_SHAPE",
            f"state{number} of scan {scan_name} has no dimensions, but must have one for time",
        )
    _check_extents(f"update{number} of scan {scan_name}", update, state, None)
    _check_extents(f"init{number} of scan {scan_name}", init, state, time)


def _check_extents(what, tensor, state, time):
    """Shapes that differ whatever the sizes are; the daemon proves the rest."""
    shapes = f"{what} has shape {shape_text(tensor.shape)} but its state has shape "
    shapes += shape_text(state.shape)
    if tensor.ndim != state.ndim:
        lacks_time = tensor.ndim == state.ndim - 1
        raise invalid("SCAN_SHAPE", shapes + ("; its time dimension is missing" if lacks_time else ""))
    for d in range(state.ndim):
        if d == time:
            continue
        a, b = tensor.shape[d], state.shape[d]
        if isinstance(a, int) and isinstance(b, int) and a != b:
            must = "" if time is None else f"; dimension {d} must agree"
            raise invalid("SCAN_SHAPE", shapes + must)


__all__ = ["var", "size_var", "placeholder", "reduce_axis", "compute", "scan"]
