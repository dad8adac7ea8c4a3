"""Activations and softmax."""

from ..._base.error import public
from ..._definitions import views
from ..._definitions.built_in import operator
from .._common import normal_axis, tensor
from .._short import computed_in_float32

__all__ = []


def _export(function):
    __all__.append(function.__name__)
    return public(function)


@_export
def relu(x):
    """x where it is positive, else 0."""
    return operator("relu")(tensor(x, "topi.nn.relu"), name="T_relu")


@_export
def relu_gradient(x, gradient):
    """The gradient where x is positive, else 0."""
    x, gradient = tensor(x, "topi.nn.relu_gradient"), tensor(gradient, "topi.nn.relu_gradient")
    return operator("relu_gradient")(x, gradient, name="T_relu_gradient")


@_export
def leaky_relu(x, alpha):
    """x where it is positive, else alpha * x."""
    return operator("leaky_relu")(tensor(x, "topi.nn.leaky_relu"), alpha, name="T_leaky_relu")


@_export
def prelu(x, slope, axis=1):
    """leaky_relu with a slope for each channel of `axis`."""
    x, slope = tensor(x, "topi.nn.prelu"), tensor(slope, "topi.nn.prelu")
    axis = normal_axis(x, axis, "topi.nn.prelu")
    return operator("leaky_relu")(x, views.expanded(slope, [axis], x.ndim), name="T_prelu")


@_export
def elu(x, alpha=1.0):
    """x where it is positive, else alpha * (exp(x) - 1)."""
    return operator("elu")(tensor(x, "topi.nn.elu"), alpha, name="T_elu")


def _simple(name, doc):
    def activation(x):
        return operator(name)(tensor(x, f"topi.nn.{name}"), name=f"T_{name}")

    activation.__name__ = activation.__qualname__ = name
    activation.__doc__ = doc
    globals()[name] = _export(activation)


_simple("gelu", "x * Phi(x), with the distribution of the normal law.")
_simple("silu", "x * sigmoid(x).")
_simple("softplus", "log(1 + exp(x)).")
_simple("hard_sigmoid", "x / 6 + 0.5, kept between 0 and 1.")


@_export
@computed_in_float32
def softmax(x, axis=-1):
    """exp(x) over its sum along `axis`."""
    return operator("softmax")(tensor(x, "topi.nn.softmax"), axis=axis, name="T_softmax")


@_export
def softmax_common(x, axis, use_fast_exp):
    """As softmax, whose exponential is fast by itself."""
    return softmax(x, axis)


@_export
@computed_in_float32
def log_softmax(x, axis=-1):
    """The logarithm of softmax."""
    return operator("log_softmax")(tensor(x, "topi.nn.log_softmax"), axis=axis, name="T_log_softmax")


fast_softmax = softmax
__all__.append("fast_softmax")
