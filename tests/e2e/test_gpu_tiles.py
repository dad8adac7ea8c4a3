"""Untouched products of short types through NVIDIA's compiler of tiles: no GPU is asked."""

import collections
import os
import stat
import time

import pytest
from covering import covering
from sass import compare, main_loop, whole_code
from test_gpu_code import _product, tensor_float_product

import kiln
from kiln import te, topi


def _compiled(daemon, tensors, arch="sm_90", **options):
    try:
        return kiln.compile(tensors, target="cuda", arch=arch, connection=daemon.connection, **options)
    except kiln.Unavailable as error:
        pytest.skip(f"no NVRTC here: {error.message}")


def _tiles_of(kernel, most_spilled=0):
    """What the report says of the code made of tiles."""
    generator = kernel.report()["generator"]
    if "pip install nvidia-cuda-tileiras" in generator["why"]:
        pytest.skip(f"no tileiras here: {generator['why']}")
    assert generator["name"] == "Tile IR", generator
    row = kernel.report()["kernels"][-1]  # behind those that copy factors
    assert row["name"].startswith("kiln_tile_")
    assert row["spill_bytes"] <= most_spilled and row["main_loop"]["spills"] == 0
    return row


# The best of cuBLAS has 64 instructions for 8 of 64x128x16, which is 16 for each of 64x256x16.
@pytest.mark.parametrize(("transposed", "dtype"), covering(["", "a", "b", "ab"], ["float16", "bfloat16"]))
def test_hopper_multiplies_by_whole_warpgroups(daemon, dtype, transposed):
    kernel = _compiled(daemon, _product(4096, 4096, 4096, dtype, "a" in transposed, "b" in transposed))
    row = _tiles_of(kernel)
    # Two warpgroups that multiply and one that copies; a block has all registers.
    assert row["threads"] == 384 and row["occupancy_percent"] == 100 * 384 // 2048, row
    loop = main_loop(daemon, "kiln_tile_0")
    compare(row["main_loop"], loop)
    products = [opcode for opcode in loop.opcodes if opcode.startswith("HGMMA.64x256x16")]
    assert len(products) == 4 == loop.kinds["HGMMA"], loop.kinds
    assert len(loop.opcodes) <= 18 * len(products), loop.kinds
    assert loop.kinds["LDG"] == loop.kinds["LDS"] == loop.kinds["STL"] == 0, loop.kinds


# What is taken stands first, and CUDA C after it with its own terms.
def test_predictions_have_the_tiles_first(daemon):
    tensors = _product(1024, 1024, 1024, "float16")
    _tiles_of(_compiled(daemon, tensors))
    schedules = kiln.predict(tensors, target="cuda -arch=sm_90", connection=daemon.connection).schedules
    assert schedules[0].name.startswith("on tiles: product of 16-bit floats, in blocks of ")
    assert schedules[0].steps == [] and schedules[0].seconds > 0
    assert any("matrix instructions" in each.name and each.steps for each in schedules)
    strict = kiln.predict(tensors, target="cuda -arch=sm_90", strict=True, connection=daemon.connection).schedules
    assert not any(each.name.startswith("on tiles") for each in strict)


# A 64x256x32 of 8 bits takes as long as a 64x256x16 of 16; sums of 8-bit floats are added up in float32 in the loop, too.
# Tensor cores read bytes along the sums alone: factors that go across them are copied before.
@pytest.mark.parametrize(("dtype", "product", "most", "transposed", "copies"), covering([
    ("int8", "IGMMA.64x256x32.S8.S8", 18), ("float8_e4m3fn", "QGMMA.64x128x32.F32.E4M3.E4M3", 33),
    ("uint8", "IGMMA.64x256x32.U8.U8", 18), ("float8_e5m2", "QGMMA.64x128x32.F32.E5M2.E5M2", 33)],
    [("", 1), ("a", 2), ("b", 0), ("ab", 1)], times=2))
def test_hopper_multiplies_eight_bits_by_whole_warpgroups(daemon, dtype, product, most, transposed, copies):
    kernel = _compiled(daemon, _product(4096, 4096, 4096, dtype, "a" in transposed, "b" in transposed))
    row = _tiles_of(kernel)
    assert row["name"] == f"kiln_tile_{copies}" and kernel.report()["launches"] == copies + 1
    loop = main_loop(daemon, row["name"])
    compare(row["main_loop"], loop)
    products = [opcode for opcode in loop.opcodes if opcode.startswith(product)]
    assert len(products) == 4 == loop.arithmetic, loop.kinds
    assert len(loop.opcodes) <= most * len(products), loop.kinds
    assert loop.kinds["LDG"] == loop.kinds["LDS"] == loop.kinds["STL"] == 0, loop.kinds
    for number in range(copies):
        copy = whole_code(daemon, f"kiln_tile_{number}")
        assert copy.widths("LDG") == copy.widths("STG") == {16} and copy.kinds["STL"] == 0, copy.kinds


