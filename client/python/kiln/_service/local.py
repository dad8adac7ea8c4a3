"""The shorter way to a daemon on this host: packets over a socket of its own, arrays as descriptors (local.proto).

Each call has a connection for itself while it lasts, so a thread waits for its own reply alone, and what interrupts the
wait cancels the call by hanging up.
"""

import array
import os
import socket
import struct
import time

import numpy as np

from google.rpc import status_pb2

from ..v1 import local_pb2
from . import frames
from .grpc_setup import grpc
from .memory import sealed_copy, shown

_PACKET = 64 << 10  # what the daemon reads at once; larger messages travel in memory
_ANCILLARY = socket.CMSG_SPACE(32 * 4) if hasattr(socket, "CMSG_SPACE") else 0  # for 32 descriptors
_LOOK, _SOON = 100e-6, 300e-6  # seconds, as in client/cpp/packet_wait.h
_SPARE_SECONDS = 0.5  # for the daemon to say itself that the time is over
CODES = {code.value[0]: code for code in grpc.StatusCode}

_FIELDS = local_pb2.LocalRequest.DESCRIPTOR.fields_by_name
RUN, PUT, MAP, FREE = (_FIELDS[name].number for name in ("run", "put", "map", "free"))
_TIMEOUT = bytes([_FIELDS["timeout"].number << 3 | 1])
_RUN_TAG = local_pb2.LocalReply.DESCRIPTOR.fields_by_name["run"].number << 3 | 2
# Larger arrays travel as memory, which costs about as much as copying so many bytes some times.
INLINE = 16 << 10


class LocalError(grpc.RpcError):
    """A call that failed, as a call of gRPC does."""

    def __init__(self, code, details, status=b""):
        super().__init__(details)
        self._code, self._details, self._status = code, details, status

    def code(self):
        return self._code

    def details(self):
        return self._details

    def trailing_metadata(self):
        return (("grpc-status-details-bin", self._status),) if self._status else ()


class Reply(bytes):
    """The bytes of a message that came with memory: arrays of it, by the indices of regions."""

    memory = ()


