"""PassContext and build_config, which classic programs wrap around lower and build.

They steer passes of another compiler. What they ask for is either what Kiln does anyway or written as steps
of the schedule, so they are taken and change nothing.
"""

import sys
import warnings

from ._base import source as _source
from ._base.error import public

# By the names of tvm.transform and, without the prefix, of build_config.
_KNOWN = {
    "tir.UnrollLoop", "tir.LoopPartition", "tir.instrument_bound_checkers", "tir.disable_vectorize",
    "tir.disable_assert", "tir.noalias", "tir.detect_global_barrier", "tir.disable_cse_tir",
    "tir.enable_equiv_terms_in_cse_tir", "tir.enable_debug", "tir.HoistIfThenElse", "tir.is_entry_func",
    "tir.disable_storage_rewrite", "tir.merge_static_smem", "tir.use_async_copy", "tir.add_lower_pass",
    "tir.InjectSoftwarePipeline", "tir.ReduceBranchingThroughOvercompute", "tir.Simplify",
    "tir.debug_keep_trivial_loop", "tir.use_ptx_ldg32", "te.keep_schedule_record", "te.debug_keep_trivial_loop",
    "auto_unroll_max_step", "auto_unroll_max_depth", "auto_unroll_max_extent", "unroll_explicit",
    "detect_global_barrier", "offset_factor", "data_alignment", "restricted_func", "double_buffer_split_loop",
    "partition_const_loop", "instrument_bound_checkers", "disable_select_rewriting", "disable_vectorize",
    "disable_assert", "dump_pass_ir", "add_lower_pass",
}  # fmt: skip


class PassContext:
    """Taken as a `with` block, and without effect. An option that is not known is noted in a warning."""

    _current = []

    @public
    def __init__(
        self, opt_level=2, required_pass=None, disabled_pass=None, instruments=None, config=None,
        trace=None, **ignored,
    ):  # fmt: skip
        self.opt_level = opt_level
        self.required_pass = list(required_pass or [])
        self.disabled_pass = list(disabled_pass or [])
        self.instruments = list(instruments or [])
        self.config = dict(config or {})
        _note_unknown("PassContext", {**self.config, **ignored})

    @staticmethod
    def current():
        """The innermost one that is entered, else the default."""
        return PassContext._current[-1] if PassContext._current else PassContext()

    def __enter__(self):
        PassContext._current.append(self)
        return self

    def __exit__(self, *exception):
        PassContext._current.pop()


@public
def build_config(**options):
    """The PassContext of 2017: options by name."""
    _note_unknown("build_config", options)
    context = PassContext()
    context.config = options
    return context


def _note_unknown(what, options):
    unknown = sorted(set(map(str, options)) - _KNOWN)
    if unknown:
        verb = "is no option" if len(unknown) == 1 else "are no options"
        warnings.warn(
            f"{what}: {', '.join(unknown)} {verb} that Kiln knows; nothing is changed by it",
            stacklevel=_frames_to_user(),
        )


def _frames_to_user():
    """How far up warnings.warn finds the user's line."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and _source.is_ours(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    return level


__all__ = ["PassContext", "build_config"]
