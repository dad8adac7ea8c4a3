"""What programs take from tvm.driver."""

from ._build import build, lower

__all__ = ["build", "lower"]
