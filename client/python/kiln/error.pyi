"""The exceptions, as classic programs import them: `from tvm.error import TVMError`. Written by generate_stubs.py; do not edit."""

from typing import Any, Callable, Sequence
from kiln._stubs import Cancelled as Cancelled, DeadlineExceeded as DeadlineExceeded, Error as Error, Error as InternalError, Error as TVMError, HandleLost as HandleLost, Internal as Internal, InvalidArgument as InvalidArgument, NotFound as NotFound, ResourceExhausted as ResourceExhausted, Unauthenticated as Unauthenticated, Unavailable as Unavailable, Unsupported as Unsupported


