"""Programs end to end: what steps compute, what stays of them, and what is said of wrong ones."""

import threading

import kiln
import numpy as np
import pytest
from kiln import te, topi

X = np.linspace(-1, 1, 6 * 4, dtype="float32").reshape(6, 4)
TRUE_W = np.array([[1.0], [-2.0], [0.5], [3.0]], dtype="float32")


def regression(batch=3, rate=0.1):
    """Linear regression by gradient descent; its gradient is written out."""
    program = kiln.Program("regression")
    x, y = program.data((batch, 4), name="x"), program.data((batch, 1), name="y")
    w = program.parameter(np.zeros((4, 1), "float32"), "w")
    error = topi.matmul(x, w) - y
    program.report(loss=topi.sum(error * error))
    program.update(w, w - topi.matmul(x, error, transp_a=True) * rate)
    return program


def reference(x, y, batch, epochs, rate=0.1):
    w, losses = np.zeros((4, 1)), []
    for _ in range(epochs):
        for i in range(0, len(x), batch):
            error = x[i : i + batch].astype("float64") @ w - y[i : i + batch]
            losses.append((error**2).sum())
            w = w - rate * x[i : i + batch].T.astype("float64") @ error
    return w, losses


def test_epochs_are_one_call(service):
    program = regression()
    runs = kiln.describe()["runs"]
    seen = []
    result = program.run({"x": X, "y": X @ TRUE_W}, epochs=40, progress=lambda *event: seen.append(event))
    w, losses = reference(X, X @ TRUE_W, 3, 40)
    np.testing.assert_allclose(result.reports["loss"], losses, rtol=2e-4, atol=1e-6)
    np.testing.assert_allclose(program.parameters["w"].numpy(), w, rtol=1e-4, atol=1e-5)
    assert result.steps == 80 and kiln.describe()["runs"] == runs + 1
    assert [number for number, _, _ in seen] == list(range(1, 41))
    assert seen[0][1]["loss"] == pytest.approx(np.mean(losses[:2]), rel=1e-4)


def test_a_device_that_is_named_goes_before_the_target_around(service):
    with kiln.target.Target("cuda"):
        program = kiln.Program("here", device=kiln.cpu(0))
    x = program.input((6, 4), name="x")
    program.output(y=x + 1)
    np.testing.assert_array_equal(program.run({"x": X}).y, X + 1)


def test_a_run_goes_on_where_the_one_before_ended(service):
    program, data = regression(), {"x": X, "y": X @ TRUE_W}
    for _ in range(3):
        program.run(data)
    np.testing.assert_allclose(
        program.parameters["w"].numpy(), reference(X, X @ TRUE_W, 3, 3)[0], rtol=1e-4, atol=1e-6
    )


def test_an_odd_number_of_steps_leaves_the_parameters_in_their_place(service):
    program = kiln.Program("count")
    a, b = program.parameter(np.zeros(5, "float32"), "a"), program.parameter(np.ones(5, "float32"), "b")
    program.update(a, a + b)
    program.update(b, b * 2.0)
    for steps in (1, 2, 3):
        program.run(steps=steps)
    # The updates of a step see the values before it.
    np.testing.assert_array_equal(program.parameters["b"].numpy(), np.full(5, 64.0))
    np.testing.assert_array_equal(program.parameters["a"].numpy(), np.full(5, 63.0))


def test_outputs_are_those_of_the_last_step(service):
    program = kiln.Program("last")
    w = program.parameter(np.zeros(3, "float32"), "w")
    program.output(before=w, after=w + 1.0)
    program.update(w, w + 1.0)
    result = program.run(steps=5)
    np.testing.assert_array_equal(result.before, np.full(3, 4.0))
    np.testing.assert_array_equal(result.after, np.full(3, 5.0))
    kept = program.run(steps=1, numpy=False)
    assert isinstance(kept.after, kiln.nd.NDArray)
    np.testing.assert_array_equal(kept.after.numpy(), np.full(3, 6.0))