# With `fast` the sums of 8-bit floats stay where tensor cores have them, and a block is as large as that of other types.
@pytest.mark.parametrize(("dtype", "product", "transposed", "copies"), covering([
    ("float8_e4m3fn", "QGMMA.64x256x32.F32.E4M3.E4M3"), ("float8_e5m2", "QGMMA.64x256x32.F32.E5M2.E5M2")],
    [("", 1), ("a", 2), ("b", 0), ("ab", 1)], times=2))
def test_hopper_adds_up_eight_bits_by_tensor_cores_alone_where_it_is_fast(daemon, dtype, product, transposed, copies):
    kernel = _compiled(daemon, _product(4096, 4096, 4096, dtype, "a" in transposed, "b" in transposed), fast=True)
    row = _tiles_of(kernel)
    assert row["name"] == f"kiln_tile_{copies}" and kernel.report()["launches"] == copies + 1
    assert "added up by tensor cores alone" in kernel.report()["generator"]["why"]
    assert "mma_fast" in kernel.source("tile")
    loop = main_loop(daemon, row["name"])
    compare(row["main_loop"], loop)
    products = [opcode for opcode in loop.opcodes if opcode.startswith(product)]
    assert len(products) == 4 == loop.arithmetic, loop.kinds
    assert len(loop.opcodes) <= 18 * len(products), loop.kinds
    for kind in ("FADD", "LDG", "LDS", "STL", "LDL"):
        assert loop.kinds[kind] == 0, loop.kinds


# A small one has smaller blocks, and half as many steps at once.
@pytest.mark.parametrize("size", [1024, 4095])
def test_hopper_adds_up_eight_bits_of_every_size_by_tensor_cores_alone_where_it_is_fast(daemon, size):
    a, b, sums = _product(size, size, size, "float8_e4m3fn", b_transposed=True)
    scaled = te.compute((size, size), lambda i, j: te.tanh(te.exp(sums[i, j] * 0.125)).astype("bfloat16"), "C")
    row = _tiles_of(_compiled(daemon, [a, b, scaled], fast=True), most_spilled=32)
    loop = main_loop(daemon, row["name"])
    compare(row["main_loop"], loop)
    products = collections.Counter(opcode.split(".")[1] for opcode in loop.opcodes if opcode.startswith("QGMMA"))
    assert len(products) == 1 and loop.kinds["FADD"] == loop.kinds["STL"] == 0, loop.kinds
    assert len(loop.opcodes) <= (18 * products.total() if "64x256x32" in products else 48), loop.kinds


# Rows of any length are copied to where hardware can copy them without threads.
@pytest.mark.parametrize(("transposed", "dtype"), covering(["", "a", "b", "ab"], ["bfloat16", "int8"]))
def test_hopper_multiplies_odd_sizes_as_it_does_even_ones(daemon, transposed, dtype):
    kernel = _compiled(daemon, _product(4095, 4093, 4091, dtype, "a" in transposed, "b" in transposed))
    row = _tiles_of(kernel)
    assert "from copies of both factors" in kernel.report()["generator"]["why"]
    loop = main_loop(daemon, row["name"])
    compare(row["main_loop"], loop)
    assert loop.arithmetic == 4 and len(loop.opcodes) <= 18 * loop.arithmetic, loop.kinds
    assert loop.kinds["LDG"] == loop.kinds["LDS"] == loop.kinds["STL"] == 0, loop.kinds


# A call whose rows begin at multiples of 16 bytes runs the first product, any other the second one on copies of what does not.
@pytest.mark.parametrize(("transposed", "dtype"), covering(["", "a", "b", "ab"], ["bfloat16", "float8_e4m3fn"]))
def test_hopper_multiplies_sizes_that_a_call_brings_as_it_does_known_ones(daemon, transposed, dtype):
    m, n, l = te.var("m"), te.var("n"), te.var("l")
    kernel = _compiled(daemon, _product(m, n, l, dtype, "a" in transposed, "b" in transposed))
    _tiles_of(kernel)
    assert "; else a product" in kernel.report()["generator"]["why"]
    products = [row for row in kernel.report()["kernels"] if row["main_loop"]["kind"] in ("HGMMA", "QGMMA")]
    assert len(products) == 2
    for row in products:
        loop = main_loop(daemon, row["name"])
        compare(row["main_loop"], loop)
        assert loop.arithmetic == 4 and len(loop.opcodes) <= (18 if dtype == "bfloat16" else 33) * loop.arithmetic, loop.kinds
        assert loop.kinds["LDG"] == loop.kinds["LDGSTS"] == loop.kinds["LDS"] == loop.kinds["STL"] == 0, loop.kinds
        assert row["spill_bytes"] == 0


