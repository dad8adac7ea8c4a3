"""Fewer cases than all combinations, for tests of which each compiles for seconds."""

import itertools
import os


def covering(*axes, times=1):
    """Cases in which each value of each axis comes, and that of the longest axis `times` times, beside other ones. With
    KILN_LONG=1, as the long suites have it, all combinations. A value may be a tuple of several parameters."""
    if os.environ.get("KILN_LONG") == "1":
        cases = itertools.product(*axes)
    else:
        count = max(map(len, axes))
        cases = [[axis[(at + turn * place) % len(axis)] for place, axis in enumerate(axes)]
                 for turn in range(times) for at in range(count)]
    return [tuple(itertools.chain.from_iterable(value if isinstance(value, tuple) else (value,) for value in case)) for case in cases]
