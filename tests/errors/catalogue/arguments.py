"""Mistakes in the arguments of a call."""

import numpy as np

import kiln
from kiln import te

from .entry import Section
from .programs import add_one, built_matmul, running_sum

wrong = Section(
    "arguments", "Arguments of a call",
    "Shapes, types, strides and alignment are checked at each call; a call that is refused changes nothing.",
)  # fmt: skip


@wrong(
    "ARGUMENT_COUNT",
    "matmul takes 3 arguments (A, B, C), but got 1",
    fix="f(a, b), or f(a, b, c)",
    at="run",
)
def too_few_arguments():
    f = built_matmul()
    f(np.ones((2, 3), "float32"))  # <-


@wrong(
    "ARGUMENT_COUNT",
    "matmul takes 3 arguments (A, B, C), but got 4",
    fix="f(a, b), or f(a, b, c)",
    at="run",
)
def too_many_arguments():
    f = built_matmul()
    a = np.ones((2, 2), "float32")
    f(a, a, a, a)  # <-


@wrong(
    "ARGUMENT_SHAPE",
    "argument B of matmul: dimension 0 is 400, but must be 500 (l, from dimension 1 of A)",
    fix="an array b of shape (500, m)",
    at="run",
)
def shapes_that_do_not_fit():
    f = built_matmul()
    f(np.ones((3, 500), "float32"), np.ones((400, 4), "float32"))  # <-


@wrong(
    "ARGUMENT_SHAPE",
    "argument B of matmul: dimension 0 is 2, but must be 5 (l, from dimension 1 of A)",
    fix="f(a, b)",
    at="run",
)
def arguments_exchanged():
    f = built_matmul()
    a, b = np.ones((2, 3), "float32"), np.ones((3, 5), "float32")
    f(b, a)  # <-


@wrong(
    "ARGUMENT_SHAPE",
    "argument C of matmul: dimension 1 is 5, but must be 4 (m, from dimension 1 of B)",
    fix="an output of shape (3, 4)",
    at="run",
)
def output_of_another_shape():
    f = built_matmul()
    f(np.ones((3, 5), "float32"), np.ones((5, 4), "float32"), np.ones((3, 5), "float32"))  # <-


@wrong(
    "ARGUMENT_SHAPE",
    "argument A of add_one: dimension 0 is 5, but must be 4",
    fix="an array of shape (4,)",
    at="run",
)
def another_constant_size():
    f = kiln.build(list(add_one((4,))), name="add_one")
    f(np.ones(5, "float32"))  # <-


@wrong(
    "ARGUMENT_RANK",
    "argument B of matmul has 1 dimension, but must have 2",
    fix="b[:, None]",
    at="run",
)
def another_number_of_dimensions():
    f = built_matmul()
    f(np.ones((3, 5), "float32"), np.ones(5, "float32"))  # <-


@wrong(
    "ARGUMENT_TYPE",
    "argument B of matmul is float64, but must be float32",
    fix='b.astype("float32")',
    at="run",
)
def another_type():
    f = built_matmul()
    f(np.ones((3, 5), "float32"), np.ones((5, 4)))  # <-


@wrong(
    "ARGUMENT_TYPE",
    "argument B of matmul is no array, but object",
    fix="a numpy array or an NDArray",
    at="run",
)
def object_as_argument():
    f = built_matmul()
    f(np.ones((3, 5), "float32"), object())  # <-


@wrong(
    "ARGUMENT_TYPE",
    "argument B of matmul is no array, but str",
    fix="numbers",
    at="run",
)
def string_as_argument():
    f = built_matmul()
    f(np.ones((3, 5), "float32"), "b")  # <-


@wrong(
    "ARGUMENT_TYPE",
    "argument B of matmul is no array, but the description of tensor B; pass an array",
    fix='an array in its place: np.ones((5, 4), "float32")',
    at="run",
)
def tensor_of_the_description_as_argument():
    f = built_matmul()
    f(np.ones((3, 5), "float32"), te.placeholder((5, 4), name="B"))  # <-


