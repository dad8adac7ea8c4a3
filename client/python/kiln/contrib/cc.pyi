"""Linking, of which nothing is left: a saved function is a file of its own. Written by generate_stubs.py; do not edit."""

from typing import Any, Callable, Sequence

def create_shared(output: Any, objects: Any, options: Any = ..., cc: Any = ...) -> Any: ...
os: Any
shutil: Any
