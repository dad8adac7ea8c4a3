"""What the clients can describe, kernel text can say: it is printed, read, and is the same kernel."""

import pathlib

import numpy as np
import pytest
import topi_cases
import topi_nn_cases
from kernels import add_one, cumsum, matmul, softmax

import kiln
from kiln import Kernel, te

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = topi_cases.CASES + topi_nn_cases.CASES


def read_back(connection, *inputs):
    """The kernel after it was printed and read; and that printing it again changes nothing."""
    text = kiln.kernel_text(*inputs, connection=connection)
    (parsed,) = kiln.parse_kernels(text, connection=connection).values()
    assert kiln.kernel_text(parsed, connection=connection) == text
    return parsed


def expect_same(connection, tensors):
    """The service finds the kernel that was read under the id of the one that was written."""
    parsed = read_back(connection, tensors)
    connection.build(tensors)
    assert connection.build(parsed).timings["cache"] == "memory"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernels_of_topi_are_read_as_they_were_written(shared_daemon, case):
    inputs = [te.placeholder(x.shape, str(x.dtype), f"X{i}") for i, x in enumerate(case.inputs)]
    expect_same(shared_daemon, [*inputs, case.build(*inputs)])


@pytest.mark.parametrize("tensors", [cumsum(), matmul(4, 5, 6), softmax(4, 5), add_one()])
def test_kernels_of_te_are_read_as_they_were_written(shared_daemon, tensors):
    expect_same(shared_daemon, tensors)


def test_schedules_are_read_as_they_were_written(shared_daemon):
    a, b, c = matmul(64, 64, 64)
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    io, ii = s[c].split(i, factor=16)
    s[c].parallel(io)
    s[c].vectorize(s[c].split(j, factor=8)[1])
    shared_daemon.build(s, [a, b, c])
    parsed = read_back(shared_daemon, s, [a, b, c])
    assert shared_daemon.build(parsed).timings["cache"] == "memory"


FILES = [path for folder in ("compiler/operators", "examples", "tests/kernels")
         for path in sorted((ROOT / folder).glob("*.kiln"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_tensors_of_a_kernel_are_the_kernel(shared_daemon, path):
    for kernel in kiln.load_kernels(path, connection=shared_daemon).values():
        again = kiln.kernel(kernel.tensors(), name=kernel.name)
        bare = Kernel(kernel.definition, kernel.source_map)
        assert kiln.kernel_text(again, connection=shared_daemon) == kiln.kernel_text(
            bare, connection=shared_daemon)


def test_a_kernel_file_is_loaded_and_built(shared_daemon, folder):
    path = folder / "two.kiln"
    path.write_text(
        "kernel twice(X: float32[n]) -> (Y: float32[n]) { Y[i] = X[i] * 2 }\n"
        "kernel dot(X: float32[n], Y: float32[n]) -> (Z: float32[]) { Z[] = sum[k < n](X[k] * Y[k]) }\n"
    )
    kernels = kiln.load_kernels(path, connection=shared_daemon)
    assert list(kernels) == ["twice", "dot"]
    x = np.arange(5, dtype="float32")
    np.testing.assert_array_equal(shared_daemon.build(kernels["twice"])(x).numpy(), x * 2)
    X = te.placeholder((5,), name="X")
    norm = kernels["dot"](kernels["twice"](X), X)
    assert shared_daemon.build([X, norm])(x).numpy() == 2 * x @ x


def test_a_mistake_in_a_kernel_file_names_the_place(shared_daemon, folder):
    path = folder / "wrong.kiln"
    path.write_text("kernel f(X: float32[n]) -> (Y: float32[n]) {\n  Y[i] = expp(X[i])\n}\n")
    with pytest.raises(kiln.InvalidArgument) as caught:
        kiln.load_kernels(path, connection=shared_daemon)
    assert caught.value.message == "unknown function expp; did you mean exp"
    assert (caught.value.file, caught.value.line) == (str(path), 2)
    with pytest.raises(kiln.InvalidArgument) as caught:
        kiln.load_kernels(folder / "none.kiln", connection=shared_daemon)
    assert caught.value.message == (
        f"cannot read the kernel file {folder}/none.kiln: No such file or directory")
