"""What the most read tutorials of te do, step by step, with the imports changed; each prints loops and runs them."""

import numpy as np
import pytest

import kiln as tvm
from kiln import te, tir, topi
from kiln.ir import register_intrin_lowering, register_op_attr

pytestmark = pytest.mark.usefixtures("service")


def uniform(*shape, dtype="float32"):
    return np.random.RandomState(0).uniform(0.5, 1, size=shape).astype(dtype)


def test_intrinsics_and_math_functions():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute(A.shape, lambda i: tir.call_pure_extern("float32", "__expf", A[i]), name="B")
    s = te.create_schedule(B.op)
    bx, tx = s[B].split(B.op.axis[0], factor=64)
    f = tvm.build(s, [A, B], "llvm", name="myexp")
    x = uniform(100)
    np.testing.assert_allclose(f(x).numpy(), np.exp(x), rtol=1e-6)

    def my_math_rule(op):
        assert isinstance(op, tir.Call) and op.op.name.startswith("tir.")
        name = op.op.name[4:]
        if op.dtype == "float32":
            return tir.call_pure_extern("float32", f"{name}f", op.args[0])
        return op

    register_intrin_lowering("tir.exp", target="cuda", f=my_math_rule, level=99)

    def mylog(x):
        return tir.call_intrin(x.dtype, "tir.mylogarithm", x)

    def my_log_rule(op):
        return tir.call_pure_extern("float32", "logf", op.args[0]) if op.dtype == "float32" else op

    register_op_attr("tir.mylogarithm", "TCallEffectKind", tir.CallEffectKind.Pure)
    register_intrin_lowering("tir.mylogarithm", target="cuda", f=my_log_rule, level=99)
    C = te.compute(A.shape, lambda i: mylog(A[i]) + te.exp(A[i]), name="C")
    f = tvm.build(te.create_schedule(C.op), [A, C], "llvm", name="mylog")
    np.testing.assert_allclose(f(x).numpy(), np.log(x) + np.exp(x), rtol=1e-5)


@pytest.mark.parametrize("name, expected", [
    ("fmaxf", np.maximum), ("powf", np.power), ("__powf", np.power), ("fabs", lambda a, b: np.abs(a)),
    ("rint", lambda a, b: np.rint(a)), ("round", lambda a, b: np.trunc(a + np.copysign(0.5, a))),
    ("__fdividef", np.divide), ("__saturatef", lambda a, b: np.clip(a, 0, 1)), ("__nv_tanhf", lambda a, b: np.tanh(a)),
    ("expm1", lambda a, b: np.expm1(a)), ("atan2", np.arctan2),
])  # fmt: skip
def test_functions_of_c(name, expected):
    A, B = te.placeholder((7,), name="A"), te.placeholder((7,), name="B")
    binary = name in ("fmaxf", "powf", "__powf", "__fdividef", "atan2")
    C = te.compute((7,), lambda i: tvm.call_pure_extern("float32", name, A[i], *([B[i]] if binary else [])))
    a, b = np.array([0.5, 1.5, 2.5, 0.25, 3.5, 0.75, 1.0], "float32"), uniform(7)
    np.testing.assert_allclose(tvm.build([A, B, C])(a, b).numpy(), expected(a, b), rtol=1e-5)


def test_lowering_with_the_inputs_alone():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1, name="B")
    s = te.create_schedule(B.op)
    assert "fn main(A: float32[n], B: float32[n])" in str(tvm.lower(s, [A]))
    assert tvm.build(s, [A])(np.ones(3, "float32")).tolist() == [2, 2, 2]


