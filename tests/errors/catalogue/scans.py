"""Mistakes in scans."""

import kiln
from kiln import te

from .entry import Section
from .programs import running_sum

wrong = Section(
    "scans", "Scans",
    "`te.scan(init, update, state)` is a recurrence: `init` gives the first steps, `update` each later one from the "
    "steps before it, for which the placeholder `state` stands.",
)  # fmt: skip


@wrong(
    "SCAN_TIME",
    "scan S: update reads state at t (current step); it may read only t-1",
    fix="state[t - 1, i] + X[t, i]",
    at="build",
)
def state_read_at_the_current_step():
    X, state = te.placeholder((6, 3), name="X"), te.placeholder((6, 3), name="state")
    init = te.compute((1, 3), lambda _, i: X[0, i], name="init")
    update = te.compute((6, 3), lambda t, i: state[t, i] + X[t, i], name="update")  # <-
    kiln.build([X, te.scan(init, update, state, name="S")])


@wrong(
    "SCAN_TIME",
    "scan S: update reads state at t + 1 (a later step); it may read only t-1",
    fix="state[t - 1, i] + X[t, i]; te.scan(..., reverse=True) runs backwards",
    at="build",
)
def state_read_at_a_later_step():
    X, state = te.placeholder((6, 3), name="X"), te.placeholder((6, 3), name="state")
    init = te.compute((1, 3), lambda _, i: X[0, i], name="init")
    update = te.compute((6, 3), lambda t, i: state[t + 1, i] + X[t, i], name="update")  # <-
    kiln.build([X, te.scan(init, update, state, name="S")])


@wrong(
    "SCAN_TIME",
    "scan S: update reads state 2 steps back but init gives 1",
    fix="an init of shape (2, 3): one row for each step back",
    at="build",
)
def more_steps_back_than_init_gives():
    X, state = te.placeholder((6, 3), name="X"), te.placeholder((6, 3), name="state")
    init = te.compute((1, 3), lambda _, i: X[0, i], name="init")
    update = te.compute((6, 3), lambda t, i: state[t - 2, i] + X[t, i], name="update")  # <-
    kiln.build([X, te.scan(init, update, state, name="S")])


@wrong(
    "SCAN_TIME",
    "scan S: update reads state at 0; it may read only t-1",
    fix="state[t - 1, i]: t counts from the first step",
    at="build",
)
def state_read_at_a_fixed_step():
    X, state = te.placeholder((6, 3), name="X"), te.placeholder((6, 3), name="state")
    init = te.compute((1, 3), lambda _, i: X[0, i], name="init")
    update = te.compute((6, 3), lambda t, i: state[0, i] + X[t, i], name="update")  # <-
    kiln.build([X, te.scan(init, update, state, name="S")])


@wrong(
    "SCAN_TIME",
    "scan S: update reads state at when[t]; it may read only t-1",
    fix="read the tensor whose values index, not the state, at computed places",
    at="build",
)
def state_read_at_a_computed_step():
    X, state = te.placeholder((6, 3), name="X"), te.placeholder((6, 3), name="state")
    when = te.placeholder((6,), "int64", name="when")
    init = te.compute((1, 3), lambda _, i: X[0, i], name="init")
    update = te.compute((6, 3), lambda t, i: state[when[t], i] + X[t, i], name="update")  # <-
    kiln.build([X, when, te.scan(init, update, state, name="S")])


@wrong(
    "SCAN_SHAPE",
    "init of scan S has shape (1, 4) but its state has shape (6, 3); dimension 1 must agree",
    fix="an init of shape (1, 3)",
)
def init_of_another_shape():
    state = te.placeholder((6, 3), name="state")
    init = te.compute((1, 4), lambda _, i: 0.0, name="init")
    update = te.compute((6, 3), lambda t, i: state[t - 1, i] + 1, name="update")
    te.scan(init, update, state, name="S")  # <-


@wrong(
    "SCAN_SHAPE",
    "init of scan S has shape (3,) but its state has shape (6, 3); its time dimension is missing",
    fix="an init of shape (1, 3): the time dimension counts the initial steps",
)
def init_without_time():
    state = te.placeholder((6, 3), name="state")
    init = te.compute((3,), lambda i: 0.0, name="init")
    update = te.compute((6, 3), lambda t, i: state[t - 1, i] + 1, name="update")
    te.scan(init, update, state, name="S")  # <-


