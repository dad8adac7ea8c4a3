"""The te vocabulary: sizes, tensors, reducers, scans, intrinsics and schedules."""

import sys

from ._base import absent as _absent
from ._base.absent import hybrid as hybrid
from ._base.suggest import answers as _answers
from ._definitions.define import *  # noqa: F403
from ._definitions.define import __all__ as _define
from ._definitions.scatter import *  # noqa: F403
from ._definitions.intrin import TensorIntrin as TensorIntrin, decl_tensor_intrin as decl_tensor_intrin
from ._definitions.scatter import __all__ as _scatter
from ._definitions.tags import tag_scope as tag_scope
from ._definitions.tensor import (
    ComputeOp as ComputeOp,
    ExternOp as ExternOp,
    HybridOp as HybridOp,
    Operation as Operation,
    PlaceholderOp as PlaceholderOp,
    ScanOp as ScanOp,
    Tensor as Tensor,
    TensorComputeOp as TensorComputeOp,
    TensorSlice as TensorSlice,
)
from ._expressions.comm_reducer import comm_reducer as comm_reducer
from ._expressions.expr import Var as Var
from ._expressions.operators import *  # noqa: F403
from ._expressions.operators import __all__ as _operators
from ._expressions.range import Range as Range
from ._expressions.reduce import *  # noqa: F403
from ._expressions.reduce import __all__ as _reduce
from ._schedule.auto_inline import *  # noqa: F403
from ._schedule.auto_inline import __all__ as _auto_inline
from ._schedule.axes import IterVar as IterVar
from ._schedule.relations import Fuse as Fuse, Singleton as Singleton, Split as Split
from ._schedule.schedule import (
    Schedule as Schedule,
    Stage as Stage,
    create_schedule as create_schedule,
    thread_axis as thread_axis,
)
from ._service.gradient import gradient as gradient

# Modules of classic te, which held parts of this one.
operation = schedule = tag = tensor = sys.modules[__name__]

for _name in (*_absent.TE, *_absent.TIR):
    globals()[_name] = getattr(_absent, _name)

__all__ = sorted(
    {
        *_define, *_operators, *_reduce, *_scatter, *_absent.TE, *_absent.TIR, "comm_reducer",
        "create_schedule", "decl_tensor_intrin", "gradient", "hybrid",
        "tag_scope", "thread_axis",
    }
)  # fmt: skip
__getattr__ = _answers(__name__, __all__)
__all__ += _auto_inline
