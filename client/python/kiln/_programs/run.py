"""One run of a program: its arguments on their way to the daemon, its progress, its results."""

import numpy as np

from .._base import dtypes
from .._base.error import DeadlineExceeded, NotFound, invalid
from .._definitions.tensor import Tensor
from .._service.array import NDArray, array_on, as_numpy
from .._service.device import device
from .._service.grpc_setup import grpc
from .._service.rpc import failure_of
from ..v1 import program_pb2 as wire, service_pb2
from . import message as messages

# What travels inside a call; larger arrays are uploaded first.
_INLINE_ARRAY = 256 << 10
_INLINE_CALL = 1 << 20
_GRACE = 10  # seconds past its timeout, in which a run must have ended


class ProgramResult:
    """What a run of a program gave.

    Outputs are attributes and items by name; `reports` has for each report an array with its number in every
    step; `steps` counts them, `timings` has seconds (queue, compile, kernel), and `means` those of the reports
    in each epoch.
    """

    def __init__(self, outputs, reports, steps, timings, means):
        self.outputs, self.reports, self.steps, self.timings, self.means = outputs, reports, steps, timings, means

    def __getitem__(self, name):
        return self.outputs[name] if name in self.outputs else self.reports[name]

    def __getattr__(self, name):
        if name in self.__dict__.get("outputs", ()):
            return self.outputs[name]
        raise AttributeError(f"the run has no output {name}; it has {', '.join(self.outputs) or 'none'}")

    def __repr__(self):
        return f"ProgramResult({self.steps} steps, outputs: {', '.join(self.outputs) or 'none'})"


def defined(program):
    """The program's id on its daemon."""
    if program._id is None:
        target = service_pb2.Target(name=program._target, arch=program._arch)
        request = wire.DefineProgramRequest(program=program.message().program, target=target)
        reply = program.connection.call("ProgramService/Define", request, wire.DefineProgramResponse)
        program._id = reply.program_id
    return program._id


def named_feeds(program, feeds):
    """The feeds by tensor; they may be given by name."""
    program.message()  # which knows all inputs
    by_name = {tensor.name: tensor for tensor in program._given}
    found = {}
    for key, value in feeds.items():
        tensor = key if isinstance(key, Tensor) else by_name.get(key)
        kind = program._given.get(tensor)
        if kind not in (messages.INPUT, messages.BATCH):
            known = [t.name for t, k in program._given.items() if k in (messages.INPUT, messages.BATCH)]
            raise invalid(
                "PROGRAM_FEED",
                f"{getattr(key, 'name', key)} is no input of {program.name}; its inputs are {', '.join(known) or 'none'}",
            )
        found[tensor] = value
    return found


def batch_of(program, batch):
    """The rows of a batch: as given, else as the data placeholders say."""
    if batch is not None:
        return batch
    sizes = {
        tensor.shape[0]
        for tensor, kind in program._given.items()
        if kind == messages.BATCH and tensor.shape and isinstance(tensor.shape[0], int)
    }
    if len(sizes) > 1:
        raise invalid(
            "PROGRAM_BATCH", f"the data sets of {program.name} have batches of {' and '.join(map(str, sorted(sizes)))} rows"
        )
    return sizes.pop() if sizes else 0


