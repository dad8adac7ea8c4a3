"""Normalizations."""

from ..._base.error import invalid, public
from ..._definitions import define, views
from ..._definitions.built_in import operator
from ..._expressions import reduce
from ..._expressions.arithmetic import apply, cast
from .. import _elementwise
from .._common import normal_axes, normal_axis, tensor
from .._reduction import mean as mean_of, sum as sum_of, variance_around
from .._shape import reshape
from .._short import computed_in_float32
from ._dense import of_channel

__all__ = []


def _export(function):
    __all__.append(function.__name__)
    return public(function)


@_export
def batch_norm(
    data, gamma, beta, moving_mean, moving_var, axis=1, epsilon=1e-5, center=True, scale=True,
    training=False, momentum=0.1,
):  # fmt: skip
    """(data - mean) / sqrt(variance + epsilon) * gamma + beta for each channel of `axis`. Gives [result, mean,
    variance] as topi does. In `training` mean and variance are those of the data; those that are given move
    by `momentum` towards them."""
    where = "topi.nn.batch_norm"
    data = tensor(data, where)
    own_mean, own_var = moving_mean, moving_var = tensor(moving_mean, where), tensor(moving_var, where)
    if training:
        channel = normal_axis(data, axis, where)
        others = [d for d in range(data.ndim) if d != channel]
        own_mean = middle = mean_of(data, others)
        own_var = variance_around(data, lambda index: middle(index[channel]), others, False)
        moving_mean = _moved(moving_mean, own_mean, momentum, "moving_mean")
        moving_var = _moved(moving_var, own_var, momentum, "moving_var")
    gamma, beta, own_mean, own_var = (
        of_channel(data, tensor(each, where), axis, where) for each in (gamma, beta, own_mean, own_var)
    )
    result = operator("batch_norm")(
        data, gamma if scale else 1, beta if center else 0, own_mean, own_var, epsilon,
        name="T_batch_norm",
    )  # fmt: skip
    return [result, moving_mean, moving_var]


def _moved(old, new, momentum, name):
    kept, taken = cast(old.dtype, 1 - momentum), cast(old.dtype, momentum)
    return define.compute(old.shape, lambda *i: old(*i) * kept + new(*i) * taken, name=f"T_{name}")


@_export
def instance_norm(data, gamma, beta, axis, epsilon=1e-5):
    """To mean 0 and variance 1 along the axes, each sample and channel for itself; gamma and beta have a number for each
    channel of dimension 1."""
    where = "topi.nn.instance_norm"
    data = tensor(data, where)
    return _standardised(data, normal_axes(data, axis, where), gamma, beta, epsilon, where)


