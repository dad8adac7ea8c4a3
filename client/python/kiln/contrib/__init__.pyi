"""The few helpers of tvm.contrib that tutorials use to save and load a function. Written by generate_stubs.py; do not edit."""

from typing import Any, Callable, Sequence
from kiln.contrib import cc as cc
from kiln.contrib import clang as clang
from kiln.contrib import utils as util
from kiln.contrib import utils as utils


