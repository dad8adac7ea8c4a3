"""Mistakes in requests to the service, which a client of one's own may make."""

import numpy as np

import kiln
from kiln.v1 import kernel_pb2, program_pb2, schedule_pb2, types_pb2
from kiln.v1 import service_pb2 as wire

from .entry import Section
from .programs import add_one, ask, compiled, request, upload_header, uploaded

wrong = Section(
    "service", "Requests to the service",
    "The clients make none of these. A client written by hand in another language may; the service trusts no request.",
)  # fmt: skip


@wrong(
    "UNKNOWN_OPERATOR",
    "unknown operator addd; did you mean add",
    fix="an operator of docs/language.md",
    at="build",
)
def unknown_operator():
    message = request()
    message.definition.expressions[-1].operation.operator = "addd"
    compiled(message)  # <-


@wrong(
    "MALFORMED",
    "add takes 2 operands, but got 3",
    fix="as many operands as docs/language.md says",
    at="build",
)
def operator_with_too_many_operands():
    message = request()
    message.definition.expressions[-1].operation.operands.append(0)
    compiled(message)  # <-


@wrong(
    "MALFORMED",
    "expression 5 refers to expression 99, but only earlier ones exist",
    fix="ids of expressions that stand before",
    at="build",
)
def operand_that_stands_later():
    message = request()
    message.definition.expressions[-1].operation.operands[0] = 99
    compiled(message)  # <-


@wrong(
    "MALFORMED",
    "expression 5 is empty",
    fix="set one of the kinds",
    at="build",
)
def expression_without_a_kind():
    message = request()
    message.definition.expressions[-1].Clear()
    compiled(message)  # <-


@wrong(
    "MALFORMED",
    "stage A is neither a placeholder nor a compute, a scan or a scatter",
    fix="set one of the kinds",
    at="build",
)
def stage_without_a_kind():
    message = request()
    message.definition.stages[0].Clear()
    compiled(message)  # <-


@wrong(
    "MALFORMED",
    "placeholder A has the unknown type 0",
    fix="a number of DataType",
    at="build",
)
def type_without_a_number():
    message = request()
    message.definition.stages[0].placeholder.type = 0
    compiled(message)  # <-


@wrong(
    "OPERAND_TYPE",
    "add takes numbers of one type, but got float32 and float64",
    fix="operands of one type: insert a Cast",
    at="build",
)
def operands_of_two_types():
    message = request()
    for expression in message.definition.expressions:
        if expression.WhichOneof("kind") == "floating":
            expression.floating.type = types_pb2.DATA_TYPE_FLOAT64
    compiled(message)  # <-


@wrong(
    "NO_OUTPUT",
    "there are no arguments; list the inputs, and a computed tensor",
    fix="the output among the parameters",
    at="build",
)
def definition_without_parameters():
    message = request()
    del message.definition.parameters[:]
    compiled(message)  # <-


@wrong(
    "REDUCTION_AXES",
    "sum: i0 is a data axis of B; make one with reduce_axis",
    fix="an axis of kind reduce",
    at="build",
)
def reduction_over_a_data_axis():
    message = request()
    expressions, compute = message.definition.expressions, message.definition.stages[1].compute
    reduction = expressions.add().reduction
    reduction.combiner = "sum"
    reduction.sources.append(compute.bodies[0])
    reduction.axes.append(compute.axes[0])
    compute.bodies[0] = len(expressions) - 1
    compiled(message)  # <-


@wrong(
    "NO_OUTPUT",
    "there are no arguments; list the inputs, and a computed tensor",
    fix="send stages and parameters",
    at="build",
)
def empty_request():
    compiled(wire.CompileRequest(target=wire.Target(name="llvm")))  # <-


@wrong(
    "TARGET",
    "there is no target rocm; known are llvm (or cpu), cuda and interpreter",
    fix='"llvm" or "cuda"',
    at="build",
)
def request_for_an_unknown_target():
    message = request()
    message.target.name = "rocm"
    compiled(message)  # <-


@wrong(
    "UNKNOWN_STEP",
    "unknown step tyle; did you mean tile",
    fix="a step of docs/language.md",
    at="build",
)
def unknown_step():
    message = request()
    message.schedule.steps.add(name="tyle", stage=1)
    compiled(message)  # <-


