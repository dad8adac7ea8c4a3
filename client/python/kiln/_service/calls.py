"""Many calls over one stream (calls.proto): what a call of its own costs is paid once for as many as are under way."""

import collections
import threading

from google.rpc import status_pb2

from ..v1 import calls_pb2
from . import frames
from .grpc_setup import grpc
from .local import CODES, LocalError

_CALL = calls_pb2.CallsRequest.DESCRIPTOR.fields_by_name["calls"].number
_ID = calls_pb2.SmallCall.DESCRIPTOR.fields_by_name["id"].number
_RUN = calls_pb2.SmallCall.DESCRIPTOR.fields_by_name["run"].number
_MESSAGE = 1 << 20  # bytes of several calls


class PendingCall:
    """A call over the stream, with the part of a future of gRPC that is used here. Whoever takes it out of the stream's
    pending calls settles it, once."""

    __slots__ = ("request", "_stream", "_number", "_done", "_outcome", "_other", "_is_unwanted")

    def __init__(self, stream, number, request, done):
        self.request = request  # the encoded RunRequest
        self._stream = stream
        self._number = number
        self._done = done  # called with this once it has ended
        self._outcome = None  # (reply, error); (None, None): cancelled
        self._other = None  # the call that stands for it where there is no such stream
        self._is_unwanted = False

    def cancel(self):
        self._is_unwanted = True
        if self._other is not None:
            return self._other.cancel()
        if self._stream.cancel(self._number):
            self.settle(None, None)
        return True

    def cancelled(self):
        return self._outcome == (None, None)

    def exception(self):
        return self._outcome[1]

    def result(self):
        return self._outcome[0]

    def settle(self, reply, error):
        self._outcome = (reply, error)
        self._done(self)

    def follow(self, other):
        """Ends as this future of gRPC does."""
        self._other = other
        if self._is_unwanted:
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

    def run(self, request, done):
        """A future of the encoded RunResponse to an encoded RunRequest, with which `done` is called at its end; None
        when the stream has broken."""
        if not self._is_known:
            other = self._otherwise(request)
            other.add_done_callback(done)
            return other
        encoded = frames.field(_RUN, request)
        with self._changed:
            if not self._is_open:
                return None
            number = self._next
            self._next += 1
            call = self._pending[number] = PendingCall(self, number, request, done)
            self._send(frames.field(_CALL, frames.integer(_ID, number) + encoded))
        return call

    def cancel(self, number):
        """Whether the call had not ended; its reply is nobody's then."""
        with self._changed:
            was_pending = self._pending.pop(number, None) is not None
            if was_pending:
                request = calls_pb2.CallsRequest(calls=[calls_pb2.SmallCall(cancel=number)])
                self._send(request.SerializeToString())
        return was_pending

    def _send(self, message):
        self._waiting.append(message)
        if len(self._waiting) == 1:  # else whoever sends is awake
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
                self._settle(calls_pb2.CallsReply.FromString(encoded).replies)
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

    def _settle(self, replies):
        with self._changed:
            calls = [self._pending.pop(reply.id, None) for reply in replies]
        for call, reply in zip(calls, replies):
            if call is None:
                continue  # it was cancelled
            if reply.failed:
                status = status_pb2.Status.FromString(reply.failed)
                code = CODES.get(status.code, grpc.StatusCode.UNKNOWN)
                call.settle(None, LocalError(code, status.message, reply.failed))
            else:
                call.settle(reply.run.SerializeToString(), None)
