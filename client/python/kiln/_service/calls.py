"""Many calls over one stream (calls.proto): what a call of its own costs is paid once for as many as are under way."""

import collections
import threading

from google.rpc import status_pb2

from ..v1 import calls_pb2
from . import frames
from .grpc_setup import grpc
from .local import CODES, LocalError

_CALL = calls_pb2.CallsRequest.DESCRIPTOR.fields_by_name["calls"].number
_RUN = calls_pb2.SmallCall.DESCRIPTOR.fields_by_name["run"].number
_MESSAGE = 1 << 20  # bytes of several calls


class PendingCall:
    """A call over the stream, with the part of a future of gRPC that is used here."""

    def __init__(self, stream, number, request):
        self.request = request  # the encoded RunRequest
        self._stream = stream
        self._number = number
        self._lock = threading.Lock()
        self._listeners = []
        self._outcome = None  # (reply, error); (None, None): cancelled
        self._other = None  # the call that stands for it where there is no such stream

    def add_done_callback(self, listener):
        with self._lock:
            if self._outcome is None:
                self._listeners.append(listener)
                return
        listener(self)

    def cancel(self):
        if self._other is not None:
            return self._other.cancel()
        self._stream.cancel(self._number)
        self.settle(None, None)
        return True

    def cancelled(self):
        return self._outcome == (None, None)

    def exception(self):
        return self._outcome[1]

    def result(self):
        return self._outcome[0]

    def settle(self, reply, error):
        """The end of the call, of which the first counts."""
        with self._lock:
            if self._outcome is not None:
                return
            self._outcome = (reply, error)
        for listener in self._listeners:
            listener(self)

    def follow(self, other):
        """Ends as this future of gRPC does."""
        self._other = other
        if self.cancelled():
            other.cancel()

        def settle(rpc):
            if rpc.cancelled():
                self.settle(None, None)
            else:
                error = rpc.exception()
                self.settle(None if error else rpc.result(), error)

        other.add_done_callback(settle)


class CallStream:
    """The stream, until it breaks: then what is under way fails as if the daemon had not been reached."""

    def __init__(self, open_stream, otherwise):
        """`otherwise(request)` makes a call where the daemon, of an earlier version, has no such stream."""
        self._is_open = True
        self._otherwise = otherwise
        self._is_known = True
        self._changed = threading.Condition()
        self._waiting = collections.deque()  # encoded messages, of one call each
        self._pending = {}
        self._next = 1
        self._replies = open_stream(self._messages())
        threading.Thread(target=self._read, name="kiln calls", daemon=True).start()

    @property
    def is_usable(self):
        return self._is_open or not self._is_known

    def run(self, request):
        """A future of the encoded RunResponse to an encoded RunRequest; None when the stream has broken."""
        if not self._is_known:
            return self._otherwise(request)
        encoded = frames.field(_RUN, request)
        with self._changed:
            if not self._is_open:
                return None
            number = self._next
            self._next += 1
            call = self._pending[number] = PendingCall(self, number, request)
            self._waiting.append(frames.field(_CALL, calls_pb2.SmallCall(id=number).SerializeToString() + encoded))
            self._changed.notify()
        return call

    def cancel(self, number):
        with self._changed:
            if self._pending.pop(number, None) is not None:
                request = calls_pb2.CallsRequest(calls=[calls_pb2.SmallCall(cancel=number)])
                self._waiting.append(request.SerializeToString())
                self._changed.notify()

    def close(self):
        with self._changed:
            self._is_open = False
            self._changed.notify()

    def _messages(self):
        """What is to be sent, as many calls in a message as wait."""
        while True:
            with self._changed:
                while not self._waiting and self._is_open:
                    self._changed.wait()
                if not self._waiting:
                    return
                message, size = [], 0
                while self._waiting and (not message or size + len(self._waiting[0]) <= _MESSAGE):
                    size += len(self._waiting[0])
                    message.append(self._waiting.popleft())
            yield b"".join(message)

    def _read(self):
        error = None
        try:
            for encoded in self._replies:
                for reply in calls_pb2.CallsReply.FromString(encoded).replies:
                    self._settle(reply)
        except grpc.RpcError as failure:
            error = failure
        self.close()
        with self._changed:
            pending, self._pending = self._pending, {}
        if error is not None and error.code() == grpc.StatusCode.UNIMPLEMENTED:
            self._is_known = False
            for call in pending.values():
                call.follow(self._otherwise(call.request))
            return
        lost = error or LocalError(grpc.StatusCode.UNAVAILABLE, "the stream of calls has ended")
        for call in pending.values():
            call.settle(None, lost)

    def _settle(self, reply):
        with self._changed:
            call = self._pending.pop(reply.id, None)
        if call is None:
            return  # it was cancelled
        if reply.WhichOneof("kind") == "failed":
            status = status_pb2.Status.FromString(reply.failed)
            code = CODES.get(status.code, grpc.StatusCode.UNKNOWN)
            call.settle(None, LocalError(code, status.message, reply.failed))
        else:
            call.settle(reply.run.SerializeToString(), None)