@wrong(
    "STEP_FIELDS",
    "split takes 1 axis, but got 0",
    fix="the fields that docs/language.md has for the step",
    at="build",
)
def step_without_its_axis():
    message = request()
    message.schedule.steps.add(name="split", stage=1, factors=[4])
    compiled(message)  # <-


@wrong(
    "STEP_FIELDS",
    "split takes either a factor or parts, but got 2 factors",
    fix="one factor, or parts",
    at="build",
)
def step_with_two_factors():
    message = request()
    message.schedule.steps.add(name="split", stage=1, axes=[0], factors=[4, 2])
    compiled(message)  # <-


@wrong(
    "MALFORMED",
    "split refers to axis 9, but there are 1 at this step",
    fix="an axis of the definition, or one that an earlier step defines",
    at="build",
)
def step_on_an_axis_that_is_not_there():
    message = request()
    message.schedule.steps.add(name="split", stage=1, axes=[9], factors=[4])
    compiled(message)  # <-


@wrong(
    "MALFORMED",
    "compute_inline refers to stage 7, but there are 2",
    fix="a stage of the definition, or one that an earlier step defines",
    at="build",
)
def step_on_a_stage_that_is_not_there():
    message = request()
    message.schedule.steps.add(name="compute_inline", stage=7)
    compiled(message)  # <-


@wrong(
    "LIMIT",
    "the definition has 200006 expressions; the limit is 100000",
    fix="a smaller definition",
    kind="ResourceExhausted", at="build",
)
def definition_of_too_many_expressions():
    message = request()
    constant = kernel_pb2.Expression(integer=kernel_pb2.IntegerConstant(type=types_pb2.DATA_TYPE_INT64, value=1))
    message.definition.expressions.extend([constant] * 200_000)
    compiled(message)  # <-


@wrong(
    "LIMIT",
    "the schedule has 100000 steps; the limit is 16384",
    fix="fewer steps",
    kind="ResourceExhausted", at="build",
)
def schedule_of_too_many_steps():
    message = request()
    message.schedule.steps.extend([schedule_pb2.Step(name="compute_root", stage=1)] * 100_000)
    compiled(message)  # <-


@wrong(
    "KERNEL",
    "kernel k0 is not known here, or no more; compile it again",
    fix="compile it, and use the id of the reply",
    kind="NotFound", at="run",
)
def kernel_that_was_never_compiled():
    ask("KernelService/Run", wire.RunRequest(kernel_id="k0"), wire.RunResponse)  # <-


@wrong(
    "KERNEL",
    "kernel k0 is not known here, or no more; compile it again",
    fix="compile it, and use the id of the reply",
    kind="NotFound", at="run",
)
def source_of_a_kernel_that_was_never_compiled():
    ask("KernelService/Inspect", wire.InspectRequest(kernel_id="k0"), wire.InspectResponse)  # <-


@wrong(
    "ARGUMENT_MISSING",
    "argument A of add_one is not given",
    fix="a value for each input",
    at="run",
)
def input_without_a_value():
    kernel = compiled(request()).kernel_id
    arguments = [wire.Argument(), wire.Argument(output=wire.OutputRequest())]
    ask("KernelService/Run", wire.RunRequest(kernel_id=kernel, arguments=arguments), wire.RunResponse)  # <-


@wrong(
    "ARGUMENT_BYTES",
    "argument A of add_one has 12 bytes of data, but its shape needs 16",
    fix="16 bytes for four numbers",
    at="run",
)
def data_of_another_length():
    kernel = compiled(request()).kernel_id
    inline = wire.Inline(type=types_pb2.DATA_TYPE_FLOAT32, shape=[4], data=bytes(12))
    arguments = [wire.Argument(inline=inline), wire.Argument(output=wire.OutputRequest())]
    ask("KernelService/Run", wire.RunRequest(kernel_id=kernel, arguments=arguments), wire.RunResponse)  # <-


