"""What programs take from tvm.runtime, and in 2017 from tvm.module."""

import types

from . import nd as ndarray
from ._base.error import public
from ._expressions.operators import const, convert
from ._service import device as _device
from ._service.array import NDArray
from ._service.device import Device, cpu, cuda, device, gpu
from ._service.function import Function as Module, Function as PackedFunc
from ._service.load import load_module


@public
def enabled(target):
    """Whether the daemon has a device that is ready for the target; False for targets it never has."""
    words = str(target).split()
    kind = _device.KINDS.get(words[0]) if words else None
    return kind is not None and Device(kind).exist


@public
def _profile_function(mod, dev, collectors=None, func_name=None, warmup_iters=2):
    """A function of the arguments that gives `mod`'s profile; Kiln has collectors of its own."""
    return mod.profile


profiling = types.SimpleNamespace(profile_function=_profile_function)
load = load_module

__all__ = [
    "Device", "Module", "NDArray", "PackedFunc", "const", "convert", "cpu", "cuda", "device", "enabled",
    "gpu", "load", "load_module", "ndarray", "profiling",
]  # fmt: skip
