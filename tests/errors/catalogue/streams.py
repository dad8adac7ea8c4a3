"""Mistakes with certificates, in streams of small calls, and in uploads by name, which a client of one's own may make."""

import kiln
from kiln.v1 import calls_pb2, types_pb2, uploads_pb2
from kiln.v1 import service_pb2 as wire

from .entry import Section
from .programs import begun, over_stream, sent, upload_header

wrong = Section(
    "streams", "Certificates, streams of calls and uploads by name",
    "How a client shows who it is, and what may go wrong in a stream of small calls, which Python's and C++'s `submit` use, and in "
    "uploads that go on where they broke off.",
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


@wrong(
    "UPLOAD_NAME",
    "the name of an upload has 0 bytes, but must have 1 to 64",
    fix="a name of the client's choice, as 32 random hexadecimal digits",
    at="run",
)
def upload_without_a_name():
    begun("")  # <-


@wrong(
    "UPLOAD_DIGEST",
    "the digest of the upload has 4 bytes, but SHA-256 has 32",
    fix="the SHA-256 of the contents as bytes, or none",
    at="run",
)
def upload_with_a_digest_of_another_kind():
    begun("weights", sha256=b"md5!")  # <-


@wrong(
    "UPLOAD_DIGEST",
    "the contents that came have the digest 374708fff7719dd5979ec875d56cd2286f6d3cf7ec317a3b25632aab28ec37bb, but the upload was "
    "begun with 0000000000000000000000000000000000000000000000000000000000000000",
    fix="the SHA-256 of what is sent",
    at="run",
)
def upload_of_other_contents_than_its_digest_says():
    begun("weights", sha256=bytes(32))
    rest = uploads_pb2.UploadPart(rest=uploads_pb2.UploadRest(upload="weights"))
    sent(rest, uploads_pb2.UploadPart(chunk=bytes(16)))  # <-


@wrong(
    "UPLOAD_HEADER",
    "an upload that may be resumed makes a new tensor with contents; use Put or Upload for others",
    fix="Put or Upload with a header that says empty",
    at="run",
)
def upload_by_name_of_nothing():
    header = upload_header()
    header.empty = True
    begun("weights", header=header)  # <-


@wrong(
    "UPLOAD_OFFSET",
    "the upload is sent from byte 8 on, but 0 bytes of it are here; begin it again",
    fix="the offset that Begin tells",
    at="run",
)
def upload_from_another_offset():
    begun("biases")
    sent(uploads_pb2.UploadPart(rest=uploads_pb2.UploadRest(upload="biases", offset=8)))  # <-


@wrong(
    "UPLOAD",
    "there is no upload nobody's, or nothing came of it for a while; begin it again",
    fix="Begin first",
    kind="NotFound", at="run",
)
def upload_that_was_never_begun():
    sent(uploads_pb2.UploadPart(rest=uploads_pb2.UploadRest(upload="nobody's")))  # <-