@wrong(
    "DTYPE",
    "argument A of add_one has an unknown type (number 77)",
    fix="a number of DataType",
    at="run",
)
def data_of_an_unknown_type():
    kernel = compiled(request()).kernel_id
    inline = wire.Inline(type=77, shape=[4], data=bytes(16))
    arguments = [wire.Argument(inline=inline), wire.Argument(output=wire.OutputRequest())]
    ask("KernelService/Run", wire.RunRequest(kernel_id=kernel, arguments=arguments), wire.RunResponse)  # <-


@wrong(
    "ARGUMENT_SHAPE",
    "argument A of add_one: dimension 0 is -4, but must not be negative",
    fix="dimensions of 0 or more",
    at="run",
)
def data_of_a_negative_shape():
    kernel = compiled(request()).kernel_id
    inline = wire.Inline(type=types_pb2.DATA_TYPE_FLOAT32, shape=[-4])
    arguments = [wire.Argument(inline=inline), wire.Argument(output=wire.OutputRequest())]
    ask("KernelService/Run", wire.RunRequest(kernel_id=kernel, arguments=arguments), wire.RunResponse)  # <-


@wrong(
    "TENSOR",
    "there is no tensor t0; it was freed, or its session has ended",
    fix="the id of a tensor that is still there",
    kind="NotFound", at="run",
)
def tensor_that_was_never_uploaded():
    kernel = compiled(request()).kernel_id
    arguments = [wire.Argument(tensor="t0"), wire.Argument(output=wire.OutputRequest())]
    ask("KernelService/Run", wire.RunRequest(kernel_id=kernel, arguments=arguments), wire.RunResponse)  # <-


@wrong(
    "MEASUREMENTS",
    "10000000 measurements are asked for; the limit is 100000",
    fix="fewer measurements",
    at="run",
)
def too_many_measurements():
    f = kiln.build(list(add_one()), name="add_one")
    a, b = kiln.nd.array(np.ones(4, "float32")), kiln.nd.empty((4,))
    f.time_evaluator("add_one", kiln.cpu(0), number=1, repeat=10_000_000)(a, b)  # <-


@wrong(
    "JOB",
    "there is no job job-0; results are kept for 24 hours",
    fix="an id that submit returned, not long ago",
    kind="NotFound", at="run",
)
def job_that_was_never_submitted():
    ask("JobService/Result", wire.ResultRequest(job="job-0"), wire.RunResponse)  # <-


@wrong(
    "JOB",
    "there is no job job-0; results are kept for 24 hours",
    fix="an id that submit returned, not long ago",
    kind="NotFound", at="run",
)
def cancel_of_a_job_that_was_never_submitted():
    ask("JobService/Cancel", wire.CancelRequest(job="job-0"), wire.CancelResponse)  # <-


@wrong(
    "UNREACHABLE",
    "nothing listens at unix:/nowhere/kilnd.sock, there is no such socket: start kilnd there, or correct "
    "the address",
    fix="the address of a daemon",
    kind="Unavailable",
)
def address_at_which_nobody_listens():
    kiln.connect("unix:/nowhere/kilnd.sock", default=False)  # <-


@wrong(
    "ADDRESS",
    "the address http//daemon is neither HOST:PORT nor unix:PATH",
    fix="HOST:PORT or unix:PATH",
)
def address_of_another_form():
    kiln.connect("http//daemon", default=False)  # <-


@wrong(
    "CLOSED",
    "the connection is closed",
    fix="connect again",
    kind="Unavailable",
)
def connection_that_was_closed():
    connection = kiln.connect(default=False)
    connection.close()
    connection.describe()  # <-


@wrong(
    "STEP_FIELDS",
    "compute_root takes no readers",
    fix="the fields that docs/language.md has for the step",
    at="build",
)
def step_with_readers_it_does_not_take():
    message = request()
    message.schedule.steps.add(name="compute_root", stage=1, readers=[0])
    compiled(message)  # <-


@wrong(
    "STEP_FIELDS",
    "compute_root takes no output",
    fix="the fields that docs/language.md has for the step",
    at="build",
)
def step_with_an_output_it_does_not_take():
    message = request()
    message.schedule.steps.add(name="compute_root", stage=1, output=1)
    compiled(message)  # <-


