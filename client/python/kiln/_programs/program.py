"""kiln.Program: what a step computes from its inputs, and what its parameters become."""

import numpy as np

from .._base import dtypes
from .._base.error import invalid, public
from .._definitions import define
from .._definitions.tensor import Tensor, operations_below
from .._expressions.arithmetic import constant
from .._expressions.expr import Operand
from .._expressions.operators import select
from .._service.array import NDArray, array_on
from .._service.connection import connection_or_default
from .._service.device import cpu, device as device_of
from ..target import as_target
from . import message as messages, random
from .gradients import gradients_of
from .plan import plan_of
from .run import Run


def _copied(tensor):
    """A tensor that a step computes: of a placeholder a copy of it."""
    if tensor.op.kind != "placeholder":
        return tensor
    return define.compute(tensor.shape, lambda *i: tensor(*i), name=f"{tensor.name}_now")


class Program:
    """A step of a computation that is repeated: a training step, an iteration of a solver, a model.

    Placeholders are made by `data` (rows of a data set, a batch a step), `input` (the same in all steps),
    `parameter` (an array that steps change) and `step` (their number); everything else is ordinary te and
    topi. `update` says what a parameter becomes at the end of a step, `report` which number is kept of every
    step, `output` what a run gives back. `run` takes many steps in one call.
    """

    def __init__(self, name="program", target=None, connection=None, device=None, seed=0):
        self.name = name
        self._seed, self._streams = seed, 0
        self._connection = connection
        if device is not None:
            device = device_of(device)
            target = target or ("cuda" if device.kind == "cuda" else "llvm")
        self._asked_device = f"{device.kind}:{device.index}" if device is not None else ""
        self._target, self._arch = as_target(target)
        self._device = device or (device_of("cuda") if self._target == "cuda" else cpu(0))
        self._given = {}  # tensor -> kind
        self._given_names = set()  # of those, as far as they have been looked at
        self._arrays = {}  # parameter -> NDArray
        self._updates = []
        self._reports, self._outputs = {}, {}
        self._until = None
        self._message = None
        self._id = None

    # What a step reads.

    @public
    def data(self, shape, dtype="float32", name="x"):
        """The rows of a data set that one step sees: `shape` is that of a batch."""
        return self._placeholder(messages.BATCH, shape, dtype, name)

    @public
    def input(self, shape, dtype="float32", name="x"):
        """A tensor that is given with each run, the same in all of its steps."""
        return self._placeholder(messages.INPUT, shape, dtype, name)

    @public
    def parameter(self, value, name="w"):
        """An array on the device that updates change: the contents of `value`, or `value` itself where that is
        an array of the daemon."""
        array = value if isinstance(value, NDArray) else self._upload(value, f"parameter {name}")
        tensor = self._placeholder(messages.PARAMETER, array.shape, array._dtype, name)
        self._arrays[tensor] = array
        return tensor

    @public
    def step(self, name="step"):
        """The number of the step, an int64 without dimensions."""
        for tensor, kind in self._given.items():
            if kind == messages.STEP:
                return tensor
        return self._placeholder(messages.STEP, (), "int64", name)

    @public
    def uniform(self, shape, low=0.0, high=1.0, name="uniform"):
        """Random float32 numbers, other ones in each step: the same for the same seed, on every device."""
        numbers = self._random(random.uniform, shape, name)
        if (low, high) == (0, 1):
            return numbers
        return define.compute(numbers.shape, lambda *i: numbers(*i) * float(high - low) + float(low), name=name)

    @public
    def normal(self, shape, mean=0.0, std=1.0, name="normal"):
        """Random float32 numbers of a normal distribution, as uniform()."""
        numbers = self._random(random.normal, shape, name)
        if (mean, std) == (0, 1):
            return numbers
        return define.compute(numbers.shape, lambda *i: numbers(*i) * float(std) + float(mean), name=name)

    @public
    def dropout(self, x, rate, name="dropout"):
        """`x` with each element 0 with probability `rate`, and the others divided by 1 - rate."""
        if not 0 <= rate < 1:
            raise invalid("DROPOUT", f"the rate of dropout must be at least 0 and below 1, but is {rate}")
        x = self._tensor(x, "dropout")
        kept = self.uniform(x.shape, name=f"{name}_uniform")
        scale = constant(1 / (1 - rate), x.dtype)
        return define.compute(
            x.shape, lambda *i: select(kept(*i) >= rate, x(*i) * scale, constant(0.0, x.dtype)), name=name
        )

    def _random(self, of_words, shape, name):
        shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        key = (self._seed, self._streams)
        self._streams += 1
        count = random.size_of(shape, f"{name} of {self.name}")
        return random.spread(random.blocks(count, self.step(), key, name, of_words), shape, name)

    def _placeholder(self, kind, shape, dtype, name):
        self._changed()
        tensor = define.placeholder(shape, dtype, name)
        if len(self._given_names) != len(self._given):  # others come from a file, or from outside
            self._given_names = {other.name for other in self._given}
        if tensor.name in self._given_names:
            raise invalid("PROGRAM_NAME", f"{self.name} has two placeholders {name}; give each a name of its own")
        self._given[tensor] = kind
        self._given_names.add(tensor.name)
        return tensor

    def _upload(self, value, what):
        if not hasattr(value, "__array__"):
            value = np.asarray(value)
        if isinstance(value, np.ndarray) and value.dtype == object:
            raise invalid("ARGUMENT_TYPE", f"{what} of {self.name} is no array, but {type(value).__name__}")
        return array_on(self.connection, value, self._device)

    # What a step does.

    @public
    def gradients(self, loss, parameters=None):
        """What `loss`, a tensor of one element, changes by with each of `parameters` (all of the program's, where
        none are given): a list of tensors, by reverse mode on the daemon. They can be used as any others, and
        differentiated again. Inputs and tensors between may stand in the place of parameters."""
        loss = self._tensor(loss, "loss")
        if parameters is None:
            parameters = list(self._arrays)
        if isinstance(parameters, Tensor):
            parameters = [parameters]
        return gradients_of(self, loss, [self._tensor(each, "gradients") for each in parameters])

    @public
    def minimize(self, loss, optimizer, parameters=None):
        """Each step takes `parameters` (all that are floating numbers, where none are given) down the gradient of
        `loss`, as `optimizer` does it: `minimize(loss, kiln.optimizers.SGD(1e-3, momentum=0.9))`."""
        if parameters is None:
            parameters = [each for each in self._arrays if dtypes.is_float(each.dtype)]
        parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
        if not parameters:
            raise invalid("PROGRAM_UPDATE", f"{self.name} has no parameter to minimize by; make one by program.parameter")
        for parameter in parameters:
            self._refuse_update(self._tensor(parameter, "minimize"))
        for parameter, value in optimizer.apply(self, parameters, self.gradients(loss, parameters)):
            self.update(parameter, value)

    @public
    def update(self, parameter, value):
        """At the end of a step `parameter` becomes `value`."""
        self._changed()
        parameter, value = self._tensor(parameter, "update"), self._tensor(value, "update")
        self._refuse_update(parameter)
        if value.dtype != parameter.dtype or tuple(value.shape) != tuple(parameter.shape):
            raise invalid(
                "PROGRAM_UPDATE",
                f"parameter {parameter.name} is {parameter.dtype}{list(parameter.shape)}, but becomes {value.name}, "
                f"which is {value.dtype}{list(value.shape)}",
            )
        if any(value == other for _, other in self._updates):
            value = define.compute(value.shape, lambda *i: value(*i), name=f"{parameter.name}_next")
        self._updates.append((parameter, _copied(value)))

    def _refuse_update(self, parameter):
        if self._given.get(parameter) != messages.PARAMETER:
            raise invalid(
                "PROGRAM_UPDATE",
                f"{self.name} updates {parameter.name}, which is no parameter of it; make it one by "
                f'program.parameter(values, "{parameter.name}")',
            )
        if any(parameter == other for other, _ in self._updates):
            raise invalid("PROGRAM_UPDATE", f"{self.name} updates {parameter.name} twice")

    @public
    def report(self, **numbers):
        """Tensors of one element whose value is kept of every step: `report(loss=loss)`."""
        self._named(self._reports, numbers, "report")

    @public
    def output(self, **tensors):
        """Tensors that a run gives back as its last step has them: `output(y=y)`."""
        self._named(self._outputs, tensors, "output")

    @public
    def until(self, condition):
        """Steps are taken until `condition`, a tensor of one element, is not 0."""
        self._changed()
        self._until = _copied(self._tensor(condition, "until"))

    def _named(self, into, tensors, what):
        self._changed()
        for name, tensor in tensors.items():
            into[name] = _copied(self._tensor(tensor, f"{what} {name}"))

    def _tensor(self, value, what):
        if isinstance(value, Tensor):
            return value
        if isinstance(value, Operand):  # of numbers, as total * 0.5 of a sum over everything
            return define.compute((), lambda: value, name=what.split()[-1])
        raise invalid(
            "ARGUMENT_TYPE", f"{what} of {self.name} must be a tensor, but is {type(value).__name__}"
        )

    def _changed(self):
        self._message = self._id = None

    # Running.

    @property
    def connection(self):
        self._connection = connection_or_default(self._connection)
        return self._connection

    @public
    def run(
        self, feeds=None, *, steps=None, epochs=None, batch=None, first_step=0, stop_on_nan=False,
        numpy=True, progress=None, timeout=None,
    ):  # fmt: skip
        """Takes steps in one call and returns a ProgramResult.

        `feeds` has an array for each input and data set, by tensor or by name. Data sets are passed over once,
        or `epochs` times, or as far as `steps` steps go. With `numpy` outputs are numpy arrays, else they stay
        on the device. `progress` is called with each epoch's (number, means of the reports, seconds), or True
        to print them.
        """
        run = Run(self, feeds or {}, steps, epochs, batch, first_step, stop_on_nan, numpy, timeout)
        return run.follow(progress)

    @public
    def plan(self, feeds=None, *, batch=None):
        """The kernels of a step, the bytes they move and the memory they share, for the shapes of `feeds` or
        those the placeholders were made with."""
        return plan_of(self, feeds or {}, batch)

    def message(self):
        """The program as it is sent. Placeholders that were made elsewhere are inputs."""
        if self._message is None:
            for op in operations_below([tensor.op for tensor in self._results()]):
                if op.kind == "placeholder" and op.scan is None:
                    self._given.setdefault(op.output(0), messages.INPUT)
            outputs, reports = list(self._outputs.values()), list(self._reports.values())
            self._message = messages.Message(
                self.name, self._given, outputs, reports, self._updates, self._until
            )
        return self._message

    def _results(self):
        until = [self._until] if self._until is not None else []
        updates = (value for _, value in self._updates)
        return [*self._outputs.values(), *self._reports.values(), *updates, *until]

    # Parameters.

    @property
    def parameters(self):
        """The parameters' arrays on the device, by name."""
        return {tensor.name: array for tensor, array in self._arrays.items()}

    @public
    def save(self, path):
        """Writes the parameters to a .npz file."""
        np.savez(path, **{name: array.numpy() for name, array in self.parameters.items()})

    @public
    def load(self, path):
        """Reads the parameters from a .npz file that save wrote."""
        with np.load(path) as saved:
            missing = self.parameters.keys() - set(saved.files)
            if missing:
                raise invalid(
                    "PROGRAM_FILE", f"{path} has no parameter {', '.join(sorted(missing))} of {self.name}"
                )
            for tensor, array in self._arrays.items():
                values = saved[tensor.name]
                if values.shape != array.shape or dtypes.dtype_name(values.dtype, path) != array._dtype:
                    raise invalid(
                        "PROGRAM_FILE",
                        f"parameter {tensor.name} of {self.name} is {array._dtype}{list(array.shape)}, but {path} has "
                        f"{values.dtype}{list(values.shape)}",
                    )
                array.copyfrom(values)
        return self

    def __repr__(self):
        below = operations_below([tensor.op for tensor in self._results()])
        count = sum(op.kind != "placeholder" for op in below)
        return (
            f"Program({self.name}: {len(self._given)} placeholders, {len(self._arrays)} of them parameters, "
            f"{count} operations, {len(self._updates)} updates)"
        )