# Small ones are predicted to take less time in CUDA C than on copies, and those of which a copy is read by a few rows.
def test_what_a_call_of_any_sizes_takes_is_predicted(daemon):
    m, n, l = te.var("m"), te.var("n"), te.var("l")
    tensors = _product(m, n, l, "bfloat16")
    _tiles_of(_compiled(daemon, tensors))

    def first(*sizes):
        names = dict(zip(("m", "l", "n"), sizes, strict=True))
        return kiln.predict(tensors, target="cuda -arch=sm_90", sizes=names, connection=daemon.connection).schedules[0]

    even, odd = first(4096, 4096, 4096), first(4095, 4093, 4091)
    assert even.name.startswith("on tiles") and "copies" not in even.name
    assert "from copies of both factors" in odd.name and even.seconds < odd.seconds < 1.5 * even.seconds
    # Nor is a quick one taken for tiles since it could be: what is predicted to take less time is.
    for sizes in ((255, 257, 259), (100, 4093, 4091), (64, 64, 64)):
        assert "matrix instructions" in first(*sizes).name


# Copies of a small product take longer than what they save.
def test_small_odd_products_are_cuda(daemon):
    kernel = _compiled(daemon, _product(61, 63, 59, "bfloat16"))
    assert kernel.report()["generator"]["name"] == "CUDA C"


# A 64x256x8 takes as long as a 64x256x16 of 16 bits. What does not lie along the sums is turned by threads.
@pytest.mark.parametrize(("transposed", "count", "most"), [("b", 4, 17), ("", 8, 14), ("a", 8, 33), ("ab", 8, 30)])
def test_hopper_multiplies_tf32_as_it_lies_in_memory(daemon, transposed, count, most):
    kernel = _compiled(daemon, tensor_float_product(transposed))
    row = _tiles_of(kernel)
    assert "an untouched product in tf32" in kernel.report()["generator"]["why"]
    loop = main_loop(daemon, "kiln_tile_0")
    compare(row["main_loop"], loop)
    products = [opcode for opcode in loop.opcodes if opcode.startswith("HGMMA.64x256x8.F32.TF32")]
    assert len(products) == count == loop.kinds["HGMMA"], loop.opcodes
    assert len(loop.opcodes) <= most * len(products), loop.kinds
    assert loop.kinds["LDG"] == loop.kinds["STL"] == 0, loop.kinds
    if transposed == "b":
        assert loop.kinds["LDS"] == loop.kinds["LDSM"] == 0, loop.kinds


@pytest.mark.parametrize(("dtype", "kind", "transposed"), covering([
    ("tf32", "UTCHMMA"), ("int8", "UTCIMMA"), ("float8_e4m3fn", "UTCQMMA"), ("bfloat16", "UTCHMMA")], ["", "a", "b", "ab"], times=2))
def test_blackwell_multiplies_whole_tiles_in_every_layout(daemon, dtype, kind, transposed):
    tensors = (tensor_float_product(transposed) if dtype == "tf32" else
               _product(4096, 4096, 4096, dtype, "a" in transposed, "b" in transposed))
    kernel = _compiled(daemon, tensors, arch="sm_100")
    row = _tiles_of(kernel)
    loop = main_loop(daemon, "kiln_tile_0")
    compare(row["main_loop"], loop)
    assert loop.kinds[kind] == loop.arithmetic >= 2, loop.kinds
    assert len(loop.opcodes) <= 60, loop.kinds
    assert loop.kinds["LDG"] == loop.kinds["LDS"] == loop.kinds["STL"] == 0, loop.kinds


def test_what_is_made_of_the_sums_is_part_of_the_kernel(daemon):
    a, b, sums = _product(512, 1024, 256, "bfloat16", batch=(3,))
    bias = te.placeholder((1024,), "float32", "bias")
    relu = te.compute((3, 512, 1024),
                      lambda g, i, j: te.max(sums[g, i, j] + bias[j], te.const(0, "float32")).astype("bfloat16"), "C")
    kernel = _compiled(daemon, [a, b, bias, relu])
    _tiles_of(kernel)
    text = kernel.source("tile")
    assert "cast bfloat16" in text and text.count("store") == 1, text


