"""A compiled kernel that can be called."""

import inspect
import json
import statistics
import threading

from .._base import dtypes
from .._base.error import DeadlineExceeded, InvalidArgument, NotFound, called, invalid, public
from .._base.waiting import Waiting
from .._expressions.arithmetic import as_integer
from ..v1 import service_pb2 as wire
from . import artifact, saved
from .array import NDArray
from .call import NEW_OUTPUT, Call, Future, count_message, new_arrays
from .connection import default_connection
from .device import Device, cpu
from .grpc_setup import grpc
from .job import submit as submit_job
from .profiled import profiled
from .sizes import sizes_by_name

_FORMS = {"ll": "llvm", "s": "asm", "cu": "cuda"}
_CACHE = {1: "compiled", 2: "memory", 3: "disk", 4: "shared"}


class Function:
    """A compiled kernel. Called with all arguments it writes into the outputs among them; called with
    the inputs alone it returns an NDArray, or a tuple of them in argument order."""

    def __init__(self, connection, request, argument_sizes=()):
        self._connection = connection
        self._request = request
        self._argument_sizes = list(argument_sizes)  # see Encoder
        self._lock = threading.Lock()
        self.entry_name = request.source_map.kernel
        self._compile()
        self._names = [p.name for p in self._parameters]
        self._outputs = [i for i, p in enumerate(self._parameters) if p.output]
        self._count = len(self._parameters)
        self._new_outputs = [NEW_OUTPUT if p.output else None for p in self._parameters]
        self._describe()

    def _describe(self):
        """What inspect and notebooks show of this function; help() shows what all have in common."""
        kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
        shown = lambda p: f"{dtypes.NAME[p.type]}[{', '.join(p.shape)}]"  # noqa: E731
        outputs = [p for p in self._parameters if p.output]
        self.__doc__ = f"{self!r}\n\n{type(self).__doc__}"
        if len(set(self._names)) < self._count or not all(map(str.isidentifier, self._names)):
            return
        order = sorted(self._parameters, key=lambda p: p.output)
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(p.name, kind, default=None if p.output else empty, annotation=shown(p)) for p in order],
            return_annotation=", ".join(map(shown, outputs)),
        )

    def _compile(self):
        with Waiting(f"compiling {self.entry_name}"):
            reply = self._connection.call("KernelService/Compile", self._request, wire.CompileResponse)
        self._kernel_id = reply.kernel_id
        self._compiled = reply
        self._parameters = list(reply.parameters)
        self._reply = None
        self._transfers = (0.0, 0.0)  # seconds, of arrays that the last call sent before and fetched after
        # The part of a RunRequest that is the same in every call.
        self._session = self._connection.session
        self._prefix = wire.RunRequest(
            kernel_id=reply.kernel_id, session=self._session
        ).SerializeToString()

    # Calls.

    def __call__(self, *args, **sizes):
        connection = self._connection
        if self._argument_sizes:
            args, sizes = self._without_sizes(args, sizes)
        pieces = None if sizes else self._pieces_of(args)
        if pieces is None:
            return self._run(Call(self, args, sizes))
        prefix = self._prefix
        try:
            if len(args) != self._count:
                connection.collect()
            self._reply = reply = connection.run_bytes(b"".join((prefix, *pieces)))
        except grpc.RpcError as failure:
            call = Call(self, args, sizes)
            call.prefix = prefix
            return self._run(call, failure)
        self._transfers = (0.0, 0.0)
        if len(args) == self._count:
            return None
        return new_arrays(self, wire.RunResponse.FromString(reply).results)

    def _pieces_of(self, args):
        """The encoded arguments, where these are arrays of the daemon alone: all, or the inputs; else None."""
        connection = self._connection
        pieces = []
        for arg in args:
            if arg.__class__ is not NDArray or arg._connection is not connection:
                return None
            pieces.append(arg._wire)
        if len(args) == self._count:
            return pieces
        if len(args) != self._count - len(self._outputs):
            return None
        inputs = iter(pieces)
        return [output or next(inputs) for output in self._new_outputs]

    @public
    def _run(self, call, error=None):
        call.marshal()
        return call.finish(self._reply_to(call, error))

    @public
    def _without_sizes(self, args, sizes):
        """The tensors among the arguments, and the sizes by name."""
        layout = self._argument_sizes
        if len(args) == len(layout) - len(self._outputs):
            tensors = iter(self._parameters)
            layout = [name for name in layout if name or not next(tensors).output]
        if len(args) != len(layout):
            names = iter(self._names)
            names = [name or next(names) for name in self._argument_sizes]
            raise InvalidArgument(count_message(self.entry_name, names, len(args)), "ARGUMENT_COUNT")
        used = set(self._request.source_map.variables)
        given = {}
        for name, value in zip(layout, args):
            if name in used:
                given[name] = self._size(name, value)
        return [value for name, value in zip(layout, args) if not name], {**given, **sizes}

    def _size(self, name, value):
        try:
            return as_integer(value)
        except TypeError:
            raise InvalidArgument(
                f"argument {name} of {called(self.entry_name)} is {value!r}, but must be an integer",
                "ARGUMENT_TYPE",
            ) from None

    def _reply_to(self, call, error=None):
        """The daemon's reply. `error` is what a first attempt ran into."""
        self._connection.collect()
        failed = [error] if error is not None else []

        def attempt():
            if failed:
                raise failed.pop()
            call.prefix = self._prefix
            return self._connection.run_bytes(call.prefix + call.encoded, timeout=call.seconds_left())

        try:
            # A restarted daemon has neither the kernel nor the session, and the one before may have ended the session first.
            for _ in range(4):
                try:
                    return self._connection.repeated(attempt, call.repeatable)
                except NotFound as error:
                    self._recompile(error, call.prefix)
            return self._connection.repeated(attempt, call.repeatable)
        except DeadlineExceeded as error:
            raise call.explained(error) from None

    def _recompile(self, error, prefix):
        """After the daemon has forgotten the kernel or the session of `prefix`, or is another one than before."""
        if error.reason not in ("KERNEL", "SESSION"):
            raise error
        with self._lock:
            if self._prefix is not prefix:
                return  # another thread has: to do it again would end what that one calls
            if error.reason == "SESSION":
                self._connection.renew(self._session)
            self._compile()

    @public
    def submit(self, *args, **sizes):
        """As a call, but returns a Future at once; cancelling it cancels the call on the daemon."""
        self._connection.check_open()
        if self._argument_sizes:
            args, sizes = self._without_sizes(args, sizes)
        call = Call(self, args, sizes)
        pieces = None if sizes else self._pieces_of(args)
        if pieces is None:
            call.marshal()
        else:
            call.take(pieces)
        return Future(self, call)

    @public
    def submit_job(self, *args, **sizes):
        """Leaves a call to the daemon and returns a Job, once it is kept: it ends though this process does, or the
        daemon. The arguments are the inputs."""
        self._connection.check_open()
        if self._argument_sizes:
            args, sizes = self._without_sizes(args, sizes)
        call = Call(self, args, sizes)
        call.marshal()
        try:
            return submit_job(self._connection, self._request, call.encoded, call.seconds_left())
        except DeadlineExceeded as error:
            raise call.explained(error) from None

    @public
    def time_evaluator(self, func_name=None, dev=None, number=10, repeat=1, **ignored):
        """A function of the arguments that measures `repeat` times the mean of `number` runs."""
        if number < 1 or repeat < 1:
            raise invalid("TIME_EVALUATOR", "time_evaluator: number and repeat must be at least 1")

        @public
        def evaluate(*args, **sizes):
            if self._argument_sizes:
                args, sizes = self._without_sizes(args, sizes)
            call = Call(self, args, sizes)
            call.marshal()
            call.encoded += wire.RunRequest(repeat=number, measurements=repeat).SerializeToString()
            reply = self._reply_to(call)
            call.finish(reply)
            return ProfileResult(list(wire.RunResponse.FromString(reply).measured))

        return evaluate

    @public
    def profile(self, *args, **sizes):
        """Where the time of such a call goes, as a table: its phases, the kernel alone, and the bytes of its arguments. The
        kernel runs many times."""
        return profiled(self, args, sizes)

    # What is known of it.

    @property
    def timings(self):
        """Of the last call: a dict of seconds (queue, compile, upload, kernel, download) and `cache`, and the id of the
        `trace` that it was part of, where there was one."""
        reply = self._reply
        timings = self._compiled.timings
        if reply is not None:
            timings = wire.RunResponse.FromString(reply).timings
        cache = timings.cache or self._compiled.cache
        seconds = ("queue", "compile", "upload", "kernel", "download")
        measured = {key: getattr(timings, key) for key in seconds}
        measured["upload"] += self._transfers[0]
        measured["download"] += self._transfers[1]
        traced = {"trace": timings.trace} if timings.trace else {}
        return {**measured, "cache": _CACHE.get(cache, ""), **traced}

    @public
    def source(self, kind):
        """The kernel as "lowered", "llvm", "asm", "cuda", "ptx" or "tile"."""
        return self._inspect(kind).text

    @public
    def get_source(self, fmt=""):
        """LLVM IR or CUDA C (of the interpreter, the loops), or another form by its name or the ending of its
        files: "asm", "ll", "s", "cu"."""
        target = self._request.target.name
        default = "lowered" if target == "interpreter" else target
        return self._inspect(_FORMS.get(fmt, fmt) or default).text

    @public
    def report(self, sizes=None):
        """What the compiler did: guards, proved, launches, schedule, notes, kernels. Of a GPU's kernel also what
        a call is predicted to take by its code, where all its sizes are constants or `sizes` says what each is."""
        return json.loads(self._inspect("", sizes_by_name(sizes, f"report of {called(self.entry_name)}")).report_json)

    def _inspect(self, source, sizes=None):
        def ask():
            request = wire.InspectRequest(kernel_id=self._kernel_id, source=source, sizes=sizes)
            return self._connection.call("KernelService/Inspect", request, wire.InspectResponse)

        return self._again_after_restart(ask)

    def _again_after_restart(self, ask):
        prefix = self._prefix
        try:
            return ask()
        except NotFound as error:
            self._recompile(error, prefix)
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
        """Saves the function to a file for kiln.load_module: its definition and schedule, for any daemon."""
        saved.save(path, [self])

    save = export_library

    @public
    def export_artifact(self, path):
        """Writes the compiled kernel to a file that kiln.load_artifact, `kiln run` and C++ run without a daemon: machine
        code for the target and the CPU or GPU that it was built for."""
        self._again_after_restart(lambda: artifact.export(self, path))

    def get_function(self, name, query_imports=False):
        """The function of that name."""
        return self[name]

    def __getitem__(self, name):
        if name != self.entry_name:
            raise NotFound(f"there is no function {name}; this is {self.entry_name}", "FUNCTION")
        return self

    def __reduce__(self):
        """Its definition and schedule; where it is unpickled they are compiled by that process's default daemon."""
        return _unpickled, (self._request.SerializeToString(), self._argument_sizes)

    def __repr__(self):
        parameters = ", ".join(
            f"{p.name}: {dtypes.NAME[p.type]}[{', '.join(p.shape)}]" for p in self._parameters
        )
        return f"Function {self.entry_name}({parameters}) for {self._request.target.name}"


def _unpickled(request, argument_sizes):
    return Function(default_connection(), wire.CompileRequest.FromString(request), argument_sizes)


class Library:
    """Several functions, by name: what build makes of a list, and load_module of what it saved."""

    def __init__(self, functions):
        self._functions = {function.entry_name: function for function in functions}

    @public
    def __getitem__(self, name):
        if name not in self._functions:
            names = ", ".join(self._functions)
            raise NotFound(f"there is no function {name}; there are {names}", "FUNCTION")
        return self._functions[name]

    def get_function(self, name, query_imports=False):
        """The function of that name."""
        return self[name]

    @public
    def export_library(self, path, *args, **kwargs):
        """Saves the functions to one file for kiln.load_module."""
        saved.save(path, self._functions.values())

    save = export_library

    def __repr__(self):
        return f"Library of {', '.join(self._functions)}"


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
