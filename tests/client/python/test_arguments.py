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


@pytest.mark.parametrize("body", [
    lambda s, x, t, i: s[t, i] + x[t, i],
    lambda s, x, t, i: s[t + 1, i] + x[t, i],
    lambda s, x, t, i: s[t - 2, i] + x[t, i],
], ids=["the_current_step", "a_later_step", "two_steps_back"])
def test_a_scan_reads_earlier_steps_alone(daemon, body):
    arguments, update = scan_with(body)
    with pytest.raises(kiln.InvalidArgument) as caught:
        kiln.build(arguments)
    assert "scan" in caught.value.message and "S" in caught.value.message
    assert caught.value.file == __file__ and caught.value.line > 0


def test_a_wrong_step_is_shown_with_its_line(daemon):
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1, name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(b.op.axis[0])
    line = inspect.currentframe().f_lineno - 1
    with pytest.raises(kiln.Error) as caught:
        kiln.build(s, [a, b])
    assert (caught.value.file, caught.value.line) == (__file__, line)
    assert str(caught.value).splitlines()[-1].endswith(f"test_arguments.py:{line}")


def test_an_input_that_is_no_argument_is_named(daemon):
    a, b = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    c = te.compute((4,), lambda i: a[i] + b[i], name="C")
    with pytest.raises(kiln.InvalidArgument) as caught:
        kiln.build([a, c])
    assert "C" in caught.value.message and "B" in caught.value.message
