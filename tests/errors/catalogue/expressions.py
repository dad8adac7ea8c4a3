"""Mistakes in the bodies of te.compute."""

import numpy as np

import kiln
from kiln import te

from .entry import Section

wrong = Section(
    "expressions", "Expressions",
    "What stands inside `te.compute` describes one element. Python runs the function once, when the kernel "
    "is described, not for each element.",
)  # fmt: skip


@wrong(
    "TRUTH_VALUE",
    "A[i] > 0.0 is known only when the kernel runs, so Python cannot decide by it: write "
    "te.if_then_else(condition, a, b) for if, te.all, te.any and te.logical_not for and, or and not, "
    "te.min and te.max for min and max",
    fix="te.if_then_else(A[i] > 0, A[i], 0)",
)
def python_if_on_an_expression():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: A[i] if A[i] > 0 else 0.0, name="B")  # <-


@wrong(
    "TRUTH_VALUE",
    "i > 0 is known only when the kernel runs, so Python cannot decide by it: write "
    "te.if_then_else(condition, a, b) for if, te.all, te.any and te.logical_not for and, or and not, "
    "te.min and te.max for min and max",
    fix="te.all(i > 0, i < 3)",
)
def python_and_between_conditions():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: te.if_then_else(i > 0 and i < 3, A[i], 0.0), name="B")  # <-


@wrong(
    "TRUTH_VALUE",
    "i > 0 is known only when the kernel runs, so Python cannot decide by it: write "
    "te.if_then_else(condition, a, b) for if, te.all, te.any and te.logical_not for and, or and not, "
    "te.min and te.max for min and max",
    fix="te.all(0 < i, i < 3)",
)
def chained_comparison():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: te.if_then_else(0 < i < 3, A[i], 0.0), name="B")  # <-


@wrong(
    "TRUTH_VALUE",
    "A[i] > 0.0 is known only when the kernel runs, so Python cannot decide by it: write "
    "te.if_then_else(condition, a, b) for if, te.all, te.any and te.logical_not for and, or and not, "
    "te.min and te.max for min and max",
    fix="te.logical_not(A[i] > 0), or te.if_then_else with the branches exchanged",
)
def python_not_of_a_condition():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: te.if_then_else(not A[i] > 0, 1.0, 0.0), name="B")  # <-


@wrong(
    "ARRAY_IN_EXPRESSION",
    "a numpy array of shape (4,) stands in an expression; declare a te.placeholder for it, read its "
    "elements (A[i]), and pass the array when the kernel is called",
    fix="declare W = te.placeholder((4,)) and pass the array at the call",
)
def numpy_array_in_a_definition():
    A = te.placeholder((4,), name="A")
    weights = np.ones(4, "float32")
    te.compute((4,), lambda i: A[i] * weights, name="B")  # <-


@wrong(
    "NO_PYTHON_NUMBER",
    "i is known only when the kernel runs, so numpy cannot take it, neither as a value nor as an "
    "index: declare a te.placeholder for the array, read its elements, and pass the array when the "
    "kernel is called",
    fix="declare W = te.placeholder((4,)), write W[i], and pass the array at the call",
)
def numpy_array_indexed_by_an_axis():
    A = te.placeholder((4,), name="A")
    weights = np.ones(4, "float32")
    te.compute((4,), lambda i: A[i] * weights[i], name="B")  # <-


@wrong(
    "NUMPY_FUNCTION",
    "numpy.exp takes numbers, but A[i] is known only when the kernel runs; write te.exp",
    fix="te.exp(A[i])",
)
def numpy_function_of_an_expression():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: np.exp(A[i]), name="B")  # <-


@wrong(
    "NO_PYTHON_NUMBER",
    "A[i] is known only when the kernel runs, so functions of Python numbers cannot take it: write "
    '.astype("float32") for float(), te.exp for math.exp',
    fix="te.exp(A[i])",
)
def math_function_of_an_expression():
    import math

    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: math.exp(A[i]), name="B")  # <-


@wrong(
    "NO_PYTHON_NUMBER",
    'A[i] is known only when the kernel runs, so int() cannot take it: write .astype("int64")',
    fix='A[i].astype("int32")',
)
def python_int_of_an_expression():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: int(A[i]), name="B")  # <-


