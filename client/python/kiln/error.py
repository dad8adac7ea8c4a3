"""The exceptions, as classic programs import them: `from tvm.error import TVMError`."""

from ._base.error import (
    Cancelled,
    DeadlineExceeded,
    Error,
    HandleLost,
    Internal,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    Unsupported,
)

TVMError = InternalError = Error

__all__ = [
    "Cancelled", "DeadlineExceeded", "Error", "HandleLost", "Internal", "InternalError", "InvalidArgument",
    "NotFound", "ResourceExhausted", "TVMError", "Unauthenticated", "Unavailable", "Unsupported",
]  # fmt: skip
