"""What the main loops of untouched products are made of, read from cubins: no GPU is asked."""

import pytest
from covering import covering
from sass import compare, main_loop

import kiln
from kiln import te


def _product(m, n, l, dtype="float32", a_transposed=False, b_transposed=False, batch=()):
    """A product of matrices whose sums are float32, of integers int32."""
    wide = "int32" if dtype in ("int8", "uint8") else "float32"
    a = te.placeholder((*batch, l, m) if a_transposed else (*batch, m, l), dtype, "A")
    b = te.placeholder((*batch, n, l) if b_transposed else (*batch, l, n), dtype, "B")
    k = te.reduce_axis((0, l), "k")

    def sums(*axes):
        *first, i, j = axes
        x = a[(*first, k, i) if a_transposed else (*first, i, k)]
        y = b[(*first, j, k) if b_transposed else (*first, k, j)]
        return te.sum(x.astype(wide) * y.astype(wide), axis=k)

    return [a, b, te.compute((*batch, m, n), sums, "C")]


def _loop_of(daemon, tensors, arch, entry="kiln_compact_0", schedule=None, spilled=0, blocks=None, **options):
    """`blocks`: so many of the last kernel's a multiprocessor has at once, at least, where that is asked."""
    try:
        inputs = (schedule, tensors) if schedule else (tensors,)
        kernel = kiln.compile(*inputs, target="cuda", arch=arch, connection=daemon.connection, **options)
    except kiln.Unavailable as error:
        pytest.skip(f"no NVRTC here: {error.message}")
    rows = kernel.report()["kernels"]
    assert all(row["spill_bytes"] <= spilled for row in rows)
    if blocks:
        assert rows[-1]["occupancy_percent"] >= blocks * rows[-1]["threads"] * 100 // 2048, rows[-1]
    loop = main_loop(daemon, entry)
    for row in rows:
        if row["name"] == entry:
            compare(row["main_loop"], loop)
    return loop


# Those of cuBLAS's float32 kernels have 0.880 to 0.887.
@pytest.mark.parametrize("case", [
    pytest.param(dict(m=4096, n=4096, l=4096), id="4096"),
    pytest.param(dict(m=4096, n=4096, l=4096, a_transposed=True), id="a_transposed"),
    pytest.param(dict(m=4096, n=4096, l=4096, b_transposed=True), id="b_transposed"),
    pytest.param(dict(m=4096, n=4096, l=4096, a_transposed=True, b_transposed=True), id="transposed"),
    pytest.param(dict(m=4095, n=4093, l=4091), id="odd"),
    pytest.param(dict(m=4095, n=4093, l=4091, a_transposed=True, b_transposed=True), id="odd_and_transposed"),
    pytest.param(dict(m=1001, n=1003, l=1005, batch=(16,)), id="odd_batches"),
])
def test_multiply_adds_fill_the_main_loop(daemon, case):
    loop = _loop_of(daemon, _product(**case), "sm_90", blocks=2)
    # One barrier an iteration. Of rows that are fetched 128 bits at a time two iterations are written out.
    is_odd = case["m"] % 4 != 0
    assert loop.kinds["FFMA"] == loop.kinds["BAR"] * 512 == (512 if is_odd else 1024), loop.kinds
    assert loop.share > (0.86 if is_odd else 0.89), loop.kinds
    assert loop.widths("LDS") == {16} and loop.widths("LDG") == {4 if is_odd else 16}, loop.kinds
    assert loop.kinds["LDL"] == loop.kinds["STL"] == 0, loop.kinds


# What is computed of a factor inside of the sum is computed once for each element that a block fetches.
def test_factors_may_be_computed_in_the_sum(daemon):
    a, b, _ = _product(2048, 2048, 2048)
    k = te.reduce_axis((0, 2048), "k")
    c = te.compute((2048, 2048), lambda i, j: te.sum(te.max(a[i, k], 0.0) * b[k, j], axis=k), "C")
    loop = _loop_of(daemon, [a, b, c], "sm_90", blocks=2)
    assert loop.kinds["FFMA"] == loop.kinds["BAR"] * 512 == 1024, loop.kinds
    assert loop.share > 0.88 and loop.widths("LDS") == {16} == loop.widths("LDG"), loop.kinds


