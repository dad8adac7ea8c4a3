"""The tags of classic topi; programs pass them to te.compute, and nothing depends on them here. Written by generate_stubs.py; do not edit."""

from typing import Any, Callable, Sequence

BROADCAST: str
COMM_REDUCE: str
COMM_REDUCE_IDX: str
ELEMWISE: str
INJECTIVE: str
def is_broadcast(tag: Any) -> Any: ...
def is_injective(tag: Any) -> Any: ...
