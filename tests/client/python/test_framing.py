"""The bytes of the messages that carry tensors are those that protobuf makes and reads."""

import numpy as np
import pytest

from kiln._service import framing
from kiln.v1 import service_pb2 as wire

SIZES = [1, 127, 128, 129, 16383, 16384, (1 << 20) - 1, 1 << 20]


@pytest.mark.parametrize("size", SIZES)
def test_a_chunk_is_sent_as_protobuf_would(size):
    data = np.random.RandomState(size).bytes(size)
    header = wire.TensorHeader(shape=[size], device="cpu:0")
    first, chunk = framing.upload_messages(header, memoryview(data))
    assert first == wire.UploadRequest(header=header).SerializeToString()
    assert chunk == wire.UploadRequest(chunk=data).SerializeToString()


def test_contents_are_cut_into_chunks():
    data = np.random.RandomState(0).bytes(2 * framing.CHUNK_BYTES + 5)
    messages = list(framing.upload_messages(wire.TensorHeader(), memoryview(data)))
    chunks = [wire.UploadRequest.FromString(message).chunk for message in messages[1:]]
    assert [len(chunk) for chunk in chunks] == [framing.CHUNK_BYTES, framing.CHUNK_BYTES, 5]
    assert b"".join(chunks) == data


def test_a_tensor_without_contents_is_its_header():
    assert len(list(framing.upload_messages(wire.TensorHeader(), b""))) == 1


@pytest.mark.parametrize("size", [0, *SIZES])
def test_a_chunk_is_read_as_protobuf_would(size):
    data = np.random.RandomState(size).bytes(size)
    assert framing.chunk_of(wire.DownloadResponse(chunk=data).SerializeToString()).tobytes() == data


def test_messages_of_another_form_are_read_by_protobuf():
    twice = wire.DownloadResponse(chunk=b"ab").SerializeToString() + wire.DownloadResponse(chunk=b"cd").SerializeToString()
    assert framing.chunk_of(twice).tobytes() == b"cd"  # of a field that comes twice the last counts
    longer = bytes([0x12, 0x82, 0x00]) + b"ab"  # a length in more bytes than it needs
    assert framing.chunk_of(longer).tobytes() == b"ab"
    for broken in (b"\x12\x05ab", b"\x12\xff\xff\xff\xff\xff\xff"):
        with pytest.raises(Exception, match="parsing"):
            framing.chunk_of(broken)
