"""Folders for a program's own files. Written by generate_stubs.py; do not edit."""

from typing import Any, Callable, Sequence
from kiln._stubs import TempDirectory as TempDirectory

os: Any
def tempdir(custom_path: Any = ..., keep_for_debug: Any = ...) -> Any: ...
tempfile: Any