# Each reads the sum several times. What spills in blocks of 128 x 256 is done in blocks of 128 x 128.
FUNCTIONS = {
    "gelu": lambda x: x * 0.5 * (1.0 + te.erf(x * 0.70710678)),
    "gelu of tanh": lambda x: 0.5 * x * (1.0 + te.tanh(0.7978846 * (x + 0.044715 * x * x * x))),
    "silu": lambda x: x * te.sigmoid(x),
    "leaky relu": lambda x: te.if_then_else(x > 0.0, x, x * 0.1),
}


@pytest.mark.parametrize(("function", "arch", "most"), covering(list(FUNCTIONS), [("sm_90", 18), ("sm_100", 15)]))
def test_functions_of_sums_are_part_of_the_kernel(daemon, function, arch, most):
    a, b, sums = _product(4096, 4096, 4096, "bfloat16")
    x = te.compute((4096, 4096), lambda i, j: sums[i, j] * 0.125, "X")
    kernel = _compiled(daemon, [a, b, te.compute((4096, 4096), lambda i, j: FUNCTIONS[function](x[i, j]).astype("bfloat16"), "C")], arch=arch)
    row = _tiles_of(kernel, most_spilled=32)
    loop = main_loop(daemon, "kiln_tile_0")
    compare(row["main_loop"], loop)
    assert loop.arithmetic == 4 and len(loop.opcodes) <= most * 4, loop.kinds
    assert kernel.source("tile").count("mma") == 1


def _convolution(size, channels, filters, padding=1, stride=1, window=3, dtype="bfloat16", images=32):
    """Of images with channels last, with a bias and relu."""
    x = te.placeholder((images, size, size, channels), dtype, "X")
    f = te.placeholder((window, window, channels, filters), dtype, "F")
    bias = te.placeholder((filters,), "float32", "bias")
    sums = topi.nn.conv2d_nhwc(x, f, stride, padding, out_dtype="float32")
    relu = te.compute(sums.shape, lambda b, y, x, m: te.max(sums[b, y, x, m] + bias[m], te.const(0, "float32")).astype(dtype))
    return [x, f, bias, relu]


# Rows of an image overlap as rows of a matrix do that lie closer than they are long.
@pytest.mark.parametrize("options", [
    {"size": 58, "padding": 0}, {"size": 57, "padding": 0, "stride": 2}, {"size": 56, "padding": 0, "window": 1, "channels": 1024}])
def test_hopper_copies_windows_that_stay_in_an_image_as_it_does_matrices(daemon, options):
    kernel = _compiled(daemon, _convolution(**{"channels": 256, "filters": 320, **options}))
    _tiles_of(kernel)
    what = "product" if options.get("window") == 1 else "convolution"  # of one place it is no window
    assert f"an untouched {what} of 16-bit floats" in kernel.report()["generator"]["why"]
    loop = main_loop(daemon, "kiln_tile_0")
    products = [opcode for opcode in loop.opcodes if opcode.startswith("HGMMA.64x256x16")]
    assert len(products) == 4 == loop.kinds["HGMMA"], loop.kinds
    assert len(loop.opcodes) <= 18 * len(products), loop.kinds
    assert loop.kinds["LDG"] == loop.kinds["LDGSTS"] == loop.kinds["LDS"] == loop.kinds["STL"] == 0, loop.kinds


# Its threads copy what has zeros around, 16 bytes at a time, past the registers.
@pytest.mark.parametrize("options", [{}, {"stride": 2}, {"dtype": "float16"}, {"channels": 200}, {"filters": 256}])
def test_hopper_pads_windows_while_it_copies_them(daemon, options):
    kernel = _compiled(daemon, _convolution(**{"size": 56, "channels": 256, "filters": 320, **options}))
    row = _tiles_of(kernel)
    loop = main_loop(daemon, "kiln_tile_0")
    compare(row["main_loop"], loop)
    products = [opcode for opcode in loop.opcodes if opcode.startswith("HGMMA.64x256x16")]
    assert len(products) == 4 == loop.kinds["HGMMA"], loop.kinds
    assert len(loop.opcodes) <= 38 * len(products), loop.kinds
    assert loop.kinds["LDGSTS"] == 4 and loop.widths("LDGSTS") == {16}, loop.opcodes
    assert loop.kinds["LDG"] == loop.kinds["STL"] == 0, loop.kinds


@pytest.mark.parametrize("padding", [0, 1])
def test_blackwell_multiplies_whole_tiles_of_windows(daemon, padding):
    kernel = _compiled(daemon, _convolution(56, 256, 320, padding), arch="sm_100")
    row = _tiles_of(kernel)
    loop = main_loop(daemon, "kiln_tile_0")
    compare(row["main_loop"], loop)
    assert loop.kinds["UTCHMMA"] == loop.arithmetic == 4, loop.kinds
    assert len(loop.opcodes) <= 60, loop.kinds