@wrong(
    "DTYPE",
    "argument A of matmul: unknown dtype complex64; known: bool, int8, int16, int32, int64, uint8, "
    "uint16, uint32, uint64, float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2",
    fix='a.astype("float32")',
    at="run",
)
def type_that_no_kernel_has():
    f = built_matmul()
    f(np.ones((3, 5), "complex64"), np.ones((5, 4), "float32"))  # <-


@wrong(
    "ARGUMENT_TYPE",
    "argument C of matmul is list, but an output must be an NDArray or a numpy array",
    fix='np.empty((3, 4), "float32")',
    at="run",
)
def list_as_output():
    f = built_matmul()
    f(np.ones((3, 5), "float32"), np.ones((5, 4), "float32"), [])  # <-


@wrong(
    "ARGUMENT_TYPE",
    "argument C of matmul is a numpy array that may not be written, but an output is written",
    fix="an array that may be written",
    at="run",
)
def output_that_is_read_only():
    f = built_matmul()
    c = np.ones((3, 4), "float32")
    c.flags.writeable = False
    f(np.ones((3, 5), "float32"), np.ones((5, 4), "float32"), c)  # <-


@wrong(
    "SCAN_EXTENT",
    "argument X of running_sum: dimension 0 is 0, but must be at least 1 (initial steps of S)",
    fix="an X with at least one row",
    at="run",
)
def scan_over_no_steps():
    f = kiln.build(list(running_sum()), name="running_sum")
    f(np.ones((0, 3), "float32"))  # <-


@wrong(
    "SIZE_UNKNOWN",
    "matmul has no size q; its sizes are n, l, m",
    fix="f(a, n=4)",
    at="run",
)
def size_that_the_kernel_lacks():
    f = built_matmul()
    f(np.ones((3, 5), "float32"), np.ones((5, 4), "float32"), q=3)  # <-


@wrong(
    "ARGUMENT_SHAPE",
    "argument A of matmul: dimension 0 is 3, but must be 4 (n, given as a size)",
    fix="leave n out: it is found from the shape of A",
    at="run",
)
def size_that_the_shapes_contradict():
    f = built_matmul()
    f(np.ones((3, 5), "float32"), np.ones((5, 4), "float32"), n=4)  # <-


@wrong(
    "SIZE_MISSING",
    "size s of scale is not given by any argument; pass it as a size",
    fix="f(a, s=2)",
    at="run",
)
def size_that_is_not_given():
    s, n = te.var("s"), te.var("n")
    A = te.placeholder((n,), name="A")
    f = kiln.build([A, te.compute((n,), lambda i: A[i] * s, name="B")], name="scale")
    f(np.ones(3, "float32"))  # <-


@wrong(
    "INDEX_OUT_OF_RANGE",
    "B of gather reads index 7 of dimension 0 of A, but its extent there is 3",
    fix="indices from 0 to n - 1",
    at="run",
)
def index_of_a_gather_past_the_end():
    n, m = te.var("n"), te.var("m")
    A, I = te.placeholder((n,), name="A"), te.placeholder((m,), "int32", name="I")
    B = te.compute((m,), lambda i: A[I[i]], name="B")  # <-
    f = kiln.build([A, I, B], name="gather")
    f(np.ones(3, "float32"), np.array([0, 2, 7], "int32"))


@wrong(
    "SIZE_OVERFLOW",
    "a float32 tensor of shape (1125899906842624) is past the limit of 140737488355328 bytes",
    fix="a smaller shape",
    kind="ResourceExhausted", at="run",
)
def array_larger_than_any_memory():
    kiln.nd.empty((1 << 50,))  # <-


@wrong(
    "TENSOR_LIMIT",
    "17592186044416 bytes of tensor memory are needed, but the service keeps at most {number}",
    fix="smaller sizes, or a daemon with more memory",
    kind="ResourceExhausted", at="run",
)
def result_larger_than_memory():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    f = kiln.build([A, te.compute((n, n, n), lambda i, j, k: A[i], name="B")], name="cube")
    f(np.ones(1 << 14, "float32"))  # <-


