"""Operators, types and constants of expressions."""

import numpy as np
import pytest
from expect import expect

import kiln
from kiln import te, tir


def scalar(dtype, name="x"):
    return te.placeholder((), dtype, name)()


def of(dtype):
    return scalar(dtype, dtype)


@pytest.mark.parametrize("left, right, met", [
    ("float32", "float32", "float32"),
    ("float16", "float32", "float32"),
    ("float32", "float64", "float64"),
    ("bfloat16", "float16", "float32"),
    ("int32", "int64", "int64"),
    ("int8", "uint8", "int16"),
    ("uint32", "int32", "int64"),
    ("uint64", "int8", "int64"),
    ("float16", "int64", "float16"),
    ("bool", "int8", "int8"),
])
def test_two_types_meet(left, right, met):
    assert (of(left) + of(right)).dtype == met
    assert (of(right) * of(left)).dtype == met
    assert (of(left) < of(right)).dtype == "bool"


@pytest.mark.parametrize("number, dtype, met", [
    (2, "float32", "float32"),
    (2.5, "float16", "float16"),
    (2, "int8", "int8"),
    (2.5, "int64", "float32"),
    (True, "int32", "int32"),
    (2, "bool", "int32"),
    (np.float64(2.5), "float32", "float32"),
    (np.float32(2.5), "int32", "float32"),
    (np.int64(3), "float64", "float64"),
])
def test_a_number_takes_the_type_of_what_it_meets(number, dtype, met):
    assert (of(dtype) + number).dtype == met
    assert (number + of(dtype)).dtype == met


def test_a_size_meets_python_numbers_and_tensors():
    n = te.var("n")
    assert (n + 1).dtype == "int64"
    assert (n * 0.5).dtype == "float32"
    assert (of("int32") + n).dtype == "int64"
    assert (of("float32") + n).dtype == "float32"