# What is made of a factor before is computed in registers on its way to tensor cores, where that is predicted to take less time
# than to store it first.
@pytest.mark.parametrize("kind", ["relu and scale", "weights of 8 bits"])
def test_hopper_computes_factors_on_their_way(daemon, kind):
    k = te.reduce_axis((0, 4096), "k")
    a = te.placeholder((4096, 4096), "bfloat16", "A")
    if kind == "relu and scale":
        b, s = te.placeholder((4096, 4096), "bfloat16", "B"), te.placeholder((4096,), "bfloat16", "s")
        relu = te.compute((4096, 4096), lambda i, l: te.max(a[i, l], te.const(0, "bfloat16")) * s[l], "R")
        tensors, left, right = [a, b, s], relu, b
    else:
        b = te.placeholder((4096, 4096), "int8", "B")
        tensors, left, right = [a, b], a, te.compute((4096, 4096), lambda l, j: b[j, l].astype("bfloat16"), "W")
    sums = te.compute((4096, 4096), lambda i, j: te.sum(left[i, k].astype("float32") * right[k, j].astype("float32"), axis=k), "C")
    kernel = _compiled(daemon, [*tensors, sums])
    row = _tiles_of(kernel)
    assert row["name"] == "kiln_tile_0" and kernel.report()["launches"] == 1
    loop = main_loop(daemon, row["name"])
    compare(row["main_loop"], loop)
    # 8 warps issue less than a quarter of 1024 cycles that tensor cores take for 8 products of 64 x 256 x 16.
    assert loop.arithmetic == 4 and len(loop.opcodes) <= 320, loop.kinds
    assert loop.kinds["STL"] == loop.kinds["LDL"] == 0, loop.kinds


# Computed by each block of columns it would take longer than the product.
@pytest.mark.parametrize(("arch", "most"), [("sm_90", 18), ("sm_100", 15)])
def test_what_takes_long_in_front_of_a_product_is_stored_once(daemon, arch, most):
    k = te.reduce_axis((0, 4096), "k")
    a, b = te.placeholder((4096, 4096), "bfloat16", "A"), te.placeholder((4096, 4096), "bfloat16", "B")
    x = te.compute((4096, 4096), lambda i, l: a[i, l].astype("float32"), "X")
    gelu = te.compute((4096, 4096), lambda i, l: (x[i, l] * 0.5 * (1.0 + te.erf(x[i, l] * 0.70710678))).astype("bfloat16"), "R")
    sums = te.compute((4096, 4096), lambda i, j: te.sum(gelu[i, k].astype("float32") * b[k, j].astype("float32"), axis=k), "C")
    kernel = _compiled(daemon, [a, b, sums], arch=arch)
    row = _tiles_of(kernel)
    assert row["name"] == "kiln_tile_1" and kernel.report()["launches"] == 2
    loop = main_loop(daemon, row["name"])
    compare(row["main_loop"], loop)
    assert loop.arithmetic == 4 and len(loop.opcodes) <= most * 4, loop.kinds
    elements = whole_code(daemon, "kiln_tile_0")
    assert elements.widths("LDG") == elements.widths("STG") == {16} and elements.kinds["STL"] == 0, elements.kinds


def _channels_first(size, channels, filters, padding=1, window=3, dtype="bfloat16"):
    x = te.placeholder((32, channels, size, size), dtype, "X")
    f = te.placeholder((filters, channels, window, window), dtype, "F")
    bias = te.placeholder((filters, 1, 1), "float32", "bias")
    sums = topi.nn.conv2d_nchw(x, f, 1, padding, out_dtype="float32")
    relu = te.compute(sums.shape, lambda b, m, y, x: te.max(sums[b, m, y, x] + bias[m, 0, 0], te.const(0, "float32")).astype(dtype))
    return [x, f, bias, relu]


# A copy of the images has their channels last: it reads and writes 16 bytes at once.
@pytest.mark.parametrize(("dtype", "padding", "most"), [("bfloat16", 0, 18), ("bfloat16", 1, 38), ("int8", 0, 19), ("int8", 1, 38)])
def test_hopper_multiplies_windows_with_channels_before_places(daemon, dtype, padding, most):
    tensors = _channels_first(56, 256, 320, padding) if dtype == "bfloat16" else None
    if tensors is None:
        x, f = te.placeholder((32, 256, 56, 56), dtype, "X"), te.placeholder((320, 256, 3, 3), dtype, "F")
        tensors = [x, f, topi.nn.conv2d_nchw(x, f, 1, padding, out_dtype="int32")]
    kernel = _compiled(daemon, tensors)
    row = _tiles_of(kernel)
    assert row["name"] == "kiln_tile_2" and "untouched convolution" in kernel.report()["generator"]["why"]
    loop = main_loop(daemon, row["name"])
    compare(row["main_loop"], loop)
    assert loop.arithmetic == 4 and len(loop.opcodes) <= most * loop.arithmetic, loop.kinds
    assert loop.kinds["LDG"] == loop.kinds["STL"] == 0, loop.kinds
    images = whole_code(daemon, "kiln_tile_0")
    assert images.widths("LDG") == images.widths("STG") == {16}, images.kinds


