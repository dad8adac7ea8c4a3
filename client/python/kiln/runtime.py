"""What programs take from tvm.runtime, and in 2017 from tvm.module."""

from . import _device
from . import nd as ndarray
from ._array import NDArray
from ._device import Device, cpu, cuda, device, gpu
from ._error import public
from ._operators import const, convert


def __getattr__(name):
    if name in ("Module", "PackedFunc"):
        from ._function import Function  # it needs gRPC, which a program may not want loaded yet

        return Function
    raise AttributeError(f"module kiln.runtime has no attribute {name}")


@public
def enabled(target):
    """Whether the daemon has a device that is ready for the target; False for targets it never has."""
    words = str(target).split()
    kind = _device.KINDS.get(words[0]) if words else None
    return kind is not None and Device(kind).exist


@public
def load_module(path, fmt="", *, connection=None):
    """The function that export_library saved, compiled for the daemon at hand, or from its cache."""
    from . import _saved

    return _saved.load(path, connection)


load = load_module

__all__ = [
    "Device", "Module", "NDArray", "PackedFunc", "const", "convert", "cpu", "cuda", "device", "enabled",
    "gpu", "load", "load_module", "ndarray",
]  # fmt: skip
