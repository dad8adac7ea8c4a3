"""A compiled kernel that can be called."""

import concurrent.futures
import json
import statistics
import threading

import numpy as np

from . import _dtype
from ._array import NDArray, as_numpy
from ._device import Device, cpu
from ._error import InvalidArgument, NotFound, invalid, public, unsupported, without_inner_frames
from ._grpc import grpc
from ._rpc import failure_of
from .v1 import service_pb2 as wire

# What travels inside a call; larger arrays are uploaded first.
_INLINE_ARRAY = 512 << 10
_INLINE_CALL = 2 << 20

_CACHE = {1: "compiled", 2: "memory", 3: "disk", 4: "shared"}


class Function:
    """A compiled kernel. Called with all arguments it writes into the outputs among them; called with
    the inputs alone it returns an NDArray, or a tuple of them in argument order."""

    def __init__(self, connection, request):
        self._connection = connection
        self._request = request
        self._lock = threading.Lock()
        self.entry_name = request.source_map.kernel
        self._compile()
        self._names = [p.name for p in self._parameters]
        self._outputs = [i for i, p in enumerate(self._parameters) if p.output]
        self._count = len(self._parameters)

    def _compile(self):
        reply = self._connection.call(
            "KernelService/Compile", self._request, wire.CompileResponse
        )
        self._kernel_id = reply.kernel_id
        self._compiled = reply
        self._parameters = list(reply.parameters)
        self._reply = None
        # The part of a RunRequest that is the same in every call.
        self._session = self._connection.session
        self._prefix = wire.RunRequest(
            kernel_id=reply.kernel_id, session=self._session
        ).SerializeToString()

    # Calls.

    def __call__(self, *args, **sizes):
        connection = self._connection
        if len(args) == self._count and not sizes:
            pieces = [self._prefix]
            for arg in args:
                if arg.__class__ is not NDArray or arg._connection is not connection:
                    break
                pieces.append(arg._wire)
            else:
                try:
                    self._reply = connection.run_bytes(b"".join(pieces))
                    return None
                except grpc.RpcError as error:
                    return self._run(_Call(self, args, sizes), error)
        return self._run(_Call(self, args, sizes))

    @public
    def _run(self, call, error=None):
        call.marshal()
        return call.finish(self._reply_to(call, error))

    def _reply_to(self, call, error=None):
        """The daemon's reply. `error` is what a first attempt ran into."""
        self._connection.collect()
        failed = [error] if error is not None else []

        def attempt():
            if failed:
                raise failed.pop()
            return self._connection.run_bytes(self._prefix + call.encoded)

        for _ in range(2):  # a restarted daemon has neither the kernel nor the session
            try:
                return self._connection.repeated(attempt, call.repeatable)
            except NotFound as error:
                self._recompile(error)
        return self._connection.repeated(attempt, call.repeatable)

    def _recompile(self, error):
        """After the daemon has forgotten the kernel or the session, or is another one than before."""
        if error.reason not in ("KERNEL", "SESSION"):
            raise error
        with self._lock:
            if error.reason == "SESSION":
                self._connection.renew(self._session)
            self._compile()

    @public
    def submit(self, *args, **sizes):
        """As a call, but returns a Future at once; cancelling it cancels the call on the daemon."""
        self._connection.check_open()
        call = _Call(self, args, sizes)
        call.marshal()
        return Future(self, call)

    @public
    def time_evaluator(self, func_name=None, dev=None, number=10, repeat=1, **ignored):
        """A function of the arguments that measures `repeat` times the mean of `number` runs."""
        if number < 1 or repeat < 1:
            raise invalid("TIME_EVALUATOR", "time_evaluator: number and repeat must be at least 1")

        @public
        def evaluate(*args, **sizes):
            call = _Call(self, args, sizes)
            call.marshal()
            call.encoded += wire.RunRequest(repeat=number, measurements=repeat).SerializeToString()
            reply = self._reply_to(call)
            call.finish(reply)
            return ProfileResult(list(wire.RunResponse.FromString(reply).measured))

        return evaluate

    # What is known of it.

    @property
    def timings(self):
        """Of the last call: a dict of seconds (queue, compile, upload, kernel, download) and `cache`."""
        reply = self._reply
        timings = self._compiled.timings
        if reply is not None:
            timings = wire.RunResponse.FromString(reply).timings
        cache = timings.cache or self._compiled.cache
        seconds = ("queue", "compile", "upload", "kernel", "download")
        return {**{key: getattr(timings, key) for key in seconds}, "cache": _CACHE.get(cache, "")}

    @public
    def source(self, kind):
        """The kernel as "lowered", "llvm", "asm", "cuda" or "ptx"."""
        return self._inspect(kind).text

    @public
    def get_source(self, fmt=""):
        """LLVM IR or CUDA C."""
        return self._inspect(fmt or self._request.target.name).text

    @public
    def report(self):
        """What the compiler did: guards, proved, launches, schedule, notes, kernels."""
        return json.loads(self._inspect("").report_json)

    def _inspect(self, source):
        def ask():
            request = wire.InspectRequest(kernel_id=self._kernel_id, source=source)
            return self._connection.call("KernelService/Inspect", request, wire.InspectResponse)

        try:
            return ask()
        except NotFound as error:
            self._recompile(error)
            return ask()

    @property
    def device(self):
        return Device("cuda", 0) if self._request.target.name == "cuda" else cpu(0)

    @property
    def imported_modules(self):
        """The device code of a CUDA kernel, as a list of one module."""
        return [DeviceModule(self)] if self._request.target.name == "cuda" else []

    @property
    def entry_func(self):
        return self

    @public
    def export_library(self, path, *args, **kwargs):
        """Not part of this version."""
        raise unsupported(
            "NOT_IN_THIS_VERSION",
            "saved modules are not part of this version of Kiln; build again: the daemon's cache has it",
        )

    save = export_library

    def __getitem__(self, name):
        if name != self.entry_name:
            raise NotFound(f"there is no function {name}; this is {self.entry_name}", "FUNCTION")
        return self

    def __repr__(self):
        parameters = ", ".join(
            f"{p.name}: {_dtype.NAME[p.type]}[{', '.join(p.shape)}]" for p in self._parameters
        )
        return f"Function {self.entry_name}({parameters}) for {self._request.target.name}"