def test_a_product_by_an_intrinsic_of_ones_own():
    N, M, L = 64, 32, 16
    A, B = te.placeholder((N, L), name="A"), te.placeholder((M, L), name="B")
    k = te.reduce_axis((0, L), name="k")
    C = te.compute((N, M), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    factor = 16
    x, y = C.op.axis
    (z,) = C.op.reduce_axis
    yo, yi = s[C].split(y, factor=factor)
    s[C].reorder(x, yo, yi, z)

    def gemv(m, l):
        a, b = te.placeholder((l,), name="a"), te.placeholder((m, l), name="b")
        k = te.reduce_axis((0, l), name="k")
        c = te.compute((m,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
        Ab = tir.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[1])
        Bb = tir.decl_buffer(b.shape, b.dtype, name="B", offset_factor=1, strides=[te.var("s1"), 1])
        Cb = tir.decl_buffer(c.shape, c.dtype, name="C", offset_factor=1, strides=[1])

        def write(ins, outs):
            raise AssertionError("no code of a client is asked for")

        return te.decl_tensor_intrin(c.op, write, binds={a: Ab, b: Bb, c: Cb})

    s[C].tensorize(yi, gemv(factor, L))
    s[C].pragma(x, "import_llvm", tvm.contrib.clang.create_llvm("extern C int gemv_update();"))
    f = tvm.build(s, [A, B, C], target="llvm", name="gemv")
    a, b = uniform(N, L), uniform(M, L)
    np.testing.assert_allclose(f(a, b).numpy(), a @ b.T, rtol=1e-4)


def test_a_matrix_packed_in_blocks_whose_number_is_a_quotient():
    M = N = K = 64
    bn = 32
    A, B = te.placeholder((M, K), name="A"), te.placeholder((K, N), name="B")
    k = te.reduce_axis((0, K), "k")
    packedB = te.compute((N / bn, K, bn), lambda bigN, k, littleN: B[k, bigN * bn + littleN], name="packedB")
    C = te.compute(
        (M, N), lambda m, n: te.sum(A[m, k] * packedB[n // bn, k, tir.indexmod(n, bn)], axis=k), name="C"
    )
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "global")
    mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], bn, bn)
    s[CC].compute_at(s[C], no)
    mc, nc = s[CC].op.axis
    (kaxis,) = s[CC].op.reduce_axis
    ko, ki = s[CC].split(kaxis, factor=4)
    s[CC].reorder(ko, mc, ki, nc)
    s[CC].vectorize(nc)
    s[CC].unroll(ki)
    s[C].parallel(mo)
    bigN, _, littleN = s[packedB].op.axis
    s[packedB].vectorize(littleN)
    s[packedB].parallel(bigN)
    f = tvm.build(s, [A, B, C], target="llvm", name="mmult")
    a, b = uniform(M, K), uniform(K, N)
    c = tvm.nd.array(np.zeros((M, N), "float32"), tvm.cpu(0))
    f(tvm.nd.array(a), tvm.nd.array(b), c)
    tvm.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4)
    assert f.time_evaluator(f.entry_name, tvm.cpu(0), number=3)(tvm.nd.array(a), tvm.nd.array(b), c).mean > 0


def test_bits_of_bfloat16():
    A = te.placeholder((4,), "bfloat16", name="A")
    B = te.compute((4,), lambda i: A[i] + A[i], name="B")
    f = tvm.build([A, B])
    out = np.zeros(4, "uint16")
    f(np.full(4, 0x3F80, "uint16"), out)
    assert out.tolist() == [0x4000] * 4
    assert f(np.full(4, 0x3F80, "uint16")).astype("float32").tolist() == [2.0] * 4


