"""Rows, columns and transposes on tiles (tests/tile/rows) beside the CUDA C of the same, both read from machine code.

The blocks are those with the fewest instructions an element of what was tried: 1 to 32 rows, tiles of 32 to 512 elements each way, by
4 and by 8 warps. tile_cubin, which is built with the tests, has tileiras make the code."""

import collections
import json
import os
import pathlib
import shutil
import subprocess

import pytest
from sass import code_of, code_of_daemon

import kiln
from kiln import te, topi

_TEXTS = pathlib.Path(__file__).parent.parent / "tile" / "rows"
_WARPS = 4

Way = collections.namedtuple("Way", "each registers code")  # instructions for each element
# Elements of a tile, bytes of memory an element, and the definition.
Row = collections.namedtuple("Row", "elements bytes tensors")


def _matrix(columns, dtype="float32"):
    return te.placeholder((4096, columns), dtype, "X")


def _of(columns, function, dtype="float32"):
    x = _matrix(columns, dtype)
    return [x, function(x)]


def _softmax_of_halves(x):
    soft = topi.nn.softmax(te.compute(x.shape, lambda i, j: x[i, j].astype("float32"), "W"))
    return te.compute(x.shape, lambda i, j: soft[i, j].astype("float16"), "Y")


def _layer_norm():
    x = _matrix(1024)
    gamma, beta = (te.placeholder((1024,), name=name) for name in ("gamma", "beta"))
    return [x, gamma, beta, topi.nn.layer_norm(x, gamma, beta, axis=[1])]


ROWS = {
    "softmax_1024": Row(8 * 1024, 8, lambda: _of(1024, topi.nn.softmax)),
    "softmax_4096": Row(4 * 4096, 8, lambda: _of(4096, topi.nn.softmax)),
    "softmax_4096_halves": Row(4 * 4096, 4, lambda: _of(4096, _softmax_of_halves, "float16")),
    "layer_norm_1024": Row(16 * 1024, 8, _layer_norm),
    "row_sums_4096": Row(8 * 4096, 4, lambda: _of(4096, lambda x: topi.sum(x, axis=1))),
    "column_sums_4096": Row(128 * 128, 4, lambda: _of(4096, lambda x: topi.sum(x, axis=0))),
    "transpose": Row(128 * 128, 8, lambda: _of(4096, topi.transpose)),
    "transpose_halves": Row(64 * 256, 4, lambda: _of(4096, topi.transpose, "float16")),
}


def on_tiles(name, arch, folder):
    """By tileiras. Where a block goes on from tile to tile, an element is charged with its loop alone."""
    daemon = os.environ.get("KILN_DAEMON") or shutil.which("kilnd")
    program = pathlib.Path(daemon).parent / "tile_cubin"
    if not program.exists():
        pytest.skip(f"{program} is not there: it is built with the tests")
    made = subprocess.run([program, arch, str(_WARPS)], input=(_TEXTS / f"{name}.tile").read_bytes(), capture_output=True)
    if b"nvidia-cuda-tileiras" in made.stderr:
        pytest.skip(f"no tileiras here: {made.stderr.decode()}")
    assert made.returncode == 0, made.stderr.decode()
    facts = json.loads(made.stderr)
    assert facts["stack"] == 0, facts
    code, longest = code_of(made.stdout, pathlib.Path(folder) / f"{name}.cubin", "kiln_tile_0")
    # A short loop only waits.
    charged = longest if longest is not None and len(longest.opcodes) > 100 else code
    return Way(len(charged.opcodes) * 32 * _WARPS / ROWS[name].elements, facts["registers"], code)


def in_cuda_c(name, arch, daemon):
    """By NVRTC, of a new daemon. Where a thread goes on down a column, an element is charged with its loop alone."""
    row = ROWS[name]
    try:
        kernel = kiln.compile(row.tensors(), target="cuda", arch=arch, connection=daemon.connection)
    except kiln.Unavailable as error:
        pytest.skip(f"no NVRTC here: {error.message}")
    [launch] = kernel.report()["kernels"]
    assert launch["spill_bytes"] == 0
    code, longest = code_of_daemon(daemon)
    charged = longest if longest is not None and longest.kinds["LDG"] > 0 else code
    # What a thread stores, or loads where a sum is all that is stored: 128 bits at a time.
    moved = charged.kinds["LDG" if name.endswith("sums_4096") else "STG"]
    elements = moved * (8 if name.endswith("halves") else 4)
    return Way(len(charged.opcodes) / elements, launch["registers"], code)