@_export
def group_norm(data, gamma, beta, num_groups, channel_axis, axes, epsilon=1e-5):
    """To mean 0 and variance 1 along the axes and over the channels of each group; gamma and beta have a number for each
    channel."""
    where = "topi.nn.group_norm"
    data, gamma, beta = (tensor(each, where) for each in (data, gamma, beta))
    channel = normal_axis(data, channel_axis, where)
    shape = [*data.shape[:channel], num_groups, data.shape[channel] // num_groups, *data.shape[channel + 1 :]]
    inside = [d + (d > channel) for d in normal_axes(data, axes, where)] + [channel + 1]
    split = _standardised(reshape(data, shape), sorted(inside), None, None, epsilon, where)
    return _scaled(reshape(split, data.shape), gamma, beta, channel)


def _standardised(data, axes, gamma, beta, epsilon, where):
    def place(index):
        return [0 if d in axes else i for d, i in enumerate(index)]

    middle = mean_of(data, axes, keepdims=True)
    spread = variance_around(data, lambda index: middle(*place(index)), axes, True)

    def body(*index):
        at = place(index)
        return (data(*index) - middle(*at)) * apply("rsqrt", spread(*at) + cast(data.dtype, epsilon))

    result = define.compute(data.shape, body, name="T_standard")
    if gamma is None:
        return result
    return _scaled(result, tensor(gamma, where), None if beta is None else tensor(beta, where), 1)


def _scaled(data, gamma, beta, axis):
    def body(*index):
        value = data(*index) * gamma(index[axis])
        return value if beta is None else value + beta(index[axis])

    return define.compute(data.shape, body, name="T_scaled")


@_export
@computed_in_float32
def layer_norm(data, gamma, beta, axis=-1, epsilon=1e-5):
    """To mean 0 and variance 1 along `axis` (one or several), then scaled by gamma and shifted by beta,
    which have the shape of these dimensions."""
    where = "topi.nn.layer_norm"
    data, gamma = tensor(data, where), tensor(gamma, where)
    axes = normal_axes(data, axis, where)
    beta = views.View("0", gamma.shape, gamma.dtype, lambda *_: cast(gamma.dtype, 0)) if beta is None else tensor(beta, where)
    if len(axes) == 1:
        return operator("layer_norm")(
            data, gamma, beta, epsilon, axis=axes[0], name="T_layer_norm"
        )
    return _over_several(data, gamma, beta, axes, epsilon)


def _over_several(data, gamma, beta, axes, epsilon):
    """As one row of all the dimensions: a view, since its elements are only read."""
    kept = [d for d in range(data.ndim) if d not in axes]
    count = 1
    for d in axes:
        count = data.shape[d] * count

    def mean_of(read, name):
        def body(*index):
            outer = dict(zip(kept, index))
            over = {d: define.reduce_axis((0, data.shape[d]), name=f"k{d}") for d in axes}
            place = [over.get(d, outer.get(d)) for d in range(data.ndim)]
            total = reduce.sum(read(place, outer), axis=list(over.values()))
            return total / cast(data.dtype, count)

        return define.compute([data.shape[d] for d in kept], body, name=name)

    mean = mean_of(lambda place, _: data(*place), "mean")

    def deviation(place, outer):
        difference = data(*place) - mean(*(outer[d] for d in kept))
        return difference * difference

    variance = mean_of(deviation, "variance")

    def body(*index):
        outer, inner = [index[d] for d in kept], [index[d] for d in axes]
        scaled = (data(*index) - mean(*outer)) * apply("rsqrt", variance(*outer) + epsilon)
        return scaled * gamma(*inner) + beta(*inner)

    return define.compute(data.shape, body, name="T_layer_norm")


@_export
@computed_in_float32
def rms_norm(data, weight, axis=-1, epsilon=1e-5):
    """Divided by the root mean square along `axis`, then scaled."""
    where = "topi.nn.rms_norm"
    data, weight = tensor(data, where), tensor(weight, where)
    axis = normal_axis(data, axis[0] if isinstance(axis, (list, tuple)) else axis, where)
    return operator("rms_norm")(data, weight, epsilon, axis=axis, name="T_rms_norm")


@_export
def l2_normalize(data, eps, axis=None):
    """Divided by the length, which is at least sqrt(eps), along `axis`; by default over all dimensions."""
    where = "topi.nn.l2_normalize"
    data = tensor(data, where)
    axes = normal_axes(data, axis, where)
    if len(axes) == 1:
        return operator("l2_normalize")(data, eps, axis=axes[0], name="T_l2_normalize")
    square = sum_of(_elementwise.multiply(data, data), axes, keepdims=True)
    return _elementwise.divide(data, _elementwise.sqrt(_elementwise.maximum(square, eps)))


@_export
def lrn(data, size, axis=1, alpha=0.0001, beta=0.75, bias=2):
    """Divided by (bias + alpha * mean of squares)^beta of the `size` channels around each."""
    data = tensor(data, "topi.nn.lrn")
    if size % 2 == 0:
        raise invalid("LRN", f"topi.nn.lrn: size is {size}, but must be odd")
    return operator("lrn")(data, alpha, beta, bias, axis=axis, window=size, name="T_lrn")
