"""Operators on whole tensors, as topi has them. nn.* are the operators of neural networks.

Each is a function of tensors that gives tensors; nothing is computed until a kernel is built of them.
Shapes may be symbolic. Where numpy has the operator, the meaning is numpy's unless the doc says otherwise.
"""

from . import generic, nn, random, tag, utils, utils as util
from ._absent import MODULES as _MODULES, ROOT as _ROOT, refusing as _refusing
from ._elementwise import *  # noqa: F403
from ._elementwise import __all__ as _elementwise
from ._gather import *  # noqa: F403
from ._gather import __all__ as _gather
from ._make import *  # noqa: F403
from ._make import __all__ as _make
from ._places import *  # noqa: F403
from ._places import __all__ as _places
from ._product import *  # noqa: F403
from ._product import __all__ as _product
from ._reduction import *  # noqa: F403
from ._reduction import __all__ as _reduction
from ._scatter import *  # noqa: F403
from ._scatter import __all__ as _scatter
from ._shape import *  # noqa: F403
from ._shape import __all__ as _shape
from ._signal import *  # noqa: F403
from ._signal import __all__ as _signal
from ._sort import *  # noqa: F403
from ._sort import __all__ as _sort
from .generic import cuda, x86

__all__ = sorted(
    {
        *_elementwise, *_gather, *_make, *_places, *_product, *_reduction, *_scatter, *_shape, *_signal, *_sort,
        "cuda", "generic", "nn", "random", "tag", "util", "utils", "x86",
    }
)  # fmt: skip
__getattr__ = _refusing(__name__, __all__, _ROOT, _MODULES)