# Tiles of a product of unknown sizes are smaller. Where its indices have 32 bits their places take little; else more.
@pytest.mark.parametrize(("entry", "share"), [("kiln_narrow_0", 0.7), ("kiln_compact_0", 0.6)])
def test_unknown_sizes_need_one_barrier_too(daemon, entry, share):
    m, n, l = te.var("m"), te.var("n"), te.var("l")
    loop = _loop_of(daemon, _product(m, n, l), "sm_90", entry)
    assert loop.kinds["BAR"] == 1 and loop.kinds["FFMA"] == 256, loop.kinds
    assert loop.share > share, loop.kinds


# Those of cuBLAS by mma.sync have 0.598 to 0.643.
@pytest.mark.parametrize(("transposed", "arch"), covering(["", "a", "b", "ab"], ["sm_80", "sm_90"]))
def test_products_of_16_bits_are_matrix_instructions(daemon, arch, transposed):
    loop = _loop_of(daemon, _product(4096, 4096, 4096, "bfloat16", "a" in transposed, "b" in transposed), arch)
    # Three iterations, each of which has its place in shared memory, one barrier, and one wait for copies.
    assert loop.kinds["HMMA"] == 3 * 128 and loop.kinds["LDSM"] == 3 * 32, loop.kinds
    assert loop.share > {"": 0.66, "a": 0.62, "b": 0.68, "ab": 0.64}[transposed], loop.kinds
    assert loop.kinds["BAR"] == 3 and loop.kinds["DEPBAR"] == 3, loop.kinds
    assert loop.widths("LDGSTS") == {16} and loop.kinds["LDG"] == 0 and loop.kinds["STS"] == 0


def _weights_of_bytes(n, inside):
    """A product with weights of int8 and a scale for each column, in a stage of their own or inside of the sum."""
    a, w = te.placeholder((n, n), "float16", "A"), te.placeholder((n, n), "int8", "W")
    scale = te.placeholder((n,), "float16", "scale")
    k = te.reduce_axis((0, n), "k")

    def weight(k, j):
        return w[k, j].astype("float16") * scale[j]

    weights = weight if inside else te.compute((n, n), weight, "weights")
    value = weights if inside else lambda k, j: weights[k, j]
    c = te.compute(
        (n, n), lambda i, j: te.sum(a[i, k].astype("float32") * value(k, j).astype("float32"), axis=k), "C"
    )
    return [a, w, scale, c]


# Four iterations of 32 steps; hardware copies the other factor, and threads wait once.
@pytest.mark.parametrize("arch", ["sm_80", "sm_89"])
@pytest.mark.parametrize("inside", [False, True])
def test_a_computed_factor_waits_in_registers_beside_a_copied_one(daemon, arch, inside):
    loop = _loop_of(daemon, _weights_of_bytes(4096, inside), arch)
    assert loop.kinds["HMMA"] == loop.kinds["BAR"] * 64 == 256, loop.kinds
    assert loop.share > 0.32, loop.kinds
    # Eight weights of a byte are loaded at once, and stored as 16 bytes.
    assert loop.widths("LDG") == {8} and loop.kinds["LDG"] == loop.kinds["STS"] == 8, loop.kinds
    assert loop.widths("LDGSTS") == {16} == loop.widths("STS"), loop.kinds


def tensor_float_product(transposed, m=4096, n=4096, l=4096):
    """A product in tf32; "a", "b": whether these are transposed."""
    a, b, _ = _product(m, n, l, "float32", "a" in transposed, "b" in transposed)
    k = te.reduce_axis((0, l), "k")

    def sums(i, j):
        x, y = a[k, i] if "a" in transposed else a[i, k], b[j, k] if "b" in transposed else b[k, j]
        return te.sum(te.tf32(x) * te.tf32(y), axis=k)

    return [a, b, te.compute((m, n), sums, "C")]


# Of float32 what lies along the sum is loaded as matrices, else element by element.
@pytest.mark.parametrize(("transposed", "arch"), covering(["", "a", "b"], ["sm_80", "sm_86", "sm_90"], times=2))
def test_products_of_tensor_floats_are_matrix_instructions(daemon, arch, transposed):
    loop = _loop_of(daemon, tensor_float_product(transposed), arch)
    assert loop.kinds["HMMA"] in (3 * 64, 3 * 128), loop.kinds
    assert loop.share > {"": 0.5, "a": 0.39, "b": 0.64}[transposed], loop.kinds
    assert loop.widths("LDGSTS") == {16} and loop.kinds["LDG"] == 0 and loop.kinds["STS"] == 0, loop.kinds


