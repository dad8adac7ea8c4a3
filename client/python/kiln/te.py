"""The te vocabulary: sizes, tensors, reducers, scans, intrinsics and schedules."""

from ._define import *  # noqa: F403
from ._define import __all__ as _define
from ._expr import Var as Var
from ._operators import *  # noqa: F403
from ._operators import __all__ as _operators
from ._reduce import *  # noqa: F403
from ._reduce import __all__ as _reduce
from ._schedule import Schedule as Schedule
from ._schedule import Stage as Stage
from ._schedule import create_schedule as create_schedule
from ._schedule import thread_axis as thread_axis
from ._tensor import ComputeOp as ComputeOp
from ._tensor import PlaceholderOp as PlaceholderOp
from ._tensor import ScanOp as ScanOp
from ._tensor import Tensor as Tensor

__all__ = sorted({*_define, *_operators, *_reduce, "create_schedule", "thread_axis"})
