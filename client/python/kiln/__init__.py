"""Kiln: tensor kernels, described here, compiled and run by a daemon.

`import kiln as tvm` serves `te` programs of any age: every name of te stands here as well.
"""

from . import contrib, driver, error, ir, nd, runtime, target, te, testing, tir, topi, transform
from . import nd as ndarray
from . import runtime as module
from . import te as api
from . import te as intrin
from . import te as schedule
from . import te as tensor
from . import tir as expr
from . import tir as make
from ._absent import get_global_func, graphs, hybrid, ir_builder, ir_pass, register_func, rpc, scripts, tuners
from ._build import build, compile, lower
from ._device import (
    Device,
    cl,
    context,
    cpu,
    cuda,
    device,
    gpu,
    metal,
    opencl,
    rocm,
    vulkan,
)
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
)
from ._kernel import Kernel, kernel
from ._kernel_file import kernel_text, load_kernels, parse_kernels
from ._schedule_text import load_schedule, parse_schedule
from ._suggest import UnknownName
from ._suggest import answers as _answers
from .ir import Range
from .runtime import load, load_module
from .te import *  # noqa: F403
from .te import __all__ as _te
from .tir import Select, call_intrin, call_pure_intrin
from .transform import PassContext, build_config
from ._tune import TuneResult, tune

__version__ = "0.1.0"

TVMError = Error
TVMContext = Device
globals().update({**graphs, **scripts, **tuners})
del graphs, scripts, tuners


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

__all__ = sorted(
    {
        *_te,
        "Cancelled", "DeadlineExceeded", "Device", "Error", "HandleLost", "Internal",
        "InvalidArgument", "Kernel", "NotFound", "PassContext", "Range", "ResourceExhausted", "Select",
        "IRModule", "TVMContext", "TVMError", "Unauthenticated", "Unavailable", "UnknownName",
        "Unsupported", "api", "autotvm", "auto_scheduler", "build", "build_config", "call_intrin",
        "call_pure_intrin", "cl", "compile", "connect", "context", "contrib", "cpu", "cuda", "describe",
        "device", "driver", "error", "expr", "get_global_func", "gpu", "ir", "ir_pass", "kernel", "kernel_text",
        "intrin", "ir_builder", "load", "load_kernels", "load_module", "load_schedule", "lower", "make", "meta_schedule", "metal", "module", "nd",
        "ndarray", "opencl", "parse_kernels", "parse_schedule", "register_func", "relax", "relay", "rocm", "rpc", "runtime",
        "schedule", "script", "target", "te", "tensor", "testing", "tir", "topi", "transform", "tune", "TuneResult", "vulkan",
    }
)  # fmt: skip
__getattr__ = _answers(__name__, __all__)