# 32 steps at once, which are as many bytes. What does not lie along the sum is turned by a byte permutation a register.
@pytest.mark.parametrize(("arch", "transposed"), covering(["sm_80", "sm_86", "sm_89", "sm_90", "sm_120"], ["", "a", "b", "ab"], times=2))
def test_products_of_bytes_are_matrix_instructions(daemon, arch, transposed):
    tensors = _product(4096, 4096, 4096, "int8", "a" in transposed, "b" in transposed)
    loop = _loop_of(daemon, tensors, arch)
    products = loop.kinds["IMMA"]
    assert products in (3 * 64, 3 * 128) and loop.kinds["LDSM"] == products / 4, loop.kinds
    # sm_120 waits in instructions of their own.
    share = products / (len(loop.opcodes) - loop.kinds["NOP"])
    assert share > {"": 0.47, "a": 0.37, "b": 0.65, "ab": 0.47}[transposed], loop.kinds
    turned = {"": 1, "a": 2, "b": 0, "ab": 1}[transposed]
    assert loop.kinds["PRMT"] == turned * products / 2, loop.kinds
    assert loop.kinds["BAR"] == 3 and loop.kinds["DEPBAR"] == 3, loop.kinds
    assert loop.widths("LDGSTS") == {16} and loop.kinds["LDG"] == 0 and loop.kinds["STS"] == 0


# Where a warp has instructions for 8-bit floats four of them, 128 steps, are added to the whole in float32; sm_90 multiplies
# them as halves. Nothing is spilled, whatever is transposed.
@pytest.mark.parametrize(("transposed", "arch"), covering(["", "a", "b", "ab"], ["sm_89", "sm_90", "sm_120"]))
def test_products_of_8_bit_floats_are_matrix_instructions(daemon, arch, transposed):
    tensors = _product(4096, 4096, 4096, "float8_e4m3fn", "a" in transposed, "b" in transposed)
    loop = _loop_of(daemon, tensors, arch)
    if arch == "sm_90":
        # The steps of an iteration are a loop of their own, in that of the copies.
        assert loop.kinds["HMMA"] == 32 and loop.kinds["F2FP"] == 48, loop.kinds
        assert loop.share > {"": 0.3, "a": 0.27, "b": 0.34, "ab": 0.29}[transposed], loop.kinds
        return
    assert loop.kinds["QMMA"] == loop.kinds["FADD"] == 128, loop.kinds
    assert loop.kinds["PRMT"] == {"": 64, "a": 192, "b": 0, "ab": 64}[transposed], loop.kinds
    assert loop.kinds["BAR"] == 4 and loop.widths("LDGSTS") == {16}, loop.kinds
    # Both wait between matrix instructions, sm_89 in additions to nothing.
    waits = loop.kinds["NOP"] if arch == "sm_120" else loop.kinds["UIADD3"]
    assert 128 / (len(loop.opcodes) - waits) > {"": 0.28, "a": 0.22, "b": 0.34, "ab": 0.28}[transposed], loop.kinds


# With `fast` they are added up by tensor cores alone, so that a warp has as many sums as of other types.
@pytest.mark.parametrize(("transposed", "arch"), covering(["", "a", "b", "ab"], ["sm_89", "sm_120"], times=2))
def test_products_of_8_bit_floats_are_added_up_by_tensor_cores_alone_where_it_is_fast(daemon, arch, transposed):
    tensors = _product(4096, 4096, 4096, "float8_e4m3fn", "a" in transposed, "b" in transposed)
    loop = _loop_of(daemon, tensors, arch, fast=True)
    assert loop.kinds["QMMA"] == 3 * 64 and loop.kinds["FADD"] == 0, loop.kinds
    assert loop.kinds["PRMT"] == {"": 0.5, "a": 1, "b": 0, "ab": 0.5}[transposed] * loop.kinds["QMMA"], loop.kinds
    assert loop.widths("LDGSTS") == {16} and loop.kinds["LDG"] == 0 and loop.kinds["STS"] == 0, loop.kinds
    waits = loop.kinds["NOP"] if arch == "sm_120" else loop.kinds["UIADD3"]
    assert loop.kinds["QMMA"] / (len(loop.opcodes) - waits) > {"": 0.47, "a": 0.37, "b": 0.65, "ab": 0.47}[transposed], loop.kinds


