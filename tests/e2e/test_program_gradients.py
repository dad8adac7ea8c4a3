"""Programs whose gradients the compiler writes, and what optimizers make of them, against numpy in float64."""

import kiln
import numpy as np
import pytest
from kiln import te, topi

pytestmark = pytest.mark.usefixtures("service")


def drawn(*shape, seed=0):
    return np.random.RandomState(seed).normal(size=shape)


def differences(f, values, step=1e-6):
    """Central differences of f(*values) for each value."""
    found = []
    for value in values:
        slope = np.empty_like(value)
        for at in np.ndindex(*value.shape):
            sides, kept = [], value[at]
            for sign in (1, -1):
                value[at] = kept + sign * step
                sides.append(f(*values))
            value[at] = kept
            slope[at] = (sides[0] - sides[1]) / (2 * step)
        found.append(slope)
    return found


def network(x, labels, w, b, v):
    hidden = topi.tanh(topi.matmul(x, w) + b)
    return topi.nn.softmax_cross_entropy(topi.matmul(hidden, v), labels)


def network_loss(x, labels, w, b, v):
    scores = np.tanh(x @ w + b) @ v
    scores -= scores.max(axis=1, keepdims=True)
    return -(labels * (scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))).sum(axis=1).mean()


def test_gradients_are_central_differences():
    x, labels = drawn(6, 4), np.eye(3)[[0, 1, 2, 1, 0, 2]]
    values = [drawn(4, 5, seed=1), drawn(5, seed=2), drawn(5, 3, seed=3)]
    program = kiln.Program("network")
    feeds = program.input((6, 4), "float64", "x"), program.input((6, 3), "float64", "labels")
    parameters = [program.parameter(value, name) for value, name in zip(values, "wbv")]
    slopes = program.gradients(network(*feeds, *parameters), parameters)
    program.output(**{f"d{each.name}": slope for each, slope in zip(parameters, slopes)})
    found = program.run({"x": x, "labels": labels})
    wanted = differences(lambda *v: network_loss(x, labels, *v), values)
    for name, slope in zip("wbv", wanted):
        np.testing.assert_allclose(found[f"d{name}"], slope, atol=1e-8)


def test_without_parameters_it_is_all_of_them():
    program = kiln.Program("all")
    a, b = program.parameter(np.array([2.0, 3.0]), "a"), program.parameter(np.array([5.0, 7.0]), "b")
    da, db = program.gradients(topi.sum(a * a * b) * 0.5)
    program.output(da=da, db=db)
    result = program.run()
    np.testing.assert_array_equal(result.da, [10, 21])
    np.testing.assert_array_equal(result.db, [2, 4.5])


def test_a_loss_may_have_dimensions_of_one():
    program = kiln.Program("one")
    w = program.parameter(drawn(3), "w")
    (slope,) = program.gradients(topi.sum(w * w, keepdims=True), w)
    program.output(slope=slope)
    assert slope.shape == (3,)
    np.testing.assert_allclose(program.run().slope, 2 * drawn(3))


def test_a_parameter_that_the_loss_does_not_see_has_no_gradient():
    program = kiln.Program("apart")
    a, b = program.parameter(drawn(3), "a"), program.parameter(drawn(2), "b")
    program.output(slope=program.gradients(topi.sum(a), b)[0])
    np.testing.assert_array_equal(program.run().slope, [0, 0])


def test_gradients_are_differentiated_again():
    program = kiln.Program("twice")
    w = program.parameter(drawn(4), "w")
    (slope,) = program.gradients(topi.sum(topi.exp(w)), w)
    (second,) = program.gradients(topi.sum(slope * slope), w)
    program.output(second=second)
    np.testing.assert_allclose(program.run().second, 2 * np.exp(2 * drawn(4)), rtol=1e-12)


def test_dropout_lets_the_gradient_through_where_it_lets_values_through():
    program = kiln.Program("dropped", seed=3)
    w = program.parameter(drawn(40), "w")
    kept = program.dropout(w, 0.5)
    program.output(kept=kept, slope=program.gradients(topi.sum(kept), w)[0])
    result = program.run()
    np.testing.assert_array_equal(result.slope, np.where(result.kept != 0, 2.0, 0.0))


def quadratic(optimizer, steps, weights=np.array([1.0, 10.0, 0.1])):
    """A parameter on its way down sum(weights * w * w) / 2."""
    program = kiln.Program("descent")
    w = program.parameter(np.array([1.0, -2.0, 3.0]), "w")
    scale = program.input((3,), "float64", "scale")
    program.minimize(topi.sum(scale * w * w) * 0.5, optimizer)
    for part in steps:
        program.run({"scale": weights}, steps=part)
    return program.parameters["w"].numpy()


