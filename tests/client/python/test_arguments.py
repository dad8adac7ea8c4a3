"""Wrong arguments of a call, and wrong programs that only the daemon can tell: whole sentences."""

import inspect

import numpy as np
import pytest
from expect import expect

import kiln
from kiln import te


def zeros(*shape, dtype="float32"):
    return np.zeros(shape, dtype)


@pytest.fixture
def matmul(daemon):
    n, l, m = te.var("n"), te.var("l"), te.var("m")
    a, b = te.placeholder((n, l), name="A"), te.placeholder((l, m), name="B")
    k = te.reduce_axis((0, l), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return kiln.build([a, b, c], name="matmul")


ARGUMENTS = [
    ((zeros(3, 500), zeros(400, 4)),
     "argument B of matmul: dimension 0 is 400, but must be 500 (l, from dimension 1 of A)"),
    ((zeros(3, 5), zeros(5, 4), zeros(3, 5)),
     "argument C of matmul: dimension 1 is 5, but must be 4 (m, from dimension 1 of B)"),
    ((zeros(3, 5), zeros(5)), "argument B of matmul has 1 dimension, but must have 2"),
    ((zeros(3, 5), zeros(5, 4, dtype="float64")), "argument B of matmul is float64, but must be float32"),
    ((zeros(3, 5),), "matmul takes 3 arguments (A, B, C), but got 1"),
]


@pytest.mark.parametrize("resident", [False, True], ids=["numpy", "NDArray"])
@pytest.mark.parametrize("arguments, message", ARGUMENTS, ids=[m for _, m in ARGUMENTS])
def test_a_wrong_argument_is_named(matmul, arguments, message, resident):
    if resident:
        arguments = [kiln.nd.array(x) for x in arguments]
    error = expect(kiln.InvalidArgument, message, lambda: matmul(*arguments))
    assert str(error) == message


def test_a_constant_extent_carries_no_parenthesis(daemon):
    a = te.placeholder((500, 7), name="A")
    f = kiln.build([a, te.compute((500, 7), lambda i, j: a[i, j] + 1, name="B")], name="f")
    expect(kiln.InvalidArgument, "argument A of f: dimension 0 is 400, but must be 500",
           lambda: f(zeros(400, 7)))


def test_a_scan_needs_its_initial_steps(daemon):
    m, n = te.var("m"), te.var("n")
    x, state = te.placeholder((m, n), name="X"), te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: x[0, i])
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i])
    f = kiln.build([x, te.scan(init, update, state)], name="myscan")
    expect(kiln.InvalidArgument,
           "argument X of myscan: dimension 0 is 0, but must be at least 1 (initial steps of scan)",
           lambda: f(zeros(0, 8)))


def test_no_device_is_one_sentence(daemon):
    if any(device["target"] == "cuda" for device in kiln.describe()["devices"]):
        pytest.skip("this host has a CUDA device")
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: a[i] + 1, name="B")
    for action in (lambda: kiln.build([a, b], "cuda"), lambda: kiln.build([a, b], target="cuda"),
                   lambda: kiln.nd.array(zeros(3), kiln.gpu(0))):
        with pytest.raises(kiln.Unavailable) as caught:
            action()
        assert caught.value.reason == "NO_DEVICE"
        assert "\n" not in caught.value.message
    assert kiln.cuda(0).exist is False and kiln.cpu(0).exist is True


def scan_with(update_body, init_rows=1):
    m, n = te.var("m"), te.var("n")
    x, state = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="S")
    init = te.compute((init_rows, n), lambda t, i: x[t, i], name="init")
    update = te.compute((m, n), lambda t, i: update_body(state, x, t, i), name="update")
    return [x, te.scan(init, update, state, name="scan")], update


@pytest.mark.parametrize("body, message", [
    (lambda s, x, t, i: s[t, i] + x[t, i],
     "scan scan: update reads state at t (current step); it may read only t-1"),
    (lambda s, x, t, i: s[t + 1, i] + x[t, i],
     "scan scan: update reads state at t + 1 (a later step); it may read only t-1"),
    (lambda s, x, t, i: s[t - 2, i] + x[t, i],
     "scan scan: update reads state 2 steps back but init gives 1"),
], ids=["the_current_step", "a_later_step", "two_steps_back"])
def test_a_scan_reads_earlier_steps_alone(daemon, body, message):
    arguments, update = scan_with(body)
    error = expect(kiln.InvalidArgument, message, lambda: kiln.build(arguments))
    assert (error.file, error.line) == (__file__, update.op.line)


