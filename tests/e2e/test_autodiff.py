"""The training example: right gradients, the same bits with and without tiles, memory used again, functions
kept while the shapes stay. With KILN_LONG=1 also the whole training on real digits."""

import os
import pathlib

import numpy as np
import pytest

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples/python/autodiff"
long = pytest.mark.skipif(not os.environ.get("KILN_LONG"), reason="trains for minutes; set KILN_LONG=1")


@pytest.fixture
def train(service, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    import train

    return train


def made_up_digits(count):
    random = np.random.RandomState(5)
    labels = random.randint(0, 10, count)
    return (random.uniform(size=(count, 784)) * (labels[:, None] + 1) / 16).astype("float32"), labels


def one_hot(labels):
    return np.eye(10, dtype="float32")[labels]


def reference_step(values, images, labels):
    """The loss and the parameters after one step, in float64 by numpy."""
    count = len(values) // 2
    w, b = [v.astype("float64") for v in values[:count]], [v.astype("float64") for v in values[count:]]
    sums, inputs = [], [images.astype("float64")]
    for i in range(count):
        sums.append(inputs[-1] @ w[i] + b[i])
        inputs.append(np.maximum(sums[-1], 0))
    e = np.exp(sums[-1] - sums[-1].max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    loss = -np.log((p * one_hot(labels)).sum(axis=1)).mean()
    slope = p - one_hot(labels)
    of_w, of_b = [None] * count, [None] * count
    for i in reversed(range(count)):
        of_w[i], of_b[i] = inputs[i].T @ slope, slope.sum(axis=0)
        if i:
            slope = (slope @ w[i].T) * (sums[i - 1] > 0)
    return loss, [v - 1e-3 * g for v, g in zip(w + b, of_w + of_b)]


@pytest.mark.parametrize("model", ["logistic", "mlp"])
def test_a_step_is_that_of_numpy(train, model):
    images, labels = made_up_digits(1000)
    training = train.Training(model, "automatic")
    before = [v.numpy() for v in training.values.values()]
    (loss,) = training.epoch(training.batches(images, one_hot(labels)))
    expected_loss, expected = reference_step(before, images, labels)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    for value, wanted in zip(training.values.values(), expected):
        np.testing.assert_allclose(value.numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_tiles_and_plain_loops_give_the_same_bits(train):
    images, labels = made_up_digits(1000)
    losses = {}
    for schedule in ("plain", "tiled"):
        training = train.Training("mlp", schedule)
        losses[schedule] = np.array(training.epoch(training.batches(images, one_hot(labels))))
    assert losses["plain"].tobytes() == losses["tiled"].tobytes()


def test_functions_stay_while_the_shapes_do_and_memory_is_used_again(train):
    images, labels = made_up_digits(2000)
    training = train.Training("mlp", "automatic")
    first, second = training.batches(images, one_hot(labels))
    training.epoch([first])
    learn = training.learn
    functions, arrays = learn.functions, learn.arrays
    training.epoch([second])
    assert learn.functions is functions and learn.arrays is arrays
    assert len(learn.allocated) < len(learn.functions)
    results = [arrays[node] for node in learn.wanted]
    assert len({id(array) for array in results}) == len(results)
    accuracy = training.accuracy(images[:500], labels[:500])
    assert 0 <= accuracy <= 1 and training.predict.shapes[training.x] == (500, 784)
    training.accuracy(images[:1000], labels[:1000])
    assert training.predict.shapes[training.x] == (1000, 784)


@long
@pytest.mark.parametrize("schedule", ["automatic", "tiled"])
@pytest.mark.parametrize("model, epochs, accuracy, margin", [
    ("mlp", 10, 0.9716, 0.002), ("logistic", 10, 0.9223, 0.002), ("logistic", 30, 0.928, 0.003)])
def test_real_digits_are_learnt(train, model, epochs, accuracy, margin, schedule):
    import digits

    images, labels = digits.load()
    training = train.Training(model, schedule)
    batches = training.batches(images[:50_000], one_hot(labels[:50_000]))
    for _ in range(epochs):
        training.epoch(batches)
    assert training.accuracy(images[50_000:], labels[50_000:]) == pytest.approx(accuracy, abs=margin)


@long
def test_real_digits_give_the_same_bits(train):
    """Tiles for a while first, so that plain loops, which are slow, meet weights that have learnt."""
    import digits

    images, labels = digits.load()
    tiled, plain = (train.Training("mlp", schedule) for schedule in ("tiled", "plain"))
    batches = tiled.batches(images[:50_000], one_hot(labels[:50_000]))
    tiled.epoch(batches[:45])
    for of_tiled, of_plain in zip(tiled.values.values(), plain.values.values()):
        of_plain.copyfrom(of_tiled)
    losses = [np.array(each.epoch(batches[45:])) for each in (tiled, plain)]
    assert losses[0].tobytes() == losses[1].tobytes()
    for of_tiled, of_plain in zip(tiled.values.values(), plain.values.values()):
        assert of_tiled.numpy().tobytes() == of_plain.numpy().tobytes()
