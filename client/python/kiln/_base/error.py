"""The exceptions of Kiln, one class a kind."""

import functools
import os
import types

from . import source


class Error(RuntimeError):
    """What Kiln raises. `str()` is the message, a line for each note, and the place if it is known."""

    kind = "Internal"

    def __init__(self, message, reason="", notes=(), file="", line=0):
        super().__init__(message)
        self.message = message
        self.reason = reason  # a stable upper-case word, which programs may test
        self.notes = list(notes)
        self.file = file
        self.line = line

    def __str__(self):
        lines = [self.message, *self.notes]
        if self.line:
            lines.append(f"  at {source.display(self.file)}:{self.line}")
        return "\n".join(lines)

    def __reduce__(self):
        return type(self), (self.message, self.reason, self.notes, self.file, self.line)


class InvalidArgument(Error, ValueError):
    """The request is wrong."""

    kind = "InvalidArgument"


class Unsupported(Error):
    """The request makes sense, but this version does not do it."""

    kind = "Unsupported"


class NotFound(Error, LookupError):
    """The daemon does not know what was named."""

    kind = "NotFound"


class HandleLost(Error):
    """A tensor is gone; it must be made again."""

    kind = "HandleLost"


class ResourceExhausted(Error):
    """A limit was passed."""

    kind = "ResourceExhausted"


class Unavailable(Error, ConnectionError):
    """The daemon or a device cannot be reached."""

    kind = "Unavailable"


class DeadlineExceeded(Error, TimeoutError):
    """The time given was not enough."""

    kind = "DeadlineExceeded"


class Cancelled(Error):
    """The call was cancelled."""

    kind = "Cancelled"


class Unauthenticated(Error, PermissionError):
    """The token is missing or wrong."""

    kind = "Unauthenticated"


class Internal(Error):
    """A bug of Kiln."""

    kind = "Internal"


for _class in (Error, *Error.__subclasses__()):
    _class.__module__ = "kiln"

# By the numbers of kiln/v1/error.proto.
BY_NUMBER = dict(
    enumerate(
        (
            InvalidArgument,
            Unsupported,
            NotFound,
            HandleLost,
            ResourceExhausted,
            Unavailable,
            DeadlineExceeded,
            Cancelled,
            Unauthenticated,
            Internal,
        ),
        start=1,
    )
)


def limited(reason, message):
    """A ResourceExhausted at the user's line."""
    return ResourceExhausted(message, reason, (), *source.caller())


def invalid(reason, message, *notes):
    """An InvalidArgument at the user's line."""
    file, line = source.caller()
    return InvalidArgument(message, reason, notes, file, line)


def unsupported(reason, message, *notes):
    """An Unsupported at the user's line."""
    file, line = source.caller()
    return Unsupported(message, reason, notes, file, line)


def called(kernel, otherwise="the kernel"):
    """A kernel in a sentence: its name, or `otherwise` when it has the one that no user gave."""
    return otherwise if kernel == "main" else kernel


def without_inner_frames(error):
    """The error with a traceback that shows the user's frames only."""
    frames = []
    entry = error.__traceback__
    while entry is not None:
        if not source.is_ours(entry.tb_frame.f_code.co_filename):
            frames.append(entry)
        entry = entry.tb_next
    rest = None
    for entry in reversed(frames):
        rest = types.TracebackType(rest, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return error.with_traceback(rest)


def public(function):
    """A function of the package's surface: its errors show the caller, not our insides."""
    if os.environ.get("KILN_FULL_TRACEBACK"):
        return function

    @functools.wraps(function)
    def call(*args, **kwargs):
        __tracebackhide__ = True  # of pytest and IPython
        try:
            return function(*args, **kwargs)
        except Error as error:
            raise without_inner_frames(error) from None

    return call