@wrong(
    "NO_PYTHON_NUMBER",
    "n is known only when the kernel runs, so it is no index of a list or an array and no end of a "
    "Python range: read elements of a te.placeholder, and run over a range with te.reduce_axis",
    fix="te.sum(A[k], axis=k) with k = te.reduce_axis((0, 4))",
)
def python_loop_over_a_size():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    te.compute((1,), lambda _: sum(A[k] for k in range(n)), name="B")  # <-


@wrong(
    "TRUTH_VALUE",
    "A[i] < 0.0 is known only when the kernel runs, so Python cannot decide by it: write "
    "te.if_then_else(condition, a, b) for if, te.all, te.any and te.logical_not for and, or and not, "
    "te.min and te.max for min and max",
    fix="te.max(a, b) of two values",
)
def python_max_of_expressions():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: max(A[i], 0.0), name="B")  # <-


@wrong(
    "AXIS_COUNT",
    "compute B has 2 dimensions, but its function takes 1 parameter (i); it needs one for each "
    "dimension",
    fix="lambda i, j: ...",
)
def too_few_parameters():
    A = te.placeholder((4, 5), name="A")
    te.compute((4, 5), lambda i: A[i, 0], name="B")  # <-


@wrong(
    "AXIS_COUNT",
    "compute B has 1 dimension, but its function takes 2 parameters (i, j); it needs one for each "
    "dimension",
    fix="a shape with two dimensions, or a reduction over the second",
)
def too_many_parameters():
    A = te.placeholder((4, 5), name="A")
    te.compute((4,), lambda i, j: A[i, j], name="B")  # <-


@wrong(
    "COMPUTE",
    "compute B: its function returned nothing; is a return missing?",
    fix="return the value",
)
def function_without_return():
    A = te.placeholder((4,), name="A")

    def body(i):
        A[i] + 1

    te.compute((4,), body, name="B")  # <-


@wrong(
    "COMPUTE",
    "compute B: the second argument must be a function of the axes",
    fix="te.compute((4,), lambda i: A[i] + 1)",
)
def expression_in_place_of_the_function():
    A = te.placeholder((4,), name="A")
    te.compute((4,), A[0] + 1, name="B")  # <-


@wrong(
    "COMPUTE",
    "compute B: its function returned no value",
    fix="return at least one value",
)
def no_value_at_all():
    te.compute((4,), lambda i: (), name="B")  # <-


@wrong(
    "NOT_AN_EXPRESSION",
    "'zero' of type str cannot stand in an expression",
    fix="a number, or an element of a tensor",
)
def string_as_the_result():
    te.compute((4,), lambda i: "zero", name="B")  # <-


@wrong(
    "NO_PYTHON_NUMBER",
    "i is known only when the kernel runs, so it is no index of a list or an array and no end of a "
    "Python range: read elements of a te.placeholder, and run over a range with te.reduce_axis",
    fix="a list has no element for an axis: declare a te.placeholder and pass the values at the call",
)
def python_list_indexed_by_an_axis():
    table = [1, 2, 3, 4]
    te.compute((4,), lambda i: table[i], name="B")  # <-


@wrong(
    "NOT_AN_EXPRESSION",
    "'1' of type str cannot stand in an expression",
    fix="use numbers, tensors and expressions",
)
def operator_with_a_string():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: A[i] + "1", name="B")  # <-


@wrong(
    "INTEGER_DIVISION",
    "there are several integer divisions: write a // b or te.floordiv(a, b) to round down, "
    "te.truncdiv(a, b) to round to zero, te.floormod or te.truncmod for the remainder",
    fix='i // 2, or i.astype("float32") / 2',
)
def division_of_integers():
    A = te.placeholder((4,), name="A", dtype="int32")
    te.compute((4,), lambda i: A[i] / 2, name="B")  # <-


