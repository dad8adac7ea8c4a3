"""Attention in CUDA C, which stores no scores: read from its machine code. On tiles it is in test_gpu_tiles.py."""

import pytest
from sass import compare, main_loop
from test_gpu_tiles import _attention, _compiled


def _threads_of(kernel):
    """What the report says of the one launch."""
    report = kernel.report()
    assert report["generator"]["name"] == "CUDA C", report["generator"]
    [row] = report["kernels"]
    assert report["launches"] == 1 and report["predicted"]["terms"].get("memory", 0) < report["predicted"]["seconds"] / 2
    assert "attention_queries" in str(report["schedule"]), report["schedule"]
    return row


@pytest.fixture
def without_tiles(start, folder):
    return start(environment={"KILN_TILEIRAS": str(folder / "none")})


# 128 queries and 64 keys of 64 numbers are 64 scores of each thread, which loads 128 bits of eight of both: 64 of 68 instructions of a step,
# with those of the loop. Of 64 queries it has 32.
@pytest.mark.parametrize(("arch", "width", "share"), [
    ("sm_75", 64, 0.8), ("sm_80", 64, 0.85), ("sm_89", 64, 0.8), ("sm_90", 64, 0.85), ("sm_90", 128, 0.88), ("sm_120", 64, 0.8)])
def test_lanes_multiply_float32(without_tiles, arch, width, share):
    kernel = _compiled(without_tiles, _attention(2048, 2048, width, dtype="float32", heads=32), arch=arch)
    row = _threads_of(kernel)
    loop = main_loop(without_tiles)
    compare(row["main_loop"], loop)
    assert loop.share > share and loop.widths("LDS") <= {8, 16}, loop.kinds
    assert loop.kinds["STG"] == loop.kinds["LDL"] == loop.kinds["STL"] == 0, loop.kinds


# Each warp has 32 queries, for which 64 keys of 64 numbers take 64 products, and the values as many.
@pytest.mark.parametrize(("arch", "width", "products"), [
    ("sm_80", 64, 128), ("sm_80", 128, 256), ("sm_89", 64, 64), ("sm_90", 64, 128), ("sm_90", 256, 256), ("sm_120", 64, 128)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_tensor_cores_multiply_short_floats(without_tiles, arch, width, products, dtype):
    kernel = _compiled(without_tiles, _attention(4096, 4096, width, dtype=dtype), arch=arch)
    row = _threads_of(kernel)
    loop = main_loop(without_tiles)
    compare(row["main_loop"], loop)
    assert loop.kinds["HMMA"] == products == loop.arithmetic, loop.kinds
    assert loop.kinds["STG"] == 0 and loop.kinds["LDSM"] > 0 and loop.kinds["BAR"] <= 3, loop.kinds
    # A power is one instruction. What compares looks for rows that see no key.
    assert loop.kinds["MUFU"] > products // 2 * 64 // width and loop.kinds["FSETP"] <= 4, loop.kinds
    assert row["spill_bytes"] == 0 and loop.widths("LDGSTS") == {16} and loop.kinds["LDG"] == 0, loop.kinds


# What float32 on tiles is too wide for. Of 512 numbers eight warps have the sums.
@pytest.mark.parametrize(("arch", "width"), [("sm_90", 256), ("sm_80", 512), ("sm_89", 512), ("sm_90", 512)])
def test_wide_float32_stores_no_scores_beside_tiles(daemon, arch, width):
    kernel = _compiled(daemon, _attention(2048, 2048, width, dtype="float32", heads=32), arch=arch)
    row = _threads_of(kernel)
    assert row["spill_bytes"] == 0
    loop = main_loop(daemon)
    assert loop.widths("LDS") <= {8, 16} and loop.kinds["STG"] == 0, loop.kinds


# Also where launches that store the scores are predicted to take less time.
@pytest.mark.parametrize(("arch", "width"), [("sm_75", 512), ("sm_75", 1024), ("sm_80", 1024), ("sm_90", 1024), ("sm_120", 1024)])
def test_wider_float32_stores_no_scores_at_any_price(daemon, arch, width):
    row = _threads_of(_compiled(daemon, _attention(2048, 2048, width, dtype="float32", heads=32), arch=arch))
    assert row["spill_bytes"] == 0 and row["main_loop"]["accesses"].get("STG", {}) == {}


# Of more numbers than a block has room for, others have the other columns, and compute the scores anew.
@pytest.mark.parametrize(("arch", "width"), [
    ("sm_80", 512), ("sm_89", 512), ("sm_90", 512), ("sm_90", 576), ("sm_80", 1024), ("sm_90", 1024)])
def test_wide_short_floats_store_no_scores_without_tiles(without_tiles, arch, width):
    kernel = _compiled(without_tiles, _attention(2048, 2048, width, dtype="float16"), arch=arch)
    row = _threads_of(kernel)
    assert row["spill_bytes"] == 0
    assert main_loop(without_tiles).kinds["HMMA"] > 0


# Lanes multiply those where tensor cores read no 16-bit floats as Kiln uses them.
@pytest.mark.parametrize("width", [512, 1024])
def test_wide_short_floats_store_no_scores_by_lanes(without_tiles, width):
    row = _threads_of(_compiled(without_tiles, _attention(2048, 2048, width, dtype="float16"), arch="sm_75"))
    assert row["spill_bytes"] == 0


# A head alone has few blocks; its scores are as many for each.
def test_a_head_alone_stores_no_scores(without_tiles):
    row = _threads_of(_compiled(without_tiles, _attention(512, 512, 64, dtype="float32", heads=1), arch="sm_90"))
    assert row["spill_bytes"] == 0


def test_lengths_that_the_call_brings(without_tiles):
    from kiln import te

    for dtype, arch in [("float32", "sm_75"), ("float16", "sm_80")]:
        kernel = _compiled(without_tiles, _attention(te.var("n"), te.var("m"), 64, dtype=dtype, causal=True), arch=arch)
        assert kernel.report()["launches"] == 1
        assert {row["spill_bytes"] for row in kernel.report()["kernels"]} == {0}
