"""A connection to a daemon: one channel, one session."""

import atexit
import collections
import functools
import math
import os
import threading
import time
import weakref

import numpy as np

from .._base import dtypes
from .._base.error import InvalidArgument, NotFound, Unavailable, invalid, public
from .._base.waiting import Waiting
from ..v1 import service_pb2 as wire
from . import daemon, frames
from .calls import CallStream
from .compatible import require_compatible
from .diagnose import why_unreachable
from .grpc_setup import grpc
from .local import FREE, opened
from .profile import endpoint
from .rpc import repeated
from .uploads import Upload, messages

_PUT = 1 << 20  # what is uploaded in one message
_DOWNLOAD_CHUNK = wire.DownloadResponse.DESCRIPTOR.fields_by_name["chunk"].number
_PUT_DATA = wire.PutRequest.DESCRIPTOR.fields_by_name["data"].number
_CONNECT_SECONDS = 10
_RECOVER_SECONDS = 6  # in which a daemon that was lost may be there again
_ANSWER_SECONDS = 1.5  # for one that is there to say so
_RECOVER_PAUSE = 0.05
# Tensors without a reference are freed in batches, of so many or so many bytes.
_GARBAGE_TENSORS = 64
_GARBAGE_BYTES = 16 << 20

_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.enable_http_proxy", 0),
    # A new connection never inherits a dead socket from an older one to the same address.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 50),
    # How long one attempt may take, whatever its name says; a busy host needs more than a moment.
    ("grpc.min_reconnect_backoff_ms", 2000),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # A daemon that vanished without a word, its host or its network with it, is noticed within 30 s.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    (grpc.experimental.ChannelOptions.SingleThreadedUnaryStream, 1),
]

_MAY_COME_BACK = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)

_FORKED = (
    "Kiln was used before this process was forked, and gRPC does not survive a fork; start the process "
    "with multiprocessing's spawn method, or fork before Kiln is first used"
)

_grpc_in_use = False
_forked = False
_connections = weakref.WeakSet()
_default = None
_default_lock = threading.Lock()


def grpc_target(address):
    host, separator, port = address.rpartition(":")
    if address.startswith("unix:") and len(address) > len("unix:"):
        return "unix:" + os.path.abspath(address[len("unix:") :])
    if separator and host and port.isdigit():
        return address
    raise invalid("ADDRESS", f"the address {address} is neither HOST:PORT nor unix:PATH")


