"""Mistakes in sizes, placeholders and shapes, and in the list of arguments."""

import numpy as np

import kiln
from kiln import te

from .entry import Section
from .programs import chain, matmul, running_sum

wrong = Section(
    "declarations", "Sizes, shapes and arguments of a kernel",
    "Placeholders are what a call gives, computed tensors among the arguments what it returns.",
)  # fmt: skip


@wrong(
    "DTYPE",
    "placeholder A: unknown dtype float33; known: bool, int8, int16, int32, int64, uint8, uint16, "
    "uint32, uint64, float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2",
    fix="float32",
)
def unknown_type():
    te.placeholder((4,), dtype="float33", name="A")  # <-


@wrong(
    "DTYPE",
    "placeholder A: unknown dtype complex64; known: bool, int8, int16, int32, int64, uint8, uint16, "
    "uint32, uint64, float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2",
    fix="one of the types listed",
)
def type_that_kiln_lacks():
    te.placeholder((4,), dtype="complex64", name="A")  # <-


@wrong(
    "NEGATIVE_EXTENT",
    "placeholder A: dimension 1 is -3, but must not be negative",
    fix="a size of 0 or more",
)
def negative_dimension():
    te.placeholder((2, -3), name="A")  # <-


@wrong(
    "SHAPE",
    "placeholder A: dimension 0 is 2.5, but must be an integer or made of te.var sizes",
    fix="(4, 5)",
)
def fractional_dimension():
    te.placeholder((2.5,), name="A")  # <-


@wrong(
    "SHAPE",
    "placeholder P: dimension 0 is A[0], but must be an integer or made of te.var sizes",
    fix="te.var for a size that is known at the call",
)
def dimension_read_from_a_tensor():
    A = te.placeholder((4,), dtype="int32", name="A")
    te.placeholder((A[0],), name="P")  # <-


@wrong(
    "SHAPE",
    "compute B: the tensor A is no shape; write A.shape",
    fix="A.shape",
)
def tensor_in_place_of_a_shape():
    A = te.placeholder((4,), name="A")
    te.compute(A, lambda i: A[i] + 1, name="B")  # <-


@wrong(
    "SHAPE",
    "placeholder A: dimension 0 is n, but must be an integer or made of te.var sizes",
    fix='(n,) with n = te.var("n")',
)
def string_as_a_dimension():
    te.placeholder(("n",), name="A")  # <-


@wrong(
    "SHAPE",
    "compute B: a function is no shape; the shape comes first, then the function",
    fix="te.compute((4,), lambda i: A[i] + 1)",
)
def function_before_the_shape():
    A = te.placeholder((4,), name="A")
    te.compute(lambda i: A[i] + 1, (4,), name="B")  # <-


@wrong(
    "DTYPE",
    "placeholder placeholder: unknown dtype A; known: bool, int8, int16, int32, int64, uint8, uint16, uint32, "
    "uint64, float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2; a name is given as name=\"A\"",
    fix='te.placeholder((4,), name="A")',
)
def name_in_place_of_the_type():
    te.placeholder((4,), "A")  # <-


@wrong(
    "SHAPE",
    "placeholder A: None is no shape; write a tuple of sizes",
    fix="(4,)",
)
def no_shape():
    te.placeholder(None, name="A")  # <-


@wrong(
    "NAME",
    "te.placeholder: the name must be a string, but got int",
    fix='te.placeholder((4,), name="A")',
)
def name_that_is_no_string():
    te.placeholder((4,), name=3)  # <-


@wrong(
    "VARIABLE_TYPE",
    "te.size_var alpha is float32, but sizes are integers; write te.var",
    fix='te.var("alpha", "float32")',
)
def size_of_a_floating_type():
    te.size_var("alpha", "float32")  # <-


@wrong(
    "ARGUMENTS",
    "a schedule needs the list of arguments: build(s, [A, B, C])",
    fix="kiln.build(s, [A, B, C])",
    at="build",
)
def schedule_without_arguments():
    A, B, C = chain()
    kiln.build(te.create_schedule(C.op))  # <-


@wrong(
    "NO_ARGUMENTS",
    "the kernel has no arguments: list its placeholders and what it computes from them, as in build([A, B, C])",
    fix="kiln.build([A, B, C])",
    at="build",
)
def empty_list_of_arguments():
    kiln.build([])  # <-


@wrong(
    "NO_OUTPUT",
    "there is no output among the arguments (A); list a computed tensor, too",
    fix="kiln.build([A, C])",
    at="build",
)
def forgotten_output():
    A, B, C = chain()
    kiln.build([A])  # <-


@wrong(
    "PLACEHOLDER_NOT_GIVEN",
    "C reads placeholder B, which is not an argument; list B among the arguments",
    fix="kiln.build([A, B, C])",
    at="build",
)
def forgotten_input():
    A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    C = te.compute((4,), lambda i: A[i] + B[i], name="C")  # <-
    kiln.build([A, C])


@wrong(
    "PARAMETER_TWICE",
    "B is listed twice among the arguments",
    fix="list each tensor once",
    at="build",
)
def argument_listed_twice():
    A, B, C = matmul()
    kiln.build([A, B, B, C])  # <-


@wrong(
    "ARGUMENTS",
    "argument 1 of the kernel must be a tensor, but is a numpy array; name a te.placeholder, and pass the "
    "array when the kernel is called",
    fix="a placeholder in the list; the array is for the call",
    at="build",
)
def array_among_the_arguments():
    A, B, C = matmul()
    kiln.build([A, np.ones((4, 4), "float32"), C])  # <-


@wrong(
    "ARGUMENTS",
    "argument 1 of the kernel must be a tensor, but is the operation C; name its tensor",
    fix="kiln.build([A, C])",
    at="build",
)
def operation_among_the_arguments():
    A, B, C = chain()
    kiln.build([A, C.op])  # <-


