"""What a loss of a program changes by with its parameters: te.gradient, of one number."""

from .._base.error import invalid
from .._definitions import define
from .._expressions import size_math
from .._expressions.text import shape_text
from .._service.gradient import gradient


def gradients_of(program, loss, inputs):
    """A gradient of the shape of each input."""
    if not all(size_math.equal(size, 1) for size in loss.shape):
        raise invalid(
            "PROGRAM_NUMBER",
            f"the loss {loss.name} of {program.name} has shape {shape_text(loss.shape)}, but must have one element; "
            f"take topi.sum({loss.name})",
        )
    if loss.ndim:  # else the gradient had dimensions of 1 in front
        whole = loss
        loss = define.compute((), lambda: whole(*[0] * whole.ndim), name=f"{whole.name}_0")
    return gradient(loss, inputs, connection=program.connection)
