"""Mistakes with operators of whole tensors: kiln.topi, and kernels that are called on tensors."""

import kiln
from kiln import te, topi

from .entry import Section

wrong = Section(
    "operators", "Operators of whole tensors",
    "The functions of `kiln.topi`, and kernels of files that are called on tensors, check shapes and types when they "
    "are called.",
)  # fmt: skip


@wrong(
    "BROADCAST",
    "topi.add: A of shape (4, 5) and B of shape (3, 5) do not broadcast to one shape",
    fix="shapes that stretch to one, as (4, 5) and (1, 5)",
)
def shapes_that_do_not_broadcast():
    A, B = te.placeholder((4, 5), name="A"), te.placeholder((3, 5), name="B")
    topi.add(A, B)  # <-


@wrong(
    "BROADCAST",
    "add of tensors: A of shape (4, 5) and B of shape (3, 5) do not broadcast to one shape",
    fix="the same",
)
def sum_of_tensors_of_different_shapes():
    A, B = te.placeholder((4, 5), name="A"), te.placeholder((3, 5), name="B")
    A + B  # <-


@wrong(
    "AXIS_RANGE",
    "topi.sum: axis 2 is out of range; A has 2 dimensions",
    fix="axis=1, or axis=-1 for the last",
)
def axis_that_is_not_there():
    A = te.placeholder((4, 5), name="A")
    topi.sum(A, axis=2)  # <-


@wrong(
    "AXIS_RANGE",
    "topi.sum: axis k is no integer",
    fix="a number",
)
def axis_of_a_name():
    A = te.placeholder((4, 5), name="A")
    topi.sum(A, axis="k")  # <-


@wrong(
    "CHANNELS",
    "topi.nn.conv2d_nchw: data has 3 channels, but the filter weight is for 4",
    fix="a filter of shape (8, 3, 3, 3)",
)
def convolution_of_other_channels():
    data = te.placeholder((1, 3, 32, 32), name="data")
    weight = te.placeholder((8, 4, 3, 3), name="weight")
    topi.nn.conv2d(data, weight, 1, 1, 1)  # <-


@wrong(
    "ARGUMENT_RANK",
    "topi.nn.conv2d_nchw: data has shape (3, 32, 32), but must have 4 dimensions",
    fix="data of shape (batch, channels, height, width)",
)
def convolution_without_a_batch():
    data = te.placeholder((3, 32, 32), name="data")
    weight = te.placeholder((8, 3, 3, 3), name="weight")
    topi.nn.conv2d(data, weight, 1, 1, 1)  # <-


@wrong(
    "ARGUMENT_SHAPE",
    "topi.nn.dense: data has shape (8, 64) and weight (10, 32); dimension 1 of data is 64, but "
    "dimension 1 of weight is 32",
    fix="a weight of shape (10, 64)",
)
def dense_of_other_features():
    data, weight = te.placeholder((8, 64), name="data"), te.placeholder((10, 32), name="weight")
    topi.nn.dense(data, weight)  # <-


@wrong(
    "ARGUMENT_SHAPE",
    "topi.nn.batch_matmul: x has shape (8, 4, 16) and y (7, 5, 16); dimension 0 of x is 8, but "
    "dimension 0 of y is 7",
    fix="batches of one size",
)
def batch_matmul_of_other_batches():
    x, y = te.placeholder((8, 4, 16), name="x"), te.placeholder((7, 5, 16), name="y")
    topi.nn.batch_matmul(x, y)  # <-


@wrong(
    "ARGUMENT_SHAPE",
    "topi.matmul: A has shape (3, 4) and B (5, 6); dimension 1 of A is 4, but dimension 0 of B is 5",
    fix="an A of shape (m, 5) or a B of shape (4, n)",
)
def matmul_of_other_widths():
    A, B = te.placeholder((3, 4), name="A"), te.placeholder((5, 6), name="B")
    topi.matmul(A, B)  # <-


@wrong(
    "RESHAPE",
    "topi.reshape: A of shape (4, 5) does not fit (3, 7); their numbers of elements differ",
    fix="a shape of 20 elements, such as (2, 10)",
)
def reshape_to_another_size():
    A = te.placeholder((4, 5), name="A")
    topi.reshape(A, (3, 7))  # <-


@wrong(
    "AXES",
    "topi.transpose: axes (0, 0) must name each of the 2 dimensions of A once",
    fix="each axis once: (1, 0)",
)
def transpose_of_one_axis_twice():
    A = te.placeholder((4, 5), name="A")
    topi.transpose(A, (0, 0))  # <-


