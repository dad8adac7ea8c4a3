"""kiln.function: a Python function of tensors, traced once for each set of shapes."""

import functools

import numpy as np

from .._base import dtypes
from .._base.error import invalid, public
from .._definitions.tensor import Tensor
from .._service.array import NDArray
from .program import Program


class TracedFunction:
    """A function of arrays whose body is written on tensors, with te and topi.

    The first call with new shapes runs the body once on placeholders and makes a program of what it returns; later
    ones only run that. `programs` has them by shapes.
    """

    def __init__(self, body, numpy, target, connection):
        functools.update_wrapper(self, body)
        self._body, self._numpy, self._target, self._connection = body, numpy, target, connection
        self.programs = {}

    def __call__(self, *arrays, numpy=None):
        arrays = [value if isinstance(value, NDArray) else np.asarray(value) for value in arrays]
        key = tuple((value.shape, str(value.dtype)) for value in arrays)
        if key not in self.programs:
            self.programs[key] = self._trace(arrays)
        program, inputs, form = self.programs[key]
        wanted = self._numpy if numpy is None else numpy
        result = program.run(dict(zip(inputs, arrays)), numpy=wanted)
        values = list(result.outputs.values())
        return values[0] if form is None else form(values)

    def _trace(self, arrays):
        program = Program(self.__name__, target=self._target, connection=self._connection)
        names = self._body.__code__.co_varnames[: self._body.__code__.co_argcount]
        inputs = []
        for position, value in enumerate(arrays):
            name = names[position] if position < len(names) else f"x{position}"
            inputs.append(program.input(value.shape, dtypes.dtype_name(value.dtype, name), name))
        returned = self._body(*inputs)
        form = None if isinstance(returned, Tensor) else type(returned)
        results = [returned] if form is None else returned
        if form not in (None, tuple, list) or not all(isinstance(each, Tensor) for each in results):
            raise invalid(
                "TRACED_RESULT",
                f"{self.__name__} must return a tensor or a tuple of tensors, but returned {type(returned).__name__}",
            )
        program.output(**{f"out{i}": each for i, each in enumerate(results)})
        return program, inputs, form

    def __repr__(self):
        return f"<kiln.function {self.__name__}, traced for {len(self.programs)} sets of shapes>"


@public
def function(body=None, *, numpy=True, target=None, connection=None):
    """Makes a function of arrays of a function of tensors: `@kiln.function`. Results are numpy arrays, or stay on
    the device with `numpy=False`."""
    if body is None:
        return lambda each: TracedFunction(each, numpy, target, connection)
    if not callable(body):
        raise invalid("TRACED_BODY", f"kiln.function takes a function of tensors, but got {type(body).__name__}")
    return TracedFunction(body, numpy, target, connection)
