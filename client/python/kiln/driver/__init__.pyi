"""What programs take from tvm.driver. Written by generate_stubs.py; do not edit."""

from typing import Any, Callable, Sequence
from kiln.driver import build_module as build_module

def build(inputs: Any, args: Any = ..., target: Any = ..., target_host: Any = ..., name: str = ..., binds: Any = ..., *, auto: Any = ..., strict: Any = ..., fast: Any = ..., reproducible: Any = ..., check_nan: Any = ..., connection: Any = ...) -> Any: ...
def lower(inputs: Any, args: Any = ..., name: str = ..., simple_mode: bool = ..., auto: Any = ..., *, target: Any = ..., arch: Any = ..., after: Any = ..., binds: Any = ..., connection: Any = ...) -> str: ...