@wrong(
    "CONCATENATE",
    "topi.concatenate along axis 0: A has shape (4, 5), but B has (4, 6); the other dimensions must "
    "agree",
    fix="tensors that differ only along the axis",
)
def concatenation_of_other_widths():
    A, B = te.placeholder((4, 5), name="A"), te.placeholder((4, 6), name="B")
    topi.concatenate([A, B], axis=0)  # <-


@wrong(
    "LAYOUT",
    "topi.nn.conv2d: unknown layout 'NCWH'; known: NCHW, NHWC, HWCN; groups in the first two only",
    fix="one of the layouts named",
)
def unknown_layout():
    data = te.placeholder((1, 3, 32, 32), name="data")
    weight = te.placeholder((8, 3, 3, 3), name="weight")
    topi.nn.conv2d(data, weight, 1, 1, 1, "NCWH")  # <-


@wrong(
    "UNKNOWN_NAME",
    "topi.nn has no rleu; did you mean relu",
    fix="topi.nn.relu",
)
def misspelt_operator():
    A = te.placeholder((4, 5), name="A")
    topi.nn.rleu(A)  # <-


@wrong(
    "UNKNOWN_NAME",
    "topi has no expp; did you mean exp",
    fix="topi.exp",
)
def misspelt_elementwise_operator():
    A = te.placeholder((4, 5), name="A")
    topi.expp(A)  # <-


@wrong(
    "NOT_A_TENSOR",
    "topi.nn.relu takes a tensor, but got ndarray",
    fix="te.placeholder for the array, topi on it, and the array at the call",
)
def operator_of_a_numpy_array():
    import numpy as np

    topi.nn.relu(np.ones((4, 5), "float32"))  # <-


@wrong(
    "ARGUMENT_COUNT",
    "dot takes 2 tensors (X, Y), but got 1",
    fix="dot(x, y)",
)
def kernel_called_with_too_few_tensors():
    text = "kernel dot(X: float32[n], Y: float32[n]) -> (Z: float32[]) { Z[] = sum[k < n](X[k] * Y[k]) }"
    dot = kiln.parse_kernels(text)["dot"]
    dot(te.placeholder((4,), name="x"))  # <-


@wrong(
    "ARGUMENT_SHAPE",
    "argument Y of dot: dimension 0 is 5, but must be 4 (n, from dimension 0 of X)",
    fix="vectors of one length",
)
def kernel_called_with_other_shapes():
    text = "kernel dot(X: float32[n], Y: float32[n]) -> (Z: float32[]) { Z[] = sum[k < n](X[k] * Y[k]) }"
    dot = kiln.parse_kernels(text)["dot"]
    dot(te.placeholder((4,), name="x"), te.placeholder((5,), name="y"))  # <-


@wrong(
    "MISSING_SIZE",
    "window needs the size w, which no shape gives: call it with w=...",
    fix="window(x, w=3)",
)
def kernel_called_without_a_size():
    text = "kernel window(X: float32[n]) -> (Y: float32[n - w + 1]) { size w  Y[i] = sum[k < w](X[i + k]) }"
    window = kiln.parse_kernels(text)["window"]
    window(te.placeholder((9,), name="x"))  # <-


@wrong(
    "ARGUMENT_TYPE",
    "argument I of pick is int32, but must be int64",
    fix='i.astype("int64")',
)
def kernel_called_with_indices_of_another_type():
    pick = kiln.parse_kernels("kernel pick(X: float32[n], I: int64[m]) -> (Y: float32[m]) { Y[j] = X[I[j]] }")["pick"]
    x = te.placeholder((9,), name="x")
    i = te.placeholder((4,), dtype="int32", name="i")
    pick(x, i)  # <-


@wrong(
    "UNKNOWN_SIZE",
    "window has no size width; its sizes are n, w",
    fix="window(x, w=3)",
)
def kernel_called_with_an_unknown_size():
    text = "kernel window(X: float32[n]) -> (Y: float32[n - w + 1]) { size w  Y[i] = sum[k < w](X[i + k]) }"
    window = kiln.parse_kernels(text)["window"]
    window(te.placeholder((9,), name="x"), width=3)  # <-


