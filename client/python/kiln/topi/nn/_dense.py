"""Layers of products, biases and losses."""

from ..._base import dtypes
from ..._base.error import invalid, public
from ..._definitions import views
from ..._definitions.built_in import operator
from ..._expressions.arithmetic import apply, cast
from ..._expressions.text import shape_text
from .. import _elementwise, _product, _reduction
from .._common import normal_axis, tensor
from .._gather import take
from .._product import agree, as_type, transposed
from .._short import sums_in_float32

__all__ = []


def _export(function):
    __all__.append(function.__name__)
    return public(function)


@_export
@sums_in_float32
def dense(data, weight, bias=None, out_dtype=None, auto_scheduler_rewritten_layout="", meta_schedule_original_shape=None):
    """data @ weight.T + bias; the weight has a row for each output."""
    data, weight = tensor(data, "topi.nn.dense"), tensor(weight, "topi.nn.dense")
    if data.ndim and weight.ndim == 2:
        agree("topi.nn.dense", data, -1, weight, 1)
    data, weight = as_type(data, weight, out_dtype, "topi.nn.dense")
    if bias is None:
        return operator("matmul")(data, transposed(weight, True), name="T_dense")
    bias = views.cast(tensor(bias, "topi.nn.dense"), data.dtype)
    return operator("dense")(data, weight, bias, name="T_dense")


@_export
def embedding(indices, table):
    """The rows of the table that the indices say, a row for each; one out of range is the nearest that is there."""
    table = tensor(table, "topi.nn.embedding")
    if table.ndim != 2:
        raise invalid(
            "ARGUMENT_RANK",
            f"topi.nn.embedding: the table {table.name} has shape {shape_text(table.shape)}, but must have two dimensions: "
            "a row for each word",
        )
    return take(table, tensor(indices, "topi.nn.embedding"), 0)


@_export
def matmul(tensor_a, tensor_b, bias=None, out_dtype=None, transpose_a=False, transpose_b=False,
           auto_scheduler_rewritten_layout="", meta_schedule_original_shape=None):  # fmt: skip
    """tensor_a @ tensor_b + bias, each transposed first if asked; topi.matmul has no bias."""
    if isinstance(bias, bool):
        raise invalid("ARGUMENT_TYPE", f"topi.nn.matmul: the bias is {bias}; write transpose_a={bias}")
    product = _product.matmul(tensor_a, tensor_b, transpose_a, transpose_b, out_dtype)
    return product if bias is None else _elementwise.add(product, tensor(bias, "topi.nn.matmul"))


@_export
def bias_add(data, bias, axis=1):
    """Plus a number for each channel of `axis`."""
    data, bias = tensor(data, "topi.nn.bias_add"), tensor(bias, "topi.nn.bias_add")
    return _elementwise.add(data, of_channel(data, bias, axis, "topi.nn.bias_add"))


def of_channel(data, values, axis, where):
    """One value for each channel of `axis`, to be stretched over the others."""
    axis = normal_axis(data, axis, where)
    if values.ndim != 1:
        raise invalid(
            "ARGUMENT_RANK",
            f"{where}: {values.name} has shape {shape_text(values.shape)}, but must have 1 dimension",
        )
    return views.expanded(values, [axis], data.ndim)


@_export
def scale_shift_nchw(Input, Scale, Shift):
    """Input * Scale + Shift, which have a number for each channel of dimension 1."""
    return _scale_shift(Input, Scale, Shift, 1)


@_export
def scale_shift_nhwc(Input, Scale, Shift):
    """Input * Scale + Shift, which have a number for each channel of the last dimension."""
    return _scale_shift(Input, Scale, Shift, -1)


def _scale_shift(data, scale, shift, axis):
    data, scale, shift = (tensor(x, "topi.nn.scale_shift") for x in (data, scale, shift))
    scaled = _elementwise.multiply(data, of_channel(data, scale, axis, "topi.nn.scale_shift"))
    return _elementwise.add(scaled, of_channel(data, shift, axis, "topi.nn.scale_shift"))


_REDUCTIONS = ("mean", "sum", "none")


def _reduced(losses, reduction, where):
    if reduction not in _REDUCTIONS:
        raise invalid(
            "REDUCTION", f"{where}: unknown reduction {reduction!r}; known: {', '.join(_REDUCTIONS)}"
        )
    if reduction == "none":
        return losses
    total = _reduction.sum(losses)
    if reduction == "sum":
        return total
    count = 1
    for size in losses.shape:
        count = size * count
    return _elementwise.divide(total, count if isinstance(count, int) else count.astype(total.dtype))


@_export
def softmax_cross_entropy(logits, targets, axis=-1, reduction="mean"):
    """-sum(targets * log(softmax(logits))) along `axis`, then its mean or sum over all samples, or none."""
    where = "topi.nn.softmax_cross_entropy"
    logits, targets = tensor(logits, where), tensor(targets, where)
    name = "T_softmax_cross_entropy"
    losses = operator("softmax_cross_entropy")(logits, targets, axis=axis, name=name)
    return _reduced(losses, reduction, where)


@_export
def nll_loss(predictions, targets, weights=None, reduction="mean", ignore_index=None):
    """-predictions at the target class of each sample; classes are dimension 1. `weights` has a factor for
    each class, by whose sum the mean is taken; samples of class `ignore_index` count nothing."""
    where = "topi.nn.nll_loss"
    predictions, targets = tensor(predictions, where), tensor(targets, where)
    if predictions.ndim != targets.ndim + 1:
        raise invalid(
            "ARGUMENT_RANK",
            f"{where}: {predictions.name} has shape {shape_text(predictions.shape)} and "
            f"{targets.name} {shape_text(targets.shape)}; the first must have one dimension more, the "
            "classes in dimension 1",
        )
    if not dtypes.is_int(targets.dtype):
        raise invalid(
            "INDEX_TYPE", f"{where}: {targets.name} is {targets.dtype}, but classes are integers"
        )
    last = views.moved(predictions, 1 if predictions.ndim > 1 else 0, -1)
    losses = operator("nll_loss")(last, views.cast(targets, "int32"), name="T_nll_loss")
    if weights is None and ignore_index is None:
        return _reduced(losses, reduction, where)
    factors = _factors(predictions, targets, weights, ignore_index)
    losses = _elementwise.multiply(losses, factors)
    if reduction != "mean":
        return _reduced(losses, reduction, where)
    return _elementwise.divide(_reduction.sum(losses), _reduction.sum(factors))


def _factors(predictions, targets, weights, ignore_index):
    """What each sample counts."""
    def read(*index):
        label = targets(*index)
        factor = cast(predictions.dtype, 1 if weights is None else weights(label))
        if ignore_index is None:
            return factor
        return apply("select", label == ignore_index, cast(predictions.dtype, 0), factor)

    return _elementwise.identity(views.View("weights", targets.shape, predictions.dtype, read))