@wrong(
    "DIVISION_BY_ZERO",
    "floordiv(A[i], 0) divides by zero",
    fix="divide by something that is not 0",
)
def division_by_zero():
    A = te.placeholder((4,), name="A", dtype="int32")
    te.compute((4,), lambda i: A[i] // 0, name="B")  # <-


@wrong(
    "INTEGER_POWER",
    "integers have no power of -1; cast A[i] to a floating type",
    fix='A[i].astype("float32") ** -1',
)
def negative_power_of_an_integer():
    A = te.placeholder((4,), name="A", dtype="int32")
    te.compute((4,), lambda i: A[i] ** -1, name="B")  # <-


@wrong(
    "OPERAND_TYPE",
    "popcount takes integers, but got float32: A[i]",
    fix="popcount counts the bits of an integer: cast first",
)
def bits_of_a_floating_number():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: te.popcount(A[i]), name="B")  # <-


@wrong(
    "OPERAND_TYPE",
    "shift_left takes integers, but got float32: A[i]",
    fix="shifts work on integers; multiply by 2.0 instead",
)
def shift_of_a_floating_number():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: A[i] << 1, name="B")  # <-


@wrong(
    "OPERAND_COUNT",
    "exp takes 1 argument, but got 2",
    fix="te.exp(A[i])",
)
def wrong_number_of_operands():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: te.exp(A[i], 2), name="B")  # <-


@wrong(
    "CONDITION_TYPE",
    "if_then_else takes conditions, but got float32: A[i]; write a comparison such as A[i] != 0",
    fix="A[i] != 0",
)
def number_as_condition():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: te.if_then_else(A[i], 1.0, 0.0), name="B")  # <-


@wrong(
    "CONDITION_TYPE",
    "te.all takes conditions, but got float32: A[i]; write a comparison such as A[i] != 0",
    fix="te.all(A[i] != 0, i > 1)",
)
def number_among_conditions():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: te.if_then_else(te.all(A[i], i > 1), 1.0, 0.0), name="B")  # <-


@wrong(
    "CONSTANT_RANGE",
    "the number 300 does not fit into int8",
    fix="a wider type, such as int16",
)
def constant_too_large_for_its_type():
    A = te.placeholder((4,), name="A", dtype="int8")
    te.compute((4,), lambda i: A[i] + 300, name="B")  # <-


@wrong(
    "CONSTANT_RANGE",
    "the number 1e+39 does not fit into float32",
    fix='float("inf"), or a wider type',
)
def constant_past_a_floating_type():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: A[i] * 1e39, name="B")  # <-


@wrong(
    "CONSTANT_TYPE",
    "the number 2.5 is no int32",
    fix='te.const(2, "int32"), or a floating type',
)
def fraction_as_integer_constant():
    te.const(2.5, "int32")  # <-


@wrong(
    "DTYPE",
    "cast: unknown dtype floaty32; known: bool, int8, int16, int32, int64, uint8, uint16, uint32, "
    "uint64, float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2",
    fix="float32",
)
def unknown_type_of_a_cast():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: A[i].astype("floaty32"), name="B")  # <-


@wrong(
    "REINTERPRET",
    "reinterpret: float32 and int64 are not types of one width",
    fix="a type of the same width, such as int32",
)
def bits_of_another_width():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: te.reinterpret("int64", A[i]), name="B")  # <-


@wrong(
    "UNKNOWN_NAME",
    "te has no expp; did you mean exp",
    fix="te.exp",
)
def misspelt_intrinsic():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: te.expp(A[i]), name="B")  # <-


@wrong(
    "NOT_AN_EXPRESSION",
    "None cannot stand in an expression; does a function lack its return",
    fix="a function that returns its value",
)
def helper_that_returns_nothing():
    A = te.placeholder((4,), name="A")

    def twice(x):
        x * 2

    te.compute((4,), lambda i: A[i] + twice(A[i]), name="B")  # <-


@wrong(
    "UNKNOWN_NAME",
    "A[i] is an expression, which has no max; the functions of expressions are those of te, as te.exp",
    fix="te.max(A[i], 0)",
)
def method_of_an_expression():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: A[i].max(0), name="B")  # <-


@wrong(
    "UNKNOWN_NAME",
    "tensor A has no reshape: it describes values, which kiln.build's function makes; operators of "
    "whole tensors are in kiln.topi",
    fix="topi.reshape(A, (2, 2))",
)
def numpy_method_of_a_tensor():
    A = te.placeholder((4,), name="A")
    A.reshape((2, 2))  # <-