class DeviceModule:
    """The part of a function that runs on the GPU."""

    def __init__(self, function):
        self._function = function

    def get_source(self, fmt="cuda"):
        """CUDA C, or "ptx"."""
        return self._function.source(fmt or "cuda")


class ProfileResult:
    """Seconds a run, one for each measurement."""

    def __init__(self, results):
        self.results = results

    mean = property(lambda self: statistics.fmean(self.results))
    median = property(lambda self: statistics.median(self.results))
    min = property(lambda self: min(self.results))
    max = property(lambda self: max(self.results))
    std = property(lambda self: statistics.pstdev(self.results))

    def __repr__(self):
        return f"ProfileResult(mean={self.mean:.3g} s, min={self.min:.3g} s, runs={len(self.results)})"


class _Call:
    """The arguments of one call on their way to the daemon and back."""

    def __init__(self, function, args, sizes):
        self.function = function
        self.args = args
        self.sizes = sizes
        self.encoded = b""
        self.repeatable = True
        self._inline = 0
        self._kept = []  # arrays that live as long as the call
        self._targets = {}  # parameter -> the numpy array to write into

    def marshal(self):
        """Makes the arguments' part of the request."""
        function = self.function
        parameters = function._parameters
        if len(self.args) == len(parameters):
            given = dict(enumerate(self.args))
        else:
            inputs = [i for i, p in enumerate(parameters) if not p.output]
            if len(self.args) != len(inputs):
                raise InvalidArgument(self._count_message(), "ARGUMENT_COUNT")
            given = dict(zip(inputs, self.args))
        pieces, inputs, outputs = [], set(), set()
        for position, parameter in enumerate(parameters):
            piece = self._argument(position, parameter, given)
            (outputs if parameter.output else inputs).add(piece)
            pieces.append(piece)
        # A call that overwrites its own input is not the same call the second time.
        self.repeatable = not inputs & outputs
        if self.sizes:
            pieces.append(wire.RunRequest(sizes=self.sizes).SerializeToString())
        self.encoded = b"".join(pieces)

    def _count_message(self):
        names = self.function._names
        plural = "" if len(names) == 1 else "s"
        return (
            f"{self.function.entry_name} takes {len(names)} argument{plural} ({', '.join(names)}), "
            f"but got {len(self.args)}"
        )

    def _argument(self, position, parameter, given):
        if position not in given:
            keep = wire.OutputRequest(keep=True)
            return _encoded(wire.Argument(output=keep))
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
        what = f"argument {parameter.name} of {self.function.entry_name}"
        if not hasattr(value, "__array__") and not hasattr(value, "__dlpack__"):
            try:
                value = np.asarray(value, _dtype.NUMPY[_dtype.NAME[parameter.type]])
            except (TypeError, ValueError, OverflowError):
                raise self._wrong(
                    parameter, f"is no array, but {type(value).__name__}", "ARGUMENT_TYPE"
                ) from None
        values, dtype = as_numpy(value, what)
        if values.nbytes > _INLINE_ARRAY or self._inline + values.nbytes > _INLINE_CALL:
            array = self.function._connection.array(values, self.function.device)
            self._kept.append(array)
            return array._wire
        self._inline += values.nbytes
        inline = wire.Inline(type=_dtype.NUMBER[dtype], shape=values.shape, data=values.tobytes())
        return _encoded(wire.Argument(inline=inline))

    def _output(self, position, parameter, value):
        if not isinstance(value, np.ndarray) or not value.flags.writeable:
            what = "is read-only" if isinstance(value, np.ndarray) else f"is {type(value).__name__}"
            raise self._wrong(
                parameter, f"{what}, but an output must be an NDArray or a numpy array", "ARGUMENT_TYPE"
            )
        dtype = _dtype.dtype_name(value.dtype, f"argument {parameter.name}")
        self._targets[position] = value
        inline = wire.Inline(type=_dtype.NUMBER[dtype], shape=value.shape)
        return _encoded(wire.Argument(inline=inline))

    def _wrong(self, parameter, text, reason):
        message = f"argument {parameter.name} of {self.function.entry_name} {text}"
        return InvalidArgument(message, reason)

    def finish(self, encoded):
        """Writes into the numpy outputs and returns the new arrays."""
        function, connection = self.function, self.function._connection
        function._reply = encoded
        made = []
        for result in wire.RunResponse.FromString(encoded).results:
            dtype = _dtype.NAME[result.type]
            array = None
            if result.tensor:
                array = NDArray(connection, result.tensor, tuple(result.shape), dtype, function.device)
            target = self._targets.get(result.parameter)
            if target is None:
                made.append(array)
            elif array is not None:
                connection.download(array._id, out=target)
            else:
                target[...] = np.frombuffer(result.data, _dtype.NUMPY[dtype]).reshape(result.shape)
        return None if not made else made[0] if len(made) == 1 else tuple(made)


def _encoded(argument):
    return wire.RunRequest(arguments=[argument]).SerializeToString()


class Future(concurrent.futures.Future):
    """A call that runs on the daemon."""

    def __init__(self, function, call):
        super().__init__()
        self._function = function
        self._call = call
        request = function._prefix + call.encoded
        self._rpc = function._connection.run_future(request)
        self._rpc.add_done_callback(self._done)

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
            self._fail(failure.error)

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
