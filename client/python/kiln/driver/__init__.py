"""What programs take from tvm.driver."""

from . import build_module
from .build_module import build, lower

__all__ = ["build", "build_module", "lower"]
