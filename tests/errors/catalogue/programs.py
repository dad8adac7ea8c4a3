"""The programs that mistakes are made in: those of the tutorials."""

from google.rpc import status_pb2

import kiln
from kiln import te
from kiln._service import connection as _connection
from kiln._service.local import CODES, LocalError
from kiln._service.rpc import failure_of
from kiln.v1 import calls_pb2
from kiln.v1 import service_pb2 as wire
from kiln.v1 import types_pb2, uploads_pb2


def add_one(shape=(4,)):
    """B = A + 1, element by element."""
    A = te.placeholder(shape, name="A")
    return A, te.compute(shape, lambda *i: A(*i) + 1, name="B")


def chain():
    """C = (A + 1) * 2 in two stages, of any size."""
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1, name="B")
    return A, B, te.compute((n,), lambda i: B[i] * 2, name="C")


def matmul():
    """C = A @ B, of any size."""
    n, l, m = te.var("n"), te.var("l"), te.var("m")
    A, B = te.placeholder((n, l), name="A"), te.placeholder((l, m), name="B")
    k = te.reduce_axis((0, l), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C


def running_sum():
    """S[t] = S[t - 1] + X[t], each column on its own."""
    m, n = te.var("m"), te.var("n")
    X, state = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: X[0, i], name="init")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    return X, te.scan(init, update, state, name="S")


def built_matmul():
    """The same, ready to be called."""
    return kiln.build(list(matmul()), name="matmul")


def request():
    """The request to compile add_one, as it goes over the wire."""
    kernel = kiln.kernel(list(add_one()), name="add_one")
    kernel.source_map.ClearField("stage_lines")  # so that no line of ours is named
    target = wire.Target(name="llvm")
    return wire.CompileRequest(definition=kernel.definition, source_map=kernel.source_map, target=target)


def ask(method, message, reply):
    """Asks the daemon as a client does that is written in any language."""
    return _connection.default_connection().call(method, message, reply)


def compiled(message):
    """Asks it to compile."""
    return ask("KernelService/Compile", message, wire.CompileResponse)


def over_stream(call):
    """Asks it over a stream of small calls."""
    connection = _connection.default_connection()
    calls = connection._bound("/kiln.v1.CallService/Calls", connection._channel.stream_stream)
    request = calls_pb2.CallsRequest(calls=[call]).SerializeToString()
    reply = calls_pb2.CallsReply.FromString(next(calls(iter([request])))).replies[0]
    status = status_pb2.Status.FromString(reply.failed)
    raise failure_of(LocalError(CODES[status.code], status.message, reply.failed), connection.address).error


def upload_header():
    """The header of four numbers."""
    session = _connection.default_connection().session
    return wire.TensorHeader(type=types_pb2.DATA_TYPE_FLOAT32, shape=[4], device="cpu:0", session=session)


def uploaded(*messages):
    """Uploads what a stream of messages holds."""
    connection = _connection.default_connection()
    return connection._renewing(lambda: connection._stream(message.SerializeToString() for message in messages)).tensor


def sent(*parts):
    """Sends these parts of an upload by name."""
    connection = _connection.default_connection()
    send = connection._channel.stream_unary("/kiln.v1.UploadService/Send")
    return connection.repeated(lambda: send(part.SerializeToString() for part in parts))


def begun(name, **more):
    """Begins an upload of four numbers under this name."""
    message = uploads_pb2.BeginUploadRequest(**{"header": upload_header(), "upload": name, **more})
    return ask("UploadService/Begin", message, uploads_pb2.UploadState)


def product():
    """A reducer of one value."""
    return te.comm_reducer(lambda a, b: a * b, lambda t: te.const(1, t), name="product")


def arg_max():
    """A reducer of two values: where the largest is, and how large."""
    better = lambda x, y: (te.select(x[1] >= y[1], x[0], y[0]), te.max(x[1], y[1]))
    return te.comm_reducer(better, lambda i, v: (te.const(-1, i), te.min_value(v)), name="argmax")
