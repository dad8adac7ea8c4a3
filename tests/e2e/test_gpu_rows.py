"""What the code of untouched rows, columns and transposes is made of, read from cubins: no GPU is asked.

What stands beside the numbers is torch 2.9.1's code for sm_90, read the same way (docs/gpu.md)."""

import pytest
from sass import whole_code

import kiln
from kiln import te, topi


def _code(daemon, *tensors, arch="sm_90"):
    try:
        kernel = kiln.compile(list(tensors), target="cuda", arch=arch, connection=daemon.connection)
    except kiln.Unavailable as error:
        pytest.skip(f"no NVRTC here: {error.message}")
    rows = kernel.report()["kernels"]
    assert len(rows) == 1, "more than one launch"
    assert rows[0]["spill_bytes"] == 0
    return whole_code(daemon)


def _matrix(rows, columns, dtype="float32"):
    return te.placeholder((rows, columns), dtype, "X")


# torch's warp softmax moves 32 bits and has 45.7 instructions an element.
def test_a_softmax_of_a_warp_reads_its_row_once(daemon):
    x = _matrix(4096, 1000)
    code = _code(daemon, x, topi.nn.softmax(x))
    assert code.widths("LDG") == code.widths("STG") == {16}, code.kinds
    assert code.kinds["LDG"] == code.kinds["STG"] == 8, code.kinds
    assert code.kinds["BAR"] == 0 and code.kinds["MUFU"] <= 2 * 32 + 2, code.kinds
    assert len(code.opcodes) < 33 * 32


# torch's softmax of long rows keeps them in shared memory: 128 bits, 42.8 instructions an element.
def test_a_softmax_of_a_block_reads_its_row_once(daemon):
    x = _matrix(64, 32000)
    code = _code(daemon, x, topi.nn.softmax(x))
    assert code.widths("LDG") == code.widths("STG") == {16}, code.kinds
    assert code.kinds["LDG"] == code.kinds["STG"] == 8, code.kinds
    assert len(code.opcodes) < 37 * 32


def test_rows_of_halves_move_128_bits(daemon):
    x = _matrix(4096, 1024, "float16")
    wide = te.compute(x.shape, lambda i, j: x[i, j].astype("float32"), "W")
    soft = topi.nn.softmax(wide)
    code = _code(daemon, x, te.compute(x.shape, lambda i, j: soft[i, j].astype("float16"), "Y"))
    assert code.widths("LDG") == code.widths("STG") == {16}, code.kinds
    assert code.kinds["LDG"] == code.kinds["STG"] == 4, code.kinds


# torch's reads the row twice, the weights 32 bits at a time, with 25 instructions an element.
def test_a_layer_norm_reads_its_row_once(daemon):
    x = _matrix(4096, 1024)
    gamma, beta = (te.placeholder((1024,), name=name) for name in ("gamma", "beta"))
    code = _code(daemon, x, gamma, beta, topi.nn.layer_norm(x, gamma, beta, axis=[1]))
    assert code.widths("LDG") == code.widths("STG") == {16}, code.kinds
    assert code.kinds["LDG"] == 3 * 8 and code.kinds["STG"] == 8, code.kinds
    assert len(code.opcodes) < 25 * 32
    # The weights are nobody's to change: those of later places are under way before the first store.
    memory = [opcode[:3] for opcode in code.opcodes if opcode.startswith(("LDG", "STG"))]
    assert memory.index("STG") >= 8 + 8, memory


# Rows of several axes: X is read once, 128 bits at a time, also where a line of the last axis is no multiple of them.
@pytest.mark.parametrize(("norm", "shape", "affine", "vectors", "weights"), [
    (lambda x, g, b: topi.nn.group_norm(x, g, b, 32, 1, (2, 3)), (64, 256, 56, 56), (256,), 13, 26),
    (lambda x, g, b: topi.nn.group_norm(x, g, b, 32, 1, (2, 3)), (32, 320, 32, 32), (320,), 10, 20),
    (lambda x, g, b: topi.nn.instance_norm(x, g, b, (2, 3)), (64, 256, 56, 56), (256,), 13, 2),
    (lambda x, g, b: topi.nn.layer_norm(x, g, b, (1, 2)), (256, 64, 56), (64, 56), 14, 28),
    (lambda x, g, b: topi.nn.layer_norm(x, g, b, (1, 2, 3)), (256, 16, 14, 14), (16, 14, 14), 13, 26),
], ids=["group", "group_320", "instance", "layer", "layer_of_odd_lines"])  # fmt: skip
def test_a_norm_of_several_axes_reads_its_row_once_in_one_launch(daemon, norm, shape, affine, vectors, weights):
    x = te.placeholder(shape, name="X")
    gamma, beta = (te.placeholder(affine, name=name) for name in ("gamma", "beta"))
    code = _code(daemon, x, gamma, beta, norm(x, gamma, beta))
    wide = [opcode for opcode in code.opcodes if opcode.startswith("LDG") and ".128" in opcode]
    # What scales a place lies beside that of the next one; of channels it is a number of each, and where a row is of one
    # channel, the same two for all of it.
    assert len(wide) == vectors * (1 if len(affine) == 1 else 3), code.kinds
    assert code.kinds["LDG"] == vectors + weights, code.kinds
    assert code.widths("STG") == {16} and code.kinds["STG"] == vectors, code.kinds
    assert len(code.opcodes) < 18.5 * 4 * vectors, len(code.opcodes)


