"""Every operator of kiln.topi as NVRTC compiles it for a GPU, without a schedule and without a GPU.

The table is kept in tests/golden/cuda_topi.txt; KILN_UPDATE_GOLDEN=1 writes it.
"""

import os
import pathlib

import pytest
from test_topi import CASES

import kiln
from kiln import te

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "cuda_operators.md"
GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "cuda_topi.txt"
# Their angles are reduced with a table of CUDA's own, which lies in memory of the thread.
_OWN_MEMORY = {"sin", "cos", "tan", "stft", "dft", "random.normal"}


def cuda_row(connection, case, arch):
    """Launches, registers of a thread, and bytes that it has in memory."""
    inputs = [te.placeholder(x.shape, str(x.dtype), f"X{i}") for i, x in enumerate(case.inputs)]
    tensors = [*inputs, case.build(*inputs)]
    try:
        kernel = kiln.compile(tensors, target="cuda", arch=arch, connection=connection)
    except kiln.Unavailable as error:
        pytest.skip(f"no NVRTC here: {error.message}")
    report = kernel.report()
    registers = max((row["registers"] for row in report["kernels"]), default=0)
    return report["launches"], registers, sum(row["spill_bytes"] for row in report["kernels"])


def _table(rows):
    lines = [f"{'operator':44} launches registers spilled"]
    lines += [f"{name:44} {row[0]:8} {row[1]:9} {row[2]:7}" for name, row in rows.items()]
    return "\n".join(lines) + "\n"


def _launches(table):
    """By the operator; registers are another number with each version of NVRTC."""
    return {line[:44].strip(): line[44:].split()[0] for line in table.splitlines()[1:]}


def test_every_operator_is_compiled(shared_daemon):
    rows = {case.name: cuda_row(shared_daemon, case, "sm_90") for case in CASES}
    if os.environ.get("KILN_UPDATE_GOLDEN"):
        GOLDEN.write_text(_table(rows))
    assert _launches(_table(rows)) == _launches(GOLDEN.read_text())
    assert {name.split()[0] for name, row in rows.items() if row[2] > 0} == _OWN_MEMORY


def test_the_page_has_a_result_of_every_operator():
    """What docs/generate_cuda_operators.py has printed is of today's table, and nothing of it was left out."""
    operators = PAGE.read_text().split("## Random definitions")[0]
    rows = [line for line in operators.splitlines() if line.startswith("| ")][1:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [case.name.replace("|", "\\|") for case in CASES]
    assert [row for row in rows if not row.endswith(" | equal |")] == []


_KINDS = ("exp", "nn.softmax", "matmul", "nn.dense", "nn.conv2d_nchw", "sum", "cumsum", "nn.layer_norm")


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_100", "sm_120"])
def test_operators_of_each_kind_are_compiled_for_every_architecture(shared_daemon, arch):
    for kind in _KINDS:
        case = next(case for case in CASES if case.name.startswith(kind))
        assert cuda_row(shared_daemon, case, arch)[0] > 0