def test_an_output_that_is_an_update_is_what_the_parameter_became(service):
    program = kiln.Program("both")
    w = program.parameter(np.zeros(3, "float32"), "w")
    after = w + 1.0
    program.update(w, after)
    program.output(after=after)
    for steps in (1, 2):
        result = program.run(steps=steps)
        np.testing.assert_array_equal(result.after, program.parameters["w"].numpy())


def test_numbers_may_be_expressions(service):
    program = kiln.Program("mean")
    x = program.input((4,), name="x")
    total = topi.sum(x)
    program.report(mean=total * 0.25)
    program.output(mean=total * 0.25)
    w = program.parameter(np.float32(1), "w")
    program.update(w, w + total)
    program.until(total > 3.0)
    result = program.run({x: np.arange(4, dtype="float32")})
    assert (result.mean, result.steps, program.parameters["w"].numpy()) == (1.5, 1, 7)


def test_until_ends_the_steps(service):
    program = kiln.Program("halve")
    w = program.parameter(np.full(1, 64.0, "float32"), "w")
    half = w * 0.5
    program.update(w, half)
    program.until(te.compute((1,), lambda i: half[i] <= 1.0, name="small"))
    assert program.run().steps == 6
    np.testing.assert_array_equal(program.parameters["w"].numpy(), [1.0])


def test_jacobi_runs_until_it_has_converged(service):
    n = 32
    program = kiln.Program("jacobi")
    start = np.zeros((n, n), "float32")
    start[0] = 1
    u = program.parameter(start, "u")
    inner = lambda i, j: te.all(i > 0, i < n - 1, j > 0, j < n - 1)
    new = te.compute(
        (n, n),
        lambda i, j: te.if_then_else(
            inner(i, j), (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) * 0.25, u[i, j]
        ),
        name="new",
    )
    change = topi.max(topi.abs(new - u))
    program.update(u, new)
    program.until(te.compute((), lambda: change() < 1e-4, name="converged"))
    result = program.run(steps=10_000)
    expected = start.copy()
    for _ in range(result.steps):
        step = expected.copy()
        step[1:-1, 1:-1] = (expected[:-2, 1:-1] + expected[2:, 1:-1] + expected[1:-1, :-2] + expected[1:-1, 2:]) / 4
        largest, expected = np.abs(step - expected).max(), step
    assert 50 < result.steps < 5_000 and largest < 2e-4
    np.testing.assert_allclose(program.parameters["u"].numpy(), expected, atol=1e-5)


def test_the_step_is_counted_across_runs(service):
    program = kiln.Program("counted")
    step = program.step()
    program.report(number=te.compute((), lambda: step().astype("float32"), name="number"))
    w = program.parameter(np.zeros(1, "float32"), "w")
    program.update(w, w + 1.0)
    assert list(program.run(steps=3, first_step=10).reports["number"]) == [10, 11, 12]


def test_other_shapes_are_planned_anew(service):
    n = te.var("n")
    program = kiln.Program("sizes")
    x = program.input((n, 3), name="x")
    program.output(y=topi.nn.relu(x) * 2.0)
    for rows in (2, 5):
        values = np.arange(rows * 3, dtype="float32").reshape(rows, 3) - 4
        np.testing.assert_array_equal(program.run({x: values}).y, np.maximum(values, 0) * 2)


def test_a_scan_is_a_node(service):
    program = kiln.Program("sums")
    x = program.input((7, 3), name="x")
    state = te.placeholder((7, 3), name="state")
    init = te.compute((1, 3), lambda _, i: x[0, i], name="init")
    update = te.compute((7, 3), lambda t, i: state[t - 1, i] + x[t, i], name="running")
    program.output(y=te.scan(init, update, state, inputs=[x]) * 2.0)
    values = np.random.RandomState(0).normal(size=(7, 3)).astype("float32")
    np.testing.assert_allclose(program.run({x: values}).y, 2 * np.cumsum(values, axis=0), rtol=1e-6)


