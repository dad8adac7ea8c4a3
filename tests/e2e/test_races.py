"""Iterations that depend on each other: whatever a step does to them, the result is right or the step is refused."""

import numpy as np
import pytest

import kiln
from kiln import te

# Why a step is refused; any other sentence is a failure, and so is a wrong result.
REFUSED = {
    "FUSE_KINDS", "REDUCTION_AXIS", "RFACTOR", "SCAN_TIME", "SCATTER_ORDER", "STEP_FIELDS", "STEP_STAGE",
    "UNROLL_EXTENT", "VECTORIZE_EXTENT",
}  # fmt: skip

N, M = te.var("n"), te.var("m")
RANDOM = np.random.default_rng(7)
MATRIX = RANDOM.random((37, 50), "float32")
TARGETS = RANDOM.integers(0, 10, 200)


def running_sum():
    """A recurrence in each column."""
    X, state = te.placeholder((M, N), name="X"), te.placeholder((M, N), name="state")
    init = te.compute((1, N), lambda _, i: X[0, i], name="init")
    update = te.compute((M, N), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    S = te.scan(init, update, state, name="S")
    return [X, S], [S, update, init], [MATRIX], [np.cumsum(MATRIX, 0)]


def shifting_sum():
    """A recurrence whose columns need each other."""
    X, state = te.placeholder((M, N), name="X"), te.placeholder((M, N), name="state")
    init = te.compute((1, N), lambda _, i: X[0, i], name="init")
    update = te.compute((M, N), lambda t, i: state[t - 1, (i + 1) % N] + X[t, i], name="update")
    S = te.scan(init, update, state, name="S")
    expected = MATRIX.copy()
    for t in range(1, len(expected)):
        expected[t] += np.roll(expected[t - 1], -1)
    return [X, S], [S, update, init], [MATRIX], [expected]


def sum_of_rows():
    X, k = te.placeholder((M, N), name="X"), te.reduce_axis((0, N), name="k")
    S = te.compute((M,), lambda i: te.sum(X[i, k], axis=k), name="S")
    return [X, S], [S], [MATRIX], [MATRIX.sum(1)]


def sum_of_all():
    X = te.placeholder((M, N), name="X")
    k, l = te.reduce_axis((0, M), name="k"), te.reduce_axis((0, N), name="l")
    S = te.compute((1,), lambda i: te.sum(X[k, l], axis=[k, l]), name="S")
    return [X, S], [S], [MATRIX], [MATRIX.sum(keepdims=True)[0]]


def largest_of_rows():
    """Two values that are reduced together."""
    X, k = te.placeholder((M, N), name="X"), te.reduce_axis((0, N), name="k")
    better = lambda x, y: (te.select(x[1] >= y[1], x[0], y[0]), te.max(x[1], y[1]))
    largest = te.comm_reducer(better, lambda i, v: (te.const(-1, i), te.min_value(v)), name="largest")
    T = te.compute((M,), lambda i: largest((k, X[i, k]), axis=k), name="T")
    return [X, *T], [T[0]], [MATRIX], [MATRIX.argmax(1), MATRIX.max(1)]


def scattered(make, combine):
    B, J, Y = te.placeholder((N,), name="B"), te.placeholder((M,), "int64", name="J"), te.placeholder((M,), name="Y")
    S = make(B, (M,), lambda r: (J[r], Y[r]), name="S")
    base, updates = RANDOM.random(10, "float32"), RANDOM.random(200, "float32")
    expected = base.copy()
    for target, update in zip(TARGETS, updates):
        expected[target] = combine(expected[target], update)
    return [B, J, Y, S], [S], [base, TARGETS, updates], [expected]


def sums_of_bins():
    return scattered(te.scatter_add, lambda old, new: old + new)


def last_of_bins():
    return scattered(te.scatter, lambda old, new: new)


def sums_of_rows_of_bins():
    B, J = te.placeholder((N, 4), name="B"), te.placeholder((M,), "int64", name="J")
    Y = te.placeholder((M, 4), name="Y")
    S = te.scatter_add(B, (M, 4), lambda r, c: ((J[r], c), Y[r, c]), name="S")
    base, updates = RANDOM.random((10, 4), "float32"), RANDOM.random((200, 4), "float32")
    expected = base.copy()
    np.add.at(expected, TARGETS, updates)
    return [B, J, Y, S], [S], [base, TARGETS, updates], [expected]


PROGRAMS = [
    running_sum, shifting_sum, sum_of_rows, sum_of_all, largest_of_rows, sums_of_bins, last_of_bins,
    sums_of_rows_of_bins,
]  # fmt: skip


def split(then, part):
    """The step `then` on a part of the axis."""

    def steps(s, T, axis, all_axes):
        parts = s[T].split(axis, 4)
        getattr(s[T], then)(parts[part])

    return steps


def exchanged(then):
    def steps(s, T, axis, all_axes):
        s[T].reorder(*reversed(all_axes))
        then(s, T, axis, all_axes)

    return steps


def fused(then):
    def steps(s, T, axis, all_axes):
        whole = s[T].fuse(*all_axes) if len(all_axes) > 1 else axis
        then(s, T, whole, [whole])

    return steps


def partial_results(then, of_part=None):
    """rfactor, of the axis or a part of it, and the step `then` on the axis of the partial results."""

    def steps(s, T, axis, all_axes):
        factored = axis if of_part is None else s[T].split(axis, 4)[of_part]
        made = s.rfactor(T, factored)
        F = made[0] if isinstance(made, list) else made
        getattr(s[F], then)(s[F].op.axis[0])

    return steps


def block_of_threads(s, T, axis, all_axes):
    outer, inner = s[T].split(axis, 4)
    s[T].bind(outer, te.thread_axis("blockIdx.x"))
    s[T].bind(inner, te.thread_axis("threadIdx.x"))


def threads(s, T, axis, all_axes):
    s[T].bind(s[T].split(axis, 4)[1], te.thread_axis("threadIdx.x"))


STEPS = {
    "parallel": lambda s, T, axis, _: s[T].parallel(axis),
    "parallel outer part": split("parallel", 0),
    "parallel inner part": split("parallel", 1),
    "vectorize": lambda s, T, axis, _: s[T].vectorize(axis),
    "vectorize part": split("vectorize", 1),
    "unroll": lambda s, T, axis, _: s[T].unroll(axis),
    "unroll part": split("unroll", 1),
    "reorder": exchanged(lambda *_: None),
    "reorder, parallel": exchanged(lambda s, T, axis, _: s[T].parallel(axis)),
    "reorder, vectorize part": exchanged(split("vectorize", 1)),
    "fuse, parallel": fused(lambda s, T, axis, _: s[T].parallel(axis)),
    "fuse, vectorize part": fused(split("vectorize", 1)),
    "rfactor, parallel": partial_results("parallel"),
    "rfactor outer part, parallel": partial_results("parallel", 0),
    "rfactor inner part, vectorize": partial_results("vectorize", 1),
    "bind vthread": lambda s, T, axis, _: s[T].bind(axis, te.thread_axis("vthread")),
    "bind threads": threads,
    "bind blocks and threads": block_of_threads,
}


def schedules(program, steps):
    """The program with the steps on each axis of each of its stages: (arguments, schedule or None, ...)."""
    place, number = 0, 0
    while True:
        arguments, stages, values, expected = program()
        s = te.create_schedule([t.op for t in arguments if t.op.kind != "placeholder"][-1])
        if place == len(stages):
            return
        T = stages[place]
        axes = list(s[T].leaf_iter_vars)
        if number == len(axes):
            place, number = place + 1, 0
            continue
        try:
            steps(s, T, axes[number], axes)
        except kiln.Error as error:
            assert error.reason in REFUSED, error
            s = None
        number += 1
        if s is not None:
            yield arguments, s, values, expected


@pytest.mark.parametrize("program", PROGRAMS, ids=[p.__name__ for p in PROGRAMS])
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_a_step_keeps_the_result_or_is_refused(service, program, steps):
    for arguments, s, values, expected in schedules(program, steps):
        try:
            f = kiln.build(s, arguments)
        except kiln.Error as error:
            assert error.reason in REFUSED, error
            continue
        for _ in range(3):  # a race shows now and then
            results = f(*values)
            for result, wanted in zip(results if isinstance(results, (list, tuple)) else [results], expected):
                np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-4)


