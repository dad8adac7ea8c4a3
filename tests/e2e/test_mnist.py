"""The example that trains on digits: its steps are those of numpy in float64, and few kernels each. With KILN_LONG=1
also the whole training on real digits."""

import os
import pathlib

import kiln
import numpy as np
import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
long = pytest.mark.skipif(not os.environ.get("KILN_LONG"), reason="trains for minutes; set KILN_LONG=1")


@pytest.fixture
def mnist(service, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import mnist

    return mnist


def made_up_digits(count):
    random = np.random.RandomState(5)
    numbers = random.randint(0, 10, count)
    images = random.uniform(size=(count, 784)) * (numbers[:, None] + 1) / 16
    return images.astype("float32"), np.eye(10, dtype="float32")[numbers]


@pytest.mark.parametrize("model", ["logreg", "mlp"])
def test_an_epoch_is_that_of_numpy(mnist, model):
    images, labels = made_up_digits(3000)
    training, reference = mnist.Training(model), mnist.starting_parameters(model)
    losses = training.epoch({"x": images, "labels": labels})
    wanted = mnist.reference_epoch(reference, images.astype("float64"), labels.astype("float64"))
    np.testing.assert_allclose(losses, wanted, rtol=1e-4)
    for array, value in zip(training.step.parameters.values(), reference):
        np.testing.assert_allclose(array.numpy(), value, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("model, kernels, megabytes", [("logreg", 2, 6.6), ("mlp", 8, 18.6)])
def test_a_step_is_few_kernels(mnist, model, kernels, megabytes):
    """A product is a kernel; what stands around it is computed in it."""
    plan = mnist.Training(model).step.plan()
    assert len(plan.kernels) == kernels and plan.moved < megabytes * 1e6
    assert plan.arena <= 1.3 * plan.live


@long
@pytest.mark.parametrize("model, accuracy", [("mlp", 0.9716), ("logreg", 0.922)])
def test_real_digits_are_learnt(mnist, model, accuracy):
    images, numbers = mnist.digits.load()
    training = mnist.Training(model)
    data = {"x": kiln.nd.array(images[:50_000]), "labels": np.eye(10, dtype="float32")[numbers[:50_000]]}
    for _ in range(10):
        training.epoch(data)
    assert training.accuracy(images[50_000:], numbers[50_000:]) == pytest.approx(accuracy, abs=0.002)


@long
@pytest.mark.parametrize("model", ["mlp", "logreg"])
def test_the_losses_of_real_digits_are_those_of_float64(mnist, model):
    images, numbers = mnist.digits.load()
    x, labels = images[:50_000], np.eye(10, dtype="float32")[numbers[:50_000]]
    training, reference = mnist.Training(model, rate=1e-4), mnist.starting_parameters(model)
    for _ in range(2):
        wanted = mnist.reference_epoch(reference, x.astype("float64"), labels, rate=1e-4)
        np.testing.assert_allclose(training.epoch({"x": x, "labels": labels}), wanted, atol=1e-3)
