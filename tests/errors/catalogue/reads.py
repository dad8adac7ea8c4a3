"""Mistakes in reading tensors inside of te.compute."""

import kiln
from kiln import te

from .entry import Section

wrong = Section(
    "reads", "Reading tensors",
    "A read names an element: an integer index for each dimension. Every read is proved to stay inside of its tensor, "
    "or checked when the kernel runs.",
)  # fmt: skip


@wrong(
    "NOT_A_SEQUENCE",
    "Tensor(A, shape=(4,), dtype=float32, op=placeholder) has no elements yet: index it inside "
    "te.compute",
    fix="te.sum(A[k], axis=k) with k = te.reduce_axis((0, 4))",
)
def python_sum_of_a_tensor():
    A = te.placeholder((4,), name="A")
    te.compute((1,), lambda _: sum(A), name="B")  # <-


@wrong(
    "TENSOR_WITHOUT_INDICES",
    "tensor B of shape (4,) stands in an expression without indices; read an element, as in B[i], "
    "inside te.compute",
    fix="A[i] + B[i]",
)
def tensor_without_indices():
    A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    te.compute((4,), lambda i: A[i] + B, name="C")  # <-


@wrong(
    "READ_RANK",
    "A has 2 dimensions, but is read with 1 index",
    fix="A[i, j], with an index for each dimension",
)
def too_few_indices():
    A = te.placeholder((4, 5), name="A")
    te.compute((4,), lambda i: A[i] + 1, name="B")  # <-


@wrong(
    "READ_RANK",
    "A has 1 dimension, but is read with 2 indices",
    fix="A[i]",
)
def too_many_indices():
    A = te.placeholder((4,), name="A")
    te.compute((4, 5), lambda i, j: A[i, j], name="B")  # <-


@wrong(
    "READ_RANK",
    "A has 2 dimensions, but is read with 1 index",
    fix="te.compute(..., lambda i, j: A[i, j])",
)
def unfinished_read_as_the_result():
    A = te.placeholder((4, 5), name="A")
    te.compute((4,), lambda i: A[i], name="B")  # <-


@wrong(
    "INDEX_TYPE",
    'index I[i] of tensor A is float32, but must be an integer; write .astype("int64")',
    fix='A[I[i].astype("int64")]',
)
def floating_index():
    A, I = te.placeholder((4,), name="A"), te.placeholder((4,), name="I")
    te.compute((4,), lambda i: A[I[i]], name="B")  # <-


@wrong(
    "INDEX_TYPE",
    'index float32(i) * 0.5 of tensor A is float32, but must be an integer; write .astype("int64")',
    fix="i // 2",
)
def half_an_index():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: A[i * 0.5], name="B")  # <-


@wrong(
    "INDEX_TYPE",
    "tensor A is indexed by a slice; one element is read at a time: use the axes of te.compute as "
    "indices",
    fix="te.sum(A[i, k], axis=k)",
)
def slice_as_index():
    A = te.placeholder((4, 5), name="A")
    te.compute((4,), lambda i: te.sum(A[i, :], axis=None), name="B")  # <-


@wrong(
    "INDEX_TYPE",
    "index 1.5 of tensor A is not an integer",
    fix="A[1]",
)
def fraction_as_index():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: A[1.5], name="B")  # <-


@wrong(
    "INDEX_RANGE",
    "index 4 of tensor A is out of range: dimension 0 is 4",
    fix="A[3] is the last element",
)
def constant_index_past_the_end():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: A[i] + A[4], name="B")  # <-


@wrong(
    "INDEX_RANGE",
    "index -1 of tensor A is out of range: dimension 0 is 4",
    fix="the last element is A[3], or A[n - 1] where the size is n",
)
def negative_index():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: A[i] - A[-1], name="B")  # <-


@wrong(
    "READ_BOUNDS",
    "B reads A[i + 1], whose index 0 reaches n, but A has 0 to n - 1 there; guard the read with "
    "if_then_else or change the shape",
    fix="te.if_then_else(i < n - 1, A[i + 1], 0)",
    at="build",
)
def read_past_the_last_row():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i + 1] - A[i], name="B")  # <-
    kiln.build([A, B])


@wrong(
    "READ_BOUNDS",
    "B reads A[i, j], whose index 0 reaches 5, but A has 0 to 3 there; guard the read with "
    "if_then_else or change the shape",
    fix="A[i, j] in a compute of shape (4, 6), or A[j, i]",
    at="build",
)
def shapes_exchanged():
    A = te.placeholder((4, 6), name="A")
    B = te.compute((6, 4), lambda i, j: A[i, j], name="B")  # <-
    kiln.build([A, B])


@wrong(
    "FOREIGN_AXIS",
    "axis i belongs to B and cannot be used in C",
    fix="use the axes that the function is given",
)
def axis_of_another_stage():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    te.compute((4,), lambda j: A[B.op.axis[0]], name="C")  # <-


@wrong(
    "NOT_A_SEQUENCE",
    "Tensor(A, shape=(4,), dtype=float32, op=placeholder) has no elements yet: index it inside "
    "te.compute",
    fix="index the tensor by axes; te.sum(A[k], axis=k) adds its elements",
)
def loop_over_a_tensor():
    A = te.placeholder((4,), name="A")
    for a in A:  # <-
        print(a)


@wrong(
    "READ_BOUNDS",
    "B reads A[i - 1], whose index 0 reaches -1, but A has 0 to n - 1 there; guard the read with "
    "if_then_else or change the shape",
    fix="te.if_then_else(i > 0, A[i - 1], 0.0): te.select computes both of its values",
    at="build",
)
def select_as_a_guard():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: te.select(i > 0, A[i - 1], 0.0), name="B")  # <-
    kiln.build([A, B])


@wrong(
    "READ_BOUNDS",
    "B reads A[k], whose index 0 reaches n, but A has 0 to n - 1 there; guard the read with "
    "if_then_else or change the shape",
    fix="te.reduce_axis((0, i + 1)): the range ends before its second bound",
    at="build",
)
def triangle_that_is_one_too_large():
    n = te.var("n")
    A = te.placeholder((n,), name="A")

    def sum_up_to(i):
        k = te.reduce_axis((0, i + 2), name="k")
        return te.sum(A[k], axis=k)

    B = te.compute((n,), sum_up_to, name="B")  # <-
    kiln.build([A, B])