def test_a_report_says_how_8_bit_floats_are_added_up(daemon):
    def notes(dtype, arch, **options):
        try:
            kernel = kiln.compile(_product(256, 256, 256, dtype), target="cuda", arch=arch, connection=daemon.connection, **options)
        except kiln.Unavailable as error:
            pytest.skip(f"no NVRTC here: {error.message}")
        return kernel.report()["notes"]

    assert notes("float8_e5m2", "sm_89") == [
        "tensor cores add up at most 128 steps of 8-bit floats, and float32 these; with fast (fast=True, --fast) tensor cores all of them, "
        "in fewer bits"]
    assert notes("float8_e5m2", "sm_89", fast=True) == [
        "8-bit floats are added up by tensor cores alone, in fewer bits than float32 has"]
    assert notes("float8_e5m2", "sm_89", fast=True, strict=True) == []
    assert notes("float8_e5m2", "sm_80", fast=True) == notes("float16", "sm_89", fast=True) == []


# There are too few blocks of the larger tile for all multiprocessors.
def test_smaller_products_of_16_bits_are_fetched_when_they_are_needed(daemon):
    loop = _loop_of(daemon, _product(1024, 1024, 1024, "float16"), "sm_90")
    assert loop.kinds["HMMA"] == 32 and loop.kinds["LDGSTS"] == 0, loop.kinds
    assert loop.share > 0.4, loop.kinds
    assert loop.kinds["LDS"] == 0 and loop.widths("LDG") == {16} and loop.widths("STS") == {16}


def test_a_sum_stays_in_a_register_until_it_is_whole(daemon):
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    sums = te.compute((n,), lambda i: te.sum(a[i, k] * 2, axis=k), "S")
    s = te.create_schedule(sums)
    block, thread = s[sums].split(sums.op.axis[0], 64)
    s[sums].bind(block, te.thread_axis("blockIdx.x"))
    s[sums].bind(thread, te.thread_axis("threadIdx.x"))
    loop = _loop_of(daemon, [a, sums], "sm_90", schedule=s)
    assert loop.kinds["LDG"] > 0 and loop.kinds["STG"] == 0, loop.kinds


# Rows and columns of a tile in three memories: one barrier an iteration, and nothing passes registers on its way to them.
# An iteration for each memory is written out.
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_three_stages_are_copied_in_the_background(daemon, arch):
    tensors = _product(1024, 1024, 1024)
    a, b, c = tensors
    s = te.create_schedule(c.op)
    rows, columns = s.cache_read(a, "shared", [c]), s.cache_read(b, "shared", [c])
    sums = s.cache_write(c, "local")
    i, j = c.op.axis
    io, ii = s[c].split(i, factor=64)
    jo, ji = s[c].split(j, factor=64)
    y, own_rows = s[c].split(ii, nparts=16)
    x, own_columns = s[c].split(ji, nparts=16)
    s[c].reorder(io, jo, y, x, own_rows, own_columns)
    for axis, thread in ((io, "blockIdx.y"), (jo, "blockIdx.x"), (y, "threadIdx.y"), (x, "threadIdx.x")):
        s[c].bind(axis, te.thread_axis(thread))
    s[sums].compute_at(s[c], x)
    part, step = s[sums].split(sums.op.reduce_axis[0], factor=16)
    s[sums].reorder(part, step, *sums.op.axis)
    s[sums].unroll(step)
    for copy in (rows, columns):
        s[copy].compute_at(s[sums], part)
        vectors, lane = s[copy].split(copy.op.axis[1], factor=4)
        s[copy].vectorize(lane)
        rest, thread_x = s[copy].split(s[copy].fuse(copy.op.axis[0], vectors), factor=16)
        _, thread_y = s[copy].split(rest, factor=16)
        s[copy].bind(thread_y, te.thread_axis("threadIdx.y"))
        s[copy].bind(thread_x, te.thread_axis("threadIdx.x"))
    s[sums].software_pipeline(part, 3)
    loop = _loop_of(daemon, tensors, arch, schedule=s)
    assert loop.kinds["BAR"] == 3 and loop.kinds["FFMA"] == 3 * 256, loop.kinds
    if arch == "sm_75":
        assert loop.kinds["LDGSTS"] == 0 and loop.widths("STS") == {16}
        return
    assert loop.kinds["LDGSTS"] == 3 * 2 and loop.widths("LDGSTS") == {16}, loop.kinds
    assert loop.kinds["DEPBAR"] == 3 and loop.kinds["LDG"] == 0 and loop.kinds["STS"] == 0, loop.kinds


