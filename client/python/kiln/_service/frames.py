"""Messages that are one field of bytes, as they are on the wire: made and read with one copy of the bytes.

    field(2, b"abc") == b"\x12\x03abc"    # as UploadRequest(chunk=b"abc").SerializeToString()
"""

import numpy as np

_LENGTH_DELIMITED = 2


def integer(number, value):
    """A field of an integer that is not negative."""
    return bytes((number << 3,)) + _varint(value)


def field(number, data):
    """A field of bytes; `data` is anything that has a buffer of bytes."""
    return b"".join((bytes((number << 3 | _LENGTH_DELIMITED,)), _varint(len(data)), data))


def _varint(value):
    groups = []
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def contents(number, message, kind):
    """The bytes of `message`, which is of this kind and has its field `chunk` alone, as an array."""
    if message and message[0] == number << 3 | _LENGTH_DELIMITED:
        size, position = 0, 1
        while position < min(len(message), 6):
            size |= (message[position] & 0x7F) << 7 * (position - 1)
            position += 1
            if message[position - 1] < 0x80:
                break
        if position + size == len(message):
            return np.frombuffer(message, np.uint8, offset=position) if size else np.empty(0, np.uint8)
    return np.frombuffer(kind.FromString(message).chunk, np.uint8)