def test_every_operator_of_python_has_a_meaning():
    x, y, i, j = scalar("float32", "x"), scalar("float32", "y"), scalar("int32", "i"), scalar("int32", "j")
    table = [
        (x + y, "x[] + y[]"), (x - y, "x[] - y[]"), (x * y, "x[] * y[]"), (x / y, "x[] / y[]"),
        (i // j, "floordiv(i[], j[])"), (i % j, "floormod(i[], j[])"), (x // y, "floordiv(x[], y[])"),
        (-x, "negative(x[])"), (+x, "x[]"), (abs(x), "abs(x[])"), (x**y, "pow(x[], y[])"),
        (x**2, "x[] * x[]"), (i**3, "i[] * i[] * i[]"), (i & j, "i[] & j[]"), (i | j, "i[] | j[]"),
        (i ^ j, "i[] ^ j[]"), (~i, "bitwise_not(i[])"), (i << 2, "i[] << 2"), (1 >> i, "1 >> i[]"),
        (x < y, "x[] < y[]"), (x >= 1, "x[] >= 1.0"), (x == y, "x[] == y[]"), (x != y, "x[] != y[]"),
        ((x < y) & (i < j), "x[] < y[] && i[] < j[]"), ((x < y) | (i < j), "x[] < y[] || i[] < j[]"),
        (~(x < y), "logical_not(x[] < y[])"), (2 - x * (y + 1), "2.0 - x[] * (y[] + 1.0)"),
        (x - (y - x), "x[] - (y[] - x[])"), (te.min(x, 0), "min(x[], 0.0)"),
    ]
    for value, text in table:
        assert str(value) == text


def test_functions_cast_what_they_need():
    assert te.exp(of("int32")).dtype == "float32"
    assert te.sqrt(of("float64")).dtype == "float64"
    assert te.if_then_else(of("bool"), of("float16"), of("float32")).dtype == "float32"
    assert tir.Select(of("bool"), 1, of("int8")).dtype == "int8"
    assert kiln.select(of("bool"), 1.0, 0).dtype == "float32"
    assert te.isnan(of("float32")).dtype == "bool"
    assert te.popcount(of("uint16")).dtype == "uint16"
    assert tir.Cast("int8", of("float32")).dtype == "int8"
    assert of("float32").astype("bfloat16").dtype == "bfloat16"


def test_constants_of_classic_programs():
    assert te.const(1).dtype == "int32"
    assert te.const(1.5).dtype == "float32"
    assert te.const(1, "float64").dtype == "float64"
    assert te.const(True).dtype == "bool"
    assert int(te.min_value("int8")) == -128
    assert float(te.max_value("float16")) == 65504.0


def test_sizes_fold_and_compare():
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((te.const(3) + 4, n + 1), name="A")
    assert a.shape[0] == 7 and isinstance(a.shape[0], int)
    assert a.shape[1] == n + 1
    assert not a.shape[1] == m
    assert a.shape[1] != m
    assert bool(n == n)


def test_a_condition_in_python_control_flow_is_refused():
    x = scalar("float32")
    sentence = (
        "{} is known only when the kernel runs, so Python cannot decide by it: write "
        "te.if_then_else(condition, a, b) for if, te.all, te.any and te.logical_not for and, or and not, te.min and "
        "te.max for min and max"
    )
    for given, use in (
        ("x[] > 0.0", lambda: 1 if x > 0 else 2), ("x[] > 0.0", lambda: x > 0 and x < 1), ("x[]", lambda: not x),
        ("x[] > 0.0", lambda: 0 < x < 1), ("x[] * 2.0 > x[]", lambda: max([x, x * 2], key=lambda v: v)),
    ):  # fmt: skip
        error = expect(kiln.InvalidArgument, sentence.format(given), use)
        assert error.reason == "TRUTH_VALUE"
        assert error.file == __file__


def test_integer_division_says_which_ones_there_are():
    i = scalar("int32", "i")
    expect(kiln.InvalidArgument,
           "there are several integer divisions: write a // b or te.floordiv(a, b) to round down, "
           "te.truncdiv(a, b) to round to zero, te.floormod or te.truncmod for the remainder",
           lambda: i / 2)
    assert str(te.div(i, 2)) == "truncdiv(i[], 2)"


def test_a_constant_that_does_not_fit_is_cast_when_that_is_asked_for():
    assert str(te.const(1e6, "float32").astype("float16")) == "float16(1000000.0)"
    assert str(te.const(65520, "int32").astype("float16")) == "float16(65520)"
    assert str(te.const(6e4, "float32").astype("float16")) == "60000.0"


MISTAKES = [
    (lambda: scalar("int8") + 300, "the number 300 does not fit into int8"),
    (lambda: scalar("uint8") - -1, "the number -1 does not fit into uint8"),
    (lambda: scalar("float16") * -65520, "the number -65520 does not fit into float16"),
    (lambda: scalar("float8_e4m3fn") + 480.0, "the number 480.0 does not fit into float8_e4m3fn"),
    (lambda: scalar("float64") + 10**309, f"the number {10**309} does not fit into float64"),
    (lambda: scalar("int32", "i") // 0, "floordiv(i[], 0) divides by zero"),
    (lambda: scalar("float32", "x") + np.ones((2, 3)),
     "a numpy array of shape (2, 3) stands in an expression; declare a te.placeholder for it, read its "
     "elements (A[i, j]), and pass the array when the kernel is called"),
    (lambda: te.exp(te.placeholder((2, 3), name="A")),
     "tensor A of shape (2, 3) stands in an expression without indices; read an element, as in A[i, j], "
     "inside te.compute"),
    (lambda: te.placeholder((2, 3), name="A")[0] + 1, "A has 2 dimensions, but is read with 1 index"),
    (lambda: te.placeholder((2,), name="A")[0, 1], "A has 1 dimension, but is read with 2 indices"),
    (lambda: te.placeholder((2,), name="A")[2], "index 2 of tensor A is out of range: dimension 0 is 2"),
    (lambda: te.placeholder((2,), name="A")[-1], "index -1 of tensor A is out of range: dimension 0 is 2"),
    (lambda: te.placeholder((2,), name="A")[0.5], "index 0.5 of tensor A is not an integer"),
    (lambda: te.placeholder((2,), name="A")[scalar("float32", "x")],
     'index x[] of tensor A is float32, but must be an integer; write .astype("int64")'),
    (lambda: te.placeholder((2,), name="A")[0:1],
     "tensor A is indexed by a slice; one element is read at a time: use the axes of te.compute as "
     "indices"),
    (lambda: te.all(scalar("float32", "x")),
     "te.all takes conditions, but got float32: x[]; write a comparison such as x[] != 0"),
    (lambda: te.if_then_else(scalar("int32", "i"), 1, 2),
     "if_then_else takes conditions, but got int32: i[]; write a comparison such as i[] != 0"),
    (lambda: te.popcount(scalar("float32", "x")), "popcount takes integers, but got float32: x[]"),
    (lambda: scalar("float32", "x") & 1, "bitwise_and takes integers or bool, but got float32"),
    (lambda: te.exp(1.0, 2.0), "exp takes 1 argument, but got 2"),
    (lambda: scalar("int32", "i") ** -1,
     "integers have no power of -1; cast i[] to a floating type"),
    (lambda: te.bits_of(scalar("int32", "i")), "bits_of takes a floating number, but got int32"),
    (lambda: te.float32_of_bits(scalar("int32", "i")),
     "float32_of_bits takes uint32, but got int32: i[]"),
    (lambda: te.reinterpret("int64", scalar("float32", "x")),
     "reinterpret: float32 and int64 are not types of one width"),
    (lambda: te.q_multiply_shift(scalar("int32", "i"), 1, scalar("int32", "j"), 0),
     "q_multiply_shift: q must be a number, but is j[]"),
    (lambda: te.exp("x"), "'x' of type str cannot stand in an expression"),
    (lambda: list(scalar("float32", "x")), "x[] is a scalar expression, not a sequence"),
]  # fmt: skip


@pytest.mark.parametrize("mistake, message", MISTAKES, ids=[m for _, m in MISTAKES])
def test_a_mistake_gets_a_sentence(mistake, message):
    assert expect(kiln.InvalidArgument, message, mistake).line > 0


def test_numpy_numbers_on_the_left_take_part_in_expressions():
    x, i = scalar("float32", "x"), scalar("int32", "i")
    assert str(np.float32(2) * x) == "2.0 * x[]"
    assert str(np.float32(2) - x) == "2.0 - x[]"
    assert str(np.float32(2) / x) == "2.0 / x[]"
    assert str(np.int32(7) // i) == "floordiv(7, i[])"
    assert str(np.int32(1) << i) == "1 << i[]"
    assert str(np.float32(2) < x) == "x[] > 2.0"


def test_a_name_that_is_not_there_is_an_attribute_error_too():
    with pytest.raises(AttributeError) as caught:
        te.expp
    assert isinstance(caught.value, kiln.InvalidArgument) and type(caught.value) is kiln.UnknownName
    assert not hasattr(te, "expp") and getattr(scalar("float32"), "shape", 7) == 7
    with pytest.raises(ImportError):
        from kiln.te import expp  # noqa: F401


def test_constants_are_python_numbers():
    assert (int(te.const(3)), float(te.const(3)), bool(te.const(0))) == (3, 3.0, False)
    assert (int(te.const(2.5)), float(te.const(2.5))) == (2, 2.5)
    assert [10, 20, 30][te.const(1)] == 20


def test_expressions_that_share_much_are_printed_in_short():
    x = scalar("float32", "x")
    for _ in range(60):
        x = x * x
    assert len(str(x)) < 2000 and "..." in str(x)


def test_very_long_chains_are_no_problem():
    total = scalar("float32")
    for _ in range(5000):
        total = total + 1
    assert str(total).endswith("+ 1.0")
