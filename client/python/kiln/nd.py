"""Arrays on the daemon's devices."""

import numpy as np

from ._base.error import public
from ._service.array import NDArray as NDArray, array as array, empty as empty, full as full, ones as ones
from ._service.device import context as context, cpu as cpu, cuda as cuda, device as device, gpu as gpu

zeros = empty


@public
def from_dlpack(dltensor):
    """A new array on the CPU with the contents of anything that speaks DLPack."""
    return array(np.from_dlpack(dltensor))


__all__ = ["NDArray", "array", "context", "cpu", "cuda", "device", "empty", "from_dlpack", "full", "gpu", "ones", "zeros"]