@wrong(
    "OPERAND_COUNT",
    "te.all takes at least one condition",
    fix="te.all(i > 0)",
)
def all_of_nothing():
    te.compute((4,), lambda i: te.if_then_else(te.all(), 1.0, 0.0), name="B")  # <-


@wrong(
    "CONSTANT",
    "const takes a number, but got str",
    fix="te.const(0)",
)
def constant_of_a_text():
    te.const("0")  # <-


@wrong(
    "COMPUTE",
    "compute B: varargs_names has 1 names for 2 axes",
    fix='varargs_names=["j", "k"]',
)
def names_for_other_axes():
    A = te.placeholder((4, 5, 6), name="A")
    te.compute((4, 5, 6), lambda i, *rest: A(i, *rest), name="B", varargs_names=["j"])  # <-


@wrong(
    "INTRINSIC",
    "there is no intrinsic tir.expp; docs/language.md lists them",
    fix='tir.call_intrin("float32", "tir.exp", A[i])',
)
def unknown_intrinsic_by_name():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: kiln.tir.call_intrin("float32", "tir.expp", A[i]), name="B")  # <-


@wrong(
    "LIMIT",
    "the bodies up to B have 3298534883327 nodes when shared parts are spelled out; the limit is "
    "1000000; give large shared parts tensors of their own",
    fix="a tensor of its own for the shared part",
    kind="ResourceExhausted", at="build",
)
def expression_that_doubles():
    A = te.placeholder((4,), name="A")

    def body(i):
        x = A[i]
        for _ in range(40):
            x = x * x
        return x

    B = te.compute((4,), body, name="B")  # <-
    kiln.build([A, B])


@wrong(
    "LIMIT",
    "an expression has 513 levels; the limit is 512",
    fix="a tensor of its own for a part of it, or te.sum over an axis",
    kind="ResourceExhausted", at="build",
)
def chain_of_thousand_operations():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: sum((A[i] for _ in range(1000)), A[i]), name="B")  # <-
    kiln.build([A, B])


@wrong(
    "NO_PYTHON_NUMBER",
    "A[i] is known only when the kernel runs, so functions of Python numbers cannot take it: write te.round, te.floor, "
    "te.ceil or te.trunc",
    fix="te.round(A[i])",
)
def element_rounded_by_python():
    A = te.placeholder((4,), name="A")
    te.compute((4,), lambda i: round(A[i]), name="B")  # <-


@wrong(
    "RECURRENCE",
    "compute C reads C itself, which is not there yet; what follows from its earlier elements is a scan: "
    "te.scan(init, update, state)",
    fix="te.scan, with a placeholder for the state",
)
def tensor_that_reads_itself():
    A = te.placeholder((4,), name="A")
    C = te.compute((4,), lambda i: C[i - 1] + A[i], name="C")  # <-


@wrong(
    "ASSIGNMENT",
    "elements of A cannot be assigned; te.compute says what each element is",
    fix="te.compute((4,), lambda i: te.if_then_else(i == 0, 1.0, A[i]))",
)
def element_that_is_assigned():
    A = te.placeholder((4,), name="A")
    A[0] = 1.0  # <-


@wrong(
    "MATRIX_PRODUCT",
    "there is no @ of tensors; write topi.matmul(A, B)",
    fix="kiln.topi.matmul(A, A)",
)
def product_by_an_at_sign():
    A = te.placeholder((4, 4), name="A")
    A @ A  # <-


@wrong(
    "EXPRESSION_SIZE",
    "the expression of B has more than 100000 nodes when its shared parts are written out; make stages of the shared "
    "parts",
    fix="te.power(A[i], 2.0 ** 17), or a stage of its own for each few squares",
    kind="ResourceExhausted", at="build",
)
def square_of_squares():
    A = te.placeholder((4,), name="A")

    def power(i):
        value = A[i]
        for _ in range(17):
            value = value * value
        return value

    B = te.compute((4,), power, name="B")  # <-
    kiln.build([A, B])