# Filters of one place multiply images as they lie, whatever stands for their places.
def test_hopper_multiplies_single_places_without_a_copy(daemon):
    kernel = _compiled(daemon, _channels_first(56, 1024, 320, padding=0, window=1))
    row = _tiles_of(kernel)
    assert row["name"] == "kiln_tile_0"
    loop = main_loop(daemon, row["name"])
    assert loop.kinds["HGMMA"] == 4 and len(loop.opcodes) <= 18 * 4, loop.kinds
    assert loop.kinds["LDG"] == loop.kinds["LDGSTS"] == loop.kinds["LDS"] == loop.kinds["STL"] == 0, loop.kinds


# Places side by side in memory are one axis: [batch, row, 16 heads, 64 numbers] is a matrix of rows and 1024 columns.
def test_heads_are_columns_of_one_matrix(daemon):
    a, b = te.placeholder((8, 512, 1024), "bfloat16", "A"), te.placeholder((1024, 16, 64), "bfloat16", "B")
    k = te.reduce_axis((0, 1024), "k")
    sums = te.compute((8, 512, 16, 64), lambda n, i, h, d: te.sum(a[n, i, k].astype("float32") * b[k, h, d].astype("float32"), axis=k))
    kernel = _compiled(daemon, [a, b, sums])
    row = _tiles_of(kernel)
    loop = main_loop(daemon, row["name"])
    assert len([opcode for opcode in loop.opcodes if opcode.startswith("HGMMA.64x256x16")]) == 4, loop.opcodes
    assert len(loop.opcodes) <= 18 * 4, loop.kinds


def test_a_schedule_of_ones_own_is_followed(daemon):
    a, b, c = _product(512, 512, 512, "bfloat16")
    schedule = te.create_schedule(c.op)
    schedule[c].bind(c.op.axis[0], te.thread_axis("blockIdx.x"))
    kernel = _compiled(daemon, schedule, args=[a, b, c])
    assert kernel.report()["generator"] == {"name": "CUDA C", "why": "its schedule is given"}


def _fake(folder, script):
    """A program in the place of tileiras."""
    program = folder / "tileiras"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


@pytest.mark.parametrize(("script", "why"), [
    ("echo error: failed to compile Tile IR program; exit 1",
     " failed with exit code 1: error: failed to compile Tile IR program"),
    ("kill -SEGV $$", " was ended by signal 11"),
    ("exit 0", " made no machine code"),
])
def test_trouble_with_the_compiler_of_tiles_is_a_sentence(start, folder, script, why):
    program = _fake(folder, script)
    daemon = start(environment={"KILN_TILEIRAS": str(program), "CUDA_HOME": "/of/another/toolkit"})
    kernel = _compiled(daemon, _product(512, 512, 512, "float16"))
    assert kernel.report()["generator"] == {"name": "CUDA C", "why": f"{program}{why}"}
    assert [row["name"] for row in kernel.report()["kernels"]] == ["kiln_compact_0"]


# Sums of 8-bit floats that stay in tensor cores are of Tile IR 13.3; all else is of 13.1.
def test_one_that_is_too_old_for_what_is_fast_is_a_sentence(start, folder):
    program = _fake(folder, 'echo "of 13.$(($(od -An -tu1 -j9 -N1 "$4")))"; exit 2')
    daemon = start(environment={"KILN_TILEIRAS": str(program)})
    for fast, version in ((False, 1), (True, 3)):
        kernel = _compiled(daemon, _product(512, 512, 512, "float8_e5m2", b_transposed=True), fast=fast)
        assert kernel.report()["generator"] == {"name": "CUDA C", "why": f"{program} failed with exit code 2: of 13.{version}"}


def test_one_that_is_not_there_is_a_sentence(start, folder):
    daemon = start(environment={"KILN_TILEIRAS": str(folder / "none")})
    kernel = _compiled(daemon, _product(512, 512, 512, "float16"))
    assert kernel.report()["generator"]["why"] == f"there is no program {folder}/none, which KILN_TILEIRAS names"