def test_introduction_to_topi():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    C = topi.sum(A, axis=1)
    with tvm.target.Target("cuda"):
        s = topi.cuda.schedule_reduce(C)
    assert "for" in str(tvm.lower(te.create_schedule(C.op), [A], simple_mode=True))
    x, y = 100, 10
    a, b = te.placeholder((x, y, y), name="a"), te.placeholder((y, y), name="b")
    c, d = a + b, a * b
    e = topi.elemwise_sum([c, d])
    f = e / 2.0
    g = topi.sum(f)
    s = topi.generic.schedule_reduce(g)
    func = tvm.build(s, [a, b, g], "llvm")
    a_np, b_np = uniform(x, y, y), uniform(y, y)
    np.testing.assert_allclose(func(a_np, b_np).numpy(), np.sum((a_np + b_np + a_np * b_np) / 2.0), rtol=1e-5)
    data, kernel = te.placeholder((1, 3, 24, 24)), te.placeholder((10, 3, 5, 5))
    conv = topi.nn.conv2d(data, kernel, strides=1, padding=2, dilation=1)
    out = topi.nn.relu(conv)
    assert tvm.build([data, kernel, out])(uniform(1, 3, 24, 24), uniform(10, 3, 5, 5)).shape == (1, 10, 24, 24)


# Schedule primitives: each as its page prints and builds it.


def elementwise(m):
    A = te.placeholder((m,), name="A")
    B = te.compute((m,), lambda i: A[i] + 1, name="B")
    C = te.compute((m,), lambda i: B[i] * 2, name="C")
    return A, B, C, te.create_schedule(C.op)


def loops(s, args):
    return str(tvm.lower(s, args, simple_mode=True)).splitlines()[1:-1]


def checked(s, args):
    a = uniform(21)
    results = [tvm.nd.array(np.zeros(21, "float32")) for _ in args[1:]]
    tvm.build(s, args, "llvm")(tvm.nd.array(a), *results)
    for result, expected in zip(results, (a + 1, (a + 1) * 2)):
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


def test_compute_root():
    A, B, C, s = elementwise(te.var("m"))
    assert loops(s, [A, B, C]) == [
        "  for i in 0..m {", "    B[i] = A[i] + 1.0", "  }", "  for i_1 in 0..m {", "    C[i_1] = B[i_1]*2.0", "  }"]
    checked(s, [A, B, C])


def test_compute_at():
    A, B, C, s = elementwise(te.var("m"))
    s[B].compute_at(s[C], C.op.axis[0])
    assert loops(s, [A, B, C]) == ["  for i in 0..m {", "    B[i] = A[i] + 1.0", "    C[i] = B[i]*2.0", "  }"]
    checked(s, [A, B, C])
    s[B].compute_root()
    checked(s, [A, B, C])


def test_compute_inline():
    A, B, C, s = elementwise(te.var("m"))
    s[B].compute_inline()
    assert loops(s, [A, B, C]) == [
        "  for i in 0..m {", "    B[i] = A[i] + 1.0", "  }", "  for i_1 in 0..m {", "    C[i_1] = (A[i_1] + 1.0)*2.0", "  }"]
    checked(s, [A, B, C])


@pytest.mark.parametrize("factor", [None, 8])
def test_compute_at_in_parallel_tiles(factor):
    A, B, C, s = elementwise(te.var("m"))
    (i,) = C.op.axis
    outer = i if factor is None else s[C].split(i, factor=factor)[0]
    s[C].parallel(outer)
    s[B].compute_at(s[C], outer)
    checked(s, [A, B, C])


def test_split_tile_fuse_reorder_and_bind():
    m, n = te.var("m"), te.var("n")
    A = te.placeholder((m, n), name="A")
    B = te.compute((m, n), lambda i, j: A[i, j], name="B")
    for steps in ("tile", "fuse", "reorder", "nparts"):
        s = te.create_schedule(B.op)
        xo, yo, xi, yi = s[B].tile(B.op.axis[0], B.op.axis[1], x_factor=10, y_factor=5)
        if steps == "fuse":
            s[B].fuse(xi, yi)
        elif steps == "reorder":
            s[B].reorder(xi, yo, xo, yi)
        elif steps == "nparts":
            s[B].split(xi, nparts=3)
        assert loops(s, [A, B])
        a = uniform(23, 12)
        np.testing.assert_array_equal(tvm.build(s, [A, B])(a).numpy(), a)
    A = te.placeholder((n,), name="A")
    B = te.compute(A.shape, lambda i: A[i] * 2, name="B")
    s = te.create_schedule(B.op)
    bx, tx = s[B].split(B.op.axis[0], factor=64)
    s[B].bind(bx, te.thread_axis("blockIdx.x"))
    s[B].bind(tx, te.thread_axis("threadIdx.x"))
    assert "blockIdx.x" in str(tvm.lower(s, [A, B], simple_mode=True))


