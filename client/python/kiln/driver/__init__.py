"""What programs take from tvm.driver."""

from ._service.build import build, lower

__all__ = ["build", "lower"]
