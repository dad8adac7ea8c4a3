"""The te vocabulary: sizes, tensors, reducers, scans, intrinsics and schedules."""

import sys

from . import _absent
from ._absent import hybrid as hybrid
from ._comm_reducer import comm_reducer as comm_reducer
from ._define import *  # noqa: F403
from ._define import __all__ as _define
from ._expr import Var as Var
from ._operators import *  # noqa: F403
from ._operators import __all__ as _operators
from ._range import Range as Range
from ._reduce import *  # noqa: F403
from ._reduce import __all__ as _reduce
from ._scatter import *  # noqa: F403
from ._scatter import __all__ as _scatter
from ._schedule import Schedule as Schedule
from ._schedule import Stage as Stage
from ._schedule import create_schedule as create_schedule
from ._schedule import thread_axis as thread_axis
from ._suggest import answers as _answers
from ._tag import tag_scope as tag_scope
from ._tensor import ComputeOp as ComputeOp
from ._tensor import ExternOp as ExternOp
from ._tensor import HybridOp as HybridOp
from ._tensor import Operation as Operation
from ._tensor import PlaceholderOp as PlaceholderOp
from ._tensor import ScanOp as ScanOp
from ._tensor import Tensor as Tensor
from ._tensor import TensorComputeOp as TensorComputeOp
from ._tensor import TensorSlice as TensorSlice
from ._auto_inline import *  # noqa: F403
from ._auto_inline import __all__ as _auto_inline

# Modules of classic te, which held parts of this one.
operation = schedule = tag = tensor = sys.modules[__name__]

for _name in (*_absent.TE, *_absent.TIR):
    globals()[_name] = getattr(_absent, _name)

__all__ = sorted(
    {
        *_define, *_operators, *_reduce, *_scatter, *_absent.TE, *_absent.TIR, "comm_reducer",
        "create_schedule", "hybrid",
        "tag_scope", "thread_axis",
    }
)  # fmt: skip
__getattr__ = _answers(__name__, __all__)
__all__ += _auto_inline