# Compute and reduce with tuple inputs.


def test_tuple_inputs():
    m, n = te.var("m"), te.var("n")
    A0, A1 = te.placeholder((m, n), name="A0"), te.placeholder((m, n), name="A1")
    B0, B1 = te.compute((m, n), lambda i, j: (A0[i, j] + 2, A1[i, j] * 3), name="B")
    s = te.create_schedule(B0.op)
    assert "B.v0" in str(tvm.lower(s, [A0, A1, B0, B1], simple_mode=True))
    a, b = uniform(4, 5), uniform(4, 5)
    first, second = tvm.build(s, [A0, A1, B0, B1])(a, b)
    np.testing.assert_allclose(first, a + 2)
    np.testing.assert_allclose(second, b * 3)

    def fcombine(x, y):
        lhs = tir.Select((x[1] >= y[1]), x[0], y[0])
        return lhs, tir.Select((x[1] >= y[1]), x[1], y[1])

    argmax = te.comm_reducer(fcombine, lambda t0, t1: (tir.const(-1, t0), te.min_value(t1)), name="argmax")
    idx, val = te.placeholder((m, n), name="idx", dtype="int32"), te.placeholder((m, n), name="val", dtype="int32")
    k = te.reduce_axis((0, n), "k")
    T0, T1 = te.compute((m,), lambda i: argmax((idx[i, k], val[i, k]), axis=k), name="T")
    places = np.tile(np.arange(5, dtype="int32"), (4, 1))
    values = np.random.RandomState(1).permutation(20).reshape(4, 5).astype("int32")
    found = tvm.build(te.create_schedule(T0.op), [idx, val, T0, T1])(places, values)[0]
    np.testing.assert_array_equal(found, values.argmax(1))

    B0, B1 = te.compute((m, n), lambda i, j: (A0[i, j] + 2, A0[i, j] * 3), name="B")
    C = te.compute((m, n), lambda i, j: A1[i, j] + B0[i, j], name="C")
    s = te.create_schedule(C.op)
    s[B0].compute_at(s[C], C.op.axis[0])
    assert "allocate" in str(tvm.lower(s, [A0, A1, C], simple_mode=True))
    np.testing.assert_allclose(tvm.build(s, [A0, A1, C])(a, b), b + a + 2, rtol=1e-6)


# How to optimize convolution on GPU.


