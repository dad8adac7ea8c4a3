"""Mistakes in reductions."""

import kiln
from kiln import te

from .entry import Section

wrong = Section(
    "reducers", "Reductions",
    "`te.sum`, `te.max` and the others run over an axis made by `te.reduce_axis`. A reduction may stand inside a "
    "larger expression; it then gets a stage of its own.",
)  # fmt: skip


@wrong(
    "REDUCE_AXIS",
    "te.sum needs the axis to reduce over; did you mean axis=k",
    fix="te.sum(A[i, k], axis=k)",
)
def sum_without_an_axis():
    A = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    te.compute((4,), lambda i: te.sum(A[i, k]), name="B")  # <-


@wrong(
    "REDUCE_AXIS",
    "te.sum: i is a data axis of B; make one with te.reduce_axis",
    fix="k = te.reduce_axis((0, 5)), and axis=k",
)
def data_axis_as_reduction_axis():
    A = te.placeholder((4, 5), name="A")
    te.compute((4,), lambda i: te.sum(A[i, 0], axis=i), name="B")  # <-


@wrong(
    "REDUCE_AXIS",
    "te.sum: axis must be a te.reduce_axis or a list of them, but got 1",
    fix="k = te.reduce_axis((0, 5)), and axis=k",
)
def number_as_reduction_axis():
    A = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    te.compute((4,), lambda i: te.sum(A[i, k], axis=[1]), name="B")  # <-


@wrong(
    "REDUCE_AXIS",
    "te.sum: axis must be a te.reduce_axis or a list of them, but got 'k'",
    fix="axis=k, the axis itself",
)
def name_as_reduction_axis():
    A = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    te.compute((4,), lambda i: te.sum(A[i, k], axis="k"), name="B")  # <-


@wrong(
    "UNREDUCED_AXIS",
    "reduce axis k is used in B, but no reducer reduces over it; write te.sum(..., axis=k)",
    fix="te.sum(A[i, k], axis=k)",
)
def reduction_axis_without_a_reducer():
    A = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    te.compute((4,), lambda i: A[i, k] + 1, name="B")  # <-


@wrong(
    "UNREDUCED_AXIS",
    "reduce axis k is used in B, but no reducer reduces over it; write te.sum(..., axis=k)",
    fix="put the factor inside: te.sum(A[i, k] * W[k], axis=k)",
)
def reduction_axis_outside_of_its_reducer():
    A, W = te.placeholder((4, 5), name="A"), te.placeholder((5,), name="W")
    k = te.reduce_axis((0, 5), name="k")
    te.compute((4,), lambda i: te.sum(A[i, k], axis=k) * W[k], name="B")  # <-


@wrong(
    "REDUCTION_AXES",
    "sum reduces over k twice",
    fix="axis=[k], each axis once",
    at="build",
)
def axis_reduced_twice():
    A = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=[k, k]), name="B")  # <-
    kiln.build([A, B])


@wrong(
    "REDUCE_AXIS",
    "te.reduce_axis k: write the range as (0, n), but got 5",
    fix="te.reduce_axis((0, 5))",
)
def range_as_one_number():
    te.reduce_axis(5, name="k")  # <-


@wrong(
    "REDUCE_AXIS",
    "te.reduce_axis k: the range (3, 1) ends before it begins",
    fix="te.reduce_axis((1, 3))",
)
def range_that_ends_before_it_begins():
    te.reduce_axis((3, 1), name="k")  # <-


@wrong(
    "REDUCE_AXIS",
    "te.reduce_axis k: the bound A[0] is float32, not an integer",
    fix="te.reduce_axis((0, n))",
)
def floating_range():
    A = te.placeholder((4,), name="A")
    te.reduce_axis((0, A[0]), name="k")  # <-


@wrong(
    "READ_BOUNDS",
    "B reads A[i, k], whose index 1 reaches 5, but A has 0 to 4 there; guard the read with "
    "if_then_else or change the shape",
    fix="te.reduce_axis((0, 5)) for the second dimension of A, which has 5",
    at="build",
)
def reduction_past_the_end():
    A = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 6), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")  # <-
    kiln.build([A, B])


