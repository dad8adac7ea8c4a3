"""What programs take from tvm.driver.build_module."""

from .._base.error import public
from .._service.build import build, lower

__all__ = ["build", "lower", "schedule_to_module"]


@public
def schedule_to_module(sch, args=None, name="main", binds=None, tensor_list=None):
    """The loops of a schedule, as kiln.lower gives them."""
    return lower(sch, args, name=name, binds=binds)