def sgd(rate, momentum, nesterov, decay, steps, weights=np.array([1.0, 10.0, 0.1])):
    w, velocity = np.array([1.0, -2.0, 3.0]), np.zeros(3)
    for _ in range(steps):
        slope = weights * w + decay * w
        velocity = momentum * velocity + slope
        w = w - rate * (slope + momentum * velocity if nesterov else velocity)
    return w


@pytest.mark.parametrize("momentum, nesterov, decay", [(0.0, False, 0.0), (0.9, False, 0.0), (0.8, True, 0.01)])
def test_sgd(momentum, nesterov, decay):
    optimizer = kiln.optimizers.SGD(0.02, momentum, nesterov, decay)
    np.testing.assert_allclose(quadratic(optimizer, (3, 4)), sgd(0.02, momentum, nesterov, decay, 7), rtol=1e-12)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam(decay):
    w, mean, square, weights = np.array([1.0, -2.0, 3.0]), np.zeros(3), np.zeros(3), np.array([1.0, 10.0, 0.1])
    for count in range(1, 8):
        slope = weights * w
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        step = mean / (1 - 0.9**count) / (np.sqrt(square / (1 - 0.99**count)) + 1e-8)
        w = w - 0.1 * (step + decay * w)
    optimizer = kiln.optimizers.Adam(0.1, betas=(0.9, 0.99), weight_decay=decay)
    np.testing.assert_allclose(quadratic(optimizer, (2, 5)), w, rtol=1e-9)


def test_a_rate_may_follow_the_step():
    program = kiln.Program("slowing")
    w, step = program.parameter(np.zeros(2), "w"), program.step()
    rate = te.compute((), lambda: 1.0 / (step().astype("float64") + 1.0), name="rate")
    program.minimize(topi.sum(w), kiln.optimizers.SGD(rate))
    program.run(steps=3)
    np.testing.assert_allclose(program.parameters["w"].numpy(), [-11 / 6] * 2)


def test_what_optimizers_keep_is_saved(tmp_path):
    def descent():
        program = kiln.Program("kept")
        w = program.parameter(np.array([1.0, -2.0]), "w")
        program.minimize(topi.sum(w * w), kiln.optimizers.Adam(0.1))
        return program

    whole, part = descent(), descent()
    whole.run(steps=6)
    part.run(steps=2)
    part.save(tmp_path / "w.npz")
    resumed = descent().load(tmp_path / "w.npz")
    resumed.run(steps=4)
    np.testing.assert_array_equal(resumed.parameters["w"].numpy(), whole.parameters["w"].numpy())


def refused(expected, body):
    with pytest.raises(kiln.InvalidArgument) as caught:
        body()
    assert caught.value.message == expected


def test_a_loss_is_one_number():
    program = kiln.Program("several")
    w = program.parameter(np.zeros(3), "w")
    refused(
        "the loss T_mul of several has shape (3,), but must have one element; take topi.sum(T_mul)",
        lambda: program.gradients(w * w, w),
    )


def test_integers_have_no_gradient():
    program = kiln.Program("counting")
    n = program.parameter(np.zeros(3, "int32"), "n")
    refused(
        "n is int32, so there is no gradient with respect to it; only floating tensors have one",
        lambda: program.gradients(topi.sum(topi.cast(n, "float32")), n),
    )


def test_only_parameters_are_minimized():
    program = kiln.Program("wrong")
    x = program.input((3,), name="x")
    refused(
        'wrong updates x, which is no parameter of it; make it one by program.parameter(values, "x")',
        lambda: program.minimize(topi.sum(x * x), kiln.optimizers.SGD(0.1), [x]),
    )


def test_there_is_something_to_minimize_by():
    program = kiln.Program("empty")
    x = program.input((), name="x")
    refused(
        "empty has no parameter to minimize by; make one by program.parameter",
        lambda: program.minimize(x * x, kiln.optimizers.SGD(0.1)),
    )


def test_optimizers_say_what_their_numbers_must_be():
    refused(
        "the rate of an optimizer must be a number from 0 on, or a tensor without dimensions, but is -1",
        lambda: kiln.optimizers.SGD(-1),
    )
    refused("the momentum of SGD must be at least 0 and below 1, but is 1.5", lambda: kiln.optimizers.SGD(0.1, 1.5))
    refused("a beta of Adam must be at least 0 and below 1, but is 1", lambda: kiln.optimizers.Adam(0.1, (0.9, 1)))
    refused(
        "SGD with nesterov=True needs a momentum, as in SGD(1e-2, momentum=0.9, nesterov=True)",
        lambda: kiln.optimizers.SGD(0.1, nesterov=True),
    )
