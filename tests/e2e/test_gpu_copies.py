"""Products on tensor cores of rows that begin anywhere: copies first, then main loops as those of even rows. No GPU is asked."""

import pytest
from covering import covering
from test_gpu_code import _convolution, _loop_of, _product, tensor_float_product

ODD = dict(m=4095, n=4093, l=4091)


# Copies of both factors, and the product.
def _loop(daemon, tensors, arch, launches=3, spilled=0):
    loop = _loop_of(daemon, tensors, arch, entry=f"kiln_compact_{launches - 1}", spilled=spilled)
    # All is copied past the registers, 16 bytes at a time.
    assert loop.widths("LDGSTS") == {16} and loop.kinds["LDG"] == 0 and loop.kinds["STS"] == 0, loop.kinds
    return loop


# Of even rows 0.664, 0.630, 0.683, 0.647 (sm_86 with 32 steps at once: 0.640, 0.608, 0.658, 0.623).
@pytest.mark.parametrize(("arch", "transposed"), covering(["sm_80", "sm_86", "sm_89", "sm_120"], ["", "a", "b", "ab"], times=2))
def test_odd_products_of_16_bits_have_main_loops_of_even_ones(daemon, arch, transposed):
    loop = _loop(daemon, _product(**ODD, dtype="bfloat16", a_transposed="a" in transposed, b_transposed="b" in transposed), arch)
    assert loop.kinds["HMMA"] in (3 * 64, 3 * 128) and loop.kinds["BAR"] == 3, loop.kinds
    share = loop.kinds["HMMA"] / (len(loop.opcodes) - loop.kinds["NOP"])
    assert share > {"": 0.63, "a": 0.6, "b": 0.65, "ab": 0.61}[transposed], loop.kinds


# Only what begins anywhere is copied.
@pytest.mark.parametrize(("sizes", "share"), [
    (dict(m=4096, n=4096, l=4091), 0.65), (dict(m=4096, n=4095, l=4096), 0.65), (dict(m=4095, n=4096, l=4096, a_transposed=True), 0.62)])
def test_one_factor_is_copied(daemon, sizes, share):
    assert _loop(daemon, _product(**sizes, dtype="float16"), "sm_80", launches=2).share > share


# Nothing is copied, and the loop is that of whole parts of the sum: what is left of it stands behind.
def test_a_sum_may_end_within_a_part(daemon):
    assert _loop(daemon, _product(4096, 4096, 4088, dtype="float16"), "sm_80", launches=1).share > 0.65


# Nothing is copied first: rows begin at multiples of 4 or 8 bytes, which hardware copies in the background, too. Of copies of both
# the loop would have 0.664, and two launches more.
@pytest.mark.parametrize(("n", "l", "widths", "share"), [(4094, 4090, {4}, 0.40), (4092, 4084, {8}, 0.50), (4096, 4084, {8, 16}, 0.54)])
def test_rows_that_begin_at_words_are_copied_as_they_are(daemon, n, l, widths, share):
    loop = _loop_of(daemon, _product(4096, n, l, dtype="float16"), "sm_80")
    assert loop.widths("LDGSTS") == widths and loop.kinds["LDG"] == loop.kinds["STS"] == 0, loop.kinds
    assert loop.kinds["HMMA"] == 3 * 128 and loop.share > share, loop.kinds


# Small ones are fetched when they are needed, 8 bytes at a time, in as many steps at once as rows of 16 bytes are.
def test_small_products_of_words_have_as_many_steps_at_once(daemon):
    loop = _loop_of(daemon, _product(500, 500, 500, dtype="float16"), "sm_89")
    assert loop.widths("LDG") == loop.widths("STS") == {8} and loop.kinds["BAR"] == 2, loop.kinds
    assert loop.kinds["HMMA"] == 32 and loop.share > 0.3, loop.kinds


# Blocks end elsewhere than the columns, and all of these come 16 bytes at a time all the same.
def test_columns_of_whole_vectors_are_copied_so(daemon):
    loop = _loop_of(daemon, _product(1000, 1000, 1000, dtype="float16"), "sm_80")
    assert loop.widths("LDGSTS") == {16} and loop.kinds["LDG"] == loop.kinds["STS"] == 0, loop.kinds
    assert loop.share > 0.54, loop.kinds


def test_odd_batches_are_copied(daemon):
    assert _loop(daemon, _product(1001, 1003, 1005, dtype="bfloat16", batch=(16,)), "sm_80").share > 0.65


@pytest.mark.parametrize(("transposed", "arch"), covering(["", "a", "b", "ab"], ["sm_80", "sm_89"]))
def test_odd_products_of_bytes_too(daemon, arch, transposed):
    tensors = _product(**ODD, dtype="int8", a_transposed="a" in transposed, b_transposed="b" in transposed)
    loop = _loop(daemon, tensors, arch)
    assert loop.share > {"": 0.47, "a": 0.37, "b": 0.65, "ab": 0.47}[transposed], loop.kinds


@pytest.mark.parametrize("arch", ["sm_80", "sm_89"])
@pytest.mark.parametrize("transposed", ["", "b"])
def test_odd_products_of_tensor_floats_too(daemon, arch, transposed):
    loop = _loop(daemon, tensor_float_product(transposed, **ODD), arch)
    assert loop.share > {"": 0.5, "b": 0.64}[transposed], loop.kinds


# Before each element of 8 bits was fetched by itself, 0.04 to 0.19. Sums take nearly all registers; what is spilled is not read
# in the loop.
@pytest.mark.parametrize(("arch", "transposed", "share"), [
    ("sm_89", "", 0.23), ("sm_89", "b", 0.27), ("sm_120", "", 0.25), ("sm_120", "b", 0.28)])
def test_odd_products_of_8_bit_floats_too(daemon, arch, transposed, share):
    tensors = _product(**ODD, dtype="float8_e4m3fn", a_transposed="a" in transposed, b_transposed="b" in transposed)
    loop = _loop(daemon, tensors, arch, spilled=48)
    assert loop.kinds["QMMA"] == 128 and loop.kinds["LDL"] == loop.kinds["STL"] == 0, loop.kinds
    assert loop.share > share, loop.kinds


# Of a convolution filters whose rows are odd; images with so many channels are fetched one by one.
def test_filters_of_odd_rows_are_copied(daemon):
    case = dict(images=32, channels=128, filters=127, side=28, window=3, dtype="float16", channels_last=True)
    assert _loop(daemon, _convolution(**case), "sm_80", launches=2).share > 0.33