def test_parameters_are_saved_and_resumed(service, tmp_path):
    data = {"x": X, "y": X @ TRUE_W}
    one = regression()
    one.run(data, epochs=2)
    one.save(tmp_path / "w.npz")
    one.run(data, epochs=2)
    other = regression().load(tmp_path / "w.npz")
    other.run(data, epochs=2)
    np.testing.assert_array_equal(other.parameters["w"].numpy(), one.parameters["w"].numpy())


def test_a_file_of_another_program_is_refused(service, tmp_path):
    np.savez(tmp_path / "other.npz", v=np.zeros(3))
    with pytest.raises(kiln.InvalidArgument) as caught:
        regression().load(tmp_path / "other.npz")
    assert caught.value.message == f"{tmp_path / 'other.npz'} has no parameter w of regression"


def test_the_plan_names_kernels_and_memory(service):
    plan = regression().plan()
    assert plan.moved > 0 and plan.arena <= 1.3 * plan.live and plan.live <= plan.separate
    assert [value["becomes"] for value in plan.values if value["becomes"]] == ["w"]
    assert "regression:" in str(plan) and "kernels a step" in str(plan)


def test_the_plan_is_drawn(service, tmp_path):
    from xml.dom import minidom

    plan = regression().plan()
    drawn = minidom.parseString(plan.svg(tmp_path / "plan.svg"))
    boxes = [value for value in plan.values if value["offset"] is not None]
    assert len(drawn.getElementsByTagName("rect")) == len(boxes)
    assert any("becomes w" in title.firstChild.data for title in drawn.getElementsByTagName("title"))
    assert (tmp_path / "plan.svg").read_text() == plan.svg()


def test_a_cancelled_run_leaves_the_last_whole_step(service):
    program = kiln.Program("endless")
    w = program.parameter(np.zeros(4096, "float32"), "w")
    program.update(w, w + 1.0)
    with pytest.raises(kiln.DeadlineExceeded) as caught:
        program.run(steps=10**9, timeout=1)
    assert caught.value.message == (
        "endless did not end within its timeout of 1 s; its parameters are those of the last whole step"
    )
    values = program.parameters["w"].numpy()
    assert values[0] > 0 and (values == values[0]).all()
    assert program.run(steps=1).steps == 1  # the device is free again


def test_others_have_their_turn_during_a_long_run(service):
    program = kiln.Program("long")
    w = program.parameter(np.zeros(4096, "float32"), "w")
    program.update(w, w + 1.0)
    errors = []

    def run():
        try:
            program.run(steps=10**9, timeout=8)
        except kiln.DeadlineExceeded as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    A = te.placeholder((8,), name="A")
    add = kiln.build([A, te.compute((8,), lambda i: A[i] + 1.0, name="B")])
    for _ in range(3):
        np.testing.assert_array_equal(add(np.zeros(8, "float32")).numpy(), np.ones(8))
    assert thread.is_alive() and not errors
    thread.join()


def test_a_nan_stops_the_run_before_its_step(service):
    program = kiln.Program("diverging")
    w = program.parameter(np.full(1, 2.0, "float32"), "w")
    program.report(loss=te.compute((1,), lambda i: te.sqrt(w[i]), name="root"))
    program.update(w, w - 1.0)
    with pytest.raises(kiln.InvalidArgument) as caught:
        program.run(steps=10, stop_on_nan=True)
    assert caught.value.message == "root is NaN in step 3 of diverging; the parameters are those before it"
    np.testing.assert_array_equal(program.parameters["w"].numpy(), [-1.0])


def wrong(expected, *args, program=None, **options):
    with pytest.raises(kiln.InvalidArgument) as caught:
        program.run(*args, **options)
    assert caught.value.message == expected


def test_what_is_missing_is_named(service):
    wrong("regression needs data set y, but run() is given none", {"x": X}, program=regression())
    wrong(
        "z is no input of regression; its inputs are x, y", {"x": X, "y": X, "z": X}, program=regression()
    )


