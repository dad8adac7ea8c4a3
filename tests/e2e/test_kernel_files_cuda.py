"""Every kernel of tests/kernels as NVRTC compiles it, for the oldest and the newest architecture, or with KILN_LONG=1 for
each: without a schedule, and with the one that the file has for GPUs. No GPU is asked. What each computes, threads of the host say (tests/cuda/generated)."""

import itertools
import os
import pathlib

import pytest

import kiln
from kiln._definitions.kernel import Kernel

FILES = sorted((pathlib.Path(__file__).parents[1] / "kernels").rglob("*.kiln"))
ARCHITECTURES = ["sm_75", "sm_120"]
if os.environ.get("KILN_LONG"):
    ARCHITECTURES = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]


def _outcome(kernel, arch, connection):
    """Nothing where there is code, else why there is none."""
    try:
        return "" if kiln.compile(kernel, target="cuda", arch=arch, connection=connection).report()["launches"] else "none"
    except kiln.Unavailable as error:
        if "NVRTC" in error.message:
            pytest.skip(f"no NVRTC here: {error.message}")
        raise
    except kiln.Error as error:
        return f"{error.reason}: {error.message}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_kernel_is_compiled(path, shared_daemon):
    kernels = kiln.load_kernels(path, connection=shared_daemon)
    assert kernels
    refused = {}
    for name, kernel in kernels.items():
        ways = {"": Kernel(kernel.definition, kernel.source_map)}
        if "cuda" in kernel.schedules:
            ways[" as scheduled"] = kernel
        for way, arch in itertools.product(ways, ARCHITECTURES):
            if outcome := _outcome(ways[way], arch, shared_daemon):
                refused[f"{name}{way}, {arch}"] = outcome
    assert refused == {}
