"""One call of a function: its arguments on their way to the daemon and back."""

import asyncio
import concurrent.futures
import itertools
import math
import threading
import time

import numpy as np

from .._base import dtypes
from .._base.error import DeadlineExceeded, InvalidArgument, NotFound, called, without_inner_frames
from .._definitions.tensor import Tensor
from ..v1 import service_pb2 as wire
from .local import INLINE as LOCAL_INLINE
from .array import NDArray, as_numpy
from .device import device
from .rpc import failure_of
from .sizes import size_value

# What travels inside a call; larger arrays are uploaded first.
_INLINE = (512 << 10, 2 << 20)  # bytes of an array, and of all of a call
_INLINE_LOCAL = (LOCAL_INLINE, 48 << 10)


def count_message(function, names, given):
    """What is said of a call with a wrong number of arguments."""
    plural = "" if len(names) == 1 else "s"
    return f"{called(function)} takes {len(names)} argument{plural} ({', '.join(names)}), but got {given}"


class Call:
    """The arguments of one call on their way to the daemon and back."""

    def __init__(self, function, args, sizes):
        self.function = function
        self.args = args
        self.sizes = sizes
        self.encoded = b""
        self.prefix = None  # of the function, in the request that was sent last
        self._pieces = ()  # an encoded argument for each parameter
        self.timeout = None  # seconds
        self._deadline = None
        self._out = None  # what was given as out=, which the call returns
        self._inline = 0
        self._device = None  # where it runs
        self.upload_seconds = self.download_seconds = 0.0  # of arrays that do not travel inside the call
        self._kept = []  # arrays that live as long as the call
        self._targets = {}  # parameter -> the numpy array to write into
        self._new_output = NEW_OUTPUT  # what is asked for of an output that was not given

    def marshal(self):
        """Makes the arguments' part of the request."""
        parameters = self.function._parameters
        given = self._by_position()
        self._add_named(given)
        self._device = self._device_of(given)
        self.take([self._argument(position, parameter, given) for position, parameter in enumerate(parameters)])
        self._refuse_shared_outputs()
        if self.sizes:
            self.encoded += wire.RunRequest(sizes=self.sizes).SerializeToString()

    def take(self, pieces):
        """Takes an encoded argument for each parameter."""
        self._pieces = pieces
        self.encoded = b"".join(pieces)

    @property
    def repeatable(self):
        """Whether the call is the same the second time: one that overwrites its own input is not."""
        outputs = {piece for piece, p in zip(self._pieces, self.function._parameters) if p.output}
        return not any(piece in outputs for piece, p in zip(self._pieces, self.function._parameters) if not p.output)

    def _device_of(self, given):
        """Where the call runs: at its arrays, or on the first device of the function's target."""
        default = self.function.device
        places = (value.device for value in given.values() if isinstance(value, NDArray))
        return next((place for place in places if place.kind == default.kind), default)

    def _by_position(self):
        """The values by the positions of their parameters: for all of them, or for the inputs; fewer, where others come
        by name."""
        function, count = self.function, len(self.args)
        if count == len(function._parameters):
            return dict(enumerate(self.args))
        inputs = [i for i, p in enumerate(function._parameters) if not p.output]
        named = self.sizes.keys() & set(function._names)
        if count < len(inputs) and not named:
            self._refuse_unknown_names()
        if count > len(inputs) or (count < len(inputs) and not named):
            raise InvalidArgument(count_message(function.entry_name, function._names, count), "ARGUMENT_COUNT")
        return dict(zip(inputs, self.args))

    def _refuse_unknown_names(self):
        function = self.function
        known = {*function._request.source_map.variables, "out", "timeout"}
        for name in self.sizes:
            if name not in known:
                raise InvalidArgument(
                    f"{called(function.entry_name)} has no argument or size {name}; its arguments are "
                    f"{', '.join(function._names)}",
                    "ARGUMENT_NAME",
                )

    def _add_named(self, given):
        """Adds f(A=a) and f(a, out=c) to the values; the sizes alone are left by name."""
        function, names = self.function, self.function._names
        called_by = called(function.entry_name)
        named = [(names.index(name), self.sizes[name]) for name in self.sizes if name in names]
        sizes = {name: value for name, value in self.sizes.items() if name not in names}
        if "out" in sizes and "out" not in function._request.source_map.variables:
            self._out = sizes.pop("out")
            out = self._out if isinstance(self._out, tuple) else (self._out,)
            if self._out is None:
                out = ()
            elif len(out) != len(function._outputs):
                outputs = ", ".join(names[i] for i in function._outputs)
                raise InvalidArgument(
                    f"{called_by} writes {outputs}, but out= holds {len(out)} arrays", "ARGUMENT_COUNT"
                )
            named += zip(function._outputs, out)
        if "timeout" in sizes and "timeout" not in function._request.source_map.variables:
            self._limit(sizes.pop("timeout"), called_by)
        for position, value in named:
            if position in given:
                raise InvalidArgument(f"{called_by} got {names[position]} twice", "ARGUMENT_NAME")
            given[position] = value
        for position, parameter in enumerate(function._parameters):
            if position not in given and not parameter.output:
                raise InvalidArgument(f"{called_by} lacks its input {names[position]}", "ARGUMENT_COUNT")
        self.sizes = {name: size_value(called_by, name, value) for name, value in sizes.items()}

    def _limit(self, timeout, called_by):
        if timeout is None:
            return
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
            raise InvalidArgument(
                f"{called_by}: the timeout must be a number of seconds above 0, but is {timeout!r}", "TIMEOUT"
            )
        self.timeout = timeout
        self._deadline = time.monotonic() + timeout

    def seconds_left(self):
        """Until the call must have ended; None where it has all the time."""
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 1e-3)

    def explained(self, error):
        """The error, in the call's own words where its time was over."""
        if self.timeout is None or not isinstance(error, DeadlineExceeded):
            return error
        return DeadlineExceeded(
            f"{called(self.function.entry_name)} did not end within its timeout of {self.timeout:g} s", "DEADLINE"
        )

    def _argument(self, position, parameter, given):
        if position not in given:
            return self._new_output
        value = given[position]
        if isinstance(value, NDArray):
            if value._connection is self.function._connection:
                return value._wire
            if parameter.output:
                raise self._wrong(parameter, "lives on another daemon", "OTHER_CONNECTION")
            value = value.numpy()
        if parameter.output:
            return self._output(position, parameter, value)
        return self._input(parameter, value)

    def _input(self, parameter, value):
        what = f"argument {parameter.name} of {called(self.function.entry_name)}"
        if value is None:
            raise self._wrong(parameter, "is no array, but None", "ARGUMENT_TYPE")
        if not hasattr(value, "__array__") and not hasattr(value, "__dlpack__"):
            try:
                value = np.asarray(value, dtypes.NUMPY[dtypes.NAME[parameter.type]])
            except (TypeError, ValueError, OverflowError):
                is_what = type(value).__name__
                if isinstance(value, Tensor):
                    is_what = f"the description of tensor {value.name}; pass an array"
                raise self._wrong(parameter, f"is no array, but {is_what}", "ARGUMENT_TYPE") from None
        values, dtype = as_numpy(value, what, dtypes.NAME[parameter.type])
        each, all_of_them = _INLINE_LOCAL if self.function._connection.local else _INLINE
        if values.nbytes > each or self._inline + values.nbytes > all_of_them:
            begin = time.perf_counter()
            array = self.function._connection.array(values, self._device)
            self.upload_seconds += time.perf_counter() - begin
            self._kept.append(array)
            return array._wire
        self._inline += values.nbytes
        inline = wire.Inline(type=dtypes.NUMBER[dtype], shape=values.shape, data=values.tobytes())
        return _encoded(wire.Argument(inline=inline))

    def _output(self, position, parameter, value):
        if not isinstance(value, np.ndarray) or not value.flags.writeable:
            is_what = f"is {type(value).__name__}, but an output must be an NDArray or a numpy array"
            if isinstance(value, np.ndarray):
                is_what = "is a numpy array that may not be written, but an output is written"
            raise self._wrong(parameter, is_what, "ARGUMENT_TYPE")
        if value.dtype == np.uint16 and dtypes.NAME[parameter.type] == "bfloat16":
            value = value.view(dtypes.NUMPY["bfloat16"])
        dtype = dtypes.dtype_name(value.dtype, f"argument {parameter.name}")
        self._targets[position] = value
        inline = wire.Inline(type=dtypes.NUMBER[dtype], shape=value.shape)
        return _encoded(wire.Argument(inline=inline))

    def _refuse_shared_outputs(self):
        """On the daemon each numpy output has memory of its own, so only here it is seen that two share theirs."""
        if len(self._targets) < 2:
            return
        names = self.function._names
        for (i, a), (j, b) in itertools.combinations(self._targets.items(), 2):
            if share_memory(a, b):
                raise InvalidArgument(
                    f"arguments {names[i]} and {names[j]} of {called(self.function.entry_name)} are both written, but share "
                    "memory",
                    "ARGUMENT_OVERLAP",
                )

    def _wrong(self, parameter, text, reason):
        message = f"argument {parameter.name} of {called(self.function.entry_name)} {text}"
        return InvalidArgument(message, reason)

    def finish(self, encoded):
        """Writes into the numpy outputs and returns the new arrays."""
        function, connection = self.function, self.function._connection
        function._reply = encoded
        made = []
        for result in wire.RunResponse.FromString(encoded).results:
            array = None
            if result.tensor:
                array = kept_array(function, result)
            target = self._targets.get(result.parameter)
            if target is None:
                made.append(self._made(result, encoded, array))
            elif array is not None:
                begin = time.perf_counter()
                connection.download(array._id, out=target)
                self.download_seconds += time.perf_counter() - begin
            elif result.WhichOneof("value") == "region":
                begin = time.perf_counter()
                target[...] = contents(result, encoded)
                self.download_seconds += time.perf_counter() - begin
            else:
                target[...] = contents(result, encoded)
        function._transfers = (self.upload_seconds, self.download_seconds)
        if self._out is not None:
            return self._out
        return _one_or_all(made)

    def _made(self, result, encoded, array):
        """What the call returns of an output that was not given: what stays on the daemon."""
        return array