def test_shapes_that_clash_deep_in_the_graph_are_named(service):
    program = kiln.Program("deep")
    n = te.var("n")
    x, v = program.input((4, n), name="x"), program.input((n, 3), name="v")
    h = topi.nn.relu(x)
    g = topi.tanh(h)
    program.output(y=topi.matmul(g, v))
    wrong(
        "argument v of T_matmul: dimension 0 is 6, but must be 5 (n, from dimension 1 of T_tanh)",
        {x: np.zeros((4, 5), "float32"), v: np.zeros((6, 3), "float32")},
        program=program,
    )


def test_a_data_set_is_whole_batches(service):
    wrong(
        "data set x has 5 rows, which are no multiple of the batch of 3; leave the last 2 out",
        {"x": X[:5], "y": X[:5] @ TRUE_W},
        program=regression(),
    )
    wrong(
        "data set y has 3 rows, but another data set of regression has 6",
        {"x": X, "y": X[:3] @ TRUE_W},
        program=regression(),
    )


def test_an_until_that_never_holds_is_bounded(service):
    program = kiln.Program("waiting")
    w = program.parameter(np.zeros(1, "float32"), "w")
    program.update(w, w + 1.0)
    program.until(te.compute((1,), lambda i: w[i] < 0.0, name="negative"))
    wrong(
        "negative of waiting was still 0 after 50 steps; the parameters are those of the last step, so run it "
        "again, allow more steps, or look at what it waits for",
        program=program,
        steps=50,
    )
    np.testing.assert_array_equal(program.parameters["w"].numpy(), [50.0])


def test_only_parameters_are_updated():
    program = kiln.Program("wrong")
    x = program.input((3,), name="x")
    with pytest.raises(kiln.InvalidArgument) as caught:
        program.update(x, x + 1.0)
    assert caught.value.message == (
        'wrong updates x, which is no parameter of it; make it one by program.parameter(values, "x")'
    )


def test_an_update_has_the_shape_of_its_parameter(service):
    program = kiln.Program("wrong")
    w = program.parameter(np.zeros((2, 3), "float32"), "w")
    with pytest.raises(kiln.InvalidArgument) as caught:
        program.update(w, topi.transpose(w))
    assert caught.value.message == (
        "parameter w is float32[2, 3], but becomes T_transpose, which is float32[3, 2]"
    )


def refused(expected, body):
    with pytest.raises(kiln.InvalidArgument) as caught:
        body()
    assert caught.value.message == expected


def test_placeholders_have_names_of_their_own():
    program = kiln.Program("twice")
    program.input((3,), name="x")
    refused("twice has two placeholders x; give each a name of its own", lambda: program.data((3,), name="x"))


def test_placeholders_from_outside_have_names_as_well():
    program = kiln.Program("outside")
    y = kiln.te.placeholder((3,), name="y")
    program.output(z=y + program.input((3,), name="x"))
    program.message()
    refused("outside has two placeholders y; give each a name of its own", lambda: program.input((3,), name="y"))


def test_batches_of_data_sets_agree(service):
    program = kiln.Program("batches")
    x, y = program.data((2, 3), name="x"), program.data((4, 3), name="y")
    program.output(x=x + 1.0, y=y + 1.0)
    values = np.zeros((8, 3), "float32")
    refused("the data sets of batches have batches of 2 and 4 rows", lambda: program.run({x: values, y: values}))


def test_steps_are_numbers(service):
    refused(
        "steps= of regression must be a number from 0 on, but is -1",
        lambda: regression().run({"x": X, "y": X @ TRUE_W}, steps=-1),
    )


def test_parameters_of_a_file_have_their_shape(service, tmp_path):
    np.savez(tmp_path / "w.npz", w=np.zeros((5, 1), "float32"))
    refused(
        f"parameter w of regression is float32[4, 1], but {tmp_path / 'w.npz'} has float32[5, 1]",
        lambda: regression().load(tmp_path / "w.npz"),
    )


def test_functions_return_tensors(service):
    @kiln.function
    def wrong(x):
        return 3

    refused(
        "wrong must return a tensor or a tuple of tensors, but returned int", lambda: wrong(np.zeros(3, "float32"))
    )
    refused("kiln.function takes a function of tensors, but got int", lambda: kiln.function(3))


