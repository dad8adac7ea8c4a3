"""Uploads by name (uploads.proto): begun again, one goes on where its connection broke off. One that tells the digest of
its contents is over at once where an array of the same tenant has them.
"""

import hashlib
import uuid

from ..v1 import service_pb2 as wire
from ..v1 import uploads_pb2
from . import frames
from .grpc_setup import grpc

_CHUNK = 1 << 20
_CHUNK_FIELD = uploads_pb2.UploadPart.DESCRIPTOR.fields_by_name["chunk"].number


class Upload:
    """An upload of the bytes `data` under `header()`, which names the session. Each call goes on with it and returns what has
    the tensor's id; `otherwise()` uploads where the daemon, of an earlier version, knows no names."""

    def __init__(self, begin, send, header, data, by_digest, otherwise):
        self._begin, self._send = begin, send  # calls of bytes
        self._header, self._data, self._otherwise = header, data, otherwise
        self._name = uuid.uuid4().hex
        self._digest = hashlib.sha256(data).digest() if by_digest else b""
        self.offset = 0  # bytes that have arrived, as far as is known

    def __call__(self):
        request = uploads_pb2.BeginUploadRequest(header=self._header(), upload=self._name, sha256=self._digest)
        try:
            state = uploads_pb2.UploadState.FromString(self._begin(request.SerializeToString()))
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNIMPLEMENTED:
                raise
            return self._otherwise()
        if state.tensor:
            return state
        self.offset = state.offset
        return uploads_pb2.UploadState.FromString(self._send(self._parts(state.offset)))

    def _parts(self, offset):
        rest = uploads_pb2.UploadRest(upload=self._name, offset=offset)
        yield uploads_pb2.UploadPart(rest=rest).SerializeToString()
        yield from chunks(_CHUNK_FIELD, self._data, offset)


def chunks(field, data, begin=0):
    """The encoded messages with the bytes from `begin` on."""
    for start in range(begin, len(data), _CHUNK):
        yield frames.field(field, data[start : start + _CHUNK])


def messages(header, data):
    """The encoded messages of an upload without a name."""
    yield wire.UploadRequest(header=header).SerializeToString()
    yield from chunks(wire.UploadRequest.DESCRIPTOR.fields_by_name["chunk"].number, data)
