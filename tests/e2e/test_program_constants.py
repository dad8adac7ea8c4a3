"""What steps and runs of a program share: made of parameters that no step changes, it is computed once."""

import kiln
import numpy as np
from kiln import topi


def computed():
    return kiln.describe()["constants"]


def windows(x, size, padding):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    return np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(2, 3))


def convolved(x, f):
    y = np.tensordot(windows(x, f.shape[2], 1).astype("float64"), f.astype("float64"), ([1, 4, 5], [1, 2, 3]))
    return np.maximum(y.transpose(0, 3, 1, 2), 0)


def test_filters_are_packed_once(service):
    random = np.random.default_rng(3)
    x = random.standard_normal((2, 64, 28, 28), "float32")
    filters = random.standard_normal((2, 64, 64, 3, 3), "float32")
    program = kiln.Program("predict")
    data = program.input(x.shape, name="x")
    f = program.parameter(filters[0], "f")
    program.output(y=topi.nn.relu(topi.nn.conv2d(data, f, 1, 1)))
    packed = [kernel for kernel in program.plan().kernels if kernel["once"]]
    assert [kernel["name"] for kernel in packed] == ["f_packed"]
    assert "f_packed; once for all steps" in str(program.plan())
    before = computed()
    for steps in (1, 3, 1):
        np.testing.assert_allclose(program.run({data: x}, steps=steps).y, convolved(x, filters[0]), rtol=1e-4, atol=1e-4)
    assert computed() == before + 1
    program.parameters["f"].copyfrom(filters[1])
    for _ in range(2):
        np.testing.assert_allclose(program.run({data: x}).y, convolved(x, filters[1]), rtol=1e-4, atol=1e-4)
    assert computed() == before + 2


def test_filters_that_are_trained_are_packed_in_each_step(service):
    random = np.random.default_rng(4)
    x = random.standard_normal((1, 16, 28, 28), "float32")
    start = random.standard_normal((64, 16, 3, 3), "float32")
    program = kiln.Program("train")
    data = program.input(x.shape, name="x")
    f = program.parameter(start, "f")
    program.update(f, f * 2.0)
    program.output(y=topi.nn.relu(topi.nn.conv2d(data, f, 1, 1)))
    assert not any(kernel["once"] for kernel in program.plan().kernels)
    np.testing.assert_allclose(program.run({data: x}, steps=3).y, convolved(x, start * 4), rtol=1e-4, atol=1e-3)


def test_a_chain_of_constants_is_computed_once(service):
    w = np.arange(12, dtype="float32").reshape(3, 4)
    program = kiln.Program("scaled")
    data = program.input((5, 3), name="x")
    weights, scale = program.parameter(w, "w"), program.parameter(np.full(4, 2, "float32"), "scale")
    program.output(y=topi.matmul(data, weights * scale + 1.0))
    x = np.ones((5, 3), "float32")
    before = computed()
    for _ in range(3):
        np.testing.assert_allclose(program.run({data: x}).y, x @ (w * 2 + 1), rtol=1e-5)
    assert computed() == before + 1
    program.parameters["scale"].copyfrom(np.full(4, 3, "float32"))
    np.testing.assert_allclose(program.run({data: x}).y, x @ (w * 3 + 1), rtol=1e-5)
    assert computed() == before + 2
