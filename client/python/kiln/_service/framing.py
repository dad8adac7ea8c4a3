"""The messages that carry the contents of tensors, made and read as bytes: protobuf would copy each chunk twice more.

    UploadRequest{chunk: contents}  ->  12 | length | contents      (field 2, of the kind "bytes")

A message of another form is read by protobuf, so a daemon may lay out its replies as it likes.
"""

import numpy as np

from ..v1 import service_pb2 as wire

CHUNK_BYTES = 1 << 20


def _key(message):
    """The byte before a chunk: the number of its field, and that its length follows."""
    return message.DESCRIPTOR.fields_by_name["chunk"].number << 3 | 2


_UPLOAD_KEY = _key(wire.UploadRequest)
_DOWNLOAD_KEY = _key(wire.DownloadResponse)


def _length(size):
    """A number as protobuf writes it: seven bits a byte, the lowest first."""
    encoded = bytearray()
    while size >= 0x80:
        encoded.append(size & 0x7F | 0x80)
        size >>= 7
    encoded.append(size)
    return encoded


def upload_messages(header, data):
    """What an upload sends: the header, then the contents in chunks."""
    yield wire.UploadRequest(header=header).SerializeToString()
    for start in range(0, len(data), CHUNK_BYTES):
        chunk = data[start : start + CHUNK_BYTES]
        yield b"".join((bytes([_UPLOAD_KEY]) + _length(len(chunk)), chunk))


def chunk_of(message):
    """The chunk of a DownloadResponse."""
    if message and message[0] == _DOWNLOAD_KEY:
        size, shift, position = 0, 0, 1
        while position < min(len(message), 6):
            byte = message[position]
            size |= (byte & 0x7F) << shift
            position, shift = position + 1, shift + 7
            if byte < 0x80:
                break
        if position + size == len(message):
            return np.frombuffer(message, np.uint8, size, position)
    return np.frombuffer(wire.DownloadResponse.FromString(message).chunk, np.uint8)
