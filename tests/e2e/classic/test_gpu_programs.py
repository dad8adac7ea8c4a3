"""Programs as tutorials wrote them for GPUs: on a CPU they give the same numbers, and for CUDA code is made."""

import numpy as np
import pytest

import kiln as tvm
from kiln import te

pytestmark = pytest.mark.usefixtures("service")


def uniform(*shape):
    return np.random.RandomState(0).uniform(-1, 1, size=shape).astype("float32")


def cuda_source(s, args):
    try:
        return tvm.compile(s, args, "cuda", arch="sm_90").source("cuda")
    except tvm.Unavailable as error:
        pytest.skip(f"no NVRTC here: {error.message}")


def gemm(n, num_thread=8, scale=8, step_k=8, vthreads=2):
    """Blocks of shared memory, registers, and virtual threads that stride."""
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda ii, jj: te.sum(A[k, ii] * B[k, jj], axis=k), name="C")
    s = te.create_schedule(C.op)
    AA, BB = s.cache_read(A, "shared", [C]), s.cache_read(B, "shared", [C])
    AL, BL = s.cache_read(AA, "local", [C]), s.cache_read(BB, "local", [C])
    CC = s.cache_write(C, "local")

    block_x, block_y = te.thread_axis("blockIdx.x"), te.thread_axis("blockIdx.y")
    thread_x = te.thread_axis((0, num_thread), "threadIdx.x")
    thread_y = te.thread_axis((0, num_thread), "threadIdx.y")
    thread_xz = te.thread_axis((0, vthreads), "vthread", name="vx")
    thread_yz = te.thread_axis((0, vthreads), "vthread", name="vy")

    by, yi = s[C].split(C.op.axis[0], factor=scale * num_thread)
    bx, xi = s[C].split(C.op.axis[1], factor=scale * num_thread)
    s[C].bind(by, block_y)
    s[C].bind(bx, block_x)
    s[C].reorder(by, bx, yi, xi)
    tyz, yi = s[C].split(yi, nparts=vthreads)
    ty, yi = s[C].split(yi, nparts=num_thread)
    txz, xi = s[C].split(xi, nparts=vthreads)
    tx, xi = s[C].split(xi, nparts=num_thread)
    s[C].bind(tyz, thread_yz)
    s[C].bind(txz, thread_xz)
    s[C].bind(ty, thread_y)
    s[C].bind(tx, thread_x)
    s[C].reorder(tyz, txz, ty, tx, yi, xi)

    s[CC].compute_at(s[C], tx)
    yo, xo = CC.op.axis
    ko, ki = s[CC].split(k, factor=step_k)
    kt, ki = s[CC].split(ki, factor=1)
    s[CC].reorder(ko, kt, ki, yo, xo)
    s[CC].unroll(kt)
    s[AA].compute_at(s[CC], ko)
    s[BB].compute_at(s[CC], ko)
    s[AL].compute_at(s[CC], kt)
    s[BL].compute_at(s[CC], kt)
    for load in (AA, BB):
        ty, _ = s[load].split(s[load].op.axis[0], nparts=num_thread)
        tx, xi = s[load].split(s[load].op.axis[1], nparts=num_thread)
        s[load].bind(ty, thread_y)
        s[load].bind(tx, thread_x)
        _, xi = s[load].split(xi, factor=4)
        s[load].reorder(ty, tx, xi)
        s[load].vectorize(xi)
    return s, A, B, C


@pytest.mark.parametrize("n", [64, 70])
def test_matmul_through_shared_memory(n):
    s, A, B, C = gemm(n)
    a, b = uniform(n, n), uniform(n, n)
    np.testing.assert_allclose(tvm.build(s, [A, B, C], "llvm")(a, b).numpy(), a.T @ b, rtol=1e-4, atol=1e-5)
    source = cuda_source(s, [A, B, C])
    # Of all virtual threads: 8 rows of 64.
    assert "float A_shared[512];" in source and "float B_shared[512];" in source
    if n == 64:  # once before the memory is filled, once before it is read
        assert source.count("__syncthreads();") == 2


def test_reduction_across_threads():
    n, m = te.size_var("n"), te.size_var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    BF = s.rfactor(B, ki)
    xo, xi = s[B].split(s[B].op.axis[0], factor=32)
    s[B].bind(xo, te.thread_axis("blockIdx.x"))
    s[B].bind(xi, te.thread_axis("threadIdx.y"))
    tx = te.thread_axis("threadIdx.x")
    s[B].bind(s[B].op.reduce_axis[0], tx)
    s[BF].compute_at(s[B], s[B].op.reduce_axis[0])
    s[B].set_store_predicate(tx.var.equal(0))
    x = uniform(50, 70)
    np.testing.assert_allclose(tvm.build(s, [A, B], "llvm")(x).numpy(), x.sum(axis=1), rtol=1e-4, atol=1e-5)
    source = cuda_source(s, [A, B])
    variants = source.split("__global__")[1:]  # of indices in 32 bits, and in 64
    assert [variant.count(" = kiln_shuffle(") for variant in variants] == [4, 4]
    assert "__shared__" not in source and "__sync" not in source


def test_stencil_with_a_halo_in_shared_memory():
    A = te.placeholder((102,), name="A")
    B = te.compute((100,), lambda i: A[i] + A[i + 1] + A[i + 2], name="B")
    s = te.create_schedule(B.op)
    AA = s.cache_read(A, "shared", [B])
    outer, inner = s[B].split(B.op.axis[0], factor=32)
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[B].bind(inner, te.thread_axis("threadIdx.x"))
    s[AA].compute_at(s[B], inner)
    _, part = s[AA].split(AA.op.axis[0], factor=32)
    s[AA].bind(part, te.thread_axis("threadIdx.x"))
    x = uniform(102)
    expected = x[:-2] + x[1:-1] + x[2:]
    np.testing.assert_allclose(tvm.build(s, [A, B], "llvm")(x).numpy(), expected, rtol=1e-5, atol=1e-6)
    source = cuda_source(s, [A, B])
    assert "__shared__ float A_shared[34];" in source and "__syncwarp();" in source  # a block is one warp