@pytest.mark.parametrize("program", PROGRAMS, ids=[p.__name__ for p in PROGRAMS])
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_a_gpu_gets_the_steps_or_a_refusal(service, program, steps):
    for arguments, s, _, _ in schedules(program, steps):
        try:
            assert "fn main" in kiln.lower(s, arguments, target="cuda")
        except kiln.Error as error:
            assert error.reason in REFUSED | {"PARALLEL"}, error  # which a GPU says by bind


def reversed_row():
    A = te.placeholder((N,), name="A")
    return [A, te.compute((N,), lambda i: A[N - 1 - i], name="B")], lambda a: a[::-1]


def neighbours():
    A = te.placeholder((N,), name="A")
    inside = lambda i: te.all(i > 0, i < N - 1)
    B = te.compute((N,), lambda i: te.if_then_else(inside(i), A[i - 1] + A[i + 1], A[i]), name="B")
    return [A, B], lambda a: np.concatenate([a[:1], a[:-2] + a[2:], a[-1:]])


def running_total():
    A, state = te.placeholder((N,), name="A"), te.placeholder((N,), name="state")
    init, update = te.compute((1,), lambda _: A[0]), te.compute((N,), lambda t: state[t - 1] + A[N - t])
    total = lambda a: np.cumsum(np.concatenate([a[:1], a[:0:-1]]), dtype="float32")
    return [A, te.scan(init, update, state, name="S")], total