def _convolution(images, channels, filters, side, window, stride=1, channels_last=False, dtype="float32"):
    """Filters of window x window, with zeros around the images as a stage of its own."""
    pad, wide = window // 2, "int32" if dtype == "int8" else "float32"
    size = side + 2 * pad
    outputs = (size - window) // stride + 1
    x = te.placeholder((images, side, side, channels) if channels_last else (images, channels, side, side), dtype, "X")
    f = te.placeholder((window, window, channels, filters) if channels_last else (filters, channels, window, window), dtype, "F")

    def padded(b, *axes):
        c, i, j = (axes[2], axes[0], axes[1]) if channels_last else axes
        inside = te.all(i >= pad, i < side + pad, j >= pad, j < side + pad)
        element = x[b, i - pad, j - pad, c] if channels_last else x[b, c, i - pad, j - pad]
        return te.if_then_else(inside, element, te.const(0, dtype))

    p = te.compute((images, size, size, channels) if channels_last else (images, channels, size, size), padded, "P")
    c, r, s = te.reduce_axis((0, channels), "c"), te.reduce_axis((0, window), "r"), te.reduce_axis((0, window), "s")
    if channels_last:
        return [x, f, te.compute((images, outputs, outputs, filters), lambda b, i, j, m: te.sum(
            p[b, i * stride + r, j * stride + s, c].astype(wide) * f[r, s, c, m].astype(wide), axis=[r, s, c]), "Y")]
    return [x, f, te.compute((images, filters, outputs, outputs), lambda b, m, i, j: te.sum(
        p[b, c, i * stride + r, j * stride + s].astype(wide) * f[m, c, r, s].astype(wide), axis=[c, r, s]), "Y")]


# What is fetched is laid out for the window, and padded, on the way: 86 to 204 instructions beside 256 multiply-adds. An iteration
# has 256 or 512 of these; of 512, whose channels lie side by side, two are written out.
@pytest.mark.parametrize(("case", "share"), [
    (dict(images=32, channels=128, filters=128, side=28, window=3), 0.65),
    (dict(images=32, channels=256, filters=256, side=14, window=3), 0.55),
    (dict(images=32, channels=512, filters=512, side=7, window=3), 0.52),
    (dict(images=32, channels=128, filters=128, side=28, window=3, stride=2), 0.55),
    (dict(images=32, channels=128, filters=128, side=28, window=3, channels_last=True), 0.65)])
def test_convolutions_of_small_images_are_tiles(daemon, case, share):
    loop = _loop_of(daemon, _convolution(**case), "sm_90")
    assert loop.share > share, loop.kinds
    assert loop.widths("LDS") == {16} and loop.kinds["BAR"] == max(1, loop.kinds["FFMA"] // 512), loop.kinds
    assert 16 in loop.widths("LDG"), loop.kinds


# Zeros around images are copied from nowhere, and what a window reads 16 bytes at a time, past the registers.
CONVOLUTIONS = {
    "56": (dict(channels=64, filters=64, side=56, window=3), 0.27),
    "28": (dict(channels=128, filters=128, side=28, window=3), 0.33),
    "1x1": (dict(channels=256, filters=256, side=56, window=1), 0.5),
    "int8": (dict(channels=128, filters=128, side=28, window=3, dtype="int8"), 0.28),
}


@pytest.mark.parametrize(("convolution", "arch"), covering(list(CONVOLUTIONS), ["sm_80", "sm_86", "sm_120"], times=2))
def test_convolutions_of_short_types_are_matrix_instructions(daemon, arch, convolution):
    case, share = CONVOLUTIONS[convolution]
    # So many images are large tiles for all multiprocessors; else smaller ones are taken.
    case = {"dtype": "float16", "images": 64 if arch == "sm_86" else 32, **case}
    loop = _loop_of(daemon, _convolution(channels_last=True, **case), arch)
    products = loop.kinds["HMMA"] + loop.kinds["IMMA"]
    assert products > 0 and loop.widths("LDGSTS") == {16}, loop.kinds
    assert loop.kinds["LDG"] == 0 and loop.kinds["STS"] == 0, loop.kinds
    assert products / (len(loop.opcodes) - loop.kinds["NOP"]) > share, loop.kinds


# The places of a window lie 2 bytes apart, and begin anywhere. Filters are copied by a launch before.
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_convolutions_with_channels_first_are_matrix_instructions_too(daemon, arch):
    case = dict(images=32, channels=128, filters=128, side=28, window=3, dtype="bfloat16")
    loop = _loop_of(daemon, _convolution(**case), arch, entry="kiln_compact_1")
    assert loop.kinds["HMMA"] > 0 and loop.share > 0.28, loop.kinds
    assert loop.widths("LDG") == {2, 16}, loop.kinds