@wrong(
    "READ_BOUNDS",
    "C reads A[k, i], whose index 0 reaches 31, but A has 0 to 15 there; guard the read with "
    "if_then_else or change the shape",
    fix="A[i, k] * B[k, j]: the second index of A and the first of B are the same",
    at="build",
)
def axes_of_a_matmul_exchanged():
    A, B = te.placeholder((16, 32), name="A"), te.placeholder((32, 8), name="B")
    k = te.reduce_axis((0, 32), name="k")
    C = te.compute((16, 8), lambda i, j: te.sum(A[k, i] * B[k, j], axis=k), name="C")  # <-
    kiln.build([A, B, C])


@wrong(
    "TUPLE_REDUCTION",
    "output 1 of B is not a reduction; a tuple compute is all reductions or none",
    fix="two computes, one with the sum and one without",
    at="build",
)
def reduction_beside_a_plain_value():
    A = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    total, first = te.compute((4,), lambda i: (te.sum(A[i, k], axis=k), A[i, 0]), name="B")  # <-
    kiln.build([A, total, first])


@wrong(
    "TUPLE_REDUCTION",
    "outputs 0 and 1 of B reduce over different axes; a tuple compute reduces over the same ones",
    fix="one axis for both, or two computes",
    at="build",
)
def outputs_that_reduce_over_different_axes():
    A = te.placeholder((4, 5), name="A")
    k, l = te.reduce_axis((0, 5), name="k"), te.reduce_axis((0, 5), name="l")
    B = te.compute((4,), lambda i: (te.sum(A[i, k], axis=k), te.max(A[i, l], axis=l)), name="B")  # <-
    kiln.build([A, *B])


@wrong(
    "REDUCTION_PLACE",
    "reductions are only allowed at the top level of compute: the one in an if_then_else of B reads A, "
    "which is not proved to be in bounds without the condition; put the condition inside the reduction",
    fix="te.sum(te.if_then_else(i > 0, A[i - 1, k], 0), axis=k)",
    at="build",
)
def guarded_reduction():
    n = te.var("n")
    A = te.placeholder((n, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    B = te.compute((n,), lambda i: te.if_then_else(i > 0, te.sum(A[i - 1, k], axis=k), 0.0) + 1, name="B")  # <-
    kiln.build([A, B])


@wrong(
    "CONDITION_TYPE",
    "where= takes conditions, but got float32: A[i, k]; write a comparison such as A[i, k] != 0",
    fix="where=A[i, k] > 0",
)
def number_in_where():
    A = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    te.compute((4,), lambda i: te.sum(A[i, k], axis=k, where=A[i, k]), name="B")  # <-


@wrong(
    "CONDITION_TYPE",
    "te.any takes conditions, but got float32: A[i, k]; write a comparison such as A[i, k] != 0",
    fix="te.any(A[i, k] > 0, axis=k)",
)
def any_of_numbers():
    A = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    te.compute((4,), lambda i: te.any(A[i, k], axis=k), name="B")  # <-


@wrong(
    "REDUCE_AXIS",
    "te.max needs the axis to reduce over, or two values, as te.max(a, b)",
    fix="te.max(A[i], 0.0) of two values, or te.max(A[k], axis=k)",
)
def max_of_one_value():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: te.max(A[i]), name="B")  # <-


@wrong(
    "FOREIGN_AXIS",
    "axis i belongs to B and cannot be used in C",
    fix="an axis of the stage itself in the range",
)
def range_over_an_axis_of_another_stage():
    A = te.placeholder((4, 5), name="A")
    B = te.compute((4,), lambda i: A[i, 0], name="B")
    k = te.reduce_axis((0, B.op.axis[0] + 1), name="k")
    te.compute((4,), lambda j: te.sum(A[j, k], axis=k), name="C")  # <-
