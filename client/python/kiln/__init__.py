"""Kiln: tensor kernels, described here, compiled and run by a daemon.

`import kiln as tvm` serves `te` programs of any age: every name of te stands here as well.
"""

from . import contrib, driver, error, ir, nd, optimizers, runtime, target, te, testing, tir, topi, transform
from . import nd as ndarray
from . import runtime as module
from . import te as api
from . import te as intrin
from . import te as schedule
from . import te as tensor
from . import tir as expr
from . import tir as make
from ._base.absent import get_global_func, graphs, hybrid, ir_builder, ir_pass, register_func, rpc, scripts, tuners
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
from ._base.suggest import UnknownName
from ._base.suggest import answers as _answers
from ._definitions import whole as _whole  # puts the operators on tensors
from ._definitions.kernel import Kernel
from ._encoding.encode import kernel
from ._expressions.c_functions import register_intrin_rule
from ._programs.function import function
from ._programs.plan import ProgramPlan
from ._programs.load import load_programs, parse_programs
from ._programs.program import Program
from ._programs.run import ProgramResult
from ._schedule.replay import load_schedule, parse_schedule
from ._service.connection import connect, describe
from ._service.artifact import ArtifactFunction, load_artifact
from ._service.device import (
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
from ._service.fleet import Fleet
from ._service.fleet_call import FleetFunction
from ._service.job import Job, JobState
from ._service.kernel_file import kernel_text, load_kernels, parse_kernels
from ._service.module_functions import build, compile, job, jobs, lower, predict, tune  # and puts them on connections
from ._service.predict import PredictedSchedule, Predictions
from ._service.tune import TuneResult
from ._version import VERSION
from .ir import Range, load_json, save_json
from .runtime import load, load_module
from .te import *  # noqa: F403
from .te import __all__ as _te
from .tir import Select, call_extern, call_intrin, call_pure_extern, call_pure_intrin, decl_buffer
from .transform import PassContext, build_config

__version__ = VERSION

TVMError = Error
TVMContext = Device
globals().update({**graphs, **scripts, **tuners})
del graphs, scripts, tuners

__all__ = sorted(
    {
        *_te,
        "ArtifactFunction", "Cancelled", "DeadlineExceeded", "Device", "Error", "Fleet", "FleetFunction", "HandleLost", "Internal",
        "InvalidArgument", "Job", "JobState", "Kernel", "NotFound", "PassContext", "Program", "ProgramPlan", "ProgramResult", "Range", "ResourceExhausted", "Select",
        "IRModule", "TVMContext", "TVMError", "Unauthenticated", "Unavailable", "UnknownName",
        "Unsupported", "api", "autotvm", "auto_scheduler", "build", "build_config", "call_extern", "call_intrin",
        "call_pure_extern", "call_pure_intrin", "cl", "compile", "connect", "context", "contrib", "cpu", "cuda", "decl_buffer", "describe",
        "device", "driver", "error", "expr", "function", "get_global_func", "gpu", "ir", "ir_pass", "job", "jobs", "kernel", "kernel_text",
        "intrin", "ir_builder", "load", "load_artifact", "load_json", "load_kernels", "load_module", "load_programs", "load_schedule", "lower", "make", "meta_schedule", "metal", "module", "nd", "optimizers",
        "ndarray", "opencl", "parse_kernels", "parse_programs", "parse_schedule", "predict", "PredictedSchedule", "Predictions", "register_func", "register_intrin_rule", "relax", "relay", "rocm", "rpc", "runtime", "save_json",
        "schedule", "script", "target", "te", "tensor", "testing", "tir", "topi", "transform", "tune", "TuneResult", "vulkan",
    }
)  # fmt: skip
__getattr__ = _answers(__name__, __all__)
