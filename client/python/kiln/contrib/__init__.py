"""The few helpers of tvm.contrib that tutorials use to save and load a function."""

from . import cc, clang, utils, utils as util

__all__ = ["cc", "clang", "util", "utils"]
