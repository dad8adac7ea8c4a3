"""Arrays on the daemon's devices."""

import numpy as np

from . import _array
from ._array import NDArray as NDArray
from ._device import context as context
from ._device import cpu as cpu
from ._device import cuda as cuda
from ._device import device as device
from ._device import gpu as gpu
from ._error import public


def _default():
    from ._connection import default_connection

    return default_connection()


@public
def array(arr, device=None, mem_scope=None, *, ctx=None, connection=None):
    """A new array with the contents of anything numpy takes, on a device (the CPU by default)."""
    return _array.array_on(connection or _default(), arr, device or ctx or cpu(0))


@public
def empty(shape, dtype="float32", device=None, mem_scope=None, *, ctx=None, connection=None):
    """A new array of zeros."""
    return _array.empty_on(connection or _default(), shape, dtype, device or ctx or cpu(0))


zeros = empty


@public
def from_dlpack(dltensor):
    """A new array on the CPU with the contents of anything that speaks DLPack."""
    return array(np.from_dlpack(dltensor))


__all__ = ["NDArray", "array", "context", "cpu", "cuda", "device", "empty", "from_dlpack", "gpu", "zeros"]
