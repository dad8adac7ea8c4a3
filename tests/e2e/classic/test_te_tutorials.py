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
