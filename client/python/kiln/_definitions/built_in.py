"""The operator definitions of compiler/operators, as the build parsed them."""

import base64
import functools

from .._operator_tables import DEFINITIONS
from ..v1 import kernel_pb2
from .kernel import Kernel


@functools.lru_cache(maxsize=None)
def operator(name):
    """The operator of that name as a kernel to be called on tensors."""
    _, definition, names = DEFINITIONS[name]
    return Kernel(
        kernel_pb2.Definition.FromString(base64.b85decode(definition)),
        kernel_pb2.SourceMap.FromString(base64.b85decode(names)),
    )