@wrong(
    "STEP_FIELDS",
    "compute_root takes no further number",
    fix="the fields that docs/language.md has for the step",
    at="build",
)
def step_with_a_number_it_does_not_take():
    message = request()
    message.schedule.steps.add(name="compute_root", stage=1, value=3)
    compiled(message)  # <-


@wrong(
    "BOUND_TYPE",
    "the bounds of axis i0 are float32, but must be int64",
    fix="an int64 expression as each extent",
    at="build",
)
def shape_of_a_floating_type():
    message = request()
    message.definition.expressions[0].floating.type = types_pb2.DATA_TYPE_FLOAT32
    compiled(message)  # <-


@wrong(
    "MALFORMED",
    "expression 4 has the unknown type 77",
    fix="a number of DataType",
    at="build",
)
def constant_of_an_unknown_type():
    message = request()
    for expression in message.definition.expressions:
        if expression.WhichOneof("kind") == "floating":
            expression.floating.type = 77
    compiled(message)  # <-


@wrong(
    "MALFORMED",
    "a floating constant cannot be int32",
    fix="a constant of an integer type as integer",
    at="build",
)
def floating_constant_of_an_integer_type():
    message = request()
    for expression in message.definition.expressions:
        if expression.WhichOneof("kind") == "floating":
            expression.floating.type = types_pb2.DATA_TYPE_INT32
    compiled(message)  # <-


@wrong(
    "SIZE_UNKNOWN",
    "add_one has no size n; it has no sizes",
    fix="no sizes: the shapes of this kernel are constants",
    at="run",
)
def size_of_a_kernel_without_sizes():
    f = kiln.build(list(add_one()), name="add_one")
    f(np.ones(4, "float32"), n=4)  # <-


@wrong(
    "UPLOAD_HEADER",
    "an upload starts with a header",
    fix="the header first",
    at="run",
)
def upload_without_a_header():
    uploaded(wire.UploadRequest(chunk=bytes(16)))  # <-


@wrong(
    "UPLOAD_HEADER",
    "an upload has one header",
    fix="one header",
    at="run",
)
def upload_with_two_headers():
    uploaded(wire.UploadRequest(header=upload_header()), wire.UploadRequest(header=upload_header()))  # <-


@wrong(
    "UPLOAD_HEADER",
    "an upload starts with a header",
    fix="the header, then the contents",
    at="run",
)
def upload_of_nothing():
    uploaded()  # <-


@wrong(
    "UPLOAD_BYTES",
    "the upload has 12 bytes, but its shape (4,) needs 16",
    fix="16 bytes for four numbers",
    at="run",
)
def upload_of_too_few_bytes():
    uploaded(wire.UploadRequest(header=upload_header()), wire.UploadRequest(chunk=bytes(12)))  # <-


@wrong(
    "UPLOAD_BYTES",
    "the upload has more than the 16 bytes that its shape (4,) needs",
    fix="16 bytes for four numbers",
    at="run",
)
def upload_of_too_many_bytes():
    uploaded(wire.UploadRequest(header=upload_header()), wire.UploadRequest(chunk=bytes(32)))  # <-


@wrong(
    "NO_DEVICE",
    "there is no device npu:0 here; kiln devices lists those there are",
    fix="a device that kiln devices lists",
    kind="Unavailable", at="run",
)
def upload_to_an_unknown_device():
    header = upload_header()
    header.device = "npu:0"
    uploaded(wire.UploadRequest(header=header), wire.UploadRequest(chunk=bytes(16)))  # <-

@wrong(
    "PROGRAM_CYCLE",
    "the nodes of loop wait for each other: a needs b needs a; what one step hands to the next is a parameter",
    fix="a parameter that an update changes",
    at="build",
)
def nodes_that_wait_for_each_other():
    kernel = request()
    program = program_pb2.Program(name="loop", definitions=[kernel.definition], outputs=[0])
    for name, reads, makes in (("a", 1, 0), ("b", 0, 1)):
        program.values.add(name=name)
        program.nodes.add(name=name, inputs=[reads], outputs=[makes])
    message = program_pb2.DefineProgramRequest(program=program)
    ask("ProgramService/Define", message, program_pb2.DefineProgramResponse)