def test_a_wrong_step_is_shown_with_its_line(daemon):
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1, name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(b.op.axis[0])
    line = inspect.currentframe().f_lineno - 1
    error = expect(kiln.Unsupported, "cannot vectorize i: its extent n is not a constant; split it first",
                   lambda: kiln.build(s, [a, b], name="add_one"))
    assert (error.notes[0], error.notes[-1]) == ("at step 1: vectorize(i)", "in kernel add_one")
    assert (error.file, error.line) == (__file__, line)
    assert str(error).splitlines()[-1].endswith(f"test_arguments.py:{line}")
    # One that the user did not name is not called by a name.
    unnamed = expect(kiln.Unsupported, error.message, lambda: kiln.build(s, [a, b]))
    assert unnamed.notes == error.notes[:-1]


def test_an_input_that_is_no_argument_is_named(daemon):
    a, b = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    c = te.compute((4,), lambda i: a[i] + b[i], name="C")
    expect(kiln.InvalidArgument, "C reads placeholder B, which is not an argument; list B among the arguments",
           lambda: kiln.build([a, c]))


def chain():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1, name="B")
    return a, b, te.compute((n,), lambda i: b[i] * 2, name="C")


def scheduled(action, all_arguments=False):
    def build():
        a, b, c = chain()
        s = te.create_schedule(c.op)
        action(s, a, b, c)
        kiln.build(s, [a, b, c] if all_arguments else [a, c])
    return build


def reading(index):
    a = te.placeholder((4, 5), name="A")
    return lambda: kiln.build([a, te.compute((4,), lambda i: a[i, index(i)], name="B")])


SCHEDULE_MISTAKES = [
    (scheduled(lambda s, a, b, c: s[c].unroll(c.op.axis[0])), kiln.Unsupported,
     "cannot unroll i: its extent n is not a constant; split it first"),
    (scheduled(lambda s, a, b, c: s[c].compute_inline()), kiln.InvalidArgument,
     "C is an output and cannot be inlined"),
    (scheduled(lambda s, a, b, c: s[a].compute_inline()), kiln.InvalidArgument,
     "A is a placeholder; steps apply to what is computed"),
    (scheduled(lambda s, a, b, c: s[c].compute_at(s[b], b.op.axis[0]), all_arguments=True),
     kiln.InvalidArgument, "C is an output and cannot be computed inside another stage"),
    (reading(lambda i: i + 2), kiln.InvalidArgument,
     "B reads A[i, i + 2], whose index 1 reaches 5, but A has 0 to 4 there; guard the read with "
     "if_then_else or change the shape"),
    (lambda: kiln.build([chain()[0]]), kiln.InvalidArgument,
     "there is no output among the arguments (A); list a computed tensor, too"),
    (lambda: kiln.compile(list(chain()), arch="pentium99"), kiln.Unsupported,
     "there is no CPU pentium99; names are those of -march, as x86-64-v4 (this host), znver4, "
     "skylake-avx512 or x86-64-v3"),
]  # fmt: skip


@pytest.mark.parametrize("mistake, kind, message", SCHEDULE_MISTAKES, ids=[m for *_, m in SCHEDULE_MISTAKES])
def test_a_wrong_program_gets_a_sentence(daemon, mistake, kind, message):
    if "(this host)" in message:
        arch = kiln.describe()["devices"][0]["arch"]
        message = message.replace("x86-64-v4 (this host)", f"{arch} (this host)")
    expect(kind, message, mistake)


def test_a_source_of_another_target_is_refused(daemon):
    a, _, c = chain()
    f = kiln.build([a, c])
    expect(kiln.InvalidArgument, "there is no source cuda of a kernel for llvm; there are lowered, llvm and asm",
           lambda: f.source("cuda"))


def test_cuda_is_compiled_without_a_gpu(daemon):
    if not next(c for c in kiln.describe()["components"] if c["name"] == "nvrtc")["ok"]:
        pytest.skip("this host has no NVRTC")
    a, _, c = chain()
    f = kiln.compile([a, c], target="cuda", arch="sm_90", name="twice")
    assert "__global__" in f.get_source() and "__global__" in f.imported_modules[0].get_source()
    ptx = f.source("ptx")
    assert ".target sm_90" in ptx and "\0" not in ptx
    assert f.report()["kernels"][0]["registers"] > 0
