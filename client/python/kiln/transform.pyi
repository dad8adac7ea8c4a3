"""PassContext and build_config, which classic programs wrap around lower and build. Written by generate_stubs.py; do not edit."""

from typing import Any, Callable, Sequence
from kiln._stubs import PassContext as PassContext

def build_config(**options: Any) -> Any: ...