def test_what_was_compiled_without_is_compiled_anew_where_there_is_one(start, folder):
    def part(daemon):
        [found] = [part for part in daemon.connection.describe()["components"] if part["name"] == "tileiras"]
        return found["ok"], found["message"]

    none, product = folder / "none", _product(512, 512, 512, "float16")
    without = start(environment={"KILN_TILEIRAS": str(none)})
    assert part(without) == (False, f"there is no program {none}, which KILN_TILEIRAS names")
    _compiled(without, product)
    without.stop()
    program = _fake(folder, "kill -SEGV $$")
    with_one = start(environment={"KILN_TILEIRAS": str(program)})
    assert part(with_one) == (True, str(program))
    assert _compiled(with_one, product).report()["generator"]["why"] == f"{program} was ended by signal 11"


def test_nothing_of_it_outlives_the_daemon(start, folder):
    (folder / "tmp").mkdir()
    program = _fake(folder, 'printf "\\177ELF" > "$3"')
    daemon = start(environment={"KILN_TILEIRAS": str(program), "TMPDIR": str(folder / "tmp")})
    kernel = _compiled(daemon, _product(512, 512, 512, "float16"))
    assert kernel.report()["generator"]["why"] == "the code made of tiles is none"
    daemon.connection.close()
    daemon.process.kill()
    daemon.process.wait()
    limit = time.monotonic() + 20
    while os.listdir(folder / "tmp"):
        assert time.monotonic() < limit, os.listdir(folder / "tmp")
        time.sleep(0.05)


def _attention(queries, keys, width, causal=False, dtype="bfloat16", heads=64):
    shapes = (heads, queries, width), (heads, keys, width), (heads, keys, width)
    tensors = [te.placeholder(shape, dtype, name) for shape, name in zip(shapes, "QKV")]
    return [*tensors, topi.nn.attention(*tensors, causal=causal)]


def _tiles_of_attention(kernel):
    row = _tiles_of(kernel, most_spilled=32)
    why = kernel.report()["generator"]["why"]
    assert why.startswith("an untouched attention, whose scores are not stored: "), why
    assert kernel.report()["launches"] == 1
    return row


# A warpgroup has 64 queries: 64x128x16 for each 16 numbers of a key, then 64 x width x 16 for each 16 of 128 keys. A score takes a
# multiply-add, an exponential, a maximum, a sum and half a conversion; of the 64 that a thread has these are 288.
@pytest.mark.parametrize(("width", "products", "most", "causal", "dtype"), covering(
    [(64, 12, 510), (128, 16, 560)], [False, True], ["float16", "bfloat16"], times=2))
def test_hopper_attends_by_whole_warpgroups(daemon, width, products, most, causal, dtype):
    kernel = _compiled(daemon, _attention(4096, 4096, width, causal, dtype))
    row = _tiles_of_attention(kernel)
    loop = main_loop(daemon, "kiln_tile_0")
    compare(row["main_loop"], loop)
    assert loop.kinds["HGMMA"] == products == loop.arithmetic, loop.kinds
    assert len(loop.opcodes) <= most, loop.kinds
    assert loop.kinds["MUFU"] == 66, loop.kinds
    for memory in ("LDG", "STG", "LDS", "STL", "LDL"):
        assert loop.kinds[memory] == 0, loop.kinds


# A block has 512 numbers of 64 results, so that no score is computed twice: 64x64x16 for each 16 of 512 numbers of a key, which two
# warpgroups do both, and 64x256x16 of its own columns for each 16 keys. Warps have 32 keys at a time.
@pytest.mark.parametrize(("arch", "width", "products", "most"), [
    ("sm_90", 512, 36, 490), ("sm_90", 320, 36, 490), ("sm_90", 1024, 68, 780), ("sm_100", 512, 40, 330), ("sm_80", 512, 128, 760),
    ("sm_89", 512, 128, 730)])
def test_heads_of_many_numbers_store_no_scores(daemon, arch, width, products, most):
    kernel = _compiled(daemon, _attention(4096, 4096, width), arch=arch)
    row = _tiles_of_attention(kernel)
    loop = main_loop(daemon, "kiln_tile_0")
    compare(row["main_loop"], loop)
    assert loop.arithmetic == products and len(loop.opcodes) <= most, loop.kinds
    for memory in ("LDG", "STG", "STL", "LDL"):
        assert loop.kinds[memory] == 0, loop.kinds


# Each warp has 16 queries and 64 keys; K and V come from shared memory by ldmatrix, and are copied in the background.
@pytest.mark.parametrize(("arch", "width", "products", "share"), [
    ("sm_80", 64, 64, 0.16), ("sm_80", 128, 128, 0.21), ("sm_89", 64, 64, 0.16), ("sm_120", 64, 64, 0.13), ("sm_120", 128, 128, 0.2)])
