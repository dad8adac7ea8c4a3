"""Mistakes with certificates, and in streams of small calls, which a client of one's own may make."""

import kiln
from kiln.v1 import calls_pb2, types_pb2
from kiln.v1 import service_pb2 as wire

from .entry import Section
from .programs import over_stream

wrong = Section(
    "streams", "Certificates and streams of calls",
    "How a client shows who it is, and what may go wrong in a stream of small calls, which Python's and C++'s `submit` use.",
)  # fmt: skip


@wrong(
    "CERTIFICATE",
    "a client's certificate and its key are given together (cert=, key=) or not at all",
    fix="the key of the certificate, too",
)
def certificate_without_its_key():
    kiln.connect("127.0.0.1:7411", ca="ca.pem", cert="client.pem", default=False)  # <-


@wrong(
    "CERTIFICATE",
    "a client's certificate needs TLS: give the authorities of the service, too (ca=)",
    fix="ca= with the authorities that have signed the service's certificate",
)
def certificate_without_tls():
    kiln.connect("127.0.0.1:7411", cert="client.pem", key="client.key", default=False)  # <-


@wrong(
    "SMALL_CALL",
    "call 7 of the stream asks for nothing",
    fix="set put, run or free",
    at="run",
)
def small_call_without_a_kind():
    over_stream(calls_pb2.SmallCall(id=7))  # <-


@wrong(
    "KERNEL",
    "kernel k0 is not known here, or no more; compile it again",
    fix="compile it, and use the id of the reply",
    kind="NotFound", at="run",
)
def small_call_of_a_kernel_that_was_never_compiled():
    over_stream(calls_pb2.SmallCall(id=7, run=wire.RunRequest(kernel_id="k0")))  # <-


@wrong(
    "TENSOR_NUMBER",
    "tensor 3 has a number but no session, and numbers are those of a session",
    fix="the session in the header, or no number",
    at="run",
)
def number_of_a_tensor_without_a_session():
    header = wire.TensorHeader(type=types_pb2.DATA_TYPE_FLOAT32, shape=[2], device="cpu:0")
    over_stream(calls_pb2.SmallCall(id=7, number=3, put=wire.PutRequest(header=header, data=bytes(8))))  # <-
