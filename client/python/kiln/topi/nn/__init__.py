"""The operators of neural networks. Those with a definition in compiler/operators are built on it."""

from .._absent import NN as _NN
from .._absent import refusing as _refusing
from .._elementwise import add
from .._places import layout_transform
from .._product import batch_matmul
from .._shape import flatten as _flatten
from ._activation import *  # noqa: F403
from ._activation import __all__ as _activation
from ._adjoints import *  # noqa: F403
from ._adjoints import __all__ as _adjoints
from ._attention import *  # noqa: F403
from ._attention import __all__ as _attention
from ._blocks import *  # noqa: F403
from ._blocks import __all__ as _blocks
from ._convolution import *  # noqa: F403
from ._convolution import __all__ as _convolution
from ._convolution_nd import *  # noqa: F403
from ._convolution_nd import __all__ as _convolution_nd
from ._convolution_transpose import *  # noqa: F403
from ._convolution_transpose import __all__ as _convolution_transpose
from ._dense import *  # noqa: F403
from ._dense import __all__ as _dense
from ._normalization import *  # noqa: F403
from ._normalization import __all__ as _normalization
from ._padding import dilate, pad
from ._pooling import *  # noqa: F403
from ._pooling import __all__ as _pooling
from ._recurrent import *  # noqa: F403
from ._recurrent import __all__ as _recurrent

flatten = _flatten

__all__ = sorted(
    {
        *_activation, *_adjoints, *_attention, *_blocks, *_convolution, *_convolution_nd, *_convolution_transpose, *_dense,
        *_normalization, *_pooling, *_recurrent,
        "add", "batch_matmul", "dilate", "flatten", "layout_transform", "pad",
    }
)  # fmt: skip
__getattr__ = _refusing(__name__, __all__, _NN)
