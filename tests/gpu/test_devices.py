"""Arrays on several devices of one daemon, whose GPUs are fakes."""

import os
import pathlib
import subprocess

import host
import kernels
import numpy as np
import pytest

import kiln


@pytest.fixture(scope="module")
def connection():
    here = host.Host(pathlib.Path(os.environ["KILN_DAEMON"]).parent.parent, True)
    yield here.connection
    here.close()


@pytest.fixture(scope="module")
def add_one(connection):
    return connection.build(kernels.add_one(4), target="cuda", name="add_one")


VALUES = np.arange(4, dtype="float32")


def test_an_array_says_where_it_lies(connection):
    array = connection.array(VALUES, kiln.cuda(1))
    assert array.device == kiln.cuda(1)
    np.testing.assert_array_equal(array.numpy(), VALUES)


def test_a_result_lies_where_its_inputs_do(connection, add_one):
    result = add_one(connection.array(VALUES, kiln.cuda(1)))
    assert result.device == kiln.cuda(1)
    assert add_one(result).device == kiln.cuda(1)
    np.testing.assert_array_equal(result.numpy(), VALUES + 1)


def test_an_array_of_numpy_goes_where_the_others_are(connection):
    add = connection.build(*two_inputs(300_000), target="cuda", name="add")
    values = np.ones(300_000, "float32")
    result = add(values, connection.array(values, kiln.cuda(1)))
    assert result.device == kiln.cuda(1)
    np.testing.assert_array_equal(result.numpy(), values + values)


def two_inputs(n):
    from kiln import te

    a, b = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    return ([a, b, te.compute((n,), lambda i: a[i] + b[i], name="C")],)


@pytest.mark.parametrize("target", [kiln.cpu(0), kiln.cuda(0), kiln.cuda(1)], ids=str)
def test_copyto_makes_an_array_on_a_device(connection, add_one, target):
    result = add_one(connection.array(VALUES, kiln.cuda(0)))
    copy = result.copyto(target)
    assert copy.device == target
    np.testing.assert_array_equal(copy.numpy(), VALUES + 1)


def test_copyto_and_copyfrom_overwrite_an_array(connection, add_one):
    result = add_one(connection.array(VALUES, kiln.cuda(0)))
    there = connection.array(np.zeros(4, "float32"), kiln.cuda(1))
    result.copyto(there)
    np.testing.assert_array_equal(there.numpy(), VALUES + 1)
    there.copyfrom(connection.array(VALUES, kiln.cpu(0)))
    np.testing.assert_array_equal(add_one(there).numpy(), VALUES + 1)


def test_an_array_of_an_array_is_a_copy(connection, add_one):
    first = connection.array(VALUES, kiln.cuda(0))
    second = connection.array(first, kiln.cuda(1))
    add_one(first, first.copyto(kiln.cuda(0)))
    np.testing.assert_array_equal(second.numpy(), VALUES)


def test_arrays_of_two_gpus_are_refused(connection, add_one):
    with pytest.raises(kiln.InvalidArgument) as error:
        add_one(connection.array(VALUES, kiln.cuda(0)), connection.array(VALUES, kiln.cuda(1)))
    assert str(error.value).splitlines()[0] == (
        "the arguments of add_one lie on cuda:0 and cuda:1; copy them to one device"
    )


def test_a_gpu_that_is_not_there_is_refused(connection):
    with pytest.raises(kiln.Unavailable) as error:
        connection.array(VALUES, kiln.cuda(2))
    assert str(error.value).splitlines()[0] == "there is no device cuda:2 here; kiln devices lists those there are"


def test_a_copy_must_have_the_same_shape(connection):
    three = connection.array(VALUES[:3])
    with pytest.raises(kiln.InvalidArgument, match="cannot copy shape"):
        connection.array(VALUES, kiln.cuda(1)).copyto(three)


@pytest.mark.parametrize("given", [{"device": "cuda:1"}, {"target": "cuda", "device": kiln.cuda(1)}], ids=str)
def test_a_program_runs_where_it_is_told(connection, given):
    program = kiln.Program("count", connection=connection, **given)
    w = program.parameter(VALUES, "w")
    program.update(w, w + 1.0)
    program.output(twice=w * 2.0)
    result = program.run(steps=2, numpy=False)
    assert result.twice.device == kiln.cuda(1)
    np.testing.assert_array_equal(result.twice.numpy(), 2 * (VALUES + 1))
    np.testing.assert_array_equal(program.parameters["w"].numpy(), VALUES + 2)


def runs_where_it_is_told(connection, folder, *arguments):
    """On cuda:1; a device that is not there is refused."""
    command = [pathlib.Path(os.environ["KILN_DAEMON"]).parent / "kiln", *arguments, "--address", connection.address]

    def run(device):
        return subprocess.run([*command, "--device", device], cwd=folder, capture_output=True, text=True)

    refused = run("cuda:5")
    assert refused.returncode == 3
    assert "there is no device cuda:5 here; kiln devices lists those there are" in refused.stderr
    done = run("cuda:1")
    assert done.returncode == 0, done.stderr


def test_the_command_line_runs_programs_where_it_is_told(connection, tmp_path):
    (tmp_path / "count.kiln").write_text(
        "kernel inc(x: float32[n]) -> (y: float32[n]) { y[i] = x[i] + 1 }\n"
        "program count {\n  parameter w\n  w1 = inc(w)\n  update w = w1\n}\n")
    np.save(tmp_path / "w.npy", VALUES)
    runs_where_it_is_told(connection, tmp_path, "run", "count.kiln", "--in", "w=w.npy", "--out", "w=end.npy", "--steps", "2")
    np.testing.assert_array_equal(np.load(tmp_path / "end.npy"), VALUES + 2)


def test_the_command_line_runs_where_it_is_told(connection, tmp_path):
    (tmp_path / "inc.kiln").write_text("kernel inc(X: float32[n]) -> (Y: float32[n]) { Y[i] = X[i] + 1 }\n")
    np.save(tmp_path / "x.npy", VALUES)
    runs_where_it_is_told(connection, tmp_path, "run", "inc.kiln", "--in", "X=x.npy", "--out", "Y=y.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), VALUES + 1)