@wrong(
    "ARGUMENT_TYPE",
    "argument Y of dot is float64, but X is float32; cast one of them",
    fix="cast one of the two",
)
def kernel_called_with_two_types():
    text = "kernel dot(X: float32[n], Y: float32[n]) -> (Z: float32[]) { Z[] = sum[k < n](X[k] * Y[k]) }"
    dot = kiln.parse_kernels(text)["dot"]
    dot(te.placeholder((4,), name="x"), te.placeholder((4,), "float64", name="y"))  # <-


@wrong(
    "OPERAND_COUNT",
    "topi.elemwise_sum takes at least one tensor",
    fix="at least one tensor",
)
def sum_of_no_tensors():
    topi.elemwise_sum([])  # <-


@wrong(
    "BATCH_DIMS",
    "topi.take: batch_dims must be 0; use topi.gather",
    fix="topi.gather(A, 1, I)",
)
def take_with_batches():
    A, I = te.placeholder((4, 5), name="A"), te.placeholder((4,), "int32", name="I")
    topi.take(A, I, axis=1, batch_dims=1)  # <-


@wrong(
    "TENSORDOT",
    "topi.tensordot: 2 axes of A, but 1 of B",
    fix="as many axes of A as of B",
)
def tensordot_of_unequal_axes():
    A, B = te.placeholder((4, 5), name="A"), te.placeholder((5, 4), name="B")
    topi.tensordot(A, B, [[0, 1], [1]])  # <-


@wrong(
    "LRN",
    "topi.nn.lrn: size is 4, but must be odd",
    fix="size=5",
)
def lrn_of_an_even_size():
    A = te.placeholder((1, 8, 4, 4), name="A")
    topi.nn.lrn(A, 4)  # <-


@wrong(
    "DILATE",
    "topi.nn.dilate: A has 2 dimensions, but there are 1 strides",
    fix="a stride for each dimension: (2, 2)",
)
def dilation_with_too_few_strides():
    A = te.placeholder((4, 5), name="A")
    topi.nn.dilate(A, (2,))  # <-


@wrong(
    "PADDING",
    'topi.nn.conv2d_nchw: unknown padding "SAMEISH"; write an integer, (height, width), (top, left, '
    'bottom, right), "VALID" or "SAME"',
    fix='"SAME", "VALID" or numbers',
)
def unknown_padding():
    data, weight = te.placeholder((1, 3, 8, 8), name="data"), te.placeholder((8, 3, 3, 3), name="weight")
    topi.nn.conv2d(data, weight, 1, "SAMEISH", 1)  # <-


@wrong(
    "PADDING",
    "topi.nn.conv2d_nchw: padding (1, 1, 1) does not fit 2 dimensions; write an integer, (height, "
    'width), (top, left, bottom, right), "VALID" or "SAME"',
    fix="a number, or two",
)
def padding_of_three_numbers():
    data, weight = te.placeholder((1, 3, 8, 8), name="data"), te.placeholder((8, 3, 3, 3), name="weight")
    topi.nn.conv2d(data, weight, 1, (1, 1, 1), 1)  # <-


@wrong(
    "INDEX_TYPE",
    "topi.nn.nll_loss: targets is float32, but classes are integers",
    fix='targets of type "int32"',
)
def classes_of_a_floating_type():
    predictions, targets = te.placeholder((8, 10), name="predictions"), te.placeholder((8,), name="targets")
    topi.nn.nll_loss(predictions, targets)  # <-


@wrong(
    "SIZE",
    "window: w is 0.5, but must be an integer or a size",
    fix='w=3, or w=te.var("w")',
)
def kernel_called_with_a_fraction_as_size():
    text = "kernel window(X: float32[n]) -> (Y: float32[n - w + 1]) { size w  Y[i] = sum[k < w](X[i + k]) }"
    window = kiln.parse_kernels(text)["window"]
    window(te.placeholder((9,), name="x"), w=te.const(0.5))  # <-


@wrong(
    "LAYOUT",
    "topi.nn.conv2d: unknown layout 'OIHX'; known: the letters of OIHW for filters in any order",
    fix='"OIHW"',
)
def unknown_layout_of_filters():
    data, weight = te.placeholder((1, 3, 8, 8), name="data"), te.placeholder((8, 3, 3, 3), name="weight")
    topi.nn.conv2d(data, weight, kernel_layout="OIHX")  # <-


@wrong(
    "BROADCAST",
    "topi.collapse_sum: A has fewer dimensions than the shape wanted",
    fix="a shape that A stretches to",
)
def sum_to_a_larger_rank():
    A = te.placeholder((4, 5), name="A")
    topi.collapse_sum(A, (3, 4, 5))  # <-
