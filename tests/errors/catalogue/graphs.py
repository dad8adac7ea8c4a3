"""Mistakes in programs, graphs that run many steps (docs/programs.md)."""

import numpy as np

import kiln
from kiln import te, topi

from .entry import Section

wrong = Section(
    "graphs", "Programs of many steps",
    "A run that is refused, or that stops, leaves every parameter as the last whole step left it.",
)  # fmt: skip


@wrong(
    "PROGRAM_GIVEN",
    "mean needs input x, but run() is given none",
    fix='program.run({"x": values})',
    at="run",
)
def an_input_that_is_not_fed():
    program = kiln.Program("mean")
    x = program.input((4,), name="x")
    program.output(y=topi.sum(x) * 0.25)
    program.run()  # <-


@wrong(
    "PROGRAM_FEED",
    "z is no input of mean; its inputs are x",
    fix='program.run({"x": values})',
    at="run",
)
def a_feed_that_is_no_input():
    program = kiln.Program("mean")
    x = program.input((4,), name="x")
    program.output(y=topi.sum(x) * 0.25)
    program.run({"z": np.ones(4, "float32")})  # <-


@wrong(
    "ARGUMENT_SHAPE",
    "argument w of T_matmul: dimension 0 is 6, but must be 5 (n, from dimension 1 of T_tanh)",
    fix="a w of shape (5, 3)",
    at="run",
    notes=("in program net",),
)
def shapes_that_clash_deep_in_a_graph():
    program, n = kiln.Program("net"), te.var("n")
    x, w = program.input((4, n), name="x"), program.input((n, 3), name="w")
    hidden = topi.tanh(topi.nn.relu(x))
    program.output(y=topi.matmul(hidden, w))  # <-
    program.run({x: np.ones((4, 5), "float32"), w: np.ones((6, 3), "float32")})


@wrong(
    "PROGRAM_UPDATE",
    'sgd updates x, which is no parameter of it; make it one by program.parameter(values, "x")',
    fix='w = program.parameter(values, "w"); program.update(w, w * 0.5)',
)
def an_update_of_an_input():
    program = kiln.Program("sgd")
    x = program.input((4,), name="x")
    program.update(x, x * 0.5)  # <-


@wrong(
    "PROGRAM_UPDATE",
    "parameter w is float32[2, 3], but becomes T_transpose, which is float32[3, 2]",
    fix="program.update(w, w * 0.5)",
)
def an_update_of_another_shape():
    program = kiln.Program("sgd")
    w = program.parameter(np.ones((2, 3), "float32"), "w")
    program.update(w, topi.transpose(w))  # <-


@wrong(
    "PROGRAM_BATCH",
    "data set x has 5 rows, which are no multiple of the batch of 3; leave the last 2 out",
    fix="program.run({x: values[:3]})",
    at="run",
)
def rows_that_are_no_whole_batches():
    program = kiln.Program("mean")
    x = program.data((3, 4), name="x")
    program.report(mean=topi.sum(x) * (1 / 12))
    program.run({x: np.ones((5, 4), "float32")})


@wrong(
    "PROGRAM_NAN",
    "root is NaN in step 3 of falling; the parameters are those before it",
    fix="smaller steps, or no stop_on_nan",
    at="run",
)
def a_report_that_becomes_nan():
    program = kiln.Program("falling")
    w = program.parameter(np.full(1, 2.0, "float32"), "w")
    program.report(root=te.compute((1,), lambda i: te.sqrt(w[i]), name="root"))
    program.update(w, w - 1.0)
    program.run(steps=10, stop_on_nan=True)


@wrong(
    "PROGRAM_ENDLESS",
    "negative of waiting was still 0 after 50 steps; the parameters are those of the last step, so run it again, allow more "
    "steps, or look at what it waits for",
    fix="a condition that comes true, or more steps",
    at="run",
)
def a_condition_that_never_holds():
    program = kiln.Program("waiting")
    w = program.parameter(np.zeros(1, "float32"), "w")
    program.update(w, w + 1.0)
    program.until(te.compute((1,), lambda i: w[i] < 0.0, name="negative"))
    program.run(steps=50)


@wrong(
    "PROGRAM_NUMBER",
    "the loss T_mul of fit has shape (3,), but must have one element; take topi.sum(T_mul)",
    fix="program.gradients(topi.sum(w * w), w)",
)
def a_gradient_of_several_numbers():
    program = kiln.Program("fit")
    w = program.parameter(np.ones(3, "float32"), "w")
    program.gradients(w * w, w)  # <-


@wrong(
    "PROGRAM_UPDATE",
    'fit updates x, which is no parameter of it; make it one by program.parameter(values, "x")',
    fix="program.minimize(loss, kiln.optimizers.SGD(0.1), [w])",
)
def an_input_that_is_minimized_by():
    program = kiln.Program("fit")
    x = program.input((3,), name="x")
    program.minimize(topi.sum(x * x), kiln.optimizers.SGD(0.1), [x])  # <-


@wrong(
    "OPTIMIZER",
    "the momentum of SGD must be at least 0 and below 1, but is 1.5",
    fix="kiln.optimizers.SGD(0.1, momentum=0.9)",
)
def a_momentum_that_grows():
    kiln.optimizers.SGD(0.1, momentum=1.5)  # <-


HALVING = "kernel halve(w: float32[n]) -> (h: float32[n]) { h[i] = w[i] * 0.5 }  program halving { parameter w  h = halve(w)  update w = h }"


@wrong(
    "PROGRAM_GIVEN",
    'halving needs parameter w; give it with the first run, as in run({{"w": array}})',
    fix='halving.run({"w": values}, steps=3)',
    at="run",
)
def a_program_of_a_file_without_its_parameter():
    halving = kiln.parse_programs(HALVING)["halving"]
    halving.run(steps=3)  # <-


@wrong(
    "PROGRAM_FILE",
    "halving is a program of a kernel file, where its steps are written; change it there, or make one by kiln.Program",
    fix="program block of the file, or kiln.Program",
)
def a_program_of_a_file_that_is_changed():
    halving = kiln.parse_programs(HALVING)["halving"]
    halving.input((3,), name="x")  # <-
