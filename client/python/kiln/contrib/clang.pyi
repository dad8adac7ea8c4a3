"""Code that programs compile for an intrinsic of their own, of which nothing is used: Kiln computes the intrinsic's. Written by generate_stubs.py; do not edit."""

from typing import Any, Callable, Sequence

def create_llvm(inputs: Any, output: Any = ..., options: Any = ..., cc: Any = ...) -> Any: ...
