"""The few helpers of tvm.contrib that tutorials use to save and load a function."""

from . import cc, utils, utils as util

__all__ = ["cc", "util", "utils"]
