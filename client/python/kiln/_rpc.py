"""Calls to the daemon: errors become exceptions here, and what may be repeated is repeated."""

import re
import time

from google.rpc import error_details_pb2, status_pb2

from . import _error
from ._grpc import grpc
from .v1 import error_pb2

_ATTEMPTS = 5
_LONGEST_PAUSE = 2.0

_BY_CODE = {
    grpc.StatusCode.INVALID_ARGUMENT: _error.InvalidArgument,
    grpc.StatusCode.OUT_OF_RANGE: _error.InvalidArgument,
    grpc.StatusCode.FAILED_PRECONDITION: _error.Unsupported,
    grpc.StatusCode.UNIMPLEMENTED: _error.Unsupported,
    grpc.StatusCode.NOT_FOUND: _error.NotFound,
    grpc.StatusCode.DATA_LOSS: _error.HandleLost,
    grpc.StatusCode.RESOURCE_EXHAUSTED: _error.ResourceExhausted,
    grpc.StatusCode.UNAVAILABLE: _error.Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: _error.DeadlineExceeded,
    grpc.StatusCode.CANCELLED: _error.Cancelled,
    grpc.StatusCode.UNAUTHENTICATED: _error.Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: _error.Unauthenticated,
}


class Failure:
    """A failed call: the exception it becomes, and whether repeating it may help."""

    def __init__(self, error, pause=None, transport=False):
        self.error = error
        self.pause = pause  # seconds to wait before another attempt; None: do not repeat
        self.transport = transport  # the daemon was not reached, or went away


def failure_of(rpc_error, address):
    """What a gRPC error means."""
    code, text = rpc_error.code(), rpc_error.details() or ""
    detail, pause = None, None
    for key, value in rpc_error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            detail, pause = _details(value)
    if detail is not None:
        kind = _error.BY_NUMBER.get(detail.kind, _error.Internal)
        error = kind(detail.message, detail.reason, detail.notes, detail.file, detail.line)
        return Failure(error, pause)
    if code == grpc.StatusCode.UNAVAILABLE:
        message = f"cannot reach a Kiln daemon at {address}: {_short(text)}; is kilnd running there?"
        return Failure(_error.Unavailable(message, "UNREACHABLE"), pause, transport=True)
    if code == grpc.StatusCode.CANCELLED:
        # We asked for none: a server that drains does this to calls in flight.
        return Failure(_error.Cancelled(f"the daemon at {address} cancelled the call", "CANCELLED"), 0.05)
    if code == grpc.StatusCode.UNIMPLEMENTED:
        message = f"what answers at {address} is no Kiln daemon of this version: {text}"
        return Failure(_error.Unsupported(message, "VERSION"))
    return Failure(_BY_CODE.get(code, _error.Internal)(text or str(code), code.name), pause)


def _short(text):
    """Of gRPC's report on all its attempts: what the system said of the last one."""
    found = re.search(r"last error: .*: ([^:]+?)( \(\d+\))?$", text)
    return found[1] if found else text


def _details(encoded):
    detail, pause = None, None
    for part in status_pb2.Status.FromString(encoded).details:
        if part.Is(error_pb2.ErrorDetail.DESCRIPTOR):
            detail = error_pb2.ErrorDetail.FromString(part.value)
        elif part.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            delay = error_details_pb2.RetryInfo.FromString(part.value).retry_delay
            pause = delay.seconds + delay.nanos * 1e-9
    return detail, pause


def repeated(call, address, recover, repeatable=True):
    """The result of `call()`, repeated while that may help.

    `recover(failure)` is asked once when the daemon was not reached; it says whether to try again.
    """
    recovered = False
    for attempt in range(_ATTEMPTS):
        try:
            return call()
        except grpc.RpcError as rpc_error:
            failure = failure_of(rpc_error, address)
        if failure.transport and repeatable and not recovered:
            recovered = True
            if recover(failure):
                continue
        again = failure.pause is not None and attempt + 1 < _ATTEMPTS
        if not again or (isinstance(failure.error, _error.Cancelled) and not repeatable):
            raise failure.error
        time.sleep(min(failure.pause, _LONGEST_PAUSE))
    raise AssertionError("the last attempt returns or raises")
