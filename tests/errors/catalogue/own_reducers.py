"""Mistakes in reducers of the user's own, and in where= and init= of all of them."""

import numpy as np

import kiln
from kiln import te

from .entry import Section
from .programs import arg_max, product

wrong = Section(
    "own_reducers", "Reducers of your own",
    "`te.comm_reducer(fcombine, fidentity)` takes a function that combines what there is so far with what comes next, "
    "and one that gives, for a dtype, what leaves any value as it is. Of several values at once both are tuples.",
)  # fmt: skip


def matrix():
    return te.placeholder((4, 6), name="A"), te.reduce_axis((0, 6), name="k")


@wrong(
    "REDUCER",
    "te.comm_reducer product combines 1 value, but fcombine returned 2",
    fix="lambda a, b: a * b, or a tuple of values to reduce",
)
def combining_one_value_to_two():
    A, k = matrix()
    product = te.comm_reducer(lambda a, b: (a * b, a), lambda t: te.const(1, t), name="product")
    te.compute((4,), lambda i: product(A[i, k], axis=k), name="B")  # <-


@wrong(
    "REDUCER",
    "te.comm_reducer argmax combines 2 values, but fidentity returned 1",
    fix="lambda i, v: (te.const(-1, i), te.min_value(v)): one for each value",
)
def one_identity_for_two_values():
    A, k = matrix()
    better = lambda x, y: (te.select(x[1] >= y[1], x[0], y[0]), te.max(x[1], y[1]))
    argmax = te.comm_reducer(better, lambda i, v: te.min_value(v), name="argmax")
    te.compute((4,), lambda i: argmax((k, A[i, k]), axis=k), name="B")  # <-


@wrong(
    "REDUCER",
    "fcombine of te.comm_reducer product: it returned nothing; is a return missing?",
    fix="return a * b",
)
def combining_without_return():
    def times(a, b):
        a * b

    A, k = matrix()
    product = te.comm_reducer(times, lambda t: te.const(1, t), name="product")
    te.compute((4,), lambda i: product(A[i, k], axis=k), name="B")  # <-


@wrong(
    "REDUCER",
    "fcombine of te.comm_reducer larger is bool, but what it combines is float32; cast it",
    fix="te.select(a > b, a, b)",
)
def combining_to_a_condition():
    A, k = matrix()
    larger = te.comm_reducer(lambda a, b: a > b, te.min_value, name="larger")
    te.compute((4,), lambda i: larger(A[i, k], axis=k), name="B")  # <-


@wrong(
    "REDUCER",
    "fcombine of te.comm_reducer scaled reads A; it knows its two arguments only",
    fix="reduce A[i, k] * A[0, 0]",
)
def combining_with_a_tensor():
    A, k = matrix()
    scaled = te.comm_reducer(lambda a, b: a + b * A[0, 0], lambda t: te.const(0, t), name="scaled")
    te.compute((4,), lambda i: scaled(A[i, k], axis=k), name="B")  # <-


@wrong(
    "REDUCER",
    "fcombine of te.comm_reducer counting uses axis k; it knows its two arguments only",
    fix="reduce A[i, k] * k",
)
def combining_with_an_axis():
    A, k = matrix()
    counting = te.comm_reducer(lambda a, b: a + b * k, lambda t: te.const(0, t), name="counting")
    te.compute((4,), lambda i: counting(A[i, k], axis=k), name="B")  # <-


@wrong(
    "REDUCER",
    "fcombine of te.comm_reducer nested holds a reduction; it knows its two arguments only",
    fix="make the inner sum a tensor of its own, and reduce that",
)
def combining_with_a_reduction():
    A, k = matrix()
    nested = te.comm_reducer(lambda a, b: te.sum(a + b, axis=k), lambda t: te.const(0, t), name="nested")
    te.compute((4,), lambda i: nested(A[i, k], axis=k), name="B")  # <-


@wrong(
    "REDUCER",
    "fidentity of te.comm_reducer product is float64, but what it combines is int32; cast it",
    fix="lambda t: te.const(1, t), for whatever type it is asked for",
)
def identity_of_another_type():
    A, k = te.placeholder((4, 6), "int32", name="A"), te.reduce_axis((0, 6), name="k")
    product = te.comm_reducer(lambda a, b: a * b, lambda t: te.const(0.5, "float64"), name="product")
    te.compute((4,), lambda i: product(A[i, k], axis=k), name="B")  # <-


@wrong(
    "REDUCER",
    "te.comm_reducer argmax got 1 value, of which its fcombine makes nothing: "
    "'Parameter' object is not subscriptable",
    fix="argmax((k, A[i, k]), axis=k): as many values as it combines",
)
def one_value_for_a_reducer_of_two():
    A, k = matrix()
    te.compute((4,), lambda i: arg_max()((A[i, k],), axis=k), name="B")  # <-


@wrong(
    "REDUCER",
    "te.comm_reducer product got no value to reduce",
    fix="product(A[i, k], axis=k)",
)
def nothing_to_reduce():
    A, k = matrix()
    te.compute((4,), lambda i: product()((), axis=k), name="B")  # <-