@wrong(
    "SCAN_SHAPE",
    "update of scan S has shape (5, 3) but its state has shape (6, 3)",
    fix="an update of shape (6, 3)",
)
def update_of_another_shape():
    state = te.placeholder((6, 3), name="state")
    init = te.compute((1, 3), lambda _, i: 0.0, name="init")
    update = te.compute((5, 3), lambda t, i: state[t - 1, i] + 1, name="update")
    te.scan(init, update, state, name="S")  # <-


@wrong(
    "SCAN_SHAPE",
    "init of scan S has shape (1, n) but its state has shape (6, m); dimension 1 must agree",
    fix="placeholder, init and update of one width",
    at="build",
)
def widths_of_different_sizes():
    n, m = te.var("n"), te.var("m")
    X, state = te.placeholder((6, n), name="X"), te.placeholder((6, m), name="state")
    init = te.compute((1, n), lambda _, i: X[0, i], name="init")
    update = te.compute((6, m), lambda t, i: state[t - 1, i] + 1, name="update")
    kiln.build([X, te.scan(init, update, state, name="S")])  # <-


@wrong(
    "SCAN_TYPE",
    "update of scan S is float32 but its state is float64",
    fix='te.placeholder((6, 3), "float64") as the state',
)
def update_of_another_type():
    state = te.placeholder((6, 3), "float64", name="state")
    init = te.compute((1, 3), lambda _, i: te.const(0, "float64"), name="init")
    update = te.compute((6, 3), lambda t, i: state[t - 1, i].astype("float32"), name="update")
    te.scan(init, update, state, name="S")  # <-


@wrong(
    "SCAN_LISTS",
    "scan S has 2 init, 1 update and 1 state; their numbers must be the same",
    fix="as many init as update and state",
)
def lists_of_different_lengths():
    state = te.placeholder((6, 3), name="state")
    init = te.compute((1, 3), lambda _, i: 0.0, name="init")
    update = te.compute((6, 3), lambda t, i: state[t - 1, i] + 1, name="update")
    te.scan([init, init], [update], [state], name="S")  # <-


@wrong(
    "SCAN_LISTS",
    "scan S has no state",
    fix="at least one state",
)
def scan_without_states():
    te.scan([], [], [], name="S")  # <-


@wrong(
    "SCAN_STATE",
    "the state of scan S must be a placeholder, but state is computed",
    fix="te.placeholder((6, 3)) as the state",
)
def computed_tensor_as_state():
    X = te.placeholder((6, 3), name="X")
    state = te.compute((6, 3), lambda t, i: X[t, i], name="state")
    init = te.compute((1, 3), lambda _, i: 0.0, name="init")
    update = te.compute((6, 3), lambda t, i: state[t - 1, i] + 1, name="update")
    te.scan(init, update, state, name="S")  # <-


@wrong(
    "SCAN_STATE",
    "state is a state of scan R already; each state is a placeholder of its own",
    fix="a placeholder of its own for each scan",
    at="build",
)
def state_of_two_scans():
    state = te.placeholder((6, 3), name="state")
    init = te.compute((1, 3), lambda _, i: 0.0, name="init")
    one = te.compute((6, 3), lambda t, i: state[t - 1, i] + 1, name="one")
    two = te.compute((6, 3), lambda t, i: state[t - 1, i] * 2, name="two")
    R, S = te.scan(init, one, state, name="R"), te.scan(init, two, state, name="S")  # <-
    kiln.build([R, S])


@wrong(
    "SCAN_TENSOR",
    "scan S: init must be a tensor, but is float",
    fix="te.compute((1, 3), lambda _, i: 0.0)",
)
def number_as_init():
    state = te.placeholder((6, 3), name="state")
    update = te.compute((6, 3), lambda t, i: state[t - 1, i] + 1, name="update")
    te.scan(0.0, update, state, name="S")  # <-


@wrong(
    "SCAN_AXIS",
    "state of scan S has 2 dimensions, so time cannot be dimension 2",
    fix="axis=0 or axis=1",
)
def time_at_a_dimension_that_is_not_there():
    state = te.placeholder((6, 3), name="state")
    init = te.compute((1, 3), lambda _, i: 0.0, name="init")
    update = te.compute((6, 3), lambda t, i: state[t - 1, i] + 1, name="update")
    te.scan(init, update, state, name="S", axis=2)  # <-


@wrong(
    "SCAN_UPDATE",
    "the update of scan S must be computed, but X is a placeholder",
    fix="an update made by te.compute from the state",
    at="build",
)
def placeholder_as_update():
    X, state = te.placeholder((6, 3), name="X"), te.placeholder((6, 3), name="state")
    init = te.compute((1, 3), lambda _, i: 0.0, name="init")
    kiln.build([X, te.scan(init, X, state, name="S")])  # <-