def share_memory(a, b):
    try:
        return np.may_share_memory(a, b) and np.shares_memory(a, b, max_work=10_000)
    except np.exceptions.TooHardError if hasattr(np, "exceptions") else np.TooHardError:
        return True


def contents(result, encoded):
    """The values that came with the reply."""
    dtype = dtypes.NUMPY[dtypes.NAME[result.type]]
    if result.WhichOneof("value") == "region":
        size = math.prod(result.shape) * dtype.itemsize
        return encoded.memory[result.region.index][:size].view(dtype).reshape(result.shape)
    return np.frombuffer(result.data, dtype).reshape(result.shape)


def new_arrays(function, results):
    """What a call returns whose results all stay on the daemon."""
    return _one_or_all([kept_array(function, result) for result in results])


def kept_array(function, result):
    """A result that stays where it was computed."""
    place = device(result.device) if result.device else function.device
    return NDArray(function._connection, result.tensor, tuple(result.shape), dtypes.NAME[result.type], place)


def _one_or_all(arrays):
    return None if not arrays else arrays[0] if len(arrays) == 1 else tuple(arrays)


def _encoded(argument):
    return wire.RunRequest(arguments=[argument]).SerializeToString()


NEW_OUTPUT = _encoded(wire.Argument(output=wire.OutputRequest(keep=True)))
FETCHED_OUTPUT = _encoded(wire.Argument(output=wire.OutputRequest()))