@wrong(
    "ARGUMENTS",
    "the kernel must be a schedule and its arguments, or a list of tensors, but is function",
    fix="kiln.build([A, C])",
    at="build",
)
def function_in_place_of_a_kernel():
    kiln.build(lambda a: a + 1)  # <-


@wrong(
    "NAME",
    "name= must be a string, but is int",
    fix='name="add_one"',
    at="build",
)
def kernel_name_that_is_no_string():
    A, B, C = chain()
    kiln.build([A, C], name=7)  # <-


@wrong(
    "SCAN_CELL",
    "state is the state of scan S and cannot be an argument; take S instead",
    fix="kiln.build([X, S])",
    at="build",
)
def state_of_a_scan_as_argument():
    X, S = running_sum()
    kiln.build([X, S.op.state_placeholder[0], S])  # <-


@wrong(
    "SCAN_CELL",
    "state is the state of scan S, which no argument is; list S, in place of its update",
    fix="kiln.build([X, S])",
    at="build",
)
def update_of_a_scan_as_argument():
    X, state = te.placeholder((6, 3), name="X"), te.placeholder((6, 3), name="state")
    init = te.compute((1, 3), lambda _, i: X[0, i], name="init")
    update = te.compute((6, 3), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    S = te.scan(init, update, state, name="S")
    kiln.build([X, update])  # <-


@wrong(
    "FOREIGN_STAGE",
    "parallel schedules C, which no argument of the kernel is computed from",
    fix="list C, which the step is about, among the arguments",
    at="build",
)
def schedule_of_another_program():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[C].parallel(C.op.axis[0])  # <-
    D, E, F = chain()
    kiln.build(s, [D, F])


@wrong(
    "BINDS",
    "binds= of the kernel describes the memory of its arguments by hand; Kiln takes arguments of any strides "
    "and alignment and checks them at each call, so leave it out",
    fix="leave binds out",
    kind="Unsupported", at="build",
)
def memory_described_by_hand():
    A, B, C = chain()
    kiln.build([A, C], binds={A: None})  # <-


@wrong(
    "AUTO",
    "auto= is 'sometimes'; known: \"always\" (the default), \"never\"",
    fix='auto="never", or nothing',
    at="build",
)
def unknown_mode_of_automatic_schedules():
    A, B, C = chain()
    kiln.build([A, C], auto="sometimes")  # <-


@wrong(
    "NOT_A_TENSOR",
    "create_schedule takes a tensor, but got int",
    fix="te.create_schedule(C.op)",
)
def schedule_of_a_list_of_numbers():
    te.create_schedule([1, 2])  # <-


@wrong(
    "NOT_PART_OF_KILN",
    "te.extern runs code that is not part of the definition, which Kiln does not; instead of a cblas, "
    "mkl or cublas matmul write te.sum (without a schedule), of a cudnn convolution te.sum over its "
    "window, of sort or argsort topi.sort or topi.argsort, of a loop body "
    "te.compute, te.scan or te.if_then_else, and of a random generator numpy",
    fix="te.sum, or the kernels of kiln.topi",
    kind="Unsupported",
)
def foreign_function():
    A = te.placeholder((4, 4), name="A")
    te.extern((4, 4), [A], lambda ins, outs: None, name="B")  # <-


@wrong(
    "NOT_PART_OF_KILN",
    "te.hybrid.script compiles the text of a Python function, which Kiln does not; write the tensors "
    "with te.compute, te.scan and te.if_then_else",
    fix="te.compute, te.scan and te.if_then_else",
    kind="Unsupported",
)
def hybrid_script():
    @te.hybrid.script  # <-
    def outer(a):
        pass


@wrong(
    "NOT_PART_OF_KILN",
    "te.create_prim_func makes a TensorIR function, which Kiln has not; give the tensors to "
    "kiln.build([A, B]), or a schedule from te.create_schedule",
    fix="kiln.build([A, B])",
    kind="Unsupported",
)
def tensor_ir_function():
    A, B, C = chain()
    te.create_prim_func([A, C])  # <-


@wrong(
    "DEVICE_MEMORY",
    "cube needs 140737488355328 bytes for its intermediate stages, but cpu:0 has {number} bytes of memory in all; "
    "compute them inside the loops that read them (compute_at, compute_inline), or call it with smaller tensors",
    fix='a schedule with s[B].compute_at(s[C], r), or auto="always"',
    kind="ResourceExhausted", at="run",
)
def intermediate_tensor_larger_than_memory():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n, n, n), lambda i, j, k: A[i] * A[j] + A[k], name="B")
    r = te.reduce_axis((0, n), name="r")
    C = te.compute((n,), lambda i: te.sum(B[i, i, r] + B[r, i, i], axis=r), name="C")
    f = kiln.build([A, C], name="cube", auto="never")
    f(np.ones(1 << 15, "float32"))  # <-


@wrong(
    "SIZE_DIVISION",
    "a size divides 100 by zero",
    fix="arrays that are not empty",
    at="run",
    notes=("in dimension 0 of argument B of parts (floordiv(100, n))",),
)
def shape_that_divides_by_a_size():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((100 // n,), lambda i: A[0] * i, name="B")
    f = kiln.build([A, B], name="parts")
    f(np.ones(0, "float32"))  # <-


@wrong(
    "ARGUMENT_SHAPE",
    "argument B of inner: dimension 0 would be -1 (n - 3), but must not be negative",
    fix="an array of at least 3 elements",
    at="run",
)
def shape_that_becomes_negative():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    f = kiln.build([A, te.compute((n - 3,), lambda i: A[i], name="B")], name="inner")
    f(np.ones(2, "float32"))  # <-