@wrong(
    "REDUCER",
    "te.comm_reducer argmax got 2 values on the left and 1 value on the right; over an axis write axis= "
    "with a te.reduce_axis",
    fix="argmax((0, A[i, 0]), (1, A[i, 1])), or axis=k",
)
def combining_two_values_with_one():
    A, k = matrix()
    te.compute((4,), lambda i: arg_max()((0, A[i, 0]), (1,)), name="B")  # <-


@wrong(
    "REDUCE_AXIS",
    "te.comm_reducer product: i is a data axis of B; make one with te.reduce_axis",
    fix="k = te.reduce_axis((0, 6)), and axis=k",
)
def data_axis_for_a_reducer():
    A, k = matrix()
    te.compute((4,), lambda i: product()(A[i, 0], axis=i), name="B")  # <-


@wrong(
    "REDUCER",
    "te.comm_reducer product: fcombine must be a function, but is 'mul'",
    fix="lambda a, b: a * b",
)
def name_of_an_operator_to_combine_with():
    te.comm_reducer("mul", lambda t: te.const(1, t), name="product")  # <-


@wrong(
    "REDUCER",
    "te.comm_reducer: name= must be a string, but is 7",
    fix='name="product"',
)
def number_as_the_name_of_a_reducer():
    te.comm_reducer(lambda a, b: a * b, lambda t: te.const(1, t), name=7)  # <-


@wrong(
    "REDUCTION_INIT",
    "te.comm_reducer argmax combines 2 values, but init= has 1",
    fix="init=(0, A[i, 0])",
)
def one_start_for_two_values():
    A, k = matrix()
    te.compute((4,), lambda i: arg_max()((k, A[i, k]), axis=k, init=0), name="B")  # <-


@wrong(
    "REDUCTION_INIT",
    "te.sum: init= uses k, which is reduced over; a reduction starts from what is known outside of it",
    fix="init=A[i, 0]",
)
def start_that_uses_the_reduced_axis():
    A, k = matrix()
    te.compute((4,), lambda i: te.sum(A[i, k], axis=k, init=A[i, k]), name="B")  # <-


@wrong(
    "REDUCTION_INIT",
    "te.sum: init= is float32, but what it reduces is int32; cast it",
    fix='init=A[0, 0].astype("int32")',
)
def start_of_another_type():
    A, k = matrix()
    te.compute((4,), lambda i: te.sum(k.astype("int32"), axis=k, init=A[0, 0]), name="B")  # <-


@wrong(
    "CONSTANT_TYPE",
    "the number 0.5 is no int32",
    fix="init=0, or a sum of float32",
)
def fraction_as_the_start_of_a_sum_of_integers():
    k = te.reduce_axis((0, 6), name="k")
    te.compute((4,), lambda i: te.sum((i + k).astype("int32"), axis=k, init=0.5), name="B")  # <-


@wrong(
    "CONDITION_TYPE",
    "where= takes conditions, but got int32: I[i, k]; write a comparison such as I[i, k] != 0",
    fix="where=I[i, k] != 0",
)
def mask_of_numbers_in_where():
    A, k = matrix()
    I = te.placeholder((4, 6), "int32", name="I")
    te.compute((4,), lambda i: te.sum(A[i, k], axis=k, where=I[i, k]), name="B")  # <-


@wrong(
    "UNREDUCED_AXIS",
    "reduce axis j is used in B, but no reducer reduces over it; write te.sum(..., axis=j)",
    fix="axis=[j, k], or an index that does not need j",
)
def condition_over_another_axis():
    A, k = matrix()
    j = te.reduce_axis((0, 6), name="j")
    te.compute((4,), lambda i: te.sum(A[i, k], axis=k, where=j < k), name="B")  # <-


@wrong(
    "INDEX_OUT_OF_RANGE",
    "B of the kernel reads index 6 of dimension 1 of A, but its extent there is 6",
    fix="where=k < 6: it guards what it leaves out",
    at="run",
)
def condition_that_lets_too_much_through():
    A, k = te.placeholder((4, 6), name="A"), te.reduce_axis((0, 10), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k, where=k < 8), name="B")  # <-
    kiln.build([A, B])(np.zeros((4, 6), "float32"))


@wrong(
    "REDUCER",
    "fidentity of te.comm_reducer product uses a value; it knows the types it is given only",
    fix="lambda t: te.const(1, t)",
)
def identity_that_uses_a_value():
    values = []
    A, k = te.placeholder((4,), name="A"), te.reduce_axis((0, 4), name="k")
    product = te.comm_reducer(lambda a, b: values.append(a) or a * b, lambda t: values[0], name="product")
    te.compute((), lambda: product(A[k], axis=k), name="B")  # <-


@wrong(
    "REDUCER",
    "fidentity of te.comm_reducer from_here uses axis k, which is reduced over; it may use the axes around the reduction",
    fix="lambda t: i.astype(t)",
)
def identity_that_uses_the_reduced_axis():
    A, k = matrix()
    from_here = te.comm_reducer(te.max, lambda t: k.astype(t), name="from_here")
    te.compute((4,), lambda i: from_here(A[i, k], axis=k), name="B")  # <-