def _pem(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise invalid("CA", f"cannot read the certificate {path}: {error.strerror}") from None


def _credentials(ca, cert, key):
    authorities = None if ca is True else ca if isinstance(ca, bytes) else _pem(ca)
    if not cert:
        return grpc.ssl_channel_credentials(authorities)
    return grpc.ssl_channel_credentials(authorities, _pem(key), _pem(cert))


class Connection:
    """A daemon. The functions of the module are its methods as well: module_functions.py puts them here."""

    def __init__(self, address=None, token=None, ca=None, server_name=None, cert=None, key=None, affinity=None):
        global _grpc_in_use
        if _forked:
            raise Unavailable(_FORKED, "FORKED")
        _grpc_in_use = True
        self._private = address is None
        self.address = daemon.private_address() if self._private else address
        said = {
            "authorization": token and f"Bearer {token}",
            "traceparent": os.environ.get("TRACEPARENT"),
            "kiln-affinity": (affinity or os.environ.get("KILN_AFFINITY", "")).encode().hex(),  # any name fits a header
        }
        self._metadata = tuple((key, value) for key, value in said.items() if value) or None
        target = grpc_target(self.address)
        if bool(cert) != bool(key):
            raise invalid("CERTIFICATE", "a client's certificate and its key are given together (cert=, key=) or not at all")
        if cert and not ca:
            raise invalid("CERTIFICATE", "a client's certificate needs TLS: give the authorities of the service, too (ca=)")
        named = [("grpc.ssl_target_name_override", server_name)] if server_name else []
        self._channel = (
            grpc.secure_channel(target, _credentials(ca, cert, key), _OPTIONS + named)
            if ca
            else grpc.insecure_channel(target, _OPTIONS)
        )
        self._calls = {}
        self._garbage = collections.deque()  # of (id, bytes)
        self._lock = threading.Lock()
        self._local = None  # the shorter way, where there is one
        self._open = True
        self._why_closed = "the connection is closed"
        # The hot path of calls: bytes in, bytes out.
        run = self._channel.unary_unary("/kiln.v1.KernelService/Run")
        self._run_bytes = self._with_token(run)
        self._put_bytes = self._bound("/kiln.v1.TensorService/Put", self._channel.unary_unary)
        self._run_future = self._with_token(run.future)
        self._call_stream = None  # opened by the first call that nobody waits for
        self._check_service(ca, server_name)
        self._open_session()
        _connections.add(self)

    def _check_service(self, ca, server_name):
        """Whether a daemon answers at all, and one that this client can work with."""
        try:
            reply = self._describe(timeout=_CONNECT_SECONDS)
        except Unavailable as error:
            if error.reason != "UNREACHABLE" or self._private:
                raise
            reason, message = why_unreachable(self.address, ca, error.message, server_name)
            raise Unavailable(message, reason) from None
        require_compatible(reply.version, self.address)

    @public
    def describe(self):
        """What the daemon is and has: devices, version, components, and its counters by name."""
        reply = self._describe()
        return {
            **dict(reply.counters),
            "version": reply.version,
            "boot_id": reply.boot_id,
            "pid": reply.pid,
            "address": self.address,
            "devices": [_fields(row) for row in reply.devices],
            "components": [_fields(row) for row in reply.components],
            "counters": dict(reply.counters),
        }

    def close(self):
        """Ends the session: the daemon frees its tensors."""
        if self._open:
            self._shut("the connection is closed")
            self._close_local()
            if self._call_stream is not None:
                self._call_stream.close()
            self._session_stream.cancel()
            self._channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        return f"Connection({self.address})"

    # Calls.

    def run_bytes(self, request, timeout=None):
        """The encoded reply to an encoded RunRequest: the hot path of calls."""
        shorter = self._local
        if shorter is not None and shorter.is_open:
            return shorter.run(request, timeout)
        return self._run_bytes(request, timeout=timeout)

    def run_future(self, request, done, timeout=None):
        """A future of that reply, for calls that nobody waits for one by one; `done` is called with it once it has ended."""
        if timeout is not None:  # which is kept also when the daemon does not answer any more
            future = self._run_future(request, timeout=timeout)
            future.add_done_callback(done)
            return future
        future = None
        while future is None:
            with self._lock:
                if self._call_stream is None or not self._call_stream.is_usable:
                    open_stream = self._bound("/kiln.v1.CallService/Calls", self._channel.stream_stream)
                    self._call_stream = CallStream(open_stream, self._run_future)
                stream = self._call_stream
            future = stream.run(request, done)
        return future

    def call(self, method, request, reply_type, repeatable=True, timeout=None):
        """A unary call, repeated where that may help."""
        encoded = request.SerializeToString()
        function = self._calls.get(method)
        if function is None:
            function = self._bound(f"/kiln.v1.{method}", self._channel.unary_unary)
            self._calls[method] = function
        return reply_type.FromString(self.repeated(lambda: function(encoded, timeout=timeout), repeatable))

    def stream(self, method, request, reply_type, timeout=None):
        """The messages of a call that answers with several; not repeated."""
        self.check_open()
        open_stream = self._bound(
            f"/kiln.v1.{method}",
            self._channel.unary_stream,
            type(request).SerializeToString,
            reply_type.FromString,
        )
        return open_stream(request, timeout=timeout)

    def repeated(self, call, repeatable=True):
        """The result of a call, repeated where that may help."""
        self.check_open()
        return repeated(call, self.address, self._recover, self.free, repeatable)

    def check_open(self):
        if not self._open:
            raise Unavailable(self._why_closed, "FORKED" if _forked else "CLOSED")

    def _bound(self, path, kind, *coders):
        return self._with_token(kind(path, *coders))

    def _with_token(self, call):
        return functools.partial(call, metadata=self._metadata) if self._metadata else call

    def _describe(self, timeout=None):
        request = wire.DescribeRequest()
        return self.call("DaemonService/Describe", request, wire.DescribeResponse, timeout=timeout)

    def _recover(self, failure):
        """After the daemon was not reached: whether it can be now."""
        if not hasattr(self, "session"):
            return False  # a first attempt to connect is not repeated
        if self._private:
            daemon.private_address()
        # A channel that failed waits before it tries again; this waits with it.
        describe = self._bound("/kiln.v1.DaemonService/Describe", self._channel.unary_unary)
        limit = time.monotonic() + _RECOVER_SECONDS
        while (left := limit - time.monotonic()) > 0:
            try:
                describe(b"", timeout=min(left, _ANSWER_SECONDS), wait_for_ready=True)
                return True
            except grpc.RpcError as error:
                if error.code() not in _MAY_COME_BACK:
                    return False
                time.sleep(_RECOVER_PAUSE)  # one that is ending still answers for a moment, that it is
        return False

    # The session.

    def _open_session(self):
        open_stream = self._bound(
            "/kiln.v1.DaemonService/Session",
            self._channel.unary_stream,
            wire.SessionRequest.SerializeToString,
            wire.SessionEvent.FromString,
        )

        def first_event():
            stream = open_stream(wire.SessionRequest(client=f"python {daemon.VERSION}"))
            return stream, next(stream)

        self._session_stream, event = self.repeated(first_event)
        self._close_local()
        self._local = opened(event.local)
        self.session = event.session

    def _close_local(self):
        if self._local is not None:
            self._local.close()

    @property
    def local(self):
        """The shorter way to a daemon on this host; None where there is none (any more)."""
        return self._local if self._local is not None and self._local.is_open else None

    def renew(self, session):
        """Opens another session in place of `session`, which the daemon does not know (any more)."""
        with self._lock:
            if session == self.session:
                self._open_session()

    def _renewing(self, call):
        """The result of a call that names the session, which a restarted daemon does not know."""
        session = self.session
        try:
            return self.repeated(call)
        except NotFound as error:
            if error.reason != "SESSION":
                raise
            self.renew(session)
            return self.repeated(call)

    # Tensors.

    def upload(self, values, place, into="", by_digest=False):
        """Sends a compact array to a device, "cpu:0"; returns the tensor's id. `by_digest`: only where the daemon has not its
        contents already."""
        self.collect()
        data = memoryview(values.reshape(-1).view(np.uint8)) if values.size else b""

        def header():
            return self._header(values.shape, values.dtype, place, into)

        upload = None
        if len(data) > _PUT and not into and self.local is None:
            begin = self._bound("/kiln.v1.UploadService/Begin", self._channel.unary_unary)
            send = self._bound("/kiln.v1.UploadService/Send", self._channel.stream_unary)
            upload = Upload(begin, send, header, data, by_digest, lambda: self._stream(messages(header(), data)))
        return self._put(header, data, upload)

    def allocate(self, shape, dtype, place):
        """A tensor of zeros; returns its id."""
        self.collect()

        def header():
            header = self._header(shape, dtypes.NUMPY[dtype], place, "")
            header.empty = True
            return header

        return self._put(header, b"")

    def copy(self, tensor_id, place="", into=""):
        """Copies a tensor on the daemon: to a new one on a device, or into another; returns the copy's id."""
        self.collect()

        def send():
            request = wire.CopyRequest(tensor=tensor_id, device=place, into=into, session=self.session)
            return self.call("TensorService/Copy", request, wire.UploadResponse)

        return self._renewing(send).tensor

    def _header(self, shape, dtype, place, into):
        return wire.TensorHeader(
            type=dtypes.NUMBER[dtypes.dtype_name(dtype, "array")],
            shape=shape,
            device=place,
            session=self.session,
            into=into,
        )

    def _stream(self, requests):
        send = self._bound(
            "/kiln.v1.TensorService/Upload",
            self._channel.stream_unary,
            None,
            wire.UploadResponse.FromString,
        )
        return send(requests)

    def _uploaded(self, upload):
        """What an upload gives, which goes on as long as each connection brings some of it."""
        while True:
            before = upload.offset
            try:
                return self._renewing(upload)
            except (Unavailable, NotFound) as error:
                if error.reason not in ("UNREACHABLE", "SESSION") or upload.offset == before:
                    raise

    def _put(self, header, data, upload=None):
        """Uploads `data` under `header()`, which names the session; `upload()` does where it is not small."""

        def send():
            shorter = self.local
            if shorter is not None:
                return shorter.put(header(), data)
            if len(data) > _PUT:
                return self._stream(messages(header(), data))
            request = wire.PutRequest(header=header()).SerializeToString()
            encoded = self._put_bytes(request + frames.field(_PUT_DATA, data) if data else request)
            return wire.UploadResponse.FromString(encoded)

        if len(data) <= _PUT:
            return self._renewing(send).tensor
        with Waiting(f"uploading {len(data) / 1e6:.0f} MB"):
            return (self._renewing(send) if upload is None else self._uploaded(upload)).tensor

    def download(self, tensor_id, out=None):
        """The contents of a tensor as a numpy array, `out` when one is given."""
        receive = self._bound(
            "/kiln.v1.TensorService/Download",
            self._channel.unary_stream,
            wire.DownloadRequest.SerializeToString,
            None,
        )

        def contents():
            shorter = self.local
            if shorter is not None:
                return _placed(*shorter.contents(tensor_id), out)
            return _collected(receive(wire.DownloadRequest(tensor=tensor_id)), out)

        return self.repeated(contents)

    def forget(self, tensor_id, size):
        """Notes that a tensor of `size` bytes may be freed; called by finalizers, so it calls nobody."""
        self._garbage.append((tensor_id, size))

    def collect(self):
        """Frees what was forgotten, when it is enough to be worth a call."""
        # A copy, which finalizers of other threads cannot change meanwhile.
        garbage = self._garbage.copy() if self._garbage else ()
        if len(garbage) >= _GARBAGE_TENSORS or sum(size for _, size in garbage) >= _GARBAGE_BYTES:
            self.free()

    def free(self):
        """Frees what was forgotten; says whether there was anything."""
        tensors = []
        while self._garbage:  # finalizers of other threads may add meanwhile
            tensors.append(self._garbage.popleft()[0])
        if tensors and self._open:
            request = wire.FreeRequest(tensors=tensors)
            if self.local:
                self.repeated(lambda: self.local and self.local.ask(FREE, request))
            else:
                self.call("TensorService/Free", request, wire.FreeResponse)
        return bool(tensors)

    # The end.

    def _shut(self, why):
        self._open = False
        self._why_closed = why
        self.run_bytes = self._refuse

    def _refuse(self, *args, **kwargs):
        self.check_open()


def _fields(message):
    return {field.name: getattr(message, field.name) for field in message.DESCRIPTOR.fields}


def _placed(header, data, out):
    """Contents that are this process's own as an array, `out` when one is given."""
    dtype = dtypes.NUMPY[dtypes.NAME[header.type]]
    values = data[: math.prod(header.shape) * dtype.itemsize].view(dtype).reshape(tuple(header.shape))
    if out is None:
        return values
    out[...] = values
    return out


def _collected(replies, out):
    """The array that a download's messages hold."""
    header = wire.DownloadResponse.FromString(next(replies)).header
    dtype = dtypes.NUMPY[dtypes.NAME[header.type]]
    values = out
    if out is None or not out.flags.c_contiguous or out.dtype != dtype:
        values = np.empty(tuple(header.shape), dtype)
    if values.size:
        data = values.reshape(-1).view(np.uint8)
        position = 0
        for reply in replies:
            piece = frames.contents(_DOWNLOAD_CHUNK, reply, wire.DownloadResponse)
            data[position : position + piece.size] = piece
            position += piece.size
    if out is not None and values is not out:
        out[...] = values
    return values if out is None else out


@public
def connect(address=None, token=None, ca=None, default=True, server_name=None, cert=None, key=None, affinity=None):
    """Connects to a daemon: HOST:PORT or unix:PATH; without an address KILN_ADDRESS, then the service of `kiln login`,
    else the private daemon of this user. `ca` is a PEM file with the authorities to trust, `server_name` the name that
    the certificate is for where it is not the address's, `cert` and `key` PEM files of this client's own certificate, where
    the service asks for one. `affinity` (or KILN_AFFINITY) names what is called, such as a kernel: behind a proxy that looks
    at it, connections that give the same name come to the same server. With `default`, the module's functions use the
    connection from now on."""
    global _default
    if address is not None and not isinstance(address, str):
        raise InvalidArgument(f"an address is a string, but got {type(address).__name__}", "ADDRESS")
    where = endpoint(address, token, ca, server_name)
    if where[0] is not None:  # the private daemon asks for none
        cert, key = cert or os.environ.get("KILN_CERT"), key or os.environ.get("KILN_KEY")
    connection = Connection(*where, cert, key, affinity)
    if default:
        _default = connection
    return connection


def default_connection():
    """The connection of the module's functions, made when it is first needed."""
    if _default is None or not _default._open:
        with _default_lock:
            if _default is None or not _default._open:
                connect()
    return _default


def connection_or_default(connection):
    """What a function of the module works on that was given this as `connection=`."""
    return connection or default_connection()


@public
def describe():
    """What the daemon is and has: devices, version, components, and its counters by name."""
    return default_connection().describe()


def _close_all():
    for connection in list(_connections):
        connection.close()


def _after_fork():
    # gRPC does not survive a fork, neither its channels nor what new ones would need.
    global _forked
    _forked = _grpc_in_use
    for connection in list(_connections):
        connection._shut(_FORKED)


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_after_fork)
