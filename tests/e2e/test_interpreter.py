"""Kernels run as they are written, every index checked: target interpreter, and check_nan."""

import subprocess
import time

import numpy as np
import pytest

import kiln
from kiln import te


def softmax():
    m, n = te.var("m"), te.var("n")
    X = te.placeholder((m, n), name="X")
    k = te.reduce_axis((0, n), name="k")
    total = te.compute((m,), lambda i: te.sum(te.exp(X[i, k]), axis=k), name="total")
    Y = te.compute((m, n), lambda i, j: te.exp(X[i, j]) / total[i], name="Y")
    return [X, Y]


def test_the_interpreter_agrees_with_what_is_compiled(service):
    x = np.random.default_rng(1).uniform(-1, 1, (7, 33)).astype("float32")
    compiled = service.build(softmax(), name="softmax")(x).numpy()
    f = service.build(softmax(), target="interpreter", name="softmax")
    np.testing.assert_allclose(f(x).numpy(), compiled, rtol=1e-6)
    assert f.get_source().startswith("fn softmax(X: float32[m, n]")
    assert f.report()["launches"] == 1


def test_a_schedule_is_interpreted_as_it_stands(service):
    X, Y = softmax()
    s = te.create_schedule(Y.op)
    i, j = Y.op.axis
    outer, inner = s[Y].split(j, factor=4)
    s[Y].bind(outer, te.thread_axis("blockIdx.x"))
    s[Y].bind(inner, te.thread_axis("threadIdx.x"))
    x = np.random.default_rng(2).uniform(-1, 1, (3, 10)).astype("float32")
    f = service.build(s, [X, Y], target="interpreter")
    expected = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(f(x).numpy(), expected, rtol=1e-6)


def test_it_is_kept_in_the_cache_apart_from_compiled_code(service):
    x = np.ones((2, 3), "float32")
    for target in ("llvm", "interpreter"):
        f = service.build(softmax(), target=target, name="kept")
        f(x)
        again = service.build(softmax(), target=target, name="kept")
        assert again.timings["cache"] == "memory"
        np.testing.assert_allclose(again(x).numpy(), np.full((2, 3), 1 / 3), rtol=1e-6)


def test_check_nan_names_the_first_element_and_its_line(service):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    ratio = te.compute((n,), lambda i: A[i] / A[i], name="ratio")  # here
    out = te.compute((n,), lambda i: ratio[i] + 1, name="out")
    f = service.build([A, out], name="ratios", check_nan=True)
    np.testing.assert_array_equal(f(np.ones(4, "float32")).numpy(), np.full(4, 2))
    with pytest.raises(kiln.InvalidArgument) as caught:
        f(np.array([3, 0, 0, 1], "float32"))
    error = caught.value
    assert error.message == "ratio[1] is the first element to become NaN"
    assert error.reason == "NAN"
    here = next(i for i, line in enumerate(open(__file__), 1) if line.endswith("# here\n"))
    assert (error.file, error.line) == (__file__, here)


def test_check_nan_tells_an_argument_that_has_one(service):
    f = service.build(softmax(), check_nan=True, name="softmax")
    x = np.zeros((2, 3), "float32")
    x[1, 2] = np.nan
    with pytest.raises(kiln.InvalidArgument) as caught:
        f(x)
    assert caught.value.message == "X[1, 2] of the arguments is NaN already"


def test_check_nan_and_an_arch_are_refused_where_they_mean_nothing(service):
    with pytest.raises(kiln.InvalidArgument) as caught:
        service.build(softmax(), target="llvm", check_nan=True)
    assert caught.value.message == (
        "only the interpreter looks for NaN; name the target interpreter, not llvm"
    )
    with pytest.raises(kiln.InvalidArgument) as caught:
        service.build(softmax(), target="interpreter -arch=fast")
    assert caught.value.message == "the interpreter has no arch, but got fast"


def test_an_index_from_data_is_explained_as_by_compiled_code(service):
    X = te.placeholder((5,), name="X")
    I = te.placeholder((3,), "int64", name="I")
    Y = te.compute((3,), lambda i: X[I[i]], name="Y")
    messages = []
    for target in ("llvm", "interpreter"):
        f = service.build([X, I, Y], target=target, name="gather")
        with pytest.raises(kiln.InvalidArgument) as caught:
            f(np.zeros(5, "float32"), np.array([0, 9, 1]))
        messages.append(caught.value.message)
    assert messages[0] == messages[1]
    assert messages[1] == "Y of gather reads index 9 of dimension 0 of X, but its extent there is 5"


def test_a_cancelled_call_ends_between_steps_and_its_worker_lives(service):
    n = te.var("n")
    A = te.placeholder((n, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    B = te.compute((n, n), lambda i, j: te.sum(A[i, k] * A[k, j], axis=k), name="B")
    f = service.build([A, B], target="interpreter", name="square")
    kept = service.array(np.arange(3, dtype="float32"))
    call = f.submit(np.ones((400, 400), "float32"))  # a minute of interpreting
    time.sleep(0.3)
    assert call.cancel()
    start = time.monotonic()
    np.testing.assert_array_equal(f(np.ones((2, 2), "float32")).numpy(), np.full((2, 2), 2))
    assert time.monotonic() - start < 2, "the next call waits for what was cancelled"
    np.testing.assert_array_equal(kept.numpy(), np.arange(3))


def test_the_command_line_interprets(service, tmp_path):
    (tmp_path / "ratio.kiln").write_text(
        "kernel ratio(A: float32[n]) -> (R: float32[n]) { R[i] = A[i] / A[i] }\n"
    )
    np.save(tmp_path / "a.npy", np.array([2, 0], "float32"))

    def run(*flags):
        return subprocess.run(
            ["kiln", "run", "ratio.kiln", "--in", "A=a.npy", "--address", service.address, *flags],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip

    assert "nan" in run("--interpret").stdout
    found = run("--check-nan")
    assert found.returncode == 1
    assert "error: R[1] is the first element to become NaN" in found.stderr
    assert "ratio.kiln:1" in found.stderr
