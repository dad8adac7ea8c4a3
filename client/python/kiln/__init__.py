"""Kiln: tensor kernels, described here, compiled and run by a daemon.

`import kiln as tvm` serves `te` programs of any age: every name of te stands here as well.
"""

from . import nd, target, te, testing, tir, topi
from . import nd as ndarray
from ._build import build, compile, lower
from ._device import Device, context, cpu, cuda, device, gpu
from ._error import (
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
    public,
    unsupported,
)
from ._kernel import Kernel, kernel
from .te import *  # noqa: F403
from .te import __all__ as _te
from .tir import Select

__version__ = "0.1.0"


@public
def connect(address=None, token=None, ca=None, default=True):
    """Connects to a daemon: HOST:PORT or unix:PATH; without an address KILN_ADDRESS, else the private
    daemon of this user. With `default`, the functions of this module use it from now on."""
    from . import _connection

    return _connection.connect(address, token, ca, default)


@public
def describe():
    """What the daemon is and has: devices, version, components, and its counters by name."""
    from . import _connection

    return _connection.describe()


@public
def load_module(path, fmt=""):
    """Not part of this version."""
    raise unsupported(
        "NOT_IN_THIS_VERSION",
        "saved modules are not part of this version of Kiln; build again: the daemon's cache has it",
    )


load = load_module

__all__ = sorted(
    {
        *_te,
        "Cancelled", "DeadlineExceeded", "Device", "Error", "HandleLost", "Internal",
        "InvalidArgument", "Kernel", "NotFound", "ResourceExhausted", "Select", "Unauthenticated",
        "Unavailable", "Unsupported", "build", "compile", "connect", "context", "cpu", "cuda",
        "describe", "device", "gpu", "kernel", "load_module", "lower", "nd", "ndarray", "target", "te",
        "testing", "tir", "topi",
    }
)  # fmt: skip