@wrong(
    "SCAN_INITIAL_STEPS",
    "init of scan S has k steps; the number of initial steps must be a constant",
    fix="a constant number of rows of init",
    kind="Unsupported", at="build",
)
def initial_steps_of_a_size():
    k = te.var("k")
    X, state = te.placeholder((6, 3), name="X"), te.placeholder((6, 3), name="state")
    init = te.compute((k, 3), lambda t, i: X[t, i], name="init")
    update = te.compute((6, 3), lambda t, i: state[t - 1, i] + 1, name="update")
    kiln.build([X, te.scan(init, update, state, name="S")])  # <-


@wrong(
    "SCAN_CELL",
    "T reads state, the state of scan S; read S instead",
    fix="read S, the result of the scan",
    at="build",
)
def state_read_outside_of_the_scan():
    X, S = running_sum()
    m, n = X.shape
    state = S.op.state_placeholder[0]
    T = te.compute((m, n), lambda t, i: state[t, i] * 2, name="T")  # <-
    kiln.build([X, S, T])


@wrong(
    "SCAN_CELL",
    "T reads update, a part of the cell of scan S; read S instead",
    fix="read S, the result of the scan",
    at="build",
)
def update_read_outside_of_the_scan():
    X, S = running_sum()
    m, n = X.shape
    update = S.op.update[0]
    T = te.compute((m, n), lambda t, i: update[t, i] * 2, name="T")  # <-
    kiln.build([X, S, T])


@wrong(
    "SCAN_CELL",
    "start is part of the cell of scan S, so its first dimension must be 6 (the steps), but is 1",
    fix="a reduction in the place of the inner scan",
    kind="Unsupported", at="build",
)
def scan_inside_a_scan():
    X, state = te.placeholder((6, 6), name="X"), te.placeholder((6, 6), name="state")
    inner = te.placeholder((6, 6), name="inner")
    zeros = te.compute((1, 6), lambda _, i: 0.0, name="zeros")
    start = te.compute((1, 6), lambda t, i: state[t, i], name="start")  # <-
    step = te.compute((6, 6), lambda t, i: inner[t - 1, i] + X[t, i], name="step")
    R = te.scan(start, step, inner, name="R")
    update = te.compute((6, 6), lambda t, i: state[t - 1, i] + R[t, i], name="update")
    kiln.build([X, te.scan(zeros, update, state, name="S")])


@wrong(
    "SCAN_UPDATE",
    "scan S has update as the update of two states",
    fix="an update for each state",
    at="build",
)
def one_update_of_two_states():
    a, b = te.placeholder((6, 3), name="a"), te.placeholder((6, 3), name="b")
    init = te.compute((1, 3), lambda _, i: 0.0, name="init")
    update = te.compute((6, 3), lambda t, i: a[t - 1, i] + b[t - 1, i], name="update")
    kiln.build(te.scan([init, init], [update, update], [a, b], name="S"))  # <-


@wrong(
    "SCAN_UPDATE",
    "update is the update of scan R and of scan S; each needs one of its own",
    fix="an update of its own for each scan",
    at="build",
)
def one_update_of_two_scans():
    a, b = te.placeholder((6, 3), name="a"), te.placeholder((6, 3), name="b")
    init = te.compute((1, 3), lambda _, i: 0.0, name="init")
    update = te.compute((6, 3), lambda t, i: a[t - 1, i] + 1, name="update")
    R = te.scan(init, update, a, name="R")
    S = te.scan(init, update, b, name="S")  # <-
    kiln.build([R, S])


@wrong(
    "SCAN_CELL",
    "last is part of the cell of scan S, so one of its dimensions must be time",
    fix="time as a dimension of half",
    kind="Unsupported", at="build",
)
def part_of_a_step_without_time():
    state = te.placeholder((6, 3), name="state")
    init = te.compute((1, 3), lambda _, i: 0.0, name="init")
    last = te.compute((), lambda: state[0, 0], name="last")  # <-
    update = te.compute((6, 3), lambda t, i: state[t - 1, i] + last(), name="update")
    kiln.build([te.scan(init, update, state, name="S")])


