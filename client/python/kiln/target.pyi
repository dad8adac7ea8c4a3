"""What to compile for. Written by generate_stubs.py; do not edit."""

from typing import Any, Callable, Sequence
from kiln._stubs import Device as Device, Target as Target, Target as create

def cuda(model: Any = ..., options: Any = ...) -> Device: ...
def llvm(model: Any = ..., options: Any = ...) -> Any: ...
