"""Calls to the daemon: errors become exceptions here, and what may be repeated is repeated."""

import itertools
import random
import re
import time

from google.rpc import error_details_pb2, status_pb2

from .._base import error as errors
from ..v1 import error_pb2
from .grpc_setup import grpc

_ATTEMPTS = 5
_LONGEST_PAUSE = 2.0
_PATIENCE = 10  # seconds in which others may leave room for a call that was refused
# Refusals because others have the room, which they may leave at any time.
_CROWDED = ("QUEUE_FULL", "TENSOR_MEMORY", "JOB_COUNT", "JOB_BYTES", "DEVICE_SECONDS")
# Refusals of a call that has not begun: a worker may have died amid any other, its output half written.
_NOT_BEGUN = (*_CROWDED, "COMPILER_STARTING", "DEVICE_STARTING")

_BY_CODE = {
    grpc.StatusCode.INVALID_ARGUMENT: errors.InvalidArgument,
    grpc.StatusCode.OUT_OF_RANGE: errors.InvalidArgument,
    grpc.StatusCode.FAILED_PRECONDITION: errors.Unsupported,
    grpc.StatusCode.UNIMPLEMENTED: errors.Unsupported,
    grpc.StatusCode.NOT_FOUND: errors.NotFound,
    grpc.StatusCode.DATA_LOSS: errors.HandleLost,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.ResourceExhausted,
    grpc.StatusCode.UNAVAILABLE: errors.Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.DeadlineExceeded,
    grpc.StatusCode.CANCELLED: errors.Cancelled,
    grpc.StatusCode.UNAUTHENTICATED: errors.Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: errors.Unauthenticated,
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
        kind = errors.BY_NUMBER.get(detail.kind, errors.Internal)
        error = kind(detail.message, detail.reason, detail.notes, detail.file, detail.line)
        return Failure(error, pause)
    if code == grpc.StatusCode.UNAVAILABLE:
        message = f"the service at {address} did not answer: {_short(text)}"
        return Failure(errors.Unavailable(message, "UNREACHABLE"), pause, transport=True)
    if code == grpc.StatusCode.CANCELLED:
        # We asked for none: a server that drains does this to calls in flight.
        return Failure(errors.Cancelled(f"the daemon at {address} cancelled the call", "CANCELLED"), 0.05)
    if code == grpc.StatusCode.UNIMPLEMENTED:
        message = f"what listens at {address} is no Kiln service, or one of another version: {text}"
        return Failure(errors.Unsupported(message, "VERSION"))
    return Failure(_BY_CODE.get(code, errors.Internal)(text or str(code), code.name), pause)


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


def repeated(call, address, recover, make_room, repeatable=True):
    """The result of `call()`, repeated while that may help.

    `recover(failure)` is asked once when the daemon was not reached, `make_room()` when it has no memory for more
    tensors; they say whether to try again at once.
    """
    recovered = False
    begin = time.monotonic()
    for attempt in itertools.count():
        try:
            return call()
        except grpc.RpcError as rpc_error:
            failure = failure_of(rpc_error, address)
        if failure.transport and repeatable and not recovered:
            recovered = True
            if recover(failure):
                continue
        reason = failure.error.reason
        is_last = time.monotonic() - begin > _PATIENCE if reason in _CROWDED else attempt + 1 >= _ATTEMPTS
        if reason == "TENSOR_MEMORY" and not is_last and make_room():
            continue
        harmless = repeatable or reason in _NOT_BEGUN
        if failure.pause is None or not harmless or is_last:
            raise failure.error
        pause = min(failure.pause, _LONGEST_PAUSE)
        # Those who were refused together would come together again.
        time.sleep(random.uniform(0.25, 1) * pause if reason in _CROWDED else pause)