# torch's reductions have 2.75 instructions an element along rows and 2.2 down columns.
def test_sums_of_rows_move_128_bits(daemon):
    x = _matrix(4096, 4096)
    code = _code(daemon, x, topi.sum(x, axis=1))
    assert code.widths("LDG") == {16} and code.kinds["LDG"] == 8, code.kinds
    assert len(code.opcodes) < 2.75 * 32


@pytest.mark.parametrize("reduction", [topi.sum, topi.max])
def test_columns_have_threads_for_their_rows(daemon, reduction):
    x = _matrix(4096, 4096)
    code = _code(daemon, x, reduction(x, axis=0))
    assert code.widths("LDG") == {16}, code.kinds
    # 128 blocks of 512 threads, each of which reads 64 rows of four columns.
    assert len(code.opcodes) < 2.2 * 256
    # 1024 threads of a multiprocessor have 64 registers each.
    kinds = [opcode.split(".")[0] for opcode in code.opcodes]
    first = next(i for i, kind in enumerate(kinds) if kind in {"FADD", "FMNMX"})
    assert kinds[:first].count("LDG") >= 10, kinds


def test_a_transpose_moves_128_bits_either_way(daemon):
    x = _matrix(4096, 4096)
    code = _code(daemon, x, topi.transpose(x))
    assert code.widths("LDG") == code.widths("STG") == {16}, code.kinds
    assert code.kinds["LDG"] == code.kinds["STG"] == 4 and code.kinds["BAR"] == 1, code.kinds
    # Rows whose 16 bytes change places are filled 16 bytes at once, and read down a column.
    assert code.kinds["STS"] == 4 and code.widths("STS") == {16} and code.kinds["LDS"] == 16, code.kinds
    assert len(code.opcodes) < 5 * 16


# A thread has a row, of which 64 elements are under way at once, in 16 loads and 16 stores.
@pytest.mark.parametrize("rows", [4096, 1000])
def test_running_sums_along_rows_move_128_bits(daemon, rows):
    x = _matrix(rows, 4096)
    code = _code(daemon, x, topi.cumsum(x, axis=1))
    wide = [opcode for opcode in code.opcodes if opcode.startswith(("LDG", "STG")) and ".128" in opcode]
    assert len(wide) >= 32, code.kinds
    # One by one: the first, three steps up to 16 bytes, and twelve after the last sixteen.
    assert code.kinds["LDG"] + code.kinds["STG"] - len(wide) <= 2 * 16 + 1, code.kinds


# A thread has a column, and 64 loads are under way before the first of them is waited for: 4096 threads are few.
@pytest.mark.parametrize("rows", [4096, 1000])
def test_running_sums_down_columns_load_many_steps_at_once(daemon, rows):
    x = _matrix(rows, 4096)
    opcodes = [opcode.split(".")[0] for opcode in _code(daemon, x, topi.cumsum(x, axis=0)).opcodes]
    # torch's have 7.4 instructions an element.
    assert len(opcodes) < 7.4 * opcodes.count("FADD"), opcodes
    first_sum = opcodes.index("FADD")
    assert opcodes[:first_sum].count("LDG") > 64, opcodes
    assert opcodes.count("LDG") <= 1 + 64 + 32 + 31, opcodes


# One long line in parts: each thread has its elements in 128 bits, those that it adds up and those that it stores.
@pytest.mark.parametrize("length", [1 << 20, 1000003])
def test_a_long_running_sum_is_in_parts_that_move_128_bits(daemon, length):
    x = te.placeholder((length,), name="X")
    try:
        kernel = kiln.compile(
            [x, topi.cumsum(x)], target="cuda", arch="sm_90", fast=True, connection=daemon.connection
        )
    except kiln.Unavailable as error:
        pytest.skip(f"no NVRTC here: {error.message}")
    launches = kernel.report()["kernels"]
    sums, _, steps = [launch["main_loop"]["accesses"] for launch in launches]
    assert sums["LDG"]["16"] >= 8 and sums["STG"] == {"4": 2}, sums
    assert steps["LDG"]["16"] >= 4 and steps["STG"]["16"] >= 4, steps
    assert all(launch["spill_bytes"] == 0 for launch in launches)


# One read and one write an element, of which a thread has 16. Torch's has 27.4 instructions an element.
def test_a_gelu_moves_128_bits(daemon):
    x = te.placeholder((10_000_000,), name="X")
    code = _code(daemon, x, te.compute(x.shape, lambda i: 0.5 * x[i] * (1 + te.erf(x[i] * 0.5**0.5)), "Y"))
    assert code.widths("LDG") == code.widths("STG") == {16}, code.kinds
    assert code.kinds["LDG"] == code.kinds["STG"] == 4, code.kinds
    assert code.kinds["BAR"] == code.kinds["LDS"] == 0 and len(code.opcodes) < 27.5 * 16, code.kinds


# nan is passed on by the instruction itself.
def test_a_maximum_is_one_instruction(daemon):
    x = _matrix(4096, 4096)
    code = _code(daemon, x, topi.max(x, axis=1))
    assert code.kinds["FSETP"] == code.kinds["FSEL"] == 0, code.kinds
    assert all(opcode == "FMNMX.NAN" for opcode in code.opcodes if opcode.startswith("FMNMX")), code.opcodes
    assert code.kinds["FMNMX"] >= 32 and len(code.opcodes) < 3 * 32, code.kinds