class Run:
    """A request to run a program; follow() sends it."""

    def __init__(self, program, feeds, steps, epochs, batch, first_step, stop_on_nan, numpy, timeout):
        self.program, self.numpy, self.timeout = program, numpy, timeout
        self._kept, self._inline = [], 0
        if any(kind == messages.BATCH for kind in program._given.values()):
            batch = batch_of(program, batch)
        for what, value in (("steps", steps), ("epochs", epochs), ("first_step", first_step)):
            if value is not None and (not isinstance(value, (int, np.integer)) or value < 0):
                raise invalid("PROGRAM_STEPS", f"{what}= of {program.name} must be a number from 0 on, but is {value!r}")
        self.request = wire.RunProgramRequest(
            steps=steps or 0, epochs=epochs or 0, batch=batch or 0, first_step=first_step,
            stop_on_nan=bool(stop_on_nan), keep=not numpy, timeout=timeout or 0,
            device=program._asked_device,
        )  # fmt: skip
        self._message = program.message()
        feeds = named_feeds(program, feeds)
        self._refuse_missing(feeds)
        for tensor, value in {**feeds, **program._arrays}.items():
            if tensor in self._message.numbers:
                self._give(tensor, value)

    def _refuse_missing(self, feeds):
        for tensor, kind in self.program._given.items():
            if kind in (messages.INPUT, messages.BATCH) and tensor not in feeds:
                what = "data set" if kind == messages.BATCH else "input"
                raise invalid(
                    "PROGRAM_GIVEN", f"{self.program.name} needs {what} {tensor.name}, but run() is given none"
                )

    def _give(self, tensor, value):
        given = self.request.given.add(value=self._message.numbers[tensor])
        if isinstance(value, NDArray) and value._connection is self.program.connection:
            given.argument.tensor = value._id
            self._kept.append(value)
            return
        what = f"{tensor.name} of {self.program.name}"
        if not hasattr(value, "__array__") and not hasattr(value, "__dlpack__"):
            try:
                value = np.asarray(value, dtypes.NUMPY[tensor.dtype])
            except (TypeError, ValueError):
                raise invalid("ARGUMENT_TYPE", f"{what} is no array, but {type(value).__name__}") from None
        values, dtype = as_numpy(value, what)
        if values.nbytes > _INLINE_ARRAY or self._inline + values.nbytes > _INLINE_CALL:
            array = array_on(self.program.connection, values, self.program._device)
            self._kept.append(array)
            given.argument.tensor = array._id
            return
        self._inline += values.nbytes
        inline = given.argument.inline
        inline.type, inline.data = dtypes.NUMBER[dtype], values.tobytes()
        inline.shape.extend(values.shape)

    def follow(self, progress):
        """The result, once all steps are done."""
        for attempt in range(2):
            self.request.program_id = defined(self.program)
            self.request.session = self.program.connection.session
            try:
                return self._follow(_printer(self.program.name) if progress is True else progress)
            except NotFound as error:
                if error.reason != "PROGRAM" or attempt == 1:
                    raise
                self.program._id = None

    def _follow(self, progress):
        connection = self.program.connection
        # The daemon keeps the time, so that what it says comes once the last step is whole.
        limit = None if self.timeout is None else self.timeout + _GRACE
        stream = connection.stream("ProgramService/Run", self.request, wire.ProgramEvent, limit)
        means = []
        try:
            for event in stream:
                if event.HasField("progress"):
                    means.append(list(event.progress.means))
                    self._tell(progress, event.progress)
                else:
                    return self._result(event.result, means)
        except grpc.RpcError as error:
            raise self._explained(failure_of(error, connection.address).error) from None
        finally:
            stream.cancel()
        raise AssertionError("a run that ends without an error has a result")

    def _explained(self, error):
        if self.timeout is None or not isinstance(error, DeadlineExceeded):
            return error
        return DeadlineExceeded(
            f"{self.program.name} did not end within its timeout of {self.timeout:g} s; its parameters are those of the "
            "last whole step",
            "DEADLINE",
        )

    def _tell(self, progress, event):
        if progress is not None:
            names = list(self.program._reports)
            progress(event.epochs or event.steps, dict(zip(names, event.means)), event.seconds)

    def _result(self, result, means):
        names = list(self.program._outputs)
        outputs = {names[each.parameter]: self._array(each) for each in result.outputs}
        reports = {
            name: np.array(series.values)
            for name, series in zip(self.program._reports, result.reports)
        }
        timings = {name: getattr(result.timings, name) for name in ("queue", "compile", "kernel")}
        by_name = [dict(zip(self.program._reports, each)) for each in means]
        return ProgramResult(outputs, reports, result.steps, timings, by_name)

    def _array(self, result):
        dtype, shape = dtypes.NAME[result.type], tuple(result.shape)
        if not result.tensor:
            return np.frombuffer(result.data, dtypes.NUMPY[dtype]).reshape(shape).copy()
        place = device(result.device) if result.device else self.program._device
        array = NDArray(self.program.connection, result.tensor, shape, dtype, place)
        return array.numpy() if self.numpy else array


def _printer(name):
    def show(number, means, seconds):
        values = ", ".join(f"{report} = {mean:.6f}" for report, mean in means.items())
        print(f"{name} {number}: {values}{', ' if values else ''}{seconds:.3f} s", flush=True)

    return show