@wrong(
    "COPY_TARGET",
    "copyto takes an NDArray, a numpy array or a device, but got str",
    fix="an array or a device",
    at="run",
)
def copy_to_a_string():
    kiln.nd.empty((2,)).copyto("cpu")  # <-


@wrong(
    "SHAPE",
    "cannot copy shape (3,) into an array of shape (2,)",
    fix="an array of the same shape",
    at="run",
)
def copy_of_another_shape():
    a = kiln.nd.empty((2,))
    a.copyfrom(np.ones(3, "float32"))  # <-


@wrong(
    "SHAPE",
    "nd.empty: the shape (2, -1) has a negative dimension",
    fix="a shape without negative dimensions",
    at="run",
)
def array_of_a_negative_shape():
    kiln.nd.empty((2, -1))  # <-


@wrong(
    "ARGUMENT_TYPE",
    "argument A of matmul is no array, but None",
    fix="an array",
    at="run",
)
def none_in_place_of_an_array():
    f = built_matmul()
    f(None, np.ones((2, 2), "float32"))  # <-


@wrong(
    "ARGUMENT_NAME",
    "matmul got A twice",
    fix="f(a, B=b)",
    at="run",
)
def argument_by_place_and_by_name():
    f = built_matmul()
    a = np.ones((2, 2), "float32")
    f(a, a, A=a)  # <-


@wrong(
    "ARGUMENT_COUNT",
    "matmul lacks its input B",
    fix="f(A=a, B=b)",
    at="run",
)
def one_argument_by_its_name():
    f = built_matmul()
    f(A=np.ones((2, 2), "float32"))  # <-


@wrong(
    "SIZE",
    "numbers: t must be an integer, but is '8'; sizes are given by their names, as in f(n=1024)",
    fix="f(t=8)",
    at="run",
)
def size_that_is_no_number():
    t = te.var("t")
    f = kiln.build([te.compute((t,), lambda i: i, name="N")], name="numbers")
    f(t="8")  # <-


@wrong(
    "SIZE",
    "numbers: t is 9223372036854775808, which is past the range of int64",
    fix="f(t=8)",
    at="run",
)
def size_past_int64():
    t = te.var("t")
    f = kiln.build([te.compute((t,), lambda i: i, name="N")], name="numbers")
    f(t=1 << 63)  # <-


@wrong(
    "ARGUMENT_COUNT",
    "matmul writes C, but out= holds 2 arrays",
    fix="f(a, b, out=c)",
    at="run",
)
def too_many_arrays_to_write():
    f = built_matmul()
    a = np.ones((2, 2), "float32")
    f(a, a, out=(a, a))  # <-


@wrong(
    "ARGUMENT_TYPE",
    "nd.array is a masked array, whose mask a kernel does not know; fill it first, as in x.filled(0)",
    fix="kiln.nd.array(x.filled(0))",
    at="run",
)
def array_with_a_mask():
    x = np.ma.array([1.0, 2.0], mask=[False, True])
    kiln.nd.array(x)  # <-


@wrong(
    "ARGUMENT_OVERLAP",
    "arguments B and C of two are both written, but share memory",
    fix="an array for each, or f(a)",
    at="run",
)
def memory_for_two_outputs():
    A = te.placeholder((4,), name="A")
    B, C = te.compute((4,), lambda i: A[i] + 1, name="B"), te.compute((4,), lambda i: A[i] + 2, name="C")
    f, both = kiln.build([A, B, C], name="two"), np.zeros(5, "float32")
    f(np.zeros(4, "float32"), both[:-1], both[1:])  # <-


@wrong(
    "SIZE",
    "dimension 0 of A would be -2 with these sizes",
    fix='sizes={"n": 8}',
    at="run",
)
def sizes_of_a_search_that_are_too_small():
    n = te.var("n")
    A, B = te.placeholder((n - 5,), name="A"), te.placeholder((n,), name="B")
    C = te.compute((n,), lambda i: B[i] * 2, name="C")
    kiln.tune([A, B, C], sizes={"n": 3})  # <-