def test_a_convolution_in_tiles_of_threads():
    batch, in_channel, out_channel, in_size, kernel, pad, stride = 32, 16, 64, 14, 3, 1, 1
    A = te.placeholder((in_size, in_size, in_channel, batch), name="A")
    W = te.placeholder((kernel, kernel, in_channel, out_channel), name="W")
    out_size = (in_size - kernel + 2 * pad) // stride + 1
    Apad = te.compute(
        (in_size + 2 * pad, in_size + 2 * pad, in_channel, batch),
        lambda yy, xx, cc, nn: tir.if_then_else(
            tir.all(yy >= pad, yy - pad < in_size, xx >= pad, xx - pad < in_size),
            A[yy - pad, xx - pad, cc, nn], tir.const(0.0, "float32")),
        name="Apad")
    rc, ry, rx = (te.reduce_axis((0, extent), name=name) for extent, name in ((in_channel, "rc"), (kernel, "ry"), (kernel, "rx")))
    B = te.compute(
        (out_size, out_size, out_channel, batch),
        lambda yy, xx, ff, nn: te.sum(
            Apad[yy * stride + ry, xx * stride + rx, rc, nn] * W[ry, rx, rc, ff], axis=[ry, rx, rc]), name="B")
    s = te.create_schedule(B.op)
    s[Apad].compute_inline()
    AA, WW = s.cache_read(Apad, "shared", [B]), s.cache_read(W, "shared", [B])
    AL, WL = s.cache_read(AA, "local", [B]), s.cache_read(WW, "local", [B])
    BL = s.cache_write(B, "local")
    tile, num_thread, vthread, step = 4, 8, 2, 8
    block_factor = tile * num_thread
    block_x, block_y, block_z = (te.thread_axis(f"blockIdx.{d}") for d in "xyz")
    thread_x, thread_y = (te.thread_axis((0, num_thread), f"threadIdx.{d}") for d in "xy")
    thread_xz, thread_yz = (te.thread_axis((0, vthread), "vthread", name=name) for name in ("vx", "vy"))
    hi, wi, fi, ni = s[B].op.axis
    bz = s[B].fuse(hi, wi)
    by, fi = s[B].split(fi, factor=block_factor)
    bx, ni = s[B].split(ni, factor=block_factor)
    s[B].bind(bz, block_z), s[B].bind(by, block_y), s[B].bind(bx, block_x)
    tyz, fi = s[B].split(fi, nparts=vthread)
    txz, ni = s[B].split(ni, nparts=vthread)
    ty, fi = s[B].split(fi, nparts=num_thread)
    tx, ni = s[B].split(ni, nparts=num_thread)
    s[B].reorder(bz, by, bx, tyz, txz, ty, tx, fi, ni)
    s[B].bind(tyz, thread_yz), s[B].bind(txz, thread_xz), s[B].bind(ty, thread_y), s[B].bind(tx, thread_x)
    s[BL].compute_at(s[B], tx)
    yi, xi, fi, ni = s[BL].op.axis
    ry, rx, rc = s[BL].op.reduce_axis
    rco, rci = s[BL].split(rc, factor=step)
    s[BL].reorder(rco, ry, rx, rci, fi, ni)
    s[AA].compute_at(s[BL], rx), s[WW].compute_at(s[BL], rx)
    s[AL].compute_at(s[BL], rci), s[WL].compute_at(s[BL], rci)
    for stage, last in ((AA, 3), (WW, 3)):
        axes = s[stage].op.axis
        ty, inner = s[stage].split(axes[2], nparts=num_thread)
        tx, last = s[stage].split(axes[last], nparts=num_thread)
        _, tx_inner = s[stage].split(last, factor=4)
        s[stage].reorder(ty, tx, inner, tx_inner)
        s[stage].bind(ty, thread_y), s[stage].bind(tx, thread_x)
        s[stage].vectorize(tx_inner)
    code = tvm.compile(s, [A, W, B], "cuda", arch="sm_80").get_source()
    assert "__shared__" in code and "threadIdx.y" in code
    a, w = uniform(in_size, in_size, in_channel, batch), uniform(kernel, kernel, in_channel, out_channel)
    padded = np.pad(a, ((1, 1), (1, 1), (0, 0), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (0, 1))
    f = tvm.build(s, [A, W, B], "llvm")
    np.testing.assert_allclose(f(a, w), np.einsum("yxcnij,ijcf->yxfn", windows, w), rtol=1e-3)


# Cross compilation and RPC.


def test_a_kernel_for_another_processor(tmp_path):
    A, B, _, _ = elementwise(1024)
    s = te.create_schedule(B.op)
    f = tvm.compile(s, [A, B], "llvm", arch="skylake")
    path = str(tmp_path / "lib.tar")
    f.export_library(path)
    assert tvm.runtime.load_module(path).entry_name == "main"
    with pytest.raises(tvm.Unsupported) as error:
        tvm.rpc.connect("localhost", 9090)
    assert error.value.message.startswith("rpc.connect is not needed: the daemon is the remote end; kiln.connect(")