class LocalSocket:
    """Connections to the daemon's local socket, which the session's first event named."""

    def __init__(self, path, nonce):
        self._path = path
        self._hello = local_pb2.LocalRequest(hello=local_pb2.LocalHello(nonce=nonce)).SerializeToString()
        self._free = [self._connect()]
        self._may_look = len(os.sched_getaffinity(0)) > 1
        self._came_soon = False  # the last reply
        self._crowded_until = 0.0
        self.is_open = True

    def close(self):
        self.is_open = False
        while self._free:
            self._free.pop().close()

    def run(self, request, timeout=None):
        """The bytes of the RunResponse, a Reply where memory came with it, to an encoded RunRequest."""
        message = frames.field(RUN, request)
        if timeout is not None:
            message = _TIMEOUT + struct.pack("<d", timeout) + message
        packet, descriptors = self._exchange(message, (), timeout)
        position = 2
        if packet[0] == _RUN_TAG and not descriptors:
            while packet[position - 1] & 0x80:
                position += 1
            return packet[position:]
        reply = self._parsed(packet, descriptors)
        encoded = Reply(reply.run.SerializeToString())
        encoded.memory = [_mapped(fd) for fd in descriptors]
        return encoded

    def put(self, header, data):
        """Makes a tensor of these bytes; returns the encoded UploadResponse."""
        request = local_pb2.LocalPut(header=header)
        if len(data) <= INLINE:
            request.data = bytes(data)
            return self.ask(PUT, request).put
        request.region.index = 0
        fd = sealed_copy(np.frombuffer(data, np.uint8))
        try:
            return self.ask(PUT, request, (fd,)).put
        finally:
            os.close(fd)

    def contents(self, tensor):
        """The header of a tensor, and its bytes as an array that is the caller's own."""
        packet, descriptors = self._exchange(
            frames.field(MAP, local_pb2.LocalMap(tensor=tensor).SerializeToString()), (), None
        )
        contents = self._parsed(packet, descriptors).contents
        if not descriptors:
            return contents.header, np.array(np.frombuffer(contents.data, np.uint8))
        return contents.header, _mapped(descriptors[0])

    def ask(self, kind, request, descriptors=()):
        """The reply to a request of this kind."""
        packet, passed = self._exchange(frames.field(kind, request.SerializeToString()), descriptors, None)
        return self._parsed(packet, passed)

    def _parsed(self, packet, descriptors):
        reply = local_pb2.LocalReply.FromString(packet)
        if reply.WhichOneof("kind") != "failed":
            return reply
        for fd in descriptors:
            os.close(fd)
        status = status_pb2.Status.FromString(reply.failed)
        raise LocalError(CODES.get(status.code, grpc.StatusCode.UNKNOWN), status.message, reply.failed)

    def _exchange(self, message, descriptors, timeout):
        """The bytes of the reply to a message, and the descriptors that came with it."""
        try:
            connection = self._free.pop()
        except IndexError:
            connection = self._connect()
        try:
            if timeout is not None:
                connection.settimeout(timeout + _SPARE_SECONDS)
            _send(connection, message, descriptors)
            if timeout is None:
                reply = self._await(connection)
            else:
                reply = _receive(connection)
                connection.settimeout(None)
        except socket.timeout:
            connection.close()
            raise LocalError(grpc.StatusCode.DEADLINE_EXCEEDED, "the time is over") from None
        except OSError as error:
            connection.close()
            raise self._broken(error) from None
        except BaseException:
            connection.close()  # which cancels the call
            raise
        if self.is_open:
            self._free.append(connection)
        else:
            connection.close()
        return reply

    def _await(self, connection):
        """The reply. While replies come soon it is looked for before this thread sleeps (client/cpp/packet_wait.h)."""
        begin = now = time.perf_counter()
        looks = self._may_look and self._came_soon and now >= self._crowded_until
        while looks and now - begin < _LOOK:
            try:
                return _receive(connection, socket.MSG_DONTWAIT)
            except BlockingIOError:
                os.sched_yield()
            left, now = now, time.perf_counter()
            if now - left > 5 * _LOOK:  # others compute
                self._crowded_until = now + 0.1
        reply = _receive(connection)
        self._came_soon = not looks and time.perf_counter() - begin < _SOON
        return reply

    def _connect(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            connection.connect(self._path)
            _send(connection, self._hello, ())
            _receive(connection)
        except OSError as error:
            connection.close()
            raise self._broken(error) from None
        return connection

    def _broken(self, error):
        """The daemon is gone, or has ended the session: from now on calls take the long way, which finds out."""
        self.close()
        return LocalError(grpc.StatusCode.UNAVAILABLE, error.strerror or str(error))


def opened(local):
    """Connections to the socket of a session's event; None where there is none that can be reached from here."""
    if not local.path or not hasattr(os, "memfd_create") or not os.path.exists(local.path):
        return None
    try:
        return LocalSocket(local.path, local.nonce)
    except LocalError:
        return None


def _send(connection, message, descriptors):
    if len(message) <= _PACKET - 1:
        if not descriptors:
            connection.send(b"p" + message)
            return
        connection.sendmsg([b"p", message], _rights(descriptors))
        return
    fd = sealed_copy(np.frombuffer(message, np.uint8))
    try:
        connection.sendmsg([b"m"], _rights((fd, *descriptors)))
    finally:
        os.close(fd)


def _rights(descriptors):
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]


def _receive(connection, flags=0):
    """The next packet and its descriptors; BlockingIOError where there is none and the flags forbid to wait."""
    packet, ancillary, _, _ = connection.recvmsg(_PACKET + 1, _ANCILLARY, socket.MSG_CMSG_CLOEXEC | flags)
    if not packet:
        raise OSError("the daemon has hung up")
    descriptors = []
    for _, _, data in ancillary:
        numbers = array.array("i")
        numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
        descriptors += numbers
    if packet[0] == ord("p"):
        return packet[1:], descriptors
    memory = descriptors.pop(0)
    try:
        return os.pread(memory, os.fstat(memory).st_size, 0), descriptors
    finally:
        os.close(memory)


def _mapped(fd):
    try:
        return shown(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)