def own_sum():
    A, k = te.placeholder((N,), name="A"), te.reduce_axis((0, N), name="k")
    return [A, te.compute((N,), lambda i: A[i] + te.sum(A[k], axis=k), name="B")], lambda a: a + a.sum()


ALIASED = [reversed_row, neighbours, running_total, own_sum]


@pytest.mark.parametrize("program", ALIASED, ids=[p.__name__ for p in ALIASED])
@pytest.mark.parametrize("size", [2, 70, 300_000])
def test_an_output_may_be_its_own_input(service, program, size):
    arguments, expected = program()
    f, values = kiln.build(arguments), RANDOM.integers(0, 8, size).astype("float32") / size
    device, host = kiln.nd.array(values), values.copy()
    f(device, device)
    f(host, host)
    for result in (device.numpy(), host):
        np.testing.assert_allclose(result, expected(values), rtol=1e-3)


@pytest.mark.parametrize("program", ALIASED, ids=[p.__name__ for p in ALIASED])
def test_an_output_may_overlap_its_input(service, program):
    arguments, expected = program()
    f = kiln.build(arguments)
    for read, written in ((np.s_[:-1], np.s_[1:]), (np.s_[1:], np.s_[:-1]), (np.s_[::2], np.s_[1::2])):
        memory = RANDOM.random(80, "float32")
        before = memory.copy()
        f(memory[read], memory[written])
        np.testing.assert_allclose(memory[written], expected(before[read]), rtol=1e-3)


def test_outputs_may_lie_between_each_other_but_not_upon(service):
    A = te.placeholder((N,), name="A")
    B, C = te.compute((N,), lambda i: A[i] + 1, name="B"), te.compute((N,), lambda i: A[i] + 2, name="C")
    f, values, memory = kiln.build([A, B, C], name="two"), RANDOM.random(8, "float32"), np.zeros(16, "float32")
    f(values, memory[::2], memory[1::2])
    np.testing.assert_allclose(memory, np.stack([values + 1, values + 2], 1).ravel())
    device = kiln.nd.array(np.zeros(8, "float32"))
    for one, other in ((memory[:8], memory[7:15]), (memory[::2], memory[:8]), (device, device)):
        with pytest.raises(kiln.InvalidArgument) as caught:
            f(values, one, other)
        assert str(caught.value) == "arguments B and C of two are both written, but share memory"
