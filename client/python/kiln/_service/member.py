"""One server of a fleet: the connection to it, and what its health service says of it."""

import contextlib
import threading

from .._base.error import Error, Unavailable, Unsupported
from .connection import Connection
from .grpc_setup import grpc
from .rpc import failure_of

_SERVING = b"\x08\x01"  # grpc.health.v1.HealthCheckResponse
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0  # seconds between two attempts to ask for its health
# Of a server that takes no calls any more; what else comes with a pause says nothing about the next call.
_ENDING = ("CANCELLED", "DRAINING")


class NotHere(Exception):
    """A call that this server did not take, or did not end; another may."""

    def __init__(self, error, pause=None, transport=False):
        super().__init__(str(error))
        self.error = error
        self.pause = pause  # seconds after which this server may take it; None: nobody knows
        self.transport = transport  # it went away amid the call, or was away
        self.lost = pause is None or transport or error.reason in _ENDING


class Member(Connection):
    """The connection to a server of a fleet. Amid `trying`, what a connection would wait for or repeat ends in NotHere."""

    def __init__(self, fleet, *endpoint):
        self.fleet = fleet
        self._trying = threading.local()
        super().__init__(*endpoint)

    @contextlib.contextmanager
    def trying(self):
        self._trying.now = True
        try:
            yield
        finally:
            self._trying.now = False

    def repeated(self, call, repeatable=True):
        if not getattr(self._trying, "now", False):
            return super().repeated(call, repeatable)
        self.check_open()
        try:
            return call()
        except grpc.RpcError as rpc_error:
            failure = failure_of(rpc_error, self.address)
        if failure.error.reason == "TENSOR_MEMORY" and self.free():
            return self.repeated(call, repeatable)
        if repeatable and (failure.transport or failure.pause is not None):
            raise NotHere(failure.error, failure.pause, failure.transport)
        raise failure.error

    def health(self):
        """What the server says of itself, now and whenever that changes (grpc.health.v1)."""
        return self._channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")


class Server:
    """A server of a fleet: connected to when it is first needed, and watched from then on."""

    def __init__(self, address, connect):
        self.address = address
        self.up = True  # until it is known better
        self._connect = connect
        self._lock = threading.Lock()
        self._connection = None
        self._watch = None
        self._news = None  # the stream that tells of its health
        self._unwatched = threading.Event()
        self._closed = False

    @property
    def connected(self):
        return self._connection is not None

    def connection(self):
        with self._lock:
            if self._closed:
                raise Unavailable("the fleet is closed", "CLOSED")
            if self._watch is None:
                self._watch = threading.Thread(target=self._look, name=f"kiln-fleet {self.address}", daemon=True)
                self._watch.start()
            if self._connection is None:
                try:
                    self._connection = self._connect(self.address)
                except (Unavailable, Unsupported) as error:
                    raise NotHere(error) from None
            return self._connection

    def lost(self):
        """Leaves it out until it says anew that it serves."""
        self.up = False
        if self._news is not None:
            self._news.cancel()

    def leave(self):
        """Watches it no longer. Calls that run there may end, and arrays live on while somebody has them."""
        self._unwatched.set()
        if self._news is not None:
            self._news.cancel()

    def close(self):
        self.leave()
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

    def _look(self):
        pause = _FIRST_PAUSE
        while not self._unwatched.wait(pause):
            pause = min(2 * pause, _LONGEST_PAUSE)
            try:
                self._news = self.connection().health()
                for news in self._news:
                    self.up = news == _SERVING
                    pause = _FIRST_PAUSE
            except (NotHere, Error, grpc.RpcError, ValueError):  # ValueError: its channel is closed
                pass
            self.up = False
