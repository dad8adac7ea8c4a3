"""How parameters go down their gradients: `program.minimize(loss, kiln.optimizers.Adam(1e-3))`.

What an optimizer keeps of a parameter is itself a parameter of the program (`w_momentum`, `w_mean`), so it stays on the
device and is saved and loaded with it. Rates are numbers, or tensors without dimensions: a schedule of
`program.step()`, or an input of each run.
"""

import numpy as np

from ._base import dtypes
from ._base.error import invalid, public
from ._definitions import define
from ._definitions.tensor import Tensor
from ._expressions.arithmetic import as_expr, cast, constant
from ._expressions.operators import power, sqrt

__all__ = ["SGD", "Adam"]


def _rate(value):
    if isinstance(value, Tensor) and value.ndim == 0:
        return value
    if isinstance(value, (int, float, np.number)) and value >= 0:
        return float(value)
    raise invalid(
        "OPTIMIZER", f"the rate of an optimizer must be a number from 0 on, or a tensor without dimensions, but is {value!r}"
    )


def _fraction(value, what):
    if not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise invalid("OPTIMIZER", f"{what} must be at least 0 and below 1, but is {value!r}")
    return float(value)


def _number(value, dtype):
    """A rate as a factor of elements of this type."""
    return cast(dtype, as_expr(value())) if isinstance(value, Tensor) else constant(value, dtype)


def _kept(program, parameter, what):
    """What is remembered of a parameter: zeros at first."""
    zeros = np.zeros(parameter.shape, dtypes.NUMPY[parameter.dtype])
    return program.parameter(zeros, f"{parameter.name}_{what}")


def _of_elements(parameter, what, element):
    return define.compute(parameter.shape, element, name=f"{parameter.name}_{what}")


class SGD:
    """Steps of `rate` against the gradient. With `momentum`, against a velocity of which that much is left after
    each step; `nesterov` looks one step of it ahead. `weight_decay` adds that much of a parameter to its gradient."""

    @public
    def __init__(self, rate=1e-2, momentum=0.0, nesterov=False, weight_decay=0.0):
        self.rate, self.weight_decay = _rate(rate), _rate(weight_decay)
        self.momentum, self.nesterov = _fraction(momentum, "the momentum of SGD"), nesterov
        if nesterov and not momentum:
            raise invalid("OPTIMIZER", "SGD with nesterov=True needs a momentum, as in SGD(1e-2, momentum=0.9, nesterov=True)")

    def apply(self, program, parameters, gradients):
        """What each parameter becomes, and what is kept of it: pairs for program.update."""
        return [pair for each in zip(parameters, gradients) for pair in self._of(program, *each)]

    def _of(self, program, w, gradient):
        rate, decay = (lambda: _number(self.rate, w.dtype)), self.weight_decay

        def slope(*i):
            return gradient(*i) + w(*i) * _number(decay, w.dtype) if decay != 0 else gradient(*i)

        if not self.momentum:
            return [(w, _of_elements(w, "next", lambda *i: w(*i) - slope(*i) * rate()))]
        velocity, left = _kept(program, w, "momentum"), constant(self.momentum, w.dtype)
        now = _of_elements(w, "velocity", lambda *i: velocity(*i) * left + slope(*i))
        ahead = (lambda *i: slope(*i) + now(*i) * left) if self.nesterov else now
        return [(velocity, now), (w, _of_elements(w, "next", lambda *i: w(*i) - ahead(*i) * rate()))]


class Adam:
    """Steps of `rate` times the running mean of the gradient over the root of that of its square (Kingma and Ba, 2015).
    `weight_decay` takes that much of a parameter, times the rate, off it in each step (AdamW)."""

    @public
    def __init__(self, rate=1e-3, betas=(0.9, 0.999), epsilon=1e-8, weight_decay=0.0):
        self.rate, self.weight_decay = _rate(rate), _rate(weight_decay)
        self.betas = tuple(_fraction(beta, "a beta of Adam") for beta in betas)
        self.epsilon = float(epsilon)

    def apply(self, program, parameters, gradients):
        """What each parameter becomes, and what is kept of it: pairs for program.update."""
        before = program.parameter(np.int64(0), f"{parameters[0].name}_count")
        count = define.compute((), lambda: before() + 1, name=f"{parameters[0].name}_turn")
        # One over what the running means lack of the whole, as they began with zeros.
        whole = [
            define.compute((), lambda beta=beta: 1.0 / (1.0 - power(constant(beta, "float64"), cast("float64", count()))))
            for beta in self.betas
        ]
        updates = [(before, count)]
        for parameter, gradient in zip(parameters, gradients):
            updates += self._of(program, parameter, gradient, whole)
        return updates

    def _of(self, program, w, gradient, whole):
        first, second = (constant(beta, w.dtype) for beta in self.betas)
        mean_before, square_before = _kept(program, w, "mean"), _kept(program, w, "square")
        mean = _of_elements(w, "mean_next", lambda *i: mean_before(*i) * first + gradient(*i) * (1 - first))
        square = _of_elements(
            w, "square_next", lambda *i: square_before(*i) * second + gradient(*i) * gradient(*i) * (1 - second)
        )

        def element(*i):
            unbiased, spread = mean(*i) * _number(whole[0], w.dtype), square(*i) * _number(whole[1], w.dtype)
            step = unbiased / (sqrt(spread) + constant(self.epsilon, w.dtype))
            if self.weight_decay != 0:
                step = step + w(*i) * _number(self.weight_decay, w.dtype)
            return w(*i) - step * _number(self.rate, w.dtype)

        return [(mean_before, mean), (square_before, square), (w, _of_elements(w, "next", element))]