class Future(concurrent.futures.Future):
    """A call that runs on the daemon; `await` takes it as well, and cancelling the task cancels the call."""

    def __init__(self, function, call):
        super().__init__()
        self._function = function
        self._call = call
        call.prefix = function._prefix
        request = call.prefix + call.encoded
        self._rpc = function._connection.run_future(request, self._done, timeout=call.seconds_left())

    def __await__(self):
        return asyncio.wrap_future(self).__await__()

    def cancel(self):
        """Cancels the call on the daemon, unless it has ended."""
        return not self.done() and self._rpc.cancel()

    def running(self):
        return not self.done()

    def _done(self, rpc):
        if rpc.cancelled():
            super().cancel()
            self.set_running_or_notify_cancel()
            return
        error = rpc.exception()
        if error is None:
            self._settle(rpc.result)
            return
        failure = failure_of(error, self._function._connection.address)
        if isinstance(failure.error, NotFound) or failure.pause is not None or failure.transport:
            # Repeating takes calls of its own, for which this thread of gRPC is not the place.
            again = lambda: self._function._reply_to(self._call, error)  # noqa: E731
            threading.Thread(target=self._settle, args=(again,), daemon=True).start()
        else:
            self._fail(self._call.explained(failure.error))

    def _settle(self, reply):
        try:
            result = self._call.finish(reply())
        except Exception as error:
            self._fail(error)
            return
        self.set_running_or_notify_cancel()
        self.set_result(result)

    def _fail(self, error):
        self.set_running_or_notify_cancel()
        self.set_exception(without_inner_frames(error))