def test_functions_are_traced_once_for_each_shape(service):
    traces = []

    @kiln.function
    def scaled(x, y):
        traces.append(x.shape)
        return topi.nn.relu(x * 2.0 - y)

    for rows in (2, 3, 2):
        x, y = np.full((rows, 2), 3.0, "float32"), np.full((rows, 2), 5.0, "float32")
        np.testing.assert_array_equal(scaled(x, y), np.ones((rows, 2)))
    assert traces == [(2, 2), (3, 2)]
    assert isinstance(scaled(x, y, numpy=False), kiln.nd.NDArray)


def test_functions_return_tuples(service):
    @kiln.function
    def both(x):
        return x + 1.0, topi.sum(x)

    more, total = both(np.ones((2, 3), "float32"))
    np.testing.assert_array_equal(more, np.full((2, 3), 2.0))
    assert total == 6


def philox(counter, key):
    """Philox4x32-10 with Python's integers."""
    for turn in range(10):
        a, c = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        k = [(key[0] + turn * 0x9E3779B9) & 0xFFFFFFFF, (key[1] + turn * 0xBB67AE85) & 0xFFFFFFFF]
        counter = (
            (c >> 32) ^ counter[1] ^ k[0], c & 0xFFFFFFFF, (a >> 32) ^ counter[3] ^ k[1], a & 0xFFFFFFFF,
        )  # fmt: skip
    return counter


def test_the_generator_is_philox():
    # The known answer of its authors for a counter and a key of zeros.
    assert philox((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)


def test_random_numbers_follow_from_seed_step_and_place(service):
    program = kiln.Program("random", seed=7)
    numbers = program.uniform((3, 7))
    program.output(numbers=numbers, others=program.uniform((3, 7)))
    result = program.run(first_step=5)
    expected = [philox((block, 0, 5, 0), (7, 0)) for block in range(6)]
    words = np.array(expected, "uint64").reshape(-1)[:21] >> 8
    np.testing.assert_array_equal(result.numbers.reshape(-1), (words * 2.0**-24).astype("float32"))
    assert (result.numbers != result.others).all()
    np.testing.assert_array_equal(program.run(first_step=5).numbers, result.numbers)
    assert (program.run(first_step=6).numbers != result.numbers).all()


def test_normal_numbers_are_normal(service):
    program = kiln.Program("random")
    program.output(numbers=program.normal((200, 500), mean=2.0, std=3.0))
    numbers = program.run().numbers
    assert abs(numbers.mean() - 2) < 0.05 and abs(numbers.std() - 3) < 0.05
    assert 0.67 < (abs(numbers - 2) < 3).mean() < 0.70


def test_dropout_keeps_the_mean(service):
    program = kiln.Program("random")
    x = program.input((100, 100), name="x")
    program.output(y=program.dropout(x, 0.25))
    y = program.run({x: np.ones((100, 100), "float32")}).y
    np.testing.assert_allclose(np.unique(y), [0, 4 / 3], rtol=1e-6)
    assert abs((y == 0).mean() - 0.25) < 0.02
    refused(
        "the rate of dropout must be at least 0 and below 1, but is 1.5", lambda: program.dropout(x, 1.5)
    )
    n = te.var("n")
    refused(
        "uniform of random needs a shape of numbers, as its elements are counted", lambda: program.uniform((n,))
    )


def test_large_parameters_change_though_clients_saw_their_memory(service):
    # Local clients pass and read large arrays as memory, which then must not change.
    program = kiln.Program("large")
    start = np.arange(1 << 20, dtype="float32")
    w = program.parameter(start, "w")
    program.update(w, w + 1.0)
    seen = [program.parameters["w"].numpy()]
    for steps in (1, 2):
        program.run(steps=steps)
        seen.append(program.parameters["w"].numpy())
    for values, added in zip(seen, (0, 1, 3)):
        np.testing.assert_array_equal(values, start + added)
