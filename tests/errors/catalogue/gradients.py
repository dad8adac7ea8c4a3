"""Mistakes in gradients."""

import kiln as tvm
from kiln import te

from .entry import Section

wrong = Section(
    "gradients", "Gradients",
    "`te.gradient(Y, [A, B], head)` gives a tensor for each of A and B. Floating tensors have gradients, through "
    "everything but reducers of your own.",
)  # fmt: skip


def doubled(dtype="float32"):
    X = te.placeholder((4,), dtype, name="X")
    return X, te.compute((4,), lambda i: X[i] * 2, name="Y")


@wrong(
    "GRADIENT_TYPE",
    "Y is int32, so there is no gradient of it; only floating tensors have one",
    fix='Y.astype("float32") inside of te.compute, where the numbers are to be differentiated',
)
def gradient_of_integers():
    X, Y = doubled("int32")
    te.gradient(Y, [X])  # <-


@wrong(
    "GRADIENT_TYPE",
    "ids is int32, so there is no gradient with respect to it; only floating tensors have one",
    fix="te.gradient(Y, [W], G): an index has no gradient",
)
def gradient_by_an_index():
    W = te.placeholder((5,), name="W")
    ids = te.placeholder((4,), "int32", name="ids")
    Y = te.compute((4,), lambda i: W[ids[i]], name="Y")
    te.gradient(Y, [ids])  # <-


@wrong(
    "GRADIENT_REDUCER",
    "Y reduces by larger, whose gradient is not known; sum, prod, min and max have one",
    fix="te.max(X[k], axis=k)",
    kind="Unsupported",
)
def gradient_of_a_reducer_of_ones_own():
    X, k = te.placeholder((4,), name="X"), te.reduce_axis((0, 4), name="k")
    larger = te.comm_reducer(lambda a, b: te.max(a * 2, b), lambda t: te.const(0, t), name="larger")
    Y = te.compute((), lambda: larger(X[k], axis=k), name="Y")
    te.gradient(Y, [X])  # <-


@wrong(
    "GRADIENT_HEAD",
    "the head G has shape (5,), but must end with that of Y, (4,)",
    fix="G = te.placeholder(Y.shape)",
)
def head_of_another_shape():
    X, Y = doubled()
    G = te.placeholder((5,), name="G")
    te.gradient(Y, [X], G)  # <-


@wrong(
    "GRADIENT_HEAD",
    "the head G is float64, but Y is float32; cast it",
    fix="G = te.placeholder(Y.shape, Y.dtype)",
)
def head_of_another_type():
    X, Y = doubled()
    G = te.placeholder((4,), "float64", name="G")
    te.gradient(Y, [X], G)  # <-


@wrong(
    "GRADIENT",
    "the output of te.gradient must be a tensor, but is Function; write te.gradient(Y, [A, B])",
    fix="te.gradient of the tensors that were built",
)
def gradient_of_a_built_function():
    X, Y = doubled()
    f = tvm.build([X, Y])
    te.gradient(f, [X])  # <-


@wrong(
    "GRADIENT",
    "te.gradient of Y has no inputs; write te.gradient(Y, [A, B])",
    fix="te.gradient(Y, [X])",
)
def gradient_by_nothing():
    _, Y = doubled()
    te.gradient(Y, [])  # <-