@wrong(
    "SCAN_CELL",
    "scan S: update reads half at t - 1; a stage of the cell may be read only at t (current step)",
    fix="half[t, i]: what a step computes is kept for that step alone",
    kind="Unsupported", at="build",
)
def part_of_an_earlier_step():
    state = te.placeholder((6, 3), name="state")
    init = te.compute((1, 3), lambda _, i: 0.0, name="init")
    half = te.compute((6, 3), lambda t, i: state[t - 1, i] * 0.5, name="half")
    update = te.compute((6, 3), lambda t, i: half[t - 1, i] + 1, name="update")  # <-
    kiln.build([te.scan(init, update, state, name="S")])


@wrong(
    "SCAN_TIME",
    "scan S has 2 steps, but must have at least 4 (its initial steps)",
    fix="an update of at least as many steps as init",
    at="build",
)
def fewer_steps_than_init_gives():
    state = te.placeholder((2, 3), name="state")
    init = te.compute((4, 3), lambda t, i: 0.0, name="init")
    update = te.compute((2, 3), lambda t, i: state[t - 1, i] + 1, name="update")
    kiln.build([te.scan(init, update, state, name="S")])  # <-


@wrong(
    "SCAN_SHAPE",
    "state of scan S has no dimensions, but must have one for time",
    fix="a state with a dimension for time",
)
def state_without_dimensions():
    state = te.placeholder((), name="state")
    init, update = te.compute((), lambda: 0.0, name="init"), te.compute((), lambda: 1.0, name="update")
    te.scan(init, update, state, name="S")  # <-


@wrong(
    "SCAN_AXIS",
    "scan S: axis must be an integer, but is 't'",
    fix="axis=0",
)
def time_that_is_no_number():
    state = te.placeholder((6, 3), name="state")
    init = te.compute((1, 3), lambda _, i: 0.0, name="init")
    update = te.compute((6, 3), lambda t, i: state[t - 1, i] + 1, name="update")
    te.scan(init, update, state, name="S", axis="t")  # <-


@wrong(
    "SCAN_AXIS",
    "scan S: axis -1 is another dimension of each state; count it from 0",
    fix="axis=0, counted from the first dimension",
)
def time_counted_from_the_end_of_unequal_states():
    a, b = te.placeholder((6, 3), name="a"), te.placeholder((6,), name="b")
    inits = te.compute((1, 3), lambda _, i: 0.0, name="ia"), te.compute((1,), lambda _: 0.0, name="ib")
    of_a = te.compute((6, 3), lambda t, i: a[t - 1, i] + 1, name="of_a")
    of_b = te.compute((6,), lambda t: b[t - 1] + 1, name="of_b")
    te.scan(list(inits), [of_a, of_b], [a, b], name="S", axis=-1)  # <-


@wrong(
    "FOREIGN_AXIS",
    "axis S.idx belongs to S and cannot be used in T",
    fix="the axes of T itself",
)
def time_of_a_scan_in_another_tensor():
    X, S = running_sum()
    te.compute(S.shape, lambda t, i: S[S.op.scan_axis, i] * 2, name="T")  # <-


@wrong(
    "REDUCE_AXIS",
    "te.sum: S.idx is a time axis of S; make one with te.reduce_axis",
    fix="t = te.reduce_axis((0, m)), and axis=t",
)
def sum_over_the_time_of_a_scan():
    X, S = running_sum()
    te.compute((4,), lambda i: te.sum(S[S.op.scan_axis, i], axis=S.op.scan_axis), name="T")  # <-


@wrong(
    "SCAN_CELL",
    "scatter spread reads state, a part of the cell of scan S; a scatter inside a scan is not supported",
    fix="a scatter of the result of the scan",
    kind="Unsupported", at="build",
)
def scatter_inside_a_scan():
    state, at = te.placeholder((6, 3), name="state"), te.placeholder((6,), "int64", name="at")
    init = te.compute((1, 3), lambda _, i: 0.0, name="init")
    zeros = te.compute((6, 3), lambda t, i: 0.0, name="zeros")
    spread = te.scatter_add(zeros, (6, 3), lambda t, i: ((at[t], i), state[t, i]), name="spread")  # <-
    update = te.compute((6, 3), lambda t, i: state[t - 1, i] + spread[t, i], name="update")
    kiln.build([at, te.scan(init, update, state, name="S")])


@wrong(
    "SCAN_CELL",
    "the init of scan S is init, which reads its state; the state begins with what init gives",
    fix="an init of X alone",
    at="build",
)
def init_that_reads_the_state():
    X, state = te.placeholder((6, 3), name="X"), te.placeholder((6, 3), name="state")
    init = te.compute((1, 3), lambda t, i: state[t, i], name="init")  # <-
    update = te.compute((6, 3), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    kiln.build([X, te.scan(init, update, state, name="S")])
