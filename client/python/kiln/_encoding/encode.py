"""What build and its kin are given, as it is sent: a definition with its arguments, and the steps."""

import numpy as np

from .._base.error import called, invalid, public
from .._definitions.encode import Encoder
from .._definitions.kernel import Kernel
from .._definitions.tensor import Operation, Tensor, operations_below
from .._expressions import expr
from .._schedule.encode import encode_steps
from .._schedule.schedule import Schedule
from ..v1 import schedule_pb2


class Encoded:
    """A kernel on its way to the wire: three messages, and where te.vars stand among the arguments, whose
    names `argument_sizes` has, with "" for each tensor; it is empty where there are none."""

    def __init__(self, definition, source_map, schedule, argument_sizes=()):
        self.definition = definition
        self.source_map = source_map
        self.schedule = schedule
        self.argument_sizes = list(argument_sizes)


def _argument(value):
    """The tensor behind a te.var of a type that is no integer's; anything else as it is."""
    if isinstance(value, expr.Read) and value.tensor.op.kind == "placeholder" and not value.indices:
        return value.tensor
    return value


def _what(argument):
    if isinstance(argument, Operation):
        return f"the operation {argument.name}; name its tensor"
    if isinstance(argument, np.ndarray):
        return "a numpy array; name a te.placeholder, and pass the array when the kernel is called"
    return type(argument).__name__


def _refuse_lone_states(arguments):
    """The daemon cannot tell a state whose scan is not sent from a placeholder that was forgotten."""
    operations = operations_below([each.op for each in arguments if isinstance(each, Tensor)])
    sent = {id(op) for op in operations}
    given = {id(each) for each in arguments}
    for op in operations:
        scan = op.scan if op.kind == "placeholder" else None
        if scan is None or id(scan) in sent or id(op.output(0)) in given:
            continue
        raise invalid(
            "SCAN_CELL",
            f"{op.name} is the state of scan {scan.name}, which no argument is; list {scan.name}, in "
            "place of its update",
        )


def _outputs_left_out(schedule, arguments):
    """What a schedule computes of which no argument is: classic te computes it all the same, into memory that nobody
    sees. Here it is the result."""
    tensors = [each for each in arguments if isinstance(each, Tensor)]
    if any(each.op.kind != "placeholder" for each in tensors):
        return []
    return [output for op in schedule.outputs if op.kind != "placeholder" for output in op.outputs]


def encode(schedule_or_tensors, args, name):
    """The kernel of a schedule and its arguments, or of the arguments alone."""
    if not isinstance(name, str):
        raise invalid("NAME", f"name= must be a string, but is {type(name).__name__}")
    schedule = schedule_or_tensors if isinstance(schedule_or_tensors, Schedule) else None
    if isinstance(args, Schedule):
        raise invalid("ARGUMENTS", "args= is a schedule; the schedule comes first: build(s, [A, B, C])")
    arguments = args if schedule is not None or args is not None else schedule_or_tensors
    if schedule is not None and args is None:
        raise invalid("ARGUMENTS", "a schedule needs the list of arguments: build(s, [A, B, C])")
    if isinstance(arguments, Tensor):
        arguments = [arguments]
    arguments = list(arguments) if isinstance(arguments, (list, tuple)) else arguments
    if not isinstance(arguments, list):
        raise invalid(
            "ARGUMENTS",
            "the kernel must be a schedule and its arguments, or a list of tensors, but is "
            f"{type(arguments).__name__}",
        )
    if not arguments:
        raise invalid(
            "NO_ARGUMENTS",
            f"{called(name)} has no arguments: list its placeholders and what it computes from them, as in "
            f"{'build([A, B, C])' if schedule is None else 'build(s, [A, B, C])'}",
        )
    arguments = [_argument(each) for each in arguments]
    for position, argument in enumerate(arguments):
        if not isinstance(argument, (Tensor, expr.Var)):
            raise invalid(
                "ARGUMENTS",
                f"argument {position} of {called(name)} must be a tensor, but is {_what(argument)}",
            )
    if schedule is not None:
        arguments += _outputs_left_out(schedule, arguments)
    _refuse_lone_states(arguments)
    encoder = Encoder(name, arguments)
    steps = encode_steps(schedule.steps, encoder) if schedule is not None else schedule_pb2.Schedule()
    return Encoded(encoder.definition, encoder.source_map, steps, encoder.argument_sizes)


def encode_kernel(kernel, target):
    """A Kernel, with the schedule that its file has for the target."""
    schedule = kernel.schedules.get("cuda" if target == "cuda" else "cpu")
    return Encoded(kernel.definition, kernel.source_map, schedule or schedule_pb2.Schedule())


@public
def kernel(tensors, name="main"):
    """The kernel that computes tensors from placeholders, to be called on other tensors; `tensors` are
    its inputs and outputs in order, as for build."""
    encoded = encode(list(tensors), None, name)
    return Kernel(encoded.definition, encoded.source_map)
