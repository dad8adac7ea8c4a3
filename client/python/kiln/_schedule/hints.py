"""The steps that change no loops, but how they run and where values lie, as far as they need more than their row."""

import math

from .._base.error import invalid, public
from .._definitions.intrin import TensorIntrin
from .._definitions.tensor import Tensor, as_operation
from .._tables import INTRINSICS, PRAGMAS, THREAD_TAGS
from . import extents
from .axes import SingletonAxis
from .index_map import digits_of, split_into
from .plain_steps import number

_PRAGMAS = {row[0]: row for row in PRAGMAS}
_INTRINSICS = [row[0] for row in INTRINSICS]


class Hints:
    """The part of Stage that is about memory and how loops run."""

    @public
    def storage_align(self, axis, factor, offset=0):
        """In memory, neighbours along the dimension lie a multiple of `factor` and `offset` elements apart."""
        self._check_axes("storage_align", [axis], consumed=True)
        text = f"storage_align({axis.name})"
        factor, offset = number(text, "factor", factor), number(text, "offset", offset)
        if factor < 1:
            raise invalid("SPLIT_FACTOR", f"storage_align({axis.name}, factor={factor}): the factor must be at least 1")
        if not 0 <= offset < factor:
            raise invalid(
                "STORAGE_ALIGN",
                f"storage_align({axis.name}, factor={factor}, offset={offset}): the offset is what is left over of "
                f"the factor, so it must be {'0' if factor == 1 else f'from 0 to {factor - 1}'}",
            )
        self._take("storage_align", [axis], factors=[factor], value=offset)

    @public
    def transform_layout(self, mapping_function):
        """In memory the stage's values lie at the indices that the function makes of theirs: the indices
        themselves, with // and % by constants. Loops that no step has changed yet go in that order; they are
        returned, and nothing where a step has."""
        axes = list(self.data)
        digits = digits_of(self.op.name, axes, mapping_function)
        self._take("transform_layout", [axis for axis, _ in digits], factors=[factor for _, factor in digits])
        if not axes or self._consumed:
            return None
        loops = {}
        for axis in axes:
            factors = sorted((factor for each, factor in digits if each is axis), reverse=True)
            for factor, loop in zip(factors, split_into(self, axis, factors)):
                loops[id(axis), factor] = loop
        order = [loops[id(axis), factor] for axis, factor in digits]
        if len(order) > 1:
            self.reorder(*order)
        return order

    @public
    def tensorize(self, var, tensor_intrin):
        """The loops from the axis inwards are one tensor intrinsic, by its name. One that a program describes itself
        is computed by these loops."""
        self._check_axes("tensorize", [var])
        if isinstance(tensor_intrin, TensorIntrin):
            self._check_tile(var, tensor_intrin)
            return
        if not isinstance(tensor_intrin, str):
            raise invalid(
                "INTRINSIC",
                f"tensorize({var.name}) takes the name of an intrinsic, such as {_INTRINSICS[0]!r}, but got "
                f"{type(tensor_intrin).__name__}",
            )
        self._take("tensorize", [var], tag=tensor_intrin)

    def _check_tile(self, var, intrin):
        """The loops from the axis inwards run as often as those of the intrinsic's definition, as far as both are known."""
        loops = self.leaf_iter_vars[next(i for i, each in enumerate(self.leaf_iter_vars) if each is self.own(var)):]
        count = lambda axes: math.prod(extents.of(axis) or 0 for axis in axes)  # noqa: E731
        tile, wanted = count(loops), count([*intrin.op.axis, *intrin.op.reduce_axis])
        if tile and wanted and tile != wanted:
            raise invalid(
                "INTRINSIC",
                f"cannot tensorize {var.name} of {self.op.name} with {intrin.name}: its definition runs {wanted} times, but "
                f"the loops {', '.join(axis.name for axis in loops)} run {tile} times",
            )

    @public
    def pragma(self, var, pragma_type, pragma_value=None):
        """A wish about the loops from the axis inwards."""
        self._check_axes("pragma", [var])
        if pragma_type == "import_llvm":
            return  # the code of an intrinsic that is computed as loops
        row = _PRAGMAS.get(pragma_type)
        says = row is None or row[2] >= 0
        value = number(f"pragma({var.name}, {pragma_type})", "value", pragma_value or 0) if says else 0
        self._take("pragma", [var], tag=str(pragma_type), value=value)

    @public
    def prefetch(self, tensor, var, offset=1):
        """Each iteration fetches into the cache what the one `offset` iterations later reads of the tensor."""
        op = as_operation(tensor, "prefetch")
        self._check_axes("prefetch", [var])
        offset = number(f"prefetch({op.name}, {var.name})", "offset", offset)
        if isinstance(var, SingletonAxis):
            return
        output = tensor.value_index if isinstance(tensor, Tensor) else 0
        self.schedule[op]._take(
            "prefetch", at=(self.origin_op, self.own(var)), output=output, value=offset
        )

    @public
    def env_threads(self, threads):
        """The threads stand around the whole scan, not in each of its steps."""
        threads = threads if isinstance(threads, (list, tuple)) else [threads]
        tags = [thread if isinstance(thread, str) else getattr(thread, "tag", None) for thread in threads]
        for tag, thread in zip(tags, threads):
            if tag not in THREAD_TAGS:
                raise invalid(
                    "THREAD_AXIS",
                    f"env_threads of {self.op.name} takes thread axes, but got {thread!r}",
                )
        self._take("env_threads", tags=tags)