def test_older_processors_attend_by_warps(daemon, arch, width, products, share):
    kernel = _compiled(daemon, _attention(4096, 4096, width), arch=arch)
    row = _tiles_of_attention(kernel)
    loop = main_loop(daemon, "kiln_tile_0")
    compare(row["main_loop"], loop)
    assert loop.kinds["HMMA"] == products == loop.arithmetic, loop.kinds
    assert loop.share > share, loop.kinds
    assert loop.kinds["STG"] == loop.kinds["STL"] == 0 and loop.kinds["LDSM"] > 0, loop.kinds


@pytest.mark.parametrize("width", [64, 128, 256])
def test_blackwell_attends_by_tiles(daemon, width):
    kernel = _compiled(daemon, _attention(4096, 4096, width, causal=True), arch="sm_100")
    _tiles_of_attention(kernel)
    loop = main_loop(daemon, "kiln_tile_0")
    assert loop.kinds["UTCHMMA"] == loop.arithmetic >= 12, loop.kinds
    assert loop.kinds["STL"] == 0, loop.kinds


# One query for each head, keys that are no whole parts, lengths that the call brings.
@pytest.mark.parametrize("options", [
    {"queries": 1, "keys": 4096}, {"queries": 300, "keys": 333, "causal": True}, {"queries": te.var("n"), "keys": te.var("m"), "causal": True}])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_attention_of_any_length_stores_no_scores(daemon, options, arch):
    kernel = _compiled(daemon, _attention(width=64, **options), arch=arch)
    _tiles_of_attention(kernel)
    text = kernel.source("tile")
    assert text.count("store") == 1, text


# Lanes multiply: of the 1024 products that a thread has of 64 queries and 32 keys of 64 numbers, each takes less than 1.6 instructions.
@pytest.mark.parametrize(("arch", "share", "copies"), [("sm_80", 0.72, "LDGSTS"), ("sm_89", 0.72, "LDGSTS")])
def test_attention_of_float32_is_multiplied_by_lanes(daemon, arch, share, copies):
    kernel = _compiled(daemon, _attention(4096, 4096, 64, dtype="float32"), arch=arch)
    row = _tiles_of_attention(kernel)
    loop = main_loop(daemon, "kiln_tile_0")
    compare(row["main_loop"], loop)
    assert loop.share > share, loop.kinds
    assert loop.kinds["HMMA"] == loop.kinds["STG"] == loop.kinds["STL"] == loop.kinds["LDL"] == 0, loop.kinds
    assert loop.kinds[copies] > 0, loop.kinds
    assert kernel.source("tile").count("store") == 1


# Reshapes into heads are part of the projections in CUDA C, which writes them so, but of no attention, which could not be one kernel with
# them; nor of a product on tiles.
@pytest.mark.parametrize(("dtype", "arch", "kernels"), [("float32", "sm_90", 5), ("float16", "sm_80", 5), ("float16", "sm_90", 9)])
def test_an_attention_in_a_program_keeps_its_form(daemon, dtype, arch, kernels):
    batch, places, heads, width = 2, 256, 4, 64
    program = kiln.Program("heads", target=f"cuda -arch={arch}", connection=daemon.connection)
    x = program.input((batch * places, heads * width), dtype, name="x")
    weights = [program.input((heads * width, heads * width), dtype, name=name) for name in ("wq", "wk", "wv", "wo")]

    def into_heads(tensor):
        return topi.transpose(topi.reshape(tensor, (batch, places, heads, width)), (0, 2, 1, 3))

    attended = topi.nn.attention(*(into_heads(topi.matmul(x, weight)) for weight in weights[:3]), causal=True)
    joined = topi.reshape(topi.transpose(attended, (0, 2, 1, 3)), (batch * places, heads * width))
    program.output(o=topi.matmul(joined, weights[3]))
    plan = program.plan()
    assert len(plan.kernels) == kernels, plan
    [attention] = [kernel for kernel in plan.kernels if "T_softmax" in kernel["nodes"]]
    assert not any("reshape" in node for node in attention["nodes"]), attention


# In their order all scores are in memory, which are more than 4 GiB here: ptxas (13.0) once fell at such places on sm_120.
def test_attention_of_float32_and_long_rows_compiles_everywhere(daemon):
    for dtype, arch in [("float32", "sm_90"), ("float16", "sm_120")]:
        kernel = _compiled(daemon, _attention(4096, 4096, 64, dtype=dtype), arch=arch, strict=True)
        assert len(kernel.report()["kernels"]) >= 3, kernel.report()
