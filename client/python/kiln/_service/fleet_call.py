"""A kernel on every server of a fleet, and its calls, which go from server to server until one has answered."""

import hashlib
import threading
import time
import weakref

import numpy as np

from .._base.error import Unavailable, public
from ..v1 import service_pb2 as wire
from .array import NDArray
from .call import FETCHED_OUTPUT, Call, contents, share_memory
from .function import Function
from .member import Member, NotHere

_PAUSES = (0.1, 0.4, 1.0, 2.0)  # seconds, after each time that all servers were tried
_MOST_LOST = 3  # servers that may be lost amid a call: it could be the call that ends them


class FleetFunction:
    """A kernel on every server of a fleet. Called as a Function is. Numpy arrays go to a server that answers, and numpy
    arrays come back; an array that lives on one of the servers leads the call there, and the results stay there."""

    def __init__(self, fleet, request, argument_sizes):
        self._fleet = fleet
        self._request = request
        self._sizes = argument_sizes
        self._lock = threading.Lock()
        self._functions = weakref.WeakKeyDictionary()  # by connection
        self.entry_name = request.source_map.kernel
        what = wire.CompileRequest()
        what.CopyFrom(request)
        what.ClearField("source_map")  # where a program stands is the program's own
        self._key = hashlib.sha256(what.SerializeToString(deterministic=True)).digest()

    @public
    def __call__(self, *args, **named):
        home = self._home_of([*args, *named.values()])
        if home is not None:
            return self.on(home)(*args, **named)
        return _Errand(self, args, named).run()

    def submit(self, *args, **named):
        """As a call, but returns a concurrent.futures.Future at once."""
        return self._fleet.in_background(lambda: self(*args, **named))

    @property
    def home(self):
        """The address of the server that a call would try first."""
        return self.servers()[0].address

    def on(self, connection):
        """The Function on one of the servers; `connection` is what the fleet's `connection` gives."""
        with self._lock:
            function = self._functions.get(connection)
        if function is None:
            function = Function(connection, self._request, self._sizes)
            with self._lock:
                self._functions[connection] = function
        return function

    def servers(self):
        return self._fleet.order(self._key)

    def look_up(self):
        self._fleet.look_up()

    def _home_of(self, values):
        for value in values:
            if isinstance(value, tuple):
                found = self._home_of(value)
                if found is not None:
                    return found
            elif isinstance(value, NDArray) and isinstance(value._connection, Member):
                if value._connection.fleet is self._fleet:
                    return value._connection
        return None

    def __repr__(self):
        return f"FleetFunction {self.entry_name} on {self._fleet!r}"


class _Errand:
    """One call of numpy arrays."""

    def __init__(self, function, args, named):
        self._function = function
        self._args = args
        self._named = named
        self._deadline = None
        self._times_lost = 0

    def run(self):
        pauses = iter(_PAUSES)
        while True:
            missed = []
            for server in self._function.servers():
                was_up = server.up
                try:
                    return self._at(server)
                except NotHere as failure:
                    missed.append(failure)
                self._note(server, was_up, missed[-1])
            pause = next(pauses, None)
            if pause is None or self._is_over_in(pause):
                raise _error_of(missed)
            time.sleep(pause)
            self._function.look_up()

    def _at(self, server):
        connection = server.connection()
        with connection.trying():
            function = self._function.on(connection)
            args, named = self._args, self._named
            if function._argument_sizes:
                args, named = function._without_sizes(args, named)
            call = _Call(function, args, named)
            call.marshal()
            if self._deadline is None:
                self._deadline = call._deadline
            call._deadline = self._deadline  # which is the first one's, wherever it goes
            reply = function._reply_to(call)
            try:
                return call.finish(reply)
            except NotHere as failure:
                if call.overwrites_an_input():
                    raise failure.error from None
                raise

    def _note(self, server, was_up, failure):
        if failure.lost:
            server.lost()
        self._times_lost += failure.transport and was_up
        if self._times_lost == _MOST_LOST:
            raise failure.error

    def _is_over_in(self, seconds):
        return self._deadline is not None and time.monotonic() + seconds > self._deadline


class _Call(Call):
    """A call whose results come back as the caller's own arrays."""

    def __init__(self, function, args, named):
        super().__init__(function, args, named)
        self._new_output = FETCHED_OUTPUT
        self._read = []

    def overwrites_an_input(self):
        """Whether what it has written, in part perhaps, is what it read."""
        return any(share_memory(read, written) for read in self._read for written in self._targets.values())

    def _input(self, parameter, value):
        if isinstance(value, np.ndarray):
            self._read.append(value)
        return super()._input(parameter, value)

    def _made(self, result, encoded, array):
        values = contents(result, encoded) if array is None else array.numpy()
        return values if values.flags.writeable else values.copy()


def _error_of(missed):
    """Of a call that no server took."""
    busy = [failure.error for failure in missed if not failure.lost]
    if busy:
        return busy[-1]
    return Unavailable(f"no server of the fleet answers: {'; '.join(f.error.message for f in missed)}", "FLEET")
